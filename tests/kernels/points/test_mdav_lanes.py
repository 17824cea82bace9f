"""Sixteen lanes at once against numpy, and bounds against what they bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from shoal.kernels.lanes import WIDTH, first_lane
from shoal.kernels.points.records import (
    FAR,
    aligned,
    highest,
    lowest,
    measure_far_boxes,
    measure_near_boxes,
    measure_points,
)


@njit
def points_of(values: Any, query: Any, near: Any, far: Any, out: Any) -> Any:
    return measure_points(values, 1, query, near, far, out)


@njit
def near_boxes(nodes: Any, query: Any, near: Any, out: Any) -> Any:
    return measure_near_boxes(nodes, 0, query, near, out)


@njit
def far_boxes(nodes: Any, query: Any, lift: Any, far: Any, out: Any) -> Any:
    return measure_far_boxes(nodes, 0, query, lift, far, out)


@njit
def folds(values: Any, nothing: Any) -> Any:
    return lowest(values, 0, 1, nothing), highest(values, 0, 1, -nothing)


@njit
def first(lanes: Any) -> Any:
    return first_lane(lanes)


def lanes_of(bits: int) -> list[int]:
    return [lane for lane in range(WIDTH) if bits >> lane & 1]


def filled(blocks: Any) -> Any:
    room = aligned(*blocks.shape[:2])
    room[:] = blocks
    return room


@pytest.mark.parametrize("columns", [1, 4, 7, 20])
def test_points(columns: int) -> None:
    rng = np.random.default_rng(columns)
    blocks = rng.normal(size=(2, columns, WIDTH)).astype(np.float32)
    blocks[1, :, 5] = np.nan
    query, out = rng.normal(size=columns).astype(np.float32), aligned(1, 1)
    near, far = np.float32(columns), np.float32(3 * columns)
    bits = points_of(filled(blocks), query, near, far, out)
    expected = ((blocks[1].astype(float) - query[:, None]) ** 2).sum(axis=0)
    np.testing.assert_allclose(out[0, 0], expected, rtol=1e-5)
    within = (out[0, 0] <= near) | (out[0, 0] >= far)
    assert lanes_of(bits) == np.flatnonzero(within).tolist()
    assert 5 not in lanes_of(bits)


@pytest.mark.parametrize("columns", [1, 6, 13])
def test_bounds_hold_for_every_point_of_a_box(columns: int) -> None:
    rng = np.random.default_rng(columns)
    points = rng.normal(size=(WIDTH, 40, columns)).astype(np.float32) * 0.1
    points += rng.normal(size=(WIDTH, 1, columns)).astype(np.float32)
    points[3] = np.nan
    low, high = points.min(axis=1), points.max(axis=1)
    norm = (points**2).sum(axis=2).max(axis=1)
    low[3], high[3], norm[3] = FAR, -FAR, -np.inf
    node, out = filled(np.concatenate([low.T, high.T, norm[None]])[None]), aligned(1, 1)
    query = rng.normal(size=columns).astype(np.float32)
    squares = ((points.astype(float) - query) ** 2).sum(axis=2)

    everything = np.float32(1e30)
    assert lanes_of(near_boxes(node, query, everything, out)) == [
        lane for lane in range(WIDTH) if lane != 3
    ]
    bounds = out[0, 0].copy()
    live = np.arange(WIDTH) != 3
    assert (bounds[live] <= squares[live].min(axis=1) * (1 + 1e-5)).all()
    nearest = np.maximum(np.maximum(low - query, query - high), 0)
    np.testing.assert_allclose(bounds[live], (nearest**2).sum(axis=1)[live], rtol=1e-5)
    near = np.sort(bounds)[7]
    assert len(lanes_of(near_boxes(node, query, near, out))) == 8

    lift = np.float32((query.astype(float) ** 2).sum() + 1e-4)
    assert lanes_of(far_boxes(node, query, lift, np.float32(-1), out)) == [
        lane for lane in range(WIDTH) if lane != 3
    ]
    assert (out[0, 0, live] >= squares[live].max(axis=1) * (1 - 1e-5)).all()
    corner = (np.maximum(query - low, high - query) ** 2).sum(axis=1)
    lifted = norm + lift - 2 * np.minimum(low * query, high * query).sum(axis=1)
    np.testing.assert_allclose(out[0, 0, live], np.minimum(corner, lifted)[live], rtol=1e-4)


def test_folds_pass_over_empty_lanes() -> None:
    values = np.random.default_rng(0).normal(size=(3, WIDTH)).astype(np.float32)
    values[1, [0, 7, 15]] = np.nan
    expected = np.nanmin(values[1]), np.nanmax(values[1])
    assert folds(filled(values[None]), np.float32(9)) == expected
    values[1] = np.nan
    assert folds(filled(values[None]), np.float32(9)) == (9, -9)


def test_first_lane() -> None:
    assert [first(np.uint64(bits)) for bits in (1, 2, 12, 1 << 15)] == [0, 1, 2, 15]


def test_room_starts_on_a_cache_line() -> None:
    assert {aligned(size, 1).ctypes.data % 64 for size in range(1, 40)} == {0}
