"""A time axis: bins of days, weeks, months, quarters or years, and released dates on it.

Dates are days from 1970-01-01, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from shoal.table import ROOT, Domain

Days = npt.NDArray[np.float64]

_MONDAY: Final = 3  # 1970-01-01 was a Thursday
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Bins:
    """Bins of ``joined`` units each: days (D), weeks (W), months (M) or years (Y)."""

    unit: Literal["D", "W", "M", "Y"]
    joined: int = 1

    @classmethod
    def for_range(cls, low: float, high: float, most: int) -> Bins:
        """The finest bins of which at most some cover a range."""
        steps = [cls("D"), cls("W"), cls("M"), cls("M", 3), *(cls("Y", n) for n in _YEARS)]
        fitting = (step for step in steps if step.number(high) - step.number(low) < most)
        return next(fitting, steps[-1])

    def number(self, day: float) -> int:
        """The number of the bin that contains a day."""
        whole = int(np.floor(day))
        if self.unit in "DW":
            return whole if self.unit == "D" else (whole + _MONDAY) // 7
        moment = np.datetime64(whole, "D").astype(f"datetime64[{self.unit}]")
        return (int(moment.astype(np.int64)) + (1970 if self.unit == "Y" else 0)) // self.joined

    def start(self, number: int) -> float:
        """The first day of a bin."""
        if self.unit in "DW":
            return float(number if self.unit == "D" else 7 * number - _MONDAY)
        first = number * self.joined - (1970 if self.unit == "Y" else 0)
        moment = np.datetime64(first, self.unit).astype("datetime64[D]")
        return float(moment.astype(np.int64))

    def edges(self, low: float, high: float) -> Days:
        """The edges of the bins that cover a range."""
        return np.array(
            [self.start(n) for n in range(self.number(low), self.number(high) + 2)], np.float64
        )

    def name(self, day: float) -> str:
        """The name of the unit that contains a day."""
        moment = np.datetime64(int(day), "D")
        if self.unit == "Y":
            return str(moment.astype("datetime64[Y]"))
        month = moment.astype("datetime64[M]")
        if self.unit == "M" and self.joined == 3:
            return f"{month.astype('datetime64[Y]')}-Q{int(month.astype(np.int64)) % 12 // 3 + 1}"
        return str(month if self.unit == "M" else moment)

    def label(self, low: float, high: float) -> str:
        """The name of a range of whole bins, without its upper end."""
        first, last = self.name(low), self.name(high - 1)
        return first if first == last else f"{first} to {last}"


def date_text(day: float) -> str:
    """A day on an axis: its year if it is the first of January, else its month or the day."""
    moment = np.datetime64(int(day), "D")
    for unit in ("Y", "M"):
        coarse = moment.astype(f"datetime64[{unit}]")
        if coarse.astype("datetime64[D]") == moment:
            return str(coarse)
    return str(moment)


def spans_of_dates(texts: Sequence[str], domain: Domain) -> Days | None:
    """The days that each released text covers, without its upper end; None if one is unknown.

    A text is an interval, a date or a calendar unit; ``*`` covers NaN.
    """
    found = np.full((len(texts), 2), np.nan)
    for place, text in enumerate(texts):
        if text == ROOT:
            continue
        span = _interval(domain.meanings.get(text)) or _unit(text)
        if span is None:
            return None
        found[place] = span
    return found


def _interval(meaning: Any) -> tuple[float, float] | None:
    if isinstance(meaning, float):
        return np.floor(meaning), np.floor(meaning) + 1
    low, high = getattr(meaning, "ends", (None, None))
    if low is None or high is None or low > high:
        return None
    return low, high if getattr(meaning, "below_high", True) else high + 1


def _unit(text: str) -> tuple[float, float] | None:
    if _DAY.fullmatch(text):
        try:
            day = float(np.datetime64(text[:10], "D").astype(np.int64))
        except ValueError:
            return None
        return day, day + 1
    for form, bins, number in _UNITS:
        if match := form.fullmatch(text):
            try:
                at = number(match)
                return bins.start(at), bins.start(at + 1)
            except (ValueError, OverflowError):
                return None
    return None


def _week(match: re.Match[str]) -> int:
    fourth = np.datetime64(f"{match[1]}-01-04", "D")
    return Bins("W").number(float(fourth.astype(np.int64))) + int(match[2]) - 1


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+)?")
#: How calendar units are written, with the bins that they are and the number of the bin.
_UNITS: Final[tuple[tuple[re.Pattern[str], Bins, Callable[[re.Match[str]], int]], ...]] = (
    (re.compile(r"(\d{4})"), Bins("Y"), lambda m: int(m[1])),
    (re.compile(r"(\d{3})0s"), Bins("Y", 10), lambda m: int(m[1])),
    (re.compile(r"(\d\d)00-\d\d99"), Bins("Y", 100), lambda m: int(m[1])),
    (re.compile(r"(\d{3}[05])-\d{3}[49]"), Bins("Y", 5), lambda m: int(m[1]) // 5),
    (re.compile(r"(\d{4})-Q([1-4])"), Bins("M", 3),
     lambda m: (int(m[1]) - 1970) * 4 + int(m[2]) - 1),
    (re.compile(r"(\d{4})-(0[1-9]|1[0-2])"), Bins("M"),
     lambda m: (int(m[1]) - 1970) * 12 + int(m[2]) - 1),
    (re.compile(r"(\d{4})-W(\d\d)"), Bins("W"), _week),
)  # fmt: skip
