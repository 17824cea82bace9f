"""Local search on records of any type: a partition made better, and never worse.

The search is that of :mod:`.refine`, on what groups of records of mixed type lose
(:mod:`~shoal.kernels.refine.mixed_exchange`); it also keeps conditions that the groups satisfy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Labels, Words
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, only_size
from shoal.kernels.groups.diverse_group import table_shape
from shoal.kernels.refine.group_lists import (
    CHANGE,
    LABEL,
    LEAST,
    LOGGED,
    POOL,
    SIZE,
    WAITING,
    WORDS_PER_KICK,
    empty_lists,
    enqueue,
    let_none_wait,
    neighbours_of_each,
    pool_around,
)
from shoal.kernels.refine.mixed_exchange import (
    MixedGroups,
    all_fit,
    descend,
    join,
    part,
    take_back,
    to_group,
)
from shoal.kernels.refine.refine import LocalSearch
from shoal.kernels.space.mixed_records import MixedRecords, by_record, pair_gap, with_lonely_codes

_WORK = 1_000_000  # pairs, compared in about 50 ms
_SMALLEST_GAIN = 1e-9  # of the mean loss of a record: far above what rounding does to sums

_RESIDUE = 1e-14  # of the largest dissimilarity: what may be left of it in a sum it was taken from


class MixedRefinement(LocalSearch):
    """A partition that gets better with every call.

    Parameters
    ----------
    records : MixedRecords
    labels : array of int
        Any partition into groups that satisfy the conditions, numbered from 0.
    k : int
        The least size of a group.
    conditions : Conditions, optional
        What groups satisfy besides, and go on to satisfy.
    codes : array of shape (sensitive columns, records), optional
        The sensitive values that the conditions are about.

    Examples
    --------
    >>> from shoal.kernels.space.mixed_records import gower
    >>> records = gower(np.array([[0.0], [10], [1], [11], [2], [12]]), np.zeros((6, 0), int))
    >>> refinement = MixedRefinement(records, np.array([0, 0, 0, 1, 1, 1]), 3)
    >>> while refinement.advance() < 6:
    ...     pass
    >>> refinement.labels.tolist(), round(refinement.total_loss(), 6)
    ([0, 1, 0, 1, 0, 1], 0.222222)
    """

    _searched = 2_000

    def __init__(
        self,
        records: MixedRecords,
        labels: npt.NDArray[np.integer[Any]],
        k: int,
        conditions: Conditions | None = None,
        codes: npt.NDArray[np.integer[Any]] | None = None,
    ) -> None:
        conditions = only_size(k) if conditions is None else conditions
        conditions = conditions._replace(smallest=max(k, conditions.smallest))
        sensitive = np.empty((0, len(labels)), np.int32) if codes is None else codes
        groups = _groups(records, conditions, np.ascontiguousarray(sensitive, np.int32))
        super().__init__(groups, with_lonely_codes(records), labels)
        self._settled = 0

    def advance(self) -> int:
        """About 50 ms of work; give how far the descent is, in records: all at its end.

        Neighbours are searched first, which is half of the way.
        """
        groups, count = self._groups, len(self._groups.rows)
        if self._tree is not None:
            return self._list_neighbours(self._tree) // 4
        if self._settled < count:
            self._settled = _settle(groups, self._settled, _WORK)
            return (count + self._settled) // 4
        descend(groups, _WORK, True)
        return (2 * count - int(groups.counts[WAITING])) // 2

    def perturb(self, words: Words) -> int:
        """One attempt for every eight random words; give how many of them gained something.

        It is for after the descent.
        """
        return int(_perturb(self._groups, words))

    def total_loss(self) -> float:
        """The sum over groups of the dissimilarities of their pairs over their size."""
        sizes = np.maximum(self._groups.heads[:, SIZE], 1)
        return float((self._groups.totals / sizes).sum())


def _groups(records: MixedRecords, conditions: Conditions, sensitive: Labels) -> MixedGroups:
    """Arrays for n records in at most n // k groups; no record is in a group yet."""
    count, k = records.values.shape[1], conditions.smallest
    return MixedGroups(
        **empty_lists(count, k)._asdict(),
        records=by_record(records),
        conditions=conditions,
        sensitive=sensitive,
        near=np.empty((count, neighbours_of_each(count, k)), np.int64),
        own=np.zeros(count),
        totals=np.zeros(count // k),
        tally=np.zeros(table_shape(conditions), np.int64),
        gaps=np.empty(count),
    )


@njit(cache=True)
def _settle(groups: MixedGroups, first: int, work: int) -> int:
    """Add up the dissimilarities of records to their groups, from one on; give where it ends."""
    row = first
    while row < len(groups.own) and work > 0:
        group = groups.rows[row, LABEL]
        groups.own[row] = to_group(groups, row, group, row)
        groups.totals[group] += groups.own[row] / 2
        work -= groups.heads[group, SIZE]
        row += 1
    if row == len(groups.own):
        total = 0.0
        for group in range(len(groups.heads)):
            total += groups.totals[group] / max(groups.heads[group, SIZE], 1)
        largest = groups.records.measure.largest * len(groups.records.measure.presence)
        groups.sums[LEAST] = max(_SMALLEST_GAIN * total / row, _RESIDUE * largest)
    return row


@njit(cache=True)
def _perturb(groups: MixedGroups, words: Words) -> int:
    """Kick and descend, once for every eight words; take back what gains nothing."""
    kept = 0
    for first in range(0, len(words) - WORDS_PER_KICK + 1, WORDS_PER_KICK):
        groups.counts[LOGGED] = 0
        groups.sums[CHANGE] = 0.0
        _kick(groups, words[first : first + WORDS_PER_KICK])
        if all_fit(groups, 0):
            descend(groups, 2**62, False)
        if groups.sums[CHANGE] < -groups.sums[LEAST] and all_fit(groups, 0):
            kept += 1
        else:
            take_back(groups, np.int64(0), 0.0)
        let_none_wait(groups)  # some do where nothing fitted, or the log was full
    return kept


@njit(cache=True)
def _kick(groups: MixedGroups, words: Words) -> None:
    """Pool the groups around a record and form them anew around random members."""
    formed = pool_around(groups, groups.near, groups.conditions.smallest, words)
    left = formed[:, 1].sum()
    for place in range(left):
        part(groups, groups.rows[place, POOL])
    for group, size, seed in formed:
        _form(groups, group, size, left, seed)
        left -= size


@njit(cache=True)
def _form(groups: MixedGroups, group: int, size: int, left: int, seed: int) -> None:
    """Fill a group from the ``left`` records in the pool: the seed, and the nearest to it."""
    rows, gaps = groups.rows, groups.gaps
    first = rows[seed, POOL]
    for place in range(left):
        row = rows[place, POOL]
        gaps[row] = pair_gap(groups.records, first, row) if row != first else -1.0
    for _ in range(size):
        chosen = 0
        for place in range(1, left):
            if gaps[rows[place, POOL]] < gaps[rows[chosen, POOL]]:
                chosen = place
        row = rows[chosen, POOL]
        left -= 1
        rows[chosen, POOL] = rows[left, POOL]
        join(groups, row, group)
    enqueue(groups, group)
