"""How often the classes of one table occur in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._classes import Classes, agreement_of, form_classes, weights_by_class
from shoal.table._column import Column, in_one_code
from shoal.table._encode import Codes
from shoal.table._persons import owned_pairs


def counted_in(
    sample: Sequence[Column],
    population: Sequence[Column],
    classes: tuple[Classes, Classes],
    *,
    wildcard: bool,
    persons: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """How many people of ``population`` agree with each class of ``sample``, column by column.

    The two ``classes`` are those of the sample and of the population by these columns. Each row
    is one person, or of one of the ``persons`` that have several. Those who agree by wildcards are
    then counted as shares of persons: no more are counted than there are.
    """
    mine, theirs = classes
    both = [
        stacked_code(above, below, [_first(part) for part in classes])
        for above, below in zip(sample, population, strict=True)
    ]
    joint = form_classes(both, mine.count + theirs.count)
    asked, met = joint.labels[: mine.count], joint.labels[mine.count :]
    # values that differ in one table may be equal beside those of another: large whole numbers
    people = np.bincount(met, theirs.rows, joint.count).astype(np.float64)
    equal = people[asked].astype(np.int64)
    if persons is not None:
        owned, _ = owned_pairs(met[theirs.labels], persons)
        equal = np.bincount(owned, minlength=joint.count)[asked]
        shares = weights_by_class(theirs, 1.0 / np.bincount(persons)[persons])
        people = np.bincount(met, shares, joint.count).astype(np.float64)
    if not wildcard:
        return equal
    counts = agreement_of(both, joint).totals(people)[asked]
    # whoever has a part of a row in it is somebody
    least = np.maximum(0 if persons is None else equal, counts > 0)
    return np.maximum(np.floor(counts + 1e-9).astype(np.int64), least)


def _first(classes: Classes) -> npt.NDArray[np.int64]:
    from shoal.kernels.grouping import first_rows

    rows: npt.NDArray[np.int64] = first_rows(classes.labels, classes.count)
    return rows


def stacked_code(above: Column, below: Column, rows: Sequence[npt.NDArray[np.int64]]) -> Codes:
    """Some rows of one column above those of another, in codes that both share.

    Examples
    --------
    >>> above, below = Column(pl.Series([2, None])), Column(pl.Series([1.5, 2.0]))
    >>> both = stacked_code(above, below, [np.arange(2), np.arange(2)])
    >>> both.codes.tolist(), both.missing
    ([1, 2, 0, 1], 2)
    """
    upper, lower = in_one_code(above, below)
    codes = np.concatenate([upper[above.codes.codes[rows[0]]], lower[below.codes.codes[rows[1]]]])
    count = int(max(upper.max(initial=-1), lower.max(initial=-1))) + 1
    missing = bool((codes < 0).any())
    codes[codes < 0] = count
    levels = pl.Series(above.name, range(count), dtype=pl.Int64)
    return Codes(codes.astype(np.uint64), levels, count if missing else None)
