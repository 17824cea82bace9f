"""Methods as the screen offers them: which ones fit a table, what they change, and their traps."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from shoal.app.cli._methods import Docstring
from shoal.masking import Masker, discover_maskers
from shoal.table import Table
from shoal.workflow.report._words import step_title

WORDS: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Method:
    """A method that may become a step."""

    name: str
    title: str
    summary: str
    traps: str
    #: Why it does not fit the table; None if it does.
    unfit: str | None
    #: The initial parameters of a new step.
    usual: Mapping[str, Any]

    @property
    def page(self) -> str:
        """Its page of the documentation."""
        return f"methods/{self.name.replace('_', '-')}"


@cache
def docstring_of(thing: Any) -> Docstring:
    """The docstring of a method, model or measure in parts."""
    return Docstring(thing)


def said_of(method: str) -> Mapping[str, Any]:
    """The entry of a method in ``words.toml``; a default if it has none."""
    said: Mapping[str, Any] = WORDS["methods"].get(method, {})
    return {"traps": "", "matter": (), "usual": {}, "needs": ["quasi_identifiers"], **said}


def methods_for(table: Table) -> list[Method]:
    """Every method, those that fit the table first."""
    found = []
    for name, cls in discover_maskers().items():
        said = said_of(name)
        unfit, usual = _unfit(cls, table), dict(said["usual"])
        if unfit is None and (columns := _other_columns(cls, table)):
            usual["columns"] = columns
        summary = f"{cls.summary[0].upper()}{cls.summary[1:]}."
        found.append(Method(name, step_title(name), summary, said["traps"], unfit, usual))
    return sorted(found, key=lambda method: method.unfit is not None)


def _unfit(cls: type[Masker], table: Table) -> str | None:
    needs, roles = said_of(cls.method)["needs"], table.roles
    if cls.names_identifiers and not roles.naming:
        return "It needs an identifier or a unit, and none is declared."
    if "sensitive" in needs and not roles.sensitive:
        return "It needs a sensitive column, but none is declared."
    kinds = getattr(cls, "kinds", None)
    if kinds is not None and not fitting(cls, table, nameable(cls, table)):
        return f"It needs columns of {' or '.join(_PLAIN[kind] for kind in kinds)}; there are none."
    if kinds is None and "quasi_identifiers" in needs and not roles.quasi_identifiers:
        return "It needs quasi-identifiers, but none is declared."
    return None


_PLAIN: Final = {
    "integer": "whole numbers",
    "float": "numbers with decimals",
    "text": "texts",
    "boolean": "yes and no",
    "date": "dates",
    "datetime": "times with a date",
}


def nameable(cls: type, table: Table) -> list[str]:
    """The columns that a step of a method may name; identifiers only where it is for them."""
    roles = table.roles
    kept = roles.drop if getattr(cls, "names_identifiers", False) else roles.withheld
    return [name for name in table.columns if name not in kept]


def fitting(cls: type[Masker], table: Table, columns: list[str]) -> list[str]:
    """The columns among ``columns`` that a method can change."""
    kinds = getattr(cls, "kinds", None)
    return [name for name in columns if kinds is None or table.kind(name) in kinds]


def _other_columns(cls: type[Masker], table: Table) -> list[str]:
    """The columns that a new step must name, if no quasi-identifier fits it."""
    if cls.names_identifiers:
        return list(table.roles.unit_columns or table.roles.naming[:1])
    if getattr(cls, "kinds", None) is None or fitting(cls, table, table.chosen(None)):
        return []
    return fitting(cls, table, nameable(cls, table))


def touched_by(step: Masker, table: Table) -> tuple[list[str], str]:
    """The columns that a step will change, and a sentence on what it leaves or removes."""
    if step.method == "sample":
        return [], "Records are drawn; no cell changes."
    if step.method == "redraw" or getattr(step, "informed", False):
        return list(table.roles.sensitive), "Only sensitive values change."
    if step.method == "suppress" and not _blanks_cells(step):
        return [], "Whole records are removed; no cell changes."
    given = getattr(step, "columns", None)
    named = table.chosen(given)
    if given is None and step.method == "shift_dates":
        named = fitting(type(step), table, nameable(type(step), table))
    fit = fitting(type(step), table, named)
    left = [name for name in named if name not in fit]
    kinds = " or ".join(_PLAIN.get(kind, kind) for kind in getattr(type(step), "kinds", ()))
    return fit, f"It skips {len(left)} of the columns: it works on {kinds}." if left else ""


def _blanks_cells(step: Any) -> bool:
    return step.min_class_size is None and step.target != "records"
