"""The tree's nearest records against sorting all distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.space.neighbours import NOBODY, build, nearest, take_away

Floats = npt.NDArray[np.float64]


def make(kind: str, rows: int, columns: int, seed: int) -> Floats:
    random = np.random.default_rng(seed)
    shape = rows, columns
    return {
        "normal": lambda: random.normal(size=shape),
        "ties": lambda: random.integers(0, 10, shape).astype(float),
        "zeros": lambda: random.integers(0, 10, shape) * (random.random(shape) < 0.3) * 1.0,
        "copies": lambda: random.normal(size=shape)[random.integers(0, 1 + rows // 7, rows)],
        "constant": lambda: np.full(shape, 2.5),
        "skewed": lambda: np.exp(random.normal(0, 3, shape)),
    }[kind]()


KINDS = ["normal", "ties", "zeros", "copies", "constant", "skewed"]


def reference(points: Floats, point: Floats, rows: list[int], wanted: int) -> list[int]:
    """The nearest of some rows, by distance and then row; summed column by column."""
    distances = np.zeros(len(points))
    for column in range(points.shape[1]):
        distances += (points[:, column] - point[column]) ** 2
    return sorted(rows, key=lambda row: (distances[row], row))[:wanted]


def found(points: Floats, point: Floats, rows: list[int], skip: int, wanted: int) -> list[int]:
    """What the tree finds after all rows but some were taken away."""
    tree = build(points)
    for row in set(range(len(points))) - set(rows):
        take_away(tree, row)
    distances, answer = np.empty(wanted), np.empty(wanted, np.int32)
    count = nearest(tree, point, np.int64(skip), distances, answer)
    assert (np.diff(distances[:count]) >= 0).all()
    return answer[:count].tolist()


@given(
    st.sampled_from(KINDS),
    st.integers(1, 120),
    st.integers(1, 4),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 9999),
)
def test_nearest_equal_the_reference(
    kind: str, rows: int, columns: int, wanted: int, gone: float, seed: int
) -> None:
    points = make(kind, rows, columns, seed)
    random = np.random.default_rng(seed)
    left = np.flatnonzero(random.random(rows) >= gone).tolist()
    row = int(random.integers(rows))
    others = [other for other in left if other != row]
    assert found(points, points[row], left, row, wanted) == reference(
        points, points[row], others, wanted
    )
    elsewhere = random.normal(size=columns)
    assert found(points, elsewhere, left, NOBODY, wanted) == reference(
        points, elsewhere, left, wanted
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 6, 13])
def test_many_records_equal_the_reference(kind: str, columns: int) -> None:
    points = make(kind, 2000, columns, columns)
    tree = build(points)
    left = set(range(2000))
    random = np.random.default_rng(7)
    distances, answer = np.empty(10), np.empty(10, np.int32)
    for _ in range(150):
        row = int(random.integers(2000))
        nearest(tree, points[row], np.int64(row), distances, answer)
        assert answer.tolist() == reference(points, points[row], sorted(left - {row}), 10)
        for gone in answer:
            take_away(tree, gone)
        left -= set(answer.tolist())
