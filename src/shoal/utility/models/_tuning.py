"""Learners tuned over grids of their parameters, including those of the papers.

The configuration that the folds choose, scored on the test rows, shows what can be achieved
(validation). The best of all scores on the test rows shows what could be achieved by someone who
knew which configuration to use (oracle).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.errors import InputError, did_you_mean
from shoal.table import Table
from shoal.utility.models._columns import Column, Integers, SplitRows, columns_of, target_of
from shoal.utility.models._evaluation import attempt, features_of_model, folds_of, split_columns
from shoal.utility.models._learners import Chosen, chosen_learner, learners, matrices, preprocessing
from shoal.utility.models._scores import CLASSIFICATION_SCORES, Predictions, over_rows

Choices = Mapping[str, Sequence[Any]]

_TREES: Final = (100, 250, 500)
_DEPTHS: Final = (4, 6, 8, 10)
_CONTROLS: Final = (1e-4, 1.0, 1e4)  # for logistic regression
_ITERATIONS: Final = (10_000, 100_000)


def _layers(features: int) -> list[tuple[int, ...]]:
    """Hidden layers as wide as the columns, half or two thirds of that; at least one node."""
    widths = (features, max(1, features // 2), max(1, int(features * (2 / 3))))
    return [chosen for count in (1, 2, 3) for chosen in itertools.combinations(widths, count)]


def _carvalho(iterations: Sequence[int]) -> dict[str, Callable[[int], Choices]]:
    return {
        "random-forest": lambda _: {"n_estimators": _TREES, "max_depth": _DEPTHS},
        "bagging": lambda _: {"n_estimators": _TREES},
        "xgboost": lambda _: {
            "n_estimators": _TREES,
            "max_depth": _DEPTHS,
            "learning_rate": (0.1, 0.01, 0.001),
        },
        "logistic-regression": lambda _: {"C": _CONTROLS, "max_iter": iterations},
        "multi-layer-perceptron": lambda features: {
            "hidden_layer_sizes": _layers(features),
            "alpha": (5e-3, 1e-3, 1e-4),
            "max_iter": iterations,
        },
    }


#: For each paper, the choices of each of its learners, given the number of columns.
PRESETS: Final[dict[str, dict[str, Callable[[int], Choices]]]] = {
    "carvalho": _carvalho(_ITERATIONS),
    # the second number of iterations only repeats what has already converged
    "carvalho-distinct": _carvalho(_ITERATIONS[:1]),
    # one configuration per kind of learner: seconds instead of hours
    "carvalho-reduced": {
        "random-forest": lambda _: {"n_estimators": (100,), "max_depth": (8,)},
        "xgboost": lambda _: {"n_estimators": (100,), "max_depth": (4,), "learning_rate": (0.1,)},
        "logistic-regression": lambda _: {"C": (1.0,)},
    },
    "senavirathne": {"random-forest": lambda _: {}},
    "verdonck": {"gradient-boosting": lambda _: {}},
}


def grid(
    learner: str, preset: str = "carvalho", *, features: int | None = None
) -> list[dict[str, Any]]:
    """The configurations of a learner that a paper tried, as parameters of its estimator.

    Parameters
    ----------
    learner : str
        A name of ``learners``.
    preset : {"carvalho", "carvalho-distinct", "carvalho-reduced", "senavirathne", "verdonck"}
        The paper. ``"carvalho-distinct"`` leaves out configurations that differ only in an upper
        limit of iterations that is not reached. ``"carvalho-reduced"`` has one configuration for
        each of three learners. The last two papers name a learner and no parameters: their grid is
        the library's defaults.
    features : int, optional
        The number of columns that reach the learner; the layers of a perceptron depend on it.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance trade-off
    <https://arxiv.org/abs/2201.05226>; the values are those of the authors' public code.

    Examples
    --------
    >>> len(grid("random-forest")), grid("random-forest")[0]
    (12, {'n_estimators': 100, 'max_depth': 4})
    >>> grid("multi-layer-perceptron", features=9)[-1]["hidden_layer_sizes"]
    (9, 4, 6)
    """
    choices = _choices(preset)
    if learner not in choices:
        raise InputError(
            f"The preset '{preset}' has no learner '{learner}'. "
            f"{did_you_mean(str(learner), choices)}"
        )
    if learner == "multi-layer-perceptron" and features is None:
        raise InputError(
            "The layers of a multi-layer-perceptron depend on the number of columns. Pass it as "
            "'features'."
        )
    named = choices[learner](1 if features is None else features)
    return [dict(zip(named, values, strict=True)) for values in itertools.product(*named.values())]


def _choices(preset: str) -> dict[str, Callable[[int], Choices]]:
    if preset not in PRESETS:
        raise InputError(f"There is no preset '{preset}'. {did_you_mean(str(preset), PRESETS)}")
    return PRESETS[preset]


@dataclass(frozen=True, eq=False)
class Tried:
    """One configuration: its mean score over the folds, and its score on the test rows."""

    learner: str
    parameters: Mapping[str, Any]
    validation: float
    tested: float
    predictions: Predictions | None = None


@dataclass(frozen=True, eq=False)
class Tuned:
    """All configurations that were tried on a table; none if no column is left to learn from.

    ``tested`` has the number of the person of each test row; by default each row is a person.
    """

    score: str
    tried: tuple[Tried, ...]
    tested: Integers | None = None

    @property
    def best(self) -> Tried | None:
        """The configuration that the folds choose; in a tie, the first."""
        known = (one for one in self.tried if not math.isnan(one.validation))
        return max(known, key=lambda one: one.validation, default=None)

    @property
    def validation(self) -> float:
        """The score on the test rows of the configuration that the folds choose; 0 without one."""
        return 0.0 if self.best is None or math.isnan(self.best.tested) else self.best.tested

    @property
    def oracle(self) -> float:
        """The best score on the test rows; 0 without a model."""
        return max((one.tested for one in self.tried if not math.isnan(one.tested)), default=0.0)

    def over_folds(self) -> dict[str, float]:
        """For each learner, the mean score over the folds of its best configuration."""
        found: dict[str, float] = {}
        for one in self.tried:
            if not math.isnan(one.validation):
                found[one.learner] = max(found.get(one.learner, 0.0), one.validation)
        return found

    def interval(self, random_state: int = 0) -> tuple[float, float] | None:
        """The 95 % interval of the validation score, from resampled test rows."""
        if self.best is None or self.best.predictions is None:
            return None
        predictions, score = self.best.predictions, CLASSIFICATION_SCORES[self.score]
        persons = len(predictions.true) if self.tested is None else self.tested
        return over_rows(lambda rows: score(predictions.at(rows)), persons, random_state)


def tuned(
    table: Table,
    target: str,
    preset: str = "carvalho",
    *,
    score: str = "f1",
    splits: int = 5,
    repeats: int = 5,
    test_share: float = 0.2,
    random_state: int = 0,
) -> Tuned:
    """Try every configuration of a paper on one table.

    A share of the rows is kept for testing. Every configuration is trained and scored on the
    folds of the other rows, then trained on all of them and scored on the test rows.

    Parameters
    ----------
    table : Table
        The table. Its rows are split by row key, with the target in balance. All rows of a person
        are on the same side.
    target : str
        The column of classes to predict.
    preset : str
        The paper whose configurations to try, as for :func:`grid`.
    score : str
        A score of classes, as for :func:`predictive_performance`.
    splits, repeats, random_state
        As for ``stratified_folds``.
    test_share : float
        The share of the rows to keep for testing.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance trade-off
    <https://arxiv.org/abs/2201.05226>, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [20, 30, 40, 50] * 15, "old": [False, False, True, True] * 15})
    >>> found = tuned(Table(frame), "old", "carvalho-reduced", repeats=1)
    >>> len(found.tried), found.validation, found.oracle
    (3, 1.0, 1.0)
    """
    if score not in CLASSIFICATION_SCORES:
        raise InputError(
            f"There is no score '{score}' of classes. {did_you_mean(score, CLASSIFICATION_SCORES)}"
        )
    known = target_of(target, table, None, "classification")
    columns = columns_of(table, None, features_of_model(table, target, None))
    rows = np.flatnonzero(known.present("original"))
    apart = folds_of(table, known, rows, test_share=test_share, random_state=random_state)[0]
    how = {"splits": splits, "repeats": repeats, "random_state": random_state}
    folds = folds_of(table, known, apart.train["original"], **how)
    tried = []
    for learner, parameters, chosen in _configurations(preset, columns, apart, random_state):
        done = [attempt(chosen, columns, known, rows) for rows in (*folds, apart)]
        *inside, last = (one.scores.get(score, math.nan) for one in done)
        # a configuration that fails on a fold is not one that anyone would choose
        mean = float(np.mean(inside))
        tried.append(Tried(learner, parameters, mean, last, done[-1].predictions))
    return Tuned(score, tuple(tried), table.persons[apart.test["original"]])


def _configurations(
    preset: str, columns: Sequence[Column], rows: SplitRows, random_state: int
) -> list[tuple[str, dict[str, Any], Chosen]]:
    """Every learner of a preset with each of its configurations; none without a column."""
    chosen, used = _choices(preset), split_columns(columns, rows)
    if not used:
        return []
    made, found = learners(), []
    for learner in chosen:
        named = chosen_learner(learner, "classification", random_state)
        sides = len(rows.train["original"]), len(rows.test["original"])
        matrix, _, numbers = matrices(used, sides)
        prepared = preprocessing(numbers, matrix.shape[1] - numbers, named.encoding)
        for parameters in grid(learner, preset, features=prepared.fit_transform(matrix).shape[1]):
            own = chosen_learner(made[learner](**parameters), "classification", random_state)
            found.append((learner, parameters, Chosen(learner, own.estimator, named.encoding)))
    return found
