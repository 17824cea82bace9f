"""A plan as a Python script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.models import PrivacyModel
from shoal.table import Hierarchy
from shoal.workflow import Limit, Plan

_WIDEST = 88


def python_of(plan: Plan, source: Path | None, reading: Mapping[str, Any]) -> str:
    """A script that reads the table, masks it with the plan and writes the release."""
    lines = ["import shoal as sh", ""]
    name = "people.csv" if source is None else source.name
    given = {} if plan.roles is None else plan.roles.to_dict()
    read = {"roles": _Code(_call("sh.Roles", [], given)), **reading}
    lines += [f"table = {_call('sh.read', [repr(name)], read)}"]
    steps = [_call(f"sh.{type(s).__name__}", [], s.changed_params()) for s in plan.steps]
    required = [_shown(requirement) for requirement in plan.require]
    switches = {
        switch: True
        for switch in ("keep_order", "accept_seed", "pseudonyms")
        if getattr(plan, switch)
    }
    named = {"require": _Code(_listed(required)), **switches}
    lines += [f"plan = {_call('sh.Plan', [_listed(steps)], named)}"]
    lines += ["release = sh.protect(table, plan)  # or RequirementNotMet, and nothing is released"]
    lines += ['release.save("release")', ""]
    return "\n".join(lines)


class _Code(str):
    """A text that is already code."""


def _call(function: str, arguments: list[str], named: Mapping[str, Any]) -> str:
    words = [*arguments, *(f"{name}={_shown(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(words)})"
    if len(line) <= _WIDEST and "\n" not in line:
        return line
    inside = "".join(f"    {_indented(word)},\n" for word in words)
    return f"{function}(\n{inside})"


def _listed(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) <= _WIDEST and "\n" not in line:
        return line
    return "[\n" + "".join(f"    {_indented(item)},\n" for item in items) + "]"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _shown(value: Any) -> str:
    if isinstance(value, _Code):
        return str(value)
    if isinstance(value, Limit):
        return f"sh.{value!r}"
    if isinstance(value, PrivacyModel):
        return _call(f"sh.{type(value).__name__}", [], value.changed_params())
    if isinstance(value, Hierarchy):
        return _shown(value.to_plan())
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_shown(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return _listed([_shown(each) for each in value])
    return repr(value)
