"""How far single numbers moved, and what became of their variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shoal.measurement import Measurement, measure
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
    """The smaller of the variances before and after masking over the larger, on average.

    1 means that every variance is as it was. ``details["tests"]`` has for each column F, the
    variance after over that before, and the two-sided p-value of the F-test with n - 1 degrees of
    freedom for each table. The test takes the values to be normal and the tables to be
    independent samples, which a masked table is not: read the ratio first.

    Numbers, dates, times and durations are compared; missing values are left out, intervals taken
    at their middle. A column that was taken out has no variance left. One that is constant in the
    original is left out. Rows need not be paired.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.
    columns : list of str, optional
        Only these columns; all but the identifiers without it.

    References
    ----------
    Snedecor and Cochran (1989), Statistical Methods, section 6.12.

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
    """The mean of how far a number moved, over √2 standard deviations: the IL1s of the literature.

    The mean over columns of the mean over records of |x - x'| / (√2 s), s the standard deviation
    of the column in the original. Numbers, dates, times and durations are compared, intervals
    taken at their middle. A cell that was emptied, or whose column was taken out, is taken at the
    mean of the original. Records that were taken out, and cells that the original has not, do not
    count. A column that is constant in the original is left out.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    columns : list of str, optional
        Only these columns; all but the identifiers without it.

    References
    ----------
    Mateo-Sanz, Domingo-Ferrer, Sebé (2005), Probabilistic information loss measures in
    confidentiality protection of continuous microdata; Yancey, Winkler, Creecy (2002), Disclosure
    Risk Assessment in Perturbative Microdata Protection, section 4.

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

    100 × SSE / SST on standardised columns, as the literature on microaggregation has it: the
    mean over columns of the squared distances of the records to their masked values, over those to
    the mean of the column. Masking each value by the mean of its column gives 100; noise can give
    more. What counts, and what is gone, is as in ``scaled_deviation``.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    columns : list of str, optional
        Only these columns; all but the identifiers without it.

    References
    ----------
    Domingo-Ferrer, Mateo-Sanz (2002), Practical data-oriented microaggregation for statistical
    disclosure control, section 2.

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
    """The mean over columns of an error: of the rows, and how far their cells moved."""
    rows = masked.rows_in(original)
    quantities = quantities_to_compare(original, masked, columns)
    each = {}
    for quantity in quantities:
        middle = np.nanmean(quantity.before)  # of a cell that was emptied
        after = np.where(np.isnan(quantity.after), middle, quantity.after)
        moved = present(quantity.before[rows] - after)
        if quantity.spread > 0 and len(moved):
            found = error(quantity, rows, moved)
            if found is not None:
                each[quantity.name] = found
    return mean_over_columns(name, each, about_gone(quantities))
