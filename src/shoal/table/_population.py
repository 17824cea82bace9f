"""How often the classes of one table occur in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._classes import classes_of, weight_sums, wildcard_weight_sums
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


def stacked(above: pl.Series, below: pl.Series) -> pl.Series:
    """One column above the other, in a type in which both can be compared."""
    if above.dtype != below.dtype:
        shared = _shared(above.dtype, below.dtype)
        above, below = (_cast(series, shared) for series in (above, below))
    return pl.concat([above, below])


def _cast(series: pl.Series, dtype: type[pl.DataType]) -> pl.Series:
    if series.dtype == pl.Duration:
        return series.dt.to_string("iso")  # has no cast to text
    return series.cast(dtype)


def _shared(one: pl.DataType, other: pl.DataType) -> type[pl.DataType]:
    """A type in which equal values of both are equal, and different ones different."""
    if one.is_integer() and other.is_integer():
        return pl.Int128
    return pl.Float64 if one.is_numeric() and other.is_numeric() else pl.String
