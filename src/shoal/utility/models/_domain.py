"""Test rows in the domain of the training rows: raw values under released labels, or back.

A model that learned from intervals and coarser values is asked about people as they come. How a
value was released is learned from the training persons alone, of whom both records are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.table import ends_of_members, usual_partners
from shoal.utility.models._columns import Column, Side, Values

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A code that no training row has.
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The rows of one split in both tables, and the training persons' rows in both.

    ``paired`` are rows of the original and, at the same place, of the masked table. ``place`` is
    the repeat and the fold.
    """

    train: dict[Side, Integers]
    test: dict[Side, Integers]
    paired: tuple[Integers, Integers] | None = None
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class SplitColumn:
    """A column in one domain: floats with NaN, or codes with -1, where missing."""

    name: str
    numeric: bool
    train: Values
    test: Values


def in_one_domain(column: Column, train: Side, test: Side, rows: SplitRows) -> SplitColumn | None:
    """A column of the training rows and of the test rows; None where it cannot be learned from.

    Labels of a quantity become numbers: the middle between the smallest and the largest original
    value of the training persons who have the label. Where each value has one label (a global
    recoding) a raw value becomes the middle of its own, or of the nearest value's; else it stays
    itself. A nominal value becomes the one that most training persons of that value have.
    """
    learned = column.of(train)
    if train not in column.learnable or learned is None:
        return None
    known, asked = learned[rows.train[train]], column.of(test)
    if asked is None:  # not in the tested table: missing everywhere
        blank = np.full(len(rows.test[test]), np.nan if column.numeric else -1)
        asked_of = blank if column.numeric else blank.astype(np.int64)
    else:
        asked_of = asked[rows.test[test]]
    if not column.labels or (train == test == "original"):
        return SplitColumn(column.name, column.numeric, known, asked_of)
    if rows.paired is None or column.original is None or column.masked is None:
        same = SplitColumn(column.name, False, known, asked_of)  # labels as they are
        return same if train == test else None
    before, after = column.original[rows.paired[0]], column.masked[rows.paired[1]]
    if column.numeric:
        return _as_middles(column, train, test, known, asked_of, before, after)
    if train != test:
        pairs = (before, after) if test == "original" else (after, before)
        asked_of = most_frequent(asked_of, *pairs, known)
    return SplitColumn(column.name, False, known, asked_of)


def _as_middles(
    column: Column,
    train: Side,
    test: Side,
    known: Values,
    asked: Values,
    before: Floats,
    after: Integers,
) -> SplitColumn:
    assert column.masked is not None
    middles = middles_of(after, before, int(column.masked.max(initial=-1)) + 1)
    if train == "masked":
        known = middles[known]
    if test == "masked":
        asked = middles[asked]
    elif train == "masked":
        asked = _served(asked, before, after, middles)
    return SplitColumn(column.name, True, known, asked)


def middles_of(labels: Integers, values: Floats, count: int) -> Floats:
    """For each label the middle between the ends of its values; NaN at the end, for missing.

    Examples
    --------
    >>> middles_of(np.array([0, 0, -1, 0]), np.array([20.0, 29.0, 70.0, 21.0]), 1).tolist()
    [24.5, nan]
    """
    there = (labels >= 0) & ~np.isnan(values)
    low, high = ends_of_members(labels[there], values[there], count + 1).T
    seen = low <= high
    middles = np.full(count + 1, np.nan)  # code -1 reads the last one
    middles[seen] = low[seen] / 2 + high[seen] / 2
    return middles


def _served(asked: Floats, before: Floats, after: Integers, middles: Floats) -> Floats:
    """Raw numbers under the label of the nearest known value, where each value has one label."""
    there = (after >= 0) & ~np.isnan(before)
    values, place = np.unique(before[there], return_inverse=True)
    if not len(values):
        return asked
    labels = after[there]
    first, last = np.full(len(values), len(middles)), np.full(len(values), -1)
    np.minimum.at(first, place, labels)
    np.maximum.at(last, place, labels)
    if (first != last).any():  # a local recoding: the value itself is as near as any label
        return asked
    served = np.full(len(asked), np.nan)
    present = ~np.isnan(asked)
    served[present] = middles[first[nearest(asked[present], values)]]
    return served


def nearest(asked: Floats, values: Floats) -> Integers:
    """For each number the place of the nearest of ascending values; of two, the smaller.

    Examples
    --------
    >>> nearest(np.array([0.0, 4.0, 4.1, 99.0]), np.array([2.0, 6.0])).tolist()
    [0, 0, 1, 1]
    """
    above = np.clip(np.searchsorted(values, asked), 1, max(len(values) - 1, 1))
    above = np.minimum(above, len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(asked - values[below] <= values[above] - asked, below, above)


def most_frequent(asked: Integers, source: Integers, target: Integers, known: Integers) -> Integers:
    """Codes of one table as those of another: what most pairs with the same source have.

    Of equally many the smallest. A value of which there is no pair stays itself where the other
    table knows it, and is unknown otherwise.

    Examples
    --------
    >>> source, target = np.array([0, 0, 0, 1]), np.array([7, 8, 8, 7])
    >>> most_frequent(np.array([0, 1, 2, -1]), source, target, target).tolist()
    [8, 7, -2, -1]
    """
    there = source >= 0
    sources, usual = usual_partners(source[there], target[there])
    size = int(max(asked.max(initial=-1), source.max(initial=-1))) + 1
    given = np.full(size + 1, UNKNOWN)
    kept = np.unique(known[(known >= 0) & (known < size)])
    given[kept] = kept
    given[sources] = usual
    given[-1] = -1  # missing stays missing
    return given[asked]
