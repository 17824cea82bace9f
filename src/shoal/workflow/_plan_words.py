"""A plan in words: how a notebook shows it, and hints for parts that it does not accept."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any

from shoal.masking import Masker, discover_maskers
from shoal.models import PrivacyModel
from shoal.notebook import listing, view
from shoal.table import Table, role_word
from shoal.workflow._require import Limit, in_toml, key_of, plain, value_of

if TYPE_CHECKING:
    from shoal.workflow._plan import Plan


def plan_view(plan: Plan) -> str:
    """The steps, the requirements and the roles, as far as there are any."""
    steps = [
        (place, step.method, _in_words(step.changed_params(public=True)))
        for place, step in enumerate(plan.steps, start=1)
    ]
    required = [(key_of(one), _in_words(value_of(one, public=True))) for one in plan.require]
    roles = [] if plan.roles is None else plan.roles.items()
    parts = [
        listing(("step", "method", "parameters"), steps, of="steps"),
        listing(("requires", ""), required),
        listing(("role", "column"), ((role_word(role), name) for role, name in roles)),
    ]
    return view(repr(plan), *compress(parts, map(bool, (steps, required, roles))))


def _in_words(value: Any) -> str:
    """One or more parameters in words."""
    shown = plain(value, public=True)
    if not isinstance(shown, Mapping):
        return str(shown)
    return ", ".join(
        f"{name} = {in_toml(one) if isinstance(one, Mapping) else one}"
        for name, one in shown.items()
    )


def called(given: Any) -> str:
    """The name of the given class, or of the class of the given object."""
    return given.__name__ if isinstance(given, type) else type(given).__name__


def as_plan(given: Any) -> str:
    """A hint for what was given instead of a plan."""
    if isinstance(given, Table):
        return "The table comes first: sh.protect(table, plan)."
    if isinstance(given, int):
        return f"Write k={given}: sh.protect(table, k={given})."
    if isinstance(given, Mapping):
        return "Write sh.Plan.from_dict(...) for plain data."
    if isinstance(given, str):
        return "Write sh.Plan.from_toml(...) for a text."
    return (
        "Write sh.Plan([...]) with the steps, or pass a list of steps or the path of a plan file."
    )


def as_step(given: Any) -> str:
    """A hint for what was given instead of a step."""
    if isinstance(given, (PrivacyModel, Limit)):
        return f"It is a requirement: write require=[sh.{called(given)}(...)]."
    made = discover_maskers().get(given) if isinstance(given, str) else given
    if isinstance(made, type) and issubclass(made, Masker):
        return f"Write sh.{called(made)}(...)."
    return "Write, for example, sh.Round(base=5)."


def as_requirement(given: Any) -> str:
    """A hint for what was given instead of a requirement."""
    if isinstance(given, Masker):
        return f"It is a step: write it among the steps, [sh.{called(given)}(...)]."
    return "Write, for example, sh.KAnonymity(5)."
