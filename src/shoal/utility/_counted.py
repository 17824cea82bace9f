"""How often each value of a column occurs before and after masking, at one level of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import InputError
from shoal.table import (
    Column,
    Pair,
    Table,
    empty_codes,
    released_text,
    shared_codes,
    shared_numbers,
)
from shoal.utility._columns import Floats

#: Numbers with more different values than this are put into as many bins.
BINS = 20
_NUMERIC = ("integer", "float")


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
    if original.kind(name) not in _NUMERIC or masked.kind(name) not in _NUMERIC:
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
