"""Probabilistic k-anonymity: a link is right with probability at most 1/k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.models._base import CrowdModel
from shoal.parameters import Integer
from shoal.table import Table, swapped_blocks, swapped_crowds


@dataclass(frozen=True)
class ProbabilisticKAnonymity(CrowdModel):
    """A link to a person by the protected columns is right at most 1 time in ``k``.

    The model holds by construction if the quasi-identifiers (or, for informed intruders, all
    sensitive columns) were permuted uniformly within groups of at least k records. It also holds
    if the table is k-anonymous. A swap leaves its groups and permutations with the table, and the
    model checks them: every group has at least k records, every block is a permutation within its
    groups, and no quasi-identifier was left out.

    A swap with a seed does not count: anyone who learns or guesses the seed can repeat and undo
    it. A plan may accept a seed (``accept_seed``), and its claim then says so.

    The bound 1/k covers linkage by the swapped columns. It does not cover columns left in place,
    correlations that reveal who is who within a group, or groups whose members have equal values.
    ``sh.assess`` against the original measures each of these.

    Parameters
    ----------
    k : int
        The size of the smallest group allowed, 2 or more.

    References
    ----------
    Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and data
    swapping <https://doi.org/10.1109/FUZZ-IEEE.2012.6251280>, definition 2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Swap, Table
    >>> frame = pl.DataFrame({"age": [20, 22, 61, 63], "ill": ["flu", "gout", "flu", "ok"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> ProbabilisticKAnonymity(2).level(table)
    1
    >>> ProbabilisticKAnonymity(2).level(Swap(k=2).fit_transform(table))
    2
    """

    k: Annotated[int, Integer(minimum=2)]

    model = "probabilistic_k_anonymity"
    title = "probabilistic k-anonymity"
    reference = "Soria-Comas and Domingo-Ferrer 2012"
    needs_audit = True
    bounds_links = True

    @property
    def smallest_class(self) -> int:
        """``k``: a k-anonymous table satisfies the model."""
        return self.k

    def crowds(self, table: Table) -> Integers:
        """The number of records among which each is hidden, by its class or by its exchanges."""
        crowds = table.class_sizes()
        for protected in (table.roles.quasi_identifiers, table.roles.sensitive):
            blocks = swapped_blocks(table, protected)
            if blocks and all(block.is_secret for block in blocks):
                crowds = np.maximum(crowds, swapped_crowds(table, protected))
        return crowds

    def explain(self, table: Table) -> str:
        """How many records are too easy to link."""
        short = int(self.violations(table).sum())
        if short and not self.violations(table.accepting_seeds()).any():
            return (
                f"{self.title} with k = {self.k} does not hold for a swap with a seed, because "
                "anyone who learns or guesses the seed can undo it; remove 'random_state' from "
                "the step, or write 'accept_seed = true' in the plan, and the claim will say so"
            )
        return (
            f"{self.title} with k = {self.k} requires that a link is right at most 1 time in "
            f"{self.k}; {short:,} of {len(table):,} records are in smaller classes and were not "
            "swapped within groups of that size in all quasi-identifiers"
        )
