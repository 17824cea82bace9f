"""How much single numbers changed, and their variances and correlations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.parameters import OneOf
from shoal.table import Table
from shoal.utility._columns import (
    Columns,
    Floats,
    Integers,
    Quantity,
    about_gone,
    about_persons,
    mean_over_columns,
    present,
    quantities_to_compare,
    variance,
)


@measure("ratio of variances", direction="higher", limits=(0, 1))
def variance_ratio(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The smaller of the variances before and after masking divided by the larger, on average.

    1 means that no variance changed. For each column, ``details["tests"]`` has F, the variance
    after masking divided by that before, and the two-sided p-value of the F-test with n - 1 degrees
    of freedom for each table. The test assumes normal values and independent samples, and a masked
    table is not independent of its original: look at the ratio first.

    Numbers, dates, times and durations are compared; missing values are left out, and an interval
    counts as its middle. A removed column has no variance left. A column that is constant in the
    original is left out. Rows need not be paired.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Snedecor and Cochran (1989), Statistical Methods
    <https://www.wiley.com/WileyCDA/WileyTitle/productCd-0813815614.html>, section 6.12.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before, after = (Table(pl.DataFrame({"x": x})) for x in ([0, 2, 4], [1, 2, 3]))
    >>> variance_ratio(before, after).value
    0.25
    """
    quantities = quantities_to_compare(original, masked, columns)
    each = {q.name: _tested(q) for q in quantities if q.variance > 0}
    return Measurement(
        "variance_ratio",
        float(np.mean([facts["ratio"] for facts in each.values()])) if each else 1.0,
        baseline=1.0,
        direction="higher",
        details={
            "columns": {name: facts["ratio"] for name, facts in each.items()},
            "tests": each,
        },
        warnings=(*about_gone(quantities), *about_persons(original)),
    )


def _tested(quantity: Quantity) -> dict[str, Any]:
    from scipy.stats import f

    before, after = quantity.variance, variance(quantity.after)
    statistic = after / before
    freedom = len(present(quantity.after)) - 1, len(present(quantity.before)) - 1
    p_value = None
    if freedom[0] > 0:
        p_value = min(1.0, 2 * float(min(f.cdf(statistic, *freedom), f.sf(statistic, *freedom))))
    return {
        "ratio": min(before, after) / max(before, after),
        "f": statistic,
        "degrees_of_freedom": list(freedom),
        "p_value": p_value,
    }


@measure(
    "mean scaled deviation of numbers (IL1s)", direction="lower", limits=(0, math.inf), pairs=True
)
def scaled_deviation(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """How far a number moved on average, in units of √2 standard deviations: IL1s.

    This is the mean over columns of the mean over records of |x - x'| / (√2 s), where s is the
    standard deviation of the column in the original. Numbers, dates, times and durations are
    compared; an interval counts as its middle. A cell that was emptied, or whose column was
    removed, counts as the mean of the original. Removed records, and cells that the original
    lacks, do not count. A column that is constant in the original is left out.

    Parameters
    ----------
    original, masked : Table
        The table before masking, and the table made from it.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Mateo-Sanz, Domingo-Ferrer, Sebé (2005), Probabilistic information loss measures in
    confidentiality protection of continuous microdata <https://doi.org/10.1007/s10618-005-0011-9>;
    Yancey, Winkler, Creecy (2002), Disclosure Risk Assessment in Perturbative Microdata Protection
    <https://www.census.gov/srd/papers/pdf/rrs2002-01.pdf>, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"age": [31, 40, 49]}), Roles(quasi_identifiers=["age"]))
    >>> round(scaled_deviation(table, Round(base=10).fit_transform(table)).value, 4)
    0.0524
    """

    def scaled(quantity: Quantity, rows: Integers, moved: Floats) -> float:
        return float(np.abs(moved).mean() / (math.sqrt(2) * quantity.spread))

    return _over_columns("scaled_deviation", original, masked, columns, scaled)


@measure(
    "squared error in percent of the total", direction="lower", limits=(0, math.inf), pairs=True
)
def sse_sst(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The squared error of the numbers in percent of their total sum of squares.

    This is 100 × SSE / SST on standardized columns, as in the literature on microaggregation: the
    mean over columns of the squared distances of the records to their masked values, divided by
    those to the mean of the column. Masking each value by the mean of its column gives 100; noise
    can give more. What counts, and what is gone, is as in ``scaled_deviation``.

    Parameters
    ----------
    original, masked : Table
        The table before masking, and the table made from it.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Domingo-Ferrer, Mateo-Sanz (2002), Practical data-oriented microaggregation for statistical
    disclosure control <https://doi.org/10.1109/69.979982>, section 2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"age": [31, 40, 49]}), Roles(quasi_identifiers=["age"]))
    >>> round(sse_sst(table, Round(base=10).fit_transform(table)).value, 4)
    1.2346
    """

    def squared(quantity: Quantity, rows: Integers, moved: Floats) -> float | None:
        from_mean = present(quantity.before[rows] - np.nanmean(quantity.before))
        total = (from_mean**2).sum()
        return 100.0 * float((moved**2).sum() / total) if total > 0 else None

    return _over_columns("sse_sst", original, masked, columns, squared)


def _over_columns(
    name: str,
    original: Table,
    masked: Table,
    columns: Sequence[str] | None,
    error: Callable[[Quantity, Integers, Floats], float | None],
) -> Measurement:
    """The mean over columns of an error, computed from the rows and how far their cells moved."""
    rows = masked.rows_in(original)
    quantities = quantities_to_compare(original, masked, columns)
    each = {}
    for quantity in quantities:
        middle = np.nanmean(quantity.before)  # for emptied cells
        after = np.where(np.isnan(quantity.after), middle, quantity.after)
        moved = present(quantity.before[rows] - after)
        if quantity.spread > 0 and len(moved):
            found = error(quantity, rows, moved)
            if found is not None:
                each[quantity.name] = found
    return mean_over_columns(name, each, about_gone(quantities))


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

    Numbers, dates, times and durations are compared; an interval counts as its middle. A record
    counts for a pair of columns if it has both values. A correlation counts as 0 if the masked
    table no longer has it, because a column is constant or gone there. A pair without a
    correlation in the original is left out. Rows need not be paired.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    method : {"pearson", "spearman"}
        Correlation of the values, or of their ranks among the values of the column.
    pairs : {"all", "confidential"}
        Which pairs count: all of them, or those with at least one sensitive column.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and data
    swapping <https://doi.org/10.1109/FUZZ-IEEE.2012.6251280>, section V. Their means are over the
    cells on and above the diagonal, zeros included: those are in ``details["cells"]``.

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
            raise InputError("No pair of numeric columns has a sensitive one. Declare it.")
    change = np.abs(np.nan_to_num(new) - old)
    kept = change[chosen & ~np.isnan(old)]
    # as in the paper: with the zeros of the diagonal
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
    """The correlation of each pair of columns over records that have both; NaN if undefined."""
    if method == "spearman":
        from scipy.stats import rankdata

        values = rankdata(values, axis=0, nan_policy="omit")
    there = ~np.isnan(values)
    # a constant column leaves only rounding errors, which must not be blown up
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
    sums = filled.T @ present / count  # the mean of column i where column j is present
    squares = (filled**2).T @ present / count - sums**2
    products = filled.T @ filled / count - sums * sums.T
    return _cleaned(products, squares)


def _cleaned(products: Floats, squares: Floats) -> Floats:
    """Correlations from covariances and the variance of each column given each other one."""
    squares = np.broadcast_to(squares[:, None] if squares.ndim == 1 else squares, products.shape)
    # a variance below rounding error belongs to a constant
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
