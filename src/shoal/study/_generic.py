"""The conclusion of a study that has nothing published to compare with: what its file asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.study import _declared_statistics
from shoal.study._conclusion import Claim, Conclusion
from shoal.study._declared import check_declared, names_of, options_given
from shoal.study._design import ORIGINAL, Study
from shoal.study._results import Results
from shoal.study._statistics import bayes_sign_test, spearman
from shoal.study._views import differences, more_is_better, pairs_of, ranked, title_of
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


def check(study: Study) -> None:
    """Raise PlanError for a figure or statistic that cannot be; to be asked before a run."""
    check_declared(study, "statistic", study.statistics, _declared_statistics.KINDS)
    check_declared(study, "figure", study.figures, _KINDS)


def conclude(study: Study, results: Results) -> Conclusion:
    """The figures and statistics that a study declares, of its results."""
    figures: dict[str, Figure] = {}
    for entry, name in zip(study.figures, names_of(study.figures), strict=True):
        figures[name] = _KINDS[entry["kind"]](study, results, **options_given(entry))
    claims = [
        _relation(study, results, entry["risk"], entry["utility"])
        for entry in study.figures
        if entry["kind"] == "risk-utility"
    ]
    statistics = _declared_statistics.statistics_of(study, results)
    return Conclusion(figures=figures, claims=claims, statistics=statistics)


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
    study: Study, results: Results, *, risk: str, utility: str, limit: float | None = None
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


def _win_draw_lose(study: Study, results: Results, *, measure: str, rope: float = 1.0) -> Figure:
    groups = differences(study, results, measure, "variant")
    sign = 1 if more_is_better(study, measure) else -1
    return win_draw_lose(
        {
            name: bayes_sign_test(sign * values, rope=rope).probabilities
            for name, values in groups.items()
            if len(values)
        }
    )


def _upset(study: Study, results: Results, *, measure: str, below: float) -> Figure:
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


_KINDS: Mapping[str, Callable[..., Figure]] = {
    "against": _against,
    "boxes": _boxes,
    "ranks": _ranks,
    "risk-utility": _risk_utility,
    "upset": _upset,
    "violins": _violins,
    "win-draw-lose": _win_draw_lose,
}
