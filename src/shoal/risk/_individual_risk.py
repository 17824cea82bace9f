"""Individual risk: the expected 1/F of each record of a sample, and what it means to households."""

from __future__ import annotations

import math

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement, measure
from shoal.risk._classes import check_share
from shoal.table import Missing, Table

#: From this class size on, so many terms of the series leave out less than 1e-20 of it.
_LARGE, _TERMS = 30, 60


@measure("expected share of records found", direction="lower", limits=(0, 1))
def individual_risk(
    table: Table, *, sampling_fraction: float | None = None, missing: Missing = "own"
) -> Measurement:
    r"""The mean over the records of a sample of the expected risk 1/F in the population.

    The size F of a record's class in the population is not known, but its size f in the sample
    is. With π the chance of these people to be in the sample, F given f is negative binomial, and
    the expected 1/F is π/f · ₂F₁(1, 1; f + 1; 1 − π). π is the sampling fraction, or f over the
    sum of the sampling weights of the class. Where a person has several records, f and F count
    persons, a weight counts once for each person, and the mean is over persons, each with the
    largest risk.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds. Without it the roles must name a
        sampling weight.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Benedetti, Franconi (1998), Statistical and technological solutions for controlled data
    dissemination. Franconi, Polettini (2004), Individual risk estimation in μ-Argus: a review.

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


@measure(
    "expected share of records in households that are found",
    direction="lower",
    limits=(0, 1),
    on_request="name the column that tells households apart as its option household",
)
def household_risk(
    table: Table,
    *,
    household: str | None = None,
    sampling_fraction: float | None = None,
    missing: Missing = "own",
) -> Measurement:
    """The mean over the records of the risk that somebody of the household is found.

    Whoever finds one member of a household finds the others: a household is found with the
    probability 1 − Π (1 − r) over the individual risks r of its members in the table. A member
    with several records counts once, with the largest risk.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    household : str, optional
        The column that names the household; without it, the household that the roles declare. Who
        has no household there lives alone.
    sampling_fraction : float, optional
        The share of the population that the table holds. Without it the roles must name a
        sampling weight.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Templ, Kowarik, Meindl (2015), Statistical disclosure control for micro-data using the R
    package sdcMicro. Hundepool et al. (2012), Statistical Disclosure Control, section 3.3.

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
    # a member counts once, by the most exposed of all records in the household
    order = np.lexsort((-risks, table.persons, homes))
    again = (np.diff(homes[order]) == 0) & (np.diff(table.persons[order]) == 0)
    members = np.sort(order[np.concatenate([[True], ~again])])
    logs = np.log1p(-np.where(certain, 0.0, risks))
    found = -np.expm1(np.bincount(homes[members], logs[members]))
    found[homes[certain]] = 1.0
    # never below a member's own, whatever rounding does
    risks = np.maximum(found[homes], risks)
    return _global("household_risk", table, risks, {"households": len(found)})


def _homes(table: Table, household: str | None) -> Integers:
    """The number of each record's household, from 0 without gaps."""
    if household is None:
        if table.households is None:
            raise InputError(
                "Household risk needs to know who lives together: name the 'household'."
            )
        return np.unique(table.households, return_inverse=True)[1].astype(np.int64)
    if not isinstance(household, str):
        raise InputError(
            f"The 'household' must be the name of a column; got {type(household).__name__}."
        )
    alone = ~table.present(household)
    homes = table.codes(household).codes.astype(np.int64)
    homes[alone] = homes.max(initial=0) + 1 + table.persons[alone]
    return np.unique(homes, return_inverse=True)[1].astype(np.int64)


def expected_risk(sizes: Floats, chances: Floats) -> Floats:
    """The expected 1/F of classes with f in the sample, each person being in it with a chance.

    Benedetti and Franconi give it as a hypergeometric series with parameters f, f and f + 1,
    which overflows; Euler's transformation turns it into one that does not.

    Examples
    --------
    >>> expected_risk(np.array([1.0, 2.0]), np.array([0.5, 1.0])).round(4).tolist()
    [0.6931, 0.5]
    """
    from scipy.special import hyp2f1

    series = np.ones(len(sizes))
    small = sizes < _LARGE
    series[small] = hyp2f1(1.0, 1.0, sizes[small] + 1.0, 1.0 - chances[small])
    # of a large class scipy's function is NaN, and the series itself is over soon
    term = np.ones(int((~small).sum()))
    for n in range(1, _TERMS):
        term *= n * (1.0 - chances[~small]) / (sizes[~small] + n)
        series[~small] += term
    return np.minimum(chances / sizes * series, 1.0 / sizes)  # F is at least f


def _risks(table: Table, fraction: float | None, missing: Missing) -> Floats:
    if len(table) == 0:
        raise InputError("The table has no records, so there is no risk to measure.")
    sizes = table.class_sizes(missing).astype(np.float64)
    if fraction is not None:
        check_share(fraction, "sampling fraction")
        chances = np.full(len(sizes), float(fraction))
    elif table.roles.weight is not None:
        # a class of the population is at least as large as its part in the sample
        chances = sizes / np.maximum(table.class_weights(missing), sizes)
    else:
        raise InputError(
            "Individual risk needs to know the population: give a sampling fraction, or a weight "
            "column in the roles."
        )
    # once for each pair of numbers; a class has one, and a complex number is a pair that sorts fast
    rows = table.classes.first_rows
    pairs, place = np.unique(sizes[rows] + 1j * chances[rows], return_inverse=True)
    return table.classes.spread(expected_risk(pairs.real, pairs.imag)[place])


def _global(name: str, table: Table, risks: Floats, details: dict[str, int]) -> Measurement:
    expected = math.fsum(table.of_persons(risks))
    return Measurement(
        name,
        min(1.0, expected / table.person_count),
        per_record=risks,
        details={"highest": float(risks.max()), "expected_records": expected, **details},
        warnings=("The population sizes are estimates from the sample.",),
    )
