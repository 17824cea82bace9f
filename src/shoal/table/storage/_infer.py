"""Types of columns that come as text: guessed from all of their values, or as recorded.

A guess must not lose anything. A column becomes numeric only if each number, written again, says
the same: 01234 and +49 stay text, and so does a column with an integer of more than 64 bits, which
is a key and not a quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import polars as pl

_SAMPLE: Final = 200
_DIGITS: Final = r"(?:0|[1-9][0-9]*)"
_FLOAT: Final = rf"^-?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_COMMA_FLOAT: Final = _FLOAT.replace(r"\.", ",")
# more digits than a float keeps, so an integer among decimals that would be changed
_LONG_INTEGER: Final = r"^-?[0-9]{16,}$"
# 1,234 may be a thousand and something or one and something
_THOUSANDS: Final = r"^-?[1-9][0-9]{0,2},[0-9]{3}$"
_DATETIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?Z?$"
)
_NANOSECONDS: Final = r"\.[0-9]{7,}"


def infer_types(columns: list[pl.Series], *, decimal: str | None) -> None:
    """Give text columns, in place, the narrowest type that loses nothing.

    Parameters
    ----------
    columns : list of polars.Series
        Text columns; each is replaced by itself or by a boolean, integer, float, date or datetime
        column, one after the other, so that no second copy of the table is held.
    decimal : {".", ","}, optional
        The decimal mark. If not given it is a point, unless there is no number with a point and
        some column is only readable with a comma.
    """
    for at, column in enumerate(columns):
        columns[at] = _typed(column, decimal or ".")
    if decimal is None and not any(column.dtype == pl.Float64 for column in columns):
        _read_decimal_commas(columns)


def infer_dates(column: pl.Series) -> pl.Series:
    """A text column as dates or datetimes if all of it is in ISO form, else as it is."""
    return _first_that_fits(column, (_date, _datetime))


def infer_number(column: pl.Series) -> pl.Series:
    """A text column as numbers if that loses nothing, else as it is."""
    return _first_that_fits(column, (_integer, _float))


def _typed(column: pl.Series, decimal: str) -> pl.Series:
    number = _float if decimal == "." else _comma_float
    return _first_that_fits(column, (_boolean, _integer, number, _date, _datetime))


def _first_that_fits(
    column: pl.Series, readings: Iterable[Callable[[pl.Series], pl.Series | None]]
) -> pl.Series:
    name, column = column.name, column.alias("")  # polars reads a name such as ^a$ as a pattern
    sample = column.head(_SAMPLE * 10).drop_nulls().head(_SAMPLE)
    if column.null_count() == len(column):
        return column.alias(name)
    trimmed = None
    if bool(sample.str.contains("^ | $").any()):
        trimmed, sample = column.str.strip_chars(" "), sample.str.strip_chars(" ")
    for reading in readings:
        # most readings fail on the first few values, and cheaply there
        if reading(sample) is not None:
            found = reading(column if trimmed is None else trimmed)
            if found is not None:
                return found.alias(name)
    return column.alias(name)


def _boolean(column: pl.Series) -> pl.Series | None:
    lower = column.str.to_lowercase()
    return lower == "true" if bool(lower.is_in(["true", "false"]).all()) else None


def _integer(column: pl.Series) -> pl.Series | None:
    number = column.cast(pl.Int64, strict=False)
    return number if bool(number.cast(pl.String).eq_missing(column).all()) else None


def _float(column: pl.Series) -> pl.Series | None:
    if not bool(column.str.contains(_FLOAT).all()) or _any(column, _LONG_INTEGER):
        return None
    number = column.cast(pl.Float64, strict=False)
    finite = number.null_count() == column.null_count() and bool(number.is_finite().all())
    return number if finite else None


def _comma_float(column: pl.Series) -> pl.Series | None:
    if not bool(column.str.contains(_COMMA_FLOAT).all()):
        return None
    return _float(column.str.replace(",", ".", literal=True))


def _date(column: pl.Series) -> pl.Series | None:
    date = column.str.to_date("%Y-%m-%d", strict=False)
    return date if bool(date.cast(pl.String).eq_missing(column).all()) else None


def _datetime(column: pl.Series) -> pl.Series | None:
    if not bool(column.str.contains(_DATETIME).all()):
        return None
    utc = column.str.ends_with("Z")
    if bool(utc.any()) and not bool(utc.all()):
        return None
    bare = column.str.strip_suffix("Z").str.replace(" ", "T", literal=True)
    bare = bare.zip_with(bare.str.len_bytes() != len("2020-01-31T23:59"), bare + ":00")
    zone = "UTC" if bool(utc.any()) else None
    fine = _any(bare, _NANOSECONDS)
    moment = parse_datetime(bare, pl.Datetime("ns", zone) if fine else pl.Datetime("us", zone))
    return moment.alias(column.name) if moment.null_count() == column.null_count() else None


def _read_decimal_commas(columns: list[pl.Series]) -> None:
    found = {}
    sure = False
    for at, column in enumerate(columns):
        if column.dtype == pl.String:
            number = _first_that_fits(column, (_comma_float,))
            if number.dtype == pl.Float64:
                found[at] = number
                commas = column.filter(column.str.contains(",", literal=True))
                sure = sure or not bool(commas.str.contains(_THOUSANDS).all())
    if sure:
        for at, number in found.items():
            columns[at] = number


def _any(column: pl.Series, pattern: str) -> bool:
    return bool(column.str.contains(pattern).any())


def as_recorded(column: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """A text column in the type that was recorded for it, or None if a value does not fit."""
    if isinstance(dtype, pl.String):
        return column
    if isinstance(dtype, pl.Boolean):
        known = bool(column.is_in(["true", "false"]).all())
        return column == "true" if known else None
    if isinstance(dtype, pl.Datetime):
        value = parse_datetime(column, dtype)
    elif isinstance(dtype, pl.Duration):
        value = column.cast(pl.Int64, strict=False).cast(dtype)
    elif isinstance(dtype, pl.Date):
        value = column.str.to_date("%Y-%m-%d", strict=False)
    elif isinstance(dtype, pl.Time):
        value = column.str.to_time("%H:%M:%S%.f", strict=False)
    else:
        value = column.cast(dtype, strict=False)
    return value if value.null_count() == column.null_count() else None


def parse_datetime(column: pl.Series, dtype: pl.Datetime) -> pl.Series:
    """Text such as 2020-01-31T23:59:59.5 as datetimes; in UTC where the type has a time zone."""
    unit = dtype.time_unit
    moment = column.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit=unit, strict=False)
    if dtype.time_zone is None:
        return moment
    return moment.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
