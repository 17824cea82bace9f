"""Optimal microaggregation of one column, as a shortest path over its sorted values.

Hansen and Mukherjee (2003), "A polynomial algorithm for optimal univariate microaggregation":
some partition of least within-group sum of squares has only groups of neighbouring values, of
k to 2 k - 1 of them. So the cheapest partition of the first j values is the cheapest of the
first j - m plus one group of m, for the best m. O(n k).

The sum of squares of a group is built up value by value (Welford), never as a difference of two
large prefix sums: it keeps its digits where values are close to each other and far from zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit
from shoal.kernels.groups.individual_ranking import (
    Column,
    Integers,
    Rows,
    labels_of,
    stable_argsort,
)

Floats = npt.NDArray[np.float64]

_STEPS = 10_000_000  # a value costs about 12 + k of these, and all take about 50 ms
_LANES = 16


class OptimalUnivariate:
    """The partition of a column into groups of at least k with the least sum of squares.

    Where several partitions are best, the smaller last group wins, then the one before it, and
    so on. ``order`` and ``offsets`` are as in individual ranking.

    Examples
    --------
    >>> partition = OptimalUnivariate(np.array([1.0, 9.0, 2.0, 10.0, 3.0]), 2)
    >>> while partition.advance() < 5:
    ...     pass
    >>> partition.labels.tolist()
    [0, 1, 0, 1, 0]
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
        """Do about 50 ms of work; give how many of the sorted values are settled."""
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

    Up to k values of j are handled together, since none needs the cost of another.
    """
    means, sums, best = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    cut = np.empty(_LANES, np.int32)
    while first <= last:
        lanes = min(min(k, _LANES), last - first + 1)
        for lane in range(lanes):
            j = first + lane
            means[lane], sums[lane], best[lane] = 0.0, 0.0, np.inf
            # Stands where every cost is infinite, so that the groups are valid all the same.
            cut[lane] = 0 if j < 2 * k else j - k
        for size in range(1, 2 * k):
            if size > first:
                lanes_from = size - first  # below this lane there are not that many values
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
