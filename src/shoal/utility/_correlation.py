"""What became of the correlations between columns."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.parameters import OneOf
from shoal.table import Table
from shoal.utility._columns import Columns, Floats, about_gone, quantities_to_compare

Correlation = Annotated[Literal["pearson", "spearman"], OneOf(("pearson", "spearman"))]
CorrelationPairs = Annotated[Literal["all", "confidential"], OneOf(("all", "confidential"))]

_NO_CORRELATION = "No two columns of the original have a correlation to lose."


@measure("mean change of correlations", direction="lower", limits=(0, 2))
def correlation_difference(
    original: Table,
    masked: Table,
    *,
    method: Correlation = "pearson",
    pairs: CorrelationPairs = "all",
    columns: Columns = None,
) -> Measurement:
    """The mean absolute difference of correlations, |r' - r|, over pairs of columns.

    Numbers, dates, times and durations are compared, intervals taken at their middle. A record
    counts for a pair of columns where it has both values. A correlation that the original has and
    the masked table has no longer, since a column is constant or gone there, counts as 0; a pair
    that has none in the original is left out. Rows need not be paired.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.
    method : {"pearson", "spearman"}
        Correlation of the values, or of their ranks among the values of the column.
    pairs : {"all", "confidential"}
        Which pairs count: all of them, or those with at least one sensitive column.
    columns : list of str, optional
        Only these columns; all but the identifiers without it.

    References
    ----------
    Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and
    data swapping, section V. Their means are over the cells on and above the diagonal, zeros
    included: those are in ``details["cells"]``.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before = Table(pl.DataFrame({"x": [1, 2, 3], "y": [1, 2, 3]}))
    >>> after = Table(pl.DataFrame({"x": [1, 2, 3], "y": [1, 3, 2]}))
    >>> round(correlation_difference(before, after).value, 12)
    0.5
    """
    quantities = quantities_to_compare(original, masked, columns)
    if len(quantities) < 2:
        raise InputError("A correlation needs two columns of numbers or dates; there is only one.")
    before = np.column_stack([quantity.before for quantity in quantities])
    after = np.column_stack([quantity.after for quantity in quantities])
    old = correlations(before, method)
    same = before.shape == after.shape and np.array_equal(before, after, equal_nan=True)
    new = old if same else correlations(after, method)
    chosen = np.triu(np.ones(old.shape, bool), 1)
    if pairs == "confidential":
        secret = np.array([q.name in original.roles.sensitive for q in quantities])
        chosen &= secret[:, None] | secret
        if not chosen.any():
            raise InputError("No pair of numeric columns has a sensitive one; declare it.")
    change = np.abs(np.nan_to_num(new) - old)
    kept = change[chosen & ~np.isnan(old)]
    # as the paper has it: with the zeros of the diagonal
    cells = np.concatenate([kept, np.zeros(len(quantities))])
    return Measurement(
        "correlation_difference",
        float(kept.mean()) if len(kept) else 0.0,
        details={
            "pairs": len(kept),
            "spread": float(kept.std()) if len(kept) else 0.0,
            "largest": float(kept.max(initial=0.0)),
            "columns": _by_column(change, chosen | chosen.T, [q.name for q in quantities]),
            "cells": {"count": len(cells), "mean": float(cells.mean()), "sd": float(cells.std())},
        },
        warnings=(*about_gone(quantities), *(() if len(kept) else (_NO_CORRELATION,))),
    )


def correlations(values: Floats, method: str = "pearson") -> Floats:
    """The correlation of each two columns over the records that have both; NaN where none."""
    if method == "spearman":
        from scipy.stats import rankdata

        values = rankdata(values, axis=0, nan_policy="omit")
    there = ~np.isnan(values)
    # what is left of a constant column is rounding, which must not be blown up
    highest = np.where(there, values, -np.inf).max(axis=0)
    there &= highest > np.where(there, values, np.inf).min(axis=0)
    records = np.maximum(there.sum(axis=0), 1)
    filled = np.where(there, values, 0.0)
    filled = np.where(there, filled - filled.sum(axis=0) / records, 0.0)
    filled /= np.maximum(np.sqrt((filled**2).sum(axis=0) / records), np.finfo(float).tiny)
    if there.all():
        return _cleaned(filled.T @ filled / records, (filled**2).sum(axis=0) / records)
    present = there.astype(np.float64)
    count = np.maximum(present.T @ present, 1.0)
    sums = filled.T @ present / count  # the mean of column i where column j is there
    squares = (filled**2).T @ present / count - sums**2
    products = filled.T @ filled / count - sums * sums.T
    return _cleaned(products, squares)


def _cleaned(products: Floats, squares: Floats) -> Floats:
    """Correlations from covariances and the variance of each column beside each other one."""
    squares = np.broadcast_to(squares[:, None] if squares.ndim == 1 else squares, products.shape)
    # a variance of less than rounding leaves is that of a constant
    squares = np.where(squares > 1e-12, squares, np.nan)
    found: Floats = np.clip(products / np.sqrt(squares * squares.T), -1.0, 1.0)
    return found


def _by_column(change: Floats, chosen: npt.NDArray[np.bool_], names: list[str]) -> dict[str, float]:
    """The mean change of the correlations of each column that has any."""
    counted = np.where(chosen & ~np.isnan(change), change, 0.0)
    number = (chosen & ~np.isnan(change)).sum(axis=0)
    return {
        name: float(counted[:, place].sum() / number[place])
        for place, name in enumerate(names)
        if number[place]
    }
