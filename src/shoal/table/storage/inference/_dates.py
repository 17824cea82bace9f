"""Dates as people write them: 31.12.1999, 12/31/1999, 1-2-80 13:45.

A column is read as dates where every text fits one spelling. With dots the day comes first: nobody
writes months first there. With slashes or dashes a field above 12 shows the order. Where every
text fits both orders, other columns of the file in the same spelling decide; where none does, or
where a year has two digits, nobody can tell, and the format is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from shoal.errors import ReadError, quoted

_FIELD: Final = "[0-9]{1,2}"
_CLOCK: Final = r"[0-9]{1,2}:[0-9]{2}"
_SPELLED: Final = re.compile(
    rf"(?P<first>[0-9]{{4}}|{_FIELD})(?P<mark>[./-]){_FIELD}(?P=mark)(?P<last>[0-9]{{4}}|{_FIELD})"
    rf"(?:(?P<gap>, |[ T]){_CLOCK}(?P<seconds>:[0-9]{{2}}(?P<fraction>\.[0-9]{{1,9}})?)?"
    r"(?P<noon> ?[AaPp][Mm])?)?"
)
_DIRECTIVES: Final = re.compile(r"%(\.?[A-Za-z%])")
_KNOWN: Final = frozenset("d m Y y b B H I M S p .f %".split())
_ZEROS: Final = r"\b0+([0-9])"

#: Why dates are not read: both orders fit, or the century is not told.
Doubt = Literal["order", "century"]


@dataclass(frozen=True)
class _Spelling:
    """How the dates of a column are written, but for the order of day and month."""

    mark: str
    leading_year: bool
    short_year: bool
    pattern: str
    clock: str

    @classmethod
    def of(cls, text: str) -> _Spelling | None:
        """The spelling of a text; None where it is no date."""
        found = _SPELLED.fullmatch(text)
        if found is None:
            return None
        leading, last = len(found["first"]) == 4, len(found["last"])
        # 2024-1-2 is not the form of ISO, and 1.2.3 a version
        if (found["mark"] == "-" or last == 4) if leading else last == 1:
            return None
        short = last == 2 and not leading
        mark = re.escape(found["mark"])
        year = "[0-9]{2}" if short else "[0-9]{4}"
        fields = [year, _FIELD, _FIELD] if leading else [_FIELD, _FIELD, year]
        pattern, clock = mark.join(fields), ""
        if found["gap"]:
            hour = "%I:%M" if found["noon"] else "%H:%M"
            clock, pattern = found["gap"] + hour, pattern + found["gap"] + _CLOCK
        if found["seconds"]:
            clock, pattern = f"{clock}:%S", f"{pattern}:[0-9]{{2}}"
        if found["fraction"]:
            clock, pattern = f"{clock}%.f", rf"{pattern}\.[0-9]{{1,9}}"
        if found["noon"]:
            gap = " " * found["noon"].startswith(" ")
            clock, pattern = f"{clock}{gap}%p", f"{pattern}{gap}[AaPp][Mm]"
        return cls(found["mark"], leading, short, f"^{pattern}$", clock)

    @property
    def formats(self) -> list[str]:
        """The formats that it may stand for, the day first."""
        mark, year = self.mark, "%y" if self.short_year else "%Y"
        if self.leading_year:
            return [f"%Y{mark}%m{mark}%d{self.clock}"]
        day_first = f"%d{mark}%m{mark}{year}{self.clock}"
        return [day_first] if mark == "." else [day_first, f"%m{mark}%d{mark}{year}{self.clock}"]


@dataclass(frozen=True)
class DateReading:
    """The formats that all texts of a column fit, each with the dates; the day first."""

    mark: str
    short_year: bool
    fitting: Mapping[str, pl.Series]

    @property
    def doubt(self) -> Doubt | None:
        """What a reader cannot tell from this column alone."""
        if self.short_year:
            return "century"
        one, *others = self.fitting.values()
        return "order" if any(not one.equals(other) for other in others) else None


def read_dates(column: pl.Series, sample: pl.Series) -> DateReading | None:
    """The dates of a text column; None where a text is none. The sample is of its first texts."""
    present = sample.drop_nulls().str.strip_chars(" ")
    spelling = _Spelling.of(present[0]) if len(present) else None
    if spelling is None or not bool(present.str.contains(spelling.pattern).all()):
        return None
    bare = column.str.strip_chars(" ")
    if not bool(bare.str.contains(spelling.pattern).all()):
        return None
    found = {each: _parsed(bare, each) for each in spelling.formats}
    fitting = {
        each: dates for each, dates in found.items() if dates.null_count() == column.null_count()
    }
    return DateReading(spelling.mark, spelling.short_year, fitting) if fitting else None


def settled_formats(
    readings: Mapping[int, DateReading],
) -> tuple[dict[int, str], dict[int, Doubt]]:
    """The formats of columns, and what is in doubt about others; those of one spelling help."""
    orders: dict[str, set[bool]] = {}
    for reading in readings.values():
        if reading.doubt is None and len(reading.fitting) == 1:
            orders.setdefault(reading.mark, set()).add(_is_day_first(next(iter(reading.fitting))))
    formats: dict[int, str] = {}
    doubts: dict[int, Doubt] = {}
    for at, reading in readings.items():
        doubt, order = reading.doubt, orders.get(reading.mark, set())
        if doubt == "order" and len(order) == 1:
            (day_first,) = order
            formats[at] = next(f for f in reading.fitting if _is_day_first(f) == day_first)
        elif doubt is not None:
            doubts[at] = doubt
        else:
            formats[at] = next(iter(reading.fitting))
    return formats, doubts


def _is_day_first(format: str) -> bool:
    return format.startswith("%d")


def check_date_format(format: str) -> None:
    """ReadError unless a format names the day, the month and the year, by what is known."""
    named = _DIRECTIVES.findall(format) if isinstance(format, str) else []
    odd = [f"%{one}" for one in named if one not in _KNOWN]
    whole = "d" in named and {"m", "b", "B"} & {*named} and {"Y", "y"} & {*named}
    if odd or not whole or len(named) != len({*named} - {"%"}) + named.count("%"):
        raise ReadError(
            f"The date format {format!r} cannot be used; it names the day, the month and the year "
            "once, such as '%d.%m.%Y' or '%m/%d/%y', and perhaps a time, such as '%H:%M:%S'."
        )


def dates_in(column: pl.Series, format: str) -> tuple[pl.Series, int]:
    """A text column as dates of a format, and how many texts are none.

    A text fits if its date, written again, is the same text, but for zeros in front.
    """
    bare = column.str.strip_chars(" ")
    dates = _parsed(bare, format)
    again = dates.dt.strftime(format)
    same = [text.str.replace_all(_ZEROS, "${1}").str.to_lowercase() for text in (bare, again)]
    if "%.f" in format:
        same = [text.str.replace(r"\.?0*$", "") for text in same]
    fits = (same[0] == same[1]).fill_null(False) | column.is_null()
    return dates, len(column) - int(fits.sum())


def _parsed(column: pl.Series, format: str) -> pl.Series:
    if not {"H", "I", "M", "S"} & {*_DIRECTIVES.findall(format)}:
        return column.str.to_date(format, strict=False)
    return column.str.to_datetime(format, time_unit="us", strict=False)


def doubt_in_words(doubt: Doubt, names: Sequence[str]) -> str:
    """What is asked of whoever knows the data; columns of the same doubt."""
    columns = f"The column{'s' * (len(names) > 1)} {quoted(names)}"
    verb = "hold" if len(names) > 1 else "holds"
    if doubt == "century":
        why, say = "whose years have two digits, so that nobody can tell the century", "%d.%m.%y"
    else:
        why, say = "of which nobody can tell whether the day or the month comes first", "%d/%m/%Y"
    example = f"{names[0]}={say}"
    return (
        f"{columns} {verb} dates {why}: read as text, until date_formats (--date-format "
        f"'{example}') tells it."
    )
