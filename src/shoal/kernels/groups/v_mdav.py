"""V-MDAV: groups of k to 2 k - 1, as large as the records suggest.

Solanas and Martínez-Ballesté (2006), "V-MDAV: a multivariate microaggregation with variable group
size". A group is the free record furthest from the centroid of all and its k - 1 nearest. It then
takes in the free record that is nearest to any member, as long as its dissimilarity to that member
is less than gamma times its dissimilarity to the nearest other free record. When fewer than k
records remain, they go to the groups with the nearest centers; a group may then have 2 k records or
more. The paper recommends a gamma of 0.2 for scattered and 1.1 for clustered records.

Where the paper leaves a choice: ties go to the lowest row, or group; the last free record, which
has no nearest other, joins a group that may still grow (gamma > 0); left-over records use the
centers that the groups had before any of them joined. With squared Euclidean distance, gamma
must be squared too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.kernels.compile import njit
from shoal.kernels.conditions import only_size
from shoal.kernels.groups.diverse_group import sensitive_of
from shoal.kernels.groups.diverse_merge import settled
from shoal.kernels.groups.univariate import stable_argsort
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.mixed_centroid import centroid_of, set_centroid
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import MixedRecords, with_unshared_codes
from shoal.kernels.space.mixed_tree import Tree, compare_all, forget, grow, nearest, tighten

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_SMALL = 512  # no new tree for so few records
_LEFT, _GROUPS, _NEXT = 0, 1, 2


class VMdav:
    """V-MDAV in portions; call ``advance`` until all records have a group.

    ``gamma`` sets how readily a group accepts further records; 0 gives groups of exactly k.
    """

    def __init__(self, records: MixedRecords, k: int, gamma: float) -> None:
        rows = records.values.shape[1]
        self.labels: Labels = np.full(rows, -1, np.int32)
        records = with_unshared_codes(records)
        self._records, self._k, self._gamma = records, k, float(gamma)
        self._state = np.array([rows, 0, 0])
        self._tree = grow(records, np.arange(rows))
        self._stop = rows // 2
        away = np.empty(rows)
        set_centroid(self._tree.query, centroid_of(records))
        compare_all(self._tree, records.measure, away)
        self._outermost = stable_argsort(-away)

    def advance(self) -> int:
        """Form groups for a fraction of a second; return how many records have one."""
        if self._k <= self._state[_LEFT] <= self._stop:
            rows = np.flatnonzero(self.labels < 0)
            self._tree = grow(self._records, rows)
            self._stop = len(rows) // 2 if len(rows) > _SMALL else 0
        search = _Search(self._tree, self._records, self._k, self._gamma, self.labels, self._state)
        _form_groups(search, self._outermost, self._stop)
        if 0 < self._state[_LEFT] < self._k:
            nothing = sensitive_of(np.empty((0, len(self.labels)), np.int32))
            self.labels = settled(self._records, self.labels, only_size(self._k), nothing)
            self._state[_LEFT] = 0
        return len(self.labels) - int(self._state[_LEFT])


class _Search(NamedTuple):
    """What groups are searched in, and the groups so far."""

    tree: Tree
    records: MixedRecords
    k: int
    gamma: float
    labels: Labels
    state: Integers  # remaining records, groups, and the next of the outermost


@njit(cache=True)
def _form_groups(search: _Search, outermost: Labels, stop: int) -> None:
    k, labels, state = search.k, search.labels, search.state
    gaps, found = np.empty(2 * k), np.empty(2 * k)
    members = np.empty(2 * k, np.int64)
    met = 0
    while state[_LEFT] >= k and state[_LEFT] > stop and met < _STEP:
        while labels[outermost[state[_NEXT]]] >= 0:
            state[_NEXT] += 1
        members[0] = outermost[state[_NEXT]]
        met += _nearest_to(search, members[0], members[0], gaps[: k - 1], found[: k - 1])
        for place in range(1, k):
            members[place] = int(found[place - 1])
        for row in members[:k]:
            _take(search, row)
        met += _extend(search, members, gaps, found)
        state[_GROUPS] += 1


@njit(cache=True)
def _nearest_to(search: _Search, row: int, but: int, gaps: Floats, found: Floats) -> int:
    tree, records = search.tree, search.records
    set_query(tree.query, records, row)
    return nearest(tree, records.measure, but, gaps, found)


@njit(cache=True)
def _take(search: _Search, row: int) -> None:
    """Put a record into the present group."""
    tree, state = search.tree, search.state
    search.labels[row] = state[_GROUPS]
    forget(tree, row)
    tighten(tree, tree.places[row] // WIDTH)
    state[_LEFT] -= 1


@njit(cache=True)
def _extend(search: _Search, members: Integers, gaps: Floats, found: Floats) -> int:
    """Add free records to the k members while similar enough; return how many nodes that met."""
    gap, row, met = np.empty(1), np.empty(1), 0
    size, largest, state = search.k, 2 * search.k - 1, search.state
    if search.gamma == 0.0 or size == largest or state[_LEFT] == 0:
        return met
    # The nearest free record of each member, kept until that record is taken.
    for place in range(size):
        met += _nearest_to(search, members[place], -1, gap, row)
        gaps[place], found[place] = gap[0], row[0]
    while True:
        best = 0
        for place in range(1, size):
            if gaps[place] < gaps[best] or (
                gaps[place] == gaps[best] and found[place] < found[best]
            ):
                best = place
        candidate, inside = int(found[best]), gaps[best]
        if state[_LEFT] > 1:
            met += _nearest_to(search, candidate, candidate, gap, row)
            if not inside < search.gamma * gap[0]:
                return met
        _take(search, candidate)
        members[size], gaps[size], found[size] = candidate, gap[0], row[0]
        size += 1
        if state[_LEFT] == 0 or size == largest:
            return met
        for place in range(size):
            if int(found[place]) == candidate:
                met += _nearest_to(search, members[place], -1, gap, row)
                gaps[place], found[place] = gap[0], row[0]
