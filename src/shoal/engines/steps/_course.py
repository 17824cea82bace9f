"""Rows on their way through a plan, and the record of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from shoal.engines._engine import Rows, roles_on
from shoal.engines.steps._functions import WHOLE, Named, Together
from shoal.errors import InputError, quoted
from shoal.masking import Masker, Secrets
from shoal.models import PopulationModel, PrivacyModel
from shoal.randomness import SecretStream
from shoal.table import OTHER, Roles, Table
from shoal.table import Course as Past
from shoal.workflow import StepRecord
from shoal.workflow._require import plain


@dataclass
class Course:
    """Rows on their way through a plan, and what is known about them."""

    rows: Rows
    roles: Roles
    total: int
    records: list[StepRecord] = field(default_factory=list)
    #: Rows that were already counted, and their combinations.
    counted: tuple[Rows, Table] | None = None
    #: The rows that a sample was drawn from, and how many steps came before it.
    drawn_from: tuple[Rows, int] | None = None
    #: The fitted steps that can map people of a population.
    fitted: list[Masker] = field(default_factory=list)
    #: Functions that make pseudonyms of identifiers, once no step needs these any more.
    to_name: list[Any] = field(default_factory=list)
    #: The populations that models name, counted.
    people: dict[str, Table] = field(default_factory=dict)
    #: What was done to the rows, as far as differential privacy depends on it.
    past: Past = field(default_factory=Past)

    @property
    def population(self) -> Rows | None:
        """The rows a sample was drawn from, unless later steps changed or removed classes."""
        if self.drawn_from is None:
            return None
        rows, number = self.drawn_from
        later = self.records[number + 1 :]
        quasi = {*self.roles.quasi_identifiers}
        same = all(not step.removed and not quasi & {*step.touched} for step in later)
        return rows if same else None

    def peopled(self, model: PrivacyModel) -> PrivacyModel:
        """The model, with its population as combinations that the engine counts once."""
        if not isinstance(model, PopulationModel) or isinstance(model.population, Table):
            return model
        path = model.population
        if path not in self.people:
            rows = self.rows.engine.source(path)
            quasi, unit = self.roles.quasi_identifiers, self.roles.unit_columns
            lacking = [name for name in quasi if name not in rows.columns]
            if lacking:
                raise InputError(
                    f"The population has no column {quoted(lacking)}. It needs all "
                    "quasi-identifiers."
                )
            named = [*quasi, *unit] if {*unit} <= {*rows.columns} else list(quasi)
            self.people[path] = rows.tally(named, roles_on(self.roles, named))
        asked: Any = model  # each of these models is a dataclass; their base is not
        found: PrivacyModel = replace(asked, population=self.people[path])
        return found

    def covered(self, people: Table) -> Table:
        """People of a population, mapped as the steps mapped the table."""
        for step in self.fitted:
            if {*step.touched_} & {*people.columns}:
                people = step.cover(people)
        return people

    @property
    def owners(self) -> list[str]:
        """The columns of the persons and households to which rows belong."""
        return [*self.roles.unit_columns, *self.roles.household]

    @property
    def together(self) -> Together:
        """The rows that are drawn or removed as a whole."""
        if not (self.roles.unit_columns and self.roles.household):
            return Together(tuple(self.owners))
        pairs = self.rows.tally(self.owners, roles_on(self.roles, self.owners))
        frame: pl.DataFrame = pairs.frame
        return Together(tuple(self.owners), frame.with_columns(pl.Series(WHOLE, pairs.together)))

    def name_persons(self, stream: SecretStream) -> str:
        """Add a first column with a pseudonym of each person, and return its name."""
        unit = self.roles.unit_columns
        called = unit[0] if len(unit) == 1 else "person"
        while called in self.rows.schema:
            called += "_"
        function = Named(stream.key_hex, unit, called)
        hidden = {function.hidden.get(n, n): kind for n, kind in self.rows.hidden.items()}
        schema = {called: pl.String(), **self.rows.schema}
        self.rows = self.rows.engine.mapped(self.rows, function, schema, hidden=hidden)
        return called

    def leave_homes(self) -> None:
        """Drop the households of rows, since no claim and no measure depends on them."""
        homes = self.roles.household
        hidden = {n: kind for n, kind in self.rows.hidden.items() if n not in homes}
        self.rows, self.roles = replace(self.rows, hidden=hidden), self.roles.without(homes)

    def tally(self, columns: Sequence[str]) -> Table:
        """The combinations of some columns, with their owners if a person has several rows."""
        names = [*columns, *(n for n in self.owners if n not in columns)]
        known, self.counted = self.counted, None
        if known is not None and known[0] is self.rows and {*known[1].columns} == {*names}:
            return known[1].on_course(self.past)
        return self.rows.tally(names, roles_on(self.roles, names)).on_course(self.past)


def record_step(
    step: Masker,
    course: Course,
    *,
    touched: Sequence[str] | None = None,
    skipped: Mapping[str, str] | None = None,
    removed: int | None = None,
    losing: int | None = None,
    secrets: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    past: Past = OTHER,
) -> None:
    """Record what a step did, like a plan in memory."""
    course.past = past
    gone = step.removed_ if removed is None and hasattr(step, "removed_") else removed or 0
    course.records.append(
        StepRecord(
            step.method,
            plain(step.changed_params(public=True), public=True),
            touched=tuple(getattr(step, "touched_", ()) if touched is None else touched),
            skipped=dict(getattr(step, "skipped_", {}) if skipped is None else skipped),
            removed_columns=tuple(getattr(step, "removed_columns_", ())),
            removed=gone,
            losing=getattr(step, "losing_", gone) if losing is None else losing,
            private=Secrets({**getattr(step, "audit_", {}), **(secrets or {})}),
            facts=dict(getattr(step, "facts_", {})) | dict(facts or {}),
        )
    )


def kind_after(masked: Table, name: str) -> pl.DataType:
    kind: pl.DataType = masked.column(name).dtype
    return kind
