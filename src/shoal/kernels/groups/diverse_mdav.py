"""MDAV whose groups satisfy conditions on sensitive columns while they are formed.

Rounds are those of MDAV: a group around the record furthest from the centroid of the remaining
records, and one around the record furthest from that one. If no condition binds, the groups are
exactly those of :class:`~shoal.kernels.groups.mixed_mdav.MixedMdav`. Otherwise:

- A group takes in records beyond its nearest, as in :mod:`~shoal.kernels.groups.diverse_group`.
- If a fair sample of k of the remaining records would miss a condition, groups get as many records
  as a fair sample needs, and no more of any combination of sensitive values than their share.
  Otherwise the first groups would use up rare values, and the last ones would have none.
- After every group, the remaining records must satisfy the conditions as one group. Once they would
  not, all remaining records join nearby groups (:mod:`~shoal.kernels.groups.diverse_merge`).

The table as a whole must satisfy the conditions: in the worst case it is the only group.

References
----------
Domingo-Ferrer and Torra (2005) as for MDAV; Soria-Comas, Domingo-Ferrer, Sánchez and Martínez
(2015), "t-closeness through microaggregation: strict privacy with enhanced utility preservation",
IEEE Transactions on Knowledge and Data Engineering 27(11), for groups that exchange members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, holds, total_shortfall
from shoal.kernels.groups.diverse_group import (
    SIZE,
    Group,
    Sensitive,
    count_in,
    empty_group,
    improve,
    nearest_comers,
    put_in,
    sensitive_of,
)
from shoal.kernels.groups.diverse_merge import settled
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.mixed_centroid import Centroid, centroid_of, leave, set_centroid
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import MixedRecords, squared_euclidean, with_unshared_codes
from shoal.kernels.space.mixed_tree import (
    Tree,
    compare_all,
    forget,
    furthest,
    grow,
    nearest,
    tighten,
)

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_SMALL = 512  # no new tree for so few records
_MORE = 32  # extra records available beyond those that a group needs
_STALE = 0.98  # share of records left since the size was found: find it again
_PHASES = 4  # phases of a fair sample: which records of a value it meets
_LEFT, _GROUPS, _FAIR, _MEASURED, _STUCK = range(5)


class _Search(NamedTuple):
    """What groups are searched in, the group being formed, and the groups so far."""

    tree: Tree
    records: MixedRecords
    centroid: Centroid  # of the records that are left
    conditions: Conditions
    sensitive: Sensitive
    group: Group
    counts: Integers  # of the records that are left, by sensitive column and code
    profiles: Integers  # of the records that are left, by profile
    near: Floats  # room for rows
    gaps: Floats  # and for their distances
    labels: Labels
    state: Integers


class DiverseMdav:
    """MDAV with groups of at least k records that satisfy conditions; so must the whole table.

    ``space`` has points with Euclidean distance or records of mixed type, ``codes`` the sensitive
    values by column and record.
    """

    def __init__(
        self,
        space: Floats | MixedRecords,
        k: int,
        conditions: Conditions,
        codes: npt.NDArray[np.integer[Any]],
    ) -> None:
        records = space if isinstance(space, MixedRecords) else squared_euclidean(space)
        records = with_unshared_codes(records)
        rows = records.values.shape[1]
        self.labels: Labels = np.full(rows, -1, np.int32)
        sensitive = sensitive_of(codes)
        group = empty_group(sensitive, conditions)
        self._search = _Search(
            tree=grow(records, np.arange(rows)),
            records=records,
            centroid=centroid_of(records),
            conditions=conditions._replace(smallest=max(k, conditions.smallest)),
            sensitive=sensitive,
            group=group,
            counts=np.zeros_like(group.counts),
            profiles=np.bincount(sensitive.profiles),
            near=np.empty(rows),
            gaps=np.empty(rows),
            labels=self.labels,
            state=np.array([rows, 0, k, 0, 0]),
        )
        _count_all(self._search.counts, sensitive.codes)
        self._k = k
        self._stop = _half(rows)

    def advance(self) -> int:
        """Form groups for a fraction of a second; return how many records have one."""
        state = self._search.state
        self._find_fair_size()
        if state[_LEFT] >= 2 * state[_FAIR]:
            if state[_LEFT] <= self._stop:
                rows = np.flatnonzero(self.labels < 0)
                self._search = self._search._replace(tree=grow(self._search.records, rows))
                self._stop = _half(len(rows))
            _form_groups(self._search, self._stop, self._k)
            self._find_fair_size()
        if state[_STUCK]:
            asked = self._search.conditions, self._search.sensitive
            self.labels = settled(self._search.records, self.labels, *asked)
            state[_LEFT] = 0
        elif 0 < state[_LEFT] < 2 * state[_FAIR]:
            self.labels[self.labels < 0] = state[_GROUPS]
            state[_LEFT] = 0
        return len(self.labels) - int(state[_LEFT])

    def _find_fair_size(self) -> None:
        search = self._search
        _find_fair_size(search.conditions, search.counts, search.state, self._k)


def _half(rows: int) -> int:
    """With how many remaining records a tree of so many is grown again."""
    return rows // 2 if rows > _SMALL else 0


@njit(cache=True)
def _count_all(counts: Integers, codes: Any) -> None:
    for row in range(codes.shape[1]):
        count_in(counts, codes, row, 1)


@njit(cache=True)
def _form_groups(search: _Search, stop: int, k: int) -> None:
    conditions, counts, state = search.conditions, search.counts, search.state
    met = 0
    while state[_STUCK] == 0 and state[_LEFT] > stop and met < _STEP:
        _find_fair_size(conditions, counts, state, k)
        if state[_LEFT] < 2 * state[_FAIR]:
            return
        set_centroid(search.tree.query, search.centroid)
        for _ in range(2 if state[_LEFT] >= 3 * state[_FAIR] else 1):
            if state[_STUCK] == 1 or state[_LEFT] < 2 * state[_FAIR]:
                break
            # The query is first the centroid, then the seed of the first group.
            seed, visits = furthest(search.tree, search.records.measure)
            met += visits + _gather(search, seed, k)
            _close(search)
            if state[_LEFT] > 0 and not holds(conditions, state[_LEFT], state[_LEFT], counts):
                state[_STUCK] = 1


@njit(cache=True, forceinline=True)
def _gather(search: _Search, seed: int, k: int) -> int:
    """Form a valid group around a seed, which becomes the query; return the cost."""
    tree, records, conditions = search.tree, search.records, search.conditions
    sensitive, group, near, gaps = search.sensitive, search.group, search.near, search.gaps
    fair, left = search.state[_FAIR], search.state[_LEFT]
    set_query(tree.query, records, seed)
    wanted = k - 1 if fair == k else min(left - 1, 2 * fair + _MORE)
    met = nearest(tree, records.measure, seed, gaps[:wanted], near[:wanted])
    rows = _by_distance(near, gaps, wanted)
    put_in(group, sensitive, seed, 0.0)
    _fill(search, rows, k)
    size = group.state[SIZE]
    short = total_shortfall(conditions, size, size, group.counts)
    if short > 0.0 and wanted < min(left - 1, 2 * fair + _MORE):
        wanted = min(left - 1, 2 * fair + _MORE)
        met += nearest(tree, records.measure, seed, gaps[:wanted], near[:wanted])
        rows = _by_distance(near, gaps, wanted)
    everything = False
    while short > 0.0:
        comers = nearest_comers(group, sensitive, rows, gaps[:wanted], not everything)
        if not improve(conditions, sensitive, group, comers, everything):
            if everything:
                break
            everything = True  # the nearest do not help: examine all remaining records
            rows, wanted, gaps[:] = rows[:0], len(gaps), np.inf
            compare_all(tree, records.measure, gaps)
            gaps[seed] = np.inf
        met += len(gaps) // WIDTH if everything else 0
        size = group.state[SIZE]
        short = total_shortfall(conditions, size, size, group.counts)
    return met


@njit(cache=True, forceinline=True)
def _fill(search: _Search, rows: Integers, k: int) -> None:
    """Take in the nearest: k, or a fair size in which no profile exceeds its share."""
    group, sensitive, gaps = search.group, search.sensitive, search.gaps
    fair, left = search.state[_FAIR], search.state[_LEFT]
    for place in range(len(rows)):
        profile = sensitive.profiles[rows[place]]
        share = -(-fair * search.profiles[profile] // left)
        if fair == k or group.taken[profile] < share:
            put_in(group, sensitive, rows[place], gaps[place])
            if group.state[SIZE] == fair:
                return
    for place in range(len(rows)):
        if group.state[SIZE] >= k:
            return
        if not group.inside[rows[place]]:
            put_in(group, sensitive, rows[place], gaps[place])


@njit(cache=True)
def _by_distance(near: Floats, gaps: Floats, count: int) -> Integers:
    """The found rows, nearest first, then lowest first; sorts the distances too."""
    by_row = np.argsort(near[:count])
    order = by_row[np.argsort(gaps[:count][by_row], kind="mergesort")]
    rows = near[:count][order].astype(np.int64)
    gaps[:count] = gaps[:count][order]
    return rows


@njit(cache=True, forceinline=True)
def _close(search: _Search) -> None:
    """Number the group, and remove its members from the remaining records."""
    tree, sensitive, group, state = search.tree, search.sensitive, search.group, search.state
    for row in group.members[: group.state[SIZE]]:
        search.labels[row] = state[_GROUPS]
        forget(tree, row)
        leave(search.centroid, search.records, row)
        search.profiles[sensitive.profiles[row]] -= 1
        group.taken[sensitive.profiles[row]] = 0
        group.inside[row] = False
        count_in(search.counts, sensitive.codes, row, -1)
        count_in(group.counts, sensitive.codes, row, -1)
    for row in group.members[: group.state[SIZE]]:
        leaf = tree.places[row] // WIDTH
        if tree.worn[leaf]:
            tighten(tree, leaf)
    state[_LEFT] -= group.state[SIZE]
    state[_GROUPS] += 1
    group.state[SIZE] = 0


@njit(cache=True)
def _find_fair_size(conditions: Conditions, counts: Integers, state: Integers, k: int) -> None:
    """Find the size of groups again after many records have left since it was found."""
    left = state[_LEFT]
    if left == 0 or state[_MEASURED] * _STALE < left <= state[_MEASURED]:
        return
    state[_MEASURED] = left
    low, high = k - 1, k
    sample = np.empty_like(counts)
    while high < left and not _suffices(conditions, counts, left, high, sample):
        low, high = high, 2 * high
    high = min(high, left)
    while high - low > 1:
        middle = (low + high) // 2
        if _suffices(conditions, counts, left, middle, sample):
            high = middle
        else:
            low = middle
    state[_FAIR] = max(high, min(k, left))


@njit(cache=True)
def _suffices(
    conditions: Conditions, counts: Integers, left: int, size: int, sample: Integers
) -> bool:
    """Whether a fair sample of this size satisfies the conditions, wherever it starts."""
    for phase in range(_PHASES):
        for column in range(len(counts)):
            total, before = 0, 0
            for value in range(counts.shape[1]):
                total += counts[column, value]
                upto = int(size * total / left + (phase + 0.5) / _PHASES)
                sample[column, value] = upto - before
                before = upto
        if not holds(conditions, size, size, sample):
            return False
    return True
