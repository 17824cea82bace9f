"""Read from databases, with a URI and a query. Nothing is ever written to them.

The messages of drivers quote the query, cells and even passwords, so they are not passed on. The
kind of failure is enough to say what to do.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from shoal.errors import MissingExtra, ReadError, quoted
from shoal.table.storage._columnar import frame_from_arrow
from shoal.table.storage._header import check_names
from shoal.table.storage.inference._infer import infer_dates

Failure = Literal["table", "column", "syntax", "write", "data"]

_WORDS: Final[dict[Failure, str]] = {
    "table": "it uses a table that does not exist",
    "column": "it uses a column or function that does not exist",
    "syntax": "it is not a single, valid SQL statement",
    "write": "it is not a SELECT, and Shoal only reads",
    "data": "the database cannot run it on its data",
}


class QueryFailed(Exception):
    """A query failed; ``kind`` is the kind of failure."""

    def __init__(self, kind: Failure) -> None:
        super().__init__(_WORDS[kind])
        self.kind = kind


def database_file(rest: str, called: str) -> Path:
    """The file of a URI such as ``sqlite:///people.db``; ``rest`` is the part after ``://``."""
    name = rest.removeprefix("/")
    if not rest.startswith("/") or not name or name == ":memory:":
        scheme = called.partition(":")[0]
        raise ReadError(
            f"The URI does not contain a database file. Write {scheme}:///people.db for a file in "
            f"the current folder, or {scheme}:////data/people.db for an absolute path."
        )
    path = Path(name)
    if path.is_dir():
        raise ReadError(f"'{path}' is a folder. Pass the database file in it.")
    if not path.is_file():
        raise ReadError(f"There is no database file '{path}'. Check its name.")
    return path


def not_a_database(path: Path, kind: str) -> ReadError:
    """The error for a file that cannot be opened as a database."""
    return ReadError(
        f"'{path}' cannot be opened as a {kind} database. It has another format or version, is "
        "damaged, or is locked by another program."
    )


_PLAIN: Final = re.compile(
    r"(?:[^/?#@]*@)?(?P<place>[A-Za-z0-9.-]*(?::[0-9]+)?(?:/[A-Za-z0-9_-]*)?)(?:\?[^@]*)?"
)


def read_sql(uri: str, query: str | None) -> pl.DataFrame:
    """The rows that a query selects from the database of a URI."""
    called = _called(uri)
    database = _opened(uri, called)
    try:
        if query is None or not query.strip():
            raise ReadError(
                f"Reading from {called} needs a query, such as query='SELECT * FROM people'. "
                f"{_tables(database)}"
            )
        return database.select(query)
    except QueryFailed as failure:
        hint = f" {_tables(database)}" if failure.kind in ("table", "syntax") else ""
        raise ReadError(f"The query on {called} failed: {failure}.{hint}") from None
    finally:
        database.close()


def _opened(uri: str, called: str) -> Sqlite | Duckdb | Postgresql:
    scheme, _, rest = uri.partition("://")
    if scheme.lower() == "sqlite":
        return Sqlite(database_file(rest, called), called)
    if scheme.lower() == "duckdb":
        return Duckdb(database_file(rest, called), called)
    if scheme.lower() in ("postgresql", "postgres"):
        return Postgresql(uri, called)
    raise ReadError(
        f"Shoal does not read from '{scheme}://'. It reads local files, and databases at "
        "sqlite:///file, duckdb:///file and postgresql://host/database."
    )


def _called(uri: str) -> str:
    """The URI for messages, without user, password and options."""
    scheme, _, rest = uri.partition("://")
    if scheme.lower() in ("sqlite", "duckdb"):
        return uri
    # anything unusual may be part of the password
    plain = _PLAIN.fullmatch(rest)
    return f"{scheme}://{plain['place'] if plain else '...'}"


def _tables(database: Sqlite | Duckdb | Postgresql) -> str:
    try:
        names = database.tables()
    except QueryFailed:
        return "The tables of the database cannot be listed."
    return f"Its tables are {quoted(names)}." if names else "The database has no tables."


# -- SQLite, DuckDB and PostgreSQL, each with its own driver


_BATCH: Final = 50_000
_READING: Final = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_SQLITE_WORDS: Final[tuple[tuple[str, Failure], ...]] = (
    ("no such table", "table"),
    ("no such column", "column"),
    ("no such function", "column"),
    ("not authorized", "write"),
    ("syntax error", "syntax"),
    ("incomplete input", "syntax"),
    ("unrecognized token", "syntax"),
    ("one statement at a time", "syntax"),
)


class Sqlite:
    """An SQLite file, opened so that it can be neither written nor created."""

    def __init__(self, path: Path, called: str) -> None:
        self._path, self._called = path, called
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            self._names = self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            ).fetchall()
        except sqlite3.Error:
            raise not_a_database(path, "SQLite") from None
        # mode=ro protects this file; the authorizer also denies attaching and writing others
        self._connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
        )

    def tables(self) -> Sequence[str]:
        return [name for (name,) in self._names]

    def close(self) -> None:
        self._connection.close()

    def select(self, query: str) -> pl.DataFrame:
        try:
            cursor = self._connection.execute(query)
            if cursor.description is None:
                raise QueryFailed("write" if query.strip(" \n;") else "syntax")
            names = [column[0] for column in cursor.description]
            check_names(names, f"The query on {self._called}")
            parts: list[list[pl.Series]] = [[] for _ in names]
            while rows := cursor.fetchmany(_BATCH):
                for part, values in zip(parts, zip(*rows, strict=True), strict=True):
                    part.append(_series(values))
        except (sqlite3.Error, sqlite3.Warning) as error:
            kinds = (kind for words, kind in _SQLITE_WORDS if words in str(error))
            raise QueryFailed(next(kinds, "data")) from None
        columns = [_column(name, part) for name, part in zip(names, parts, strict=True)]
        binary = [column.name for column in columns if column.dtype == pl.Binary]
        if binary:
            raise ReadError(
                f"The query on {self._called} returns binary values in {quoted(binary)}. Leave "
                "them out, or convert them to text, for example with hex(...)."
            )
        return pl.DataFrame(columns)


def _series(values: Sequence[Any]) -> pl.Series:
    """Values of one column; in SQLite each may have its own type."""
    kinds = set(map(type, values)) - {type(None)}
    if bytes in kinds:
        return pl.Series([b""], dtype=pl.Binary)
    if kinds <= {int}:
        return pl.Series(values, dtype=pl.Int64 if kinds else pl.Null)
    if kinds <= {int, float}:
        return pl.Series(values, dtype=pl.Float64, strict=False)
    if kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def _column(name: str, parts: list[pl.Series]) -> pl.Series:
    kinds = {part.dtype for part in parts} - {pl.Null()}
    if len(kinds) <= 1:
        dtype = kinds.pop() if kinds else pl.String()
    elif pl.Binary() in kinds:
        dtype = pl.Binary()
    else:
        dtype = pl.Float64() if kinds <= {pl.Int64(), pl.Float64()} else pl.String()
    if dtype == pl.Binary:
        return pl.Series(name, [], dtype=pl.Binary)
    column = pl.concat([pl.Series([], dtype=dtype), *(part.cast(dtype) for part in parts)])
    # SQLite has no date type; dates are texts in ISO form
    return infer_dates(column.alias(name)) if dtype == pl.String else column.alias(name)


class Duckdb:
    """A DuckDB file, opened for reading only."""

    def __init__(self, path: Path, called: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("Reading a DuckDB database", "sql") from None
        self._called = called
        self._driver = duckdb
        # a query must not use variables of this program or load extensions from the network
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

    def relation(self, query: str) -> Any:
        """The relation that a query selects, not read yet."""
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1:
                raise QueryFailed("syntax")
            # COPY would write a file even with a database opened for reading only
            if statements[0].type != self._driver.StatementType.SELECT:
                raise QueryFailed("write")
            found = self._connection.sql(query)
            check_names(found.columns, f"The query on {self._called}")
        except self._driver.Error as error:
            raise QueryFailed(self._kind(error)) from None
        return found

    def select(self, query: str) -> pl.DataFrame:
        found = self.relation(query)
        try:
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
    """Integers for decimals without a fraction, which DuckDB returns for sums, if they fit."""
    if not isinstance(column.dtype, pl.Decimal) or column.dtype.scale != 0:
        return column
    whole = column.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == column.null_count() else column.cast(pl.String)


_PATIENCE: Final = "connect_timeout=15"
_POSTGRESQL_STATES: Final[dict[str, Failure]] = {
    "42P01": "table",
    "3F000": "table",
    "42703": "column",
    "42883": "column",
    "42601": "syntax",
    "25006": "write",
}


def _refusal(message: str) -> str:
    """What to check after a failed connection; the server's message may hold names, so drop it."""
    if "FATAL:" in message or "no password supplied" in message:
        return (
            "refuses the login. Check user, password and database. The password may come from the "
            "variable PGPASSWORD or the file ~/.pgpass."
        )
    return (
        "cannot be reached. Check that the server is running, and check host and port in the URI."
    )


class Postgresql:
    """A PostgreSQL database, used in read-only transactions."""

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
        except self._failure as error:
            raise ReadError(f"{called} {_refusal(str(error))}") from None

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
            raise QueryFailed(_POSTGRESQL_STATES.get(str(error.sqlstate), "data")) from None
        finally:
            self._connection.rollback()
