"""Workbooks: Excel files old and new, and OpenDocument spreadsheets."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from shoal.errors import MissingExtra, ReadError, quoted
from shoal.table._column import Column
from shoal.table.storage._header import check_header, check_names
from shoal.table.storage._sheet_extent import check_extent

#: Whole numbers up to here are exact in a workbook, where every number is a float.
EXACT_INTEGER: Final = 2**53


def read_excel(
    path: Path,
    sheet: str | int | None,
    dtypes: Mapping[str, pl.DataType] | None = None,
    *,
    header: bool | None = None,
) -> pl.DataFrame:
    """Read a sheet whose first row names the columns.

    A workbook knows only floats and points in time: a column of whole numbers becomes integers,
    one of midnights dates. Rows and unnamed columns without any value are left out, unless
    ``dtypes`` says that the sheet is one that :func:`write_frame` wrote. A first row that looks
    like a record is refused, unless ``header`` or ``dtypes`` says that it holds names.
    """
    position, names, body = _loaded(path, sheet)
    if not names:
        raise ReadError(f"Sheet {position + 1} of '{path}' is empty; a table needs column names.")
    row = f"The first row of sheet {position + 1} of '{path}'"
    used = _used(names, body)
    if dtypes is None and not header:
        check_header([name for name, _ in used], [Column(column) for _, column in used], row)
    check_names([name for name, _ in used], f"'{path}'")
    frame = pl.DataFrame([column.alias(str(name)) for name, column in used])
    if dtypes is not None:
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def read_sheet_texts(path: Path) -> list[pl.Series]:
    """The columns of the first sheet as texts, without their names."""
    _, names, body = _loaded(path, None, dtypes="string")
    return [column for _, column in _used(names, body)]


def _loaded(
    path: Path, sheet: str | int | None, *, dtypes: Literal["string"] | None = None
) -> tuple[int, list[str | None], list[pl.Series]]:
    """The position of a sheet, its first row, and the columns below it."""
    try:
        import fastexcel
    except ImportError:
        raise MissingExtra("Reading a workbook", "excel") from None
    try:
        workbook = fastexcel.read_excel(path)
        position = _position(path, workbook.sheet_names, sheet)
        check_extent(path, position)
        return position, *_header_and_body(workbook, position, dtypes)
    except fastexcel.FastExcelError:
        raise ReadError(
            f"'{path}' is not a workbook that can be read: it is damaged, protected by a password "
            "or of another format; save it again as .xlsx."
        ) from None


def _header_and_body(
    workbook: Any, position: int, dtypes: Literal["string"] | None
) -> tuple[list[str | None], list[pl.Series]]:
    """The names as they stand in the first row: the reader renames those that come twice."""
    header = workbook.load_sheet(position, header_row=None, n_rows=1, dtypes="string").to_polars()
    if not header.height:
        return [], []
    with _without_its_warnings():
        body = workbook.load_sheet(
            position, header_row=0, schema_sample_rows=None, dtypes=dtypes
        ).to_polars()
    return list(header.row(0)), body.get_columns()


@contextlib.contextmanager
def _without_its_warnings() -> Iterator[None]:
    """The reader warns of every column without a value; an empty column is nothing to warn of."""
    logger = logging.getLogger("fastexcel.types.dtype")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _position(path: Path, names: list[str], sheet: str | int | None) -> int:
    if sheet is None:
        return 0
    if isinstance(sheet, str) and sheet in names:
        return names.index(sheet)
    if isinstance(sheet, int) and not isinstance(sheet, bool) and 1 <= sheet <= len(names):
        return sheet - 1
    raise ReadError(
        f"'{path}' has no sheet {sheet!r}; its sheets, counted from 1, are {quoted(names)}."
    )


def _used(names: list[str | None], body: list[pl.Series]) -> list[tuple[str | None, pl.Series]]:
    """The columns with a name or a value, of one length and in plain types, and their names."""
    names += [None] * (len(body) - len(names))
    body += [pl.Series([], dtype=pl.String)] * (len(names) - len(body))
    used = [
        (name, column)
        for name, column in zip(names, body, strict=True)
        if name is not None or column.null_count() < len(column)
    ]
    height = max((len(column) for _, column in used), default=0)
    # without a name: polars reads one such as ^a$ as a pattern
    return [
        (name, _plain(column.alias("").extend_constant(None, height - len(column))))
        for name, column in used
    ]


def _plain(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Float64:
        whole = column.cast(pl.Int64, strict=False)
        small = bool((column.abs() <= EXACT_INTEGER).all())
        return whole if small and bool(whole.cast(pl.Float64).eq_missing(column).all()) else column
    if isinstance(column.dtype, pl.Datetime):
        days = column.cast(pl.Date)
        midnights = bool(days.cast(column.dtype).eq_missing(column).all())
        return days if midnights else column.cast(pl.Datetime("us"))
    return column.cast(pl.String) if column.dtype == pl.Null else column
