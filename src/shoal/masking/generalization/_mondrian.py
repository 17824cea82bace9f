"""Mondrian: multidimensional boxes, each as small as the models allow.

What is released of an ordered column quotes nobody. A box ends at the cuts around it. If a round
number lies nearer to its records, in steps of at least a tenth of their width, it ends there. That
number is the value of a record of the box only if at least two of its people have it. Any other
cut becomes rounder, if that moves it outwards by at most a tenth of the width. The ends of all
boxes are values that nobody or several people of the table have, and the box of the lowest or the
highest record of the table is open on that side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.masking.generalization._combinations import Combinations, Problem, distinct_rows
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._serving import (
    TOP,
    Recoding,
    Scale,
    Spans,
    boxed,
    middles,
    one_over_width,
)
from shoal.table import (
    Codes,
    Domain,
    HierarchyCodes,
    RoundEnds,
    interval_meanings,
    interval_text,
    owned_pairs,
    quantities,
    scale_name,
    value_meanings,
)

if TYPE_CHECKING:
    from shoal.kernels.boxes.mondrian_boxes import Attribute


#: How many steps of the values to blur a cut that must not be revealed.
_FAR = 10
#: The finest step of a round end, and how far an end may move outwards to become rounder, as a
#: share of the width of a box's records.
_FINE = 0.1
#: Points of a line, and whether each exists; otherwise an interval is open.
Ends = tuple[npt.NDArray[Any], Flags]


def ordered_spans(
    column: Codes, records: Integers, reach: npt.NDArray[np.integer[Any]]
) -> tuple[Spans, Domain]:
    """The released stretches of a column, and the meaning of their texts."""
    first, last = reach[:, 0].astype(np.int64), reach[:, 1].astype(np.int64)
    levels = len(column.levels)
    numbers = quantities(column)
    silent = last >= levels  # missing values, alone or with others
    single = (first == last) & (silent | (np.append(records, 0)[first] > 1))
    ends, low, high = _published_ends(column, records, reach, np.flatnonzero(~silent & ~single))
    values, measured = [*column.texts, None], scale_name(column)
    texts = [
        values[code] if one else interval_text(start, end)
        for code, one, start, end in zip(first, single, low, high, strict=True)
    ]
    alone = value_meanings(measured, [values[code] for code in first[single]])
    domain = Domain(measured, interval_meanings(low, high, ends) | alone | {TOP: None})
    ends[single] = np.column_stack([numbers[first], numbers[last]])[single]
    ends[first == levels] = [np.inf, -np.inf]  # only missing values
    scale = Scale(tuple(texts), middles(ends), numeric=True)
    inside = ends.copy()
    inside[~single, 1] = np.nextafter(ends[~single, 1], -np.inf)  # an interval is open above
    inside[np.isposinf(ends)] = np.inf
    unit = one_over_width(ends)
    spans = Spans(texts, scale, single, inside, measured, unit, gaps=silent)
    return spans, domain


def _published_ends(
    column: Codes, records: Integers, reach: npt.NDArray[np.integer[Any]], asked: Integers
) -> tuple[Floats, list[str | None], list[str | None]]:
    """Where the given stretches begin and end, as numbers and as texts; the others are open."""
    ends = np.full((len(reach), 2), [-np.inf, np.inf])
    shown: list[list[str | None]] = [[None] * len(reach), [None] * len(reach)]
    if not len(asked):
        return ends, shown[0], shown[1]
    line = RoundEnds(column, records[: len(column.levels)])
    rows = reach[asked].astype(np.int64)
    for side, (points, found) in enumerate(_round(line, rows)):
        numbers = line.numbers(points[found])
        if line.line.dtype.kind == "f":  # the last digits of a float may be lost
            own = line.line[rows[found, side]]
            true = numbers > own if side else numbers <= own
            found[np.flatnonzero(found)[~true]] = False
            numbers = numbers[true]
        ends[asked[found], side] = numbers
        for at, text in zip(asked[found], line.texts(points[found]), strict=True):
            shown[side][at] = text
    return ends, shown[0], shown[1]


def _ends(line: RoundEnds, rows: Integers, *, up: bool) -> Ends:
    """Where each stretch begins or ends: at the cut beside it, or at a nearer round number."""
    side = int(up)
    own = line.line[rows[:, side]]
    points, found = _cuts(line, *rows[:, 2 + 2 * side : 4 + 2 * side].T, below=not up)
    beyond = line.next(own) if up else line.before(own)
    start, least = np.where(rows[:, 6 + side] > 0, own, beyond), _least(line, rows)
    near, rounds = line.up(start, least) if up else line.down(start, least)
    inner = rows[:, 1] < len(line.line) - 1 if up else rows[:, 0] > 0
    better = rounds & inner & (rows[:, 0] < rows[:, 1])
    better &= ~found | (near < points if up else near > points)
    return np.where(better, near, points), found | better


def _round(line: RoundEnds, rows: Integers) -> tuple[Ends, Ends]:
    """Ends that are round for their stretch, and none where a stretch holds every value."""
    least = _least(line, rows)
    low, high = (_ends(line, rows, up=up) for up in (False, True))
    points = [
        np.where(there, line.rounder(at, least, up=up), at)
        for (at, there), up in ((low, False), (high, True))
    ]
    all_above = ~low[1] | (points[0] <= line.line[0])
    all_below = ~high[1] | (points[1] > line.line[-1])
    some = ~(all_above & all_below)
    return (points[0], low[1] & some), (points[1], high[1] & some)


def _least(line: RoundEnds, rows: Integers) -> Floats:
    """The finest step for the ends of each stretch."""
    first, last = line.line[rows[:, 0]], line.line[rows[:, 1]]
    # in halves, since a width may exceed a float
    half: Floats = last.astype(np.float64) / 2 - first.astype(np.float64) / 2
    return 2 * _FINE * half


def _cuts(line: RoundEnds, low: Integers, high: Integers, *, below: bool) -> Ends:
    """The points of cuts between two codes, as ends of the stretches above or below them.

    If somebody has every value in between, both sides end at a rounder point beyond the cut, so
    that they overlap and do not reveal where it is, or they stay open. The cuts themselves are
    published only if no cut of the column has a point, as in a column of ranks.
    """
    cut = (low >= 0) & (high < len(line.line))  # above all values come the missing ones
    ends = line.line[np.where(cut, low, 0)], line.line[np.where(cut, high, 0)]
    points, found = line.between(*ends)
    lost = np.flatnonzero(cut & ~found)
    least = np.full(len(lost), _FAR * line.unit)
    beyond, there = line.down(ends[1][lost], least) if below else line.up(ends[0][lost], least)
    there &= (beyond > line.line[0]) & (beyond <= line.line[-1])
    points[lost], found[lost] = beyond, there
    if len(lost) and not (found & cut).any():
        points[lost], found[lost] = line.beside(ends[1][lost])
    return points, found & cut


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """A column as Mondrian cuts it: its codes in the order of ``back``."""

    column: Codes
    tree: HierarchyCodes | None
    back: Labels
    attribute: Attribute

    @cached_property
    def places(self) -> Labels:
        """The position of each code of the column in the order."""
        places = np.empty_like(self.back)
        places[self.back] = np.arange(len(self.back), dtype=np.int32)
        return places

    def spans(self, reach: Labels, records: Integers) -> tuple[Spans, Domain | None]:
        """What is released for boxes between two positions, and its meaning."""
        first, last = self.back[reach[:, 0]], self.back[reach[:, 1]]
        if self.tree is not None:
            levels = _lowest(self.tree, first, last)
            nodes = np.column_stack([levels, self.tree.maps[levels, first]])
            return Spans.of_nodes(self.tree, nodes), self.tree.meaning(levels)
        return ordered_spans(self.column, records, reach)

    def widths(self, ends: npt.NDArray[Any]) -> Floats:
        """The share of the column that each stretch covers, from 0 to 1."""
        if self.tree is None:
            positions = self.attribute.positions
            return np.minimum(1.0, positions[ends[:, 1]] - positions[ends[:, 0]])
        first, last = self.back[ends[:, 0]], self.back[ends[:, 1]]
        return np.array(self.attribute.widths[_lowest(self.tree, first, last), ends[:, 0]])


def _lowest(tree: HierarchyCodes, first: Labels, last: Labels) -> Integers:
    """The level of the lowest common node of each pair of values."""
    return np.argmax(tree.maps[:, first] == tree.maps[:, last], axis=0)


def axis_of(column: Codes, tree: HierarchyCodes | None) -> Axis:
    """A column ordered by its values or, with a tree, so that the values of a node are adjacent."""
    from shoal.kernels.boxes.mondrian_boxes import Attribute, ordered

    if tree is None:
        same = np.arange(column.count, dtype=np.int32)
        return Axis(column, None, same, ordered(column.positions))
    back = np.lexsort(tree.maps).astype(np.int32)  # from the root downwards
    first, last = np.empty(tree.maps.shape, np.int32), np.empty(tree.maps.shape, np.int32)
    for level, nodes in enumerate(tree.maps[:, back]):
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        sizes = np.diff(starts, append=len(nodes))
        first[level] = np.repeat(starts, sizes)
        last[level] = np.repeat(starts + sizes - 1, sizes)
    widths = (tree.leaves[:, back] - 1) / max(1.0, tree.domain - 1)
    attribute = Attribute(np.arange(float(len(back))), first, last, np.ascontiguousarray(widths))
    return Axis(column, tree, back, attribute)


def mondrian(task: Problem, *, relaxed: bool) -> Recoding:
    """Cut the records into boxes that satisfy the demand."""
    found, names = task.found, task.names
    axes = [
        axis_of(codes, task.coded.get(n)) for n, codes in zip(names, found.columns, strict=True)
    ]
    cut = _cut(axes, task, relaxed)
    box_of_row = cut.labels[cut.of_row]
    stretches = {}
    boxes = np.empty(cut.lows.shape, np.int32)
    losses = np.zeros(len(boxes))
    for place, (name, axis) in enumerate(zip(names, axes, strict=True)):
        reach = np.column_stack([cut.lows[:, place], cut.highs[:, place]])
        if axis.tree is None:
            shared = _shared_ends(reach, found, place, cut, task.demand)
            reach = np.column_stack([reach, cut.cuts[:, place], shared])
        reach, boxes[:, place] = distinct_rows(reach)
        losses += axis.widths(reach)[boxes[:, place]] * task.weights[place] / len(names)
        stretches[name] = axis.spans(reach, _holders(found, place, task.demand))
    loss = float(losses @ np.bincount(cut.labels, cut.counts, len(boxes))) / found.records
    return boxed(stretches, boxes, losses, loss, box_of_row, task.hierarchies)


def _shared_ends(
    reach: Labels, found: Combinations, place: int, cut: _Cut, demand: Demand
) -> npt.NDArray[np.int32]:
    """Whether at least two people of each box have its lowest value, and its highest."""
    shared = np.zeros((len(reach), 2), np.int32)
    by_persons = len(demand.conditions.persons.value) > 0
    codes: npt.NDArray[Any] = found.records_in(place)
    if by_persons:
        boxes = cut.labels[cut.of_row]
    else:
        boxes, of_unit = cut.labels, np.full(len(cut.labels), -1, np.int32)
        of_unit[cut.of_row] = codes
        codes = of_unit
    for side in (0, 1):
        there = codes == reach[:, side][boxes]
        if by_persons:
            owned, _ = owned_pairs(boxes[there], demand.secrets[-1][there])
            people = np.bincount(owned, minlength=len(reach))
        else:
            people = np.bincount(boxes[there], cut.counts[there], len(reach))
        shared[:, side] = people > 1
    return shared


def _holders(found: Combinations, place: int, demand: Demand) -> Integers:
    """The number of persons with each code of a column."""
    count = found.columns[place].count
    if found.population is None and not len(demand.conditions.persons.value):
        return found.columns[place].counts
    if not len(demand.conditions.persons.value):
        return np.bincount(found.column(place), found.counts, minlength=count).astype(np.int64)
    owned, _ = owned_pairs(found.records_in(place), demand.secrets[-1])
    return np.bincount(owned, minlength=count).astype(np.int64)


class _Cut(NamedTuple):
    """The boxes that the kernel found, and the units that it put into them."""

    labels: Labels  # the box of each unit
    lows: Labels
    highs: Labels
    cuts: Labels
    counts: Integers  # how many records each unit has
    of_row: npt.NDArray[Any]  # the unit of each record


def _cut(axes: Sequence[Axis], task: Problem, relaxed: bool) -> _Cut:
    """Run the kernel and keep only its results."""
    from shoal.kernels.boxes.mondrian_boxes import MondrianBoxes

    found, demand = task.found, task.demand
    # stored by column, as the kernel needs it, and as narrow as possible
    widest = np.min_scalar_type(max((len(axis.back) for axis in axes), default=0))
    placed = np.empty((len(axes), len(found.counts)), widest)
    for place, axis in enumerate(axes):
        placed[place] = axis.places.astype(widest)[found.column(place)]
    placed = placed.T
    if relaxed:
        units, counts, people, values, of_row = _one_by_one(found, demand.secrets)
    else:
        units, values, counts, of_row = task.units
        people = counts
        if found.population is not None:
            units, counts, people, values = _with_population(found, units, counts, values)
    attributes = [axis.attribute for axis in axes]
    every = not relaxed and not len(values) and found.population is None
    work = MondrianBoxes(
        placed if every else placed[units],  # each combination once, or once per value
        counts,
        people,
        values,
        attributes,
        demand.conditions,
        weights=task.weights,
        relaxed=relaxed,
    )
    del placed  # the kernel has a copy
    task.log.run(work, len(counts), "Cutting")
    return _Cut(work.labels, work.lows, work.highs, work.cuts, counts, of_row)


def _one_by_one(
    found: Combinations, values: Labels
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], Labels, npt.NDArray[Any]]:
    """Every record and person of a population separately; people are spread among the records."""
    records = len(found.of_row)
    crowd = np.zeros(len(found.counts), np.int64) if found.population is None else found.population
    units = np.concatenate([found.of_row, np.repeat(np.arange(len(crowd)), crowd)])
    turns = []
    for one, sizes in ((found.of_row, found.counts), (units[records:], crowd)):
        by_unit = np.argsort(one, kind="stable")
        rank = np.empty(len(one), np.int64)
        rank[by_unit] = np.arange(len(one)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        turns.append((rank + 0.5) / sizes[one])
    order = np.lexsort((np.concatenate(turns), units))
    own = (order < records).astype(np.int64)
    none = np.zeros((len(values), len(units) - records), values.dtype)
    where = np.argsort(order)[:records]
    return units[order], own, 1 - own, np.hstack([values, none])[:, order], where


def _with_population(
    found: Combinations, units: npt.NDArray[Any], counts: npt.NDArray[Any], values: Labels
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], Labels]:
    """What to cut: the records and, in addition, the people of a population, each counted once."""
    assert found.population is not None
    only_there = np.flatnonzero(found.counts == 0)
    people = np.zeros(len(units) + len(only_there), np.int64)
    _, first = np.unique(units, return_index=True)
    people[first] = found.population[units[first]]
    people[len(units) :] = found.population[only_there]
    none = np.zeros((len(values), len(only_there)), values.dtype)
    return (
        np.concatenate([units, only_there]),
        np.concatenate([counts, np.zeros(len(only_there), counts.dtype)]),
        people,
        np.hstack([values, none]),
    )
