"""Models of what a class reveals about a sensitive column: values counted per class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.models._base import Condition, PrivacyModel
from shoal.table import Classes, Table, owned_pairs

#: At most this many columns are named.
_MOST_NAMED = 6


def summed(values: Floats, places: Integers, count: int) -> Floats:
    """The sum of the values that have the same place."""
    totals = np.bincount(places, values, minlength=count)
    return totals.astype(np.float64, copy=False)  # integers if there is no value


@dataclass(frozen=True, eq=False)
class ClassValues:
    """The number of persons in each class who have each value of one sensitive column.

    A person with several rows in a class may have several values there; each counts once. Only
    the pairs of class and value that occur are stored, ordered by class and value. Their number
    is at most that of the records, and never classes × values.
    """

    table: Table
    column: str
    owners: Integers  # the class of each pair
    values: Integers
    counts: Integers
    overall: Integers  # the persons of the table with each value

    @classmethod
    def of(cls, table: Table, column: str) -> ClassValues:
        """Count a column; a missing value is a value of its own, after all others."""
        codes = table.codes(column)
        width = max(1, codes.count)
        keys = table.classes.labels.astype(np.int64)
        keys *= width
        keys += codes.codes
        overall = codes.counts
        if table.has_persons:
            keys, _ = owned_pairs(keys, table.persons)
            values, _ = owned_pairs(codes.codes, table.persons)
            overall = np.bincount(values, minlength=codes.count)
        if table.times is None or table.has_persons:
            pairs, counts = np.unique(keys, return_counts=True)
        else:
            order = np.argsort(keys)
            keys = keys[order]
            first = np.flatnonzero(np.diff(keys, prepend=-1))
            pairs, counts = keys[first], np.add.reduceat(table.times[order], first)
        owners, of_pair = np.divmod(pairs, width)
        return cls(table, column, owners, of_pair, counts.astype(np.int64, copy=False), overall)

    @property
    def classes(self) -> Classes:
        return self.table.classes

    @cached_property
    def sizes(self) -> Floats:
        """For each pair, the number of persons in its class."""
        return self.classes.sizes[self.owners].astype(np.float64)

    @cached_property
    def totals(self) -> Floats:
        """For each pair, the values in its class; more than persons if somebody has several."""
        return self.total(self.counts.astype(np.float64))[self.owners]

    @cached_property
    def shares(self) -> Floats:
        """For each pair, the value's share among the values of its class."""
        return self.counts / self.totals

    @cached_property
    def rates(self) -> Floats:
        """For each pair, the share of the persons of its class who have the value."""
        return self.counts / self.sizes

    @cached_property
    def overall_rates(self) -> Floats:
        """The share of all persons who have each value."""
        return self.overall / max(1, self.table.person_count)

    @cached_property
    def had_by_all(self) -> Flags:
        """Which classes have a value that everyone in them has, whatever else some have."""
        found = np.zeros(self.classes.count, np.bool_)
        found[self.owners[self.counts >= self.sizes]] = True
        return found

    @cached_property
    def overall_shares(self) -> Floats:
        """The share of each value in the table."""
        return self.overall / max(1, int(self.overall.sum()))

    @cached_property
    def starts(self) -> Integers:
        """The index of each class's first pair."""
        return np.searchsorted(self.owners, np.arange(self.classes.count))

    def total(self, of_pairs: Floats) -> Floats:
        """The sum over the pairs of each class."""
        return summed(of_pairs, self.owners, self.classes.count)

    def largest(self, of_pairs: npt.NDArray[np.generic]) -> Floats:
        """The maximum over the pairs of each class."""
        if not len(self.starts):
            return np.zeros(0)
        return np.maximum.reduceat(of_pairs, self.starts).astype(np.float64)


class SensitiveModel(PrivacyModel):
    """Base of the models that restrict the sensitive values of each class."""

    by_counts = True
    column: str | None

    @abstractmethod
    def class_levels(self, values: ClassValues) -> Floats:
        """The level of each class in one sensitive column."""

    @abstractmethod
    def asks(self) -> str:
        """What must hold in a class, as a part of a sentence."""

    @abstractmethod
    def condition(self, table: Table, column: str) -> Condition:
        """What the model requires of a sensitive column in each group of records."""

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """One condition for each sensitive column."""
        return tuple(self.condition(table, name) for name in self.columns(table))

    def columns(self, table: Table) -> tuple[str, ...]:
        """The named column, or all sensitive columns."""
        if self.column is None:
            if not table.roles.sensitive:
                raise InputError(
                    f"{self.title} concerns sensitive columns, but the table declares none. Name "
                    "them in the roles."
                )
            return table.roles.sensitive
        table.chosen([self.column])
        if self.column in table.roles.quasi_identifiers:
            raise InputError(
                f"Column '{self.column}' is a quasi-identifier, so a class has only one value of "
                f"it. Name a sensitive column for {self.title}."
            )
        return (self.column,)

    def level(self, table: Table) -> float:
        """The level of the worst class in the worst column; 0 for a table without records."""
        levels = self._levels(table)
        if not len(levels):
            return 0.0
        return float(levels.min() if self.direction == "higher" else levels.max())

    def violations(self, table: Table) -> Flags:
        """Which records are in a class that fails in at least one column."""
        return table.classes.spread(~self.accepts(self._levels(table)))

    def _levels(self, table: Table) -> Floats:
        worst = np.minimum if self.direction == "higher" else np.maximum
        return worst.reduce([*self._by_column(table).values()])

    def _by_column(self, table: Table) -> dict[str, Floats]:
        names = self.columns(table)
        return {name: self.class_levels(ClassValues.of(table, name)) for name in names}

    def explain(self, table: Table) -> str:
        """What is required, how bad the worst class is per column, and how many records fail."""
        short = table.records_at(self.violations(table))
        pick = np.min if self.direction == "higher" else np.max
        worst = {name: float(pick(v)) for name, v in self._by_column(table).items() if len(v)}
        failing = [name for name, level in worst.items() if not self.accepts(level)] or list(worst)
        failing.sort(key=worst.__getitem__, reverse=self.direction == "lower")
        named = failing[:_MOST_NAMED]
        places = [f"{worst[name]:.4g} in '{name}'" for name in named if worst[name] < np.inf]
        reached = f"reaches {', '.join(places)}" if places else ""
        if hopeless := [f"'{name}'" for name in named if worst[name] == np.inf]:
            also = ", and " if places else ""
            reached += f"{also}fails with any parameter in {', '.join(hopeless)}"
        if len(failing) > _MOST_NAMED:
            reached += f", and {len(failing) - _MOST_NAMED} more columns fail"
        return (
            f"{self.title} requires {self.asks()}; the worst class {reached or 'reaches 0'}, "
            f"and {short:,} of {table.records:,} records are in classes that fail"
        )
