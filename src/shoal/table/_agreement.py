"""Who agrees with whom where a missing value stands for any value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._encode import Codes, combine


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """Which classes agree with each other wherever neither has a missing value.

    A class agrees with itself. What is known of each class, such as its size, is put together
    over all classes that agree with it. Agreement is not transitive, so the crowds of two classes
    may overlap without being equal.

    Parameters
    ----------
    classes : int
        The number of classes.
    order, tuples, starts, blocks : numpy.ndarray, optional
        The classes as the kernel meets them: their order, their codes, and the runs and blocks
        of :func:`shoal.kernels.grouping.wildcard_totals`. Without them only equals agree.
    """

    classes: int
    order: Integers | None = None
    tuples: npt.NDArray[np.uint32] | None = None
    starts: Integers | None = None
    blocks: Integers | None = None

    @classmethod
    def of(cls, parts: Sequence[Codes], classes: int) -> Agreement:
        """The agreement of different tuples of codes, one of each class."""
        from shoal.kernels.grouping import WILDCARD, dense_labels

        if not classes or all(part.missing is None for part in parts):
            return cls(classes)
        complete = [part for part in parts if part.missing is None]
        gappy = [part for part in parts if part.missing is not None]
        gappy.sort(key=lambda part: -part.count)  # the most telling first: comparisons end there
        # Only tuples that are equal in all complete columns can agree: they form a block. A run is
        # what has its wildcards in the same columns, within a block.
        blocks = combine(complete, classes)
        patterns = combine(map(_gaps, gappy), classes)
        order = np.lexsort((patterns, blocks))
        blocks, patterns = blocks[order], patterns[order]
        starts = np.flatnonzero((np.diff(blocks) != 0) | (np.diff(patterns) != 0)) + 1
        starts = np.concatenate(([0], starts, [classes]))
        run_blocks = dense_labels(blocks[starts[:-1]])[0].astype(np.int64)
        tuples = np.empty((classes, len(gappy)), np.uint32)
        for column, part in enumerate(gappy):
            tuples[:, column] = part.codes[order]
            tuples[part.codes[order] == part.missing, column] = WILDCARD
        return cls(classes, order, tuples, starts, run_blocks)

    @property
    def by_equality(self) -> bool:
        """Whether every class agrees with itself only."""
        return self.order is None

    def totals(self, values: Floats) -> Floats:
        """For each class the sum of the values of all classes that agree with it."""
        from shoal.kernels.grouping import wildcard_totals

        return self._met(wildcard_totals, values)

    def largest(self, values: Floats) -> Floats:
        """For each class the largest of the values of all classes that agree with it."""
        from shoal.kernels.grouping import wildcard_largest

        return self._met(wildcard_largest, values)

    def _met(self, meet: Any, values: Floats) -> Floats:
        if self.order is None:
            return values
        met = np.empty_like(values)
        met[self.order] = meet(self.tuples, self.starts, self.blocks, values[self.order])
        return met


def _gaps(part: Codes) -> Codes:
    """Where a column is missing, as a column of its own."""
    missing = (part.codes == part.missing).view(np.uint8)
    return Codes(missing, pl.Series(part.name, [False, True]))
