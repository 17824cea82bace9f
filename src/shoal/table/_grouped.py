"""Rows grouped by equal values: what models and class-based risk read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.table._agreement import Agreement
from shoal.table._classes import Classes, agreement_of, classes_of, weight_sums, weights_by_class
from shoal.table._encode import encode
from shoal.table._population import counted_in
from shoal.table._roles import Roles

if TYPE_CHECKING:
    from shoal.table._table import Table

Missing = Literal["own", "wildcard"]


def check_reading(missing: Missing) -> None:
    """Raise InputError unless it is one of the two readings of a missing value."""
    if missing not in ("own", "wildcard"):
        raise InputError(f"missing must be 'own' or 'wildcard'; got '{missing}'.")


class GroupedRows:
    """The part of a Table that groups its rows; each grouping is made once."""

    _data: pl.DataFrame

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
        """The rows grouped by equal quasi-identifiers; a missing value is a value of its own."""
        names = self.roles.quasi_identifiers
        return classes_of((self._data[name] for name in names), len(self))

    @cached_property
    def _wildcard_agreement(self) -> Agreement:
        parts = [encode(self._data[name]) for name in self.roles.quasi_identifiers]
        return agreement_of(parts, self.classes)

    @cached_property
    def _wildcard_sizes(self) -> npt.NDArray[np.int64]:
        totals = self._wildcard_agreement.totals(self.classes.sizes.astype(np.float64))
        sizes = self.classes.spread(totals.astype(np.int64))
        sizes.flags.writeable = False
        return sizes

    def group(self, columns: Sequence[str]) -> Classes:
        """The rows grouped by equal values of any columns."""
        return classes_of((self._series(name) for name in columns), len(self))

    def class_sizes(self, missing: Missing = "own") -> npt.NDArray[np.int64]:
        """How many records share the quasi-identifiers of each record.

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
        if missing == "own":
            return weight_sums(self.classes, weights)
        totals = self._wildcard_agreement.totals(weights_by_class(self.classes, weights))
        return self.classes.spread(totals)

    def class_sizes_in(self, population: Table, missing: Missing = "own") -> npt.NDArray[np.int64]:
        """How many records of ``population`` share the quasi-identifiers of each record."""
        names = self.roles.quasi_identifiers
        return counted_in(
            [self._series(name) for name in names],
            [population._series(name) for name in names],
            (len(self), len(population)),
            wildcard=missing == "wildcard",
        )
