"""Numbers as people write them: 8.074,75, 1,234.56, 1 234,5 and 1'234.

A column is read as numbers if every text fits one pair of marks: a separator between groups of
three digits, and a decimal mark. 1,234 and 1.234 alone are ambiguous: either a whole number above a
thousand or a number between one and two. Then other columns of the file show the decimal mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import polars as pl

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
