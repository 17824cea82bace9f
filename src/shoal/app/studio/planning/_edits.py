"""Edits of a plan's text: steps and requirements are added, changed, moved and removed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import AoT

from shoal.app.studio._project import Conflict, Project
from shoal.errors import InputError
from shoal.masking import Masker


def raw_plan(text: str) -> dict[str, Any]:
    """A plan as it is written, even if Shoal does not understand it; empty if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def steps_in(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of a plan as they are written."""
    steps = raw.get("steps", [])
    return [dict(one) for one in steps if isinstance(one, Mapping)] if _is_list(steps) else []


def parameters_in(raw: Mapping[str, Any], cls: type[Masker]) -> dict[str, Any]:
    """The parameters of a step as it is written, under their current names."""
    return {cls.renamed.get(n, n): value for n, value in raw.items() if n != "method"}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def shown_at(project: Project, version: int) -> dict[str, Any]:
    """The plan as a page of an earlier version showed it."""
    for each in project.versions:
        if each.number == version:
            return raw_plan(each.plan)
    raise Conflict("The page shows a version that no longer exists. Reload it.")


def check_step(project: Project, version: int, plan: Any, number: int) -> None:
    """Raise Conflict if a step is not what the page showed."""
    shown, now = steps_in(shown_at(project, version)), steps_in(plan.unwrap())
    if not 0 <= number < len(shown):
        raise InputError("The plan has no such step. Reload the page.")
    if number >= len(now) or now[number] != shown[number]:
        raise Conflict(
            f"Step {number + 1} was changed in the meantime, in another tab or in an editor. Look "
            "at its current state, and repeat your change."
        )


def check_requirement(project: Project, version: int, plan: Any, key: str, place: int) -> None:
    """Raise Conflict if a requirement is not what the page showed."""
    shown = _requirement(shown_at(project, version), key, place)
    if shown is None:
        raise InputError("The plan has no such requirement. Reload the page.")
    if _requirement(plan.unwrap(), key, place) != shown:
        raise Conflict(
            "This requirement was changed in the meantime, in another tab or in an editor. Look "
            "at its current state, and repeat your change."
        )


def _requirement(raw: Mapping[str, Any], key: str, place: int) -> Any:
    asked = raw.get("require", {})
    value = asked.get(key) if isinstance(asked, Mapping) else None
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return listed[place] if 0 <= place < len(listed) else None


# -- steps


def add_step(plan: Any, step: Mapping[str, Any], at: int | None = None) -> None:
    """Insert a step at a place, by default at the end."""
    if "steps" not in plan:
        plan["steps"] = tomlkit.aot()
    steps = plan["steps"]
    entry = _new_table(step) if isinstance(steps, AoT) else _item(step)
    steps.insert(len(steps) if at is None else at, entry)


def change_step(plan: Any, number: int, values: Mapping[str, Any]) -> None:
    """Change the parameters of a step; the others keep their lines and comments."""
    entry = plan["steps"][number]
    for name in [name for name in entry if name != "method" and name not in values]:
        del entry[name]
    for name, value in values.items():
        if name in entry and _unwrapped(entry[name]) == value:
            continue
        if name == "hierarchies" and name in entry and isinstance(value, Mapping):
            _change_table(entry[name], value)
        else:
            entry[name] = _item(value)


def _change_table(table: Any, values: Mapping[str, Any]) -> None:
    for name in [name for name in table if name not in values]:
        del table[name]
    for name, value in values.items():
        if name not in table or _unwrapped(table[name]) != value:
            table[name] = _item(value)


def move_step(plan: Any, number: int, by: int) -> None:
    """Move a step up or down; it stays within the list."""
    steps = plan["steps"]
    to = min(max(number + by, 0), len(steps) - 1)
    if to != number:
        entry = steps[number]
        del steps[number]
        steps.insert(to, entry)


def remove_step(plan: Any, number: int) -> None:
    """Remove a step."""
    del plan["steps"][number]
    if not len(plan["steps"]):
        del plan["steps"]


def replace_all(
    plan: Any, steps: Sequence[Mapping[str, Any]], require: Mapping[str, Any] | None = None
) -> None:
    """Replace all steps, and all requirements if new ones are given."""
    if "steps" in plan:
        del plan["steps"]
    if require is not None and "require" in plan:
        del plan["require"]
    for step in steps:
        add_step(plan, step)
    for key, value in (require or {}).items():
        set_requirement(plan, key, 0, value)


# -- requirements


def set_requirement(plan: Any, key: str, place: int | None, value: Any) -> None:
    """Set a requirement at a place among those of its name, or add one; None removes it."""
    if "require" not in plan:
        plan["require"] = tomlkit.table()
    asked = plan["require"]
    before = _unwrapped(asked[key]) if key in asked else []
    listed = before if isinstance(before, list) else [before]
    if place is None:
        listed.append(value)
    else:
        listed[place : place + 1] = [] if value is None else [value]
    if listed:
        asked[key] = _item(listed[0] if len(listed) == 1 else listed)
        return
    del asked[key]
    if not len(asked):
        del plan["require"]


# -- values


def _unwrapped(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item


def _new_table(step: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    for name, value in step.items():
        if name != "hierarchies":
            table[name] = _item(value)
    if step.get("hierarchies"):
        below = tomlkit.table()
        for column, hierarchy in step["hierarchies"].items():
            below[column] = _item(hierarchy)
        table["hierarchies"] = below
        below.add(tomlkit.nl())
    else:
        table.add(tomlkit.nl())
    return table


def _item(value: Any) -> Any:
    """A value on one line, with inline tables."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for name, one in value.items():
            table[name] = _item(one)
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        for one in value:
            array.append(_item(one))
        return array
    return tomlkit.item(value)
