"""The dissimilarity of Ahmad and Dey (2007), in which the data say how dissimilar two codes are.

Two codes of a column are as dissimilar as the records that have them are in the other columns: the
total variation between the distributions of another column given one code and given the other,
averaged over the other columns (numeric ones cut into bins). A numeric column weighs as much as
its bins are dissimilar. Senavirathne and Torra use it as equation (2): ``w (x - y) ** 2 + delta``
on values scaled to [0, 1]; the original squares all of it: ``(w (x - y)) ** 2 + delta ** 2``.

A missing value is a code, or a bin, of its own. A numeric value and a missing one differ by the
delta of their bins, two missing ones by 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers
from shoal.kernels.space.mixed_records import MixedRecords, mixed_records

Codes = npt.NDArray[np.signedinteger[Any]]


def ahmad_dey(
    numeric: Floats, codes: Codes, *, original: bool = False, bins: int = 5
) -> MixedRecords:
    """Records under the dissimilarity of Ahmad and Dey; missing values are NaN or negative codes.

    ``original`` selects the squared form of the original instead of equation (2) of Senavirathne
    and Torra. ``bins`` of equal width cut a numeric column to compare it with others.
    """
    cut = [equal_width(column, bins) for column in numeric.T]
    named = [_with_missing_last(column) for column in codes.T]
    deltas = ahmad_dey_deltas([_with_missing_last(column) for column in cut] + named)
    weights = np.zeros(len(cut))
    for column, (values, binned) in enumerate(zip(numeric.T, cut)):
        present = values[binned >= 0]
        spread = np.ptp(present) if len(present) else 0.0
        if spread > 0:
            weight = significance(deltas[column], binned)
            weights[column] = (weight / spread) ** 2 if original else weight / spread**2
    # A numeric column with missing values gets a companion in which only missing or not differs.
    gaps = [column for column, binned in enumerate(cut) if (binned < 0).any()]
    companions = [_only_last(deltas[column]) for column in gaps]
    tables = deltas[len(cut) :] + companions
    columns = named + [_with_missing_last(cut[column]) for column in gaps]
    return mixed_records(
        numeric,
        np.column_stack(columns) if columns else np.zeros((len(numeric), 0), np.int64),
        weights=weights,
        tables=[table**2 for table in tables] if original else tables,
        squared=True,
        mean=False,
    )


def ahmad_dey_deltas(codes: Sequence[Codes]) -> list[Floats]:
    """The dissimilarity of the codes of each column: ``deltas[column][a, b]``.

    Numeric columns are cut into bins. Without another column for comparison, distinct codes
    differ by 1.
    """
    levels = [int(column.max(initial=0)) + 1 for column in codes]
    deltas = []
    for this, size in enumerate(levels):
        table = np.zeros((size, size))
        for other, width in enumerate(levels):
            if other != this:
                pairs = codes[this].astype(np.int64) * width + codes[other]
                counts = np.bincount(pairs, minlength=size * width).reshape(size, width)
                table += _total_variation(counts)
        deltas.append(table / (len(levels) - 1) if len(levels) > 1 else 1.0 - np.eye(size))
    return deltas


def significance(deltas: Floats, binned: Codes) -> float:
    """The weight of a numeric column: the mean delta of two of its bins that hold records.

    A negative bin, for a missing value, does not count; with fewer than two bins it is 0.
    """
    held = np.unique(binned[binned >= 0])
    if len(held) < 2:
        return 0.0
    first, second = np.triu_indices(len(held), 1)
    return float(deltas[held[first], held[second]].mean())


def equal_width(values: Floats, bins: int) -> Codes:
    """The bin of each value, among equally wide bins between the extremes; -1 if it is NaN."""
    there = ~np.isnan(values)
    binned = np.full(len(values), -1, np.int64)
    present = values[there]
    if len(present):
        low, spread = present.min(), np.ptp(present)
        scaled = (present - low) * bins / spread if spread > 0 else np.zeros(len(present))
        binned[there] = np.minimum(scaled.astype(np.int64), bins - 1)
    return binned


def _total_variation(counts: Integers) -> Floats:
    """The value between the shares in each two rows of counts; an empty row has shares of 0."""
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    return np.array([np.abs(shares - row).sum(axis=1) / 2 for row in shares])


def _with_missing_last(codes: Codes) -> Codes:
    """Codes in which a missing value has the code after the largest."""
    return np.where(codes < 0, codes.max(initial=-1) + 1, codes)


def _only_last(deltas: Floats) -> Floats:
    """A table in which only the last code differs from others."""
    table = np.zeros_like(deltas)
    table[-1], table[:, -1] = deltas[-1], deltas[:, -1]
    return table
