"""Writing a workbook that gives back exactly what was written."""

from __future__ import annotations

import datetime as dt
import importlib.util
import io
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

import polars as pl

from shoal.errors import InputError, MissingExtra, quoted
from shoal.table.storage._excel import EXACT_INTEGER
from shoal.table.storage._types import as_text

_MAX_ROWS: Final = 1_048_575  # without the header
_MAX_COLUMNS: Final = 16_384
_MAX_UNITS: Final = 32_767  # of UTF-16, per cell
_EXACT_DECIMAL: Final = 15
# the calendar of workbooks has a day too many before this one
_FIRST_DAY: Final = dt.date(1900, 3, 1)
_DAY_ZERO: Final = dt.date(1899, 12, 30)
_WRITTEN: Final = dt.datetime(1980, 1, 1)


class _Exact(float):
    """A float that is written with all its digits; the writer asks for sixteen."""

    def __format__(self, spec: str) -> str:
        return repr(float(self))


def write_excel(frame: pl.DataFrame, file: BinaryIO) -> None:
    """Write one sheet; what a workbook cannot hold exactly as a number or date becomes text."""
    import xlsxwriter

    options = {"in_memory": True}  # else parts of the data lie about in the temporary folder
    content = io.BytesIO()  # the writer makes noise when a disk is full
    with xlsxwriter.Workbook(content, options) as workbook:
        workbook.set_properties({"created": _WRITTEN})
        formats = {
            pl.Date: workbook.add_format({"num_format": "yyyy-mm-dd"}),
            pl.Datetime: workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        sheet = workbook.add_worksheet("data")
        for at, column in enumerate(frame):
            sheet.write_string(0, at, column.name)
            # without its name: polars reads one such as ^a$ as a pattern
            values, write = _cells(column.alias(""), sheet)
            style = formats.get(column.dtype.base_type())
            for row, value in enumerate(values, 1):
                if value is not None:
                    write(row, at, value, style)
    file.write(content.getbuffer())


def check_fits(frame: pl.DataFrame) -> None:
    """MissingExtra if workbooks cannot be written, InputError if one cannot hold the frame."""
    if importlib.util.find_spec("xlsxwriter") is None:
        raise MissingExtra("Writing a workbook", "excel")
    if frame.height > _MAX_ROWS or frame.width > _MAX_COLUMNS:
        raise InputError(
            f"A workbook holds {_MAX_ROWS:,} rows and {_MAX_COLUMNS:,} columns, the table has "
            f"{frame.height:,} and {frame.width:,}; write it as csv or parquet."
        )
    empty = frame.select(pl.all_horizontal(pl.all().is_null()).sum()).item() if frame.width else 0
    if empty:
        raise InputError(
            f"{empty} rows have no value in any column, and a workbook does not keep such rows; "
            "write the table as csv or parquet."
        )
    long = [
        column.name for column in frame if column.dtype == pl.String and _too_long(column.alias(""))
    ]
    if long:
        raise InputError(
            f"The columns {quoted(long)} have texts of more than {_MAX_UNITS:,} characters, which "
            "a workbook cuts off; write the table as csv or parquet."
        )


def _too_long(column: pl.Series) -> bool:
    # only texts of so many bytes can have so many units
    candidates = column.filter(column.str.len_bytes() > _MAX_UNITS)
    return any(len(text.encode("utf-16-le")) // 2 > _MAX_UNITS for text in candidates)


def _cells(column: pl.Series, sheet: Any) -> tuple[Sequence[Any], Callable[..., Any]]:
    """The cells of a column and the method of the sheet that writes them."""
    if column.dtype == pl.Boolean:
        return column.to_list(), sheet.write_boolean
    numbers = _numbers(column)
    if numbers is None:
        return as_text(column).to_list(), _text_writer(sheet)
    return numbers, sheet.write_number


def _numbers(column: pl.Series) -> Sequence[Any] | None:
    """The column as the numbers of a workbook, or None if one would change."""
    dtype = column.dtype
    if dtype.is_integer():
        exact = bool((column.cast(pl.Int128).abs() <= EXACT_INTEGER).all())
        return column.to_list() if exact else None
    if dtype.is_float():
        exact = bool(column.is_finite().all())
        return _floats(column) if exact else None
    if isinstance(dtype, pl.Decimal):
        return _floats(column.cast(pl.Float64)) if dtype.precision <= _EXACT_DECIMAL else None
    if isinstance(dtype, pl.Date):
        return _days(column)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        return _moments(column)
    return None


def _floats(column: pl.Series) -> Sequence[Any]:
    return [None if value is None else _Exact(value) for value in column]


def _days(column: pl.Series) -> Sequence[Any] | None:
    if bool((column < _FIRST_DAY).any()):
        return None
    return (column - _DAY_ZERO).dt.total_days().to_list()


def _moments(column: pl.Series) -> Sequence[Any] | None:
    """Days and their fractions; a workbook is exact to the millisecond."""
    fine = column.cast(pl.Datetime("ms")).cast(column.dtype)
    if bool((column.cast(pl.Date) < _FIRST_DAY).any()) or bool((fine != column).any()):
        return None
    days = (column.cast(pl.Datetime("ms")) - _DAY_ZERO).dt.total_milliseconds() / 86_400_000
    return _floats(days)


def _text_writer(sheet: Any) -> Callable[..., Any]:
    def write(row: int, column: int, text: str, _: Any) -> None:
        sheet.write_string(row, column, text)

    return write
