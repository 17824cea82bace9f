"""From the attempts of a comparison to the numbers that are reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import InputError, quoted
from shoal.utility.models._comparison import Outcome
from shoal.utility.models._evaluation import Attempt, Floats
from shoal.utility.models._scores import (
    CLASSIFICATION_SCORES,
    REGRESSION_SCORES,
    over_folds,
    over_rows,
)
from shoal.utility.models._splits import Integers

Interval = tuple[float, float] | None


class Findings:
    """What a comparison found, in one score."""

    def __init__(self, outcome: Outcome, score: str) -> None:
        self.outcome, self.score = outcome, score
        self.values, self.baselines = _of(outcome.attempts, score), _of(outcome.baselines, score)
        if np.isnan(self.values).all():
            raise InputError(_why_nothing(outcome, score))

    @property
    def value(self) -> float:
        """The mean over the splits that could be scored."""
        return float(np.nanmean(self.values))

    @property
    def baseline(self) -> float | None:
        """The same of the original; None where no split could be scored."""
        known = self.baselines[~np.isnan(self.baselines)]
        return float(known.mean()) if len(known) else None

    @property
    def interval(self) -> Interval:
        """Of the value: over the folds, or over the rows of a hold-out."""
        if self.outcome.asked.holdout is None:
            return over_folds(self.values[~np.isnan(self.values)], self._tested)
        return self._over_rows(percentage=False)

    @property
    def percentages(self) -> Floats:
        """100 (Ra − Rb) / Rb, split by split; NaN where Rb is not above 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 100 * (self.values - self.baselines) / self.baselines
        return np.where(self.baselines > 0, found, np.nan)

    def details(self) -> dict[str, Any]:
        """Counts, shares and names, as JSON holds them."""
        outcome, asked = self.outcome, self.outcome.asked
        percentages = self.percentages
        known = percentages[~np.isnan(percentages)]
        baseline = self.baseline
        return {
            "learner": outcome.chosen.name,
            "target": outcome.target.name,
            "score": self.score,
            "train": asked.train,
            "test": asked.test,
            "persons": _persons(outcome),
            "rows": {
                "training": round(float(np.mean([a.rows[0] for a in outcome.attempts]))),
                "tested": round(float(np.mean([a.rows[1] for a in outcome.attempts]))),
            },
            "difference": None if baseline is None else self.value - baseline,
            "percentage_difference": float(known.mean()) if len(known) else None,
            "percentage_interval": self._percentage_interval(known),
            "percentage_skipped": int(np.isnan(percentages).sum()),
            "scores": _means(outcome.attempts),
            "baseline_scores": _means(outcome.baselines),
            "folds": [
                {
                    "repeat": one.repeat,
                    "fold": one.fold,
                    "value": _plain(value),
                    "baseline": _plain(base),
                }
                for one, value, base in zip(
                    outcome.attempts, self.values, self.baselines, strict=True
                )
            ],
            "failed": _failures(outcome),
            "not_converged": sum(a.not_converged for a in outcome.attempts),
            "columns": list(outcome.attempts[0].columns),
            "left_out": _left_out(outcome),
            "mapped": _mapped(outcome),
        }

    def warnings(self) -> list[str]:
        """Where the value means less than it seems to."""
        outcome, asked = self.outcome, self.outcome.asked
        said = []
        failed = sum(a.failed is not None for a in outcome.attempts)
        if failed:
            said.append(
                f"The learner failed on {failed} of {len(outcome.attempts)} splits; the value is "
                "of the others."
            )
        if self.baseline is None:
            said.append("The learner failed on the original, so there is nothing to compare with.")
        if asked.test == "masked":
            said.append(
                "The tested records are masked too, which flatters: it is not what a model "
                "achieves on people as they are."
            )
        if not outcome.attempts[0].columns:
            said.append("No column is left to learn from: the model knows the target alone.")
        if infinite := [column.name for column in outcome.columns if column.infinite]:
            said.append(f"Infinite values of {quoted(infinite)} were taken as missing.")
        if lost := _unmapped(outcome):
            said.append(
                f"The columns {quoted(lost)} have other values in the masked table, and without "
                "pairs nothing tells which; they were left out."
            )
        if outcome.target.strange:
            said.append(
                f"{outcome.target.strange:,} masked records have a target that the original has "
                "not, and can only mislead."
            )
        if (slow := sum(a.not_converged for a in outcome.attempts)) > 0:
            said.append(f"The learner did not converge on {slow} splits; allow more iterations.")
        return said

    @property
    def _tested(self) -> float:
        """Tested rows over training rows."""
        train, test = np.mean([one.rows for one in self.outcome.attempts], axis=0)
        return float(test / max(train, 1.0))

    def _percentage_interval(self, known: Floats) -> list[float] | None:
        if not len(known) or not self.outcome.matched:
            return None
        if self.outcome.asked.holdout is None:
            found = over_folds(known, self._tested)
        else:
            found = self._over_rows(percentage=True)
        return None if found is None else list(found)

    def _over_rows(self, *, percentage: bool) -> Interval:
        """Of a hold-out: the same rows drawn anew for both models."""
        score = (CLASSIFICATION_SCORES | REGRESSION_SCORES)[self.score]
        masked = self.outcome.attempts[0].predictions
        original = self.outcome.baselines[0].predictions
        if masked is None or (percentage and original is None):
            return None

        def statistic(rows: Integers) -> float:
            value = score(masked.at(rows))
            if not percentage:
                return value
            assert original is not None
            base = score(original.at(rows))
            return 100 * (value - base) / base if base > 0 else math.nan

        tested = self.outcome.persons[self.outcome.split.test["original"]]
        return over_rows(statistic, tested, self.outcome.asked.random_state)


def _of(attempts: Sequence[Attempt], score: str) -> Floats:
    return np.array([one.scores.get(score, math.nan) for one in attempts])


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _means(attempts: Sequence[Attempt]) -> dict[str, float | None]:
    """The mean of every score over the splits where it can be told."""
    names = next((one.scores for one in attempts if one.scores), {})
    found = {}
    for name in names:
        values = _of(attempts, name)
        values = values[~np.isnan(values)]
        found[name] = float(values.mean()) if len(values) else None
    return found


def _failures(outcome: Outcome) -> list[dict[str, Any]]:
    named = (("asked", outcome.attempts), ("baseline", outcome.baselines))
    return [
        {"model": model, "repeat": one.repeat, "fold": one.fold, "error": one.failed}
        for model, attempts in named
        for one in attempts
        if one.failed is not None
    ]


def _persons(outcome: Outcome) -> int:
    """How many persons took part in one repeat."""
    rows = outcome.split
    took_part = np.append(rows.train["original"], rows.test["original"])
    return len(np.unique(outcome.persons[took_part]))


def _left_out(outcome: Outcome) -> list[str]:
    """Columns of the training table that the model does not learn from."""
    used = {*outcome.attempts[0].columns}
    side = outcome.asked.train
    return [c.name for c in outcome.columns if c.name not in used and c.of(side) is not None]


def _unmapped(outcome: Outcome) -> list[str]:
    side, left = outcome.asked.train, {*_left_out(outcome)}
    return [c.name for c in outcome.columns if c.labels and c.name in left and side in c.learnable]


def _mapped(outcome: Outcome) -> dict[str, list[str]]:
    """Columns that were coarser in one table, and what was done about it."""
    used = {*outcome.attempts[0].columns}
    coarser = [column for column in outcome.columns if column.labels and column.name in used]
    if outcome.asked.train == outcome.asked.test == "original":
        coarser = []
    return {
        "middles": [column.name for column in coarser if column.numeric],
        "most_frequent": [
            column.name
            for column in coarser
            if not column.numeric and outcome.asked.train != outcome.asked.test
        ],
    }


def _why_nothing(outcome: Outcome, score: str) -> str:
    failed = sorted({one.failed for one in outcome.attempts if one.failed is not None})
    if failed:
        return (
            f"The learner '{outcome.chosen.name}' failed on every split "
            f"({', '.join(failed)}); try another one."
        )
    return f"The score '{score}' cannot be told of the learner '{outcome.chosen.name}'."
