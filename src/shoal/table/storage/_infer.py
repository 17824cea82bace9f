"""Types of columns that come as text, guessed from all of their values.

A guess must not lose anything. A column becomes numeric only if each number, written again, says
the same: 01234 and +49 stay text, and so does a column with an integer of more than 64 bits, which
is a key and not a quantity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import polars as pl

from shoal.table.storage._types import parse_datetime

#: So many rows are looked at before all of them, and so many of their texts.
FIRST: Final = 2000
_SAMPLE: Final = 200
# what each reading wants of every text
_MAY_BE_READ: Final = re.compile(r" *(?:[-+.,0-9]|true *$|false *$)", re.IGNORECASE)
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


def infer_types(
    columns: list[pl.Series], samples: Sequence[pl.Series], *, decimal: str | None
) -> None:
    """Give text columns, in place, the narrowest type that loses nothing."""
    number = _comma_float if decimal == "," else _float
    readings = (_boolean, _integer, number, _date, _datetime)
    for at, (column, sample) in enumerate(zip(columns, samples, strict=True)):
        columns[at] = _first_that_fits(column, sample, readings)
    if decimal is None and not any(column.dtype == pl.Float64 for column in columns):
        _read_decimal_commas(columns, samples)


def first_texts(column: pl.Series) -> pl.Series:
    """The first texts of a column: most readings fail on a few of them, and cheaply there."""
    return _without_gaps(column.alias("").head(FIRST)).head(_SAMPLE)  # a name may be a pattern


def _without_gaps(column: pl.Series) -> pl.Series:
    return column.drop_nulls() if column.null_count() else column


def infer_dates(column: pl.Series) -> pl.Series:
    """A text column as dates or datetimes if all of it is in ISO form, else as it is."""
    return _first_that_fits(column, first_texts(column), (_date, _datetime))


def infer_number(column: pl.Series) -> pl.Series:
    """A text column as numbers if that loses nothing, else as it is."""
    return _first_that_fits(column, first_texts(column), (_integer, _float))


def _first_that_fits(
    column: pl.Series,
    sample: pl.Series,
    readings: Iterable[Callable[[pl.Series], pl.Series | None]],
) -> pl.Series:
    name, column = column.name, column.alias("")  # polars reads a name such as ^a$ as a pattern
    if column.null_count() == len(column):
        return column.alias(name)
    sample, trimmed = _without_gaps(sample.alias("")), None
    if len(sample) and _MAY_BE_READ.match(sample[0]) is None:
        return column.alias(name)
    if bool(sample.str.contains("^ | $").any()):
        trimmed, sample = column.str.strip_chars(" "), sample.str.strip_chars(" ")
    short = len(column) <= FIRST
    for reading in readings:
        if short or reading(sample) is not None:
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


def _read_decimal_commas(columns: list[pl.Series], samples: Sequence[pl.Series]) -> None:
    found = {}
    sure = False
    for at, column in enumerate(columns):
        if column.dtype == pl.String:
            number = _first_that_fits(column, samples[at], (_comma_float,))
            if number.dtype == pl.Float64:
                found[at] = number
                commas = column.filter(column.str.contains(",", literal=True))
                sure = sure or not bool(commas.str.contains(_THOUSANDS).all())
    if sure:
        for at, number in found.items():
            columns[at] = number


def _any(column: pl.Series, pattern: str) -> bool:
    return bool(column.str.contains(pattern).any())
