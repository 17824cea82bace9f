"""Noise at the edges; its distribution is in the golden tests."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal

import polars as pl
import pytest

from shoal import AddNoise, Roles, Table
from shoal.errors import InputError, ParameterError, SeedWarning


def noisy(epsilon=2.0, **columns):
    method = AddNoise(epsilon=epsilon)
    frame = pl.DataFrame(columns)
    masked = method.fit_transform(Table(frame, Roles(quasi_identifiers=frame.columns)))
    return masked.frame, method


def test_gaps_stay_and_every_value_moves():
    values = [0.1 * i if i % 3 else None for i in range(200)]
    frame, _ = noisy(x=values)
    after = frame["x"].to_list()
    assert [value is None for value in after] == [value is None for value in values]
    assert all(a != b for a, b in zip(after, values, strict=True) if b is not None)
    assert all(math.isfinite(value) for value in after if value is not None)


def test_equal_records_get_different_noise():
    """One draw per record: else equal values would stay recognisable as equal."""
    frame, _ = noisy(x=[1.0, 1.0, 1.0, 1.0, 5.0])
    assert frame["x"].n_unique() == 5


def test_columns_get_different_noise():
    values = [0.0, 1.0, 2.0, 3.0]
    with pytest.warns(SeedWarning):
        masked = AddNoise(epsilon=1, random_state=3).fit_transform(
            Table(pl.DataFrame({"x": values, "y": values}), Roles(quasi_identifiers=["x", "y"]))
        )
    assert masked.frame["x"].to_list() != masked.frame["y"].to_list()


def test_a_column_does_not_depend_on_the_others(monkeypatch):
    """The same key gives a column the same noise whatever stands beside it."""
    monkeypatch.setattr("shoal.randomness._entropy", bytes)
    values = [0.0, 1.0, 2.0, 3.0]
    results = []
    for more in ({}, {"y": [5.0, 6.0, 7.0, 8.0]}):
        frame = pl.DataFrame({**more, "x": values})
        masked = AddNoise(epsilon=1).fit_transform(
            Table(frame, Roles(quasi_identifiers=frame.columns))
        )
        results.append(masked.frame["x"].to_list())
    assert results[0] == results[1]


def test_constant_columns_are_left_and_said():
    frame, method = noisy(x=[2.5, 2.5, None], y=[1.0, 2.0, 3.0])
    assert method.touched_ == ("y",)
    assert method.skipped_ == {"x": "all values are equal"}
    assert frame["x"].to_list() == [2.5, 2.5, None]


def test_ranges_beyond_floats():
    """Refused or left with the reason, never half done, and without a warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame, method = noisy(x=[-1.7e308, 1.7e308])
        assert method.skipped_ == {"x": "its range exceeds the largest floating-point number"}
        assert frame["x"].to_list() == [-1.7e308, 1.7e308]
        with pytest.raises(InputError, match=r"\.$"):
            noisy(x=[0.0, 1e303])
        with pytest.raises(InputError, match=r"\.$"):
            noisy(epsilon=1e-300, x=[0.0, 1e10])
        frame, _ = noisy(epsilon=16, x=[0.0, 5e-324])
        assert all(math.isfinite(value) for value in frame["x"])


def test_decimals_keep_their_type_where_the_noise_fits():
    wages = [Decimal(i) / 4 for i in range(40)]
    frame, method = noisy(x=pl.Series(wages, dtype=pl.Decimal(20, 2)))
    assert frame["x"].dtype == pl.Decimal(20, 2)
    assert method.touched_ == ("x",)
    narrow, _ = noisy(epsilon=0.01, x=pl.Series(wages, dtype=pl.Decimal(4, 2)))
    assert narrow["x"].dtype == pl.Decimal(38, 2)
    assert narrow["x"].null_count() == 0


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1"])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(ParameterError, match="a number > 0"):
        AddNoise(epsilon=epsilon)


@pytest.mark.parametrize("seed", [-1, 0.5, "secret", True])
def test_a_seed_is_a_whole_number_and_is_not_repeated_in_the_error(seed):
    """It may be a password that somebody took for a seed."""
    with pytest.raises(ParameterError, match="'random_state'") as caught:
        AddNoise(epsilon=1, random_state=seed)
    assert "secret" not in str(caught.value)
