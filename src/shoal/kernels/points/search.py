"""The searches for MDAV groups: by a tree of boxes over blocks of records, or through all blocks.

Blocks follow the leaves of a kd-tree. Sixteen blocks make a node, sixteen nodes make a node above,
and so on up to one root; a node holds the boxes of its sixteen children, measured in one go. When
records leave a block, its box is drawn anew, and those above it as far as anything changes.

MDAV takes away from outside, so what is left becomes a ball, and from a point on it all boxes on
the other side have nearly the same furthest corner. The lifted bound (``measure_far_boxes``)
knows how far the records of a box are from the centre and tells them apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows, Singles
from shoal.kernels.lanes import first_lane
from shoal.kernels.points.lanes import (
    FAR,
    LANES,
    aligned,
    highest,
    inner,
    kernel,
    lowest,
    measure_far_boxes,
    measure_near_boxes,
    measure_points,
)
from shoal.kernels.points.records import (
    NEVER,
    NO_LIMIT,
    Records,
    Room,
    Sieve,
    blank,
    far_limit,
    near_limit,
    offer,
    pack,
    squared_distance,
)

_NOWHERE = np.float32(-np.inf)


class Blocks(NamedTuple):
    """The spots in blocks of lanes, in the order of their numbers."""

    sieve: Sieve
    values: Singles
    filled: Integers  # one number: lanes in use
    reach: Floats  # one number: how far the records reached since they were packed


def blocks_of(copies: Singles, order: Rows, sieve: Sieve) -> Blocks:
    """Pack copies of all spots in the order of their numbers."""
    spots, columns = copies.shape
    values = aligned(-(-spots // LANES) * LANES * columns)
    pack(copies, order, values)
    return Blocks(sieve, values, np.array([spots]), np.zeros(1))


class Tree(NamedTuple):
    """Nodes level by level, the lowest first; and what a search has still to look at."""

    nodes: Singles
    starts: Integers  # the first node of each level; level 0 are the blocks
    bounds: Singles
    levels: Integers
    places: Integers
    visited: Integers  # blocks measured, nodes measured
    centre: Singles  # of the copies: zeros
    out: Singles


def tree_over(blocks: Blocks, columns: int) -> Tree:
    """The tree over blocks of spots in kd order."""
    starts = [0, 0]
    size = len(blocks.values) // (LANES * columns)
    while size > 1 or len(starts) == 2:
        size = -(-size // LANES)
        starts.append(starts[-1] + size)
    nodes = aligned(starts[-1] * LANES * (2 * columns + 1))
    room = LANES * len(starts)
    tree = Tree(
        nodes=nodes,
        starts=np.array(starts),
        bounds=np.empty(room, np.float32),
        levels=np.empty(room, np.int64),
        places=np.empty(room, np.int64),
        visited=np.zeros(2, np.int64),
        centre=np.zeros(columns, np.float32),
        out=aligned(LANES),
    )
    _draw_all(tree, blocks, columns)
    return tree


@kernel
def _draw_all(tree: Tree, blocks: Blocks, columns: int) -> None:
    nodes, starts = tree.nodes, tree.starts
    stride = LANES * (2 * columns + 1)
    children = len(blocks.values) // (LANES * columns)
    for level in range(len(starts) - 2):
        parents = starts[level + 2] - starts[level + 1]
        for child in range(parents * LANES):
            if child < children:
                _draw(tree, blocks, columns, level, child)
                continue
            at = (starts[level + 1] + child // LANES) * stride + child % LANES
            for column in range(columns):
                nodes[at + column * LANES] = FAR
                nodes[at + (columns + column) * LANES] = -FAR
            nodes[at + 2 * columns * LANES] = _NOWHERE
        children = parents


@inner
def _draw(tree: Tree, blocks: Blocks, columns: int, level: int, child: int) -> bool:
    """Draw the box of a child into the node above; gives whether anything changed."""
    nodes, starts, out = tree.nodes, tree.starts, tree.out
    stride = LANES * (2 * columns + 1)
    if level == 0:
        source, apart, start = blocks.values, 0, child * LANES * columns
        measure_points(source, start, columns, tree.centre, NEVER, NO_LIMIT, out)
        norm = highest(out, 0, _NOWHERE)
    else:
        source, apart, start = nodes, columns * LANES, (starts[level] + child) * stride
        norm = highest(source, start + 2 * columns * LANES, _NOWHERE)
    at = (starts[level + 1] + child // LANES) * stride + child % LANES
    changed = nodes[at + 2 * columns * LANES] != norm
    nodes[at + 2 * columns * LANES] = norm
    for column in range(columns):
        low = lowest(source, start + column * LANES, FAR)
        high = highest(source, start + column * LANES + apart, -FAR)
        changed |= nodes[at] != low or nodes[at + columns * LANES] != high
        nodes[at] = low
        nodes[at + columns * LANES] = high
        at += LANES
    return changed


@inner
def shrink(tree: Tree, blocks: Blocks, columns: int, block: int) -> None:
    """Draw the box of a block anew, and those above it as far as they change."""
    for level in range(len(tree.starts) - 2):
        if not _draw(tree, blocks, columns, level, block):
            return
        block //= LANES


@inner
def _push(tree: Tree, waiting: int, base: int, bound: np.float32, level: int, place: int) -> None:
    """Put a child among those of its node, where ``bound`` keeps them ascending."""
    at = waiting
    while at > base and tree.bounds[at - 1] > bound:
        tree.bounds[at], tree.places[at] = tree.bounds[at - 1], tree.places[at - 1]
        at -= 1
    tree.bounds[at], tree.places[at] = bound, place
    tree.levels[waiting] = level


@inner
def nearest_in(tree: Tree, blocks: Blocks, records: Records, room: Room, values: Floats) -> int:
    """Fill the nearest; gives how many these are."""
    nearest, query, out = room.nearest, room.query, room.out
    columns = len(values)
    size = 0
    near = NO_LIMIT
    waiting = 1
    tree.bounds[0], tree.levels[0], tree.places[0] = 0, len(tree.starts) - 2, 0
    while waiting > 0:
        waiting -= 1
        level, place = tree.levels[waiting], tree.places[waiting]
        # Bounds are kept negative: the last, which is looked at next, is the nearest.
        if -tree.bounds[waiting] > near:
            continue
        if level > 0:
            tree.visited[1] += 1
            start = (tree.starts[level] + place) * LANES * (2 * columns + 1)
            found = measure_near_boxes(tree.nodes, start, columns, query, near, out)
            base = waiting
            while found != 0:
                lane = first_lane(found)
                found &= found - np.uint64(1)
                _push(tree, waiting, base, -out[lane], level - 1, place * LANES + lane)
                waiting += 1
            continue
        tree.visited[0] += 1
        start = place * LANES * columns
        found = measure_points(blocks.values, start, columns, query, near, NO_LIMIT, out)
        while found != 0:
            lane = first_lane(found)
            found &= found - np.uint64(1)
            if out[lane] > near:
                continue
            candidate = place * LANES + lane
            distance = squared_distance(records.spots, candidate, values)
            size = offer(records, nearest, size, candidate, distance)
            if size == len(nearest.distances):
                near = near_limit(blocks.sieve, nearest.distances[0])
    return size


@inner
def furthest_in(tree: Tree, blocks: Blocks, records: Records, room: Room, values: Floats) -> int:
    """The spot furthest from the values, by its lowest row on ties."""
    query, out = room.query, room.out
    columns = len(values)
    lift = blocks.sieve.lift
    for column in range(columns):
        lift += query[column] * query[column]
    best, spot, row = -1.0, -1, -1
    far = NEVER
    waiting = 1
    tree.bounds[0], tree.levels[0], tree.places[0] = NO_LIMIT, len(tree.starts) - 2, 0
    while waiting > 0:
        waiting -= 1
        level, place = tree.levels[waiting], tree.places[waiting]
        if tree.bounds[waiting] < far:
            continue
        if level > 0:
            tree.visited[1] += 1
            start = (tree.starts[level] + place) * LANES * (2 * columns + 1)
            found = measure_far_boxes(tree.nodes, start, columns, query, np.float32(lift), far, out)
            base = waiting
            while found != 0:
                lane = first_lane(found)
                found &= found - np.uint64(1)
                _push(tree, waiting, base, out[lane], level - 1, place * LANES + lane)
                waiting += 1
            continue
        tree.visited[0] += 1
        start = place * LANES * columns
        found = measure_points(blocks.values, start, columns, query, NEVER, far, out)
        while found != 0:
            lane = first_lane(found)
            found &= found - np.uint64(1)
            if out[lane] < far:
                continue
            candidate = place * LANES + lane
            distance = squared_distance(records.spots, candidate, values)
            first = records.heads[candidate]
            if distance > best or (distance == best and first < row):
                best, spot, row = distance, candidate, first
                far = far_limit(blocks.sieve, best)
    return spot


@inner
def is_there(blocks: Blocks, columns: int, spot: int) -> bool:
    """Whether a spot has not left its block yet."""
    return not np.isnan(blocks.values[spot // LANES * LANES * columns + spot % LANES])


@inner
def remove(blocks: Blocks, columns: int, spot: int) -> None:
    """Take a spot out of its block."""
    blank(blocks.values, columns, spot)
    blocks.filled[0] -= 1


@inner
def scan(
    blocks: Blocks,
    records: Records,
    room: Room,
    values: Floats,
    first: int,
    want_nearest: bool,
    want_furthest: bool,
) -> tuple[int, int, int]:
    """Fill the nearest, if wanted; gives how many these are, the furthest spot and its row.

    One pass serves both, since the furthest from r is hardly ever among the nearest of r. It goes
    round once from block ``first``: where that is near the query, few others need a closer look.
    """
    nearest, query, out = room.nearest, room.query, room.out
    columns = len(values)
    stride = LANES * columns
    count = len(blocks.values) // stride
    size = 0
    best, spot, row = -1.0, -1, -1
    near = NO_LIMIT if want_nearest else NEVER
    far = NEVER if want_furthest else NO_LIMIT
    block = first - 1
    for _ in range(count):
        block = block + 1 if block + 1 < count else 0
        found = measure_points(blocks.values, block * stride, columns, query, near, far, out)
        while found != 0:
            lane = first_lane(found)
            found &= found - np.uint64(1)
            if near < out[lane] < far:
                continue  # the limits have closed in since the block was measured
            candidate = block * LANES + lane
            distance = squared_distance(records.spots, candidate, values)
            if out[lane] <= near:
                size = offer(records, nearest, size, candidate, distance)
                if size == len(nearest.distances):
                    near = near_limit(blocks.sieve, nearest.distances[0])
            if out[lane] >= far:
                head = records.heads[candidate]
                if distance > best or (distance == best and head < row):
                    best, spot, row = distance, candidate, head
                    far = far_limit(blocks.sieve, best)
    return size, spot, row
