"""The rounds of MDAV on the searches, until something outside is needed."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Rows
from shoal.kernels.points.lanes import LANES, inner, kernel
from shoal.kernels.points.records import (
    LIVE,
    TURN,
    Records,
    Room,
    keep_sums_sharp,
    squared_distance,
    take_first,
    take_nearest,
    take_rest,
    write_centroid,
    write_query,
)
from shoal.kernels.points.search import (
    Blocks,
    Tree,
    furthest_in,
    is_there,
    nearest_in,
    remove,
    scan,
    shrink,
)
from shoal.kernels.points.shell import Shell, furthest, is_worn, leave

GO_ON, LIST, PACK, DONE = 0, 1, 2, 3
"""Why rounds stopped: as many as wanted; the shell must be listed anew; so must the blocks."""

_SHRUNK = 16.0  # when records reach so many times less far, their copies have lost too much


class Search(NamedTuple):
    """The records and all ways to search them."""

    tree: Tree
    blocks: Blocks
    shell: Shell
    records: Records
    room: Room


@kernel
def form_groups(
    search: Search, points: Floats, starts: Rows, k: int, rounds: int, use_tree: bool
) -> int:
    """Form the groups of some rounds; gives why it stopped."""
    records, blocks, shell, room = search.records, search.blocks, search.shell, search.room
    leader = room.leader
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
            origin = room.centroid
            write_centroid(records, origin)
            leader[0] = furthest(shell, records, room)
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
    """With fewer spots than this left, the search is set up anew."""
    if spots < 1024:
        return 0
    return spots // 2 if use_tree or spots < 8192 else spots // 4 * 3


@inner
def _next_start(records: Records, starts: Rows) -> int:
    """The next row of a drawn order that has no group."""
    while records.labels[starts[records.counts[TURN]]] >= 0:
        records.counts[TURN] += 1
    return starts[records.counts[TURN]]


@inner
def _furthest_from(search: Search, origin: Floats, use_tree: bool) -> int:
    blocks, records, room = search.blocks, search.records, search.room
    write_query(blocks.sieve, origin, room.query)
    if use_tree:
        return furthest_in(search.tree, blocks, records, room, origin)
    anywhere = np.int64(0)
    return scan(blocks, records, room, origin, anywhere, False, True)[1]


@inner
def _form_group(search: Search, use_tree: bool, want_furthest: bool) -> int:
    """A group of the leader and its nearest; gives the furthest of those left, if wanted."""
    blocks, records, room = search.blocks, search.records, search.room
    leader = np.int64(room.leader[0])
    values = records.spots[leader]
    take_first(records, leader)
    _depart(search, room.leader)
    write_query(blocks.sieve, values, room.query)
    if use_tree:
        size = nearest_in(search.tree, blocks, records, room, values)
        spot, row = -1, -1
    else:
        near_leader = leader // LANES
        size, spot, row = scan(blocks, records, room, values, near_leader, True, want_furthest)
    take_nearest(records, room.nearest, size)
    _depart(search, room.nearest.spots)
    if want_furthest and (use_tree or records.heads[spot] != row):
        return _furthest_from(search, values, use_tree)
    return spot


@inner
def _depart(search: Search, spots: Rows) -> None:
    """Take spots without free records out of the searches.

    The tree is kept even where it is not used, so that it can be tried again at any time.
    """
    blocks, records = search.blocks, search.records
    columns = records.spots.shape[1]
    for spot in spots:
        if records.heads[spot] < 0 and is_there(blocks, columns, spot):
            remove(blocks, columns, spot)
            leave(search.shell, columns, spot)
            shrink(search.tree, blocks, columns, spot // LANES)
