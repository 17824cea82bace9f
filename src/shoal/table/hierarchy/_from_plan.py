"""Hierarchies as plans write them: a path, or a table with the kind and its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from shoal.errors import PlanError, did_you_mean
from shoal.table.hierarchy._hierarchy import Hierarchy

#: What each kind is made by, and the options that may stand beside it.
_KINDS: Final[dict[str, tuple[Callable[..., Hierarchy], tuple[str, ...]]]] = {
    "intervals": (Hierarchy.intervals, ("origin", "levels")),
    "edges": (lambda edges, **options: Hierarchy.intervals(edges=edges, **options), ("levels",)),
    "rounding": (Hierarchy.rounding, ()),
    "prefixes": (Hierarchy.prefixes, ("pad",)),
    "dates": (Hierarchy.dates, ()),
    "ordered": (Hierarchy.ordered, ("fan_out", "groups")),
    "tree": (Hierarchy.tree, ()),
    "rows": (Hierarchy.from_rows, ()),
    "suppression": (lambda _: Hierarchy.suppression(), ()),
}


def from_plan(value: Any, folder: str | os.PathLike[str] | None) -> Hierarchy:
    """A hierarchy from a path, a table, or one that is a Hierarchy already."""
    if isinstance(value, Hierarchy):
        return value
    if isinstance(value, (str, os.PathLike)):
        read = Hierarchy.from_csv(Path(folder or "") / value)
        return replace(read, source=os.fspath(value))
    if not isinstance(value, Mapping):
        raise PlanError(
            "A hierarchy in a plan is the path of a file or a table such as "
            f"{{ intervals = [5, 10] }}; got {type(value).__name__}."
        )
    kinds = [name for name in value if name in _KINDS]
    if len(kinds) != 1:
        stray = next((str(name) for name in value if name not in _KINDS), "")
        raise PlanError(
            f"A hierarchy in a plan names one kind; this one names {len(kinds)}. "
            f"{did_you_mean(stray, _KINDS)}"
        )
    make, options = _KINDS[kinds[0]]
    for name in value:
        if name != kinds[0] and name not in options:
            raise PlanError(
                f"A hierarchy of '{kinds[0]}' has no option '{name}'. "
                f"{did_you_mean(str(name), (kinds[0], *options))}"
            )
    given = {name: option for name, option in value.items() if name != kinds[0]}
    try:
        return make(value[kinds[0]], **given)
    except (TypeError, AttributeError):
        # a wrong shape of value, worded by Python, which may quote it
        raise PlanError(
            f"A hierarchy of '{kinds[0]}' cannot be made of "
            f"{type(value[kinds[0]]).__name__}; see the page on hierarchies."
        ) from None
