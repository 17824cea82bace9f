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
from shoal.table import Table, owned_pairs, stacked_table

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DeltaPresence(PopulationModel):
    """Of the people of a class, at most ``delta_max`` and at least ``delta_min`` are in the table.

    It is for tables in which it is a secret who is in them. The share of a class is the number of
    its records in the table over that in the population, which must contain the table and must
    be masked in the same way. Where ``delta_min`` is above 0, a class of the population without
    any record in the table violates the model too; no record is to blame for that, so all are.

    Where released classes overlap, a person of the population comes with a row for each that
    covers them, all of one row key. Each record is spread evenly over the people whom it covers,
    and what falls on a person adds up to their presence, at most 1.

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
        """The largest presence in each record's class, infinite where nothing would make it right.

        A person of the population has the share of their class. One with several rows of one key
        fits several classes, and what falls on them adds up, to no more than certainty.
        """
        names, people = table.roles.quasi_identifiers, self.people_of(table)
        labels = np.zeros(len(table) + len(people), np.int64)
        if names:
            labels = stacked_table(table, people, names).group(names).labels
        own, theirs = labels[: len(table)], labels[len(table) :]
        count = int(labels.max(initial=-1)) + 1
        # a person of the population keeps the key of the row where released classes overlap
        whose = people.persons if people.has_persons else people.row_key
        records = np.bincount(owned_pairs(own, table.persons)[0], minlength=count)
        crowd = np.bincount(owned_pairs(theirs, whose)[0], minlength=count)
        shares = np.where(records > 0, np.inf, 0.0)
        np.divide(records, crowd, out=shares, where=crowd > 0)
        persons, person = np.unique(whose, return_inverse=True)
        of_class, of_person = owned_pairs(theirs, person)
        together = np.bincount(of_person, weights=shares[of_class], minlength=len(persons))
        presence = np.minimum(together, 1.0)
        highest, lowest = shares.copy(), np.full(count, np.inf)
        np.maximum.at(highest, theirs, presence[person])
        np.minimum.at(lowest, theirs, presence[person])
        highest[lowest < self.delta_min - HAIR] = np.inf
        if self.delta_min > HAIR and not together.all():
            highest[:] = np.inf  # somebody is in no class, and so surely not in the table
        found: Floats = highest[own]
        return found

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
