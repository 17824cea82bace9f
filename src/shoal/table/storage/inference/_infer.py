"""Infer the types of text columns from all of their values.

Inference must not lose anything. A column becomes numeric only if each number, written again, gives
the same text: 01234 and +49 stay text. So does a column with an integer of more than 64 bits, which
is a key and not a quantity.

Other numbers than those of programs are read if every text of a column fits one pair of marks: a
separator between groups of three digits, and a decimal mark. 1,234 and 1.234 alone are ambiguous:
either a whole number above a thousand or a number between one and two. Then other columns of the
file show the decimal mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from shoal.table.storage._types import parse_datetime
from shoal.table.storage.inference._dates import read_spelled_dates

#: How many rows, and how many of their texts, are tried before all of them.
FIRST: Final = 2000
_SAMPLE: Final = 200
# what every type requires of the first text
_MAY_BE_READ: Final = re.compile(r" *(?:[-+.,0-9]|true *$|false *$)", re.IGNORECASE)
_DATETIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?Z?$"
)
_NANOSECONDS: Final = r"\.[0-9]{7,}"

#: The separators between groups of three digits, including non-breaking spaces.
THOUSANDS: Final = (".", ",", " ", "\u00a0", "\u202f", "'", "\u2019")
DECIMALS: Final = (".", ",")
DIGITS: Final = r"(?:0|[1-9][0-9]*)"
FLOAT: Final = rf"^-?(?:{DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_COMMA_FLOAT: Final = FLOAT.replace(r"\.", ",")
# an integer with more digits than a float keeps, which would change among decimals
_LONG_INTEGER: Final = r"^-?[0-9]{16,}$"
_NUMBERLIKE: Final = re.compile(r"[ \u00a0\u202f]*-?[0-9]+(?:[.,'\u2019 \u00a0\u202f][0-9]*)*$")
_MARK: Final = "[.,'\u2019 \u00a0\u202f]"
#: Whole numbers are codes if they all have the same length, of at least this many digits.
_CODE_DIGITS: Final = 9
_SPACES: Final = " \u00a0\u202f"


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
        if (
            columns[at].dtype == pl.Float64
            and decimal is None
            # points may also be separators of whole numbers
            and bool(sample.alias("").str.contains(Marks(",", ".").pattern).all())
        ):
            points[at] = column
    commas = commas and decimal is None
    found = _read_marked_numbers(columns, samples, points, decimal, thousands, commas)
    formats, doubts = read_spelled_dates(columns, samples)
    return replace(found, date_formats=formats, doubts=doubts)


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


# -- numbers as people write them: 8.074,75, 1,234.56, 1 234,5 and 1'234


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


@dataclass(frozen=True)
class Marks:
    """The marks of a number: the decimal mark and, if any, the thousands separator."""

    decimal: str
    thousands: str | None = None

    @property
    def pattern(self) -> str:
        """The pattern of texts with these marks."""
        if self.thousands is None:
            return FLOAT if self.decimal == "." else _COMMA_FLOAT
        group, decimal = re.escape(self.thousands), re.escape(self.decimal)
        return rf"^-?(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|{DIGITS})(?:{decimal}[0-9]+)?$"

    def fit(self, column: pl.Series) -> bool:
        """Whether all texts fit the marks; a thousands separator must occur."""
        if self.thousands is not None and not _any(column, self.thousands):
            return False
        return bool(column.str.contains(self.pattern).all())

    def numbers(self, column: pl.Series) -> pl.Series | None:
        """Texts that fit, as numbers; None if one would change or if all are codes."""
        if self.thousands is not None:
            column = column.str.replace_all(self.thousands, "", literal=True)
            if not _any(column, self.decimal):
                return None if _are_codes(column) else as_integers(column)
        return as_floats(column.str.replace(self.decimal, ".", literal=True))


@dataclass(frozen=True)
class NumberReading:
    """A text column that may be numbers, and the marks that all its texts fit."""

    texts: pl.Series
    fitting: tuple[Marks, ...]
    #: Whether any text has a point or a comma.
    has_marks: bool

    @property
    def vote(self) -> str | None:
        """The only possible decimal mark; None if there are several."""
        marks = {marks.decimal for marks in self.fitting}
        return next(iter(marks)) if self.has_marks and len(marks) == 1 else None

    @property
    def certain(self) -> bool:
        """Whether texts have both marks, or one repeatedly, which lists of answers do not have."""
        return self.has_marks and all(marks.thousands is not None for marks in self.fitting)

    def by(self, decimal: str | None) -> Marks | None:
        """The marks to read the texts with; None if they are ambiguous."""
        for marks in self.fitting:
            if not self.has_marks or self.vote is not None or marks.decimal == decimal:
                return marks
        return None


def read_numbers(
    column: pl.Series, sample: pl.Series, *, decimal: str | None, thousands: str | None
) -> NumberReading | None:
    """The marks that the texts of a column fit; None if they are not numbers."""
    first = next((text for text in sample if text is not None), None)
    if first is None or _NUMBERLIKE.match(first) is None:  # most texts need no other check
        return None
    # a column without any mark was read as whole numbers, or holds codes
    if not bool(column.str.contains(_MARK).any()):
        return None
    sample = sample.drop_nulls().str.strip_chars(_SPACES)
    candidates = [
        marks
        for marks in _candidates(decimal, thousands)
        if bool(sample.str.contains(marks.pattern).all())
    ]
    if not candidates:
        return None
    bare = column.str.strip_chars(_SPACES)
    fitting = tuple(marks for marks in candidates if marks.fit(bare))
    has_marks = _any(bare, ".") or _any(bare, ",")
    return NumberReading(bare, fitting, has_marks) if fitting else None


def _candidates(decimal: str | None, thousands: str | None) -> Iterable[Marks]:
    for mark in DECIMALS if decimal is None else (decimal,):
        for group in (None, *(THOUSANDS if thousands is None else (thousands,))):
            if mark not in (group, thousands):
                yield Marks(mark, group)


def settled_decimal(votes: Iterable[str | None]) -> str | None:
    """The decimal mark that the columns of a file agree on."""
    found = {vote for vote in votes if vote is not None}
    return found.pop() if len(found) == 1 else None


def as_integers(column: pl.Series) -> pl.Series | None:
    """Texts as whole numbers; None if one would be written differently."""
    number = column.cast(pl.Int64, strict=False)
    return number if bool(number.cast(pl.String).eq_missing(column).all()) else None


def as_floats(column: pl.Series) -> pl.Series | None:
    """Texts as numbers with decimals; None if one is not a number or would change."""
    if not bool(column.str.contains(FLOAT).all()) or bool(column.str.contains(_LONG_INTEGER).any()):
        return None
    number = column.cast(pl.Float64, strict=False)
    finite = number.null_count() == column.null_count() and bool(number.is_finite().all())
    return number if finite else None


def _are_codes(column: pl.Series) -> bool:
    """Whether whole numbers all have the same, large number of digits, as identifiers have."""
    lengths = column.str.len_bytes()
    return len(column) > 1 and lengths.min() == lengths.max() and lengths.min() >= _CODE_DIGITS  # type: ignore[operator, return-value]


def _any(column: pl.Series, mark: str) -> bool:
    return bool(column.str.contains(mark, literal=True).any())
