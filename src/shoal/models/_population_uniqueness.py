"""A limit on how many people are unique in the population, estimated from the table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from shoal.models._base import counted
from shoal.models._partition_model import Integers, PartitionModel
from shoal.parameters import OneOf, Real
from shoal.table import Table

Estimator = Literal["dankar", "pitman", "zayatz", "snb"]


@dataclass(frozen=True)
class PopulationUniqueness(PartitionModel):
    """The estimated share of people who are unique in the population is at most ``max``.

    The table is taken for a random sample of the population. Where an estimator has no solution,
    the share of unique records in the table stands in, which is too large rather than too small.

    Parameters
    ----------
    max : float
        The largest share that is allowed, from 0 to 1.
    sampling_fraction : float
        The share of the population that the table holds, above 0 and at most 1.
    estimator : {"dankar", "pitman", "zayatz", "snb"}
        "pitman" fits Pitman's sampling formula; "zayatz" takes the class sizes of the table for
        those of the population; "snb" fits a slide negative binomial; "dankar" chooses among
        them by the sampling fraction.

    References
    ----------
    Dankar, El Emam, Neisa, Roffey (2012), Estimating the re-identification risk of clinical data
    sets. Hoshino (2001), Applying Pitman's sampling formula to microdata disclosure risk
    assessment. Zayatz (1991), Estimation of the percent of unique population elements on a
    microdata file using the sample. Chen, McNulty (1998), Estimation of identification
    disclosure risk in microdata.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 30, 30, 41, 41, 52, 63]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"]))
    >>> model = PopulationUniqueness(0.1, sampling_fraction=0.5)
    >>> round(model.level(table), 4), model.holds(table)
    (0.1111, False)
    """

    max: Annotated[float, Real(minimum=0, maximum=1)]
    sampling_fraction: Annotated[float, Real(above=0, maximum=1)]
    estimator: Annotated[Estimator, OneOf(("dankar", "pitman", "zayatz", "snb"))] = "dankar"

    model = "population_uniqueness"
    title = "population uniqueness"
    reference = "Dankar et al. 2012"

    def level_of_sizes(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> float:
        """The estimated share of people who are unique in the population."""
        from shoal.kernels.uniques.population_uniqueness import estimated_share

        if not len(sizes):
            return 0.0
        share = estimated_share(sizes, self.sampling_fraction, self.estimator)
        return float((sizes == 1).sum() / sizes.sum()) if math.isnan(share) else share

    def explain(self, table: Table) -> str:
        """How the estimate stands."""
        return (
            f"the {self.title} must be at most {self.max} and is estimated at "
            f"{self.level(table):.4g} from {table.classes.uniques} unique of {counted(table)}"
        )
