"""The grammar of released texts: single numbers, intervals, sets, and ``*``.

Whatever asks what a released cell stands for asks here, so that no two answers differ.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.table.hierarchy._rule import ROOT

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SINGLE = re.compile(_NUMBER)
_INTERVAL = re.compile(r"(?s)([\[(])(.+), (.+)([\])])")
_OF_NUMBERS = re.compile(rf"([\[(])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])])")
_FROM_TO = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.)\s*({_NUMBER})")
_INFINITE = re.compile(r"[+-]?(?:inf|∞)")
_OPEN = re.compile(r"(<=|>=|<|>|≤|≥)\s*(.+)")
_SET = re.compile(r"(?s)\{(.+)\}")
_PART = r"(-?\d+(?:\.\d+)?)"
_DURATION = re.compile(rf"(-)?P(?:{_PART}D)?(?:T(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}S)?)?")
_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class Interval:
    """The ends of an interval as they are written, and whether they are outside of it.

    None is an open end.
    """

    low: str | None
    high: str | None
    above_low: bool = False
    below_high: bool = False


def interval_of(text: str, *, of_numbers: bool) -> Interval | None:
    """The interval that a text is; None where it is another text.

    ``[a, b)`` and the like and ``<a`` are intervals of anything that has an order. Of numbers,
    ``a-b`` and ``a..b`` are too, with both ends, and so is ``[a;b)``.

    Examples
    --------
    >>> interval_of("[20, 30)", of_numbers=True)
    Interval(low='20', high='30', above_low=False, below_high=True)
    >>> interval_of("≥65", of_numbers=True)
    Interval(low='65', high=None, above_low=False, below_high=False)
    >>> interval_of("2020-05", of_numbers=False) is None
    True
    """
    match = (of_numbers and _OF_NUMBERS.fullmatch(text)) or _INTERVAL.fullmatch(text)
    if match:
        return Interval(match[2], match[3], match[1] == "(", match[4] == ")")
    if of_numbers and (match := _FROM_TO.fullmatch(text)):
        return Interval(match[1], match[2])
    if match := _OPEN.fullmatch(text):
        outside = match[1] in "<>"
        if match[1] in ("<", "<=", "≤"):
            return Interval(None, match[2], below_high=outside)
        return Interval(match[2], None, above_low=outside)
    return None


def number_of(text: str) -> float | None:
    """The number that a text is; None where it is none.

    Examples
    --------
    >>> number_of("-1e3"), number_of("1_000"), number_of("nan")
    (-1000.0, None, None)
    """
    return float(text) if _SINGLE.fullmatch(text) else None


def end_of(text: str) -> float | None:
    """The number that the end of an interval is, which may be infinite; None where it is none."""
    if _INFINITE.fullmatch(text):
        return -np.inf if text.startswith("-") else np.inf
    return number_of(text)


def moment_of(text: str, kind: str) -> float | None:
    """The date, time or duration that a text is, in days or (a duration) in seconds; None if none.

    Examples
    --------
    >>> moment_of("1970-01-03 12:00", "datetime"), moment_of("06:00", "time")
    (2.5, 0.25)
    >>> moment_of("P1DT2H", "duration"), moment_of("soon", "date")
    (93600.0, None)
    """
    if kind == "duration":
        match = _DURATION.fullmatch(text)
        if match is None or text.endswith(("P", "T")):
            return None
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups()[1:])
        size = days * 86_400 + hours * 3600 + minutes * 60 + seconds
        return -size if match[1] else size
    try:
        if kind == "time":
            return _days(dt.datetime.combine(_EPOCH, dt.time.fromisoformat(text)))
        return _days(dt.datetime.fromisoformat(text).replace(tzinfo=None))
    except ValueError:
        return None


def _days(moment: dt.datetime) -> float:
    since = moment - dt.datetime.combine(_EPOCH, dt.time())
    return since.days + (since.seconds * 10**6 + since.microseconds) / 86_400e6


def members_of(text: str) -> list[str]:
    """The parts of a set, ``{a, b}``; none where a text is no set."""
    match = _SET.fullmatch(text)
    return match[1].split(", ") if match else []


def ends_of_labels(texts: Sequence[str]) -> npt.NDArray[np.float64] | None:
    """The lowest and highest number of each text, or None where one is no number or interval.

    An open end is infinite. The root, which says nothing, has NaN.

    Examples
    --------
    >>> ends_of_labels(["[20, 30)", "<18", "65-69", "*"]).tolist()
    [[20.0, 30.0], [-inf, 18.0], [65.0, 69.0], [nan, nan]]
    >>> ends_of_labels(["[20, 30)", "Europe"]) is None
    True
    """
    ends = np.full((len(texts), 2), np.nan)
    for place, text in enumerate(texts):
        if text == ROOT:
            continue
        found = _numbers_of(text.strip())
        if found is None or found[0] > found[1]:
            return None
        ends[place] = found
    return ends


def stretches_of_labels(
    texts: Sequence[str], *, whole: bool = False
) -> npt.NDArray[np.float64] | None:
    """The stretch of the line of numbers that each text covers, from its start to below its end.

    Of whole numbers each covers the room up to the next one, so that equal texts of neighbours
    neither overlap nor leave a gap. None and NaN as in :func:`ends_of_labels`.

    Examples
    --------
    >>> stretches_of_labels(["[20, 29]", "[20, 30)", "7", "*"], whole=True).tolist()
    [[20.0, 30.0], [20.0, 30.0], [7.0, 8.0], [nan, nan]]
    >>> stretches_of_labels(["[20, 29]", "7"]).tolist()
    [[20.0, 29.0], [7.0, 7.0]]
    """
    ends = ends_of_labels(texts)
    if ends is None or not whole:
        return ends
    for place, text in enumerate(texts):
        interval = interval_of(text.strip(), of_numbers=True)
        ends[place, 0] += interval is not None and interval.above_low
        ends[place, 1] += interval is None or not interval.below_high
    return ends


def _numbers_of(text: str) -> tuple[float, float] | None:
    single = number_of(text)
    if single is not None:
        return single, single
    interval = interval_of(text, of_numbers=True)
    if interval is None:
        return None
    low = -np.inf if interval.low is None else end_of(interval.low)
    high = np.inf if interval.high is None else end_of(interval.high)
    return None if low is None or high is None else (low, high)
