"""The figures and statistics that a study's file asks for: checked before a run, made after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.errors import PlanError, did_you_mean
from shoal.measurement import MeasureInfo
from shoal.parameters import Real, parameters_of
from shoal.study._conclusion import Claim, Conclusion, Statistic
from shoal.study._design import ORIGINAL, Study
from shoal.study._measures import study_measures
from shoal.study._results import Results, mean_of
from shoal.study._statistics import (
    bayes_sign_test,
    bootstrap_interval,
    friedman,
    pareto_front,
    percentage_differences,
    ranks,
    signed_rank,
    spearman,
)
from shoal.study.figures import (
    Figure,
    Point,
    against,
    boxes,
    rank_plot,
    risk_utility,
    upset,
    violins,
    win_draw_lose,
)

Floats = npt.NDArray[np.float64]
#: A statistic: what it says, the columns of its numbers, and these row by row.
Found = tuple[str, tuple[str, ...], list[tuple[Any, ...]]]
Size = Annotated[float, Real(minimum=0)]
Share = Annotated[float, Real(above=0, below=1)]


class Pair(NamedTuple):
    """The risk and the utility of one variant on one table."""

    risk: float
    utility: float
    table: str
    variant: str
    family: str


def pairs_of(results: Results, risk: str, utility: str) -> list[Pair]:
    """Both measures of every variant on every table that has both, as means over seeds."""
    names = ("table", "variant", "family")
    risks = results.where(measure=risk).by(*names)
    utilities = results.where(measure=utility).by(*names)
    return [
        Pair(mean_of(values), mean_of(utilities[place]), *place)
        for place, values in risks.items()
        if place in utilities
    ]


def laid_out(study: Study, results: Results, measure: str) -> tuple[list[str], list[str], Floats]:
    """The variants, the tables, and means over seeds of each on each; NaN where there is none."""
    variants = [variant.name for variant in study.variants]
    tables = [source.name for source in study.tables]
    values = results.where(measure=measure).matrix(variants, tables, by=("variant", "table"))
    return variants, tables, values


def ranked(study: Study, results: Results, measure: str) -> tuple[list[str], Floats]:
    """The variants, and their rank on each table, 1 the best; NaN where there is none."""
    variants, _, values = laid_out(study, results, measure)
    places = ranks(values, higher_is_better=more_is_better(study, measure))
    places[np.isnan(values)] = np.nan
    return variants, places


def differences(
    study: Study, results: Results, measure: str, by: str, *, against: str = ORIGINAL
) -> dict[str, Floats]:
    """The percentage differences to one variant on the same table, grouped."""
    chosen = results.where(measure=measure)
    baseline = chosen.where(variant=against).by("table")
    parameters = {variant.name: variant.parameters for variant in study.variants}
    groups: dict[str, list[float]] = {}
    for place, values in chosen.by("table", "variant", "family").items():
        table, variant, family = place
        if variant != against and table in baseline:
            name = {"table": table, "variant": variant, "family": family}.get(by)
            name = str(parameters[variant].get(by)) if name is None else name
            found = percentage_differences(values.mean(), baseline[table].mean())
            if np.isfinite(found):
                groups.setdefault(name, []).append(float(found))
    return {name: np.array(values) for name, values in groups.items()}


def title_of(study: Study, measure: str) -> str:
    """What a measure is called by the study, else its title."""
    info = info_of(study, measure)
    return measure if info is None or info.name != measure else info.title


def more_is_better(study: Study, measure: str) -> bool:
    """Whether a higher value of a measure is a better one."""
    info = info_of(study, measure)
    return info is not None and info.direction == "higher"


def info_of(study: Study, name: str) -> MeasureInfo | None:
    """What a measure declares of itself, whatever the study calls it."""
    declared: dict[str, Any] = {one.name: one.measure for one in study.measures}
    return study_measures().get(declared.get(name, name))


def _sign_test(
    study: Study, results: Results, *, measure: str, against: str = ORIGINAL, rope: Size = 1.0
) -> Found:
    sign = 1 if more_is_better(study, measure) else -1
    rows = []
    for name, values in differences(study, results, measure, "variant", against=against).items():
        found = bayes_sign_test(sign * values, rope=rope)
        rows.append((name, len(values), *found.probabilities, found.verdict))
    return (
        f"Bayesian sign test of {title_of(study, measure)} against '{against}', over tables: "
        f"differences of at most {rope:g} % are a draw.{_if_none(rows, but_not_zero=True)}",
        ("variant", "tables", "lose", "draw", "win", "most likely"),
        rows,
    )


def _signed_rank(study: Study, results: Results, *, measure: str, against: str = ORIGINAL) -> Found:
    variants, _, values = laid_out(study, results, measure)
    changes = values - (values[variants.index(against)] if against in variants else math.nan)
    rows = []
    for name, mine in zip(variants, changes, strict=True):
        change = np.round(mine[np.isfinite(mine)], 12)  # equal changes are tied
        if name != against and len(change):
            rows.append((name, len(change), float(np.median(change)), *signed_rank(change)))
    return (
        f"Wilcoxon's signed-rank test of {title_of(study, measure)} against '{against}', over "
        f"tables.{_if_none(rows)}",
        ("variant", "tables", "median difference", "statistic", "p"),
        rows,
    )


def _if_none(rows: Sequence[Any], *, but_not_zero: bool = False) -> str:
    """Why there is nothing to see: a measure of some families, say, or a baseline that failed."""
    if rows:
        return ""
    which = " other than 0" if but_not_zero else ""
    return f" No table has a result of it{which}, and one of another variant."


def _friedman(study: Study, results: Results, *, measure: str, alpha: Share = 0.05) -> Found:
    variants, _, values = laid_out(study, results, measure)
    there = np.isfinite(values)
    some = np.flatnonzero(there.any(axis=1))
    common = there.any(axis=0) & there[some].all(axis=0)
    columns = ("variant", "mean rank")
    title = title_of(study, measure)
    if len(some) < 3 or common.sum() < 2:
        return (
            f"Friedman's test of {title} needs three variants or more that have results on the "
            f"same two tables or more; there are {len(some)} on {int(common.sum())}.",
            columns,
            [],
        )
    found = friedman(
        values[some][:, common], higher_is_better=more_is_better(study, measure), alpha=alpha
    )
    named = zip((variants[place] for place in some), found.mean_ranks, strict=True)
    rows = sorted(named, key=lambda row: row[1])
    return (
        f"Friedman's test of {title} on {int(common.sum())} tables: statistic "
        f"{found.statistic:.3g}, p = {found.p_value:.2g}. By Nemenyi's test two variants differ "
        f"(level {alpha:g}) where their mean ranks are {found.critical_difference:.2f} or more "
        "apart.",
        columns,
        rows,
    )


def _ranks(study: Study, results: Results, *, measure: str) -> Found:
    variants, places = ranked(study, results, measure)
    there = np.isfinite(places)
    common = there.any(axis=0) & there[there.any(axis=1)].all(axis=0)
    rows = []
    for name, mine, has in zip(variants, places, there, strict=True):
        if has.any():
            shared = float(mine[common].mean()) if common.any() else math.nan
            rows.append((name, int(has.sum()), float(mine[has].mean()), shared))
    rows.sort(key=lambda row: row[2])
    return (
        f"Mean ranks by {title_of(study, measure)}, 1 the best: over all tables that a variant has "
        f"a result of, and over the {int(common.sum())} that all have.",
        ("variant", "tables", "mean rank", "on common tables"),
        rows,
    )


def _bootstrap(
    study: Study, results: Results, *, measure: str, by: str = "variant", confidence: Share = 0.95
) -> Found:
    rows = []
    for name, values in results.where(measure=measure).by(by).items():
        low, high = bootstrap_interval(values, confidence=confidence)
        rows.append((str(name), len(values), float(values.mean()), low, high))
    return (
        f"Means of {title_of(study, measure)} with bootstrap intervals of {100 * confidence:g} %, "
        "over tables and seeds.",
        (by, "results", "mean", "low", "high"),
        rows,
    )


def _spearman(study: Study, results: Results, *, risk: str, utility: str) -> Found:
    pairs = [pair for pair in pairs_of(results, risk, utility) if pair.variant != ORIGINAL]
    groups = {source.name: [p for p in pairs if p.table == source.name] for source in study.tables}
    if len(groups) > 1:
        groups["all"] = pairs
    rows = [
        (name, len(some), *spearman([p.risk for p in some], [p.utility for p in some]))
        for name, some in groups.items()
        if len(some) >= 3
    ]
    return (
        f"Spearman's correlation of {title_of(study, risk)} and {title_of(study, utility)} over "
        "the masked tables; fewer than three have none.",
        ("table", "variants", "correlation", "p"),
        rows,
    )


def _front(study: Study, results: Results, *, risk: str, utility: str) -> Found:
    rows: list[tuple[Any, ...]] = []
    better = [more_is_better(study, risk), more_is_better(study, utility)]
    pairs = pairs_of(results, risk, utility)
    for source in study.tables:
        mine = sorted(pair for pair in pairs if pair.table == source.name)
        points = [(pair.risk, pair.utility) for pair in mine]
        front = pareto_front(points, higher_is_better=better)
        rows += [
            (pair.table, pair.variant, pair.risk, pair.utility)
            for pair, is_on_it in zip(mine, front, strict=True)
            if is_on_it
        ]
    return (
        f"The variants that no other one beats in {title_of(study, risk)} and "
        f"{title_of(study, utility)}, table by table.",
        ("table", "variant", title_of(study, risk), title_of(study, utility)),
        rows,
    )


STATISTICS: Mapping[str, Callable[..., Found]] = {
    "bootstrap": _bootstrap,
    "friedman": _friedman,
    "front": _front,
    "ranks": _ranks,
    "sign-test": _sign_test,
    "signed-rank": _signed_rank,
    "spearman": _spearman,
}


#: What results can be grouped by, besides parameters.
GROUPS = ("table", "variant", "family")

_NOT_IN_NAMES = set('/\\:*?"<>|')
_LONGEST = 200  # bytes: a name with its ending has 255 at most


def check(study: Study) -> None:
    """Raise PlanError for a figure or statistic that cannot be; to be asked before a run."""
    _check_declared(study, "statistic", study.statistics, STATISTICS)
    _check_declared(study, "figure", study.figures, FIGURES)


def conclude(study: Study, results: Results) -> Conclusion:
    """The figures and statistics that a study declares, of its results."""
    figures = {
        name: FIGURES[entry["kind"]](study, results, **_options_given(entry))
        for name, entry in _named(study.figures).items()
    }
    statistics = [
        Statistic(name, sentence, columns, tuple(rows))
        for name, entry in _named(study.statistics).items()
        for sentence, columns, rows in (
            STATISTICS[entry["kind"]](study, results, **_options_given(entry)),
        )
    ]
    claims = [
        _relation(study, results, entry["risk"], entry["utility"])
        for entry in study.figures
        if entry["kind"] == "risk-utility"
    ]
    return Conclusion(figures=figures, claims=claims, statistics=statistics)


def _named(entries: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each by what it is called: its own name, or its number and kind."""
    return dict(zip(_names_of(entries), entries, strict=True))


def _names_of(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        str(entry.get("name", f"{number}-{entry.get('kind')}"))
        for number, entry in enumerate(entries, start=1)
    ]


def _options_given(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {part: value for part, value in entry.items() if part not in ("kind", "name")}


def _check_declared(
    study: Study,
    what: str,
    entries: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, Callable[..., Any]],
) -> None:
    names = _names_of(entries)
    for entry, name in zip(entries, names, strict=True):
        kind = str(entry.get("kind"))
        if kind not in kinds:
            raise PlanError(f"There is no {what} '{kind}'. {did_you_mean(kind, kinds)}")
        if names.count(name) > 1:
            raise PlanError(f"Two {what}s of the study are called '{name}'; name each differently.")
        if not _names_files(name):
            raise PlanError(f"The name of a {what} names its files, which {name!r} cannot.")
        _check_options(study, _options_given(entry), f"{what} '{name}'", kinds[kind])


def _check_options(
    study: Study, given: Mapping[str, Any], of: str, made_by: Callable[..., Any]
) -> None:
    taken = {option.name: option for option in parameters_of(made_by)}
    for part in given:
        if part not in taken:
            raise PlanError(f"The {of} has no option '{part}'. {did_you_mean(part, taken)}")
    known = _known(study)
    for part, option in taken.items():
        if option.required and part not in given:
            raise PlanError(f"The {of} needs the option '{part}'.")
        value = given.get(part, option.default)
        option.check(value, f"the {of}")
        if part in known and value is not None and value not in known[part]:
            raise PlanError(
                f"The option '{part}' of the {of} names what the study has not ('{value}'). "
                f"{did_you_mean(str(value), known[part])}"
            )


def _known(study: Study) -> Mapping[str, list[str]]:
    measures = [measure.name for measure in study.measures]
    parameters = list(dict.fromkeys(each for one in study.variants for each in one.parameters))
    return {
        "measure": measures,
        "risk": measures,
        "utility": measures,
        "table": [source.name for source in study.tables],
        "against": [variant.name for variant in study.variants],
        "x": parameters,
        "by": [*GROUPS, *parameters],
    }


def _names_files(name: str) -> bool:
    """Whether a file can be called so on any system, with an ending behind it."""
    wrong = any(sign in _NOT_IN_NAMES or not sign.isprintable() for sign in name)
    return not wrong and not name.startswith(".") and len(name.encode()) <= _LONGEST


def _relation(study: Study, results: Results, risk: str, utility: str) -> Claim:
    """Whether less risk goes with less utility, over all masked tables."""
    pairs = [pair for pair in pairs_of(results, risk, utility) if pair.variant != ORIGINAL]
    sign = 1.0 if more_is_better(study, utility) else -1.0
    text = (
        f"What has less risk ({title_of(study, risk)}) is less useful ({title_of(study, utility)})."
    )
    if len(pairs) < 3:
        return Claim(text, None, "fewer than three masked tables have both")
    useful = [sign * pair.utility for pair in pairs]
    correlation, p_value = spearman([pair.risk for pair in pairs], useful)
    holds = correlation > 0 if p_value < 0.05 else None
    return Claim(text, holds, f"Spearman's correlation {correlation:.2f} (p = {p_value:.2g})")


def _risk_utility(
    study: Study,
    results: Results,
    *,
    risk: str,
    utility: str,
    limit: Annotated[float | None, Real(minimum=0)] = None,
) -> Figure:
    several = len(study.tables) > 1
    points = [
        Point(
            f"{pair.variant}, {pair.table}" if several else pair.variant,
            pair.risk,
            pair.utility,
            pair.family,
        )
        for pair in pairs_of(results, risk, utility)
    ]
    return risk_utility(
        points,
        risk=title_of(study, risk),
        utility=title_of(study, utility),
        higher_is_better=more_is_better(study, utility),
        limit=limit,
    )


def _against(
    study: Study, results: Results, *, measure: str, x: str = "k", table: str | None = None
) -> Figure:
    chosen = results.where(measure=measure)
    chosen = chosen if table is None else chosen.where(table=table)
    lines: dict[str, dict[float, Any]] = {}
    for (family, place), values in chosen.by("family", x).items():
        if isinstance(place, (int, float)):
            lines.setdefault(family, {})[place] = values
    return against(lines, xlabel=x, ylabel=title_of(study, measure))


def _violins(study: Study, results: Results, *, measure: str, by: str = "family") -> Figure:
    groups = results.where(measure=measure).by(by)
    return violins({str(name): v for name, v in groups.items()}, ylabel=title_of(study, measure))


def _boxes(study: Study, results: Results, *, measure: str, by: str = "family") -> Figure:
    """Percentage differences to the original, table by table."""
    groups = differences(study, results, measure, by)
    return boxes(groups, ylabel=f"{title_of(study, measure)}: difference to the original (%)")


def _rank_plot(study: Study, results: Results, *, measure: str) -> Figure:
    places = zip(*ranked(study, results, measure), strict=True)
    return rank_plot({name: list(each) for name, each in places if np.isfinite(each).any()})


def _win_draw_lose(study: Study, results: Results, *, measure: str, rope: Size = 1.0) -> Figure:
    groups = differences(study, results, measure, "variant")
    sign = 1 if more_is_better(study, measure) else -1
    return win_draw_lose(
        {
            name: bayes_sign_test(sign * values, rope=rope).probabilities
            for name, values in groups.items()
            if len(values)
        }
    )


def _upset(study: Study, results: Results, *, measure: str, below: Size) -> Figure:
    """On how many tables exactly which families have a variant below a limit."""
    families = list(dict.fromkeys(v.family for v in study.variants if v.name != ORIGINAL))
    reached: dict[str, list[str]] = {source.name: [] for source in study.tables}
    for (table, _, family), values in (
        results.where(measure=measure).by("table", "variant", "family").items()
    ):
        if family != ORIGINAL and values.mean() < below:
            reached[table].append(family)
    title = f"{title_of(study, measure)} below {below:g}"
    return upset(reached.values(), order=families, title=title)


FIGURES: Mapping[str, Callable[..., Figure]] = {
    "against": _against,
    "boxes": _boxes,
    "ranks": _rank_plot,
    "risk-utility": _risk_utility,
    "upset": _upset,
    "violins": _violins,
    "win-draw-lose": _win_draw_lose,
}
