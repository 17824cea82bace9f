"""Declared parameters as the fields of a form, and typed values in the notation of a plan."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import tomlkit

from shoal.app.studio._pages import Form
from shoal.app.studio.planning._methods import docstring_of, fitting, nameable
from shoal.errors import InputError
from shoal.masking._suppress import KeySets
from shoal.masking.generalization._hierarchies import Hierarchies
from shoal.masking.grouping._group_models import PrivacyModels
from shoal.models import PrivacyModel, discover_models
from shoal.parameters import (
    ByColumn,
    ColumnNames,
    Constraint,
    Flag,
    Integer,
    OneColumn,
    OneOf,
    Parameter,
    Real,
    Secret,
    parameters_of,
)
from shoal.table import Table

#: The prefix of the names of form fields.
PREFIX: Final = "p."
_LONGEST: Final = 2_000


@dataclass(frozen=True)
class Part:
    """One line of a field with several lines: a column's hierarchy or number, or a model."""

    name: str
    label: str
    value: str
    choices: tuple[tuple[str, str], ...] = ()
    #: What applies as long as the line is empty.
    otherwise: str = ""
    #: The parameters of a model.
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Field:
    """A parameter as a form shows it."""

    name: str
    kind: str
    value: Any
    accepts: str
    meaning: str
    default: str
    required: bool
    changed: bool
    choices: tuple[str, ...] = ()
    parts: tuple[Part, ...] = field(default=())

    @property
    def label(self) -> str:
        """The name in plain words."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Place:
    """What a form needs: the table, and the hierarchies that were made for it."""

    table: Table
    made: Mapping[str, Any] = field(default_factory=dict)


def fields_of(declaring: Any, given: Mapping[str, Any], place: Place) -> list[Field]:
    """The fields of a method, model or measure, filled with the values of a plan."""
    options = {option.name: option for option in docstring_of(declaring).options}
    found = []
    for parameter in parameters_of(declaring):
        option = options.get(parameter.name)
        if option is None or (not isinstance(declaring, type) and option.name == "random_state"):
            continue
        kind = _kind(parameter.constraint)
        value = given.get(parameter.name)
        if kind == "models" and _by_model(value) is None:
            kind = "kept"
        default = parameter.default
        found.append(
            Field(
                parameter.name,
                kind,
                _shown(value if parameter.name in given else _unless_none(default), kind),
                option.accepts,
                option.meaning,
                "" if default is None or isinstance(default, bool) else f"{default}",
                parameter.required,
                parameter.name in given,
                _choices(declaring, parameter, place),
                _parts(parameter.constraint, kind, value, place),
            )
        )
    return found


def _unless_none(value: Any) -> Any:
    return "" if value is None else value


def _kind(constraint: Constraint) -> str:
    for cls, kind in (
        (Integer, "whole"),
        (Secret, "whole"),
        (Real, "number"),
        (OneOf, "choice"),
        (Flag, "flag"),
        (ColumnNames, "columns"),
        (OneColumn, "column"),
        (PrivacyModels, "models"),
        (Hierarchies, "hierarchies"),
        (ByColumn, "by column"),
        (KeySets, "notation"),
    ):
        if isinstance(constraint, cls):
            return kind
    return "text"


def _shown(value: Any, kind: str) -> Any:
    if kind == "flag":
        return value is True
    if kind == "columns":
        return list(value) if isinstance(value, list) else []
    if kind == "kept" or (kind == "notation" and value):
        return tomlkit.item(value).as_string()
    if isinstance(value, list) and kind == "text":
        return ", ".join(map(str, value))
    return "" if value is None or kind in ("models", "hierarchies", "by column") else str(value)


def _choices(declaring: Any, parameter: Parameter, place: Place) -> tuple[str, ...]:
    if isinstance(parameter.constraint, OneOf):
        return parameter.constraint.choices
    if isinstance(parameter.constraint, ColumnNames):
        return tuple(fitting(declaring, place.table, nameable(declaring, place.table)))
    if isinstance(parameter.constraint, OneColumn):
        is_model = isinstance(declaring, type) and issubclass(declaring, PrivacyModel)
        return place.table.roles.sensitive if is_model else tuple(nameable(declaring, place.table))
    return ()


def _by_model(value: Any) -> Mapping[str, Any] | None:
    """Models by name as the form shows them; None if one is used twice."""
    tables = value if isinstance(value, list) else [value or {}]
    if not all(isinstance(table, Mapping) for table in tables):
        return None
    pairs = [pair for table in tables for pair in table.items()]
    found, known = dict(pairs), group_models()
    shown = all(name in known and not isinstance(one, list) for name, one in found.items())
    return found if shown and len(found) == len(pairs) else None


def group_models() -> dict[str, type[PrivacyModel]]:
    """The models that set a condition on a group of records."""
    return {
        name: cls
        for name, cls in discover_models().items()
        if cls.conditions is not PrivacyModel.conditions
        or cls.smallest_class is not PrivacyModel.smallest_class
    }


def given_to(model: type[PrivacyModel], value: Any) -> dict[str, Any]:
    """The parameters of a model as in a plan: a single number is the first parameter."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {parameters_of(model)[0].name: value}


def as_written(model: type[PrivacyModel], values: Mapping[str, Any]) -> Any:
    """The same in the notation of a plan: a single number if that is enough."""
    first = parameters_of(model)[0].name
    return values[first] if [*values] == [first] else dict(values)


def _parts(constraint: Constraint, kind: str, value: Any, place: Place) -> tuple[Part, ...]:
    value = _by_model(value) if kind == "models" else value
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    columns = list(dict.fromkeys((*place.table.roles.quasi_identifiers, *given)))
    if kind == "models":
        return tuple(
            Part(
                name,
                cls.title,
                "asked" if name in given else "",
                fields=tuple(fields_of(cls, given_to(cls, given.get(name)), place)),
            )
            for name, cls in group_models().items()
        )
    if isinstance(constraint, ByColumn):
        return tuple(
            Part(name, name, str(given.get(name, "")), otherwise=constraint.otherwise)
            for name in columns
        )
    if kind == "hierarchies":
        return tuple(_hierarchy_part(name, given, place) for name in columns)
    return ()


def _hierarchy_part(name: str, given: Mapping[str, Any], place: Place) -> Part:
    choices = [("", "proposed from the data when it runs")]
    if name in given:
        choices.append(("now", f"current: {hierarchy_in_words(given[name])}"))
    if name in place.made and place.made[name] != given.get(name):
        choices.append(("made", f"made in the studio: {hierarchy_in_words(place.made[name])}"))
    return Part(name, name, "now" if name in given else "", tuple(choices))


def hierarchy_in_words(value: Any) -> str:
    """A hierarchy of a plan in a few words: its kind or its file, but no value."""
    if not isinstance(value, Mapping):
        return f"the file {value}"
    rules = []
    for name, option in value.items():
        listed = [] if option is True else option if isinstance(option, list) else [option]
        plain = all(isinstance(one, (int, float, str)) for one in listed) and len(listed) <= 8
        rules.append(f"{name} {', '.join(map(str, listed))}".rstrip() if plain else str(name))
    return "; ".join(rules) or "a list"


# -- and back


def values_of(
    declaring: Any, form: Form, given: Mapping[str, Any], place: Place, prefix: str = PREFIX
) -> dict[str, Any]:
    """The values for the plan after a form was sent; the plan itself reports what is wrong."""
    values: dict[str, Any] = {}
    sent = {name for name, _ in form.items()}
    for shown in fields_of(declaring, given, place):
        name = prefix + shown.name
        if shown.kind == "kept":
            values[shown.name] = given[shown.name]
        elif shown.kind in ("models", "by column", "hierarchies"):
            value = _table_from(shown, form, given, place)
        elif shown.kind == "columns":
            value = form.all(name) or None
        elif shown.kind == "flag":
            value = bool(form.all(name))
        else:
            value = _scalar(shown, form.one(name, "")) if name in sent else given.get(shown.name)
        if shown.kind != "kept" and not _is_left_out(declaring, shown, value, given):
            values[shown.name] = value
    return values


def _is_left_out(declaring: Any, shown: Field, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether a value is missing, or a default that the plan did not contain either."""
    if value is None or value == "":
        return True
    default = {each.name: each.default for each in parameters_of(declaring)}[shown.name]
    return shown.name not in given and not shown.required and value == default


def _scalar(shown: Field, text: str) -> Any:
    text = text.strip()
    if len(text) > _LONGEST:
        raise InputError(f"'{shown.label}' is too long. Shorten it.")
    if not text:
        return None
    if shown.kind in ("whole", "number"):
        return number_in(text)
    if shown.kind == "notation":
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            return text
    # an option that its measure checks itself may be a number too
    return number_in(text) if shown.accepts.startswith(("a number", "an integer")) else text


def number_in(text: str) -> Any:
    """A number as people type it; any other text is returned, and refused elsewhere."""
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text.count(",") == 1 and "." not in text:  # as most of Europe writes it
        return number_in(text.replace(",", "."))
    return text


def _table_from(shown: Field, form: Form, given: Mapping[str, Any], place: Place) -> Any:
    before = given.get(shown.name)
    before = _by_model(before) if shown.kind == "models" else before
    before = before if isinstance(before, Mapping) else {}
    after: dict[str, Any] = {}
    for number, part in enumerate(shown.parts):
        if shown.kind == "models":
            cls, prefix = group_models()[part.name], f"{PREFIX}{shown.name}.{part.name}."
            own = values_of(cls, form, given_to(cls, before.get(part.name)), place, prefix)
            if parameters_of(cls)[0].name in own:  # without its level, a model is not required
                after[part.name] = as_written(cls, own)
            continue
        text = form.one(f"{PREFIX}{shown.name}.{number}", "").strip()
        if not text:
            continue
        if shown.kind == "hierarchies":
            source: Mapping[str, Any] = place.made if text == "made" else before
            if part.name in source:
                after[part.name] = source[part.name]
        else:
            after[part.name] = number_in(text)
    return after or None


def shown_first(fields: Sequence[Field], matter: Sequence[str]) -> tuple[list[Field], list[Field]]:
    """The fields that matter or were changed, and the others."""
    first = [each for each in fields if each.required or each.changed or each.name in matter]
    return first, [each for each in fields if each not in first]
