"""How far the distribution of each column moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import InputError, quoted
from shoal.measurement import Measurement, measure
from shoal.table import (
    NUMBERS,
    Column,
    Pair,
    Table,
    empty_codes,
    released_text,
    shared_codes,
    shared_numbers,
)
from shoal.utility._columns import (
    Columns,
    Floats,
    about_gone,
    columns_to_compare,
    present,
    quantities_to_compare,
)

#: Numbers with more different values than this are put into as many bins.
BINS = 20


@dataclass(frozen=True, eq=False)
class Counted:
    """The records with each value, a missing one last; ``coarser`` says that it was generalized.

    Of a column that was generalized the values are the released ones, and those of the original
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
    """The numbers of both tables in each bin, missing ones last; None where values are compared."""
    if original.kind(name) not in NUMBERS or masked.kind(name) not in NUMBERS:
        return None
    if original.distinct(name) <= BINS:
        return None
    try:
        before, after, _ = shared_numbers(name, original, masked)
    except InputError:  # infinite values are compared as they are
        return None
    numbers = _ascending(original.column(name), before)
    # quantiles, since a single outlier would stretch bins of equal width over all the others
    edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
    others = _ascending(masked.column(name), after)
    return _counts(numbers, edges, len(original)), _counts(others, edges, len(masked))


def _ascending(column: Column, values: Floats) -> Floats:
    """The numbers of all records in ascending order, missing ones left out."""
    return np.repeat(values, column.codes.counts)[: len(column) - column.missing_count]


def _counts(ascending: Floats, edges: Floats, records: int) -> Floats:
    """How many numbers lie below, between and from the last edge on, then the missing ones."""
    ends = np.searchsorted(ascending, edges)
    return np.diff([0, *ends, len(ascending), records]).astype(np.float64)


def _as_released(original: Column, masked: Column, pair: Pair) -> tuple[Floats, Floats]:
    """The records of each released value, and how many the original would have of it.

    Each value of the original is spread over the released ones as its own records were. Cells
    that say nothing teach nothing of this, so that they count as moved; so does a value of the
    original whose cells are all like that, or were taken out.
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


@measure("total variation distance", direction="lower", limits=(0, 1))
def total_variation(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The mean total variation distance between the columns before and after masking.

    For one column it is half the sum of the absolute differences between the shares of its
    values, a missing value being a value of its own. A number with more than 20 different values
    is put into bins first, cut at the twentieths of the original. 0 means the same distribution,
    1 nothing in common. A column that was taken out counts as 1. Identifiers are left out. Rows
    need not be paired.

    A column that was generalized is compared at the released level, where the rows can be paired:
    the values of the original are counted as they were generalized. What was generalized to
    ``*`` or taken out then counts as moved. Where rows cannot be paired, such a column counts as
    wholly changed.

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
    names = columns_to_compare(original, masked, columns)
    each = dict.fromkeys(names, 1.0)
    coarser = []
    same = [
        name
        for name in names
        if name in masked.columns and masked.column(name) is original.column(name)
    ]
    each |= dict.fromkeys(same, 0.0)
    for counted in each_counted(original, masked, [name for name in names if name not in same]):
        moved = counted.before / len(original) - counted.after / len(masked)
        each[counted.name] = min(1.0, float(np.abs(moved).sum() / 2))
        coarser += [counted.name] * counted.coarser
    return Measurement(
        "total_variation",
        float(np.mean(list(each.values()))),
        details={"columns": each, "at_released_level": coarser},
        warnings=about_unpaired(original, masked, names),
    )


def about_unpaired(original: Table, masked: Table, names: Sequence[str]) -> tuple[str, ...]:
    """What a reader must know of generalized columns where rows cannot be paired."""
    if masked.pairs_with(original):
        return ()
    there = [name for name in names if name in masked.columns]
    coarser = [name for name in there if released_text(original, masked, name)]
    if not coarser:
        return ()
    return (
        f"The columns {quoted(coarser)} have values that the original has not, and the rows cannot "
        "be paired, so that they count as wholly changed.",
    )


def about_taken_out(masked: Table, names: Sequence[str]) -> tuple[str, ...]:
    """What a reader must know where columns that were taken out are not compared."""
    gone = [name for name in names if name not in masked.columns]
    if not gone:
        return ()
    return (f"The columns {quoted(gone)} were taken out, and their loss is not counted here.",)


@measure("Wasserstein distance of numbers", direction="lower", limits=(0, np.inf))
def wasserstein(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The mean Wasserstein distance of the numeric columns, in standard deviations.

    For one column it is the area between the two distribution functions: how far a value has to
    be moved on average to turn the one distribution into the other. It is divided by the
    standard deviation of the original. Numbers, dates, times and durations are compared; missing
    values are left out. Released intervals are taken at their middle. A column that was taken
    out, or is no longer of numbers, is taken at the mean of the original. One that is constant in
    the original has no scale and is left out. Rows need not be paired.

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
    Villani (2009), Optimal Transport, chapter 6; in one dimension Vallender (1974), Calculation
    of the Wasserstein distance between probability distributions on the line.

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
    return Measurement(
        "wasserstein",
        float(np.mean(list(each.values()))) if each else 0.0,
        details={"columns": each},
        warnings=about_gone(quantities),
    )


def _area(before: Floats, after: Floats) -> float:
    """The area between two distribution functions."""
    if len(before) == len(after):  # the sorted values go with each other
        return float(np.abs(np.sort(before) - np.sort(after)).mean())
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(before, after))
