"""How far a sheet reaches, before a reader sets aside memory for all of it.

A reader holds the whole rectangle up to the last cell. One stray cell in the far corner of a sheet
makes that 17 thousand million cells, and the process ends where memory does. So the positions of
the cells are looked at first, in the text of the sheet; what the sheet itself says of its
dimension need not be true.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final
from xml.etree import ElementTree

from shoal.errors import ReadError

#: What a file that is no workbook, or a broken or encrypted one, may raise.
_DAMAGED: Final = (
    OSError,
    EOFError,
    LookupError,
    RuntimeError,  # also of an unknown compression
    StopIteration,
    ValueError,
    ElementTree.ParseError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
_CHUNK: Final = 1 << 20
_MOST_EMPTY: Final = 1 << 24  # cells of a rectangle: half a gigabyte
_SHARE: Final = 20  # one cell in so many is filled, or the rectangle is no table
_USUAL_CELL: Final = re.compile(rb'<c r="([A-Z]{1,3})([0-9]+)"')
_CELL: Final = re.compile(rb"<(?:\w+:)?c[\s/>]")
_ROW: Final = re.compile(rb"<(?:\w+:)?row[\s/>]")
_ROW_NUMBER: Final = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br=[\"'](\d+)[\"']")
_POSITION: Final = re.compile(rb"\br=[\"']([A-Za-z]{1,3})(\d+)[\"']")


def check_extent(path: Path, position: int) -> None:
    """ReadError if a sheet of an .xlsx file is a huge rectangle with next to nothing in it."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_part(archive, position)) as sheet:
            rows, columns, cells = _extent(iter(lambda: sheet.read(_CHUNK), b""))
    except _DAMAGED:
        return  # another format, or damaged: the reader says so
    if rows * columns > max(_MOST_EMPTY, _SHARE * cells):
        raise ReadError(
            f"Sheet {position + 1} of '{path}' reaches to row {rows:,} and column {columns:,}, but "
            f"has only {cells:,} cells; delete the stray cells beyond the table, or save the table "
            "as CSV."
        )


def _part(archive: zipfile.ZipFile, position: int) -> str:
    """The file in the archive that holds the sheet at a position."""
    sheets = ElementTree.fromstring(archive.read("xl/workbook.xml")).iterfind("{*}sheets/{*}sheet")
    attributes = list(sheets)[position].attrib
    wanted = next(value for name, value in attributes.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(link.attrib["Target"] for link in links if link.attrib["Id"] == wanted)
    return target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl", target))


def _extent(chunks: Iterator[bytes]) -> tuple[int, int, int]:
    """The last row, the last column and the number of cells."""
    rows = columns = cells = begun = in_row = longest = 0
    rest = b""
    for chunk in chunks:
        text, mark, rest = (rest + chunk).rpartition(b">")  # a tag is never cut in two
        text += mark
        found = _USUAL_CELL.findall(text)
        if len(found) != text.count(b"<c") or b":c" in text:
            found = _POSITION.findall(text)
            # a cell without a position follows the one before it
            first, *others = (len(_CELL.findall(row)) for row in _ROW.split(text))
            longest = max(longest, in_row + first, *others)
            in_row = others[-1] if others else in_row + first
            begun += len(others)
            rows = max(rows, begun, _largest(_ROW_NUMBER.findall(text)))
            cells += first + sum(others)
        else:
            cells += len(found)
        rows = max(rows, _largest({row for _, row in found}))
        columns = max(columns, *map(_column, {letters for letters, _ in found}), 0)
    return rows, max(columns, longest), cells


def _largest(numbers: list[bytes] | set[bytes]) -> int:
    return max(map(int, numbers), default=0)


def _column(letters: bytes) -> int:
    """The number of a column: A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number
