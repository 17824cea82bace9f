"""Top and bottom coding at the edges; the definition is in the golden tests."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Roles, Table, TopBottomCode


def coded(values, fence=1.5, dtype=None, cap="rounded"):
    method = TopBottomCode(fence=fence, cap=cap)
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    masked = method.fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    return masked.frame["x"].to_list(), method


@pytest.mark.parametrize("fence", [0.01, 0.1, 0.4])
def test_fences_without_a_value_between_them(fence):
    """Two values: quartiles 2.5 and 7.5, and with a narrow fence nothing lies inside."""
    result, method = coded([0, 10], fence)
    assert result == [0, 10]
    assert method.skipped_ == {"x": "no value lies inside the fences"}
    assert method.caps_ == {}


def test_caps_are_those_of_touched_columns():
    frame = pl.DataFrame({"x": [1, 2, 3, 4, 5, 99], "y": [1, 2, 3, 4, 5, 6]})
    method = TopBottomCode(fence=1.5)
    method.fit_transform(Table(frame, Roles(quasi_identifiers=["x", "y"])))
    assert method.touched_ == ("x",)
    assert {name: tuple(map(int, caps)) for name, caps in method.caps_.items()} == {"x": (1, 5)}


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    st.sampled_from([0.1, 1.5, 3, 1e6]),
)
def test_any_floats(values, fence):
    """No warning, nothing outside the old range, and the order of values stays."""
    for cap in ("rounded", "whisker"):
        result, _ = coded(values, fence, cap=cap)
        assert min(values) <= min(result) <= max(result) <= max(values)
        pairs = sorted(zip(values, result, strict=True))
        assert [after for _, after in pairs] == sorted(result)
    assert set(result) <= set(values), "whiskers are observations, not computed limits"


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_any_integers(values):
    result, _ = coded(values, dtype=pl.Int64)
    assert min(values) <= min(result) <= max(result) <= max(values)
    assert all(isinstance(value, int) for value in result)
    assert set(coded(values, dtype=pl.Int64, cap="whisker")[0]) <= set(values)


@pytest.mark.parametrize(
    ("values", "caps"),
    [
        ([10, 10, 20, 24, 30, 34, 40, 40, 999], (10, 40)),  # both shared
        ([-999, 13, 20, 24, 30, 34, 41, 47, 999], (15, 45)),
        ([-999.0, 13.25, 20.5, 24, 30, 34, 41.75, 47.5, 999], (15.0, 46.0)),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 30], (1, 9)),  # every number near is somebody's
    ],
)
def test_a_cap_is_not_one_person_s_value(values, caps):
    result, method = coded(values)
    assert tuple(method.caps_["x"]) == caps
    assert (min(result), max(result)) == caps
    whiskers = coded(values, cap="whisker")[1].caps_["x"]
    assert whiskers[0] <= caps[0] <= caps[1] <= whiskers[1]


def test_missing_values_take_no_part():
    result, _ = coded([1, 2, 3, 4, 5, 99, None, None, None, None])
    assert result == [1, 2, 3, 4, 5, 5, None, None, None, None]
