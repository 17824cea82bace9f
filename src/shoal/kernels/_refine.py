"""Local search: any partition into groups of at least k made better, and never worse.

First a descent: records move, swap, groups split and dissolve, as long as that lowers the
within-group sum of squares. Then an iterated local search: the groups around a random record are
pooled and formed anew around random members, the descent settles their neighbourhood, and the
result is kept if it is better than what was there before. Both can be stopped at any time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels._compile import njit
from shoal.kernels._exchange import (
    AFTER,
    CHANGE,
    FIRST,
    FREE,
    HEAD,
    LABEL,
    LEAST,
    LOGGED,
    POOL,
    QUEUE,
    QUEUED,
    SIZE,
    STAMP,
    TICK,
    UNUSED,
    WAITING,
    Floats,
    Groups,
    Integers,
    Rows,
    attach,
    create,
    descend,
    detach,
    dissolve,
    distance,
    enqueue,
    note,
    settle,
    take_back,
)
from shoal.kernels._neighbours import Tree, build, nearest

Words = npt.NDArray[np.uint64]

_WORK = 3_000_000  # distances, computed in about 50 ms
_SEARCHED = 3_000  # records whose neighbours are found in about 50 ms
_FEW, _MANY = 16, 64  # neighbours; more than a group has, but no more than memory allows
_POOLED = 5  # groups that are formed anew together, at most; two at least
_SMALLEST_GAIN = 1e-12  # times the mean squared distance of a record from its group's centre

WORDS_PER_KICK = 8
"""How many random words :meth:`Refinement.perturb` uses up for one attempt."""


class Refinement:
    """A partition that gets better with every call.

    Parameters
    ----------
    points : array of shape (records, columns)
        Distances are Euclidean on these columns as they are.
    labels : array of int
        Any partition into groups of at least k, numbered from 0.
    k : int

    Examples
    --------
    >>> points = np.array([[0.0], [10.0], [1.0], [11.0], [2.0], [12.0]])
    >>> refinement = Refinement(points, np.array([0, 0, 0, 1, 1, 1]), 3)
    >>> while refinement.advance() < 6:
    ...     pass
    >>> refinement.labels.tolist(), refinement.sum_of_squares()
    ([0, 1, 0, 1, 0, 1], 4.0)
    """

    def __init__(self, points: Floats, labels: npt.NDArray[np.integer], k: int) -> None:
        self._k = k
        self._groups = _groups(points, k)
        self._tree: Tree | None = build(self._groups.points)
        self._leaf = 0
        _start(self._groups, self._tree.rows, np.asarray(labels, np.int32))

    def advance(self) -> int:
        """About 50 ms of work; give how far the descent is, in records: all at its end.

        Neighbours are searched first, which is half of the way.
        """
        count = len(self._groups.rows)
        if self._tree is None:
            descend(self._groups, self._k, _WORK, True)
            return (2 * count - int(self._groups.counts[WAITING])) // 2
        leaves = self._tree.rows
        end = min(len(leaves), self._leaf + 1 + _SEARCHED // leaves.shape[1])
        _search(self._groups, self._tree, self._leaf, end)
        self._leaf = end
        searched = count * end // len(leaves) // 2
        if end == len(leaves):
            self._tree = None
        return searched

    def perturb(self, words: npt.NDArray[np.uint64]) -> int:
        """One attempt for every eight random words; give how many of them gained something.

        It is for after the descent. An attempt takes about 30 µs where k is 3 and some
        milliseconds where k is 100.
        """
        return int(_perturb(self._groups, self._k, words))

    @property
    def labels(self) -> Rows:
        """The group of each record, numbered by their first records."""
        return by_first_record(self._groups.rows[:, LABEL], len(self._groups.heads))

    def sum_of_squares(self) -> float:
        """The within-group sum of squares, each group's computed from its members."""
        return float(self._groups.squares.sum())


def _groups(points: Floats, k: int) -> Groups:
    """Arrays for n records in at most n // k groups; no record is in a group yet."""
    count, columns = points.shape
    most = count // k
    near = min(count - 1, max(_FEW, min(3 * k // 2, _MANY)))
    groups = Groups(
        points=np.subtract(points, points.mean(axis=0), dtype=np.float64, order="C"),
        near=np.empty((count, near), np.int32),
        rows=np.zeros((count, 6), np.int64),
        own=np.zeros(count),
        heads=np.zeros((most, 4), np.int64),
        centres=np.zeros((most, columns)),
        squares=np.zeros(most),
        log=np.empty((2 * count + 2 * k + 64, 2), np.int64),
        counts=np.zeros(6, np.int64),
        sums=np.zeros(2),
    )
    groups.heads[:, HEAD] = -1
    return groups


@njit(cache=True)
def _start(groups: Groups, leaves: Rows, labels: Rows) -> None:
    """Form the groups and queue all records, neighbours close to each other."""
    counts = groups.counts
    for row in range(len(labels) - 1, -1, -1):
        attach(groups, row, np.int64(labels[row]))
    for group in range(len(groups.heads) - 1, -1, -1):
        if groups.heads[group, SIZE] == 0:
            groups.heads[counts[UNUSED], FREE] = group
            counts[UNUSED] += 1
        else:
            settle(groups, group)
    groups.sums[LEAST] = _SMALLEST_GAIN * groups.squares.sum() / len(labels)
    for leaf in range(len(leaves)):
        for row in leaves[leaf]:
            if row >= 0:
                groups.rows[counts[WAITING], QUEUE] = row
                groups.rows[row, QUEUED] = 1
                counts[WAITING] += 1


@njit(cache=True)
def _search(groups: Groups, tree: Tree, start: int, end: int) -> None:
    """Find the neighbours of the records of some leaves."""
    distances = np.empty(groups.near.shape[1])
    for leaf in range(start, end):
        for row in tree.rows[leaf]:
            if row >= 0:
                nearest(tree, groups.points[row], np.int64(row), distances, groups.near[row])


@njit(cache=True)
def _perturb(groups: Groups, k: int, words: Words) -> int:
    """Kick and descend, once for every eight words; take back what gains nothing."""
    counts, rows = groups.counts, groups.rows
    kept = 0
    for first in range(0, len(words) - WORDS_PER_KICK + 1, WORDS_PER_KICK):
        counts[LOGGED] = 0
        groups.sums[CHANGE] = 0.0
        _kick(groups, k, words[first : first + WORDS_PER_KICK])
        descend(groups, k, 2**62, False)
        if groups.sums[CHANGE] < -groups.sums[LEAST]:
            kept += 1
            continue
        take_back(groups, np.int64(0))
        while counts[WAITING] > 0:  # only where the log was full
            counts[WAITING] -= 1
            rows[rows[(counts[FIRST] + counts[WAITING]) % len(rows), QUEUE], QUEUED] = 0
    return kept


@njit(cache=True)
def _kick(groups: Groups, k: int, words: Words) -> None:
    """Pool the groups around a record and form them anew around random members."""
    rows, heads, counts = groups.rows, groups.heads, groups.counts
    row = np.int64(words[0] % np.uint64(len(rows)))
    wanted = 2 + np.int64(words[1] % np.uint64(_POOLED - 1))
    around = np.empty(_POOLED, np.int64)
    around[0] = rows[row, LABEL]
    found, left = 1, heads[around[0], SIZE]
    counts[TICK] += 1
    heads[around[0], STAMP] = counts[TICK]
    for neighbour in groups.near[row]:
        group = rows[neighbour, LABEL]
        if heads[group, STAMP] != counts[TICK] and found < wanted:
            heads[group, STAMP] = counts[TICK]
            around[found] = group
            found += 1
            left += heads[group, SIZE]
    if left > 2 * k * found:
        return  # groups of equal records, which are as good as they can be
    _pool(groups, around[:found])
    made = 0
    while left > 0:
        group = around[made] if made < found else create(groups)
        size = k if left >= 2 * k else left
        word = words[2 + made % (WORDS_PER_KICK - 2)] >> np.uint64(made // (WORDS_PER_KICK - 2))
        _form(groups, group, size, left, np.int64(word % np.uint64(left)))
        left -= size
        made += 1
    for place in range(made, found):
        settle(groups, around[place])
        dissolve(groups, around[place])


@njit(cache=True)
def _pool(groups: Groups, around: Integers) -> None:
    """Take all members out of some groups."""
    rows, pooled = groups.rows, 0
    for group in around:
        row = groups.heads[group, HEAD]
        while row >= 0:
            rows[pooled, POOL] = row
            pooled += 1
            note(groups, row, group)
            row = rows[row, AFTER]
    for place in range(pooled):
        detach(groups, rows[place, POOL])


@njit(cache=True)
def _form(groups: Groups, group: int, size: int, left: int, seed: int) -> None:
    """Fill a group from the ``left`` records in the pool: the seed, then always the nearest."""
    points, rows, centre = groups.points, groups.rows, groups.centres[group]
    chosen = seed
    for members in range(1, size + 1):
        row = rows[chosen, POOL]
        left -= 1
        rows[chosen, POOL] = rows[left, POOL]
        attach(groups, row, group)
        for column in range(len(centre)):
            if members == 1:
                centre[column] = points[row, column]
            centre[column] += (points[row, column] - centre[column]) / members
        least = np.inf
        for place in range(left):
            away = distance(points[rows[place, POOL]], centre)
            if away < least:
                chosen, least = place, away
    settle(groups, group)
    enqueue(groups, group)


@njit(cache=True)
def by_first_record(labels: Integers, groups: int) -> Rows:
    number = np.full(groups, -1, np.int32)
    renamed = np.empty(len(labels), np.int32)
    found = 0
    for row in range(len(labels)):
        if number[labels[row]] < 0:
            number[labels[row]] = found
            found += 1
        renamed[row] = number[labels[row]]
    return renamed
