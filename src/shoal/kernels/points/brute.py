"""The search for MDAV groups that looks at every record, sixteen at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.lanes import first_lane
from shoal.kernels.points.lanes import LANES, aligned, inner, measure_points
from shoal.kernels.points.records import (
    NEVER,
    NO_LIMIT,
    Floats,
    Integers,
    Nearest,
    Records,
    Rows,
    Sieve,
    Singles,
    blank,
    far_limit,
    near_limit,
    offer,
    pack,
    squared_distance,
)


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
    nearest: Nearest,
    values: Floats,
    query: Singles,
    out: Singles,
    first: int,
    want_nearest: bool,
    want_furthest: bool,
) -> tuple[int, int, int]:
    """Fill the nearest, if wanted; gives how many these are, the furthest spot and its row.

    One pass serves both, since the furthest from r is hardly ever among the nearest of r. It goes
    round once from block ``first``: where that is near the query, few others need a closer look.
    """
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
