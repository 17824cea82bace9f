"""The picture of all tried plans by risk and utility: its geometry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.workflow.report._figures import Tick

#: The file in which a search keeps the plans that it tried.
TRIED: Final = "tried.json"
LEFT, TOP, RIGHT, BASE = 52.0, 16.0, 624.0, 352.0


@dataclass(frozen=True)
class Spot:
    """A plan in the picture."""

    number: int
    label: str
    risk: float
    utility: float
    x: float
    y: float
    allowed: bool
    on_front: bool


@dataclass(frozen=True)
class Front:
    """The picture: the places of the plans, the front, and the two limits."""

    spots: tuple[Spot, ...]
    #: Plans without a measured utility: too risky to measure it, or abandoned.
    unmeasured: int
    risks: tuple[float, float]
    utilities: tuple[float, float]
    max_risk: float
    min_utility: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    def x(self, risk: float) -> float:
        """The place of a risk, kept within the ends of the axis."""
        return _between(risk, self.risks, LEFT, RIGHT)

    def y(self, utility: float) -> float:
        return _between(utility, self.utilities, BASE, TOP)

    @property
    def path(self) -> str:
        """The front as steps: the utility that each risk buys."""
        line = sorted((spot for spot in self.spots if spot.on_front), key=lambda spot: spot.x)
        if not line:
            return ""
        path = f"M{line[0].x:.1f} {line[0].y:.1f}"
        return path + "".join(f"H{spot.x:.1f}V{spot.y:.1f}" for spot in line[1:])

    @property
    def within(self) -> int:
        return sum(spot.allowed for spot in self.spots)


def front_of(
    tried: Sequence[Mapping[str, Any]], max_risk: float | None, min_utility: float | None
) -> Front:
    """The picture of the plans tried so far, with two limits."""
    from shoal.study._statistics import pareto_front

    known = [
        (number, one)
        for number, one in enumerate(tried)
        if one["risk"] is not None and one["utility"] is not None
    ]
    points = [(one["risk"], one["utility"]) for _, one in known]
    best = pareto_front(points, higher_is_better=[False, True]) if points else ()
    risks = (0.0, _up(max([*(p[0] for p in points), max_risk or 0.0, 0.02])))
    low = min([*(p[1] for p in points), min_utility or 1.0])
    high = _up(max([*(p[1] for p in points), min_utility or 0.1]))
    utilities = (math.floor(10 * low - 0.2) / 10 if low > 0.1 else 0.0, high)
    limits = risks[1] if max_risk is None else max_risk, min_utility or utilities[0]
    spots = tuple(
        Spot(
            number,
            one["plan"],
            one["risk"],
            one["utility"],
            _between(one["risk"], risks, LEFT, RIGHT),
            _between(one["utility"], utilities, BASE, TOP),
            _upper(one) <= limits[0] and one["utility"] >= limits[1],
            bool(on),
        )
        for (number, one), on in zip(known, best, strict=True)
    )
    return Front(
        spots,
        len(tried) - len(known),
        risks,
        utilities,
        *limits,
        tuple(Tick(_between(v, risks, LEFT, RIGHT), f"{v:.3g}") for v in _ticks(risks)),
        tuple(Tick(_between(v, utilities, BASE, TOP), f"{v:.3g}") for v in _ticks(utilities)),
    )


def _upper(one: Mapping[str, Any]) -> float:
    """The upper end of a risk's interval, since all of it must be under the limit."""
    interval = one.get("interval") or [None, None]
    return float(one["risk"] if interval[1] is None else max(one["risk"], interval[1]))


def _between(value: float, ends: tuple[float, float], start: float, end: float) -> float:
    share = (value - ends[0]) / (ends[1] - ends[0])
    return start + min(max(share, 0.0), 1.0) * (end - start)


def _up(value: float) -> float:
    """The next round number above."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if unit * step >= value - 1e-12)


def _ticks(ends: tuple[float, float]) -> list[float]:
    return [ends[0] + (ends[1] - ends[0]) * part / 4 for part in range(5)]
