"""Hierarchies on the command line: proposed, written to files, and shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.app.cli._options import AsJson, Data, Force, Reading, check_new, command, write_whole
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Hierarchy, HierarchyCodes, Table

FOLDER = "hierarchies"
_SHOWN = 8
_LABELS = 4


@dataclass(frozen=True)
class ProposedHierarchies:
    """The hierarchy of each column as a plan writes it, and which files are new or kept."""

    in_plan: Mapping[str, str | dict[str, Any]]
    written: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()


def propose_hierarchies(table: Table, columns: Iterable[str], plan: Path) -> ProposedHierarchies:
    """Propose a hierarchy for each column; write those that list values next to the plan."""
    from shoal.table import Hierarchy

    return beside_plan({name: Hierarchy.propose(table, name) for name in columns}, plan)


def beside_plan(proposed: Mapping[str, Hierarchy], plan: Path) -> ProposedHierarchies:
    """Write hierarchies that list values into files next to the plan.

    An existing file is never replaced: someone may have edited it.
    """
    folder = plan.parent / FOLDER
    found: dict[str, str | dict[str, Any]] = {}
    written, kept = [], []
    for column, name in _file_names(proposed).items():
        if proposed[column].is_function:
            found[column] = proposed[column].to_plan()
            continue
        path = folder / name
        found[column] = f"{FOLDER}/{name}"
        if path.exists():
            kept.append(path)
        else:
            _write(path, proposed[column])
            written.append(path)
    return ProposedHierarchies(found, tuple(written), tuple(kept))


def _write(path: Path, hierarchy: Hierarchy) -> None:
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise InputError(
            f"'{path.parent}' is a file, but the hierarchies need a folder of that name. Move the "
            "file, or write the plan into another folder."
        ) from None
    write_whole(path, hierarchy.to_csv_text(), private=True)


def bare_name(column: str) -> str:
    """A file name for a column, safe on every system."""
    return re.sub(r"[^\w-]+", "_", column).strip("_")[:60] or "column"


def _file_names(columns: Iterable[str]) -> dict[str, str]:
    """A file name for each column, different from the others."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in columns:
        bare = bare_name(column)
        name, number = bare, 2
        while name.lower() in taken:
            name, number = f"{bare}_{number}", number + 1
        taken.add(name.lower())
        names[column] = f"{name}.csv"
    return names


def _kinds() -> list[str]:
    """The kinds that a shell completes."""
    from shoal.table.hierarchy._propose import KINDS

    return list(KINDS)


@command("""
shoal hierarchy people.csv age
shoal hierarchy people.csv income --kind quantiles
shoal hierarchy people.csv occupation --out hierarchies/occupation.csv
""")
def hierarchy(
    data: Data,
    column: str,
    reading: Reading,
    kind: Annotated[str | None, typer.Option(autocompletion=_kinds)] = None,
    out: Path | None = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Propose a hierarchy for a column and show its levels.

    Level 0 is the value itself; the last level is * for every value. Numbers get intervals, dates
    get calendar units, and postcodes get prefixes. Other values are grouped by order or because
    they are rare. A hierarchy that lists values, including rare ones, is as private as the table.

    Arguments
    ---------
    column COLUMN: The column.

    Options
    -------
    kind KIND: Use this kind instead of the best match: intervals, sizes, quantiles, rounding,
        dates, prefixes, ordered, frequency or suppression.
    out FILE: Write the hierarchy as a CSV file to edit, with one line for each value of the column.
    """
    from shoal.table import Hierarchy
    from shoal.workflow.advice._suggest_plan import assignment

    if out is not None:
        check_new(out, force=force)
    with Working("Reading the data") as working:
        loaded = reading.read(data)
        working("Comparing values", 0.7)
        found = Hierarchy.propose(loaded, column, kind=kind)
        codes = found.codes(loaded, column)
        if out is not None:
            write_whole(out, found.listed(loaded, column).to_csv_text(), private=True)
    if as_json:
        ui.print_json(_facts(column, found, codes, out))
        return
    _show(column, found, codes)
    if out is not None:
        ui.heading(f"Wrote {ui.printable(out)}")
        values = ui.count(len(codes.column.levels), "value")
        ui.say(f"It lists {values} from the table. Keep it as private as the table.")
    ui.heading("In a plan")
    named = found.to_plan() if found.is_function or out is None else out.as_posix()
    if found.is_function or out is not None:
        ui.console().print(f"  {ui.printable(assignment(column, named))}", soft_wrap=True)
    else:
        ui.say(
            "Write it with --out FILE, then put the file's path, relative to the plan, into "
            "the plan."
        )


def _facts(
    column: str, found: Hierarchy, codes: HierarchyCodes, out: Path | None
) -> dict[str, Any]:
    return {
        "column": column,
        "hierarchy": found.to_plan(),
        "is_function": found.is_function,
        "levels": [
            {"level": level, "nodes": codes.nodes(level)}
            | ({} if level == 0 else {"labels": list(codes.labels[level])})
            for level in range(codes.levels)
        ],
        "file": out,
    }


def _show(column: str, found: Hierarchy, codes: HierarchyCodes) -> None:
    ui.heading(f"Hierarchy of {ui.printable(column)}: {str(found).partition(', ')[2]}")
    rows = []
    for level in range(codes.levels):
        labels = [label for label in codes.labels[level] if label is not None]
        # level 0 holds cells of the table; a function need not show them
        said = "the values themselves" if level == 0 else ", ".join(labels[:_LABELS])
        more = f" and {len(labels) - _LABELS:,} more" if level and len(labels) > _LABELS else ""
        rows.append((str(level), ui.number(codes.nodes(level)), said + more))
    ui.table(("level", "values", "such as"), rows, numeric=(0, 1))
    if codes.column.missing is not None:
        ui.say("A missing value stays missing until the last level and counts as one value.")
    if found.is_function:
        return
    ui.heading("First lines")
    head = [f"level {level}" for level in range(codes.levels)]
    ui.table(head, found.rows[:_SHOWN])
    if len(found.rows) > _SHOWN:
        ui.note(
            f"{ui.count(len(found.rows) - _SHOWN, 'further line')}; use --out FILE to write all "
            "of them."
        )
