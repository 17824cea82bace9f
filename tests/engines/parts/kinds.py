"""An engine for tests: its results for a frame, in a form that can be compared."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal as sh
from shoal.engines._engine import ROW, Engine
from shoal.engines.steps import Course, check_steps, run_step
from shoal.masking import Masker
from shoal.randomness import SecretStream
from shoal.workflow import EngineSettings, Release, StepRecord


@dataclass
class EngineKind:
    """Runs plans, steps and counts on an engine, on frames that are written as Parquet first."""

    name: str
    folder: Path
    session: Any = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def other(self, name: str) -> EngineKind:
        """Another engine that works in the same folder."""
        return replace(self, name=name)

    def written(self, frame: pl.DataFrame, *, files: int = 1) -> Path:
        """The frame as a folder of Parquet files."""
        place = self._fresh()
        size = max(1, -(-frame.height // files))
        for number, start in enumerate(range(0, frame.height, size)):
            frame.slice(start, size).write_parquet(place / f"{number:05d}.parquet")
        return place

    def protect(self, frame: pl.DataFrame | Path, plan: sh.Plan) -> Release:
        """The release of a frame, or of files, by a plan."""
        if self.name == "memory":
            found = frame if isinstance(frame, pl.DataFrame) else pl.read_parquet(frame)
            return sh.protect(found.lazy(), plan, engine="memory")
        source = self.written(frame) if isinstance(frame, pl.DataFrame) else frame
        return sh.protect(source, plan, engine=self.name)  # type: ignore[arg-type]

    def released(self, release: Release) -> pl.DataFrame:
        """The rows of a release as they were written."""
        if self.name == "memory":
            return release.masked.frame
        return pl.read_parquet(release.masked.files)  # type: ignore[attr-defined]

    def stepped(
        self, step: Masker, table: sh.Table, key: str | None = None
    ) -> tuple[pl.DataFrame, StepRecord]:
        """The rows after a step, in their first order with their keys, and what it recorded.

        With the ``key`` of a draw, memory draws the same.
        """
        roles, withheld = table.roles, table.roles.withheld
        if self.name == "memory":
            if key is None:
                masked, (record,) = sh.Plan([step]).apply(table.drop(withheld))
            else:
                stream = SecretStream.from_key_hex(key)
                masked = step.fit_transform(table.drop(withheld), stream=stream)
                done = {"touched": step.touched_, "removed": step.removed_, "losing": step.losing_}
                record = StepRecord(step.method, {}, **done)
            keyed = masked.frame.with_columns(pl.Series(ROW, np.array(masked.row_key)))
            return keyed.sort(ROW), record
        check_steps([step])
        owners = [*roles.unit_columns, *roles.household]
        with self.running() as running:
            rows = running.source(self.written(table.frame)).hide(owners).drop(withheld)
            left = roles.without([name for name in withheld if name not in owners])
            course = Course(rows, left, len(table))
            run_step(step, course)
            shown = running.collected(course.rows).sort(ROW).select(ROW, *course.rows.columns)
            return shown, course.records[-1]

    def tally(self, table: sh.Table, columns: list[str]) -> sh.Table:
        """The combinations of some columns of a table, counted by the engine."""
        if self.name == "memory":
            counted = table.frame.group_by(columns).len("times")
            return sh.Table(counted.drop("times"), table.roles).tallied(counted["times"].to_numpy())
        with self.running() as running:
            return running.source(self.written(table.frame)).tally(columns, table.roles)

    @contextlib.contextmanager
    def running(self) -> Iterator[Engine]:
        """The engine, with a private folder in which it leaves nothing."""
        private = self._fresh()
        if self.name == "duckdb":
            from shoal.engines._duckdb import DuckDb

            with DuckDb(EngineSettings(), private) as engine:
                yield engine
            return
        from shoal.engines._spark import Spark

        with Spark(EngineSettings(), private, self.session) as engine:
            yield engine
        assert list(private.iterdir()) == []

    def _fresh(self) -> Path:
        place = self.folder / str(next(self._numbers))
        place.mkdir(mode=0o700)
        return place
