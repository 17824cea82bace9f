"""How often the classes of one table occur in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._classes import classes_of, weight_sums, wildcard_weight_sums
from shoal.table._comparable import stacked
from shoal.table._encode import encode
from shoal.table._persons import owned_pairs


def counted_in(
    sample: Sequence[pl.Series],
    population: Sequence[pl.Series],
    rows: tuple[int, int],
    *,
    wildcard: bool,
    persons: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """How many people of ``population`` agree with each row of ``sample``, column by column.

    Each row is one, or of one of the ``persons`` that have several. Those who agree by wildcards
    are then counted as shares of persons: no more are counted than there are.
    """
    both = [stacked(above, below) for above, below in zip(sample, population, strict=True)]
    outside = np.repeat([0.0, 1.0], rows)
    equal = np.zeros(rows[0], np.int64)
    if persons is not None:
        classes = classes_of(both, sum(rows))
        owned, _ = owned_pairs(classes.labels[rows[0] :], persons)
        equal = np.bincount(owned, minlength=classes.count)[classes.labels[: rows[0]]]
        if not wildcard:
            return equal
        outside[rows[0] :] = 1.0 / np.bincount(persons)[persons]
    if wildcard:
        counts = wildcard_weight_sums([encode(column) for column in both], sum(rows), outside)
    else:
        counts = weight_sums(classes_of(both, sum(rows)), outside)
    counts = counts[: rows[0]]
    least = np.maximum(equal, counts > 0)  # whoever has a part of a row in it is somebody
    return np.maximum(np.floor(counts + 1e-9).astype(np.int64), least)
