"""The figures and statistics that a study's file asks for: checked before a run, made after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from shoal.errors import PlanError, did_you_mean
from shoal.parameters import Real, parameters_of
from shoal.study._conclusion import Claim, Conclusion, Statistic
from shoal.study._design import ORIGINAL, Study
from shoal.study._results import Results
from shoal.study._statistics import bayes_sign_test, spearman
from shoal.study._views import (
    STATISTICS,
    Size,
    differences,
    more_is_better,
    pairs_of,
    ranked,
    title_of,
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


def _ranks(study: Study, results: Results, *, measure: str) -> Figure:
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
    "ranks": _ranks,
    "risk-utility": _risk_utility,
    "upset": _upset,
    "violins": _violins,
    "win-draw-lose": _win_draw_lose,
}
