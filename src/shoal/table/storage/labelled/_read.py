"""Read files of Stata, SPSS and SAS with pyreadstat: codes in the frame, labels beside it."""

from __future__ import annotations

import codecs
import functools
import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from shoal.errors import MissingExtra, ReadError, ShoalError
from shoal.table.storage._header import check_names
from shoal.table.storage.labelled._dictionary import FAMILY, Dictionary, Facts, Family
from shoal.table.storage.labelled._moments import as_moments, moment_of
from shoal.table.storage.labelled._transport import read_reasons

_PROGRAM: Final[dict[Family, str]] = {"stata": "Stata", "spss": "SPSS", "sas": "SAS"}
_READER: Final = {
    "dta": "read_dta",
    "sav": "read_sav",
    "zsav": "read_sav",
    "por": "read_por",
    "xpt": "read_xport",
    "sas7bdat": "read_sas7bdat",
}
#: Integers up to this size are exact in a float, which is how these files hold them.
EXACT: Final = 2**53
_RECORD: Final = 80  # bytes of each record of a transport file
#: The width in a format of SAS, whose own name never ends in a digit.
_WIDTH: Final = re.compile(r"[\d.]+$")


def pyreadstat(what: str) -> Any:
    """The library that reads and writes these files; MissingExtra without it."""
    try:
        return importlib.import_module("pyreadstat")
    except ImportError:
        raise MissingExtra(f"{what} a Stata, SPSS or SAS file", "stats") from None


def portable(part: Literal["parser", "writer"]) -> Any:
    """What reads or writes portable files with reasons and labels of values.

    The library can, but its public functions for these files have no parameters for it.
    """
    try:
        module = importlib.import_module(f"pyreadstat._readstat_{part}")
        entry = getattr(module, f"{part}_entry_point")
    except (ImportError, AttributeError):
        raise ShoalError(
            "Labels of values and reasons for missing values in a portable file need pyreadstat "
            "1.3.7, and the installed version differs. Install that version, use another format, "
            "or read with missing_reasons='dropped'."
        ) from None
    return functools.partial(entry, **{f"{part}_format": "por"})


def read_labelled(
    path: Path,
    format: str,
    *,
    encoding: str | None = None,
    missing_reasons: str = "kept",
    expected: Mapping[str, str] | None = None,
    catalog: Path | None = None,
) -> tuple[pl.DataFrame, Dictionary]:
    """The cells of a file and what it says about them.

    With ``missing_reasons="kept"``, a column whose values are missing for declared reasons is
    followed by one that has the reasons. ``expected`` maps columns to the names of their reasons,
    as in the record of a release; then these exist even if no value is missing for a reason.
    ``catalog`` is the file in which SAS keeps the labels of values.
    """
    family = FAMILY[format]
    kept = missing_reasons == "kept"
    frame, about = _parsed(path, format, encoding, kept)
    check_names(frame.columns, f"'{path}'")
    labels_of = about.variable_value_labels
    if catalog is not None:
        labels_of = _catalog_labels(catalog, path, about, encoding)
    if format == "por" and expected:  # its names are in upper case
        expected = {name.upper(): why for name, why in expected.items()}
    letters = _transport_reasons(path, frame) if format == "xpt" else {}
    columns: list[pl.Series] = []
    facts: dict[str, Facts] = {}
    named: dict[str, str] = {}
    for column in frame:
        name = column.name
        cells, why, ranges = _split(column, about, family)
        why = letters.get(name, why)
        labels = labels_of.get(name) or {}
        columns.append(_typed(cells, about, family))
        if kept and (why is not None and why.null_count() < len(why)):
            reason = (expected or {}).get(name) or _name_of_reason(name, frame.columns)
            named[name] = reason
            columns.append(why.alias(reason))
        elif name in (expected or {}):
            named[name] = (expected or {})[name]
            columns.append(pl.Series(named[name], [None] * len(cells), dtype=pl.String))
        facts[name] = _facts(name, cells.dtype == pl.String, labels, ranges, about, family)
    return pl.DataFrame(columns), Dictionary(family, facts, named)


def _parsed(
    path: Path, format: str, encoding: str | None, kept: bool = False, **more: Any
) -> tuple[Any, Any]:
    """The frame and the metadata of a file, without any conversion."""
    library = pyreadstat("Reading")
    options: dict[str, Any] = {"output_format": "polars", "disable_datetime_conversion": True}
    if encoding is not None:
        options["encoding"] = _known_encoding(encoding)
    read = getattr(library, _READER[format])
    if {"por": kept, "xpt": False}.get(format, True):
        options["user_missing"] = True
        read = portable("parser") if format == "por" else read
    try:
        if format == "xpt" and path.stat().st_size % _RECORD:
            raise ValueError  # the library would read the rows that are left
        return read(str(path), **options, **more)
    except MemoryError:
        raise
    except Exception as cause:  # the library's message may quote the file
        raise _misread(path, cause) or _damaged(path, format) from None


def _misread(path: Path, cause: Exception) -> ReadError | None:
    """The error for text in another encoding; None if that is not the cause."""
    if not isinstance(cause, UnicodeDecodeError) and "encoding" not in str(cause):
        return None
    return ReadError(
        f"'{path}' has text that is not in the encoding with which it was read. Pass its "
        "encoding with encoding=, such as 'cp1252'."
    )


def _catalog_labels(
    catalog: Path, path: Path, about: Any, encoding: str | None
) -> dict[str, dict[Any, str]]:
    """The labels of the values of each column whose format is in a catalog of SAS.

    The library compares a format with its width, SEX8., with the name in the catalog, SEX, and
    writes labels into the cells. So this function looks formats up by their names.
    """
    if not catalog.is_file():
        raise ReadError(f"There is no catalog '{catalog}'. Check its name.")
    options = {} if encoding is None else {"encoding": _known_encoding(encoding)}
    try:
        read = pyreadstat("Reading").read_sas7bcat
        formats = read(str(catalog), output_format="polars", **options)[1].value_labels
    except MemoryError:
        raise
    except Exception as cause:  # the library's message may quote the file
        formats, misread = {}, _misread(catalog, cause)
        if misread is not None:
            raise misread from None
    if not formats:
        raise ReadError(
            f"'{catalog}' is not a SAS catalog (.sas7bcat) with labels of values, or it is damaged "
            "or incomplete. Copy it again, or leave out catalog=."
        )
    by_name = {name.upper(): labels for name, labels in formats.items()}
    named = {
        column: by_name.get(_WIDTH.sub("", (shown or "").upper()), {})
        for column, shown in about.original_variable_types.items()
    }
    # a missing value without a reason has no label here
    found = {
        column: {value: label for value, label in labels.items() if value == value}
        for column, labels in named.items()
    }
    if not any(found.values()):
        raise ReadError(
            f"The catalog '{catalog.name}' does not belong to '{path.name}': no column has one of "
            "its formats. Pass the catalog of this file, or leave out catalog=."
        )
    return found


def _damaged(path: Path, format: str) -> ReadError:
    return ReadError(
        f"'{path}' is not a {_PROGRAM[FAMILY[format]]} file of format {format}, or it is damaged "
        "or incomplete. Copy it again, or set its format with format=."
    )


def _transport_reasons(path: Path, frame: pl.DataFrame) -> dict[str, pl.Series]:
    try:
        return read_reasons(path, frame)
    except ReadError:  # which is a ValueError too
        raise
    except ValueError:
        raise _damaged(path, "xpt") from None


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise ReadError(
            f"There is no encoding {name!r}. Pass the name of one, such as 'cp1252' or 'utf-8'."
        ) from None
    return name


def _split(
    column: pl.Series, about: Any, family: Family
) -> tuple[pl.Series, pl.Series | None, tuple[tuple[Any, Any], ...]]:
    """A column without the values that stand for reasons, the reasons, and the declaration."""
    kind = about.readstat_variable_types[column.name]
    has_letters = kind != "string" and column.dtype in (pl.Object, pl.String)
    numbers = column
    if has_letters:
        numbers = pl.Series(column.to_list(), dtype=pl.Float64, strict=False)
    cells = numbers.cast(pl.String if kind == "string" else pl.Float64).alias("")
    # these files have no other missing text than an empty one
    cells = cells.set(cells == "", None) if kind == "string" else cells.fill_nan(None)
    why: pl.Series | None = None
    ranges: tuple[tuple[Any, Any], ...] = ()
    if has_letters:
        why = _letters(column, cells)
    elif family == "spss":
        declared = about.missing_ranges.get(column.name) or []
        ranges = tuple((one["lo"], one["hi"]) for one in declared)
        if ranges:
            inside = _inside(cells, ranges)
            shown = cells if kind == "string" else number_texts(cells)
            why = shown.set(~inside, None)
            cells = cells.set(inside, None)
    return cells.alias(column.name), why, ranges


def _letters(tagged: pl.Series, cells: pl.Series) -> pl.Series:
    """The letters of missing values as texts such as .a; null elsewhere."""
    found = np.full(len(cells), None, dtype=object)
    gaps = cells.is_null().to_numpy()
    found[gaps] = tagged.to_numpy()[gaps]
    letters = pl.Series(found.tolist(), dtype=pl.String, strict=False)
    return "." + letters


def _inside(cells: pl.Series, ranges: Sequence[tuple[Any, Any]]) -> pl.Series:
    """Which cells lie in a declared range."""
    inside = pl.Series(np.zeros(len(cells), np.bool_))
    for low, high in ranges:
        if cells.dtype == pl.String:
            inside = inside | (cells == str(low).rstrip()).fill_null(False)
        else:
            inside = inside | cells.is_between(float(low), float(high)).fill_null(False)
    return inside


def number_texts(numbers: pl.Series) -> pl.Series:
    """Numbers as texts, whole ones without a point."""
    whole = (numbers == numbers.round()) & (numbers.abs() <= EXACT)
    as_whole = numbers.set(~whole.fill_null(False), None).cast(pl.Int64).cast(pl.String)
    return as_whole.zip_with(as_whole.is_not_null(), numbers.cast(pl.String))


def _typed(cells: pl.Series, about: Any, family: Family) -> pl.Series:
    """Dates by their format, whole numbers as integers."""
    if cells.dtype == pl.String:
        return cells
    moment = moment_of(about.original_variable_types.get(cells.name), family)
    if moment is not None:
        return as_moments(cells, moment, family)
    stored = str(about.readstat_variable_types[cells.name])
    if cells.null_count() == len(cells):
        return cells.cast(pl.Int64) if stored.startswith("int") else cells
    values = cells.drop_nulls().to_numpy()
    whole = np.isfinite(values).all() and (np.abs(values) <= EXACT).all()
    if whole and (values == np.rint(values)).all():
        return cells.cast(pl.Int64)
    return cells


def _name_of_reason(name: str, taken: Sequence[str]) -> str:
    found = f"{name}_reason"
    lower = {one.lower() for one in taken}
    while found.lower() in lower:
        found += "_"
    return found


def _facts(
    name: str,
    text: bool,
    labels: Mapping[Any, str],
    ranges: tuple[tuple[Any, Any], ...],
    about: Any,
    family: Family,
) -> Facts:
    values: dict[Any, str] = {}
    reasons: dict[str, str] = {}
    for value, label in labels.items():
        if isinstance(value, str) and not text:
            reasons[f".{value}"] = label
        elif ranges and bool(_inside(pl.Series([value]), ranges)[0]):
            shown = value if text else number_texts(pl.Series([float(value)]))[0]
            reasons[str(shown)] = label
        else:
            values[value if text else _plain(float(value))] = label
    return Facts(
        label=about.column_names_to_labels.get(name) or "",
        values=values,
        reasons=reasons,
        ranges=ranges,
        format=about.original_variable_types.get(name) or "",
        measure=about.variable_measure.get(name) or "unknown",
        text=text,
    )


def _plain(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def held_in(path: Path, format: str) -> tuple[int, int]:
    """The rows of a file, and the bytes that its cells need in memory."""
    _, about = _parsed(path, format, None, metadataonly=True)
    widths = about.variable_storage_width.values()
    rows = about.number_rows
    if rows is None or rows < 0:  # only the end of a portable file shows how many there are
        return 0, 16 * path.stat().st_size
    return rows, rows * sum(16 + int(width) for width in widths)
