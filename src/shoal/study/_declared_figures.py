"""The figures that a study declares, checked before anything is computed for them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.errors import PlanError, did_you_mean
from shoal.study._design import Study

#: What results can be grouped by, besides parameters.
GROUPS = ("table", "variant", "family")

_NOT_IN_NAMES = set('/\\:*?"<>|')


def figure_names(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each figure is called: by its own name, or by its number and kind."""
    return [
        str(entry.get("name", f"{number}-{entry.get('kind')}"))
        for number, entry in enumerate(figures, start=1)
    ]


def check_figures(study: Study, kinds: Mapping[str, Callable[..., Any]]) -> None:
    """Raise PlanError for the first figure that could not be drawn from the study's results."""
    names = figure_names(study.figures)
    for entry, name in zip(study.figures, names, strict=True):
        kind = str(entry.get("kind"))
        if kind not in kinds:
            raise PlanError(f"There is no figure '{kind}'. {did_you_mean(kind, kinds)}")
        if names.count(name) > 1:
            raise PlanError(f"Two figures of the study are called '{name}'; name each differently.")
        if name.startswith(".") or any(c in _NOT_IN_NAMES or not c.isprintable() for c in name):
            raise PlanError(f"The name of a figure names its files, which {name!r} cannot.")
        _check_options(study, entry, name, kinds[kind])


def _check_options(
    study: Study, entry: Mapping[str, Any], name: str, draw: Callable[..., Any]
) -> None:
    taken = {
        each.name: each.default
        for each in inspect.signature(draw).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    given = {part: value for part, value in entry.items() if part not in ("kind", "name")}
    for part in given:
        if part not in taken:
            raise PlanError(
                f"The figure '{name}' has no option '{part}'. {did_you_mean(part, taken)}"
            )
    for part, default in taken.items():
        if default is inspect.Parameter.empty and part not in given:
            raise PlanError(f"The figure '{name}' needs the option '{part}'.")
    known = _known(study)
    for part, value in given.items():
        if part in known and value not in known[part]:
            raise PlanError(
                f"The option '{part}' of the figure '{name}' names what the study has not. "
                f"{did_you_mean(str(value), known[part])}"
            )
        if part in ("limit", "rope") and not _is_size(value):
            raise PlanError(f"The option '{part}' of the figure '{name}' is a number ≥ 0.")


def _known(study: Study) -> Mapping[str, list[str]]:
    measures = [measure.name for measure in study.measures]
    parameters = list(dict.fromkeys(each for one in study.variants for each in one.parameters))
    return {
        "measure": measures,
        "risk": measures,
        "utility": measures,
        "table": [source.name for source in study.tables],
        "x": parameters,
        "by": [*GROUPS, *parameters],
    }


def _is_size(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0
