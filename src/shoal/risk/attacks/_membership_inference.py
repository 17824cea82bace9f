"""Membership inference: whether a person was in the table behind a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from shoal.errors import InputError, did_you_mean
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import OneOf
from shoal.risk._options import ColumnName, Control, Count, Draw, Known, Learner, risk
from shoal.risk.attacks._learnt_guesses import (
    MembersAndControl,
    coded_column,
    features_of,
    learn,
    members_and_control,
    secret_labels,
    training_rows,
    unpaired_intruder,
)
from shoal.risk.linkage._intruder import SAMPLE, drawn_rows, is_quantity, mixed_rows
from shoal.risk.linkage._right_links import wilson
from shoal.table import Table, stacked_numbers

if TYPE_CHECKING:
    from shoal.kernels.space.mixed_records import MixedRecords


MembershipAttack = Annotated[Literal["distance", "model"], OneOf(("distance", "model"))]

_TOLERANCE = 0.1  # the share of a quantity's ranks that a model predicts as one value


@risk(
    "chance of telling a member from others",
    on_request="it needs people who were not in the table, as control, to know how near such "
    "people come to a release",
)
def membership_inference(
    original: Table,
    masked: Table,
    *,
    control: Control = None,
    known: Known = None,
    attack: MembershipAttack = "distance",
    target: ColumnName = None,
    learner: Learner = "random-forest",
    sample: Count = SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """The chance that a person in the table looks more like a member than one who was not in it.

    The intruder knows some columns of a person and wants to know whether the person was in the
    original. The attack scores each person by how near the nearest released record is, or by how
    sure a model trained on the release is of the person's true target. It scores members and a
    control group. The value is the area under the ROC curve: the chance that a member scores higher
    than a person in the control group, with equal scores counted half. Blind guessing reaches 0.5.
    If a person has several records, one of them is known, drawn by a public key.

    The details hold the advantage (members found minus others mistaken for members, at the best
    threshold), accuracy and precision for equally many members and others, and the share of members
    found when 1 % of the others are mistaken for members. A precision of 0.5 is blind guessing.

    Parameters
    ----------
    original : Table
        The table before masking. Its people are the members, released or not.
    masked : Table
        The table after masking.
    control : Table
        People of the same population who were not in the original, with the same columns. Required.
    known : list of str or str, optional
        The columns that the intruder knows: a list of names or, as for a linkage,
        ``"left-in-place"``, ``"informed"`` or ``"everything"``. Default: the quasi-identifiers.
    attack : {"distance", "model"}
        Attack the release, by the nearest record, or a model trained on the release.
    target : str, optional
        The column that the model predicts. The intruder knows it too. Default: the original's
        target, or else its first sensitive column.
    learner : "random-forest" or estimator
        The model: any scikit-learn classifier or regressor.
    sample : int
        At most this many people of the table, and of the control group, are scored.
    random_state : int, optional
        Another number draws another sample of people. It is not a secret.

    References
    ----------
    Yeom, Giacomelli, Fredrikson, Jha (2018), Privacy risk in machine learning: analyzing the
    connection to overfitting <https://doi.org/10.1109/CSF.2018.00027>. Carlini et al. (2022),
    Membership inference attacks from first principles
    <https://doi.org/10.1109/SP46214.2022.9833649> (few false alarms). Senavirathne, Torra (2021),
    Dissecting membership inference risk in machine learning
    <https://doi.org/10.1007/978-3-030-94029-4_3> (precision).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> roles = Roles(quasi_identifiers=["age", "height"])
    >>> table = Table(pl.DataFrame({"age": [30, 41, 58], "height": [160, 174, 181]}), roles)
    >>> others = Table(pl.DataFrame({"age": [33, 41, 62], "height": [168, 170, 190]}), roles)
    >>> membership_inference(table, table, control=others).value
    1.0
    """
    if control is None:
        raise InputError(
            "Membership inference compares members with people who were not in the table. Pass "
            "them as 'control'."
        )
    intruder = unpaired_intruder(
        original, masked, known=known, sample=sample, random_state=random_state
    )
    goal = _target(original, masked, control, target) if attack == "model" else None
    hints = [name for name in intruder.released if name != goal]
    people = members_and_control(original, masked, control, [*hints, *([goal] if goal else [])])
    others = drawn_rows(control, sample, random_state)
    rows = np.concatenate([intruder.persons, len(original) + others])
    if not hints:
        scores, warnings = np.zeros(len(rows)), ["No column that the intruder knows was released."]
    elif goal is None:
        scores, warnings = -_gaps(people, hints, rows), []
    else:
        scores, warnings = _confidence(people, hints, goal, learner, rows)
    found = Separation(scores[: len(intruder.persons)], scores[len(intruder.persons) :])
    if found.interval[0] <= 0.5:
        warnings.append("The attack distinguishes members from others no better than by guessing.")
    if found.interval[1] < 0.5:
        warnings.append(
            "Members score lower than others. An intruder who takes low scores for members is "
            "right more often than by guessing."
        )
    per_record = np.full(len(original), np.nan)
    per_record[intruder.persons] = found.shares_below
    return Measurement(
        "membership_inference",
        found.area,
        interval=found.interval,
        baseline=0.5,
        per_record=per_record,
        details={
            "persons": len(intruder.persons),
            "control": len(others),
            "records": len(masked),
            "attack": attack,
            "known": hints,
            **({"target": goal} if goal else {}),
            **found.facts(),
        },
        warnings=tuple(warnings),
    )


def _gaps(people: MembersAndControl, hints: Sequence[str], rows: Integers) -> Floats:
    """The distance from each of some people to the nearest released record."""
    from shoal.kernels.linkage.mixed_linkage import NearestRecords

    records = _records(people, hints, rows)
    candidates = np.arange(len(rows), records.values.shape[1])
    link = NearestRecords(records, np.arange(len(rows)), candidates)
    while link.advance() < len(rows):
        pass  # in portions, so that ctrl-C stops it
    return link.gaps


def _records(people: MembersAndControl, hints: Sequence[str], rows: Integers) -> MixedRecords:
    """The people, then the masked records, equal ones once, by Gower with the original's ranges."""
    values, codes, weights = [], [], []
    crowds = people.masked.group(hints)
    taken = np.concatenate([rows, len(people.own) + crowds.first_rows])
    for name in hints:
        if is_quantity(name, people.table, people.masked):
            column = stacked_numbers(name, people.table, people.masked)
            members = column[: people.members]
            span = np.nanmax(members) - np.nanmin(members) if not np.isnan(members).all() else 0.0
            weights.append(1.0 / span if span > 0 else 0.0)
            values.append(column[taken])
        else:
            # members and others are mapped to coarser values in the same way, so that no label
            # reveals members
            terms = coded_column(name, people, exactly=False)
            codes.append(np.concatenate([terms.people, terms.records])[taken])
    return mixed_rows(values, codes, len(taken), np.array(weights, np.float64))


def _confidence(
    people: MembersAndControl, hints: Sequence[str], goal: str, learner: Any, rows: Integers
) -> tuple[Floats, list[str]]:
    """How certain a model trained on the release is about each person's own target."""
    labels = secret_labels(goal, people, _TOLERANCE)
    columns = [coded_column(name, people, exactly=False) for name in sorted(hints)]
    records, everybody = features_of([terms.of(rows) for terms in columns], learner)
    training = training_rows(people.masked, people.own[rows])
    model = learn(
        learner, records[training], labels.records[training], people.masked.persons[training]
    )
    return model.confidence(everybody, labels.people[rows]), list(model.warnings)


def _target(original: Table, masked: Table, control: Table, target: Any) -> str:
    """The column that the model predicts."""
    if target is None:
        target = original.roles.target or next(iter(original.roles.sensitive), None)
        if target is None:
            raise InputError(
                "The original has neither a target nor a sensitive column for a model to predict. "
                "Name a column as 'target'."
            )
    if target not in original.columns:
        raise InputError(
            f"The target must be a column of the original. {did_you_mean(target, original.columns)}"
        )
    if target not in masked.columns:
        raise InputError(f"The target '{target}' was not released, so no model can learn it.")
    return target


_FALSE_ALARMS = 0.01  # the share of others that a cautious intruder may mistake for members


@dataclass(frozen=True, eq=False)
class Separation:
    """Scores of members and others (DeLong et al. 1988; bounds by Birnbaum and Klose 1957)."""

    members: Floats
    others: Floats

    @property
    def shares_below(self) -> Floats:
        """For each member, the share of others who score lower; equal scores count half."""
        return _shares_below(self.members, self.others)

    @property
    def area(self) -> float:
        """The chance that a member outscores a non-member: the area under the ROC curve."""
        return float(self.shares_below.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The area's 95 % Wilson interval, with the number of trials from DeLong's variance.

        The number is at least the size of the smaller group, which bounds the variance from above.
        This also holds if the groups do not overlap and DeLong's variance is 0.
        """
        area, trials = self.area, float(min(len(self.members), len(self.others)))
        above = _shares_below(-self.others, -self.members)
        variance = _variance_of_mean(self.shares_below) + _variance_of_mean(above)
        if variance > 0:
            trials = max(trials, area * (1 - area) / variance)
        return wilson(area, trials)

    def facts(self) -> dict[str, Any]:
        """What thresholds of the score achieve, for equally many members and others.

        The advantage uses the best threshold for these people. Accuracy and precision use
        thresholds found with other people, so they are not flattered.
        """
        found, alarms = _rates(self.members, self.others, self._thresholds)
        right, false = self._rates_out_of_half()
        return {
            "area": self.area,
            "advantage": float((found - alarms).max()),
            "accuracy": (1 + right - false) / 2,
            "precision": right / (right + false) if right + false > 0 else None,
            "base_rate": 0.5,
            "found_at_1_percent_false_alarms": float(found[alarms <= _FALSE_ALARMS].max()),
        }

    @property
    def _thresholds(self) -> Floats:
        return np.append(np.unique(np.concatenate([self.members, self.others])), np.inf)

    def _best_threshold(self) -> Floats:
        at = self._thresholds
        best = np.argmax(np.subtract(*_rates(self.members, self.others, at)))
        return at[[best]]

    def _rates_out_of_half(self) -> tuple[float, float]:
        """The shares of members and others called members, by thresholds from the other half."""
        halves = [Separation(self.members[i::2], self.others[i::2]) for i in (0, 1)]
        if not all(len(half.members) and len(half.others) for half in halves):
            return 0.0, 0.0  # nothing to learn from: nobody is called a member
        rates = [
            _rates(half.members, half.others, teacher._best_threshold())
            for half, teacher in (halves, halves[::-1])
        ]
        found, alarms = np.mean(rates, axis=(0, 2)).tolist()
        return found, alarms


def _rates(members: Floats, others: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """The shares of members and others who score at least each threshold."""
    shares = [
        1.0 - np.searchsorted(np.sort(scores), thresholds, side="left") / len(scores)
        for scores in (members, others)
    ]
    return shares[0], shares[1]


def _shares_below(scores: Floats, others: Floats) -> Floats:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    up_to = np.searchsorted(ordered, scores, side="right")
    return (below + up_to) / (2 * len(ordered))


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
