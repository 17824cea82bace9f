"""(α, k)-anonymity: large classes in which no sensitive value is too frequent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.errors import UnreachableLevel
from shoal.kernels.arrays import Floats
from shoal.models._base import Condition, check_k
from shoal.models._sensitive_model import ClassValues, SensitiveModel
from shoal.parameters import Integer, OneColumn, Real
from shoal.table import Table


@dataclass(frozen=True)
class AlphaKAnonymity(SensitiveModel):
    """Every class has at least ``k`` records, and no value more than ``alpha`` of them.

    This is the general form, which applies the same bound to every value of a sensitive column.
    Several sensitive columns are each checked separately. A missing sensitive value is a value of
    its own. Sampling weights have no effect.

    Parameters
    ----------
    alpha : float
        The largest share that a sensitive value may have in a class, above 0 and at most 1.
    k : int
        The size of the smallest class allowed, 2 or more.
    column : str, optional
        The sensitive column; by default all of them.

    References
    ----------
    Wong, Li, Fu, Wang (2006), (α, k)-anonymity: an enhanced k-anonymity model for privacy
    preserving data publishing <https://doi.org/10.1145/1150402.1150499>, KDD.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30] * 4 + [41] * 2, "ill": [*"aabc", *"aa"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> AlphaKAnonymity(0.5, 2).level(table)
    1.0
    >>> AlphaKAnonymity(0.5, 2).violations(table).tolist()
    [False, False, False, False, True, True]
    """

    alpha: Annotated[float, Real(above=0, maximum=1)]
    k: Annotated[int, Integer(minimum=2)]
    column: Annotated[str | None, OneColumn()] = None

    model = "alpha_k_anonymity"
    title = "(α, k)-anonymity"
    reference = "Wong, Li, Fu and Wang 2006"
    direction = "lower"

    def class_levels(self, values: ClassValues) -> Floats:
        """The largest share of a value in each class; infinite in a class smaller than k."""
        levels = values.largest(values.counts / values.sizes)
        levels[values.classes.sizes < self.k] = np.inf
        return levels

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel if no class can reach k or alpha."""
        check_k(self.k, table)
        for name in self.columns(table):
            found = table.codes(name).count
            if not self.accepts(1 / found):
                raise UnreachableLevel(
                    f"alpha = {self.alpha:g} needs more different values than the {found} that "
                    f"column '{name}' has. Choose alpha of at least {1 / found:.4g}."
                )

    @property
    def smallest_class(self) -> int:
        """``k``."""
        return self.k

    def condition(self, table: Table, column: str) -> Condition:
        return Condition("largest_share", self.alpha, column)

    def asks(self) -> str:
        return (
            f"classes of at least k = {self.k} records in which no sensitive value has more "
            f"than alpha = {self.alpha} of them"
        )
