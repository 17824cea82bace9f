"""A measure as a picture: where its value lies between its limits, beside what it is held against.

Places are percents of the picture's width, so that every row of a page has the same height whatever
the width of the page. ``templates/measures.html.j2`` draws them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shoal.measurement import MeasureInfo, Measurement
from shoal.workflow._assessment import bound_of


@dataclass(frozen=True)
class Marks:
    """The marks of a measure on its scale, in percents from the left."""

    low: float
    high: float
    value: float
    interval: tuple[float, float] | None
    baseline: float | None
    bound: float | None
    #: Whether the measure goes on beyond the right end of the scale.
    endless: bool


def marks_of(found: Measurement, info: MeasureInfo) -> Marks | None:
    """Where the marks of a measure lie; None for a value that has no place on a scale."""
    bound = bound_of(found)
    points = [found.value, *(found.interval or ())]
    points += [point for point in (found.baseline, bound) if point is not None]
    if not math.isfinite(found.value):
        return None
    low, high = _scale(info.limits, [point for point in points if math.isfinite(point)])

    def place(point: float) -> float:
        return 100 * (min(max(point, low), high) - low) / (high - low)

    return Marks(
        low,
        high,
        place(found.value),
        None if found.interval is None else (place(found.interval[0]), place(found.interval[1])),
        None if found.baseline is None or math.isnan(found.baseline) else place(found.baseline),
        None if bound is None else place(bound),
        endless=high < info.limits[1],
    )


def _scale(limits: tuple[float, float], points: list[float]) -> tuple[float, float]:
    """The ends of the scale: those of the measure, so that shares compare, or a round number."""
    low, high = limits
    if not math.isfinite(low):
        low = -_round_above(-min(points)) if min(points) < 0 else 0.0
    if not math.isfinite(high):
        high = _round_above(max(points)) if max(points) > low else low + 1.0
    return low, high


def _round_above(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that leaves some room above a value.

    Examples
    --------
    >>> _round_above(0.013), _round_above(46), _round_above(9.9), _round_above(-3)
    (0.02, 50.0, 20.0, 0.0)
    """
    if value <= 0:
        return 0.0
    power = math.floor(math.log10(value))
    steps = (factor * 10.0 ** (power + more) for more in (0, 1) for factor in (1, 2, 5))
    return next((float(f"{s:.3g}") for s in steps if s >= 1.05 * value), 10.0 ** (power + 2))
