"""``shoal assess``: how exposed a table is, and what masking cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from shoal.app.cli._sources import AsJson, Reading, reads_data, split_names
from shoal.app.cli.output._assessed_tables import (
    Declared,
    known_columns,
    measure_options,
    read_control,
    read_earlier,
    read_released,
    read_tables,
    refuse_unless_measured,
)
from shoal.app.cli.output._files import check_page, write_whole
from shoal.app.cli.output._next import with_examples
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show import note, print_json, printable
from shoal.app.cli.output._show_assessment import show_assessment
from shoal.errors import InputError

_ROLES_PANEL = "Roles (a plan, or column names separated by commas)"
_MEASURES_PANEL = "What is measured"
_Names = list[str] | None


def _names(option: str, help: str, panel: str = _ROLES_PANEL, metavar: str = "A,B") -> Any:
    return typer.Option(option, metavar=metavar, help=help, rich_help_panel=panel)


@with_examples("""
shoal assess people.csv --quasi age,zip,sex --sensitive diagnosis
shoal assess people.csv --plan plan.toml --html exposure.html

# what masking cost, and what an intruder links: a release against its original
shoal assess release --original people.csv
shoal assess release --original people.csv --measure distance_linkage --known age,zip

shoal assess release --original people.csv --option singling_out.columns=2

# what two releases of one table tell together
shoal assess release --original people.csv --earlier release-2025

# a table that was masked elsewhere, its rows in the order of the original
shoal assess masked.csv --original people.csv --same-order --plan plan.toml

# the table is a sample of a tenth of the population
shoal assess people.csv --quasi age,zip,sex --sampling-fraction 0.1
""")
@reads_data
def assess(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="The table: a CSV, TSV, Parquet, Arrow/Feather or Excel file, the URI of a "
            "database with --query, or the folder of a release.",
        ),
    ],
    reading: Reading,
    original: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="The table before masking, for measures that compare."),
    ] = None,
    same_order: Annotated[
        bool,
        typer.Option(
            "--same-order",
            metavar="",
            help="Both tables have the same records in the same order, so that rows can be paired.",
        ),
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take the roles of a plan.", rich_help_panel=_ROLES_PANEL
        ),
    ] = None,
    quasi: Annotated[_Names, _names("--quasi", "Columns that an intruder may know.")] = None,
    sensitive: Annotated[_Names, _names("--sensitive", "Columns that nobody should learn.")] = None,
    identifiers: Annotated[
        _Names, _names("--identifiers", "Columns that name a person by themselves.")
    ] = None,
    unit: Annotated[
        _Names, _names("--unit", "Columns that say whose row it is, where a person has several.")
    ] = None,
    household: Annotated[
        _Names, _names("--household", "Columns that say who lives together.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that a model is to predict.",
            rich_help_panel=_ROLES_PANEL,
        ),
    ] = None,
    measure: Annotated[
        _Names,
        _names("--measure", "Only these measures, by their names.", _MEASURES_PANEL, "NAME,NAME"),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            metavar="",
            help="Also the measures that take long.",
            rich_help_panel=_MEASURES_PANEL,
        ),
    ] = False,
    known: Annotated[
        _Names,
        _names("--known", "The columns that an intruder knows who attacks.", _MEASURES_PANEL),
    ] = None,
    option: Annotated[
        _Names,
        _names(
            "--option",
            "An option of one measure, its value written as in TOML; may be repeated.",
            _MEASURES_PANEL,
            "MEASURE.OPTION=VALUE",
        ),
    ] = None,
    earlier: Annotated[
        _Names,
        _names(
            "--earlier",
            "The folder of an earlier release of the same original: whom both expose together; "
            "may be repeated.",
            _MEASURES_PANEL,
            "DIR",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="People of the same kind who are not in the table, to compare attacks with.",
            rich_help_panel=_MEASURES_PANEL,
        ),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="The population of the table, for journalist risk."),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="The share of the population that the table holds, for journalist risk.",
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="RISK", help="The risk above which a record is at risk.")
    ] = 0.2,
    missing: Annotated[
        Literal["own", "wildcard"],
        typer.Option(
            help="Whether a missing value is a value of its own, or agrees with every value as "
            "the statistics offices count."
        ),
    ] = "own",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the facts as a page, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how exposed a table is and, against its original, what masking cost.

    The numbers are about the table as it is, original or masked; they are made for the steward,
    not for the public.
    """
    from shoal.workflow import assess

    check_page(html)
    if measure and everything:
        raise InputError("The measures are given twice, by --measure and by --all; give one.")
    options = measure_options(option)
    declared = Declared(plan, quasi, sensitive, identifiers, target, unit, household)
    with Working("Reading the data") as working:
        if Path(data).is_dir():
            if same_order:
                raise InputError(
                    "The private half of a release pairs its rows, which were shuffled; leave "
                    "out --same-order."
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
            control=None if control is None else read_control(reading, control, whole.roles),
            sampling_fraction=sampling_fraction,
            threshold=threshold,
            missing=missing,
            known=known_columns(known, whole.columns),
            measures="all" if everything else split_names(measure, ()) or None,
            options=options or None,
            earlier=read_earlier(reading, earlier, before, declared) if earlier else (),
            progress=working,
        )
        refuse_unless_measured(options, found)
        if html is not None:
            working("Writing the page", 0.0)
            write_whole(html, found.to_html(), private=True)
    if as_json:
        print_json(found.to_dict())
    else:
        show_assessment(found)
    if html is not None:
        note(f"The page is at {printable(html)}.")
