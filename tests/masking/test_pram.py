"""PRAM: the diagonal is at least the bound, and expected shares stay."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Pram, Roles, Table
from shoal.errors import ParameterError, SeedWarning, UnprotectedColumnWarning


def redrawn(values, keep, seed=0):
    frame = pl.DataFrame({"x": values})
    method = Pram(keep=keep, random_state=seed)
    with pytest.warns(SeedWarning):
        after = method.fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    return after.frame["x"], method


SHARES = {"a": 0.6, "b": 0.3, "c": 0.1}
ROWS = 40_000


def letters():
    return [letter for letter, share in SHARES.items() for _ in range(round(ROWS * share))]


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9])
def test_the_transition_matrix(keep):
    """keep x I + (1 - keep) x shares, each cell within five standard errors."""
    before = pl.Series(letters())
    after, _ = redrawn(before, keep)
    for old in SHARES:
        came = after.filter(before == old)
        for new, share in SHARES.items():
            expected = keep * (old == new) + (1 - keep) * share
            found = (came == new).mean()
            error = np.sqrt(expected * (1 - expected) / len(came))
            assert abs(found - expected) <= 5 * error
            if old == new:
                assert found >= keep - 5 * error


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9])
def test_expected_shares_stay(keep):
    after, _ = redrawn(letters(), keep, seed=4)
    for letter, share in SHARES.items():
        assert (after == letter).mean() == pytest.approx(
            share, abs=5 * np.sqrt(share * (1 - share) / ROWS)
        )


def test_the_mean_over_many_draws_is_the_share():
    """Small table, many seeds: 3 of 10 are b, and on average they stay 3."""
    counts = [(redrawn(list("aaaaaaabbb"), 0.4, seed)[0] == "b").sum() for seed in range(200)]
    assert np.mean(counts) == pytest.approx(3, abs=0.4)
    assert len(set(counts)) > 3


def test_keeping_everything_is_told():
    after, method = redrawn(["a", "b", "c"], 1.0)
    assert after.to_list() == ["a", "b", "c"]
    assert method.skipped_ == {"x": "no value changes"}


def test_missing_cells_stay_and_are_not_drawn():
    values = [None if i % 4 == 0 else "ab"[i % 2] for i in range(400)]
    after, _ = redrawn(values, 0.0)
    assert after.is_null().to_list() == [value is None for value in values]


def test_all_missing():
    table = Table(pl.DataFrame({"x": pl.Series([None, None], dtype=pl.String)}))
    with pytest.warns(UnprotectedColumnWarning, match="no value present"):
        after = Pram(keep=0.5, columns=["x"]).fit_transform(table)
    assert after.frame["x"].null_count() == 2


def test_booleans_and_categories_keep_their_type():
    for values in (
        pl.Series([True, False] * 50),
        pl.Series(["a", "b"] * 50, dtype=pl.Categorical),
    ):
        after, method = redrawn(values, 0.2)
        assert after.dtype == values.dtype
        assert method.touched_ == ("x",)


def test_numbers_are_left_and_told():
    table = Table(pl.DataFrame({"n": [1, 2, 3]}), Roles(quasi_identifiers=["n"]))
    method = Pram(keep=0.5)
    assert method.fit_transform(table).frame["n"].to_list() == [1, 2, 3]
    assert method.skipped_ == {"n": "integer, not text or boolean"}
    with pytest.warns(UnprotectedColumnWarning):
        Pram(keep=0.5, columns=["n"]).fit_transform(table)


def test_columns_are_drawn_apart():
    values = list("abcdefghij") * 10
    table = Table(pl.DataFrame({"x": values, "y": values}), Roles(quasi_identifiers=["x", "y"]))
    with pytest.warns(SeedWarning):
        after = Pram(keep=0.0, random_state=1).fit_transform(table).frame
    assert after["x"].to_list() != after["y"].to_list()


@pytest.mark.parametrize("keep", [-0.1, 1.1, float("nan")])
def test_keep_is_a_probability(keep):
    with pytest.raises(ParameterError):
        Pram(keep=keep).fit_transform(
            Table(pl.DataFrame({"x": ["a"]}), Roles(quasi_identifiers=["x"]))
        )
