"""Folds of persons, and a learner that is trained on some rows and tested on others.

A person who has several rows is on one side with all of them: a model that has seen one of them
would be asked about somebody it knows.
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
    """One split of the persons: places among the rows that were given, ascending."""

    repeat: int
    number: int
    train: Integers
    test: Integers

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the others."""
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

    Folds, and the strata in each, differ by at most one person in size. They hang on the row
    keys and on ``random_state``, not on the order of the rows.

    Parameters
    ----------
    strata : array of int
        The stratum of each row: the class, or a band of a number.
    row_key : array of int
        The key of each row.
    persons : array of int, optional
        The number of the person of each row; each row is one without it. Somebody who has several
        is in the stratum of the first by key.
    splits : int
        The number of folds in each repeat.
    repeats : int
        How often everything is split anew.
    test_share : float, optional
        Where given, each repeat is one split with this share of persons to be tested.
    random_state : int
        Gives other folds. It is no secret.

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
            f"{len(first):,} persons cannot be split into {splits} folds; take at least 2, and at "
            "most one for each person."
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
        else:  # every time the running share passes a whole number, one is tested
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
    """The places of about ``size`` rows, ascending, each stratum by its share.

    They are at most so many where each row is a person; whoever has several comes with all.

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
    """The place of the first row of each person by key, and for each row whose it is."""
    if persons is None:
        return np.arange(len(row_key)), np.arange(len(row_key))
    by_key = np.argsort(row_key, kind="stable")
    _, first, whose = np.unique(persons[by_key], return_index=True, return_inverse=True)
    of_row = np.empty(len(row_key), np.int64)
    of_row[by_key] = whose
    return by_key[first], of_row


def _drawn_order(strata: Integers, row_key: Integers, purpose: str, random_state: int) -> Integers:
    """The persons by stratum, in a drawn order within each."""
    draw = np.empty(len(row_key), np.int64)
    stream = SecretStream.public("utility by models", purpose, str(random_state))
    draw[np.argsort(row_key)] = stream.permutation(len(row_key))
    return np.lexsort((draw, strata))


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

    learn, ask = rows.train[train], rows.test[test]
    scores = CLASSIFICATION_SCORES if target.task == "classification" else REGRESSION_SCORES
    used = split_columns(columns, rows, train, test)
    facts: dict[str, Any] = {"columns": tuple(column.name for column in used)}
    # One thread: several that wait for each other take ten times as long on small matrices.
    threads = _thread_pools(len(sys.modules)).limit(limits=1)
    with threads, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # a warning of a learner is counted, not raised
        try:
            answers = target.of(train)[learn], target.of(test)[ask]
            given = {} if weights is None else {"sample_weight": weights[learn]}
            said = _predictions(chosen, used, target, answers, given)
            facts["scores"] = {name: score(said) for name, score in scores.items()}
            facts["predictions"] = said
        except Exception as error:  # a fold that fails is marked; its words may quote a cell
            facts |= {"failed": type(error).__name__}
    facts["not_converged"] = any(issubclass(one.category, ConvergenceWarning) for one in told)
    return Attempt(*rows.place, (len(learn), len(ask)), **facts)


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """The libraries that have threads, sought again where a module was loaded since."""
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
    through ``shoal.Protector`` first.

    Parameters
    ----------
    learner : str or estimator
        A name of ``learners``, the name of a class of scikit-learn, or an estimator.
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
        {"masked": np.flatnonzero(known.present("masked"))},
        {"original": np.flatnonzero(known.present("original"))},
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
        A name of ``learners``, the name of a class of scikit-learn, or an estimator.
    table : Table
        The table; its rows are split by row key, in balance by the target. All rows of a person
        are on one side.
    target : str
        The column to predict.
    splits, repeats, test_share, random_state
        As ``stratified_folds`` takes them.
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
    how = {"splits": splits, "repeats": repeats, "test_share": test_share}
    rows = np.flatnonzero(known.present("original"))
    folds = folds_of(table, known, rows, **how, random_state=random_state)
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
