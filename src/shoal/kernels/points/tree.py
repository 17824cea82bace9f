"""The search for MDAV groups by a tree of boxes over blocks of records, from which records leave.

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

from shoal.kernels.lanes import first_lane
from shoal.kernels.points.brute import Blocks
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
    Floats,
    Integers,
    Nearest,
    Records,
    Singles,
    far_limit,
    near_limit,
    offer,
    squared_distance,
)

_NOWHERE = np.float32(-np.inf)


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
def nearest_in(
    tree: Tree,
    blocks: Blocks,
    records: Records,
    nearest: Nearest,
    values: Floats,
    query: Singles,
    out: Singles,
) -> int:
    """Fill the nearest; gives how many these are."""
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
def furthest_in(
    tree: Tree,
    blocks: Blocks,
    records: Records,
    values: Floats,
    query: Singles,
    out: Singles,
) -> int:
    """The spot furthest from the values, by its lowest row on ties."""
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
