"""Rows on their way through a plan, and the record of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from shoal.engines._engine import Rows, roles_on
from shoal.engines.steps._functions import WHOLE, Together
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


def record_step(step: Masker, course: Course, *, past: Past = OTHER, **did: Any) -> None:
    """Record what a step did, like a plan in memory: what it learned, or what is passed."""
    course.past = past
    known = ("touched", "skipped", "removed_columns", "removed", "losing", "facts")
    learned = {name: getattr(step, f"{name}_") for name in known if hasattr(step, f"{name}_")}
    private = Secrets({**getattr(step, "audit_", {}), **did.pop("private", {})})
    parameters = plain(step.changed_params(public=True), public=True)
    course.records.append(StepRecord(step.method, parameters, private=private, **(learned | did)))


def secrets_of(stream: SecretStream) -> dict[str, str]:
    """What the private half keeps of the randomness of a step."""
    return {"key": stream.key_hex, "randomness": stream.origin}


def kind_after(masked: Table, name: str) -> pl.DataType:
    kind: pl.DataType = masked.column(name).dtype
    return kind
