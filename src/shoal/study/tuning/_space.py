"""What tuning chooses from: families of plans, each over values of its parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import MissingExtra, PlanError
from shoal.table import Table

_SWAP_KS = (2, 3, 5, 10, 20, 30, 50)
_GROUP_KS = (2, 3, 5, 8, 12, 20, 30, 50)


@dataclass(frozen=True)
class Family:
    """Plans of one shape: steps, and for some of their parameters the values to choose from.

    ``choices`` are by ``"number.parameter"``, the number of the step from 0.

    Examples
    --------
    >>> family = Family("swap", ({"method": "swap"},), {"0.k": (2, 5)})
    >>> family.size, family.steps_with({"0.k": 5})
    (2, [{'method': 'swap', 'k': 5}])
    """

    name: str
    steps: tuple[Mapping[str, Any], ...]
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many plans it has."""
        return math.prod(len(values) for values in self.choices.values())

    def steps_with(self, chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The steps with these values."""
        steps = [dict(step) for step in self.steps]
        for place, value in chosen.items():
            number, _, parameter = place.partition(".")
            if not number.isdigit() or int(number) >= len(steps) or not parameter:
                raise PlanError(f"The choice '{place}' of the family '{self.name}' is of no step.")
            steps[int(number)][parameter] = value
        return steps

    def all(self) -> Iterator[dict[str, Any]]:
        """Every choice of values."""
        for values in itertools.product(*self.choices.values()):
            yield dict(zip(self.choices, values, strict=True))


def default_space(table: Table) -> list[Family]:
    """Families that suit a table: swaps, microaggregation, generalization, and the five techniques.

    Coding and rounding are offered where quasi-identifiers are numbers, recoding where some are
    whole and noise where some are not, which is all that they change; groups are never asked to
    be larger than half of the table.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles
    >>> table = Table(pl.DataFrame({"sex": ["f", "m"] * 40}), Roles(quasi_identifiers=["sex"]))
    >>> [family.name for family in default_space(table)]
    ['swap', 'swap blocks', 'microaggregate', 'mondrian', 'local', 'suppress']
    """
    kinds = {table.kind(name) for name in table.roles.quasi_identifiers}
    most = max(len(table) // 2, 2)
    swaps = tuple(k for k in _SWAP_KS if k <= most) or (2,)
    groups = tuple(k for k in _GROUP_KS if k <= most) or (2,)
    swap = {"method": "swap", "dissimilarity": "gower"}
    means = {"method": "microaggregate", "dissimilarity": "gower"}
    # time to refine until nothing is gained, so that a busy machine finds the same
    local = {"method": "generalize", "algorithm": "local", "seconds": 4.0}
    space = [
        Family("swap", (swap,), {"0.k": swaps}),
        Family("swap blocks", ({**swap, "blocks": "mutual-information"},), {"0.k": swaps}),
        Family("microaggregate", (means,), {"0.k": groups}),
        Family("mondrian", ({"method": "generalize", "algorithm": "mondrian"},), {"0.k": groups}),
        Family("local", (local,), {"0.k": groups}),
        Family("suppress", ({"method": "suppress"},), {"0.max_distinct": (0.01, 0.1, 0.5)}),
    ]
    code, fences = {"method": "top_bottom_code"}, (1.5, 3.0)
    if kinds & {"integer", "float"}:
        space += [
            Family("code", (code,), {"0.fence": fences}),
            Family("round", ({"method": "round"},), {"0.base": (5, 10, 20)}),
            Family("code, swap", ({**code, "fence": 1.5}, swap), {"1.k": swaps}),
        ]
    if "float" in kinds:
        noise, epsilons = {"method": "add_noise"}, (0.5, 2.0, 8.0, 16.0)
        space += [
            Family("noise", (noise,), {"0.epsilon": epsilons}),
            Family("code, noise", (code, noise), {"0.fence": fences, "1.epsilon": epsilons}),
        ]
    if "integer" in kinds:
        recode, wide = {"method": "recode"}, (0.5, 1.5)
        space += [
            Family("recode", (recode,), {"0.magnitude": (0.25, *wide)}),
            Family("recode, swap", (recode, swap), {"0.magnitude": wide, "1.k": swaps}),
            Family("recode, microaggregate", (recode, means), {"0.magnitude": wide, "1.k": groups}),
        ]
    return space


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
