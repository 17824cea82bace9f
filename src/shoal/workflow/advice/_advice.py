"""Changes for a plan that does not meet a requirement; each one is tried before it is suggested.

Also k as a single number: the shortest plan for a k, and a plan with another k.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from shoal.errors import InputError, ShoalError
from shoal.masking import Generalize, Masker, Progress, Suppress
from shoal.models import KAnonymity, LDiversity, PrivacyModel, ProbabilisticKAnonymity
from shoal.parameters import Parametrized, parameters_of
from shoal.randomness import SecretStream
from shoal.table import Hierarchy, Roles, Table
from shoal.utility import normalized_certainty_penalty
from shoal.workflow._plan import Plan
from shoal.workflow._require import Claim, Limit, Requirement, in_toml, plain

if TYPE_CHECKING:
    from shoal.workflow._protect import Masking

P = TypeVar("P", bound=Parametrized)

#: Larger tables are not tried in full; a sample of the persons shows what would hold.
_MOST_RECORDS: Final = 100_000
_MOST_TRIES: Final = 6
#: No further change is tried after this many seconds: a single search may take a minute.
PATIENCE: Final = 30.0
#: With this loss, the quasi-identifiers carry no information.
_NOTHING_LEFT: Final = 1 - 1e-9
#: Risks that no class of k records exceeds, when they must be at most 1/k.
BY_CLASSES: Final = ("prosecutor_risk", "marketer_risk", "journalist_risk")


@dataclass(frozen=True)
class Advice:
    """A change after which all requirements of a plan hold, and what the change costs."""

    change: str
    plan: Plan = field(repr=False)
    loss: float | None = None
    loss_now: float | None = None
    records_lost: int = 0
    sampled: int | None = None
    #: Whether the change also weakens a requirement.
    asks_less: bool = False

    def sentence(self) -> str:
        """In words, for the person who edits the plan."""
        costs = []
        if self.loss is not None and self.loss_now is not None:
            costs.append(f"loss {self.loss:.3g} instead of {self.loss_now:.3g}")
        if self.records_lost:
            costs.append(f"{self.records_lost:,} more records removed")
        if not costs and self.loss is not None:
            costs.append(
                "no further loss" if self.loss_now is not None else f"loss {self.loss:.3g}"
            )
        costs += [] if self.sampled is None else [f"tried on {self.sampled:,} records"]
        return f"With {self.change} it holds" + (f" ({'; '.join(costs)})" if costs else "")

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {name: value for name, value in vars(self).items() if name != "plan"}


def advise(made: Masking, plan: Plan, progress: Progress | None = None) -> list[Advice]:
    """Changes that were tried and make the requirements hold, the one with the least loss first."""
    if progress:
        progress("Trying changes to the plan", 0.0)
    broken = [claim for claim in made.claims if not claim.holds]
    table, sampled = some_persons(made.table)
    found: list[Advice] = []
    end = time.monotonic() + PATIENCE
    now = made if sampled is None else mask_quietly(table, plan)
    asked = [claim.requirement for claim in broken]
    for _, (change, steps) in zip(range(_MOST_TRIES), changes_for(plan, asked), strict=False):
        one = try_change(table, change, plan.replacing(steps=steps), now, sampled)
        found += [] if one is None else [one]
        if len(found) == 2 or time.monotonic() > end:
            break
    found.sort(key=_cost)  # of equal costs, the smaller change stays first
    # a change that loses more detail must keep more records than all that lose less
    worth = [
        one
        for place, one in enumerate(found)
        if all(one.records_lost < cheaper.records_lost for cheaper in found[:place])
    ]
    return [one for one in worth if _cost(one) <= 3 * _cost(found[0]) + 0.05]  # none far worse


def _cost(advice: Advice) -> float:
    return math.inf if advice.loss is None else advice.loss


def reached(claims: Sequence[Claim]) -> list[str]:
    """The parameter that the plan reaches in each model that fails."""
    return [
        f"This plan reaches {parameters_of(type(claim.requirement))[0].name} = "
        f"{claim.measured:.4g} in {claim.requirement.title}"
        for claim in claims
        if isinstance(claim.requirement, PrivacyModel)
        and not claim.holds
        and math.isfinite(claim.measured)
        and claim.measured > (1 if claim.requirement.direction == "higher" else 0)
    ]


def try_change(
    table: Table, change: str, plan: Plan, now: Masking | None, sampled: int | None = None
) -> Advice | None:
    """The change with its cost compared with now; None if it fails, or leaves no information."""
    tried = mask_quietly(table, plan)
    if tried is None or not all(claim.holds for claim in tried.claims):
        return None
    loss = _loss(tried)
    if loss is not None and loss > _NOTHING_LEFT:
        return None
    lost = 0 if now is None else max(0, len(now.masked) - len(tried.masked))
    return Advice(change, plan, loss, None if now is None else _loss(now), lost, sampled)


def mask_quietly(table: Table, plan: Plan) -> Masking | None:
    """The result of a plan without its warnings; None if it cannot mask this table."""
    from shoal.workflow._protect import mask_by

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return mask_by(table, plan)
        except ShoalError:
            return None


def _loss(made: Masking) -> float | None:
    try:
        return normalized_certainty_penalty(made.table, made.masked).value
    except ShoalError:
        return None


def some_persons(table: Table) -> tuple[Table, int | None]:
    """The table, or a sample of whole persons if it is too large to try."""
    if len(table) <= _MOST_RECORDS:
        return table, None
    chance = SecretStream.from_state(None).derive("advice").permutation(table.person_count)
    share = _MOST_RECORDS / len(table)
    whose = table.persons if table.has_persons else np.arange(len(table))
    kept = table.keep(chance[whose] < share * table.person_count)
    return kept, len(kept)


def changes_for(plan: Plan, asked: Sequence[Requirement]) -> Iterator[tuple[str, list[Masker]]]:
    """Changes that may help, in words and as steps, the smallest changes first.

    If a limit fails that no class size is sure to keep, larger sizes are tried as well.
    """
    k, models = asked_of_steps(plan, asked)
    own = any(getattr(one, "missing", "own") == "own" for one in asked)
    yield from _with(plan, k, models, own)
    if k is not None and any(isinstance(one, Limit) for one in asked):
        yield from _with(plan, 2 * k, models, own)


def _with(
    plan: Plan, k: int | None, models: Sequence[PrivacyModel], own: bool
) -> Iterator[tuple[str, list[Masker]]]:
    steps = list(plan.steps)
    for place in reversed(range(len(steps))):
        changes = _of_step(steps[place], k, models, own)
        with contextlib.suppress(InputError):  # the parameters exclude each other
            if changes:
                changed = copy.copy(steps[place]).set_params(**changes)
                where = f"{_in_toml(changes)} in step {place + 1}"
                yield where, [*steps[:place], changed, *steps[place + 1 :]]
    if k is not None and not models:
        last = Suppress(min_class_size=k)
        yield f"a last step 'suppress' (min_class_size = {k})", [*steps, last]
    if (k is not None or models) and not any(isinstance(step, Generalize) for step in steps):
        step = mondrian(k, models)
        yield f"a last {in_words(step)}", [*steps, step]


def mondrian(
    k: int | None,
    models: Sequence[PrivacyModel],
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> Generalize:
    """A step that gives every record the smallest box that is safe."""
    asked = (list(models) if models[1:] else models[0]) if models else None
    return Generalize("mondrian", k=k, models=asked, hierarchies=hierarchies)


def in_words(step: Generalize) -> str:
    """Such a step as a person writes it into a plan."""
    given = {"algorithm": step.algorithm, "k": step.k, "models": step.models}
    return f"step 'generalize' ({_in_toml({n: v for n, v in given.items() if v is not None})})"


def asked_of_steps(
    plan: Plan, requirements: Sequence[Requirement]
) -> tuple[int | None, list[PrivacyModel]]:
    """The crowd size and the other models that the steps must reach for everything to hold."""
    sizes, models = [], []
    for asked in requirements:
        if isinstance(asked, Limit):
            largest = [k for step in plan.steps if (k := getattr(step, "k", None))]
            bound = asked.threshold if asked.measure in BY_CLASSES else 0.0
            if asked.measure == "records_at_risk":
                bound = asked.options.get("threshold", asked.info.options["threshold"].default)
            if 0 < bound < 1:
                sizes.append(math.ceil(1 / bound))
            elif largest and asked.info.direction == "lower":
                sizes.append(2 * max(largest))
        elif isinstance(asked, ProbabilisticKAnonymity) or (
            isinstance(asked, KAnonymity) and asked.of != "histories"
        ):
            sizes.append(asked.k)
        else:
            models.append(asked)
    return max(sizes, default=None), models


def models_of_step(step: Masker) -> list[PrivacyModel]:
    """The models that a step satisfies."""
    given = getattr(step, "models", None) or []
    return given if isinstance(given, list) else [given]


def _of_step(
    step: Masker, k: int | None, models: Sequence[PrivacyModel], own: bool
) -> dict[str, Any]:
    """The parameters to change so that a step reaches the goal; none if it cannot.

    A step that takes missing values as wildcards is not enough if they are values of their ``own``.
    """
    names = {parameter.name for parameter in parameters_of(type(step))}
    if getattr(step, "levels", None):
        return {}
    changes: dict[str, Any] = {}
    if k is not None and "k" in names and (getattr(step, "k", None) or 0) < k:
        changes["k"] = k
    if own and getattr(step, "missing", "own") == "wildcard":
        changes["missing"] = "own"
    if models and "models" in names:
        there = models_of_step(step)
        wanted = [*(m for m in there if type(m) not in map(type, models)), *models]
        if wanted != there:
            changes["models"] = wanted if len(wanted) > 1 else wanted[0]
    elif models:
        return {}
    return changes


def _in_toml(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {in_toml(plain(value))}" for name, value in changes.items())


# -- k as a single number


def shortest_plan(roles: Roles, k: int) -> Plan:
    """Boxes of at least k persons, each with two values of every sensitive column, if any."""
    diverse = [LDiversity(2)] if roles.sensitive else []
    return Plan([mondrian(k, diverse)], require=[KAnonymity(k), *diverse])


def models_of_plan(plan: Plan) -> Iterator[PrivacyModel]:
    """The privacy models that a plan requires, and those that its steps satisfy."""
    for part in (*plan.steps, *plan.require):
        if isinstance(part, PrivacyModel):
            yield part
        elif isinstance(part, Parametrized):
            for value in part.get_params().values():
                listed = value if isinstance(value, list) else [value]
                yield from (one for one in listed if isinstance(one, PrivacyModel))


def with_k(plan: Plan, k: int) -> Plan:
    """The same plan with k in place of every k of its steps, models and requirements.

    Examples
    --------
    >>> from shoal import Generalize, KAnonymity
    >>> with_k(Plan([Generalize(k=5)], require=[KAnonymity(5)]), 10)
    Plan: generalize; requires k_anonymity = 10
    """
    changed = plan.replacing(
        steps=[_under(step, k) for step in plan.steps],
        require=[_under(one, k) if isinstance(one, Parametrized) else one for one in plan.require],
    )
    if not has_k(plan):
        raise InputError(
            f"k = {k} is given, but no step or requirement of the plan has a k. Write, for "
            "example, sh.Plan([sh.Generalize(k=5)], require=[sh.KAnonymity(5)])."
        )
    return changed


def has_k(plan: Plan) -> bool:
    """Whether any step, model or requirement of a plan has a k."""
    return any(_asks(part) for part in (*plan.steps, *models_of_plan(plan)))


def _under(part: P, k: int) -> P:
    """A step or a model with another k, which also applies to the models inside it."""
    changes: dict[str, Any] = {"k": k} if _asks(part) else {}
    for name, value in part.get_params().items():
        if isinstance(value, PrivacyModel):
            changes[name] = _under(value, k)
        elif isinstance(value, list) and any(isinstance(one, PrivacyModel) for one in value):
            changes[name] = [_under(one, k) for one in value]
    return replace(part, **changes) if changes else part  # type: ignore[type-var]


def _asks(part: Parametrized) -> bool:
    return part.get_params().get("k") is not None
