"""What commands share: their options, how data is read, which roles it has, files they write."""

from __future__ import annotations

import csv
import functools
import inspect
import io
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from shoal.errors import InputError, PlanError, ReadError, RolesError

if TYPE_CHECKING:
    from shoal.table import ReadOptions, Roles, Table
    from shoal.workflow import EngineSettings

_SECTION = re.compile(r"^(\S.*)\n-{3,}\n", re.MULTILINE)
#: A line of a section; its continuation lines are indented.
_LINE = re.compile(r"^(\w+)(?: (\S+))?: (.*(?:\n +.*)*)", re.MULTILINE)

#: The names of reading options in Python, where they differ.
IN_PYTHON = {
    "input_format": "format",
    "missing_value": "missing_values",
    "only_missing_value": "only_missing_values",
    "date_format": "date_formats",
}

Names = list[str] | None
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="The table: a CSV, TSV, Parquet, Arrow/Feather, Excel, Stata, SPSS or SAS file, or "
        "the URI of a database (sqlite:///file, duckdb:///file, postgresql://user@host/name) with "
        "--query.",
    ),
]
ReleaseFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        show_default=False,
        help="The folder of a release, or of its public half alone.",
    ),
]


def _remember_json(ctx: typer.Context, value: bool) -> bool:
    """Report failures as JSON, too."""
    ctx.meta["json"] = value
    return value


def _be_quiet(ctx: typer.Context, value: bool) -> bool:
    """Stay quiet until the program ends; failures are still reported."""
    if value:
        from shoal.app.cli.output import ui

        ctx.find_root().with_resource(ui.quiet())
    return value


AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print only JSON on stdout.",
        callback=_remember_json,
    ),
]
Engine = Literal["auto", "memory", "local", "duckdb", "spark"]
Force = Annotated[bool, typer.Option("--force", help="Replace the output of an earlier run.")]
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only failures, and JSON with --json.",
            callback=_be_quiet,
        ),
    ],
)


def command(examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a command; its docstring describes the options section by section.

    A line of a section is ``name METAVAR: help``, or ``name --flag: help``. The section
    ``Arguments`` lists positional arguments. ``Options`` lists the plain options; every other
    section becomes a panel of the help. A parameter ``reading`` stands for the options of
    :class:`Reading`. Every command has ``--quiet``.
    """

    def make(function: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in _described_parameters(function) if p.name != "reading"]
        reads = len(own) < len(inspect.signature(function).parameters)
        shared = _described_parameters(Reading) if reads else []

        @functools.wraps(function)
        def run(quiet: bool, **given: Any) -> None:
            if reads:
                given["reading"] = Reading(**{each.name: given.pop(each.name) for each in shared})
            function(**given)

        signature = inspect.Signature([*own, _QUIET, *shared])
        text = _SECTION.split(inspect.getdoc(function) or "")[0]
        paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
        run.__doc__ = "\n\n".join(paragraphs)  # the terminal decides where lines end
        run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
        vars(run).update(__signature__=signature, examples=examples)
        return run

    return make


def _described_parameters(declaring: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters with what typer needs to know about each."""
    _, *sections = _SECTION.split(inspect.getdoc(declaring) or "")
    said = {
        name: (panel, metavar, " ".join(help.split()))
        for panel, lines in zip(sections[::2], sections[1::2], strict=True)
        for name, metavar, help in _LINE.findall(lines)
    }
    return [
        parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY,
            annotation=_annotation(parameter, *said[name])
            if name in said
            else parameter.annotation,
        )
        for name, parameter in inspect.signature(declaring, eval_str=True).parameters.items()
    ]


def _annotation(parameter: inspect.Parameter, panel: str, metavar: str, help: str) -> Any:
    kind, info = parameter.annotation, typer.Option()
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    if panel == "Arguments":
        argument = typer.Argument(
            metavar=metavar, show_default=False, help=help, autocompletion=info.autocompletion
        )
        return Annotated[kind, argument]
    info.metavar, info.help = metavar or None, help
    info.rich_help_panel = None if panel == "Options" else panel
    if kind is bool:
        info.param_decls = (metavar or f"--{parameter.name.replace('_', '-')}",)
    return Annotated[kind, info]


@dataclass(frozen=True)
class Reading:
    """How the data is read; every command that reads takes these options.

    Reading the data (detected if not specified)
    --------------------------------------------
    query SQL: The SELECT that returns the table.
    input_format FORMAT: csv, tsv, parquet, arrow, xlsx, dta, sav, zsav, por, sas7bdat or xpt.
    delimiter CHAR: The character between fields.
    encoding NAME: The encoding of the text, such as cp1252.
    decimal CHAR: The decimal mark: a point or a comma.
    thousands CHAR: The mark between thousands, such as a point or an apostrophe.
    missing_value TEXT: A text that stands for a missing value, in addition to an empty field, NA,
        NaN and NULL. May be repeated.
    only_missing_value TEXT: A text that stands for a missing value, instead of the defaults. May
        be repeated.
    date_format FORMAT: The date format, such as '%d/%m/%Y', for all columns that match it, or for
        one column, such as 'birth_date=%d/%m/%Y'. May be repeated.
    sheet SHEET: The sheet of a workbook: its name or number.
    header: The first line holds the column names, whatever they look like.
    skip_lines N: The number of lines above the column names.
    missing_reasons WHAT: For Stata, SPSS and SAS: kept or dropped. Kept reasons for missing values
        are columns of their own.
    catalog FILE: For a SAS file: the catalog (.sas7bcat) that has the labels of its values.
    metadata FILE: A Frictionless, CSVW or DDI-Codebook file that describes the table, or none to
        ignore one that lies next to it (default: datapackage.json, NAME-metadata.json or ddi.xml).
    """

    query: str | None = None
    input_format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing_value: Names = None
    only_missing_value: Names = None
    date_format: Names = None
    sheet: str | None = None
    header: bool = False
    skip_lines: int | None = None
    missing_reasons: str | None = None
    catalog: str | None = None
    metadata: str | None = None

    def read(
        self,
        source: str,
        *others: str | None,
        known: ReadOptions | None = None,
        notes: bool = True,
    ) -> Table:
        """The table behind DATA; an option that only fits another table of the call is ignored.

        Options that are not given come from a plan or a release. The ``notes`` go to stderr.
        """
        elsewhere = {name for other in others if other is not None for name in _fitting(other)}
        left = elsewhere - set(_fitting(source)) if self.input_format is None else set()
        given = {name: value for name, value in self._given().items() if name not in left}
        table = _read(source, given, known)
        if notes:
            tell_notes(table)
        return table

    def read_first(self, source: str, program: str, *more: str) -> tuple[Table, str, str]:
        """The table with the usual signs of a missing value read as missing, why, and the command.

        Only signs that keep a whole column from being numbers or dates count. A text that is not
        on the list of usual signs is never taken for one. The command reads the signs as texts. No
        sign is read as missing if the user listed all that stand for one.
        """
        from shoal.app.cli.output import ui
        from shoal.table import mixed_columns

        table, why, undo = self.read(source, notes=False), "", ""
        mixed = [one for one in mixed_columns(table) if one.signs and not one.others]
        signs = list(dict.fromkeys(sign for one in mixed for sign in one.signs))
        may_have_signs = "missing_values" in _fitting(source, self.input_format)
        if signs and may_have_signs and not self.only_missing_value:
            texts = [*(self.missing_value or ()), *signs]
            table = _read(source, self._given() | {"missing_values": texts}, None)
            facts = ". ".join(one.fact for one in mixed)
            why = f"Read as missing: {ui.listed(map(repr, signs))}. {facts}. If they are not "
            why += "missing, run:"
            undo = " ".join([program, *shown_source(source, self), *_ONLY_USUAL, *more])
        tell_notes(table)
        return table, why, undo

    def read_other(self, source: str, *, known: ReadOptions | None = None) -> Table:
        """Another table of the call, with the options that fit it."""
        names = _fitting(source)
        given = {name: value for name, value in self._given().items() if name in names}
        table = _read(source, given, known)
        tell_notes(table)
        return table

    def engine_for(
        self,
        source: str,
        engine: str,
        settings: EngineSettings,
        known: ReadOptions | None = None,
    ) -> tuple[str, str]:
        """The engine for DATA, and why; never one that would read the data differently."""
        from shoal.engines import chosen_engine

        chosen, why = chosen_engine(source, engine, settings)
        if chosen == "memory":
            return chosen, why
        from shoal.engines._duckdb import is_duckdb_file

        if is_duckdb_file(source) and chosen == "duckdb":
            return chosen, why
        if is_database(source):
            raise InputError(
                f"The engine '{chosen}' cannot read from this database. Use --engine memory, or "
                "copy the table to Parquet."
            )
        ignored = self.metadata == "none"
        given = (replace(self, metadata=None) if ignored else self).words()
        if given:
            raise InputError(
                f"The engine '{chosen}' detects by itself how to read the data. Leave out "
                f"{given[0]}, or use --engine memory."
            )
        from shoal.engines import refuse_reading
        from shoal.table import ReadOptions

        if ignored:
            known = ReadOptions(metadata="none").over(known)
        refuse_reading(source, known, chosen)
        return chosen, why

    def engine_source(self, source: str) -> Any:
        """DATA in the form that an engine needs."""
        from shoal.engines._duckdb import DatabaseTable, is_duckdb_file

        return DatabaseTable(source, self.query) if is_duckdb_file(source) else source

    def output_format(self, source: str, known: ReadOptions | None = None) -> str:
        """The format of a release: that of the data if Shoal writes it, Parquet for a database."""
        from shoal.table import FORMATS
        from shoal.table.storage._formats import ALIASES, READ_ONLY

        named = self.input_format or kind_of_source(source) or (known and known.format) or ""
        named = ALIASES.get(named, named)
        named = READ_ONLY.get(named, named)
        return named if named in FORMATS else "parquet"

    def _given(self) -> dict[str, Any]:
        """The given options, as :func:`shoal.read` takes them."""
        sheet = self.sheet
        given = vars(self) | {
            "delimiter": {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter),
            "date_format": dict(map(_named_format, self.date_format or ())),
            "sheet": int(sheet) if sheet is not None and sheet.isdecimal() else sheet,
            "header": self.header or None,
        }
        return {
            IN_PYTHON.get(name, name): value
            for name, value in given.items()
            if value not in (None, [], {})
        }

    def words(self) -> list[str]:
        """The given options, as words of a suggested command."""
        words = []
        for spec in fields(self):
            value, name = getattr(self, spec.name), f"--{spec.name.replace('_', '-')}"
            if value is True:
                words.append(name)
            elif value is not None and value is not False:
                for one in value if isinstance(value, list) else [value]:
                    words += [name, shlex.quote(str(one))]
        return words


_ONLY_USUAL = ("--only-missing-value", "''", "--only-missing-value", "NA")


def tell_notes(table: Table) -> None:
    """What a person should know about how a table was read, on stderr."""
    from shoal.app.cli.output import ui

    for note in () if table.manner is None else table.manner.notes:
        ui.note(f"Note: {ui.printable(note)}")


def _read(source: str, given: dict[str, Any], known: ReadOptions | None) -> Table:
    from shoal.table import ReadOptions, read

    if known is not None and not is_database(source):
        said = ReadOptions.from_dict(given)
        base = known.for_file(source) if said.format is None else known.fitting(said.format)
        given = said.over(base).without(["columns"]).to_dict()
    return read(source, **given)


def _named_format(text: str) -> tuple[str, str]:
    """A column and its date format; a format without a column is for every column that fits."""
    name, _, format = text.rpartition("=")
    return name or "*", format


def _fitting(source: str, format: str | None = None) -> tuple[str, ...]:
    """The options that a format, or else the kind of a source, allows."""
    from shoal.table.storage._reading import OPTIONS_OF

    known = {"database": ("query",), **OPTIONS_OF}
    return known.get(format or kind_of_source(source) or "", ())


def is_database(source: str) -> bool:
    """Whether the data comes from a database and not from a file."""
    return "://" in source and not Path(source).exists()


def kind_of_source(source: str) -> str | None:
    """``"database"``, the format that the file name implies, or None."""
    from shoal.table.storage._formats import format_of

    if is_database(source):
        return "database"
    try:
        return format_of(source)
    except ReadError:
        return None


def shown_source(data: str, reading: Reading, *, kept: bool = False) -> list[str]:
    """DATA and the reading options as words of a command; a password is left out.

    A plan or a release has ``kept`` the reading options of a file, but not a database query.
    """
    secret = re.match(r"[^/]+://[^/@]*:[^/@]*@", data) is not None
    shown = Reading(query=reading.query) if kept else reading
    return ["DATA" if secret else shlex.quote(data), *shown.words()]


def split_names(given: Sequence[str] | None, columns: Iterable[str]) -> list[str]:
    """Column names from options: several, or one text with commas.

    A text that is the name of a column is used as it is. Commas and line ends separate names,
    unless they are in quotation marks.
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

    def roles(self, columns: Sequence[str]) -> Roles:
        """The roles for a table with these columns."""
        from shoal.table import Roles

        if self.plan is not None:
            return self._with_target(self._of_plan(self.plan))
        if not self.quasi:
            raise RolesError(
                "No quasi-identifiers are given. Name the columns that an intruder may know with "
                "--quasi a,b, or pass a --plan. 'shoal roles DATA' suggests some."
            )
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
        return self.roles(table.columns) if given else self._with_target(roles)

    @property
    def _names_some(self) -> bool:
        return any((self.quasi, self.sensitive, self.identifiers, self.unit, self.household))

    @property
    def reading(self) -> ReadOptions | None:
        """The reading options in the plan."""
        from shoal.workflow import Plan

        return None if self.plan is None else Plan.load(self.plan).read

    def _of_plan(self, plan: Path) -> Roles:
        from shoal.workflow import Plan

        if self._names_some:
            raise RolesError(
                "The roles are given twice: by --plan, and by --quasi, --sensitive, "
                "--identifiers, --unit or --household. Use one of the two."
            )
        roles = Plan.load(plan).roles
        if roles is None:
            raise PlanError(f"The plan at '{plan}' has no [roles]. Add them, or use --quasi.")
        return roles

    def _with_target(self, roles: Roles) -> Roles:
        return roles if self.target is None else roles.replacing(target=self.target)


def check_new(path: Path, *, force: bool) -> None:
    """Refuse to write over a file without ``--force``, and over a folder always."""
    if path.is_dir():
        raise InputError(f"'{path}' is a folder; pass a file name.")
    if path.exists() and not force:
        raise InputError(
            f"The file '{path}' already exists. Choose another name, or use --force to replace it."
        )
    _check_folder(path)


def check_page(path: Path | None) -> None:
    """Refuse to write a page over anything but a page."""
    if path is None:
        return
    if path.is_dir() or (path.exists() and path.suffix.lower() not in (".html", ".htm")):
        raise InputError(
            f"'{path}' already exists and is not an HTML page. Choose a name that ends in .html."
        )
    _check_folder(path)


def _check_folder(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"The folder '{folder}' does not exist. Create it first.")


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file atomically: a reader finds all of it or nothing.

    Only the owner can read a private file.
    """
    from shoal.workflow.release._folder import complete_files

    with complete_files(path.parent, private=private) as aside:
        (aside / path.name).write_text(text, encoding="utf-8", newline="")
