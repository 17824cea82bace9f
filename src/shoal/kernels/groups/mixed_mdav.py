"""MDAV on records of mixed type: exactly the groups of the plain algorithm, but not quadratic.

There are two variants. :class:`MixedMdav` forms two groups per round, around the record furthest
from the centroid of the remaining records and around the record furthest from that one
(Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation"). :class:`RandomStartMdav` forms one, around the record furthest from a random one
(Senavirathne and Torra, Algorithm 1). A group is a record and its k - 1 nearest others.

Both work in steps: call ``advance`` until all records have a group. The search uses a tree, or all
records one after the other if that is faster, which a few rounds with the tree determine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.kernels.compile import as_python, njit
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.few import Few
from shoal.kernels.space.mixed_centroid import Centroid, centroid_of, leave, set_centroid
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import MixedRecords, with_unshared_codes
from shoal.kernels.space.mixed_tree import (
    Tree,
    forget,
    furthest,
    grow,
    nearest,
    pack,
    rows_by_leaf,
    scan,
    tighten,
)

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_SMALL = 512  # no new tree for so few records
_TRIAL = 32  # groups that show whether the tree is worthwhile
_DEAR = 2.2  # the cost of a leaf or node in a tree, in leaves read sequentially
_WORN = 8  # full leaves are refilled when one record in so many is gone
_LEFT, _GROUPS, _NEXT = 0, 1, 2


class _Search(NamedTuple):
    """What rounds search for groups in, and the groups so far."""

    tree: Tree
    records: MixedRecords
    labels: Labels
    state: Integers  # records left, groups, and the next start
    gaps: Floats  # room for k - 1 distances
    found: Floats  # and for their rows
    boxes: bool  # whether the tree has boxes


class _Partition:
    """Groups that are formed step by step."""

    _passes: float  # over all records that a group takes without a tree

    def __init__(self, records: MixedRecords, k: int) -> None:
        rows = records.values.shape[1]
        self.labels: Labels = np.full(rows, -1, np.int32)
        self._records, self._k = with_unshared_codes(records), k
        self._state = np.array([rows, 0, 0])
        self._gaps, self._found = np.empty(k - 1), np.empty(k - 1)
        self._tree: Tree | None = None
        self._boxes = True  # whether the tree has boxes
        self._stop = rows

    def advance(self) -> int:
        """Form groups for a fraction of a second; return how many records have one."""
        left = int(self._state[_LEFT])
        if left >= 2 * self._k:
            if self._tree is None or left <= self._stop:
                # Half-empty leaves are slow.
                rows = np.flatnonzero(self.labels < 0)
                self._tree, self._boxes = grow(self._records, rows), True
                self._stop = left // 2 if left > _SMALL else 0
                self._advance_in(self._tree, max(self._stop, left - _TRIAL * self._k))
            else:
                self._advance_in(self._tree, self._stop)
        if 0 < self._state[_LEFT] < 2 * self._k:
            self.labels[self.labels < 0] = self._state[_GROUPS]
            self._state[_LEFT] = 0
            self._tree = None
        return len(self.labels) - int(self._state[_LEFT])

    def _advance_in(self, tree: Tree, stop: int) -> None:
        """Form groups while more records remain; then drop the boxes if they are not worthwhile."""
        before = int(self._state[_GROUPS])
        room = self._gaps, self._found
        search = _Search(tree, self._records, self.labels, self._state, *room, self._boxes)
        met = self._form(search, stop)
        formed, left = int(self._state[_GROUPS]) - before, int(self._state[_LEFT])
        lanes = len(tree.values) * WIDTH
        worn = _SMALL < left <= lanes - lanes // _WORN
        change = not self._pays(met, formed * left) if self._boxes else worn
        if change and left > self._stop:  # otherwise a tree is grown anyway
            self._tree, self._boxes = pack(self._records, rows_by_leaf(tree)), False

    def _pays(self, met: int, passed: int) -> bool:
        """Whether meeting so many leaves and nodes was cheaper than reading so many records."""
        return bool(_DEAR * met <= self._passes * passed / WIDTH)

    def _form(self, search: _Search, stop: int) -> int:
        """Form groups while more records remain; return how many leaves and nodes that met."""
        raise NotImplementedError


class MixedMdav(_Partition):
    """MDAV with two groups per round while 3k records remain; the last have k to 2k - 1."""

    _passes = 1.5  # one for each group, and one to the centroid for two of them

    def __init__(self, records: MixedRecords, k: int) -> None:
        super().__init__(records, k)
        self._centroid = centroid_of(records)

    def _form(self, search: _Search, stop: int) -> int:
        return _two_per_round(search, self._centroid, stop)


class RandomStartMdav(_Partition):
    """MDAV with one group per round, around the record furthest from a random one.

    The random one is the next remaining row of ``permutation``, which restarts at its end.
    """

    _passes = 2.0

    def __init__(self, records: MixedRecords, k: int, permutation: Integers) -> None:
        super().__init__(records, k)
        self._permutation = permutation

    def _form(self, search: _Search, stop: int) -> int:
        return _one_per_round(search, self._permutation, stop)


def mdav_of_few(records: MixedRecords, k: int) -> Labels:
    """The groups of :class:`MixedMdav`, with numpy, for too few records to compile for."""
    few, centroid = Few(records), centroid_of(records)
    left, groups = np.arange(records.values.shape[1]), 0
    labels: Labels = np.full(len(left), -1, np.int32)
    while len(left) >= 2 * k:
        as_python(set_centroid)(few.query, centroid)
        for _ in range(2 if len(left) >= 3 * k else 1):
            # The query is first the centroid, then the seed of the first group.
            seed = few.distances(left).argmax()
            few.ask(left[seed])
            gaps = few.distances(left)
            gaps[seed] = -1.0
            members = np.argsort(gaps, kind="stable")[:k]
            for row in left[members]:
                as_python(leave)(centroid, records, row)
            labels[left[members]] = groups
            left, groups = np.delete(left, members), groups + 1
    labels[left] = groups
    return labels


@njit(cache=True)
def _one_per_round(search: _Search, permutation: Integers, stop: int) -> int:
    tree, records, labels, state = search.tree, search.records, search.labels, search.state
    k, met = len(search.gaps) + 1, 0
    while state[_LEFT] >= 2 * k and state[_LEFT] > stop and met < _STEP:
        while labels[permutation[state[_NEXT]]] >= 0:
            state[_NEXT] = (state[_NEXT] + 1) % len(permutation)
        start = permutation[state[_NEXT]]
        state[_NEXT] = (state[_NEXT] + 1) % len(permutation)
        set_query(tree.query, records, start)
        seed, visits = _furthest(search)
        met += visits
        met += _form_group(search, seed, False)[1]
    return met


@njit(cache=True)
def _two_per_round(search: _Search, centroid: Centroid, stop: int) -> int:
    records, labels, state, found = search.records, search.labels, search.state, search.found
    k, met = len(found) + 1, 0
    while state[_LEFT] >= 2 * k and state[_LEFT] > stop and met < _STEP:
        groups = 2 if state[_LEFT] >= 3 * k else 1
        set_centroid(search.tree.query, centroid)
        seed = -1
        for turn in range(groups):
            # The query is first the centroid, then the seed of the first group. The pass that
            # formed that group knows the furthest record, unless it became a member.
            if seed < 0 or labels[seed] >= 0:
                seed, visits = _furthest(search)
                met += visits
            leaver = seed
            seed, visits = _form_group(search, seed, not search.boxes and turn + 1 < groups)
            met += visits
            leave(centroid, records, leaver)
            for i in range(len(found)):
                leave(centroid, records, int(found[i]))
    return met


@njit(cache=True)
def _furthest(search: _Search) -> tuple[int, int]:
    """The row that is furthest from the query, and how many leaves and nodes that met."""
    tree, measure, nothing = search.tree, search.records.measure, search.gaps[:0]
    if search.boxes:
        row, met = furthest(tree, measure)
        return row, met
    anywhere, nobody, wanted = np.int64(0), np.int64(-1), np.bool_(True)
    return scan(tree, measure, anywhere, nobody, nothing, nothing, wanted), len(tree.values)


@njit(cache=True)
def _form_group(search: _Search, seed: int, want_furthest: bool) -> tuple[int, int]:
    """Make a group from a seed, which becomes the query, and its nearest others.

    Returns the record furthest from it if wanted (boxes do not know it), and the number met.
    """
    tree, records, labels, state = search.tree, search.records, search.labels, search.state
    gaps, found = search.gaps, search.found
    set_query(tree.query, records, seed)
    beyond, leaf = -1, tree.places[seed] // WIDTH
    if search.boxes:
        met = nearest(tree, records.measure, seed, gaps, found)
    else:
        met = len(tree.values)
        beyond = scan(tree, records.measure, leaf, seed, gaps, found, want_furthest)
    labels[seed] = state[_GROUPS]
    forget(tree, seed)
    for i in range(len(found)):
        labels[int(found[i])] = state[_GROUPS]
        forget(tree, int(found[i]))
    if search.boxes:
        tighten(tree, leaf)
        for i in range(len(found)):
            leaf = tree.places[int(found[i])] // WIDTH
            if tree.worn[leaf]:
                tighten(tree, leaf)
    state[_LEFT] -= len(found) + 1
    state[_GROUPS] += 1
    return beyond, met
