"""Rows that come after the fit, mapped into what was released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.masking.generalization._recoding import Scale, Served
from shoal.table import Hierarchy, HierarchyCodes, Table, quantities

Floats = npt.NDArray[np.float64]

_NEXT_TO = 1e-9


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


def _bounds(tree: HierarchyCodes, level: int) -> Floats:
    ends = tree.bounds(level)
    return np.full((tree.nodes(level), 2), np.nan) if ends is None else ends


def one_over_width(numbers: Floats) -> float:
    """One over the width of a column; halves, since a width can be too large for a float."""
    present = numbers[~np.isnan(numbers)] / 2
    half = float(np.ptp(present)) if len(present) else 0.0
    return 0.5 / half if half > 0 else 0.0


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

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        return {
            name: scale_of_level(hierarchies[name].codes(table, name, unseen="top"), level)
            for name, level in self.levels.items()
            if level or self.as_text
        }


@dataclass(frozen=True, eq=False, repr=False)
class Spans:
    """The different stretches of one column that boxes have.

    ``ends`` are the lowest and highest number of each stretch of an ordered column, ``measured``
    is what these numbers count, ``unit`` is one over the width of the column, and ``gaps`` says
    which stretches hold missing values. Under a hierarchy, ``nodes`` has the level and the label
    of each stretch.
    """

    texts: list[str | None]
    scale: Scale
    ends: Floats | None = None
    measured: str | None = None
    unit: float = 0.0
    gaps: npt.NDArray[np.bool_] | None = None
    nodes: list[tuple[int, str | None]] | None = None

    @classmethod
    def of_nodes(cls, tree: HierarchyCodes, nodes: list[tuple[int, str | None]]) -> Spans:
        """Nodes of a hierarchy, with their ends where they are numbers."""
        texts, scale = [text for _, text in nodes], scale_of_nodes(tree, nodes)
        own = tree.bounds(0)
        if own is None:
            return cls(texts, scale, nodes=nodes)
        ends = [_bounds(tree, level)[tree.labels[level].index(text)] for level, text in nodes]
        return cls(texts, scale, np.array(ends), unit=one_over_width(own[:, 0]), nodes=nodes)

    def distances(self, table: Table, column: str, hierarchy: Hierarchy | None) -> Floats:
        """How far each value of a column (by code) is from each stretch; 0 inside."""
        coded = table.codes(column)
        if self.nodes is None:
            assert self.gaps is not None
            away = self._apart(quantities(coded, self.measured))
            if coded.missing is not None:
                away[coded.missing] = np.where(self.gaps, 0.0, 1.0)
            return away
        assert hierarchy is not None
        tree = hierarchy.codes(table, column, unseen="top")
        away, own = np.ones((coded.count, len(self.nodes))), tree.bounds(0)
        if self.ends is not None and own is not None:
            # an interval does not hold its upper end, which is near it all the same; a single
            # number is itself, also where another type writes it otherwise
            single = np.array([level == 0 for level, _ in self.nodes])
            away = np.maximum(self._apart(own[:, 0]), np.where(single, 0.0, _NEXT_TO))
        for place, (level, label) in enumerate(self.nodes):
            known = np.array([one == label for one in tree.labels[level]], np.bool_)
            away[known[tree.maps[level]], place] = 0.0
        return away

    def _apart(self, values: Floats) -> Floats:
        """How far numbers are from each stretch, in widths of the column; 1 from or to nothing.

        A number outside all stretches is as far as the outermost end, so that one that is huge
        does not drown what other columns say.
        """
        assert self.ends is not None
        finite = self.ends[np.isfinite(self.ends)]
        if len(finite):
            values = np.clip(values, finite.min(), finite.max())
        with np.errstate(over="ignore", invalid="ignore"):  # of infinite ends and of missing
            below, above = self.ends[:, 0] - values[:, None], values[:, None] - self.ends[:, 1]
            away = np.maximum(np.maximum(below, above), 0.0) * self.unit
        return np.nan_to_num(away, nan=1.0)


@dataclass(frozen=True, eq=False, repr=False)
class ServedBoxes:
    """Boxes of stretches: a row gets the text of the box that it falls into, or of the nearest.

    Boxes come in the order of preference where a row lies in several. Only the columns that
    ``changed`` are replaced.
    """

    spans: Mapping[str, Spans]
    boxes: npt.NDArray[np.int32]
    changed: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.spans)

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
