"""The same learner, trained on the original and on the masked table, split by split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import DoesNotApply, InputError, quoted
from shoal.parameters import ColumnNames, Fits, Integer, OneOf, Real, Text
from shoal.table import Table, shared_persons, stacked_table
from shoal.utility.models._columns import (
    Column,
    Side,
    Target,
    Task,
    columns_of,
    natural_task,
    target_of,
)
from shoal.utility.models._domain import SplitRows
from shoal.utility.models._evaluation import Attempt, Floats, attempt, features_of_model
from shoal.utility.models._learners import Chosen, chosen_learner
from shoal.utility.models._scores import CLASSIFICATION_SCORES
from shoal.utility.models._splits import Fold, Integers, stratified_folds, stratified_sample


def _is_learner(value: Any) -> bool:
    name = value.get("name") if isinstance(value, Mapping) else value
    return Text().accepts(name) or callable(getattr(value, "fit", None))


_LEARNER = Fits(
    "the name of a learner, a mapping with such a name and parameters, or an estimator of "
    "scikit-learn",
    _is_learner,
)
_ROWS = Fits(
    "a shoal.Table of original rows that were never masked",
    lambda value: isinstance(value, Table),
    in_plan=False,
)

# The options of the measures that learn, as they declare them.
Learner = Annotated[Any, _LEARNER]
ColumnName = Annotated[str | None, Text()]
ClassScore = Annotated[str, OneOf(tuple(CLASSIFICATION_SCORES))]
OneSide = Annotated[Side, OneOf(("masked", "original"))]
Features = Annotated[Sequence[str] | None, ColumnNames()]
Splits = Annotated[int, Integer(2)]
Repeats = Annotated[int, Integer(1)]
TestShare = Annotated[float | None, Real(above=0, below=1)]
HoldOut = Annotated[Table | None, _ROWS]
Persons = Annotated[int, Integer(10)]
Draw = Annotated[int, Integer(0)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is asked of a learner and two tables."""

    learner: Any
    target: str | None
    train: Side
    test: Side
    features: Sequence[str] | None
    weight: str | None
    splits: int
    repeats: int
    test_share: float | None
    holdout: Table | None
    sample: int
    random_state: int

    def run(self, original: Table, masked: Table, task: Task) -> Outcome:
        """Train and test on every split: what was asked for, and the original against itself."""
        if not len(original) or not len(masked):
            raise InputError("A table without records has nothing to learn from.")
        if self.holdout is not None and self.test == "masked":
            raise InputError("A hold-out was never masked, so it cannot be a masked test.")
        name = self._target_name(original, task)
        features = [
            column
            for column in features_of_model(original, name, self.features)
            if column != self.weight
        ]
        chosen = chosen_learner(self.learner, task, self.random_state)
        before = with_holdout(original, self.holdout, [*features, name])
        target = target_of(name, before, masked, task)
        columns = columns_of(before, masked, features)
        splits = arranged(
            target,
            original,
            masked,
            self,
            untouched=None if self.holdout is None else before,
        )
        weights: dict[Side, Floats | None] = {
            "original": self._weights(original, chosen),
            "masked": self._weights(masked, chosen),
        }

        def attempts(train: Side, test: Side) -> list[Attempt]:
            return [
                attempt(
                    chosen, columns, target, split, train=train, test=test, weights=weights[train]
                )
                for split in splits
            ]

        baselines = attempts("original", "original")
        same = self.train == self.test == "original"
        return Outcome(
            self,
            chosen,
            target,
            columns,
            baselines if same else attempts(self.train, self.test),
            baselines,
            matched=masked.pairs_with(original) or self.holdout is not None,
            persons=before.persons,
            split=splits[0],
        )

    def _target_name(self, original: Table, task: Task) -> str:
        name = original.roles.target if self.target is None else self.target
        if name is None:
            raise InputError(
                "Nothing says what is to be predicted; declare a target in the roles, or name one."
            )
        natural = natural_task(original, name)
        if self.target is None and natural != task:
            other = f"{'regression' if natural == 'regression' else 'predictive'}_performance"
            kind = "a number of many values" if natural == "regression" else "of few values"
            raise DoesNotApply(
                f"The target '{name}' is {kind}, which {other} measures: ask for that (on the "
                f"command line, --utility {other}), or name the column as the option 'target' of "
                "this measure to predict it all the same."
            )
        return name

    def _weights(self, table: Table, chosen: Chosen) -> Floats | None:
        from sklearn.utils.validation import has_fit_parameter

        if self.weight is None:
            return None
        if not has_fit_parameter(chosen.estimator, "sample_weight"):
            raise InputError(f"The learner '{chosen.name}' takes no weights; leave weight out.")
        numbers = table.numbers(self.weight)
        values = numbers.values.astype(np.float64)
        bad = int((~numbers.present | (values < 0)).sum())
        if bad:
            raise InputError(
                f"The weight '{self.weight}' is missing or below 0 in {bad:,} records; models "
                "need a weight for every record."
            )
        return values

    def folds(self, strata: Integers, row_key: Integers, persons: Integers) -> list[Fold]:
        """The folds of a sample, as places among all."""
        drawn = self.drawn(strata, row_key, persons)
        folds = stratified_folds(
            strata[drawn],
            row_key[drawn],
            persons[drawn],
            splits=self.splits,
            repeats=self.repeats,
            test_share=self.test_share,
            random_state=self.random_state,
        )
        return [Fold(f.repeat, f.number, drawn[f.train], drawn[f.test]) for f in folds]

    def drawn(self, strata: Integers, row_key: Integers, persons: Integers) -> Integers:
        """The places of the rows of the persons who take part."""
        return stratified_sample(
            strata, row_key, self.sample, persons, random_state=self.random_state
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """The attempts that were asked for, and beside each that of the original against itself.

    ``matched`` says that both were tested on the same persons. ``persons`` has the number of the
    person of each row of the original, and of the hold-out below it; ``split`` is the first one.
    """

    asked: Comparison
    chosen: Chosen
    target: Target
    columns: Sequence[Column]
    attempts: list[Attempt]
    baselines: list[Attempt]
    matched: bool
    persons: Integers
    split: SplitRows


def with_holdout(original: Table, holdout: Table | None, columns: list[str]) -> Table:
    """The original, with the rows of a hold-out below it."""
    if holdout is None:
        return original
    absent = [name for name in columns if name not in holdout.columns]
    if absent or not len(holdout):
        raise InputError(
            f"The hold-out has no column {quoted(absent)}; it needs the target and all columns "
            "that a model learns from, as they are in the original."
            if absent
            else "The hold-out has no rows, so nothing can be tested on it."
        )
    if holdout.pairs_with(original):
        shared = int(np.isin(holdout.row_key, original.row_key).sum())
        if shared:
            raise InputError(
                f"The hold-out shares {shared:,} rows with the original, so models would be "
                "tested on what they learned from; keep its rows out of the masking."
            )
    known = int(shared_persons(original, holdout).sum())
    if known:
        raise InputError(
            f"{known:,} rows of the hold-out are of persons who have rows in the original by their "
            "unit, so models would be asked about people that they know; keep a person on one side."
        )
    both = stacked_table(original, holdout, columns)
    if not original.has_persons and not holdout.has_persons:
        return both
    return both.owned_by(np.append(original.persons, original.person_count + holdout.persons))


def own_rows(original: Table, masked: Table) -> Integers | None:
    """For each row of the original its row in the masked table, -1 where it has none."""
    if not masked.pairs_with(original):
        return None
    order = np.argsort(masked.row_key)
    if not len(order):
        return np.full(len(original), -1)
    at = np.searchsorted(masked.row_key[order], original.row_key)
    found = order[np.minimum(at, len(order) - 1)]
    return np.where(masked.row_key[found] == original.row_key, found, -1)


def arranged(
    target: Target,
    original: Table,
    masked: Table,
    splitting: Comparison,
    *,
    untouched: Table | None = None,
) -> list[SplitRows]:
    """The splits of both tables.

    Persons are split, and all records of a person in both tables are on the same side. Where the
    tables do not pair, each is split by itself if models stay within one table. ``untouched`` has
    the original and, below it, a hold-out to test on.
    """
    own = own_rows(original, masked)
    if untouched is not None:
        return [_against_holdout(target, original, untouched, masked, splitting, own)]
    if own is not None:
        return _by_person(target, original, splitting, own)
    if splitting.train != splitting.test:
        raise InputError(
            "The two tables do not come from one input, so nobody knows which masked records "
            "belong to the persons who are tested; mask the original with Shoal, declare that "
            "the rows have the same order by masked.paired(original), or give original rows "
            "that were never masked as holdout."
        )
    return _apart(target, original, masked, splitting)


def _by_person(
    target: Target, original: Table, splitting: Comparison, own: Integers
) -> list[SplitRows]:
    persons = np.flatnonzero(target.present("original"))
    labelled = target.present("masked")
    found = []
    whose = original.persons[persons]
    for fold in splitting.folds(target.strata(persons), original.row_key[persons], whose):
        learn, ask = persons[fold.train], persons[fold.test]
        both = learn[own[learn] >= 0]
        rows = SplitRows(
            {"original": learn, "masked": own[both][labelled[own[both]]]},
            {"original": ask, "masked": _labelled(own[ask], labelled)},
            (both, own[both]),
            fold.place,
        )
        found.append(rows)
    return found


def _labelled(rows: Integers, labelled: npt.NDArray[np.bool_]) -> Integers:
    there = rows[rows >= 0]
    return there[labelled[there]]


def _against_holdout(
    target: Target,
    original: Table,
    untouched: Table,
    masked: Table,
    splitting: Comparison,
    own: Integers | None,
) -> SplitRows:
    known = target.present("original")
    persons, asked = (
        rows + start
        for rows, start in (
            (np.flatnonzero(known[: len(original)]), 0),
            (np.flatnonzero(known[len(original) :]), len(original)),
        )
    )
    keys, whose = original.row_key[persons], untouched.persons
    persons = persons[splitting.drawn(target.strata(persons), keys, whose[persons])]
    asked = asked[splitting.drawn(target.strata(asked), asked, whose[asked])]
    labelled = target.present("masked")
    if own is not None:
        both = persons[own[persons] >= 0]
        learn, paired = _labelled(own[both], labelled), (both, own[both])
    else:
        learn, paired = np.flatnonzero(labelled), None
        strata, keys = target.strata(learn, "masked"), masked.row_key[learn]
        learn = learn[splitting.drawn(strata, keys, masked.persons[learn])]
    nobody = np.empty(0, np.int64)
    return SplitRows(
        {"original": persons, "masked": learn}, {"original": asked, "masked": nobody}, paired
    )


def _apart(
    target: Target, original: Table, masked: Table, splitting: Comparison
) -> list[SplitRows]:
    """Each table split by itself; the places of the folds agree, their persons do not."""
    persons = np.flatnonzero(target.present("original"))
    records = np.flatnonzero(target.present("masked"))
    before = splitting.folds(
        target.strata(persons), original.row_key[persons], original.persons[persons]
    )
    after = splitting.folds(
        target.strata(records, "masked"), masked.row_key[records], masked.persons[records]
    )
    return [
        SplitRows(
            {"original": persons[one.train], "masked": records[other.train]},
            {"original": persons[one.test], "masked": records[other.test]},
            place=one.place,
        )
        for one, other in zip(before, after, strict=True)
    ]
