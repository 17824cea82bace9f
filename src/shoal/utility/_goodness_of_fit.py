"""Whether the released values have the shares of the original: chi-square and Cramér's V."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.measurement import Measurement, measure
from shoal.table import Table, stacked_codes
from shoal.utility._columns import Columns, Floats, about_persons, columns_to_compare
from shoal.utility._distribution import Counted, about_taken_out, about_unpaired, each_counted

_SMALL = 5  # expected records, below which chi-square is a rough guide (Cochran 1954)


@measure("chi-square per degree of freedom", direction="lower", limits=(0, math.inf))
def chi_square(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """Pearson's chi-square of the released values against the shares of the original.

    For one column it is the sum over its values of (released - expected)² / expected, where the
    original's shares say what is expected, divided by its degrees of freedom; the value is the
    mean over columns. A random sample gives 1 on average: that is the baseline. Where the masked
    rows are a part of the original's, and their values were not changed but for being made
    coarser, the statistic is divided by 1 - s, s the share of the original that was released,
    since a sample of a finite population varies less.

    Values, bins of numbers and the released level of generalized columns are those of
    ``total_variation``. A value that the original has not is counted with its rarest one, since
    nothing was expected of it. A column with one value has nothing to test. Columns that were
    taken out are not tested.

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
    Pearson (1900), On the criterion that a given system of deviations from the probable is such
    that it can be reasonably supposed to have arisen from random sampling. Rao, Scott (1981), The
    analysis of categorical data from complex sample surveys, section 2 (finite populations).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before = Table(pl.DataFrame({"sex": ["f", "f", "m", "m"]}))
    >>> after = Table(pl.DataFrame({"sex": ["f", "m", "m", "m"]}))
    >>> chi_square(before, after).value
    1.0
    """
    names = columns_to_compare(original, masked, columns)
    sampled = len(masked) / len(original)
    if sampled >= 1 or not masked.pairs_with(original):
        sampled = 0.0
    each = {
        counted.name: facts
        for counted in each_counted(original, masked, names)
        if (facts := _tested(counted, _drawn(original, masked, counted, sampled))) is not None
    }
    reduced = {name: f["statistic"] / f["degrees_of_freedom"] for name, f in each.items()}
    rough = [name for name, facts in each.items() if facts["small_expected"] > 0.2]
    warnings = [*about_unpaired(original, masked, names), *about_taken_out(masked, names)]
    warnings += about_persons(original)
    if rough:
        warnings.append(
            f"In {len(rough)} of {len(reduced)} columns more than a fifth of the values have fewer "
            f"than {_SMALL} expected records, so that their p-values are rough."
        )
    return Measurement(
        "chi_square",
        float(np.mean(list(reduced.values()) or [0.0])),
        baseline=1.0,
        details={
            "columns": reduced,
            "tests": each,
            "released_share": sampled or None,
            "not_tested": [name for name in names if name not in each],
        },
        warnings=tuple(warnings),
    )


@measure("Cramér's V", direction="lower", limits=(0, 1))
def cramers_v(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """How strongly a column tells which of the two tables a record is from, on average.

    Cramér's V of the table of counts with a row for the original, one for the masked table, and a
    column for each value: the root of chi-square over the number of records. Unlike chi-square
    it does not grow with the size of the tables. 0 means equal shares, 1 that the two have no
    value in common. Values are those of ``total_variation``; a column that was taken out counts 1.

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
    Cramér (1946), Mathematical Methods of Statistics, section 21.9.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before = Table(pl.DataFrame({"sex": ["f", "f", "m", "m"]}))
    >>> after = Table(pl.DataFrame({"sex": ["f", "m", "m", "m"]}))
    >>> round(cramers_v(before, after).value, 4)
    0.2582
    """
    names = columns_to_compare(original, masked, columns)
    each = dict.fromkeys(names, 1.0)
    each |= {
        counted.name: _association(counted.before, counted.after)
        for counted in each_counted(original, masked, names)
    }
    return Measurement(
        "cramers_v",
        float(np.mean(list(each.values()))),
        details={"columns": each},
        warnings=about_unpaired(original, masked, names),
    )


def _drawn(original: Table, masked: Table, counted: Counted, sampled: float) -> float:
    """The share that was drawn without replacement; 0 where values were changed as well."""
    if not sampled or counted.coarser:
        return sampled
    codes = stacked_codes(counted.name, original, masked)
    before, after = codes[: len(original)], codes[len(original) :]
    return sampled if np.array_equal(before[masked.rows_in(original)], after) else 0.0


def _tested(counted: Counted, sampled: float) -> dict[str, Any] | None:
    """The test of one column; None where the original has one value only."""
    from scipy.stats import chi2

    expected_of = counted.before > 0
    if np.count_nonzero(expected_of) < 2:
        return None
    released = counted.after[expected_of]
    expected = counted.before[expected_of] * (counted.after.sum() / counted.before.sum())
    released[np.argmin(expected)] += counted.after[~expected_of].sum()
    statistic = float(((released - expected) ** 2 / expected).sum()) / (1.0 - sampled)
    freedom = len(expected) - 1
    return {
        "statistic": statistic,
        "degrees_of_freedom": freedom,
        "p_value": float(chi2.sf(statistic, freedom)),
        "cramers_v": _association(counted.before, counted.after),
        "small_expected": float(np.mean(expected < _SMALL)),
        "new_values": int(np.count_nonzero(counted.after[~expected_of])),
    }


def _association(before: Floats, after: Floats) -> float:
    """Cramér's V of two rows of counts."""
    both = before + after
    there = both > 0
    records, squares = float(both.sum()), 0.0
    for row in (before, after):
        expected = both[there] * row.sum() / records
        squares += float(((row[there] - expected) ** 2 / expected).sum())
    return min(1.0, math.sqrt(squares / records))
