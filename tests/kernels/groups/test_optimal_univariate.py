"""Optimal univariate microaggregation against all partitions, and against exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.groups import univariate as _optimal_univariate
from shoal.kernels.groups.univariate import OptimalUnivariate


def run(values: npt.NDArray[Any], k: int) -> OptimalUnivariate:
    partition = OptimalUnivariate(values, k)
    while partition.advance() < len(values):
        pass
    return partition


def squares(values: list[Fraction]) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0))


def partitions(rows: tuple[int, ...], k: int) -> Iterator[list[tuple[int, ...]]]:
    """All partitions of some rows into groups of at least k, neighbours or not."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for chosen in range(2 ** len(rest)):
        group = (first, *(row for bit, row in enumerate(rest) if chosen >> bit & 1))
        if len(group) >= k:
            left = tuple(row for row in rest if row not in group)
            yield from ([group, *others] for others in partitions(left, k))


def reference(values: list[Fraction], k: int) -> Fraction:
    """The least sum of squares over groups of neighbours of at least k, in exact arithmetic."""
    values = sorted(values)

    @cache
    def least(count: int) -> Fraction | None:
        if count == 0:
            return Fraction(0)
        costs = [
            before + squares(values[start:count])
            for start in range(count - k + 1)
            if (before := least(start)) is not None
        ]
        return min(costs, default=None)

    cost = least(len(values))
    assert cost is not None
    return cost


def cost_of(labels: npt.NDArray[np.int32], values: list[Fraction]) -> Fraction:
    members: dict[int, list[Fraction]] = {}
    for label, value in zip(labels.tolist(), values, strict=True):
        members.setdefault(label, []).append(value)
    return sum((squares(group) for group in members.values()), Fraction(0))


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=8), st.integers(2, 4))
def test_no_partition_at_all_is_better(values: list[int], k: int) -> None:
    k = min(k, len(values))
    exact = [Fraction(value) for value in values]
    best = min(
        sum((squares([exact[row] for row in group]) for group in groups), Fraction(0))
        for groups in partitions(tuple(range(len(values))), k)
    )
    labels = run(np.array(values, float), k).labels
    assert cost_of(labels, exact) == best == reference(exact, k)


def make(kind: str, rows: int) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(rows)
    return {
        "normal": random.normal(size=rows),
        "skewed": np.exp(random.normal(0, 3, rows)),
        "ties": random.integers(0, 10, rows).astype(float),
        "zeros": random.integers(0, 9, rows) * (random.random(rows) < 0.3) * 1.0,
        "constant": np.full(rows, 1.1),
        # Prefix sums of squares would keep no digit of these.
        "far from zero": 1e9 + random.normal(size=rows),
    }[kind]


KINDS = ["normal", "skewed", "ties", "zeros", "constant", "far from zero"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "k"), [(3, 3), (5, 3), (40, 2), (60, 7), (90, 20)])
def test_the_cost_is_the_least_in_exact_arithmetic(kind: str, rows: int, k: int) -> None:
    values = make(kind, rows)
    exact = [Fraction(value) for value in values.tolist()]
    cost, least = cost_of(run(values, k).labels, exact), reference(exact, k)
    assert least <= cost <= least * (1 + Fraction(1, 10**12))


def slow(values: npt.NDArray[np.float64], k: int) -> list[int]:
    """Starts of the groups, by the same recurrence with numpy's variance."""
    column = np.sort(values)
    cost, cuts = [0.0, *[np.inf] * len(column)], [0] * (len(column) + 1)
    for end in range(k, len(column) + 1):
        for size in range(k, min(end, 2 * k - 1) + 1):
            total = cost[end - size] + size * column[end - size : end].var()
            if total < cost[end]:
                cost[end], cuts[end] = total, end - size
    offsets = [len(column)]
    while offsets[-1] > 0:
        offsets.append(cuts[offsets[-1]])
    return offsets[::-1]


@pytest.mark.parametrize("kind", ["normal", "skewed"])
@pytest.mark.parametrize("k", [2, 3, 10, 40])
def test_groups_equal_the_reference(kind: str, k: int) -> None:
    values = make(kind, 2000)
    partition = run(values, k)
    assert partition.offsets.tolist() == slow(values, k)
    for group, (start, end) in enumerate(pairwise(partition.offsets)):
        assert (partition.labels[partition.order[start:end]] == group).all()


@pytest.mark.parametrize("k", [2, 5, 30])
def test_pieces_make_no_difference(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = make("ties", 500)
    whole = run(values, k).offsets.tolist()
    monkeypatch.setattr(_optimal_univariate, "_STEPS", 7 * (12 + k))
    assert run(values, k).offsets.tolist() == whole


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_groups_are_valid_where_squares_overflow(scale: float) -> None:
    sizes = np.diff(run(make("normal", 50) * scale, 3).offsets)
    assert sizes.sum() == 50
    assert sizes.min() >= 3
    assert sizes.max() <= 5


def test_whole_numbers() -> None:
    # Hand-worked: 1 2 3 | 9 10 costs 2.5, any other cut more.
    assert run(np.array([1, 9, 2, 10, 3]), 2).labels.tolist() == [0, 1, 0, 1, 0]
