"""Write files of Stata, SPSS and SAS with pyreadstat, and read them back before they count."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from shoal.errors import InputError, quoted
from shoal.table.columns._column import Column, scrubbed_column
from shoal.table.storage.labelled._coding import (
    Coding,
    coding_of,
    in_recorded_types,
    may_join,
    value_labels,
)
from shoal.table.storage.labelled._dictionary import FAMILY, WITH_VALUES, Dictionary, Facts
from shoal.table.storage.labelled._limits import (
    LIMITS,
    check_columns,
    check_numbers,
    check_texts,
    shortened,
)
from shoal.table.storage.labelled._moments import as_numbers, moment_of
from shoal.table.storage.labelled._read import portable, pyreadstat, read_labelled
from shoal.table.storage.labelled._transport import write_reasons

#: Larger integers are written as floats, since Stata uses the rest as missing values.
_LONG: Final = 2_000_000_000
_OLD_NAMES: Final = 8  # the longest name of the older transport format, which everything reads
_OLD_TEXTS: Final = 200
_OLD_LABELS: Final = 40
_DECLARED_TEXTS: Final = 8  # the longest text that SPSS declares as missing
_DTA_TIME: Final = re.compile(rb"<timestamp>\x11.{17}</timestamp>", re.DOTALL)
_XPT_TIME: Final = re.compile(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d")
_POR_START: Final = b"SPSSPORTA"
_POR_TIME: Final = re.compile(rb"8/\d{8}6/\d{6}18/.{8}317/.{37}")
_POR_NO_TIME: Final = b"8/196001016/00000018/" + b" " * 8 + b"317/" + b" " * 37


@dataclass(frozen=True)
class Cells:
    """One column as it stands in the file, with the reasons in its gaps."""

    name: str
    values: pl.Series
    label: str
    labels: Mapping[Any, str]
    format: str | None
    ranges: Sequence[Any]
    reasons: Column | None
    measure: str


def write_labelled(
    columns: Sequence[Column], dictionary: Dictionary, target: Path, format: str
) -> None:
    """Write columns with what the dictionary says about them, as far as it still holds.

    Nothing is there if the format cannot hold the columns.
    """
    library = pyreadstat("Writing")
    columns = [_without_categories(column) for column in columns]
    coding = coding_of(columns, dictionary, format)
    joined = set(coding.reasons.values())
    check_columns([column.name for column in columns if column.name not in joined], format)
    named = {column.name: column for column in columns}
    cells = [
        _cells(column, named.get(coding.reasons.get(column.name, "")), dictionary, coding, format)
        for column in columns
        if column.name not in joined
    ]
    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / f"data.{format}"
        _write(library, cells, path, format)
        if format == "xpt":
            write_reasons(path, [one.reasons for one in cells])
        _check(columns, cells, path, format, coding)
        with path.open("rb") as source, target.open("wb") as file:
            head = _without_time(source.read(1 << 10), format)
            file.write(head)
            shutil.copyfileobj(source, file, 1 << 20)


def _without_categories(column: Column) -> Column:
    if isinstance(column.dtype, (pl.Categorical, pl.Enum, pl.Null)):
        return Column(column.series.cast(pl.String))
    return column


def _write(library: Any, cells: Sequence[Cells], path: Path, format: str) -> None:
    if format == "por":
        cells = [_filled(one) for one in cells]
    frame = pl.DataFrame([one.values.alias(one.name) for one in cells])
    options: dict[str, Any] = {
        "column_labels": {one.name: one.label for one in cells if one.label},
        "variable_format": {one.name: one.format for one in cells if one.format},
    }
    if format in WITH_VALUES:
        options["variable_value_labels"] = {one.name: dict(one.labels) for one in cells}
    if FAMILY[format] == "spss":
        options["missing_ranges"] = {one.name: list(one.ranges) for one in cells if one.ranges}
    if format == "por":  # the library turns names to upper case before it looks them up
        options = {
            part: {name.upper(): value for name, value in of.items()}
            for part, of in options.items()
        }
        frame.columns = [name.upper() for name in frame.columns]
        write = portable("writer")
    elif format == "dta":
        options |= {"version": 14}  # 15 is only for tables with more than 32,767 columns
        options["missing_user_values"] = {
            one.name: [text.removeprefix(".") for text in one.reasons.codes.texts]
            for one in cells
            if one.reasons is not None
        }
        write = library.write_dta
    elif format in ("sav", "zsav"):
        options |= {"compress": format == "zsav"}
        options["variable_measure"] = {one.name: one.measure for one in cells}
        write = library.write_sav
    else:
        options |= {"table_name": "DATA", "file_format_version": _transport_version(cells)}
        write = library.write_xport
    try:
        write(frame, str(path), **options)
    except (MemoryError, OSError):
        raise
    except Exception as cause:  # the library's message may quote cells
        raise InputError(
            f"The table cannot be written as {format} ({type(cause).__name__} of the library "
            "pyreadstat). Use another format."
        ) from None


def _filled(cells: Cells) -> Cells:
    """Texts as long as their column, which PSPP expects in a portable file."""
    if cells.values.dtype != pl.String:
        return cells
    longest: Any = cells.values.str.len_bytes().max()
    width = max(1, longest or 0, *map(len, cells.ranges))
    return replace(
        cells,
        values=cells.values.fill_null("").str.pad_end(width),
        labels={text.ljust(width): label for text, label in cells.labels.items()},
        ranges=[text.ljust(min(width, _DECLARED_TEXTS)) for text in cells.ranges],
    )


def _transport_version(cells: Sequence[Cells]) -> int:
    """5, which every program reads, unless something is too long for it or the last row is blank.

    Only version 8 counts the rows, so blank rows at the end of another one are lost.
    """
    last = [one.values.dtype == pl.String and one.values[-1:].null_count() for one in cells]
    short = not all(last) and all(
        len(one.name) <= _OLD_NAMES
        and len((one.format or "").rstrip("0123456789.")) <= _OLD_NAMES
        and len(one.label.encode()) <= _OLD_LABELS
        and (
            one.values.dtype != pl.String
            or (one.values.drop_nulls().str.len_bytes() <= _OLD_TEXTS).all()
        )
        for one in cells
    )
    return 5 if short else 8


def _cells(
    column: Column,
    reasons: Column | None,
    dictionary: Dictionary,
    coding: Coding,
    format: str,
) -> Cells:
    """A column in the file: numbers or texts, with the reasons in the gaps."""
    name, facts = column.name, dictionary.of(column.name)
    codes = coding.codes.get(name)
    values, shown = _physical(column, codes, format)
    same = FAMILY[format] == dictionary.family
    if same and _still_fits(facts, values, shown, codes, format):
        shown = facts.format
    labels: dict[Any, str] = {}
    if format in WITH_VALUES:
        labels |= value_labels(column, facts, codes)
    if format == "dta" and values.dtype == pl.String:
        labels = {}  # Stata labels numbers only
    if reasons is not None:
        there = reasons.codes.texts
        why = {text: facts.reasons[text] for text in there if text in facts.reasons}
        if format == "dta":
            values = _with_letters(values, reasons)
            labels = {_as_float(value): label for value, label in labels.items()}
            labels |= {text.removeprefix("."): label for text, label in why.items()}
        elif FAMILY[format] == "spss":
            values = _with_numbers(values, reasons)
            numeric = values.dtype != pl.String
            labels |= {float(text) if numeric else text: label for text, label in why.items()}
    if values.dtype == pl.Float64:
        labels = {_as_float(value): label for value, label in labels.items()}
    most = LIMITS[format].longest_value_label
    labels = {value: shortened(label, most) for value, label in labels.items()}
    label = _label(dictionary.labels.get(name, ""), format)
    if LIMITS[format].ascii_only:
        label = _in_ascii(label, "")
        labels = {
            value: in_ascii
            for value, label in labels.items()
            if (in_ascii := _in_ascii(label, (codes or {}).get(value, "")))
        }
    return Cells(
        name,
        values,
        label,
        labels,
        shown,
        _declared(facts) if FAMILY[format] == "spss" and may_join(column, codes, facts) else (),
        reasons,
        facts.measure if codes is None or facts.measure == "nominal" else "ordinal",
    )


def _label(label: str, format: str) -> str:
    most = LIMITS[format].longest_label
    if format == "dta":
        return label if len(label) <= most else label[: most - 1] + "…"
    return shortened(label, most)


def _in_ascii(label: str, otherwise: str) -> str:
    """The label if ASCII can hold it, apart from the sign that it was shortened."""
    label = label.replace("…", "...")
    return label if label.isascii() else otherwise


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _declared(facts: Facts) -> list[Any]:
    """The values that SPSS takes as missing, as the library wants them."""
    return [
        low if isinstance(low, str) or low == high else {"lo": low, "hi": high}
        for low, high in facts.ranges
    ]


def _still_fits(
    facts: Facts, values: pl.Series, shown: str | None, codes: Any, format: str
) -> bool:
    """Whether the display format of the source still fits the released values."""
    if not facts.format or codes is not None or values.dtype == pl.String or facts.text:
        return False
    family = FAMILY[format]
    return moment_of(facts.format, family) == moment_of(shown, family)


def _physical(
    column: Column, codes: Mapping[int, str] | None, format: str
) -> tuple[pl.Series, str | None]:
    """The cells as the file holds them, and their display format."""
    name, series = column.name, scrubbed_column(column.series)
    spss = FAMILY[format] == "spss"
    if codes is not None:
        if LIMITS[format].ascii_only:  # a code says what it stands for in its label
            check_texts(name, pl.Series(list(codes.values()), dtype=pl.String), format)
        back = {text: code for code, text in codes.items()}
        found = series.replace_strict(back, default=None, return_dtype=pl.Int32)
        return found, "F8.0" if spss else None
    if series.dtype == pl.String:
        check_texts(name, column.codes.levels if column.is_coded else series.unique(), format)
        return series, None
    if series.dtype == pl.Boolean:
        return series.cast(pl.Int32), "F1.0" if spss else None
    if series.dtype == pl.Duration:
        series = series.to_physical()
    if series.dtype.is_temporal():
        numbers, moment = as_numbers(series, FAMILY[format])
        return numbers.cast(pl.Float64).alias(name), moment
    check_numbers(name, series if series.dtype.is_integer() else series.cast(pl.Float64), format)
    if series.dtype.is_integer():
        largest = max(abs(int(series.max() or 0)), abs(int(series.min() or 0)))  # type: ignore[arg-type]
        width = max(8, len(str(largest)) + 1)
        shown = f"F{width}.0" if spss else None
        return series.cast(pl.Int32 if largest < _LONG else pl.Float64), shown
    return series.cast(pl.Float64), None


def _with_letters(values: pl.Series, reasons: Column) -> pl.Series:
    """Numbers as objects, with the letter of the reason where there is one."""
    cells = values.cast(pl.Float64).to_numpy().astype(object)
    gaps = values.is_null().to_numpy()
    cells[gaps] = None
    why = reasons.series.str.strip_prefix(".").to_numpy()
    rows = reasons.present
    cells[rows] = why[rows]
    return pl.Series(values.name, cells.tolist(), dtype=pl.Object)


def _with_numbers(values: pl.Series, reasons: Column) -> pl.Series:
    """Values with the code of the reason where there is one."""
    why = reasons.series.alias(values.name)
    if values.dtype == pl.String:
        return values.zip_with(values.is_not_null(), why)
    numbers = values.cast(pl.Float64)
    return numbers.zip_with(numbers.is_not_null(), why.cast(pl.Float64))


def _check(
    columns: Sequence[Column], cells: Sequence[Cells], path: Path, format: str, coding: Coding
) -> None:
    """InputError unless the written file has the values, cell by cell.

    The library neither reports a full disk nor a number that it rounds.
    """
    try:
        found, _ = read_labelled(path, format, expected=coding.reasons)
    except InputError:
        raise OSError("the file is incomplete; the disk may be full") from None
    dtypes = {column.name: column.dtype for column in columns}
    back = in_recorded_types(found, dtypes, coding)
    odd = [
        column.name
        for column in columns
        if back.get(column.name) is None
        or not bool(back[column.name].alias("").eq_missing(column.series.alias("")).all())
    ]
    if odd:
        raise InputError(
            f"The format {format} does not hold the exact values of these columns: {quoted(odd)}. "
            "Round numbers, or use another format."
        )


def _without_time(head: bytes, format: str) -> bytes:
    """The beginning of a file without the time of writing and the name of the library."""
    if format == "dta":
        return _DTA_TIME.sub(b"<timestamp>\x1101 Jan 1960 00:00</timestamp>", head)
    if format in ("sav", "zsav"):
        product = b"@(#) SPSS DATA FILE".ljust(60)
        return head[:4] + product + head[64:92] + b"01 Jan 60" + b"00:00:00" + head[109:]
    if format == "xpt":
        return _XPT_TIME.sub(b"01JAN60:00:00:00", head)
    return _portable_without_time(head)


def _portable_without_time(head: bytes) -> bytes:
    """The same for a portable file, whose lines end after 80 characters, even inside a number."""
    start = head.index(_POR_START) + len(_POR_START)
    places = [at for at in range(start, len(head)) if head[at] not in b"\r\n"]
    text = bytes(head[at] for at in places)
    clean = bytearray(head)
    for at, byte in zip(places, _POR_TIME.sub(_POR_NO_TIME, text, count=1), strict=True):
        clean[at] = byte
    return bytes(clean)
