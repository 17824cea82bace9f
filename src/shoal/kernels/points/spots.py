"""Records with equal values put on one spot each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit
from shoal.kernels.grouping import Labels, first_rows, group
from shoal.kernels.points.records import Floats, Integers, Records, Rows, sum_up


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
def _hashes(points: Floats) -> npt.NDArray[np.uint64]:
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
def _all_equal(points: Floats, labels: Labels, leaders: Integers) -> bool:
    """Whether no two records with the same hash differ."""
    for row in range(len(points)):
        for column in range(points.shape[1]):
            if points[row, column] != points[leaders[labels[row]], column]:
                return False
    return True


@njit(cache=True)
def _chained(labels: Labels, count: int) -> Rows:
    """The next row with the same label, or -1."""
    following = np.full(len(labels), -1, np.int32)
    latest = np.full(count, -1, np.int32)
    for row in range(len(labels)):
        if latest[labels[row]] >= 0:
            following[latest[labels[row]]] = row
        latest[labels[row]] = row
    return following
