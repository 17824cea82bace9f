"""Requirements in words, requirements that can be added, and their forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.app.studio._pages import Form
from shoal.app.studio.planning._fields import (
    PREFIX,
    Field,
    Place,
    as_written,
    fields_of,
    given_to,
    number_in,
    values_of,
)
from shoal.app.studio.planning._methods import WORDS, docstring_of
from shoal.errors import PlanError, ShoalError
from shoal.measurement import MeasureInfo
from shoal.models import PrivacyModel, discover_models
from shoal.parameters import parameters_of
from shoal.table import Table
from shoal.workflow import discover_all_measures
from shoal.workflow._require import limit_key, limited_measure, requirement_from
from shoal.workflow.report._words import number

_HOLE: Final = re.compile(r"\{(\w+)(?::([^}]*))?\}")


@dataclass(frozen=True)
class Asked:
    """A requirement of the plan as a card shows it."""

    key: str
    place: int
    sentence: str
    about: str
    fields: tuple[Field, ...]
    problem: str | None = None


@dataclass(frozen=True)
class Offer:
    """A requirement that can be added to the plan."""

    key: str
    sentence: str
    about: str
    group: str


# -- the requirements of a plan


def requirements_in(raw: Any, place: Place) -> list[Asked]:
    """The requirements of a plan as it is written, each with its error if it has one."""
    found = []
    for key, value in (raw if isinstance(raw, Mapping) else {}).items():
        for number_, one in enumerate(value if isinstance(value, list) else [value]):
            found.append(asked_of(str(key), one, place, number_))
    return found


def asked_of(key: str, value: Any, place: Place, number_: int = 0) -> Asked:
    """A requirement by its name and value in a plan."""
    problem = None
    try:
        requirement_from(key, value)
    except ShoalError as cause:
        problem = str(cause)
    thing = thing_of(key)
    if thing is None:
        return Asked(key, number_, f"{key} = {_plain(value)}", "", (), problem)
    given = _given(thing, value)
    fields = [*_value_field(key, thing, given), *fields_of(_declaring(thing), given, place)]
    return Asked(key, number_, in_words(key, given), _about(thing), tuple(fields), problem)


def thing_of(key: str) -> type[PrivacyModel] | MeasureInfo | None:
    """The model or measure of a requirement."""
    models = discover_models()
    if key in models:
        return models[key]
    return limited_measure(key)


def _declaring(thing: type[PrivacyModel] | MeasureInfo) -> Any:
    return thing.function if isinstance(thing, MeasureInfo) else thing


def _about(thing: type[PrivacyModel] | MeasureInfo) -> str:
    return docstring_of(_declaring(thing)).summary


def _given(thing: type[PrivacyModel] | MeasureInfo, value: Any) -> dict[str, Any]:
    """The parameters of a requirement by name; the number of a limit is called value."""
    if not isinstance(thing, MeasureInfo):
        return given_to(thing, value)
    return dict(value) if isinstance(value, Mapping) else {"value": value}


def _value_field(
    key: str, thing: type[PrivacyModel] | MeasureInfo, given: Mapping[str, Any]
) -> list[Field]:
    if not isinstance(thing, MeasureInfo):
        return []
    low, high = thing.limits
    side = "at most" if key.startswith("max_") else "at least"
    meaning = f"{thing.title[0].upper()}{thing.title[1:]}, {side} this. It lies "
    meaning += f"between {low:g} and {high:g}." if high < float("inf") else f"above {low:g}."
    value = "" if given.get("value") is None else str(given["value"])
    return [Field("value", "number", value, "a number", meaning, "", True, True)]


def in_words(key: str, given: Mapping[str, Any]) -> str:
    """A requirement as one sentence."""
    thing = thing_of(key)
    if isinstance(thing, MeasureInfo):
        usual = "max_" if thing.direction == "lower" else "min_"
        said = WORDS["limits"].get(thing.name) if key.startswith(usual) else None
        if said is None:
            side = "at most" if key.startswith("max_") else "at least"
            title = f"{thing.title[0].upper()}{thing.title[1:]}"
            return f"{title}: {side} {_plain(given.get('value'))}."
    else:
        said = WORDS["models"].get(key)
        if said is None:
            return f"{key}: {', '.join(f'{n} = {_plain(v)}' for n, v in given.items())}."
    sentence = _HOLE.sub(lambda hole: _filled(hole, given), said["words"])
    named = {hole[1] for hole in _HOLE.finditer(said["words"])}
    more = [f"{n.replace('_', ' ')} {_plain(v)}" for n, v in given.items() if n not in named]
    return f"{sentence.rstrip('.')} ({', '.join(more)})." if more else sentence


def _filled(hole: re.Match[str], given: Mapping[str, Any]) -> str:
    value = given.get(hole[1], "?")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if hole[2] == "%":
            return f"{100 * value:.4g}\u00a0%"
        return number(value + (hole[2] == "+1"))
    return _plain(value)


def _plain(value: Any) -> str:
    return number(value) if isinstance(value, (int, float)) else str(value)


# -- requirements that can be added

_SENSITIVE: Final = "What nobody should learn"
_CROWD: Final = "Crowds"
_RISK: Final = "Risk, measured after masking"
_UTILITY: Final = "Utility that must be left"


def offers_for(table: Table) -> dict[str, list[Offer]]:
    """Requirements that fit a table, grouped by topic, with usual values."""
    secret = bool(table.roles.sensitive)
    found = []
    for key, cls in discover_models().items():
        about_secrets = any(each.name == "column" for each in parameters_of(cls))
        if secret or not about_secrets:
            group = _SENSITIVE if about_secrets else _CROWD
            found.append(Offer(key, in_words(key, usual_of(key)), _about(cls), group))
    for name, info in discover_all_measures().items():
        if (info.sensitive and not secret) or (info.target and table.roles.target is None):
            continue
        key = limit_key("max" if info.direction == "lower" else "min", name)
        group = _RISK if info.about == "risk" else _UTILITY
        found.append(Offer(key, in_words(key, usual_of(key)), _about(info), group))
    groups = (_CROWD, _SENSITIVE, _RISK, _UTILITY)
    of = {group: [offer for offer in found if offer.group == group] for group in groups}
    return {group: offers for group, offers in of.items() if offers}


def usual_of(key: str) -> dict[str, Any]:
    """The initial values of a new requirement."""
    thing = thing_of(key)
    if thing is None:
        raise PlanError(f"There is no requirement '{key}'. Choose one from the list.")
    if not isinstance(thing, MeasureInfo):
        said = WORDS["models"].get(key, {"usual": {}})
        return dict(said["usual"])
    low, high = thing.limits
    middle = low + (0.2 if thing.direction == "lower" else 0.8) * (high - low)
    usual = middle if abs(middle) < float("inf") else 2.0
    return {"value": WORDS["limits"].get(thing.name, {"usual": usual})["usual"]}


def value_from(key: str, form: Form, given: Mapping[str, Any], place: Place) -> Any:
    """The value of a requirement for the plan: a single number if that is enough."""
    thing = thing_of(key)
    if thing is None:
        raise PlanError(f"There is no requirement '{key}'. Choose one from the list.")
    values = values_of(_declaring(thing), form, given, place)
    if not isinstance(thing, MeasureInfo):
        requirement_from(key, values)
        return as_written(thing, values)
    values = {"value": number_in(form.one(f"{PREFIX}value")), **values}
    requirement_from(key, values)
    return values["value"] if [*values] == ["value"] else values
