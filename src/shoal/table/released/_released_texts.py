"""The grammar of released texts: single numbers, intervals, sets, and ``*``.

Whatever asks what a released cell stands for asks here, so that no two answers differ.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

import numpy as np

from shoal.table.columns._domain import Domain, Interval, Meaning, Members
from shoal.table.columns._quantities import NUMBERS
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


def interval_of(text: str, *, of_numbers: bool) -> Interval | None:
    """The interval that a text is; None where it is another text.

    ``[a, b)`` and the like and ``<a`` are intervals of anything that has an order. Of numbers,
    ``a-b`` and ``a..b`` are too, with both ends, and so is ``[a;b)``.

    Examples
    --------
    >>> interval_of("[20, 30)", of_numbers=True)
    Interval(low='20', high='30', above_low=False, below_high=True, ends=(None, None))
    >>> interval_of("≥65", of_numbers=True)[:4]
    ('65', None, False, False)
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


def members_of(text: str) -> Members | None:
    """The parts of a set, ``{a, b}``; None where a text is no set."""
    match = _SET.fullmatch(text)
    return Members(tuple(match[1].split(", "))) if match else None


def read_domain(texts: Iterable[str], scale: str) -> Domain:
    """What texts stand for in a column of a scale, by nothing but the texts.

    Examples
    --------
    >>> read_domain(["[20, 30)", "<18", "65-69", "*"], "numbers").ends.tolist()
    [[20.0, 30.0], [-inf, 18.0], [65.0, 69.0], [nan, nan]]
    >>> read_domain(["[20, 30)", "Europe"], "numbers").ends is None
    True
    >>> read_domain(["[20, 29]", "[20, 30)", "7"], "numbers").stretches(whole=True).tolist()
    [[20.0, 30.0], [20.0, 30.0], [7.0, 8.0]]
    """
    return Domain(scale, {text: _meaning(text, scale) for text in texts})


def _meaning(text: str, scale: str) -> Meaning:
    if text == ROOT:
        return None
    if scale in ("text", "boolean"):
        return members_of(text)
    bare = text.strip()
    number = number_of(bare) if scale == NUMBERS else None
    if number is not None:
        return number
    found = interval_of(bare, of_numbers=scale == NUMBERS)
    if found is None:
        return members_of(text)
    low = -np.inf if found.low is None else _number_of_end(found.low, scale)
    high = np.inf if found.high is None else _number_of_end(found.high, scale)
    return found._replace(ends=(low, high))


def _number_of_end(text: str, scale: str) -> float | None:
    moment = None if scale == NUMBERS else moment_of(text, scale)
    return end_of(text) if moment is None else moment
