"""First plans for four uses, made to fit the roles of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.app.cli._hierarchy import propose_hierarchies
from shoal.app.studio._project import PLAN, Project
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


BEGINNINGS: Final = (
    Beginning(
        "statistics",
        "Statistics office",
        "When a table is published for researchers and every column must have the same categories "
        "throughout, so that counts add up. Up to 2 % of the records may be left out.",
        {"method": "generalize", "algorithm": "full-domain", "suppression_limit": 0.02},
        5,
        2,
        {},
    ),
    Beginning(
        "hospital",
        "Hospital",
        "When patient records go to people who signed for them. Crowds of 11 keep the chance "
        "of being found below the 9 % that medicine agencies ask for; nobody is left out.",
        {"method": "generalize", "algorithm": "mondrian"},
        11,
        2,
        {},
    ),
    Beginning(
        "open",
        "Open data",
        "When anyone may download the table and link it with anything. Crowds are large, and an "
        "intruder's links are counted before the release.",
        {"method": "generalize", "algorithm": "local"},
        20,
        3,
        {"max_linkage_rate": 0.05},
    ),
    Beginning(
        "learning",
        "Machine learning",
        "When models learn from the table. Numbers stay numbers: similar records share one value, "
        "so no column turns into ranges.",
        {"method": "microaggregate", "dissimilarity": "gower"},
        5,
        2,
        {"max_linkage_rate": 0.2},
    ),
)


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
