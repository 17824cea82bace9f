"""Radix sort and rank groups against numpy's stable sort and ``array_split``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.groups.univariate import (
    individual_ranking,
    labels_of,
    rank_groups,
    stable_argsort,
)

whole = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=60)
real = st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, 1.0]), max_size=60)


def agrees(values: npt.NDArray[Any]) -> None:
    order = stable_argsort(values)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))


@given(whole)
def test_whole_numbers_equal_the_reference(values: list[int]) -> None:
    agrees(np.array(values, np.int64))


@given(real)
def test_real_numbers_equal_the_reference(values: list[float]) -> None:
    agrees(np.array(values, np.float64))


@pytest.mark.parametrize("rows", [1, 2, 2000, 20_001])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "ties", "zeros", "constant", "infinite"])
def test_long_columns_equal_the_reference(kind: str, rows: int) -> None:
    random = np.random.default_rng(rows)
    columns = {
        "normal": random.normal(size=rows),
        "lognormal": np.exp(random.normal(0, 20, rows)),
        "ties": random.integers(0, 10, rows),
        "zeros": random.normal(size=rows) * (random.random(rows) < 0.3),
        "constant": np.full(rows, -7),
        "infinite": np.where(random.random(rows) < 0.5, np.inf, -np.inf),
    }
    agrees(columns[kind])


def test_a_strided_column() -> None:
    agrees(np.random.default_rng(0).normal(size=(500, 3))[:, 1])


def sizes_of(count: int, k: int) -> list[int]:
    """Groups of k, and what is left over in the one in the middle."""
    sizes = [k] * (count // k)
    sizes[len(sizes) // 2] += count - sum(sizes)
    return sizes


@given(st.integers(1, 300), st.integers(1, 40))
def test_rank_groups_equal_the_reference(count: int, k: int) -> None:
    if count < k:
        return
    offsets = rank_groups(count, k)
    assert np.diff(offsets).tolist() == sizes_of(count, k)
    assert (offsets[0], offsets[-1]) == (0, count)


@given(real.filter(len), st.integers(1, 7))
def test_labels_equal_the_reference(values: list[float], k: int) -> None:
    column = np.array(values)
    k = min(k, len(column))
    order, offsets = individual_ranking(column, k)
    expected = np.empty(len(column), int)
    ranked = np.argsort(column, kind="stable")
    expected[ranked] = np.repeat(np.arange(len(column) // k), sizes_of(len(column), k))
    labels = labels_of(order, offsets)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, expected)


def test_left_over_records_are_not_in_the_top_group() -> None:
    # Soria-Comas and Domingo-Ferrer's EIA table has 4,092 records: 92 are left over at k = 100.
    sizes = np.diff(rank_groups(4092, 100))
    assert sizes.tolist() == [100] * 20 + [192] + [100] * 19
