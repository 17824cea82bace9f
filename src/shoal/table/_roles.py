"""The roles of the columns of a table, and whether they fit the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import polars as pl

from shoal.errors import RolesError, did_you_mean, nearest_name, quoted
from shoal.hints import Helpful
from shoal.notebook import listing, view
from shoal.table.columns._column import Column
from shoal.table.columns._frames import kind_of

_LISTS = ("identifiers", "quasi_identifiers", "sensitive", "insensitive", "drop")
_SINGLES = ("weight", "target")
#: Roles that take one column name or several, and may name an identifier too.
_OWNERS = ("unit", "household")
#: The value of ``unit`` if each row is a person.
ROW = "row"


@dataclass(frozen=True, repr=False)
class Roles(Helpful):
    """The roles of the columns of a table.

    Parameters
    ----------
    identifiers : sequence of str
        Columns that identify a person directly. They are never released.
    quasi_identifiers : sequence of str
        Columns that an intruder may know and that identify a person in combination.
    sensitive : sequence of str
        Columns whose values an intruder wants to learn.
    insensitive : sequence of str
        Columns that are deliberately released unchanged. A column without any role is released
        unchanged too, unless it looks like an identifier: then the release is refused.
    weight : str, optional
        The sampling weight: how many people of the population a record represents.
    target : str, optional
        The column that models predict; it may also be sensitive or insensitive.
    unit : str or sequence of str, optional
        The columns that identify the person, if a person may have several rows. Classes then count
        persons. ``"row"`` means that each row is a person. A unit is never released unchanged.
    household : str or sequence of str, optional
        The columns that identify the household. Sampling and suppression keep households together.
    drop : sequence of str
        Columns that are never released, for any reason: notes, file names, what nobody asked for.

    Examples
    --------
    >>> Roles(identifiers=["name"], quasi_identifiers=["age", "zip"]).quasi_identifiers
    ('age', 'zip')
    >>> Roles(unit="patient_id").withheld
    ('patient_id',)
    """

    identifiers: tuple[str, ...] = ()
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    insensitive: tuple[str, ...] = ()
    weight: str | None = None
    target: str | None = None
    unit: tuple[str, ...] | str = ()
    household: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        identifiers: Iterable[str] = (),
        quasi_identifiers: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        insensitive: Iterable[str] = (),
        weight: str | None = None,
        target: str | None = None,
        unit: str | Iterable[str] = (),
        household: str | Iterable[str] = (),
        drop: Iterable[str] = (),
    ) -> None:
        given: dict[str, Any] = dict(locals())
        for role in _LISTS:
            object.__setattr__(self, role, _name_tuple(role, given[role]))
        for role in _SINGLES:
            if given[role] is not None and not isinstance(given[role], str):
                raise RolesError(f"The role '{role}' takes one column name or nothing.")
            object.__setattr__(self, role, given[role])
        for role in _OWNERS:
            owner = given[role]
            listed = (owner,) if isinstance(owner, str) else _name_tuple(role, owner)
            object.__setattr__(self, role, ROW if role == "unit" and owner == ROW else listed)
        self._refuse_two_roles()

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that identify the person; empty if each row is a person."""
        return () if isinstance(self.unit, str) else self.unit

    @property
    def withheld(self) -> tuple[str, ...]:
        """The columns that never leave as they are: identifiers, unit, household and drop."""
        return (*self.naming, *self.drop)

    @property
    def naming(self) -> tuple[str, ...]:
        """The columns that name a person or a household: identifiers, unit and household."""
        return tuple(dict.fromkeys((*self.identifiers, *self.unit_columns, *self.household)))

    def _refuse_two_roles(self) -> None:
        role_of: dict[str, str] = {}
        for role, name in self.items():
            before = role_of.get(name)
            also = role in _OWNERS and before in ("identifiers", "unit")
            predicted = role == "target" and before is not None and before.endswith("sensitive")
            if before is not None and not (predicted or (also and before != role)):
                raise RolesError(
                    f"Column '{name}' has two roles, '{before}' and '{role}'. Give it one role."
                    if before != role
                    else f"Column '{name}' is listed twice under '{role}'. List it once."
                )
            role_of.setdefault(name, role)

    def items(self) -> list[tuple[str, str]]:
        """Pairs of role and column, in the order of declaration."""
        pairs = [(role, name) for role in _LISTS for name in getattr(self, role)]
        pairs += [(role, getattr(self, role)) for role in _SINGLES if getattr(self, role)]
        pairs += [("unit", name) for name in self.unit_columns]
        return pairs + [("household", name) for name in self.household]

    def __repr__(self) -> str:
        given = ", ".join(f"{role}={names!r}" for role, names in self.to_dict().items())
        return f"Roles({given})"

    def _repr_html_(self) -> str:
        rows = (
            (role_word(role), names if isinstance(names, str) else ", ".join(names))
            for role, names in self.to_dict().items()
        )
        return view("Roles", listing(("role", "columns"), rows))

    def of(self, column: str) -> str | None:
        """The role of a column, or None."""
        return self._role_of.get(column)

    @cached_property
    def _role_of(self) -> dict[str, str]:
        # in reverse order, so that a sensitive target is sensitive
        return {name: role for role, name in reversed(self.items())}

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
        """The roles after ``columns`` left the table."""
        gone = set(columns)
        left: dict[str, Any] = {
            role: tuple(name for name in getattr(self, role) if name not in gone) for role in _LISTS
        }
        for role in _SINGLES:
            left[role] = None if getattr(self, role) in gone else getattr(self, role)
        if isinstance(self.unit, str) or not gone & set(self.unit):
            left["unit"] = self.unit  # a part of the unit does not identify a person
        if not gone & set(self.household):
            left["household"] = self.household
        return Roles(**left)

    def replacing(self, **changes: Any) -> Roles:
        """The roles with some of them replaced."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The roles that are set, as in the ``[roles]`` part of a plan."""
        as_plain: dict[str, Any] = {r: list(getattr(self, r)) for r in _LISTS if getattr(self, r)}
        as_plain |= {r: getattr(self, r) for r in _SINGLES if getattr(self, r)}
        for role in _OWNERS:
            named = getattr(self, role)
            if named:
                short = isinstance(named, str) or (len(named) == 1 and named[0] != ROW)
                as_plain[role] = "".join(named) if short else list(named)
        return as_plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """The roles as read from the ``[roles]`` part of a plan."""
        known = [spec.name for spec in fields(cls)]
        for role in given:
            if role not in known:
                if nearest_name(given[role], known) is not None:  # {"age": "quasi"}
                    raise RolesError(
                        f"'{role}' is not a role. List the columns of each role: "
                        '{"quasi_identifiers": ["age"]}.'
                    )
                raise RolesError(f"There is no role '{role}'. {did_you_mean(role, known)}")
        return cls(**given)


def role_word(role: str | None) -> str:
    """The role of one column in words; empty for no role."""
    words = {
        None: "",
        "quasi_identifiers": "quasi-identifier",
        "identifiers": "identifier",
        "drop": "dropped",
    }
    return words.get(role, str(role))


def as_roles(given: Roles | Mapping[str, Any] | None) -> Roles:
    """Roles from an instance, a dict as in a plan, or None."""
    if isinstance(given, Roles):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise RolesError(
            f"The roles must be a shoal.Roles or a dict; got {type(given).__name__}. Use "
            "sh.Roles(quasi_identifiers=[...])."
        )
    return Roles.from_dict(given or {})


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
    return tuple(map(str, listed))  # without the types of arrays


def check_roles(
    columns: Mapping[str, Column], rows: int, roles: Roles, *, released: bool = False
) -> None:
    """Raise RolesError if the roles do not fit; a released column may be empty."""
    roles.check(list(columns))
    if roles.unit == ROW and ROW in columns:
        raise RolesError(
            f"unit = '{ROW}' is ambiguous: it means that each row is a person, but the table also "
            f"has a column '{ROW}'. Write unit = ['{ROW}'] if that column identifies the person, "
            "or rename the column."
        )
    if rows == 0 or released:
        return
    empty = [name for name in roles.quasi_identifiers if columns[name].missing_count == rows]
    if empty:
        some, have, them = ("s", "have", "them") if len(empty) > 1 else ("", "has", "it")
        raise RolesError(
            f"The quasi-identifier{some} {quoted(empty)} {have} no value in any row. Leave {them} "
            "out of the quasi-identifiers, or read the table again."
        )
    if roles.weight is not None:
        weight = columns[roles.weight].series
        known = weight.is_not_null()
        refuse_weights(
            roles.weight,
            weight.dtype,
            lambda: int((~(known & weight.is_finite() & (weight > 0))).sum()),
        )
    refuse_unowned({name: columns[name].missing_count for name in roles.unit_columns}, rows)


def refuse_unowned(gaps: Mapping[str, int], rows: int) -> None:
    """Raise RolesError if values of the unit's columns are missing."""
    if any(gaps.values()):
        listed = ", ".join(f"{count} in '{name}'" for name, count in gaps.items() if count)
        raise RolesError(
            f"The unit has missing values ({listed}, of {rows} rows), so the persons of these "
            "rows are unknown. Fill in the values, or remove the rows."
        )


def refuse_weights(name: str, dtype: pl.DataType, bad: Callable[[], int]) -> None:
    """Raise RolesError if weights are not numbers, or some are missing or not above 0."""
    if kind_of(dtype) not in ("integer", "float"):
        raise RolesError(
            f"The weight column '{name}' is not numeric. Choose another column, or convert it to "
            "numbers."
        )
    if count := bad():
        raise RolesError(
            f"The weight column '{name}' has {count} values that are missing, infinite or "
            "not above 0. Every record needs a positive weight."
        )
