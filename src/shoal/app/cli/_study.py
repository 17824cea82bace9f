"""``shoal study``: experiments over tables, methods and seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shoal.app.cli._options import AsJson, Names, command, split_names
from shoal.app.cli.output import ui
from shoal.app.cli.output._errors import resumable
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError
from shoal.hints import under_new_names

if TYPE_CHECKING:
    from shoal.study import TableSource

_MOST_SHOWN = 20
_MOST_TABLES = 6
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _names() -> list[str]:
    """The names that a shell completes."""
    from shoal.study import built_in_studies

    return ["list", "fetch", "show", *built_in_studies()]


@command("""
# the built-in experiments
shoal study list

# download the tables of one of them
shoal study fetch swap-correlations

# the study itself, in minutes; --preset full runs the paper's whole grid
shoal study swap-correlations --out study/

# the same on your table; a folder of tables or a TOML file with [[tables]] works too
shoal study tradeoff --table people.csv --target income --without name,email --out study/

# your own study, for at most two hours; the same command resumes it
shoal study compare.toml --out study/ --seconds 2h
shoal study show study/
""")
def study(
    name: Annotated[str, typer.Option(autocompletion=_names)],
    folder: Path | None = None,
    out: Path | None = None,
    preset: Literal["quick", "full"] = "quick",
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
    backend: Literal["loky", "dask", "spark"] = "loky",
    seconds: str | None = None,
    budget: Annotated[str | None, typer.Option(hidden=True)] = None,
    retry: bool = False,
    table: list[Path] | None = None,
    target: str | None = None,
    quasi: Names = None,
    sensitive: Names = None,
    without: Names = None,
    hierarchies: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment over tables, methods and seeds, and compare it with published results.

    An interrupted study resumes where it stopped, and a changed study computes only what changed.
    Tables are looked up by their path, next to the study's file, and in the folder that SHOAL_DATA
    names. Otherwise they are downloaded and kept.

    Arguments
    ---------
    name NAME|FILE: A built-in study, the TOML file of your own study, 'list', 'fetch' with a
        built-in study, or 'show' with a folder.
    folder DIR: For 'show': the folder of a study. For 'fetch': the study.

    Options
    -------
    out DIR: The folder for the results. A study resumes in its own folder.
    preset: For a built-in study: quick takes minutes on two cores, full runs the paper's grid.
    jobs N: The number of workers (default: all cores).
    backend: Where workers run: here, on the Dask cluster that DASK_SCHEDULER_ADDRESS names, or on
        the cluster in Spark's settings.
    seconds TIME: Start no new task after this time: 90, or with a unit 90s, 30m, 2h or 1d.
    retry: Try failed tasks again.

    Your own tables in place of the study's
    ---------------------------------------
    table PATH: A file, a folder of files, or a TOML file that lists tables as a study's file does.
        May be repeated.
    target COLUMN: The column that models predict.
    quasi COLUMNS: What an intruder may know: a,b (default: the study's rule).
    sensitive COLUMNS: What an intruder wants to learn: a,b (default: the target).
    without COLUMNS: Columns to leave out, such as names and e-mail addresses: a,b.
    hierarchies DIR: A folder with one file COLUMN.csv for each column that has a hierarchy.
    """
    from shoal.study import read_verdict, run_study

    if name == "list":
        _list(as_json)
        return
    if name == "show":
        if folder is None:
            raise InputError("Pass the folder of a study: shoal study show DIR.")
        _report(read_verdict(folder), folder, as_json)
        return
    if name == "fetch":
        if folder is None:
            raise InputError("Name a built-in study: shoal study fetch NAME.")
        _fetch(str(folder), preset, as_json)
        return
    if folder is not None:
        raise InputError("Pass the folder of the results with --out.")
    if out is None:
        raise InputError("Pass a folder for the results: --out DIR.")
    roles = {
        "quasi_identifiers": split_names(quasi, ()),
        "sensitive": split_names(sensitive, ()),
        "without": split_names(without, ()),
    }
    own = _own_tables(table, {"target": target, "hierarchies": hierarchies, **roles})
    with resumable(), Working("Reading the tables") as working:
        outcome = run_study(
            name,
            out,
            preset=preset,
            tables=own,
            jobs=jobs,
            backend=backend,
            seconds=seconds_of(seconds, budget),
            retry=retry,
            progress=working,
        )
    _report(outcome.to_dict(), out, as_json)


def _own_tables(paths: list[Path] | None, said: dict[str, Any]) -> list[TableSource]:
    """The tables that the call names, all with the roles that it names."""
    from shoal.study import tables_at

    given = {part: value for part, value in said.items() if value}
    if not paths:
        if given:
            raise InputError("Columns are named, but no table. Pass the table with --table.")
        return []
    return [source for path in paths for source in tables_at(path, **given)]


def seconds_of(seconds: str | None, budget: str | None = None) -> float | None:
    """A time as people write it, in seconds; ``budget`` is its old name."""
    given = {"--seconds": seconds, "--budget": budget}
    named = {option: value for option, value in given.items() if value is not None}
    seconds = under_new_names({"--budget": "--seconds"}, named, "shoal study").get("--seconds")
    if seconds is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", seconds.strip())
    if found is None:
        raise InputError(f"--seconds takes a time such as 90, 90s, 30m, 2h or 1d; got {seconds!r}.")
    return float(found[1]) * _UNITS[found[2] or "s"]


def _list(as_json: bool) -> None:
    from shoal.study import built_in_studies

    known = built_in_studies()
    if as_json:
        parts = ("name", "title", "reference")
        facts = [{part: getattr(study, part) for part in parts} for study in known.values()]
        ui.print_json({"studies": facts})
        return
    ui.heading("Built-in studies")
    rows = ((each.name, each.title, each.reference) for each in known.values())
    ui.table(("name", "about", "after"), rows)


def _fetch(name: str, preset: str, as_json: bool) -> None:
    from shoal.study import fetch_tables

    with Working("Fetching the tables"):
        found = fetch_tables(name, preset=preset)
    if as_json:
        ui.print_json({"tables": [one.to_dict() for one in found]})
        return
    ui.heading(f"The tables of {name} are here")
    rows = ((one.name, f"{one.rows:,}", one.file, one.origin, one.licence) for one in found)
    ui.table(("table", "rows", "file", "from", "licence"), rows, numeric=(1,))


def _report(facts: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        ui.print_json(facts)
        return
    ui.heading(facts["title"] or facts["study"])
    done = f"{facts['done']:,} of {ui.count(facts['tasks'], 'task')} done"
    ui.say(f"{done}, {facts['failed']:,} failed; {facts['computed']:,} computed now.")
    if "date" in facts:  # folders of version 0.1 do not have it
        ui.say(_setting(facts))
    for term, meaning in facts.get("terms", {}).items():
        ui.say(f"{term}: {meaning}.")
    if facts["verdict"]:
        ui.table(
            ("number", "published", "measured", "tolerance", "within"),
            (
                (row["name"], row["published"], row["measured"], _tolerance(row), _outcome(row))
                for row in facts["verdict"]
            ),
            numeric=(1, 2, 3),
        )
        if facts.get("relation"):
            ui.say(facts["relation"])
    for claim in facts["claims"]:
        held = {True: "Holds", False: "Does not hold", None: "Not decided"}[claim["holds"]]
        under = f", {claim['remark']}" if claim.get("remark") else ""
        ui.say(f"{held}{under}: {claim['claim']} ({claim['evidence']})")
    if "measures" in facts:
        _show_measures(facts["measures"])
    for one in facts.get("statistics", ()):
        ui.say()
        ui.say(one["sentence"])
        columns = one["columns"]
        _show_first(columns, one["rows"], range(1, len(columns)), f"statistics/{one['name']}.csv")
    ui.say()
    ui.say(facts["sentence"], style="bold")
    for reason, times in facts["failures"].items():
        ui.note(f"{ui.count(times, 'task')} failed: {reason}")
    if facts.get("missing"):
        ui.note(facts["missing"])
    if not facts["complete"]:
        ui.note("Some tasks are not done yet. Run the same command again to continue.")
    ui.note(f"The report is at {ui.printable(folder / 'report.html')}.")


def _setting(facts: dict[str, Any]) -> str:
    """The preset, the tables, the seeds and the day in one sentence."""
    sizes = [
        f"{ui.printable(one['name'])} ({ui.count(one['rows'], 'row')})"
        if one["rows"] is not None
        else ui.printable(one["name"])
        for one in facts["tables"]
    ]
    more = len(sizes) - _MOST_TABLES
    tables = ", ".join(sizes[:_MOST_TABLES]) + (f" and {more:,} more" if more > 0 else "")
    preset = "" if facts["preset"] is None else f"Preset {facts['preset']}; "
    seeds = ui.count(len(facts["seeds"]), "seed")
    said = f"{preset}{'table' if len(sizes) == 1 else 'tables'} {tables}; {seeds}; {facts['date']}."
    return said[0].upper() + said[1:]


def _show_measures(found: dict[str, Any]) -> None:
    """Every measure of every variant, with the number of results behind each mean."""
    ui.heading("What was measured")
    ui.say(found["sentence"])
    by_table = any(one["table"] is not None for one in found["rows"])
    rows = []
    for one in found["rows"]:
        runs = max((mean["results"] for mean in one["values"] if mean is not None), default=0)
        place = (one["variant"], one["table"]) if by_table else (one["variant"],)
        rows.append((*place, runs, *map(_mean, one["values"])))
    head = ("variant", *(["table"] if by_table else []), "results", *found["titles"])
    _show_first(head, rows, range(1 + by_table, len(head)), "measures.csv")


def _mean(found: dict[str, Any] | None) -> str | None:
    if found is None:
        return None
    mean = ui.number(found["mean"])
    if found["low"] is None:
        return mean
    return f"{mean} ({ui.number(found['low'])} to {ui.number(found['high'])})"


def _show_first(
    head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[int], file: str
) -> None:
    """The first rows of a table, and where the others are."""
    if rows:
        ui.table(head, rows[:_MOST_SHOWN], numeric=numeric)
    if len(rows) > _MOST_SHOWN:
        ui.say(f"{len(rows) - _MOST_SHOWN:,} more rows are in {ui.printable(file)}.")


def _tolerance(row: dict[str, Any]) -> str:
    if row["tolerance_is"] == "absolute":
        return f"± {row['tolerance']:.2g}"
    return f"± {100 * row['tolerance']:.0f} %"


def _outcome(row: dict[str, Any]) -> Any:
    within = row["within_tolerance"]
    if within is None:
        return None
    return ui.styled("yes", "green") if within else ui.styled("no", "red")
