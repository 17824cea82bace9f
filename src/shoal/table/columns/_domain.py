"""The meanings of the texts of a released column: the text itself, a number, interval or set.

Code that writes such texts records their meanings; for texts from a file or a frame, the meanings
are read once. Both ways give the same meaning for each text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from shoal.kernels.arrays import Flags, Floats
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
    """The ends of an interval as written, whether they are excluded, and as numbers.

    None is an open end, which is infinite as a number. An end that is not a number has None in
    ``ends``.
    """

    low: str | None
    high: str | None
    above_low: bool = False
    below_high: bool = False
    ends: tuple[float | None, float | None] = (None, None)


#: A number, an interval or the parts of a set; None for a text that means itself, and for ``*``.
Meaning = float | Interval | frozenset[str] | None
Meanings = Mapping[str, Meaning]


@dataclass(frozen=True)
class Domain:
    """The meanings of some texts in a column of one scale.

    Parameters
    ----------
    scale : str
        What the values of the column are measured in: the same text is an interval among numbers,
        but a name among other texts.
    meanings : mapping
        The texts in their order; ``*`` need not be among them.

    Examples
    --------
    >>> ages = Domain("numbers", {"[20, 30)": Interval("20", "30", False, True, (20.0, 30.0))})
    >>> ages.at(["*", "[20, 30)"]).ends.tolist()
    [[nan, nan], [20.0, 30.0]]
    """

    scale: str
    meanings: Meanings
    #: Whether they were read from the texts, which somebody else may have written.
    was_read: bool = field(default=False, compare=False)

    def at(self, texts: Sequence[str]) -> Domain | None:
        """The domain for these texts, in their order; None if one is missing."""
        known = self.meanings
        if list(known) == texts:
            return self
        if not all(text in known or text == ROOT for text in texts):
            return None
        found = {text: None if text == ROOT else known[text] for text in texts}
        return replace(self, meanings=found)

    @cached_property
    def ends(self) -> Floats | None:
        """The lowest and highest number of each text; None if one is not a number or interval."""
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

    @cached_property
    def whole_ends(self) -> Floats | None:
        """The lowest and highest whole number of each text; None and NaN as in :attr:`ends`."""
        if self.ends is None:
            return None
        low, high = self.ends.T
        above, below = self._excluded.T
        low = np.where(above, np.floor(low) + 1, np.ceil(low))
        high = np.where(below, np.ceil(high) - 1, np.floor(high))
        return np.column_stack((low, np.maximum(low, high)))

    @property
    def _excluded(self) -> Flags:
        """Whether the lowest and the highest number of each text lie outside of its interval."""
        meanings = self.meanings.values()
        known = (one[2:4] if isinstance(one, Interval) else (False, False) for one in meanings)
        return np.array(list(known), np.bool_).reshape(-1, 2)

    def stretches(self, *, whole: bool = False) -> Floats | None:
        """The range of numbers that each text covers, without its upper end.

        A whole number covers the range up to the next one, so that neighbors neither overlap nor
        leave a gap. None and NaN as in :attr:`ends`.
        """
        if self.ends is None or not whole:
            return self.ends
        return self.ends + (self._excluded ^ np.array([False, True]))


# -- texts that Shoal writes


def interval_meanings(
    low: Sequence[str | None], high: Sequence[str | None], ends: Floats
) -> dict[str, Meaning]:
    """The texts of intervals without their upper ends, with their meanings."""
    return {
        interval_text(first, last): Interval(first, last, False, last is not None, tuple(numbers))
        for first, last, numbers in zip(low, high, ends.tolist(), strict=True)
    }


def interval_text(low: str | None, high: str | None) -> str:
    """The text of an interval without its upper end; None is an open end."""
    if low is None:
        return ROOT if high is None else f"<{high}"
    return f">={low}" if high is None else f"[{low}, {high})"


def value_meanings(scale: str, texts: Sequence[str | None]) -> dict[str, Meaning]:
    """The texts of values, and of names for them, with their meanings in a scale."""
    known = [text for text in texts if text is not None]
    if scale != NUMBERS:
        return {text: members_of(text) if text.startswith("{") else None for text in known}
    numbers = pl.Series(known, dtype=pl.String).cast(pl.Float64, strict=False)
    return dict(zip(known, numbers.set(numbers.is_infinite(), None).to_list(), strict=True))


# -- texts that come from elsewhere


def read_domain(texts: Iterable[str], scale: str) -> Domain:
    """The meanings of texts in a column of a scale, read from the texts alone."""
    return Domain(scale, {text: _meaning(text, scale) for text in texts}, was_read=True)


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
    """The interval in a text, or None.

    ``[a, b)`` and similar texts and ``<a`` are intervals of anything that has an order. For
    numbers, ``a-b`` and ``a..b`` (with both ends) and ``[a;b)`` are intervals too.
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
    """The number in a text, or None."""
    return float(text) if _SINGLE.fullmatch(text) else None


def end_of(text: str) -> float | None:
    """The end of an interval as a number, which may be infinite, or None."""
    if _INFINITE.fullmatch(text):
        return -np.inf if text.startswith("-") else np.inf
    return number_of(text)


def moment_of(text: str, kind: str) -> float | None:
    """The date or time in a text, in days, or the duration, in seconds; None if there is none."""
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
    """The parts of a set, ``{a, b}``; None if the text is not a set."""
    match = _SET.fullmatch(text)
    return frozenset(match[1].split(", ")) if match else None


#: The label of the root, which reveals nothing about the value.
ROOT: Final = "*"


def written(value: Decimal) -> str:
    """A number as a label: no exponent unless it is very long, no trailing zeros."""
    if value == 0:
        return "0"
    value = value.normalize()
    return format(value, "f" if -12 < value.adjusted() < 21 else "").lower()
