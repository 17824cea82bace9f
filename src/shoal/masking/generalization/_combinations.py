"""The distinct combinations of a table: what a search works on instead of its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Integers, Labels
from shoal.table import Codes, Table


@dataclass(frozen=True, eq=False, repr=False)
class Combinations:
    """Which combinations of codes occur, and how often."""

    codes: Labels  # [combination, quasi-identifier]
    counts: Integers  # the records with each combination
    of_row: npt.NDArray[Any]  # the combination of each record
    columns: list[Codes]
    rows: Integers  # a row of the table, or of the population below it, with each combination
    population: Integers | None = None  # the people of a population with each combination
    times: Integers | None = None  # how many records each row stands for, if not one

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.of_row) if self.times is None else int(self.times.sum())

    def sums(self, labels: npt.NDArray[Any], count: int) -> Integers:
        """How many records have each label, which each row has one of."""
        return np.bincount(labels, self.times, count).astype(np.int64, copy=False)

    def sum_of(self, rows: npt.NDArray[np.bool_]) -> int:
        """How many records the marked rows stand for."""
        return int(rows.sum() if self.times is None else self.times[rows].sum())

    def with_secrets(self, secrets: Labels) -> Pairs:
        """The distinct pairs of a combination and the sensitive values beside it."""
        from shoal.kernels.grouping import dense_labels, first_rows

        if not len(secrets) and self.population is None:
            every = np.arange(len(self.counts), dtype=np.int32)
            return Pairs(every, secrets[:, : len(every)], self.counts, self.of_row)
        # only combinations that a record has: a population may have others
        labels, count = dense_labels(self.of_row.astype(np.uint64))
        for values in secrets:
            # both numbers are at most that of the records, so that the key fits
            width = np.uint64(int(values.max(initial=0)) + 1)
            labels, count = dense_labels(
                labels.astype(np.uint64) * width + values.astype(np.uint64)
            )
        rows = first_rows(labels, count)
        counts = self.sums(labels, count)
        return Pairs(
            self.of_row[rows].astype(np.int32),
            np.ascontiguousarray(secrets[:, rows]),
            counts,
            labels,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Combinations together with the sensitive values that occur beside them."""

    combination: Labels
    secrets: Labels
    counts: Integers
    of_row: npt.NDArray[Any]


def combinations_of(
    everyone: Table, columns: Sequence[str], records: int | None = None
) -> Combinations:
    """Count the combinations of some columns; a missing value is a value of its own.

    The first ``records`` rows (all without it) are those of the table, the others are people of a
    population.
    """
    encoded = [everyone.codes(name) for name in columns]
    groups = everyone.group(columns)
    rows = groups.first_rows
    codes = np.empty((groups.count, len(columns)), np.int32)
    for place, column in enumerate(encoded):
        codes[:, place] = column.codes[rows]
    if records is None:
        return Combinations(codes, groups.rows, groups.labels, encoded, rows, times=everyone.times)
    own = np.bincount(groups.labels[:records], minlength=groups.count).astype(np.int64)
    return Combinations(codes, own, groups.labels[:records], encoded, rows, groups.rows - own)


def distinct_rows(matrix: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[Any], Integers]:
    """The different rows of a matrix in ascending order, and which one each row is."""
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
