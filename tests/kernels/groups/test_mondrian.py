"""Mondrian groups against a recursion of a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.groups import mondrian as _mondrian
from shoal.kernels.groups.mondrian import Mondrian
from shoal.kernels.space.mixed_records import gower

Points = npt.NDArray[Any]


def make(kind: str, rows: int, columns: int, seed: int) -> Points:
    random = np.random.default_rng(seed)
    shape = rows, columns
    return {
        "normal": lambda: random.normal(size=shape),
        "ties": lambda: random.integers(0, 10, shape).astype(np.int16),
        "zeros": lambda: random.integers(0, 10, shape) * (random.random(shape) < 0.3),
        "copies": lambda: random.normal(size=shape)[random.integers(0, 1 + rows // 7, rows)],
        "constant": lambda: np.full(shape, 2.5),
        "skewed": lambda: np.exp(random.normal(0, 2, shape)),
        "top coded": lambda: np.minimum(random.integers(0, 12, shape), 4),
    }[kind]()


KINDS = ["normal", "ties", "zeros", "copies", "constant", "skewed", "top coded"]


def reference(points: Points, k: int) -> list[list[int]]:
    """Groups as lists of rows, lower halves first."""
    whole = np.ptp(points.astype(float), axis=0)

    def cut(rows: Points) -> list[list[int]]:
        widths = np.ptp(points[rows].astype(float), axis=0)
        widths = widths * np.divide(1.0, whole, out=np.zeros(len(whole)), where=whole > 0)
        for column in np.argsort(-widths, kind="stable"):
            values = points[rows, column]
            median = np.sort(values)[len(rows) // 2]
            both = values < median, values <= median
            sides = [side for side in both if k <= side.sum() <= len(rows) - k]
            if widths[column] > 0 and sides:
                lower = min(sides, key=lambda side: abs(2 * side.sum() - len(rows)))
                return cut(rows[lower]) + cut(rows[~lower])
        return [rows.tolist()]

    return cut(np.arange(len(points)))


def mondrian_of(points: Points, k: int) -> Mondrian:
    """Widths relative to those of the table are what Gower's dissimilarity adds."""
    return Mondrian(gower(points.astype(np.float64), np.empty((len(points), 0), np.int64)), k)


def agrees(points: Points, k: int) -> None:
    partition = mondrian_of(points, k)
    while partition.advance() < len(points):
        pass
    expected = np.empty(len(points), int)
    for group, rows in enumerate(reference(points, k)):
        expected[rows] = group
        assert len(rows) >= k
    assert partition.labels.dtype == np.int32
    np.testing.assert_array_equal(partition.labels, expected)


@given(
    st.sampled_from(KINDS),
    st.integers(1, 80),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 9999),
)
def test_groups_equal_the_reference(kind: str, rows: int, columns: int, k: int, seed: int) -> None:
    agrees(make(kind, rows, columns, seed), min(k, rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 5, 50])
def test_many_records_equal_the_reference(kind: str, k: int) -> None:
    points = make(kind, 2000, 5, k)
    before = points.copy()
    agrees(points, k)
    np.testing.assert_array_equal(points, before)


def test_the_cut_below_a_median_that_is_the_largest_value() -> None:
    # "At most the median" would leave nobody above, and the column uncut.
    points = np.array([[0], [1], [2], [9], [9], [9], [9]])
    partition = mondrian_of(points, 3)
    assert partition.advance() == 7
    assert partition.labels.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mondrian, "_CELLS", 1)
    points = make("ties", 300, 3, 0)
    partition = mondrian_of(points, 4)
    seen = [partition.advance()]
    while seen[-1] < 300:
        seen.append(partition.advance())
    assert len(seen) > 50
    assert seen == sorted(seen)
    agrees(points, 4)


def test_values_that_rise_and_fall() -> None:
    """A quickselect that takes the ends as pivots would need n passes here."""
    rising = np.arange(1000)
    agrees(np.concatenate([rising, rising[::-1]])[:, None], 5)
