"""The search for a plan: risk under a limit, utility on people that the search never saw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError, UnreachableLevel
from shoal.randomness import SecretStream
from shoal.study._statistics import pareto_front
from shoal.study._store import Store, key_of
from shoal.study.tuning._judge import Judge
from shoal.study.tuning._search import tried
from shoal.study.tuning._space import Family, default_space
from shoal.study.tuning._tuning import Tried, Tuning
from shoal.table import Table
from shoal.workflow import Limit, Plan, discover_all_measures

Progress = Callable[[str, float], None]

_PUBLIC_KEY = "00" * 32  # who is held out is no secret
_FRESH_SEEDS = (7001, 7002, 7003)  # draws that the search has not seen


def tune(
    table: Table,
    *,
    max_risk: float,
    risk: str = "distance_linkage",
    utility: str = "predictive_performance",
    risk_options: Mapping[str, Any] | None = None,
    utility_options: Mapping[str, Any] | None = None,
    min_utility: float | None = None,
    space: Sequence[Family] | None = None,
    plan: Plan | None = None,
    trials: int = 60,
    held_out: float = 0.25,
    random_state: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Search for the plan with the most utility whose risk stays under a limit.

    A share of the people is held out first and never seen by the search. Plans are tried on the
    others: each is judged by the attack and by models that learn from the masked and are asked
    about the original records. The best plan whose risk, with its whole interval, is under the
    limit is then masked anew under fresh seeds; only if all of them stay under the limit it is
    recommended, and its utility is that on the people who were held out.

    Parameters
    ----------
    table : Table
        The table, with quasi-identifiers and a target declared.
    max_risk : float
        The largest risk that is accepted, by the attack ``risk``.
    risk : str
        A measure of risk.
    utility : str
        A measure of utility.
    risk_options, utility_options : dict, optional
        Options of the two measures.
    min_utility : float, optional
        The least utility that is accepted; nothing is recommended below it.
    space : list of Family, optional
        What to choose from; what suits the table without it.
    plan : Plan, optional
        A plan that is tried besides; its requirements are kept in what is recommended.
    trials : int
        So many plans are tried at most; a smaller space is tried as a whole.
    held_out : float
        The share of the people that the search never sees.
    random_state : int
        For the search and its draws. It is no secret: a release is drawn anew.
    folder : path, optional
        Where results are kept, so that a search that was stopped goes on.
    progress : callable, optional
        Called with what was tried and the share that is done.

    Returns
    -------
    Tuning

    References
    ----------
    Senavirathne, Torra (2021), Systematic evaluation of probabilistic k-anonymity for privacy
    preserving micro-data publishing and analysis, section 6 (the two thresholds).
    """
    _check(table, risk, utility, max_risk, held_out, trials)
    seen, unseen = _divided(table, held_out)
    judge = Judge(
        seen,
        max_risk=max_risk,
        risk=(risk, dict(risk_options or {})),
        utility=(utility, dict(utility_options or {})),
        seed=random_state,
        store=None if folder is None else Store(folder),
    )
    families = list(default_space(seen) if space is None else space)
    if plan is not None and plan.steps:
        steps = tuple(plan.to_dict()["steps"])
        families.insert(0, Family("given plan", steps))
    total = min(trials, sum(family.size for family in families))
    found = []
    for number, (family, chosen) in enumerate(
        tried(families, judge, trials=trials, random_state=random_state), start=1
    ):
        one = judge.results[key_of({"steps": family.steps_with(chosen)})]
        found.append(one)
        if progress:
            progress(f"Tuning: {number:,} of {total:,} plans", number / total)
    ranked = _with_front(found)
    return _recommended(ranked, judge, unseen, plan, min_utility)


def _recommended(
    found: Sequence[Tried],
    judge: Judge,
    unseen: Table,
    given: Plan | None,
    min_utility: float | None,
) -> Tuning:
    """The best plan that holds under fresh seeds too, measured on people never seen."""
    limit = judge.max_risk
    safe = [one for one in found if _under(one, limit) and math.isfinite(one.utility)]
    passed = 0
    for one in sorted(safe, key=lambda one: -one.utility):
        again = [judge.risk_of(judge.masked(one.steps, seed)) for seed in _FRESH_SEEDS]
        if any(risk.value > limit for risk in again):
            passed += 1
            continue
        worst = max(again, key=lambda risk: risk.value)
        masked = judge.masked(one.steps, _FRESH_SEEDS[0])
        utility = judge.utility_of(masked, holdout=unseen)
        if min_utility is not None and utility.value < min_utility:
            break
        return Tuning(
            plan=_plan_of(one, judge, given, limit),
            chosen=one,
            risk=worst,
            utility=utility,
            tried=tuple(found),
            reason=_reason(one, found, limit, passed),
            limit=limit,
            measures=(judge.risk[0], judge.utility[0]),
            searched=len(found),
            failures=judge.failures,
        )
    raise UnreachableLevel(_nothing(found, limit, min_utility))


def _plan_of(one: Tried, judge: Judge, given: Plan | None, limit: float) -> Plan:
    """The plan to protect with: its steps, and the limit that it was chosen for."""
    steps = Plan.from_dict({"steps": [dict(step) for step in one.steps]}).steps
    bound = Limit(judge.risk[0], at_most=limit, options=judge.risk[1])
    kept = [] if given is None else [r for r in given.require if r != bound]
    return Plan(steps, require=[*kept, bound], roles=judge.seen.roles)


def _under(one: Tried, limit: float) -> bool:
    return one.risk <= limit and (one.risk_interval is None or one.risk_interval[1] <= limit)


def _reason(one: Tried, found: Sequence[Tried], limit: float, passed: int) -> str:
    under = sum(_under(each, limit) for each in found)
    text = (
        f"Of {len(found):,} plans that were tried {under:,} have a risk of at most {limit:g}, with "
        f"their whole interval; '{one.label}' has the most utility of them, and stayed under the "
        f"limit under {len(_FRESH_SEEDS)} fresh seeds."
    )
    if passed:
        text += f" {passed:,} more useful ones did not."
    return text


def _nothing(found: Sequence[Tried], limit: float, min_utility: float | None) -> str:
    known = [one for one in found if math.isfinite(one.risk)]
    if not known:
        return "No plan could be tried on this table; see why each one failed."
    least = min(known, key=lambda one: one.risk)
    wish = "" if min_utility is None else f" and a utility of at least {min_utility:g}"
    return (
        f"No plan of {len(found):,} has a risk of at most {limit:g}{wish}; the least risk was "
        f"{least.risk:.3g}, by '{least.label}'. Allow more risk, less utility, or other methods."
    )


def _with_front(found: Sequence[Tried]) -> list[Tried]:
    points = np.array([(one.risk, one.utility) for one in found], np.float64).reshape(-1, 2)
    front = pareto_front(points, higher_is_better=[False, True])
    return [replace(one, on_front=bool(on)) for one, on in zip(found, front, strict=True)]


def _divided(table: Table, held_out: float) -> tuple[Table, Table]:
    """The people of the search, and those it never sees."""
    count = max(1, round(held_out * len(table)))
    stream = SecretStream.from_key_hex(_PUBLIC_KEY).derive("held out")
    apart = np.zeros(len(table), dtype=bool)
    apart[stream.choose(len(table), count)] = True
    return table.keep(~apart), table.keep(apart)


def _check(
    table: Table, risk: str, utility: str, max_risk: float, held_out: float, trials: int
) -> None:
    infos = discover_all_measures()
    for name, about in ((risk, "risk"), (utility, "utility")):
        if name not in infos or infos[name].about != about:
            raise InputError(f"There is no measure of {about} called '{name}'; see shoal methods.")
    if infos[utility].direction != "higher":
        raise InputError(f"Tuning needs a utility of which more is better; '{utility}' is a loss.")
    if infos[utility].target and table.roles.target is None:
        raise InputError("Tuning needs a target: name the column that models are to predict.")
    if not table.roles.quasi_identifiers:
        raise InputError("Tuning needs quasi-identifiers: name what an intruder may know.")
    for name, value in (("max_risk", max_risk), ("held_out", held_out)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            raise InputError(f"'{name}' must be a number between 0 and 1; got {value!r}.")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise InputError(f"'trials' must be a whole number ≥ 1; got {trials!r}.")
    if len(table) < 20:
        raise InputError("Tuning needs 20 records or more, some of which are held out.")
