"""Suppressed cells and records, and the sizes of the classes of equal quasi-identifiers."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.parameters import Integer
from shoal.table import Classes, Table, empty_cells, empty_count, owned_pairs
from shoal.utility._columns import rows_if_paired


@measure("share of suppressed cells", direction="lower", limits=(0, 1), by_counts=True)
def suppressed_cells(original: Table, masked: Table) -> Measurement:
    """The share of the original's filled cells that the masked table lacks.

    A cell is lost with its column, with its record, or because it became missing or ``*``, which
    carries no information either (unless the original has ``*`` as a value of the column).
    Identifiers, and the columns of the unit and the household, do not count. Rows need not be
    paired.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.

    References
    ----------
    Hundepool et al. (2012), Statistical Disclosure Control <https://doi.org/10.1002/9781118348239>,
    section 3.4.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Suppress, Table
    >>> frame = pl.DataFrame({"job": ["baker", "baker", "judge"], "sex": ["f", "m", "f"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["job"]))
    >>> masked = Suppress(min_count=2).fit_transform(table)
    >>> round(suppressed_cells(table, masked).value, 3)
    0.167
    """
    names = [name for name in original.columns if name not in original.roles.withheld]
    before = sum(original.records - original.missing_count(name) for name in names)
    if before == 0:
        raise InputError("There is nothing to compare: the original has no filled cells.")
    after = sum(
        masked.records - empty_count(original, masked, name)
        for name in names
        if name in masked.columns
    )
    return Measurement(
        "suppressed_cells",
        max(0.0, 1.0 - after / before),
        details={
            "columns": [name for name in names if name not in masked.columns],
            "records": max(0, original.records - masked.records),
        },
    )


@measure("share of suppressed records", direction="lower", limits=(0, 1), by_counts=True)
def suppressed_records(original: Table, masked: Table) -> Measurement:
    """The share of the original's records that were removed or carry no information any more.

    A record that is still present carries no information if all its released quasi-identifiers are
    missing or ``*``, and they were not all missing in the original.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.

    References
    ----------
    Samarati (2001), Protecting Respondents' Identities in Microdata Release
    <https://doi.org/10.1109/69.971193>, section 4.2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Suppress, Table
    >>> frame = pl.DataFrame({"job": ["baker", "baker", "judge"], "sex": ["f", "m", "f"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["job"]))
    >>> masked = Suppress(min_class_size=2).fit_transform(table)
    >>> found = suppressed_records(table, masked)
    >>> round(found.value, 3), found.details
    (0.333, {'taken_out': 1, 'emptied': 0})
    """
    if len(original) == 0:
        raise InputError("There is nothing to compare: the original has no records.")
    taken_out = max(0, original.records - masked.records)
    emptied = masked.records_at(emptied_records(original, masked))
    return Measurement(
        "suppressed_records",
        min(1.0, (taken_out + emptied) / original.records),
        details={"taken_out": taken_out, "emptied": emptied},
    )


def emptied_records(original: Table, masked: Table) -> npt.NDArray[np.bool_]:
    """Which released records have no information left in any quasi-identifier, but had some."""
    quasi = original.roles.quasi_identifiers
    released = [name for name in quasi if name in masked.columns]
    if not released:
        return np.full(len(masked), bool(quasi))
    after, before = (
        np.logical_and.reduce([empty_cells(original, table, name) for name in released])
        for table in (masked, original)
    )
    rows = rows_if_paired(original, masked)
    if rows is not None:
        return np.asarray(after & ~before[rows])
    # unpaired: if the original already has such records, assume that these are the same
    return np.asarray(after if not before.any() else np.zeros_like(after))


@measure("share of record pairs that look alike", direction="lower", limits=(0, 1), by_counts=True)
def discernibility(original: Table, masked: Table) -> Measurement:
    """The discernibility penalty, as a share of the penalty when all records look alike.

    The penalty is the sum of c² over classes of c records, plus n for each of the s suppressed
    records, where n is the number of records in the original (``details["penalty"]``). The value
    is the penalty divided by n². It is the chance that two records, drawn one after the other with
    replacement, look alike. The baseline is that of the original. A record is suppressed if it was
    removed, or if all its quasi-identifiers are ``*`` or missing. The measure counts records even
    if a person has several, because it is about what an analyst can distinguish.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.

    References
    ----------
    Bayardo, Agrawal (2005), Data privacy through optimal k-anonymization
    <https://doi.org/10.1109/ICDE.2005.42>, section 3.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [21, 22, 31, 32]}), Roles(quasi_identifiers=["age"]))
    >>> found = discernibility(table, Hierarchy.intervals(10).generalize(table, "age", 1))
    >>> found.value, found.baseline, found.details["penalty"]
    (0.5, 0.25, 8)
    """
    classes, kept = _kept_classes(original, masked)
    times = None if masked.times is None else masked.times[kept]
    sizes = np.bincount(classes.labels[kept], times, classes.count).astype(np.int64)
    sizes = sizes[sizes > 0].astype(object)  # squares of large classes stay exact
    suppressed = max(0, original.records - masked.records) + masked.records_at(~kept)
    records = max(original.records, masked.records)
    penalty = int(sizes @ sizes) + suppressed * records
    before = original.classes.rows.astype(object)
    return Measurement(
        "discernibility",
        min(1.0, penalty / records**2),
        baseline=int(before @ before) / original.records**2,
        details={"penalty": penalty, "classes": len(sizes), "suppressed": suppressed},
    )


@measure("average class size", direction="lower", limits=(0, math.inf), by_counts=True)
def average_class_size(
    original: Table, masked: Table, *, k: Annotated[int, Integer(1)] = 1
) -> Measurement:
    """The number of original records per class of the masked table, divided by k.

    With the required k, 1 means that the classes are as small as they may be. Suppressed records,
    if any, form one more class. The baseline is the original's. If a person has several records,
    classes count persons, as k does, and a person is suppressed who has no record left.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    k : int
        The required size of every class; 1 gives the plain average.

    References
    ----------
    LeFevre, DeWitt, Ramakrishnan (2006), Mondrian multidimensional k-anonymity
    <https://doi.org/10.1109/ICDE.2006.101>, section 5.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [21, 22, 31, 32]}), Roles(quasi_identifiers=["age"]))
    >>> masked = Hierarchy.intervals(10).generalize(table, "age", 1)
    >>> average_class_size(table, masked).value, average_class_size(table, masked, k=2).value
    (2.0, 1.0)
    """
    released, kept = _kept_classes(original, masked)
    if masked.has_persons or masked.times is None:
        owned, persons = owned_pairs(released.labels[kept], masked.persons[kept])
        members, left = len(owned), len(np.unique(persons))
    else:
        members = left = masked.records_at(kept)
    suppressed = max(original.person_count, masked.person_count) - left
    count = len(np.unique(released.labels[kept]))
    return Measurement(
        "average_class_size",
        (members + suppressed) / (count + (suppressed > 0)) / int(k),
        baseline=int(original.classes.sizes.sum()) / original.classes.count / int(k),
        details={"classes": count, "suppressed": suppressed},
    )


def _kept_classes(original: Table, masked: Table) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """The classes of the masked table, and which of its records carry information."""
    quasi = original.roles.quasi_identifiers
    if not quasi or len(original) == 0 or len(masked) == 0:
        raise InputError("There are no classes: a table has no quasi-identifiers or no records.")
    released = masked.group([name for name in quasi if name in masked.columns])
    return released, ~emptied_records(original, masked)
