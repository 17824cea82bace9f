"""Strict Mondrian: records cut in two along their widest column, as long as k stay on each side.

LeFevre, DeWitt and Ramakrishnan (2006), "Mondrian multidimensional k-anonymity". Records with equal
values in the column are never separated, so a cut falls just below or just above the median's
value; the better balanced of the two is used. (Always cutting above fails whenever the median is
the largest value, such as a most frequent category coded last.) If a column cannot be cut, the next
widest is tried.

The dissimilarity defines the width of a column in a part of the table: the contribution of its
lowest and highest number, or of the two categories that contribute most. With Gower's, widths are
relative to the column's width in the whole table. Categories are in the order of their frequency,
the most frequent first, so that ordinary ones separate from rare ones. A missing number goes with
the lowest, a missing category with the most frequent.

Columns are stored separately, with the records of a part adjacent: O(n log n), by passes over
contiguous memory that do not branch on the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers, Rows
from shoal.kernels.compile import njit
from shoal.kernels.space.mixed_distance import Measure
from shoal.kernels.space.mixed_records import MixedRecords

_CELLS = 10_000_000  # examined in about 50 ms
_WAITING, _GROUPS, _DONE = 0, 1, 2


class Mondrian:
    """The partition of records into boxes of at least k; call ``advance`` until all have one.

    Groups are numbered in the order of the cuts, lower values first.
    """

    def __init__(self, records: MixedRecords, k: int) -> None:
        nominal, count = len(records.measure.levels), records.values.shape[1]
        columns = np.empty((len(records.values) + nominal, count))
        columns[: len(records.values)] = records.values
        columns[len(records.values) :] = records.codes[:nominal]
        self.labels: Rows = np.full(count, -1, np.int32)
        self._k, self._measure = k, records.measure
        self._parts = _Parts(
            columns=columns,
            rows=np.arange(count, dtype=np.int32),
            stack=np.empty((count // k + 2, 2), np.int64),
            values=np.empty((3, count)),
            places=np.empty((2, count), np.int32),
            present=np.zeros(int(records.measure.levels.max(initial=1)), np.bool_),
            state=np.array([1, 0, 0], np.int64),
            labels=self.labels,
        )
        self._parts.stack[0] = 0, count

    def advance(self) -> int:
        """Do about 50 ms of work; return how many records have their group."""
        _advance(self._parts, self._measure, self._k, _CELLS)
        return int(self._parts.state[_DONE])


class _Parts(NamedTuple):
    """The records, with those of a part adjacent, and the parts that are still to be cut."""

    columns: Floats
    rows: Rows
    stack: Integers  # the start and end of each part
    values: Floats  # room for three columns
    places: Rows  # room for places on two sides
    present: Flags  # room for codes
    state: Integers  # parts waiting, groups, records done
    labels: Rows


@njit(cache=True)
def _advance(parts: _Parts, measure: Measure, k: int, cells: int) -> None:
    """Cut parts until the stack is empty or about ``cells`` cells were examined."""
    columns, rows, stack, state = parts.columns, parts.rows, parts.stack, parts.state
    widths = np.zeros(len(columns) + 1)[:-1]  # a table without columns has one part
    while state[_WAITING] > 0 and cells > 0:
        state[_WAITING] -= 1
        top = state[_WAITING]
        start, end = stack[top]
        cells -= (end - start) * (len(columns) + 4)
        lower = 0
        if end - start >= 2 * k and len(columns) > 0:
            for column in range(len(columns)):
                part = columns[column, start:end]
                widths[column] = _width(part, measure, column, parts.present)
            lower = _cut(parts, start, end, k, widths)
        if lower > 0:
            stack[top, 0], stack[top, 1] = start + lower, end
            stack[top + 1, 0], stack[top + 1, 1] = start, start + lower
            state[_WAITING] += 2
            continue
        for place in range(start, end):
            parts.labels[rows[place]] = state[_GROUPS]
        state[_GROUPS] += 1
        state[_DONE] += end - start


@njit(cache=True)
def _width(part: Floats, measure: Measure, column: int, present: Flags) -> float:
    """The largest possible contribution of a column between two records of a part."""
    low, high = _ends(part)
    numeric = len(measure.weights)
    if column < numeric:
        gap = high - low
        return measure.weights[column] * (gap * gap if measure.squared else gap)
    if len(measure.tables) == 0:
        return 1.0 if high > low else 0.0
    start, levels = measure.starts[column - numeric], measure.levels[column - numeric]
    for code in part:
        present[int(code)] = True
    held = np.flatnonzero(present[:levels])
    widest = 0.0
    for one in held:
        for two in held:
            widest = max(widest, measure.tables[start + one * levels + two])
    present[held] = False
    return widest


@njit(cache=True, fastmath={"nnan", "nsz"})
def _ends(values: Floats) -> tuple[float, float]:
    low = high = values[0]
    for place in range(1, len(values)):
        low = min(low, values[place])
        high = max(high, values[place])
    return low, high


@njit(cache=True)
def _cut(parts: _Parts, start: int, end: int, k: int, widths: Floats) -> int:
    """Put the lower records first; return how many there are, 0 if no column can be cut.

    Sets the width of every column that it tried to 0.
    """
    columns, rows, places = parts.columns, parts.rows, parts.places
    count = end - start
    while True:
        column = np.argmax(widths)
        if not widths[column] > 0.0:
            return 0
        widths[column] = 0.0
        part = columns[column, start:end]
        median, below, upto = _median(part, parts.values)
        possible_below = k <= below <= count - k
        possible_upto = k <= upto <= count - k
        if possible_below and possible_upto:
            possible_upto = abs(2 * upto - count) < abs(2 * below - count)
        if not possible_below and not possible_upto:
            continue
        lower = upto if possible_upto else below
        pairs = misplaced(part, median, possible_upto, lower, places)
        left, right = places[0, :pairs], places[1, :pairs]
        for other in range(len(columns)):
            swap(columns[other, start:end], left, right)
        swap(rows[start:end], left, right)
        return lower


@njit(cache=True)
def _median(part: Floats, values: Floats) -> tuple[Any, int, int]:
    """The value of rank ``len(part) // 2``, how many are below it, and below or equal.

    Quickselect: the values below and above a pivot are copied out, and one side is kept.
    """
    rank = len(part) // 2
    below = 0
    kept = part
    spare = 0
    while True:
        count = len(kept)
        one, two, three = kept[count // 4], kept[count // 2], kept[3 * count // 4]
        pivot = max(min(one, two), min(max(one, two), three))
        lower, upper = values[spare], values[2]
        less = more = 0
        for place in range(count):
            value = kept[place]
            lower[less] = value
            less += value < pivot
            upper[more] = value
            more += value > pivot
        if rank < below + less:
            kept = lower[:less]
            spare = 1 - spare
        elif rank >= below + count - more:
            below += count - more
            # The two lists swap, so that the kept values are not overwritten.
            values[spare, :more] = upper[:more]
            kept = values[spare, :more]
            spare = 1 - spare
        else:
            return pivot, below + less, below + count - more


@njit(cache=True)
def misplaced(part: Any, median: Any, with_equal: bool, lower: int, places: Rows) -> int:
    """List the records that must change sides: as many of one side as of the other."""
    left = right = 0
    for place in range(lower):
        value = part[place]
        places[0, left] = place
        left += not (value < median or (with_equal and value == median))
    for place in range(lower, len(part)):
        value = part[place]
        places[1, right] = place
        right += value < median or (with_equal and value == median)
    return left


@njit(cache=True)
def swap(values: Any, left: Rows, right: Rows) -> None:
    for pair in range(len(left)):
        moved = values[left[pair]]
        values[left[pair]] = values[right[pair]]
        values[right[pair]] = moved
