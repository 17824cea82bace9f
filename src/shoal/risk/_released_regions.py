"""Released records as regions that a person may lie in or near, for attacks by the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.risk._intruder import drawn_rows
from shoal.risk._success import Integers, one_numbering
from shoal.table import Classes, ReleasedColumn, Table

if TYPE_CHECKING:
    from shoal.kernels.boxes.nearest_regions import Regions

#: So many persons are attacked at most, unless the caller wants more: ± 2 percent.
SAMPLE = 2_000


@dataclass(frozen=True, eq=False)
class Ground:
    """Some columns: the different records that were released in them, and the persons' values."""

    regions: Regions
    classes: Classes  # of the released records: those with equal cells are one region
    values: Integers  # [column, person], of the original and then of the control

    def codes(self, persons: Integers) -> Integers:
        """The values of some persons."""
        return np.ascontiguousarray(self.values[:, persons])


def ground(columns: Sequence[ReleasedColumn], masked: Table) -> Ground:
    """The released records in some columns, equal ones once."""
    from shoal.kernels.boxes.nearest_regions import Regions
    from shoal.kernels.grouping import first_rows

    classes = masked.group([column.name for column in columns])
    labels, starts, low, high = one_numbering(columns)
    counts = [len(column.places) for column in columns]
    bounds = np.cumsum([0, *(len(column.starts) for column in columns)], dtype=np.int64)
    regions = Regions(
        np.ascontiguousarray(labels[:, first_rows(classes.labels, classes.count)]),
        bounds,
        starts,
        low,
        high,
        np.concatenate([column.places for column in columns]),
        np.cumsum([0, *counts[:-1]], dtype=np.int64),
        np.array([column.ordered for column in columns]),
    )
    return Ground(regions, classes, np.stack([column.values for column in columns]))


def attacked(
    original: Table, control: Table | None, sample: int, random_state: int | None
) -> tuple[Integers, Integers | None]:
    """A row of each person to attack and, numbered after the original's, of control persons."""
    persons = drawn_rows(original, sample, random_state)
    if control is None:
        return persons, None
    return persons, len(original) + drawn_rows(control, sample, random_state)


def joint_counts(one: Classes, other: Integers) -> Integers:
    """How often each class meets each of other labels: [class, label, records]."""
    pairs = np.stack([one.labels.astype(np.int64), other])
    found, counts = np.unique(pairs, axis=1, return_counts=True)
    return np.ascontiguousarray(np.vstack([found, counts[None, :]]).astype(np.int64))
