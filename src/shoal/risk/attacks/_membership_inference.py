"""Membership inference: whether a person was in the table that a release was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from shoal.errors import InputError, did_you_mean
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement, measure
from shoal.parameters import OneOf
from shoal.risk._options import ColumnName, Control, Count, Draw, Known, Learner
from shoal.risk.attacks._learnt_guesses import (
    MembersAndControl,
    coded_column,
    features_of,
    learn,
    learnt_rows,
    members_and_control,
    secret_labels,
    unpaired_intruder,
)
from shoal.risk.linkage._compared import is_quantity
from shoal.risk.linkage._intruder import SAMPLE, drawn_rows
from shoal.risk.linkage._right_links import wilson
from shoal.table import Table, stacked_numbers

if TYPE_CHECKING:
    from shoal.kernels.space.mixed_records import MixedRecords


MembershipAttack = Annotated[Literal["distance", "model"], OneOf(("distance", "model"))]

_TOLERANCE = 0.1  # the part of a quantity's ranks that a model predicts as one value


@measure(
    "chance that a member is told from others",
    direction="lower",
    limits=(0, 1),
    on_request="it needs persons who were not in the table, as control; nothing else says how "
    "near such persons come to a release",
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
    """The chance that a person of the table looks more like a member than one who was not in it.

    The intruder knows columns of a person and asks whether the person was in the original. The
    attack gives each person a score: how near the nearest released record is, or how sure a
    model that was trained on the release is of the person's true target. Members and a control
    group are scored, and the value is the area under the ROC curve: the chance that a member
    scores higher than a person of the control group, with equal scores counted half. Blind
    guessing gives 0.5. Of a person who has several records one is known, drawn by a public key.

    The details have the advantage (members found minus others taken for members, at the best
    threshold), accuracy and precision for as many members as others, and the share of members who
    are found when 1 % of the others are. Precision has a base rate of 0.5 by construction: a
    precision near 0.5 means that nothing is learnt, and is no achievement of the masking.

    Parameters
    ----------
    original : Table
        The table before masking; its persons are the members, released or not.
    masked : Table
        The table after masking.
    control : Table
        Persons of the same population who were not in the original, with the same columns.
        Without them there is nothing to measure.
    known : list of str or str, optional
        The columns that the intruder knows, by name or as for a linkage by a word
        (``"left-in-place"``, ``"informed"``, ``"everything"``); the quasi-identifiers without it.
    attack : {"distance", "model"}
        Against the release, by the nearest record, or against a model trained on it.
    target : str, optional
        What the model predicts, and the intruder knows too; the target of the original, or its
        first sensitive column, without it.
    learner : "random-forest" or estimator
        The model; any classifier or regressor of scikit-learn.
    sample : int
        So many persons of the table, and of the control group, are scored at most.
    random_state : int, optional
        Gives another sample of persons. It is no secret.

    References
    ----------
    Yeom, Giacomelli, Fredrikson, Jha (2018), Privacy risk in machine learning: analyzing the
    connection to overfitting. Carlini et al. (2022), Membership inference attacks from first
    principles (few false alarms). Senavirathne, Torra (2021), Dissecting anonymization for mixed
    data (precision).

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
            "Membership is judged against persons who were not in the table; give them as control."
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
        scores, warnings = np.zeros(len(rows)), ["Nothing that the intruder knows was released."]
    elif goal is None:
        scores, warnings = -_gaps(people, hints, rows), []
    else:
        scores, warnings = _confidence(people, hints, goal, learner, rows)
    found = Separation(scores[: len(intruder.persons)], scores[len(intruder.persons) :])
    if found.interval[0] <= 0.5:
        warnings.append("Members are told from others no better than by guessing.")
    if found.interval[1] < 0.5:
        warnings.append(
            "Members score lower than others: whoever takes low scores for members is right more "
            "often than by guessing."
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
    """How unlike the nearest released record is to each of some people."""
    from shoal.kernels.linkage.mixed_linkage import NearestRecords

    records = _records(people, hints, rows)
    candidates = np.arange(len(rows), records.values.shape[1])
    link = NearestRecords(records, np.arange(len(rows)), candidates)
    while link.advance() < len(rows):
        pass  # in portions, so that ctrl-C stops it
    return link.gaps


def _records(people: MembersAndControl, hints: Sequence[str], rows: Integers) -> MixedRecords:
    """The people, then the masked records, equal ones once, by Gower with the original's ranges."""
    from shoal.kernels.space.mixed_records import mixed_records

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
            # members and others are mapped to coarser values alike: no label gives members away
            terms = coded_column(name, people, exactly=False)
            codes.append(np.concatenate([terms.people, terms.records])[taken])
    return mixed_records(
        np.array(values, np.float64).reshape(len(values), len(taken)).T,
        np.array(codes, np.int64).reshape(len(codes), len(taken)).T,
        weights=np.array(weights, np.float64),
    )


def _confidence(
    people: MembersAndControl, hints: Sequence[str], goal: str, learner: Any, rows: Integers
) -> tuple[Floats, list[str]]:
    """How sure a model that was trained on the release is of each person's own target."""
    labels = secret_labels(goal, people, _TOLERANCE)
    columns = [coded_column(name, people, exactly=False) for name in sorted(hints)]
    records, everybody = features_of([terms.of(rows) for terms in columns], learner)
    taught = learnt_rows(people.masked, people.own[rows])
    model = learn(learner, records[taught], labels.records[taught], people.masked.persons[taught])
    return model.confidence(everybody, labels.people[rows]), list(model.warnings)


def _target(original: Table, masked: Table, control: Table, target: Any) -> str:
    """The column that the model predicts."""
    if target is None:
        target = original.roles.target or next(iter(original.roles.sensitive), None)
        if target is None:
            raise InputError(
                "The original has neither a target nor a sensitive column that a model could "
                "predict; name one as target."
            )
    if target not in original.columns:
        raise InputError(
            f"The target must be a column of the original. {did_you_mean(target, original.columns)}"
        )
    if target not in masked.columns:
        raise InputError(f"The target '{target}' was not released, so no model can learn it.")
    return target


_FALSE_ALARMS = 0.01  # the share of others that somebody may take for members who must be sure


@dataclass(frozen=True, eq=False)
class Separation:
    """Scores of members and others (DeLong et al. 1988; bounds by Birnbaum and Klose 1957)."""

    members: Floats
    others: Floats

    @property
    def shares_below(self) -> Floats:
        """For each member the share of the others who score lower; equal ones count half."""
        return _shares_below(self.members, self.others)

    @property
    def area(self) -> float:
        """The chance that a member scores higher than another: the area under the ROC curve."""
        return float(self.shares_below.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Of the area, 95 %: Wilson's, with as many trials as DeLong's variance is worth.

        They are at least the smaller group, since no variance is larger than with so many; this
        holds where the groups are apart too, and DeLong's variance is 0.
        """
        area, trials = self.area, float(min(len(self.members), len(self.others)))
        above = _shares_below(-self.others, -self.members)
        variance = _variance_of_mean(self.shares_below) + _variance_of_mean(above)
        if variance > 0:
            trials = max(trials, area * (1 - area) / variance)
        return wilson(area, trials)

    def facts(self) -> dict[str, Any]:
        """What thresholds of the score are worth, for as many members as others.

        The advantage is of the best threshold for these very people. Accuracy and precision are of
        thresholds that were found with other people, so that they are not flattered.
        """
        found, alarms = _rates(self.members, self.others, self._thresholds())
        right, false = self._rates_out_of_half()
        return {
            "area": self.area,
            "advantage": float((found - alarms).max()),
            "accuracy": (1 + right - false) / 2,
            "precision": right / (right + false) if right + false > 0 else None,
            "base_rate": 0.5,
            "found_at_1_percent_false_alarms": float(found[alarms <= _FALSE_ALARMS].max()),
        }

    def _thresholds(self) -> Floats:
        return np.append(np.unique(np.concatenate([self.members, self.others])), np.inf)

    def _best_threshold(self) -> float:
        at = self._thresholds()
        found, alarms = _rates(self.members, self.others, at)
        return float(at[np.argmax(found - alarms)])

    def _rates_out_of_half(self) -> tuple[float, float]:
        """The shares of members and of others called members, by what the other half taught."""
        halves = [Separation(self.members[i::2], self.others[i::2]) for i in (0, 1)]
        if not all(len(half.members) and len(half.others) for half in halves):
            return 0.0, 0.0  # nothing to learn from: nobody is called a member
        rates = [
            _rates(half.members, half.others, np.array([teacher._best_threshold()]))
            for half, teacher in (halves, halves[::-1])
        ]
        return (
            float(np.mean([found for found, _ in rates])),
            float(np.mean([alarms for _, alarms in rates])),
        )


def _rates(members: Floats, others: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """The shares of members and of others who score at least so much."""
    shares = [
        1.0 - np.searchsorted(np.sort(scores), thresholds, side="left") / len(scores)
        for scores in (members, others)
    ]
    return shares[0], shares[1]


def _shares_below(scores: Floats, others: Floats) -> Floats:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    up_to = np.searchsorted(ordered, scores, side="right")
    shares: Floats = (below + up_to) / (2 * len(ordered))
    return shares


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
