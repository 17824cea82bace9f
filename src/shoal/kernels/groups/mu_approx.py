"""μ-Approx: a forest of short edges with trees of at least k records, cut into groups.

Domingo-Ferrer, Sebé and Solanas (2008), "A polynomial-time approximation to optimal multivariate
microaggregation", Computers & Mathematics with Applications 55. As long as a tree has fewer than
k records, its root (the one record without an outgoing edge) gets an edge to the nearest
record of another tree. Trees that are too large are then cut. Where the paper leaves a choice,
this module chooses: roots are processed by their distance to their (k - 1)-th nearest record,
furthest first; a tree is cut at the edge that lowers the loss most and leaves k records on both
sides; if there is none, branches of the one vertex whose branches all have fewer than k become
groups; and 2 k to 3 k - 1 records are split in the manner of MDAV if that is better.

It works for any dissimilarity d of records. The loss of a group is the sum of d over its pairs
divided by its size, as in ``mixed_refine``; if d is a squared Euclidean distance, that is the sum
of squares. The record "furthest from the center" is the one with the greatest sum of d to the
others. So nothing needs a center, or coordinates.

docs/methods/microaggregate.md tabulates and proves a bound on the ratio of the loss to the least
possible one. The authors prove a bound of their own, reportedly of the order of k^3 (Laszlo
and Mukherjee, 2009, "Approximation bounds for minimum information loss microaggregation"). Neither
its form nor its constant could be checked against the paper's text, so it is not quoted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows
from shoal.kernels.compile import njit
from shoal.kernels.groups.univariate import stable_argsort
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import (
    ByRecord,
    MixedRecords,
    by_record,
    pair_gap,
    with_unshared_codes,
)
from shoal.kernels.space.mixed_tree import Tree, grow, nearest

TREES, GROUPS, GROUPED = 0, 1, 2
"""What ``Forest.state`` counts."""
INSIDE, OUTWARD, OWN = 0, 1, 2
"""What ``Forest.sums`` has for a record."""


_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_PAIRS = 1_000_000  # compared in about 50 ms
_LARGE = 8  # larger trees, in multiples of k, are halved; in others all pairs are compared
_MARGIN = 1e-9  # of the loss: smaller differences count as equal; rounding must not decide


class Forest(NamedTuple):
    """The edges, and the records of each tree adjacent, parents before children."""

    target: Rows  # the target of a record's edge, -1 for a root
    tree_of: Rows  # union-find
    sizes: Rows  # of the tree, at its representative; then of the subtree of each record
    order: Rows  # the records, tree by tree
    spare: Rows
    mark: Rows
    sums: Floats  # of the subtree of each record
    stack: Integers  # start and end of each tree still to cut
    state: Integers  # trees on the stack, groups, records grouped


def edgeless(count: int, k: int) -> Forest:
    """A forest of single records."""
    return Forest(
        target=np.full(count, -1, np.int32),
        tree_of=np.arange(count, dtype=np.int32),
        sizes=np.ones(count, np.int32),
        order=np.empty(count, np.int32),
        spare=np.empty(count, np.int32),
        mark=np.empty(count, np.int32),
        sums=np.empty((count, 3)),
        stack=np.empty((count // k + 1, 2), np.int64),
        state=np.zeros(3, np.int64),
    )


@njit(cache=True)
def representative(tree_of: Rows, row: int) -> int:
    """The record that identifies the tree of a record."""
    while tree_of[row] != row:
        tree_of[row] = tree_of[tree_of[row]]
        row = tree_of[row]
    return row


@njit(cache=True)
def link(forest: Forest, row: int, to: int) -> None:
    """Give a root an edge to a record of another tree."""
    own, other = representative(forest.tree_of, row), representative(forest.tree_of, to)
    forest.target[row] = to
    forest.tree_of[own] = other
    forest.sizes[other] += forest.sizes[own]


@njit(cache=True)
def size_if_short(forest: Forest, row: int, k: int) -> int:
    """The size of a record's tree if it has fewer than k and the record is its root, else 0."""
    size = forest.sizes[representative(forest.tree_of, row)]
    return size if size < k and forest.target[row] < 0 else 0


@njit(cache=True)
def line_up(forest: Forest) -> None:
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
    forest.state[TREES] = trees
    # The tree of the lowest row is cut first.
    forest.stack[:trees] = forest.stack[:trees][::-1].copy()


@njit(cache=True)
def pop(forest: Forest) -> Integers:
    """Take a tree from the stack: its start and end."""
    forest.state[TREES] -= 1
    return forest.stack[forest.state[TREES]]


@njit(cache=True)
def _push(forest: Forest, start: int, end: int) -> None:
    """Put a tree on the stack, unless it has no records."""
    if end > start:
        top = forest.state[TREES]
        forest.stack[top, 0], forest.stack[top, 1] = start, end
        forest.state[TREES] += 1


@njit(cache=True)
def make_group(forest: Forest, start: int, end: int, labels: Rows) -> None:
    """Make a whole tree a group."""
    for place in range(start, end):
        labels[forest.order[place]] = forest.state[GROUPS]
    forest.state[GROUPS] += 1
    forest.state[GROUPED] += end - start


@njit(cache=True)
def _mark_subtree(forest: Forest, start: int, end: int, child: int) -> None:
    """Mark a record and all below it, and cut its edge."""
    for place in range(start, end):
        row = forest.order[place]
        parent = forest.target[row]
        forest.mark[row] = row == child or (place > start and forest.mark[parent] == 1)
    forest.target[child] = -1


@njit(cache=True)
def _sort_marked(forest: Forest, start: int, end: int) -> int:
    """Put the marked records behind the others, each in their order; return where they begin."""
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
def cut(
    forest: Forest, start: int, end: int, k: int, parted: bool, child: int, labels: Rows
) -> None:
    """Cut a tree: as marked if it was split, else at the edge of a child, else at its branches."""
    if not parted and child < 0:
        _push(forest, start, _strip_branches(forest, start, end, k, labels))
        return
    if not parted:
        _mark_subtree(forest, start, end, child)
    middle = _sort_marked(forest, start, end)
    _push(forest, start, middle)
    _push(forest, middle, end)


@njit(cache=True)
def _strip_branches(forest: Forest, start: int, end: int, k: int, labels: Rows) -> int:
    """Make groups from whole branches of the hub until fewer than 3 k records remain.

    No edge separates k from k records, so one vertex has only branches of fewer than k: its
    subtrees, and everything not below it. Returns where the rest, which keeps the hub, ends.
    """
    order, target, sizes, branch = forest.order, forest.target, forest.sizes, forest.mark
    root = order[start]
    hub = root
    for place in range(start, end):
        if sizes[order[place]] >= k and target[order[place]] == hub:
            hub = order[place]
    # A branch is identified by its record next to the hub, or by the root if not below the hub.
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
            labels[row] = forest.state[GROUPS] if left >= 3 * k else -1
            if labels[row] >= 0:
                filling += end - start - sizes[hub] if row == root else sizes[row]
                if filling >= k:
                    left -= filling
                    forest.state[GROUPS] += 1
                    forest.state[GROUPED] += filling
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


class MuApprox:
    """The partition of records of mixed type into groups of k >= 2 to 2 k - 1."""

    def __init__(self, records: MixedRecords, k: int) -> None:
        count = records.values.shape[1]
        self._k = k
        self._radii = np.empty(count)
        self._outermost: Rows | None = None
        self._measured = self._joined = 0
        self._forest = edgeless(count, k)
        self.labels = np.full(count, -1, np.int32)
        self._records = with_unshared_codes(records)
        self._tree = grow(self._records, np.arange(count))
        self._by_record = by_record(records)

    def advance(self) -> int:
        """Do about 50 ms of work; return the progress in records: all of them at the end.

        There are three stages: distances, edges, cuts.
        """
        count, forest = len(self.labels), self._forest
        search = self._tree, self._records, self._k
        if self._measured < count:
            self._measured = _measure(*search, self._radii, self._measured, _STEP)
        elif self._joined < count:
            if self._outermost is None:
                self._outermost = stable_argsort(-self._radii)
            self._joined = _join(*search, self._outermost, self._joined, forest, _STEP)
            if self._joined == count:
                line_up(forest)
        else:
            _cut_trees(self._by_record, self._k, forest, self.labels, _PAIRS)
        grouped = int(forest.state[GROUPED])
        return grouped if grouped == count else (self._measured + self._joined + grouped) // 3


@njit(cache=True)
def _measure(
    tree: Tree, records: MixedRecords, k: int, radii: Floats, start: int, step: int
) -> int:
    """The dissimilarity of each record to its (k - 1)-th nearest other; returns the progress."""
    gaps, found, row = np.empty(k - 1), np.empty(k - 1), start
    while row < len(radii) and step > 0:
        set_query(tree.query, records, row)
        step -= nearest(tree, records.measure, row, gaps, found)
        radii[row] = gaps[0]
        row += 1
    return row


@njit(cache=True)
def _join(
    tree: Tree, records: MixedRecords, k: int, rows: Rows, start: int, forest: Forest, step: int
) -> int:
    """Give an edge to each row that is the root of a tree of fewer than k."""
    gaps, found, place = np.empty(k), np.empty(k), start
    while place < len(rows) and step > 0:
        row = np.int64(rows[place])
        place, step = place + 1, step - 1
        size = size_if_short(forest, row, k)
        if size == 0:
            continue
        own = representative(forest.tree_of, row)
        # A tree of ``size`` records cannot hold all of the root's ``size`` nearest others.
        set_query(tree.query, records, row)
        step -= nearest(tree, records.measure, row, gaps[:size], found[:size])
        best = -1
        for i in range(size):
            if representative(forest.tree_of, int(found[i])) != own and (
                best < 0
                or gaps[i] < gaps[best]
                or (gaps[i] == gaps[best] and found[i] < found[best])
            ):
                best = i
        link(forest, row, int(found[best]))
    return place


@njit(cache=True)
def _cut_trees(records: ByRecord, k: int, forest: Forest, labels: Rows, pairs: int) -> None:
    """Cut trees until all have fewer than 2 k records, or about so many pairs were compared."""
    while forest.state[TREES] > 0 and pairs > 0:
        start, end = pop(forest)
        count = end - start
        pairs -= count
        if count < 2 * k:
            make_group(forest, start, end, labels)
            continue
        _start_sums(forest, start, end)
        if count <= _LARGE * k:
            _compare_pairs(records, forest, start, end)
            pairs -= count * count // 2
        _sum_up(forest, start, end)
        child, gain = _best_edge(forest, start, end, k)
        better = gain + _MARGIN * forest.sums[forest.order[start], INSIDE] / count
        parted = count < 3 * k and _part(records, forest, start, end, k) > better
        cut(forest, start, end, k, parted, child, labels)


@njit(cache=True)
def _start_sums(forest: Forest, start: int, end: int) -> None:
    for place in range(start, end):
        row = forest.order[place]
        forest.sizes[row] = 1
        forest.sums[row] = 0.0
        forest.mark[row] = -1


@njit(cache=True)
def _compare_pairs(records: ByRecord, forest: Forest, start: int, end: int) -> None:
    """Add up by record, and by the vertex where the paths of two records to the root meet."""
    order, target, sums = forest.order, forest.target, forest.sums
    above, meeting = forest.mark, forest.spare
    for first in range(start, end):
        one = order[first]
        row = one
        while row != order[start]:
            above[row] = first
            row = target[row]
        above[row] = first
        for second in range(start, end):
            two = order[second]
            # Parents come first, so the meeting point of a parent is known.
            meeting[two] = two if above[two] == first else meeting[target[two]]
            if second > first:
                gap = pair_gap(records, one, two)
                sums[one, OWN] += gap
                sums[two, OWN] += gap
                sums[meeting[two], INSIDE] += gap


@njit(cache=True)
def _sum_up(forest: Forest, start: int, end: int) -> None:
    """By subtree: its size, the sum over its pairs, and that of its records to all others."""
    order, sizes, sums = forest.order, forest.sizes, forest.sums
    for place in range(start, end):
        sums[order[place], OUTWARD] = sums[order[place], OWN]
    for place in range(end - 1, start, -1):
        row, parent = order[place], forest.target[order[place]]
        sizes[parent] += sizes[row]
        sums[parent, INSIDE] += sums[row, INSIDE]
        sums[parent, OUTWARD] += sums[row, OUTWARD]


@njit(cache=True)
def _drop(inside: float, outward: float, size: int, whole: float, count: int) -> float:
    """How much the loss falls if a part of ``size`` is cut off; it may also rise."""
    rest = whole + inside - outward
    return whole / count - inside / size - rest / (count - size)


@njit(cache=True)
def _best_edge(forest: Forest, start: int, end: int, k: int) -> tuple[int, float]:
    """The first record whose edge is best to cut, and the gain; -1 if none leaves k and k."""
    count, sums = end - start, forest.sums
    whole = sums[forest.order[start], INSIDE]
    most, enough = -np.inf, np.inf
    for _ in range(2):  # first the best gain, then the first edge that has it
        for place in range(start + 1, end):
            row = forest.order[place]
            size = forest.sizes[row]
            if size < k or count - size < k:
                continue
            if count > _LARGE * k:
                gain = np.float64(min(size, count - size))
            else:
                gain = _drop(sums[row, INSIDE], sums[row, OUTWARD], size, whole, count)
            if gain >= enough:
                return row, most
            most = max(most, gain)
        enough = most - _MARGIN * whole / count
    return -1, most


@njit(cache=True)
def _part(records: ByRecord, forest: Forest, start: int, end: int, k: int) -> float:
    """Mark the record furthest from all others and its k - 1 nearest; return the gain."""
    order, sums, mark, count = forest.order, forest.sums, forest.mark, end - start
    most = 0.0
    for place in range(start, end):
        mark[order[place]] = 0
        most = max(most, sums[order[place], OWN])
    seed = -1
    for place in range(start, end):
        row = order[place]
        if sums[row, OWN] >= most * (1.0 - _MARGIN) and (seed < 0 or row < seed):
            seed = row
    gaps = np.empty(count)
    for at in range(count):
        row = order[start + at]
        gaps[at] = -1.0 if row == seed else pair_gap(records, seed, row)
    members = np.empty(k, np.int64)
    inside = outward = 0.0
    for taken in range(k):
        best = -1
        for at in range(count):
            if mark[order[start + at]] == 0 and (
                best < 0
                or gaps[at] < gaps[best]
                or (gaps[at] == gaps[best] and order[start + at] < order[start + best])
            ):
                best = at
        members[taken] = order[start + best]
        mark[members[taken]] = 1
        outward += sums[members[taken], OWN]
        for other in members[:taken]:
            inside += pair_gap(records, members[taken], other)
    return _drop(inside, outward, k, sums[order[start], INSIDE], count)
