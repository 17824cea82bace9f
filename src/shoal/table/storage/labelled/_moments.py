"""Dates and times of Stata, SPSS and SAS: numbers since an epoch, and a format that says which."""

from __future__ import annotations

import re
from typing import Final, Literal

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.table.columns._frames import refuse_beyond_calendar
from shoal.table.storage.labelled._dictionary import Family

Moment = Literal["date", "datetime", "time"]

#: Days from the epoch of a program to 1970-01-01.
_EPOCH: Final[dict[Family, int]] = {"stata": 3653, "spss": 141_428, "sas": 3653}
_DAY: Final = 86_400_000  # milliseconds
_BEYOND: Final = 2**31 - 1  # days that no calendar has, and that a date can hold
_WIDTH: Final = re.compile(r"[\d.]+$")

_SPSS: Final[dict[str, Moment]] = {
    **dict.fromkeys(("DATE", "ADATE", "EDATE", "JDATE", "SDATE"), "date"),
    **dict.fromkeys(("DATETIME", "YMDHMS"), "datetime"),
    "TIME": "time",
}
_SAS: Final[dict[str, Moment]] = {
    **dict.fromkeys(
        "DATE DDMMYY DDMMYYB DDMMYYC DDMMYYD DDMMYYN DDMMYYP DDMMYYS MMDDYY MMDDYYB MMDDYYC "
        "MMDDYYD MMDDYYN MMDDYYP MMDDYYS YYMMDD YYMMDDB YYMMDDC YYMMDDD YYMMDDN YYMMDDP YYMMDDS "
        "WEEKDATE WEEKDATX WORDDATE WORDDATX JULIAN NLDATE E8601DA B8601DA IS8601DA".split(),
        "date",
    ),
    **dict.fromkeys(
        "DATETIME DATEAMPM MDYAMPM NLDATM E8601DT B8601DT IS8601DT".split(), "datetime"
    ),
    **dict.fromkeys("TIME HHMM TOD TIMEAMPM NLTIME E8601TM B8601TM IS8601TM".split(), "time"),
}
#: The format that a moment is written with.
FORMATS: Final[dict[Family, dict[Moment, str]]] = {
    "stata": {"date": "%td", "datetime": "%tc", "time": "%tcHH:MM:SS"},
    "spss": {"date": "DATE11", "datetime": "DATETIME23.3", "time": "TIME12.3"},
    "sas": {"date": "DATE9.", "datetime": "DATETIME22.3", "time": "TIME12.3"},
}


def moment_of(format: str | None, family: Family) -> Moment | None:
    """What a display format shows numbers as; None for other formats."""
    if not format:
        return None
    if family == "stata":
        # %tC counts leap seconds, and %tw, %tm, %tq and %ty count other units: both stay numbers
        shown = format.replace("%-", "%")
        if shown.startswith("%tcHH:MM"):
            return "time"
        if shown.startswith("%tc"):
            return "datetime"
        return "date" if shown.startswith(("%td", "%d")) else None
    word = _WIDTH.sub("", format.upper())
    return (_SPSS if family == "spss" else _SAS).get(word)


def as_moments(numbers: pl.Series, moment: Moment, family: Family) -> pl.Series:
    """Numbers since an epoch as dates, datetimes or times; whole days become dates."""
    values = numbers.cast(pl.Float64).to_numpy()
    gaps = pl.Series(np.isnan(values))
    if family == "spss" or moment != "date":
        ticks = values if family == "stata" else values * 1000.0
    else:
        ticks = values * _DAY
    if moment != "time":
        ticks = ticks - _EPOCH[family] * float(_DAY)
    ticks = np.rint(np.nan_to_num(np.clip(ticks, -_BEYOND * float(_DAY), _BEYOND * float(_DAY))))
    whole = ticks.astype(np.int64)
    inside = ~gaps.to_numpy()
    if moment == "time":
        if ((whole[inside] < 0) | (whole[inside] >= _DAY)).any():
            return numbers  # a span of time, not a time of the day
        found = pl.Series(whole * 1_000_000).set(gaps, None).cast(pl.Time)
    elif moment == "date" and not (whole[inside] % _DAY).any():
        found = pl.Series((whole // _DAY).astype(np.int32)).set(gaps, None).cast(pl.Date)
    else:
        found = pl.Series(whole).set(gaps, None).cast(pl.Datetime("ms"))
    found = found.alias(numbers.name)
    refuse_beyond_calendar(found)
    return found


def as_numbers(cells: pl.Series, family: Family) -> tuple[pl.Series, str]:
    """Dates, datetimes and times as numbers since an epoch, and their format."""
    bare = cells.alias("")
    if cells.dtype == pl.Date:
        days = bare.to_physical().cast(pl.Int64) + _EPOCH[family]
        return (days * 86_400 if family == "spss" else days), FORMATS[family]["date"]
    moment: Moment = "time" if cells.dtype == pl.Time else "datetime"
    ticks = _milliseconds(bare, cells.name)
    if moment == "datetime":
        ticks = ticks + _EPOCH[family] * _DAY
    if family != "stata":
        return ticks.cast(pl.Float64) / 1000.0, FORMATS[family][moment]
    return ticks, FORMATS[family][moment]


def _milliseconds(cells: pl.Series, name: str) -> pl.Series:
    unit = "ns" if cells.dtype == pl.Time else getattr(cells.dtype, "time_unit", "us")
    per = {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]
    ticks = cells.to_physical().cast(pl.Int64)
    finer = int((ticks % per != 0).sum())
    if finer:
        raise InputError(
            f"Column '{name}' has {finer:,} times with parts of a millisecond, which files of "
            "Stata, SPSS and SAS cannot hold. Round them, or use another format."
        )
    return ticks // per
