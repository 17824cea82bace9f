"""How much of the table is gone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import Table, empty_cells
from shoal.utility._columns import rows_if_paired


@measure("share of suppressed cells", direction="lower", limits=(0, 1))
def suppressed_cells(original: Table, masked: Table) -> Measurement:
    """The share of the original's filled cells that the masked table does not have.

    Cells are gone with their column, with their record, or because they were made missing or
    ``*``, which says nothing either (unless the original has it as a value of the column).
    Identifiers, and what says whose record it is, are left out. Rows need not be paired.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.

    References
    ----------
    Hundepool et al. (2012), Statistical Disclosure Control, section 3.4.

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
    before = sum(len(original) - original.missing_count(name) for name in names)
    if before == 0:
        raise InputError("There is nothing to compare: the original has no filled cells.")
    after = sum(
        len(masked) - int(empty_cells(original, masked, name).sum())
        for name in names
        if name in masked.columns
    )
    return Measurement(
        "suppressed_cells",
        max(0.0, 1.0 - after / before),
        details={
            "columns": [name for name in names if name not in masked.columns],
            "records": max(0, len(original) - len(masked)),
        },
    )


@measure("share of suppressed records", direction="lower", limits=(0, 1))
def suppressed_records(original: Table, masked: Table) -> Measurement:
    """The share of the original's records that were taken out or say nothing any more.

    A record that is still there says nothing where all its released quasi-identifiers are missing
    or ``*``, and were not missing all from the start.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.

    References
    ----------
    Samarati (2001), Protecting Respondents' Identities in Microdata Release, section 4.2.

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
    taken_out = max(0, len(original) - len(masked))
    emptied = int(emptied_records(original, masked).sum())
    return Measurement(
        "suppressed_records",
        min(1.0, (taken_out + emptied) / len(original)),
        details={"taken_out": taken_out, "emptied": emptied},
    )


def emptied_records(original: Table, masked: Table) -> npt.NDArray[np.bool_]:
    """Which released records say nothing in any quasi-identifier, and did before."""
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
    # who is who is not known: where the original has such records they are taken for those
    return np.asarray(after if not before.any() else np.zeros_like(after))
