"""Equivalence classes: records with equal quasi-identifiers, grouped once and shared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._encode import Codes, Keys, Labels, combine

Scalar = TypeVar("Scalar", bound=np.generic)

_FEW_VALUES = 1 << 14  # up to this many values, sorting is as fast as hashing


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """A partition of the records by equal quasi-identifiers.

    A missing value is a value of its own here; for the other reading, see ``agreement_of``.

    Parameters
    ----------
    labels : numpy.ndarray
        The class of each record, numbered from 0 by first appearance.
    sizes : numpy.ndarray
        The number of persons of each class; the number of records if each record is a person.
    rows : numpy.ndarray
        The number of records of each class.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal.table.columns._encode import encode
    >>> classes = form_classes([encode(pl.Series("zip", [1, 2, 1, None, 1, None]))], 6)
    >>> classes
    Classes(records=6, count=3, k=1)
    >>> classes.record_sizes.tolist()
    [3, 1, 3, 2, 3, 2]
    >>> classes.histogram
    {1: 1, 2: 1, 3: 1}
    """

    labels: npt.NDArray[np.signedinteger[Any]]
    sizes: Integers
    rows: Integers = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.rows is None:
            object.__setattr__(self, "rows", self.sizes)
        for field in ("labels", "sizes", "rows"):
            frozen = getattr(self, field).view()  # the caller's own array stays writable
            frozen.flags.writeable = False
            object.__setattr__(self, field, frozen)

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.labels)

    @property
    def count(self) -> int:
        """The number of classes."""
        return len(self.sizes)

    @property
    def k(self) -> int:
        """The size of the smallest class; 0 if there are no records."""
        return int(self.sizes.min()) if self.count else 0

    @cached_property
    def first_rows(self) -> Integers:
        """The first record of each class."""
        from shoal.kernels.grouping import first_rows

        rows: Integers = first_rows(self.labels, self.count)
        rows.flags.writeable = False
        return rows

    @cached_property
    def risks(self) -> Floats:
        """The chance to find a person of each class: 1 among those who share it."""
        risks = 1.0 / self.sizes
        risks.flags.writeable = False
        return risks

    @property
    def uniques(self) -> int:
        """The number of classes with one person."""
        return int(np.count_nonzero(self.sizes == 1))

    @property
    def record_sizes(self) -> Integers:
        """The size of the class of each record."""
        return self.spread(self.sizes)

    @property
    def histogram(self) -> dict[int, int]:
        """The number of classes of each size, by ascending size."""
        sizes, numbers = np.unique(self.sizes, return_counts=True)
        return dict(zip(sizes.tolist(), numbers.tolist(), strict=True))

    def spread(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The value of each record's class, given a value for each class."""
        per_record: npt.NDArray[Scalar] = values[self.labels]
        return per_record

    def at(self, rows: Integers) -> Classes:
        """The classes of some records, in another order."""
        from shoal.kernels.grouping import group

        return Classes(*group(self.labels[rows].astype(np.uint64)))

    def __repr__(self) -> str:
        return f"Classes(records={self.records}, count={self.count}, k={self.k})"


def form_classes(parts: Iterable[Keys], rows: int, times: Integers | None = None) -> Classes:
    """Group the records by equal codes in all parts; a row may represent several records."""
    from shoal.kernels.grouping import group

    classes = Classes(*group(combine(parts, rows)))
    if times is None:
        return classes
    counts = np.bincount(classes.labels, times, classes.count).astype(np.int64)
    return Classes(classes.labels, counts)


def weights_by_class(classes: Classes, weights: npt.ArrayLike) -> Floats:
    """The sum of the sampling weights of each class."""
    from shoal.kernels.grouping import total_by

    values = np.ascontiguousarray(weights, np.float64)
    totals: Floats = total_by(classes.labels, classes.count, values)
    return totals


def agreement_of(parts: Sequence[Codes], classes: Classes) -> Agreement:
    """Which of the classes formed by the parts agree, with missing values as wildcards.

    In this reading of the statistics offices, a missing value agrees with any value, as in the
    sample frequency counts of sdcMicro's ``freqCalc`` (Templ, Kowarik & Meindl 2015, "Statistical
    Disclosure Control for Micro-Data Using the R Package sdcMicro", JSS 67(4), section 3). The
    records that agree with a record no longer form classes, because agreement is not transitive.

    Distinct tuples are compared once per pair of patterns of missing values, so the time grows with
    tuples × patterns (at most 2 to the number of columns with missing values), not with records².
    """
    from shoal.kernels.grouping import WILDCARD, dense_labels

    count = classes.count
    parts = [part.with_codes(part.codes[classes.first_rows]) for part in parts]
    if not count or all(part.missing is None for part in parts):
        return Agreement(count)
    complete = [part for part in parts if part.missing is None]
    gappy = [part for part in parts if part.missing is not None]
    gappy.sort(key=lambda part: -part.count)  # columns that differ most end comparisons early
    # Only tuples that are equal in all complete columns can agree; they form a block. In a
    # block, the tuples with wildcards in the same columns form a run.
    blocks = combine(complete, count)
    missing = ((part.codes == part.missing).view(np.uint8) for part in gappy)
    patterns = combine((Labels("", one, 2) for one in missing), count)
    order = np.lexsort((patterns, blocks))
    blocks, patterns = blocks[order], patterns[order]
    starts = np.flatnonzero((np.diff(blocks) != 0) | (np.diff(patterns) != 0)) + 1
    starts = np.concatenate(([0], starts, [count]))
    run_blocks = dense_labels(blocks[starts[:-1]])[0].astype(np.int64)
    tuples = np.empty((count, len(gappy)), np.uint32)
    for column, part in enumerate(gappy):
        tuples[:, column] = part.codes[order]
        tuples[part.codes[order] == part.missing, column] = WILDCARD
    return Agreement(count, order, tuples, starts, run_blocks)


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """Which classes agree with each other wherever neither has a missing value.

    A class agrees with itself. Agreement is not transitive, so the crowds of two classes may
    overlap without being equal. The arrays hold the classes in the order of the kernel (see
    :func:`shoal.kernels.grouping.wildcard_totals`). Without them, a class agrees only with itself.
    """

    classes: int
    order: Integers | None = None
    tuples: npt.NDArray[np.uint32] | None = None
    starts: Integers | None = None
    blocks: Integers | None = None

    @property
    def by_equality(self) -> bool:
        """Whether every class agrees only with itself."""
        return self.order is None

    def totals(self, values: Floats) -> Floats:
        """For each class, the sum of the values of all classes that agree with it."""
        from shoal.kernels.grouping import wildcard_totals

        return self._met(wildcard_totals, values)

    def largest(self, values: Floats) -> Floats:
        """For each class, the largest value of all classes that agree with it."""
        from shoal.kernels.grouping import wildcard_largest

        return self._met(wildcard_largest, values)

    def _met(self, meet: Any, values: Floats) -> Floats:
        if self.order is None:
            return values
        met = np.empty_like(values)
        met[self.order] = meet(self.tuples, self.starts, self.blocks, values[self.order])
        return met


def owned_pairs(labels: npt.NDArray[Any], owners: npt.NDArray[Any]) -> tuple[Integers, Integers]:
    """The distinct pairs of a label and an owner, by ascending label and owner."""
    width = int(owners.max(initial=0)) + 1
    pairs = np.unique(labels.astype(np.int64) * width + owners)
    return pairs // width, pairs % width


def once_per_person(weights: Floats, persons: Integers, classes: Classes) -> Floats:
    """The smallest weight of each person in each class at one of their rows; 0 at the others."""
    order = np.lexsort((weights, persons, classes.labels))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(classes.labels[order]) != 0) | (np.diff(persons[order]) != 0)
    once = np.zeros(len(weights))
    once[order[first]] = weights[order[first]]
    return once


def counting(classes: Classes, persons: Integers | None) -> Classes:
    """The classes with sizes that count persons."""
    if persons is None:
        return classes
    owned, _ = owned_pairs(classes.labels, persons)
    return Classes(classes.labels, np.bincount(owned, minlength=classes.count), classes.rows)


def histories(classes: Classes, persons: Integers, times: Integers | None = None) -> Classes:
    """The persons grouped by equal histories: the classes of all their rows, with their counts."""
    rows = pl.DataFrame({"person": persons, "class": classes.labels})
    rows = rows.with_columns(times=1 if times is None else times)
    events = rows.group_by("person", "class").agg(pl.col("times").sum()).sort("person", "class")
    known = events.group_by("person", maintain_order=True).agg("class", "times")
    alike = known.group_by("class", "times", maintain_order=True).agg("person")["person"]
    sizes = alike.list.len().to_numpy().astype(np.int64)
    labels = np.empty(known.height, np.int64)
    labels[alike.explode().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return Classes(labels, sizes)


def counted_values(values: Floats, counts: Integers | None = None) -> tuple[Floats, Integers]:
    """The distinct values, ascending, and how often each occurs."""
    from shoal.kernels.grouping import first_rows, group

    values = np.ascontiguousarray(values, np.float64)
    if len(values) > _FEW_VALUES:
        labels, sizes = group(values.view(np.uint64))
        sums = sizes if counts is None else np.bincount(labels, counts, len(sizes))
        values, counts = values[first_rows(labels, len(sizes))], sums.astype(np.int64)
    if counts is None:
        return np.unique(values, return_counts=True)
    different, places = np.unique(values, return_inverse=True)
    return different, np.bincount(places, counts, len(different)).astype(np.int64)


def exact_total(values: Floats, counts: Integers | None = None) -> float:
    """The sum of the values times their counts, rounded once."""
    each, counts = counted_values(values, counts)
    # split into 26 bits and the rest, so that a product with a count is an exact float
    high = each * (2.0**27 + 1)
    high -= high - each
    return math.fsum(np.concatenate([high * counts, (each - high) * counts]))
