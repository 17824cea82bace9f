"""The same learner, trained on the original and on the masked table, split by split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from shoal.errors import DoesNotApply, InputError
from shoal.parameters import ColumnNames, Integer, OneOf, Real, Text
from shoal.table import Table
from shoal.utility.models._arrangement import Split, Splitting, arranged, with_holdout
from shoal.utility.models._columns import Column, Side, columns_of
from shoal.utility.models._domain import in_one_domain
from shoal.utility.models._evaluation import Attempt, Floats, attempt, features_of_model
from shoal.utility.models._learners import Chosen, Task, chosen_learner
from shoal.utility.models._scores import CLASSIFICATION_SCORES
from shoal.utility.models._splits import Integers
from shoal.utility.models._target import Target, natural_task, target_of


@dataclass(frozen=True)
class LearnerOrName:
    """A learner: its name, with or without parameters, or an estimator."""

    def accepts(self, value: Any) -> bool:
        name = value.get("name") if isinstance(value, Mapping) else value
        return Text().accepts(name) or callable(getattr(value, "fit", None))

    def describe(self) -> str:
        return (
            "the name of a learner, a mapping with such a name and parameters, or an estimator of "
            "scikit-learn"
        )


@dataclass(frozen=True)
class Rows:
    """A table of rows that were never masked; a plan holds none."""

    in_plan: ClassVar[bool] = False

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Table)

    def describe(self) -> str:
        return "a shoal.Table of original rows that were never masked"


# The options of the measures that learn, as they declare them.
Learner = Annotated[Any, LearnerOrName()]
ColumnName = Annotated[str | None, Text()]
ClassScore = Annotated[str, OneOf(tuple(CLASSIFICATION_SCORES))]
OneSide = Annotated[Side, OneOf(("masked", "original"))]
Features = Annotated[Sequence[str] | None, ColumnNames()]
Splits = Annotated[int, Integer(2)]
Repeats = Annotated[int, Integer(1)]
TestShare = Annotated[float | None, Real(above=0, below=1)]
HoldOut = Annotated[Table | None, Rows()]
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
            Splitting(self.splits, self.repeats, self.test_share, self.sample, self.random_state),
            train=self.train,
            test=self.test,
            untouched=None if self.holdout is None else before,
        )
        weights: dict[Side, Floats | None] = {
            "original": self._weights(original, chosen),
            "masked": self._weights(masked, chosen),
        }
        job = _Job(chosen, target, columns, splits, weights)
        baselines = job.attempts("original", "original")
        same = self.train == self.test == "original"
        return Outcome(
            self,
            chosen,
            target,
            columns,
            baselines if same else job.attempts(self.train, self.test),
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


@dataclass(frozen=True, eq=False)
class _Job:
    chosen: Chosen
    target: Target
    columns: Sequence[Column]
    splits: Sequence[Split]
    weights: dict[Side, Floats | None]

    def attempts(self, train: Side, test: Side) -> list[Attempt]:
        return [self._attempt(split, train, test) for split in self.splits]

    def _attempt(self, split: Split, train: Side, test: Side) -> Attempt:
        rows = split.rows
        found = [in_one_domain(column, train, test, rows) for column in self.columns]
        learn, ask = rows.train[train], rows.test[test]
        weights = self.weights[train]
        return attempt(
            self.chosen,
            [column for column in found if column is not None],
            self.target,
            (self.target.of(train)[learn], self.target.of(test)[ask]),
            weights=None if weights is None else weights[learn],
            place=split.place,
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
    split: Split
