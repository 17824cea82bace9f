"""Proposed hierarchies beside a first plan: files for lists, and lines to copy into the plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.app.cli.output._files import write_whole
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Hierarchy, Table

FOLDER: Final = "hierarchies"
_ABOUT: Final = """\

# How values become coarser, proposed from the data: level by level up to *. Edit at will. Paths
# are relative to this file. A file lists values of the table: keep it as private as the table.
[steps.hierarchies]
"""
_ORDERED: Final = """\
# Mondrian cuts numbers and dates where it needs to; the other algorithms can use these.
"""


@dataclass(frozen=True)
class ProposedHierarchies:
    """What was proposed for each column, as a plan writes it, and which files are new or kept."""

    in_plan: Mapping[str, str | dict[str, Any]]
    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()

    def text(self, table: Table) -> str:
        """The lines below a step that generalizes by Mondrian."""
        ordered = [n for n in self.in_plan if table.kind(n) not in ("text", "boolean")]
        lines = [f"{in_plan(n, v)}\n" for n, v in self.in_plan.items() if n not in ordered]
        if ordered:
            lines += [_ORDERED, *(f"# {in_plan(n, self.in_plan[n])}\n" for n in ordered)]
        return f"{_ABOUT}{''.join(lines)}"


def in_plan(column: str, value: str | Mapping[str, Any]) -> str:
    """A hierarchy as a line of TOML.

    Examples
    --------
    >>> in_plan("age", {"intervals": [5, 10]})
    'age = { intervals = [5, 10] }'
    >>> in_plan("home town", "hierarchies/home_town.csv")
    '"home town" = "hierarchies/home_town.csv"'
    """
    import tomlkit

    key = column if re.fullmatch(r"[A-Za-z0-9_-]+", column) else _quoted(column)
    if isinstance(value, str):
        return f"{key} = {_quoted(value)}"
    options = (f"{name} = {tomlkit.item(option).as_string()}" for name, option in value.items())
    return f"{key} = {{ {', '.join(options)} }}"


def _quoted(text: str) -> str:
    import tomlkit

    return tomlkit.item(text).as_string()


def propose_hierarchies(table: Table, columns: Iterable[str], plan: Path) -> ProposedHierarchies:
    """Propose a hierarchy for each column, and write those that list values beside the plan.

    A file that is there already is never replaced: somebody may have edited it.
    """
    from shoal.table import Hierarchy

    folder = plan.parent / FOLDER
    found: dict[str, str | dict[str, Any]] = {}
    written, kept = [], []
    names = _file_names(columns)
    for column, name in names.items():
        proposed = Hierarchy.propose(table, column)
        if proposed.is_function:
            found[column] = proposed.to_plan()
            continue
        path = folder / name
        found[column] = f"{FOLDER}/{name}"
        if path.exists():
            kept.append(path)
        else:
            _write(path, proposed)
            written.append(path)
    return ProposedHierarchies(found, tuple(written), tuple(kept))


def _write(path: Path, hierarchy: Hierarchy) -> None:
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise InputError(
            f"'{path.parent}' is a file, where the hierarchies should go; move it away, or write "
            "the plan into another folder."
        ) from None
    write_whole(path, hierarchy.to_csv_text(), private=True)


def _file_names(columns: Iterable[str]) -> dict[str, str]:
    """A file name for each column, safe on every system and different from the others."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in columns:
        bare = re.sub(r"[^\w-]+", "_", column).strip("_")[:60] or "column"
        name, number = bare, 2
        while name.lower() in taken:
            name, number = f"{bare}_{number}", number + 1
        taken.add(name.lower())
        names[column] = f"{name}.csv"
    return names
