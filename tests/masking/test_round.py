"""Rounding where the machine's numbers end."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Roles, Round, Table
from shoal.errors import ParameterError

LIMITS = {
    pl.Int64: (-(2**63), 2**63 - 1),
    pl.UInt64: (0, 2**64 - 1),
}


def rounded(values, base, dtype):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    masked = Round(base=base).fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    assert masked.frame["x"].dtype == dtype
    return masked.frame["x"].to_list()


def nearest(value, base, low, high):
    """The nearest multiple, halves to the even one; the other neighbour where it does not fit."""
    multiple = base * round(Fraction(value, base))
    if multiple > high:
        multiple -= base
    return multiple + base if multiple < low else multiple


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@given(data=st.data())
def test_whole_numbers_of_64_bits_are_exact(dtype, data):
    low, high = LIMITS[dtype]
    near = st.integers(low, low + 50) | st.integers(high - 50, high) | st.integers(low, high)
    values = data.draw(st.lists(near, min_size=1, max_size=5))
    # a base is a float, so larger ones are not all whole numbers
    base = data.draw(st.integers(1, 100) | st.integers(1, 2**53))
    expected = [nearest(value, base, low, high) for value in values]
    assert rounded(values, base, dtype) == expected


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("base", [2.0**62, 2.0**63, 2.0**64, 1e300])
def test_bases_near_the_largest_number(dtype, base):
    """The nearest multiple that the type can hold, which may be 0."""
    low, high = LIMITS[dtype]
    values = [low, high, 1, high // 2 + 1]
    for value, result in zip(values, rounded(values, base, dtype), strict=True):
        assert low <= result <= high
        assert result % int(base) == 0
        assert abs(result - value) <= base


def test_the_smallest_integer_does_not_become_the_largest():
    """-2**63 rounded down to a multiple of 10 is below all 64-bit numbers."""
    assert rounded([-(2**63), 2**63 - 1], 10, pl.Int64) == [-(2**63) + 8, 2**63 - 8]


@pytest.mark.parametrize("base", [0.2, 0.5, 0.999])
def test_a_base_below_one_leaves_whole_numbers(base):
    values = [-(2**63), 2**63 - 1, 2**53 + 1, 0, 7]
    assert rounded(values, base, pl.Int64) == values


def test_a_broken_base_near_the_limits():
    """No warning of numpy and no sign turned; the precision there is that of a float."""
    for dtype, (low, high) in LIMITS.items():
        for value, result in zip([low, high], rounded([low, high], 2.5, dtype), strict=True):
            assert low <= result <= high
            assert abs(result - value) <= 2048


def test_floats_near_the_limits():
    values = [1.7e308, -1.7e308, 5e-324, 0.0]
    for base in (0.2, 2.5, 10, 1e300, 1e-300, 5e-324):
        for value, result in zip(values, rounded(values, base, pl.Float64), strict=True):
            assert abs(result - value) <= base / 2 + abs(value) * 1e-15


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.sampled_from([0.2, 0.1, 0.25, 5, 10, 2.5]))
def test_rounding_is_near_and_repeats_itself(values, base):
    once = rounded(values, base, pl.Float64)
    assert rounded(once, base, pl.Float64) == once
    for value, result in zip(values, once, strict=True):
        assert abs(result - value) <= base / 2 * (1 + 1e-9) + 1e-6


def test_one_multiple_is_one_number():
    """3 * 0.2 and 0.6 differ in the last bit; both are released as 0.6."""
    assert set(rounded([0.6, 3 * 0.2, 0.2 + 0.4, 0.61, 0.59], 0.2, pl.Float64)) == {0.6}
    assert str(rounded([-0.01], 0.2, pl.Float64)[0]) == "0.0"


def test_decimals():
    wages = [Decimal("99.99"), Decimal("0.04"), None, Decimal("-7.50")]
    dtype = pl.Decimal(6, 2)
    assert rounded(wages, 5, dtype) == [Decimal(100), Decimal(0), None, Decimal(-10)]
    assert rounded(wages, 0.1, dtype)[:2] == [Decimal("100.00"), Decimal("0.00")]


def test_narrow_types_widen_rather_than_wrap():
    frame = pl.DataFrame({"x": pl.Series([127, -128, 20], dtype=pl.Int8)})
    masked = Round(base=50).fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
    assert masked.frame["x"].to_list() == [150, -150, 0]


@pytest.mark.parametrize("base", [0, -1, float("nan"), float("inf"), True, "5", None, 1j])
def test_bases_that_are_none(base):
    with pytest.raises(ParameterError, match="a number > 0"):
        Round(base=base)
