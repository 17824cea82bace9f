"""A first plan for a table: its suggested roles, one step that generalizes, one requirement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.app.cli._hierarchy import ProposedHierarchies, propose_hierarchies
from shoal.app.cli.output._plan_text import StepText, plan_text
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Roles, Table

_REMARK = """\
Values become coarser until nobody stands in a crowd of fewer than {k}; no record is lost.
# "mondrian" gives every record the smallest box that is safe, "local" does so with hierarchies
# alone, "full-domain" finds the best single level for each column."""


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
    others = [name for name in table.columns if roles.of(name) is None]
    hierarchies = propose_hierarchies(table, roles.quasi_identifiers, path)
    steps = []
    if roles.quasi_identifiers:
        parameters = {"algorithm": "mondrian", "k": k}
        below = hierarchies.text(table)
        steps.append(StepText(_REMARK.format(k=k), "generalize", parameters, below))
    return FirstPlan(plan_text(roles, steps, k, others=others), roles, k, hierarchies)
