"""From a frame to a file that holds the values of its cells and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

from shoal.errors import InputError, ReleaseError
from shoal.table._scrub import scrubbed
from shoal.table.storage._formats import DELIMITER_OF, check_format
from shoal.table.storage._formulas import Formulas, neutralised
from shoal.table.storage._text import DELIMITERS
from shoal.table.storage._types import as_text, schema_of
from shoal.table.storage._workbook import check_fits, write_excel

__all__ = ["schema_of", "write_frame"]

_ROWS_PER_GROUP: Final = 1 << 18
_SPECIAL: Final = (*DELIMITERS, '"', "\r", "\n", "\ufeff")


def write_frame(
    frame: pl.DataFrame,
    path: str | os.PathLike[str],
    *,
    format: str,
    formulas: Formulas = "keep",
) -> None:
    """Write a frame so that :func:`read_frame` with its :func:`schema_of` gives it back.

    The file depends on the values of the cells, the column names and the types only: there are no
    names of people or programs, no times, no categories without a row, and nothing of values that
    were made missing. The same frame gives the same bytes.

    Parameters
    ----------
    frame : polars.DataFrame
        The frame, with plain columns.
    path : str or path-like
        The file to write. An existing one is replaced.
    format : {"csv", "tsv", "parquet", "arrow", "xlsx"}
        The format. Text is UTF-8; a missing value is an empty field and an empty text is ``""``.
    formulas : {"keep", "neutralise"}
        In ``csv`` and ``tsv``: whether texts and column names that a spreadsheet would run are
        written as they are, or with an apostrophe before them, which :func:`read_frame` takes off
        when it is told. The other formats mark text as text.

    Raises
    ------
    InputError
        The format cannot hold the frame.
    ReleaseError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "data.csv"
    >>> write_frame(pl.DataFrame({"zip": ["01234", "", None]}), path, format="csv")
    >>> path.read_text()
    'zip\\n01234\\n""\\n\\n'
    """
    format = check_format(format)
    schema_of(frame.schema)
    if format == "xlsx":
        check_fits(frame)
    if format in DELIMITER_OF:
        _refuse_null_characters(frame)
    path = Path(path)
    try:
        with path.open("wb") as file:
            if format in DELIMITER_OF:
                _write_text(frame, file, DELIMITER_OF[format], formulas)
            else:
                _WRITERS[format](frame, file)
    except OSError as error:
        why = error.strerror or "the disk may be full"
        raise ReleaseError(f"'{path}' cannot be written: {why}.") from None
    except pl.exceptions.PolarsError:
        raise ReleaseError(f"'{path}' cannot be written; the disk may be full.") from None


def _refuse_null_characters(frame: pl.DataFrame) -> None:
    """A text file with NUL in it is taken for something else by every reader, ours included."""
    for column in frame:
        bare = column.alias("")  # polars reads a name such as ^a$ as a pattern
        if column.dtype == pl.String and bare.str.contains("\0", literal=True).any():
            raise InputError(
                f"Column '{column.name}' holds NUL characters, which a text file cannot hold; "
                "release it in another format, such as parquet, or take them out."
            )


def _write_text(frame: pl.DataFrame, file: BinaryIO, delimiter: str, formulas: Formulas) -> None:
    # what polars writes by itself is exact for these, and much faster
    told = (pl.String, pl.Boolean, pl.Date)
    columns = [
        column if column.dtype in told or column.dtype.is_numeric() else as_text(column)
        for column in frame
    ]
    names = frame.columns
    if formulas == "neutralise":
        columns = [
            neutralised(column.alias("")).alias(str(at)) if dtype == pl.String else column
            for at, (column, dtype) in enumerate(zip(columns, frame.dtypes, strict=True))
        ]
        names = neutralised(pl.Series(names)).to_list()
    file.write((delimiter.join(map(_name, names)) + "\n").encode())
    pl.DataFrame(columns).write_csv(file, include_header=False, separator=delimiter)


def _name(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"' if any(character in name for character in _SPECIAL) else name


def _scrubbed(frame: pl.DataFrame) -> pl.DataFrame:
    # under other names: polars reads one such as ^a$ as a pattern
    bare = frame.clone()
    bare.columns = [str(at) for at in range(frame.width)]
    clean = scrubbed(bare)
    clean.columns = frame.columns
    return clean


def _write_parquet(frame: pl.DataFrame, file: BinaryIO) -> None:
    _scrubbed(frame).write_parquet(file, row_group_size=_ROWS_PER_GROUP)


def _write_arrow(frame: pl.DataFrame, file: BinaryIO) -> None:
    # offsets, which every reader knows, instead of views into shared buffers
    oldest = pl.CompatLevel.oldest()
    _scrubbed(frame).write_ipc(file, compression="zstd", compat_level=oldest)


_WRITERS: Final[dict[str, Callable[[pl.DataFrame, BinaryIO], None]]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "xlsx": write_excel,
}
