"""Which plans of a space are tried, and in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from shoal.errors import MissingExtra
from shoal.study.tuning._space import Family

#: Tried plans: risk and utility; utility is NaN where a plan was given up for its risk.
Evaluate = Callable[[Family, dict[str, Any]], tuple[float, float]]


def tried(space: Sequence[Family], evaluate: Evaluate, *, trials: int, random_state: int) -> None:
    """Try plans: all of them where there are few enough, else those that a sampler proposes.

    The sampler learns from both objectives (Optuna's TPE); the same seed gives the same order.
    """
    if sum(family.size for family in space) <= trials:
        for family in space:
            for chosen in family.all():
                evaluate(family, chosen)
        return
    _proposed(space, evaluate, trials, random_state)


def _proposed(space: Sequence[Family], evaluate: Evaluate, trials: int, random_state: int) -> None:
    try:
        import optuna
    except ImportError:
        raise MissingExtra("Tuning over so many plans", "study") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    by_name = {family.name: family for family in space}
    sampler = optuna.samplers.TPESampler(seed=random_state, n_startup_trials=max(10, trials // 4))
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    seen: set[str] = set()
    for _ in range(4 * trials):  # a sampler may propose again what was tried
        if len(seen) >= trials:
            return
        trial = study.ask()
        family = by_name[trial.suggest_categorical("family", list(by_name))]
        chosen = {
            place: values[trial.suggest_int(f"{family.name}/{place}", 0, len(values) - 1)]
            for place, values in family.choices.items()
        }
        risk, utility = evaluate(family, chosen)
        if math.isnan(risk) or math.isnan(utility):
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, [risk, utility])
        seen.add(f"{family.name} {chosen}")
