"""μ-Approx: a forest of short edges with trees of at least k records, cut into groups.

Domingo-Ferrer, Sebé and Solanas (2008), "A polynomial-time approximation to optimal multivariate
microaggregation", Computers & Mathematics with Applications 55. As long as a tree has fewer than
k records, its root (the one record without an edge that leaves it) gets an edge to the nearest
record of another tree. Trees that are too large are then cut. Where the paper leaves a choice,
this is chosen: roots go in the order of their distance to their (k - 1)-th nearest record,
furthest first; a tree is cut at the edge that lowers the sum of squares most and leaves k records
on both sides; where there is none, branches of the one vertex whose branches all have fewer than
k become groups; and 2 k to 3 k - 1 records are parted in the manner of MDAV if that is better.

What is guaranteed, for this construction: the within-group sum of squares is at most
(2 k - 1)(3 k - 1)(3 k - 2) / 2 times the least possible one. For, of a root's k - 1 nearest records
one at least is in another tree, so its edge is no longer than its distance to the furthest member
of its group in an optimal partition. Summed over such a group of g <= 2 k - 1 records, the squares
of these distances are at most 2 g times the group's sum of squares. No record has two edges, so all
squared edges together are at most 2 (2 k - 1) times the optimum. And s <= 3 k - 1 records joined by
a tree have a sum of squares of at most s (s - 1) / 4 times that of its squared edges: a path of h
edges, squared, is at most h times the sum of its squared edges, and an edge parts at most s^2 / 4
pairs. Branches without their hub, at most 2 k - 2 records, have less; cutting never raises it.

The authors prove a bound of their own, said to be of the order of k^3 (Laszlo and Mukherjee, 2009,
"Approximation bounds for minimum information loss microaggregation"). Neither its form nor its
constant could be checked against the paper's text, so it is not quoted here.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import njit
from shoal.kernels.groups.mu_forest import (
    TREES,
    Floats,
    Forest,
    ForestPartition,
    Rows,
    cut,
    link,
    make_group,
    pop,
    representative,
    size_if_short,
)
from shoal.kernels.space.neighbours import Tree, build, nearest

_RECORDS = 2_500  # searched in about 50 ms
_MARGIN = 1e-9
_LARGE = 32  # trees of more than this times k are halved, so that many cuts are not quadratic


class MuApprox(ForestPartition):
    """The partition of records into groups of k to 2 k - 1, by Euclidean distance.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0], [30.0]])
    >>> partition = MuApprox(points, 3)
    >>> while partition.advance() < 7:
    ...     pass
    >>> partition.labels.tolist()
    [0, 0, 0, 1, 1, 1, 1]
    """

    def __init__(self, points: Floats, k: int) -> None:
        super().__init__(len(points), k, points.shape[1])
        self._points = np.ascontiguousarray(points, np.float64)
        self._tree = build(self._points)
        self._portion = _RECORDS

    def _measure(self, start: int) -> int:
        end = min(len(self.labels), start + self._portion)
        _measure(self._points, self._tree, self._k, self._radii, start, end)
        return end

    def _join(self, rows: Rows, start: int) -> int:
        end = min(len(rows), start + self._portion)
        _join(self._points, self._tree, self._k, rows[start:end], self._forest)
        return end

    def _cut(self) -> None:
        _cut_trees(self._points, self._k, self._forest, self.labels, 20 * self._portion)


@njit(cache=True)
def _measure(points: Floats, tree: Tree, k: int, radii: Floats, start: int, end: int) -> None:
    """The squared distance of each record to its (k - 1)-th nearest other."""
    distances, rows = np.empty(k - 1), np.empty(k - 1, np.int32)
    for row in range(start, end):
        nearest(tree, points[row], row, distances, rows)
        radii[row] = distances[k - 2]


@njit(cache=True)
def _join(points: Floats, tree: Tree, k: int, rows: Rows, forest: Forest) -> None:
    """Give an edge to each of the rows that is the root of a tree of fewer than k."""
    distances, others = np.empty(k), np.empty(k, np.int32)
    for row in rows:
        size = size_if_short(forest, row, k)
        if size == 0:
            continue
        own = representative(forest.tree_of, row)
        # A tree of ``size`` records cannot hold all of the root's ``size`` nearest others.
        found = nearest(tree, points[row], np.int64(row), distances[:size], others[:size])
        for place in range(found):
            if representative(forest.tree_of, others[place]) != own:
                link(forest, row, others[place])
                break


@njit(cache=True)
def _cut_trees(points: Floats, k: int, forest: Forest, labels: Rows, records: int) -> None:
    """Cut trees until all have fewer than 2 k records, or about ``records`` were looked at."""
    while forest.state[TREES] > 0 and records > 0:
        start, end = pop(forest)
        count = end - start
        records -= count
        if count < 2 * k:
            make_group(forest, start, end, labels)
            continue
        _sum_up(points, forest, start, end)
        child, drop = _best_edge(forest, start, end, k)
        # Often both part the records alike: rounding must not choose between them.
        better = drop + _MARGIN * abs(drop)
        parted = count < 3 * k and _part(points, forest, start, end, k) > better
        cut(forest, start, end, k, parted, child, labels)


@njit(cache=True)
def _sum_up(points: Floats, forest: Forest, start: int, end: int) -> None:
    """Size and sum of every subtree; sums relative to the root, so that they lose no digits."""
    order, sizes, sums = forest.order, forest.sizes, forest.sums
    root = order[start]
    for place in range(start, end):
        row = order[place]
        sizes[row] = 1
        for column in range(points.shape[1]):
            sums[row, column] = points[row, column] - points[root, column]
    for place in range(end - 1, start, -1):
        row = order[place]
        parent = forest.target[row]
        sizes[parent] += sizes[row]
        for column in range(points.shape[1]):
            sums[parent, column] += sums[row, column]


@njit(cache=True)
def _drop(part: Floats, size: int, whole: Floats, count: int) -> float:
    """By how much the sum of squares falls where a part of ``size`` is cut off."""
    total = 0.0
    for column in range(len(part)):
        gap = part[column] / size - (whole[column] - part[column]) / (count - size)
        total += gap * gap
    return total * size * (count - size) / count


@njit(cache=True)
def _best_edge(forest: Forest, start: int, end: int, k: int) -> tuple[int, float]:
    """The record whose edge to cut, and what that gains; -1 where no cut leaves k and k."""
    count = end - start
    root = forest.order[start]
    best, most = -1, -1.0
    for place in range(start + 1, end):
        row = forest.order[place]
        size = forest.sizes[row]
        if size < k or count - size < k:
            continue
        if count > _LARGE * k:
            gain = np.float64(min(size, count - size))
        else:
            gain = _drop(forest.sums[row], size, forest.sums[root], count)
        if gain > most:
            best, most = row, gain
    return best, most


@njit(cache=True)
def _part(points: Floats, forest: Forest, start: int, end: int, k: int) -> float:
    """Mark the record furthest from the centre and its k - 1 nearest; give what that gains."""
    order, columns = forest.order, points.shape[1]
    whole = forest.sums[order[start]]
    seed, most = -1, -1.0
    for place in range(start, end):
        forest.mark[order[place]] = 0
        distance = 0.0
        for column in range(columns):
            gap = points[order[place], column] - points[order[start], column]
            gap -= whole[column] / (end - start)
            distance += gap * gap
        if distance > most or (distance == most and order[place] < seed):
            seed, most = order[place], distance
    part = np.zeros(columns)
    for taken in range(k):
        best, least = seed, np.inf
        for place in range(start, end):
            row = order[place]
            if taken == 0 or forest.mark[row] == 1:
                continue
            distance = 0.0
            for column in range(columns):
                gap = points[row, column] - points[seed, column]
                distance += gap * gap
            if distance < least or (distance == least and row < best):
                best, least = row, distance
        forest.mark[best] = 1
        for column in range(columns):
            part[column] += points[best, column] - points[order[start], column]
    return _drop(part, k, whole, end - start)
