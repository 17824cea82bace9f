"""Sixteen records, or sixteen boxes, measured against one query at once.

Numbers are 32-bit floats: they only decide what need not be looked at exactly, so every result here
is used with the allowance for rounding of ``records``.

A block of records is rows of sixteen values, one row per column. A node is rows too: the lowest
value per column, the highest per column, then the largest squared norm. A lane without a record
holds NaN, which no comparison here accepts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Singles
from shoal.kernels.compile import njit
from shoal.kernels.lanes import (
    WIDTH,
    add_product,
    bits,
    choose,
    greatest,
    least,
    load_row,
    singles,
    store_row,
)

kernel = njit(cache=True, _nrt=False)
"""Compiles a function that makes no array. So none is counted in and out: with arrays in named
tuples numba would do that at every access, which took a quarter of the time."""

inner = njit(cache=False, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for a function that only others call, which compiles faster without its wrappers.
It becomes part of those."""

inlined = njit(
    cache=False, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
)
"""The same for what keeps lanes in registers."""

LANES = WIDTH
FAR = np.float32(1e18)
"""Where an empty box lies: its square is still a number, and beyond every limit."""


def aligned(size: int) -> Singles:
    """Room for ``size`` values that starts on a cache line, so that no vector straddles two."""
    room = np.empty(size + LANES, np.float32)
    skip = -room.ctypes.data // room.itemsize % LANES
    return room[skip : skip + size]


@inlined
def measure_points(
    values: Singles,
    start: int,
    columns: int,
    query: Singles,
    near: np.float32,
    far: np.float32,
    out: Singles,
) -> Any:
    """Squared distances into ``out``; gives the lanes at most ``near`` or at least ``far``."""
    total = singles(0.0)
    for column in range(columns):
        apart = load_row(values, start + column * LANES) - query[column]
        total = add_product(total, apart, apart)
    store_row(total, out, 0)
    return np.uint64(bits((total <= near) | (total >= far)))


@inlined
def measure_near_boxes(
    nodes: Singles, start: int, columns: int, query: Singles, near: np.float32, out: Singles
) -> Any:
    """Least squared distance to each box into ``out``; gives the lanes at most ``near``."""
    total = singles(0.0)
    for column in range(columns):
        below = load_row(nodes, start + column * LANES) - query[column]
        above = query[column] - load_row(nodes, start + (columns + column) * LANES)
        outside = choose(below > above, below, above)
        outside = choose(outside > 0.0, outside, 0.0)
        total = add_product(total, outside, outside)
    store_row(total, out, 0)
    return np.uint64(bits(total <= near))


@inlined
def measure_far_boxes(
    nodes: Singles,
    start: int,
    columns: int,
    query: Singles,
    lift: np.float32,
    far: np.float32,
    out: Singles,
) -> Any:
    """Bound on the squared distance to anything in each box; gives the lanes at least ``far``.

    The smaller of two bounds: the furthest corner; and, from |x-q|² = |x|² + |q|² - 2 x·q, the
    largest |x|² in the box, ``lift`` = |q|² (with its allowance) and the least x·q of the box.
    """
    corner, product = singles(0.0), singles(0.0)
    for column in range(columns):
        low = load_row(nodes, start + column * LANES)
        high = load_row(nodes, start + (columns + column) * LANES)
        below, above = query[column] - low, high - query[column]
        across = choose(below > above, below, above)
        corner = add_product(corner, across, across)
        left, right = low * query[column], high * query[column]
        product = product + choose(left < right, left, right)
    lifted = load_row(nodes, start + 2 * columns * LANES) + lift - product * 2.0
    bound = choose(lifted < corner, lifted, corner)
    store_row(bound, out, 0)
    return np.uint64(bits(bound >= far))


@inlined
def lowest(values: Singles, start: int, nothing: np.float32) -> Any:
    """The least of a row of sixteen, where NaN counts as ``nothing``."""
    row = load_row(values, start)
    return least(choose(row == row, row, nothing))


@inlined
def highest(values: Singles, start: int, nothing: np.float32) -> Any:
    """The greatest of a row of sixteen, where NaN counts as ``nothing``."""
    row = load_row(values, start)
    return greatest(choose(row == row, row, nothing))
