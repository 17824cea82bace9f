"""MDAV against a slow, obvious reference, label by label, and published partitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shoal.kernels.points import mdav as _mdav
from shoal.kernels.points.mdav import Mdav, mdav

Points = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]


class Plain:
    """MDAV-generic as it is written down; sums are exact, ties go to the lowest row."""

    def __init__(self, points: Points, k: int) -> None:
        self.points, self.k = points, k
        self.live = np.arange(len(points))
        self.labels = np.full(len(points), -1, np.int32)
        self.groups = 0

    def squares(self, query: Any) -> Points:
        total = np.zeros(len(self.live))
        for column, value in enumerate(query):
            total += (self.points[self.live, column] - value) ** 2
        return total

    def furthest(self, query: Any) -> int:
        return int(self.live[np.argmax(self.squares(query))])

    def centroid(self) -> list[float]:
        columns = self.points[self.live].T
        return [math.fsum(column) / len(self.live) for column in columns]

    def group_around(self, leader: int) -> None:
        squares = np.where(self.live == leader, -1, self.squares(self.points[leader]))
        chosen = np.lexsort((self.live, squares))[: self.k]
        self.labels[self.live[chosen]] = self.groups
        self.groups += 1
        self.live = np.delete(self.live, chosen)

    def two_sided(self) -> Labels:
        while len(self.live) >= 2 * self.k:
            both = len(self.live) >= 3 * self.k
            leader = self.furthest(self.centroid())
            self.group_around(leader)
            if both:
                self.group_around(self.furthest(self.points[leader]))
        self.labels[self.live] = self.groups
        return self.labels

    def one_sided(self, starts: npt.NDArray[Any]) -> Labels:
        for start in starts:
            while self.labels[start] < 0 and len(self.live) >= 2 * self.k:
                self.group_around(self.furthest(self.points[start]))
        self.labels[self.live] = self.groups
        return self.labels


KINDS: dict[str, Callable[[Any, int, int], Points]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "skewed": lambda rng, n, d: np.exp(2 * rng.normal(size=(n, d))),
    "digits": lambda rng, n, d: rng.integers(0, 10, (n, d)).astype(float),
    "tenths": lambda rng, n, d: rng.integers(0, 10, (n, d)) / 10,
    "zeros": lambda rng, n, d: rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3),
    "copies": lambda rng, n, d: np.repeat(rng.normal(size=(n // 7 + 1, d)), 7, axis=0)[:n],
    "constant": lambda rng, n, d: np.full((n, d), 0.1),
    "far away": lambda rng, n, d: 1e6 + rng.normal(size=(n, d)),
    "sphere": lambda rng, n, d: _unit(rng.normal(size=(n, d))),
    "outliers": lambda rng, n, d: np.exp(20 * rng.normal(size=(n, d))),
    "two scales": lambda rng, n, d: (
        rng.normal(size=(n, d)) * np.where(np.arange(n) % 9, 1e-161, 1)[:, None]
    ),
}


def _unit(points: Points) -> Points:
    return points / np.sqrt((points**2).sum(axis=1, keepdims=True))


def forced(points: Points, k: int, *, use_tree: bool, starts: Any = None) -> Labels:
    """The labels by one of the searches alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_mdav, "_TRIAL", 0)
        search = Mdav(points, k, starts=starts)
        patch.setattr(search, "_tree_pays", lambda formed: use_tree)
        search._use_tree, search._rounds = use_tree, 64
        while search.advance() < len(points):
            search._rounds = 64
        return search.labels


def agree(points: Points, k: int) -> None:
    expected = Plain(points, k).two_sided()
    np.testing.assert_array_equal(forced(points, k, use_tree=True), expected)
    np.testing.assert_array_equal(forced(points, k, use_tree=False), expected)
    np.testing.assert_array_equal(mdav(points, k), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 2, 6, 13])
def test_equals_the_plain_algorithm(kind: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    for k in (2, 3, 5, 10, 50):
        agree(KINDS[kind](rng, int(rng.integers(k, 500)), columns), k)


@pytest.mark.parametrize("kind", ["normal", "digits", "zeros", "copies", "skewed"])
@pytest.mark.parametrize(("columns", "k"), [(1, 5), (2, 3), (6, 10), (13, 50)])
def test_equals_the_plain_algorithm_on_two_thousand(kind: str, columns: int, k: int) -> None:
    agree(KINDS[kind](np.random.default_rng(k), 2000, columns), k)


@settings(max_examples=60)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(2, 60), st.integers(1, 4)),
        elements=st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1.0, -1.0, 1e6]),
    ),
    st.integers(2, 7),
)
def test_equals_the_plain_algorithm_on_few_values(points: Points, k: int) -> None:
    agree(points, min(k, len(points)))


@settings(max_examples=60)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(2, 60), st.integers(1, 4)),
        elements=st.floats(-60_000, 60_000, width=16),
    ),
    st.integers(2, 7),
)
def test_equals_the_plain_algorithm_on_any_values(points: Points, k: int) -> None:
    agree(points, min(k, len(points)))


# Two scales are all ties, by underflow, and quadratic for every search.
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"two scales"}))
@pytest.mark.parametrize(("columns", "k"), [(1, 3), (2, 2), (6, 10), (13, 5)])
def test_tree_and_brute_force_agree_on_many(kind: str, columns: int, k: int) -> None:
    """Rebuilt trees and lists: sizes that the reference would take too long for."""
    points = KINDS[kind](np.random.default_rng(7), 20_000, columns)
    by_tree = forced(points, k, use_tree=True)
    np.testing.assert_array_equal(forced(points, k, use_tree=False), by_tree)
    np.testing.assert_array_equal(mdav(points, k), by_tree)
    sizes = np.bincount(by_tree)
    assert sizes[:-1].tolist() == [k] * (len(sizes) - 1)
    assert k <= sizes[-1] < 2 * k


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 6])
def test_one_sided_equals_the_plain_algorithm(kind: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    for k in (2, 5, 50):
        points = KINDS[kind](rng, int(rng.integers(k, 400)), columns)
        starts = rng.permutation(len(points))
        expected = Plain(points, k).one_sided(starts)
        for use_tree in (True, False):
            found = forced(points, k, use_tree=use_tree, starts=starts)
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(mdav(points, k, starts=starts), expected)


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([1, 2, 3, 10, 11, 12, 20, 21, 22], [{20, 21, 22}, {1, 2, 3}, {10, 11, 12}]),
        (range(8), [{0, 1, 2}, {3, 4, 5, 6, 7}]),
        ([*range(9), 20], [{20, 8, 7}, {0, 1, 2}, {3, 4, 5, 6}]),
        ([4, 4, 4], [{4}]),
    ],
)
def test_worked_by_hand(values: Any, groups: list[set[int]]) -> None:
    column = np.array(values, float)
    labels = mdav(column[:, None], 3)
    assert [set(column[labels == group]) for group in range(labels.max() + 1)] == groups


def test_furthest_from_r_is_sought_after_the_group_of_r_left() -> None:
    """All but one record are equal: s must not be one of those that r took."""
    points = np.zeros((7, 1))
    points[3] = 1
    assert mdav(points, 2).tolist() == [0, 1, 1, 0, 2, 2, 2]


@pytest.mark.parametrize("power", [-1070, -600, 600, 1000])
def test_values_whose_squares_are_no_numbers(power: int) -> None:
    points = np.random.default_rng(3).integers(-9, 9, (200, 3)).astype(float)
    np.testing.assert_array_equal(mdav(np.ldexp(points, power), 3), mdav(points, 3))


def test_order_of_rows_does_not_matter_without_ties() -> None:
    rng = np.random.default_rng(11)
    points, order = rng.normal(size=(3000, 4)), rng.permutation(3000)
    np.testing.assert_array_equal(mdav(points[order], 5), mdav(points, 5)[order])


def test_any_layout_and_type_of_numbers_is_read_and_not_touched() -> None:
    points = np.random.default_rng(5).integers(0, 50, (300, 4))
    expected = mdav(points.astype(float), 4)
    read_only = points.astype(float)
    read_only.flags.writeable = False
    for given_points in (
        points,
        np.asfortranarray(read_only),
        read_only,
        read_only[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(mdav(given_points, 4), expected)


def test_advances_in_portions() -> None:
    search = Mdav(np.random.default_rng(0).normal(size=(30_000, 6)), 3)
    assert (search.labels == -1).all()
    assigned = [0]
    while assigned[-1] < 30_000:
        assigned.append(search.advance())
        assert (search.labels >= 0).sum() == assigned[-1]
    assert assigned == sorted(assigned)
    assert len(assigned) > 10
    assert search.advance() == 30_000


def test_tree_is_used_where_it_pays() -> None:
    rng = np.random.default_rng(0)
    few_columns, many_columns = rng.normal(size=(30_000, 3)), rng.normal(size=(30_000, 40))
    for points, use_tree in ((few_columns, True), (many_columns, False)):
        search = Mdav(points, 5)
        for _ in range(6):
            search.advance()
        assert search._use_tree is use_tree


def information_loss(points: Points, labels: Labels) -> float:
    """100 SSE / SST, with the means of the groups."""
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) / sizes for column in points.T], axis=1)
    return float(100 * ((points - means[labels]) ** 2).sum() / (points**2).sum())


EIA = """UTILITYID RESREVENUE RESSALES COMREVENUE COMSALES INDREVENUE INDSALES OTHREVENUE OTHRSALES
TOTREVENUE TOTSALES""".split()


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("census", None, {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559}),
        ("eia", EIA, {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397}),
    ],
)
def test_published_information_loss(
    shared_data: Path, name: str, columns: list[str] | None, expected: dict[int, float]
) -> None:
    """The values of MDAV in the microaggregation literature for the CASC reference tables."""
    frame = pl.read_parquet(shared_data / "casc" / f"{name}.parquet")
    values = frame.select(columns or pl.all()).to_numpy().astype(float)
    standardized = (values - values.mean(axis=0)) / values.std(axis=0)
    for k, loss in expected.items():
        assert round(information_loss(standardized, mdav(standardized, k)), 4) == loss
