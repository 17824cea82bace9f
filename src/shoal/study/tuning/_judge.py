"""Plans judged on both sides: masked, attacked, and learnt from."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from shoal import __version__
from shoal.errors import ShoalError
from shoal.measurement import Measurement
from shoal.study._store import Result, Store, key_of
from shoal.study.tuning._space import Family
from shoal.study.tuning._tuning import Tried
from shoal.table import Table, fingerprint
from shoal.workflow import Plan, discover_all_measures

_HOPELESS = 3.0  # times the limit: a plan of such risk is not worth a model


class Judge:
    """Masks the people of the search by a plan, and measures both sides of it once."""

    def __init__(
        self,
        seen: Table,
        *,
        max_risk: float,
        risk: tuple[str, dict[str, Any]],
        utility: tuple[str, dict[str, Any]],
        seed: int,
        store: Store | None,
    ) -> None:
        self.seen, self.max_risk, self.seed, self.store = seen, max_risk, seed, store
        self.risk, self.utility = risk, utility
        self.results: dict[str, Tried] = {}
        self.failures: dict[str, int] = {}

    def __call__(self, family: Family, chosen: dict[str, Any]) -> tuple[float, float]:
        steps = family.steps_with(chosen)
        key = key_of({"steps": steps})
        if key not in self.results:
            self.results[key] = self._judged(family.name, steps)
        one = self.results[key]
        return one.risk, one.utility

    def _judged(self, family: str, steps: list[dict[str, Any]]) -> Tried:
        key = key_of(
            {
                "shoal": __version__,
                "people": fingerprint(self.seen),
                "steps": steps,
                "seed": self.seed,
                "risk": self.risk,
                "utility": self.utility,
                "limit": self.max_risk,
            }
        )
        kept = {} if self.store is None else self.store.read([key])
        if key in kept:
            facts, began = kept[key].facts, None
            reason = kept[key].reason
        else:
            began = time.perf_counter()
            facts, reason = self._measured(steps)
        if reason is not None:
            self.failures[reason] = self.failures.get(reason, 0) + 1
        if self.store is not None and began is not None:
            seconds = time.perf_counter() - began
            status = "done" if reason is None else "failed"
            self.store.write(
                Result(key, status, facts.get("utility") or math.nan, facts, reason, seconds)  # type: ignore[arg-type]
            )
        interval = facts.get("interval")
        return Tried(
            family,
            tuple(steps),
            _number(facts.get("risk")),
            None if interval is None else (float(interval[0]), float(interval[1])),
            _number(facts.get("utility")),
        )

    def _measured(self, steps: list[dict[str, Any]]) -> tuple[dict[str, Any], str | None]:
        """Risk and utility as plain facts, or the reason why there is none."""
        try:
            masked = self.masked(steps, self.seed)
            risk = self.risk_of(masked)
            facts: dict[str, Any] = {"risk": risk.value, "interval": risk.interval}
            if risk.value > _HOPELESS * self.max_risk:
                return facts, None  # no model is trained on what cannot be recommended
            facts["utility"] = self.utility_of(masked).value
            return facts, None
        except ShoalError as error:
            return {}, str(error)
        except Exception as error:  # what others say may tell a cell
            return {}, type(error).__name__

    def masked(self, steps: Sequence[Mapping[str, Any]], seed: int) -> Table:
        plan = Plan.from_dict({"steps": [dict(step) for step in steps]})
        for step in plan.steps:
            if step.is_random:
                step.set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a release is warned of, the attack measures
            return plan.apply(self.seen)[0]

    def risk_of(self, masked: Table) -> Measurement:
        return self._taken(self.risk, masked)

    def utility_of(self, masked: Table, **more: Any) -> Measurement:
        return self._taken(self.utility, masked, **more)

    def _taken(self, asked: tuple[str, dict[str, Any]], masked: Table, **more: Any) -> Measurement:
        name, options = asked
        info = discover_all_measures()[name]
        tables = (self.seen, masked) if info.needs_original else (masked,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return info.function(*tables, **options, **more)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
