"""``shoal init``: write a first plan to edit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.app.cli._hierarchy import ProposedHierarchies, beside_plan
from shoal.app.cli._options import (
    AsJson,
    Data,
    Force,
    Reading,
    check_new,
    command,
    shown_source,
    write_whole,
)
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.table import Roles, Table


@command("""
shoal init people.csv
shoal init people.csv --out plans/people.toml --force
""")
def init(
    data: Data,
    reading: Reading,
    out: Path = Path("plan.toml"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a first plan to edit: suggested roles, steps that fit the columns, a requirement.

    Every line of the plan is explained in it. It runs as it is, but the roles are a guess that
    someone who knows the data has to check. Hierarchies that list values of the quasi-identifiers
    are written into the folder 'hierarchies' beside the plan; a file that is there already stays.

    Options
    -------
    out FILE: The plan to write.
    """
    from shoal import suggest_roles

    check_new(out, force=force)
    with Working("Reading the data") as working:
        loaded = reading.read(data)
        working("Comparing columns", 0.3)
        suggestion = suggest_roles(loaded)
        working("Proposing hierarchies", 0.7)
        plan = first_plan(loaded, suggestion.roles, out)
        write_whole(out, plan.text)
    if as_json:
        facts = {"plan": out, "roles": plan.roles.to_dict(), "k": plan.k, "require": plan.required}
        facts |= {"read": {} if loaded.manner is None else loaded.manner.options.to_dict()}
        found = plan.hierarchies
        ui.print_json(facts | {"hierarchies": found.in_plan, "files": found.written})
        return
    _show(plan, out)
    for note in suggestion.notes:
        if "unit" in note or "Are they missing?" in note:
            ui.say(note, style="yellow")
    _show_hierarchies(plan.hierarchies)
    ui.heading("Next: check the roles in the plan, then")
    source, words = shlex.quote(str(out)), shown_source(data, reading, kept=True)
    ui.command_line("shoal protect", *words, "--plan", source, "--dry-run")
    ui.command_line("shoal protect", *words, "--plan", source, "--out release")


def _show(plan: FirstPlan, out: Path) -> None:
    ui.heading(f"Wrote {ui.printable(out)}")
    if plan.roles.to_dict():
        ui.roles(plan.roles.to_dict())
    ui.say()
    if plan.roles.quasi_identifiers:
        ui.say(
            "As it is, the plan makes values coarser until nobody stands in a crowd of fewer than "
            f"{ui.count(plan.k, 'person' if plan.roles.unit else 'record')}"
            + (
                ", in which the sensitive columns have different values"
                if len(plan.required) > 1
                else ""
            )
            + "; no record is taken out. The reason for each choice stands in the plan."
        )
    else:
        ui.say(
            "No column looks like a quasi-identifier: name those that an intruder may know in "
            "the plan, or it cannot run."
        )


def _show_hierarchies(hierarchies: ProposedHierarchies) -> None:
    if hierarchies.written:
        ui.say()
        ui.say(
            f"Hierarchies are in {ui.listed(hierarchies.written)}: they list values of the table, "
            "so keep them as private as the table."
        )
    if hierarchies.kept:
        ui.say()
        ui.say(f"Left as they were: {ui.listed(hierarchies.kept)}.")


@dataclass(frozen=True)
class FirstPlan:
    """The text of a plan and the hierarchies beside it."""

    text: str
    roles: Roles
    k: int
    required: Mapping[str, Any]
    hierarchies: ProposedHierarchies


def first_plan(table: Table, roles: Roles, path: Path) -> FirstPlan:
    """A plan that runs as it is; hierarchies that list values are written beside ``path``."""
    from shoal.workflow.advice._suggest_plan import suggest_plan

    made = suggest_plan(table.with_roles(roles))
    found = beside_plan(made.hierarchies, path)
    files = {name: value for name, value in found.in_plan.items() if isinstance(value, str)}
    required = made.plan.to_dict()["require"]
    return FirstPlan(made.to_toml(files), roles, made.k, required, found)
