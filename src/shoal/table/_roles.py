"""Which column plays which part: what names a person, what hints at one, what must stay secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from shoal.errors import RolesError, did_you_mean, quoted

_LISTS = ("identifiers", "quasi_identifiers", "sensitive", "insensitive")
_SINGLES = ("weight", "target")


@dataclass(frozen=True)
class Roles:
    """The parts that the columns of a table play.

    Parameters
    ----------
    identifiers : sequence of str
        Columns that name a person by themselves. They never reach a release.
    quasi_identifiers : sequence of str
        Columns that an intruder may know and that name a person in combination.
    sensitive : sequence of str
        Columns that an intruder wants to learn.
    insensitive : sequence of str
        Columns that may leave as they are, said knowingly. A column without any role leaves as
        it is too, unless it looks like an identifier: then a release is refused.
    weight : str, optional
        Sampling weight: how many people of the population a record stands for.
    target : str, optional
        The column that a model is to predict; it may also be sensitive or insensitive.

    Examples
    --------
    >>> Roles(identifiers=["name"], quasi_identifiers=["age", "zip"]).quasi_identifiers
    ('age', 'zip')
    """

    identifiers: tuple[str, ...] = ()
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    insensitive: tuple[str, ...] = ()
    weight: str | None = None
    target: str | None = None

    def __init__(
        self,
        *,
        identifiers: Iterable[str] = (),
        quasi_identifiers: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        insensitive: Iterable[str] = (),
        weight: str | None = None,
        target: str | None = None,
    ) -> None:
        given = {
            "identifiers": identifiers,
            "quasi_identifiers": quasi_identifiers,
            "sensitive": sensitive,
            "insensitive": insensitive,
        }
        for role, names in given.items():
            object.__setattr__(self, role, _name_tuple(role, names))
        for role, name in (("weight", weight), ("target", target)):
            if name is not None and not isinstance(name, str):
                raise RolesError(f"The role '{role}' takes one column name or nothing.")
            object.__setattr__(self, role, name)
        self._refuse_two_roles()

    def _refuse_two_roles(self) -> None:
        role_of: dict[str, str] = {}
        for role, name in self.items():
            before = role_of.get(name)
            if before is not None and not (role == "target" and before.endswith("sensitive")):
                raise RolesError(
                    f"Column '{name}' has two roles, '{before}' and '{role}'; give it one."
                    if before != role
                    else f"Column '{name}' is listed twice under '{role}'; name it once."
                )
            role_of.setdefault(name, role)

    def items(self) -> list[tuple[str, str]]:
        """Pairs of role and column, in the order of declaration."""
        pairs = [(role, name) for role in _LISTS for name in getattr(self, role)]
        pairs += [(role, getattr(self, role)) for role in _SINGLES if getattr(self, role)]
        return pairs

    def of(self, column: str) -> str | None:
        """The role of a column, or None."""
        return next((role for role, name in self.items() if name == column), None)

    def check(self, columns: Iterable[str]) -> None:
        """Raise RolesError if a role names a column that is not among ``columns``."""
        existing = dict.fromkeys(columns)  # quick to look up, and still in order
        for role, name in self.items():
            if name not in existing:
                raise RolesError(
                    f"The role '{role}' names column '{name}', which the table does not have. "
                    f"{did_you_mean(name, existing)}"
                    if existing
                    else f"The role '{role}' names column '{name}', but the table has no columns."
                )

    def without(self, columns: Iterable[str]) -> Roles:
        """The same roles after ``columns`` left the table."""
        gone = set(columns)
        left: dict[str, Any] = {
            role: tuple(name for name in getattr(self, role) if name not in gone) for role in _LISTS
        }
        for role in _SINGLES:
            left[role] = None if getattr(self, role) in gone else getattr(self, role)
        return Roles(**left)

    def replacing(self, **changes: Any) -> Roles:
        """The same roles with some of them given anew."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The roles that are set, as in the ``[roles]`` part of a plan."""
        as_plain = {r: list(getattr(self, r)) for r in _LISTS if getattr(self, r)}
        return as_plain | {r: getattr(self, r) for r in _SINGLES if getattr(self, r)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """The roles as read from the ``[roles]`` part of a plan."""
        known = [spec.name for spec in fields(cls)]
        for role in given:
            if role not in known:
                raise RolesError(f"There is no role '{role}'. {did_you_mean(role, known)}")
        return cls(**given)


def _name_tuple(role: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise RolesError(
            f"The role '{role}' takes a list of column names; got the text '{names}'. "
            f"Write [{quoted([names])}]."
        )
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise RolesError(
            f"The role '{role}' takes a list of column names; got {type(names).__name__}."
        )
    listed = tuple(names)
    if not all(isinstance(name, str) for name in listed):
        raise RolesError(f"The role '{role}' takes column names as text.")
    return listed
