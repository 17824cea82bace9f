"""Ends for the intervals of a column: round ones, and never the value of a single record.

An interval that ends at its lowest or highest record quotes that person. Its ends are therefore the
roundest numbers, or the coarsest calendar boundaries, in the available gap. They are never finer
than the values: an end halfway between 40 and 41 would reveal that both occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table.columns._domain import written
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import line_of, moments_of

#: Values of a column in its own unit: whole numbers, or floats for a column of floats.
Ticks = npt.NDArray[Any]

_TRIES: Final = 4  # how many points of one step are tried before a finer step
_NARROW: Final = 2**61  # larger whole numbers are kept as Python integers
_SECOND: Final = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS: Final = (
    *(86_400 * 10**power for power in range(6, -1, -1)),
    *(43_200, 21_600, 7_200, 3_600, 1_800, 600, 300, 120, 60, 30, 10, 5, 2, 1),
)
_YEARS: Final = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
_MONTHS: Final = (6, 3, 1)
_DAY: Final = 86_400


@dataclass(frozen=True)
class Step:
    """Evenly spaced points, about ``size`` ticks apart; ``floor`` returns the point at or below."""

    size: float
    floor: Callable[[Ticks], Ticks]
    nearest: Callable[[Ticks], Ticks] | None = None

    def holds(self, ticks: Ticks) -> bool:
        """Whether all ticks are points of the step."""
        return bool(((self.nearest or self.floor)(ticks) == ticks).all())


@dataclass(frozen=True, eq=False, repr=False)
class RoundEnds:
    """The values of a column, and which of them belong to a single record."""

    column: Codes  # of numbers, dates, times or durations
    records: Integers  # how many records have each level

    @classmethod
    def of(cls, column: Codes) -> RoundEnds:
        """The ends for a column with all its records."""
        return cls(column, column.counts[: len(column.levels)])

    def number_between(self, low: float, high: float) -> int | float | None:
        """The roundest number above ``low`` and not above ``high``; whole if the column is."""
        whole = self.line.dtype.kind != "f"
        ends: list[float] = [float(low), float(high)]
        if whole:
            scale = Decimal(2 * 10 ** (self._digits or 0))
            ends = [math.floor(scale * Decimal(str(end))) for end in (low, high)]
        if self.line.dtype == np.int64:
            ends = [min(max(end, -2 * _NARROW), 2 * _NARROW) for end in ends]
        points, found = self.between(*(np.array([end], self.line.dtype) for end in ends))
        if not found[0]:
            return None
        text = self.texts(points)[0]
        return int(text) if self._kind == "integer" else float(text)

    @cached_property
    def line(self) -> Ticks:
        """Each level as a tick; for whole numbers and decimals, a tick is half a unit."""
        levels, kind = self.column.levels, self._kind
        if kind == "float" and self._digits is None:
            return levels.cast(pl.Float64).to_numpy()
        if kind in ("integer", "float"):
            if kind == "integer":
                narrow = levels.cast(pl.Int64, strict=False).fill_null(_NARROW).to_numpy()
                if ((narrow > -_NARROW) & (narrow < _NARROW)).all():
                    return 2 * narrow
            with localcontext() as context:
                context.prec = 60
                scale = Decimal(10) ** (self._digits or 0)
                exact = [int(2 * scale * Decimal(text)) for text in self.column.texts]
            fits = max(map(abs, exact), default=0) < 2 * _NARROW
            return np.array(exact, np.int64 if fits else object)
        if kind in ("date", "datetime"):
            return moments_of(levels).astype(np.int64)
        return levels.to_physical().cast(pl.Int64).to_numpy()

    def between(self, low: Ticks, high: Ticks) -> tuple[Ticks, Flags]:
        """The roundest point above each ``low`` and not above its ``high``, and whether it exists.

        Its step is one of which all values are multiples: years for ages, cents for money.
        """
        points, found = high.copy(), np.zeros(len(high), np.bool_)
        for step in self._steps:
            left = np.flatnonzero(~found)
            if not len(left):
                break
            spot = step.floor(high[left])
            for _ in range(_TRIES):
                inside = spot > low[left]
                good = inside & ~self._alone(spot)
                points[left[good]], found[left[good]] = spot[good], True
                if not (inside & ~good).any():
                    break
                left, spot = left[inside & ~good], step.floor(self.before(spot[inside & ~good]))
        return points, found

    def down(self, ticks: Ticks, least: Ticks) -> tuple[Ticks, Flags]:
        """A round point not above each tick, with a minimum step, and whether it exists."""
        return self._outwards(ticks, least, up=False)

    def up(self, ticks: Ticks, least: Ticks) -> tuple[Ticks, Flags]:
        """A round point above each tick, with a minimum step, and whether it exists."""
        return self._outwards(ticks, least, up=True)

    def rounder(self, ticks: Ticks, room: Floats, *, up: bool) -> Ticks:
        """Each point, moved outwards by at most ``room`` if that makes it rounder.

        It stays where it is if a step that large, or a larger one, has it.
        """
        points, unsettled = ticks.copy(), np.arange(len(ticks))
        for step in self._steps:
            if self.line.dtype == np.int64 and step.size > _NARROW:
                continue  # the next point may lie beyond the range
            unsettled = unsettled[
                (step.nearest or step.floor)(points[unsettled]) != points[unsettled]
            ]
            left = unsettled[step.size <= room[unsettled]]
            spot = self._after(step, points[left]) if up else step.floor(points[left])
            for _ in range(_TRIES):
                good = self._may_end(spot)
                points[left[good]] = spot[good]
                unsettled = np.setdiff1d(unsettled, left[good], assume_unique=True)
                left, spot = left[~good], spot[~good]
                spot = self._beyond(step, spot, up=up)
                near = abs(spot - points[left]) <= room[left]
                left, spot = left[near], spot[near]
            if not len(unsettled):
                break
        return points

    def beside(self, ticks: Ticks) -> tuple[Ticks, Flags]:
        """Half a step below each tick, which is nobody's value. Dates and times have none."""
        if self.unit == 0 or self._kind not in ("integer", "float"):
            return ticks, np.zeros(len(ticks), np.bool_)
        if self.line.dtype.kind == "f":
            points = [float(f"{tick - self.unit / 2:.15g}") for tick in ticks.tolist()]
            return np.array(points), np.ones(len(ticks), np.bool_)
        return ticks - int(self.unit) // 2, np.ones(len(ticks), np.bool_)

    @property
    def unit(self) -> float:
        """The coarsest step of which all values are multiples; 0 if there is none."""
        finest = self._steps[-1] if self._steps else None
        return finest.size if finest is not None and finest.holds(self.line) else 0.0

    def texts(self, points: Ticks) -> list[str]:
        """The points as texts."""
        points, which = np.unique(points, return_inverse=True)
        texts = self._texts(points)
        return [texts[place] for place in which.tolist()]

    def _texts(self, points: Ticks) -> list[str]:
        if self.line.dtype.kind == "f":
            return [written(Decimal(repr(point))) for point in points.tolist()]
        if self._kind in ("integer", "float"):
            with localcontext() as context:
                context.prec = 60
                unit = Decimal(10) ** -(self._digits or 0) / 2
                return [written(Decimal(int(point)) * unit) for point in points]
        return _clock_texts(self._series(points))

    def numbers(self, points: Ticks) -> Floats:
        """The points as numbers in the scale of the column."""
        if self._kind in ("integer", "float"):
            return np.array([float(text) for text in self.texts(points)], np.float64)
        found = line_of(self._series(points))
        assert found is not None
        return found

    @property
    def _kind(self) -> str:
        return kind_of(self.column.levels.dtype)

    @property
    def _digits(self) -> int | None:
        """The digits after the decimal point of an exact column; None for floats."""
        dtype = self.column.levels.dtype
        return dtype.scale if isinstance(dtype, pl.Decimal) else None

    def _series(self, points: Ticks) -> pl.Series:
        dtype = self.column.levels.dtype
        if isinstance(dtype, pl.Datetime):
            dtype = pl.Datetime(dtype.time_unit)  # local time of the zone
        physical = pl.Int32 if dtype == pl.Date else pl.Int64
        return pl.Series(points.astype(np.int64)).cast(physical).cast(dtype)

    def _alone(self, points: Ticks) -> Flags:
        """Which points are values that fewer than two records have."""
        at = np.searchsorted(self.line, points)
        hit = at < len(self.line)
        hit[hit] = self.line[at[hit]] == points[hit]
        hit[hit] = self.records[at[hit]] < 2
        return hit

    def _may_end(self, points: Ticks) -> Flags:
        """Which points exist in the column's type and belong to no single record."""
        good = np.isfinite(points.astype(np.float64)) & ~self._alone(points)
        return good & (points < _DAY * _SECOND["ns"]) if self._kind == "time" else good

    def before(self, points: Ticks) -> Ticks:
        """The next tick below each."""
        if points.dtype.kind != "f":
            return points - 1
        with np.errstate(over="ignore"):  # infinite means not found
            return np.nextafter(points, -np.inf)

    def next(self, points: Ticks) -> Ticks:
        """The next value above each that a column of whole numbers or dates may have.

        An interval of such values that ends below the next one shows its highest value. For other
        columns these are the points themselves.
        """
        if self._kind == "integer":
            return points + 2
        return points + 1 if self._kind == "date" else points

    def _after(self, step: Step, at: Ticks) -> Ticks:
        here = step.floor(at)
        if here.dtype.kind == "f":
            with np.errstate(over="ignore"):  # infinite means not found
                return step.floor(here + 1.5 * step.size)
        return step.floor(here + max(1, int(1.5 * step.size)))

    def _beyond(self, step: Step, points: Ticks, *, up: bool) -> Ticks:
        """The next point of a step above or below each of its points."""
        return self._after(step, points) if up else step.floor(self.before(points))

    def _outwards(self, ticks: Ticks, least: Ticks, *, up: bool) -> tuple[Ticks, Flags]:
        points, found = ticks.copy(), np.zeros(len(ticks), np.bool_)
        least = least.astype(np.float64)
        for step in reversed(self._steps):
            if self.line.dtype == np.int64 and step.size > _NARROW:
                continue  # the next point may lie beyond the range
            left = np.flatnonzero(~found & (least <= step.size))
            spot = self._after(step, ticks[left]) if up else step.floor(ticks[left])
            for _ in range(_TRIES):
                good = self._may_end(spot)
                points[left[good]], found[left[good]] = spot[good], True
                left, spot = left[~good], self._beyond(step, spot[~good], up=up)
        return points, found

    @cached_property
    def _steps(self) -> list[Step]:
        """Steps from the coarsest to one of which all values are multiples, or to the finest."""
        taken = []
        for step in self._all_steps:
            taken.append(step)
            if step.holds(self.line) and (self.line != 0).any():
                break
        return taken

    @property
    def _all_steps(self) -> Iterator[Step]:
        if self._kind in ("date", "datetime"):
            return _calendar_steps(getattr(self.column.levels.dtype, "time_unit", None))
        if self._kind in ("time", "duration"):
            unit = getattr(self.column.levels.dtype, "time_unit", "ns")
            sizes = (size for size in _clock_sizes(_SECOND[unit]) if size < _NARROW)
            return (_whole_step(size) for size in sizes)
        return _float_steps(self.line) if self.line.dtype.kind == "f" else self._whole_steps

    @property
    def _whole_steps(self) -> Iterator[Step]:
        largest = int(max(abs(self.line[0]), abs(self.line[-1]))) if len(self.line) else 1
        for power in range(len(str(largest)), -1, -1):
            for lead in (5, 2, 1):
                if self.line.dtype == object or lead * 10**power < _NARROW:
                    yield _whole_step(2 * lead * 10**power)


def _whole_step(size: int) -> Step:
    return Step(float(size), lambda ticks: ticks // size * size)


def _float_steps(line: Floats) -> Iterator[Step]:
    """Steps of 1, 2 and 5 times powers of ten, down to below the smallest gap between values."""
    if not len(line):
        return
    largest = max(abs(float(line[0])), abs(float(line[-1])), 1e-300)
    gaps = np.diff(line / 2)
    least = max(float(gaps[gaps > 0].min(initial=largest)), largest * 1e-17, 1e-300)
    for power in range(min(308, math.floor(math.log10(largest)) + 1), -301, -1):
        for lead in (5, 2, 1):
            if lead * 10.0**power > 1.7e308:
                continue
            yield _float_step(lead, power)
        if 10.0**power * 10 < least:
            return


def _float_step(lead: int, power: int) -> Step:
    size = lead * 10.0**power

    def point(times: Floats) -> Floats:
        # a quotient by a power of ten is the float nearest to the decimal number
        return times * lead / 10.0**-power if power < 0 else times * size

    def nearest(ticks: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return point(np.rint(ticks / size))

    def floor(ticks: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            times = np.floor(ticks / size)
            points = point(times)
            return np.where(points > ticks, point(times - 1), points) + 0.0

    return Step(size, floor, nearest)


def _clock_sizes(second: int) -> Iterator[int]:
    yield from (seconds * second for seconds in _SECONDS)
    part = second // 10
    while part >= 1:
        yield part
        part //= 10


def _calendar_steps(unit: str | None) -> Iterator[Step]:
    """Years and months, then days and parts of a day; a date has no unit and no parts of days."""
    second = _SECOND[unit] if unit else 1
    day = _DAY * second if unit else 1
    code = f"datetime64[{unit or 'D'}]"
    for years in _YEARS:
        yield Step(365.2425 * day * years, _calendar_floor(code, "Y", years))
    for months in _MONTHS:
        yield Step(30.436875 * day * months, _calendar_floor(code, "M", months))
    for size in _clock_sizes(second) if unit else (1,):
        if size <= day:
            yield _whole_step(size)


def _calendar_floor(code: str, unit: str, joined: int) -> Callable[[Ticks], Ticks]:
    origin = 1970 if unit == "Y" else 0

    def floor(ticks: Ticks) -> Ticks:
        number = ticks.astype(code).astype(f"datetime64[{unit}]").astype(np.int64) + origin
        first = (number // joined * joined - origin).astype(f"datetime64[{unit}]")
        return first.astype(code).astype(np.int64)

    return floor


def _clock_texts(points: pl.Series) -> list[str]:
    """Dates and times without parts that are zero."""
    kind = kind_of(points.dtype)
    if kind == "duration":
        return points.dt.to_string("iso").to_list()
    if kind == "date":
        return points.cast(pl.String).to_list()
    shape = "%H:%M:%S%.f" if kind == "time" else "%Y-%m-%d %H:%M:%S%.f"
    texts = points.dt.strftime(shape)
    texts = texts.str.replace(r"(\.\d*?)0+$", "${1}").str.replace(r":00\.?$", "")
    return texts.str.replace(r" 00:00$", "").to_list()
