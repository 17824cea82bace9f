"""Where the hierarchy of a column is kept, and how it is written.

A generalizing step of the plan names it. If there is no such step yet, ``[hierarchies]`` of
studio.toml keeps it: ``column = rule-or-path``, the same values as in a plan. A hierarchy that
nobody has written is proposed from the data. A list is a file in ``hierarchies/``. A changed list
is a new file, so that every earlier version of the plan finds its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import tomlkit

from shoal.app.cli._hierarchy import FOLDER, bare_name
from shoal.app.studio._pages import Studio, set_in
from shoal.app.studio._project import PLAN, parsed_toml
from shoal.errors import InputError, ReadError, ShoalError, did_you_mean
from shoal.table import Hierarchy
from shoal.workflow import Plan
from shoal.workflow.release._folder import complete_files

#: The table of studio.toml for hierarchies that wait for a step that generalizes.
KEPT: Final = "hierarchies"
LARGEST: Final = 64_000_000  # bytes of a file

Value = str | dict[str, Any]


@dataclass(frozen=True)
class Held:
    """The hierarchy of a column as it is written: in the plan, in studio.toml, or nowhere."""

    column: str
    value: Value | None = None
    where: Literal["plan", "kept", "proposed"] = "proposed"

    @property
    def kind(self) -> str:
        """Its kind, in one word."""
        if self.value is None:
            return "proposed"
        if isinstance(self.value, str):
            return "file"
        if "suppression" in self.value:
            return "none"
        return "list" if {"rows", "tree", "ordered"} & self.value.keys() else "rule"


class Shelf:
    """The hierarchies of a project as its plan and settings name them now."""

    def __init__(self, studio: Studio) -> None:
        version = studio.project.version
        try:
            self.plan = studio.project.plan
        except ShoalError:  # perhaps a file is gone, which can be fixed here
            self.plan = _without_hierarchies(version.plan, studio.project.folder)
        written = parsed_toml(version.plan, PLAN).unwrap()
        self._steps: Sequence[Mapping[str, Any]] = written.get("steps", [])
        self._kept: Mapping[str, Any] = studio.project.settings.get(KEPT, {})

    @cached_property
    def columns(self) -> list[str]:
        """The quasi-identifiers, and other columns that the plan generalizes."""
        roles = self.plan.roles
        named = [] if roles is None else list(roles.quasi_identifiers)
        for step in self._steps:
            if step.get("method") == "generalize":
                named += step.get("columns", [])
        return list(dict.fromkeys(named))

    def step_of(self, column: str) -> int | None:
        """The first step that generalizes a column."""
        for number, step in enumerate(self._steps):
            if step.get("method") == "generalize" and column in step.get("columns", [column]):
                return number
        return None

    @property
    def generalizes(self) -> bool:
        return any(step.get("method") == "generalize" for step in self._steps)

    def held(self, column: str) -> Held:
        step = self.step_of(column)
        if step is not None:
            value = self._steps[step].get("hierarchies", {}).get(column)
            if value is not None:
                return Held(column, value, "plan")
        value = self._kept.get(column)
        return Held(column) if value is None else Held(column, value, "kept")

    def waits(self, column: str) -> bool:
        """Whether studio.toml keeps a hierarchy that the plan could use."""
        return self.held(column).where == "kept" and self.step_of(column) is not None

    def level_of(self, column: str) -> int | None:
        """The level that the plan gives to a column; None if it is searched for."""
        step = self.step_of(column)
        return None if step is None else self._steps[step].get("levels", {}).get(column)

    def check(self, column: str) -> str:
        """The column, if it has a hierarchy here."""
        if column not in self.columns:
            raise InputError(
                "This column is not generalized, since it is not a quasi-identifier. "
                f"{did_you_mean(column, self.columns)} Give it the role under Roles first."
            )
        return column


def _without_hierarchies(text: str, folder: Path) -> Plan:
    document = parsed_toml(text, PLAN)
    for step in document.get("steps", []):
        step.pop("hierarchies", None)
    return Plan.from_toml(tomlkit.dumps(document), folder=folder)


# -- reading


def place_of(studio: Studio, value: Value | None) -> Path | None:
    """The file of a hierarchy, below the folders that may be read; None if it has none."""
    return studio.dataset.allowed(value) if isinstance(value, str) else None


def read_file(place: Path) -> Hierarchy:
    """A file with a value and its labels on each line."""
    try:
        size = os.stat(place).st_size
    except OSError:
        raise ReadError(f"The hierarchy file '{place.name}' is missing. Import it again.") from None
    if size > LARGEST:
        raise ReadError(f"'{place.name}' is too large for an editable list. Use a rule instead.")
    return Hierarchy.from_csv(place)


# -- writing


def put(
    studio: Studio,
    what: str,
    hierarchies: Mapping[str, Hierarchy | Value | None],
    *,
    based_on: int | None = None,
) -> None:
    """Set hierarchies as one version; a list becomes a new file, and None removes one."""
    written: list[Path] = []

    try:
        with studio.project.changing(what, based_on=based_on) as (plan, settings):
            shelf = Shelf(studio)
            for column, given in hierarchies.items():
                value = given
                if isinstance(given, Hierarchy):
                    value = given.to_plan()
                    if not given.is_function:
                        written.append(_write(studio, column, given))
                        value = f"{FOLDER}/{written[-1].name}"
                step = shelf.step_of(column)
                if step is not None:
                    set_in(plan["steps"][step], ["hierarchies", column], _in_toml(value))
                    value = None
                set_in(settings, [KEPT, column], _in_toml(value))
    except ShoalError:
        for place in written:  # no version refers to them
            place.unlink(missing_ok=True)
        raise


def _in_toml(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    inline = tomlkit.inline_table()
    inline.update(value)
    return inline


def _write(studio: Studio, column: str, hierarchy: Hierarchy) -> Path:
    """A new file; a name that exists, or that a version of the plan uses, is not used again."""
    project = studio.project
    folder = project.folder / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    named = "".join(version.plan + version.studio for version in project.versions)
    bare, number = bare_name(column), 1
    while f"{FOLDER}/{bare}-{number}.csv" in named or (folder / f"{bare}-{number}.csv").exists():
        number += 1
    place = folder / f"{bare}-{number}.csv"
    with complete_files(folder) as aside:
        draft = aside / place.name
        draft.write_text(hierarchy.to_csv_text(), encoding="utf-8", newline="")
        if Hierarchy.from_csv(draft) != hierarchy:
            raise InputError(
                "The list has a value that a text file cannot hold, such as one that consists of "
                "spaces. Clean the column first."
            )
    return place
