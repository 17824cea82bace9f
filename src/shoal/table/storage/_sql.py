"""Databases: a URI says where, a query says what; nothing is ever written to them.

The reasons that drivers give quote the query, cells and even passwords. They are not passed on; the
kind of the failure is enough to say what to do.
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
    "table": "it names a table that is not there",
    "column": "it names a column or function that is not there",
    "syntax": "it is not one statement of correct SQL",
    "write": "it is not a SELECT, and Shoal only reads",
    "data": "the database cannot carry it out on its data",
}


class QueryFailed(Exception):
    """A query failed, and of what kind the failure is."""

    def __init__(self, kind: Failure) -> None:
        super().__init__(_WORDS[kind])
        self.kind = kind


def database_file(rest: str, called: str) -> Path:
    """The file of a URI such as ``sqlite:///people.db``, given what follows ``://``."""
    name = rest.removeprefix("/")
    if not rest.startswith("/") or not name or name == ":memory:":
        scheme = called.partition(":")[0]
        raise ReadError(
            f"The URI names no database file; write {scheme}:///people.db for a file in the "
            f"current folder, or {scheme}:////data/people.db for one elsewhere."
        )
    path = Path(name)
    if path.is_dir():
        raise ReadError(f"'{path}' is a folder; give the database file in it.")
    if not path.is_file():
        raise ReadError(f"There is no database file '{path}'; check its name.")
    return path


def not_a_database(path: Path, kind: str) -> ReadError:
    """The error for a file that cannot be opened as a database."""
    return ReadError(
        f"'{path}' cannot be opened as a {kind} database: it is of another kind or version, "
        "damaged, or locked by another program."
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
                f"Say what to read from {called} with a query, such as query='SELECT * FROM "
                f"people'; {_tables(database)}."
            )
        return database.select(query)
    except QueryFailed as failure:
        hint = f"; {_tables(database)}" if failure.kind in ("table", "syntax") else ""
        raise ReadError(f"The query on {called} fails: {failure}{hint}.") from None
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
        f"Shoal does not read from '{scheme}://'; it reads files of this machine, and databases "
        "by sqlite:///file, duckdb:///file and postgresql://host/database."
    )


def _called(uri: str) -> str:
    """The URI without user, password and options, for messages."""
    scheme, _, rest = uri.partition("://")
    if scheme.lower() in ("sqlite", "duckdb"):
        return uri
    # anything out of the ordinary may be a part of the password
    plain = _PLAIN.fullmatch(rest)
    return f"{scheme}://{plain['place'] if plain else '...'}"


def _tables(database: Sqlite | Duckdb | Postgresql) -> str:
    try:
        names = database.tables()
    except QueryFailed:
        return "its tables cannot be listed"
    return f"its tables are {quoted(names)}" if names else "it has no tables"


# -- SQLite, DuckDB and PostgreSQL, each by its own driver


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
    """An SQLite file, opened so that it can be neither written nor made."""

    def __init__(self, path: Path, called: str) -> None:
        self._path, self._called = path, called
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            self._names = self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            ).fetchall()
        except sqlite3.Error:
            raise not_a_database(path, "SQLite") from None
        # mode=ro guards this file; the authorizer also refuses to attach and write others
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
            said = (kind for words, kind in _SQLITE_WORDS if words in str(error))
            raise QueryFailed(next(said, "data")) from None
        columns = [_column(name, part) for name, part in zip(names, parts, strict=True)]
        binary = [column.name for column in columns if column.dtype == pl.Binary]
        if binary:
            raise ReadError(
                f"The query on {self._called} gives binary values in {quoted(binary)}; leave them "
                "out or turn them into text, as with hex(...)."
            )
        return pl.DataFrame(columns)


def _series(values: Sequence[Any]) -> pl.Series:
    """Values of one column; SQLite lets each have a type of its own."""
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
    # SQLite has no dates; they are kept as text in ISO form
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

    def relation(self, query: str) -> Any:
        """What a query selects, not read yet."""
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1:
                raise QueryFailed("syntax")
            # a COPY would write a file even though the database is opened for reading
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
    """Sums come as decimals of 38 digits; those without a fraction that fit are integers."""
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


def _refusal(told: str) -> str:
    """Whether a server answered, and what to check; what it told may hold names, and stays here."""
    if "FATAL:" in told or "no password supplied" in told:
        return (
            "refuses the login; check user, password and database. A password may come from the "
            "variable PGPASSWORD or the file ~/.pgpass."
        )
    return "cannot be reached; check that the server runs, and host and port of the URI."


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
