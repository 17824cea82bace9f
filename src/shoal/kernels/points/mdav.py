"""MDAV: groups of k records, exactly those of the plain algorithm, on Euclidean distance.

References
----------
Domingo-Ferrer, J. and Torra, V. (2005). Ordinal, continuous and heterogeneous k-anonymity through
microaggregation. Data Mining and Knowledge Discovery 11, 195-212 (MDAV-generic).
Senavirathne, N. and Torra, V.: one group per round, from a start drawn at random.
"""

from __future__ import annotations

from math import sqrt
from time import perf_counter

import numpy as np

from shoal.kernels.arrays import Floats, Rows
from shoal.kernels.points.lanes import LANES, aligned
from shoal.kernels.points.records import (
    GROUPS,
    LIVE,
    Nearest,
    Room,
    copy_spots,
    free_distances,
    records_on_spots,
    sieve_about,
    write_centroid,
)
from shoal.kernels.points.rounds import GO_ON, LIST, PACK, Search, form_groups
from shoal.kernels.points.search import blocks_of, tree_over
from shoal.kernels.points.shell import shell_about
from shoal.kernels.space.kd_order import kd_order

_SECONDS = 0.05
_TRIAL = 4  # rounds that show whether the tree pays


class Mdav:
    """MDAV in portions of about a twentieth of a second.

    Parameters
    ----------
    points : array of shape (records, columns)
        Finite numbers, as they are to be compared.
    k : int
        The size of a group, from 2 to the number of records; the last has up to 2k - 1.
    starts : array of shape (records,), optional
        A permutation of the rows. With it, each round forms one group, around the record furthest
        from the next record of the permutation that is still free.

    Attributes
    ----------
    labels : array of shape (records,)
        The group of each record, numbered as they were formed; -1 before.
    """

    def __init__(self, points: Floats, k: int, *, starts: Rows | None = None) -> None:
        # Always one kind of array, or numba would compile everything again for another.
        points = within_range(np.require(points, np.float64, ["C", "A", "W"]))
        columns = points.shape[1]
        self._points = points
        self._k = k
        self._starts = np.empty(0, np.int32) if starts is None else starts.astype(np.int32)
        self._records = records_on_spots(points)
        self._room = Room(
            nearest=Nearest(np.empty(k - 1), np.empty(k - 1, np.int32), np.empty(k - 1, np.int32)),
            leader=np.empty(1, np.int32),
            centroid=np.empty(columns),
            query=np.empty(columns, np.float32),
            out=aligned(LANES),
        )
        self._rounds = _TRIAL
        self._use_tree = True
        self._sorted = len(points)
        self._pack()

    @property
    def labels(self) -> Rows:
        """The group of each record."""
        return self._records.labels

    def advance(self) -> int:
        """Form some groups; gives how many records have one, all when it is done."""
        tried = self._use_tree or self._form_groups(_TRIAL, use_tree=True)
        start = perf_counter()
        if tried and self._form_groups(self._rounds, use_tree=self._use_tree):
            pace = _SECONDS / max(perf_counter() - start, 1e-6)
            self._rounds = max(_TRIAL, int(self._rounds * min(max(pace, 0.5), 2.0)))
        return len(self.labels) - int(self._records.counts[LIVE])

    def _form_groups(self, rounds: int, *, use_tree: bool) -> bool:
        """Form groups, then what the search asks for; gives whether it did all the rounds."""
        before = int(self._records.counts[GROUPS])
        self._tree.visited[:] = 0
        search = Search(self._tree, self._blocks, self._shell, self._records, self._room)
        why = form_groups(search, self._points, self._starts, self._k, rounds, use_tree)
        formed = int(self._records.counts[GROUPS]) - before
        if use_tree and formed > 0:
            pays = self._tree_pays(formed)
            if pays != self._use_tree:  # the pace was that of the other search
                self._use_tree, self._rounds = pays, _TRIAL
        if why == LIST:
            # A list that ended before it served for a group was too short.
            self._list(complete=self._listed == self._records.counts[GROUPS])
        elif why == PACK:
            self._pack()
        return why == GO_ON

    def _tree_pays(self, formed: int) -> bool:
        """Whether the tree was faster than passes over all blocks, in nanoseconds measured once."""
        columns = self._points.shape[1]
        blocks, nodes = self._tree.visited
        by_tree = blocks * (25 + 1.1 * columns) + nodes * (25 + 2.5 * columns)
        passes = formed if len(self._starts) == 0 else 2 * formed
        return bool(by_tree < passes * len(self._records.spots) / LANES * (2 + 1.1 * columns))

    def _centroid(self) -> Floats:
        write_centroid(self._records, self._room.centroid)
        return self._room.centroid

    def _list(self, *, complete: bool) -> None:
        """List the outermost records anew."""
        self._listed = int(self._records.counts[GROUPS])
        self._shell = shell_about(self._records, self._centroid(), complete=complete)

    def _pack(self) -> None:
        """Number the spots that have free records anew, and set the search up."""
        records, centroid = self._records, self._centroid()
        radius = sqrt(free_distances(records, centroid).max())
        sieve = sieve_about(centroid, radius)
        live = np.flatnonzero(records.heads >= 0).astype(np.int32)
        copies = copy_spots(records.spots, live, sieve)
        order = np.arange(len(live), dtype=np.int32)
        if self._use_tree or 2 * len(live) <= self._sorted:
            order = kd_order(copies, LANES)
            self._sorted = len(live)
        live = live[order]
        self._records = records._replace(
            spots=records.spots.take(live, axis=0), heads=records.heads[live]
        )
        self._blocks = blocks_of(copies, order, sieve)
        self._tree = tree_over(self._blocks, len(centroid))
        self._list(complete=False)


def mdav(points: Floats, k: int, *, starts: Rows | None = None) -> Rows:
    """The group of each record, all formed at once.

    Examples
    --------
    >>> mdav(np.array([[1.0], [2], [3], [10], [11], [12], [20], [21], [22]]), 3)
    array([1, 1, 1, 2, 2, 2, 0, 0, 0], dtype=int32)
    >>> mdav(np.array([[1.0], [2], [10], [11]]), 2, starts=np.array([1, 0, 3, 2]))
    array([1, 1, 0, 0], dtype=int32)
    """
    search = Mdav(points, k, starts=starts)
    while search.advance() < len(search.labels):
        pass
    return search.labels


def within_range(points: Floats) -> Floats:
    """Scaled by a power of two if squares could leave the range of numbers, else as they are."""
    largest = max(points.max(), -points.min())
    if largest == 0 or 1e-100 < largest < 1e100:
        return points
    return np.ldexp(points, -int(np.frexp(largest)[1]))
