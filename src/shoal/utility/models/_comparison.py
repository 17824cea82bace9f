"""Compare one learner trained on the original table with one trained on the masked table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import DoesNotApply, InputError, columns_that, quoted
from shoal.parameters import ColumnNames, Fits, Integer, OneColumn, OneOf, Real, Text
from shoal.table import Table, shared_persons, stacked_table
from shoal.utility.models._columns import (
    Column,
    Floats,
    Integers,
    Side,
    SplitRows,
    Target,
    Task,
    columns_of,
    natural_task,
    target_of,
)
from shoal.utility.models._evaluation import (
    Attempt,
    Fold,
    attempt,
    features_of_model,
    stratified_folds,
    stratified_sample,
)
from shoal.utility.models._learners import Chosen, chosen_learner
from shoal.utility.models._scores import (
    CLASSIFICATION_SCORES,
    REGRESSION_SCORES,
    over_folds,
    over_rows,
)


def _is_learner(value: Any) -> bool:
    name = value.get("name") if isinstance(value, Mapping) else value
    return Text().accepts(name) or callable(getattr(value, "fit", None))


_LEARNER = Fits(
    "the name of a learner, a mapping with such a name and parameters, or a scikit-learn estimator",
    _is_learner,
)
_ROWS = Fits(
    "a shoal.Table of original rows that were never masked",
    lambda value: isinstance(value, Table),
    in_plan=False,
)

# The options that all measures with learners declare.
Learner = Annotated[Any, _LEARNER]
ColumnName = Annotated[str | None, OneColumn()]
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
    """The settings of a comparison of a learner on two tables."""

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

    def run(self, original: Table, masked: Table, task: Task, score: str) -> Findings:
        """Train and test on every split: as requested, and the original against itself."""
        if not len(original) or not len(masked):
            raise InputError("A table without records has nothing to learn from.")
        if self.holdout is not None and self.test == "masked":
            raise InputError("A hold-out was never masked, so it cannot be a masked test.")
        name = self._target_name(original, task)
        features = features_of_model(original, name, self.features)
        features = [column for column in features if column != self.weight]
        chosen = chosen_learner(self.learner, task, self.random_state)
        before = with_holdout(original, self.holdout, [*features, name])
        target = target_of(name, before, masked, task)
        columns = columns_of(before, masked, features)
        splits = self._arranged(target, original, masked, before)
        weights: dict[Side, Floats | None] = {
            "original": self._weights(original, chosen),
            "masked": self._weights(masked, chosen),
        }

        def attempts(train: Side, test: Side) -> list[Attempt]:
            how: dict[str, Any] = {"train": train, "test": test, "weights": weights[train]}
            return [attempt(chosen, columns, target, split, **how) for split in splits]

        baselines = attempts("original", "original")
        same = self.train == self.test == "original"
        return Findings(
            self,
            score,
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
                "There is no target to predict. Declare a target in the roles, or name one."
            )
        natural = natural_task(original, name)
        if self.target is None and natural != task:
            other = f"{'regression' if natural == 'regression' else 'predictive'}_performance"
            kind = "a number with many values" if natural == "regression" else "of few values"
            raise DoesNotApply(
                f"The target '{name}' is {kind}, which {other} measures. Use that measure (on the "
                f"command line, --utility {other}), or name the column as the option 'target' of "
                "this measure to predict it anyway."
            )
        return name

    def _weights(self, table: Table, chosen: Chosen) -> Floats | None:
        from sklearn.utils.validation import has_fit_parameter

        if self.weight is None:
            return None
        if not has_fit_parameter(chosen.estimator, "sample_weight"):
            raise InputError(f"The learner '{chosen.name}' accepts no weights. Remove 'weight'.")
        numbers = table.numbers(self.weight)
        values = numbers.values.astype(np.float64)
        bad = int((~numbers.present | (values < 0)).sum())
        if bad:
            raise InputError(
                f"The weight '{self.weight}' is missing or below 0 in {bad:,} records. Models "
                "need a weight for every record."
            )
        return values

    def _arranged(
        self, target: Target, original: Table, masked: Table, before: Table
    ) -> list[SplitRows]:
        """The splits of both tables; ``before`` has the original and, below it, a hold-out.

        Persons are split, and all records of a person in both tables are on the same side. If the
        tables are not paired, each is split separately, provided that models stay within one table.
        """
        is_paired = masked.pairs_with(original)
        if self.train != self.test and self.holdout is None and not is_paired:
            raise InputError(
                "The two tables do not come from one input, so nobody knows which masked records "
                "belong to the tested persons. Mask the original with Shoal, declare with "
                "masked.paired(original) that the rows are in the same order, or pass original "
                "rows that were never masked as 'holdout'."
            )
        if self.holdout is None:
            folds = self._folds(target, original, "original")
        else:
            folds = [self._against_holdout(target, original, before)]
        if is_paired:
            own = masked.rows_of_keys(original.row_key)
            own = np.append(own, np.full(len(before) - len(original), -1))  # of a hold-out
            return [_by_person(fold, own, target.present("masked")) for fold in folds]
        # each is split separately; the folds correspond by number, not by person
        if self.holdout is None:
            others = self._folds(target, masked, "masked")
        else:
            others = [Fold(0, 0, self._sampled(target, masked, "masked")[0], np.empty(0, np.int64))]
        return [
            SplitRows(
                {"original": one.train, "masked": other.train},
                {"original": one.test, "masked": other.test},
                place=one.place,
            )
            for one, other in zip(folds, others, strict=True)
        ]

    def _folds(self, target: Target, table: Table, side: Side) -> list[Fold]:
        """The folds of the rows that take part."""
        rows, strata = self._sampled(target, table, side)
        folds = stratified_folds(
            strata,
            table.row_key[rows],
            table.persons[rows],
            splits=self.splits,
            repeats=self.repeats,
            test_share=self.test_share,
            random_state=self.random_state,
        )
        return [Fold(f.repeat, f.number, rows[f.train], rows[f.test]) for f in folds]

    def _drawn(self, strata: Integers, keys: Integers, persons: Integers) -> Integers:
        """The indices of the rows of the persons who take part."""
        return stratified_sample(strata, keys, self.sample, persons, random_state=self.random_state)

    def _sampled(self, target: Target, table: Table, side: Side) -> tuple[Integers, Integers]:
        """The rows with a known target of the persons who take part, and their strata."""
        rows = np.flatnonzero(target.present(side))
        strata = target.strata(rows, side)
        drawn = self._drawn(strata, table.row_key[rows], table.persons[rows])
        return rows[drawn], strata[drawn]

    def _against_holdout(self, target: Target, original: Table, before: Table) -> Fold:
        """One fold: the persons of the original train, those of the hold-out are tested."""
        known, whose = np.flatnonzero(target.present("original")), before.persons
        keys = np.append(original.row_key, np.arange(len(original), len(before)))
        train, test = (
            rows[self._drawn(target.strata(rows), keys[rows], whose[rows])]
            for rows in np.split(known, [np.searchsorted(known, len(original))])
        )
        return Fold(0, 0, train, test)


def _by_person(fold: Fold, own: Integers, labelled: npt.NDArray[np.bool_]) -> SplitRows:
    """The rows of both tables; ``own`` has the masked row of each row of the original, or -1."""
    both, tested = (rows[own[rows] >= 0] for rows in (fold.train, fold.test))
    train, test = (own[rows][labelled[own[rows]]] for rows in (both, tested))
    return SplitRows(
        {"original": fold.train, "masked": train},
        {"original": fold.test, "masked": test},
        (both, own[both]),
        fold.place,
    )


def with_holdout(original: Table, holdout: Table | None, columns: list[str]) -> Table:
    """The original, with the rows of a hold-out below it."""
    if holdout is None:
        return original
    absent = [name for name in columns if name not in holdout.columns]
    if absent or not len(holdout):
        raise InputError(
            f"The hold-out has no column {quoted(absent)}. It needs the target and all columns "
            "that a model learns from, as they are in the original."
            if absent
            else "The hold-out has no rows, so nothing can be tested on it."
        )
    if holdout.pairs_with(original):
        shared = int(np.isin(holdout.row_key, original.row_key).sum())
        if shared:
            raise InputError(
                f"The hold-out shares {shared:,} rows with the original, so models would be "
                "tested on what they learned from. Do not mask the rows of the hold-out."
            )
    known = int(shared_persons(original, holdout).sum())
    if known:
        raise InputError(
            f"{known:,} rows of the hold-out belong to persons whose unit also has rows in the "
            "original, so models would be tested on people they know. Keep each person on one side."
        )
    both = stacked_table(original, holdout, columns)
    if not original.has_persons and not holdout.has_persons:
        return both
    return both.owned_by(np.append(original.persons, original.person_count + holdout.persons))


Interval = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Findings:
    """The requested attempts and, for each, the attempt of the original against itself.

    All use one score. ``matched`` says that both were tested on the same persons. ``persons`` has
    the number of the person of each row of the original, and of the hold-out below it; ``split``
    is the first split.
    """

    asked: Comparison
    score: str
    chosen: Chosen
    target: Target
    columns: Sequence[Column]
    attempts: list[Attempt]
    baselines: list[Attempt]
    matched: bool
    persons: Integers
    split: SplitRows

    def __post_init__(self) -> None:
        if not np.isnan(self.values).all():
            return
        failed = sorted({one.failed for one in self.attempts if one.failed is not None})
        if not failed:
            raise InputError(
                f"The score '{self.score}' cannot be computed for the learner '{self.chosen.name}'."
            )
        raise InputError(
            f"The learner '{self.chosen.name}' failed on every split ({', '.join(failed)}). Try "
            "another one."
        )

    @property
    def values(self) -> Floats:
        """The score of each split; NaN if there is none."""
        return _of(self.attempts, self.score)

    @property
    def value(self) -> float:
        """The mean over the splits that could be scored."""
        return float(np.nanmean(self.values))

    @property
    def baseline(self) -> float | None:
        """The same for the original; None if no split could be scored."""
        return _mean(_of(self.baselines, self.score))

    @property
    def interval(self) -> Interval:
        """The interval of the value: over the folds, or over the rows of a hold-out."""
        return self._interval(self.values, percentage=False)

    def _interval(self, values: Floats, *, percentage: bool) -> Interval:
        if self.asked.holdout is not None:
            return self._over_rows(percentage=percentage)
        train, test = np.mean([one.rows for one in self.attempts], axis=0)
        return over_folds(values[~np.isnan(values)], float(test / max(train, 1.0)))

    def details(self) -> dict[str, Any]:
        """Counts, shares and names, as JSON values."""
        values, baselines = self.values, _of(self.baselines, self.score)
        with np.errstate(divide="ignore", invalid="ignore"):
            percentages = 100 * (values - baselines) / baselines
        percentages[~(baselines > 0)] = np.nan
        skipped = np.isnan(percentages)
        interval = None
        if self.matched and not skipped.all():
            interval = self._interval(percentages, percentage=True)
        baseline = self.baseline
        training, tested = (
            round(float(np.mean([one.rows[side] for one in self.attempts]))) for side in (0, 1)
        )
        took_part = np.append(self.split.train["original"], self.split.test["original"])
        return {
            "learner": self.chosen.name,
            "target": self.target.name,
            "score": self.score,
            "train": self.asked.train,
            "test": self.asked.test,
            "persons": len(np.unique(self.persons[took_part])),
            "rows": {"training": training, "tested": tested},
            "difference": None if baseline is None else self.value - baseline,
            "percentage_difference": _mean(percentages),
            "percentage_interval": None if interval is None else list(interval),
            "percentage_skipped": int(skipped.sum()),
            "scores": _means(self.attempts),
            "baseline_scores": _means(self.baselines),
            "folds": [
                {
                    "repeat": one.repeat,
                    "fold": one.fold,
                    "value": _mean(values[[place]]),
                    "baseline": _mean(baselines[[place]]),
                }
                for place, one in enumerate(self.attempts)
            ],
            "failed": [
                {"model": model, "repeat": one.repeat, "fold": one.fold, "error": one.failed}
                for model, some in (("asked", self.attempts), ("baseline", self.baselines))
                for one in some
                if one.failed is not None
            ],
            "not_converged": sum(a.not_converged for a in self.attempts),
            "columns": list(self.attempts[0].columns),
            "left_out": [column.name for column in self._left_out],
            "mapped": self._mapped(),
        }

    def warnings(self) -> list[str]:
        """Reasons why the value means less than it seems to."""
        notes = []
        failed = sum(a.failed is not None for a in self.attempts)
        if failed:
            notes.append(
                f"The learner failed on {failed} of {len(self.attempts)} splits; the value is "
                "the mean of the others."
            )
        if self.baseline is None:
            notes.append("The learner failed on the original, so there is nothing to compare with.")
        if self.asked.test == "masked":
            notes.append(
                "The tested records are masked too, so the value is optimistic: it is not what a "
                "model achieves on original records."
            )
        if not self.attempts[0].columns:
            notes.append("No column is left to learn from: the model knows only the target.")
        if infinite := [column.name for column in self.columns if column.infinite]:
            notes.append(f"Infinite values of {quoted(infinite)} count as missing.")
        side = self.asked.train
        if lost := [c.name for c in self._left_out if c.labels and side in c.learnable]:
            notes.append(
                columns_that(lost, "is left out", "are left out")
                + ": in the masked table there are other values, which cannot be matched "
                "without pairs of rows."
            )
        if self.target.strange:
            notes.append(
                f"{self.target.strange:,} masked records have a target that the original lacks, "
                "which can only mislead a model."
            )
        if (slow := sum(a.not_converged for a in self.attempts)) > 0:
            notes.append(f"The learner did not converge on {slow} splits; allow more iterations.")
        return notes

    def _over_rows(self, *, percentage: bool) -> Interval:
        """For a hold-out: the same rows resampled for both models."""
        score = (CLASSIFICATION_SCORES | REGRESSION_SCORES)[self.score]
        masked, original = self.attempts[0].predictions, self.baselines[0].predictions
        if masked is None or (percentage and original is None):
            return None

        def statistic(rows: Integers) -> float:
            value = score(masked.at(rows))
            if not percentage or original is None:
                return value
            base = score(original.at(rows))
            return 100 * (value - base) / base if base > 0 else math.nan

        tested = self.persons[self.split.test["original"]]
        return over_rows(statistic, tested, self.asked.random_state)

    @property
    def _left_out(self) -> list[Column]:
        """Columns of the training table that the model does not learn from."""
        used, side = {*self.attempts[0].columns}, self.asked.train
        return [c for c in self.columns if c.name not in used and c.of(side) is not None]

    def _mapped(self) -> dict[str, list[str]]:
        """Columns that were coarser in one table, and how they were handled."""
        used, asked = {*self.attempts[0].columns}, self.asked
        coarser = [column for column in self.columns if column.labels and column.name in used]
        if asked.train == asked.test == "original":
            coarser = []
        nominal = [] if asked.train == asked.test else [c.name for c in coarser if not c.numeric]
        return {"middles": [c.name for c in coarser if c.numeric], "most_frequent": nominal}


def _of(attempts: Sequence[Attempt], score: str) -> Floats:
    return np.array([one.scores.get(score, math.nan) for one in attempts])


def _mean(values: Floats) -> float | None:
    """The mean of the known values; None if none is known."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _means(attempts: Sequence[Attempt]) -> dict[str, float | None]:
    """The mean of every score over the splits where it is known."""
    names = next((one.scores for one in attempts if one.scores), {})
    return {name: _mean(_of(attempts, name)) for name in names}
