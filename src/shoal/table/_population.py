"""How often the classes of one table occur in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._classes import agreement_of, form_classes, weights_by_class
from shoal.table._column import Column, in_one_code
from shoal.table._encode import Codes
from shoal.table._persons import owned_pairs


def counted_in(
    sample: Sequence[Column],
    population: Sequence[Column],
    rows: tuple[int, int],
    *,
    wildcard: bool,
    persons: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """How many people of ``population`` agree with each row of ``sample``, column by column.

    Each row is one, or of one of the ``persons`` that have several. Those who agree by wildcards
    are then counted as shares of persons: no more are counted than there are.
    """
    both = [stacked_code(above, below) for above, below in zip(sample, population, strict=True)]
    classes = form_classes(both, sum(rows))
    outside = np.repeat([0.0, 1.0], rows)
    equal = np.zeros(rows[0], np.int64)
    if persons is not None:
        owned, _ = owned_pairs(classes.labels[rows[0] :], persons)
        equal = np.bincount(owned, minlength=classes.count)[classes.labels[: rows[0]]]
        if not wildcard:
            return equal
        outside[rows[0] :] = 1.0 / np.bincount(persons)[persons]
    totals = weights_by_class(classes, outside)
    if wildcard:
        totals = agreement_of(both, classes).totals(totals)
    counts = totals[classes.labels[: rows[0]]]
    least = np.maximum(equal, counts > 0)  # whoever has a part of a row in it is somebody
    return np.maximum(np.floor(counts + 1e-9).astype(np.int64), least)


def stacked_code(above: Column, below: Column) -> Codes:
    """The rows of one column above those of another, in codes that both share.

    Examples
    --------
    >>> above, below = Column(pl.Series([2, None])), Column(pl.Series([1.5, 2.0]))
    >>> both = stacked_code(above, below)
    >>> both.codes.tolist(), both.missing
    ([1, 2, 0, 1], 2)
    """
    upper, lower = in_one_code(above, below)
    codes = np.concatenate([upper[above.codes.codes], lower[below.codes.codes]])
    count = int(max(upper.max(initial=-1), lower.max(initial=-1))) + 1
    missing = bool((codes < 0).any())
    codes[codes < 0] = count
    levels = pl.Series(above.name, range(count), dtype=pl.Int64)
    return Codes(codes.astype(np.uint64), levels, count if missing else None)
