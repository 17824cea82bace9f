"""The order of records of mixed type in a tree: similar ones together.

Records with the same missing values are kept apart from others. Each part is then halved
repeatedly until a leaf can hold it: in the column where that brings its records together most,
estimated from some pairs of them, and at a boundary between two values if one is near the middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.mixed_records import MixedRecords

_FEWEST = WIDTH // 4  # leaves or nodes in a node, unless there are fewer
_PAIRS = 32  # pairs compared to choose a column


def leaf_starts(records: MixedRecords, rows: Integers) -> tuple[Integers, Integers, Integers]:
    """The given rows, which ascend, in the order of leaves; where leaves start; after how many
    halvings they were separated from what is before them."""
    patterns = records.patterns[rows]
    order = np.argsort(patterns, kind="stable")
    rows = rows[order]
    parts = np.append(np.flatnonzero(np.diff(patterns[order], prepend=-1)), len(rows))
    depths = np.zeros(len(rows), np.int64)
    _halve(records, rows, parts, depths)
    starts = np.flatnonzero(depths)
    return rows, starts, depths[starts]


def run_starts(depths: Integers) -> Integers:
    """Where to divide leaves or nodes into runs of 4 to 16, at the earliest halvings."""
    is_start = np.zeros(len(depths), np.bool_)
    is_start[0] = True
    _part(depths, is_start)
    return np.flatnonzero(is_start)


@njit(cache=True)
def _part(depths: Integers, is_start: Flags) -> None:
    waiting = np.empty((2, 64), np.int64)
    waiting[0, 0], waiting[1, 0] = 0, len(depths)
    count = 1
    while count > 0:
        count -= 1
        first, last = waiting[0, count], waiting[1, count]
        while last - first > WIDTH:
            cut, middle = first + _FEWEST, (first + last) // 2
            for at in range(first + _FEWEST + 1, last - _FEWEST + 1):
                if depths[at] < depths[cut] or (
                    depths[at] == depths[cut] and abs(at - middle) < abs(cut - middle)
                ):
                    cut = at
            is_start[cut] = True
            # The larger side waits below, so that never more than log2(all) wait.
            if cut - first > last - cut:
                waiting[0, count], waiting[1, count], first = first, cut, cut
            else:
                waiting[0, count], waiting[1, count], last = cut, last, cut
            count += 1


@njit(cache=True)
def _halve(records: MixedRecords, rows: Integers, parts: Integers, depths: Integers) -> None:
    """Halve each part until it fits a leaf; where a leaf starts, the depth becomes positive."""
    values, codes = records.values, records.codes
    room = np.empty(len(rows), np.int64)
    sample = np.empty(2 * _PAIRS)
    waiting = np.empty((3, 64), np.int64)
    for part in range(len(parts) - 1):
        depths[parts[part]] = 1
        waiting[0, 0], waiting[1, 0], waiting[2, 0] = parts[part], parts[part + 1], 1
        count = 1
        while count > 0:
            count -= 1
            first, last, depth = waiting[0, count], waiting[1, count], waiting[2, count]
            while last - first > WIDTH:
                cut = (first + last) // 2
                column = _widest(records, rows, first, last)
                if 0 <= column < len(values):
                    cut = _sort(values, column, rows, first, last, room, sample)
                elif column >= 0:
                    cut = _sort(codes, column - len(values), rows, first, last, room, sample)
                depth += 1
                depths[cut] = depth
                waiting[2, count] = depth
                if cut - first > last - cut:
                    waiting[0, count], waiting[1, count], first = first, cut, cut
                else:
                    waiting[0, count], waiting[1, count], last = cut, last, cut
                count += 1


@njit(cache=True)
def _widest(records: MixedRecords, rows: Integers, first: int, last: int) -> int:
    """The column whose halving brings records together most, nominal ones counted last; or -1.

    Halving a numeric column halves the mean difference of two records. Halving a nominal one
    doubles how often two agree, as far as possible: a column of all distinct codes does not help.
    """
    values, codes, measure = records.values, records.codes, records.measure
    numeric, half = len(values), (last - first) // 2
    pairs = min(_PAIRS, half)
    widest, most = -1, 0.0
    for column in range(numeric + len(measure.levels)):
        total, unequal = 0.0, 0
        for pair in range(pairs):
            at = first + pair * half // pairs
            a, b = rows[at], rows[at + half]
            if column < numeric:
                gap = abs(values[column, a] - values[column, b])
                total += measure.weights[column] * (gap * gap if measure.squared else gap)
            else:
                nominal = column - numeric
                code, other = codes[nominal, a], codes[nominal, b]
                unequal += code != other
                if len(measure.tables) > 0:
                    row = measure.starts[nominal] + code * measure.levels[nominal]
                    total += measure.tables[row + other]
        if column < numeric:
            total /= 2
        else:
            total = float(unequal) if len(measure.tables) == 0 else total
            total *= min(1.0, (pairs - unequal) / max(unequal, 1))
        if total > most:
            widest, most = column, total
    return widest


@njit(cache=True)
def _sort(
    held: Any, column: int, rows: Integers, first: int, last: int, room: Integers, sample: Floats
) -> int:
    """Put rows with low values before those with high ones; returns where to cut."""
    half = (last - first) // 2
    pivot = _sampled_median(held, column, rows, first, half, sample)
    low, equal = first, 0
    for at in range(first, last):
        value = held[column, rows[at]]
        if value < pivot:
            low += 1
        elif value == pivot:
            equal += 1
    at_low, at_equal, at_high = first, low, low + equal
    for at in range(first, last):
        row = rows[at]
        value = held[column, row]
        if value < pivot:
            room[at_low] = row
            at_low += 1
        elif value == pivot:
            room[at_equal] = row
            at_equal += 1
        else:
            room[at_high] = row
            at_high += 1
    for at in range(first, last):
        rows[at] = room[at]
    middle = first + half
    cut = low if abs(low - middle) <= abs(low + equal - middle) else low + equal
    lopsided = 8 * min(cut - first, last - cut) < last - first
    if cut == first or cut == last or (lopsided and low < middle < low + equal):
        return middle
    return cut


@njit(cache=True)
def _sampled_median(
    held: Any, column: int, rows: Integers, first: int, half: int, sample: Floats
) -> float:
    """The median of the values that :func:`_widest` has seen."""
    pairs = min(_PAIRS, half)
    for i in range(2 * pairs):
        value = float(held[column, rows[first + i // 2 * half // pairs + i % 2 * half]])
        at = i
        while at > 0 and sample[at - 1] > value:
            sample[at] = sample[at - 1]
            at -= 1
        sample[at] = value
    return sample[pairs]
