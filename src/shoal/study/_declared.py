"""The figures and statistics that a study declares, checked before it computes anything."""

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
_LONGEST = 200  # bytes: a name with its ending has 255 at most


def names_of(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each is called: by its own name, or by its number and kind."""
    return [
        str(entry.get("name", f"{number}-{entry.get('kind')}"))
        for number, entry in enumerate(entries, start=1)
    ]


def options_given(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an entry, without what says which it is."""
    return {part: value for part, value in entry.items() if part not in ("kind", "name")}


def check_declared(
    study: Study,
    what: str,
    entries: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, Callable[..., Any]],
) -> None:
    """Raise PlanError for the first figure or statistic that the study's results cannot give."""
    names = names_of(entries)
    for entry, name in zip(entries, names, strict=True):
        kind = str(entry.get("kind"))
        if kind not in kinds:
            raise PlanError(f"There is no {what} '{kind}'. {did_you_mean(kind, kinds)}")
        if names.count(name) > 1:
            raise PlanError(f"Two {what}s of the study are called '{name}'; name each differently.")
        if not _names_files(name):
            raise PlanError(f"The name of a {what} names its files, which {name!r} cannot.")
        _check_options(study, options_given(entry), f"{what} '{name}'", kinds[kind])


def _check_options(
    study: Study, given: Mapping[str, Any], of: str, made_by: Callable[..., Any]
) -> None:
    taken = {
        each.name: each.default
        for each in inspect.signature(made_by).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    for part in given:
        if part not in taken:
            raise PlanError(f"The {of} has no option '{part}'. {did_you_mean(part, taken)}")
    for part, default in taken.items():
        if default is inspect.Parameter.empty and part not in given:
            raise PlanError(f"The {of} needs the option '{part}'.")
    known = _known(study)
    for part, value in {**taken, **given}.items():
        if part in known and value is not None and value not in known[part]:
            raise PlanError(
                f"The option '{part}' of the {of} names what the study has not ('{value}'). "
                f"{did_you_mean(str(value), known[part])}"
            )
    for part, value in given.items():
        if part in ("limit", "rope", "below") and not _is_size(value):
            raise PlanError(f"The option '{part}' of the {of} is a number ≥ 0.")
        if part in ("alpha", "confidence") and not (_is_size(value) and 0 < value < 1):
            raise PlanError(f"The option '{part}' of the {of} is a number between 0 and 1.")


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


def _is_size(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0
