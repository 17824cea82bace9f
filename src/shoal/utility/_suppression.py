"""How much of the table is gone."""

from __future__ import annotations

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import Table


@measure("share of suppressed cells", direction="lower", limits=(0, 1), needs_original=True)
def suppressed_cells(original: Table, masked: Table) -> Measurement:
    """The share of the original's filled cells that the masked table does not have.

    Cells are gone with their column, with their record, or because they were made missing or
    ``*``, which says nothing either (unless the original has it as a value of the column).
    Identifiers are left out. Rows need not be paired.

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
    names = [name for name in original.columns if name not in original.roles.identifiers]
    before = sum(len(original) - original.missing_count(name) for name in names)
    if before == 0:
        raise InputError("There is nothing to compare: the original has no filled cells.")
    after = sum(
        len(masked) - masked.missing_count(name) - _stars(original, masked, name)
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


def _stars(original: Table, masked: Table, name: str) -> int:
    """How many cells of a column were made ``*``."""
    if masked.kind(name) != "text":
        return 0
    stars = masked.value_counts(name).get("*", 0)
    return stars if stars and "*" not in original.value_counts(name) else 0
