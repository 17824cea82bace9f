"""The judge of plans: it masks with a plan, attacks the result, and measures its utility."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from shoal import __version__
from shoal.errors import ShoalError
from shoal.measurement import Measurement
from shoal.study.running._store import (
    Result,
    Status,
    Store,
    hashes_of_named_files,
    key_of,
    library_versions,
)
from shoal.study.tuning._tuning import Goal
from shoal.table import Table, fingerprint
from shoal.workflow import Limit, Plan, StepRecord, discover_all_measures
from shoal.workflow._plan import in_released_domain
from shoal.workflow._require import Requirement, make_claim

#: A measure by name, with its options.
MeasureChoice = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Judgment:
    """The risk and utility of a plan; no utility if it was not asked for or not worth measuring."""

    risk: Measurement | None = None
    utility: Measurement | None = None
    #: Why the plan cannot be recommended, whatever its risk: it failed or misses a requirement.
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        sides = {"risk": self.risk, "utility": self.utility}
        return {name: found and found.to_dict() for name, found in sides.items()}


@dataclass(eq=False, kw_only=True)
class Judge:
    """Masks people by a plan and measures risk and utility, once per plan and seed."""

    people: Table = field(kw_only=False)
    goal: Goal
    risk: MeasureChoice
    utility: MeasureChoice
    require: Sequence[Requirement] = ()
    store: Store | None = None
    computed: int = 0
    _known: dict[str, Judgment] = field(default_factory=dict)  # a search may repeat a plan

    @cached_property
    def _depends(self) -> dict[str, Any]:
        return {
            "shoal": __version__,
            "libraries": library_versions(),
            "people": fingerprint(self.people),
            "risk": self.risk,
            "utility": self.utility,
            "limits": [self.goal.max_risk, self.goal.min_utility],
            "require": Plan(require=self.require).to_dict(),
        }

    def check_utility(self) -> None:
        """Raise if the utility of the original cannot be measured; no plan could then help."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._utility_of(self.people)

    def judged(
        self,
        steps: Sequence[Mapping[str, Any]],
        *,
        seed: int,
        with_utility: bool = True,
        holdout: Table | None = None,
    ) -> Judgment:
        """Risk and utility of a plan under a seed; stored, so that a stopped search can resume."""
        key = key_of(
            {
                **self._depends,
                "steps": [dict(step) for step in steps],
                "files": hashes_of_named_files([steps, self.risk, self.utility], None),
                "seed": seed,
                "with_utility": with_utility,
                "holdout": None if holdout is None else fingerprint(holdout),
            }
        )
        stored = {} if self.store is None or key in self._known else self.store.read([key])
        if key in stored:
            risk, utility = (_measurement(stored[key].facts.get(x)) for x in ("risk", "utility"))
            self._known[key] = Judgment(risk, utility, stored[key].reason)
        if key not in self._known:
            began = time.perf_counter()
            new = self._known[key] = self._compute(steps, seed, with_utility, holdout)
            self.computed += 1
            if self.store is not None:
                value = math.nan if new.risk is None else new.risk.value
                seconds = time.perf_counter() - began
                status: Status = "done" if new.reason is None else "failed"
                self.store.write(Result(key, status, value, new.to_dict(), new.reason, seconds))
        return self._known[key]

    def _compute(
        self,
        steps: Sequence[Mapping[str, Any]],
        seed: int,
        with_utility: bool,
        holdout: Table | None,
    ) -> Judgment:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the attack measures the risks that they warn about
            try:
                plan = seeded(steps, seed)
                masked, records = plan.apply(self.people)
                risk = self._measure(self.risk, masked)
                missed = self._missed_requirement(records, masked)
                if missed is not None or not with_utility or self.goal.is_hopeless(risk.value):
                    return Judgment(risk, None, missed)
                return Judgment(risk, self._utility_of(masked, holdout))
            except ShoalError as error:
                return Judgment(reason=str(error))
            except Exception as error:  # a library's message may quote a cell
                return Judgment(reason=type(error).__name__)

    def _missed_requirement(self, records: Sequence[StepRecord], masked: Table) -> str | None:
        """The requirement that the masked table does not satisfy, in words."""
        served = partial(in_released_domain, records)
        for requirement in self.require:
            if isinstance(requirement, Limit) and requirement.measure == self.risk[0]:
                continue  # the goal judges it, with its own limit and the whole interval
            # a trial may use a seed, because the release is drawn again
            claim = make_claim(requirement, masked, self.people, served=served, accept_seed=True)
            if not claim.holds:
                return f"it does not satisfy {claim.key}, which the plan requires"
        return None

    def _utility_of(self, masked: Table, holdout: Table | None = None) -> Measurement:
        """The utility, tested on held-out people if the measure tests models."""
        info = discover_all_measures()[self.utility[0]]
        more = {} if holdout is None or "holdout" not in info.options else {"holdout": holdout}
        return as_utility(self._measure(self.utility, masked, **more), info.limits)

    def _measure(self, choice: MeasureChoice, masked: Table, **more: Any) -> Measurement:
        name, options = choice
        return discover_all_measures()[name].take(self.people, masked, **options, **more)


def as_utility(found: Measurement, limits: tuple[float, float]) -> Measurement:
    """A loss as a utility: 1 if nothing is lost, 0 if everything is; a utility stays as it is.

    Examples
    --------
    >>> print(as_utility(Measurement("suppressed_cells", 0.2), (0, 1)))
    1 - suppressed_cells = 0.8 (higher is better)
    """
    if found.direction == "higher":
        return found
    low, high = limits

    def left(loss: float) -> float:
        return 1 - (loss - low) / (high - low)

    return Measurement(
        f"1 - {found.name}",
        left(found.value),
        interval=found.interval and (left(found.interval[1]), left(found.interval[0])),
        baseline=None if found.baseline is None else left(found.baseline),
        direction="higher",
        details={**found.details, "loss": found.value},
        warnings=found.warnings,
    )


def seeded(steps: Sequence[Mapping[str, Any]], seed: int | None) -> Plan:
    """The plan of some steps, with the seed set for every random one, or taken from it."""
    plan = Plan.from_dict({"steps": [dict(step) for step in steps]})
    for step in plan.steps:
        if step.takes_seed:
            step.set_params(random_state=seed)
    return plan


def _measurement(facts: Mapping[str, Any] | None) -> Measurement | None:
    """A measurement from its stored facts."""
    if facts is None:
        return None
    value, interval = facts["value"], facts["interval"]
    plain = {
        "value": math.nan if value is None else value,
        "interval": interval and tuple(interval),
        "warnings": tuple(facts["warnings"]),
    }
    return Measurement(**{**facts, **plain})
