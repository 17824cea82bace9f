"""Files for an engine: which are data, how text is written, and the types of its columns.

As in Spark, files that are hidden or unfinished do not count. The first records of text files are
read as in memory, which suggests a type for each column. SQL then checks all records with the same
patterns. If a type does not fit, the next wider one is tried: an integer, a number, a text.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from shoal.engines._engine import ROW
from shoal.errors import ReadError, quoted
from shoal.table import ReadOptions, read
from shoal.table.storage._records import detected_delimiter, title_lines
from shoal.table.storage._text import Text
from shoal.table.storage.inference._missing import DEFAULT_MISSING

if TYPE_CHECKING:
    from shoal.engines._engine import Engine

#: What Hive writes for a missing value, and the canonical form of a number.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_CANONICAL = re.compile(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)[.][0-9]+")
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_FIRST = 20_000
_HEAD = 1 << 16
_DIGITS = "(0|[1-9][0-9]*)"
#: Each SQL type, with the pattern of its texts.
_PATTERNS = {
    "BIGINT": f"^ *-?{_DIGITS} *$",
    "DOUBLE": f"^ *-?({_DIGITS}([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)? *$",
    "BOOLEAN": "^ *([tT][rR][uU][eE]|[fF][aA][lL][sS][eE]) *$",
    "DATE": "^ *[0-9]{4}-[0-9]{2}-[0-9]{2} *$",
    "TIMESTAMP_NTZ": "^ *[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}"
    "(:[0-9]{2}([.][0-9]{1,6})?)?Z? *$",
    # numbers with marks between thousands, and dates that are not in ISO form
    "STRING": "^ *(-?(0|[1-9][0-9]{0,2}([., ][0-9]{3})+|[1-9][0-9]*)([.,][0-9]+)?"
    "|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}.*) *$",
}
#: An integer among numbers that a float would change.
_LONG = "^ *-?[0-9]{16,} *$"
_LADDERS = {
    "integer": ("BIGINT", "DOUBLE"),
    "float": ("DOUBLE",),
    "boolean": ("BOOLEAN",),
    "date": ("DATE", "TIMESTAMP_NTZ"),
    "datetime": ("TIMESTAMP_NTZ",),
    "empty": tuple(kind for kind in _PATTERNS if kind != "STRING"),
}
#: Read options that an engine does not support; encodings and delimiters are compared.
_BY_MEMORY = (
    *("thousands", "missing_values", "only_missing_values", "header", "skip_lines", "date_formats"),
)


@dataclass(frozen=True)
class TextColumn:
    """A column of text files: its possible types, and whether numbers have a decimal comma."""

    name: str
    ladder: tuple[str, ...]
    comma: bool = False

    def kind(self, misfits: Callable[[str], int]) -> str | None:
        """The first type that fits all texts; None for text. ``misfits`` counts unfitting ones."""
        found = next((kind for kind in self.ladder if misfits(kind) == 0), None)
        if found is None and self.ladder and misfits("STRING") == 0:
            raise _spelled_otherwise([self.name])
        return found


@dataclass(frozen=True)
class TextFiles:
    """Text files with the same format."""

    files: tuple[Path, ...]
    delimiter: str
    columns: tuple[TextColumn, ...]
    missing: tuple[str, ...] = DEFAULT_MISSING


def typed_texts(engine: Engine, table: str, columns: Iterable[TextColumn]) -> str:
    """The query for columns of texts, each in the first type that fits all its texts."""
    typed = (f"{_cast(engine, table, one)} AS {engine.quote(one.name)}" for one in columns)
    return f"SELECT {', '.join([ROW, *typed])} FROM {table}"


def _cast(engine: Engine, table: str, column: TextColumn) -> str:
    name = engine.quote(column.name)
    number = f"replace(trim({name}), ',', '.')" if column.comma else f"trim({name})"

    def misfits(kind: str) -> int:
        long = f" OR regexp_like({number}, '{_LONG}')" if kind == "DOUBLE" else ""
        found = engine.query(
            f"SELECT count(*) AS n FROM {table} WHERE {name} IS NOT NULL AND "
            f"(NOT regexp_like({number}, '{_PATTERNS[kind]}'){long} "
            f"OR try_cast({number} AS {kind}) IS NULL)"
        )
        return int(found["n"][0])

    kind = column.kind(misfits)
    return name if kind is None else f"try_cast({number} AS {kind})"


def is_text(path: Path) -> bool:
    """Whether a path is a file of delimited text, or a folder of such files and no Parquet."""
    if not path.is_dir():
        return path.name.lower().endswith(ENDINGS)
    return not parquet_files(path) and bool(_found(path, ENDINGS))


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those of a folder."""
    return _found(path, (".parquet",)) if path.is_dir() else [path]


def _found(path: Path, endings: tuple[str, ...]) -> list[Path]:
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.name.lower().endswith(endings)
        and not any(map(_is_hidden, file.relative_to(path).parts))
        and file.is_file()
    ]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def check_parquet(files: Sequence[Path]) -> None:
    """Raise ReadError for a file that is not Parquet, or whose types differ from other files."""
    import pyarrow
    import pyarrow.parquet as pq

    known: dict[str, tuple[str, Path]] = {}
    for file in files:
        if not file.exists():
            raise ReadError(f"There is no file '{file}'. Check its name and the current folder.")
        try:
            schema = pq.read_schema(file)
        except (pyarrow.ArrowException, OSError):
            raise ReadError(
                f"'{file.name}' cannot be read as Parquet: it is damaged or has another format."
            ) from None
        for column in schema:
            kind = _sort_of(column.type)
            first, where = known.setdefault(column.name.casefold(), (kind, file))
            if kind != first:
                raise ReadError(
                    f"Column '{column.name}' holds {first} in '{where.name}' and {kind} in "
                    f"'{file.name}'. All files of a folder form one table and need the same types."
                )


def _sort_of(kind: Any) -> str:
    """What an Arrow type holds; types that hold the same may differ between files."""
    import pyarrow.types as of

    if of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind):
        return "numbers"
    if of.is_string(kind) or of.is_large_string(kind) or of.is_dictionary(kind):
        return "texts"
    return "dates" if of.is_date(kind) or of.is_timestamp(kind) else str(kind)


def partition_kinds(folders: Iterable[str]) -> dict[str, str]:
    """The columns in names of folders, such as 'year=2026', with their SQL types.

    A column has numbers only if all its values are numbers in canonical form: '01' is a text.
    """
    found: dict[str, set[str]] = {}
    for name in folders:
        if "=" in name:
            key, _, value = name.partition("=")
            found.setdefault(unquote(key), set()).add(unquote(value))
    return {key: _number_kind(values - {_NO_VALUE}) for key, values in found.items()}


def _number_kind(values: set[str]) -> str:
    if not values or not all(map(_CANONICAL.fullmatch, values)):
        return "VARCHAR"
    if any("." in value for value in values):
        return "DOUBLE" if all(repr(float(v)) in (v, f"{v}.0") for v in values) else "VARCHAR"
    return "BIGINT" if all(abs(int(value)) < 1 << 63 for value in values) else "VARCHAR"


def text_files(path: Path, scratch: Path) -> TextFiles:
    """The format of text files; ReadError if they differ or are not UTF-8 text."""
    files = _found(path, ENDINGS) if path.is_dir() else [path]
    rows, delimiter = _first_records(files[0])
    for other in files[1:]:
        records, mark = _first_records(other, 1)
        if (records, mark) != (rows[:1], delimiter):
            raise ReadError(
                f"The first lines of '{files[0].name}' and '{other.name}' differ. All files of a "
                "folder form one table and need the same columns."
            )
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(rows)
    head = scratch / "head.csv"
    head.touch(mode=0o600)
    head.write_text(written.getvalue(), encoding="utf-8")
    try:
        table = read(head, delimiter=delimiter)
    except ReadError as error:
        raise ReadError(str(error).replace(str(head), files[0].name)) from None
    finally:
        head.unlink()
    manner = table.manner
    if manner is not None and (manner.options.thousands or manner.options.date_formats):
        raise _spelled_otherwise(list(manner.options.date_formats or ()))
    if len(table.columns) != len(rows[0]):
        raise _around_the_table(files[0])
    columns = []
    for place, name in enumerate(table.columns):
        kind = str(table.kind(name))
        if table.missing_count(name) == len(table):
            kind = "empty"
        comma = kind == "float" and any("," in row[place] for row in rows[1:] if len(row) > place)
        columns.append(TextColumn(name, _LADDERS.get(kind, ()), comma))
    return TextFiles(tuple(files), delimiter, tuple(columns))


def _around_the_table(path: Path) -> ReadError:
    return ReadError(
        f"'{path.name}' has lines above its column names, or columns without a name. An engine "
        "cannot skip them. Use the engine 'memory', or fix the file."
    )


def _spelled_otherwise(names: Sequence[str]) -> ReadError:
    where = f" of {quoted(names)}" if names else ""
    return ReadError(
        f"Numbers or dates{where} have a format that an engine cannot read, such as 1.234,5 or "
        "31.12.1999. Use the engine 'memory', or convert the table to Parquet."
    )


def other_reading(path: Path, known: ReadOptions) -> list[str]:
    """The read options of a plan that an engine does not support, or detects differently."""
    said = known.to_dict()
    odd = [name for name in _BY_MEMORY if name in said]
    if known.encoding not in (None, "utf-8", "ascii"):
        odd.append("encoding")
    files = _found(path, ENDINGS) if path.is_dir() else [path]
    if not odd and known.delimiter not in (None, _first_records(files[0], 1)[1]):
        odd.append("delimiter")
    return odd


def check_records(path: Path, delimiter: str, width: int) -> int:
    """The number of records in a text file; ReadError if one is malformed.

    After a quote that is not closed, other records would be read as part of a cell.
    """
    records = -1
    try:
        with _opened(path) as file:
            for record in csv.reader(file, delimiter=delimiter, strict=True):
                if len(record) not in (0, width):
                    raise csv.Error
                records += bool(record)
    except (OSError, UnicodeDecodeError, csv.Error, EOFError):
        raise ReadError(
            f"Record {records + 2:,} of '{path.name}' is not valid CSV with {width} columns: a "
            "quote is not closed, or the record has too many or too few fields. Fix the file."
        ) from None
    return records


def _first_records(path: Path, count: int = _FIRST) -> tuple[list[list[str]], str]:
    if not path.exists():
        raise ReadError(f"There is no file '{path}'. Check its name and the current folder.")
    try:
        with _opened(path) as file:
            head = Text(file.read(_HEAD).encode())
            delimiter = detected_delimiter(head, "\t" if ".tsv" in path.suffixes else ",")
            if title_lines(head, None):
                raise _around_the_table(path)
            file.seek(0)
            lines: Any = csv.reader(file, delimiter=delimiter)
            return list(itertools.islice(lines, count)), delimiter
    except (OSError, UnicodeDecodeError, csv.Error, EOFError):
        raise ReadError(
            f"'{path.name}' cannot be read as CSV in UTF-8. Convert it to Parquet, or use the "
            "engine 'memory'."
        ) from None


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def listed(texts: Iterable[str]) -> str:
    """Texts as an SQL list."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
