"""The search for a plan: risk under a limit, utility on people the search never saw."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from shoal.errors import InputError, MissingExtra, PlanError, UnreachableLevel
from shoal.parameters import Integer, Real, checked
from shoal.study._statistics import pareto_front
from shoal.study.data._tables import drawn_whole
from shoal.study.running._store import Store
from shoal.study.tuning._judge import Judge, Judgment, seeded
from shoal.study.tuning._tuning import Goal, Tried, Tuning
from shoal.table import Table, check_table
from shoal.workflow import Limit, Plan, discover_all_measures

_SWAP_KS = (2, 3, 5, 10, 20, 30, 50)
_GROUP_KS = (2, 3, 5, 8, 12, 20, 30, 50)


@dataclass(frozen=True)
class Family:
    """Plans of one shape: steps, and the values to choose from for some of their parameters.

    The keys of ``choices`` are ``"number.parameter"``; steps are numbered from 0.

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
        """The number of plans."""
        return math.prod(len(values) for values in self.choices.values())

    def steps_with(self, chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The steps with these values."""
        steps = [dict(step) for step in self.steps]
        for place, value in chosen.items():
            number, _, parameter = place.partition(".")
            if not number.isdigit() or int(number) >= len(steps) or not parameter:
                raise PlanError(f"The choice '{place}' of the family '{self.name}' names no step.")
            steps[int(number)][parameter] = value
        return steps

    def all(self) -> Iterator[dict[str, Any]]:
        """Every choice of values."""
        for values in itertools.product(*self.choices.values()):
            yield dict(zip(self.choices, values, strict=True))


def default_space(table: Table) -> list[Family]:
    """Families that suit a table: swaps, microaggregation, generalization, and the five techniques.

    Coding and rounding are offered if quasi-identifiers are numbers, recoding if some are whole
    numbers, and noise if some are not: these methods change nothing else. Groups are at most half
    the size of the table.

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
    # enough time to refine until nothing improves, so that a busy machine finds the same result
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


#: Risk and utility of a plan; the utility is NaN if its risk was hopeless.
Evaluate = Callable[[Family, dict[str, Any]], tuple[float, float]]


def try_plans(space: Sequence[Family], evaluate: Evaluate, trials: int, random_state: int) -> None:
    """Try all plans if there are few enough, else those that a sampler proposes.

    The sampler (Optuna's TPE) learns from both objectives; the same seed yields the same order.
    """
    if sum(family.size for family in space) <= trials:
        for family in space:
            for chosen in family.all():
                evaluate(family, chosen)
        return
    try:
        import optuna
    except ImportError:
        raise MissingExtra("Tuning over this many plans", "study") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    by_name = {family.name: family for family in space}
    sampler = optuna.samplers.TPESampler(seed=random_state, n_startup_trials=max(10, trials // 4))
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    seen: set[str] = set()
    for _ in range(4 * trials):  # a sampler may propose the same plan again
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


Progress = Callable[[str, float], None]

_FRESH_SEEDS = (7001, 7002, 7003)  # draws that the search has not seen
_FINAL_SEED, _LAST_SEED = 7004, 7005
_FINALISTS = 5  # tried again with everyone: the best of many plans on a sample is partly luck


@checked
def tune(
    table: Table,
    *,
    max_risk: Annotated[float | None, Real(above=0, below=1)] = None,
    min_utility: Annotated[float | None, Real(above=0, below=1)] = None,
    risk: str = "distance_linkage",
    utility: str = "predictive_performance",
    risk_options: Mapping[str, Any] | None = None,
    utility_options: Mapping[str, Any] | None = None,
    space: Sequence[Family] | None = None,
    plan: Any = None,
    trials: Annotated[int, Integer(1)] = 100,
    held_out: Annotated[float, Real(above=0, below=1)] = 0.25,
    search_rows: Annotated[int, Integer(1)] = 5_000,
    random_state: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    watch: Callable[[Tried], None] | None = None,
) -> Tuning:
    """Search for the plan with the most utility whose risk stays under a limit.

    First, a share of the people is held out; the search never sees them. Plans are tried on the
    others, or on a sample of them if there are many. Each plan is judged by the attack, and by
    models that learn from the masked records and are tested on original ones. Plans whose whole
    risk interval is under the limit are tried again with fresh seeds, the best first. If the
    search used a sample, the five best are judged again with everyone except those held out, and
    the best of these is taken. It is masked once more, with another seed. It is recommended only
    if the risk stays under the limit every time. The reported risk is that of the last masking.
    The reported utility is measured on the people held out; a measure that does not test models
    reports it for the masked people.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers, and with a target if the utility tests models.
    max_risk : float, optional
        The highest accepted risk, as measured by ``risk``.
    min_utility : float, optional
        The lowest accepted utility. Without ``max_risk``, the search looks for the plan with the
        least risk that reaches it.
    risk : str
        A measure of risk.
    utility : str
        A measure of utility, or a bounded loss such as ``"nonuniform_entropy"``, which needs no
        target. The utility is then 1 minus the loss.
    risk_options, utility_options : dict, optional
        Options for the two measures.
    space : list of Family, optional
        The plans to choose from; default: families that suit the table.
    plan : Plan, list of steps, or path of a plan, optional
        A plan to try as well; every plan must meet its requirements.
    trials : int
        The largest number of plans to try; a smaller space is tried completely.
    held_out : float
        The share of people that the search never sees.
    search_rows : int
        The largest number of people to try plans on; the chosen plan is confirmed on everyone.
    random_state : int
        For the search and its draws. It need not be secret: a release is drawn again.
    folder : path, optional
        Where to store results, so that a stopped search can resume.
    progress : callable, optional
        Called with a text and the share that is done.
    watch : callable, optional
        Called with each plan as soon as it was tried.

    Returns
    -------
    Tuning

    Raises
    ------
    UnreachableLevel
        If no plan is within the limits; the message names the closest one.

    References
    ----------
    Senavirathne, Torra (2021), Systematic evaluation of probabilistic k-anonymity for privacy
    preserving micro-data publishing and analysis <https://doi.org/10.5220/0010560703070320>,
    section 6 (the two thresholds). Akiba, Sano, Yanase, Ohta, Koyama (2019), Optuna: a
    next-generation hyperparameter optimization framework <https://doi.org/10.1145/3292500.3330701>.
    """
    check_table(table, "Tuning")
    goal = Goal(max_risk, min_utility)
    plan = None if plan is None else Plan.of(plan)
    _check(table, risk, utility)
    seen, unseen = searched_and_held_out(table, held_out)
    choices: dict[str, Any] = {
        "goal": goal,
        "risk": (risk, dict(risk_options or {})),
        "utility": (utility, dict(utility_options or {})),
        "require": () if plan is None else plan.require,
    }
    judge = whole = Judge(seen, **choices)
    if search_rows < len(seen):
        judge = Judge(seen.keep(drawn_whole(seen, search_rows / len(seen), "searched")), **choices)
    judge.check_utility()
    if folder is not None:
        judge.store = whole.store = Store(folder)
    families = list(default_space(judge.people) if space is None else space)
    if plan is not None and plan.steps:
        families.insert(0, Family("given plan", tuple(plan.to_dict()["steps"])))
    search = _Search(goal, judge, whole, watch=watch)
    search.run(families, trials, random_state, progress)
    if progress:
        progress("Confirming the best plan", 0.0)
    return search.recommended(unseen, plan)


def compare_plans(
    table: Table,
    space: Sequence[Family],
    *,
    max_risk: float,
    risk: str = "distance_linkage",
    utility: str = "nonuniform_entropy",
    progress: Progress | None = None,
) -> tuple[Tried, ...]:
    """Every plan of some families with its risk and utility; nobody is held out.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles
    >>> table = Table(pl.DataFrame({"age": range(20, 84)}), Roles(quasi_identifiers=["age"]))
    >>> mondrian = {"method": "generalize", "algorithm": "mondrian"}
    >>> plans = compare_plans(
    ...     table, [Family("mondrian", (mondrian,), {"0.k": (2, 8)})], max_risk=0.2
    ... )
    >>> [(one.label, one.risk, one.on_front) for one in plans]
    [('mondrian k=2', 0.5, True), ('mondrian k=8', 0.125, True)]
    """
    goal = Goal(max_risk)
    judge = Judge(table, goal=goal, risk=(risk, {}), utility=(utility, {}))
    search = _Search(goal, judge, judge)
    search.run(space, sum(family.size for family in space), 0, progress)
    return tuple(search.found)


def searched_and_held_out(table: Table, held_out: float = 0.25) -> tuple[Table, Table]:
    """The people of the search and the people held out; always the same ones."""
    apart = drawn_whole(table, held_out, "held out")
    return table.keep(~apart), table.keep(apart)


@dataclass
class _Search:
    """Plans tried on the people of one judge; the judge of everyone confirms the best.

    ``failures`` counts why plans were rejected. ``passed`` holds plans that were within the limits
    in the search but not when tried again.
    """

    goal: Goal
    judge: Judge
    whole: Judge
    found: list[Tried] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    passed: list[Tried] = field(default_factory=list)
    watch: Callable[[Tried], None] | None = None

    def run(
        self, families: Sequence[Family], trials: int, random_state: int, progress: Progress | None
    ) -> None:
        """Try plans, and mark those on the front."""
        total = min(trials, sum(family.size for family in families))
        found: list[Tried] = []

        def evaluate(family: Family, chosen: dict[str, Any]) -> tuple[float, float]:
            steps = family.steps_with(chosen)
            judged = self.judge.judged(steps, seed=random_state)
            one = _tried(family.name, steps, judged)
            if not any(one.steps == other.steps for other in found):
                found.append(one)
                if self.watch:
                    self.watch(one)
                if judged.reason is not None:
                    self.failures[judged.reason] += 1
                if progress:
                    progress(f"Tuning: {len(found):,} of {total:,} plans", len(found) / total)
            return one.risk, one.utility

        try_plans(families, evaluate, trials, random_state)
        points = [(one.risk, one.utility) for one in found]
        front = pareto_front(points, higher_is_better=[False, True])
        self.found = [replace(one, on_front=bool(on)) for one, on in zip(found, front, strict=True)]

    def recommended(self, unseen: Table, given: Plan | None) -> Tuning:
        """The best plan that also holds with fresh seeds, measured on unseen people."""
        goal, judge, whole = self.goal, self.judge, self.whole
        order, finals = self._stable(), []
        if whole is not judge:
            finals = self._finals(list(itertools.islice(order, _FINALISTS)))
            order = itertools.chain((one for one, _ in finals), order)
        for one in order:
            last = whole.judged(one.steps, seed=_LAST_SEED, holdout=unseen)
            if not _holds(goal, last) or last.risk is None or last.utility is None:
                self.passed.append(one)
                continue
            if goal.min_utility is not None and last.utility.value < goal.min_utility:
                raise UnreachableLevel(
                    f"The best plan, '{one.label}', has a utility of {last.utility.value:.3g} for "
                    f"people the search never saw, below the required {goal.min_utility:g}; "
                    f"lower min_utility, or allow more risk.{self._main_failure()}"
                )
            return Tuning(
                plan=_plan_of(one, whole, given),
                chosen=one,
                risk=last.risk,
                utility=last.utility,
                tried=tuple(self.found),
                finals=tuple(again for _, again in finals),
                reason=self._reason(one, finals),
                limit=goal.max_risk,
                measures=(judge.risk[0], judge.utility[0]),
                failures=self.failures,
                searched_on=len(judge.people),
                of=len(whole.people),
                held_out=len(unseen),
                computed=judge.computed + (0 if whole is judge else whole.computed),
            )
        raise UnreachableLevel(self._no_plan_found() + self._main_failure())

    def _stable(self) -> Iterator[Tried]:
        """The plans that stay within the limits with fresh seeds, the best first."""
        for one in self.goal.best_first(self.found):
            again = [self.judge.judged(one.steps, seed=s, with_utility=False) for s in _FRESH_SEEDS]
            if all(_holds(self.goal, each, whole_interval=False) for each in again):
                yield one
            else:
                self.passed.append(one)

    def _finals(self, best: Sequence[Tried]) -> list[tuple[Tried, Tried]]:
        """The best plans, tried again with everyone except those held out, the best first.

        Each pair is the plan in the search and the plan now. Plans that are now beyond the limits
        are left out.
        """
        pairs = []
        for one in best:
            judged = self.whole.judged(one.steps, seed=_FINAL_SEED)
            now = _tried(one.family, [dict(step) for step in one.steps], judged)
            if judged.reason is None and self.goal.meets(now):
                pairs.append((one, now))
            else:
                self.passed.append(one)
        order = self.goal.best_first([now for _, now in pairs])
        return sorted(pairs, key=lambda pair: order.index(pair[1]))

    def _reason(self, one: Tried, finals: Sequence[tuple[Tried, Tried]]) -> str:
        goal, everyone = self.goal, len(self.whole.people)
        within = sum(goal.meets(each) for each in self.found)
        best = "least risk" if goal.max_risk is None else "most utility"
        text = f"{within:,} of the {len(self.found):,} plans tried have {goal.words}"
        if self.whole is not self.judge:
            text += f", measured on {len(self.judge.people):,} of {everyone:,} people"
        if len(finals) > 1 and any(one == before for before, _ in finals):
            text += f". Of the {len(finals):,} best, tried again with all {everyone:,}, "
            text += f"'{one.label}' has the {best}"
        else:
            text += f". Of these, '{one.label}' has the {best}"
        text += (
            f". It stayed within the limits with {len(_FRESH_SEEDS)} fresh seeds, and with one "
            f"more on all {everyone:,} people."
        )
        if self.passed:
            text += f" {len(self.passed):,} that looked better did not."
        return text

    def _no_plan_found(self) -> str:
        known = [one for one in self.found if math.isfinite(one.risk)]
        if not known:
            return "No plan could run on this table."
        text = f"None of the {len(self.found):,} plans tried has {self.goal.words}"
        if self.passed:
            text += f" ({len(self.passed):,} had it in the search, but not with fresh seeds and "
            text += "everyone)"
        if self.goal.max_risk is None:
            best = max(known, key=lambda one: -math.inf if math.isnan(one.utility) else one.utility)
            text += f"; the most utility was {best.utility:.3g}, by '{best.label}'"
        else:
            least = min(known, key=lambda one: one.risk)
            text += f"; the least risk was {least.risk:.3g}, by '{least.label}'"
        return f"{text}. Allow more risk, accept less utility, or offer other methods."

    def _main_failure(self) -> str:
        """The most frequent reason for rejecting a plan, as one more sentence."""
        if not self.failures:
            return ""
        ((reason, times),) = self.failures.most_common(1)
        rejected = f"{times:,} of the {self.failures.total():,} rejected plans"
        return f" The reason for {rejected}: {reason.rstrip('.')}."


def _tried(family: str, steps: list[dict[str, Any]], judged: Judgment) -> Tried:
    risk, utility = (math.nan if x is None else x.value for x in (judged.risk, judged.utility))
    interval = None if judged.risk is None else judged.risk.interval
    return Tried(family, tuple(steps), risk, interval, utility)


def _holds(goal: Goal, judged: Judgment, *, whole_interval: bool = True) -> bool:
    """Whether a plan can be recommended as far as its risk goes."""
    risk = judged.risk
    if risk is None or judged.reason is not None:
        return False
    return goal.allows(risk.value, risk.interval if whole_interval else None)


def _plan_of(one: Tried, judge: Judge, given: Plan | None) -> Plan:
    """The plan to protect with: its steps and the limit of the search."""
    steps = seeded(one.steps, None).steps  # anyone who knows the seed can undo the release
    given = Plan() if given is None else given
    require = list(given.require)
    if judge.goal.max_risk is not None:
        bound = Limit(judge.risk[0], at_most=judge.goal.max_risk, options=judge.risk[1])
        require = [*(r for r in require if getattr(r, "key", None) != bound.key), bound]
    return Plan(
        steps,
        require=require,
        roles=judge.people.roles,
        unlisted=given.unlisted,
        read=given.read,
    )


def _check(table: Table, risk: str, utility: str) -> None:
    infos = discover_all_measures()
    for name, about in ((risk, "risk"), (utility, "utility")):
        if name not in infos or infos[name].about != about:
            raise InputError(f"There is no measure of {about} called '{name}'; see shoal methods.")
    if not math.isfinite(sum(infos[utility].limits)):
        raise InputError(
            f"Tuning needs a utility or a bounded loss; '{utility}' has no upper bound."
        )
    if table.roles.target is None and infos[utility].target:
        raise InputError(
            "Tuning with models needs a target: name the column to predict, or choose a utility "
            "that needs none, such as 'nonuniform_entropy'."
        )
    if not table.roles.quasi_identifiers:
        raise InputError(
            "Tuning needs quasi-identifiers: name the columns that an intruder may know."
        )
    if len(table) < 20:
        raise InputError("Tuning needs at least 20 records, because some are held out.")
