"""The whole table as a release shows a part of it: as coarse, and with nobody left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.risk._intruder import rows_of
from shoal.table import Table

Integers = npt.NDArray[np.int64]

_ORDERED = ("integer", "float", "date", "datetime", "time", "duration")


@dataclass(frozen=True, eq=False)
class BeforeSampling:
    """All records with the values that the release has for them.

    ``unplaced`` records have a value that nobody in the release had, so nothing tells what it
    would have become; they are not in ``table``.
    """

    table: Table
    unplaced: int = 0
    #: Whether values had to be made as coarse as the released ones first.
    learned: bool = False


def before_sampling(original: Table, masked: Table, columns: Sequence[str]) -> BeforeSampling:
    """The original with the named columns as in the masked table, from which records are gone.

    Where the columns were not changed, or the tables were read apart, it is the original as it
    is. Otherwise what became of each value is learned from the records that are in both.
    """
    if not masked.pairs_with(original):
        return BeforeSampling(original)
    if len(masked) == len(original):
        return BeforeSampling(masked)  # nobody was left out
    own = rows_of(masked.row_key, original)
    if (own < 0).any():
        raise InputError(
            f"{int((own < 0).sum())} of {len(masked)} masked records are not in the original."
        )
    changed = [
        name
        for name in columns
        if name not in original.columns or masked.changed_cells(name, original).any()
    ]
    if not changed:
        return BeforeSampling(original)
    sources = {name: _sources(name, original, masked, own) for name in columns}
    everyone = np.all([rows >= 0 for rows in sources.values()], axis=0)
    placed = np.flatnonzero(everyone)
    # the rows are there to be overwritten: as many as were placed, which includes all masked ones
    rows = masked.reorder(np.minimum(np.arange(len(placed)), len(masked) - 1))
    table = rows.with_cells_of({name: rows_[placed] for name, rows_ in sources.items()})
    return BeforeSampling(table, len(original) - len(placed), learned=True)


def _sources(name: str, original: Table, masked: Table, own: Integers) -> Integers:
    """For each original record a masked one that has what its value became; -1 if unknown."""
    if name not in original.columns:
        raise InputError(
            f"The original has no column '{name}', so classes before sampling cannot be counted."
        )
    values = original.codes(name)
    codes = values.codes.astype(np.int64)
    became = np.full(values.count, -1)
    became[codes[own]] = np.arange(len(own))
    released = masked.codes(name).codes
    if (released[became[codes[own]]] != released).any():
        raise InputError(
            f"Equal values of {quoted([name])} became different ones, so nothing tells what the "
            "records that were left out would have become; give the table as it was just before "
            "sampling as the original."
        )
    if original.kind(name) in _ORDERED:
        became[: len(values.levels)] = _between(became[: len(values.levels)], released)
    return became[codes]


def _between(became: Integers, released: npt.NDArray[np.unsignedinteger]) -> Integers:
    """An ordered value between two that became the same became the same too."""
    places = np.arange(len(became))
    seen = became >= 0
    below = np.maximum.accumulate(np.where(seen, places, -1))
    above = np.minimum.accumulate(np.where(seen, places, len(became))[::-1])[::-1]
    inside = ~seen & (below >= 0) & (above < len(became))
    low, high = became[below[inside]], became[above[inside]]
    became[inside] = np.where(released[low] == released[high], low, -1)
    return became
