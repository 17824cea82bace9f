"""``shoal init``: write a first plan to edit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from shoal.app.cli._first_plan import FirstPlan, first_plan
from shoal.app.cli._hierarchy import ProposedHierarchies
from shoal.app.cli._sources import AsJson, Data, Force, Reading, reads_data
from shoal.app.cli.output._files import check_new, write_whole
from shoal.app.cli.output._next import shown_source, with_examples
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show import (
    command_line,
    count,
    heading,
    listed,
    print_json,
    printable,
    say,
    show,
    table,
)


@with_examples("""
shoal init people.csv
shoal init people.csv --out plans/people.toml --force
""")
@reads_data
def init(
    data: Data,
    reading: Reading,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The plan to write.")] = Path(
        "plan.toml"
    ),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a first plan to edit: suggested roles, steps that fit the columns, a requirement.

    Every line of the plan is explained in it. It runs as it is, but the roles are a guess that
    someone who knows the data has to check. Hierarchies that list values of the quasi-identifiers
    are written into the folder 'hierarchies' beside the plan; a file that is there already stays.
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
        found = plan.hierarchies
        print_json(facts | {"hierarchies": found.in_plan, "files": found.written})
        return
    _show(plan, out)
    for note in suggestion.notes:
        if "unit" in note:
            say(note, style="yellow")
    _show_hierarchies(plan.hierarchies)
    heading("Next: check the roles in the plan, then")
    source, words = shlex.quote(str(out)), shown_source(data, reading)
    command_line("shoal assess", *words, "--plan", source)
    command_line("shoal protect", *words, "--plan", source, "--out release")


def _show(plan: FirstPlan, out: Path) -> None:
    heading(f"Wrote {printable(out)}")
    roles = plan.roles.to_dict()
    if roles:
        show(
            table(
                ("role", "columns"),
                (
                    (role.replace("_", "-"), listed([names] if isinstance(names, str) else names))
                    for role, names in roles.items()
                ),
            )
        )
    say()
    if plan.runs:
        say(
            "As it is, the plan makes values coarser until nobody stands in a crowd of fewer than "
            f"{count(plan.k, 'person' if plan.roles.unit else 'record')}; no record is taken out."
        )
    else:
        say(
            "No column looks like a quasi-identifier: name those that an intruder may know in "
            "the plan, or it cannot run."
        )


def _show_hierarchies(hierarchies: ProposedHierarchies) -> None:
    if hierarchies.written:
        say()
        say(
            f"Hierarchies are in {listed(hierarchies.written)}: they list values of the table, so "
            "keep them as private as the table."
        )
    if hierarchies.kept:
        say()
        say(f"Left as they were: {listed(hierarchies.kept)}.")
