"""Local search: any partition into groups of at least k made better, and never worse.

First a descent: records move, swap, groups split and dissolve, as long as that lowers the
within-group sum of squares. Then an iterated local search: the groups around a random record are
pooled and formed anew around random members, the descent settles their neighbourhood, and the
result is kept if it is better than what was there before. Both can be stopped at any time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Rows, Words
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH
from shoal.kernels.refine.exchange import Groups, descend, distance, settle, take_back
from shoal.kernels.refine.group_lists import (
    CHANGE,
    LABEL,
    LEAST,
    LOGGED,
    POOL,
    SIZE,
    WAITING,
    WORDS_PER_KICK,
    attach,
    by_first_record,
    detach,
    empty_lists,
    enqueue,
    let_none_wait,
    neighbours_of_each,
    pool_around,
    start,
)
from shoal.kernels.space.mixed_records import MixedRecords, squared_euclidean
from shoal.kernels.space.mixed_scan import rows_by_leaf
from shoal.kernels.space.mixed_tree import Tree, grow, list_nearest

_WORK = 3_000_000  # distances, computed in about 50 ms
_SMALLEST_GAIN = 1e-12  # times the mean squared distance of a record from its group's centre


class LocalSearch:
    """A partition that gets better with every call, whatever its groups lose."""

    _searched: int  # records whose neighbours are found in about 50 ms

    def __init__(
        self, groups: Any, records: MixedRecords, labels: npt.NDArray[np.integer[Any]]
    ) -> None:
        self._groups, self._records = groups, records
        self._tree: Tree | None = grow(records, np.arange(len(labels)))
        self._leaf = 0
        start(groups, np.asarray(labels, np.int32), rows_by_leaf(self._tree))

    def _list_neighbours(self, tree: Tree) -> int:
        """About 50 ms of listing neighbours; give how far that is, in records."""
        leaves = len(tree.values)
        end = min(leaves, self._leaf + 1 + self._searched // WIDTH)
        list_nearest(tree, self._records, self._leaf, end, self._groups.near)
        self._leaf = end
        if end == leaves:
            self._tree = None
        return len(self._groups.rows) * end // leaves

    @property
    def labels(self) -> Rows:
        """The group of each record, numbered by their first records."""
        return by_first_record(self._groups.rows[:, LABEL], len(self._groups.heads))


class Refinement(LocalSearch):
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

    _searched = 3_000

    def __init__(self, points: Floats, labels: npt.NDArray[np.integer[Any]], k: int) -> None:
        self._k = k
        groups = _groups(points, k)
        super().__init__(groups, squared_euclidean(groups.points), labels)
        _settle_all(groups)

    def advance(self) -> int:
        """About 50 ms of work; give how far the descent is, in records: all at its end.

        Neighbours are searched first, which is half of the way.
        """
        if self._tree is not None:
            return self._list_neighbours(self._tree) // 2
        descend(self._groups, self._k, _WORK, True)
        return (2 * len(self._groups.rows) - int(self._groups.counts[WAITING])) // 2

    def perturb(self, words: Words) -> int:
        """One attempt for every eight random words; give how many of them gained something.

        It is for after the descent. An attempt takes about 30 µs where k is 3 and some
        milliseconds where k is 100.
        """
        return int(_perturb(self._groups, self._k, words))

    def sum_of_squares(self) -> float:
        """The within-group sum of squares, each group's computed from its members."""
        return float(self._groups.squares.sum())


def _groups(points: Floats, k: int) -> Groups:
    """Arrays for n records in at most n // k groups; no record is in a group yet."""
    count, columns = points.shape
    return Groups(
        **empty_lists(count, k)._asdict(),
        points=np.subtract(points, points.mean(axis=0), dtype=np.float64, order="C"),
        near=np.empty((count, neighbours_of_each(count, k)), np.int32),
        own=np.zeros(count),
        centres=np.zeros((count // k, columns)),
        squares=np.zeros(count // k),
    )


@njit(cache=True)
def _settle_all(groups: Groups) -> None:
    for group in range(len(groups.heads)):
        if groups.heads[group, SIZE] > 0:
            settle(groups, group)
    groups.sums[LEAST] = _SMALLEST_GAIN * groups.squares.sum() / len(groups.rows)


@njit(cache=True)
def _perturb(groups: Groups, k: int, words: Words) -> int:
    """Kick and descend, once for every eight words; take back what gains nothing."""
    kept = 0
    for first in range(0, len(words) - WORDS_PER_KICK + 1, WORDS_PER_KICK):
        groups.counts[LOGGED] = 0
        groups.sums[CHANGE] = 0.0
        _kick(groups, k, words[first : first + WORDS_PER_KICK])
        descend(groups, k, 2**62, False)
        if groups.sums[CHANGE] < -groups.sums[LEAST]:
            kept += 1
            continue
        take_back(groups, np.int64(0))
        let_none_wait(groups)  # some do only where the log was full
    return kept


@njit(cache=True)
def _kick(groups: Groups, k: int, words: Words) -> None:
    """Pool the groups around a record and form them anew around random members."""
    formed = pool_around(groups, groups.near, k, words)
    left = formed[:, 1].sum()
    for place in range(left):
        detach(groups, groups.rows[place, POOL])
    for group, size, seed in formed:
        _form(groups, group, size, left, seed)
        left -= size


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
