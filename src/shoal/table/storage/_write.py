"""Write a frame to a file that holds the values of its cells and nothing else."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import polars as pl

from shoal.errors import InputError, ReleaseError, quoted
from shoal.table.columns._column import Column, scrubbed_column
from shoal.table.columns._encode import Codes, decode
from shoal.table.storage._formats import DELIMITER_OF, DELIMITERS, Dialect, check_format
from shoal.table.storage._formulas import Formulas, neutralised
from shoal.table.storage._types import as_text, schema_of
from shoal.table.storage._workbook import check_fits, write_excel
from shoal.table.storage.labelled._dictionary import LABELLED, NO_DICTIONARY, Dictionary
from shoal.table.storage.labelled._write import write_labelled

_ROWS_PER_GROUP: Final = 1 << 18
#: How many of the first numbers show whether those of a column repeat.
_FIRST: Final = 1 << 14
_MOST_DIFFERENT: Final = 0.9
_OLDEST: Final = pl.CompatLevel.oldest()
#: Types that Parquet has, so that no other schema has to be stored.
_PLAIN: Final = {pl.String(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.Date()}
_SPECIAL: Final = (*DELIMITERS, '"', "\r", "\n", "\ufeff")


def write_columns(
    columns: Sequence[Column],
    path: str | os.PathLike[str],
    *,
    format: str,
    formulas: Formulas = "keep",
    dialect: Dialect | None = None,
    dictionary: Dictionary = NO_DICTIONARY,
) -> None:
    """Write columns so that a :class:`ReleasedFile` with their schema returns them.

    The file depends only on the values of the cells, the column names and the types. It holds no
    names of people or programs, no times, no categories without a row, and no trace of values that
    were made missing. The same columns always give the same bytes, and each distinct text is
    processed only once.

    The dialect is for text formats: how fields and numbers are written, and in which encoding. The
    dictionary is for formats that hold labels.
    """
    format = check_format(format, writing=True)
    schema_of({column.name: column.dtype for column in columns})
    if format == "xlsx":
        check_fits(_frame(columns))
    if format in DELIMITER_OF:
        dialect = dialect or Dialect(DELIMITER_OF[format])
        _refuse_null_characters(columns)
        if odd := unwritable_columns(columns, dialect.encoding):
            raise InputError(
                f"The encoding {dialect.encoding} lacks characters of these columns: "
                f"{quoted(odd)}. Use utf-8-sig, which spreadsheets recognize, or utf-8."
            )
    path = Path(path)
    try:
        if format in LABELLED:
            write_labelled(columns, dictionary, path, format)
            return
        with path.open("wb") as file:
            if dialect is not None and format in DELIMITER_OF:
                _write_text(columns, file, dialect, formulas)
            elif format == "xlsx":
                write_excel(_frame(columns), file)
            else:
                _write_columnar(columns, file, format)
    except OSError as error:
        why = error.strerror or "the disk may be full"
        raise ReleaseError(f"'{path}' cannot be written: {why}.") from None
    except pl.exceptions.PolarsError:
        raise ReleaseError(f"'{path}' cannot be written; the disk may be full.") from None


def _frame(columns: Sequence[Column]) -> pl.DataFrame:
    return pl.DataFrame([column.series for column in columns])


def _texts(columns: Sequence[Column]) -> dict[str, pl.Series]:
    """The texts of the text columns; each distinct text once if a column is coded."""
    return {
        # without its name, because polars reads a name such as ^a$ as a pattern
        column.name: (column.codes.levels if column.is_coded else column.series).alias("")
        for column in columns
        if column.dtype == pl.String
    }


def unwritable_columns(columns: Sequence[Column], encoding: str) -> list[str]:
    """The columns with a character, in their name or in a text, that the encoding lacks."""
    if encoding.startswith("utf"):
        return []
    texts = _texts(columns)
    return [
        column.name
        for column in columns
        if not _has(pl.Series([column.name]), encoding)
        or (column.name in texts and not _has(texts[column.name], encoding))
    ]


def _has(texts: pl.Series, encoding: str) -> bool:
    others = texts.filter(texts.str.contains(r"[^\x00-\x7f]"))
    try:
        "".join(others).encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _refuse_null_characters(columns: Sequence[Column]) -> None:
    """InputError if a text contains NUL; no program would read the file as text."""
    texts = _texts(columns)
    if not texts or not _has_null_characters(pl.concat(list(texts.values()), rechunk=False)):
        return
    name = next(name for name, column in texts.items() if _has_null_characters(column))
    raise InputError(
        f"Column '{name}' contains NUL characters, which a text file cannot hold. "
        "Use another format, such as parquet, or remove the characters."
    )


def _has_null_characters(texts: pl.Series) -> bool:
    return bool(texts.str.contains("\0", literal=True).any())


def _write_text(
    columns: Sequence[Column], file: BinaryIO, dialect: Dialect, formulas: Formulas
) -> None:
    names = pl.Series([column.name for column in columns], dtype=pl.String)
    if formulas == "neutralise":
        names = neutralised(names)
    recoded = dialect.encoding != "utf-8"
    target: Any = codecs.EncodedFile(file, "utf-8", dialect.encoding) if recoded else file
    target.write((dialect.delimiter.join(map(_name, names)) + "\n").encode())
    written = [_written(column, str(at), formulas) for at, column in enumerate(columns)]
    rows = len(columns[0]) if columns else 0
    for start in range(0, rows, _ROWS_PER_GROUP):
        # in parts, so that repeated texts are never all in memory
        part = slice(start, start + _ROWS_PER_GROUP)
        cells = [
            decode(cells.with_codes(cells.codes[part])) if isinstance(cells, Codes) else cells[part]
            for cells in written
        ]
        # a part is recoded as a whole, because what polars writes may end inside a character
        buffer: Any = io.BytesIO() if recoded else file
        pl.DataFrame(cells).write_csv(
            buffer,
            include_header=False,
            separator=dialect.delimiter,
            decimal_comma=dialect.decimal == ",",
        )
        if recoded:
            target.write(buffer.getvalue())


def _written(column: Column, name: str, formulas: Formulas) -> pl.Series | Codes:
    """The cells of a column as a text file holds them, under the given name."""
    # polars writes these exactly by itself, and much faster
    if column.dtype in (pl.Boolean, pl.Date) or column.dtype.is_numeric():
        return column.series.alias(name)
    if not column.is_coded:
        return _as_written(column.series.alias(name), formulas)
    codes = column.codes
    return replace(codes, levels=_as_written(codes.levels.alias(name), formulas))


def _as_written(cells: pl.Series, formulas: Formulas) -> pl.Series:
    if cells.dtype != pl.String:
        return as_text(cells)
    return neutralised(cells) if formulas == "neutralise" else cells


def _name(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"' if any(character in name for character in _SPECIAL) else name


def _write_columnar(columns: Sequence[Column], file: BinaryIO, format: str) -> None:
    if format == "parquet" and all(column.dtype in _PLAIN for column in columns):
        _write_dictionaries(columns, file)
        return
    # under other names, because polars reads a name such as ^a$ as a pattern
    frame = pl.DataFrame([_scrubbed(column).alias(str(at)) for at, column in enumerate(columns)])
    frame.columns = [column.name for column in columns]
    if format == "parquet":
        frame.write_parquet(file, row_group_size=_ROWS_PER_GROUP)
    else:
        # every reader supports offsets, but not views into shared buffers
        frame.write_ipc(file, compression="zstd", compat_level=_OLDEST)


def _write_dictionaries(columns: Sequence[Column], file: BinaryIO) -> None:
    """Write Parquet with the texts as dictionaries, taken directly from the codes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    coded = [column.dtype == pl.String for column in columns]
    cells = [
        (_levels(column) if repeats else _scrubbed(column)).to_arrow(compat_level=_OLDEST)
        for column, repeats in zip(columns, coded, strict=True)
    ]
    kinds = [
        pa.dictionary(pa.int32(), pa.large_string()) if repeats else part.type
        for part, repeats in zip(cells, coded, strict=True)
    ]
    schema = pa.schema(
        [pa.field(column.name, kind) for column, kind in zip(columns, kinds, strict=True)]
    )
    rows = len(columns[0]) if columns else 0
    repeating = [column.name for column in columns if _repeats(column)]
    options = {"use_dictionary": repeating, "compression": "zstd", "store_schema": False}
    try:
        with pq.ParquetWriter(file, schema, **options) as writer:
            for start in range(0, rows, _ROWS_PER_GROUP):
                part = slice(start, start + _ROWS_PER_GROUP)
                arrays = [
                    _numbered(column.codes, texts, part) if repeats else texts[part]
                    for column, texts, repeats in zip(columns, cells, coded, strict=True)
                ]
                writer.write_table(pa.table(arrays, schema=schema))
    except pa.ArrowException:  # its message may quote cells
        raise OSError("the file cannot be written") from None


def _repeats(column: Column) -> bool:
    """Whether a dictionary is worthwhile; it is not for numbers that rarely repeat at first."""
    if column.dtype != pl.Float64:
        return True
    first = column.series.head(_FIRST)
    return first.n_unique() < _MOST_DIFFERENT * len(first)


def _levels(column: Column) -> pl.Series:
    return scrubbed_column(column.codes.levels.alias(""))


def _numbered(codes: Codes, texts: Any, rows: slice) -> Any:
    """Some rows of a column as a dictionary array over its texts."""
    import pyarrow as pa

    numbers = codes.codes[rows].astype(np.int32)
    there = None
    if codes.missing is not None:
        there = pa.py_buffer(np.packbits(numbers != codes.missing, bitorder="little"))
        numbers[numbers == codes.missing] = 0  # the code of missing is not an index of a text
    # from buffers, because Arrow's conversion from numpy imports pandas
    cells = pa.Array.from_buffers(pa.int32(), len(numbers), [there, pa.py_buffer(numbers)])
    return pa.DictionaryArray.from_arrays(cells, texts)


def _scrubbed(column: Column) -> pl.Series:
    """The cells in memory that holds nothing else; if texts repeat, only the distinct ones."""
    if not column.is_coded or column.dtype != pl.String:
        return scrubbed_column(column.series.alias(""))
    return decode(replace(column.codes, levels=_levels(column)))
