"""The public half of a release as a stranger reads it: the bytes of its files, and no Shoal.

A cell is the text that a reader of the file sees, and None where nothing is written. Text files
and workbooks are read with what Python brings along, Parquet and Arrow with pyarrow.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

Cells = list[str | None]

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_PLACE = re.compile("([A-Z]+)([0-9]+)")


class WrongFile(Exception):
    """The files do not have what release.json says of them."""


@dataclass(frozen=True)
class Public:
    """What a public half says, and what its data file holds."""

    facts: Mapping[str, Any]
    columns: Mapping[str, Cells]
    types: Mapping[str, str]
    roles: Mapping[str, str | None]

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def playing(self, role: str) -> list[str]:
        """The columns of a role, in the order of the file."""
        return [name for name, played in self.roles.items() if played == role]

    def in_order(self, name: str) -> list[str | None]:
        """The different cells of a column: numbers and dates by value, texts by their signs.

        Nothing comes last. ValueError where the text does not tell the order.
        """
        cells = set(self.columns[name])
        present = sorted((cell for cell in cells if cell is not None), key=_rank(self, name))
        return [*present, None] if None in cells else [*present]


def _plain(name: str) -> str:
    """A name without the apostrophes that keep spreadsheets from running it."""
    return name.replace("'", "")


def read_public(folder: Path) -> Public:
    """Read the public half in a folder; what its release.json says must fit the data file."""
    facts = json.loads((folder / "release.json").read_text("utf-8"))
    stated = facts["data"]
    content = (folder / stated["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != stated["sha256"]:
        raise WrongFile("the data has another checksum")
    names = [column["name"] for column in stated["columns"]]
    read = _READERS[stated["format"]](content, names)
    if [_plain(name) for name in read] != [_plain(name) for name in names]:
        raise WrongFile("the data has other columns")
    read = dict(zip(names, read.values(), strict=True))
    if any(len(cells) != stated["rows"] for cells in read.values()):
        raise WrongFile("the data has another number of rows")
    types = {column["name"]: column["type"] for column in stated["columns"]}
    roles = {column["name"]: column["role"] for column in stated["columns"]}
    return Public(facts, read, types, roles)


def _rank(public: Public, name: str) -> Callable[[str], Any]:
    kind, file_format = public.types[name], public.facts["data"]["format"]
    if kind == "string" and name in (public.facts["data"].get("formulas") or {}).get("cells", ()):
        raise ValueError("an apostrophe before a formula changes the order of texts")
    if kind == "string" or kind == "boolean":
        return lambda text: text
    if kind.startswith(("int", "uint")):
        return int
    if kind.startswith("float"):
        return float
    if kind.startswith("decimal"):
        return Decimal
    if file_format in ("parquet", "arrow"):
        return int  # the number of units
    if file_format in _LABELLED:
        return float  # the number of days, seconds or milliseconds
    if file_format == "xlsx" and all(_is_number(cell) for cell in public.columns[name]):
        return float  # days
    if kind == "date":
        return dt.date.fromisoformat
    if kind.startswith("datetime") and "," not in kind:
        return dt.datetime.fromisoformat
    raise ValueError(f"the text of a {kind} does not tell the order")


def _is_number(cell: str | None) -> bool:
    try:
        return cell is None or float(cell) == float(cell)
    except ValueError:
        return False


# -- text


def _delimited(delimiter: str) -> Callable[[bytes, Sequence[str]], dict[str, Cells]]:
    def read(content: bytes, names: Sequence[str]) -> dict[str, Cells]:
        lines = list(records(content.decode("utf-8"), delimiter))
        header, rows = lines[0], lines[1:]
        if any(len(row) != len(header) for row in rows):
            raise WrongFile("rows have different numbers of fields")
        return _by_name(header, list(zip(*rows, strict=True)) or [()] * len(header))

    return read


def records(text: str, delimiter: str) -> list[Cells]:
    """The fields of each line: an empty one is None, and ``""`` an empty text.

    Python's own reader of CSV files takes both for an empty text.

    >>> records('a,"b, c"\\n,""\\n', ",")
    [['a', 'b, c'], [None, '']]
    """
    field = re.compile(rf'"((?:[^"]|"")*)"|([^{delimiter}\n]*)')
    found: list[Cells] = []
    line: Cells = []
    at = 0
    while at < len(text):
        match = field.match(text, at)
        assert match is not None  # it matches nothing, too
        quoted, bare = match.groups()
        if quoted is None and "\r" in bare:
            raise WrongFile("an end of a line is not quoted")
        line.append((bare or None) if quoted is None else quoted.replace('""', '"'))
        sign = text[match.end() : match.end() + 1]
        if sign not in (delimiter, "\n"):
            raise WrongFile("a field goes on after its quotation mark, or the last line has no end")
        at = match.end() + 1
        if sign == "\n":
            found.append(line)
            line = []
    return found


def _by_name(header: Sequence[str | None], columns: Sequence[Sequence[str | None]]) -> dict:
    if None in header or len(set(header)) != len(header):
        raise WrongFile("the data has a column without a name of its own")
    return {str(name): list(cells) for name, cells in zip(header, columns, strict=True)}


# -- columns


def _parquet(content: bytes, names: Sequence[str]) -> dict[str, Cells]:
    return _arrow_columns(pyarrow.parquet.read_table(io.BytesIO(content)))


def _arrow(content: bytes, names: Sequence[str]) -> dict[str, Cells]:
    return _arrow_columns(pyarrow.ipc.open_file(io.BytesIO(content)).read_all())


def _arrow_columns(table: pa.Table) -> dict[str, Cells]:
    columns = [_arrow_cells(column) for column in table.columns]
    return _by_name(table.column_names, columns)


def _arrow_cells(column: pa.ChunkedArray) -> Cells:
    if pa.types.is_temporal(column.type):
        wide = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.cast(wide)  # its unit, which is the same for all, left out
    return [None if cell is None else _written(cell) for cell in column.to_pylist()]


def _written(cell: Any) -> str:
    return cell if isinstance(cell, str) else repr(cell) if isinstance(cell, float) else str(cell)


# -- workbooks


def _workbook(content: bytes, names: Sequence[str]) -> dict[str, Cells]:
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        shared = _texts(parts)
        sheet = ElementTree.fromstring(parts.read("xl/worksheets/sheet1.xml"))
    rows: dict[int, dict[int, str | None]] = {}
    for cell in sheet.iter(f"{_SHEET}c"):
        letters, row = _PLACE.fullmatch(cell.attrib["r"]).groups()
        at = 0
        for letter in letters:
            at = at * 26 + ord(letter) - ord("A") + 1
        rows.setdefault(int(row), {})[at - 1] = _cell(cell, shared)
    header = [rows[1].get(at) for at in range(len(names))]
    below = range(2, max(rows) + 1)
    columns = [[rows.get(row, {}).get(at) for row in below] for at in range(len(names))]
    return _by_name(header, columns)


def _texts(parts: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in parts.namelist():
        return []
    root = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
    return [
        _unescaped("".join(text.text or "" for text in item.iter(f"{_SHEET}t")))
        for item in root.iter(f"{_SHEET}si")
    ]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _cell(cell: ElementTree.Element, shared: Sequence[str]) -> str | None:
    value = cell.find(f"{_SHEET}v")
    if value is None or value.text is None:
        return None
    if cell.attrib.get("t") == "s":
        return shared[int(value.text)]
    return value.text


# -- Stata, SPSS and SAS

_LABELLED = {
    "dta": "read_dta",
    "sav": "read_sav",
    "zsav": "read_sav",
    "por": "read_por",
    "xpt": "read_xport",
}


def _labelled(reader: str) -> Callable[[bytes, Sequence[str]], dict[str, Cells]]:
    """Numbers as they stand there, so that dates count in days, seconds or milliseconds."""

    def read(content: bytes, names: Sequence[str]) -> dict[str, Cells]:
        import pyreadstat

        options = {"output_format": "polars", "disable_datetime_conversion": True}
        frame, _ = getattr(pyreadstat, reader)(io.BytesIO(content), **options)
        if reader == "read_por" and frame.columns == [name.upper() for name in names]:
            frame.columns = list(names)  # it has no other letters
        columns = [[_cell_of_number(cell) for cell in column.to_list()] for column in frame]
        return _by_name(frame.columns, columns)

    return read


def _cell_of_number(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return _written(cell)


_READERS: dict[str, Callable[[bytes, Sequence[str]], dict[str, Cells]]] = {
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "parquet": _parquet,
    "arrow": _arrow,
    "xlsx": _workbook,
    **{format: _labelled(reader) for format, reader in _LABELLED.items()},
}
