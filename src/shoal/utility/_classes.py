"""How large the classes of equal quasi-identifiers became."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.parameters import Integer
from shoal.table import Classes, Table, owned_pairs
from shoal.utility._suppression import emptied_records


@measure("share of record pairs that look alike", direction="lower", limits=(0, 1))
def discernibility(original: Table, masked: Table) -> Measurement:
    """The discernibility penalty, as a share of what it is when no record can be told apart.

    The penalty is the sum of c² over classes of c records, plus n for each of the s suppressed
    records, n being the records of the original (``details["penalty"]``); the value is that over
    n². It is the chance that two records, drawn one after the other with replacement, look alike.
    The baseline is that of the original. Suppressed are the records that were taken out and those
    with nothing but ``*`` or missing values in the quasi-identifiers. It is about records also
    where a person has several: an analyst tells records apart.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.

    References
    ----------
    Bayardo, Agrawal (2005), Data privacy through optimal k-anonymization, section 3.

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
    sizes = np.bincount(classes.labels[kept], minlength=classes.count)
    sizes = sizes[sizes > 0].astype(object)  # squares of large classes stay exact
    suppressed = max(0, len(original) - len(masked)) + int((~kept).sum())
    records = max(len(original), len(masked))
    penalty = int(sizes @ sizes) + suppressed * records
    before = original.classes.rows.astype(object)
    return Measurement(
        "discernibility",
        min(1.0, penalty / records**2),
        baseline=int(before @ before) / len(original) ** 2,
        details={"penalty": penalty, "classes": len(sizes), "suppressed": suppressed},
    )


@measure("average class size", direction="lower", limits=(0, math.inf))
def average_class_size(
    original: Table, masked: Table, *, k: Annotated[int, Integer(1)] = 1
) -> Measurement:
    """The records of the original for each class of the masked table, over k.

    With the k that was asked for, 1 means classes as small as they may be. Suppressed records, if
    there are any, are one more class. The baseline is the original's. Where a person has several
    records, classes count persons, as k does, and somebody is suppressed who has no record left.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.
    k : int
        The size that every class had to have; 1 gives the plain average.

    References
    ----------
    LeFevre, DeWitt, Ramakrishnan (2006), Mondrian multidimensional k-anonymity, section 5.1.

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
    owned, persons = owned_pairs(released.labels[kept], masked.persons[kept])
    left = len(np.unique(persons))
    suppressed = max(original.person_count, masked.person_count) - left
    count = len(np.unique(owned))
    return Measurement(
        "average_class_size",
        (len(owned) + suppressed) / (count + (suppressed > 0)) / int(k),
        baseline=int(original.classes.sizes.sum()) / original.classes.count / int(k),
        details={"classes": count, "suppressed": suppressed},
    )


def _kept_classes(original: Table, masked: Table) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """The classes of the masked table, and which of its records say something."""
    quasi = original.roles.quasi_identifiers
    if not quasi or len(original) == 0 or len(masked) == 0:
        raise InputError("There are no classes: a table has no quasi-identifiers or no records.")
    released = masked.group([name for name in quasi if name in masked.columns])
    return released, ~emptied_records(original, masked)
