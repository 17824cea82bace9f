"""Columns that follow from dates: ages, years and months beside the dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats
from shoal.table import Table

#: So many rows are looked at, and so many different values of a part of dates show that it is one.
_ROWS: Final = 20_000
_FEWEST: Final = 5
_DISTINCT: Final = 3
_IN_ORDER: Final = 20
_MOST_DATES: Final = 12
#: The share of rows in which a column may be otherwise: corrections, and errors of typing.
_ODD: Final = 0.02
#: A part of a date that nearly all rows share says nothing about columns that are as even.
_MOST_OF_ALL: Final = 0.9
_YEAR: Final = 365.2425
#: What ages are counted in, in days.
_UNITS: Final = {"weeks": 7.0, "months": _YEAR / 12, "years": _YEAR}
#: What differences of dates are counted in. A shift keeps the days between them, but perhaps not
#: the months and years, since these have different lengths.
_CALENDAR: Final = ("months", "years")

Days = npt.NDArray[np.datetime64]


def _months(days: Days) -> Floats:
    return days.astype("datetime64[M]").astype(np.float64)


#: The parts of a date that a column may hold, as numbers.
_PARTS: Final[Mapping[str, Callable[[Days], Floats]]] = {
    "the year": lambda days: days.astype("datetime64[Y]").astype(np.float64) + 1970,
    "the quarter": lambda days: _months(days) % 12 // 3 + 1,
    "the month": lambda days: _months(days) % 12 + 1,
    "the year and month": _months,
    "the day of the month": lambda days: (
        (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.float64) + 1
    ),
    "the day of the year": lambda days: (
        (days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.float64) + 1
    ),
    "the day of the week": lambda days: (days.astype(np.float64) + 3) % 7,
    "the week": lambda days: (days.astype(np.float64) + 3) // 7,
    "the date": lambda days: days.astype(np.float64),
}


def _as_digits(*parts: str) -> Callable[[Days], Floats]:
    """Parts of a date, of two digits each but for the year, one after the other as one number."""

    def number(days: Days) -> Floats:
        found = np.zeros(len(days))
        for one in parts:
            found = found * (10_000 if one == "the year" else 100) + _PARTS[one](days)
        return found

    return number


#: What is only seen in numbers, since hardly two rows have the same.
_WRITTEN: Final = {
    "the year and month": _as_digits("the year", "the month"),
    "the date": _as_digits("the year", "the month", "the day of the month"),
    "the date, day first": _as_digits("the day of the month", "the month", "the year"),
    "the date, month first": _as_digits("the month", "the day of the month", "the year"),
}
#: What time is counted in by files and spreadsheets: days, and seconds or parts of them.
_COUNTED: Final = (1.0, 86_400.0, 86_400e3, 86_400e6, 86_400e9)


@dataclass(frozen=True)
class _Cells:
    """A column in some rows: which value each has, -1 where missing, and as a number if it is."""

    codes: npt.NDArray[np.int64]
    numbers: Floats | None

    @classmethod
    def of(cls, table: Table, name: str, rows: npt.NDArray[np.int64]) -> _Cells:
        column = table.codes(name)
        codes = column.codes[rows].astype(np.int64)
        if column.missing is not None:
            codes[codes == column.missing] = -1
        is_number = table.kind(name) in ("integer", "float")
        numbers = column.numbers[column.codes[rows]] if is_number else None
        if numbers is not None and not np.isfinite(numbers[codes >= 0]).all():
            numbers = None
        return cls(codes, numbers)


def derived_columns(table: Table, dates: Sequence[str], released: Sequence[str]) -> dict[str, str]:
    """The columns beside some dates that follow from them, with what they are in words."""
    rows = np.arange(0, len(table), max(1, len(table) // _ROWS))
    days = {name: _days(table, name, rows) for name in list(dates)[:_MOST_DATES]}
    found: dict[str, str] = {}
    for name in released:
        if name in dates or table.kind(name) in ("date", "datetime", "boolean"):
            continue
        cells = _Cells.of(table, name, rows)
        if len(np.unique(cells.codes[cells.codes >= 0])) < _DISTINCT:
            continue
        what = (
            _part(cells, days)
            or _difference(cells, days)
            or _age(cells, days)
            or _order(cells, days)
        )
        if what is not None:
            found[name] = what
    return found


def _days(table: Table, name: str, rows: npt.NDArray[np.int64]) -> Floats:
    """The dates in days and parts of days; NaN where missing."""
    ticks, per_day = table.ticks(name)
    return np.where(table.present(name)[rows], ticks[rows] / per_day, np.nan)


def _part(cells: _Cells, dates: Mapping[str, Floats]) -> str | None:
    """A part of a date: the same number, or another name for each value of the part."""
    for name, days in dates.items():
        both = (cells.codes >= 0) & ~np.isnan(days)
        if both.sum() < _FEWEST:
            continue
        whole = np.floor(days[both]).astype(np.int64).astype("datetime64[D]")
        numbers = None if cells.numbers is None else cells.numbers[both]
        for what, part_of in _PARTS.items():
            part = part_of(whole)
            if len(np.unique(part)) < _DISTINCT:
                continue
            if numbers is not None and _mostly(numbers == part):
                return f"{what} of '{name}'"
            if _is_renamed(cells.codes[both], part):
                return f"{what} of '{name}'"
        if numbers is not None:
            for what, written in _WRITTEN.items():
                if numbers.min() < numbers.max() and _mostly(numbers == written(whole)):
                    return f"{what} of '{name}' as a number"
            if _is_counted(numbers, whole.astype(np.float64)):
                return f"the date of '{name}' as a number"
    return None


def _is_counted(numbers: Floats, days: Floats) -> bool:
    """Whether numbers count the time since, or until, one moment that is the same for all."""
    if np.ptp(np.quantile(days, [_ODD, 1 - _ODD])) <= _DISTINCT:
        return False
    for per_day in _COUNTED:
        for turned in (1, -1):
            apart = np.floor(turned * numbers / per_day) - days
            if _mostly(np.abs(apart - np.median(apart)) <= (per_day > 1)):
                return True
    return False


def _is_renamed(codes: npt.NDArray[np.int64], part: Floats) -> bool:
    """Whether values go with values of the part, one to one, in too many rows to be chance."""
    pairs, counts = np.unique(np.column_stack((codes, part)), axis=0, return_counts=True)
    best = np.ones(len(pairs), np.bool_)
    for side in (0, 1):
        _, label = np.unique(pairs[:, side], return_inverse=True)
        most = np.zeros(label.max() + 1, np.int64)
        np.maximum.at(most, label, counts)
        best &= counts == most[label]
    covered = counts[best]
    many = len(covered) >= _DISTINCT and len(codes) >= 3 * len(covered)
    even = covered.max(initial=0) <= _MOST_OF_ALL * len(codes)
    return bool(many and even and covered.sum() >= (1 - _ODD) * len(codes))


def _difference(cells: _Cells, dates: Mapping[str, Floats]) -> str | None:
    """The months or years between two of the dates, begun ones counted or not."""
    if cells.numbers is None:
        return None
    for one, other in permutations(dates, 2):
        between = dates[other] - dates[one]
        both = (cells.codes >= 0) & ~np.isnan(between)
        if both.sum() < _FEWEST:
            continue
        for unit in _CALENDAR:
            counted = between[both] / _UNITS[unit]
            if np.ptp(counted) >= _DISTINCT and _mostly(
                np.abs(cells.numbers[both] - counted) <= 1.01
            ):
                return f"the {unit} from '{one}' to '{other}'"
    return None


def _age(cells: _Cells, dates: Mapping[str, Floats]) -> str | None:
    """The years since a date, up to a day or a year that is the same for all."""
    if cells.numbers is None:
        return None
    for name, days in dates.items():
        both = (cells.codes >= 0) & ~np.isnan(days)
        age, born = cells.numbers[both], days[both]
        if both.sum() < _FEWEST or np.ptp(born) < _DISTINCT * _YEAR:
            continue
        # the day is after the birthday of that age, and not after the next one
        for unit in reversed(_UNITS):
            after, before = born + age * _UNITS[unit], born + (age + 1) * _UNITS[unit]
            if np.quantile(after, 1 - _ODD) <= np.quantile(before, _ODD) + 3:
                return f"the {unit} since '{name}'"
        sums = age + np.floor(born / _YEAR)
        if np.ptp(np.quantile(sums, [_ODD, 1 - _ODD])) <= 1:
            return f"the years since '{name}'"
    return None


def _order(cells: _Cells, dates: Mapping[str, Floats]) -> str | None:
    """A number that grows with a date, such as that of a case: its neighbours show the date."""
    if cells.numbers is None:
        return None
    for name, days in dates.items():
        both = (cells.codes >= 0) & ~np.isnan(days)
        if _grow_together(cells.numbers[both], days[both]):
            return f"a number in the order of '{name}'"
    return None


def in_order_of(table: Table, dates: Sequence[str]) -> list[str]:
    """The dates by which the rows of a table are sorted, or nearly so."""
    rows = np.arange(0, len(table), max(1, len(table) // _ROWS))
    found = []
    for name in dates:
        days = _days(table, name, rows)
        there = ~np.isnan(days)
        if _grow_together(rows[there].astype(np.float64), days[there]):
            found.append(name)
    return found


def _grow_together(one: Floats, other: Floats) -> bool:
    """Whether the ranks of two numbers are nearly the same, or turned around."""
    if len(one) < _IN_ORDER:
        return False
    ranks = [np.unique(each, return_inverse=True)[1] for each in (one, other)]
    if min(int(each.max()) for each in ranks) < _IN_ORDER - 1:
        return False
    return bool(abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) >= 1 - _ODD)


def _mostly(flags: npt.NDArray[np.bool_]) -> bool:
    return bool(flags.mean() >= 1 - _ODD)
