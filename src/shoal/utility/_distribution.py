"""How much the distribution of each column changed, and whether its values keep their shares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import InputError, columns_that
from shoal.measurement import Measurement, measure
from shoal.table import (
    NUMBERS,
    Column,
    Listed,
    Pair,
    Table,
    empty_codes,
    released_text,
    shared_codes,
    shared_numbers,
    stacked_codes,
)
from shoal.utility._columns import (
    Columns,
    Floats,
    about_gone,
    about_persons,
    columns_to_compare,
    mean_over_columns,
    present,
    quantities_to_compare,
)

#: Numbers with more distinct values than this are put into as many bins.
BINS = 20


@dataclass(frozen=True, eq=False)
class Counted:
    """The number of records per value, with a missing value last; ``coarser`` if generalized.

    For a generalized column the values are the released ones, and the records of the original
    are counted as they were generalized.
    """

    name: str
    before: Floats
    after: Floats
    coarser: bool = False


def each_counted(original: Table, masked: Table, names: Sequence[str]) -> Iterator[Counted]:
    """The columns that both tables have, one by one."""
    pair = Pair.of(original, masked) if masked.pairs_with(original) else None
    for name in names:
        if name in masked.columns:
            yield _counted(original, masked, name, pair)


def _counted(original: Table, masked: Table, name: str, pair: Pair | None) -> Counted:
    if pair is not None and released_text(original, masked, name):
        before, after = _as_released(original.column(name), masked.column(name), pair)
        return Counted(name, before, after, coarser=True)
    binned = _binned(original, masked, name)
    if binned is not None:
        return Counted(name, *binned)
    both = shared_codes(name, original, masked)
    cells = max(int(part.max(initial=-1)) for part in both) + 1
    before, after = (
        np.bincount(np.where(part < 0, cells, part), table.codes(name).counts, cells + 1).astype(
            np.float64
        )
        for part, table in zip(both, (original, masked), strict=True)
    )
    return Counted(name, before, after)


def _binned(original: Table, masked: Table, name: str) -> tuple[Floats, Floats] | None:
    """The numbers of both tables per bin, missing ones last; None if values are compared."""
    if original.kind(name) not in NUMBERS or masked.kind(name) not in NUMBERS:
        return None
    if not original.column(name).is_continuous and original.distinct(name) <= BINS:
        return None
    try:
        before, after, _ = shared_numbers(name, original, masked)
    except InputError:  # infinite values are compared as values
        return None
    # quantiles: a single outlier would stretch bins of equal width over all other values
    edges = np.unique(_twentieths(before))
    return _counts(before, edges, original.records), _counts(after, edges, masked.records)


def _twentieths(numbers: Listed) -> Floats:
    """The quantiles between the bins; numbers with counts are not expanded into a list."""
    if numbers.codes is None:
        ascending = np.sort(numbers.values)  # faster than what numpy does for many quantiles
        return np.asarray(np.quantile(ascending, np.arange(1, BINS) / BINS))
    present = numbers.present
    ends = np.cumsum(numbers.codes.counts[: len(present)])
    places = (ends[-1] - 1) * (np.arange(1, BINS) / BINS) if len(ends) else np.zeros(0)
    below = np.floor(places)
    low = present[np.searchsorted(ends, below, side="right")]
    high = present[np.searchsorted(ends, np.ceil(places), side="right")]
    return low + (high - low) * (places - below)


def _counts(numbers: Listed, edges: Floats, records: int) -> Floats:
    """How many numbers are below, between and from the last edge on, then the missing ones."""
    if numbers.codes is None:
        below = [np.count_nonzero(numbers.values < edge) for edge in edges]
        return np.diff([0, *below, records, records]).astype(np.float64)
    present = numbers.present
    ends = np.append(0, np.cumsum(numbers.codes.counts[: len(present)]))
    places = np.searchsorted(present, edges)
    return np.diff([0, *ends[places], ends[-1], records]).astype(np.float64)


def _as_released(original: Column, masked: Column, pair: Pair) -> tuple[Floats, Floats]:
    """The records with each released value, and the number that the original would have of it.

    The records with an original value are spread over the released values in the proportions that
    its own records show. Empty cells show no proportions, so they count as changed. So does an
    original value if all its cells became empty or were removed.
    """
    values, labels, outcomes = original.codes, masked.codes, pair.outcomes(original.name)
    gap = len(labels.levels)
    shown = np.arange(labels.count)
    shown[empty_codes(original, masked)] = gap
    shown = np.minimum(shown, gap)
    teaches = shown[outcomes.labels] != gap
    if values.missing is not None and labels.missing is not None:
        teaches |= (outcomes.values == values.missing) & (outcomes.labels == labels.missing)
    of_value, of_label = outcomes.values[teaches], shown[outcomes.labels[teaches]]
    counts = outcomes.records[teaches]
    known = np.bincount(of_value, weights=counts, minlength=values.count)
    records = values.counts.astype(np.float64)
    shares = counts * (records[of_value] / known[of_value])
    before = np.bincount(of_label, weights=shares, minlength=gap + 1)
    after = np.bincount(shown[outcomes.labels], weights=outcomes.records, minlength=gap + 1)
    return np.append(before, records[known == 0].sum()), np.append(after, 0.0)


@measure("total variation distance", direction="lower", limits=(0, 1), by_counts=True)
def total_variation(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The mean total variation distance between the columns before and after masking.

    For one column this is half the sum of the absolute differences between the shares of its
    values, where a missing value is a value of its own. A number with more than 20 distinct values
    is put into bins first, cut at the twentieths of the original. 0 means the same distribution,
    1 means no value in common. A removed column counts as 1. Identifiers are left out. Rows
    need not be paired.

    A generalized column is compared at the released level if the rows can be paired: the values
    of the original are counted as they were generalized. What was generalized to ``*`` or removed
    then counts as changed. If rows cannot be paired, such a column counts as completely changed.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Levin, Peres, Wilmer (2009), Markov Chains and Mixing Times
    <https://pages.uoregon.edu/dlevin/MARKOV/>, section 4.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> before = Table(pl.DataFrame({"sex": ["f", "f", "m", "m"]}))
    >>> after = Table(pl.DataFrame({"sex": ["f", "m", "m", "m"]}))
    >>> total_variation(before, after).value
    0.25
    """
    names = columns_to_compare(original, masked, columns)
    each = dict.fromkeys(names, 1.0)
    coarser = []
    there = set(masked.columns)
    same = {
        name for name in names if name in there and masked.column(name) is original.column(name)
    }
    each |= dict.fromkeys(same, 0.0)
    for counted in each_counted(original, masked, [name for name in names if name not in same]):
        moved = counted.before / original.records - counted.after / masked.records
        each[counted.name] = min(1.0, float(np.abs(moved).sum() / 2))
        coarser += [counted.name] * counted.coarser
    warnings = about_unpaired(original, masked, names)
    return mean_over_columns("total_variation", each, warnings, at_released_level=coarser)


def about_unpaired(original: Table, masked: Table, names: Sequence[str]) -> tuple[str, ...]:
    """What a reader must know about generalized columns if rows cannot be paired."""
    if masked.pairs_with(original):
        return ()
    there = [name for name in names if name in masked.columns]
    coarser = [name for name in there if released_text(original, masked, name)]
    if not coarser:
        return ()
    return (
        columns_that(coarser, "has", "have")
        + " values that the original lacks, and the rows cannot be paired. So this counts as a "
        "complete change.",
    )


def about_removed(masked: Table, names: Sequence[str]) -> tuple[str, ...]:
    """What a reader must know if removed columns are not compared."""
    gone = [name for name in names if name not in masked.columns]
    if not gone:
        return ()
    return (columns_that(gone, "was removed", "were removed") + "; the loss is not counted here.",)


@measure("Wasserstein distance of numbers", direction="lower", limits=(0, np.inf))
def wasserstein(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The mean Wasserstein distance of the numeric columns, in standard deviations.

    For one column this is the area between the two distribution functions: how far a value must
    move on average to turn one distribution into the other. It is divided by the standard deviation
    of the original. Numbers, dates, times and durations are compared; missing values are left
    out. A released interval counts as its middle. A column that was removed, or no longer holds
    numbers, counts as the mean of the original. A column that is constant in the original has no
    scale and is left out. Rows need not be paired.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Villani (2009), Optimal Transport <https://doi.org/10.1007/978-3-540-71050-9>, chapter 6; in one
    dimension Vallender (1974), Calculation of the Wasserstein distance between probability
    distributions on the line <https://doi.org/10.1137/1118101>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before, after = (Table(pl.DataFrame({"x": x})) for x in ([0, 2], [1, 3]))
    >>> round(wasserstein(before, after).value, 4)
    0.7071
    """
    quantities = quantities_to_compare(original, masked, columns)
    each = {
        quantity.name: _area(present(quantity.before), present(quantity.after)) / quantity.spread
        for quantity in quantities
        if quantity.spread > 0
    }
    return mean_over_columns("wasserstein", each, about_gone(quantities))


def _area(before: Floats, after: Floats) -> float:
    """The area between two distribution functions."""
    if len(before) == len(after):  # the sorted values pair up
        return float(np.abs(np.sort(before) - np.sort(after)).mean())
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(before, after))


_SMALL = 5  # with fewer expected records, chi-square is a rough guide (Cochran 1954)


@measure(
    "chi-square per degree of freedom", direction="lower", limits=(0, math.inf), by_counts=True
)
def chi_square(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """Pearson's chi-square of the released values against the shares of the original.

    For one column this is the sum over its values of (released - expected)² / expected, divided
    by its degrees of freedom. The original's shares give the expected counts. The value is the
    mean over columns. A random sample gives 1 on average: that is the baseline. If the masked
    rows are a part of the original's, and their values were only generalized, the statistic is
    divided by 1 - s, where s is the share of the original that was released, because a sample of
    a finite population varies less.

    Values, bins of numbers and the released level of generalized columns are those of
    ``total_variation``. A value that the original lacks is counted with its rarest one, because
    its expected count is zero. A column with one value has nothing to test. Removed columns are
    not tested.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Pearson (1900), On the criterion that a given system of deviations from the probable is such
    that it can be reasonably supposed to have arisen from random sampling
    <https://doi.org/10.1080/14786440009463897>. Rao, Scott (1981), The analysis of categorical data
    from complex sample surveys <https://doi.org/10.1080/01621459.1981.10477633>, section 2 (finite
    populations).

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
    sampled = masked.records / original.records
    if sampled >= 1 or not masked.pairs_with(original):
        sampled = 0.0
    each = {
        counted.name: facts
        for counted in each_counted(original, masked, names)
        if (facts := _tested(counted, _drawn(original, masked, counted, sampled))) is not None
    }
    reduced = {name: f["statistic"] / f["degrees_of_freedom"] for name, f in each.items()}
    rough = [name for name, facts in each.items() if facts["small_expected"] > 0.2]
    warnings = [*about_unpaired(original, masked, names), *about_removed(masked, names)]
    warnings += about_persons(original)
    if rough:
        warnings.append(
            f"In {len(rough)} of {len(reduced)} columns more than a fifth of the values have fewer "
            f"than {_SMALL} expected records, so their p-values are rough."
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


@measure("Cramér's V", direction="lower", limits=(0, 1), by_counts=True)
def cramers_v(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """How strongly a column reveals which of the two tables a record is from, on average.

    This is Cramér's V of the table of counts with a row for the original, one for the masked table,
    and a column for each value: the root of chi-square divided by the number of records. Unlike
    chi-square it does not grow with the size of the tables. 0 means equal shares, 1 means no value
    in common. Values are those of ``total_variation``; a removed column counts as 1.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Cramér (1946), Mathematical Methods of Statistics <https://doi.org/10.1515/9781400883868>,
    section 21.9.

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
    return mean_over_columns("cramers_v", each, about_unpaired(original, masked, names))


def _drawn(original: Table, masked: Table, counted: Counted, sampled: float) -> float:
    """The share that was drawn without replacement; 0 if values were changed as well."""
    if not sampled or counted.coarser:
        return sampled
    codes = stacked_codes(counted.name, original, masked)
    before, after = codes[: len(original)], codes[len(original) :]
    return sampled if np.array_equal(before[masked.rows_in(original)], after) else 0.0


def _tested(counted: Counted, sampled: float) -> dict[str, Any] | None:
    """The test of one column; None if the original has only one value."""
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
