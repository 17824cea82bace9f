"""Files of text for an engine: how they are written, and the types that all their records have.

The first records are read as memory reads them. What they tell of a column is then asked of all
records in SQL, by the same patterns, and where it does not hold the next wider type is tried: an
integer, a number, a text.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from shoal.errors import ReadError
from shoal.table import read
from shoal.table.storage._delimited import DEFAULT_MISSING

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_FIRST = 20_000
_DELIMITERS = ",;\t|"
_DIGITS = "(0|[1-9][0-9]*)"
#: Each type in SQL, with the pattern that a text of it has.
PATTERNS = {
    "BIGINT": f"^ *-?{_DIGITS} *$",
    "DOUBLE": f"^ *-?({_DIGITS}([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)? *$",
    "BOOLEAN": "^ *([tT][rR][uU][eE]|[fF][aA][lL][sS][eE]) *$",
    "DATE": "^ *[0-9]{4}-[0-9]{2}-[0-9]{2} *$",
    "TIMESTAMP": "^ *[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}"
    "(:[0-9]{2}([.][0-9]{1,6})?)?Z? *$",
}
#: An integer among numbers that a float would change.
LONG = "^ *-?[0-9]{16,} *$"
_LADDERS = {
    "integer": ("BIGINT", "DOUBLE"),
    "float": ("DOUBLE",),
    "boolean": ("BOOLEAN",),
    "date": ("DATE", "TIMESTAMP"),
    "datetime": ("TIMESTAMP",),
    "empty": tuple(PATTERNS),
}


@dataclass(frozen=True)
class TextColumn:
    """A column of text files: the types that it may have, and whether numbers have a comma."""

    name: str
    ladder: tuple[str, ...]
    comma: bool = False

    def kind(self, misfits: Callable[[str], int]) -> str | None:
        """The first type that all texts have, by how many do not; None for text."""
        return next((kind for kind in self.ladder if misfits(kind) == 0), None)


@dataclass(frozen=True)
class TextFiles:
    """Files of text that are written alike."""

    files: tuple[Path, ...]
    delimiter: str
    columns: tuple[TextColumn, ...]
    missing: tuple[str, ...] = DEFAULT_MISSING


def is_text(path: Path) -> bool:
    """Whether a path is a file of delimited text, or a folder of such files and no Parquet."""
    if not path.is_dir():
        return path.name.lower().endswith(ENDINGS)
    return next(path.rglob("*.parquet"), None) is None and bool(_files(path))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [f for f in sorted(path.rglob("*")) if f.is_file() and f.name.lower().endswith(ENDINGS)]


def text_files(path: Path, scratch: Path) -> TextFiles:
    """How the files are written; ReadError where they differ or are not text in UTF-8."""
    files = _files(path)
    rows, delimiter = _first_records(files[0])
    for other in files[1:]:
        records, mark = _first_records(other, 1)
        if (records, mark) != (rows[:1], delimiter):
            raise ReadError(
                f"The files '{files[0].name}' and '{other.name}' have other first lines; a folder "
                "of text is one table, with the same columns in each file."
            )
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(rows)
    head = scratch / "head.csv"
    head.touch(mode=0o600)
    head.write_text(written.getvalue(), encoding="utf-8")
    try:
        table = read(head, delimiter=delimiter)
    finally:
        head.unlink()
    columns = []
    for place, name in enumerate(table.columns):
        kind = str(table.kind(name))
        if table.missing_count(name) == len(table):
            kind = "empty"
        comma = kind == "float" and any("," in row[place] for row in rows[1:] if len(row) > place)
        columns.append(TextColumn(name, _LADDERS.get(kind, ()), comma))
    return TextFiles(tuple(files), delimiter, tuple(columns))


def _first_records(path: Path, count: int = _FIRST) -> tuple[list[list[str]], str]:
    try:
        with _opened(path) as file:
            header = file.readline()
            delimiter = max(_DELIMITERS, key=header.count)
            file.seek(0)
            lines: Any = csv.reader(file, delimiter=delimiter)
            return list(itertools.islice(lines, count)), delimiter
    except (OSError, UnicodeDecodeError, csv.Error, EOFError):
        raise ReadError(
            f"'{path.name}' cannot be read as CSV in UTF-8; convert it to Parquet, or use the "
            "engine 'memory'."
        ) from None


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def listed(texts: Sequence[str]) -> str:
    """Texts as SQL lists them."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
