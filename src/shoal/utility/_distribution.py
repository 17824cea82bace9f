"""How far the distribution of each column moved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import Table

BINS = 20


@measure("total variation distance", direction="lower", limits=(0, 1), needs_original=True)
def total_variation(original: Table, masked: Table) -> Measurement:
    """The mean total variation distance between the columns before and after masking.

    For one column it is half the sum of the absolute differences between the shares of its
    values, a missing value being a value of its own; numbers are put into 20 bins of equal width
    over the range of both tables. 0 means the same distribution, 1 nothing in common. A column
    that was taken out counts as 1. Identifiers are left out. Rows need not be paired.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.

    References
    ----------
    Levin, Peres, Wilmer (2009), Markov Chains and Mixing Times, section 4.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> before = Table(pl.DataFrame({"sex": ["f", "f", "m", "m"]}))
    >>> after = Table(pl.DataFrame({"sex": ["f", "m", "m", "m"]}))
    >>> total_variation(before, after).value
    0.25
    """
    names = [name for name in original.columns if name not in original.roles.identifiers]
    if not names or len(original) == 0 or len(masked) == 0:
        raise InputError("There is nothing to compare: a table has no columns or no records.")
    each = {
        name: _distance(original, masked, name) if name in masked.columns else 1.0 for name in names
    }
    return Measurement(
        "total_variation", float(np.mean(list(each.values()))), details={"columns": each}
    )


def _distance(original: Table, masked: Table, name: str) -> float:
    numeric = ("integer", "float")
    if original.kind(name) in numeric and masked.kind(name) in numeric:
        before, after = _binned_shares(original, masked, name)
    else:
        before, after = _value_shares(original, masked, name)
    return float(np.abs(before - after).sum() / 2)


def _binned_shares(
    original: Table, masked: Table, name: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    columns = [table.numbers(name) for table in (original, masked)]
    values = [column.values[column.present].astype(np.float64) for column in columns]
    present = np.concatenate(values)
    low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
    # halved before subtracting: the range of two doubles may exceed the largest double
    span = high / 2 - low / 2
    shares = []
    for column, inside in zip(columns, values, strict=True):
        position = (inside / 2 - low / 2) / span if span > 0 else np.zeros(len(inside))
        bins = np.minimum((position * BINS).astype(np.int64), BINS - 1)
        counts = np.append(np.bincount(bins, minlength=BINS), (~column.present).sum())
        shares.append(counts / len(column.present))
    return shares[0], shares[1]


def _value_shares(
    original: Table, masked: Table, name: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    counts = [table.value_counts(name) for table in (original, masked)]
    values = list(counts[0].keys() | counts[1].keys())
    shares = []
    for table, count in zip((original, masked), counts, strict=True):
        each = [count.get(value, 0) for value in values] + [table.missing_count(name)]
        shares.append(np.array(each, dtype=np.float64) / len(table))
    return shares[0], shares[1]
