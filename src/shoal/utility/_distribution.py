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
    values, a missing value being a value of its own. A number with more than 20 different values
    is put into bins first, cut at the twentieths of the original. 0 means the same distribution,
    1 nothing in common. A column that was taken out counts as 1. Identifiers are left out. Rows
    need not be paired.

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
    both_numeric = original.kind(name) in numeric and masked.kind(name) in numeric
    if both_numeric and original.distinct(name) > BINS:
        before, after = _binned_shares(original, masked, name)
    else:
        before, after = _value_shares(original, masked, name)
    return float(np.abs(before - after).sum() / 2)


def _binned_shares(
    original: Table, masked: Table, name: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    columns = [table.numbers(name) for table in (original, masked)]
    values = [column.values[column.present].astype(np.float64) for column in columns]
    # quantiles, since a single outlier would stretch bins of equal width over all the others
    edges = np.unique(np.quantile(values[0], np.arange(1, BINS) / BINS))
    shares = []
    for column, inside in zip(columns, values, strict=True):
        bins = np.searchsorted(edges, inside, side="right")
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
