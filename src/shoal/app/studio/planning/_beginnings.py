"""First plans for four uses, made to fit the roles of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.app.cli._hierarchy import propose_hierarchies
from shoal.app.studio._project import PLAN, Project
from shoal.app.studio.planning._methods import WORDS
from shoal.errors import InputError
from shoal.models import LDiversity
from shoal.table import Table


@dataclass(frozen=True)
class Beginning:
    """A use of a release: when to choose it, and what its plan requires."""

    name: str
    title: str
    when: str
    step: Mapping[str, Any]
    k: int
    diversity: int
    limits: Mapping[str, float]


BEGINNINGS: Final = tuple(Beginning(name, **said) for name, said in WORDS["beginnings"].items())


def beginning_called(name: str) -> Beginning:
    for each in BEGINNINGS:
        if each.name == name:
            return each
    raise InputError("There is no such first plan. Choose one of the four.")


def plan_for(
    beginning: Beginning, table: Table, project: Project, made: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps and requirements; hierarchies that list values become files next to the plan."""
    columns = table.roles.quasi_identifiers
    if not columns:
        raise InputError(
            "No column is a quasi-identifier yet. Declare under Roles what an intruder may know."
        )
    k = min(beginning.k, table.person_count)
    step: dict[str, Any] = {**beginning.step, "k": k}
    require: dict[str, Any] = {"k_anonymity": k}
    least = diversity_of(table, beginning.diversity)
    if least is not None:
        require["l_diversity"] = least
        step["models"] = {"l_diversity": least}
    if step["method"] == "generalize":
        ordered = step["algorithm"] == "mondrian"
        step["hierarchies"] = hierarchies_in_plan(table, columns, project, made, ordered=ordered)
        if not step["hierarchies"]:
            del step["hierarchies"]
    return [step], require | dict(beginning.limits)


def diversity_of(table: Table, wanted: int) -> int | None:
    """How many different sensitive values every crowd can have; None if it cannot be required."""
    if not table.roles.sensitive:
        return None
    whole = table.drop(table.roles.quasi_identifiers)
    reached = int(LDiversity(2).level(whole))
    return min(wanted, reached) if reached > 1 else None


def hierarchies_in_plan(
    table: Table,
    columns: Iterable[str],
    project: Project,
    made: Mapping[str, Any],
    *,
    ordered: bool = False,
) -> dict[str, Any]:
    """The hierarchy of each column as in a plan: the one that was made, or a proposed one.

    ``ordered`` columns with a scale need none.
    """
    needed = [name for name in columns if not ordered or table.kind(name) in ("text", "boolean")]
    proposed = [name for name in needed if name not in made]
    found = propose_hierarchies(table, proposed, project.folder / PLAN).in_plan
    return {name: made[name] if name in made else found[name] for name in needed}
