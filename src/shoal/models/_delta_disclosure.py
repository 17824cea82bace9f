"""δ-disclosure privacy: every sensitive value is about as frequent in a class as in the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.models._base import TOLERANCE, Condition
from shoal.models._sensitive_model import ClassValues, SensitiveModel
from shoal.parameters import OneColumn, Real
from shoal.table import Table


@dataclass(frozen=True)
class DeltaDisclosure(SensitiveModel):
    """In every class, the logarithm of each value's share differs by less than ``delta``.

    The natural logarithm of p / q lies strictly between -delta and delta, where q is the share of
    a value in the table and p its share in the class. A value that a class lacks has p = 0, so
    every class must have every value. Several sensitive columns are each checked separately. A
    missing sensitive value is a value of its own. Sampling weights have no effect.

    Parameters
    ----------
    delta : float
        The bound on the difference, above 0; the difference must be smaller.
    column : str, optional
        The sensitive column; by default all of them.

    References
    ----------
    Brickell, Shmatikov (2008), The cost of privacy: destruction of data-mining utility in
    anonymized data publishing <https://doi.org/10.1145/1401890.1401904>, KDD.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30] * 3 + [41] * 3, "ill": [*"aab", *"abb"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> DeltaDisclosure(0.5).holds(table), round(DeltaDisclosure(0.5).level(table), 4)
    (True, 0.4055)
    """

    delta: Annotated[float, Real(above=0)]
    column: Annotated[str | None, OneColumn()] = None

    model = "delta_disclosure"
    title = "δ-disclosure privacy"
    reference = "Brickell and Shmatikov 2008"
    direction = "lower"

    def accepts(self, level: Any) -> Any:
        """Whether a level is strictly below delta, as in the definition."""
        return level < self.delta - TOLERANCE

    def class_levels(self, values: ClassValues) -> Floats:
        """The largest difference in each class; infinite if a class lacks a value."""
        by_value = np.log(values.shares / values.overall_shares[values.values])
        by_person = np.log(values.rates / values.overall_rates[values.values])
        levels = values.largest(np.maximum(np.abs(by_value), np.abs(by_person)))
        found = values.total(np.ones(len(values.counts)))
        levels[found < len(values.overall)] = np.inf
        return levels

    def condition(self, table: Table, column: str) -> Condition:
        return Condition("disclosure", self.delta, column)

    def asks(self) -> str:
        return (
            "that the logarithm of the share of every sensitive value in a class is less than "
            f"delta = {self.delta} away from that in the table"
        )
