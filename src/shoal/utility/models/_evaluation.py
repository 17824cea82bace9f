"""Folds of persons, and learners that are trained on some rows and tested on others.

All records of a person are on the same side. Otherwise a model would be tested on people it knows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, did_you_mean
from shoal.randomness import SecretStream
from shoal.table import Table
from shoal.utility.models._columns import (
    Column,
    Floats,
    Integers,
    Side,
    SplitColumn,
    SplitRows,
    Target,
    Task,
    columns_of,
    in_one_domain,
    natural_task,
    target_of,
)
from shoal.utility.models._learners import Chosen, chosen_learner, matrices, preprocessing
from shoal.utility.models._scores import CLASSIFICATION_SCORES, REGRESSION_SCORES, Predictions


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of the persons: ascending indices of the given rows."""

    repeat: int
    number: int
    train: Integers
    test: Integers

    @property
    def place(self) -> tuple[int, int]:
        """The repeat and the fold."""
        return self.repeat, self.number


def stratified_folds(
    strata: Integers,
    row_key: Integers,
    persons: Integers | None = None,
    *,
    splits: int = 5,
    repeats: int = 1,
    test_share: float | None = None,
    random_state: int = 0,
) -> list[Fold]:
    """Repeated stratified k-fold, or repeated splits with a share for testing.

    Folds, and the strata in each, differ by at most one person in size. They depend on the row
    keys and on ``random_state``, not on the order of the rows.

    Parameters
    ----------
    strata : array of int
        The stratum of each row: the class, or a band of a number.
    row_key : array of int
        The key of each row.
    persons : array of int, optional
        The number of the person of each row; by default each row is a person. A person with
        several rows is in the stratum of the first row by key.
    splits : int
        The number of folds in each repeat.
    repeats : int
        How many times everything is split again.
    test_share : float, optional
        If set, each repeat is one split that tests this share of persons.
    random_state : int
        Changes the folds. It is not a secret.

    Examples
    --------
    >>> keys = np.arange(6)
    >>> folds = stratified_folds(np.array([0, 0, 0, 1, 1, 1]), keys, splits=3)
    >>> [np.array([0, 0, 0, 1, 1, 1])[fold.test].tolist() for fold in folds]
    [[0, 1], [0, 1], [0, 1]]
    """
    first, whose = _first_rows(row_key, persons)
    if test_share is None and not 2 <= splits <= len(first):
        raise InputError(
            f"{len(first):,} persons cannot be split into {splits} folds. Use at least 2, "
            "and at most one per person."
        )
    if repeats < 1 or (test_share is not None and not 0 < test_share < 1):
        raise InputError("Folds need at least one repeat, and a share for testing in (0, 1).")
    found = []
    for repeat in range(repeats):
        purpose = f"folds of repeat {repeat}"
        order = _drawn_order(strata[first], row_key[first], purpose, random_state)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        place = place[whose]
        if test_share is None:
            number = place % splits
            tested = [number == fold for fold in range(splits)]
        else:  # test one each time the running share passes an integer
            tested = [np.floor((place + 1) * test_share) > np.floor(place * test_share)]
        found += [
            Fold(repeat, number, np.flatnonzero(~test), np.flatnonzero(test))
            for number, test in enumerate(tested)
        ]
    return found


def stratified_sample(
    strata: Integers,
    row_key: Integers,
    size: int,
    persons: Integers | None = None,
    *,
    random_state: int = 0,
) -> Integers:
    """The indices of about ``size`` rows, ascending, with each stratum in proportion.

    There are at most ``size`` if each row is a person; otherwise a person comes with all rows.

    Examples
    --------
    >>> strata = np.repeat([0, 1], [80, 20])
    >>> np.bincount(strata[stratified_sample(strata, np.arange(100), 10)]).tolist()
    [8, 2]
    """
    if len(strata) <= size:
        return np.arange(len(strata))
    first, whose = _first_rows(row_key, persons)
    order = _drawn_order(strata[first], row_key[first], "sample", random_state)
    count = max(1, size * len(first) // len(strata))
    drawn = np.zeros(len(first), np.bool_)
    drawn[order[np.arange(count) * len(order) // count]] = True
    return np.flatnonzero(drawn[whose])


def _first_rows(row_key: Integers, persons: Integers | None) -> tuple[Integers, Integers]:
    """The index of each person's first row by key, and the person of each row."""
    if persons is None:
        return np.arange(len(row_key)), np.arange(len(row_key))
    by_key = np.argsort(row_key, kind="stable")
    _, first, whose = np.unique(persons[by_key], return_index=True, return_inverse=True)
    of_row = np.empty(len(row_key), np.int64)
    of_row[by_key] = whose
    return by_key[first], of_row


def _drawn_order(strata: Integers, row_key: Integers, purpose: str, random_state: int) -> Integers:
    """The persons by stratum, in random order within each stratum."""
    draw = np.empty(len(row_key), np.int64)
    stream = SecretStream.public("utility by models", purpose, str(random_state))
    draw[np.argsort(row_key)] = stream.permutation(len(row_key))
    return np.lexsort((draw, strata))


@dataclass(frozen=True, eq=False)
class Attempt:
    """One model: its scores on the tested rows, or the reason why it failed.

    ``failed`` is the name of the error's class; its text could hold a cell and is not kept.
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

    Any error of the learner makes a failed attempt, so that one fold does not spoil the others.
    """
    from sklearn.exceptions import ConvergenceWarning

    learn, ask = rows.train[train], rows.test[test]
    scores = CLASSIFICATION_SCORES if target.task == "classification" else REGRESSION_SCORES
    used = split_columns(columns, rows, train, test)
    facts: dict[str, Any] = {"columns": tuple(column.name for column in used)}
    # one thread: several that wait for each other take ten times as long on small matrices
    threads = _thread_pools(len(sys.modules)).limit(limits=1)
    with threads, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # warnings of a learner are counted, not raised
        try:
            answers = target.of(train)[learn], target.of(test)[ask]
            given = {} if weights is None else {"sample_weight": weights[learn]}
            predicted = _predictions(chosen, used, target, answers, given)
            facts["scores"] = {name: score(predicted) for name, score in scores.items()}
            facts["predictions"] = predicted
        except Exception as error:  # the fold is marked as failed; the message may quote a cell
            facts |= {"failed": type(error).__name__}
    facts["not_converged"] = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    return Attempt(*rows.place, (len(learn), len(ask)), **facts)


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """The libraries that have threads, searched again whenever more modules are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
        predicted = np.asarray(model.fit(train, learned, **given).predict(test), np.float64)
        return Predictions(true, predicted.reshape(len(true)))
    # 0, 1, 2, … without gaps: a class may have no training row, but some learners need all
    classes, dense = np.unique(learned, return_inverse=True)
    model.fit(train, dense, **given)
    predicted = classes[np.asarray(model.predict(test)).astype(np.int64)]
    support = _support(model, test, classes, int(max(classes[-1], true.max(initial=0))) + 1)
    return Predictions(true, predicted, support, target.positive, target.classes == 2)


def _support(model: Any, test: Floats, classes: npt.NDArray[np.int64], count: int) -> Floats | None:
    """The model's score for each class, if it provides one."""
    scores = getattr(model, "predict_proba", None) or getattr(model, "decision_function", None)
    if scores is None or len(classes) < 2:
        return None
    leaning = np.asarray(scores(test), np.float64)
    if leaning.ndim == 1:
        leaning = np.column_stack((-leaning, leaning))
    support = np.full((len(test), count), leaning.min(initial=0.0))
    support[:, classes] = leaning
    return support


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

    Both tables must hold values of one domain: for a model that learned from intervals, map raw
    rows with ``shoal.Protector`` first.

    Parameters
    ----------
    learner : str or estimator
        A name of ``learners``, the name of a class of scikit-learn, or an estimator.
    train : Table
        The table on which the learner is trained.
    test : Table
        The table that it predicts.
    target : str
        The column to predict.
    scores : list of str, optional
        Some of the scores; by default all of them. A score that cannot be computed is NaN.
    task : {"classification", "regression"}, optional
        By default, a number with more than 20 values is a regression.
    features : list of str, optional
        The columns to learn from; by default all but the target, identifiers and the weight.
    random_state : int
        The seed of a learner that has none. It is not a secret.

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
        {"masked": np.flatnonzero(known.present("masked"))},
        {"original": np.flatnonzero(known.present("original"))},
    )
    done = attempt(chosen, columns, known, rows, train="masked")
    if done.failed is not None:
        raise InputError(
            f"The learner '{chosen.name}' failed with {done.failed} on {done.rows[0]:,} training "
            "rows. Try another one."
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
    """Train and test a learner on the folds of one table; folds that fail are marked.

    Parameters
    ----------
    table : Table
        The table. Its rows are split by row key, with the target in balance. All rows of a person
        are on the same side.
    learner, target, task, features
        As for ``evaluate``.
    splits, repeats, test_share, random_state
        As for ``stratified_folds``.

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
    how = {"splits": splits, "repeats": repeats, "test_share": test_share}
    rows = np.flatnonzero(known.present("original"))
    folds = folds_of(table, known, rows, **how, random_state=random_state)
    return [attempt(chosen, columns, known, fold) for fold in folds]


def folds_of(table: Table, target: Target, rows: Integers, **how: Any) -> list[SplitRows]:
    """Some rows of one table in stratified folds; all rows of a person are on the same side."""
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
        raise InputError(f"The target '{target}' is among the features. Remove it from them.")
    return table.chosen(features)
