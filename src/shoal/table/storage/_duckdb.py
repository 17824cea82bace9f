"""DuckDB, by its own driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from shoal.errors import MissingExtra
from shoal.table.storage._arrow import frame_from_arrow
from shoal.table.storage._database import Failure, QueryFailed, not_a_database
from shoal.table.storage._header import check_names


class Duckdb:
    """A DuckDB file, opened for reading only."""

    def __init__(self, path: Path, called: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("Reading a DuckDB database", "sql") from None
        self._called = called
        self._driver = duckdb
        # neither variables of this program nor extensions from the network belong in a query
        safe = {"python_enable_replacements": "false", "autoinstall_known_extensions": "false"}
        try:
            self._connection = duckdb.connect(str(path), read_only=True, config=safe)
        except duckdb.Error:
            raise not_a_database(path, "DuckDB") from None

    def tables(self) -> Sequence[str]:
        rows = self._connection.execute(
            "SELECT table_name FROM information_schema.tables ORDER BY table_name"
        ).fetchall()
        return [name for (name,) in rows]

    def close(self) -> None:
        self._connection.close()

    def select(self, query: str) -> pl.DataFrame:
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1:
                raise QueryFailed("syntax")
            # a COPY would write a file even though the database is opened for reading
            if statements[0].type != self._driver.StatementType.SELECT:
                raise QueryFailed("write")
            found = self._connection.sql(query)
            check_names(found.columns, f"The query on {self._called}")
            table = found.to_arrow_table()
        except self._driver.Error as error:
            raise QueryFailed(self._kind(error)) from None
        frame = frame_from_arrow(table, f"The query on {self._called}")
        return frame.with_columns(_whole(column) for column in frame)

    def _kind(self, error: Exception) -> Failure:
        driver = self._driver
        if isinstance(error, driver.CatalogException):
            return "table"
        if isinstance(error, driver.BinderException):
            return "column"
        return "syntax" if isinstance(error, driver.ParserException) else "data"


def _whole(column: pl.Series) -> pl.Series:
    """Sums come as decimals of 38 digits; those without a fraction that fit are integers."""
    if not isinstance(column.dtype, pl.Decimal) or column.dtype.scale != 0:
        return column
    whole = column.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == column.null_count() else column.cast(pl.String)
