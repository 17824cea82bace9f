"""The nearest requirement that a plan can meet, if no change to its steps meets the one it has."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from shoal.errors import ParameterError
from shoal.masking import Masker
from shoal.models import SensitiveModel, TCloseness
from shoal.parameters import parameters_of
from shoal.table import NUMBERS, Table
from shoal.workflow._plan import Plan
from shoal.workflow._require import Limit, Requirement, in_toml, plain, requirements_to_dict
from shoal.workflow.advice._advice import (
    BY_CLASSES,
    Advice,
    asked_of_steps,
    changes_for,
    in_words,
    mask_quietly,
    models_of_step,
    mondrian,
    some_persons,
    try_change,
    with_k,
)

if TYPE_CHECKING:
    from shoal.workflow._protect import Masking

#: How many values lie between what is asked and what the steps reach anyway.
_RUNGS: Final = 128
#: How far to look if no value of the model would do for the steps as they are.
_FAR: Final = 16.0
#: The least bound that says something, where more is better.
_LEAST: Final = 1.1
#: Nothing further is tried after this many seconds, for each way to ask for less.
_PATIENCE: Final = 15.0

#: The plans of one rung, from the smallest change on, each with the change in words.
_Rung = Iterable[tuple[str, Plan]]


def nearest(made: Masking, plan: Plan) -> list[Advice]:
    """The strictest tried requirements that hold in place of the models that fail.

    There are none if a limit fails on a measure that the sizes of classes do not decide.
    """
    asked = [claim.requirement for claim in made.claims if not claim.holds]
    if any(isinstance(one, Limit) and one.measure not in BY_CLASSES for one in asked):
        return []
    table, sampled = some_persons(made.table)
    base = made if sampled is None else mask_quietly(table, plan)
    return [] if base is None else _weaker(base, plan, asked, sampled)


def nearest_that_masks(table: Table, plan: Plan) -> list[Advice]:
    """The same for a plan whose steps ask for more than this table can give."""
    table, sampled = some_persons(table)
    coarser = _coarser(table, plan, sampled)
    if coarser is not None:
        return [coarser]
    models = [model for step in plan.steps for model in _sensitive(step)]
    if models:
        models += [one for one in plan.require if isinstance(one, SensitiveModel)]
        bare = plan.replacing(
            steps=[
                _without_models(step)
                for step in plan.steps
                if hasattr(step, "k") or not _sensitive(step)
            ],
            require=[one for one in plan.require if not isinstance(one, SensitiveModel)],
        )
        base = mask_quietly(table, bare)
        if base is not None:
            return _weaker(base, plan, list(dict.fromkeys(models)), sampled)
    asked = max((k for step in plan.steps if (k := getattr(step, "k", None))), default=2)
    largest = min(asked, table.person_count)

    def rung(number: int) -> _Rung:
        k = max(2, math.floor(largest * (1 - number / _RUNGS)))
        yield f"k = {k} in the whole plan", with_k(plan, k)

    found = _strictest(table, rung, None, sampled) if largest > 2 else None
    return [] if found is None else [found]


def _coarser(table: Table, plan: Plan, sampled: int | None) -> Advice | None:
    """Ranges instead of the last step that removes small classes, if that is enough."""
    for place in reversed(range(len(plan.steps))):
        removed = getattr(plan.steps[place], "min_class_size", None)
        if removed is not None:
            k, models = asked_of_steps(plan, plan.require)
            step = mondrian(max(removed, k or 0), models)
            steps = [*plan.steps[:place], step, *plan.steps[place + 1 :]]
            change = f"{in_words(step)} instead of step {place + 1}"
            return try_change(table, change, plan.replacing(steps=steps), None, sampled)
    return None


def _weaker(
    base: Masking, plan: Plan, given: Sequence[Requirement], sampled: int | None
) -> list[Advice]:
    """Weaker requirements; for numbers, t-closeness by their order is tried as well."""
    found = []
    by_order = [part for one in given for part in _by_order(one, base.table)]
    for asked in [by_order, list(given)][by_order == given :]:
        levels = [(one, _level(one, base)) for one in asked]
        best = _strictest(base.table, partial(_plans, plan, given, levels), base, sampled)
        found += [] if best is None else [best]
    return found


def _level(one: Requirement, made: Masking) -> float:
    """What a masked table reaches."""
    if isinstance(one, Limit):
        return one.run(made.masked, made.table).value
    return float(one.level(made.masked))


def _strictest(
    table: Table, rung: Callable[[int], _Rung], base: Masking | None, sampled: int | None
) -> Advice | None:
    """The first rung of a ladder on which something holds, found by halving."""
    end = time.monotonic() + _PATIENCE
    best, fails, holds = None, -1, _RUNGS
    number = _RUNGS
    while holds - fails > (best is not None) and time.monotonic() < end:
        tried = (try_change(table, change, plan, base, sampled) for change, plan in rung(number))
        found = next((one for one in tried if one is not None), None)
        if found is None:
            if best is None:
                return None  # nor does anything stricter
            fails = number
        else:
            best, holds = replace(found, asks_less=True), number
        number = (fails + holds) // 2
    return best


def _plans(
    plan: Plan,
    given: Sequence[Requirement],
    levels: Sequence[tuple[Requirement, float]],
    rung: int,
) -> _Rung:
    """The plan with other requirements where the given ones were: required, and in the steps.

    Each lies a number of rungs from what it asks to the level that is reached anyway.
    """
    moved = [_moved(one, reached, rung / _RUNGS) for one, reached in levels]
    require = plan.require
    said = []
    if any(one in given for one in plan.require):
        require = (*(one for one in plan.require if one not in given), *moved)
        now, then = (requirements_to_dict(each) for each in (plan.require, require))
        new = {name: value for name, value in then.items() if now.get(name) != value}
        said = [f"{name} = {in_toml(plain(value))} in [require]" for name, value in new.items()]
        if said and not any(_sensitive(step) for step in plan.steps):
            yield " and ".join(said), plan.replacing(require=require)
    for change, steps in changes_for(plan, moved):
        yield " and ".join([*said, change]), plan.replacing(steps=steps, require=require)


def _moved(one: Requirement, reached: float, share: float) -> Requirement:
    """The requirement, its bound moved by a share of the way to what is reached, and rounded."""
    if share == 0 or one.accepts(reached):
        return one
    asked = float(one.threshold)
    is_lower = reached > asked
    if not is_lower:
        reached = max(reached, _LEAST)
    elif not math.isfinite(reached):
        reached = _FAR * asked
    # in equal ratios: the bounds may lie far apart
    bound = asked * (reached / asked) ** share if asked > 0 else share * reached
    name = parameters_of(type(one))[0].name if not isinstance(one, Limit) else one.side
    outward = math.ceil if is_lower else math.floor
    scale = 10.0 ** (1 - math.floor(math.log10(bound))) if bound > 0 else 1.0
    for value in (outward(bound * scale) / scale, outward(bound), math.ceil(bound)):
        try:
            return replace(one, **{name.replace(" ", "_"): value})  # type: ignore[type-var]
        except ParameterError:  # counted in whole numbers, or too small
            continue
    return one


def _by_order(model: Requirement, table: Table) -> Iterator[Requirement]:
    """t-closeness per column, with the distance by order for numbers; other models as they are."""
    names = model.columns(table) if isinstance(model, TCloseness) else ()
    has_numbers = any(table.kind(name) in NUMBERS for name in names)
    if not isinstance(model, TCloseness) or model.distance != "equal" or not has_numbers:
        yield model
        return
    for name in names:
        by_column = replace(model, column=name)
        is_number = table.kind(name) in NUMBERS
        yield replace(by_column, distance="ordered") if is_number else by_column


def _sensitive(step: Masker) -> list[SensitiveModel]:
    return [one for one in models_of_step(step) if isinstance(one, SensitiveModel)]


def _without_models(step: Masker) -> Masker:
    """The step without its models of sensitive values; a step that then has no k gets the least."""
    if not _sensitive(step):
        return step
    k = getattr(step, "k", None) or 2
    return copy.copy(step).set_params(models=None, k=k)
