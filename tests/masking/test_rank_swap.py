"""Rank swapping: pairs within the window, values only exchanged."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import RankSwap, Roles, Table
from shoal.errors import ParameterError, SeedWarning, UnprotectedColumnWarning


def swapped(values, percent, seed=0, dtype=None):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    method = RankSwap(percent=percent, random_state=seed)
    with pytest.warns(SeedWarning):
        after = method.fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    return after.frame["x"], method


@pytest.mark.parametrize("percent", [0.5, 1, 5, 30, 100])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_partners_are_within_the_window(percent, seed):
    """With different values the rank of a value is known: none moves by more than the window."""
    n = 400
    ranks = np.random.default_rng(seed).permutation(n)
    after = swapped(ranks, percent, seed)[0].to_numpy()
    window = int(n * percent / 100)
    assert np.abs(after - ranks).max() <= window
    assert sorted(after) == list(range(n))
    row_of = np.argsort(ranks)
    assert (after[row_of[after]] == ranks).all()  # pairs: who has mine gave me his
    assert (after != ranks).mean() > 0.9


def test_wide_windows_reach_far():
    ranks = np.arange(1000)
    near = np.abs(swapped(ranks, 1)[0].to_numpy() - ranks)
    far = np.abs(swapped(ranks, 50)[0].to_numpy() - ranks)
    assert near.max() <= 10
    assert far.max() > 300
    assert far.mean() > 10 * near.mean()


def test_a_window_of_one_swaps_neighbours():
    assert swapped([10, 20, 30, 40, 50], 20)[0].to_list() == [20, 10, 40, 30, 50]


def test_a_window_without_another_record_is_told():
    after, method = swapped([1, 2, 3, 4], 24)
    assert after.to_list() == [1, 2, 3, 4]
    assert method.skipped_ == {"x": "the window holds no other record"}
    table = Table(pl.DataFrame({"x": [1, 2, 3, 4]}))
    with pytest.warns(UnprotectedColumnWarning, match="window"):
        RankSwap(percent=24, columns=["x"]).fit_transform(table)


def test_missing_cells_stay_and_do_not_count():
    values = [None if i % 3 == 0 else i for i in range(300)]
    after, _ = swapped(values, 1)
    assert after.is_null().to_list() == [value is None for value in values]
    present = [value for value in values if value is not None]
    assert sorted(after.drop_nulls()) == present
    moved = np.abs(after.drop_nulls().rank().to_numpy() - np.arange(1, 201))
    assert moved.max() == 2  # one percent of the 200 present


def test_all_missing():
    table = Table(pl.DataFrame({"x": pl.Series([None, None, None], dtype=pl.Int64)}))
    with pytest.warns(UnprotectedColumnWarning, match="no other record"):
        after = RankSwap(percent=50, columns=["x"]).fit_transform(table)
    assert after.frame["x"].null_count() == 3


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Float32, pl.String, pl.Date])
def test_any_kind_of_column(dtype):
    values = pl.Series([5, 3, 1, 4, 2, 6]).cast(pl.Int32).cast(dtype)
    after, _ = swapped(values.to_list(), 50, dtype=dtype)
    assert after.dtype == dtype
    assert after.sort().equals(values.sort(), check_names=False)


def test_columns_are_swapped_apart():
    values = list(range(100))
    table = Table(pl.DataFrame({"x": values, "y": values}), Roles(quasi_identifiers=["x", "y"]))
    with pytest.warns(SeedWarning):
        after = RankSwap(percent=10, random_state=1).fit_transform(table).frame
    assert after["x"].to_list() != after["y"].to_list()


def test_rows_of_ties_do_not_tell_who_swaps():
    """Among equal values the partner of a lone one is a random row, not always the first."""
    partners = set()
    for seed in range(40):
        after, _ = swapped([0, 1, 1, 1, 1, 1, 1, 1], 13, seed)
        partners.add(after.to_list().index(0))
    assert partners == set(range(1, 8))


@pytest.mark.parametrize("percent", [0, -1, 100.1, float("nan")])
def test_percent_is_checked(percent):
    with pytest.raises(ParameterError):
        RankSwap(percent=percent).fit_transform(
            Table(pl.DataFrame({"x": [1, 2]}), Roles(quasi_identifiers=["x"]))
        )
