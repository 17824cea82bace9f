"""What Shoal asks of a database, and how a failure is told.

The reasons that drivers give quote the query, cells and even passwords. They are not passed on; the
kind of the failure is enough to say what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

import polars as pl

from shoal.errors import ReadError

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


class Database(Protocol):
    """A database opened for reading only."""

    def tables(self) -> Sequence[str]:
        """The names of its tables and views."""
        ...

    def select(self, query: str) -> pl.DataFrame:
        """The rows of a query; QueryFailed or ReadError if there are none to be had."""
        ...

    def close(self) -> None:
        """Let go of the file or the connection."""
        ...


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
