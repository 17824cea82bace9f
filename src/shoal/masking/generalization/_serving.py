"""Rows that come after the fit, mapped into what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.masking.generalization._recoding import Scale
from shoal.table import Hierarchy, HierarchyCodes, Table


def scale_of_level(tree: HierarchyCodes, level: int) -> Scale:
    """The nodes of one level as numbers: the middle of what is under them, or their rank."""
    ends = tree.bounds(level)
    if ends is None:
        return Scale(tree.labels[level], np.arange(float(tree.nodes(level))), numeric=False)
    return Scale(tree.labels[level], middles(ends), numeric=True)


def middles(ends: Floats) -> Floats:
    """The middle of each interval; of one that is open on one side, its end; else NaN."""
    low, high = ends[:, 0], ends[:, 1]
    closed = np.where(np.isfinite(low), low, high)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.where(np.isfinite(low) & np.isfinite(high), low + (high - low) / 2, closed)
    return np.where(np.isfinite(middle), middle, np.nan)


@dataclass(frozen=True)
class ServedLevels:
    """One level for each column.

    With ``as_text`` columns at level 0 are texts too, as they are beside a ``*`` that was kept.
    """

    levels: Mapping[str, int]
    as_text: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.levels)

    def apply(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        for name, level in self.levels.items():
            if level:
                table = hierarchies[name].generalize(table, name, level, unseen="top")
            elif self.as_text:
                table = table.starred([name], np.zeros(len(table), np.bool_))
        return table

    def cover(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """At one level for all, classes do not overlap; but a ``*`` that was kept covers all."""
        served = self.apply(table, hierarchies)
        if not self.as_text:
            return served
        rows = np.arange(len(table))
        served = served.reorder(np.concatenate([rows, rows]))
        return served.starred(list(self.levels), np.arange(len(served)) >= len(table))

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        return {
            name: scale_of_level(hierarchies[name].codes(table, name, unseen="top"), level)
            for name, level in self.levels.items()
            if level or self.as_text
        }
