"""Re-identification risk from the classes of equal quasi-identifiers."""

from __future__ import annotations

from functools import partial
from operator import getitem
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import checked
from shoal.risk._options import Fraction, Missing, Population, Share, risk
from shoal.table import Table, exact_total, owned_pairs


def check_records(table: Table) -> None:
    """Raise InputError for a table without records."""
    if len(table) == 0:
        raise InputError("The table has no records, so there is no risk to measure.")


def class_sizes(table: Table, missing: Missing) -> Integers:
    """The size of each record's class."""
    check_records(table)
    return table.class_sizes(missing)


def _risks(table: Table, missing: Missing) -> Floats:
    """The prosecutor risk of each class."""
    check_records(table)
    return table.classes.risks if missing == "own" else 1.0 / table.crowd_sizes(missing)


def for_records(table: Table, values: npt.NDArray[Any]) -> Any:
    """The values of the records from those of their classes; computed only when requested."""
    if len(values) and (values == values[0]).all():
        return np.broadcast_to(values[0], len(table))
    # of the classes only the labels, as measurements outlive the table
    return partial(getitem, values, table.classes.labels)


def mean_of_classes(table: Table, values: Floats) -> float:
    """The mean over persons of a value of each class, of an exact sum: 2/5 meets a limit of 0.4."""
    if table.has_persons:
        total = exact_total(table.of_persons(table.classes.spread(values)))
    else:
        total = exact_total(values, table.classes.rows)
    return total / table.person_count


def _share_of(name: str, table: Table, marked: Flags, **details: Any) -> Measurement:
    """The share of persons with a record in a marked class."""
    records = int(table.total_of_classes(marked))
    return Measurement(
        name,
        records / table.person_count,
        per_record=for_records(table, marked),
        details={**details, "records": records},
    )


def one_value_for_all(
    groups: npt.NDArray[Any], values: npt.NDArray[Any], persons: Integers
) -> Flags:
    """For each group of records, whether all persons with a record in it share one value."""
    width = int(values.max(initial=0)) + 1
    keys = groups.astype(np.int64) * width + values
    pairs, of_record = np.unique(keys, return_inverse=True)
    holders = np.bincount(owned_pairs(of_record, persons)[0])
    members = np.bincount(owned_pairs(groups, persons)[0])
    certain = np.zeros(len(members), np.bool_)
    certain[(pairs // width)[holders == members[pairs // width]]] = True
    return certain


@risk("highest prosecutor risk", by_counts=True)
def prosecutor_risk(table: Table, *, missing: Missing = "own") -> Measurement:
    """The risk of the most exposed record if the intruder knows that the person is in the table.

    A record in a class of size f is found with probability 1/f. The value is the largest of these.
    If a person has several records, f counts persons.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    El Emam, Dankar (2008), Protecting privacy using k-anonymity
    <https://doi.org/10.1197/jamia.M2716>, section 2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41]})
    >>> prosecutor_risk(Table(frame, Roles(quasi_identifiers=["age"]))).value
    0.5
    """
    risks = _risks(table, missing)
    each = for_records(table, risks)
    return Measurement("prosecutor_risk", float(risks.max()), per_record=each)


@risk("marketer risk", by_counts=True)
def marketer_risk(
    table: Table,
    *,
    missing: Missing = "own",
    population: Population = None,
    sampling_fraction: Fraction = None,
) -> Measurement:
    """The expected share of right links if an intruder links all records.

    Without knowledge of the population, this is the mean of 1/f: the number of classes divided by
    the number of records. With it, this is the mean of 1/F, where F is the size of the record's
    class in the population. If a person has several records, it is the mean of each person's
    largest risk.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.
    population : Table, optional
        The population that the table is drawn from, with the same quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds, if there is no population table.

    References
    ----------
    Dankar, El Emam (2010), A method for evaluating marketer re-identification risk.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41]})
    >>> marketer_risk(Table(frame, Roles(quasi_identifiers=["age"]))).value
    0.4
    """
    risks = _risks(table, missing)
    if population is not None or sampling_fraction is not None:
        sizes = population_sizes(
            table, missing=missing, population=population, sampling_fraction=sampling_fraction
        )
        risks = 1.0 / sizes[table.classes.first_rows]
    each = for_records(table, risks)
    return Measurement("marketer_risk", mean_of_classes(table, risks), per_record=each)


@risk("highest journalist risk", by_counts=True)
def journalist_risk(
    table: Table,
    *,
    missing: Missing = "own",
    population: Population = None,
    sampling_fraction: Fraction = None,
) -> Measurement:
    """The risk of the most exposed record if the intruder does not know who is in the table.

    The intruder links to the population, where the record's class has F people, so the risk is 1/F.
    F is counted in a population table, or estimated as f / ``sampling_fraction`` or as the sum of
    the class's sampling weights.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.
    population : Table, optional
        The population that the table is drawn from, with the same quasi-identifiers.
    sampling_fraction : float, optional
        The share of the population that the table holds, if there is no population table.

    References
    ----------
    El Emam, Dankar (2008), Protecting privacy using k-anonymity
    <https://doi.org/10.1197/jamia.M2716>, section 2. Verdonck et al. (2022), The impact of data
    sampling in the anonymization pipeline.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> roles = Roles(quasi_identifiers=["age"])
    >>> sample = Table(pl.DataFrame({"age": [30, 41]}), roles)
    >>> everyone = Table(pl.DataFrame({"age": [30, 30, 41, 41, 41]}), roles)
    >>> journalist_risk(sample, population=everyone).value
    0.5
    """
    sizes = population_sizes(
        table, missing=missing, population=population, sampling_fraction=sampling_fraction
    )
    estimated = population is None
    return Measurement(
        "journalist_risk",
        float((1.0 / sizes).max()),
        per_record=1.0 / sizes,
        warnings=("The population sizes are estimates from the sample.",) if estimated else (),
    )


@risk("share of records at risk", by_counts=True)
def records_at_risk(
    table: Table, *, threshold: Share = 0.2, missing: Missing = "own"
) -> Measurement:
    """The share of records whose prosecutor risk is above a threshold.

    If a person has several records, the value is the share of persons with such a record.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    threshold : float
        The highest accepted risk; 0.2 corresponds to classes of at least 5.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    El Emam (2013), Guide to the De-Identification of Personal Health Information
    <https://doi.org/10.1201/b14764>, chapter 16.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"]))
    >>> records_at_risk(table, threshold=0.4).value
    0.4
    """
    above = _risks(table, missing) > threshold
    return _share_of("records_at_risk", table, above, threshold=threshold)


@risk("share of unique records", by_counts=True)
def uniqueness(table: Table, *, missing: Missing = "own") -> Measurement:
    """The share of records that share their quasi-identifiers with nobody in the table.

    If a person has several records, the value is the share of persons with such a record. Records
    of the same person do not hide each other.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Skinner, Elliot (2002), A measure of disclosure risk for microdata
    <https://doi.org/10.1111/1467-9868.00365>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 52]})
    >>> uniqueness(Table(frame, Roles(quasi_identifiers=["age"]))).value
    0.5
    """
    return _share_of("uniqueness", table, _risks(table, missing) == 1)


@checked
def population_sizes(
    table: Table,
    *,
    missing: Missing = "own",
    population: Population = None,
    sampling_fraction: Fraction = None,
) -> Floats:
    """The size F of each record's class in the population, counted or estimated."""
    if population is not None and sampling_fraction is not None:
        raise InputError("Pass a 'population' table or a 'sampling_fraction', not both.")
    sizes = class_sizes(table, missing).astype(np.float64)
    if population is not None:
        return _counted_in(table, population, missing)
    if sampling_fraction is not None:
        return sizes / sampling_fraction
    if table.roles.weight is not None:
        # a class of the population is at least as large as its part in the sample
        return np.maximum(table.class_weights(missing), sizes)
    raise InputError(
        "Journalist risk depends on the size of the population. Pass a 'population' table or a "
        "'sampling_fraction', or declare a weight column in the roles."
    )


def _counted_in(table: Table, population: Table, missing: Missing) -> Floats:
    sizes = table.class_sizes_in(population, missing)
    absent = int((sizes == 0).sum())
    if absent:
        raise InputError(
            f"{absent} of {len(table)} records have quasi-identifiers that do not occur in the "
            "population. The population must contain the table and be masked in the same way."
        )
    own = table.class_sizes(missing)
    if population.has_persons and not table.agreement(missing).by_equality:
        return np.maximum(sizes, own).astype(np.float64)  # both are lower bounds
    fewer = int((sizes < own).sum())
    if fewer:
        raise InputError(
            f"{fewer} of {len(table)} records are in classes that are smaller in the population "
            "than in the table. The population must contain the table and be masked in the "
            "same way."
        )
    return sizes.astype(np.float64)
