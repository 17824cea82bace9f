"""``shoal init``: write a first plan to edit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

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
    from shoal.workflow import PlanSuggestion


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
    """Write a first plan to edit, with suggested roles, steps that fit the columns and a
    requirement.

    The plan explains each of its lines. It runs without changes, but the roles are a guess:
    someone who knows the data has to check them. Hierarchies that list values of the
    quasi-identifiers go into the folder 'hierarchies' next to the plan. Existing files are kept.

    Options
    -------
    out FILE: The plan to write.
    """
    from shoal import suggest_roles
    from shoal.table import mixed_columns

    check_new(out, force=force)
    with Working("Reading the data") as working:
        named = [] if out == Path("plan.toml") else ["--out", shlex.quote(str(out))]
        loaded, missing, undo = reading.read_first(data, "shoal init", *named, "--force")
        working("Comparing columns", 0.3)
        suggestion = suggest_roles(loaded)
        open_questions = {one.sentence for one in mixed_columns(loaded)}
        working("Proposing hierarchies", 0.7)
        made, text, found = first_plan(
            loaded, suggestion.roles, out, missing_because=f"{missing} {undo}".strip()
        )
        write_whole(out, text)
    if as_json:
        required = made.plan.to_dict()["require"]
        facts = {"plan": out, "roles": made.roles.to_dict(), "k": made.k, "require": required}
        facts |= {"read": {} if loaded.manner is None else loaded.manner.options.to_dict()}
        ui.print_json(facts | {"hierarchies": found.in_plan, "files": found.written})
        return
    _show(made, out)
    if missing:
        ui.say(missing, style="yellow")
        ui.command_line(undo)
    for note in suggestion.notes:
        if "unit" in note or note in open_questions:
            ui.say(note, style="yellow")
    _show_hierarchies(found)
    ui.heading("Next: check the roles in the plan, then")
    source, words = shlex.quote(str(out)), shown_source(data, reading, kept=True)
    ui.command_line("shoal protect", *words, "--plan", source, "--dry-run")
    ui.command_line("shoal protect", *words, "--plan", source, "--out release")


def _show(made: PlanSuggestion, out: Path) -> None:
    ui.heading(f"Wrote {ui.printable(out)}")
    if made.roles.to_dict():
        ui.roles(made.roles.to_dict())
    ui.say()
    if made.roles.quasi_identifiers:
        ui.say(
            "The plan makes values coarser until every crowd has at least "
            f"{ui.count(made.k, 'person' if made.roles.unit else 'record')}"
            + (" and different values of the sensitive columns" if made.plan.require[1:] else "")
            + ". It removes no record. The plan gives the reason for each choice."
        )
    else:
        ui.say(
            "No column looks like a quasi-identifier. Before you run the plan, add the columns "
            "that an intruder may know."
        )


def _show_hierarchies(hierarchies: ProposedHierarchies) -> None:
    if hierarchies.written:
        ui.say()
        ui.say(
            f"The hierarchies are in {ui.listed(hierarchies.written)}. They list values from the "
            "table: keep them as private as the table."
        )
    if hierarchies.kept:
        ui.say()
        ui.say(f"Kept without changes: {ui.listed(hierarchies.kept)}.")


def first_plan(
    table: Table, roles: Roles, path: Path, *, missing_because: str = ""
) -> tuple[PlanSuggestion, str, ProposedHierarchies]:
    """A plan that runs without changes, its text, and its hierarchies.

    Hierarchies that list values are written next to ``path``.
    """
    from shoal.workflow import suggest_plan

    made = suggest_plan(table.with_roles(roles))
    found = beside_plan(made.hierarchies, path)
    files = {name: value for name, value in found.in_plan.items() if isinstance(value, str)}
    return made, made.to_toml(files, missing_because=missing_because), found
