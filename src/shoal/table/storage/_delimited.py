"""CSV, TSV and the like: text in lines, fields between delimiters."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from shoal.errors import ReadError
from shoal.table.storage._formulas import Formulas, restored
from shoal.table.storage._header import check_header
from shoal.table.storage._infer import infer_types
from shoal.table.storage._recorded import as_recorded_frame, check_names
from shoal.table.storage._records import Shape, shape_of, without_lines
from shoal.table.storage._text import Text, load_text

#: What stands for a missing value in text, where nothing else is said.
DEFAULT_MISSING: Final = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


def read_delimited(
    path: Path,
    *,
    likely: str = ",",
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = DEFAULT_MISSING,
    dtypes: Mapping[str, pl.DataType] | None = None,
    header: bool | None = None,
    formulas: Formulas = "keep",
) -> pl.DataFrame:
    """Read delimited text; types are guessed from all values unless ``dtypes`` records them.

    An empty field is missing. A quoted empty field is an empty text, unless ``missing_values``
    holds the empty text. A first line that looks like a record is refused, unless ``header`` or
    ``dtypes`` says that it holds names.
    """
    if decimal not in (None, ".", ","):
        raise ReadError(f"The decimal mark must be '.' or ','; got {decimal!r}.")
    if isinstance(missing_values, str):
        raise ReadError("The missing values must be a list of texts, such as ['NA', '-99'].")
    text = load_text(path, encoding)
    shape = shape_of(text, called=str(path), delimiter=delimiter, likely=likely)
    if dtypes is not None or header:
        check_names(shape.names, f"'{path}'")  # before a large file is parsed
    columns = _text_columns(path, text, shape, missing_values)
    if dtypes is None:
        infer_types(columns, decimal="." if decimal is None and shape.delimiter == "," else decimal)
        if not header:
            # first: what is said about names may quote them
            check_header(shape.names, columns, f"The first line of '{path}'")
            check_names(shape.names, f"'{path}'")
    names = shape.names
    if dtypes is not None and formulas == "neutralise":
        names = restored(pl.Series(names)).to_list()
        kinds = (dtypes.get(name) for name in names)
        columns = [
            restored(column) if kind == pl.String else column
            for column, kind in zip(columns, kinds, strict=True)
        ]
    columns = [column.alias(name) for name, column in zip(names, columns, strict=True)]
    if dtypes is not None:
        return as_recorded_frame(columns, dtypes, f"'{path}'")
    return pl.DataFrame(columns)


def read_text_fields(path: Path, delimiter: str) -> tuple[list[str], pl.DataFrame]:
    """The names and all fields as they stand in the file, columns called by their positions."""
    text = load_text(path, "utf-8")
    shape = shape_of(text, called=str(path), delimiter=delimiter)
    return shape.names, pl.DataFrame(_text_columns(path, text, shape, ()))


def _text_columns(
    path: Path, text: Text, shape: Shape, missing_values: Sequence[str]
) -> list[pl.Series]:
    """The columns as text, named by their positions."""
    source: Path | bytes
    if len(shape.blank_lines):
        source = without_lines(text.content, shape.blank_lines)
    elif isinstance(text.content, mmap.mmap):
        source = path
    else:
        source = text.content
    frame = _parsed(source, shape, [value for value in missing_values if value])
    if frame is None or frame.height != shape.records:
        raise ReadError(f"'{path}' cannot be parsed as text in lines with delimiters.")
    columns = frame.get_columns()
    if "" in missing_values:
        for at, column in enumerate(columns):
            if bool((column == "").any()):
                columns[at] = column.replace("", None)
    return columns


def _parsed(source: Path | bytes, shape: Shape, missing_values: list[str]) -> pl.DataFrame | None:
    """All columns as text, or None if polars refuses: its reasons quote cells."""
    try:
        return pl.read_csv(
            source,
            separator=shape.delimiter,
            quote_char='"' if shape.quoted else None,
            # not by names that come twice or that polars reads as patterns, such as ^a$
            new_columns=[str(at) for at in range(len(shape.names))],
            infer_schema=False,
            null_values=missing_values or None,
            glob=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
