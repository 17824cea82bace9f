"""Rows that come after the fit, mapped into what was released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.masking.generalization._recoding import TOP, Scale, Served
from shoal.table import Hierarchy, HierarchyCodes, Table

Floats = npt.NDArray[np.float64]


def scale_of_level(tree: HierarchyCodes, level: int) -> Scale:
    """The nodes of one level as numbers: the middle of what is under them, or their rank."""
    ends = tree.bounds(level)
    if ends is None:
        return Scale(tree.labels[level], np.arange(float(tree.nodes(level))), numeric=False)
    return Scale(tree.labels[level], middles(ends), numeric=True)


def scale_of_nodes(tree: HierarchyCodes, nodes: Sequence[tuple[int, str | None]]) -> Scale:
    """Nodes of different levels as numbers: by the middle of what is under them, or by rank."""
    scales = [scale_of_level(tree, level) for level in range(tree.levels)]
    if not scales[0].numeric:
        texts = tuple(dict.fromkeys(text for _, text in nodes))
        return Scale(texts, np.arange(float(len(texts))), numeric=False)
    found = [scales[level].numbers[scales[level].texts.index(text)] for level, text in nodes]
    return Scale(tuple(text for _, text in nodes), np.array(found), numeric=True)


def middles(ends: Floats) -> Floats:
    """The middle of each interval; of one that is open on one side, its end; else NaN."""
    low, high = ends[:, 0], ends[:, 1]
    closed = np.where(np.isfinite(low), low, high)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.where(np.isfinite(low) & np.isfinite(high), low + (high - low) / 2, closed)
    return np.where(np.isfinite(middle), middle, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Serving:
    """What a fitted generalization keeps: levels or boxes, and hierarchies; no record."""

    served: Served
    hierarchies: dict[str, Hierarchy]

    def has(self, column: str) -> bool:
        """Whether new rows need a column."""
        return column in self.served.columns

    def serve(self, table: Table) -> Table:
        """The table with each row in the released domain."""
        return self.served.apply(table, self.hierarchies)

    def cover(self, table: Table) -> Table:
        """Each row once for every released class that it may be in."""
        return self.served.cover(table, self.hierarchies)

    def scales(self, table: Table) -> dict[str, Scale]:
        """The texts that the rows of a table get, as numbers."""
        return self.served.scales(table, self.hierarchies)


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
                coded = table.codes(name)
                table = table.with_labels(name, [*coded.texts, None], coded.codes)
        return table

    def cover(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """At one level for all, classes do not overlap; but a ``*`` that was kept covers all."""
        served = self.apply(table, hierarchies)
        if not self.as_text:
            return served
        rows = np.arange(len(table))
        served = served.reorder(np.concatenate([rows, rows]))
        again = np.arange(len(served)) >= len(table)
        for name in self.levels:
            coded = served.codes(name)
            codes = np.where(again, len(coded.texts) + 1, coded.codes)
            served = served.with_labels(name, [*coded.texts, None, TOP], codes)
        return served

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        return {
            name: scale_of_level(hierarchies[name].codes(table, name, unseen="top"), level)
            for name, level in self.levels.items()
            if level or self.as_text
        }
