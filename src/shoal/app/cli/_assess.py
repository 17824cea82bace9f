"""``shoal assess``: how exposed a table is, and what masking cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.app.cli._options import (
    AsJson,
    Declared,
    Engine,
    Names,
    Reading,
    check_page,
    command,
    split_names,
    write_whole,
)
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show_assessment import show_assessment
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Roles, Table
    from shoal.workflow import CostOfK


@command("""
shoal assess people.csv --quasi age,zip,sex --sensitive diagnosis
shoal assess people.csv --plan plan.toml --html exposure.html

# choose k: what each one costs on this table
shoal assess people.csv --plan plan.toml --k-curve

# what masking cost and what an intruder can link: a release against its original
shoal assess release --original people.csv
shoal assess release --original people.csv --measure distance_linkage --known age,zip

shoal assess release --original people.csv --option singling_out.columns=2

# what two releases of one table reveal together
shoal assess release --original people.csv --earlier release-2025

# a table that was masked elsewhere, with its rows in the original order
shoal assess masked.csv --original people.csv --same-order --plan plan.toml

# the table is a sample of a tenth of the population
shoal assess people.csv --quasi age,zip,sex --sampling-fraction 0.1
""")
def assess(
    data: str,
    reading: Reading,
    original: str | None = None,
    same_order: bool = False,
    plan: Path | None = None,
    quasi: Names = None,
    sensitive: Names = None,
    identifiers: Names = None,
    unit: Names = None,
    household: Names = None,
    target: str | None = None,
    measure: Names = None,
    everything: bool = False,
    known: Names = None,
    option: Names = None,
    earlier: Names = None,
    control: str | None = None,
    population: str | None = None,
    sampling_fraction: float | None = None,
    threshold: float = 0.2,
    missing: Literal["own", "wildcard"] = "own",
    k_curve: bool = False,
    html: Path | None = None,
    engine: Engine = "auto",
    memory_limit: str | None = None,
    as_json: AsJson = False,
) -> None:
    """Measure how exposed a table is and, against its original, what masking cost.

    The numbers describe the table as it is, original or masked. They are for the steward, not for
    the public.

    Arguments
    ---------
    data DATA: The table: a CSV, TSV, Parquet, Arrow/Feather or Excel file, the URI of a database
        with --query, or the folder of a release.

    Options
    -------
    original DATA: The table before masking, for measures that compare.
    same_order: Pair the rows: both tables have the same records in the same order.
    population DATA: The population from which the table was drawn, for journalist risk.
    sampling_fraction SHARE: The share of the population that the table holds, for journalist risk.
    threshold RISK: The risk above which a record is at risk.
    missing: Count a missing value as a value of its own, or as equal to every value, as statistics
        offices do.
    k_curve: Show what each of several k costs on this table, with the plan or a suggested one.
    html FILE: Also write the results as an HTML page.
    engine ENGINE: Where to count the table: in memory (or local), or on duckdb or spark, which
        only measure what follows from class sizes. auto decides by the size of DATA.
    memory_limit SIZE: The memory that the run may use, such as 2GB. DuckDB gets a quarter of it.

    Roles (a plan, or column names separated by commas)
    ---------------------------------------------------
    plan FILE: Take the roles from a plan.
    quasi A,B: Columns that an intruder may know.
    sensitive A,B: Columns whose values nobody should learn.
    identifiers A,B: Columns that identify a person directly.
    unit A,B: Columns that identify the person, if a person can have several rows.
    household A,B: Columns that identify the household.
    target COLUMN: The column that models predict.

    What is measured
    ----------------
    measure NAME,NAME: Only these measures.
    everything --all: Also take the slow measures.
    known A,B: The columns that the intruder knows.
    option MEASURE.OPTION=VALUE: An option of one measure. Write the value as in TOML. May be
        repeated.
    earlier DIR: The folder of an earlier release of the same original, to see whom the releases
        expose together. May be repeated.
    control DATA: Similar people who are not in the table, as a control group for attacks.
    """
    from shoal.engines import assess_release_in_parts, assess_source, is_in_parts
    from shoal.workflow import EngineSettings, assess

    check_page(html)
    if measure and everything:
        raise InputError("--measure and --all cannot be combined; use one of them.")
    options = measure_options(option)
    declared = Declared(plan, quasi, sensitive, identifiers, target, unit, household)
    settings = EngineSettings(memory_limit=memory_limit)
    chosen, why = reading.engine_for(data, engine, settings, declared.reading)
    if k_curve and (original or chosen != "memory" or is_in_parts(data) or Path(data).is_dir()):
        raise InputError(
            "--k-curve tries a plan in memory on a table that is not masked yet. Leave out "
            "--original, and pass the table itself or a sample of it."
        )
    others = (original, population, control, sampling_fraction, known, measure, option, earlier)
    with Working("Reading the data") as working:
        if is_in_parts(data):
            if any(others[1:5]) or option or earlier or everything or same_order:
                raise InputError(
                    "To assess a release in parts, use only --original and --measure. Leave out "
                    "the other options."
                )
            found = assess_release_in_parts(
                data,
                original=original,
                measures=split_names(measure, ()) or None,
                engine=engine,
                settings=settings,
            )
        elif chosen != "memory":
            if any(others) or everything or same_order:
                raise InputError(
                    f"On the engine '{chosen}' an assessment only accepts roles. Leave out the "
                    "other options, or use --engine memory."
                )
            source = reading.engine_source(data)
            found = assess_source(source, declared.roles, chosen, settings)
        else:
            if Path(data).is_dir():
                if same_order:
                    raise InputError(
                        "The rows of a release are shuffled, and its private half pairs them. "
                        "Leave out --same-order."
                    )
                loaded, before = read_released(reading, data, original, declared)
            else:
                loaded, before = read_tables(
                    reading, data, original, declared, population, control, same_order=same_order
                )
            whole = loaded if before is None else before
            found = assess(
                loaded,
                original=before,
                population=None if population is None else reading.read_other(population),
                control=None
                if control is None
                else _masked_as(reading.read_other(control), whole.roles),
                sampling_fraction=sampling_fraction,
                threshold=threshold,
                missing=missing,
                known=known_columns(known, whole.columns),
                measures="all" if everything else split_names(measure, ()) or None,
                options=options or None,
                earlier=read_earlier(reading, earlier, before, declared) if earlier else (),
                progress=working,
            )
            if k_curve:
                found = replace(found, k_curve=_cost_of_each_k(loaded, plan, working))
        for name in options:
            reason = found.failed.get(name, found.left_out.get(name))
            if reason is not None:
                raise InputError(
                    f"--option {name}: it could not be measured. {reason.rstrip('.')}."
                )
        if html is not None:
            working("Writing the page", 0.0)
            write_whole(html, found.to_html(), private=True)
    if as_json:
        ui.print_json(found.to_dict() | {"engine": {"name": chosen, "why": why}})
    else:
        ui.note(f"Engine: {chosen}, since {why}.")
        show_assessment(found)
    if html is not None:
        ui.note(f"The page is at {ui.printable(html)}.")


def _cost_of_each_k(table: Table, plan: Path | None, working: Working) -> tuple[CostOfK, ...]:
    from shoal.workflow import Plan, k_curve

    return k_curve(table, None if plan is None else Plan.load(plan), progress=working)


def read_tables(
    reading: Reading,
    data: str,
    original: str | None,
    declared: Declared,
    *others: str | None,
    same_order: bool,
) -> tuple[Table, Table | None]:
    """The table and its original, each read by itself."""
    loaded = reading.read(
        data, original, *others, known=declared.reading if original is None else None
    )
    if original is None:
        if same_order:
            raise InputError("--same-order needs two tables. Pass the other one as --original.")
        return loaded.with_roles(declared.roles(loaded.columns)), None
    before = reading.read_other(original, known=declared.reading)
    before = before.with_roles(declared.roles(before.columns))
    if same_order and len(loaded) != len(before):
        raise InputError(
            f"--same-order pairs row by row, but the table has {len(loaded):,} rows and the "
            f"original has {len(before):,}. Leave it out, or pass the folder of the release."
        )
    masked = _masked_as(loaded, before.roles)
    return (masked.paired(before) if same_order else masked), before


def read_released(
    reading: Reading, folder: str, original: str | None, declared: Declared
) -> tuple[Table, Table | None]:
    """The table of a release and its original, paired if the private half is available."""
    from shoal.workflow import read_release, recorded_reading

    known = recorded_reading(folder)
    given = None if original is None else reading.read_other(original, known=known)
    masked, before = read_release(folder, original=given)
    if before is None:
        return masked.with_roles(declared.over(masked.roles, masked), released=True), None
    recorded = before.roles if before.roles.quasi_identifiers else masked.roles
    before = before.with_roles(declared.over(recorded, before))
    return _masked_as(masked, before.roles), before


def read_earlier(
    reading: Reading, folders: list[str], original: Table | None, declared: Declared
) -> list[Table]:
    """Earlier releases of the same original, each paired with it through its private half."""
    from shoal.workflow import read_release

    if original is None:
        raise InputError(
            "--earlier follows people from release to release. Pass the table that the releases "
            "were made from as --original."
        )
    tables = []
    for folder in folders:
        masked, before = read_release(folder, original=original)
        if before is None or not masked.pairs_with(original):
            raise InputError(
                f"The release at '{folder}' has no private half, so its rows cannot be matched to "
                "people. Pass the whole release as --earlier."
            )
        tables.append(_masked_as(masked, declared.over(masked.roles, before)))
    return tables


def measure_options(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """The options ``MEASURE.OPTION=VALUE``, grouped by measure; values are written as in TOML."""
    import tomllib

    found: dict[str, dict[str, Any]] = {}
    for word in given or ():
        names, equals, text = word.partition("=")
        measure, dot, option = names.strip().partition(".")
        if not (equals and dot and measure and option):
            raise InputError(
                "Write --option as MEASURE.OPTION=VALUE, such as "
                f"distance_linkage.known=['age']; got '{word}'."
            )
        if option in found.get(measure, {}):
            raise InputError(f"The option '{measure}.{option}' is given twice. Pass it once.")
        try:
            value = tomllib.loads(f"value = {text}")
        except (tomllib.TOMLDecodeError, RecursionError):
            value = {}
        if list(value) != ["value"]:
            raise InputError(
                f"The value of --option {measure}.{option} is not valid TOML. Write a number, "
                "true, false, a text in quotes, or a list of these in brackets."
            )
        found.setdefault(measure, {})[option] = value["value"]
    return found


def _masked_as(masked: Table, roles: Roles) -> Table:
    """The masked table with the roles of its original; masking may have removed columns."""
    gone = [name for _, name in roles.items() if name not in masked.columns]
    return masked.with_roles(roles.without(gone), released=True)


def known_columns(given: Names, columns: list[str]) -> list[str] | str | None:
    """Columns, or the single word that stands for some."""
    from shoal.workflow import KNOWN_WORDS

    names = split_names(given, columns)
    if len(names) == 1 and names[0] in KNOWN_WORDS and names[0] not in columns:
        return names[0]
    return names or None
