"""l-diversity: every class has several well-represented sensitive values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from shoal.errors import ParameterError, UnreachableLevel
from shoal.kernels.arrays import Floats
from shoal.models._base import TOLERANCE, Condition
from shoal.models._sensitive_model import ClassValues, SensitiveModel
from shoal.parameters import OneColumn, OneOf, Real
from shoal.table import Table


@dataclass(frozen=True)
class LDiversity(SensitiveModel):
    """Every class of equal quasi-identifiers has at least ``l`` well-represented sensitive values.

    Several sensitive columns are each checked separately, and all must be diverse. A missing
    sensitive value is a value of its own. Sampling weights have no effect: intruders see records.

    Parameters
    ----------
    l : float
        How many values a class needs; above 1, and a whole number unless the kind is "entropy".
    kind : {"distinct", "entropy", "recursive"}
        What well represented means. "distinct": there are l different values. "entropy": the
        entropy of the values is at least log(l), so they are as uncertain as l equally frequent
        values. "recursive": the most frequent value is rarer than ``c`` times all values from the
        l-th most frequent on, taken together.
    c : float, optional
        The factor of the recursive kind, above 0; smaller is stricter.
    column : str, optional
        The sensitive column; by default all of them.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007), l-diversity: privacy beyond
    k-anonymity <https://doi.org/10.1145/1217299.1217302>, ACM TKDD 1(1), definitions 4.1 (entropy)
    and 4.2 (recursive).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30] * 4 + [41] * 2, "ill": [*"aabc", *"aa"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> LDiversity(2).level(table), LDiversity(2).violations(table).tolist()
    (1.0, [False, False, False, False, True, True])
    >>> LDiversity(2, kind="recursive", c=1.5).holds(table.keep(table.numbers("age").values < 41))
    True
    """

    l: Annotated[float, Real(above=1)]  # noqa: E741 - its name everywhere
    kind: Annotated[
        Literal["distinct", "entropy", "recursive"], OneOf(("distinct", "entropy", "recursive"))
    ] = "distinct"
    c: Annotated[float | None, Real(above=0)] = None
    column: Annotated[str | None, OneColumn()] = None

    model = "l_diversity"
    title = "l-diversity"
    reference = "Machanavajjhala et al. 2007"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind != "entropy" and self.l != int(self.l):
            raise ParameterError(
                "The 'l' parameter of LDiversity counts values, so it must be a whole number with "
                f"the kind '{self.kind}'. Got {self.l!r} instead."
            )
        if (self.c is None) == (self.kind == "recursive"):
            raise ParameterError(
                "The recursive kind of LDiversity needs a factor 'c'; the other kinds accept none."
            )

    def class_levels(self, values: ClassValues) -> Floats:
        """The largest l that each class satisfies in a column."""
        if self.kind == "distinct":
            levels = values.total(np.ones(len(values.counts)))
        elif self.kind == "entropy":
            levels = np.exp(values.total(-values.shares * np.log(values.shares)))
        else:
            assert self.c is not None
            levels = _recursive_levels(values, self.c)
        # a value that everyone in a class has is certain, whatever else some of them have
        return np.where(values.had_by_all, np.minimum(levels, 1.0), levels)

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel if a column has fewer than l values in the whole table."""
        for name in self.columns(table):
            found = table.codes(name).count
            if found < self.l:
                raise UnreachableLevel(
                    f"l = {self.l:g} is larger than the number of different values of column "
                    f"'{name}', which is {found}. Choose l of at most {found}."
                )

    def condition(self, table: Table, column: str) -> Condition:
        return Condition(self.kind, self.l, column, self.c or 0.0)

    def asks(self) -> str:
        if self.kind == "distinct":
            return f"at least {self.l:g} different sensitive values in a class (l = {self.l})"
        if self.kind == "entropy":
            return (
                f"that the values of a class are as uncertain as {self.l:g} equally frequent ones "
                f"(entropy of at least {math.log(self.l):.4g}, l = {self.l})"
            )
        return (
            f"that the most frequent value of a class is rarer than {self.c:g} times all values "
            f"from rank {self.l:g} on, ranked by frequency (c = {self.c}, l = {self.l})"
        )


def _recursive_levels(values: ClassValues, c: float) -> Floats:
    """For each class, the largest l with r1 < c (r_l + … + r_m), where r are descending counts."""
    order = np.lexsort((-values.counts, values.owners))
    counts = values.counts[order].astype(np.float64)
    before = np.cumsum(counts) - counts  # of all earlier pairs, also in other classes
    tails = values.totals - (before - before[values.starts][values.owners])
    first = counts[values.starts][values.owners]
    # tails shrink along a class, so the number of long enough tails is also the last one's rank
    return values.total((first < c * tails - TOLERANCE).astype(np.float64))
