"""Where the data comes from: the options of reading, and the roles given in a call."""

from __future__ import annotations

import csv
import functools
import inspect
import io
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shoal.errors import PlanError, ReadError, RolesError

if TYPE_CHECKING:
    from shoal.table import Roles, Table

_PANEL = "Reading the data (found out where not given)"


def argument(metavar: str, help: str) -> Any:
    """A word of the call that has no name."""
    return typer.Argument(metavar=metavar, show_default=False, help=help)


def option(
    help: str,
    metavar: str | None = None,
    panel: str | None = None,
    *,
    show_default: bool | str = True,
    min: int | None = None,
) -> Any:
    """A value of the call, by the name of its parameter."""
    return typer.Option(
        metavar=metavar, help=help, rich_help_panel=panel, show_default=show_default, min=min
    )


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """Something that is asked for by its name alone."""
    return typer.Option(name, metavar="", help=help, rich_help_panel=panel)


Names = list[str] | None
Data = Annotated[
    str,
    argument(
        "DATA",
        "The table: a CSV, TSV, Parquet, Arrow/Feather or Excel file, or the URI of a "
        "database (sqlite:///file, duckdb:///file, postgresql://user@host/name) with --query.",
    ),
]
ReleaseFolder = Annotated[
    Path, argument("DIR", "The folder of a release, or of its public half alone.")
]
AsJson = Annotated[bool, flag("--json", "Print JSON and nothing else on stdout.")]
Force = Annotated[bool, flag("--force", "Replace what an earlier run has written.")]


@dataclass(frozen=True)
class Reading:
    """How the data is read; every command that reads takes these options."""

    query: Annotated[str | None, option("The SELECT whose rows are the table.", "SQL", _PANEL)] = (
        None
    )
    input_format: Annotated[
        str | None, option("csv, tsv, parquet, arrow or xlsx.", "FORMAT", _PANEL)
    ] = None
    delimiter: Annotated[str | None, option("The character between fields.", "CHAR", _PANEL)] = None
    encoding: Annotated[
        str | None, option("The encoding of the text, such as cp1252.", "NAME", _PANEL)
    ] = None
    decimal: Annotated[
        str | None, option("The decimal mark: a point or a comma.", "CHAR", _PANEL)
    ] = None
    missing_value: Annotated[
        Names,
        option("What stands for a missing value; may be given several times.", "TEXT", _PANEL),
    ] = None
    sheet: Annotated[
        str | None, option("The sheet of a workbook: its name or number.", "SHEET", _PANEL)
    ] = None
    header: Annotated[
        bool, flag("--header", "The first line holds names, whatever they look like.", _PANEL)
    ] = False

    def read(self, source: str, *others: str | None) -> Table:
        """The table behind DATA; an option that only fits one of the others is left to that."""
        from shoal.table import read

        elsewhere = {name for other in others if other is not None for name in _fitting(other)}
        left = elsewhere - set(_fitting(source)) if self.input_format is None else set()
        return read(source, **{n: v for n, v in self._given().items() if n not in left})

    def read_other(self, source: str) -> Table:
        """A further table of the call, with the options that fit it."""
        from shoal.table import read

        names = _fitting(source)
        return read(source, **{n: v for n, v in self._given().items() if n in names})

    def output_format(self, source: str) -> str:
        """The format of a release: that of the data, Parquet for a database."""
        from shoal.table import FORMATS
        from shoal.table.storage._formats import ALIASES

        found = self.input_format or kind_of_source(source) or ""
        found = ALIASES.get(found, found)
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


def is_database(source: str) -> bool:
    """Whether the data comes from a database and not from a file."""
    return "://" in source and not Path(source).exists()


def kind_of_source(source: str) -> str | None:
    """``"database"``, the format that the name of a file tells, or None."""
    from shoal.table.storage._formats import format_of

    if is_database(source):
        return "database"
    try:
        return format_of(source)
    except ReadError:
        return None


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


@dataclass(frozen=True)
class Declared:
    """The roles as the call gives them, by a plan or by names."""

    plan: Path | None = None
    quasi: Names = None
    sensitive: Names = None
    identifiers: Names = None
    target: str | None = None
    unit: Names = None
    household: Names = None

    def roles(self, table: Table) -> Roles:
        """The roles of a table that has none yet."""
        if self.plan is not None:
            return self._with_target(self._of_plan(self.plan))
        if not self.quasi:
            raise RolesError(
                "No quasi-identifiers are given: name the columns that an intruder may know with "
                "--quasi a,b or give a --plan; 'shoal roles DATA' suggests some."
            )
        from shoal.table import Roles

        columns = table.columns
        roles = Roles(
            identifiers=split_names(self.identifiers, columns),
            quasi_identifiers=split_names(self.quasi, columns),
            sensitive=split_names(self.sensitive, columns),
            unit="row" if self.unit == ["row"] else split_names(self.unit, columns),
            household=split_names(self.household, columns),
        )
        return self._with_target(roles)

    def over(self, roles: Roles, table: Table) -> Roles:
        """The roles that a release records, unless the call gives others."""
        given = self.plan is not None or self._names_some
        return self.roles(table) if given else self._with_target(roles)

    @property
    def _names_some(self) -> bool:
        return any((self.quasi, self.sensitive, self.identifiers, self.unit, self.household))

    def _of_plan(self, plan: Path) -> Roles:
        from shoal.workflow import Plan

        if self._names_some:
            raise RolesError(
                "The roles are given twice, by --plan and by --quasi, --sensitive, --identifiers, "
                "--unit or --household; give them once."
            )
        roles = Plan.load(plan).roles
        if roles is None:
            raise PlanError(f"The plan at '{plan}' has no [roles]; add them, or give --quasi.")
        return roles

    def _with_target(self, roles: Roles) -> Roles:
        return roles if self.target is None else roles.replacing(target=self.target)


F = TypeVar("F", bound=Callable[..., Any])


def with_examples(text: str) -> Callable[[F], F]:
    """Give a command the examples that its help ends with."""

    def mark(command: F) -> F:
        vars(command)["examples"] = text
        return command

    return mark


def shown_source(data: str, reading: Reading | None = None) -> list[str]:
    """DATA and the options of reading as words of a command; a password is left out.

    Examples
    --------
    >>> shown_source("my people.csv", Reading(delimiter=";"))
    ["'my people.csv'", '--delimiter', "';'"]
    >>> shown_source("postgresql://ann:secret@host/people")
    ['DATA']
    """
    secret = re.match(r"[^/]+://[^/@]*:[^/@]*@", data) is not None
    options = [] if reading is None else reading.words()
    return ["DATA" if secret else shlex.quote(data), *options]
