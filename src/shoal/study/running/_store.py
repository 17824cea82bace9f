"""The store of a study's results: one row per task.

The key of a task is a hash of everything that its result depends on. A study that was stopped or
changed therefore computes only what is missing. Every result is on disk before the next task
starts, and several workers may write at the same time.
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
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from shoal import __version__
from shoal.errors import InputError, PlanError
from shoal.study._design import Cell, MeasureSpec, Study
from shoal.study.data._tables import content_hash
from shoal.study.figures._style import finite
from shoal.workflow.release._folder import make_parents

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
_PATIENCE = 60.0  # seconds that a worker waits for another's write


def key_of(parts: Mapping[str, Any]) -> str:
    """The hash that names a task: that of its parts as sorted JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Result:
    """The result of one task: a value with its facts, or the reason for its failure."""

    key: str
    status: Status
    value: float = math.nan
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    seconds: float = 0.0


class Store:
    """The results of a study in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            make_parents(self.folder)
            self.folder.mkdir(mode=0o700, exist_ok=True)  # about original records
        except OSError:
            raise InputError(
                f"The folder '{folder}' for the results cannot be created; choose another one."
            ) from None
        with suppress(OSError):  # the database reports better what is wrong with the folder
            (self.folder / _FILE).touch(mode=0o600, exist_ok=False)
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # readers and writers at the same time
            connection.execute(_SCHEMA)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / _FILE
        try:
            with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    yield connection
        except sqlite3.OperationalError as cause:  # full disk, no write permission, another table
            raise InputError(
                f"The results of the study in '{self.folder.name}' cannot be read or written: "
                f"{cause}. {_FILE} stays as it is. Fix this and run again, or choose another "
                "folder."
            ) from None
        except sqlite3.DatabaseError as cause:
            raise InputError(
                f"The results of the study in '{self.folder.name}' are damaged "
                f"({type(cause).__name__}): {_FILE} is not a readable database; remove it to start "
                "again, or choose another folder."
            ) from None

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep a connection open, so that other writers do not clean up when they close."""
        with self._connected() as connection:
            connection.execute("SELECT 1 FROM results LIMIT 1").fetchall()
            yield

    def write(self, *results: Result) -> None:
        """Write results to disk; they replace those with the same keys."""
        rows = []
        for one in results:
            value = None if math.isnan(one.value) else float(one.value)
            facts = json.dumps(finite(one.facts), sort_keys=True, ensure_ascii=False)
            rows.append(
                (one.key, one.status, value, facts, one.reason, float(one.seconds), time.time())
            )
        with self._connected() as connection:
            connection.executemany("INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?)", rows)

    def known(self, keys: Iterable[str]) -> set[str]:
        """Which of these tasks have a result or a reason for their failure."""
        wanted = set(keys)
        with self._connected() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM results")} & wanted

    def forget_failed(self, keys: Iterable[str]) -> None:
        """Forget which of these tasks failed, so that they run again."""
        with self._connected() as connection:
            connection.executemany(
                "DELETE FROM results WHERE key = ? AND status = 'failed'", [(key,) for key in keys]
            )

    def read(self, keys: Iterable[str]) -> dict[str, Result]:
        """The stored results of these tasks."""
        wanted = set(keys)
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT key, status, value, facts, reason, seconds FROM results"
            ).fetchall()
        return {
            key: Result(key, status, math.nan if value is None else value, json.loads(facts), *more)
            for key, status, value, facts, *more in rows
            if key in wanted
        }


#: Libraries that fit models and draw noise: another version may change the numbers.
_LIBRARIES = ("opacus", "opendp", "scikit-learn", "scipy", "torch", "xgboost", "xgboost-cpu")


def task_key(cell: Cell, measure: MeasureSpec, fingerprint: str, folder: Path | None = None) -> str:
    """The hash of everything a task's result depends on, including the version of Shoal."""
    steps, options = [dict(step) for step in cell.variant.steps], dict(measure.options)
    parts = {
        "shoal": __version__,
        "libraries": library_versions(),
        "data": fingerprint,
        "table": {k: v for k, v in cell.table.to_dict().items() if k not in ("name", "path")},
        "steps": steps,
        "files": hashes_of_named_files([steps, options], folder),
        "seed": cell.seed,
        "measure": measure.measure,
        "options": options,
    }
    try:
        return key_of(parts)
    except TypeError:
        raise PlanError(
            f"The variant '{cell.variant.name}' or the measure '{measure.name}' has an option that "
            "is not a text, number, true or false, or a list or table of these."
        ) from None


def keys_of(study: Study) -> dict[tuple[str, str, int, str], str]:
    """The key of every task, by table, variant, seed and measure."""
    prints = {source.name: source.fingerprint(study.folder) for source in study.tables}
    keys = {}
    for cell in study.cells():
        for measure in cell.measures:
            place = (cell.table.name, cell.variant.name, cell.seed, measure.name)
            keys[place] = task_key(cell, measure, prints[cell.table.name], study.folder)
    return keys


@cache
def library_versions() -> Mapping[str, str]:
    """The versions of the installed libraries that results depend on."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def hashes_of_named_files(value: Any, folder: Path | None) -> dict[str, str]:
    """The hashes of the files that steps or options name: a hierarchy, a population."""
    contents = {text: _content(text, folder) for text in sorted(set(_texts(value)))}
    return {text: content for text, content in contents.items() if content is not None}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inside = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, (Mapping, list, tuple)):
        for each in inside:
            yield from _texts(each)


def _content(text: str, folder: Path | None) -> str | None:
    """The hash of the file with this name, next to the study or here; None if there is none."""
    for place in (Path() if folder is None else folder, Path()):
        try:
            if (place / text).is_file():
                return content_hash(place / text)
        except (OSError, ValueError):  # too long for a name, or with characters no name has
            continue
    return None
