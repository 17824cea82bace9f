"""Recoding at the edges; the definition is in the golden tests."""

from __future__ import annotations

import statistics

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Recode, Roles, Table


def recoded(values, magnitude=1.5, dtype=pl.Int64, start="lowest"):
    method = Recode(magnitude=magnitude, start=start)
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    masked = method.fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    assert masked.frame["x"].dtype == dtype
    return masked.frame["x"].to_list(), method


LIMITS = {pl.Int64: (-(2**63), 2**63 - 1), pl.UInt64: (0, 2**64 - 1)}


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@given(data=st.data())
def test_any_integers(dtype, data):
    """Each value goes down to the limit of its range; exact over all 64 bits."""
    values = data.draw(st.lists(st.integers(*LIMITS[dtype]), min_size=1, max_size=20))
    start = data.draw(st.sampled_from(["lowest", "rounded"]))
    result, method = recoded(values, dtype=dtype, start=start)
    if "x" not in method.touched_:
        assert result == values
        return
    low, width = method.ranges_["x"]
    if start == "lowest" or values.count(min(values)) > 1:
        assert low == min(values)
    else:
        assert min(values) - width < low <= min(values)
        assert low < min(values) or min(values) in LIMITS[dtype] or width == 1
    assert width >= 1
    assert result == [low + width * ((value - low) // width) for value in values]
    expected = statistics.stdev(values) * 1.5
    assert abs(width - min(expected, 2**63 - 1)) <= 1 + expected * 1e-9


def test_ranges_are_those_of_touched_columns():
    """Widths of 1 and values that are limits already change nothing."""
    frame = pl.DataFrame({"x": [0, 10, 20], "y": [1, 2, 30], "z": [0, 0, 3]})
    method = Recode(magnitude=1)
    method.fit_transform(Table(frame, Roles(quasi_identifiers=["x", "y", "z"])))
    assert method.touched_ == ("y",)
    assert list(method.ranges_) == ["y"]
    assert set(method.skipped_) == {"x", "z"}


@pytest.mark.parametrize("values", [[5], [5, None], [7, 7, 7], [None, 3]])
def test_no_spread(values):
    result, method = recoded(values)
    assert result == values
    assert method.skipped_ == {"x": "its spread is below one unit"}


def test_a_large_magnitude_makes_the_column_constant():
    assert recoded([3, 9, 4], magnitude=1e18)[0] == [3, 3, 3]
    assert recoded([3, 9, 4], magnitude=1e300)[0] == [3, 3, 3]


def test_the_first_range_does_not_begin_at_one_person_s_value():
    ages = [23, 31, 38, 44, 52, 67]
    result, method = recoded(ages, magnitude=1, start="rounded")
    assert method.ranges_["x"][0] == 20
    assert set(result).isdisjoint(ages)
    assert recoded([23, *ages], magnitude=1, start="rounded")[1].ranges_["x"][0] == 23
