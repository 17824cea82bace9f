"""δ-presence: nobody of the population is too surely in the table, or too surely not in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import ParameterError
from shoal.models._base import HAIR, Condition
from shoal.models._population_model import PopulationModel
from shoal.parameters import Population, Real
from shoal.table import Roles, Table

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DeltaPresence(PopulationModel):
    """Of the people of a class, at most ``delta_max`` and at least ``delta_min`` are in the table.

    It is for tables in which it is a secret who is in them. The share of a class is the number of
    its records in the table over that in the population, which must contain the table and must
    be masked in the same way. Where ``delta_min`` is above 0, a class of the population without
    any record in the table violates the model too; no record is to blame for that, so all are.

    Parameters
    ----------
    delta_max : float
        The largest share that is allowed, from 0 to 1.
    delta_min : float
        The smallest share that is allowed, at most ``delta_max``.
    population : Table or path
        The population that the table is drawn from, with the same quasi-identifiers.

    References
    ----------
    Nergiz, Atzori, Clifton (2007), Hiding the presence of individuals from shared databases,
    SIGMOD.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> roles = Roles(quasi_identifiers=["age"])
    >>> everyone = Table(pl.DataFrame({"age": [30, 30, 30, 30, 41, 41]}))
    >>> table = Table(pl.DataFrame({"age": [30, 41, 41]}), roles)
    >>> DeltaPresence(0.5, population="everyone.csv").delta_min  # as in a plan
    0.0
    >>> model = DeltaPresence(0.5, population=everyone)
    >>> model.level(table), model.violations(table).tolist()
    (1.0, [False, True, True])
    """

    delta_max: Annotated[float, Real(minimum=0, maximum=1)]
    delta_min: Annotated[float, Real(minimum=0, maximum=1)] = 0.0
    population: Annotated[Table | str | None, Population()] = None  # type: ignore[assignment]

    model = "delta_presence"
    title = "δ-presence"
    reference = "Nergiz, Atzori and Clifton 2007"
    direction = "lower"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population is None:
            raise ParameterError("DeltaPresence needs a 'population': a table or a path.")
        if self.delta_min > self.delta_max:
            raise ParameterError(
                f"The 'delta_min' parameter of DeltaPresence must be at most delta_max = "
                f"{self.delta_max}. Got {self.delta_min} instead."
            )

    def level(self, table: Table) -> float:
        """The largest share of a class; infinite where a share is below delta_min."""
        shares = self._shares(table)
        return float(shares.max()) if len(shares) else 0.0

    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """Which records are in a class with a share that is too large or too small."""
        wrong: npt.NDArray[np.bool_] = ~self.accepts(self._shares(table))
        return wrong

    def _shares(self, table: Table) -> Floats:
        """The share of each record's class, infinite where nothing would make it right."""
        people = self.sizes_in_population(table)
        shares = np.full(len(table), np.inf)
        np.divide(table.class_sizes(), people, out=shares, where=people > 0)
        shares[shares < self.delta_min - HAIR] = np.inf
        if self.delta_min > 0 and self._absent_classes(table):
            shares[:] = np.inf
        return shares

    def _absent_classes(self, table: Table) -> bool:
        """Whether people of the population are in no class of the table."""
        roles = Roles(quasi_identifiers=table.roles.quasi_identifiers)
        everyone = self.people().with_roles(roles, released=True)
        return bool((everyone.class_sizes_in(table) == 0).any())

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """The share of a group in the population lies between the bounds."""
        return (Condition("presence", self.delta_max, extra=self.delta_min),)

    def explain(self, table: Table) -> str:
        """How many records are in classes with a wrong share."""
        short = int(self.violations(table).sum())
        return (
            f"{self.title} asks that between {self.delta_min} and {self.delta_max} of the people "
            f"of each class are in the table; {short} of {len(table)} records are in classes with "
            "another share"
        )
