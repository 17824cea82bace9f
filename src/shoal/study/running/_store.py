"""Where the results of a study are kept: one row for each task, found again by what it was.

The key of a task is a hash of everything that its result depends on. A study that was stopped, or
changed, therefore computes only what is not there yet. Every result is on disk before the next
one is begun, and workers may write at the same time.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shoal.errors import InputError
from shoal.workflow._folder import make_parents

Status = Literal["done", "failed"]

_FILE = "results.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    value REAL,
    facts TEXT NOT NULL,
    reason TEXT,
    seconds REAL NOT NULL,
    written REAL NOT NULL
) WITHOUT ROWID
"""
_PATIENCE = 60.0  # seconds that a worker waits for another one to finish its write


def key_of(parts: Mapping[str, Any]) -> str:
    """The hash that names a task: of its parts as JSON, in one order.

    Examples
    --------
    >>> key_of({"seed": 1, "table": "x"}) == key_of({"table": "x", "seed": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Result:
    """What came of one task: a value with its facts, or the reason why there is none."""

    key: str
    status: Status
    value: float = math.nan
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    seconds: float = 0.0


class Store:
    """The results of a study in a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.write(Result(key_of({"seed": 1}), "done", 0.5))
    ...     store.known([key_of({"seed": 1}), key_of({"seed": 2})]) == {key_of({"seed": 1})}
    True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            make_parents(self.folder)
            self.folder.mkdir(mode=0o700, exist_ok=True)  # about original records
        except OSError:
            raise InputError(
                f"There can be no folder '{folder}' for the results; choose another one."
            ) from None
        with suppress(OSError):  # what is wrong with the folder, the database says better
            (self.folder / _FILE).touch(mode=0o600, exist_ok=False)
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # readers and writers side by side
            connection.execute(_SCHEMA)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / _FILE
        try:
            with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    yield connection
        except sqlite3.OperationalError as cause:  # a full disk, no right to write, another table
            raise InputError(
                f"The results of the study in '{self.folder.name}' cannot be read or written: "
                f"{cause}. What is in {_FILE} is kept; run again when this is mended, or choose "
                "another folder."
            ) from None
        except sqlite3.DatabaseError as cause:
            raise InputError(
                f"The results of the study in '{self.folder.name}' are damaged "
                f"({type(cause).__name__}): {_FILE} is no database that can be read; remove it to "
                "begin anew, or choose another folder."
            ) from None

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """While this lasts, a writer that closes does not have to tidy up: it is not the last."""
        with self._connected() as connection:
            connection.execute("SELECT 1 FROM results LIMIT 1").fetchall()
            yield

    def write(self, *results: Result) -> None:
        """Put results on disk, in place of what was there under the same keys."""
        rows = [
            (
                result.key,
                result.status,
                None if math.isnan(result.value) else float(result.value),
                json.dumps(_finite(result.facts), sort_keys=True, ensure_ascii=False),
                result.reason,
                float(result.seconds),
                time.time(),
            )
            for result in results
        ]
        with self._connected() as connection:
            connection.executemany("INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?)", rows)

    def known(self, keys: Iterable[str]) -> set[str]:
        """Which of these tasks have a result, if only the reason why there is none."""
        wanted = set(keys)
        with self._connected() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM results")} & wanted

    def forget_failed(self, keys: Iterable[str]) -> None:
        """Let those of these tasks that failed be as if they had never been tried."""
        with self._connected() as connection:
            connection.executemany(
                "DELETE FROM results WHERE key = ? AND status = 'failed'", [(key,) for key in keys]
            )

    def read(self, keys: Iterable[str]) -> dict[str, Result]:
        """The results of these tasks that are there."""
        wanted = set(keys)
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT key, status, value, facts, reason, seconds FROM results"
            ).fetchall()
        return {
            row[0]: Result(
                row[0],
                row[1],
                math.nan if row[2] is None else row[2],
                json.loads(row[3]),
                row[4],
                row[5],
            )
            for row in rows
            if row[0] in wanted
        }


def _finite(value: Any) -> Any:
    """Facts as JSON can hold them: what is not a finite number is null."""
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
