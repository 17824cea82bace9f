"""A limit on the average risk: the share of right links of an intruder who links all records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.errors import UnreachableLevel
from shoal.kernels.arrays import Integers
from shoal.models._base import PartitionModel, counted
from shoal.parameters import Real
from shoal.table import Table


@dataclass(frozen=True)
class AverageRisk(PartitionModel):
    """The mean over all records of 1 / (size of the record's class) is at most ``max``.

    This mean is the number of classes divided by the number of records. It is the average share of
    right links of an intruder who knows everyone in the table. Single records may be unique.

    Parameters
    ----------
    max : float
        The largest average allowed, above 0 and at most 1.

    References
    ----------
    Dankar, El Emam (2010), A method for evaluating marketer re-identification risk.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> table = Table(pl.DataFrame({"age": [30, 30, 30, 30, 41]}), Roles(quasi_identifiers=["age"]))
    >>> AverageRisk(0.5).level(table), AverageRisk(0.5).holds(table)
    (0.4, True)
    """

    max: Annotated[float, Real(above=0, maximum=1)]

    model = "average_risk"
    title = "average risk"
    reference = "Dankar and El Emam 2010"

    def level_of_sizes(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> float:
        """The number of classes divided by the number of records.

        If persons have several records, the mean over persons of the risk in their smallest class.
        """
        if classes is None or persons is None:
            return len(sizes) / int(sizes.sum()) if len(sizes) else 0.0
        smallest = np.full(int(persons.max(initial=-1)) + 1, np.inf)
        np.minimum.at(smallest, persons, sizes[classes].astype(np.float64))
        present = np.isfinite(smallest)
        return math.fsum(1 / smallest[present]) / int(present.sum()) if present.any() else 0.0

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel if even one class of all records has too high a risk."""
        people = table.person_count
        if not self.accepts(1 / people if people else 1.0):
            raise UnreachableLevel(
                f"An average risk of {self.max:g} cannot be reached by a table that has "
                f"{counted(table)}. Choose at least 1 / {people}."
            )

    def explain(self, table: Table) -> str:
        """How high the average is."""
        return (
            f"the {self.title} must be at most {self.max} and is {self.level(table):.4g} "
            f"({table.classes.count} classes of {counted(table)})"
        )
