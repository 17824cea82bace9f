"""Groups of one column: sorted, then cut into k neighboring ranks or at the least cost.

The sort is a radix sort from the lowest digit up, on bits that order as the values do. It keeps
equal values in the order of their rows and is faster than a comparison sort of as many
values, such as numpy's argsort. A digit that is the same in all values is skipped, so a column
of small whole numbers takes one or two passes instead of six.

Optimal microaggregation is a shortest path over the sorted values. Hansen and Mukherjee (2003), "A
polynomial algorithm for optimal univariate microaggregation": some partition with the least
within-group sum of squares has only groups of k to 2 k - 1 neighboring values. So the cheapest
partition of the first j values is the cheapest of the first j - m plus one group of m, for the
best m. This is O(n k). The sum of squares of a group is built up value by value (Welford), never as
a difference of two large prefix sums, so it keeps its digits even if values are close to each other
and far from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows, Words
from shoal.kernels.compile import njit

Column = Floats | Integers

_DIGIT = 11  # bits; the 2,048 counters of a pass stay in the first-level cache
_DIGITS = 6
_STEPS = 10_000_000  # one value costs about 12 + k; all together take about 50 ms
_LANES = 16
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_MASK = np.uint64((1 << _DIGIT) - 1)


def stable_argsort(values: Column) -> Rows:
    """The rows in the order of their values, equal values by row."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    counts = np.zeros((_DIGITS, 1 << _DIGIT), np.int64)
    order = np.empty(len(bits), np.int32)
    floating = values.dtype == np.float64
    digits = _count(bits, floating, counts)
    if len(digits) == 0:
        order[:] = np.arange(len(bits), dtype=np.int32)
        return order
    # With only one pass, nothing is carried to the next one.
    spare = len(bits) if len(digits) > 1 else 0
    keys = np.empty((2, spare), np.uint64)
    rows = np.empty((2, spare), np.int32)
    _first_pass(bits, floating, digits, counts, (keys[0], rows[0], order))
    for turn in range(1, len(digits)):
        now, then = (turn + 1) % 2, turn % 2
        last = turn == len(digits) - 1
        source, target = (keys[now], rows[now]), (keys[then], order if last else rows[then])
        _next_pass(source, digits[turn], counts, target, last)
    return order


def rank_groups(count: int, k: int) -> Integers:
    """Where each of the ``count // k`` groups begins in the sorted rows, then ``count``.

    All groups have k records, except the middle one, which takes the ``count % k`` left-over
    records. The values at both ends differ most from their neighbors, so groups there are as small
    as possible. In the top group of a skewed column, extra records would do most harm.
    """
    groups = count // k
    starts = np.arange(groups + 1, dtype=np.int64) * k
    starts[groups // 2 + 1 :] += count - groups * k
    return starts


def individual_ranking(values: Column, k: int) -> tuple[Rows, Integers]:
    """The rows in the order of their values, and where each rank group begins in it."""
    return stable_argsort(values), rank_groups(len(values), k)


@njit(cache=True)
def labels_of(order: Rows, offsets: Integers) -> Rows:
    """The group of each row, for groups that are runs of ``order``."""
    labels = np.empty(len(order), np.int32)
    for group in range(len(offsets) - 1):
        for place in range(offsets[group], offsets[group + 1]):
            labels[order[place]] = group
    return labels


@njit(cache=True)
def _ordered(bits: np.uint64, floating: bool) -> np.uint64:
    """Words that order as unsigned integers as the values do; both zeros are one value."""
    if floating:
        if bits == _SIGN:
            return _SIGN
        return bits ^ (_ALL if bits & _SIGN else _SIGN)
    return bits ^ _SIGN


@njit(cache=True)
def _count(bits: Words, floating: bool, counts: Integers) -> Integers:
    """Turn ``counts`` into the first place of each digit; return the digits that vary."""
    for row in range(len(bits)):
        key = _ordered(bits[row], floating)
        for digit in range(_DIGITS):
            counts[digit, key & _MASK] += 1
            key >>= np.uint64(_DIGIT)
    varying = np.empty(_DIGITS, np.int64)
    found = 0
    for digit in range(_DIGITS):
        constant = False
        place = 0
        for value in range(1 << _DIGIT):
            many = counts[digit, value]
            constant = constant or many == len(bits)
            counts[digit, value] = place
            place += many
        if not constant:
            varying[found] = digit
            found += 1
    return varying[:found]


@njit(cache=True)
def _first_pass(bits: Words, floating: bool, digits: Integers, counts: Integers, out: Any) -> None:
    """Scatter the rows by their lowest varying digit; into ``order`` if it is the only one."""
    keys, rows, order = out
    places = counts[digits[0]]
    shift = np.uint64(_DIGIT * digits[0])
    alone = len(digits) == 1
    for row in range(len(bits)):
        key = _ordered(bits[row], floating)
        digit = (key >> shift) & _MASK
        place = places[digit]
        places[digit] = place + 1
        if alone:
            order[place] = row
        else:
            keys[place] = key
            rows[place] = row


@njit(cache=True)
def _next_pass(source: Any, digit_number: int, counts: Integers, target: Any, last: bool) -> None:
    """Scatter keys and rows by a further digit; after the last, the keys are not needed."""
    keys, rows = source
    keys_out, rows_out = target
    places = counts[digit_number]
    shift = np.uint64(_DIGIT * digit_number)
    for at in range(len(keys)):
        key = keys[at]
        digit = (key >> shift) & _MASK
        place = places[digit]
        places[digit] = place + 1
        rows_out[place] = rows[at]
        if not last:
            keys_out[place] = key


class OptimalUnivariate:
    """The partition of a column into groups of at least k with the least sum of squares.

    Among several best partitions, the one with the smaller last group wins, then the group before
    it, and so on. ``order`` and ``offsets`` are as in individual ranking.
    """

    def __init__(self, values: Column, k: int) -> None:
        self.order = stable_argsort(values)
        self._sorted = np.asarray(values, np.float64)[self.order]
        self._k = k
        self._cost = np.full(len(values) + 1, np.inf)
        self._cost[0] = 0.0
        self._cuts = np.zeros(len(values) + 1, np.int32)
        self._done = k - 1

    def advance(self) -> int:
        """Do about 50 ms of work; return how many of the sorted values are settled."""
        rounds = max(1, _STEPS // (12 + self._k))
        end = min(len(self._sorted), self._done + rounds)
        _shortest(self._sorted, self._k, self._cost, self._cuts, self._done + 1, end)
        self._done = end
        return end

    @property
    def offsets(self) -> Integers:
        """Where each group begins in ``order``, then the number of values."""
        return _path(self._cuts)

    @property
    def labels(self) -> Rows:
        """The group of each row, numbered from the lowest values up."""
        return labels_of(self.order, self.offsets)


@njit(cache=True)
def _shortest(values: Floats, k: int, cost: Floats, cuts: Rows, first: int, last: int) -> None:
    """The cheapest partitions of the first j values, for j from ``first`` to ``last``.

    Up to k values of j are processed together, since none needs the cost of another.
    """
    means, sums, best = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    cut = np.empty(_LANES, np.int32)
    while first <= last:
        lanes = min(min(k, _LANES), last - first + 1)
        for lane in range(lanes):
            j = first + lane
            means[lane], sums[lane], best[lane] = 0.0, 0.0, np.inf
            # Used if every cost is infinite, so that the groups are valid all the same.
            cut[lane] = 0 if j < 2 * k else j - k
        for size in range(1, 2 * k):
            if size > first:
                lanes_from = size - first  # lower lanes do not have that many values
                if lanes_from >= lanes:
                    break
            else:
                lanes_from = 0
            weight, share = (size - 1) / size, 1.0 / size
            start = first - size
            for lane in range(lanes_from, lanes):
                gap = values[start + lane] - means[lane]
                means[lane] += gap * share
                sums[lane] += gap * gap * weight
            if size >= k:
                for lane in range(lanes_from, lanes):
                    total = cost[start + lane] + sums[lane]
                    if total < best[lane]:
                        best[lane] = total
                        cut[lane] = start + lane
        for lane in range(lanes):
            cost[first + lane] = best[lane]
            cuts[first + lane] = cut[lane]
        first += lanes


@njit(cache=True)
def _path(cuts: Rows) -> Integers:
    """The starts of the groups on the cheapest path, and the number of values."""
    groups, at = 0, len(cuts) - 1
    while at > 0:
        at = cuts[at]
        groups += 1
    offsets = np.empty(groups + 1, np.int64)
    at = len(cuts) - 1
    for group in range(groups, -1, -1):
        offsets[group] = at
        at = cuts[at]
    return offsets
