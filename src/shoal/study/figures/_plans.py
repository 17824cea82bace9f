"""Plans by risk and utility: the one picture of tuning, of the demo and of the studio.

The templates of the reports draw it as SVG, so it needs no further package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.study._statistics import pareto_front
from shoal.study.figures._style import COLOURS
from shoal.workflow.report._figures import Tick
from shoal.workflow.report._render import render

LEFT, TOP, RIGHT, BASE = 52.0, 16.0, 624.0, 352.0
FRONT_COLUMNS = ("label", "family", "risk", "utility", "on_front")
_NUMBERED = 12  # plans of the front that the legend names


@dataclass(frozen=True)
class Spot:
    """A plan in the picture."""

    number: int
    label: str
    family: str
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
    def rows(self) -> list[tuple[Any, ...]]:
        """The numbers in the picture, by ``FRONT_COLUMNS``."""
        return [(s.label, s.family, s.risk, s.utility, s.on_front) for s in self.spots]

    @property
    def numbered(self) -> list[Spot]:
        """The plans of the front that the legend names, the least risk first."""
        return sorted((s for s in self.spots if s.on_front), key=lambda s: s.risk)[:_NUMBERED]

    @property
    def colours(self) -> dict[str, str]:
        """A color for each family, in the order of their first appearance."""
        names = dict.fromkeys(spot.family for spot in self.spots)
        return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}

    @property
    def has_limit(self) -> bool:
        """Whether a limit of risk lies inside of the picture."""
        return self.max_risk < self.risks[1]

    @property
    def within(self) -> int:
        return sum(spot.allowed for spot in self.spots)


def front_of(
    tried: Sequence[Mapping[str, Any]], max_risk: float | None, min_utility: float | None
) -> Front:
    """The picture of the plans tried so far, with two limits."""
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
            one.get("family", ""),
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


def plans_svg(front: Front, *, risk: str, utility: str, chosen: str | None = None) -> str:
    """The picture as a file of its own; ``risk`` and ``utility`` are the titles of the axes."""
    titles = {"risk_title": risk, "utility_title": utility}
    return render("front.svg.j2", front=front, chosen=chosen, **titles).strip()


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
