"""MDAV on records of mixed type, exactly the groups of the plain algorithm but not quadratic.

Two variants. :class:`MixedMdav` forms two groups per round, around the record furthest from the
centroid of what is left and around the record furthest from that one (Domingo-Ferrer and Torra
2005, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation").
:class:`RandomStartMdav` forms one, around the record furthest from a random one (Senavirathne and
Torra, Algorithm 1). A group is a record and its k - 1 nearest others.

Both work in steps: call ``advance`` until all records have a group.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels._compile import njit
from shoal.kernels._lanes import WIDTH
from shoal.kernels._mixed_centroid import Centroid, centroid_of, leave, set_centroid
from shoal.kernels._mixed_distance import Floats, Integers, set_query
from shoal.kernels._mixed_records import MixedRecords, with_lonely_codes
from shoal.kernels._mixed_tree import Tree, forget, furthest, grow, nearest, tighten

Labels = npt.NDArray[np.int32]

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms
_SMALL = 512  # records for which a tree is not grown anew
_LEFT, _GROUPS, _NEXT = 0, 1, 2


class _Partition:
    """Groups that are formed step by step."""

    def __init__(self, records: MixedRecords, k: int) -> None:
        rows = records.values.shape[1]
        self.labels: Labels = np.full(rows, -1, np.int32)
        self._records, self._k = with_lonely_codes(records), k
        self._state = np.array([rows, 0, 0])
        self._gaps, self._found = np.empty(k - 1), np.empty(k - 1)
        self._tree: Tree | None = None
        self._stop = rows

    def advance(self) -> int:
        """Form groups for a fraction of a second; give how many records have one."""
        if self._state[_LEFT] >= 2 * self._k:
            if self._tree is None or self._state[_LEFT] <= self._stop:
                # Leaves that have become half empty are slow.
                rows = np.flatnonzero(self.labels < 0)
                self._tree = grow(self._records, rows)
                self._stop = len(rows) // 2 if len(rows) > _SMALL else 0
            self._form(self._tree)
        if 0 < self._state[_LEFT] < 2 * self._k:
            self.labels[self.labels < 0] = self._state[_GROUPS]
            self._state[_LEFT] = 0
            self._tree = None
        return len(self.labels) - int(self._state[_LEFT])

    def _form(self, tree: Tree) -> None:
        raise NotImplementedError


class MixedMdav(_Partition):
    """MDAV with two groups per round, while 3k records are left; the last have k to 2k - 1.

    Parameters
    ----------
    records : MixedRecords
        The records, at least k.
    k : int
        The least size of a group, at least 1.

    Attributes
    ----------
    labels : array of int32
        The group of each record, numbered from 0 in the order in which groups were formed; -1
        until the record has one.

    Examples
    --------
    >>> from shoal.kernels._mixed_records import gower
    >>> numeric = np.array([[1.0], [2], [3], [10], [11], [12], [20], [21], [22]])
    >>> mdav = MixedMdav(gower(numeric, np.zeros((9, 0), int)), k=3)
    >>> while mdav.advance() < 9:
    ...     pass
    >>> mdav.labels.tolist()
    [1, 1, 1, 2, 2, 2, 0, 0, 0]
    """

    def __init__(self, records: MixedRecords, k: int) -> None:
        super().__init__(records, k)
        self._centroid = centroid_of(records)

    def _form(self, tree: Tree) -> None:
        _two_per_round(
            tree,
            self._records,
            self._centroid,
            self.labels,
            self._state,
            self._gaps,
            self._found,
            self._stop,
        )


class RandomStartMdav(_Partition):
    """MDAV with one group per round around the record furthest from a random one.

    Parameters
    ----------
    records : MixedRecords
        The records, at least k.
    k : int
        The least size of a group, at least 1.
    permutation : array of int
        The rows in random order. Each round takes the next one that is left, from the first again
        after the last.

    Attributes
    ----------
    labels : array of int32
        The group of each record, numbered from 0 in the order in which groups were formed; -1
        until the record has one.

    Examples
    --------
    >>> from shoal.kernels._mixed_records import gower
    >>> codes = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> mdav = RandomStartMdav(gower(np.zeros((4, 0)), codes), 2, np.array([3, 1, 0, 2]))
    >>> mdav.advance()
    4
    >>> mdav.labels.tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, records: MixedRecords, k: int, permutation: Integers) -> None:
        super().__init__(records, k)
        self._permutation = permutation

    def _form(self, tree: Tree) -> None:
        _one_per_round(
            tree,
            self._records,
            self._permutation,
            self.labels,
            self._state,
            self._gaps,
            self._found,
            self._stop,
        )


@njit(cache=True)
def _one_per_round(
    tree: Tree,
    records: MixedRecords,
    permutation: Integers,
    labels: Labels,
    state: Integers,
    gaps: Floats,
    found: Floats,
    stop: int,
) -> None:
    k, met = len(gaps) + 1, 0
    while state[_LEFT] >= 2 * k and state[_LEFT] > stop and met < _STEP:
        while labels[permutation[state[_NEXT]]] >= 0:
            state[_NEXT] = (state[_NEXT] + 1) % len(permutation)
        start = permutation[state[_NEXT]]
        state[_NEXT] = (state[_NEXT] + 1) % len(permutation)
        set_query(tree.query, records.measure, records.values, records.codes, start)
        seed, visits = furthest(tree, records.measure)
        met += visits + _form_group(tree, records, labels, state, gaps, found, seed)


@njit(cache=True)
def _two_per_round(
    tree: Tree,
    records: MixedRecords,
    centroid: Centroid,
    labels: Labels,
    state: Integers,
    gaps: Floats,
    found: Floats,
    stop: int,
) -> None:
    k, met = len(gaps) + 1, 0
    while state[_LEFT] >= 2 * k and state[_LEFT] > stop and met < _STEP:
        groups = 2 if state[_LEFT] >= 3 * k else 1
        set_centroid(tree.query, centroid)
        for _ in range(groups):
            # The query is the centroid first, and then the seed of the first group.
            seed, visits = furthest(tree, records.measure)
            met += visits + _form_group(tree, records, labels, state, gaps, found, seed)
            leave(centroid, records, seed)
            for i in range(len(found)):
                leave(centroid, records, int(found[i]))


@njit(cache=True)
def _form_group(
    tree: Tree,
    records: MixedRecords,
    labels: Labels,
    state: Integers,
    gaps: Floats,
    found: Floats,
    seed: int,
) -> int:
    """Make a seed, which becomes the query, and its nearest others a group."""
    set_query(tree.query, records.measure, records.values, records.codes, seed)
    visits = nearest(tree, records.measure, seed, gaps, found)
    labels[seed] = state[_GROUPS]
    forget(tree, seed)
    for i in range(len(found)):
        labels[int(found[i])] = state[_GROUPS]
        forget(tree, int(found[i]))
    tighten(tree, tree.places[seed] // WIDTH)
    for i in range(len(found)):
        leaf = tree.places[int(found[i])] // WIDTH
        if tree.worn[leaf]:
            tighten(tree, leaf)
    state[_LEFT] -= len(found) + 1
    state[_GROUPS] += 1
    return visits
