"""β-likeness: no sensitive value is much more frequent in a class than in the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.models._base import TOLERANCE, Condition
from shoal.models._sensitive_model import ClassValues, SensitiveModel
from shoal.parameters import Flag, OneColumn, Real
from shoal.table import Table


@dataclass(frozen=True)
class BetaLikeness(SensitiveModel):
    """In no class does the share of a sensitive value exceed 1 + ``beta`` times its share overall.

    The gain is relative: (p - q) / q, where q is the share in the table and p the share in the
    class. Rare values are therefore protected as well as frequent ones. A value that is rarer in
    a class does not count. The enhanced form also requires a gain of at most -ln(q), which keeps
    frequent values from filling a class. Several sensitive columns are each checked separately. A
    missing sensitive value is a value of its own. Sampling weights have no effect.

    Parameters
    ----------
    beta : float
        The largest relative gain allowed, above 0.
    enhanced : bool
        Also limit the gain of a value to -ln of its share in the table.
    column : str, optional
        The sensitive column; by default all of them.

    References
    ----------
    Cao, Karras (2012), Publishing microdata with a robust privacy guarantee, PVLDB 5(11), which
    defines basic and enhanced β-likeness.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "ill": ["flu", "flu", "flu", "gout"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> BetaLikeness(1).level(table), BetaLikeness(1).holds(table)
    (1.0, True)
    >>> BetaLikeness(1, enhanced=True).violations(table).tolist()
    [True, True, False, False]
    """

    beta: Annotated[float, Real(above=0)]
    enhanced: Annotated[bool, Flag()] = False
    column: Annotated[str | None, OneColumn()] = None

    model = "beta_likeness"
    title = "β-likeness"
    reference = "Cao and Karras 2012"
    direction = "lower"

    def class_levels(self, values: ClassValues) -> Floats:
        """The largest gain in each class; infinite if the enhanced form allows no beta."""
        levels = []
        for here, everywhere in (
            (values.shares, values.overall_shares),
            (values.rates, values.overall_rates),  # of persons, who may have several values
        ):
            before = everywhere[values.values]
            gains = np.maximum((here - before) / before, 0.0)
            if self.enhanced:
                gains[gains > -np.log(before) + TOLERANCE] = np.inf
            levels.append(values.largest(gains))
        return np.maximum(*levels)

    def condition(self, table: Table, column: str) -> Condition:
        return Condition("enhanced_likeness" if self.enhanced else "likeness", self.beta, column)

    def asks(self) -> str:
        also = " and at most -ln of its share in the table" if self.enhanced else ""
        return (
            f"that the share of a sensitive value grows by at most beta = {self.beta} of itself"
            f"{also} from the table to a class"
        )
