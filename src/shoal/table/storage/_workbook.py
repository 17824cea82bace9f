"""Read and write workbooks: old and new Excel files, and OpenDocument spreadsheets.

A reader holds the whole rectangle up to the last cell. A single stray cell in the far corner of a
sheet makes this 17 billion cells, and the process runs out of memory. The positions of the cells
are therefore checked first, in the text of the sheet; the dimension that a sheet declares may be
wrong.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib.util
import io
import logging
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Final, Literal
from xml.etree import ElementTree

import polars as pl

from shoal.errors import InputError, MissingExtra, ReadError, quoted
from shoal.table.columns._column import Column
from shoal.table.storage._header import check_header, check_names, title_rows
from shoal.table.storage._reading import Manner, ReadOptions
from shoal.table.storage._types import as_text
from shoal.table.storage.inference._dates import (
    doubts_in_words,
    read_formatted_dates,
    read_spelled_dates,
)
from shoal.table.storage.inference._infer import first_texts, infer_types

#: Integers up to this size are exact in a workbook, where every number is a float.
EXACT_INTEGER: Final = 2**53
#: How many rows of a sheet are checked to see whether it is a table.
_LOOKED_AT: Final = 50


def read_excel(path: Path, options: ReadOptions) -> tuple[pl.DataFrame, Manner]:
    """Read the sheet that contains the table; its first row holds the column names.

    A workbook has only floats and points in time. A column of whole numbers becomes integers, and
    one of midnights becomes dates. Rows and unnamed columns without any value are left out. A first
    row that looks like a record is refused, unless the options declare that it holds names.
    """
    notes: list[str] = []
    with _opened(path) as workbook:
        sheets = tuple(workbook.sheet_names)
        position = _position(path, workbook, options.sheet, notes)
        check_extent(path, position)
        titles = options.skip_lines
        if titles is None:
            titles = title_rows(_first_rows(workbook, position))
            if titles:
                notes.append(
                    f"Rows above the column names were skipped: {titles}. Use --skip-lines to "
                    "change this."
                )
        names, body = _header_and_body(workbook, position, titles=titles)
    if not names:
        raise ReadError(f"Sheet {position + 1} of '{path}' is empty. A table needs column names.")
    used = _used(names, body)
    named, columns = [name for name, _ in used], [column for _, column in used]
    if not options.header:
        row = f"The first row of sheet {position + 1} of '{path}'"
        check_header(named, [Column(column) for column in columns], row)
    check_names(named, f"'{path}'")
    texts = [str(name) for name in named]
    _read_without(columns, options.missing_values or options.only_missing_values or ())
    formatted = read_formatted_dates(texts, columns, options.date_formats or {}, f"'{path}'")
    samples = [first_texts(one) if one.dtype == pl.String else one.head(0) for one in columns]
    formats, doubts = read_spelled_dates(columns, samples)
    notes += doubts_in_words({texts[at]: doubt for at, doubt in doubts.items()})
    frame = pl.DataFrame([column.alias(name) for name, column in zip(texts, columns, strict=True)])
    found = replace(
        options,
        sheet=sheets[position],
        skip_lines=titles or options.skip_lines,
        date_formats=formatted | {texts[at]: each for at, each in formats.items()} or None,
    )
    filled = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return filled, Manner(found, sheets=sheets, notes=tuple(notes))


def _read_without(columns: list[pl.Series], signs: Sequence[str]) -> None:
    """Make texts that mean a missing value missing, and infer the types of these columns again.

    A column of numbers with such a text arrives as text.
    """
    for at, column in enumerate(columns):
        if column.dtype == pl.String and signs and bool(column.is_in(signs).any()):
            left = [column.set(column.is_in(signs), None)]
            infer_types(left, [first_texts(left[0])])
            columns[at] = left[0]


def read_written_sheet(path: Path, *, texts: bool = False) -> list[pl.Series]:
    """The columns of a sheet that :func:`write_excel` wrote, with all rows; as ``texts`` or not."""
    with _opened(path) as workbook:
        check_extent(path, 0)
        names, body = _header_and_body(workbook, 0, dtypes="string" if texts else None)
    used = _used(names, body)
    check_names([name for name, _ in used], f"'{path}'")
    return [column.alias(str(name)) for name, column in used]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import fastexcel
    except ImportError:
        raise MissingExtra("Reading a workbook", "excel") from None
    try:
        yield fastexcel.read_excel(path)
    except fastexcel.FastExcelError:
        raise ReadError(
            f"'{path}' cannot be read as a workbook. It is damaged, protected by a password, or "
            "in another format. Save it again as .xlsx."
        ) from None


def _header_and_body(
    workbook: Any, position: int, *, titles: int = 0, dtypes: Literal["string"] | None = None
) -> tuple[list[str | None], list[pl.Series]]:
    """The names exactly as in their row, because the reader renames repeated ones; and the body."""
    rows = _first_rows(workbook, position, titles + 1)
    if len(rows) <= titles:
        return [], []
    with _without_its_warnings():
        body = workbook.load_sheet(
            position, header_row=titles, schema_sample_rows=None, dtypes=dtypes
        ).to_polars()
    return list(rows[titles]), body.get_columns()


def _first_rows(
    workbook: Any, position: int, count: int = _LOOKED_AT
) -> list[tuple[str | None, ...]]:
    """The first rows of a sheet as texts, starting with the first that is not empty."""
    with _without_its_warnings():
        sheet = workbook.load_sheet(position, header_row=None, n_rows=count, dtypes="string")
    rows: list[tuple[str | None, ...]] = sheet.to_polars().rows()
    return rows


@contextlib.contextmanager
def _without_its_warnings() -> Iterator[None]:
    """Silence the reader's warnings about empty columns, which are harmless."""
    logger = logging.getLogger("fastexcel.types.dtype")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _position(path: Path, workbook: Any, sheet: str | int | None, notes: list[str]) -> int:
    """The position of the named sheet, or else of the one that looks like a table."""
    names = workbook.sheet_names
    if sheet is None:
        return _sheet_of_table(path, workbook, notes) if len(names) > 1 else 0
    if isinstance(sheet, str) and sheet in names:
        return int(names.index(sheet))
    if isinstance(sheet, int) and not isinstance(sheet, bool) and 1 <= sheet <= len(names):
        return sheet - 1
    raise ReadError(
        f"'{path}' has no sheet {sheet!r}. Its sheets, counted from 1, are {quoted(names)}."
    )


def _sheet_of_table(path: Path, workbook: Any, notes: list[str]) -> int:
    """The first sheet, unless it does not look like a table and exactly one other sheet does."""
    names = workbook.sheet_names
    tables = []
    for position in range(len(names)):
        check_extent(path, position)
        if _looks_like_table(_first_rows(workbook, position)):
            tables.append(position)
    if tables and tables[0] > 0 and len(tables) > 1:
        raise ReadError(
            f"The first sheet of '{path}' does not look like a table, but several others do: "
            f"{quoted(names[position] for position in tables)}. Choose one with sheet=."
        )
    chosen = tables[0] if tables else 0
    others = [name for name in names if name != names[chosen]]
    why = "because it looks like a table" if chosen else "the first one"
    notes.append(
        f"The sheet '{names[chosen]}' was read, {why}. To read another one, use --sheet: "
        f"{quoted(others)}."
    )
    return chosen


def _looks_like_table(rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether several columns have names with values below them."""
    rows = rows[title_rows(rows) :]
    if len(rows) < 2:
        return False
    used = [column for column in zip(*rows, strict=True) if any(cell for cell in column)]
    return len(used) > 1 and all(column[0] for column in used)


def _used(names: list[str | None], body: list[pl.Series]) -> list[tuple[str | None, pl.Series]]:
    """The columns with a name or a value, in equal length and plain types, with their names."""
    names += [None] * (len(body) - len(names))
    body += [pl.Series([], dtype=pl.String)] * (len(names) - len(body))
    used = [
        (name, column)
        for name, column in zip(names, body, strict=True)
        if name is not None or column.null_count() < len(column)
    ]
    height = max((len(column) for _, column in used), default=0)
    # without a name, because polars reads a name such as ^a$ as a pattern
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


# -- how far a sheet reaches


_CHUNK: Final = 1 << 20
_LONGEST_TAG: Final = 1 << 16
_MOST_EMPTY: Final = 1 << 24  # cells of a rectangle: half a gigabyte
_SHARE: Final = 20  # a table has at least one filled cell in this many
_USUAL_CELL: Final = re.compile(rb'<c r="([A-Z]{1,3})([0-9]+)"')
_CELL: Final = re.compile(rb"<(?:\w+:)?c[\s/>]")
_ROW: Final = re.compile(rb"<(?:\w+:)?row[\s/>]")
_ROW_NUMBER: Final = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br\s*=\s*[\"'](\d+)[\"']")
_POSITION: Final = re.compile(rb"\br\s*=\s*[\"']([A-Za-z]{1,3})(\d+)[\"']")


def check_extent(path: Path, position: int) -> None:
    """ReadError if a sheet of an .xlsx file is a huge, nearly empty rectangle."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_part(archive, position)) as sheet:
            rows, columns, cells = extent(sheet)
    except Exception:  # another format, damaged or encrypted, which the reader reports
        return
    if rows * columns > max(_MOST_EMPTY, _SHARE * cells):
        raise ReadError(
            f"Sheet {position + 1} of '{path}' extends to row {rows:,} and column {columns:,}, but "
            f"has only {cells:,} cells. Delete the stray cells outside the table, or save the "
            "table as CSV."
        )


def _part(archive: zipfile.ZipFile, position: int) -> str:
    """The file in the archive with the sheet at a position."""
    sheets = ElementTree.fromstring(archive.read("xl/workbook.xml")).iterfind("{*}sheets/{*}sheet")
    attributes = list(sheets)[position].attrib
    wanted = next(value for name, value in attributes.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(link.attrib["Target"] for link in links if link.attrib["Id"] == wanted)
    return target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl", target))


def extent(sheet: IO[bytes]) -> tuple[int, int, int]:
    """The last row, the last column and the number of cells."""
    rows = columns = cells = begun = in_row = longest = 0
    rest = b""
    for chunk in iter(lambda: sheet.read(_CHUNK), b""):
        text, mark, rest = (rest[-_LONGEST_TAG:] + chunk).rpartition(b">")  # no tag is cut
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


# -- writing workbooks that read back exactly


_MAX_ROWS: Final = 1_048_575  # without the header
_MAX_COLUMNS: Final = 16_384
_MAX_UNITS: Final = 32_767  # of UTF-16, per cell
_EXACT_DECIMAL: Final = 15
# before this day, the calendar of workbooks has one day too many
_FIRST_DAY: Final = dt.date(1900, 3, 1)
_DAY_ZERO: Final = dt.date(1899, 12, 30)
_WRITTEN: Final = dt.datetime(1980, 1, 1)


class _Exact(float):
    """A float that is written with all its digits, although the writer formats sixteen."""

    def __format__(self, spec: str) -> str:
        return repr(float(self))


def write_excel(frame: pl.DataFrame, file: BinaryIO) -> None:
    """Write one sheet; numbers and dates that a workbook cannot hold exactly become text."""
    import xlsxwriter

    options = {"in_memory": True}  # otherwise parts of the data go to the temporary folder
    content = io.BytesIO()  # the writer prints errors when a disk is full
    with xlsxwriter.Workbook(content, options) as workbook:
        workbook.set_properties({"created": _WRITTEN})
        formats = {
            pl.Date: workbook.add_format({"num_format": "yyyy-mm-dd"}),
            pl.Datetime: workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        sheet = workbook.add_worksheet("data")
        for at, column in enumerate(frame):
            sheet.write_string(0, at, column.name)
            # without its name, because polars reads a name such as ^a$ as a pattern
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
            f"A workbook holds up to {_MAX_ROWS:,} rows and {_MAX_COLUMNS:,} columns, but the "
            f"table has {frame.height:,} and {frame.width:,}. Write it as csv or parquet."
        )
    empty = frame.select(pl.all_horizontal(pl.all().is_null()).sum()).item() if frame.width else 0
    if empty:
        raise InputError(
            f"{empty} rows have no value in any column, and a workbook does not keep such rows. "
            "Write the table as csv or parquet."
        )
    texts = (column for column in frame if column.dtype == pl.String)
    long = [column.name for column in texts if _too_long(column.alias(""))]
    if long:
        raise InputError(
            f"These columns have texts of more than {_MAX_UNITS:,} characters, which a workbook "
            f"cuts off: {quoted(long)}. Write the table as csv or parquet."
        )


def _too_long(column: pl.Series) -> bool:
    # a text has at least as many bytes as units
    candidates = column.filter(column.str.len_bytes() > _MAX_UNITS)
    return any(len(text.encode("utf-16-le")) // 2 > _MAX_UNITS for text in candidates)


def _cells(column: pl.Series, sheet: Any) -> tuple[Sequence[Any], Callable[..., Any]]:
    """The cells of a column and the method of the sheet that writes them."""
    if column.dtype == pl.Boolean:
        return column.to_list(), sheet.write_boolean
    numbers = _numbers(column)
    if numbers is None:
        return as_text(column).to_list(), lambda row, at, text, _: sheet.write_string(row, at, text)
    return numbers, sheet.write_number


def _numbers(column: pl.Series) -> Sequence[Any] | None:
    """The column as the numbers of a workbook, or None if one would change."""
    dtype = column.dtype
    if dtype.is_integer():
        exact = bool((column.cast(pl.Int128).abs() <= EXACT_INTEGER).all())
        return column.to_list() if exact else None
    if dtype.is_float():
        return _floats(column) if bool(column.is_finite().all()) else None
    if isinstance(dtype, pl.Decimal):
        return _floats(column.cast(pl.Float64)) if dtype.precision <= _EXACT_DECIMAL else None
    if isinstance(dtype, pl.Date) and not bool((column < _FIRST_DAY).any()):
        return (column - _DAY_ZERO).dt.total_days().to_list()
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        return _moments(column)
    return None


def _floats(column: pl.Series) -> Sequence[Any]:
    return [None if value is None else _Exact(value) for value in column]


def _moments(column: pl.Series) -> Sequence[Any] | None:
    """Days and their fractions; a workbook is exact to the millisecond."""
    fine = column.cast(pl.Datetime("ms")).cast(column.dtype)
    if bool((column.cast(pl.Date) < _FIRST_DAY).any()) or bool((fine != column).any()):
        return None
    days = (column.cast(pl.Datetime("ms")) - _DAY_ZERO).dt.total_milliseconds() / 86_400_000
    return _floats(days)
