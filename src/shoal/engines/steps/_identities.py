"""Pseudonyms and shifted dates on an engine: each is a function of a key and of the row alone."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from shoal.engines._engine import HIDDEN, OWNER, ROW, as_table
from shoal.engines.steps._course import Course, record_step, secrets_of
from shoal.engines.steps._functions import PersonNames
from shoal.errors import InputError, RequirementNotMet, ShoalWarning, quoted
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
from shoal.workflow.release._identities import copies_beside


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

    named: tuple[Keyed | PersonNames, ...]
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
        left = frame.drop(gone, strict=False).rename(self.hidden)
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
    stream, about = _stream_of(step)
    if chosen:
        some = _sample(course)
        own = course.roles.without([n for _, n in course.roles.items() if n not in some.columns])
        warn_of_shifts(as_table(some, own), chosen, step.days)
        keyed = copy.copy(step).set_params(columns=chosen, key_file=None)
        function = Keyed(keyed, Roles(unit=unit), stream.key_hex, tuple(chosen))
        course.rows = rows.mapped(function)
    if step.columns is not None and skipped:
        step._warn_about_named(skipped)
    record_step(step, course, touched=tuple(chosen), skipped=skipped, **about)


def by_naming(step: Pseudonymize, course: Course) -> None:
    """Pseudonyms of visible columns now, and of identifiers once no step needs them any more."""
    rows = course.rows
    absent = [name for name in step.columns if name not in {**rows.schema, **rows.hidden}]
    if absent:
        raise InputError(f"The source has no column '{absent[0]}', which the step names.")
    stream, about = _stream_of(step)
    keyed = copy.copy(step).set_params(key_file=None)
    shown = tuple(name for name in step.columns if name in rows.schema)
    if shown:
        function = Keyed(keyed.set_params(columns=list(shown)), Roles(), stream.key_hex, shown)
        schema = {**rows.schema, **dict.fromkeys(shown, pl.String())}
        course.rows = rows.mapped(function, schema)
    if later := tuple(name for name in step.columns if name not in shown):
        named = copy.copy(keyed).set_params(columns=list(later))
        course.to_name.append(Keyed(named, Roles(), stream.key_hex, later))
    record_step(step, course, touched=tuple(step.columns), **about)


def name_identifiers(course: Course, persons: SecretStream | None) -> Roles:
    """Show pseudonyms of identifiers, and of persons if there is a key; returns the public roles.

    The identifiers are forgotten; whose row it is stays known, hidden.
    """
    rows, unit = course.rows, course.roles.unit_columns
    named: list[Keyed | PersonNames] = list(course.to_name)
    shown = [name for one in named for name in one.touches]
    if named:
        _refuse_copies(course, shown)
    left = [name for name in unit if name not in shown]
    public = course.roles.without([*left, *course.roles.household])
    if persons is not None:
        called = unit[0] if len(unit) == 1 else "person"
        while called in (*rows.schema, *shown):
            called += "_"
        named.insert(0, PersonNames(persons.key_hex, unit, called))
        public = public.replacing(unit=[called])
    if named:
        function = Shown(tuple(named), unit)
        gone = {*function.columns} - {*unit}
        hidden = {function.hidden.get(n, n): k for n, k in rows.hidden.items() if n not in gone}
        schema = {**dict.fromkeys(function.columns, pl.String()), **rows.schema}
        course.rows = rows.mapped(function, schema, hidden)
    return public


def _refuse_copies(course: Course, identifiers: Sequence[str]) -> None:
    """Raise RequirementNotMet where a column would show the identifiers; a sample is looked at."""
    some = _sample(course)
    own = Roles(identifiers=list(identifiers))
    table = as_table(some, own)
    released = [name for name in course.rows.schema if name not in identifiers]
    if copied := copies_beside(identifiers, table, table, released):
        raise RequirementNotMet(
            f"{quoted(copied)} has values of identifiers that are to be pseudonymized. Nothing was "
            "written. Drop the column, or take the values out."
        )


def _sample(course: Course) -> pl.DataFrame:
    """Some of the rows, with their hidden columns."""
    rows = course.rows
    return replace(rows, schema={**rows.schema, **rows.hidden}, hidden={}).some(course.total)


def _stream_of(step: Pseudonymize | ShiftDates) -> tuple[SecretStream, dict[str, Any]]:
    """The randomness of a step, and what is recorded about it."""
    if step.key_file is None:
        stream = SecretStream.from_state(None)
        return stream, {"private": secrets_of(stream)}
    stream = read_key_file(step.key_file)
    private = {"key_file": fingerprint_of(stream), "randomness": stream.origin}
    return stream, {"private": private, "facts": {"lasting": True}}
