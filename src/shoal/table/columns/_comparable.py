"""Two columns of different types in one in which their values can be compared."""

from __future__ import annotations

import polars as pl


def comparable(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Both columns in one type, in which equal values are equal and different ones different.

    Numbers are compared as numbers, dates and moments as moments (to the microsecond), durations
    as durations, and anything else as text.
    """
    if one.dtype == other.dtype:
        return one, other
    shared = _shared(one.dtype, other.dtype)
    return _cast(one, shared), _cast(other, shared)


def stacked(above: pl.Series, below: pl.Series) -> pl.Series:
    """One column above the other, in a type in which both can be compared."""
    return pl.concat(comparable(above, below))


def _cast(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    if series.dtype == pl.Duration and dtype == pl.String:
        return series.dt.to_string("iso")  # has no cast to text
    return series.cast(dtype)


def _shared(one: pl.DataType, other: pl.DataType) -> pl.DataType:
    both = one, other
    if all(dtype.is_integer() for dtype in both):
        return pl.Int128()
    if all(dtype.is_numeric() for dtype in both):
        return pl.Float64()
    if all(dtype == pl.Duration for dtype in both):
        return pl.Duration("us")
    if all(dtype in (pl.Date, pl.Datetime) for dtype in both):
        zoned = [getattr(dtype, "time_zone", None) is not None for dtype in both]
        if all(zoned):
            return pl.Datetime("us", "UTC")
        if not any(zoned):
            return pl.Datetime("us")
    return pl.String()
