"""What can be learned from a release: known columns coded like its records, and a model's guesses.

Training data is sorted, so the order of a table's rows and columns does not matter, and a model
with a seed makes the same guesses each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.randomness import SecretStream
from shoal.risk._options import Known
from shoal.risk.attacks._success import check_control
from shoal.risk.linkage._intruder import Intruder, drawn_persons, intruder_of, known_columns
from shoal.risk.linkage._right_links import clusters_if_repeated
from shoal.table import (
    NUMBERS,
    QUANTITIES,
    Table,
    read_labels_of,
    stacked_codes,
    stacked_table,
    usual_partners,
)

#: A number or date with more different values than this is right within a tolerance.
MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class MembersAndControl:
    """The original's persons, followed by those of a control group, if there is one.

    ``table`` holds both; the first ``members`` rows are the original's. ``own`` is each row's
    record in the masked table, or -1 if there is none or it is not known. ``persons`` holds the
    number of each row's person.
    """

    table: Table
    masked: Table
    members: int
    own: Integers
    persons: Integers


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """One column of people and of records with common codes; -1 if a value is missing.

    ``ordered``: codes follow the order of the values. ``coarser``: the records have labels that
    nobody had before, so the known values were mapped to them.
    """

    people: Integers
    records: Integers
    ordered: bool
    coarser: bool

    def of(self, rows: Integers) -> CodedColumn:
        """The same for some of the people."""
        return replace(self, people=self.people[rows])


def unpaired_intruder(
    original: Table, masked: Table, *, known: Known, sample: int, random_state: int | None
) -> Intruder:
    """An intruder as for a linkage, but rows need not be paired."""
    options: dict[str, Any] = {"sample": sample, "random_state": random_state}
    if masked.pairs_with(original):
        return intruder_of(original, masked, known=known, **options)
    if len(masked) == 0:
        raise InputError("The masked table has no records.")
    names = list(known_columns(original, masked, known))
    alone = intruder_of(original, original, known=names, **options)
    return replace(alone, masked=masked, own=np.full(len(alone.persons), -1))


def members_and_control(
    original: Table, masked: Table, control: Table | None, columns: Sequence[str]
) -> MembersAndControl:
    """The original above a control group, with each person's record if it is known."""
    own = np.full(len(original), -1)
    if masked.pairs_with(original):
        own = masked.rows_of_keys(original.row_key)
    if control is None:
        return MembersAndControl(original, masked, len(original), own, original.persons)
    check_control(control, original, columns)
    both = stacked_table(original, control, columns)
    persons = np.append(original.persons, original.person_count + control.persons)
    own = np.append(own, np.full(len(control), -1))
    return MembersAndControl(both, masked, len(original), own, persons)


def coded_column(name: str, people: MembersAndControl, *, exactly: bool = True) -> CodedColumn:
    """A column of the people, coded as in the release.

    If a column was made coarser, the intruder maps a known value to the label that most persons
    with this value got. With ``exactly``, a person's own label is used. If rows are not paired,
    labels are read.
    """
    before, after = people.table.kind(name), people.masked.kind(name)
    ordered = (before == after and before in QUANTITIES) or {before, after} <= set(NUMBERS)
    both = stacked_codes(name, people.table, people.masked)
    known, records = both[: len(people.own)], both[len(people.own) :]
    # missing ones are -1
    if ordered or np.isin(records, np.append(known[: people.members], -1)).all():
        return CodedColumn(known, records, ordered, coarser=False)
    if not (people.own >= 0).any():
        return CodedColumn(*read_labels_of(name, people.table, people.masked), False, coarser=True)
    mapped = _usual_labels(name, people, records)
    if exactly:
        mapped = np.where(people.own >= 0, records[people.own], mapped)
    return CodedColumn(mapped, records, ordered=False, coarser=True)


def _usual_labels(name: str, people: MembersAndControl, records: Integers) -> Integers:
    """For each person, the most frequent label of their value; the lowest of ties.

    A value that no released person had is replaced by the next lower one that occurs, or by the
    lowest. If it is missing or has no order, it is missing in the release too.
    """
    column = people.table.codes(name)
    codes = column.codes.astype(np.int64)
    paired = people.own >= 0
    values, found = usual_partners(codes[paired], records[people.own[paired]])
    at = np.maximum(np.searchsorted(values, codes, side="right") - 1, 0)
    comparable = np.full(len(codes), people.table.kind(name) in QUANTITIES)
    if column.missing is not None:
        comparable &= codes != column.missing
    return np.where(comparable | (values[at] == codes), found[at], -1)


@dataclass(frozen=True, eq=False)
class SecretLabels:
    """The secrets of people and records as whole numbers from 0 on, including missing ones.

    ``values`` is the number of different released secrets. ``parts`` is the number of parts, with
    about equally many persons each, that a quantity was divided into; None if a guess must be
    exact.
    """

    people: Integers
    records: Integers
    values: int
    parts: int | None


def secret_labels(name: str, people: MembersAndControl, tolerance: float) -> SecretLabels:
    """The labels of a secret: its values, or parts of the original's ranks for a quantity."""
    terms = coded_column(name, people)
    parts = None
    members = terms.people[: people.members]
    if terms.ordered and len(np.unique(members[members >= 0])) > MOST_CLASSES:
        parts = max(1, round(1 / tolerance))
        terms = _in_parts(terms, members, parts)
    missing = int(max(terms.people.max(), terms.records.max())) + 1
    labels = [np.where(codes < 0, missing, codes) for codes in (terms.people, terms.records)]
    return SecretLabels(labels[0], labels[1], len(np.unique(labels[1])), parts)


def _in_parts(terms: CodedColumn, members: Integers, parts: int) -> CodedColumn:
    """For each value, the part of the original's ranks that contains the middle of its ranks."""
    ordered = np.sort(members[members >= 0])

    def part(codes: Integers) -> Integers:
        low, high = (np.searchsorted(ordered, codes, side=side) for side in ("left", "right"))
        at = (low + high) * parts // (2 * len(ordered))
        return np.where(codes < 0, -1, np.minimum(at, parts - 1))

    return CodedColumn(part(terms.people), part(terms.records), terms.ordered, terms.coarser)


#: All models of one attack together learn from at most this many records.
LEARNT_FROM = 30_000
_LEAST_LEARNT_FROM = 5_000
#: A model learns at most this many labels, the most frequent ones; it never guesses the others.
MOST_LABELS = 100
_TREES = 20
_FOLDS = 3
_SEED = 0  # of the model, so that an attack can be repeated; it does not protect anything
_PUBLIC_KEY = "11" * 32
_MOST_INDICATORS = 1_000  # columns of zeros and ones for a learner that is not a tree
_TREES_IN = ("sklearn.tree", "sklearn.ensemble")


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model, and its results on released records that it did not learn from."""

    fitted: Any
    regresses: bool
    classes: Integers
    own_guesses: Integers | None  # for the records learned from, in their order; None: unknown
    own_labels: Integers
    warnings: tuple[str, ...]

    @property
    def own_accuracy(self) -> float | None:
        """The share of right guesses by models that did not see the record."""
        if self.own_guesses is None:
            return None
        guessed = self.own_guesses >= 0
        if not guessed.any():
            return None
        return float((self.own_guesses == self.own_labels)[guessed].mean())

    def guesses(self, features: Floats) -> Integers:
        """The label that the model predicts for each row."""
        if self.fitted is None:
            return np.full(len(features), self.classes[0])
        return _as_labels(self._call("predict", features), self.classes, self.regresses)

    def confidence(self, features: Floats, labels: Integers) -> Floats:
        """How likely each row's label is for the model: 1 is certain, 0 impossible."""
        if self.fitted is not None and self.regresses:
            span = max(float(np.ptp(self.classes)), 1.0)
            missed = np.abs(np.ravel(self._call("predict", features)) - labels)
            return 1.0 - np.minimum(missed / span, 1.0)
        if self.fitted is None or not hasattr(self.fitted, "predict_proba"):
            return (self.guesses(features) == labels).astype(np.float64)
        chances = self._call("predict_proba", features)
        at = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        believed: Floats = chances[np.arange(len(labels)), at]
        return np.where(self.classes[at] == labels, believed, 0.0)

    def _call(self, method: str, features: Floats) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _protected(getattr(self.fitted, method), features)


def learn(
    learner: Any, features: Floats, labels: Integers, persons: Integers | None = None
) -> Model:
    """Fit a model to records and labels; its error is measured on persons it has not seen."""
    estimator, regresses = _estimator(learner)
    rows = np.lexsort((labels, *features.T[::-1]))
    features, labels = features[rows], labels[rows]
    whose = [] if persons is None else clusters_if_repeated(persons[rows])
    targets = _frequent_or_rest(labels)
    classes = np.unique(targets)
    if len(classes) == 1:
        return Model(None, regresses, classes, targets, labels, ())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _protected(estimator.fit, features, targets)
        own = _own_guesses(fitted, features, targets, classes, regresses, *whose)
    stopped = any("converge" in type(one.message).__name__.lower() for one in caught)
    messages = ("The learner stopped before it converged.",) if stopped else ()
    return Model(fitted, regresses, classes, own, labels, messages)


def training_rows(masked: Table, own: Integers, models: int = 1) -> Integers:
    """The records that each model learns from: all of them, or a sample drawn by a public key.

    The sample includes the records of the persons under attack. A model of the whole table would
    have learned from them too. Without them the attack would look weaker than it is.
    """
    most = max(_LEAST_LEARNT_FROM, LEARNT_FROM // models)
    if len(masked) <= most:
        return np.arange(len(masked))
    others = np.ones(len(masked), bool)
    others[own[own >= 0]] = False
    rest = np.flatnonzero(others)
    wanted = max(most - (len(masked) - len(rest)), 0)
    if wanted:
        rest = rest[drawn_persons(masked.row_key[rest], wanted, None)]
    return np.sort(np.concatenate([np.flatnonzero(~others), rest[:wanted]]))


def _frequent_or_rest(labels: Integers) -> Integers:
    """The labels, with one new label for all rare ones; the lower ones of ties stay."""
    values, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(values) <= MOST_LABELS:
        return labels
    kept = np.zeros(len(values), bool)
    kept[np.lexsort((values, -counts))[:MOST_LABELS]] = True
    return np.where(kept[inverse], labels, values[-1] + 1)


def _estimator(learner: Any) -> tuple[Any, bool]:
    """A copy of the learner, with a seed if it takes one, and whether it predicts numbers."""
    from sklearn.base import clone, is_regressor
    from sklearn.ensemble import RandomForestClassifier

    if isinstance(learner, str) and learner == "random-forest":
        # out-of-bag guesses come with the trees, so measuring the model's error takes no time
        return RandomForestClassifier(_TREES, oob_score=True, random_state=_SEED), False
    estimator = _protected(clone, learner)
    if "random_state" in (given := estimator.get_params()) and given["random_state"] is None:
        estimator.set_params(random_state=_SEED)
    return estimator, bool(is_regressor(estimator))


def _protected(function: Any, *arguments: Any) -> Any:
    """Call a learner; replace the text of its errors, which may quote a value."""
    try:
        return function(*arguments)
    except Exception as error:
        owner = type(getattr(function, "__self__", arguments[0])).__name__
        raise InputError(
            f"The learner {owner} failed with {type(error).__name__}. Choose another learner or "
            "other parameters."
        ) from None


def _own_guesses(
    fitted: Any,
    features: Floats,
    labels: Integers,
    classes: Integers,
    regresses: bool,
    persons: Integers | None = None,
) -> Integers | None:
    """For each record, the guess of models that saw no record of its person; -1 if none exists."""
    votes = getattr(fitted, "oob_decision_function_", None)
    if votes is not None and persons is None:
        counted = ~np.isnan(votes).any(axis=1) & (votes.sum(axis=1) > 0)
        best = np.where(counted[:, None], votes, 0.0).argmax(axis=1)
        return np.where(counted, classes[best], -1)
    whose = np.arange(len(labels)) if persons is None else _numbered(persons)
    if whose.max() + 1 < 2 * _FOLDS:
        return None
    from sklearn.base import clone

    stream = SecretStream.from_key_hex(_PUBLIC_KEY).derive("folds")
    folds = (stream.permutation(int(whose.max()) + 1) % _FOLDS)[whose]
    own = np.full(len(labels), -1)
    for fold in range(_FOLDS):
        training = folds != fold
        if len(np.unique(labels[training])) == 1:
            own[~training] = labels[training][0]
            continue
        model = _protected(clone(fitted).fit, features[training], labels[training])
        guessed = _protected(model.predict, features[~training])
        own[~training] = _as_labels(guessed, classes, regresses)
    return own


def _numbered(persons: Integers) -> Integers:
    """The persons numbered by their first record, so the order of rows does not matter."""
    _, first, same = np.unique(persons, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[same]


def _as_labels(guessed: Any, classes: Integers, regresses: bool) -> Integers:
    if not regresses:
        return np.asarray(guessed).astype(np.int64)
    middles = (classes[1:] + classes[:-1]) / 2  # the nearest label
    return classes[np.searchsorted(middles, np.nan_to_num(np.ravel(guessed)))]


def features_of(columns: Sequence[CodedColumn], learner: Any) -> tuple[Floats, Floats]:
    """The records and the people as numbers, scaled by the records only.

    A value becomes its rank among the released values. A value between two of them lies between
    their ranks. A missing value, or an unreleased one without an order, is -1. Trees accept this.
    Other learners get ranks from 0 to 1 and a mark for missing values. For columns without an
    order, they get a column of zeros and ones for each frequent value.
    """
    count = len(columns[0].records)
    ranked = [_ranks(terms) for terms in columns]
    if not (isinstance(learner, str) or type(learner).__module__.startswith(_TREES_IN)):
        nominal = sum(not terms.ordered for terms in columns)
        most = int(np.clip(_MOST_INDICATORS // max(nominal, 1), 2, 50))
        ranked = [
            _scaled(ranks, count) if terms.ordered else _indicators(ranks, count, most)
            for terms, ranks in zip(columns, ranked, strict=True)
        ]
    features = np.column_stack(ranked)
    return features[:count], features[count:]


def _ranks(terms: CodedColumn) -> Floats:
    """The records above the people, by their ranks among the released values."""
    codes = np.concatenate([terms.records, terms.people])
    levels = np.unique(terms.records[terms.records >= 0])
    if len(levels) == 0:
        return np.full(len(codes), -1.0)
    at = np.searchsorted(levels, codes)
    found = levels[np.minimum(at, len(levels) - 1)] == codes
    unseen = at - 0.5 if terms.ordered else -1.0
    return np.where(codes < 0, -1.0, np.where(found, at, unseen))


def _scaled(ranks: Floats, records: int) -> Floats:
    """Ranks from 0 to 1, 0.5 if missing, and a mark for these if any record has a gap."""
    absent = ranks == -1.0
    columns = [np.where(absent, 0.5, ranks / max(float(ranks[:records].max()), 1.0))]
    if (ranks[:records] < 0).any():
        columns.append(absent.astype(np.float64))
    return np.column_stack(columns)


def _indicators(ranks: Floats, records: int, most: int) -> Floats:
    """Zeros and ones for the most frequent values; the lower rank wins a tie."""
    levels, counts = np.unique(ranks[:records], return_counts=True)
    kept = np.sort(levels[np.lexsort((levels, -counts))][:most])
    return (ranks[:, None] == kept).astype(np.float64)
