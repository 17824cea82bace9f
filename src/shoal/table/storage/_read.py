"""Read a table from a file or a database."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.hints import check_path, helpful
from shoal.table._roles import Roles
from shoal.table.columns._column import Column
from shoal.table.columns._frames import to_polars
from shoal.table.storage._columnar import read_arrow, read_parquet
from shoal.table.storage._delimited import read_delimited
from shoal.table.storage._formats import DELIMITER_OF, check_format, format_of
from shoal.table.storage._reading import OPTIONS_OF, Manner, ReadOptions, refuse_others
from shoal.table.storage._types import Fields, column_of
from shoal.table.storage._workbook import read_excel
from shoal.table.storage.labelled._dictionary import FAMILY, NO_DICTIONARY, Dictionary
from shoal.table.storage.labelled._read import read_labelled
from shoal.table.storage.metadata._description import Description
from shoal.table.storage.metadata._files import description_of

if TYPE_CHECKING:
    from shoal.table._table import Table

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # not the letter of a drive


@helpful
def read(
    source: str | os.PathLike[str],
    *,
    roles: Roles | None = None,
    query: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing_values: Sequence[str] | None = None,
    only_missing_values: Sequence[str] | None = None,
    sheet: str | int | None = None,
    header: bool | None = None,
    skip_lines: int | None = None,
    date_formats: str | Mapping[str, str] | None = None,
    missing_reasons: str | None = None,
    catalog: str | os.PathLike[str] | None = None,
    metadata: str | os.PathLike[str] | None = None,
) -> Table:
    """Read a table: text, Parquet, Feather/Arrow, Excel, Stata, SPSS, SAS, or a database query.

    Parameters
    ----------
    source : path or URI
        A file, or ``sqlite:///file``, ``duckdb:///file`` or ``postgresql://user@host/database``.
    roles : Roles, optional
        The roles of the columns.
    query : str, optional
        The SQL query, for a database.
    format : str, optional
        The format of the file, if its name does not show it.
    delimiter, encoding, decimal, thousands : str, optional
        How a CSV file is written, if this cannot be detected. A file of Stata, SPSS or SAS may
        need its ``encoding``, too.
    missing_values : sequence of str, optional
        Texts of a CSV file that mean a missing value, in addition to an empty field, NA, N/A, NaN
        and NULL.
    only_missing_values : sequence of str, optional
        Texts that mean a missing value, instead of the usual ones.
    sheet : str or int, optional
        The sheet of an Excel file, by name or by number from 1.
    header : bool, optional
        True if the first line of a text or sheet holds column names, whatever they look like. By
        default, a first line that looks like a record is refused.
    skip_lines : int, optional
        The number of lines above the names, if this cannot be detected.
    date_formats : str or mapping, optional
        How ambiguous dates are written, such as ``"%d/%m/%Y"``: one format for all columns that
        fit it, or a mapping from columns to formats.
    missing_reasons : {"kept", "dropped"}, optional
        For a file of Stata, SPSS or SAS: whether the declared reasons for missing values become
        columns of their own (by default), or all missing values are alike.
    catalog : path, optional
        For a SAS file (``.sas7bdat``): the catalog (``.sas7bcat``) that has the labels of its
        values.
    metadata : path, optional
        A Frictionless, CSVW or DDI-Codebook file that describes the table: types, missing values,
        labels. By default, one that lies next to the table is used: ``datapackage.json``,
        ``NAME-metadata.json`` or ``ddi.xml``. ``"none"`` ignores it.

    Returns
    -------
    Table
        ``table.manner`` describes how the source was read and what was detected.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;zip\\n31;01234\\n")
    >>> read(path).frame.to_dicts()
    [{'age': 31, 'zip': '01234'}]
    """
    options = {name: given for name, given in locals().items() if name not in ("source", "roles")}
    from shoal.table._table import Table

    many = isinstance(source, (list, tuple))
    cure = "Read one file at a time." if many else "Use sh.Table(frame, roles) for a frame."
    check_path(source, "sh.read", cure)
    found, manner, dictionary = read_source(source, **options)
    if dictionary is not NO_DICTIONARY:
        table = Table(found).read_in(manner).described(dictionary)
        return table if roles is None else table.with_roles(roles)
    if isinstance(found, pl.DataFrame):
        return Table(found, roles).read_in(manner)
    return Table.of_columns(found, roles).read_in(manner)


def read_source(
    source: str | os.PathLike[str], **options: Any
) -> tuple[pl.DataFrame | list[Column], Manner, Dictionary]:
    """The frame or the columns of a source and what it says about them; options of :func:`read`."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("catalog", "metadata"):
        if isinstance(given.get(name), os.PathLike):
            given[name] = os.fspath(given[name])
    if given.get("header") is False:
        raise ReadError("A table needs column names. Add a line of names, and leave out header=.")
    if isinstance(source, str) and _URI.match(source):
        from shoal.table.storage._sql import read_sql

        refuse_others(given, ("query",), "a database")
        return read_sql(source, given.get("query")), Manner(), NO_DICTIONARY
    path = _file(source)
    format = check_format(given.pop("format")) if "format" in given else format_of(path)
    refuse_others([name for name in given if name == "query"], (), f"a file of format {format}")
    reading = ReadOptions.from_dict(given | {"format": format})
    reading.check_for(format)
    if format in FAMILY:
        frame, dictionary = read_labelled(
            path,
            format,
            encoding=reading.encoding,
            missing_reasons=reading.missing_reasons or "kept",
            catalog=None if reading.catalog is None else Path(reading.catalog),
        )
        return frame, Manner(reading, notes=_labelled_by(reading.catalog, dictionary)), dictionary
    described = description_of(path, reading.metadata)
    if described is not None:
        return *_as_described(path, format, reading, described), NO_DICTIONARY
    return *_read_file(path, format, reading), NO_DICTIONARY


def _labelled_by(catalog: str | None, dictionary: Dictionary) -> tuple[str, ...]:
    """Which columns a catalog has labels for, in a sentence."""
    if catalog is None:
        return ()
    names = [name for name, facts in dictionary.facts.items() if facts.values or facts.reasons]
    return (f"The catalog '{Path(catalog).name}' has labels for values of {quoted(names)}.",)


def _as_described(
    path: Path, format: str, reading: ReadOptions, described: Description
) -> tuple[list[Column], Manner]:
    """A file that a metadata file describes."""
    options = described.options(reading, text=format in DELIMITER_OF)
    if format in OPTIONS_OF:
        options.check_for(format)
    else:
        options = reading  # a format that has types needs no options
    found, manner = _read_file(path, format, options, described.texts)
    columns = [Column(one) for one in found] if isinstance(found, pl.DataFrame) else found
    told = f"The metadata file '{described.source}' describes {len(described.columns)} columns."
    return described.applied(columns), replace(
        manner, notes=(told, *manner.notes), described=described.by_name
    )


def _read_file(
    path: Path, format: str, options: ReadOptions, texts: frozenset[str] = frozenset()
) -> tuple[pl.DataFrame | list[Column], Manner]:
    if format in DELIMITER_OF:
        return read_delimited(path, options, likely=DELIMITER_OF[format], as_text=texts)
    if format == "xlsx":
        return read_excel(path, options)
    return _plain(read_columnar(path, format)), Manner(options)


def _plain(fields: Sequence[Fields]) -> pl.DataFrame | list[Column]:
    """The columns, coded if the file has dictionaries; a frame if types have to change."""
    columns = [column_of(one.texts.name, one.texts, one.labels) for one in fields]
    others = [one.texts for one in fields if one.labels is None]
    if len(others) < len(fields):
        frame = pl.DataFrame(others)
        if to_polars(frame)[0].schema == frame.schema:
            return columns
    return pl.DataFrame([column.series for column in columns])


def read_columnar(path: Path, format: str) -> list[Fields]:
    """The columns of a Parquet, Feather or Arrow file, in its own types."""
    return read_parquet(path) if format == "parquet" else read_arrow(path)


def _file(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    try:
        if path.is_dir():
            raise ReadError(f"'{path}' is a folder. Pass the file in it that contains the table.")
        if not path.exists():
            raise ReadError(f"There is no file '{path}'. Check its name and the current folder.")
        if not path.is_file():
            raise ReadError(f"'{path}' is not a regular file. Pass a file that can be read twice.")
        if path.stat().st_size == 0:
            raise ReadError(f"'{path}' is empty. A table needs at least column names.")
        path.open("rb").close()
    except (OSError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        why = getattr(error, "strerror", None) or "its name is not a valid file name"
        raise ReadError(f"'{path}' cannot be opened: {why}.") from None
    return path
