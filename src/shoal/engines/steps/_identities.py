"""Pseudonyms and shifted dates on an engine: each is a function of a key and of the row alone."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace

import polars as pl

from shoal.engines._engine import HIDDEN, OWNER, ROW, as_table
from shoal.engines.steps._chunked import SAMPLED
from shoal.engines.steps._course import Course, record_step
from shoal.errors import InputError, ShoalWarning
from shoal.masking import (
    Masker,
    Pseudonymize,
    ShiftDates,
    fingerprint_of,
    read_key_file,
    refuse_nameless_shifts,
    warn_of_shifts,
)
from shoal.randomness import SecretStream
from shoal.table import Roles
from shoal.table.columns._frames import kind_of


@dataclass(frozen=True)
class Keyed:
    """Run a step whose result for a row depends on a key and on the cells of the row alone."""

    step: Masker
    roles: Roles
    key: str
    touches: tuple[str, ...]
    drops: bool = False

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        if not frame.height:
            return frame
        named = dict.fromkeys((*self.touches, *self.roles.unit_columns))
        step, table = copy.copy(self.step), as_table(frame.select(ROW, *named), self.roles)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            masked = step.fit_transform(table, stream=SecretStream.from_key_hex(self.key))
        out: pl.DataFrame = masked.frame
        return frame.with_columns(out[name] for name in self.touches)


@dataclass(frozen=True)
class Shown:
    """Pseudonyms as first columns, instead of identifiers; the unit stays beside them, hidden."""

    named: tuple[Keyed, ...]
    unit: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that have pseudonyms."""
        return [name for one in self.named for name in one.touches]

    @property
    def hidden(self) -> dict[str, str]:
        """What the columns of the unit are called afterwards."""
        return {name: HIDDEN + OWNER + name for name in self.unit}

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        found = [one(frame)[name].cast(pl.String) for one in self.named for name in one.touches]
        gone = [name for name in self.columns if name not in self.unit]
        left = frame.drop(gone).rename(self.hidden)
        return pl.DataFrame(found).hstack(left)


def by_shifting(step: ShiftDates, course: Course) -> None:
    """One shift for each unit, from the key and the unit; without a unit, for each row."""
    rows, unit = course.rows, course.roles.unit_columns
    kinds = {name: kind_of(kind) for name, kind in rows.schema.items()}
    meant = step.columns if step.columns is not None else list(rows.schema)
    chosen = [name for name in meant if kinds[name] in ("date", "datetime")]
    listed = step.columns or course.roles.quasi_identifiers
    skipped = {n: f"{kinds[n]}, not date or datetime" for n in listed if n not in chosen}
    if step.key_file is not None:
        refuse_nameless_shifts(unit)
    stream, facts = _stream_of(step)
    if chosen:
        known = {**rows.schema, **rows.hidden}
        look = SecretStream.from_state(None).derive("look")
        some = rows.engine.sample(
            replace(rows, schema=known, hidden={}), SAMPLED, look, course.total
        )
        own = course.roles.without([n for _, n in course.roles.items() if n not in some.columns])
        warn_of_shifts(as_table(some, own), chosen)
        keyed = copy.copy(step).set_params(columns=chosen, key_file=None)
        function = Keyed(keyed, Roles(unit=unit), stream.key_hex, tuple(chosen))
        course.rows = rows.engine.mapped(rows, function, rows.schema, hidden=rows.hidden)
    if step.columns is not None and skipped:
        step._warn_about_named(skipped)
    record_step(
        step, course, touched=chosen, skipped=skipped, secrets=_secrets(stream, step), facts=facts
    )


def by_naming(step: Pseudonymize, course: Course) -> None:
    """Pseudonyms of visible columns now, and of identifiers once no step needs them any more."""
    rows = course.rows
    absent = [name for name in step.columns if name not in {**rows.schema, **rows.hidden}]
    if absent:
        raise InputError(f"The source has no column '{absent[0]}', which the step names.")
    stream, facts = _stream_of(step)
    keyed = copy.copy(step).set_params(key_file=None)
    shown = tuple(name for name in step.columns if name in rows.schema)
    if shown:
        function = Keyed(keyed.set_params(columns=list(shown)), Roles(), stream.key_hex, shown)
        schema = {**rows.schema, **dict.fromkeys(shown, pl.String())}
        course.rows = rows.engine.mapped(rows, function, schema, hidden=rows.hidden)
    if later := tuple(name for name in step.columns if name not in shown):
        named = copy.copy(keyed).set_params(columns=list(later))
        course.to_name.append(Keyed(named, Roles(), stream.key_hex, later))
    record_step(step, course, touched=step.columns, secrets=_secrets(stream, step), facts=facts)


def name_identifiers(course: Course) -> Roles:
    """Show the pseudonyms of identifiers, and forget these; what comes back are the public roles.

    Whose row it is stays known, hidden.
    """
    rows, unit = course.rows, course.roles.unit_columns
    function = Shown(tuple(course.to_name), unit)
    if function.named:
        gone = {*function.columns} - {*unit}
        hidden = {function.hidden.get(n, n): k for n, k in rows.hidden.items() if n not in gone}
        schema = {**dict.fromkeys(function.columns, pl.String()), **rows.schema}
        course.rows = rows.engine.mapped(rows, function, schema, hidden=hidden)
    return course.roles.without([name for name in unit if name not in function.columns])


def _stream_of(step: Pseudonymize | ShiftDates) -> tuple[SecretStream, dict[str, bool]]:
    if step.key_file is None:
        return SecretStream.from_state(None), {}
    return read_key_file(step.key_file), {"lasting": True}


def _secrets(stream: SecretStream, step: Pseudonymize | ShiftDates) -> dict[str, str]:
    if step.key_file is None:
        return {"key": stream.key_hex, "randomness": stream.origin}
    return {"key_file": fingerprint_of(stream), "randomness": stream.origin}
