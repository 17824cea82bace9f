"""The figures and statistics in a study's file: checked before a run, made after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.errors import PlanError, did_you_mean
from shoal.measurement import MeasureInfo
from shoal.parameters import Real, parameters_of
from shoal.study import _statistics as stats
from shoal.study import figures as charts
from shoal.study._conclusion import Claim, Conclusion, Statistic
from shoal.study._design import ORIGINAL, Study
from shoal.study._measures import study_measures
from shoal.study._results import Floats, Results, mean_of
from shoal.study.figures import Figure, Point

#: A statistic: its sentence, the columns of its numbers, and the numbers row by row.
Numbers = tuple[str, tuple[str, ...], Sequence[tuple[Any, ...]]]
Size = Annotated[float, Real(minimum=0)]
Share = Annotated[float, Real(above=0, below=1)]

#: What results can be grouped by, in addition to parameters.
GROUPS = ("table", "variant", "family")

_NOT_IN_NAMES = set('/\\:*?"<>|')
_LONGEST = 200  # bytes: a name with its ending has at most 255


class Pair(NamedTuple):
    """The risk and the utility of one variant on one table."""

    risk: float
    utility: float
    table: str
    variant: str
    family: str


@dataclass(frozen=True)
class View:
    """A study and its results, as figures and statistics look at them."""

    study: Study
    results: Results

    def of(self, measure: str) -> Results:
        """The results of one measure."""
        return self.results.where(measure=measure)

    def pairs(self, risk: str, utility: str) -> list[Pair]:
        """Both measures of every variant on every table that has both, as means over seeds."""
        risks, utilities = (self.of(measure).by(*GROUPS) for measure in (risk, utility))
        return [
            Pair(mean_of(values), mean_of(utilities[place]), *place)
            for place, values in risks.items()
            if place in utilities
        ]

    def masked_pairs(self, risk: str, utility: str) -> list[Pair]:
        """The same without the original."""
        return [pair for pair in self.pairs(risk, utility) if pair.variant != ORIGINAL]

    def laid_out(self, measure: str) -> tuple[list[str], Floats]:
        """The variants, and means over seeds of each on each table; NaN if there is none."""
        variants = [variant.name for variant in self.study.variants]
        tables = [source.name for source in self.study.tables]
        return variants, self.of(measure).matrix(variants, tables, by=("variant", "table"))

    def ranked(self, measure: str) -> tuple[list[str], Floats]:
        """The variants, and their rank on each table, 1 is the best; NaN if there is none."""
        variants, values = self.laid_out(measure)
        places = stats.ranks(values, higher_is_better=self.more_is_better(measure))
        places[np.isnan(values)] = np.nan
        return variants, places

    def differences(self, measure: str, by: str, against: str = ORIGINAL) -> dict[str, Floats]:
        """The percentage differences from one variant on the same table, grouped."""
        chosen = self.of(measure)
        baseline = chosen.where(variant=against).by("table")
        parameters = {variant.name: variant.parameters for variant in self.study.variants}
        groups: dict[str, list[float]] = {}
        for place, values in chosen.by(*GROUPS).items():
            table, variant, _ = place
            if variant != against and table in baseline:
                named = {**parameters[variant], **dict(zip(GROUPS, place, strict=True))}
                change = stats.percentage_differences(values.mean(), baseline[table].mean())
                if np.isfinite(change):
                    groups.setdefault(str(named.get(by)), []).append(float(change))
        return {name: np.array(values) for name, values in groups.items()}

    def info(self, name: str) -> MeasureInfo | None:
        """What a measure declares about itself, found by its name in the study."""
        declared: dict[str, Any] = {one.name: one.measure for one in self.study.measures}
        return study_measures().get(declared.get(name, name))

    def title(self, measure: str) -> str:
        """The study's name for a measure, else its title."""
        info = self.info(measure)
        return measure if info is None or info.name != measure else info.title

    def more_is_better(self, measure: str) -> bool:
        """Whether a higher value of a measure is a better one."""
        info = self.info(measure)
        return info is not None and info.direction == "higher"

    def verdicts(self, measure: str, rope: float, against: str = ORIGINAL) -> dict[str, Any]:
        """The sign test of each variant, with the number of its tables."""
        sign = 1 if self.more_is_better(measure) else -1
        groups = self.differences(measure, "variant", against)
        return {
            name: (len(values), stats.bayes_sign_test(sign * values, rope=rope))
            for name, values in groups.items()
        }


def check(study: Study) -> None:
    """Raise PlanError for an impossible figure or statistic, before a run."""
    _check_declared(study, "statistic", study.statistics, STATISTICS)
    _check_declared(study, "figure", study.figures, FIGURES)


def conclude(study: Study, results: Results) -> Conclusion:
    """The figures and statistics that a study declares, from its results."""
    view = View(study, results)

    def make(
        entries: Sequence[Mapping[str, Any]], kinds: Mapping[str, Callable[..., Any]]
    ) -> dict[str, Any]:
        named = zip(_names_of(entries), entries, strict=True)
        return {name: kinds[entry["kind"]](view, **_options_given(entry)) for name, entry in named}

    statistics = [
        Statistic(name, sentence, columns, tuple(rows))
        for name, (sentence, columns, rows) in make(study.statistics, STATISTICS).items()
    ]
    claims = [
        _relation(view, entry["risk"], entry["utility"])
        for entry in study.figures
        if entry["kind"] == "risk-utility"
    ]
    figures = make(study.figures, FIGURES)
    return Conclusion(figures=figures, claims=claims, statistics=statistics)


def _names_of(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The name of each: its own, or its number and kind."""
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
            raise PlanError(f"Two {what}s are called '{name}'; give each its own name.")
        wrong = any(sign in _NOT_IN_NAMES or not sign.isprintable() for sign in name)
        if wrong or name.startswith(".") or len(name.encode()) > _LONGEST:
            raise PlanError(f"The {what} {name!r} cannot name a file; choose another name.")
        _check_options(study, _options_given(entry), f"{what} '{name}'", kinds[kind])


def _check_options(
    study: Study, given: Mapping[str, Any], of: str, made_by: Callable[..., Any]
) -> None:
    taken = {option.name: option for option in parameters_of(made_by)}
    for part in given:
        if part not in taken:
            raise PlanError(f"The {of} has no option '{part}'. {did_you_mean(part, taken)}")
    measures = [measure.name for measure in study.measures]
    parameters = list(dict.fromkeys(each for one in study.variants for each in one.parameters))
    known = {
        **dict.fromkeys(("measure", "risk", "utility"), measures),
        "table": [source.name for source in study.tables],
        "against": [variant.name for variant in study.variants],
        "x": parameters,
        "by": [*GROUPS, *parameters],
    }
    for part, option in taken.items():
        if option.required and part not in given:
            raise PlanError(f"The {of} needs the option '{part}'.")
        value = given.get(part, option.default)
        option.check(value, f"the {of}")
        if part in known and value is not None and value not in known[part]:
            raise PlanError(
                f"The option '{part}' of the {of} names '{value}', which is not in the study. "
                f"{did_you_mean(str(value), known[part])}"
            )


def _relation(view: View, risk: str, utility: str) -> Claim:
    """Whether less risk comes with less utility, over all masked tables."""
    pairs = view.masked_pairs(risk, utility)
    sign = 1.0 if view.more_is_better(utility) else -1.0
    text = f"Less risk ({view.title(risk)}) comes with less utility ({view.title(utility)})."
    if len(pairs) < 3:
        return Claim(text, None, "fewer than three masked tables have both")
    useful = [sign * pair.utility for pair in pairs]
    correlation, p_value = stats.spearman([pair.risk for pair in pairs], useful)
    holds = correlation > 0 if p_value < 0.05 else None
    return Claim(text, holds, f"Spearman's correlation {correlation:.2f} (p = {p_value:.2g})")


def _sign_test(view: View, *, measure: str, against: str = ORIGINAL, rope: Size = 1.0) -> Numbers:
    rows = [
        (name, tables, *test.probabilities, test.verdict)
        for name, (tables, test) in view.verdicts(measure, rope, against).items()
    ]
    return (
        f"Bayesian sign test of {view.title(measure)} against '{against}', over tables: "
        f"differences of at most {rope:g} % are a draw.{_if_none(rows, ' other than 0')}",
        ("variant", "tables", "lose", "draw", "win", "most likely"),
        rows,
    )


def _signed_rank(view: View, *, measure: str, against: str = ORIGINAL) -> Numbers:
    variants, values = view.laid_out(measure)
    changes = values - (values[variants.index(against)] if against in variants else math.nan)
    rows = []
    for name, mine in zip(variants, changes, strict=True):
        change = np.round(mine[np.isfinite(mine)], 12)  # equal changes are tied
        if name != against and len(change):
            rows.append((name, len(change), float(np.median(change)), *stats.signed_rank(change)))
    return (
        f"Wilcoxon's signed-rank test of {view.title(measure)} against '{against}', over "
        f"tables.{_if_none(rows)}",
        ("variant", "tables", "median difference", "statistic", "p"),
        rows,
    )


def _if_none(rows: Sequence[Any], which: str = "") -> str:
    """Why there are no rows: a measure of some families, say, or a failed baseline."""
    return "" if rows else f" No table has a result for it{which} and one for another variant."


def _friedman(view: View, *, measure: str, alpha: Share = 0.05) -> Numbers:
    variants, values = view.laid_out(measure)
    there, title, columns = np.isfinite(values), view.title(measure), ("variant", "mean rank")
    some = np.flatnonzero(there.any(axis=1))
    common = there.any(axis=0) & there[some].all(axis=0)
    if len(some) < 3 or common.sum() < 2:
        return (
            f"Friedman's test of {title} needs at least three variants with results on at least "
            f"two common tables; here {len(some)} have results on {int(common.sum())}.",
            columns,
            [],
        )
    higher = view.more_is_better(measure)
    found = stats.friedman(values[some][:, common], higher_is_better=higher, alpha=alpha)
    named = zip((variants[place] for place in some), found.mean_ranks, strict=True)
    return (
        f"Friedman's test of {title} on {int(common.sum())} tables: statistic "
        f"{found.statistic:.3g}, p = {found.p_value:.2g}. By Nemenyi's test, two variants differ "
        f"(level {alpha:g}) if their mean ranks are at least {found.critical_difference:.2f} "
        "apart.",
        columns,
        sorted(named, key=lambda row: row[1]),
    )


def _ranks(view: View, *, measure: str) -> Numbers:
    variants, places = view.ranked(measure)
    there = np.isfinite(places)
    common = there.any(axis=0) & there[there.any(axis=1)].all(axis=0)
    rows = []
    for name, mine, has in zip(variants, places, there, strict=True):
        if has.any():
            shared = float(mine[common].mean()) if common.any() else math.nan
            rows.append((name, int(has.sum()), float(mine[has].mean()), shared))
    return (
        f"Mean ranks by {view.title(measure)} (1 is the best): over all tables with a result for "
        f"the variant, and over the {int(common.sum())} tables with results for all variants.",
        ("variant", "tables", "mean rank", "on common tables"),
        sorted(rows, key=lambda row: row[2]),
    )


def _bootstrap(
    view: View, *, measure: str, by: str = "variant", confidence: Share = 0.95
) -> Numbers:
    rows = []
    for name, values in view.of(measure).by(by).items():
        interval = stats.bootstrap_interval(values, confidence=confidence)
        rows.append((str(name), len(values), float(values.mean()), *interval))
    return (
        f"Means of {view.title(measure)} with {100 * confidence:g} % bootstrap intervals, "
        "over tables and seeds.",
        (by, "results", "mean", "low", "high"),
        rows,
    )


def _spearman(view: View, *, risk: str, utility: str) -> Numbers:
    pairs = view.masked_pairs(risk, utility)
    groups = {t.name: [p for p in pairs if p.table == t.name] for t in view.study.tables}
    if len(groups) > 1:
        groups["all"] = pairs
    rows = [
        (name, len(some), *stats.spearman([p.risk for p in some], [p.utility for p in some]))
        for name, some in groups.items()
        if len(some) >= 3
    ]
    return (
        f"Spearman's correlation of {view.title(risk)} and {view.title(utility)} over "
        "the masked tables, if there are at least three.",
        ("table", "variants", "correlation", "p"),
        rows,
    )


def _front(view: View, *, risk: str, utility: str) -> Numbers:
    rows: list[tuple[Any, ...]] = []
    better = [view.more_is_better(risk), view.more_is_better(utility)]
    pairs = view.pairs(risk, utility)
    for source in view.study.tables:
        mine = sorted(pair for pair in pairs if pair.table == source.name)
        front = stats.pareto_front([pair[:2] for pair in mine], higher_is_better=better)
        best = [pair for pair, is_on_it in zip(mine, front, strict=True) if is_on_it]
        rows += [(pair.table, pair.variant, pair.risk, pair.utility) for pair in best]
    titles = view.title(risk), view.title(utility)
    return (
        f"The variants that no other beats in {titles[0]} and {titles[1]}, table by table.",
        ("table", "variant", *titles),
        rows,
    )


def _risk_utility(
    view: View,
    *,
    risk: str,
    utility: str,
    limit: Annotated[float | None, Real(minimum=0)] = None,
) -> Figure:
    several = len(view.study.tables) > 1
    points = [
        Point(f"{p.variant}, {p.table}" if several else p.variant, p.risk, p.utility, p.family)
        for p in view.pairs(risk, utility)
    ]
    return charts.risk_utility(
        points,
        risk=view.title(risk),
        utility=view.title(utility),
        higher_is_better=view.more_is_better(utility),
        limit=limit,
    )


def _against(view: View, *, measure: str, x: str = "k", table: str | None = None) -> Figure:
    chosen = view.of(measure)
    chosen = chosen if table is None else chosen.where(table=table)
    lines: dict[str, dict[float, Any]] = {}
    for (family, place), values in chosen.by("family", x).items():
        if isinstance(place, (int, float)):
            lines.setdefault(family, {})[place] = values
    return charts.against(lines, xlabel=x, ylabel=view.title(measure))


def _violins(view: View, *, measure: str, by: str = "family") -> Figure:
    groups = view.of(measure).by(by)
    return charts.violins({str(name): v for name, v in groups.items()}, ylabel=view.title(measure))


def _boxes(view: View, *, measure: str, by: str = "family") -> Figure:
    """Percentage differences from the original, table by table."""
    label = f"{view.title(measure)}: difference from the original (%)"
    return charts.boxes(view.differences(measure, by), ylabel=label)


def _rank_plot(view: View, *, measure: str) -> Figure:
    places = zip(*view.ranked(measure), strict=True)
    return charts.rank_plot({name: list(each) for name, each in places if np.isfinite(each).any()})


def _win_draw_lose(view: View, *, measure: str, rope: Size = 1.0) -> Figure:
    tests = view.verdicts(measure, rope)
    return charts.win_draw_lose({name: test.probabilities for name, (_, test) in tests.items()})


def _upset(view: View, *, measure: str, below: Size) -> Figure:
    """The number of tables on which exactly a combination of families is below a limit."""
    families = list(dict.fromkeys(v.family for v in view.study.variants if v.name != ORIGINAL))
    reached: dict[str, list[str]] = {source.name: [] for source in view.study.tables}
    for (table, _, family), values in view.of(measure).by(*GROUPS).items():
        if family != ORIGINAL and values.mean() < below:
            reached[table].append(family)
    title = f"{view.title(measure)} below {below:g}"
    return charts.upset(reached.values(), order=families, title=title)


STATISTICS: Mapping[str, Callable[..., Numbers]] = {
    "bootstrap": _bootstrap,
    "friedman": _friedman,
    "front": _front,
    "ranks": _ranks,
    "sign-test": _sign_test,
    "signed-rank": _signed_rank,
    "spearman": _spearman,
}
FIGURES: Mapping[str, Callable[..., Figure]] = {
    "against": _against,
    "boxes": _boxes,
    "ranks": _rank_plot,
    "risk-utility": _risk_utility,
    "upset": _upset,
    "violins": _violins,
    "win-draw-lose": _win_draw_lose,
}
