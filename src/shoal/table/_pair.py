"""An original and its masked table: which rows match, and how each value was released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table._classes import Classes, agreement_of, form_classes, owned_pairs, weights_by_class
from shoal.table.columns._column import Column, Numbers, in_one_code, stacked
from shoal.table.columns._domain import ROOT
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import NUMBERS
from shoal.table.columns._quantities import quantities, scale_name

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes:
    """The codes of values and of their released values: each distinct pair once, ascending."""

    values: Integers
    labels: Integers
    records: Integers  # that have the pair


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """Two tables whose rows can be paired; comparisons are computed once and kept.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> table = Table(pl.DataFrame({"age": [31, 31, 40]}))
    >>> masked = table.with_labels("age", ["30s", "40s"], np.array([0, 0, 1]))
    >>> found = Pair.of(table, masked).outcomes("age")
    >>> found.values.tolist(), found.labels.tolist(), found.records.tolist()
    ([0, 1], [0, 1], [2, 1])
    """

    original: Table
    masked: Table
    rows: Integers

    @classmethod
    def of(cls, original: Table, masked: Table) -> Pair:
        """The pair of two tables; InputError if their rows cannot be paired."""
        return cls(original, masked, masked.rows_in(original))

    def outcomes(self, name: str) -> Outcomes:
        """How the values of a column of both tables were released."""
        return self.masked.once_beside(self.original, name, "outcomes", self._find_outcomes)

    def _find_outcomes(self, name: str) -> Outcomes:
        before, after = self.original.codes(name), self.masked.codes(name)
        if self.original is self.masked:
            values = np.flatnonzero(before.counts)
            return Outcomes(values, values, before.counts[values])
        width = max(1, after.count)
        keys = before.codes[self.rows].astype(np.int64) * width
        keys += after.codes
        distinct, records = _counted(keys, before.count * width, self.masked.times)
        return Outcomes(*np.divmod(distinct, width), records)

    def changed_count(self, name: str) -> int:
        """How many cells of a column differ between matching rows of the two tables."""
        return self.masked.once_beside(self.original, name, "changed", self._count_changed)

    def _count_changed(self, name: str) -> int:
        mine, theirs = self.masked.column(name), self.original.column(name)
        if not (mine.is_coarse and theirs.is_coarse):
            return self.masked.records_at(self.masked.changed_cells(name, self.original))
        after, earlier = in_one_code(mine, theirs)
        if not (np.array_equal(after, earlier) or np.isin(after, earlier).any()):
            return self.masked.records
        outcomes = self.outcomes(name)
        differ = after[outcomes.labels] != earlier[outcomes.values]
        return int(outcomes.records[differ].sum())


def _counted(keys: Integers, most: int, times: Integers | None) -> tuple[Integers, Integers]:
    """The distinct keys, all below ``most``, in ascending order, and how often each occurs."""
    from shoal.kernels.grouping import dense_labels, first_rows

    if most <= 4 * len(keys):
        counts = np.bincount(keys, times).astype(np.int64, copy=False)
        distinct = np.flatnonzero(counts)
        return distinct, counts[distinct]
    labels, count = dense_labels(keys.astype(np.uint64))
    distinct = keys[first_rows(labels, count)]
    order = np.argsort(distinct)
    counts = np.bincount(labels, times, count).astype(np.int64, copy=False)
    return distinct[order], counts[order]


def empty_codes(original: Column, masked: Column) -> Flags:
    """Which codes of a released column reveal nothing: missing, or ``*`` not in the original."""
    codes = masked.codes
    empty = np.zeros(codes.count, np.bool_)
    if codes.missing is not None:
        empty[codes.missing] = True
    if masked.kind == "text":
        roots = (codes.levels == ROOT).to_numpy()
        own = original.kind == "text" and bool((original.codes.levels == ROOT).any())
        empty[: len(roots)] |= roots & (not own)
    return empty


def empty_cells(original: Table, masked: Table, name: str) -> Flags:
    """Which cells of a released column reveal nothing: missing, or ``*`` not in the original."""
    if masked.kind(name) != "text":
        return ~masked.present(name)
    return empty_codes(original.column(name), masked.column(name))[masked.codes(name).codes]


def empty_count(original: Table, masked: Table, name: str) -> int:
    """How many cells of a released column say nothing."""
    column = masked.column(name)
    if column.kind != "text":
        return column.missing_count
    return int(column.codes.counts[empty_codes(original.column(name), column)].sum())


def released_text(original: Table, masked: Table, name: str) -> bool:
    """Whether a column was generalized, that is, is text with values not in the original."""
    if masked.kind(name) != "text":
        return False
    return not {*masked.codes(name).texts} <= {*original.codes(name).texts, ROOT}


# -- two tables in one code: one above the other, or counted in each other


@dataclass(frozen=True, eq=False)
class Stacked:
    """The classes of one table above those of another, by the same columns and in their codes."""

    mine: Classes
    theirs: Classes
    codes: Sequence[Codes]
    joint: Classes
    asked: Integers
    met: Integers

    @classmethod
    def of(
        cls, above: Iterable[Column], below: Iterable[Column], mine: Classes, theirs: Classes
    ) -> Stacked:
        """The classes of two tables that have these columns."""
        rows = mine.first_rows, theirs.first_rows
        codes = [_stacked_code(one, two, rows) for one, two in zip(above, below, strict=True)]
        joint = form_classes(codes, mine.count + theirs.count)
        return cls(mine, theirs, codes, joint, *np.split(joint.labels, [mine.count]))

    @property
    def turned(self) -> Stacked:
        """The same with the two tables exchanged."""
        return Stacked(self.theirs, self.mine, self.codes, self.joint, self.met, self.asked)

    def people(self, wildcard: bool, persons: Integers | None) -> Integers:
        """How many people of the other table agree with each class of this one in all columns.

        Each row is one person, or of one of the ``persons`` that have several. Those who agree by
        wildcards are then counted as shares of persons: no more are counted than there are.
        """
        theirs, joint, asked, met = self.theirs, self.joint, self.asked, self.met
        # large whole numbers that differ in one table may be equal in the type that both share
        people = np.bincount(met, theirs.rows, joint.count).astype(np.float64)
        equal = people[asked].astype(np.int64)
        if persons is not None:
            owned, _ = owned_pairs(met[theirs.labels], persons)
            equal = np.bincount(owned, minlength=joint.count)[asked]
            shares = weights_by_class(theirs, 1.0 / np.bincount(persons)[persons])
            people = np.bincount(met, shares, joint.count).astype(np.float64)
        if not wildcard:
            return equal
        counts = agreement_of(self.codes, joint).totals(people)[asked]
        # a share of a row counts as at least one person
        least = np.maximum(0 if persons is None else equal, counts > 0)
        return np.maximum(np.floor(counts + 1e-9).astype(np.int64), least)


def _stacked_code(above: Column, below: Column, rows: tuple[Integers, Integers]) -> Codes:
    """Some rows of one column above those of another, in shared codes."""
    upper, lower = in_one_code(above, below)
    codes = np.concatenate([upper[above.codes.codes[rows[0]]], lower[below.codes.codes[rows[1]]]])
    count = int(max(upper.max(initial=-1), lower.max(initial=-1))) + 1
    missing = bool((codes < 0).any())
    codes[codes < 0] = count
    levels = pl.Series(above.name, range(count), dtype=pl.Int64)
    return Codes(codes.astype(np.uint64), levels, count if missing else None)


def stacked_codes(column: str, above: Table, below: Table) -> Integers:
    """The codes of a column, the rows of one table above those of another; -1 if missing."""
    upper, lower = shared_codes(column, above, below)
    return np.concatenate([upper[above.codes(column).codes], lower[below.codes(column).codes]])


def shared_codes(column: str, above: Table, below: Table) -> tuple[Integers, Integers]:
    """As :func:`stacked_codes`, but for each code of the two tables instead of each row."""
    return in_one_code(above.column(column), below.column(column))


def stacked_numbers(column: str, above: Table, below: Table) -> Floats:
    """A column of quantities, one table above the other, scaled to about 1; NaN if missing."""
    upper, lower, _ = shared_numbers(column, above, below, of_rows=True)
    return np.concatenate([upper.of_rows, lower.of_rows])


@dataclass(frozen=True, eq=False)
class Listed:
    """The numbers of a column: those of its levels or, if nearly all differ, of every row.

    The numbers of levels ascend, with NaN for missing at the end.
    """

    values: Floats
    codes: Codes | None = None  # the codes of the rows; None if the values are those of the rows

    def at(self, rows: Integers) -> Floats:
        """The numbers of some rows."""
        return self.values[rows if self.codes is None else self.codes.codes[rows]]

    @property
    def of_rows(self) -> Floats:
        """The numbers of all rows."""
        return self.values if self.codes is None else self.values[self.codes.codes]

    @property
    def present(self) -> Floats:
        """The numbers without missing."""
        if self.codes is None or self.codes.missing is None:
            return self.values
        return self.values[:-1]


def shared_numbers(
    column: str, above: Table, below: Table, *, of_rows: bool = False
) -> tuple[Listed, Listed, float]:
    """The numbers of :func:`stacked_numbers`, each once, of the two tables; and their unit.

    The unit is the size of a difference of 1 on their scale. With ``of_rows``, no column of numbers
    is coded: the numbers are those of every row.
    """
    first, second = above.column(column), below.column(column)
    both = [first] if first is second else [first, second]  # a table may be paired with itself
    codes: list[Codes | None]
    if first.kind in NUMBERS:
        codes = [None if of_rows or one.is_continuous else one.codes for one in both]
        parts, unit = _in_one_scale(list(map(_numbers_of, both, codes)))
    else:
        codes = [one.codes for one in both]
        scale = scale_name(first.codes)
        parts, unit = _scaled([quantities(one.codes, scale) for one in both])
    listed = [Listed(values, of) for values, of in zip(parts, codes, strict=True)]
    return listed[0], listed[-1], unit


def _numbers_of(column: Column, codes: Codes | None) -> Numbers:
    """The numbers of the rows of a column or, with its codes, of its levels, then of missing."""
    if codes is None:
        return column.numbers
    numbers = Column(codes.levels).numbers
    if codes.missing is None:
        return numbers
    present = np.arange(codes.count) != codes.missing
    return Numbers(np.append(numbers.values, numbers.values.dtype.type(0)), present)


def _in_one_scale(both: Sequence[Numbers]) -> tuple[list[Floats], float]:
    """Columns of numbers in one scale, with NaN for missing; and its unit."""
    parts = [numbers.values for numbers in both]
    if all(values.dtype.kind in "iu" for values in parts):
        least = min((int(n.values[n.present].min()) for n in both if n.present.any()), default=0)
        shift = np.uint64(least % 2**64)  # differences are exact modulo 2 ** 64
        parts = [values.view(np.uint64) - shift for values in parts]
    floats = [values.astype(np.float64, copy=False) for values in parts]
    return _scaled(
        [
            values if numbers.present.all() else np.where(numbers.present, values, np.nan)
            for values, numbers in zip(floats, both, strict=True)
        ]
    )


def to_one_scale(values: Floats) -> Floats:
    """Numbers divided by a power of two, so that their ranges neither overflow nor vanish."""
    return _scaled([values])[0][0]


def _scaled(parts: Sequence[Floats]) -> tuple[list[Floats], float]:
    largest = 0.0
    for values in parts:
        ends = np.nanmax(values, initial=0.0), -np.nanmin(values, initial=0.0)
        largest = max(largest, *map(float, ends))
    power = -int(np.frexp(largest)[1])
    if abs(power) < 1000:  # then the power of two is a float, and the product is exact
        return [values * 2.0**power for values in parts], 2.0**power
    with np.errstate(over="ignore"):  # compared to the smallest floats, 1 is infinite
        return [np.ldexp(values, power) for values in parts], float(np.ldexp(1.0, power))


def stacked_table(above: Table, below: Table, columns: Sequence[str]) -> Table:
    """Some columns of two tables, the rows of one above those of the other."""
    from shoal.table._table import Table

    lacking = [name for name in columns if name not in below.columns]
    if lacking:
        raise InputError(
            f"The population has no column {quoted(lacking)}. It needs all quasi-identifiers."
        )
    both = [stacked(above.column(name).series, below.column(name).series) for name in columns]
    table = Table(pl.DataFrame(both))
    if above.times is None and below.times is None:
        return table
    return table.tallied(
        np.concatenate(
            [np.ones(len(one)) if one.times is None else one.times for one in (above, below)]
        )
    )


def shared_persons(above: Table, below: Table) -> Flags:
    """Which rows of ``below`` belong to a person in ``above``, according to the units."""
    names = above.roles.unit_columns
    if not names or names != below.roles.unit_columns:
        return np.zeros(len(below), np.bool_)
    labels = stacked_table(above, below, names).group(names).labels
    return np.isin(labels[len(above) :], labels[: len(above)])
