"""A generalized table, and how later rows come into its domain: by levels, or boxes of stretches.

A way to serve has the generalized ``columns``; ``apply`` maps rows into the released domain,
``cover`` has each row once for every released class to which it may belong, and ``scales`` has the
texts that rows can get, as numbers. It holds no record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.table import ROOT, Domain, Hierarchy, HierarchyCodes, Table, quantities

#: The value that carries no information.
TOP = ROOT


@dataclass(frozen=True, eq=False, repr=False)
class Scale:
    """The released texts of a column as numbers, for models that learn from them.

    ``numbers`` has the middle of each text's interval if ``numeric``, and its rank otherwise.
    """

    texts: tuple[str | None, ...]
    numbers: Floats
    numeric: bool


@dataclass(frozen=True, eq=False, repr=False)
class Relabelling:
    """One released column: the texts, the text of each record, and the meaning if known."""

    texts: list[str | None]
    of_row: Labels
    domain: Domain | None


@dataclass(frozen=True, eq=False, repr=False)
class Recoding:
    """A generalized table."""

    columns: Mapping[str, Relabelling]  # the changed ones; the others are released unchanged
    loss: float
    suppressed: Flags
    served: ServedLevels | ServedBoxes
    levels: Mapping[str, int] = field(default_factory=dict)  # if each column has one level
    optimal: bool = False  # whether the search proves the optimum
    lattice: Mapping[str, Any] = field(default_factory=dict)  # the explored part of it
    box_of_row: Integers | None = None  # index into the served boxes, if any
    minimal: dict[str, Any] | None = None  # what choices reveal; None if not counted


def scale_of_level(tree: HierarchyCodes, level: int) -> Scale:
    """The nodes of one level as numbers: the middle of the values under them, or their rank."""
    ends = tree.bounds(level)
    if ends is None:
        return Scale(tree.labels[level], np.arange(float(tree.nodes(level))), numeric=False)
    return Scale(tree.labels[level], middles(ends), numeric=True)


def middles(ends: Floats) -> Floats:
    """The middle of each interval; its end if it is open on one side; otherwise NaN."""
    low, high = ends[:, 0], ends[:, 1]
    closed = np.where(np.isfinite(low), low, high)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.where(np.isfinite(low) & np.isfinite(high), low + (high - low) / 2, closed)
    return np.where(np.isfinite(middle), middle, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class ServedLevels:
    """One level for each column; ``as_text`` also at level 0, as needed next to a kept ``*``."""

    levels: Mapping[str, int]
    hierarchies: Mapping[str, Hierarchy]
    as_text: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.levels)

    def apply(self, table: Table) -> Table:
        for name, level in self.levels.items():
            if level:
                table = self.hierarchies[name].generalize(table, name, level, unseen="top")
            elif self.as_text:
                table = table.starred([name], np.zeros(len(table), np.bool_))
        return table

    def cover(self, table: Table) -> Table:
        """At one level for all, classes do not overlap; but a ``*`` that was kept covers all."""
        served = self.apply(table)
        if not self.as_text:
            return served
        rows = np.arange(len(table))
        served = served.reorder(np.concatenate([rows, rows]))
        return served.starred(list(self.levels), np.arange(len(served)) >= len(table))

    def scales(self, table: Table) -> dict[str, Scale]:
        return {
            name: scale_of_level(self.hierarchies[name].codes(table, name, unseen="top"), level)
            for name, level in self.levels.items()
            if level or self.as_text
        }


_NEXT_TO = 1e-9


def one_over_width(numbers: Floats) -> float:
    """One over the width of finite numbers; in halves, since a width may exceed a float."""
    present = numbers[np.isfinite(numbers)] / 2
    half = float(np.ptp(present)) if len(present) else 0.0
    return 0.5 / half if half > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Spans:
    """The distinct stretches of one column that boxes have.

    ``ends`` are the lowest and highest number of each stretch of an ordered column, ``measured``
    says what these numbers count, ``unit`` is one over the width of all stretches, and ``gaps``
    marks stretches that hold missing values. With a hierarchy, ``nodes`` has the level and the
    label of each stretch. ``single`` marks stretches released as their only value.
    """

    texts: list[str | None]
    scale: Scale
    single: Flags
    ends: Floats | None = None
    measured: str | None = None
    unit: float = 0.0
    gaps: Flags | None = None
    nodes: list[tuple[int, str | None]] | None = None

    @classmethod
    def of_nodes(cls, tree: HierarchyCodes, at: npt.NDArray[np.integer[Any]]) -> Spans:
        """Nodes of a hierarchy, each by its level and number, with their ends as numbers."""
        places = at.tolist()
        nodes = [(level, tree.labels[level][node]) for level, node in places]
        texts, single = [text for _, text in nodes], at[:, 0] == 0
        if tree.bounds(0) is None:
            known = tuple(dict.fromkeys(texts))
            scale = Scale(known, np.arange(float(len(known))), numeric=False)
            return cls(texts, scale, single, nodes=nodes)
        numbers = [scale_of_level(tree, level).numbers for level in range(tree.levels)]
        scale = Scale(tuple(texts), np.array([numbers[i][j] for i, j in places]), numeric=True)
        bounds = [tree.bounds(level) for level in range(tree.levels)]
        nothing = (np.nan, np.nan)
        ends = np.array([nothing if (of := bounds[i]) is None else of[j] for i, j in places])
        return cls(texts, scale, single, ends, unit=one_over_width(ends), nodes=nodes)

    def distances(self, table: Table, column: str, hierarchy: Hierarchy | None) -> Floats:
        """The distance of each value of a column (by code) from each stretch; 0 inside."""
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
            # an interval does not hold its upper end, but is close to it; a single number equals
            # itself, even if another type writes it differently
            away = np.maximum(self._apart(own[:, 0]), np.where(self.single, 0.0, _NEXT_TO))
            away[self._under(tree)] = 0.0
            return away
        away[self._under(tree)] = 0.0
        # a value that no stretch names says nothing about where its row belongs
        said = np.array([text != TOP for text in self.texts])
        lost = (away[:, said] > 0).all(axis=1)
        away[np.ix_(lost, said)] = _NEXT_TO
        return away

    def covers(self, table: Table, column: str, hierarchy: Hierarchy | None) -> Flags:
        """Which values of a column (by code) the text of each stretch covers for a reader."""
        coded = table.codes(column)
        if self.nodes is None:
            assert self.gaps is not None
            inside = self._between(quantities(coded, self.measured))
            if coded.missing is not None:
                inside[coded.missing] = self.gaps
        else:
            assert hierarchy is not None
            tree = hierarchy.codes(table, column, unseen="top")
            inside, own = self._under(tree), tree.bounds(0)
            if self.ends is not None and own is not None:
                inside |= self._between(own[:, 0]) & self.single
        inside[:, [text == TOP for text in self.texts]] = True
        return inside

    def _under(self, tree: HierarchyCodes) -> Flags:
        """Which values have the label of each stretch at its level."""
        assert self.nodes is not None
        inside = np.zeros((tree.column.count, len(self.nodes)), np.bool_)
        for place, (level, label) in enumerate(self.nodes):
            known = np.array([one == label for one in tree.labels[level]], np.bool_)
            inside[:, place] = known[tree.maps[level]]
        return inside

    def _between(self, values: Floats) -> Flags:
        assert self.ends is not None
        return (self.ends[:, 0] <= values[:, None]) & (values[:, None] <= self.ends[:, 1])

    def _apart(self, values: Floats) -> Floats:
        """Distances of numbers from each stretch, in column widths; 1 from or to a missing value.

        A number outside all stretches counts as next to the outermost one, so that a huge number
        does not drown out the other columns; a stretch that holds it is still nearer.
        """
        assert self.ends is not None
        outside = ~self._between(values)
        finite = self.ends[np.isfinite(self.ends)]
        if len(finite):
            values = np.clip(values, finite.min(), finite.max())
        with np.errstate(over="ignore", invalid="ignore"):  # infinite ends and missing values
            below, above = self.ends[:, 0] - values[:, None], values[:, None] - self.ends[:, 1]
            away = np.maximum(np.maximum(below, above), 0.0) * self.unit
        return np.nan_to_num(np.maximum(away, np.where(outside, _NEXT_TO, 0.0)), nan=1.0)


@dataclass(frozen=True, eq=False, repr=False)
class ServedBoxes:
    """Boxes in order of preference: a row gets the texts of its own box, or of the nearest."""

    spans: Mapping[str, Spans]
    boxes: Labels
    changed: tuple[str, ...]
    hierarchies: Mapping[str, Hierarchy]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.spans)

    def apply(self, table: Table) -> Table:
        from shoal.kernels.boxes.record_boxes import nearest_boxes

        if not self.changed:
            return table
        names = list(self.spans)
        rows = table.group(names)
        first = rows.first_rows
        tables = [
            spans.distances(table, name, self.hierarchies.get(name))
            for name, spans in self.spans.items()
        ]
        codes = np.column_stack([table.codes(name).codes[first] for name in names])
        chosen = nearest_boxes(codes.astype(np.int64), self.boxes, *_flat(tables))
        of_row = self.boxes[chosen[rows.labels]]
        for name in self.changed:
            place = names.index(name)
            table = table.with_labels(name, self.spans[name].texts, of_row[:, place])
        return table

    def cover(self, table: Table) -> Table:
        """Each row once for every class to which it may belong, or once with a text of none."""
        if not self.changed:
            return table
        rows = table.group(list(self.spans))
        first = rows.first_rows
        row, chosen = _once_for_each(rows.labels, *self.pairs(table, first))
        table = table.reorder(row)
        count, of_box = self.classes
        box_of = np.empty(count, np.int64)  # any box of each class
        box_of[of_box] = np.arange(len(of_box))
        stretch = np.where(chosen[:, None] < 0, -1, self.boxes[box_of[chosen]])
        for name in self.changed:
            texts, outside = self.spans[name].texts, "outside"
            while outside in texts:
                outside += "."
            place = list(self.spans).index(name)
            table = table.with_labels(name, [*texts, outside], stretch[:, place] % (len(texts) + 1))
        return table

    @cached_property
    def classes(self) -> tuple[int, Integers]:
        """The number of classes of equal texts, and the class of each box."""
        ids = np.empty(self.boxes.shape, np.int64)
        for place, spans in enumerate(self.spans.values()):
            known: dict[str | None, int] = {}
            numbers = [known.setdefault(text, len(known)) for text in spans.texts]
            ids[:, place] = np.array(numbers, np.int64)[self.boxes[:, place]]
        found, of_box = np.unique(ids, axis=0, return_inverse=True)
        return len(found), of_box.ravel()

    def pairs(self, table: Table, rows: npt.NDArray[Any]) -> tuple[Integers, Integers]:
        """Some rows with the classes whose texts cover them: every pair once, ordered by row."""
        from shoal.kernels.boxes.record_boxes import covering_boxes

        inside = [
            spans.covers(table, name, self.hierarchies.get(name))
            for name, spans in self.spans.items()
        ]
        codes = np.column_stack([table.codes(name).codes[rows] for name in self.spans])
        found, box = covering_boxes(codes.astype(np.int64), self.boxes, *_flat(inside))
        count, of_box = self.classes
        distinct = np.unique(found * count + of_box[box])
        return distinct // count, distinct % count

    def scales(self, table: Table) -> dict[str, Scale]:
        return {name: self.spans[name].scale for name in self.changed}


def boxed(
    stretches: Mapping[str, tuple[Spans, Domain | None]],
    boxes: Labels,
    losses: Floats,
    loss: float,
    box_of_row: npt.NDArray[Any],
    hierarchies: Mapping[str, Hierarchy],
    minimal: dict[str, Any] | None = None,
) -> Recoding:
    """A recoding into boxes; among several boxes of a row, the one with the least loss is best."""
    columns = {}
    for place, (name, (spans, domain)) in enumerate(stretches.items()):
        if not spans.single.all():
            labels = boxes[:, place].astype(np.min_scalar_type(len(spans.texts)))[box_of_row]
            columns[name] = Relabelling(spans.texts, labels, domain)
    order = np.argsort(losses, kind="stable")
    by_name = {name: spans for name, (spans, _) in stretches.items()}
    served = ServedBoxes(by_name, boxes[order], tuple(columns), hierarchies)
    nobody = np.zeros(len(box_of_row), np.bool_)
    where = np.argsort(order).astype(np.int32)[box_of_row]
    return Recoding(columns, loss, nobody, served, box_of_row=where, minimal=minimal)


def _once_for_each(
    labels: npt.NDArray[Any], groups: Integers, classes: Integers
) -> tuple[Integers, Integers]:
    """Rows repeated for every class of their group, and these classes; -1 if there is none."""
    counts = np.bincount(groups, minlength=int(labels.max(initial=-1)) + 1)
    alone = np.flatnonzero(counts == 0)
    order = np.argsort(np.concatenate([groups, alone]), kind="stable")
    classes = np.concatenate([classes, np.full(len(alone), -1)])[order]
    counts = np.maximum(counts, 1)
    times = counts[labels]
    rows = np.repeat(np.arange(len(labels)), times)
    turns = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, classes[(np.cumsum(counts) - counts)[labels[rows]] + turns]


def _flat(tables: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], Integers, Integers]:
    """The tables concatenated, the start of each, and the width of its rows."""
    sizes = [table.size for table in tables]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    widths = np.array([table.shape[1] for table in tables], np.int64)
    return np.concatenate([table.ravel() for table in tables]), starts, widths
