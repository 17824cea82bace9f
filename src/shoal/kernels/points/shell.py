"""The record furthest from a centroid that moves a little with every group.

The outermost spots are listed once by their distance to a reference point. When the centroid has
moved by delta since, a spot at distance r is now at most r + delta away: going down the list, the
search ends where r + delta is less than the best found. When the list ends first, or is walked too
often, it is made anew about the present centroid.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows, Singles
from shoal.kernels.lanes import first_lane
from shoal.kernels.points.lanes import LANES, aligned, inner, measure_points
from shoal.kernels.points.records import (
    NEVER,
    Records,
    Room,
    Sieve,
    blank,
    copy_spots,
    far_limit,
    free_distances,
    pack,
    sieve_about,
    squared_distance,
    write_query,
)

_SHARE = 16  # one in so many spots is listed
_LEAST = 1024
_FRONT, _WALKED, _ENOUGH, _COMPLETE = 0, 1, 2, 3
_PATIENCE = 4  # blocks that may be walked, per spot, before a new list is cheaper
_SLACK = 1e-9  # more than square roots and sums of 64-bit values are wrong by
_FAINT = 1e-150  # more than distances lose by the underflow of their squares


class Shell(NamedTuple):
    """The outermost spots, furthest first, in blocks of lanes."""

    sieve: Sieve
    blocks: Singles
    spots: Rows  # per lane
    lanes: Rows  # the lane of each spot; -1 if not listed
    reaches: Floats  # per block: the largest distance to the reference point
    marks: Integers  # blocks empty at the front, walked, how many may be; whether all are listed


def shell_about(records: Records, centroid: Floats, *, complete: bool) -> Shell:
    """List the outermost of the spots with free records, or all of them."""
    squares = free_distances(records, centroid)
    live = int(np.count_nonzero(squares >= 0))
    size = live if complete else min(live, max(_LEAST, live // _SHARE))
    spots = np.argpartition(squares, len(squares) - size)[len(squares) - size :].astype(np.int32)
    spots = spots[np.argsort(-squares[spots])]
    reaches = np.sqrt(squares[spots])
    sieve = sieve_about(centroid, float(reaches[0]))
    blocks = aligned(-(-size // LANES) * LANES * len(centroid))
    pack(copy_spots(records.spots, spots, sieve), np.arange(size, dtype=np.int32), blocks)
    lanes = np.full(len(records.spots), -1, np.int32)
    lanes[spots] = np.arange(size)
    marks = np.array([0, 0, _PATIENCE * (live + _LEAST), size == live])
    return Shell(sieve, blocks, spots, lanes, reaches[::LANES].copy(), marks)


@inner
def furthest(shell: Shell, records: Records, room: Room) -> int:
    """The spot furthest from the centroid, by its lowest row on ties; -1 if the list ended."""
    centroid, query, out = room.centroid, room.query, room.out
    columns = len(centroid)
    stride = LANES * columns
    write_query(shell.sieve, centroid, query)
    moved = 0.0
    for column in range(columns):
        apart = centroid[column] - shell.sieve.centre[column]
        moved += apart * apart
    moved = sqrt(moved)
    best, spot, row = -1.0, -1, -1
    limit, root = NEVER, -1.0
    for block in range(shell.marks[_FRONT], len(shell.reaches)):
        if (shell.reaches[block] + moved) * (1 + _SLACK) + _FAINT < root:
            return spot
        shell.marks[_WALKED] += 1
        found = measure_points(shell.blocks, block * stride, columns, query, NEVER, limit, out)
        if limit == NEVER and found == 0 and block == shell.marks[_FRONT]:
            shell.marks[_FRONT] += 1
        while found != 0:
            lane = first_lane(found)
            found &= found - np.uint64(1)
            if out[lane] < limit:
                continue
            candidate = shell.spots[block * LANES + lane]
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
def leave(shell: Shell, columns: int, spot: int) -> None:
    """Take a spot without free records out of the list."""
    if shell.lanes[spot] >= 0:
        blank(shell.blocks, columns, shell.lanes[spot])
        shell.lanes[spot] = -1
