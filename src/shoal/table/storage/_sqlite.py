"""SQLite, through Python's own driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.table.storage._database import Failure, QueryFailed, not_a_database
from shoal.table.storage._header import check_names
from shoal.table.storage._infer import infer_dates

_BATCH: Final = 50_000
_READING: Final = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_KIND_OF: Final[tuple[tuple[str, Failure], ...]] = (
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
            raise QueryFailed(_kind(str(error))) from None
        columns = [_column(name, part) for name, part in zip(names, parts, strict=True)]
        self._refuse_binary(columns)
        return pl.DataFrame(columns)

    def _refuse_binary(self, columns: list[pl.Series]) -> None:
        binary = [column.name for column in columns if column.dtype == pl.Binary]
        if binary:
            raise ReadError(
                f"The query on {self._called} gives binary values in {quoted(binary)}; leave them "
                "out or turn them into text, as with hex(...)."
            )


def _kind(message: str) -> Failure:
    return next((kind for words, kind in _KIND_OF if words in message), "data")


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
