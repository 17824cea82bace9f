"""Mondrian for generalization: boxes of ordered values and nodes of trees, under any condition.

LeFevre, DeWitt and Ramakrishnan (2006), "Mondrian multidimensional k-anonymity". A part of the
records is cut in two along its widest attribute, as long as both sides satisfy every condition.
With weights, a width is multiplied by the weight of its attribute.
An ordered attribute is cut just below or just above the value of the median, whichever is better
balanced. An attribute with a tree is cut between the children of the lowest node over the part,
just below or just above the child of the median. If an attribute cannot be cut, the next widest
is tried.

Strict cuts never separate equal values, so they work on distinct combinations with their counts.
Relaxed cuts, which may send records with the median's value to either side, need one combination
per record, and one per person if a population is counted.

The cuts around each box are kept too, as the two codes of the cut part between which each lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit, python_if_small
from shoal.kernels.conditions import Conditions, counted_once, holds, meet, next_tick
from shoal.kernels.groups.mondrian import misplaced, swap

_CELLS = 10_000_000  # examined in about 50 ms
_SPARSE = 4  # from so many codes per record, sorting is cheaper than counting


class Attribute(NamedTuple):
    """How one attribute is cut; without rows in ``first`` it has no tree and is ordered.

    Codes follow the order of the values; with a tree, the values below each node are adjacent.
    """

    positions: Floats  # of each code on a line from 0 to 1; separate values lie beyond
    first: Codes  # by height (0: values, last: root) of the node over each code
    last: Codes
    widths: Floats  # of that node, from 0 to 1


def ordered(positions: Floats) -> Attribute:
    """An attribute without a tree."""
    none = np.empty((0, len(positions)), np.int32)
    return Attribute(positions, none, none, np.empty((0, len(positions))))


class Packed(NamedTuple):
    """All attributes in arrays of one shape."""

    positions: Floats  # one after the other
    starts: Integers
    tree: Integers  # the tree of each attribute, -1 for none
    heights: Integers
    first: Codes
    last: Codes
    widths: Floats
    weights: Floats  # of each attribute


def packed(attributes: Sequence[Attribute], weights: Floats) -> Packed:
    sizes = [len(attribute.positions) for attribute in attributes]
    trees = [attribute for attribute in attributes if len(attribute.first)]
    shape = (
        len(trees),
        max((len(attribute.first) for attribute in trees), default=0),
        max((len(attribute.positions) for attribute in trees), default=0),
    )
    first, last = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    widths = np.zeros(shape)
    for place, attribute in enumerate(trees):
        rows, values = attribute.first.shape
        first[place, :rows, :values] = attribute.first
        last[place, :rows, :values] = attribute.last
        widths[place, :rows, :values] = attribute.widths
    return Packed(
        np.concatenate([attribute.positions for attribute in attributes] or [np.empty(0)]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.cumsum([len(a.first) > 0 for a in attributes], dtype=np.int64)
        * np.array([len(a.first) > 0 for a in attributes], np.int64)
        - 1,
        np.array([len(attribute.first) for attribute in trees], np.int64),
        first,
        last,
        widths,
        weights,
    )


@njit(cache=True)
def height_over(attributes: Any, tree: int, low: int, high: int) -> int:
    """The height of the lowest node over both codes."""
    height = 0
    while height < attributes.heights[tree] - 1 and attributes.last[tree, height, low] < high:
        height += 1
    return height


@njit(cache=True)
def width_over(attributes: Any, column: int, low: int, high: int) -> float:
    """The width between two codes of an attribute, times its weight."""
    tree, weight = attributes.tree[column], attributes.weights[column]
    if tree >= 0:
        return weight * attributes.widths[tree, height_over(attributes, tree, low, high), low]
    start = attributes.starts[column]
    return weight * (attributes.positions[start + high] - attributes.positions[start + low])


class MondrianBoxes:
    """The partition of weighted combinations into boxes that satisfy conditions.

    ``codes`` has a row per combination and a column per attribute, ``secrets`` a row per sensitive
    column; ``counts`` and ``population`` have the number of records per combination. ``weights``
    are what the width of each attribute counts, all the same by default.
    """

    def __init__(
        self,
        codes: Codes,
        counts: Integers,
        population: Integers,
        secrets: Codes,
        attributes: Sequence[Attribute],
        conditions: Conditions,
        *,
        weights: Floats | None = None,
        relaxed: bool = False,
    ) -> None:
        count, width = codes.shape
        if relaxed and (counts > 1).any():
            raise ValueError("relaxed cuts need one combination per record")
        columns = np.empty((width + len(secrets) + 1, count), np.int32)
        columns[:width] = codes.T
        columns[width:-1] = secrets
        columns[-1] = np.arange(count)
        largest = max((len(attribute.positions) for attribute in attributes), default=0)
        # waiting parts and boxes have no record in common, and each has enough
        most = min(count, int(counts.sum()) // max(1, int(conditions.smallest)) + 1)
        self.labels = np.full(count, -1, np.int32)
        self._parts = _Parts(
            rows=_Rows(
                columns=columns,
                weights=np.array([counts, population], np.int64),
                places=np.empty((2, count), np.int32),
                width=width,
            ),
            attributes=packed(attributes, np.ones(width) if weights is None else weights),
            conditions=conditions,
            relaxed=relaxed,
            stack=np.empty((count + 2, 2), np.int64),
            histogram=np.zeros(largest, np.int64),
            boxes=np.empty((2, most, width), np.int32),
            around=np.empty((most + 2, width, 4), np.int32),  # only used as far as parts wait
            cuts=np.empty((most, width, 4), np.int32),
            state=np.array([min(1, count), 0, 0], np.int64),
            labels=self.labels,
        )
        self._parts.stack[0] = 0, count
        self._parts.around[0] = -1

    def advance(self) -> int:
        """Do about 50 ms of work; return how many combinations have their box."""
        _advance(self._parts, _CELLS)
        return int(self._parts.state[2])

    @property
    def lows(self) -> Codes:
        """The lowest code of each finished box in each attribute."""
        return self._parts.boxes[0, : self._parts.state[1]]

    @property
    def highs(self) -> Codes:
        """The highest code of each finished box in each attribute."""
        return self._parts.boxes[1, : self._parts.state[1]]

    @property
    def cuts(self) -> Codes:
        """The cuts around each finished box in each attribute, -1 if there is none.

        The first two codes are those on both sides of the cut below, the next two of the cut above.
        """
        return self._parts.cuts[: self._parts.state[1]]


class _Rows(NamedTuple):
    """The combinations, with those of a part adjacent."""

    columns: Codes  # data of a combination: attributes, sensitive codes and its row
    weights: Integers  # records and people of a population
    places: Codes  # room for places on two sides
    width: int  # the number of attributes


class _Parts(NamedTuple):
    """The combinations, how they are cut, the waiting parts, and the boxes so far."""

    rows: _Rows
    attributes: Packed
    conditions: Conditions
    relaxed: bool
    stack: Integers  # the start and end of each part
    histogram: Integers  # room for the codes of an attribute
    boxes: Codes  # lowest and highest codes
    around: Codes  # the cuts around each waiting part
    cuts: Codes  # the cuts around each box
    state: Integers  # parts waiting, boxes, combinations done
    labels: Codes


@python_if_small(lambda parts, _: 16 * parts.rows.columns.size)
@njit(cache=True)
def _advance(parts: Any, cells: int) -> None:
    """Cut parts until none waits or about ``cells`` cells were examined."""
    rows, attributes, conditions = parts.rows, parts.attributes, parts.conditions
    columns, weights, width = rows.columns, rows.weights, rows.width
    stack, state, boxes, labels = parts.stack, parts.state, parts.boxes, parts.labels
    widths = np.empty(width)
    lows, highs = np.empty(width, np.int32), np.empty(width, np.int32)
    top = state[0]
    while top > 0 and cells > 0:
        top -= 1
        start, end = stack[top]
        cells -= (end - start) * (width + 4)
        for column in range(width):
            low, high = _ends(columns[column, start:end])
            lows[column], highs[column] = low, high
            widths[column] = width_over(attributes, column, low, high)
        lower, column = 0, 0
        size = weights[0, start:end].sum()
        if size >= 2 * conditions.smallest and end - start > 1:
            part, box = (start, end, size), (lows, highs, widths)
            how = parts.relaxed, parts.histogram
            lower, column = _cut(rows, attributes, conditions, how, part, box)
        if lower > 0:
            stack[top, 0], stack[top, 1] = start + lower, end
            stack[top + 1, 0], stack[top + 1, 1] = start, start + lower
            _part(parts.around, top, column, columns[column, start:end], lower)
            top += 2
            continue
        boxes[0, state[1]], boxes[1, state[1]] = lows, highs
        parts.cuts[state[1]] = parts.around[top]
        for place in range(start, end):
            labels[columns[-1, place]] = state[1]
        state[1] += 1
        state[2] += end - start
    state[0] = top


@njit(cache=True)
def _part(around: Any, top: int, column: int, codes: Any, lower: int) -> None:
    """The cuts around both sides of a part, the upper one in its place, the lower one above.

    If both sides have records with the value of a cut, each side ends beyond that value.
    """
    last, first = _ends(codes[:lower])[1], _ends(codes[lower:])[0]
    below, above = -1, -1  # the lower side's neighbour of ``first``, the upper side's of ``last``
    for code in codes[:lower]:
        if code < first:
            below = max(below, code)
    for code in codes[lower:]:
        if code > last and (above < 0 or code < above):
            above = code
    around[top + 1] = around[top]
    if above >= 0:
        around[top + 1, column, 2], around[top + 1, column, 3] = last, above
    if below >= 0:
        around[top, column, 0], around[top, column, 1] = below, first


@njit(cache=True)
def _ends(values: Any) -> tuple[int, int]:
    low = high = values[0]
    for place in range(1, len(values)):
        low = min(low, values[place])
        high = max(high, values[place])
    return low, high


@njit(cache=True)
def _cut(
    rows: Any, attributes: Any, conditions: Any, how: Any, part: Any, box: Any
) -> tuple[Any, Any]:
    """Put the lower combinations first; return how many there are, 0 for no cut, and the column.

    Sets the width of every attribute that it tried to 0.
    """
    relaxed, histogram = how
    start, end, size = part
    lows, highs, widths = box
    whole = _counted(rows, conditions, start, end)
    while True:
        column = np.argmax(widths)
        if not widths[column] > 0.0:
            return 0, 0
        widths[column] = 0.0
        codes = rows.columns[column, start:end]
        low, high = lows[column], highs[column]
        if low == high:
            continue
        own = rows.weights[0, start:end]
        median = _median(codes, own, size, low, high, histogram)
        tree = attributes.tree[column]
        if relaxed and tree < 0:
            lower = _halve(rows, codes, median, start, size)
            if _allowed(rows, conditions, start, end, lower, whole):
                return lower, column
            continue
        below, upto = median - 1, median  # the last code of the lower side
        if tree >= 0:
            child = height_over(attributes, tree, low, high) - 1
            below = attributes.first[tree, child, median] - 1
            upto = attributes.last[tree, child, median]
        for last in _better_first(codes, own, size, below, upto):
            if last < low or last >= high:
                continue
            lower = _put_first(rows, codes, last, start)
            if _allowed(rows, conditions, start, end, lower, whole):
                return lower, column


@njit(cache=True)
def _median(codes: Any, own: Any, size: int, low: int, high: int, histogram: Any) -> int:
    """The code of the middle record."""
    middle = size // 2
    if high - low > _SPARSE * len(codes):
        order = np.argsort(codes)
        passed = 0
        for place in order:
            passed += own[place]
            if passed > middle:
                return codes[place]
        return high
    for place in range(len(codes)):
        histogram[codes[place] - low] += own[place]
    passed, found = 0, high
    for code in range(high - low + 1):
        passed += histogram[code]
        histogram[code] = 0
        if passed > middle and found == high:
            found = low + code
            passed = -(2**62)  # found: the rest only empties the histogram
    return found


@njit(cache=True)
def _better_first(codes: Any, own: Any, size: int, below: int, upto: int) -> tuple[int, int]:
    """The two cuts, the better balanced first."""
    left, right = 0, 0
    for place in range(len(codes)):
        left += own[place] * (codes[place] <= below)
        right += own[place] * (codes[place] <= upto)
    if abs(2 * right - size) < abs(2 * left - size):
        return upto, below
    return below, upto


@njit(cache=True)
def _put_first(rows: Any, codes: Any, last: int, start: int) -> Any:
    """Move the combinations with codes up to ``last`` to the front; return how many there are."""
    columns, weights, places = rows.columns, rows.weights, rows.places
    lower = np.int64(0)  # Python's 0 would be another type and compile again
    for place in range(len(codes)):
        lower += codes[place] <= last
    pairs, end = misplaced(codes, last, True, lower, places), start + len(codes)
    left, right = places[0, :pairs], places[1, :pairs]
    for column in range(len(columns)):
        swap(columns[column, start:end], left, right)
    for row in range(len(weights)):
        swap(weights[row, start:end], left, right)
    return lower


@njit(cache=True)
def _halve(rows: Any, codes: Any, median: int, start: int, size: int) -> int:
    """Move half of the records to the front: the lower ones, and as many of the median as fit.

    People of a population with the median's value go with the records between which they lie.
    """
    _put_first(rows, codes, median, start)
    lower = _put_first(rows, codes, median - 1, start)
    records = rows.weights[0, start : start + lower].sum()
    while records < size // 2:
        records += rows.weights[0, start + lower]
        lower += 1
    return lower


@njit(cache=True)
def _counted(rows: Any, conditions: Any, start: int, end: int) -> Integers:
    """How often each value of each sensitive column occurs in a part."""
    columns, weights, width = rows.columns, rows.weights, rows.width
    counts = np.zeros(conditions.shares.shape, np.int64)
    if counted_once(conditions.persons):
        return counts  # numbers of persons do not add up, so they are not used
    for column in range(len(counts)):
        for place in range(start, end):
            counts[column, columns[width + column, place]] += weights[0, place]
    return counts


@njit(cache=True)
def _has_persons(rows: Any, conditions: Any, start: int, end: int) -> bool:
    """Whether the persons of a part satisfy every condition."""
    weights, width = rows.weights, rows.width
    counts = np.zeros(conditions.shares.shape, np.int64)
    tick, size = next_tick(conditions.persons), 0
    for place in range(start, end):
        if weights[0, place] > 0:
            for column in range(len(conditions.persons.value)):
                code = rows.columns[width + column, place]
                size += meet(conditions.persons, column, code, tick, counts)
    return holds(conditions, size, weights[1, start:end].sum(), counts)


@njit(cache=True)
def _allowed(rows: Any, conditions: Any, start: int, end: int, lower: int, whole: Any) -> bool:
    """Whether both sides of a cut satisfy every condition."""
    weights, middle = rows.weights, start + lower
    left, right = weights[0, start:middle].sum(), weights[0, middle:end].sum()
    if left < conditions.smallest or right < conditions.smallest:
        return False
    if counted_once(conditions.persons):
        left_holds = _has_persons(rows, conditions, start, middle)
        return left_holds and _has_persons(rows, conditions, middle, end)
    if len(conditions.kinds) == 0:
        return True
    below, above = weights[1, start:middle].sum(), weights[1, middle:end].sum()
    counts = _counted(rows, conditions, start, middle)
    return holds(conditions, left, below, counts) and holds(
        conditions, right, above, whole - counts
    )
