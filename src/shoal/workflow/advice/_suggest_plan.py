"""A first plan for a table: method, models, hierarchies and k, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from shoal.errors import InputError, quoted
from shoal.hints import Helpful
from shoal.models import KAnonymity, LDiversity, PrivacyModel
from shoal.notebook import listing, view
from shoal.table import (
    Hierarchy,
    MixedColumn,
    Roles,
    Table,
    check_table,
    codes_in,
    mixed_columns,
    suggest_roles,
)
from shoal.workflow._plan import Plan
from shoal.workflow._plan_words import plan_view
from shoal.workflow._require import in_toml, plain, requirements_to_dict
from shoal.workflow.advice._advice import mondrian

_K: Final = 5
_WIDEST: Final = 88


@dataclass(frozen=True)
class PlanSuggestion(Helpful):
    """A plan that runs without changes, and the reasons for its choices.

    ``reasons`` explain the choices of ``method``, ``k``, ``models`` and ``hierarchies`` in
    ``plan``.
    """

    plan: Plan
    reasons: Mapping[str, str]
    _others: tuple[str, ...] = field(repr=False)
    _hierarchies: Mapping[str, Hierarchy] = field(repr=False)
    _quantities: frozenset[str] = field(repr=False)
    _read: Mapping[str, Any] = field(repr=False)
    _kinds: Mapping[str, str] = field(repr=False)
    _mixed: tuple[MixedColumn, ...] = field(repr=False)

    @property
    def roles(self) -> Roles:
        """The roles in the plan."""
        assert self.plan.roles is not None
        return self.plan.roles

    @property
    def k(self) -> int:
        """The smallest crowd."""
        return next(m.k for m in self.plan.require if isinstance(m, KAnonymity))

    @property
    def hierarchies(self) -> Mapping[str, Hierarchy]:
        """The proposed hierarchy of each quasi-identifier, whether the method needs it or not."""
        return self._hierarchies

    def to_toml(self, files: Mapping[str, str] | None = None, *, missing_because: str = "") -> str:
        """The plan as a file to edit, with every line and every choice explained.

        ``files`` maps columns to the paths of hierarchies that list values of the table. A
        hierarchy without a path is written into the plan itself. ``missing_because`` explains the
        texts that were read as missing.
        """
        from jinja2 import Environment

        files = files or {}
        lines = {
            name: assignment(name, files.get(name, plain(hierarchy.to_plan())))
            for name, hierarchy in self._hierarchies.items()
        }
        plain_text = Environment(trim_blocks=True, keep_trailing_newline=True, autoescape=False)
        template = Path(__file__).with_name("plan.toml.j2").read_text(encoding="utf-8")
        return plain_text.from_string(template).render(
            roles={"quasi_identifiers": [], **self.roles.to_dict()},
            others=self._others,
            hierarchies=[line for name, line in lines.items() if name not in self._quantities],
            of_numbers=[line for name, line in lines.items() if name in self._quantities],
            assignment=assignment,
            comment=_comment,
            reasons=self.reasons,
            models=plain(requirements_to_dict(self.plan.require[1:])),
            read=[assignment(name, value) for name, value in self._read.items()],
            columns=self._kinds,
            missing=self._missing(),
            missing_because=missing_because,
            k=self.k,
        )

    def _missing(self) -> tuple[str, str] | None:
        """What may stand for a missing value, as a line of ``[read]``, and why.

        Only known spellings are here: any other text is a cell of the table.
        """
        mixed = [one for one in self._mixed if one.signs]
        if not mixed:
            return None
        key = next((key for key in self._read if key == "only_missing_values"), "missing_values")
        signs = [sign for one in mixed for sign in one.signs]
        line = assignment(key, list(dict.fromkeys([*self._read.get(key, ()), *signs])))
        why = " ".join(one.question for one in mixed)
        kinds = ", ".join(f"'{one.name}'" for one in mixed)
        instead = " in place of the one above" if key in self._read else ""
        return line, (
            f"{why} If so, run 'shoal init' again with --missing-value for each text below. By "
            f"hand: use the next line{instead}, and remove {kinds} from [read.columns] and from "
            "the hierarchies, because the kind of these columns changes."
        )

    def __repr__(self) -> str:
        return f"PlanSuggestion: {self.plan!r}"

    def _repr_html_(self) -> str:
        return plan_view(self.plan) + view(
            "Why", listing(("about", "reason"), self.reasons.items())
        )


def suggest_plan(table: Table, *, k: int | None = None) -> PlanSuggestion:
    """A first plan for a table, to review and edit.

    The roles are those of the table, or those that :func:`shoal.suggest_roles` finds. Values
    become coarser until every person is in a crowd of at least ``k`` with different values of the
    sensitive columns. Nobody is removed.

    Parameters
    ----------
    table : Table
        The table that the plan is for.
    k : int, optional
        The smallest crowd (default: 5, or all persons of a smaller table).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table, protect
    >>> ill = ["flu", "cold", "gout", "flu"] * 5
    >>> table = Table(
    ...     pl.DataFrame({"age": range(20, 40), "ill": ill}),
    ...     Roles(quasi_identifiers=["age"], sensitive=["ill"]),
    ... )
    >>> found = suggest_plan(table)
    >>> found.plan
    Plan: generalize; requires k_anonymity = 5, l_diversity = 2
    >>> print(found.reasons["models"])
    In each crowd the sensitive columns must differ. Otherwise finding the crowd reveals the value.
    >>> protect(table, found.plan).after.k >= 5
    True
    """
    check_table(table, "A suggestion of a plan")
    if len(table) < 2:
        raise InputError(
            f"A plan needs a table with at least 2 records; this one has {len(table)}."
        )
    roles = table.roles if table.roles != Roles() else suggest_roles(table).roles
    table = table.with_roles(roles)
    names = roles.quasi_identifiers
    proposed = {name: Hierarchy.propose(table, name) for name in names}
    coded = {name: of for name in names if (of := codes_in(table, name)) is not None}
    numbers = [name for name in names if table.kind(name) not in ("text", "boolean")]
    quantities = frozenset(n for n in numbers if n not in coded or not coded[n].are_codes)
    k, why_k = _crowd(table, k)
    models = _diversity(table)
    listed = {n: h for n, h in proposed.items() if n not in quantities} or None
    steps = [mondrian(k, models, listed)]
    reasons = {
        "method": "mondrian gives every record the smallest safe box and removes nobody.",
        "k": why_k,
        "hierarchies": "How values become coarser, level by level up to *, as proposed from the "
        "data.",
    }
    unordered = [name for name, of in coded.items() if of.are_names]
    if unordered:
        reasons["hierarchies"] += (
            f" The labels of {quoted(unordered)} have no known order, so rare codes are joined "
            "first. If the codes have an order, write { intervals = [2, 4] }, or another width."
        )
    if models:
        reasons["models"] = (
            "In each crowd the sensitive columns must differ. Otherwise finding the crowd reveals "
            "the value."
        )
    return PlanSuggestion(
        Plan(steps if names else [], require=[KAnonymity(k), *models], roles=roles),
        reasons,
        tuple(name for name in table.columns if roles.of(name) is None),
        proposed,
        quantities,
        {} if table.manner is None else table.manner.options.to_dict(),
        {name: table.kind(name) for name in table.columns},
        () if table.manner is None else tuple(mixed_columns(table)),
    )


def _crowd(table: Table, k: int | None) -> tuple[int, str]:
    people = table.person_count
    if k is not None:
        return k, f"{k} was asked for."
    if people < _K:
        return max(2, people), f"The table has {people} persons, so no crowd can be larger."
    return _K, (
        f"Statistics offices ask for at least {_K} if the recipient is known. Use 10 or more for "
        "a file that anyone can download. 'shoal assess DATA --plan THIS --k-curve' shows what "
        "each k costs."
    )


def _diversity(table: Table) -> list[PrivacyModel]:
    """How many values each sensitive column must have in a crowd: two or three."""
    asked = {name: _values(table, name) for name in table.roles.sensitive}
    found = {name: least for name, least in asked.items() if least > 1}
    if len(found) == len(asked) and len(set(found.values())) == 1:
        return [LDiversity(next(iter(found.values())))]
    return [LDiversity(least, column=name) for name, least in found.items()]


def _values(table: Table, name: str) -> int:
    """Three if no value has half of the records and there is room for them, otherwise two."""
    distinct = table.distinct(name)
    most = max(table.value_counts(name).values(), default=0)
    return min(distinct, 3 if distinct > 4 and most < len(table) / 2 else 2)


def assignment(name: str, value: Any) -> str:
    """A line of TOML; a list that is too long for a line has one item per line."""
    import tomlkit

    key = tomlkit.key(name).as_string()
    line = f"{key} = {in_toml(value)}"
    if not isinstance(value, list) or len(line) <= _WIDEST:
        return line
    return f"{key} = [\n" + "".join(f"    {in_toml(item)},\n" for item in value) + "]"


def _comment(text: str) -> str:
    """A reason as lines of a comment."""
    import textwrap

    return textwrap.fill(text, _WIDEST, initial_indent="# ", subsequent_indent="# ")
