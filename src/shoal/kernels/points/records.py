"""What all searches for MDAV groups share: free records, the nearest so far, the rounding.

Records with equal values lie on one *spot*; a spot hands out its records by ascending row.
Searches work on spots, so a table with many equal records is as small as its distinct ones. Spots
are numbered by their position in the blocks of a search, because such a search would otherwise
mostly wait for lookups.

Distances that decide are squared Euclidean in 64-bit floats, summed in column order. Searches
look at 32-bit copies first, sixteen records or boxes at once. Let x be the copied values about a
center, scaled to a radius of at most 1, u = 2**-24, and d the number of columns. Copying moves a
record by at most u, so the distance of two by at most 2u; summing d squares errs by less than the
factor 1 ± (d + 3)u. ``near_limit`` and ``far_limit`` widen a 64-bit distance by more than that. So
no record that matters is left out, and the groups are those of the plain algorithm.

A block of records consists of rows of sixteen values, one row per column. A node also consists of
rows: the lowest value per column, the highest per column, then the largest squared norm. A lane
without a record holds NaN, which no comparison here accepts.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows, Singles, Words
from shoal.kernels.compile import njit
from shoal.kernels.grouping import first_rows, group
from shoal.kernels.lanes import (
    WIDTH,
    add_product,
    bits,
    choose,
    greatest,
    least,
    load,
    singles,
    store,
)

kernel = njit(cache=True, _nrt=False)
"""Compiles a function that creates no array, so reference counting is not needed: with arrays in
named tuples numba would count at every access, which took a quarter of the time."""

inner = njit(cache=False, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for a function that only others call; it compiles faster without wrappers.
It becomes part of its callers."""

inlined = njit(
    cache=False, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
)
"""The same for functions that keep lanes in registers."""

FAR = np.float32(1e18)
"""The position of an empty box: its square is still a number, and beyond every limit."""
NO_LIMIT = np.float32(1e30)
NEVER = np.float32(-1)
_UNIT = 2.0**-24
_TINY = 1e-30  # more than squares of 32-bit values can lose by underflow
_FAINT = 1e-300  # the same of 64-bit values

LIVE, GROUPS, TURN = 0, 1, 2
"""Places in ``Records.counts``: records without a group, groups formed, starts used."""

_WORN = 2.0**10  # ten of the 106 bits of a sum are then lost


def aligned(blocks: int, rows: int) -> Singles:
    """Rows of lanes that start on a cache line, so that no vector crosses two lines."""
    size = blocks * rows * WIDTH
    room = np.empty(size + WIDTH, np.float32)
    skip = -room.ctypes.data // room.itemsize % WIDTH
    return room[skip : skip + size].reshape(blocks, rows, WIDTH)


@inlined
def measure_points(
    values: Singles, block: int, query: Singles, near: np.float32, far: np.float32, out: Singles
) -> Any:
    """Squared distances into ``out``; returns the lanes at most ``near`` or at least ``far``."""
    total = singles(0.0)
    for column in range(len(query)):
        apart = load(values, block, column) - query[column]
        total = add_product(total, apart, apart)
    store(total, out, 0, 0)
    return np.uint64(bits((total <= near) | (total >= far)))


@inlined
def measure_near_boxes(
    nodes: Singles, node: int, query: Singles, near: np.float32, out: Singles
) -> Any:
    """Least squared distance to each box into ``out``; returns the lanes at most ``near``."""
    total, columns = singles(0.0), len(query)
    for column in range(columns):
        below = load(nodes, node, column) - query[column]
        above = query[column] - load(nodes, node, columns + column)
        outside = choose(below > above, below, above)
        outside = choose(outside > 0.0, outside, 0.0)
        total = add_product(total, outside, outside)
    store(total, out, 0, 0)
    return np.uint64(bits(total <= near))


@inlined
def measure_far_boxes(
    nodes: Singles, node: int, query: Singles, lift: np.float32, far: np.float32, out: Singles
) -> Any:
    """Bound on the squared distance to anything in each box; returns the lanes at least ``far``.

    The smaller of two bounds: the furthest corner; and, from |x-q|² = |x|² + |q|² - 2 x·q, the
    largest |x|² in the box, ``lift`` = |q|² (with its allowance) and the least x·q of the box.
    """
    corner, product, columns = singles(0.0), singles(0.0), len(query)
    for column in range(columns):
        low, high = load(nodes, node, column), load(nodes, node, columns + column)
        below, above = query[column] - low, high - query[column]
        across = choose(below > above, below, above)
        corner = add_product(corner, across, across)
        left, right = low * query[column], high * query[column]
        product = product + choose(left < right, left, right)
    lifted = load(nodes, node, 2 * columns) + lift - product * 2.0
    bound = choose(lifted < corner, lifted, corner)
    store(bound, out, 0, 0)
    return np.uint64(bits(bound >= far))


@inlined
def lowest(values: Singles, block: int, row: int, nothing: np.float32) -> Any:
    """The least of a row of sixteen, where NaN counts as ``nothing``."""
    lanes = load(values, block, row)
    return least(choose(lanes == lanes, lanes, nothing))


@inlined
def highest(values: Singles, block: int, row: int, nothing: np.float32) -> Any:
    """The greatest of a row of sixteen, where NaN counts as ``nothing``."""
    lanes = load(values, block, row)
    return greatest(choose(lanes == lanes, lanes, nothing))


class Records(NamedTuple):
    """The records and the partition so far; arrays are changed in place."""

    spots: Floats  # the values of each spot, one row per spot
    heads: Rows  # the lowest free row of the table on each spot, or -1
    following: Rows  # the next row on the same spot, or -1; empty if no two rows are equal
    labels: Rows  # the group of each row of the table
    sums: Floats  # per column: sum over free records, and its rounding error
    span: Floats  # one number: the reach of the records when they were summed
    counts: Integers


class Sieve(NamedTuple):
    """How 32-bit copies were made: (values - center) * scale; and how wrong they may be."""

    centre: Floats
    scale: float
    error: float  # of a distance
    factor: float  # of a square, relative
    lift: float  # of the lifted bound


class Nearest(NamedTuple):
    """The nearest records so far: a heap with the furthest, then highest row, on top."""

    distances: Floats
    rows: Rows
    spots: Rows


class Workspace(NamedTuple):
    """What a search works with: the nearest so far, the query, and memory that rounds reuse."""

    nearest: Nearest
    leader: Rows
    centroid: Floats
    query: Singles
    out: Singles


@inner
def add_to_sums(sums: Floats, values: Floats, sign: float) -> None:
    """Add a record to the compensated sums (sign 1), or remove it (sign -1)."""
    for column in range(len(values)):
        total, value = sums[0, column], sign * values[column]
        grown = total + value
        part = grown - total
        sums[0, column] = grown
        sums[1, column] += (total - (grown - part)) + (value - part)


@inner
def next_row(records: Records, row: int) -> int:
    """The row after this one on its spot, or -1."""
    return records.following[row] if len(records.following) > 0 else -1


@kernel
def sum_up(records: Records) -> None:
    """Sum the free records again."""
    records.sums[:] = 0
    for spot in range(len(records.spots)):
        row = records.heads[spot]
        while row >= 0:
            add_to_sums(records.sums, records.spots[spot], 1.0)
            row = next_row(records, row)


def records_on_spots(points: Floats) -> Records:
    """The records of a table, none of them in a group."""
    rows = len(points)
    spots, heads, following = points, np.arange(rows, dtype=np.int32), np.empty(0, np.int32)
    labels, sizes = group(_hashes(points))
    if len(sizes) < rows:
        leaders = first_rows(labels, len(sizes))
        if _all_equal(points, labels, leaders):
            spots, heads = points[leaders], leaders.astype(np.int32)
            following = _chained(labels, len(sizes))
    records = Records(
        spots=spots,
        heads=heads,
        following=following,
        labels=np.full(rows, -1, np.int32),
        sums=np.zeros((2, points.shape[1])),
        span=np.zeros(1),
        counts=np.array([rows, 0, 0]),
    )
    sum_up(records)
    return records


@njit(cache=True)
def _hashes(points: Floats) -> Words:
    hashes = np.empty(len(points), np.uint64)
    value = np.empty(1)
    bits = value.view(np.uint64)
    for row in range(len(points)):
        hashed = np.uint64(0)
        for column in range(points.shape[1]):
            value[0] = points[row, column] + 0.0  # minus zero equals zero
            hashed = (hashed ^ bits[0]) * np.uint64(0x9E3779B97F4A7C15)
            hashed ^= hashed >> np.uint64(29)
        hashes[row] = hashed
    return hashes


@njit(cache=True)
def _all_equal(points: Floats, labels: Any, leaders: Integers) -> bool:
    """Whether no two records with the same hash differ."""
    for row in range(len(points)):
        for column in range(points.shape[1]):
            if points[row, column] != points[leaders[labels[row]], column]:
                return False
    return True


@njit(cache=True)
def _chained(labels: Any, count: int) -> Rows:
    """The next row with the same label, or -1."""
    following = np.full(len(labels), -1, np.int32)
    latest = np.full(count, -1, np.int32)
    for row in range(len(labels)):
        if latest[labels[row]] >= 0:
            following[latest[labels[row]]] = row
        latest[labels[row]] = row
    return following


@inner
def keep_sums_sharp(records: Records, reach: float) -> bool:
    """Recompute the sums if the reach of the records shrank so much that lost bits could show.

    Only the records decide when, so that every search sees the same centroids.
    """
    records.span[0] = max(records.span[0], reach)
    if reach * _WORN >= records.span[0]:
        return False
    records.span[0] = reach
    sum_up(records)
    return True


@kernel
def write_centroid(records: Records, centroid: Floats) -> None:
    """The mean of the free records."""
    live = float(records.counts[LIVE])
    for column in range(len(centroid)):
        centroid[column] = (records.sums[0, column] + records.sums[1, column]) / live


@inner
def squared_distance(spots: Floats, spot: int, query: Floats) -> float:
    """The distance that decides; nothing here may be summed in another order."""
    total = 0.0
    for column in range(len(query)):
        apart = spots[spot, column] - query[column]
        total += apart * apart
    return total


@njit(cache=True)
def free_distances(records: Records, query: Floats) -> Floats:
    """Squared distances of the spots, and -1 for those without a free record."""
    found = np.empty(len(records.spots))
    for spot in range(len(found)):
        free = records.heads[spot] >= 0
        found[spot] = squared_distance(records.spots, spot, query) if free else -1.0
    return found


def sieve_about(centre: Floats, radius: float) -> Sieve:
    """The sieve for spots whose distance to the center is at most ``radius``."""
    exponent = np.frexp(radius)[1] if radius > 0 else 0
    columns = len(centre)
    return Sieve(
        centre=centre.copy(),
        # Clipped so that the scale is a number for the smallest and largest possible radius.
        scale=float(np.ldexp(1.0, -int(np.clip(exponent, -1000, 1000)))),
        error=2.02 * _UNIT,
        factor=4 * (columns + 4) * _UNIT,
        lift=4 * (columns + 6) * (1 + sqrt(columns)) * _UNIT,
    )


@inner
def write_query(sieve: Sieve, values: Floats, query: Singles) -> None:
    """The 32-bit copy of one record."""
    for column in range(len(values)):
        query[column] = np.float32((values[column] - sieve.centre[column]) * sieve.scale)


@inner
def near_limit(sieve: Sieve, distance: float) -> np.float32:
    """No copy of a record within ``distance`` measures more than this."""
    reach = sqrt(distance + _FAINT) * sieve.scale + sieve.error
    return np.float32(min(reach * reach * (1 + sieve.factor) + _TINY, 1e30))


@inner
def far_limit(sieve: Sieve, distance: float) -> np.float32:
    """No copy of a record at least ``distance`` away measures less than this."""
    reach = max(sqrt(max(distance - _FAINT, 0.0)) * sieve.scale - sieve.error, 0.0)
    return np.float32(reach * reach * (1 - sieve.factor) - _TINY)


@kernel
def pack(copies: Singles, order: Rows, blocks: Singles) -> None:
    """Copies, one per row, in some order into blocks of lanes; unused lanes hold NaN."""
    for at in range(len(blocks) * WIDTH):
        for column in range(copies.shape[1]):
            value = copies[order[at], column] if at < len(order) else np.float32(np.nan)
            blocks[at // WIDTH, column, at % WIDTH] = value


@inner
def blank(blocks: Singles, at: int) -> None:
    """Remove the lane at a position from its block."""
    for column in range(blocks.shape[1]):
        blocks[at // WIDTH, column, at % WIDTH] = np.nan


@njit(cache=True)
def copy_spots(spots: Floats, chosen: Rows, sieve: Sieve) -> Singles:
    """The 32-bit copies of the chosen spots, one per row."""
    copies = np.empty((len(chosen), spots.shape[1]), np.float32)
    for i in range(len(chosen)):
        write_query(sieve, spots[chosen[i]], copies[i])
    return copies


@inner
def _further(nearest: Nearest, one: int, other: int) -> bool:
    if nearest.distances[one] != nearest.distances[other]:
        return nearest.distances[one] > nearest.distances[other]
    return nearest.rows[one] > nearest.rows[other]


@inner
def _swap(nearest: Nearest, one: int, other: int) -> None:
    distances, rows, spots = nearest
    distances[one], distances[other] = distances[other], distances[one]
    rows[one], rows[other] = rows[other], rows[one]
    spots[one], spots[other] = spots[other], spots[one]


@inner
def _sink(nearest: Nearest, at: int, size: int) -> None:
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _further(nearest, child + 1, child):
            child += 1
        if not _further(nearest, child, at):
            return
        _swap(nearest, at, child)
        at = child


@inner
def offer(records: Records, nearest: Nearest, size: int, spot: int, distance: float) -> int:
    """Put the free records of a spot among the nearest; returns how many there are then."""
    room = len(nearest.distances)
    row = records.heads[spot]
    while row >= 0:
        if size < room:
            at = size
            size += 1
        elif distance < nearest.distances[0] or (
            distance == nearest.distances[0] and row < nearest.rows[0]
        ):
            at = 0
        else:
            break
        nearest.distances[at], nearest.rows[at], nearest.spots[at] = distance, row, spot
        if at == 0:
            _sink(nearest, 0, size)
        else:
            while at > 0 and _further(nearest, at, (at - 1) // 2):
                _swap(nearest, at, (at - 1) // 2)
                at = (at - 1) // 2
        row = next_row(records, row)
    return size


@inner
def take_first(records: Records, spot: int) -> None:
    """Put the lowest free row of a spot into the group that is being formed."""
    row = records.heads[spot]
    records.heads[spot] = next_row(records, row)
    records.labels[row] = records.counts[GROUPS]
    records.counts[LIVE] -= 1
    add_to_sums(records.sums, records.spots[spot], -1.0)


@inner
def take_nearest(records: Records, nearest: Nearest, size: int) -> None:
    """Put the nearest into the group and close it.

    They are added by distance and row, so that the sums do not depend on how they were found.
    """
    for last in range(size - 1, 0, -1):
        _swap(nearest, np.int64(0), last)
        _sink(nearest, 0, last)
    for i in range(size):
        take_first(records, nearest.spots[i])
    records.counts[GROUPS] += 1


@inner
def take_rest(records: Records) -> None:
    """Put all free records into one last group."""
    for spot in range(len(records.spots)):
        while records.heads[spot] >= 0:
            take_first(records, spot)
    records.counts[GROUPS] += 1
