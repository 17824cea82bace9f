"""Rules that map values to coarser ones, level by level: the base class, prefixes and dates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, did_you_mean
from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._domain import ROOT
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import moments_of
from shoal.table.hierarchy._number_codes import as_whole
from shoal.table.storage._types import as_text

if TYPE_CHECKING:
    from shoal.table.columns._domain import Meanings


#: What to do with a value that a listed hierarchy lacks.
Unseen = Literal["refuse", "top", "nearest"]


@dataclass(frozen=True, eq=False)
class Rung:
    """One level over the given values: the node of each value, and facts about the nodes.

    Nodes are numbered from 0 without gaps. ``bounds`` has the lowest and highest number of each
    node if the values are numbers or dates. ``leaves`` has the number of values of the hierarchy
    under each node, or is None if only the given values are known. ``meanings`` has the meaning of
    each label, if the rule wrote the labels.
    """

    nodes: npt.NDArray[np.int32]
    labels: Sequence[str]
    bounds: Floats | None = None
    leaves: Floats | None = None
    meanings: Meanings | None = None


@dataclass(frozen=True)
class Rule(ABC):
    """A kind of hierarchy, without its level 0 (the value itself) and its root."""

    kind: ClassVar[str]
    #: The field with an entry for each level between the value itself and the root.
    per_level: ClassVar[str]

    @property
    def inner_levels(self) -> int:
        """The number of levels between the value itself and the root."""
        return len(getattr(self, self.per_level))

    def useful(self, values: pl.Series) -> Rule:
        """The rule without levels that join nothing, or everything, compared to the level below."""
        kept, nodes = [], len(values)
        for entry, rung in zip(
            getattr(self, self.per_level), self.rungs(values, "refuse"), strict=True
        ):
            if 1 < len(rung.labels) < nodes:
                kept.append(entry)
                nodes = len(rung.labels)
        return replace(self, **{self.per_level: tuple(kept)}) if kept else Suppression()

    @abstractmethod
    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        """The inner levels of distinct values, none missing, in ascending order."""

    @abstractmethod
    def to_plan(self) -> dict[str, Any]:
        """The rule as plain data: its kind and its options."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, without a value of the data."""

    def texts(self, values: pl.Series) -> list[str]:
        """The values themselves as labels."""
        return as_text(values).to_list()

    def size(self, values: pl.Series) -> int:
        """The number of values of the hierarchy; for a function, the number of given values."""
        return len(values)


def dense(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The distinct keys in ascending order, and the position of each key among them."""
    found, nodes = np.unique(keys, return_inverse=True)
    return found, nodes.reshape(len(keys)).astype(np.int32)


@dataclass(frozen=True)
class Suppression(Rule):
    """Nothing between the value itself and the root."""

    kind = "suppression"

    @property
    def inner_levels(self) -> int:
        return 0

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        return []

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: True}

    def describe(self) -> str:
        return "the value or nothing"


# -- codes whose first characters are the coarsest: postcodes, occupations, diagnoses


@dataclass(frozen=True)
class Prefixes(Rule):
    """Keep the first characters and mask the others: 12345, 1234*, 123**.

    Codes of any length get one ``*`` for whatever follows, so that F10.2 and F10 are both F1*.
    """

    lengths: tuple[int, ...]
    pad: int | None = None
    any_length: bool = False

    kind = "prefixes"
    per_level = "lengths"

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        text = self._codes(values)
        return [self._rung(text, length) for length in self.lengths]

    def texts(self, values: pl.Series) -> list[str]:
        """The codes, with the leading zeros that numbers lost."""
        kind = kind_of(values.dtype)
        fits = kind in ("text", "integer") or (kind == "float" and as_whole(values) is not None)
        return self._codes(values).to_list() if fits else super().texts(values)

    def _codes(self, values: pl.Series) -> pl.Series:
        kind = kind_of(values.dtype)
        whole = as_whole(values) if kind in ("integer", "float") else None
        if kind != "text" and whole is None:
            raise InputError(
                f"Column '{values.name}' is {kind}, but prefixes are for codes in text or whole "
                "numbers. Use another hierarchy."
            )
        text = (values if whole is None else whole).cast(pl.String).alias("text")
        if whole is not None and self.pad is not None:
            text = text.str.zfill(self.pad)
        return text

    def _rung(self, text: pl.Series, length: int) -> Rung:
        hidden = (text.str.len_chars().cast(pl.Int64) - length).clip(0)
        if self.any_length:
            hidden = hidden.clip(0, 1)
        masks = pl.Series([ROOT * n for n in range(int(hidden.max() or 0) + 1)])  # type: ignore[arg-type]
        labels = text.str.slice(0, length) + masks.gather(hidden)
        found = labels.unique().sort()
        nodes = labels.cast(pl.Enum(found)).to_physical().to_numpy().astype(np.int32)
        return Rung(nodes, found.to_list())

    def to_plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = {self.kind: list(self.lengths)}
        plan |= {"any_length": True} if self.any_length else {}
        return plan if self.pad is None else plan | {"pad": self.pad}

    def describe(self) -> str:
        return f"prefixes of {', '.join(map(str, self.lengths))} characters"


def prefixes(
    lengths: Sequence[int], *, pad: int | None = None, any_length: bool = False
) -> Prefixes:
    """Prefixes with checked lengths, from long to short."""
    lengths = [lengths] if isinstance(lengths, int) else lengths
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in lengths)
    if not lengths or not whole or list(lengths) != sorted({*lengths}, reverse=True):
        raise InputError(
            "The lengths of prefixes must be whole numbers from long to short, each once, such "
            "as [4, 3, 2]."
        )
    if min(lengths) < 1:
        raise InputError(
            f"A prefix needs at least 1 character. The root '{ROOT}' is added automatically."
        )
    if pad is not None and (not isinstance(pad, int) or isinstance(pad, bool) or pad < 1):
        raise InputError("'pad' of prefixes must be the number of digits of a full code.")
    if not isinstance(any_length, bool):
        raise InputError("'any_length' of prefixes must be true or false.")
    return Prefixes(tuple(int(n) for n in lengths), pad, any_length)


# -- dates, datetimes and times in calendar units

#: The units, from fine to coarse; weeks do not nest in months, quarters or years.
_CALENDAR: Final = (
    "minute",
    "hour",
    "day",
    "month",
    "quarter",
    "year",
    "5 years",
    "decade",
    "century",
)
_WEEKS: Final = ("week", "iso-year")
UNITS: Final = (*_CALENDAR, *_WEEKS)
_BEFORE_WEEKS: Final = ("minute", "hour", "day")

#: For each unit, a unit of numpy and how many of it make one.
_NUMPY: Final = {
    "minute": ("m", 1),
    "hour": ("h", 1),
    "day": ("D", 1),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
    "5 years": ("Y", 5),
    "decade": ("Y", 10),
    "century": ("Y", 100),
}
_CLOCK: Final = {"minute": 60, "hour": 3600}
_MONDAY: Final = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True)
class Dates(Rule):
    """Calendar units from fine to coarse, each a union of finer ones."""

    units: tuple[str, ...]

    kind = "dates"
    per_level = "units"

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        kind = kind_of(values.dtype)
        if kind == "time":
            return [_clock_rung(values, unit) for unit in self.units]
        if kind not in ("date", "datetime"):
            raise InputError(
                f"Column '{values.name}' is {kind}, not a date. Read it as dates "
                "(date_formats=, --date-format), or use another hierarchy."
            )
        moments = moments_of(values)
        return [_rung(moments, unit) for unit in self.units]

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: list(self.units)}

    def describe(self) -> str:
        return f"dates by {', '.join(self.units)}"


def calendar(units: Sequence[str]) -> Dates:
    """Calendar units that are checked to nest."""
    if isinstance(units, str):
        units = [units]
    for unit in units:
        if unit not in UNITS:
            raise InputError(f"There is no date unit '{unit}'. {did_you_mean(unit, UNITS)}")
    weekly = any(unit in _WEEKS for unit in units)
    chain = (*_BEFORE_WEEKS, *_WEEKS) if weekly else _CALENDAR
    stray = [unit for unit in units if unit not in chain]
    if stray:
        raise InputError(
            f"Weeks do not nest in a {stray[0]}, because a week may lie in two of them. Use "
            "['day', 'week', 'iso-year'], or leave out the weeks."
        )
    places = [chain.index(unit) for unit in units]
    if not places or places != sorted(set(places)):
        raise InputError(
            "Date units must go from fine to coarse, each once, such as "
            "['month', 'quarter', 'year', 'decade']."
        )
    return Dates(tuple(units))


def _rung(moments: npt.NDArray[np.datetime64], unit: str) -> Rung:
    keys, nodes = dense(_keys(moments, unit))
    starts = np.column_stack((_days(keys, unit), _days(keys + 1, unit)))
    labels = _labels(keys, unit)
    return Rung(nodes, labels, starts, meanings=dict.fromkeys(labels))


def _keys(moments: npt.NDArray[np.datetime64], unit: str) -> Integers:
    """The number of the unit that contains each moment; for years, the year itself."""
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
    """The beginning of each unit, in days from 1970-01-01."""
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
    if unit in ("5 years", "century"):
        joined = _NUMPY[unit][1]
        return [f"{key * joined}-{key * joined + joined - 1}" for key in keys.tolist()]
    named = {"year": "{}", "decade": "{}0s", "iso-year": "ISO {}"}[unit]
    return [named.format(key) for key in keys.tolist()]


def _clock_rung(values: pl.Series, unit: str) -> Rung:
    """A time of day in hours or minutes."""
    if unit not in _CLOCK:
        raise InputError(
            f"Column '{values.name}' is a time of day, which has no {unit}. Use 'minute' or 'hour'."
        )
    seconds = _CLOCK[unit]
    keys, nodes = dense(values.to_physical().to_numpy() // (seconds * 10**9))
    labels = [f"{at // 3600:02d}:{at % 3600 // 60:02d}" for at in (keys * seconds).tolist()]
    ends = np.column_stack((_days(keys, unit), _days(keys + 1, unit)))
    return Rung(nodes, labels, ends, meanings=dict.fromkeys(labels))
