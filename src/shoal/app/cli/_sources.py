"""Where the data comes from: the options of reading, and the roles given in a call."""

from __future__ import annotations

import csv
import functools
import inspect
import io
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.errors import PlanError, RolesError

if TYPE_CHECKING:
    from shoal.table import Roles, Table

_PANEL = "Reading the data (found out where not given)"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="The table: a CSV, TSV, Parquet, Arrow/Feather or Excel file, or the URI of a "
        "database (sqlite:///file, duckdb:///file, postgresql://user@host/name) with --query.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON and nothing else on stdout.")
]
Force = Annotated[
    bool, typer.Option("--force", metavar="", help="Replace what an earlier run has written.")
]


def _option(name: str, help: str, metavar: str) -> Any:
    return typer.Option(
        name, help=help, metavar=metavar, rich_help_panel=_PANEL, show_default=False
    )


@dataclass(frozen=True)
class Reading:
    """How the data is read; every command that reads takes these options."""

    query: Annotated[
        str | None, _option("--query", "The SELECT whose rows are the table.", "SQL")
    ] = None
    input_format: Annotated[
        str | None,
        _option("--input-format", "csv, tsv, parquet, arrow or xlsx.", "FORMAT"),
    ] = None
    delimiter: Annotated[
        str | None, _option("--delimiter", "The character between fields.", "CHAR")
    ] = None
    encoding: Annotated[
        str | None, _option("--encoding", "The encoding of the text, such as cp1252.", "NAME")
    ] = None
    decimal: Annotated[
        str | None, _option("--decimal", "The decimal mark: a point or a comma.", "CHAR")
    ] = None
    missing_value: Annotated[
        list[str] | None,
        _option(
            "--missing-value",
            "What stands for a missing value; may be given several times.",
            "TEXT",
        ),
    ] = None
    sheet: Annotated[
        str | None, _option("--sheet", "The sheet of a workbook: its name or number.", "SHEET")
    ] = None
    header: Annotated[
        bool,
        _option("--header", "The first line holds names, whatever they look like.", ""),
    ] = False

    def read(self, source: str, *others: str | None) -> Table:
        """The table behind DATA; an option that only fits one of the others is left to that."""
        given = self._given()
        elsewhere = {name for other in others if other is not None for name in _fitting(other)}
        left = elsewhere - set(_fitting(source)) if self.input_format is None else set()
        return _read(source, {name: v for name, v in given.items() if name not in left})

    def read_other(self, source: str) -> Table:
        """A further table of the call, with the options that fit it."""
        names = _fitting(source)
        return _read(source, {n: v for n, v in self._given().items() if n in names})

    def output_format(self, source: str) -> str:
        """The format of a release: that of the data, Parquet for a database."""
        from shoal.table import FORMATS

        found = self.input_format or kind_of_source(source)
        aliases = {"feather": "arrow", "ipc": "arrow", "excel": "xlsx"}
        found = aliases.get(found or "", found)
        return found if found in FORMATS else "parquet"

    def _given(self) -> dict[str, Any]:
        sheet: str | int | None = self.sheet
        if self.sheet is not None and self.sheet.isdecimal():
            sheet = int(self.sheet)
        given = {
            "query": self.query,
            "format": self.input_format,
            "delimiter": {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter),
            "encoding": self.encoding,
            "decimal": self.decimal,
            "missing_values": self.missing_value or None,
            "sheet": sheet,
            "header": self.header or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def words(self) -> list[str]:
        """The options that were given, to be repeated in a command that is suggested."""
        words = []
        for spec in fields(self):
            value = getattr(self, spec.name)
            if value is True:
                words.append(f"--{spec.name}")
                continue
            for one in value if isinstance(value, list) else [value] if value else []:
                words += [f"--{spec.name.replace('_', '-')}", shlex.quote(one)]
        return words


def _fitting(source: str) -> tuple[str, ...]:
    """The options that the kind of a source allows."""
    text = ("delimiter", "encoding", "decimal", "missing_values", "header")
    fitting = {"database": ("query",), "csv": text, "tsv": text, "xlsx": ("sheet", "header")}
    return fitting.get(kind_of_source(source) or "", ())


def _read(source: str, options: dict[str, Any]) -> Table:
    from shoal.table import read

    return read(source, **options)


def is_database(source: str) -> bool:
    """Whether the data comes from a database and not from a file."""
    return "://" in source and not Path(source).exists()


def kind_of_source(source: str) -> str | None:
    """``"database"``, the format that the name of a file tells, or None."""
    from shoal.table import FORMATS

    if is_database(source):
        return "database"
    name = source.lower()
    for ending in (".gz", ".zst", ".bz2"):
        name = name.removesuffix(ending)
    return next((found for found, ends in FORMATS.items() if name.endswith(ends)), None)


def reads_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of :class:`Reading` in place of its parameter ``reading``."""
    own = inspect.signature(command, eval_str=True)
    options = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(Reading, eval_str=True).parameters.values()
    ]
    kept = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in own.parameters.items()
        if name != "reading"
    ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        chosen = {option.name: given.pop(option.name) for option in options}
        return command(reading=Reading(**chosen), **given)

    signature = inspect.Signature([*kept, *options])
    vars(run)["__signature__"] = signature
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def split_names(given: Sequence[str] | None, columns: Iterable[str]) -> list[str]:
    """Column names from options: several, or one text with commas.

    A text that is the name of a column is taken as it is; quotation marks keep a comma inside, and
    the end of a line, which parts names too.

    Examples
    --------
    >>> split_names(["age, zip", "sex"], ["age", "zip", "sex"])
    ['age', 'zip', 'sex']
    >>> split_names(["last, first"], ["last, first", "age"])
    ['last, first']
    """
    known = set(columns)
    names: list[str] = []
    for text in given or ():
        lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
        parts = [text] if text in known else [part for line in lines for part in line]
        names += [part if part in known else part.strip() for part in parts]
    return [name for name in names if name]


def roles_from(
    columns: Sequence[str],
    *,
    plan: Path | None,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    identifiers: Sequence[str] | None,
    unit: Sequence[str] | None = None,
    household: Sequence[str] | None = None,
) -> Roles:
    """The roles that a call declares, by a plan or by names."""
    from shoal.table import Roles
    from shoal.workflow import Plan

    if plan is not None:
        if quasi or sensitive or identifiers or unit or household:
            raise RolesError(
                "The roles are given twice, by --plan and by --quasi, --sensitive, --identifiers, "
                "--unit or --household; give them once."
            )
        roles = Plan.load(plan).roles
        if roles is None:
            raise PlanError(f"The plan at '{plan}' has no [roles]; add them, or give --quasi.")
        return roles
    if not quasi:
        raise RolesError(
            "No quasi-identifiers are given: name the columns that an intruder may know with "
            "--quasi a,b or give a --plan; 'shoal roles DATA' suggests some."
        )
    return Roles(
        identifiers=split_names(identifiers, columns),
        quasi_identifiers=split_names(quasi, columns),
        sensitive=split_names(sensitive, columns),
        unit="row" if unit == ["row"] else split_names(unit, columns),
        household=split_names(household, columns),
    )
