"""Infer the types of text columns from all of their values.

Inference must not lose anything. A column becomes numeric only if each number, written again, gives
the same text: 01234 and +49 stay text. So does a column with an integer of more than 64 bits, which
is a key and not a quantity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from shoal.table.storage._types import parse_datetime
from shoal.table.storage.inference._dates import read_spelled_dates
from shoal.table.storage.inference._numbers import (
    DECIMALS,
    Marks,
    NumberReading,
    as_floats,
    as_integers,
    read_numbers,
    settled_decimal,
)

#: How many rows, and how many of their texts, are tried before all of them.
FIRST: Final = 2000
_SAMPLE: Final = 200
# what every type requires of the first text
_MAY_BE_READ: Final = re.compile(r" *(?:[-+.,0-9]|true *$|false *$)", re.IGNORECASE)
_DATETIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?Z?$"
)
_NANOSECONDS: Final = r"\.[0-9]{7,}"


@dataclass(frozen=True)
class Spelling:
    """How the numbers and dates of some columns are written; columns by their positions."""

    decimal: str | None = None
    thousands: str | None = None
    date_formats: Mapping[int, str] = field(default_factory=dict)
    #: Columns of dates with an ambiguous format, each with a possible one.
    doubts: Mapping[int, str] = field(default_factory=dict)
    #: Columns in which a text such as 1,234 may be a whole number or a decimal fraction.
    open_numbers: tuple[int, ...] = ()


def infer_types(
    columns: list[pl.Series],
    samples: Sequence[pl.Series],
    *,
    decimal: str | None = None,
    thousands: str | None = None,
    commas: bool = False,
) -> Spelling:
    """Convert text columns in place to the narrowest type that loses nothing; return the spelling.

    If ``commas`` separate the fields, a comma is a decimal mark only on request.
    """
    if thousands in DECIMALS and decimal is None:
        decimal = "," if thousands == "." else "."
    readings = (_boolean, as_integers, as_floats, _date, _datetime)
    if decimal == ",":
        readings = (_boolean, as_integers, _comma_floats, _date, _datetime)
    points: dict[int, pl.Series] = {}
    for at, (column, sample) in enumerate(zip(columns, samples, strict=True)):
        if column.dtype != pl.String:  # read already
            continue
        columns[at] = _first_that_fits(column, sample, readings)
        if columns[at].dtype == pl.Float64 and decimal is None and _may_be_thousands(sample):
            points[at] = column
    commas = commas and decimal is None
    found = _read_marked_numbers(columns, samples, points, decimal, thousands, commas)
    formats, doubts = read_spelled_dates(columns, samples)
    return replace(found, date_formats=formats, doubts=doubts)


def _read_marked_numbers(
    columns: list[pl.Series],
    samples: Sequence[pl.Series],
    points: Mapping[int, pl.Series],
    decimal: str | None,
    thousands: str | None,
    commas: bool,
) -> Spelling:
    """Read numbers with other marks than a decimal point, in place, as all columns together allow.

    ``points`` are texts like 1.234, which were read as floats.
    """

    def readings(texts: Mapping[int, pl.Series], mark: str | None) -> dict[int, NumberReading]:
        marks = {"decimal": mark, "thousands": thousands}
        found = {
            at: read_numbers(column.alias(""), samples[at].alias(""), **marks)
            for at, column in texts.items()
        }
        return {at: reading for at, reading in found.items() if reading is not None}

    texts = {at: column for at, column in enumerate(columns) if column.dtype == pl.String}
    found = readings(texts, decimal)
    floats = {at for at, column in enumerate(columns) if column.dtype == pl.Float64}
    votes = ["." if floats - {*points} else None, *(each.vote for each in found.values())]
    mark = decimal or settled_decimal(votes)
    if mark == ",":
        found |= readings(points, mark)
    used, left_open = {thousands} - {None}, []
    for at, reading in found.items():
        marks = reading.by(mark)
        if marks is None:
            left_open.append(at)
            continue
        agrees = marks.decimal == mark and not (commas and mark == ",")
        if agrees or reading.certain or not reading.has_marks:
            numbers = marks.numbers(reading.texts)
            if numbers is not None:
                columns[at] = numbers.alias(columns[at].name)
                used |= {marks.thousands} - {None}
    return Spelling(
        decimal=None if commas and mark == "," else mark,  # nothing was read with it
        thousands=used.pop() if len(used) == 1 else None,
        open_numbers=tuple(left_open),
    )


def _may_be_thousands(sample: pl.Series) -> bool:
    """Whether numbers with decimals may be whole numbers with points as separators."""
    return bool(sample.alias("").str.contains(Marks(",", ".").pattern).all())


def first_texts(column: pl.Series) -> pl.Series:
    """The first texts of a column, on which most types already fail, at little cost."""
    return _without_gaps(column.alias("").head(FIRST)).head(_SAMPLE)  # a name may be a pattern


def _without_gaps(column: pl.Series) -> pl.Series:
    return column.drop_nulls() if column.null_count() else column


def infer_dates(column: pl.Series) -> pl.Series:
    """A text column as dates or datetimes if all texts are in ISO form; otherwise unchanged."""
    return _first_that_fits(column, first_texts(column), (_date, _datetime))


def infer_number(column: pl.Series) -> pl.Series:
    """A text column as numbers if that loses nothing; otherwise unchanged."""
    return _first_that_fits(column, first_texts(column), (as_integers, as_floats))


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


def _comma_floats(column: pl.Series) -> pl.Series | None:
    marks = Marks(",")
    return marks.numbers(column) if marks.fit(column) else None


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
    fine = bool(bare.str.contains(_NANOSECONDS).any())
    moment = parse_datetime(bare, pl.Datetime("ns", zone) if fine else pl.Datetime("us", zone))
    return moment.alias(column.name) if moment.null_count() == column.null_count() else None
