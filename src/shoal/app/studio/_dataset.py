"""The table of a project in the server's memory: read once, coded once, counted once.

It is read in place, in a separate thread, and kept as long as the file and the reading options stay
the same. Pages get a :class:`Loaded`; until it exists, they show that the table is being read.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from shoal.app.studio._project import Project
from shoal.app.studio.exposure._counts import Counts
from shoal.errors import InputError, ReadError, RolesError, ShoalError
from shoal.table import (
    Manner,
    MixedColumn,
    Roles,
    RoleSuggestion,
    Table,
    column_labels,
    mixed_columns,
    read,
    suggest_roles,
)

_MOST_TABLES: Final = 8
_MOST_FILES: Final = 200
#: How long a page waits for a table that is being read, before it shows that it waits.
PATIENCE: Final = 0.8


class StillReading(Exception):
    """The table is not there yet; the page says so and asks again."""


@dataclass(frozen=True)
class Loaded:
    """A table without roles, and the facts about it."""

    table: Table
    suggestion: RoleSuggestion
    #: Columns in which a few texts may stand for missing values.
    mixed: tuple[MixedColumn, ...]
    #: The meanings of the columns according to the file.
    labels: Mapping[str, str]
    key: tuple[Any, ...]
    _tables: dict[Roles, Table] = field(default_factory=dict, repr=False)

    @property
    def manner(self) -> Manner:
        """The format and dialect of the file."""
        assert self.table.manner is not None
        return self.table.manner

    def with_roles(self, roles: Roles | None) -> Table:
        """The table with the plan's roles; columns and counts are shared with all others."""
        roles = Roles() if roles is None else roles
        known = self._tables
        if roles not in known:
            absent = [name for _, name in roles.items() if name not in self.table.columns]
            if absent:
                raise RolesError(
                    f"The plan has a role for '{absent[0]}', but the table has no such column. "
                    "Remove it from the plan, or choose the table that the plan was made for."
                )
            if len(known) >= _MOST_TABLES:  # each has a label for every row in its groupings
                known.clear()
                self.table.forget_groupings()
            known[roles] = self.table.with_roles(roles)
        return known[roles]

    @cached_property
    def counts(self) -> Counts:
        """The counts that pages show."""
        return Counts(self.table)


class Dataset:
    """Reads the source of a project and keeps it."""

    def __init__(self, project: Project, roots: tuple[Path, ...]) -> None:
        self._project = project
        self.roots = roots
        self._threads = ThreadPoolExecutor(1, "shoal-reading")
        self._lock = threading.Lock()
        self._reading: tuple[tuple[Any, ...], Future[Loaded]] | None = None

    @property
    def _said(self) -> Mapping[str, Any]:
        """What the project records about the source; an edited file may hold anything."""
        said = self._project.settings.get("source", {})
        return said if isinstance(said, Mapping) else {}

    @property
    def named(self) -> Path | None:
        """The file that the project names, whether or not it may be read."""
        named = self._said.get("path")
        return None if not named else Path(str(named))

    @property
    def source(self) -> Path | None:
        """The file of the table, below one of the folders that may be read."""
        named = self.named
        return None if named is None else self.allowed(str(named))

    @property
    def options(self) -> dict[str, Any]:
        """How to read the source, according to ``[read]`` in the plan."""
        return self._project.reading.without(["columns"]).to_dict()

    def allowed(self, named: str) -> Path:
        """A path that was typed, if it lies below a folder that the studio was started with.

        Links are followed first. Nothing is said about what lies elsewhere.
        """
        try:
            place = Path(os.path.realpath(self._project.folder / named))
        except (OSError, ValueError):
            raise InputError("This is not the path of a file. Type another one.") from None
        if not any(place.is_relative_to(root) for root in self.roots):
            folders = ", ".join(f"'{root}'" for root in self.roots)
            raise InputError(
                f"The studio only reads files below {folders}. To work with this file, start the "
                "studio with 'shoal studio' and its path."
            )
        return place

    def files(self, fits: Callable[[Path], bool], *below: str) -> list[tuple[str, str]]:
        """Files in the folders that may be read, and in those below, with their names."""
        found: dict[str, str] = {}
        for folder in (root / name for root in self.roots for name in ("", *below)):
            for path in sorted(folder.glob("*")):
                if os.path.isfile(path) and fits(path):
                    found[str(path)] = path.name
        return list(found.items())[:_MOST_FILES]

    def start(self) -> Future[Loaded] | None:
        """Start reading, unless the table is already there; None without a source."""
        source = self.source
        if source is None:
            return None
        options = self.options
        try:
            state = source.stat()
        except OSError:
            raise ReadError(
                f"The file '{source.name}' is no longer where the project expects it. Choose the "
                "table again."
            ) from None
        if not stat.S_ISREG(state.st_mode):  # reading anything else may never end
            raise ReadError(f"'{source.name}' is not a file. Choose one.")
        listed = tuple((name, str(value)) for name, value in sorted(options.items()))
        key = (str(source), state.st_mtime_ns, state.st_size, listed)
        with self._lock:
            if self._reading is None or self._reading[0] != key:
                if self._reading is not None:
                    self._reading[1].cancel()
                self._reading = key, self._threads.submit(_load, source, options, key)
            return self._reading[1]

    def loaded(self, patience: float = PATIENCE) -> Loaded:
        """The table; raises StillReading if it takes longer than a page waits."""
        reading = self.start()
        if reading is None:
            raise InputError("No table is chosen yet. Choose one under Data.")
        try:
            return reading.result(patience)
        except TimeoutError:
            raise StillReading from None

    @property
    def if_loaded(self) -> Loaded | None:
        """The table if it is there now, for marks that must not wait."""
        try:
            return self.loaded(0.0)
        except (StillReading, ShoalError):
            return None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _load(source: Path, options: dict[str, Any], key: tuple[Any, ...]) -> Loaded:
    try:
        table = read(source, **options)
        labels: Mapping[str, str] = table.dictionary.labels
        if source.suffix.lower() in (".parquet", ".pq"):
            labels = column_labels(source)
        return Loaded(table, suggest_roles(table), tuple(mixed_columns(table)), labels, key)
    except (ShoalError, MemoryError):
        raise
    except Exception as cause:  # the message of a library may quote the data
        raise ReadError(
            f"'{source.name}' cannot be read ({type(cause).__name__}). Check that the file is "
            "complete, and how it is read."
        ) from None
