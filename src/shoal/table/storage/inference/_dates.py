"""Dates as people write them: 31.12.1999, 12/31/1999, 1-2-80 13:45.

A column is read as dates if every text fits one spelling. With dots, the day always comes first.
With slashes or dashes, a field above 12 shows the order. If every text fits both orders, other
columns of the file in the same spelling decide. If none does, or if years have two digits, the
dates are ambiguous and the user is asked for the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from shoal.errors import ReadError, quoted

_FIELD: Final = "[0-9]{1,2}"
_CLOCK: Final = r"[0-9]{1,2}:[0-9]{2}"
_SPELLED: Final = re.compile(
    rf"(?P<first>[0-9]{{4}}|{_FIELD})(?P<mark>[./-]){_FIELD}(?P=mark)(?P<last>[0-9]{{4}}|{_FIELD})"
    rf"(?:(?P<gap>, |[ T]){_CLOCK}(?P<seconds>:[0-9]{{2}}(?P<fraction>\.[0-9]{{1,6}})?)?"
    r"(?P<noon> ?[AaPp][Mm])?)?"
)
_DIRECTIVES: Final = re.compile(r"%(\.?[A-Za-z%])")
_KNOWN: Final = frozenset("d m Y y b B H I M S p .f %".split())
#: The patterns of directives; all others stand for numbers of two digits.
_FIELDS: Final = {
    "Y": "[0-9]{4}",
    **dict.fromkeys(("y", "M", "S"), "[0-9]{2}"),
    **dict.fromkeys(("b", "B"), r"\p{L}+\.?"),
    "p": "[AaPp][Mm]",
    ".f": r"(?:\.[0-9]{1,6})?",
    "%": "%",
}

#: In a table of formats, the name that stands for all other columns.
EVERY_COLUMN: Final = "*"


def read_spelled_dates(
    columns: list[pl.Series], samples: Sequence[pl.Series]
) -> tuple[dict[int, str], dict[int, str]]:
    """Read text columns of dates, in place; return the format of each, and doubtful formats.

    A column whose format is in doubt stays text and is returned with a possible format.
    """
    readings = {
        at: reading
        for at, column in enumerate(columns)
        if column.dtype == pl.String and (reading := _read_dates(column, samples[at]))
    }
    formats, doubts = _settled_formats(readings)
    for at, found in formats.items():
        columns[at] = readings[at][found].alias(columns[at].name)
    return formats, doubts


#: The formats that all texts of a column fit, each with the dates; day-first formats first.
_Dates = dict[str, pl.Series]


def _read_dates(column: pl.Series, sample: pl.Series) -> _Dates:
    """The dates of a text column; empty if a text is not a date. The sample holds first texts."""
    first = next((text for text in sample if text is not None), "")
    formats = _formats_of(first.strip(" "))
    if not formats:
        return {}
    # either all texts have parts of a second, or none
    pattern = _pattern_of(formats[0]).replace(_FIELDS[".f"], r"\.[0-9]{1,6}")
    bare = column.alias("").str.strip_chars(" ")
    if not bool(bare.str.contains(pattern).all()):
        return {}
    found = {each: _parsed(bare, each) for each in formats}
    gaps = column.null_count()
    return {
        each: dates
        for each, dates in found.items()
        if dates.null_count() == gaps and bool((dates.dt.year() > 0).all())  # no year 0000
    }


def _formats_of(text: str) -> list[str]:
    """The formats in which a date may be written, with the day first; none if it is not a date."""
    found = _SPELLED.fullmatch(text)
    if found is None:
        return []
    leading, last, mark = len(found["first"]) == 4, len(found["last"]), found["mark"]
    # 2024-1-2 is not ISO, and 1.2.3 is a version number
    if (mark == "-" or last == 4) if leading else last == 1:
        return []
    clock = ""
    if found["gap"]:
        clock = found["gap"] + ("%I:%M" if found["noon"] else "%H:%M")
        clock += ":%S" * bool(found["seconds"]) + "%.f" * bool(found["fraction"])
    if found["noon"]:
        clock += " " * found["noon"].startswith(" ") + "%p"
    if leading:
        return [f"%Y{mark}%m{mark}%d{clock}"]
    year = "%y" if last == 2 else "%Y"
    day_first = f"%d{mark}%m{mark}{year}{clock}"
    return [day_first] if mark == "." else [day_first, f"%m{mark}%d{mark}{year}{clock}"]


def _settled_formats(readings: Mapping[int, _Dates]) -> tuple[dict[int, str], dict[int, str]]:
    """The certain formats and the doubtful ones; columns with the same mark help each other."""
    orders: dict[str, set[bool]] = {}
    for reading in readings.values():
        first, *others = reading
        if not others and not first.startswith("%Y"):
            orders.setdefault(_mark(first), set()).add(_is_day_first(first))
    formats: dict[int, str] = {}
    doubts: dict[int, str] = {}
    for at, reading in readings.items():
        first, *_ = reading
        order = orders.get(_mark(first), set())
        likely = [f for f in reading if {_is_day_first(f)} == order]
        dates = [*reading.values()]
        same = dates[0].equals(dates[-1])  # in either order
        sure = "%y" not in first and (likely or same)
        (formats if sure else doubts)[at] = [*likely, *reading][0]
    return formats, doubts


def _mark(format: str) -> str:
    return format[2]


def _is_day_first(format: str) -> bool:
    return format.startswith("%d")


def check_date_format(format: str) -> None:
    """ReadError unless a format has known directives for the day, the month and the year."""
    named = _DIRECTIVES.findall(format) if isinstance(format, str) else []
    odd = [f"%{one}" for one in named if one not in _KNOWN]
    whole = "d" in named and {"m", "b", "B"} & {*named} and {"Y", "y"} & {*named}
    if odd or not whole or len(named) != len({*named} - {"%"}) + named.count("%"):
        raise ReadError(
            f"The date format {format!r} is not valid. It must contain the day, the month and the "
            "year once, such as '%d.%m.%Y' or '%m/%d/%y', and may contain a time, such as "
            "'%H:%M:%S'."
        )


def read_formatted_dates(
    names: Sequence[str], texts: list[pl.Series], formats: Mapping[str, str], called: str
) -> dict[str, str]:
    """Read text columns in place with the given formats; return the format of each column read.

    ReadError if a column does not exist or has a text that does not fit its format.
    """
    absent = [name for name in formats if name not in (*names, EVERY_COLUMN)]
    if absent:
        raise ReadError(
            f"date_formats names columns that {called} does not have: {quoted(absent)}. Use the "
            "names of its columns."
        )
    read = {}
    for at, name in enumerate(names) if formats else ():
        format, column = formats.get(name, formats.get(EVERY_COLUMN)), texts[at]
        if (
            format is None
            or column.dtype != pl.String
            or (name not in formats and is_empty(column))
        ):
            continue
        dates, odd = _dates_in(column.alias(""), format)
        if not odd:
            texts[at], read[name] = dates.alias(column.name), format
        elif name in formats:
            raise ReadError(
                f"Column '{name}' of {called} has {odd:,} different text{'s' * (odd > 1)} that "
                f"{'do' if odd > 1 else 'does'} not fit the date format {format!r}. Pass the right "
                "format, or list the texts that mean a missing value."
            )
    return read


def is_empty(column: pl.Series) -> bool:
    """Whether a column has no value."""
    return column.null_count() == len(column)


def _dates_in(column: pl.Series, format: str) -> tuple[pl.Series, int]:
    """A text column as dates of a format, and the number of texts that do not fit."""
    bare = column.str.strip_chars(" ")
    dates = _parsed(bare, format)
    fits = (bare.str.contains(_pattern_of(format)) & dates.is_not_null()) | column.is_null()
    return dates, len(column) - int(fits.sum())


def _pattern_of(format: str) -> str:
    """The pattern of a format; a leading zero is optional in a field between separators."""
    parts = _DIRECTIVES.split(format)
    signs, names = parts[0::2], parts[1::2]
    pattern = re.escape(signs[0])
    for at, name in enumerate(names):
        after, last = signs[at + 1], at == len(names) - 1
        alone = (signs[at] or at == 0) and (after or last)
        pattern += _FIELDS.get(name, _FIELD if alone else "[0-9]{2}") + re.escape(after)
    return f"^{pattern}$"


def _parsed(column: pl.Series, format: str) -> pl.Series:
    if not {"H", "I", "M", "S"} & {*_DIRECTIVES.findall(format)}:
        return column.str.to_date(format, strict=False)
    return column.str.to_datetime(format, time_unit="us", strict=False)


def doubts_in_words(formats: Mapping[str, str]) -> Iterator[str]:
    """Notes that ask for the formats of ambiguous dates, each with a possible format."""
    for short in (False, True):
        names = [name for name, format in formats.items() if ("%y" in format) == short]
        if not names:
            continue
        why = "the day or the month may come first"
        if short:
            why = "years have two digits, so the century is unknown"
        yield (
            f"The dates in {quoted(names)} are ambiguous, because {why}. They were read as text. "
            f"Set their format, for example with --date-format '{names[0]}={formats[names[0]]}' "
            "(date_formats=)."
        )
