"""k-map: every record fits at least k people of the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import UnreachableLevel
from shoal.models._base import Condition
from shoal.models._population_model import PopulationModel
from shoal.parameters import Integer, Population
from shoal.table import Table


@dataclass(frozen=True)
class KMap(PopulationModel):
    """Every class of equal quasi-identifiers has at least ``k`` people in the population.

    It is for tables of which it is not known who is in them. The population must contain the
    table and must be masked in the same way. A record that does not occur in it violates the
    model. Where released classes overlap, a record fits everybody whom its values cover.

    Parameters
    ----------
    k : int
        The fewest people that a record must fit, 2 or more.
    population : Table or path
        The population that the table is drawn from, with the same quasi-identifiers.

    References
    ----------
    Sweeney (2001), Computational disclosure control: a primer on data privacy protection. El
    Emam, Dankar (2008), Protecting privacy using k-anonymity, JAMIA 15(5).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> roles = Roles(quasi_identifiers=["age"])
    >>> everyone = Table(pl.DataFrame({"age": [30, 30, 30, 41, 41]}))
    >>> table = Table(pl.DataFrame({"age": [30, 41]}), roles)
    >>> KMap(3, population="everyone.csv").population  # as in a plan; it is read when needed
    'everyone.csv'
    >>> model = KMap(3, population=everyone)
    >>> model.level(table), model.violations(table).tolist()
    (2, [False, True])
    """

    k: Annotated[int, Integer(minimum=2)]
    population: Annotated[Table | str, Population()]

    model = "k_map"
    title = "k-map"
    reference = "Sweeney 2001; El Emam and Dankar 2008"

    def level(self, table: Table) -> int:
        """The fewest people that a record fits; 0 for a table without records."""
        sizes = self.sizes_in_population(table)
        return int(sizes.min()) if len(sizes) else 0

    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """Which records fit fewer than k people."""
        return self.sizes_in_population(table) < self.k

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel when k exceeds the number of people."""
        people = self.people_of(table).person_count
        if self.k > people:
            raise UnreachableLevel(
                f"k = {self.k} is larger than the population, which has {people} people; "
                f"choose k of at most {people}."
            )

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """A group needs k people in the population."""
        return (Condition("in_population", self.k),)

    def explain(self, table: Table) -> str:
        """How many records fit too few people."""
        short = int(self.violations(table).sum())
        return (
            f"{self.title} with k = {self.k} asks that every record fits at least {self.k} people "
            f"of the population; some fit only {self.level(table)}, and {short} of {len(table)} "
            "records fit too few"
        )
