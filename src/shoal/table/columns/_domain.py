"""What the texts of a released column stand for: themselves, a number, an interval, a set.

Whoever writes such texts says what they stand for, and whoever gets them from a file or a frame
reads it, once. Both come to the same for each text, so that no two answers differ.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from shoal.kernels.arrays import Floats
from shoal.table.columns._quantities import NUMBERS

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


class Interval(NamedTuple):
    """The ends of an interval as they are written, whether they are outside of it, and as numbers.

    None is an open end, which is infinite as a number. An end that is no number has None there.
    """

    low: str | None
    high: str | None
    above_low: bool = False
    below_high: bool = False
    ends: tuple[float | None, float | None] = (None, None)


#: A number, an interval or the parts of a set; None for a text that is itself, and for ``*``.
Meaning = float | Interval | frozenset[str] | None
Meanings = Mapping[str, Meaning]


@dataclass(frozen=True)
class Domain:
    """What each of some texts stands for, in a column of one scale.

    Parameters
    ----------
    scale : str
        What the values of the column are measured in: the same text is an interval beside numbers
        and a name beside other texts.
    meanings : mapping
        The texts in their order; ``*`` need not be among them.

    Examples
    --------
    >>> told = Domain("numbers", {"[20, 30)": Interval("20", "30", False, True, (20.0, 30.0))})
    >>> told.at(["*", "[20, 30)"]).ends.tolist()
    [[nan, nan], [20.0, 30.0]]
    """

    scale: str
    meanings: Meanings

    def at(self, texts: Sequence[str]) -> Domain | None:
        """The same for these texts, in their order; None where it lacks one."""
        known = self.meanings
        if list(known) == texts:
            return self
        if not all(text in known or text == ROOT for text in texts):
            return None
        found = {text: None if text == ROOT else known[text] for text in texts}
        return Domain(self.scale, found)

    @cached_property
    def ends(self) -> Floats | None:
        """The lowest and highest number of each text; None where one is no number or interval."""
        found = np.full((len(self.meanings), 2), np.nan)
        for place, (text, meaning) in enumerate(self.meanings.items()):
            if text == ROOT:
                continue
            if isinstance(meaning, Interval):
                low, high = meaning.ends
            else:
                low = high = meaning if isinstance(meaning, float) else None
            if low is None or high is None or low > high:
                return None
            found[place] = low, high
        return found

    def stretches(self, *, whole: bool = False) -> Floats | None:
        """The stretch of the line of numbers that each text covers, up to below its end.

        Of whole numbers each covers the room up to the next one, so that equal texts of neighbours
        neither overlap nor leave a gap. None and NaN as in :attr:`ends`.
        """
        if self.ends is None or not whole:
            return self.ends
        room = [
            (one.above_low, not one.below_high) if isinstance(one, Interval) else (False, True)
            for one in self.meanings.values()
        ]
        return self.ends + np.array(room, np.float64).reshape(-1, 2)


# -- texts that Shoal writes


def interval_meanings(
    low: Sequence[str | None], high: Sequence[str | None], ends: Floats
) -> dict[str, Meaning]:
    """The texts of intervals that do not hold their upper ends, with what they stand for."""
    return {
        interval_text(first, last): Interval(first, last, False, last is not None, tuple(numbers))
        for first, last, numbers in zip(low, high, ends.tolist(), strict=True)
    }


def interval_text(low: str | None, high: str | None) -> str:
    """An interval that does not hold its upper end as it is written; None is an open end."""
    if low is None:
        return ROOT if high is None else f"<{high}"
    return f">={low}" if high is None else f"[{low}, {high})"


def value_meanings(scale: str, texts: Sequence[str | None]) -> dict[str, Meaning]:
    """The texts of values, and of names for them, with what they stand for in a scale."""
    told = [text for text in texts if text is not None]
    if scale != NUMBERS:
        return {text: members_of(text) if text.startswith("{") else None for text in told}
    numbers = pl.Series(told, dtype=pl.String).cast(pl.Float64, strict=False)
    return dict(zip(told, numbers.set(numbers.is_infinite(), None).to_list(), strict=True))


# -- texts that come from elsewhere


def read_domain(texts: Iterable[str], scale: str) -> Domain:
    """What texts stand for in a column of a scale, by nothing but the texts."""
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


def interval_of(text: str, *, of_numbers: bool) -> Interval | None:
    """The interval that a text is; None where it is another text.

    ``[a, b)`` and the like and ``<a`` are intervals of anything that has an order. Of numbers,
    ``a-b`` and ``a..b`` are too, with both ends, and so is ``[a;b)``.
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
    """The number that a text is; None where it is none."""
    return float(text) if _SINGLE.fullmatch(text) else None


def end_of(text: str) -> float | None:
    """The number that the end of an interval is, which may be infinite; None where it is none."""
    if _INFINITE.fullmatch(text):
        return -np.inf if text.startswith("-") else np.inf
    return number_of(text)


def moment_of(text: str, kind: str) -> float | None:
    """The date or time that a text is, in days, or the duration, in seconds; None if none."""
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


def members_of(text: str) -> frozenset[str] | None:
    """The parts of a set, ``{a, b}``; None where a text is no set."""
    match = _SET.fullmatch(text)
    return frozenset(match[1].split(", ")) if match else None


#: The label of the root: nothing is said about the value.
ROOT: Final = "*"


def written(value: Decimal) -> str:
    """A number for a label: no exponent unless it is very long, no zeros at its end."""
    if value == 0:
        return "0"
    value = value.normalize()
    return format(value, "f" if -12 < value.adjusted() < 21 else "").lower()
