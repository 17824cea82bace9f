"""What an intruder compares: the known values of persons and records, equal ones once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.risk.linkage._intruder import Intruder
from shoal.table import (
    NUMBERS,
    QUANTITIES,
    Listed,
    Table,
    read_labels_of,
    scale_name,
    shared_codes,
    shared_numbers,
)

if TYPE_CHECKING:
    from shoal.kernels.linkage.best_scores import BestScores, Scored, Scoring

#: At most this many persons are compared with all records by default: ± 2 percent at 0.2.
SCORED_SAMPLE = 2_000


def is_numeric(name: str, original: Table, masked: Table) -> bool:
    """Whether a column has only finite numbers in both tables; infinite ones have no distance."""
    both = original.column(name), masked.column(name)
    return all(column.kind in NUMBERS and column.is_finite for column in both)


def is_quantity(name: str, original: Table, masked: Table) -> bool:
    """Whether it has only finite numbers, or dates, times or durations, in both tables."""
    times = set(QUANTITIES) - set(NUMBERS)
    if {original.kind(name), masked.kind(name)} <= times:
        return scale_name(original.codes(name)) == scale_name(masked.codes(name))
    return is_numeric(name, original, masked)


@dataclass(frozen=True, eq=False)
class KnownCodes:
    """A column with common codes for persons and groups of equal records; -1 if missing.

    ``coarser``: the masked table has values that the original does not have. The intruder maps
    known values to them, and is assumed to find the one that the person got.
    """

    persons: Integers
    records: Integers
    coarser: bool = False

    def equal(self, persons: Integers, records: Integers) -> Flags:
        """Whether each person has the code of the matching group of records."""
        same: Flags = self.persons[persons] == self.records[records]
        return same


def known_codes(intruder: Intruder, name: str, *, coarsened: bool = True) -> KnownCodes:
    """A column of the persons and of ``intruder.crowds``; numbers are never ``coarsened``."""
    before, after = shared_codes(name, intruder.original, intruder.masked)
    released = intruder.masked.codes(name).codes
    records = after[released[intruder.crowds.first_rows]]
    kept = np.array_equal(before, after) or np.isin(after[after >= 0], before).all()
    if not coarsened or kept:
        return KnownCodes(before[intruder.original.codes(name).codes[intruder.persons]], records)
    if not intruder.masked.pairs_with(intruder.original):
        persons, cells = read_labels_of(name, intruder.original, intruder.masked)
        records = cells[intruder.crowds.first_rows]
        return KnownCodes(persons[intruder.persons], records, coarser=True)
    own = np.where(intruder.own >= 0, after[released[intruder.own]], -1)
    return KnownCodes(own, records, coarser=True)


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """A column of quantities on a common scale for persons and groups of equal records.

    NaN if a value is missing. ``levels`` and ``released`` are the values of the original and of
    the masked table. ``unit`` is a difference of 1 on the scale.
    """

    persons: Floats
    levels: Floats
    released: Floats
    unit: float
    _after: Listed
    _first_rows: Integers

    @property
    def is_listed(self) -> bool:
        """Whether ``released`` holds each value once, ascending, or else one for each row."""
        return self._after.codes is not None

    @cached_property
    def records(self) -> Floats:
        """The value of each group of equal records."""
        return self._after.at(self._first_rows)

    def equal(self, persons: Integers, records: Integers) -> Flags:
        """Whether each person has the number of the matching group of records."""
        same: Flags = self.persons[persons] == self._after.at(self._first_rows[records])
        return same


def known_numbers(intruder: Intruder, name: str) -> KnownNumbers:
    """A column's known values of the persons, and the values of ``intruder.crowds``."""
    before, after, unit = shared_numbers(name, intruder.original, intruder.masked)
    persons, first_rows = before.at(intruder.persons), intruder.crowds.first_rows
    return KnownNumbers(persons, before.present, after.present, unit, after, first_rows)


def values_before(intruder: Intruder, name: str) -> Floats:
    """The values of a column of quantities in all rows of the original, without missing ones."""
    before, _, _ = shared_numbers(name, intruder.original, intruder.masked)
    values = before.of_rows
    return values[~np.isnan(values)]


def numbered_tuples(keys: Sequence[Integers], rows: int) -> tuple[Integers, Integers]:
    """Number the rows of columns of codes (from -1 on), equal rows alike; and each first row."""
    from shoal.kernels.grouping import first_rows, group

    labels, count = np.zeros(rows, np.int64), 1
    for codes in keys:
        words = (labels.astype(np.uint64) << np.uint64(32)) | (codes + 1).astype(np.uint64)
        found, sizes = group(words)
        labels, count = found.astype(np.int64), len(sizes)
    return labels, first_rows(labels, count)


@dataclass(frozen=True, eq=False)
class Compared:
    """Two sides in the same codes and units; equal masked records form one tuple.

    ``tuples`` holds the tuple of each masked record. ``rows`` holds all masked records in the order
    of ``tuples``, those of tuple t from ``starts[t]`` on. ``coarser`` are the columns whose values
    became coarser.
    """

    persons: Scored
    records: Scored
    tuples: Integers
    rows: Integers
    starts: Integers
    coarser: tuple[str, ...]

    @property
    def sizes(self) -> Integers:
        """How many masked records each tuple stands for."""
        return np.diff(self.starts)


def compared(intruder: Intruder, values: Sequence[str] = ()) -> Compared:
    """The known and released columns as codes; some of them as values."""
    from shoal.kernels.linkage.best_scores import Scored

    names = [name for name in intruder.released if name not in values]
    sides = [
        known_codes(
            intruder, name, coarsened=not is_numeric(name, intruder.original, intruder.masked)
        )
        for name in names
    ]
    numbers = [known_numbers(intruder, name) for name in values]
    keys = [side.records for side in sides]
    keys += [np.unique(side.records, return_inverse=True)[1] for side in numbers]  # NaN is a value
    # different cells may be read alike
    alike, first = numbered_tuples(keys, intruder.crowds.count)
    tuples = alike[intruder.crowds.labels]
    sizes = np.bincount(alike, weights=intruder.crowds.rows).astype(np.int64)
    persons = Scored(
        _by_column([side.persons for side in sides], np.int32, len(intruder.persons)),
        _by_column([side.persons for side in numbers], np.float64, len(intruder.persons)),
    )
    records = Scored(
        _by_column([side.records[first] for side in sides], np.int32, len(first)),
        _by_column([side.records[first] for side in numbers], np.float64, len(first)),
    )
    coarser = tuple(name for name, side in zip(names, sides, strict=True) if side.coarser)
    return Compared(
        persons,
        records,
        tuples,
        np.argsort(tuples, kind="stable"),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        coarser,
    )


def best_scores(
    intruder: Intruder,
    both: Compared,
    how: Scoring,
    person_labels: Integers,
    record_labels: Integers,
) -> BestScores:
    """Compare every person with every record."""
    from shoal.kernels.linkage.best_scores import BestScores

    own = np.where(intruder.own >= 0, both.tuples[intruder.own], -1)
    found = BestScores(
        both.persons,
        both.records,
        how,
        both.starts,
        record_labels[both.rows],
        person_labels.astype(np.int64),
        own,
    )
    while found.advance() < len(both.sizes):
        pass  # in portions, so that ctrl-C stops it
    return found


def _by_column(columns: Sequence[npt.NDArray[Any]], dtype: Any, rows: int) -> npt.NDArray[Any]:
    return np.array(columns, dtype).reshape(len(columns), rows)
