"""Dates, datetimes and times in calendar units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, did_you_mean
from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import moments_of
from shoal.table.hierarchy._rule import Rule, Rung, Unseen, dense

#: The units, fine to coarse; those of the second line nest in no month, quarter or year.
_CALENDAR: Final = ("minute", "hour", "day", "month", "quarter", "year", "decade", "century")
_WEEKS: Final = ("week", "iso-year")
UNITS: Final = (*_CALENDAR, *_WEEKS)
_BEFORE_WEEKS: Final = ("minute", "hour", "day")

#: How many of numpy's unit make one of ours.
_NUMPY: Final = {
    "minute": ("m", 1),
    "hour": ("h", 1),
    "day": ("D", 1),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
    "decade": ("Y", 10),
    "century": ("Y", 100),
}
_CLOCK: Final = {"minute": 60, "hour": 3600}
_MONDAY: Final = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True)
class Dates(Rule):
    """Calendar units, fine to coarse, each a union of the ones below."""

    units: tuple[str, ...]

    kind = "dates"

    @property
    def inner_levels(self) -> int:
        return len(self.units)

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        kind = kind_of(values.dtype)
        if kind == "time":
            return [_clock_rung(values, unit) for unit in self.units]
        if kind not in ("date", "datetime"):
            raise InputError(
                f"Column '{values.name}' is {kind}, not a date; read its dates as dates, or take "
                "another hierarchy."
            )
        moments = moments_of(values)
        return [_rung(moments, unit) for unit in self.units]

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: list(self.units)}

    def describe(self) -> str:
        return f"dates by {', '.join(self.units)}"


def calendar(units: Sequence[str]) -> Dates:
    """Units that are checked to nest."""
    if isinstance(units, str):
        units = [units]
    for unit in units:
        if unit not in UNITS:
            raise InputError(f"There is no unit of dates '{unit}'. {did_you_mean(unit, UNITS)}")
    weekly = any(unit in _WEEKS for unit in units)
    chain = (*_BEFORE_WEEKS, *_WEEKS) if weekly else _CALENDAR
    stray = [unit for unit in units if unit not in chain]
    if stray:
        raise InputError(
            f"Weeks do not nest in a {stray[0]}: a week may lie in two of them. Take "
            "['day', 'week', 'iso-year'], or leave the weeks out."
        )
    places = [chain.index(unit) for unit in units]
    if not places or places != sorted(set(places)):
        raise InputError(
            "The units of dates must go from fine to coarse, each once, such as "
            "['month', 'quarter', 'year', 'decade']."
        )
    return Dates(tuple(units))


def _rung(moments: npt.NDArray[np.datetime64], unit: str) -> Rung:
    keys, nodes = dense(_keys(moments, unit))
    starts = np.column_stack((_days(keys, unit), _days(keys + 1, unit)))
    labels = _labels(keys, unit)
    return Rung(nodes, labels, starts, meanings=dict.fromkeys(labels))


def _keys(moments: npt.NDArray[np.datetime64], unit: str) -> Integers:
    """The number of the unit that a moment lies in; those of years are years."""
    if unit == "week":
        return (moments.astype("datetime64[D]").astype(np.int64) + _MONDAY) // 7
    if unit == "iso-year":
        # the year of the Thursday of the week
        days = moments.astype("datetime64[D]").astype(np.int64)
        thursday = (days + _MONDAY) // 7 * 7
        return thursday.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
    code, joined = _NUMPY[unit]
    number = moments.astype(f"datetime64[{code}]").astype(np.int64)
    return (number + 1970 if code == "Y" else number) // joined


def _days(keys: Integers, unit: str) -> Floats:
    """Where a unit begins, in days from 1970-01-01."""
    if unit == "week":
        return (keys * 7 - _MONDAY).astype(np.float64)
    if unit == "iso-year":
        # the week of 4 January is the first
        fourth = (keys - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) + 3
        return ((fourth + _MONDAY) // 7 * 7 - _MONDAY).astype(np.float64)
    if unit in _CLOCK:
        per_day = 86_400 // _CLOCK[unit]
        return keys // per_day + (keys % per_day).astype(np.float64) / per_day
    code, joined = _NUMPY[unit]
    number = keys * joined - 1970 if code == "Y" else keys * joined
    return number.astype(f"datetime64[{code}]").astype("datetime64[D]").astype(np.float64)


def _labels(keys: Integers, unit: str) -> list[str]:
    if unit in ("minute", "hour", "day", "month"):
        code = {"hour": "m"}.get(unit, _NUMPY[unit][0])
        moments = keys.astype(f"datetime64[{_NUMPY[unit][0]}]").astype(f"datetime64[{code}]")
        return [str(label).replace("T", " ") for label in np.datetime_as_string(moments)]
    if unit == "quarter":
        return [f"{1970 + key // 4}-Q{key % 4 + 1}" for key in keys.tolist()]
    if unit == "week":
        thursdays = (keys * 7).astype("datetime64[D]")
        years = thursdays.astype("datetime64[Y]")
        weeks = (thursdays - years.astype("datetime64[D]")).astype(np.int64) // 7 + 1
        pairs = zip(years.astype(np.int64) + 1970, weeks, strict=True)
        return [f"{year}-W{week:02d}" for year, week in pairs]
    if unit == "century":
        return [f"{key * 100}-{key * 100 + 99}" for key in keys.tolist()]
    named = {"year": "{}", "decade": "{}0s", "iso-year": "ISO {}"}[unit]
    return [named.format(key) for key in keys.tolist()]


def _clock_rung(values: pl.Series, unit: str) -> Rung:
    """A time of day in hours or minutes."""
    if unit not in _CLOCK:
        raise InputError(
            f"Column '{values.name}' is a time of day, which has no {unit}; take 'minute' or "
            "'hour'."
        )
    seconds = _CLOCK[unit]
    keys, nodes = dense(values.to_physical().to_numpy() // (seconds * 10**9))
    labels = [f"{at // 3600:02d}:{at % 3600 // 60:02d}" for at in (keys * seconds).tolist()]
    ends = np.column_stack((_days(keys, unit), _days(keys + 1, unit)))
    return Rung(nodes, labels, ends, meanings=dict.fromkeys(labels))
