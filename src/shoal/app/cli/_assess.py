"""``shoal assess``: how exposed a table is, and what masking cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shoal.app.cli._files import check_page, write_whole
from shoal.app.cli._next import with_examples
from shoal.app.cli._progress import Working
from shoal.app.cli._show import (
    count,
    heading,
    listed,
    note,
    number,
    percent,
    print_json,
    printable,
    say,
    show,
    table,
)
from shoal.app.cli._sources import AsJson, Data, Reading, reads_data, roles_from

if TYPE_CHECKING:
    from shoal.workflow import Assessment

_ROLES_PANEL = "Roles (a plan, or column names separated by commas)"
_Names = list[str] | None


def _names(option: str, help: str) -> Any:
    return typer.Option(option, metavar="A,B", help=help, rich_help_panel=_ROLES_PANEL)


@with_examples("""
shoal assess people.csv --quasi age,zip,sex --sensitive diagnosis
shoal assess people.csv --plan plan.toml --html exposure.html

# what masking cost: the released table against the one it was made from
shoal assess release/public/data.csv --original people.csv --plan plan.toml

# the table is a sample of a tenth of the population
shoal assess people.csv --quasi age,zip,sex --sampling-fraction 0.1
""")
@reads_data
def assess(
    data: Data,
    reading: Reading,
    original: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="The table before masking, for measures that compare."),
    ] = None,
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
    with Working("Reading the data") as working:
        loaded = reading.read(data, original, population)
        before = None if original is None else reading.read_other(original)
        everyone = None if population is None else reading.read_other(population)
        columns = (loaded if before is None else before).columns
        roles = roles_from(
            columns, plan=plan, quasi=quasi, sensitive=sensitive, identifiers=identifiers
        )
        if before is None:
            loaded = loaded.with_roles(roles)
        else:  # masking may have taken columns out, or emptied them
            before = before.with_roles(roles)
            gone = [name for name in before.columns if name not in loaded.columns]
            loaded = loaded.with_roles(roles.without(gone), released=True)
        found = assess(
            loaded,
            original=before,
            population=everyone,
            sampling_fraction=sampling_fraction,
            threshold=threshold,
            missing=missing,
            progress=working,
        )
        if html is not None:
            working("Writing the page", 0.0)
            write_whole(html, found.to_html())
    if as_json:
        print_json(found.to_dict())
    else:
        show_assessment(found)
    if html is not None:
        note(f"The page is at {printable(html)}.")


def show_assessment(found: Assessment) -> None:
    """The facts as tables."""
    classes = found.classes
    heading(f"{count(found.rows, 'record')}, {count(found.columns, 'column')}")
    roles = [
        (role.replace("_", "-"), listed([names] if isinstance(names, str) else names))
        for role, names in found.roles.items()
    ]
    show(table(("role", "columns"), roles))
    heading("Crowds: records with equal quasi-identifiers")
    say(
        f"k = {classes.k:,}: the smallest class has {count(classes.k, 'record')}. In "
        f"{count(classes.count, 'class')} of {classes.average:.1f} records on average, "
        f"{count(classes.uniques, 'record')} ({percent(classes.uniques / max(found.rows, 1))}) "
        f"{'is' if classes.uniques == 1 else 'are'} alone."
    )
    show(
        table(
            ("class size", "records", "share"),
            (
                (size, f"{records:,}", percent(records / max(found.rows, 1)))
                for size, records in classes.records_by_size.items()
            ),
            numeric=(0, 1, 2),
            whole=(),
        )
    )
    _show_measures(found)


def _show_measures(found: Assessment) -> None:
    from shoal.workflow import discover_all_measures

    infos = discover_all_measures()
    rows = [
        (
            infos[name].title,
            number(m.value),
            "-" if m.interval is None else " to ".join(number(bound) for bound in m.interval),
            "-" if m.baseline is None else number(m.baseline),
            m.direction,
        )
        for name, m in found.measurements.items()
    ]
    head = ("measure", "value", "95 % interval", "baseline", "better")
    used = [at for at in range(len(head)) if any(row[at] != "-" for row in rows)]
    heading("Measured")
    show(
        table(
            [head[at] for at in used],
            [[row[at] for at in used] for row in rows],
            numeric=range(1, len(used) - 1),
        )
    )
    remarks = [
        f"{infos[name].title}: {warning}"
        for name, m in found.measurements.items()
        for warning in m.warnings
    ]
    remarks += [f"{remark}." for remark in found.notes]
    if remarks:
        say()
    for remark in remarks:
        say(f"Note: {remark}")
