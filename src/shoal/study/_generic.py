"""The conclusion of a study that has nothing published to compare with: the figures it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.measurement import MeasureInfo
from shoal.study._conclusion import Claim, Conclusion
from shoal.study._declared_figures import check_figures, figure_names
from shoal.study._design import ORIGINAL, Study
from shoal.study._measures import measures_known
from shoal.study._results import Results
from shoal.study._statistics import bayes_sign_test, percentage_differences, ranks, spearman
from shoal.study.figures import (
    Figure,
    Point,
    against,
    boxes,
    rank_plot,
    risk_utility,
    violins,
    win_draw_lose,
)


def check(study: Study) -> None:
    """Raise PlanError for a figure that could not be drawn; to be asked before a study is run."""
    check_figures(study, _KINDS)


def conclude(study: Study, results: Results) -> Conclusion:
    """The figures that a study declares, drawn from its results."""
    figures: dict[str, Figure] = {}
    for entry, name in zip(study.figures, figure_names(study.figures), strict=True):
        options = {part: value for part, value in entry.items() if part not in ("kind", "name")}
        figures[name] = _KINDS[entry["kind"]](study, results, **options)
    claims = [
        _relation(study, results, entry["risk"], entry["utility"])
        for entry in study.figures
        if entry["kind"] == "risk-utility"
    ]
    return Conclusion(figures=figures, claims=claims)


def _relation(study: Study, results: Results, risk: str, utility: str) -> Claim:
    """Whether less risk goes with less utility, over all masked tables."""
    pairs = [pair for pair in _pairs(results, risk, utility) if pair[3] != ORIGINAL]
    sign = 1.0 if _higher(study, utility) else -1.0
    text = f"What has less risk ({_title(study, risk)}) is less useful ({_title(study, utility)})."
    if len(pairs) < 3:
        return Claim(text, None, "fewer than three masked tables have both")
    useful = [sign * pair[1] for pair in pairs]
    correlation, p_value = spearman([pair[0] for pair in pairs], useful)
    holds = correlation > 0 if p_value < 0.05 else None
    return Claim(text, holds, f"Spearman's correlation {correlation:.2f} (p = {p_value:.2g})")


def _pairs(results: Results, risk: str, utility: str) -> list[tuple[float, float, str, str, str]]:
    names = ("table", "variant", "family")
    risks = results.where(measure=risk).by(*names)
    utilities = results.where(measure=utility).by(*names)
    return [
        (float(values.mean()), float(utilities[place].mean()), *place)
        for place, values in risks.items()
        if place in utilities
    ]


def _risk_utility(
    study: Study, results: Results, *, risk: str, utility: str, limit: float | None = None
) -> Figure:
    several = len(study.tables) > 1
    points = [
        Point(f"{variant}, {table}" if several else variant, low, high, family)
        for low, high, table, variant, family in _pairs(results, risk, utility)
    ]
    return risk_utility(
        points,
        risk=_title(study, risk),
        utility=_title(study, utility),
        higher_is_better=_higher(study, utility),
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
    return against(lines, xlabel=x, ylabel=_title(study, measure))


def _violins(study: Study, results: Results, *, measure: str, by: str = "family") -> Figure:
    groups = results.where(measure=measure).by(by)
    return violins({str(name): v for name, v in groups.items()}, ylabel=_title(study, measure))


def _boxes(study: Study, results: Results, *, measure: str, by: str = "family") -> Figure:
    """Percentage differences to the original, table by table."""
    groups = differences(study, results, measure, by)
    return boxes(groups, ylabel=f"{_title(study, measure)}: difference to the original (%)")


def _ranks(study: Study, results: Results, *, measure: str) -> Figure:
    variants = [variant.name for variant in study.variants]
    tables = [source.name for source in study.tables]
    values = results.where(measure=measure).matrix(variants, tables, by=("variant", "table"))
    ranked = ranks(values, higher_is_better=_higher(study, measure))
    ranked[np.isnan(values)] = np.nan
    return rank_plot(
        {
            name: list(each)
            for name, each in zip(variants, ranked, strict=True)
            if np.isfinite(each).any()
        }
    )


def _win_draw_lose(study: Study, results: Results, *, measure: str, rope: float = 1.0) -> Figure:
    groups = differences(study, results, measure, "variant")
    sign = 1 if _higher(study, measure) else -1
    return win_draw_lose(
        {
            name: bayes_sign_test(sign * values, rope=rope).probabilities
            for name, values in groups.items()
            if len(values)
        }
    )


def differences(study: Study, results: Results, measure: str, by: str) -> dict[str, Any]:
    """The percentage differences to the original on the same table, grouped."""
    chosen = results.where(measure=measure)
    baseline = chosen.where(variant=ORIGINAL).by("table")
    parameters = {variant.name: variant.parameters for variant in study.variants}
    groups: dict[str, list[float]] = {}
    for place, values in chosen.by("table", "variant", "family").items():
        table, variant, family = place
        if variant != ORIGINAL and table in baseline:
            name = {"table": table, "variant": variant, "family": family}.get(by)
            name = str(parameters[variant].get(by)) if name is None else name
            found = percentage_differences(values.mean(), baseline[table].mean())
            if np.isfinite(found):
                groups.setdefault(name, []).append(float(found))
    return {name: np.array(values) for name, values in groups.items()}


def _title(study: Study, measure: str) -> str:
    """What a measure is called by the study, else its title."""
    info = _info(study, measure)
    return measure if info is None or info.name != measure else info.title


def _higher(study: Study, measure: str) -> bool:
    info = _info(study, measure)
    return info is not None and info.direction == "higher"


def _info(study: Study, name: str) -> MeasureInfo | None:
    """What a measure declares of itself, whatever the study calls it."""
    declared = {one.name: one.measure for one in study.measures}
    return measures_known().get(declared.get(name, name))


_KINDS: Mapping[str, Callable[..., Figure]] = {
    "against": _against,
    "boxes": _boxes,
    "ranks": _ranks,
    "risk-utility": _risk_utility,
    "violins": _violins,
    "win-draw-lose": _win_draw_lose,
}
