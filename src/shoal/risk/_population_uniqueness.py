"""How many people are unique in the population that a table is a sample of."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.risk._classes import check_share, population_sizes, uniqueness
from shoal.table import Missing, Roles, Table

Estimator = Literal["dankar", "pitman", "zayatz", "snb"]

_ESTIMATORS = ("dankar", "pitman", "zayatz", "snb")


@measure("share of people unique in the population", direction="lower", limits=(0, 1))
def population_uniqueness(
    table: Table,
    *,
    sampling_fraction: float | None = None,
    estimator: Estimator = "dankar",
    population: Table | None = None,
    missing: Missing = "own",
) -> Measurement:
    """The share of the population that shares its quasi-identifiers with nobody.

    It is counted where the population is at hand, and else estimated from the class sizes of the
    table, which is taken for a random sample. Where an estimator has no solution, the share of
    unique records in the table stands in, which is rather too large than too small. Where a person
    has several records, classes count persons.

    The estimators fit the sizes of classes, and records that agree by wildcards form none. Whoever
    is unique with wildcards is so without them too, in the population as in the table. So the
    estimate with wildcards is an upper one: that without them, and at most the share of the
    records that are unique in the table with them.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds. Without it, where the roles name a
        sampling weight: the number of records over the sum of their weights.
    estimator : {"dankar", "pitman", "zayatz", "snb"}
        "pitman" fits Pitman's sampling formula; "zayatz" takes the class sizes of the table for
        those of the population; "snb" fits a slide negative binomial; "dankar" chooses among
        them by the sampling fraction. The details have all four.
    population : Table, optional
        The population that the table is drawn from, with the same quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

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
    >>> found = population_uniqueness(table, sampling_fraction=0.5)
    >>> round(found.value, 4), found.details["sample_uniqueness"]
    (0.1111, 0.25)
    """
    from shoal.kernels.uniques.population_uniqueness import estimated_share

    in_sample = uniqueness(table, missing=missing).value
    if estimator not in _ESTIMATORS:
        said = ", ".join(f"'{name}'" for name in _ESTIMATORS)
        raise InputError(f"The estimator of population uniqueness must be one of {said}.")
    if population is not None:
        return _counted(table, population, sampling_fraction, missing)
    fraction = _fraction(table, sampling_fraction)
    sizes = table.classes.sizes
    shares = {name: estimated_share(sizes, fraction, name) for name in _ESTIMATORS}
    warnings = ["The share is an estimate, which takes the table for a random sample."]
    value = shares[estimator]
    if math.isnan(value):
        value = uniqueness(table).value
        warnings.append(
            "The estimator has no solution for these class sizes; the share of records that are "
            "unique in the table stands in, which is rather too large."
        )
    if not table.agreement(missing).by_equality:
        value = min(value, in_sample)
        warnings.append(
            "Records that agree by wildcards form no classes to fit a model to; the share is that "
            "of missing values as their own, cut off at the share of records that are unique with "
            "wildcards, which is rather too large."
        )
    return Measurement(
        "population_uniqueness",
        float(value),
        details={
            "sampling_fraction": fraction,
            "sample_uniqueness": in_sample,
            "estimates": {n: None if math.isnan(s) else float(s) for n, s in shares.items()},
        },
        warnings=tuple(warnings),
    )


def _counted(
    table: Table, population: Table, sampling_fraction: float | None, missing: Missing
) -> Measurement:
    population_sizes(
        table, missing=missing, population=population, sampling_fraction=sampling_fraction
    )
    roles = Roles(quasi_identifiers=table.roles.quasi_identifiers)
    people = population.with_roles(roles, released=True)
    return Measurement(
        "population_uniqueness",
        uniqueness(people, missing=missing).value,
        details={
            "sampling_fraction": table.person_count / people.person_count,
            "sample_uniqueness": uniqueness(table, missing=missing).value,
        },
    )


def _fraction(table: Table, given: float | None) -> float:
    if given is not None:
        check_share(given, "sampling fraction")
        return float(given)
    weight = table.roles.weight
    if weight is None:
        raise InputError(
            "Population uniqueness needs to know the population: give a population table, a "
            "sampling fraction, or a weight column in the roles."
        )
    # all in one class: the sum of all weights
    everybody = table.with_roles(Roles(weight=weight), released=True).class_weights()
    people = float(np.max(everybody))
    if not people >= table.person_count:
        raise InputError(
            f"The weights of column '{weight}' add up to less than the {table.person_count} "
            "records; a record stands for at least one person."
        )
    return table.person_count / people
