"""The hierarchy of each column: the given one, or one proposed from the data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import CodesWarning, InputError, about, did_you_mean, quoted
from shoal.parameters import Constraint
from shoal.table import QUANTITIES, Hierarchy, HierarchyCodes, Table, codes_in


@dataclass(frozen=True)
class Hierarchies(Constraint):
    """A hierarchy for some columns: a Hierarchy, the path of a file, or a kind of hierarchy."""

    words = (
        "a table (in Python a dict) of columns with their hierarchies, such as "
        "{'age': Hierarchy.intervals([5, 10])}"
    )
    #: A path reveals folders of a machine, and a list of values may name people.
    private = True

    def accepts(self, value: Any) -> bool:
        return (
            isinstance(value, Mapping)
            and all(isinstance(name, str) for name in value)
            and all(
                isinstance(one, (Hierarchy, str, os.PathLike, Mapping)) for one in value.values()
            )
        )

    def shown(self, value: Any) -> str:
        """For a table, the first column whose hierarchy is invalid; otherwise the type."""
        for name, one in value.items() if isinstance(value, Mapping) else ():
            if not self.accepts({name: one}):
                return f"{type(one).__name__} for '{name}'"
        return super().shown(value)

    def read(self, value: Any) -> Any:
        """Hierarchies from plain data."""
        if not isinstance(value, Mapping):
            return value
        made = {}
        for name, one in value.items():
            with about(f"The hierarchy of '{name}'"):
                made[name] = Hierarchy.from_plan(one)
        return made

    def relocate(self, value: Any, folder: Path) -> Any:
        """Resolve paths that are relative to a plan's folder."""
        if not isinstance(value, Mapping):
            return value
        return {
            name: os.fspath(folder / one) if isinstance(one, str) else one
            for name, one in value.items()
        }


def fixed_levels(
    given: Mapping[str, int], coded: Mapping[str, HierarchyCodes], columns: Sequence[str]
) -> tuple[int, ...]:
    """The level of every column to generalize, checked against its hierarchy."""
    lacking = [name for name in columns if name not in given]
    stray = [name for name in given if name not in columns]
    if lacking or stray:
        raise InputError(
            "'levels' must name a level for each of the columns to generalize and for no others; "
            f"missing: {quoted(lacking) or 'none'}, not to generalize: {quoted(stray) or 'none'}."
        )
    for name in columns:
        if given[name] >= coded[name].levels:
            raise InputError(
                f"The hierarchy of column '{name}' has levels 0 to {coded[name].levels - 1}; got "
                f"{given[name]}."
            )
    return tuple(given[name] for name in columns)


def hierarchies_for(
    given: Mapping[str, Any] | None, table: Table, columns: Sequence[str], *, ordered: bool
) -> tuple[dict[str, Hierarchy], tuple[str, ...]]:
    """The hierarchies of the columns, and which were proposed; ``ordered`` kinds need none."""
    named = {name: Hierarchy.from_plan(one) for name, one in (given or {}).items()}
    for name in named:
        if name not in columns:
            raise InputError(
                f"There is a hierarchy for '{name}', which is not a column to generalize. "
                f"{did_you_mean(name, columns)}"
            )
    codes = {name: codes_in(table, name) for name in columns if name not in named}
    for name, found in codes.items():
        if found is not None and found.doubt is not None:
            warnings.warn(f"Column '{name}' {found.doubt}.", CodesWarning, stacklevel=6)
    proposed = tuple(
        name
        for name, found in codes.items()
        if not (ordered and table.kind(name) in QUANTITIES)
        or (found is not None and found.are_codes)
    )
    return named | {name: Hierarchy.propose(table, name) for name in proposed}, proposed
