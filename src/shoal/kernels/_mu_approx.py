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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels._compile import njit
from shoal.kernels._individual_ranking import stable_argsort
from shoal.kernels._neighbours import Tree, build, nearest

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

_RECORDS = 2_500  # searched in about 50 ms
_MARGIN = 1e-9
_LARGE = 32  # trees of more than this times k are halved, so that many cuts are not quadratic


class Forest(NamedTuple):
    """The edges, and the records of each tree side by side, parents before children."""

    target: Rows  # where a record's edge leads, -1 for a root
    tree_of: Rows  # union-find
    sizes: Rows  # of the tree, at its representative; then of the subtree of each record
    order: Rows  # the records, tree by tree
    spare: Rows
    mark: Rows
    sums: Floats  # of the subtree of each record
    stack: Integers  # first and last place of the trees still to cut
    state: Integers  # trees on the stack, groups, records grouped


class MuApprox:
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
        count, columns = points.shape
        self._points = np.ascontiguousarray(points, np.float64)
        self._k = k
        self._tree = build(self._points)
        self._radii = np.empty(count)
        self._outermost: Rows | None = None
        self._measured = self._joined = 0
        self._forest = Forest(
            target=np.full(count, -1, np.int32),
            tree_of=np.arange(count, dtype=np.int32),
            sizes=np.ones(count, np.int32),
            order=np.empty(count, np.int32),
            spare=np.empty(count, np.int32),
            mark=np.empty(count, np.int32),
            sums=np.empty((count, columns)),
            stack=np.empty((count // k + 1, 2), np.int64),
            state=np.zeros(3, np.int64),
        )
        self.labels = np.full(count, -1, np.int32)

    def advance(self) -> int:
        """Do about 50 ms of work; give how far it is, in records: all of them at the end."""
        count = len(self.labels)
        if self._measured < count:
            end = min(count, self._measured + _RECORDS)
            _measure(self._points, self._tree, self._k, self._radii, self._measured, end)
            self._measured = end
        elif self._joined < count:
            if self._outermost is None:
                self._outermost = stable_argsort(-self._radii)
            end = min(count, self._joined + _RECORDS)
            rows = self._outermost[self._joined : end]
            _join(self._points, self._tree, self._k, rows, self._forest)
            self._joined = end
            if end == count:
                _line_up(self._forest)
        else:
            _cut_trees(self._points, self._k, self._forest, self.labels, 20 * _RECORDS)
        grouped = int(self._forest.state[2])
        return grouped if grouped == count else (self._measured + self._joined + grouped) // 3


@njit(cache=True)
def _measure(points: Floats, tree: Tree, k: int, radii: Floats, start: int, end: int) -> None:
    """The squared distance of each record to its (k - 1)-th nearest other."""
    distances, rows = np.empty(k - 1), np.empty(k - 1, np.int32)
    for row in range(start, end):
        nearest(tree, points[row], row, distances, rows)
        radii[row] = distances[k - 2]


@njit(cache=True)
def _representative(tree_of: Rows, row: int) -> int:
    while tree_of[row] != row:
        tree_of[row] = tree_of[tree_of[row]]
        row = tree_of[row]
    return row


@njit(cache=True)
def _join(points: Floats, tree: Tree, k: int, rows: Rows, forest: Forest) -> None:
    """Give an edge to each of the rows that is the root of a tree of fewer than k."""
    distances, others = np.empty(k), np.empty(k, np.int32)
    for row in rows:
        own = _representative(forest.tree_of, row)
        size = forest.sizes[own]
        if size >= k or forest.target[row] >= 0:
            continue
        # A tree of ``size`` records cannot hold all of the root's ``size`` nearest others.
        found = nearest(tree, points[row], np.int64(row), distances[:size], others[:size])
        for place in range(found):
            other = _representative(forest.tree_of, others[place])
            if other != own:
                forest.target[row] = others[place]
                forest.tree_of[own] = other
                forest.sizes[other] += size
                break


@njit(cache=True)
def _line_up(forest: Forest) -> None:
    """Fill ``order`` with the trees one after another, and the stack with their places."""
    count = len(forest.target)
    first_child, next_child = forest.mark, forest.spare
    first_child[:] = -1
    for row in range(count - 1, -1, -1):
        target = forest.target[row]
        if target >= 0:
            next_child[row] = first_child[target]
            first_child[target] = row
    placed = trees = 0
    for root in range(count):
        if forest.target[root] >= 0:
            continue
        start = placed
        forest.order[placed] = root
        placed += 1
        at = start
        while at < placed:
            child = first_child[forest.order[at]]
            while child >= 0:
                forest.order[placed] = child
                placed += 1
                child = next_child[child]
            at += 1
        forest.stack[trees, 0], forest.stack[trees, 1] = start, placed
        trees += 1
    forest.state[0] = trees
    # The tree of the lowest row is cut first.
    forest.stack[:trees] = forest.stack[:trees][::-1].copy()


@njit(cache=True)
def _cut_trees(points: Floats, k: int, forest: Forest, labels: Rows, records: int) -> None:
    """Cut trees until all have fewer than 2 k records, or about ``records`` were looked at."""
    state, stack = forest.state, forest.stack
    while state[0] > 0 and records > 0:
        state[0] -= 1
        start, end = stack[state[0]]
        count = end - start
        records -= count
        if count < 2 * k:
            for place in range(start, end):
                labels[forest.order[place]] = state[1]
            state[1] += 1
            state[2] += count
            continue
        _sum_up(points, forest, start, end)
        child, drop = _best_edge(forest, start, end, k)
        # Often both part the records alike: rounding must not choose between them.
        if count < 3 * k and _part(points, forest, start, end, k) > drop + _MARGIN * abs(drop):
            middle = _sort_marked(forest, start, end)
        elif child >= 0:
            _mark_subtree(forest, start, end, child)
            middle = _sort_marked(forest, start, end)
        else:
            end = _strip_branches(forest, start, end, k, labels)
            middle = start
        if middle > start:
            stack[state[0], 0], stack[state[0], 1] = start, middle
            state[0] += 1
        stack[state[0], 0], stack[state[0], 1] = middle, end
        state[0] += 1


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
def _mark_subtree(forest: Forest, start: int, end: int, child: int) -> None:
    for place in range(start, end):
        row = forest.order[place]
        parent = forest.target[row]
        forest.mark[row] = row == child or (place > start and forest.mark[parent] == 1)
    forest.target[child] = -1


@njit(cache=True)
def _sort_marked(forest: Forest, start: int, end: int) -> int:
    """Put the marked records behind the others, each in their order; give where they begin."""
    kept, moved = start, 0
    for place in range(start, end):
        row = forest.order[place]
        if forest.mark[row] == 1:
            forest.spare[moved] = row
            moved += 1
        else:
            forest.order[kept] = row
            kept += 1
    forest.order[kept:end] = forest.spare[:moved]
    return kept


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


@njit(cache=True)
def _strip_branches(forest: Forest, start: int, end: int, k: int, labels: Rows) -> int:
    """Make groups of whole branches of the hub until fewer than 3 k records are left.

    No edge parts k from k records, so one vertex has only branches of fewer than k: its
    subtrees, and all that is not below it. Gives where the rest, which keeps the hub, ends.
    """
    order, target, sizes, branch = forest.order, forest.target, forest.sizes, forest.mark
    root = order[start]
    hub = root
    for place in range(start, end):
        if sizes[order[place]] >= k and target[order[place]] == hub:
            hub = order[place]
    # A branch is named by its record next to the hub, what is not below the hub by the root.
    left, filling = end - start, 0
    kept = start
    for place in range(start, end):
        row = order[place]
        if row == hub:
            branch[row] = row
            continue
        first = row == root or target[row] == hub
        branch[row] = row if first else branch[target[row]]
        if first:
            labels[row] = forest.state[1] if left >= 3 * k else -1
            if labels[row] >= 0:
                filling += end - start - sizes[hub] if row == root else sizes[row]
                if filling >= k:
                    left -= filling
                    forest.state[1] += 1
                    forest.state[2] += filling
                    filling = 0
        else:
            labels[row] = labels[branch[row]]
    if labels[root] >= 0:
        target[hub] = -1
    for place in range(start, end):
        row = order[place]
        if row == hub or labels[row] < 0:
            order[kept] = row
            kept += 1
    return kept
