"""Databases: a URI says where, a query says what; nothing is ever written to them."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.table.storage._database import Database, QueryFailed, database_file

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


def _opened(uri: str, called: str) -> Database:
    scheme, _, rest = uri.partition("://")
    if scheme.lower() == "sqlite":
        from shoal.table.storage._sqlite import Sqlite

        return Sqlite(database_file(rest, called), called)
    if scheme.lower() == "duckdb":
        from shoal.table.storage._duckdb import Duckdb

        return Duckdb(database_file(rest, called), called)
    if scheme.lower() in ("postgresql", "postgres"):
        from shoal.table.storage._postgresql import Postgresql

        return Postgresql(uri, called)
    raise ReadError(
        f"Shoal does not read from '{scheme}://'; it reads files of this machine, and databases "
        "by sqlite:///file, duckdb:///file and postgresql://host/database."
    )


def _called(uri: str) -> str:
    """The URI without user, password and options, for messages.

    Examples
    --------
    >>> _called("postgresql://me:secret@db.example:5432/people?sslmode=require")
    'postgresql://db.example:5432/people'
    >>> _called("postgresql://me:se@cret@db.example/people")
    'postgresql://...'
    """
    scheme, _, rest = uri.partition("://")
    if scheme.lower() in ("sqlite", "duckdb"):
        return uri
    # anything out of the ordinary may be a part of the password
    plain = _PLAIN.fullmatch(rest)
    return f"{scheme}://{plain['place'] if plain else '...'}"


def _tables(database: Database) -> str:
    try:
        names = database.tables()
    except QueryFailed:
        return "its tables cannot be listed"
    return f"its tables are {quoted(names)}" if names else "it has no tables"
