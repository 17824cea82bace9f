"""Models that also count people of a population: k-map, presence, uniqueness."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from shoal.errors import ParameterError, UnreachableLevel
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.models._base import (
    TOLERANCE,
    Condition,
    CrowdModel,
    PartitionModel,
    PrivacyModel,
    counted,
)
from shoal.parameters import Integer, OneOf, Population, Real
from shoal.table import Table, owned_pairs, read, stacked_table


class PopulationModel(PrivacyModel):
    """Base of the models that count how many people of a population share a class.

    The population is private input: a plan and a release hold only the name of its file.
    """

    population: Table | str
    needs_audit = True
    by_counts = True

    def people(self) -> Table:
        """The population as a table; a path is read once."""
        if isinstance(self.population, Table):
            return self.population
        changed = os.stat(self.population).st_mtime_ns if os.path.isfile(self.population) else 0
        return _read(self.population, changed)

    def people_of(self, table: Table) -> Table:
        """The population; persons own its rows as in the table if it has the same columns."""
        return self.people().owned_like(table)


@lru_cache(maxsize=1)
def _read(path: str, changed: int) -> Table:
    """Read a file once, and again only if it ``changed``."""
    return read(path)


@dataclass(frozen=True)
class KMap(PopulationModel, CrowdModel):
    """Every class of equal quasi-identifiers has at least ``k`` people in the population.

    Use it if nobody knows who is in the table. The population must contain the table and must be
    masked in the same way. A record that does not occur in the population violates the model. If
    released classes overlap, a record fits everyone whom its values cover.

    Parameters
    ----------
    k : int
        The fewest people that a record must fit, 2 or more.
    population : Table or path
        The population from which the table is drawn, with the same quasi-identifiers.

    References
    ----------
    Sweeney (2001), Computational disclosure control: a primer on data privacy protection
    <https://hdl.handle.net/1721.1/8589>. El Emam, Dankar (2008), Protecting privacy using
    k-anonymity <https://doi.org/10.1197/jamia.M2716>, JAMIA 15(5).

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

    def crowds(self, table: Table) -> Integers:
        """The number of people in the population who share each record's class."""
        return table.class_sizes_in(self.people())

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel if k exceeds the number of people."""
        people = self.people_of(table).person_count
        if self.k > people:
            raise UnreachableLevel(
                f"k = {self.k} is larger than the population, which has {people} people. "
                f"Choose k of at most {people}."
            )

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """A group needs k people in the population."""
        return (Condition("in_population", self.k),)

    def explain(self, table: Table) -> str:
        """How many records fit too few people."""
        short = table.records_at(self.violations(table))
        return (
            f"{self.title} with k = {self.k} requires that every record fits at least {self.k} "
            f"people of the population; some fit only {self.level(table)}, and {short:,} of "
            f"{table.records:,} records fit too few"
        )


@dataclass(frozen=True)
class DeltaPresence(PopulationModel):
    """Of the people of a class, at most ``delta_max`` and at least ``delta_min`` are in the table.

    Use it if it is a secret who is in the table. The share of a class is the number of its
    records in the table divided by the number in the population. The population must contain the
    table and must be masked in the same way. If ``delta_min`` is above 0, a class of the
    population without any record in the table violates the model too. No single record is
    responsible for that, so all records violate it.

    If released classes overlap, a person of the population appears with a row for each class that
    covers them; all these rows have one row key. Each record is spread evenly over the people whom
    it covers. The parts of a person add up to their presence, at most 1.

    Parameters
    ----------
    delta_max : float
        The largest share allowed, from 0 to 1.
    delta_min : float
        The smallest share allowed, at most ``delta_max``.
    population : Table or path
        The population from which the table is drawn, with the same quasi-identifiers.

    References
    ----------
    Nergiz, Atzori, Clifton (2007), Hiding the presence of individuals from shared databases
    <https://doi.org/10.1145/1247480.1247554>, SIGMOD.

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
                "The 'delta_min' parameter of DeltaPresence must be at most delta_max = "
                f"{self.delta_max}. Got {self.delta_min} instead."
            )

    def level(self, table: Table) -> float:
        """The largest share of a class; infinite if a share is below delta_min."""
        shares = self._shares(table)
        return float(shares.max()) if len(shares) else 0.0

    def violations(self, table: Table) -> Flags:
        """Which records are in a class whose share is too large or too small."""
        return ~self.accepts(self._shares(table))

    def _shares(self, table: Table) -> Floats:
        """The largest presence in each record's class; infinite if it can never be right.

        A person of the population has the share of their class. A person with several rows of one
        key fits several classes, and their parts add up, to at most 1.
        """
        names, people = table.roles.quasi_identifiers, self.people_of(table)
        labels = np.zeros(len(table) + len(people), np.int64)
        if names:
            labels = stacked_table(table, people, names).group(names).labels
        own, theirs = labels[: len(table)], labels[len(table) :]
        count = int(labels.max(initial=-1)) + 1
        # where released classes overlap, a person of the population keeps the key of their row
        whose = people.persons if people.has_persons else people.row_key
        persons, person = np.unique(whose, return_inverse=True)
        each = np.ones(len(persons), np.int64)
        if people.times is not None and not people.has_persons:
            each[person] = people.times
        of_class, of_person = owned_pairs(theirs, person)
        crowd = np.bincount(of_class, each[of_person], count)
        records = np.bincount(owned_pairs(own, table.persons)[0], minlength=count)
        if table.times is not None and not table.has_persons:
            records = np.bincount(own, table.times, count)
        shares = np.where(records > 0, np.inf, 0.0)
        np.divide(records, crowd, out=shares, where=crowd > 0)
        together = np.bincount(of_person, weights=shares[of_class], minlength=len(persons))
        presence = np.minimum(together, 1.0)
        highest, lowest = shares.copy(), np.full(count, np.inf)
        np.maximum.at(highest, theirs, presence[person])
        np.minimum.at(lowest, theirs, presence[person])
        highest[lowest < self.delta_min - TOLERANCE] = np.inf
        if self.delta_min > TOLERANCE and not together.all():
            highest[:] = np.inf  # somebody is in no class, so certainly not in the table
        return highest[own]

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """The share of a group in the population lies between the bounds."""
        return (Condition("presence", self.delta_max, extra=self.delta_min),)

    def explain(self, table: Table) -> str:
        """How many records are in classes whose share is out of bounds."""
        short = table.records_at(self.violations(table))
        return (
            f"{self.title} requires that between {self.delta_min} and {self.delta_max} of the "
            f"people of each class are in the table; {short:,} of {table.records:,} records are in "
            "classes with another share"
        )


Estimator = Literal["dankar", "pitman", "zayatz", "snb"]


@dataclass(frozen=True)
class PopulationUniqueness(PartitionModel):
    """The estimated share of people who are unique in the population is at most ``max``.

    The table counts as a random sample of the population. If an estimator has no solution, the
    share of unique records in the table is used, which is too large rather than too small.

    Parameters
    ----------
    max : float
        The largest share allowed, from 0 to 1.
    sampling_fraction : float
        The share of the population that the table holds, above 0 and at most 1.
    estimator : {"dankar", "pitman", "zayatz", "snb"}
        "pitman" fits Pitman's sampling formula; "zayatz" uses the class sizes of the table as
        those of the population; "snb" fits a slide negative binomial; "dankar" chooses among
        them by the sampling fraction.

    References
    ----------
    Dankar, El Emam, Neisa, Roffey (2012), Estimating the re-identification risk of clinical data
    sets <https://doi.org/10.1186/1472-6947-12-66>. Hoshino (2001), Applying Pitman's sampling
    formula to microdata disclosure risk assessment
    <https://www.scb.se/contentassets/ff271eeeca694f47ae99b942de61df83/applying-pitmans-sampling-formula-to-microdata-disclosure-risk-assessment.pdf>.
    Zayatz (1991), Estimation of the percent of unique population elements on a microdata file using
    the sample. Chen, McNulty (1998), Estimation of identification disclosure risk in microdata.

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
        """How high the estimate is."""
        return (
            f"the {self.title} must be at most {self.max} and is estimated at "
            f"{self.level(table):.4g} from {table.classes.uniques} unique of {counted(table)}"
        )
