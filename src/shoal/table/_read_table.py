"""Reading a table from a file or a database."""

from __future__ import annotations

import os
from collections.abc import Sequence

import polars as pl

from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.storage._read import DEFAULT_MISSING, read_source


def read(
    source: str | os.PathLike[str],
    *,
    roles: Roles | None = None,
    query: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = DEFAULT_MISSING,
    sheet: str | int | None = None,
    header: bool | None = None,
) -> Table:
    """Read a table: CSV, TSV, Parquet, Feather/Arrow, Excel, or a query on a database.

    Parameters
    ----------
    source : path or URI
        A file, or ``sqlite:///file``, ``duckdb:///file`` or ``postgresql://user@host/database``.
    roles : Roles, optional
        Which column plays which part.
    query : str, optional
        The SQL query, for a database.
    format : str, optional
        The format of the file, where its name does not tell.
    delimiter, encoding, decimal : str, optional
        How a CSV file is written, where it is not to be found out.
    missing_values : sequence of str
        What stands for a missing value in a CSV file.
    sheet : str or int, optional
        The sheet of an Excel file, by name or by number from 1.
    header : bool, optional
        True if the first line of a text or sheet holds column names, whatever they look like. If
        not given, a first line that looks like a record is refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;zip\\n31;01234\\n")
    >>> read(path).frame.to_dicts()
    [{'age': 31, 'zip': '01234'}]
    """
    found = read_source(
        source,
        query=query,
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        missing_values=missing_values,
        sheet=sheet,
        header=header,
    )
    if isinstance(found, pl.DataFrame):
        return Table(found, roles)
    return Table.of_columns(found, roles)
