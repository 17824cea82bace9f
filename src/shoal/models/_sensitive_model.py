"""Models of what a class tells about a sensitive column: values counted class by class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.models._base import PrivacyModel
from shoal.table import Classes, Table, owned_pairs


def summed(values: Floats, places: Integers, count: int) -> Floats:
    """The sum of the values that share a place."""
    totals = np.bincount(places, values, minlength=count)
    return totals.astype(np.float64, copy=False)  # whole numbers where there is no value


@dataclass(frozen=True, eq=False)
class ClassValues:
    """How many persons of each class have each value of one sensitive column.

    A person with several rows in a class may have several values there, and has each once. Only
    pairs of class and value that occur are held, by ascending class and value, so the size is that
    of the table at most and never classes × values.
    """

    table: Table
    column: str
    owners: Integers  # the class of each pair
    values: Integers
    counts: Integers
    overall: Integers  # how many persons of the table have each value

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
        """The persons in the class of each pair."""
        return self.classes.sizes[self.owners].astype(np.float64)

    @cached_property
    def totals(self) -> Floats:
        """The values in the class of each pair: as many as persons, unless somebody has several."""
        return self.total(self.counts.astype(np.float64))[self.owners]

    @cached_property
    def shares(self) -> Floats:
        """The share of the value among those of its class, of each pair."""
        return self.counts / self.totals

    @cached_property
    def rates(self) -> Floats:
        """The share of the persons of a class who have the value, of each pair."""
        return self.counts / self.sizes

    @cached_property
    def overall_rates(self) -> Floats:
        """The share of all persons who have each value."""
        return self.overall / max(1, self.table.person_count)

    @cached_property
    def had_by_all(self) -> Flags:
        """Which classes have a value that everybody in them has, whatever else some have."""
        found = np.zeros(self.classes.count, np.bool_)
        found[self.owners[self.counts >= self.sizes]] = True
        return found

    @cached_property
    def overall_shares(self) -> Floats:
        """The share of each value in the table."""
        return self.overall / max(1, int(self.overall.sum()))

    @cached_property
    def starts(self) -> Integers:
        """Where the pairs of each class begin."""
        return np.searchsorted(self.owners, np.arange(self.classes.count))

    def total(self, of_pairs: Floats) -> Floats:
        """The sum over the pairs of each class."""
        return summed(of_pairs, self.owners, self.classes.count)

    def largest(self, of_pairs: npt.NDArray[np.generic]) -> Floats:
        """The largest over the pairs of each class."""
        if not len(self.starts):
            return np.zeros(0)
        highest: Floats = np.maximum.reduceat(of_pairs, self.starts).astype(np.float64)
        return highest


class SensitiveModel(PrivacyModel):
    """Base of the models that ask something of the sensitive values of each class."""

    by_counts = True
    column: str | None

    @abstractmethod
    def class_levels(self, values: ClassValues) -> Floats:
        """How far each class goes in one sensitive column."""

    @abstractmethod
    def asks(self) -> str:
        """What must hold, as a part of a sentence."""

    def columns(self, table: Table) -> tuple[str, ...]:
        """The column that is named, or all sensitive ones."""
        if self.column is None:
            if not table.roles.sensitive:
                raise InputError(
                    f"{self.title} is about sensitive columns, and the table declares none; name "
                    "them in the roles."
                )
            return table.roles.sensitive
        table.chosen([self.column])
        if self.column in table.roles.quasi_identifiers:
            raise InputError(
                f"Column '{self.column}' is a quasi-identifier, so a class has one value of it; "
                f"{self.title} is about a sensitive column."
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
        """What is asked, how the worst class stands and in which column, and how many fail."""
        short, level = table.records_at(self.violations(table)), self.level(table)
        found = self._by_column(table)
        where = [f" in '{name}'" for name, levels in found.items() if level in levels]
        reached = f"reaches {level:.4g}" if level < np.inf else "would fail with any value of it"
        return (
            f"{self.title} asks {self.asks()}; the worst class {reached}{''.join(where[:1])}, and "
            f"{short} of {table.records} records are in classes that fail"
        )
