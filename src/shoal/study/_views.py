"""The results of any study, as its figures and statistics look at them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.measurement import MeasureInfo
from shoal.study._design import ORIGINAL, Study
from shoal.study._measures import measures_known
from shoal.study._results import Results, mean_of
from shoal.study._statistics import percentage_differences, ranks

Floats = npt.NDArray[np.float64]


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
    return measures_known().get(declared.get(name, name))
