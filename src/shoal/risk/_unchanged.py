"""Records whose quasi-identifiers were not changed."""

from __future__ import annotations

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement
from shoal.risk._options import risk
from shoal.risk.linkage._right_links import about_renamed
from shoal.table import Table


@risk("share of records left unmasked", pairs=True)
def unchanged_records(original: Table, masked: Table) -> Measurement:
    """The share of released records with no changed quasi-identifier.

    A quasi-identifier that was removed from the table counts as changed. Rows are paired by their
    private key, so a record that merely resembles another one does not count. If a person has
    several records, the value is the share of persons with such a record.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.

    References
    ----------
    Hundepool et al. (2012), Statistical Disclosure Control <https://doi.org/10.1002/9781118348239>,
    chapter 3.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> frame = pl.DataFrame({"age": [30, 32, 41]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"]))
    >>> round(unchanged_records(table, Round(base=5).fit_transform(table)).value, 3)
    0.333
    """
    masked.check_pairs_with(original)
    if len(masked) == 0:
        raise InputError("The masked table has no records.")
    names = original.roles.quasi_identifiers
    same = np.zeros(len(masked), np.bool_)
    if names and all(name in masked.columns for name in names):
        changed = {name: masked.changed_count(name, original) for name in names}
        if len(masked) not in changed.values():
            same[:] = True
            for name in (name for name, count in changed.items() if count):
                same &= ~masked.changed_cells(name, original)
    return Measurement(
        "unchanged_records",
        float(masked.of_persons(same).mean()),
        baseline=1.0,
        per_record=same,
        details={"records": int(masked.of_persons(same).sum())},
        warnings=about_renamed(original, masked, names),
    )
