"""The searches for MDAV groups: by a tree of boxes over blocks of records, or through all blocks.

Blocks follow the leaves of a kd-tree. Sixteen blocks make a node, sixteen nodes make a node above,
and so on up to one root; a node holds the boxes of its sixteen children, measured at once. When
records leave a block, its box is recomputed, and the boxes above it as far as anything changes.

MDAV removes records from the outside, so the rest becomes a ball. From some point on, all boxes on
the other side have nearly the same furthest corner. The lifted bound (``measure_far_boxes``)
knows how far the records of a box are from the center and so distinguishes the boxes.

The record furthest from the centroid, which moves a little with every group, is found without the
tree. The outermost spots are listed once by their distance to a reference point, as a *shell*. When
the centroid has since moved by delta, a spot at distance r is now at most r + delta away: going
down the list, the search ends when r + delta is less than the best found. When the list ends
first, or has been walked too often, it is made again about the present centroid.
down the list, the search ends where r + delta is less than the best found. When the list ends
first, or is walked too often, it is made anew about the present centroid.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows, Singles
from shoal.kernels.lanes import WIDTH, first_lane
from shoal.kernels.points.records import (
    FAR,
    NEVER,
    NO_LIMIT,
    Records,
    Sieve,
    Workspace,
    aligned,
    blank,
    copy_spots,
    far_limit,
    free_distances,
    highest,
    inlined,
    inner,
    kernel,
    lowest,
    measure_far_boxes,
    measure_near_boxes,
    measure_points,
    near_limit,
    offer,
    pack,
    sieve_about,
    squared_distance,
    write_query,
)

_NOWHERE = np.float32(-np.inf)


_SHARE = 16  # one in so many spots is listed
_LEAST = 1024
_FRONT, _WALKED, _ENOUGH, _COMPLETE = 0, 1, 2, 3
_PATIENCE = 4  # blocks to walk, per spot, before a new list is cheaper
_SLACK = 1e-9  # more than the error of square roots and sums of 64-bit values
_FAINT = 1e-150  # more than distances lose by the underflow of their squares


class Blocks(NamedTuple):
    """The spots in blocks of lanes, in the order of their numbers."""

    sieve: Sieve
    values: Singles
    filled: Integers  # one number: lanes in use
    reach: Floats  # one number: the reach of the records since they were packed


def blocks_of(copies: Singles, order: Rows, sieve: Sieve) -> Blocks:
    """Pack copies of all spots in the order of their numbers."""
    spots, columns = copies.shape
    values = aligned(-(-spots // WIDTH), columns)
    pack(copies, order, values)
    return Blocks(sieve, values, np.array([spots]), np.zeros(1))


class Tree(NamedTuple):
    """Nodes level by level, the lowest first; and what a search still has to visit."""

    nodes: Singles
    starts: Integers  # the first node of each level; level 0 are the blocks
    bounds: Singles
    levels: Integers
    places: Integers
    visited: Integers  # blocks measured, nodes measured
    centre: Singles  # of the copies: zeros
    out: Singles


def tree_over(blocks: Blocks) -> Tree:
    """The tree over blocks of spots in kd order."""
    starts = [0, 0]
    size, columns = blocks.values.shape[:2]
    while size > 1 or len(starts) == 2:
        size = -(-size // WIDTH)
        starts.append(starts[-1] + size)
    room = WIDTH * len(starts)
    tree = Tree(
        nodes=aligned(starts[-1], 2 * columns + 1),
        starts=np.array(starts),
        bounds=np.empty(room, np.float32),
        levels=np.empty(room, np.int64),
        places=np.empty(room, np.int64),
        visited=np.zeros(2, np.int64),
        centre=np.zeros(columns, np.float32),
        out=aligned(1, 1),
    )
    _draw_all(tree, blocks)
    return tree


@kernel
def _draw_all(tree: Tree, blocks: Blocks) -> None:
    nodes, starts = tree.nodes, tree.starts
    children, columns = len(blocks.values), len(tree.centre)
    for level in range(len(starts) - 2):
        parents = starts[level + 2] - starts[level + 1]
        for child in range(parents * WIDTH):
            if child < children:
                _draw(tree, blocks, level, child)
                continue
            node, lane = starts[level + 1] + child // WIDTH, child % WIDTH
            for column in range(columns):
                nodes[node, column, lane] = FAR
                nodes[node, columns + column, lane] = -FAR
            nodes[node, 2 * columns, lane] = _NOWHERE
        children = parents


@inner
def _draw(tree: Tree, blocks: Blocks, level: int, child: int) -> bool:
    """Put the box of a child into the node above; returns whether anything changed."""
    nodes, starts, out, columns = tree.nodes, tree.starts, tree.out, len(tree.centre)
    if level == 0:
        source, apart, at = blocks.values, 0, child
        measure_points(source, at, tree.centre, NEVER, NO_LIMIT, out)
        norm = highest(out, 0, 0, _NOWHERE)
    else:
        source, apart, at = nodes, columns, starts[level] + child
        norm = highest(source, at, 2 * columns, _NOWHERE)
    node, lane = starts[level + 1] + child // WIDTH, child % WIDTH
    changed = nodes[node, 2 * columns, lane] != norm
    nodes[node, 2 * columns, lane] = norm
    for column in range(columns):
        low = lowest(source, at, column, FAR)
        high = highest(source, at, apart + column, -FAR)
        changed |= nodes[node, column, lane] != low or nodes[node, columns + column, lane] != high
        nodes[node, column, lane] = low
        nodes[node, columns + column, lane] = high
    return changed


@inner
def shrink(tree: Tree, blocks: Blocks, block: int) -> None:
    """Recompute the box of a block, and the boxes above it as far as they change."""
    for level in range(len(tree.starts) - 2):
        if not _draw(tree, blocks, level, block):
            return
        block //= WIDTH


@inner
def _push(tree: Tree, waiting: int, base: int, bound: np.float32, level: int, place: int) -> None:
    """Insert a child among those of its node, so that the bounds stay in ascending order."""
    at = waiting
    while at > base and tree.bounds[at - 1] > bound:
        tree.bounds[at], tree.places[at] = tree.bounds[at - 1], tree.places[at - 1]
        at -= 1
    tree.bounds[at], tree.places[at] = bound, place
    tree.levels[waiting] = level


class Search(NamedTuple):
    """The records and all ways to search them."""

    tree: Tree
    blocks: Blocks
    shell: Shell
    records: Records
    work: Workspace


class _Found(NamedTuple):
    """The results of a search: how many of the nearest; the furthest; and the resulting limits."""

    size: Any  # numba numbers, all 64-bit except the limits
    best: float
    spot: Any
    row: Any
    near: np.float32
    far: np.float32


@inlined
def _meet_block(search: Search, values: Floats, block: int, found: _Found) -> _Found:
    """Offer the records of a block that are within the limits, which then become narrower."""
    blocks, records, work = search.blocks, search.records, search.work
    size, best, spot, row, near, far = found
    nearest, out = work.nearest, work.out
    hits = measure_points(blocks.values, block, work.query, near, far, out)
    while hits != 0:
        lane = first_lane(hits)
        hits &= hits - np.uint64(1)
        if near < out[0, 0, lane] < far:
            continue  # the limits became narrower since the block was measured
        candidate = block * WIDTH + lane
        distance = squared_distance(records.spots, candidate, values)
        if out[0, 0, lane] <= near:
            size = offer(records, nearest, size, candidate, distance)
            if size == len(nearest.distances):
                near = near_limit(blocks.sieve, nearest.distances[0])
        if out[0, 0, lane] >= far:
            head = np.int64(records.heads[candidate])
            if distance > best or (distance == best and head < row):
                best, spot, row = distance, candidate, head
                far = far_limit(blocks.sieve, best)
    return _Found(size, best, spot, row, near, far)


@inner
def search_tree(search: Search, values: Floats, want_furthest: bool) -> tuple[int, int]:
    """Fill the nearest and return how many there are; or return the furthest spot."""
    tree, query, out = search.tree, search.work.query, search.work.out
    sign = np.float32(1 if want_furthest else -1)  # of bounds: the greatest is looked at next
    lift = search.blocks.sieve.lift
    for column in range(len(query)):
        lift += query[column] * query[column]
    limit = NEVER if want_furthest else NO_LIMIT
    found = _Found(np.int64(0), -1.0, np.int64(-1), np.int64(-1), limit, limit)
    waiting = 1
    tree.bounds[0], tree.levels[0], tree.places[0] = NO_LIMIT, len(tree.starts) - 2, 0
    while waiting > 0:
        waiting -= 1
        level, place = tree.levels[waiting], tree.places[waiting]
        if tree.bounds[waiting] < (found.far if want_furthest else -found.near):
            continue
        if level == 0:
            tree.visited[0] += 1
            found = _meet_block(search, values, place, found)
            continue
        tree.visited[1] += 1
        node = tree.starts[level] + place
        if want_furthest:
            hits = measure_far_boxes(tree.nodes, node, query, np.float32(lift), found.far, out)
        else:
            hits = measure_near_boxes(tree.nodes, node, query, found.near, out)
        base = waiting
        while hits != 0:
            lane = first_lane(hits)
            hits &= hits - np.uint64(1)
            _push(tree, waiting, base, sign * out[0, 0, lane], level - 1, place * WIDTH + lane)
            waiting += 1
    return found.size, found.spot


@inner
def is_there(blocks: Blocks, spot: int) -> bool:
    """Whether a spot is still in its block."""
    return not np.isnan(blocks.values[spot // WIDTH, 0, spot % WIDTH])


@inner
def remove(blocks: Blocks, spot: int) -> None:
    """Remove a spot from its block."""
    blank(blocks.values, spot)
    blocks.filled[0] -= 1


@inner
def scan(
    search: Search, values: Floats, first: int, want_nearest: bool, want_furthest: bool
) -> tuple[int, int, int]:
    """Fill the nearest, if wanted; returns how many there are, the furthest spot and its row.

    One pass does both, since the furthest from r is hardly ever among the nearest of r. It goes
    around once from block ``first``: if that is near the query, few others need a closer look.
    """
    near = NO_LIMIT if want_nearest else NEVER
    far = NEVER if want_furthest else NO_LIMIT
    found = _Found(np.int64(0), -1.0, np.int64(-1), np.int64(-1), near, far)
    count, block = len(search.blocks.values), first - 1
    for _ in range(count):
        block = block + 1 if block + 1 < count else 0
        found = _meet_block(search, values, block, found)
    return found.size, found.spot, found.row


class Shell(NamedTuple):
    """The outermost spots, furthest first, in blocks of lanes."""

    sieve: Sieve
    blocks: Singles
    spots: Rows  # per lane
    lanes: Rows  # the lane of each spot; -1 if not listed
    reaches: Floats  # per block: the largest distance to the reference point
    marks: Integers  # blocks: empty at the front, walked, allowed; whether all are listed


def shell_about(records: Records, centroid: Floats, *, complete: bool) -> Shell:
    """List the outermost of the spots with free records, or all of them."""
    squares = free_distances(records, centroid)
    live = int(np.count_nonzero(squares >= 0))
    size = live if complete else min(live, max(_LEAST, live // _SHARE))
    spots = np.argpartition(squares, len(squares) - size)[len(squares) - size :].astype(np.int32)
    spots = spots[np.argsort(-squares[spots])]
    reaches = np.sqrt(squares[spots])
    sieve = sieve_about(centroid, float(reaches[0]))
    blocks = aligned(-(-size // WIDTH), len(centroid))
    pack(copy_spots(records.spots, spots, sieve), np.arange(size, dtype=np.int32), blocks)
    lanes = np.full(len(records.spots), -1, np.int32)
    lanes[spots] = np.arange(size)
    marks = np.array([0, 0, _PATIENCE * (live + _LEAST), size == live])
    return Shell(sieve, blocks, spots, lanes, reaches[::WIDTH].copy(), marks)


@inner
def furthest(shell: Shell, records: Records, work: Workspace) -> int:
    """The spot furthest from the centroid, ties by lowest row; -1 if the list ended."""
    centroid, query, out = work.centroid, work.query, work.out
    write_query(shell.sieve, centroid, query)
    moved = 0.0
    for column in range(len(centroid)):
        apart = centroid[column] - shell.sieve.centre[column]
        moved += apart * apart
    moved = sqrt(moved)
    best, spot, row = -1.0, -1, -1
    limit, root = NEVER, -1.0
    for block in range(shell.marks[_FRONT], len(shell.reaches)):
        if (shell.reaches[block] + moved) * (1 + _SLACK) + _FAINT < root:
            return spot
        shell.marks[_WALKED] += 1
        found = measure_points(shell.blocks, block, query, NEVER, limit, out)
        if limit == NEVER and found == 0 and block == shell.marks[_FRONT]:
            shell.marks[_FRONT] += 1
        while found != 0:
            lane = first_lane(found)
            found &= found - np.uint64(1)
            if out[0, 0, lane] < limit:
                continue
            candidate = shell.spots[block * WIDTH + lane]
            distance = squared_distance(records.spots, candidate, centroid)
            lowest_row = records.heads[candidate]
            if distance > best or (distance == best and lowest_row < row):
                best, spot, row = distance, candidate, lowest_row
                limit, root = far_limit(shell.sieve, best), sqrt(best)
    return spot if shell.marks[_COMPLETE] else -1


@inner
def is_worn(shell: Shell) -> bool:
    """Whether walking has cost more than a new list would."""
    return shell.marks[_WALKED] > shell.marks[_ENOUGH]


@inner
def leave(shell: Shell, spot: int) -> None:
    """Remove a spot without free records from the list."""
    if shell.lanes[spot] >= 0:
        blank(shell.blocks, shell.lanes[spot])
        shell.lanes[spot] = -1
