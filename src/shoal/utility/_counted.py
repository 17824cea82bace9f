"""How often each value of a column occurs before and after masking, at one level of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table import Table, empty_cells, released_text, stacked_codes, stacked_numbers
from shoal.utility._columns import Floats, Integers, rows_if_paired

if TYPE_CHECKING:
    from shoal.table import Codes

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
    rows = rows_if_paired(original, masked)
    for name in names:
        if name in masked.columns:
            yield _counted(original, masked, name, rows)


def _counted(original: Table, masked: Table, name: str, rows: Integers | None) -> Counted:
    if rows is not None and released_text(original, masked, name):
        silent = empty_cells(original, masked, name)
        before, after = _as_released(original.codes(name), masked.codes(name), silent, rows)
        return Counted(name, before, after, coarser=True)
    both = _bins(original, masked, name)
    if both is None:
        both = stacked_codes(name, original, masked)
    cells = int(both.max(initial=-1)) + 1
    before, after = (
        np.bincount(np.where(part < 0, cells, part), minlength=cells + 1).astype(np.float64)
        for part in np.split(both, [len(original)])
    )
    return Counted(name, before, after)


def _bins(original: Table, masked: Table, name: str) -> Integers | None:
    """The bins of numbers of both tables, -1 where missing; None where values are compared."""
    if original.kind(name) not in _NUMERIC or masked.kind(name) not in _NUMERIC:
        return None
    if original.distinct(name) <= BINS:
        return None
    try:
        values = stacked_numbers(name, original, masked)
    except InputError:  # infinite values are compared as they are
        return None
    # quantiles, since a single outlier would stretch bins of equal width over all the others
    inside = values[: len(original)]
    edges = np.unique(np.quantile(inside[~np.isnan(inside)], np.arange(1, BINS) / BINS))
    return np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))


def _as_released(
    original: Codes, masked: Codes, silent: npt.NDArray[np.bool_], rows: Integers
) -> tuple[Floats, Floats]:
    """The records of each released value, and how many the original would have of it.

    Each value of the original is spread over the released ones as its own records were. Cells
    that say nothing teach nothing of this, so that they count as moved; so does a value of the
    original whose cells are all like that, or were taken out.
    """
    gap = len(masked.levels)
    labels = np.where(silent, gap, masked.codes).astype(np.int64)
    values = original.codes.astype(np.int64)
    teaches = labels != gap
    if original.missing is not None and masked.missing is not None:
        teaches |= (values[rows] == original.missing) & (masked.codes == masked.missing)
    pairs, counts = np.unique(
        values[rows][teaches] * (gap + 1) + labels[teaches], return_counts=True
    )
    of_value, of_label = np.divmod(pairs, gap + 1)
    known = np.bincount(of_value, weights=counts, minlength=original.count)
    records = np.bincount(values, minlength=original.count).astype(np.float64)
    shares = counts * (records[of_value] / known[of_value])
    before = np.bincount(of_label, weights=shares, minlength=gap + 1)
    after = np.bincount(labels, minlength=gap + 1).astype(np.float64)
    return np.append(before, records[known == 0].sum()), np.append(after, 0.0)
