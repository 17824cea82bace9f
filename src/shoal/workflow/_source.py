"""Whether a source is the one that a plan was made for: its columns and what they hold.

A plan that runs every night meets other tables than the one it was written for. A new column may be
the most sensitive of all, and a column of dates that reads as text is masked as text. So both are
told before anything is masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final

from shoal.errors import InputError, SourceWarning, quoted

if TYPE_CHECKING:
    from shoal.table import Table
    from shoal.workflow._plan import Plan

#: Kinds that are masked alike.
_FAMILIES: Final = {"float": "integer", "datetime": "date"}


def check_source(kinds: Mapping[str, str], plan: Plan, empty: Container[str] = ()) -> list[str]:
    """The columns of a source to leave out; InputError where it is not the one that was meant.

    ``kinds`` has the kind of each column, and ``empty`` those without a value, whose kind says
    nothing.
    """
    recorded = (plan.read.columns if plan.read is not None else None) or {}
    new = [name for name in kinds if name not in _known_columns(plan)]
    if new and plan.unlisted == "refuse":
        raise InputError(
            f"The source has columns that the plan does not know: {quoted(new)}. Give each a role "
            'in the plan, or say unlisted = "drop" there to leave such columns out. Nothing was '
            "masked."
        )
    _refuse_other_kinds(kinds, recorded, empty)
    gone = [name for name in recorded if name not in kinds]
    if gone:
        _warn(f"The source no longer has columns that the plan was made for: {quoted(gone)}.")
    if new and plan.unlisted == "drop":
        _warn(f"Columns that the plan does not know are left out: {quoted(new)}.")
        return new
    if new and recorded and plan.unlisted is None:
        _warn(f"The source has columns that the plan does not know: {quoted(new)}.")
    return []


def as_planned(table: Table, plan: Plan) -> Table:
    """The table without the columns that a plan leaves out; or it is refused."""
    if plan.unlisted is None and plan.read is None:
        return table
    kinds = {name: table.kind(name) for name in table.columns}
    empty = [name for name in table.columns if table.missing_count(name) == len(table)]
    return table.drop(check_source(kinds, plan, empty))


def _known_columns(plan: Plan) -> set[str]:
    """The columns that a plan names anywhere."""
    known = set((plan.read.columns if plan.read is not None else None) or {})
    known |= {name for _, name in plan.roles.items()} if plan.roles is not None else set()
    for step in plan.steps:
        known |= {*(getattr(step, "columns", None) or ())}
        known |= {*(getattr(step, "hierarchies", None) or ())}
    return known


def _refuse_other_kinds(
    kinds: Mapping[str, str], recorded: Mapping[str, str], empty: Container[str]
) -> None:
    """What reads as another kind now was written in another way, and would be masked in another."""
    other = {
        name: (kind, kinds[name])
        for name, kind in recorded.items()
        if name in kinds and name not in empty and kinds[name] != kind
    }
    apart = {
        name: pair
        for name, pair in other.items()
        if _FAMILIES.get(pair[0], pair[0]) != _FAMILIES.get(pair[1], pair[1])
    }
    if apart:
        told = "; ".join(f"'{name}' is {now}, and was {was}" for name, (was, now) in apart.items())
        raise InputError(
            f"The source now reads differently than when the plan was made: {told}. Look at what "
            "is new in it (a text for a missing value, another way of writing), say so under "
            "[read] of the plan, or change its [read.columns]. Nothing was masked."
        )
    if other:
        told = "; ".join(f"'{name}' is {now}, and was {was}" for name, (was, now) in other.items())
        _warn(f"The source now reads a little differently than when the plan was made: {told}.")


def _warn(text: str) -> None:
    warnings.warn(text, SourceWarning, stacklevel=6)
