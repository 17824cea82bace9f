"""The distinct combinations of a table: searches work on these instead of on the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.masking._base import StepLog
from shoal.masking.generalization._demand import Demand
from shoal.table import Codes, Hierarchy, HierarchyCodes, Table

if TYPE_CHECKING:
    from shoal.kernels.lattice.roll_up import Base


@dataclass(frozen=True, eq=False, repr=False)
class Combinations:
    """The combinations of codes that occur, with their counts."""

    counts: Integers  # the records with each combination
    of_row: npt.NDArray[Any]  # the combination of each record
    columns: list[Codes]  # of the records and, after them, of the people of a population
    rows: Integers  # one row of table or population for each combination
    population: Integers | None = None  # the people of a population with each combination
    times: Integers | None = None  # the number of records per row, if not one

    @cached_property
    def codes(self) -> Labels:
        """The codes of all combinations as [combination, quasi-identifier], for the lattices."""
        codes = np.empty((len(self.counts), len(self.columns)), np.int32)
        for place in range(len(self.columns)):
            codes[:, place] = self.column(place)
        return codes

    def column(self, place: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The code of each combination in one quasi-identifier."""
        return self.columns[place].codes[self.rows]

    def records_in(self, place: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The code of each record in one quasi-identifier."""
        return self.columns[place].codes[: len(self.of_row)]

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.of_row) if self.times is None else int(self.times.sum())

    def sums(self, labels: npt.NDArray[Any], count: int) -> Integers:
        """The number of records with each label; ``labels`` has one per row."""
        return np.bincount(labels, self.times, count).astype(np.int64, copy=False)

    def sum_of(self, rows: Flags) -> int:
        """The number of records that the marked rows represent."""
        return int(rows.sum() if self.times is None else self.times[rows].sum())

    def without(self, rows: Flags) -> Integers:
        """The number of records with each combination, without the marked rows."""
        count = len(self.counts)
        return self.sums(np.where(rows, count, self.of_row), count + 1)[:-1]


class Units(NamedTuple):
    """What a search groups into classes: combinations with their sensitive values."""

    combination: Labels
    secrets: Labels
    counts: Integers
    of_row: npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """All input of a search; records are used only when its result is spread over them.

    ``weights`` are what the loss in each column counts, 1 on average.
    """

    table: Table  # with the people of a population, if there is one
    names: Sequence[str]
    hierarchies: Mapping[str, Hierarchy]
    found: Combinations
    coded: Mapping[str, HierarchyCodes]
    weights: Floats
    demand: Demand
    log: StepLog

    @property
    def trees(self) -> list[HierarchyCodes]:
        """The hierarchies of all columns, in order."""
        return [self.coded[name] for name in self.names]

    @cached_property
    def units(self) -> Units:
        """The distinct pairs of a combination and its sensitive values, if these matter."""
        from shoal.kernels.grouping import first_rows

        found, secrets = self.found, self.demand.secrets
        if not len(secrets) and found.population is None:
            every = np.arange(len(found.counts), dtype=np.int32)
            return Units(every, secrets[:, : len(every)], found.counts, found.of_row)
        # only combinations that a record has: a population may have others
        labels, count = joint_labels([found.of_row, *secrets], len(found.of_row))
        rows = first_rows(labels, count)
        combinations = found.of_row[rows].astype(np.int32)
        values = np.ascontiguousarray(secrets[:, rows])
        return Units(combinations, values, found.sums(labels, count), labels)

    @cached_property
    def base(self) -> Base:
        """The combinations and units in the form that the lattice kernels use."""
        from shoal.kernels.lattice.roll_up import Base

        found, people = self.found, self.found.population
        if people is None:
            people = np.zeros(len(found.counts), np.int64)
        counts, none = found.counts.astype(np.int64), np.empty(0, np.int32)
        pairs = Units(none, np.empty((0, 0), np.int32), none.astype(np.int64), none)
        if len(self.demand.secrets):
            pairs = self.units
        return Base(found.codes, counts, people, pairs.combination, pairs.secrets, pairs.counts)


def joint_labels(columns: Iterable[npt.NDArray[Any]], rows: int) -> tuple[npt.NDArray[Any], int]:
    """Labels from 0 for rows of columns, equal for equal rows; and the number of labels."""
    from shoal.kernels.grouping import dense_labels

    labels, count = np.zeros(rows, np.int64), 1
    for codes in columns:
        # both numbers are at most the number of records, so the key fits
        width = np.uint64(int(codes.max(initial=0)) + 1)
        labels, count = dense_labels(labels.astype(np.uint64) * width + codes.astype(np.uint64))
    return labels, count


def combinations_of(
    everyone: Table, columns: Sequence[str], records: int | None = None
) -> Combinations:
    """Count combinations; rows from ``records`` on, if passed, are people of a population."""
    encoded = [everyone.codes(name) for name in columns]
    groups = everyone.group(columns)
    rows = groups.first_rows
    if records is None:
        return Combinations(groups.rows, groups.labels, encoded, rows, times=everyone.times)
    times = None if everyone.times is None else everyone.times[:records]
    own = np.bincount(groups.labels[:records], times, groups.count).astype(np.int64)
    people = groups.rows - own
    return Combinations(own, groups.labels[:records], encoded, rows, people, times)


def distinct_rows(matrix: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[Any], Integers]:
    """The distinct rows of a matrix in ascending order, and the index of each row among them."""
    lowest = matrix.min(axis=0, initial=0).astype(np.int64)
    widths = [int(width) + 1 for width in matrix.max(axis=0, initial=0) - lowest]
    if np.prod([float(width) for width in widths]) >= 2**62:
        rows, which = np.unique(matrix, axis=0, return_inverse=True)
        return rows, which.ravel()
    keys = np.zeros(len(matrix), np.int64)
    for column, least, width in zip(matrix.T, lowest, widths, strict=True):
        keys = keys * width + (column - least)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return matrix[first], which
