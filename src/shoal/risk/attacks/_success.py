"""How much more often an attack succeeds than it would without the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Integers
from shoal.measurement import Measurement
from shoal.risk.linkage._intruder import drawn_rows
from shoal.risk.linkage._right_links import Rate, about_renamed
from shoal.table import Classes, ReleasedColumn, Table, owned_pairs, released_column, shared_persons

if TYPE_CHECKING:
    from shoal.kernels.boxes.nearest_regions import Regions
    from shoal.kernels.boxes.predicates import Runs

WITHOUT_CONTROL = (
    "No control group was passed, so the risk is only measured against blind guessing. Knowledge "
    "that holds for the whole population counts as risk too. Pass people who were not in the table "
    "as 'control'."
)
#: At most this many persons are attacked by default: ± 2 percent.
SAMPLE = 2_000


def risk_above(attack: Rate, baseline: Rate) -> tuple[float, tuple[float, float]]:
    """How much of what the baseline leaves an attack achieves, (r - b) / (1 - b), with interval.

    This is one minus the ratio of the failure rates. The interval is therefore that of a ratio of
    two shares. It is built from the two Wilson intervals by the method of variance estimates
    recovery. If the attack is worse than the baseline, the result is 0.

    References
    ----------
    Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A unified framework for quantifying privacy risk in
    synthetic data <https://doi.org/10.56553/popets-2023-0055>, equation 1. Donner, Zou (2012),
    Closed-form confidence intervals for functions of the normal mean and standard deviation,
    section 2.
    """
    fails, kept = 1.0 - attack.share, 1.0 - baseline.share
    if kept <= 0:  # blind guessing never fails: nothing is left to achieve
        return 0.0, (0.0, 1.0)
    low_fail, high_fail = (1.0 - end for end in attack.interval[::-1])
    low_kept, high_kept = (1.0 - end for end in baseline.interval[::-1])
    product = fails * kept
    least = _ratio_end(
        product, low_fail * (2 * fails - low_fail), high_kept * (2 * kept - high_kept), -1
    )
    most = _ratio_end(
        product, high_fail * (2 * fails - high_fail), low_kept * (2 * kept - low_kept), 1
    )
    value = 1.0 - fails / kept
    inside = min(1.0 - most, value), max(1.0 - least, value)
    clipped = [min(1.0, max(0.0, end)) for end in (value, *inside)]
    return clipped[0], (clipped[1], clipped[2])


def _ratio_end(product: float, above: float, below: float, sign: int) -> float:
    """One end of the interval of a ratio; unbounded if the divisor may be 0."""
    if below <= 0:
        return math.inf if sign > 0 else 0.0
    return max(0.0, (product + sign * math.sqrt(max(0.0, product**2 - above * below))) / below)


class Rates(NamedTuple):
    """How often an attack succeeds: on people in the table, blindly, and on a control group."""

    attack: Rate
    blind: Rate
    control: Rate | None = None

    @property
    def baseline(self) -> Rate:
        """What the attack must beat: blind guessing, or itself on control persons."""
        if self.control is None or self.control.share <= self.blind.share:
            return self.blind
        return self.control


@dataclass(eq=False)
class Attack:
    """The tables of an attack on a release, and what to warn of; InputError if nobody is there."""

    name: str
    original: Table
    masked: Table
    control: Table | None
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.masked) == 0 or len(self.original) == 0:
            raise InputError("An attack needs records, and one of the two tables has none.")
        if self.control is not None:
            check_control(self.control, self.original)

    def readable_columns(self, names: Sequence[str]) -> list[ReleasedColumn]:
        """The released columns among these that can be read, by name."""
        if self.control is not None:
            check_control(self.control, self.original, names)
        released = sorted(name for name in names if name in self.masked.columns)
        columns = [released_column(n, self.original, self.masked, self.control) for n in released]
        unread = [column.name for column in columns if column.reading == "nothing"]
        paired = [column.name for column in columns if column.reading == "pairs"]
        self.warnings += about_renamed(self.original, self.masked, names)
        if unread:
            self.warnings.append(
                f"The released cells of {quoted(unread)} could not be read as values, intervals or "
                "sets of the original, so the attack ignored them."
            )
        if paired:
            self.warnings.append(
                f"Some released values of {quoted(paired)} are names of groups. Each is assumed to "
                "stand for the values of the people who have it."
            )
        return [column for column in columns if column.reading != "nothing"]

    def rows(self, sample: int, random_state: int | None) -> tuple[Integers, Integers | None]:
        """One row of each person to attack, and of each control person, after the original's."""
        persons = drawn_rows(self.original, sample, random_state)
        if self.control is None:
            return persons, None
        return persons, len(self.original) + drawn_rows(self.control, sample, random_state)

    def measurement(self, rates: Rates, details: Mapping[str, Any]) -> Measurement:
        """The risk above the better of blind guessing and the attack on control persons."""
        messages = [*self.warnings]
        if rates.control is None:
            messages.append(WITHOUT_CONTROL)
        value, interval = risk_above(rates.attack, rates.baseline)
        if rates.baseline.share >= 1:
            messages.append("Blind guessing is always right, so no attack can be better.")
        elif interval[0] <= 0:
            blind = rates.baseline is rates.blind
            better = "blind guessing" if blind else "on people who were not in the table"
            messages.append(f"The attack is no better than {better}.")
        each = {"success": rates.attack, "blind": rates.blind, "control": rates.control}
        shown = {title: rate for title, rate in each.items() if rate is not None}
        facts: dict[str, Any] = {title: rate.share for title, rate in shown.items()}
        facts["intervals"] = {title: list(rate.interval) for title, rate in shown.items()}
        return Measurement(
            self.name,
            value,
            interval=interval,
            baseline=0.0,
            details={**facts, **details},
            warnings=tuple(messages),
        )

    def nothing_found(self, why: str, details: Mapping[str, Any]) -> Measurement:
        """The measurement of an attack that has nothing to work with."""
        self.warnings.append(why)
        none = Rate(0.0)
        return self.measurement(Rates(none, none, None if self.control is None else none), details)


def one_numbering(columns: Sequence[ReleasedColumn]) -> tuple[Integers, Runs]:
    """The labels of all columns in one numbering, [column, record], and their runs of codes."""
    from shoal.kernels.boxes.predicates import Runs

    labels, starts, before, runs = [], [], 0, 0
    for column in columns:
        labels.append(np.where(column.labels >= 0, column.labels + before, -1))
        starts.append(column.starts + runs)
        before, runs = before + len(column.starts), runs + len(column.low)
    low = np.concatenate([column.low for column in columns])
    high = np.concatenate([column.high for column in columns])
    return np.stack(labels), Runs(np.concatenate(starts), low, high)


def check_control(control: Table, original: Table, columns: Sequence[str] = ()) -> None:
    """Raise InputError if a control is empty, has people of the original, or lacks columns."""
    if len(control) == 0:
        raise InputError("The control group is empty; it has no persons.")
    if control.pairs_with(original) and np.isin(control.row_key, original.row_key).any():
        raise InputError(
            "Some people in the control group are in the original too. Pass people who were not in "
            "the table."
        )
    known = int(shared_persons(original, control).sum())
    if known:
        raise InputError(
            f"{known:,} rows of the control group have a unit that is in the original, so they "
            "belong to the same people. Pass people who were not in the table, with units of their "
            "own."
        )
    lacking = [name for name in columns if name not in control.columns]
    if lacking:
        raise InputError(
            f"The control group has no column {quoted(lacking)}. It needs every column that the "
            "attack uses."
        )


@dataclass(frozen=True, eq=False)
class ReleasedRegions:
    """For some columns, the different released records, and the persons' values."""

    regions: Regions
    classes: Classes  # of the released records: equal cells form one region
    values: Integers  # [column, person], the original's, then the control's

    def codes(self, persons: Integers) -> Integers:
        """The values of some persons."""
        return np.ascontiguousarray(self.values[:, persons])

    def seen_by(self, persons: Integers) -> tuple[Regions, Integers, Integers]:
        """The regions, some persons' values, and the number of records in each region."""
        return self.regions, self.codes(persons), self.classes.sizes


def released_regions(columns: Sequence[ReleasedColumn], masked: Table) -> ReleasedRegions:
    """The released records in some columns, equal ones once."""
    from shoal.kernels.boxes.nearest_regions import Regions

    classes = masked.group([column.name for column in columns])
    labels, runs = one_numbering(columns)
    counts = [len(column.places) for column in columns]
    bounds = np.cumsum([0, *(len(column.starts) for column in columns)], dtype=np.int64)
    regions = Regions(
        np.ascontiguousarray(labels[:, classes.first_rows]),
        bounds,
        runs,
        np.concatenate([column.places for column in columns]),
        np.cumsum([0, *counts[:-1]], dtype=np.int64),
        np.array([column.ordered for column in columns]),
    )
    return ReleasedRegions(regions, classes, np.stack([column.values for column in columns]))


def labels_of_persons(
    rows: Integers, owners: Integers, labels: Integers
) -> tuple[Integers, Integers]:
    """The different labels that the persons of some rows have in any of their rows.

    Each label comes after the place of its person's row, ascending. ``rows`` are of different
    persons; ``owners`` and ``labels`` are those of all rows, a label below 0 is none.
    """
    if len(np.unique(owners)) == len(owners):
        own = labels[rows]
        return np.flatnonzero(own >= 0), own[own >= 0]
    place = np.full(int(owners.max()) + 1, -1)
    place[owners[rows]] = np.arange(len(rows))
    wanted = (place[owners] >= 0) & (labels >= 0)
    return owned_pairs(place[owners[wanted]], labels[wanted])


def joint_counts(one: Classes, other: Integers, times: Integers | None = None) -> Integers:
    """How often each class occurs with each label: [class, label, records].

    ``times`` is how many records each row stands for, if not one.
    """
    pairs = np.stack([one.labels.astype(np.int64), other])
    found, which = np.unique(pairs, axis=1, return_inverse=True)
    counts = np.bincount(which.ravel(), times)
    return np.ascontiguousarray(np.vstack([found, counts[None, :]]).astype(np.int64))
