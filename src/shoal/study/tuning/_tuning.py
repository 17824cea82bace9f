"""The result of tuning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.hints import Helpful, instead
from shoal.measurement import Measurement
from shoal.notebook import listing, picture, view
from shoal.study.figures import Figure, Front, Point, front_of, plans_svg, risk_utility
from shoal.study.figures._plans import FRONT_COLUMNS
from shoal.study.figures._style import finite, write_rows
from shoal.workflow import Plan, discover_all_measures

_HOPELESS = 3.0  # times the limit: no model is trained for a plan with this much risk


def utility_title(name: str) -> str:
    """The title of a measure of utility, read so that more is better.

    Examples
    --------
    >>> utility_title("suppressed_cells")
    '1 - share of suppressed cells'
    """
    info = discover_all_measures()[name]
    return info.title if info.direction == "higher" else f"1 - {info.title}"


@dataclass(frozen=True)
class Goal:
    """The highest accepted risk and the lowest accepted utility; at least one of them.

    With a limit on risk, the most useful plan is the best. Without one, it is the plan with the
    least risk among those that are useful enough.
    """

    max_risk: float | None = None
    min_utility: float | None = None

    def __post_init__(self) -> None:
        if self.max_risk is None and self.min_utility is None:
            raise InputError("Tuning needs a limit: pass max_risk, min_utility, or both.")

    def is_hopeless(self, risk: float) -> bool:
        """Whether the risk is so high that no model needs to be trained for the plan."""
        return self.max_risk is not None and risk > _HOPELESS * self.max_risk

    def allows(self, risk: float, interval: tuple[float, float] | None) -> bool:
        """Whether a risk, with its whole interval if one is given, is within the limit."""
        top = risk if interval is None else max(risk, interval[1])
        return self.max_risk is None or top <= self.max_risk

    def meets(self, one: Tried) -> bool:
        """Whether a plan of the search is within both limits."""
        return (
            math.isfinite(one.utility)
            and self.allows(one.risk, one.risk_interval)
            and (self.min_utility is None or one.utility >= self.min_utility)
        )

    def best_first(self, found: Sequence[Tried]) -> list[Tried]:
        """The plans within the limits, the one to recommend first."""
        good = [one for one in found if self.meets(one)]
        if self.max_risk is None:
            return sorted(good, key=lambda one: (one.risk, -one.utility))
        return sorted(good, key=lambda one: (-one.utility, one.risk))

    @property
    def words(self) -> str:
        """The limits as a part of a sentence."""
        parts = []
        if self.max_risk is not None:
            parts.append(f"a risk of at most {self.max_risk:g} (whole interval)")
        if self.min_utility is not None:
            parts.append(f"a utility of at least {self.min_utility:g}")
        return " and ".join(parts)


@dataclass(frozen=True)
class Tried:
    """One tried plan, with its risk and utility in the search."""

    family: str
    steps: tuple[Mapping[str, Any], ...]
    risk: float
    risk_interval: tuple[float, float] | None
    utility: float
    on_front: bool = False

    @property
    def label(self) -> str:
        """The plan in a few words."""
        own = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for step in self.steps
            for name, value in step.items()
            if name in ("k", "base", "epsilon", "fence", "magnitude", "max_distinct")
        ]
        return " ".join([self.family, *own])

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {"plan": self.label, "risk": finite(self.risk), "utility": finite(self.utility)}

    def to_spot(self) -> dict[str, Any]:
        """What the picture of all plans needs, as plain facts."""
        interval = finite(self.risk_interval)
        return {**self.to_dict(), "family": self.family, "interval": interval}


@dataclass(frozen=True, repr=False)
class Tuning(Helpful):
    """The result of tuning: a plan to protect with, the front it lies on, and why it was chosen."""

    _instead = instead({"tuning.plan": "best best_plan best_plan_ best_params_"})

    plan: Plan
    chosen: Tried
    risk: Measurement
    utility: Measurement
    tried: tuple[Tried, ...]
    reason: str
    limit: float | None
    measures: tuple[str, str]
    #: The best plans, tried again with everyone except those held out, if the search used a sample.
    finals: tuple[Tried, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    #: How many people plans were tried on, and of how many; both exclude those held out.
    searched_on: int = 0
    of: int = 0
    held_out: int = 0
    #: How many maskings this run judged; others were stored by an earlier run.
    computed: int = 0

    @property
    def is_on_unseen(self) -> bool:
        """Whether the utility was measured on people the search never saw."""
        return "holdout" in discover_all_measures()[self.measures[1]].options

    @property
    def utility_name(self) -> str:
        """The utility in words, with the model and the predicted column if there are any."""
        details = self.utility.details
        if not {"score", "learner", "target"} <= details.keys():
            return utility_title(self.measures[1])
        score = str(details["score"]).replace("_", " ")
        return f"the {score} of a model ({details['learner']}) that predicts '{details['target']}'"

    @property
    def not_told_apart(self) -> int:
        """How many other plans within the limit have a utility inside the chosen one's interval."""
        if self.utility.interval is None:
            return 0
        low, high = self.utility.interval
        most = math.inf if self.limit is None else self.limit
        others = (one for one in self.tried if one.steps != self.chosen.steps)
        return sum(one.risk <= most and low <= one.utility <= high for one in others)

    def front(self) -> Front:
        """All tried plans by risk and utility, with the front and the limit."""
        return front_of([one.to_spot() for one in self.tried], self.limit, None)

    def to_svg(self) -> str:
        """The picture of all tried plans as SVG; it needs no further package."""
        return plans_svg(
            self.front(),
            risk=discover_all_measures()[self.measures[0]].title,
            utility=utility_title(self.measures[1]),
            chosen=self.chosen.label,
        )

    def save_front(self, folder: str | Path) -> None:
        """Write the picture as ``front.svg``, and its numbers as ``front.csv``."""
        folder = Path(folder)
        (folder / "front.svg").write_text(self.to_svg(), encoding="utf-8", newline="")
        write_rows(folder / "front.csv", FRONT_COLUMNS, self.front().rows)

    def figure(self) -> Figure:
        """The same as a figure for print, to save as PDF or PNG; it needs the extra ``study``."""
        infos = discover_all_measures()
        points = [
            Point(one.label, one.risk, one.utility, one.family)
            for one in self.tried
            if math.isfinite(one.utility)
        ]
        return risk_utility(
            points,
            risk=infos[self.measures[0]].title,
            utility=utility_title(self.measures[1]),
            limit=self.limit,
            chosen=self.chosen.label,
        )

    def __repr__(self) -> str:
        return (
            f"Tuning: {self.chosen.label}; risk {self.risk:.4g}, utility {self.utility:.4g}; "
            f"{len(self.tried)} plans tried"
        )

    def _repr_html_(self) -> str:
        """The plans by risk and utility, and those on the front."""
        drawn = picture(self.to_svg().encode(), "plans by risk and utility")
        front = sorted((one for one in self.tried if one.on_front), key=lambda one: one.risk)
        rows = ((one.label, one.risk, one.utility, one.label == self.chosen.label) for one in front)
        head = ("best plans", *self.measures, "chosen")
        return view(repr(self), drawn, listing(head, rows, of="plans"), self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "plan": self.plan.to_dict(),
            "reason": self.reason,
            "limit": self.limit,
            "risk": self.risk.to_dict(),
            "utility": self.utility.to_dict(),
            "utility_name": self.utility_name,
            "not_told_apart": self.not_told_apart,
            "tried": [one.to_dict() | {"on_front": one.on_front} for one in self.tried],
            "finals": [one.to_dict() for one in self.finals],
            "failures": dict(self.failures),
            "people": {
                "searched_on": self.searched_on,
                "confirmed_on": self.of,
                "held_out": self.held_out,
            },
        }
