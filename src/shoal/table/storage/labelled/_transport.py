"""Reasons for missing values in SAS transport files, which the library does not tell apart.

SAS's note TS-140 lays these files out: records of 80 bytes, in them a description of 140 bytes for
each column, then the rows without gaps, then blanks. A missing number is one byte, ``.`` or a
reason (``_``, A to Z), and zeros.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from shoal.errors import ReadError
from shoal.table.columns._column import Column

_RECORD: Final = 80
_COUNT: Final = slice(613, 618)  # the number of columns, in the record before their descriptions
_COLUMNS: Final = 640
_DESCRIPTION: Final = np.dtype(
    {"names": ["kind", "width"], "formats": [">u2", ">u2"], "offsets": [0, 4], "itemsize": 140}
)
_NUMBER: Final = 1
_TABLE, _ROWS = b"HEADER RECORD*******MEM", b"HEADER RECORD*******OBS"
_GAP: Final = ord(".")
_REASONS: Final = np.frombuffer(b"_ABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)


def read_reasons(path: Path, frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Why values are missing, as texts such as ``.A``, for the columns that say so somewhere.

    ValueError unless the file has the rows of the frame, and its missing numbers.
    """
    found = {}
    for place, cells in _numbers(path, len(frame), mmap.ACCESS_READ).items():
        column = frame.to_series(place)
        gaps = np.flatnonzero(column.cast(pl.Float64).fill_nan(None).is_null().to_numpy())
        marks = cells[gaps, 0]
        explained = np.isin(marks, _REASONS)
        if cells[gaps, 1:].any() or not (explained | (marks == _GAP)).all():
            raise ValueError
        if explained.any():
            texts = np.full(len(frame), None, object)
            texts[gaps[explained]] = [f".{chr(mark)}" for mark in marks[explained].tolist()]
            found[column.name] = pl.Series(column.name, texts.tolist(), pl.String)
    return found


def write_reasons(path: Path, reasons: Sequence[Column | None]) -> None:
    """Put the reasons of each column into its missing numbers in a written file."""
    rows = next((len(why) for why in reasons if why is not None), None)
    if rows is None:
        return
    for place, cells in _numbers(path, rows, mmap.ACCESS_WRITE).items():
        why = reasons[place]
        if why is not None:
            cells[why.present, 0] = [ord(text[1]) for text in why.series.drop_nulls()]


def _numbers(path: Path, rows: int, access: int) -> dict[int, Any]:
    """The bytes of the numeric columns by their places; ValueError if the rows do not fit."""
    with path.open("rb" if access == mmap.ACCESS_READ else "r+b") as file:
        content = mmap.mmap(file.fileno(), 0, access=access)
    after = _COLUMNS + int(content[_COUNT]) * _DESCRIPTION.itemsize
    columns = np.frombuffer(content[_COLUMNS:after], _DESCRIPTION)
    kinds, widths = columns["kind"].tolist(), columns["width"].tolist()
    header = _record(content, _ROWS, after)
    if header < 0:
        raise ValueError
    begin, size = header + _RECORD, sum(widths)
    if _record(content, _TABLE, begin) >= 0:
        raise ReadError(
            f"'{path}' holds several tables, and Shoal reads files with one. Save the table that "
            "you need in a file of its own."
        )
    declared = content[header + 48 : header + 63].strip()  # blank or 0 if nobody counted
    end = begin + rows * size
    if int(declared or 0) not in (0, rows) or content[end:].strip(b" "):
        raise ValueError
    cells = np.frombuffer(content, np.uint8, rows * size, begin).reshape(rows, size)
    ends = np.cumsum(widths).tolist()
    return {
        place: cells[:, last - width : last]
        for place, (kind, width, last) in enumerate(zip(kinds, widths, ends, strict=True))
        if kind == _NUMBER
    }


def _record(content: mmap.mmap, start: bytes, at: int) -> int:
    """Where the next record begins that starts so; -1 if there is none."""
    found = content.find(start, at)
    while found >= 0 and found % _RECORD:
        found = content.find(start, found + 1)
    return found
