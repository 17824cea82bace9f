"""PostgreSQL, through its Arrow driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from shoal.errors import MissingExtra, ReadError
from shoal.table.storage._arrow import frame_from_arrow
from shoal.table.storage._database import Failure, QueryFailed
from shoal.table.storage._header import check_names

_PATIENCE: Final = "connect_timeout=15"
_KIND_OF: Final[dict[str, Failure]] = {
    "42P01": "table",
    "3F000": "table",
    "42703": "column",
    "42883": "column",
    "42601": "syntax",
    "25006": "write",
}


class Postgresql:
    """A PostgreSQL database, in a transaction that can only read."""

    def __init__(self, uri: str, called: str) -> None:
        try:
            import adbc_driver_manager
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise MissingExtra("Reading a PostgreSQL database", "sql") from None
        self._called = called
        self._failure = adbc_driver_manager.Error
        if "connect_timeout=" not in uri:
            uri += ("&" if "?" in uri else "?") + _PATIENCE
        try:
            self._connection = dbapi.connect(uri)
        except self._failure:
            raise ReadError(
                f"{called} cannot be reached; check that the server runs and that host, port, "
                "user, password and database of the URI are right."
            ) from None

    def tables(self) -> Sequence[str]:
        table = self._ask(
            "SELECT CASE table_schema WHEN 'public' THEN '' ELSE table_schema || '.' END "
            "|| table_name FROM information_schema.tables WHERE table_schema NOT IN "
            "('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return [str(name) for name in table.column(0).to_pylist()]

    def close(self) -> None:
        self._connection.close()

    def select(self, query: str) -> pl.DataFrame:
        table = self._ask(query)
        if not table.num_columns:
            raise QueryFailed("write")
        check_names(table.column_names, f"The query on {self._called}")
        return frame_from_arrow(table, f"The query on {self._called}")

    def _ask(self, query: str) -> Any:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(query)
                return cursor.fetch_arrow_table()
        except self._failure as error:
            raise QueryFailed(_KIND_OF.get(str(error.sqlstate), "data")) from None
        finally:
            self._connection.rollback()
