"""How often the classes of one table occur in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._classes import classes_of, weight_sums, wildcard_weight_sums
from shoal.table._comparable import stacked
from shoal.table._encode import encode


def counted_in(
    sample: Sequence[pl.Series],
    population: Sequence[pl.Series],
    rows: tuple[int, int],
    *,
    wildcard: bool,
) -> npt.NDArray[np.int64]:
    """How many rows of ``population`` agree with each row of ``sample``, column by column."""
    both = [stacked(above, below) for above, below in zip(sample, population, strict=True)]
    outside = np.repeat([0.0, 1.0], rows)
    if wildcard:
        counts = wildcard_weight_sums([encode(column) for column in both], sum(rows), outside)
    else:
        counts = weight_sums(classes_of(both, sum(rows)), outside)
    return counts[: rows[0]].astype(np.int64)
