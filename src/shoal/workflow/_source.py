"""Whether a source matches the plan: its columns and their kinds.

A plan that runs every night meets tables that differ from the one it was written for. A new column
may be the most sensitive of all, and a date column that reads as text is masked as text. So both
are reported before anything is masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final

from shoal.errors import InputError, SourceWarning, did_you_mean, quoted

if TYPE_CHECKING:
    from shoal.table import Table
    from shoal.workflow._plan import Plan

#: Kinds that are masked in the same way.
_FAMILIES: Final = {"float": "integer", "datetime": "date"}


def check_source(kinds: Mapping[str, str], plan: Plan, empty: Container[str] = ()) -> list[str]:
    """The columns of a source to leave out; raises InputError if the source does not fit the plan.

    ``kinds`` has the kind of each column. ``empty`` lists columns without a value; their kind
    means nothing.
    """
    for name in plan.release.reasons:
        if name not in kinds:
            raise InputError(
                f"[release.reasons] names column '{name}', which the source does not have. "
                f"{did_you_mean(name, kinds)}"
            )
    recorded = plan.recorded_kinds
    roles = plan.roles.items() if plan.roles is not None else []
    known = {*recorded, *(name for _, name in roles), *plan.columns_of_steps()}
    new = [name for name in kinds if name not in known]
    if new and plan.unlisted == "refuse":
        raise InputError(
            f"The source has columns that the plan does not list: {quoted(new)}. Give each a role "
            'in the plan, or set unlisted = "drop" there to leave out such columns. Nothing was '
            "masked."
        )
    _refuse_other_kinds(kinds, recorded, empty)
    gone = [name for name in recorded if name not in kinds]
    if gone:
        _warn(f"The source no longer has columns that the plan was made for: {quoted(gone)}.")
    if new and plan.unlisted == "drop":
        _warn(f"Columns that the plan does not list are left out: {quoted(new)}.")
        return new
    if new and recorded and plan.unlisted is None:
        _warn(f"The source has columns that the plan does not list: {quoted(new)}.")
    return []


def as_planned(table: Table, plan: Plan) -> Table:
    """The table without the columns that a plan leaves out."""
    if plan.unlisted is None and plan.read is None and not plan.release.reasons:
        return table
    follows = {*table.dictionary.reasons.values()} - {*plan.recorded_kinds}  # with the explained
    kinds = {name: table.kind(name) for name in table.columns if name not in follows}
    empty = [name for name in table.columns if table.missing_count(name) == len(table)]
    return table.drop(check_source(kinds, plan, empty))


def _refuse_other_kinds(
    kinds: Mapping[str, str], recorded: Mapping[str, str], empty: Container[str]
) -> None:
    """Report columns that now read as another kind and would be masked differently."""
    other = {
        name: (kind, kinds[name])
        for name, kind in recorded.items()
        if name in kinds and name not in empty and kinds[name] != kind
    }
    apart = {
        name: pair for name, pair in other.items() if len({_FAMILIES.get(k, k) for k in pair}) > 1
    }
    listed = (apart or other).items()
    diff = "; ".join(f"'{name}' is {now} but was {was}" for name, (was, now) in listed)
    if apart:
        raise InputError(
            f"The source reads differently than when the plan was made: {diff}. Check what is new "
            "in it, such as a text for a missing value or another notation. Then declare that "
            "under [read] in the plan, or change its [read.columns]. Nothing was masked."
        )
    if other:
        _warn(f"The source reads slightly differently than when the plan was made: {diff}.")


def _warn(text: str) -> None:
    warnings.warn(text, SourceWarning, stacklevel=6)
