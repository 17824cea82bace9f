"""μ-Approx: a forest of short edges with trees of at least k records, cut into groups.

Domingo-Ferrer, Sebé and Solanas (2008), "A polynomial-time approximation to optimal multivariate
microaggregation", Computers & Mathematics with Applications 55. As long as a tree has fewer than
k records, its root (the one record without an edge that leaves it) gets an edge to the nearest
record of another tree. Trees that are too large are then cut. Where the paper leaves a choice,
this is chosen: roots go in the order of their distance to their (k - 1)-th nearest record,
furthest first; a tree is cut at the edge that lowers the loss most and leaves k records on both
sides; where there is none, branches of the one vertex whose branches all have fewer than k become
groups; and 2 k to 3 k - 1 records are parted in the manner of MDAV if that is better.

It works for any dissimilarity d of records. What a group loses is the sum of d over its pairs
divided by its size, as in ``mixed_refine``; if d is a squared Euclidean distance, that is the sum
of squares. The record "furthest from the centre" is the one with the greatest sum of d to the
others. So nothing needs a centre, or coordinates.

What is guaranteed is that the loss is at most so many times the least possible one:

===================================================  ==================================
Gower, no missing values                             (2 k - 1)(3 k - 1) / 2
Ahmad-Dey, no missing numbers; squared Euclidean     (2 k - 1)(3 k - 1)(3 k - 2) / 2
squared Ahmad-Dey, no missing numbers                (2 k - 1)(3 k - 1)^2(3 k - 2) / 2 k
Gower with missing values, Ahmad-Dey with missing    nothing is proved
numbers
===================================================  ==================================

The authors prove a bound of their own, said to be of the order of k^3 (Laszlo and Mukherjee, 2009,
"Approximation bounds for minimum information loss microaggregation"). Neither its form nor its
constant could be checked against the paper's text, so it is not quoted here.

The proof. Some best partition has no group of 2 k records or more, whatever d is: parting s
records at random into a and b >= k leaves on average (s - 2) / (s - 1) of the loss. Of a root's
k - 1 nearest records one at least is in another tree, so its edge e is at most d to the furthest
member of its group in that partition. Summed over such a group of g <= 2 k - 1 records these are
at most twice its sum over pairs, 2 g times its loss. No record has two edges, so all edges
together are at most 2 (2 k - 1) times the optimum.

An edge lies between at most s^2 / 4 pairs of the s records of a tree. If d satisfies the triangle
inequality, their sum over pairs is at most s^2 / 4 times the sum of edges E. If only its root
does, a path of h edges has d of at most h times their sum, and a factor of s - 1 comes in.

If moreover d is of negative type (that is, its root is a distance in a Hilbert space), what is cut
off never raises the loss, which for s <= 3 k - 1 joined records is then at most s E / 4 (with the
factor: s (s - 1) E / 4). If it is not, groups that are trees, or branches without their hub, have
fewer than 2 k records and less than that; but the parting in the manner of MDAV, where no edge can
be cut, leaves two groups of k or more, which lose at most the sum over all pairs over k:
s^2 E / 4 k (with the factor: s^2 (s - 1) E / 4 k).

Gower's terms |x - y| and [a differs from b] are distances in L1, so their sum is one, and of
negative type. In Ahmad and Dey's, delta is a mean of total variations, which is L1 again, and
(x - y)^2 is a squared distance: the sum is of negative type, but no metric. With delta^2 the root
is still a metric, but not always of negative type. With missing values Gower's is none: a record
without a value can be at 0 from two that are not at 0 from each other, and edges say nothing. The
same is true of a missing number in Ahmad and Dey's, which is compared by its bin; a missing
category is one like others.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Floats, Rows
from shoal.kernels.compile import njit
from shoal.kernels.groups.mu_forest import (
    GROUPED,
    INSIDE,
    OUTWARD,
    OWN,
    TREES,
    Forest,
    cut,
    edgeless,
    line_up,
    link,
    make_group,
    pop,
    representative,
    size_if_short,
)
from shoal.kernels.groups.univariate import stable_argsort
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import (
    ByRecord,
    MixedRecords,
    by_record,
    pair_gap,
    with_lonely_codes,
)
from shoal.kernels.space.mixed_tree import Tree, grow, nearest

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_PAIRS = 1_000_000  # compared in about 50 ms
_LARGE = 8  # trees of more than this times k are halved: pairs of others are all compared
_MARGIN = 1e-9  # of the loss: what differs by less is equal, rounding must not choose


class MuApprox:
    """The partition of records of mixed type into groups of k to 2 k - 1.

    Parameters
    ----------
    records : MixedRecords
        The records, at least k.
    k : int
        The least size of a group, at least 2.

    Attributes
    ----------
    labels : array of int32
        The group of each record; -1 before.

    Examples
    --------
    >>> from shoal.kernels.space.mixed_records import gower
    >>> numeric = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0], [30.0]])
    >>> partition = MuApprox(gower(numeric, np.zeros((7, 0), int)), 3)
    >>> while partition.advance() < 7:
    ...     pass
    >>> partition.labels.tolist()
    [0, 0, 0, 1, 1, 1, 1]
    """

    def __init__(self, records: MixedRecords, k: int) -> None:
        count = records.values.shape[1]
        self._k = k
        self._radii = np.empty(count)
        self._outermost: Rows | None = None
        self._measured = self._joined = 0
        self._forest = edgeless(count, k)
        self.labels = np.full(count, -1, np.int32)
        self._records = with_lonely_codes(records)
        self._tree = grow(self._records, np.arange(count))
        self._by_record = by_record(records)

    def advance(self) -> int:
        """Do about 50 ms of work; give how far it is, in records: all of them at the end.

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
    """How unlike each record is to its (k - 1)-th nearest other; give how far that is."""
    gaps, found, row = np.empty(k - 1), np.empty(k - 1), start
    while row < len(radii) and step > 0:
        set_query(tree.query, records.measure, records.values, records.codes, row)
        step -= nearest(tree, records.measure, row, gaps, found)
        radii[row] = gaps[0]
        row += 1
    return row


@njit(cache=True)
def _join(
    tree: Tree, records: MixedRecords, k: int, rows: Rows, start: int, forest: Forest, step: int
) -> int:
    """Give an edge to each of the rows that is the root of a tree of fewer than k."""
    gaps, found, place = np.empty(k), np.empty(k), start
    while place < len(rows) and step > 0:
        row = np.int64(rows[place])
        place, step = place + 1, step - 1
        size = size_if_short(forest, row, k)
        if size == 0:
            continue
        own = representative(forest.tree_of, row)
        # A tree of ``size`` records cannot hold all of the root's ``size`` nearest others.
        set_query(tree.query, records.measure, records.values, records.codes, row)
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
    """Sum up by record, and by the vertex where the paths of two records to the root meet."""
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
    """By how much the loss falls where a part of ``size`` is cut off; it may also rise."""
    rest = whole + inside - outward
    return whole / count - inside / size - rest / (count - size)


@njit(cache=True)
def _best_edge(forest: Forest, start: int, end: int, k: int) -> tuple[int, float]:
    """The first record whose edge is best to cut, and the gain; -1 if none leaves k and k."""
    count, sums = end - start, forest.sums
    whole = sums[forest.order[start], INSIDE]
    most, enough = -np.inf, np.inf
    for _ in range(2):  # how good the best is, then which is the first of those
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
    """Mark the record furthest from all others and its k - 1 nearest; give what that gains."""
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
