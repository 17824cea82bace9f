"""``shoal protect``: apply a plan, verify what it requires, write the release."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from shoal.app.cli._options import (
    AsJson,
    Data,
    Engine,
    Force,
    Reading,
    command,
    is_database,
    shown_source,
)
from shoal.app.cli.output import ui
from shoal.app.cli.output._errors import kept_warnings
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show_assessment import NOT_BY_CROWDS
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Formulas, Table
    from shoal.workflow import Assessment, Claim, Plan, Release

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what the plan would do. Write nothing."),
]
ShowAll = Annotated[bool, typer.Option("--all", help="Show every step and every measure.")]


@command("""
shoal protect people.csv --plan plan.toml --dry-run
shoal protect people.csv --plan plan.toml --out release
shoal protect people.csv --plan plan.toml --out release --format parquet --force
shoal protect sqlite:///people.db --query 'SELECT * FROM people' --plan plan.toml --out release
""")
def protect(
    data: Data,
    reading: Reading,
    plan: Path,
    out: Path | None = None,
    private_out: Path | None = None,
    dry_run: DryRun = False,
    format: Annotated[
        str | None, typer.Option(show_default="same as DATA; parquet for a database")
    ] = None,
    formulas: Literal["neutralise", "keep"] = "neutralise",
    out_delimiter: str | None = None,
    out_decimal: str | None = None,
    out_encoding: str | None = None,
    force: Force = False,
    strict: bool = False,
    engine: Engine = "auto",
    show_all: ShowAll = False,
    as_json: AsJson = False,
) -> None:
    """Apply a plan, verify its requirements, and write the release.

    If a requirement does not hold, nothing is written and the exit code is 1. The message explains
    why and suggests changes that would work. A release has a public half to publish and a private
    half to keep.

    Options
    -------
    plan FILE: The plan: roles, steps, require.
    out DIR: The folder to create for the release.
    private_out DIR: The folder for the private half (default: inside --out).
    format FORMAT: The format of the released data: csv, tsv, parquet, arrow, xlsx, dta, sav, zsav,
        por or xpt.
    formulas: For csv and tsv: put an apostrophe before texts and column names that a spreadsheet
        would run as formulas, or keep them unchanged.
    out_delimiter CHAR: For csv and tsv: the character between fields (default: same as DATA).
    out_decimal CHAR: For csv and tsv: the decimal mark (default: same as DATA).
    out_encoding NAME: For csv and tsv: the encoding, such as utf-8-sig (default: same as DATA).
    strict: Treat warnings as errors: write nothing, with exit code 1.
    engine ENGINE: Where the plan runs: in memory (or local), or on duckdb or spark, which write
        the release in parts. auto decides by the size of DATA.
    """
    from shoal.table import DELIMITER_OF, check_standards
    from shoal.table.storage._formats import check_format
    from shoal.workflow import Plan, protect
    from shoal.workflow.release._folder import check_targets

    loaded = Plan.load(plan)
    chosen, why = reading.engine_for(data, engine, loaded.engine, loaded.read)
    if dry_run:
        with kept_warnings(strict=strict) as warned:
            release = _tried(reading, data, loaded, chosen)
            if strict:
                warned.refuse()
        if as_json:
            ui.print_json({"dry_run": True, **release_facts(release), "warnings": warned})
        else:
            show_release(release, show_all=show_all)
            ui.say()
            ui.say("Dry run: nothing was written.")
        return
    if out is None:
        raise InputError(
            "A release needs a folder. Add --out DIR, or --dry-run to see what the plan would do."
        )
    written = reading.output_format(data, loaded.read)
    if format:
        written = check_format(format, writing=True)
    _, private = check_targets(out, private_out, force=force)  # before the long work
    check_standards(loaded.release.metadata, written if chosen == "memory" else "parquet")
    if chosen != "memory" and not as_json:
        ui.note(f"Engine: {chosen}, since {why}.")
    dialect = {"delimiter": out_delimiter, "decimal": out_decimal, "encoding": out_encoding}
    with kept_warnings(strict=strict) as warned, Working("Reading the data") as working:
        if chosen == "memory":
            # without a name here, so that the original is freed before the release is saved
            release = protect(
                _read_for(reading, data, loaded, written), loaded, progress=working.if_watched
            )
        else:
            from shoal.engines import protect_source

            written = check_format(format) if format else "parquet"
            release = protect_source(
                reading.engine_source(data),
                loaded,
                chosen,
                parent=Path(os.path.abspath(out)).parent,
                progress=working.part(0.0, 0.85),
            )
        if strict:
            warned.refuse()
        folder = release.save(
            out,
            format=written,
            force=force,
            formulas=formulas,
            **dialect,
            source=None if is_database(data) else data,
            private_out=private,
            progress=working.if_watched if chosen == "memory" else working.part(0.85, 1.0),
        )
    if as_json:
        facts = {"warnings": warned, "engine": {"name": chosen, "why": why}}
        ui.print_json(release_facts(release, folder, private) | facts)
        return
    if chosen == "memory":  # not earlier: a failure is one line
        ui.note(f"Engine: memory, since {why}.")
    show_release(release, show_all=show_all)
    _show_place(release, out, private_out)
    if written in DELIMITER_OF:
        _show_formulas(release.masked, formulas)
    ui.heading("Next: verify the release from its files")
    against = ("--original", *shown_source(data, reading, kept=True))
    apart = () if private_out is None else ("--private", shlex.quote(str(private_out)))
    ui.command_line("shoal verify", shlex.quote(str(out)), *apart, *against)


def _read_for(reading: Reading, data: str, plan: Plan, written: str) -> Table:
    """The table; what the format of the release cannot hold of it is reported before masking."""
    from shoal.workflow.release._release import warn_about_losses

    table = reading.read(data, known=plan.read)
    warn_about_losses(table.with_roles(plan.roles_for(table)), written)
    return table


def _tried(reading: Reading, data: str, plan: Plan, chosen: str) -> Release:
    """What a plan would do; nothing is written."""
    from shoal.workflow import protect

    if chosen != "memory":
        raise InputError(
            f"A dry run works in memory only, but this table would run on {chosen}. Use --engine "
            "memory, or try the plan on a sample of the table."
        )
    with Working("Reading the data") as working:
        return protect(reading.read(data, known=plan.read), plan, progress=working.if_watched)


def release_facts(
    release: Release, folder: Path | None = None, private: Path | None = None
) -> dict[str, Any]:
    """The result and its location, as plain data for the steward."""
    places = {} if folder is None else {"release": folder, **_halves(folder, private)}
    return {
        **places,
        "rows_before": release.rows_before,
        "rows": len(release.masked),
        "claims": [claim.to_dict() for claim in release.claims],
        "steps": [step.to_dict() for step in release.steps],
        "left": dict(release.left),
        "before": release.before.to_dict(),
        "after": release.after.to_dict(),
    }


def show_release(release: Release, *, show_all: bool = False) -> None:
    """What is left, what it is safe against, and what holds; with ``show_all`` every measure."""
    from shoal.workflow import minimalities_of, minimality_in_words

    if show_all or not release.left:
        _show_steps(release)
    if release.left:
        ui.heading("What is left of each column")
        roles = release.plan.roles or release.masked.roles
        ui.table(
            ("column", "role", "what is left"),
            (
                (name, (roles.of(name) or "-").removesuffix("s").replace("_", "-"), words)
                for name, words in release.left.items()
            ),
        )
    show_before_and_after(release.before, release.after, show_all=show_all)
    lost = release.rows_before - len(release.masked)
    ui.say(
        f"{ui.count(lost, 'record')} of {release.rows_before:,} were removed."
        if lost
        else "No record was removed."
    )
    show_claims(release)
    for found in minimalities_of(release.steps):
        ui.say(minimality_in_words(found))


def _show_steps(release: Release) -> None:
    ui.heading("What each step did")
    ui.table(
        ("step", "columns changed", "records removed", "columns left alone"),
        (
            (
                step.method,
                [f"{n} (removed)" if n in step.removed_columns else n for n in step.touched],
                float(step.removed),
                [f"{name}: {why}" for name, why in step.skipped.items()],
            )
            for step in release.steps
        ),
        numeric=(2,),
    )


def _halves(folder: Path, private: Path | None) -> dict[str, Path]:
    """Where the halves of a release are, and its report."""
    public = folder / "public"
    kept = folder / "private" if private is None else private
    return {"public": public, "private": kept, "report": public / "report.html"}


def _show_place(release: Release, out: Path, private: Path | None) -> None:
    ui.heading("Written")
    persons = release.after.classes.persons
    whose = "" if persons is None else f", of {ui.count(persons, 'person')},"
    ui.say(
        f"{ui.count(len(release.masked), 'record')} of {release.rows_before:,}{whose} in "
        f"{ui.count(len(release.masked.columns), 'column')}, "
        + ("in the original order." if release.plan.keep_order else "in random order.")
    )
    halves = _halves(out, private)
    ui.say(f"{ui.printable(halves['public'])}: to publish. Its report.html explains what was done.")
    ui.say(
        f"{ui.printable(halves['private'])}: to keep private. Anyone who has it can undo the "
        "masking."
    )


def _show_formulas(masked: Table, formulas: Formulas) -> None:
    """Which columns have texts that a spreadsheet would run, if any."""
    columns = list(dict.fromkeys([*masked.running_cells(), *masked.running_names()]))
    if columns:
        ui.say(
            "A spreadsheet would run names or texts of these columns as formulas; they "
            + ("now start" if formulas == "neutralise" else "do not start")
            + " with an apostrophe: "
            f"{ui.listed(columns)}."
        )


#: The few measures that a newcomer needs, in words.
_FEW: Final = {
    "prosecutor_risk": "highest chance of finding one person",
    "marketer_risk": "share of records found by trying all",
    "homogeneity": "share of records with a certain sensitive value",
    "normalized_certainty_penalty": "detail lost",
}


def show_before_and_after(before: Assessment, after: Assessment, *, show_all: bool) -> None:
    """Risk side by side, then what masking cost: a few lines, or every measure."""
    from shoal.workflow import discover_all_measures, grouped_measures

    infos = discover_all_measures()
    few = _FEW | ({} if after.swapping is None else {"distance_linkage": "share of right links"})
    ui.heading("Before and after")
    size = "smallest class (k)" if show_all else "smallest crowd (k)"
    rows: list[tuple[object, ...]] = [(size, before.k, after.k, "higher")]
    if after.swapping is not None:
        rows.append(("k by swapping", "-", after.swapping.k, "higher"))
    groups = grouped_measures(after.measurements)
    for name in (name for group in groups for name in group.names):
        if not show_all and name not in few:
            continue
        found, earlier = after.measurements[name], before.measurements.get(name)
        start = earlier.value if earlier is not None else found.baseline
        start = None if start is None else float(start)
        title = infos[name].title if show_all else few[name]
        rows.append((title, start, float(found.value), found.direction))
    ui.table(("measure", "before", "after", "better"), rows, numeric=(1, 2))
    if after.swapping is not None:
        ui.say(NOT_BY_CROWDS)


def _holding(claim: Claim) -> object:
    """Whether a claim holds, in a word or two."""
    if claim.rests_on_seed and claim.holds:
        return ui.styled("with a seed", "yellow")
    return ui.styled("yes", "green") if claim.holds else ui.styled("no", "red")


def show_claims(release: Release) -> None:
    """The requirements of the plan, with their measured values."""
    ui.heading("What the plan requires")
    if not release.claims:
        ui.say("Nothing, so the release makes no claim. Add a [require] section to the plan.")
        return
    ui.table(
        ("requirement", "required", "measured", "holds"),
        (
            (c.title, float(c.requirement.threshold), float(c.measured), _holding(c))
            for c in release.claims
        ),
        numeric=(1, 2),
    )
