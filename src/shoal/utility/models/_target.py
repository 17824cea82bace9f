"""What is to be predicted: classes, or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table import Table, quantities, scale_name, stacked_codes
from shoal.utility.models._columns import Side, Values, is_quantity
from shoal.utility.models._learners import Task
from shoal.utility.models._splits import Integers, bands

#: A number with more different values than this is predicted as a number.
FEW_VALUES: Final = 20
#: More classes than this are no classes.
MOST_CLASSES: Final = 100


@dataclass(frozen=True, eq=False)
class Target:
    """The target in both tables: classes 0, 1, 2, … (-1 missing), or floats (NaN missing).

    ``positive`` is the rarer of two classes, by the original. ``strange`` is the number of
    masked records with a class that the original has not.
    """

    name: str
    task: Task
    original: Values
    masked: Values | None = None
    classes: int = 0
    positive: int = 1
    strange: int = 0

    def of(self, side: Side) -> Values:
        """The target in one of the tables."""
        values = self.original if side == "original" else self.masked
        assert values is not None
        return values

    def present(self, side: Side) -> npt.NDArray[np.bool_]:
        """Where it is known."""
        values = self.of(side)
        known: npt.NDArray[np.bool_] = (
            values >= 0 if self.task == "classification" else ~np.isnan(values)
        )
        return known

    def strata(self, rows: Integers, side: Side = "original") -> Integers:
        """What the folds of these rows keep in balance."""
        values = self.of(side)[rows]
        return values if self.task == "classification" else bands(values)


def natural_task(table: Table, name: str) -> Task:
    """Numbers of many values are numbers, and everything else is classes."""
    many = is_quantity(table, name) and table.distinct(name) > FEW_VALUES
    return "regression" if many else "classification"


def target_of(name: str, original: Table, masked: Table | None, task: Task) -> Target:
    """The target of both tables; refused where there is nothing to learn or to test."""
    if masked is not None and name not in masked.columns:
        raise InputError(
            f"The masked table has no column '{name}', so no model can learn this target from it."
        )
    make = _classes if task == "classification" else _numbers
    return make(name, original, masked)


def _classes(name: str, original: Table, masked: Table | None) -> Target:
    below = original if masked is None else masked
    codes = stacked_codes(name, original, below)
    found, dense = np.unique(codes, return_inverse=True)
    dense = dense.reshape(len(codes)) - int(len(found) > 0 and found[0] < 0)
    before, after = dense[: len(original)], dense[len(original) :]
    for called, values in (("original", before), ("masked table", after)):
        if (count := len(np.unique(values[values >= 0]))) < 2:
            raise InputError(
                f"The target '{name}' has {count} class{'es' * (count != 1)} in the {called}, so "
                "there is nothing to predict; name a target with at least two."
            )
    counts = np.bincount(before[before >= 0])
    classes = np.flatnonzero(counts)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The target '{name}' has {len(classes):,} classes, and {MOST_CLASSES} are the most "
            "that a model is trained for; group them, or predict a number by "
            "regression_performance."
        )
    strange = (after >= 0) & ~np.isin(after, classes)
    if strange.all():
        raise InputError(
            f"The target '{name}' has no value in the masked table that it has in the original, "
            "so predictions cannot be compared with what is true; leave the target as it is."
        )
    return Target(
        name,
        "classification",
        before,
        None if masked is None else after,
        len(classes),
        # of equally rare ones the last, which is the one that is "true" or "yes"
        int(classes[::-1][np.argmin(counts[classes][::-1])]),
        int(strange.sum()),
    )


def _numbers(name: str, original: Table, masked: Table | None) -> Target:
    values = []
    for table in (original, original if masked is None else masked):
        codes = table.codes(name)
        if not is_quantity(table, name) or scale_name(codes) != scale_name(original.codes(name)):
            raise InputError(
                f"The target '{name}' is not a number in both tables, so its error cannot be "
                "measured; predictive_performance predicts classes."
            )
        values.append(quantities(codes)[codes.codes])
        if len(codes.levels) < 2:
            raise InputError(
                f"The target '{name}' has one value at most, so there is nothing to predict."
            )
    return Target(name, "regression", values[0], None if masked is None else values[1])
