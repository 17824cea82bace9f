"""Training a learner on some rows and testing it on others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, did_you_mean
from shoal.table import Table
from shoal.utility.models._columns import (
    Column,
    Side,
    Target,
    Task,
    columns_of,
    natural_task,
    target_of,
)
from shoal.utility.models._domain import SplitColumn, SplitRows, in_one_domain
from shoal.utility.models._learners import Chosen, chosen_learner, matrices, preprocessing
from shoal.utility.models._scores import CLASSIFICATION_SCORES, REGRESSION_SCORES, Predictions
from shoal.utility.models._splits import Integers, stratified_folds

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One model: its scores on the tested rows, or what stopped it.

    ``failed`` is the name of the error's class; its text could hold a cell, and is not kept.
    """

    repeat: int
    fold: int
    rows: tuple[int, int]
    columns: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    failed: str | None = None
    not_converged: bool = False
    predictions: Predictions | None = None


def attempt(
    chosen: Chosen,
    columns: Sequence[Column],
    target: Target,
    rows: SplitRows,
    *,
    train: Side = "original",
    test: Side = "original",
    weights: Floats | None = None,
) -> Attempt:
    """Train on the training rows of one table, and score the predictions of the test rows.

    Whatever the learner raises is a failed attempt, so that one fold spoils no other.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    learn, ask = rows.train[train], rows.test[test]
    used = split_columns(columns, rows, train, test)
    facts: dict[str, Any] = {"columns": tuple(column.name for column in used)}
    # One thread: several that wait for each other take ten times as long on small matrices.
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # a warning of a learner is counted, not raised
        try:
            answers = target.of(train)[learn], target.of(test)[ask]
            given = {} if weights is None else {"sample_weight": weights[learn]}
            facts["predictions"] = _predictions(chosen, used, target, answers, given)
            facts["scores"] = _scored(target.task, facts["predictions"])
        except Exception as error:  # a fold that fails is marked; its words may quote a cell
            facts |= {"failed": type(error).__name__, "scores": {}, "predictions": None}
    facts["not_converged"] = any(issubclass(one.category, ConvergenceWarning) for one in told)
    return Attempt(*rows.place, (len(learn), len(ask)), **facts)


def split_columns(
    columns: Sequence[Column], rows: SplitRows, train: Side = "original", test: Side = "original"
) -> list[SplitColumn]:
    """The columns that can be learned from, split by rows."""
    split = [in_one_domain(column, train, test, rows) for column in columns]
    return [column for column in split if column is not None]


def _predictions(
    chosen: Chosen,
    columns: Sequence[SplitColumn],
    target: Target,
    answers: tuple[Any, Any],
    given: Mapping[str, Floats],
) -> Predictions:
    from sklearn.base import clone

    learned, true = answers
    train, test, numbers = matrices(columns, (len(learned), len(true)))
    prepared = preprocessing(numbers, train.shape[1] - numbers, chosen.encoding)
    train, test = prepared.fit_transform(train), prepared.transform(test)
    model = clone(chosen.estimator)
    if target.task == "regression":
        said = np.asarray(model.fit(train, learned, **given).predict(test), np.float64)
        return Predictions(true, said.reshape(len(true)))
    # 0, 1, 2, … without gaps: a class may have no training row, and some learners need it so
    classes, dense = np.unique(learned, return_inverse=True)
    model.fit(train, dense, **given)
    said = classes[np.asarray(model.predict(test)).astype(np.int64)]
    support = _support(model, test, classes, int(max(classes[-1], true.max(initial=0))) + 1)
    return Predictions(true, said, support, target.positive, target.classes == 2)


def _support(model: Any, test: Floats, classes: npt.NDArray[np.int64], count: int) -> Floats | None:
    """How much the model leans to each class, where it tells."""
    tells = getattr(model, "predict_proba", None) or getattr(model, "decision_function", None)
    if tells is None or len(classes) < 2:
        return None
    leaning = np.asarray(tells(test), np.float64)
    if leaning.ndim == 1:
        leaning = np.column_stack((-leaning, leaning))
    support = np.full((len(test), count), leaning.min(initial=0.0))
    support[:, classes] = leaning
    return support


def _scored(task: Task, found: Predictions) -> dict[str, float]:
    scores = CLASSIFICATION_SCORES if task == "classification" else REGRESSION_SCORES
    return {name: score(found) for name, score in scores.items()}


def evaluate(
    learner: Any,
    train: Table,
    test: Table,
    target: str,
    scores: Sequence[str] | None = None,
    *,
    task: Task | None = None,
    features: Sequence[str] | None = None,
    random_state: int = 0,
) -> dict[str, float]:
    """Train a learner on one table, and score its predictions on another.

    The tables hold values of one domain: raw rows for a model that learned from intervals go
    through :class:`shoal.Protector` first.

    Parameters
    ----------
    learner : str or estimator
        A name of :func:`learners`, the name of a class of scikit-learn, or an estimator.
    train : Table
        What the learner sees.
    test : Table
        What it is asked about.
    target : str
        The column to predict.
    scores : list of str, optional
        Some of the scores; all of them without it. One that cannot be told is NaN.
    task : {"classification", "regression"}, optional
        Without it a number of more than 20 values is a regression.
    features : list of str, optional
        The columns to learn from; without it all but the target, identifiers and the weight.
    random_state : int
        The seed of a learner that has none. It is no secret.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [20, 30, 40, 50] * 5, "old": [False, False, True, True] * 5})
    >>> table = Table(frame)
    >>> evaluate("decision-tree", table, table, "old", ["accuracy"])
    {'accuracy': 1.0}
    """
    task = natural_task(train, target) if task is None else task
    chosen = chosen_learner(learner, task, random_state)
    known = target_of(target, test, train, task)
    names = features_of_model(train, target, features)
    if features is None:
        names = [name for name in names if name in test.columns]
    columns = columns_of(test, train, names)
    rows = SplitRows(
        {"original": np.empty(0, np.int64), "masked": np.flatnonzero(known.present("masked"))},
        {"original": np.flatnonzero(known.present("original")), "masked": np.empty(0, np.int64)},
    )
    done = attempt(chosen, columns, known, rows, train="masked")
    if done.failed is not None:
        raise InputError(
            f"The learner '{chosen.name}' failed with {done.failed} on {done.rows[0]:,} training "
            "rows; try another one."
        )
    wanted = list(done.scores) if scores is None else scores
    for name in wanted:
        if name not in done.scores:
            raise InputError(f"There is no score '{name}'. {did_you_mean(name, done.scores)}")
    return {name: done.scores[name] for name in wanted}


def cross_validated(
    learner: Any,
    table: Table,
    target: str,
    *,
    splits: int = 5,
    repeats: int = 1,
    test_share: float | None = None,
    task: Task | None = None,
    features: Sequence[str] | None = None,
    random_state: int = 0,
) -> list[Attempt]:
    """Train and test a learner on the folds of one table; a fold that fails is marked.

    Parameters
    ----------
    learner : str or estimator
        A name of :func:`learners`, the name of a class of scikit-learn, or an estimator.
    table : Table
        The table; its rows are split by row key, in balance by the target. All rows of a person
        are on one side.
    target : str
        The column to predict.
    splits, repeats, test_share, random_state
        As :func:`stratified_folds` takes them.
    task : {"classification", "regression"}, optional
        Without it a number of more than 20 values is a regression.
    features : list of str, optional
        The columns to learn from; without it all but the target, identifiers and the weight.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [20, 30, 40, 50] * 5, "old": [False, False, True, True] * 5})
    >>> folds = cross_validated("decision-tree", Table(frame), "old", splits=2)
    >>> [fold.scores["accuracy"] for fold in folds]
    [1.0, 1.0]
    """
    task = natural_task(table, target) if task is None else task
    chosen = chosen_learner(learner, task, random_state)
    known = target_of(target, table, None, task)
    columns = columns_of(table, None, features_of_model(table, target, features))
    folds = folds_of(
        table,
        known,
        np.flatnonzero(known.present("original")),
        splits=splits,
        repeats=repeats,
        test_share=test_share,
        random_state=random_state,
    )
    return [attempt(chosen, columns, known, fold) for fold in folds]


def folds_of(table: Table, target: Target, rows: Integers, **how: Any) -> list[SplitRows]:
    """Some rows of one table in stratified folds; all rows of a person are on one side."""
    persons = table.persons[rows]
    return [
        SplitRows({"original": rows[fold.train]}, {"original": rows[fold.test]}, place=fold.place)
        for fold in stratified_folds(target.strata(rows), table.row_key[rows], persons, **how)
    ]


def features_of_model(table: Table, target: str, features: Sequence[str] | None) -> list[str]:
    """The columns to learn from."""
    if features is None:
        apart = {*table.roles.withheld, table.roles.weight, target}
        return [name for name in table.columns if name not in apart]
    if target in features:
        raise InputError(f"The target '{target}' is among the features, so nothing is predicted.")
    return table.chosen(features)
