"""Rows that come after the fit, mapped into what was released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.masking.generalization._recoding import Scale, Served
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

    def serve(self, table: Table) -> Table:
        """The table with each row in the released domain."""
        return self.served.apply(table, self.hierarchies)

    def scales(self, table: Table) -> dict[str, Scale]:
        """The texts that the rows of a table get, as numbers."""
        return self.served.scales(table, self.hierarchies)


@dataclass(frozen=True)
class ServedLevels:
    """One level for each column."""

    levels: Mapping[str, int]

    def apply(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        for name, level in self.levels.items():
            if level:
                table = hierarchies[name].generalize(table, name, level, unseen="top")
        return table

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        return {
            name: scale_of_level(hierarchies[name].codes(table, name, unseen="top"), level)
            for name, level in self.levels.items()
            if level
        }


@dataclass(frozen=True, eq=False, repr=False)
class Spans:
    """The different stretches of one column that boxes have.

    ``ends`` are the lowest and highest number of each stretch of an ordered column, ``unit`` is
    one over the width of the column, and ``gaps`` says which stretches hold missing values. Under
    a hierarchy, ``nodes`` has the level and the label of each stretch.
    """

    texts: list[str | None]
    scale: Scale
    ends: Floats | None = None
    unit: float = 0.0
    gaps: npt.NDArray[np.bool_] | None = None
    nodes: list[tuple[int, str | None]] | None = None

    def distances(self, table: Table, column: str, hierarchy: Hierarchy | None) -> Floats:
        """How far each value of a column (by code) is from each stretch; 0 inside."""
        coded = table.codes(column)
        if self.nodes is None:
            assert self.ends is not None
            assert self.gaps is not None
            values = coded.numbers[:, None]
            with np.errstate(over="ignore", invalid="ignore"):  # of infinite ends and of missing
                below, above = self.ends[:, 0] - values, values - self.ends[:, 1]
                away = np.nan_to_num(np.maximum(np.maximum(below, above), 0.0) * self.unit, nan=1.0)
            if coded.missing is not None:
                away[coded.missing] = np.where(self.gaps, 0.0, 1.0)
            return away
        assert hierarchy is not None
        tree = hierarchy.codes(table, column, unseen="top")
        away = np.ones((coded.count, len(self.nodes)))
        for place, (level, label) in enumerate(self.nodes):
            known = np.array([one == label for one in tree.labels[level]], np.bool_)
            away[known[tree.maps[level]], place] = 0.0
        return away


@dataclass(frozen=True, eq=False, repr=False)
class ServedBoxes:
    """Boxes of stretches: a row gets the text of the box that it falls into, or of the nearest.

    Boxes come in the order of preference where a row lies in several. Only the columns that
    ``changed`` are replaced.
    """

    spans: Mapping[str, Spans]
    boxes: npt.NDArray[np.int32]
    changed: tuple[str, ...]

    def apply(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        from shoal.kernels._nearest_boxes import nearest_boxes

        if not self.changed:
            return table
        names = list(self.spans)
        rows = table.group(names)
        first = _first_rows(rows.labels, rows.count)
        tables = [
            spans.distances(table, name, hierarchies.get(name))
            for name, spans in self.spans.items()
        ]
        codes = np.column_stack([table.codes(name).codes[first] for name in names])
        chosen = nearest_boxes(codes.astype(np.int64), self.boxes, *_flat(tables))
        of_row = self.boxes[chosen[rows.labels]]
        for name in self.changed:
            place = names.index(name)
            table = table.with_labels(name, self.spans[name].texts, of_row[:, place])
        return table

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        return {name: self.spans[name].scale for name in self.changed}


def _first_rows(labels: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    from shoal.kernels._grouping import first_rows

    rows: npt.NDArray[np.int64] = first_rows(labels, count)
    return rows


def _flat(tables: list[Floats]) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Tables of distances one after the other, where each starts, and how wide its rows are."""
    sizes = [table.size for table in tables]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    widths = np.array([table.shape[1] for table in tables], np.int64)
    return np.concatenate([table.ravel() for table in tables]), starts, widths
