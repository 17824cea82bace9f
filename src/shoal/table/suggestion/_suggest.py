"""Suggest the roles of a table's columns, with the evidence for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from shoal.errors import ParameterError, quoted
from shoal.hints import helpful
from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.columns._column import Column
from shoal.table.storage._reading import OPTIONS_OF
from shoal.table.storage.inference._missing import mixed_columns
from shoal.table.suggestion._column_names import NameHints, hints_of
from shoal.table.suggestion._column_sets import (
    ColumnSet,
    distinction_and_separation,
    identifying_set,
    measure_set,
    pool_size,
    search_sets,
)
from shoal.table.suggestion._owners import (
    is_household,
    is_person_key,
    repeated,
    repeating_owners,
    suggested_unit,
)
from shoal.table.suggestion._patterns import identifier_evidence, whole_numbers, written_as_date
from shoal.table.suggestion._role_suggestion import ColumnFacts, RoleSuggestion

__all__ = ["RoleSuggestion", "identifying_columns", "suggest_roles"]

_FEWEST_ROWS = 20
_SINGLES_OUT = 0.5
_NEEDS_NO_SET = 0.9
_WORTH_A_SET = 0.5
_REPEATS = 0.8
_MOST_CLASSES = 50
_TELLING = frozenset({"age", "birth", "sex", "location"})
_LARGEST_SET_SIZE = 5


@helpful
def suggest_roles(table: Any, *, max_set_size: int = 3) -> RoleSuggestion:
    """Suggest which columns are identifiers, quasi-identifiers and sensitive.

    Parameters
    ----------
    table : Table or polars, pandas or pyarrow frame
        The data. Roles that the table already has are ignored.
    max_set_size : int, default 3
        All sets of columns up to this size are compared; larger sets are grown from the best one.

    Returns
    -------
    RoleSuggestion

    Notes
    -----
    The first rule that applies decides the role of a column:

    1. *identifier*: its values or its name look like one (see ``looks_like_identifier``), it
       numbers the records, or it matches an identifier one to one. Among the identifiers that
       repeat, the one with the most values becomes the *unit* (the person whose row it is). One
       whose name refers to households becomes the *household*.
    2. *weight*: its name refers to a sampling weight, and all its values are positive.
    3. *target*: its name is class, label or target, and it has few values.
       *sensitive*: its name refers to health, money, religion, politics, crime and the like.
    4. *quasi-identifier*: its name refers to a trait that others know (age, sex, place, origin,
       family, education, work), it is a date, or it has at least one distinct value for every two
       records.
    5. *quasi-identifier*: it belongs to the best pair or to the best set of ``max_set_size``
       columns. If no name means anything, it belongs to the smallest set found that gives 99 % of
       the records a tuple of their own. The sets do not include identifiers, weights, sensitive
       columns, columns that single out records alone, or measurements (numbers with decimals).

    Distinction and separation are the ratios of Motwani and Xu, "Efficient algorithms for masking
    and finding quasi-identifiers" (2007): distinct tuples per record, and the share of pairs of
    records that differ. The number of rows limits how many columns are compared in sets;
    ``notes`` reports the columns that were left out.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "mail": ["a@example.org", "b@example.org", "c@example.org", "d@example.org"],
    ...     "age": [34, 34, 51, 28],
    ...     "diagnosis": ["flu", "asthma", "flu", "flu"],
    ... })
    >>> suggest_roles(frame).roles.to_dict()
    {'identifiers': ['mail'], 'quasi_identifiers': ['age'], 'sensitive': ['diagnosis']}
    """
    table = table if isinstance(table, Table) else Table(table)
    if type(max_set_size) is not int or not 1 <= max_set_size <= _LARGEST_SET_SIZE:
        raise ParameterError(
            "The 'max_set_size' of suggest_roles must be an integer from 1 to "
            f"{_LARGEST_SET_SIZE}. Got {max_set_size} instead."
        )
    columns = [_Column.of(table.column(name)) for name in table.columns]
    for column in columns:
        _by_itself(column, table)
    _one_to_one_with_identifiers(columns, table)
    _only_one("weight", columns)
    _only_one("target", columns)
    pool, notes = _pool(columns, len(table), max_set_size)
    parts = [table.codes(column.name) for column in pool]
    sets = search_sets(parts, len(table), max_set_size=max_set_size)
    _by_sets(columns, sets, len(pool), max_set_size)
    _rest(columns, {column.name for column in pool})
    roles = _owners(_roles(columns), columns, table)
    notes += [*_about_owners(roles, table), *_about_missing(table)]
    return RoleSuggestion(
        rows=len(table),
        roles=roles,
        columns=tuple(column.facts() for column in columns),
        sets=tuple(sets),
        notes=tuple(notes),
    )


@dataclass
class _Column:
    """A column under examination: its facts, and its role once it is decided."""

    base: ColumnFacts
    hints: NameHints
    fractional: bool
    date: bool
    role: str | None = None
    reason: str = ""

    @classmethod
    def of(cls, column: Column) -> _Column:
        codes = column.codes
        rows, levels = len(column), codes.levels
        sizes = codes.counts
        distinction, separation = distinction_and_separation(sizes)
        missing, kind = column.missing_count, column.kind
        base = ColumnFacts(
            name=column.name,
            kind=kind,
            distinct=len(levels),
            missing=missing / rows if rows else 0.0,
            distinction=distinction,
            separation=separation,
            evidence=identifier_evidence(levels, rows - missing, column.name, running_numbers=True),
        )
        return cls(
            base=base,
            hints=hints_of(column.name),
            fractional=kind == "float" and not whole_numbers(levels),
            date=kind in ("date", "datetime") or (kind == "text" and written_as_date(levels)),
        )

    @property
    def name(self) -> str:
        return self.base.name

    def decide(self, role: str | None, reason: str) -> None:
        self.role, self.reason = role, reason

    @property
    def decided(self) -> bool:
        return bool(self.reason)

    def facts(self) -> ColumnFacts:
        return dataclasses.replace(self.base, role=self.role, reason=self.reason)


def _by_itself(column: _Column, table: Table) -> None:
    """Roles that follow from one column alone: rules 1 to 4."""
    facts, hints = column.base, column.hints
    sensitive = hints.sensitive if hints.quasi not in _TELLING else None
    if facts.distinct == 0:
        column.decide(None, "all values are missing")
    elif facts.evidence is not None:
        column.decide("identifiers", str(facts.evidence))
    elif hints.weight and _is_weight(table.column(column.name).series, hints.weight):
        column.decide(
            "weight",
            "sampling weight"
            + ("; its exact values can single out records" * (facts.distinction >= 0.1)),
        )
    elif hints.weight == "sure":
        column.decide(None, "named like a sampling weight, but not all are numbers above 0")
    elif facts.separation == 0 and len(table) > 1:
        column.decide(None, "the same value in every row")
    elif hints.label and facts.distinct <= _MOST_CLASSES:
        column.decide("target", "its name marks it as what a model predicts")
    elif sensitive:
        column.decide("sensitive", f"its name refers to {sensitive}")
    elif hints.quasi:
        column.decide(
            "quasi_identifiers", f"its name refers to {hints.quasi}, which others may know"
        )
    elif column.date:
        column.decide("quasi_identifiers", "a date, which others may know")
    elif facts.distinction >= _SINGLES_OUT and len(table) >= _FEWEST_ROWS:
        share = f"{100 * facts.distinction:.1f}"
        column.decide("quasi_identifiers", f"{share} distinct values per 100 records")


def _is_weight(series: pl.Series, hint: str) -> bool:
    """Whether all values are positive and, for a vague name, vary more than body weights do."""
    if not series.dtype.is_numeric() or series.null_count():
        return False
    low, middle, high = series.min(), series.median(), series.max()
    if not (low > 0 and high < float("inf")):  # type: ignore[operator]
        return False
    return hint == "sure" or bool(high > 20 * middle)  # type: ignore[operator]


def _only_one(role: str, columns: Sequence[_Column]) -> None:
    """Keep the first column with this role; a table has only one weight and one target."""
    found = [column for column in columns if column.role == role]
    for column in found[1:]:
        column.decide(None, f"'{found[0].name}' is already the suggested {role}")


def _one_to_one_with_identifiers(columns: Sequence[_Column], table: Table) -> None:
    """Make a column an identifier if it matches one, as the name of a unit matches its number."""
    # if hardly any value repeats, every unique column would match one to one
    identifiers = [c for c in columns if c.role == "identifiers" and c.base.distinction < _REPEATS]
    for column in columns:
        if column.role == "identifiers" or column.fractional or column.base.distinct < 50:
            continue
        for other in identifiers:
            most = 1.02 * min(column.base.distinct, other.base.distinct)
            if max(column.base.distinct, other.base.distinct) > most:
                continue
            pair = [table.codes(name) for name in (other.name, column.name)]
            if measure_set(pair, len(table)).distinction * len(table) <= most + 1:
                column.decide("identifiers", f"matches '{other.name}' one to one")
                break


def _pool(
    columns: Sequence[_Column], rows: int, max_set_size: int
) -> tuple[list[_Column], list[str]]:
    """The best candidates for quasi-identifiers, which are compared in sets; and notes."""
    open_ = [
        c
        for c in columns
        if (c.role == "quasi_identifiers" or not c.decided)
        and c.base.separation > 0
        and (c.base.distinction < _NEEDS_NO_SET or rows < _FEWEST_ROWS)
    ]
    pool = [c for c in open_ if c.hints.quasi or not c.fractional]
    if len(pool) < 2:
        pool = open_
    notes = []
    alone = [c.name for c in columns if c.role == "quasi_identifiers" and c not in open_]
    if alone:
        notes.append(
            f"Left out of the sets of columns, because nearly every value is unique: "
            f"{quoted(alone)}."
        )
    size = pool_size(rows, max_set_size)
    if len(pool) > size:
        notes.append(
            f"Only {size} of {len(pool)} columns were compared in sets: first those with a known "
            "name, then those that separate records best."
        )
        pool = sorted(pool, key=lambda c: (c.hints.quasi is None, -c.base.separation))[:size]
        pool = [c for c in columns if c in pool]
    return pool, notes


def _by_sets(
    columns: Sequence[_Column], sets: Sequence[ColumnSet], compared: int, max_set_size: int
) -> None:
    """Rule 5: members of the best small sets, or of the grown set if no name means anything."""
    named = any(c.role == "quasi_identifiers" for c in columns)
    best = {len(found.columns): found for found in reversed(sets)}
    sizes = [2, max_set_size] if named else [2, max_set_size, max(best, default=0)]
    chosen = [best[size] for size in sizes if size in best]
    by_name = {c.name: c for c in columns}
    for found in chosen:
        everything = named and len(found.columns) == compared  # then membership means nothing
        if found.separation < _WORTH_A_SET or everything:
            continue
        kind = "grown" if found.grown else "best"
        reason = f"belongs to the {kind} set of {len(found.columns)} columns"
        for name in found.columns:
            if not by_name[name].decided:
                by_name[name].decide("quasi_identifiers", reason)


def _rest(columns: Sequence[_Column], compared: set[str]) -> None:
    for column in (column for column in columns if not column.decided):
        if column.name in compared:
            column.reason = "adds little to the best sets of columns"
        elif column.fractional:
            column.reason = "a measurement; few of its values are unique"
        else:
            column.reason = "not compared in sets of columns"


def _roles(columns: Sequence[_Column]) -> Roles:
    def named(role: str) -> list[str]:
        return [c.name for c in columns if c.role == role]

    return Roles(
        identifiers=named("identifiers"),
        quasi_identifiers=named("quasi_identifiers"),
        sensitive=named("sensitive"),
        weight=next(iter(named("weight")), None),
        target=next(iter(named("target")), None),
    )


def _owners(roles: Roles, columns: Sequence[_Column], table: Table) -> Roles:
    """The roles, with a unit and a household if identifiers repeat."""
    named = [c.base for c in columns if c.role == "identifiers"]
    evidence = {facts.name: facts.evidence for facts in named if facts.evidence is not None}
    keys = [c.name for c in columns if is_person_key(table.column(c.name))]
    unit = suggested_unit(table._columns, evidence, keys)
    homes = [
        c.name
        for c in columns
        if c.role in ("identifiers", None)
        and is_household(c.name)
        and repeated([table.column(c.name)]) is not None
    ]
    return roles.replacing(unit=unit or (), household=homes[:1])


def _about_owners(roles: Roles, table: Table) -> list[str]:
    """Notes on persons who have, or may have, several rows."""
    if roles.unit_columns:
        (name,) = roles.unit_columns
        return [
            f"{len(table):,} rows have {table.codes(name).count:,} different values of '{name}': "
            "a person may have several rows, and k counts persons."
        ]
    return [
        f"{len(table):,} rows have {distinct:,} different values of {quoted(names)}. Name the "
        'person with unit = "..." in the roles, or write unit = "row" if each row is a person.'
        for names, distinct in repeating_owners(table._columns, len(table), roles).items()
    ]


def _about_missing(table: Table) -> list[str]:
    """Notes on columns that would be numbers or dates but for a few texts."""
    manner = table.manner
    has_options = manner is not None and manner.options.format in OPTIONS_OF
    return [one.sentence if has_options else one.question for one in mixed_columns(table)]


def identifying_columns(table: Table, names: Sequence[str]) -> list[str]:
    """The fewest of the given columns that tell more than 99 % of the records apart."""
    found = identifying_set([table.codes(name) for name in names], len(table))
    return [name for name in names if name in found.columns]
