"""Rows grouped by equal values: what models and class-based risk read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.table._agreement import Agreement
from shoal.table._classes import Classes, agreement_of, classes_of, weight_sums, weights_by_class
from shoal.table._encode import encode
from shoal.table._persons import Owners, counting, histories, owned_pairs
from shoal.table._population import counted_in
from shoal.table._roles import Roles

if TYPE_CHECKING:
    from shoal.table._table import Table

Missing = Literal["own", "wildcard"]
Scalar = TypeVar("Scalar", bound=np.generic)


def check_reading(missing: Missing) -> None:
    """Raise InputError unless it is one of the two readings of a missing value."""
    if missing not in ("own", "wildcard"):
        raise InputError(f"missing must be 'own' or 'wildcard'; got '{missing}'.")


class GroupedRows:
    """The part of a Table that groups its rows; each grouping is made once."""

    _data: pl.DataFrame
    _owners: Owners

    @property
    def roles(self) -> Roles:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def _series(self, column: str) -> pl.Series:
        raise NotImplementedError

    def missing_count(self, column: str) -> int:
        raise NotImplementedError

    @cached_property
    def classes(self) -> Classes:
        """The rows grouped by equal quasi-identifiers; a missing value is a value of its own.

        Sizes count persons, who may have several rows in a class.
        """
        return self.crowds(self.roles.quasi_identifiers)

    @property
    def has_persons(self) -> bool:
        """Whether a person may have several rows."""
        return self._owners.persons is not None

    @cached_property
    def persons(self) -> npt.NDArray[np.int64]:
        """The number of the person of each row, from 0 without gaps. Never publish it."""
        if self._owners.persons is None:
            return np.arange(len(self))
        return np.unique(self._owners.persons, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def person_count(self) -> int:
        """The number of persons."""
        return int(self.persons.max(initial=-1)) + 1

    @property
    def households(self) -> npt.NDArray[np.int64] | None:
        """The number of the household of each row; None where none is declared."""
        return self._owners.households

    @property
    def together(self) -> npt.NDArray[np.int64] | None:
        """What is taken out or kept as a whole; None where each row goes by itself."""
        return self._owners.together

    def whole(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The marked rows with all others of the same persons or households."""
        together = self.together
        if together is None:
            return rows
        marked = np.zeros(int(together.max(initial=0)) + 1, np.bool_)
        marked[together[rows]] = True
        return marked[together]

    def of_persons(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The largest value among the rows of each person; the values where each row is one."""
        if not self.has_persons:
            return values
        order = np.argsort(self.persons, kind="stable")
        starts = np.searchsorted(self.persons[order], np.arange(self.person_count))
        largest: npt.NDArray[Scalar] = np.maximum.reduceat(values[order], starts)
        return largest

    @cached_property
    def histories(self) -> Classes:
        """The persons grouped by equal histories: the classes of all rows of a person."""
        return histories(self.classes, self.persons)

    @cached_property
    def _wildcard_agreement(self) -> Agreement:
        parts = [encode(self._data[name]) for name in self.roles.quasi_identifiers]
        return agreement_of(parts, self.classes)

    @cached_property
    def _wildcard_sizes(self) -> npt.NDArray[np.int64]:
        agreement, sizes = self._wildcard_agreement, self.classes.sizes.astype(np.float64)
        if self.has_persons:
            # a person may have rows in several of the classes that agree: at least as many as the
            # largest of them has, and as what is left where each row is a share of its person
            shares = 1.0 / np.bincount(self.persons)[self.persons]
            summed = agreement.totals(weights_by_class(self.classes, shares))
            totals = np.maximum(agreement.largest(sizes), np.floor(summed + 1e-9))
        else:
            totals = agreement.totals(sizes)
        crowds = self.classes.spread(totals.astype(np.int64))
        crowds.flags.writeable = False
        return crowds

    def group(self, columns: Sequence[str]) -> Classes:
        """The rows grouped by equal values of any columns; sizes count rows."""
        return classes_of((self._series(name) for name in columns), len(self))

    def crowds(self, columns: Sequence[str]) -> Classes:
        """The rows grouped by equal values of any columns; sizes count persons."""
        return counting(self.group(columns), self._owners.persons)

    def holders(self, column: str) -> npt.NDArray[np.int64]:
        """How many persons have each value of a column, missing left out."""
        codes = encode(self._series(column))
        values, _ = owned_pairs(codes.codes, self.persons)
        return np.bincount(values, minlength=codes.count)[: len(codes.levels)]

    def class_sizes(self, missing: Missing = "own") -> npt.NDArray[np.int64]:
        """How many persons share the quasi-identifiers of each record.

        With ``missing="wildcard"`` a missing value agrees with every value, which is how the
        statistics offices count; the groups then overlap.
        """
        check_reading(missing)
        return self.classes.record_sizes if missing == "own" else self._wildcard_sizes

    def agreement(self, missing: Missing = "own") -> Agreement:
        """Which classes agree: each with itself only or, with wildcards, with others too."""
        check_reading(missing)
        return Agreement(self.classes.count) if missing == "own" else self._wildcard_agreement

    def class_weights(self, missing: Missing = "own") -> npt.NDArray[np.float64]:
        """The sum of the sampling weights in the class of each record."""
        if self.roles.weight is None:
            raise InputError("The table has no weight column; declare one in the roles.")
        absent = self.missing_count(self.roles.weight)
        if absent:
            raise InputError(
                f"The weight column '{self.roles.weight}' has {absent} missing values; every "
                "record needs a weight."
            )
        weights = self._data[self.roles.weight].cast(pl.Float64).to_numpy()
        weights = self._once_per_person(weights)
        if missing == "own":
            return weight_sums(self.classes, weights)
        totals = self._wildcard_agreement.totals(weights_by_class(self.classes, weights))
        return self.classes.spread(totals)

    def _once_per_person(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """In each class the smallest weight of each person at one row, and 0 at the others."""
        if not self.has_persons:
            return weights
        order = np.lexsort((weights, self.persons, self.classes.labels))
        labels, persons = self.classes.labels[order], self.persons[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(labels) != 0) | (np.diff(persons) != 0)
        once = np.zeros(len(weights))
        once[order[first]] = weights[order[first]]
        return once

    def class_sizes_in(self, population: Table, missing: Missing = "own") -> npt.NDArray[np.int64]:
        """How many persons of ``population`` share the quasi-identifiers of each record."""
        names = self.roles.quasi_identifiers
        population = population.owned_like(self)  # type: ignore[arg-type]
        return counted_in(
            [self._series(name) for name in names],
            [population._series(name) for name in names],
            (len(self), len(population)),
            wildcard=missing == "wildcard",
            persons=population._owners.persons,
        )
