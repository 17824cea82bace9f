"""Dissimilarities of a record of mixed type to sixteen others, or to sixteen boxes of others.

A dissimilarity is a sum over columns, divided by the number of columns that both records have
(Gower) or not (Ahmad and Dey). A numeric column adds ``weight * |x - y|`` or
``weight * (x - y) ** 2``; a nominal column adds 1 if the codes differ, or an entry of its
table. Numeric and nominal columns are summed separately, each in their order, so that every result
can be reproduced bit by bit.

A box holds the least and the greatest value of every column of many records. Rounding preserves
order, so a bound that is added up like a distance is never wrong, not even in the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Singles
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH, choose, floats, integers, load, look_up

Codes = npt.NDArray[np.unsignedinteger[Any]]

_SLACK = 1e-12  # far above the rounding error of a sum of some thousand terms


class Measure(NamedTuple):
    """What each column adds to the dissimilarity of two records.

    Values that can be missing have a further column of codes, after the nominal ones: 1 if
    there is a value, 0 if it is missing and adds nothing.
    """

    weights: Floats  # of the numeric columns
    squared: bool  # weight * (x - y) ** 2 and not weight * |x - y|
    mean: bool  # divided by the number of columns that both have; 1.0 if none
    tables: Floats  # of the nominal columns in turn; empty if it is 0 or 1
    starts: Integers  # where the table of each nominal column starts
    levels: Integers  # how many codes each nominal column has
    unshared: Integers  # the first code that no two records share; or the number of levels
    spans: Codes  # how to find the windows that cover so many codes: see :func:`_greatest`
    bases: Integers  # where spans and windows of each nominal column start, in two rows
    presence: Integers  # of numeric, then nominal columns: its further column, or -1
    largest: float  # no column adds more than this


class Query(NamedTuple):
    """One record that others are compared with."""

    values: Floats
    codes: Codes
    has: Flags  # of numeric, then nominal columns: whether there is a value
    middle_values: Floats  # of a record in the middle of all others
    middle_codes: Codes
    windows: Floats  # extremes of its rows in the tables over 1, 2, 4, … adjacent codes
    more_windows: Floats  # the same of another quantity
    room: Floats  # for 16 distances or bounds


def empty_query(measure: Measure, code_type: Any) -> Query:
    """Room for a query."""
    numeric, nominal = len(measure.weights), len(measure.levels)
    return Query(
        np.zeros(numeric),
        np.zeros(nominal, code_type),
        np.ones(numeric + nominal, np.bool_),
        np.zeros(numeric),
        np.zeros(nominal, code_type),
        np.zeros(measure.bases[1, -1]),
        np.zeros(measure.bases[1, -1]),
        np.zeros((1, 1, WIDTH)),
    )


@njit(cache=True, forceinline=True)
def set_query(query: Query, records: Any, row: int) -> None:
    """Make one of the records the query."""
    for column in range(len(query.values)):
        query.values[column] = records.values[column, row]
    for column in range(len(query.codes)):
        query.codes[column] = records.codes[column, row]
    for column in range(len(query.has)):
        at = records.measure.presence[column]
        query.has[column] = at < 0 or records.codes[at, row] != 0


@njit(cache=True, forceinline=True)
def distances(query: Query, measure: Measure, values: Floats, codes: Codes, leaf: int) -> Any:
    """The dissimilarities of the query and 16 records."""
    sums, differing, shared = partial_sums(query, measure, values, codes, leaf)
    return _finished(sums + differing, shared, measure)


@njit(cache=True, forceinline=True)
def partial_sums(query: Query, measure: Measure, values: Floats, codes: Codes, leaf: int) -> Any:
    """For 16 records, the sums over numeric and over nominal columns, and the number of columns."""
    # Most columns have no missing values, and need neither selection nor counting by record.
    sums, shared, always = floats(0.0), integers(0), 0
    numeric = len(query.values)
    for column in range(numeric):
        if query.has[column]:
            gap = abs(load(values, leaf, column) - query.values[column])
            if measure.squared:
                gap = gap * gap
            gap, at = gap * measure.weights[column], measure.presence[column]
            if at < 0:
                sums, always = sums + gap, always + 1
            else:
                there = load(codes, leaf, at) != 0
                sums, shared = sums + choose(there, gap, 0.0), shared + there
    differing, misses = floats(0.0), integers(0)
    for column in range(len(query.codes)):
        if query.has[numeric + column]:
            code, theirs = query.codes[column], load(codes, leaf, column)
            there = _have(codes, leaf, measure.presence[numeric + column])
            shared = shared + there
            if len(measure.tables) == 0:
                misses = misses + ((theirs != code) & there)
            else:
                row = measure.starts[column] + code * measure.levels[column]
                entry = look_up(measure.tables, row, theirs)
                differing = differing + choose(there, entry, 0.0)
    shared = shared + integers(always)
    return sums, differing + floats(misses), shared


@njit(cache=True, forceinline=True)
def _have(codes: Codes, index: int, row: int) -> Any:
    """Where a row of presence is not 0; everywhere if there is no such row."""
    if row < 0:
        return integers(0) == 0
    return load(codes, index, row) != 0


@njit(cache=True, forceinline=True)
def _finished(sums: Any, shared: Any, measure: Measure) -> Any:
    if measure.mean:
        return choose(shared == 0, 1.0, sums / floats(shared))
    return sums


@njit(cache=True, forceinline=True)
def lower_bounds(
    query: Query, measure: Measure, edges: Singles, code_edges: Codes, node: int
) -> Any:
    """Lower bounds of the dissimilarities of the query and the records in 16 boxes.

    A column that only some records of a box have adds nothing, but counts as shared. If
    ``measure.unshared`` is set, the query's own record is not considered.
    """
    sums, shared = floats(0.0), integers(0)
    numeric = len(query.values)
    for column in range(numeric):
        if query.has[column]:
            x, at = query.values[column], 2 * measure.presence[column]
            below = floats(load(edges, node, 2 * column)) - x
            above = x - floats(load(edges, node, 2 * column + 1))
            gap = choose(below > above, below, above)
            gap = choose(gap > 0.0, gap, 0.0)
            if measure.squared:
                gap = gap * gap
            all_have = _have(code_edges, node, at)
            sums = sums + choose(all_have, gap * measure.weights[column], 0.0)
            shared = shared + _have(code_edges, node, at + 1)
    differing, misses = floats(0.0), integers(0)
    for column in range(len(query.codes)):
        if query.has[numeric + column]:
            code, at = query.codes[column], 2 * measure.presence[numeric + column]
            all_have = _have(code_edges, node, at)
            shared = shared + _have(code_edges, node, at + 1)
            if len(measure.tables) == 0:
                first = load(code_edges, node, 2 * column)
                last = load(code_edges, node, 2 * column + 1)
                if code >= measure.unshared[column]:
                    misses = misses + all_have
                else:
                    misses = misses + (((first > code) | (last < code)) & all_have)
            else:
                entry = 0.0 - _greatest(query.windows, measure, code_edges, node, column)
                differing = differing + choose(all_have, entry, 0.0)
    return _finished(sums + (differing + floats(misses)), shared, measure)


@njit(cache=True, forceinline=True)
def upper_bounds(
    query: Query, measure: Measure, edges: Singles, code_edges: Codes, node: int
) -> Any:
    """Upper bounds of the dissimilarities of the query and the records in 16 boxes.

    This is the smallest of three bounds. The first adds up the furthest edges of the box. The
    second starts from the greatest sum of a record in the box and the middle, and adds what each
    column can gain when the query replaces the middle: ``d(x, query) - d(x, middle)`` is
    greatest at an edge. It is far tighter if the box is wide and the query is like the middle.
    The third takes the better of the two for numeric and for nominal columns separately.
    """
    numeric = len(query.values)
    sums, gains, shared, unsure = floats(0.0), floats(0.0), integers(0), integers(0)
    for column in range(numeric):
        if query.has[column]:
            x, c = query.values[column], query.middle_values[column]
            weight, at = measure.weights[column], 2 * measure.presence[column]
            low = floats(load(edges, node, 2 * column))
            high = floats(load(edges, node, 2 * column + 1))
            below, above = abs(low - x), abs(high - x)
            gap = choose(below > above, below, above)
            gain, loss = below, abs(low - c)
            if x < c:
                gain, loss = above, abs(high - c)
            if measure.squared:
                gap, gain, loss = gap * gap, gain * gain, loss * loss
            all_have, some_have = _have(code_edges, node, at), _have(code_edges, node, at + 1)
            sums = sums + choose(all_have, gap * weight, 0.0)
            gains = gains + choose(all_have, (gain - loss) * weight, 0.0)
            shared = shared + some_have
            unsure = unsure + (some_have != all_have)
    differing, turning = floats(0.0), floats(0.0)
    misses, turned, turns = integers(0), integers(0), integers(0)
    for column in range(len(query.codes)):
        if query.has[numeric + column]:
            code, c = query.codes[column], query.middle_codes[column]
            at = 2 * measure.presence[numeric + column]
            all_have, some_have = _have(code_edges, node, at), _have(code_edges, node, at + 1)
            shared = shared + some_have
            unsure = unsure + (some_have != all_have)
            if len(measure.tables) == 0:
                first = load(code_edges, node, 2 * column)
                last = load(code_edges, node, 2 * column + 1)
                differs = ((first != code) | (last != code)) & all_have
                misses = misses + differs
                if code != c:  # 1 if a record may have c, else -1 if all have the code, else 0
                    turned = turned + differs + ((first <= c) & (last >= c) & all_have)
                    turns = turns + all_have
            else:
                entry = _greatest(query.windows, measure, code_edges, node, column)
                gain = _greatest(query.more_windows, measure, code_edges, node, column)
                differing = differing + choose(all_have, entry, 0.0)
                turning = turning + choose(all_have, gain, 0.0)
    differing = differing + floats(misses)
    turning = turning + (floats(turned) - floats(turns))
    lifted = floats(load(edges, node, 2 * numeric + 1)) + (gains + turning)
    lifted_values = floats(load(edges, node, 2 * numeric + 2)) + gains
    lifted_codes = floats(load(edges, node, 2 * numeric + 3)) + turning
    apart = choose(lifted_values < sums, lifted_values, sums)
    apart = apart + choose(lifted_codes < differing, lifted_codes, differing)
    # Only the first bound is added up like a distance; the others need room for rounding.
    sums = sums + differing
    lifted = choose(lifted < apart, lifted, apart) + _SLACK * measure.largest * len(query.has)
    # A column that only some records have counts as maximally different, and as shared.
    perhaps = (sums + floats(unsure) * measure.largest) * (1.0 + _SLACK)
    sums = choose(unsure == 0, choose(lifted < sums, lifted, sums), perhaps)
    return _finished(sums, shared, measure)


@njit(cache=True)
def open_windows(query: Query, measure: Measure, upper: bool) -> None:
    """Prepare for upper or lower bounds if there are tables.

    For upper bounds, the windows hold the greatest entries and the greatest gains over the middle;
    for lower bounds, the least entries with the sign reversed.
    """
    for column in range(len(query.codes)):
        levels = measure.levels[column]
        row = measure.starts[column] + query.codes[column] * levels
        other = measure.starts[column] + query.middle_codes[column] * levels
        base, width = measure.bases[1, column], 1
        for code in range(levels):
            entry = measure.tables[row + code]
            query.windows[base + code] = entry if upper else -entry
            query.more_windows[base + code] = entry - measure.tables[other + code]
        while 2 * width <= levels:
            for at in range(base, base + levels - 2 * width + 1):
                query.windows[at + levels] = max(query.windows[at], query.windows[at + width])
                query.more_windows[at + levels] = max(
                    query.more_windows[at], query.more_windows[at + width]
                )
            base, width = base + levels, 2 * width


@njit(cache=True, forceinline=True)
def _greatest(windows: Floats, measure: Measure, code_edges: Codes, node: int, column: int) -> Any:
    """The greatest value in the windows among the codes in each of 16 boxes.

    Two windows as wide as the largest power of two cover all codes of a box. For each number of
    codes, ``spans`` has the start of these windows for code 0 and for the last code.
    """
    first, last = load(code_edges, node, 2 * column), load(code_edges, node, 2 * column + 1)
    first = choose(first > last, last, first)  # a box without records
    start, levels = measure.bases[0, column], measure.levels[column]
    base = measure.bases[1, column]
    left = look_up(windows, base, look_up(measure.spans, start, last - first) + first)
    right = look_up(windows, base, look_up(measure.spans, start + levels, last - first) + last)
    return choose(left > right, left, right)


def spans_of(levels: Integers, code_type: Any) -> tuple[Codes, Integers]:
    """``Measure.spans`` and ``Measure.bases`` for columns with so many codes."""
    widths = [2 ** np.floor(np.log2(np.arange(1, size + 1))).astype(np.int64) for size in levels]
    spans = []
    for size, width in zip(levels, widths):
        window = np.log2(width).astype(np.int64) * size
        spans += [window, window + 1 - width]
    bases = np.zeros((2, len(levels) + 1), np.int64)
    bases[0, 1:] = np.cumsum(2 * levels)
    bases[1, 1:] = np.cumsum([size * int(size).bit_length() for size in levels])
    return np.concatenate([np.empty(0, np.int64), *spans]).astype(code_type), bases
