"""MDAV with Euclidean distance: groups of k records, exactly those of the plain algorithm.

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
from shoal.kernels.lanes import WIDTH
from shoal.kernels.points.records import (
    GROUPS,
    LIVE,
    TURN,
    Nearest,
    Records,
    Workspace,
    aligned,
    copy_spots,
    free_distances,
    inner,
    keep_sums_sharp,
    kernel,
    records_on_spots,
    sieve_about,
    squared_distance,
    take_first,
    take_nearest,
    take_rest,
    write_centroid,
    write_query,
)
from shoal.kernels.points.search import (
    Search,
    blocks_of,
    furthest,
    is_there,
    is_worn,
    leave,
    remove,
    scan,
    search_tree,
    shell_about,
    shrink,
    tree_over,
)
from shoal.kernels.space.kd_order import kd_order

GO_ON, LIST, PACK, DONE = 0, 1, 2, 3
"""Why rounds stopped: as many as wanted; the shell must be listed again; so must the blocks."""

_SHRUNK = 16.0  # at so many times less reach, copies have lost too much precision


_SECONDS = 0.05
_TRIAL = 4  # rounds that show whether the tree is worthwhile


@kernel
def form_groups(
    search: Search, points: Floats, starts: Rows, k: int, rounds: int, use_tree: bool
) -> int:
    """Form the groups of some rounds; returns why it stopped."""
    records, blocks, shell, work = search.records, search.blocks, search.shell, search.work
    leader = work.leader
    least = _worth_packing(len(records.spots), use_tree)
    for _ in range(rounds):
        live = records.counts[LIVE]
        if live < 2 * k:
            take_rest(records)
            return DONE
        if blocks.filled[0] < least:
            return PACK
        if len(starts) > 0:
            origin = points[_next_start(records, starts)]
            leader[0] = _furthest_from(search, origin, use_tree)
        else:
            if is_worn(shell):
                return LIST
            origin = work.centroid
            write_centroid(records, origin)
            leader[0] = furthest(shell, records, work)
            if leader[0] < 0:
                return LIST
        reach = sqrt(squared_distance(records.spots, leader[0], origin))
        if keep_sums_sharp(records, reach):
            continue
        blocks.reach[0] = max(blocks.reach[0], reach)
        if reach * _SHRUNK < blocks.reach[0]:
            return PACK
        both = len(starts) == 0 and live >= 3 * k
        for group in range(2 if both else 1):
            leader[0] = _form_group(search, use_tree, both and group == 0)
    return GO_ON


@inner
def _worth_packing(spots: int, use_tree: bool) -> int:
    """With fewer remaining spots than this, the search is set up again."""
    if spots < 1024:
        return 0
    return spots // 2 if use_tree or spots < 8192 else spots // 4 * 3


@inner
def _next_start(records: Records, starts: Rows) -> int:
    """The next row without a group in a drawn order."""
    while records.labels[starts[records.counts[TURN]]] >= 0:
        records.counts[TURN] += 1
    return starts[records.counts[TURN]]


@inner
def _furthest_from(search: Search, origin: Floats, use_tree: bool) -> int:
    write_query(search.blocks.sieve, origin, search.work.query)
    if use_tree:
        return search_tree(search, origin, True)[1]
    anywhere = np.int64(0)
    return scan(search, origin, anywhere, False, True)[1]


@inner
def _form_group(search: Search, use_tree: bool, want_furthest: bool) -> int:
    """A group of the leader and its nearest; returns the furthest remaining spot, if wanted."""
    blocks, records, work = search.blocks, search.records, search.work
    leader = np.int64(work.leader[0])
    values = records.spots[leader]
    take_first(records, leader)
    _depart(search, work.leader)
    write_query(blocks.sieve, values, work.query)
    if use_tree:
        size = search_tree(search, values, False)[0]
        spot, row = -1, -1
    else:
        near_leader = leader // WIDTH
        size, spot, row = scan(search, values, near_leader, True, want_furthest)
    take_nearest(records, work.nearest, size)
    _depart(search, work.nearest.spots)
    if want_furthest and (use_tree or records.heads[spot] != row):
        return _furthest_from(search, values, use_tree)
    return spot


@inner
def _depart(search: Search, spots: Rows) -> None:
    """Remove spots without free records from the searches.

    The tree is maintained even if it is not used, so that it can be tried again at any time.
    """
    blocks, records = search.blocks, search.records
    for spot in spots:
        if records.heads[spot] < 0 and is_there(blocks, spot):
            remove(blocks, spot)
            leave(search.shell, spot)
            shrink(search.tree, blocks, spot // WIDTH)


class Mdav:
    """MDAV in portions of about a twentieth of a second, for k from 2 to the number of records.

    Points are finite numbers, in the form to compare. With ``starts``, a permutation of the rows,
    each round forms one group, around the record furthest from the next record of the
    permutation that is still free.
    """

    def __init__(self, points: Floats, k: int, *, starts: Rows | None = None) -> None:
        # Always one kind of array; otherwise numba would compile everything again for another.
        points = within_range(np.require(points, np.float64, ["C", "A", "W"]))
        columns = points.shape[1]
        self._points = points
        self._k = k
        self._starts = np.empty(0, np.int32) if starts is None else starts.astype(np.int32)
        self._records = records_on_spots(points)
        self._work = Workspace(
            nearest=Nearest(np.empty(k - 1), np.empty(k - 1, np.int32), np.empty(k - 1, np.int32)),
            leader=np.empty(1, np.int32),
            centroid=np.empty(columns),
            query=np.empty(columns, np.float32),
            out=aligned(1, 1),
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
        """Form some groups; returns how many records have one, all of them at the end."""
        tried = self._use_tree or self._form_groups(_TRIAL, use_tree=True)
        start = perf_counter()
        if tried and self._form_groups(self._rounds, use_tree=self._use_tree):
            pace = _SECONDS / max(perf_counter() - start, 1e-6)
            self._rounds = max(_TRIAL, int(self._rounds * min(max(pace, 0.5), 2.0)))
        return len(self.labels) - int(self._records.counts[LIVE])

    def _form_groups(self, rounds: int, *, use_tree: bool) -> bool:
        """Form groups, then do what the search asks for; returns whether it did all the rounds."""
        before = int(self._records.counts[GROUPS])
        self._tree.visited[:] = 0
        search = Search(self._tree, self._blocks, self._shell, self._records, self._work)
        why = form_groups(search, self._points, self._starts, self._k, rounds, use_tree)
        formed = int(self._records.counts[GROUPS]) - before
        if use_tree and formed > 0:
            pays = self._tree_pays(formed)
            if pays != self._use_tree:  # the pace was measured with the other search
                self._use_tree, self._rounds = pays, _TRIAL
        if why == LIST:
            # A list that ended before it was used for a group was too short.
            self._list(complete=self._listed == self._records.counts[GROUPS])
        elif why == PACK:
            self._pack()
        return why == GO_ON

    def _tree_pays(self, formed: int) -> bool:
        """Whether the tree was faster than passes over all blocks, by times measured once."""
        columns = self._points.shape[1]
        blocks, nodes = self._tree.visited
        by_tree = blocks * (25 + 1.1 * columns) + nodes * (25 + 2.5 * columns)
        passes = formed if len(self._starts) == 0 else 2 * formed
        return bool(by_tree < passes * len(self._records.spots) / WIDTH * (2 + 1.1 * columns))

    def _centroid(self) -> Floats:
        write_centroid(self._records, self._work.centroid)
        return self._work.centroid

    def _list(self, *, complete: bool) -> None:
        """List the outermost records again."""
        self._listed = int(self._records.counts[GROUPS])
        self._shell = shell_about(self._records, self._centroid(), complete=complete)

    def _pack(self) -> None:
        """Renumber the spots that have free records, and set up the search."""
        records, centroid = self._records, self._centroid()
        radius = sqrt(free_distances(records, centroid).max())
        sieve = sieve_about(centroid, radius)
        live = np.flatnonzero(records.heads >= 0).astype(np.int32)
        copies = copy_spots(records.spots, live, sieve)
        order = np.arange(len(live), dtype=np.int32)
        if self._use_tree or 2 * len(live) <= self._sorted:
            order = kd_order(copies, WIDTH)
            self._sorted = len(live)
        live = live[order]
        self._records = records._replace(
            spots=records.spots.take(live, axis=0), heads=records.heads[live]
        )
        self._blocks = blocks_of(copies, order, sieve)
        self._tree = tree_over(self._blocks)
        self._list(complete=False)


def mdav(points: Floats, k: int, *, starts: Rows | None = None) -> Rows:
    """The group of each record, all formed at once."""
    search = Mdav(points, k, starts=starts)
    while search.advance() < len(search.labels):
        pass
    return search.labels


def within_range(points: Floats) -> Floats:
    """Scaled by a power of two if squares could leave the range of numbers, else unchanged."""
    largest = max(points.max(), -points.min())
    if largest == 0 or 1e-100 < largest < 1e100:
        return points
    return np.ldexp(points, -int(np.frexp(largest)[1]))
