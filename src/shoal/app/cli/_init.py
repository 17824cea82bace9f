"""``shoal init``: write a first plan to edit."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.app.cli._hierarchy import ProposedHierarchies, in_plan, propose_hierarchies
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
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Roles, Table

_WIDEST = 88


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
        facts = {"plan": out, "roles": plan.roles.to_dict(), "k": plan.k}
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
    ui.command_line("shoal assess", *words, "--plan", source)
    ui.command_line("shoal protect", *words, "--plan", source, "--out release")


def _show(plan: FirstPlan, out: Path) -> None:
    ui.heading(f"Wrote {ui.printable(out)}")
    if plan.roles.to_dict():
        ui.roles(plan.roles.to_dict())
    ui.say()
    if plan.roles.quasi_identifiers:
        ui.say(
            "As it is, the plan makes values coarser until nobody stands in a crowd of fewer than "
            f"{ui.count(plan.k, 'person' if plan.roles.unit else 'record')}; no record is taken "
            "out."
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
    hierarchies: ProposedHierarchies


def first_plan(table: Table, roles: Roles, path: Path, *, k: int = 5) -> FirstPlan:
    """A plan that runs as it is; hierarchies that list values are written beside ``path``."""
    from jinja2 import Environment

    if len(table) < 2:
        raise InputError(f"A plan needs a table of 2 records or more; this one has {len(table)}.")
    k = min(k, len(table))
    found = propose_hierarchies(table, roles.quasi_identifiers, path)
    lines = {column: in_plan(column, value) for column, value in found.in_plan.items()}
    numbers = [column for column in lines if table.kind(column) not in ("text", "boolean")]
    plain_text = Environment(trim_blocks=True, keep_trailing_newline=True, autoescape=False)
    template = Path(__file__).with_name("plan.toml.j2").read_text(encoding="utf-8")
    text = plain_text.from_string(template).render(
        roles={"quasi_identifiers": [], **roles.to_dict()},
        others=[name for name in table.columns if roles.of(name) is None],
        hierarchies=[line for column, line in lines.items() if column not in numbers],
        of_numbers=[lines[column] for column in numbers],
        assignment=_assignment,
        read=_reading_lines(table),
        columns={name: table.kind(name) for name in table.columns},
        k=k,
    )
    return FirstPlan(text, roles, k, found)


def _reading_lines(table: Table) -> list[str]:
    """How the table was read, as lines of TOML."""
    said = {} if table.manner is None else table.manner.options.to_dict()
    return [
        in_plan(name, value) if isinstance(value, dict) else _assignment(name, value)
        for name, value in said.items()
    ]


def _assignment(name: str, value: Any) -> str:
    """A line of TOML; a list that is too long for a line, one item per line."""
    import tomlkit

    name = tomlkit.key(name).as_string()
    if not isinstance(value, list):
        return f"{name} = {tomlkit.item(value).as_string()}"
    items = [tomlkit.item(item).as_string() for item in value]
    line = f"{name} = [{', '.join(items)}]"
    if len(line) <= _WIDEST:
        return line
    return f"{name} = [\n" + "".join(f"    {item},\n" for item in items) + "]"
