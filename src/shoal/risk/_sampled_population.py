"""A table as a sample of a population: each record's expected 1/F, and who is unique there."""

from __future__ import annotations

import math

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.risk._classes import class_sizes, population_sizes, uniqueness
from shoal.risk._options import (
    ESTIMATORS,
    ColumnName,
    Estimator,
    Fraction,
    Missing,
    Population,
    risk,
)
from shoal.table import Roles, Table

#: From this class size on, this many terms of the series leave out less than 1e-20 of it.
_LARGE, _TERMS = 30, 60


@risk("expected share of records found", by_counts=True)
def individual_risk(
    table: Table, *, sampling_fraction: Fraction = None, missing: Missing = "own"
) -> Measurement:
    r"""The mean expected risk 1/F in the population, over the records of a sample.

    The size f of a record's class in the sample is known; its size F in the population is not. If
    π is the chance that these people are in the sample, then F given f is negative binomial, and
    the expected 1/F is π/f · ₂F₁(1, 1; f + 1; 1 − π). π is the sampling fraction, or f divided by
    the sum of the class's sampling weights. If a person has several records, f and F count
    persons, a weight counts once for each person, and the mean is over persons, each with their
    largest risk.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds. If you do not pass it, the roles must name
        a sampling weight.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Benedetti, Franconi (1998), Statistical and technological solutions for controlled data
    dissemination, described in the Handbook on Statistical Disclosure Control
    <https://sdctools.github.io/HandbookSDC/03-microdata.html>, chapter 3. Franconi, Polettini
    (2004), Individual risk estimation in μ-Argus: a review.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41], "w": [18.0, 92.0, 5.0]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], weight="w"))
    >>> individual_risk(table).per_record.round(4).tolist()
    [0.0171, 0.0171, 0.4024]
    """
    risks = _risks(table, sampling_fraction, missing)
    return _global("individual_risk", table, risks, {})


@risk(
    "expected share of records in households that are found",
    on_request="pass the column that identifies households as its option 'household'",
)
def household_risk(
    table: Table,
    *,
    household: ColumnName = None,
    sampling_fraction: Fraction = None,
    missing: Missing = "own",
) -> Measurement:
    """The mean risk, over the records, that someone in the record's household is found.

    An intruder who finds one member of a household finds the others. A household is found with
    probability 1 − Π (1 − r), where r are the individual risks of its members in the table. A
    member with several records counts once, with their largest risk.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    household : str, optional
        The column that names the household. Default: the household column that the roles declare.
        A person without a value there counts as living alone.
    sampling_fraction : float, optional
        The share of the population that the table holds. If you do not pass it, the roles must name
        a sampling weight.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Templ, Kowarik, Meindl (2015), Statistical disclosure control for micro-data using the R package
    sdcMicro <https://doi.org/10.18637/jss.v067.i04>. Hundepool et al. (2012), Statistical
    Disclosure Control <https://doi.org/10.1002/9781118348239>, section 3.3.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 41, 52], "home": [1, 1, 2]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"]))
    >>> found = household_risk(table, household="home", sampling_fraction=0.5)
    >>> found.per_record.round(3).tolist()  # alone ln 2 = 0.693 each, two of them 1 - 0.307²
    [0.906, 0.906, 0.693]
    """
    homes = _homes(table, household)
    risks = _risks(table, sampling_fraction, missing)
    certain = risks >= 1
    # a member counts once, by their most exposed record in the household
    order = np.lexsort((-risks, table.persons, homes))
    again = (np.diff(homes[order]) == 0) & (np.diff(table.persons[order]) == 0)
    members = np.sort(order[np.concatenate([[True], ~again])])
    logs = np.log1p(-np.where(certain, 0.0, risks))
    found = -np.expm1(np.bincount(homes[members], logs[members]))
    found[homes[certain]] = 1.0
    # rounding must not bring it below a member's own risk
    risks = np.maximum(found[homes], risks)
    return _global("household_risk", table, risks, {"households": len(found)})


def _homes(table: Table, household: str | None) -> Integers:
    """The number of each record's household, from 0 without gaps."""
    if household is None:
        if table.households is None:
            raise InputError(
                "Household risk needs to know who lives together. Name the column as 'household'."
            )
        return np.unique(table.households, return_inverse=True)[1].astype(np.int64)
    alone = ~table.present(household)
    homes = table.codes(household).codes.astype(np.int64)
    homes[alone] = homes.max(initial=0) + 1 + table.persons[alone]
    return np.unique(homes, return_inverse=True)[1].astype(np.int64)


def expected_risk(sizes: Floats, chances: Floats) -> Floats:
    """The expected 1/F of classes with f people in the sample, given the chance to be in it.

    Benedetti and Franconi use a hypergeometric series with parameters f, f and f + 1, which
    overflows. Euler's transformation turns it into one that does not.
    """
    from scipy.special import hyp2f1

    series = np.ones(len(sizes))
    small = sizes < _LARGE
    series[small] = hyp2f1(1.0, 1.0, sizes[small] + 1.0, 1.0 - chances[small])
    # for a large class scipy's function is NaN, and the series itself converges quickly
    term = np.ones(int((~small).sum()))
    for n in range(1, _TERMS):
        term *= n * (1.0 - chances[~small]) / (sizes[~small] + n)
        series[~small] += term
    return np.minimum(chances / sizes * series, 1.0 / sizes)  # F is at least f


def _risks(table: Table, fraction: float | None, missing: Missing) -> Floats:
    sizes = class_sizes(table, missing).astype(np.float64)
    if fraction is not None:
        chances = np.full(len(sizes), float(fraction))
    elif table.roles.weight is not None:
        # a class of the population is at least as large as its part in the sample
        chances = sizes / np.maximum(table.class_weights(missing), sizes)
    else:
        raise InputError(
            "Individual risk depends on the size of the population. Pass a 'sampling_fraction', or "
            "declare a weight column in the roles."
        )
    # computed once for each pair of numbers; pairs sort fast as complex numbers
    rows = table.classes.first_rows
    pairs, place = np.unique(sizes[rows] + 1j * chances[rows], return_inverse=True)
    return table.classes.spread(expected_risk(pairs.real, pairs.imag)[place])


def _global(name: str, table: Table, risks: Floats, details: dict[str, int]) -> Measurement:
    if table.times is None or table.has_persons:
        expected = math.fsum(table.of_persons(risks))
    else:
        expected = float(table.total(risks))
    return Measurement(
        name,
        min(1.0, expected / table.person_count),
        per_record=risks,
        details={"highest": float(risks.max()), "expected_records": expected, **details},
        warnings=("The population sizes are estimates from the sample.",),
    )


@risk("share of people unique in the population")
def population_uniqueness(
    table: Table,
    *,
    sampling_fraction: Fraction = None,
    estimator: Estimator = "dankar",
    population: Population = None,
    missing: Missing = "own",
) -> Measurement:
    """The share of people in the population who share their quasi-identifiers with nobody.

    If you pass the population, these people are counted. Otherwise their share is estimated from
    the table's class sizes, assuming that the table is a random sample. If an estimator has no
    solution, the share of unique records in the table is used instead, which tends to be too large.
    If a person has several records, classes count persons.

    The estimators fit class sizes, but records that agree by wildcards do not form classes. A
    person who is unique with wildcards is also unique without them, in the population as in the
    table. The estimate with wildcards is therefore an upper bound: the estimate without them, or
    the share of records that are unique in the table with them, whichever is smaller.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds. Default: the number of records divided by
        the sum of their sampling weights, if the roles name a weight.
    estimator : {"dankar", "pitman", "zayatz", "snb"}
        "pitman" fits Pitman's sampling formula; "zayatz" assumes that the population has the
        table's class sizes; "snb" fits a slide negative binomial; "dankar" chooses among them by
        the sampling fraction. The details hold all four.
    population : Table, optional
        The population that the table is drawn from, with the same quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

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
    >>> found = population_uniqueness(table, sampling_fraction=0.5)
    >>> round(found.value, 4), found.details["sample_uniqueness"]
    (0.1111, 0.25)
    """
    from shoal.kernels.uniques.population_uniqueness import estimated_share

    in_sample = uniqueness(table, missing=missing).value
    if population is not None:
        return _counted(table, population, in_sample, sampling_fraction, missing)
    fraction = _fraction(table, sampling_fraction)
    sizes = table.classes.sizes
    shares = {name: estimated_share(sizes, fraction, name) for name in ESTIMATORS}
    warnings = ["The share is an estimate. It assumes that the table is a random sample."]
    value = shares[estimator]
    if math.isnan(value):
        value = uniqueness(table).value
        warnings.append(
            "The estimator has no solution for these class sizes. The share of records that are "
            "unique in the table is used instead, which tends to be too large."
        )
    if not table.agreement(missing).by_equality:
        value = min(value, in_sample)
        warnings.append(
            "No model can be fitted with wildcards, because records that agree by wildcards do not "
            "form classes. The share was estimated with missing values as values of their own and "
            "limited to the share of records that are unique with wildcards. It tends to be too "
            "large."
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
    table: Table, population: Table, in_sample: float, sampling_fraction: Fraction, missing: Missing
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
            "sample_uniqueness": in_sample,
        },
    )


def _fraction(table: Table, given: float | None) -> float:
    if given is not None:
        return float(given)
    weight = table.roles.weight
    if weight is None:
        raise InputError(
            "Population uniqueness depends on the size of the population. Pass a 'population' "
            "table or a 'sampling_fraction', or declare a weight column in the roles."
        )
    # all in one class: the sum of all weights
    everybody = table.with_roles(Roles(weight=weight), released=True).class_weights()
    people = float(np.max(everybody))
    if not people >= table.person_count:
        raise InputError(
            f"The weights in column '{weight}' add up to less than the {table.person_count} "
            "records. Each record must stand for at least one person."
        )
    return table.person_count / people
