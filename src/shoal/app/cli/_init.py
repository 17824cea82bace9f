"""``shoal init``: write a first plan to edit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.app.cli._hierarchy import ProposedHierarchies, propose_hierarchies
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
        found = plan.hierarchies
        ui.print_json(facts | {"hierarchies": found.in_plan, "files": found.written})
        return
    _show(plan, out)
    for note in suggestion.notes:
        if "unit" in note:
            ui.say(note, style="yellow")
    _show_hierarchies(plan.hierarchies)
    ui.heading("Next: check the roles in the plan, then")
    source, words = shlex.quote(str(out)), shown_source(data, reading)
    ui.command_line("shoal assess", *words, "--plan", source)
    ui.command_line("shoal protect", *words, "--plan", source, "--out release")


def _show(plan: FirstPlan, out: Path) -> None:
    ui.heading(f"Wrote {ui.printable(out)}")
    if plan.roles.to_dict():
        ui.roles(plan.roles.to_dict())
    ui.say()
    if plan.runs:
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
    """The text of a plan and the hierarchies beside it.

    ``runs`` is false where there is no quasi-identifier, so that the plan cannot run yet.
    """

    text: str
    roles: Roles
    k: int
    hierarchies: ProposedHierarchies

    @property
    def runs(self) -> bool:
        return bool(self.roles.quasi_identifiers)


def first_plan(table: Table, roles: Roles, path: Path, *, k: int = 5) -> FirstPlan:
    """A plan that runs as it is; hierarchies that list values are written beside ``path``."""
    if len(table) < 2:
        raise InputError(f"A plan needs a table of 2 records or more; this one has {len(table)}.")
    k = min(k, len(table))
    hierarchies = propose_hierarchies(table, roles.quasi_identifiers, path)
    return FirstPlan(_plan_text(table, roles, k, hierarchies), roles, k, hierarchies)


_WIDEST: Final = 88

_HEAD: Final = """\
# A first plan, written by 'shoal init'. It is a guess: check the roles, then the steps.
# 'shoal methods' explains every method, 'shoal assess DATA --plan THIS' the exposure now.
# Rows are shuffled in the release; keep_order = true (up here) would leave them in place.
"""
_ROLES: Final = """\
# Who is who. A column in no list leaves as it is; one that looks like an identifier must be
# under identifiers, or under insensitive if it may leave.
[roles]
"""
_ABOUT_ROLES: Final = {
    "identifiers": "name a person by themselves: taken out of every release",
    "quasi_identifiers": "what an intruder may know: masked, and counted for k",
    "sensitive": "what nobody should learn about a person",
    "insensitive": "may leave as they are",
    "weight": "how many people of the population a record stands for",
    "target": "what a model is to predict",
    "unit": 'whose row it is: k counts these persons; "row" says that each row is a person',
    "household": "who lives together: sampled and suppressed as a whole",
}
_STEP: Final = """\
# Values become coarser until nobody stands in a crowd of fewer than {k}; no record is lost.
# "mondrian" gives every record the smallest box that is safe, "local" does so with hierarchies
# alone, "full-domain" finds the best single level for each column.
[[steps]]
method = "generalize"
algorithm = "mondrian"
k = {k}
"""
_REQUIRE: Final = """\
# What must hold after masking, checked by other code than masks; else nothing is written.
# Further limits: max_<measure> or min_<measure>, as listed by 'shoal methods'.
[require]
k_anonymity = {k}  # nobody stands in a crowd of fewer than {k}
"""


def _plan_text(table: Table, roles: Roles, k: int, hierarchies: ProposedHierarchies) -> str:
    """The plan as TOML with a remark on every part."""
    others = [name for name in table.columns if roles.of(name) is None]
    parts = [_HEAD, _roles_text(roles, others), _REQUIRE.format(k=k)]
    if roles.quasi_identifiers:
        parts.insert(2, _STEP.format(k=k) + hierarchies.text(table))
    return "\n".join(parts)


def _roles_text(roles: Roles, others: Sequence[str]) -> str:
    given: dict[str, Any] = {"quasi_identifiers": [], **roles.to_dict()}
    lines = [
        f"# {about}\n{role} = {_value(given[role], role)}\n"
        for role, about in _ABOUT_ROLES.items()
        if role in given
    ]
    if others:
        listed = f"insensitive = {_value(list(others), 'insensitive')}"
        lines.append("# in no list; take the marks away if they may leave as they are\n")
        lines += [f"# {line}\n" for line in listed.splitlines()]
    return _ROLES + "".join(lines)


def _value(value: Any, name: str) -> str:
    """A value in TOML; a list that is too long for a line, one item per line."""
    import tomlkit

    if not isinstance(value, list):
        return tomlkit.item(value).as_string()
    items = [tomlkit.item(item).as_string() for item in value]
    line = f"[{', '.join(items)}]"
    if len(name) + 3 + len(line) <= _WIDEST:
        return line
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
