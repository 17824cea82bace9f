"""What a model can still learn from the masked table: classes, and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.measurement import Measurement, measure
from shoal.table import Table
from shoal.utility.models._comparison import (
    ClassScore,
    ColumnName,
    Comparison,
    Draw,
    Features,
    Findings,
    HoldOut,
    Learner,
    OneSide,
    Persons,
    Repeats,
    Splits,
    TestShare,
)

#: At most so many persons take part, unless the caller wants more.
SAMPLE = 10_000


@measure("predictive performance", direction="higher", limits=(0, 1), target=True)
def predictive_performance(
    original: Table,
    masked: Table,
    *,
    target: ColumnName = None,
    learner: Learner = "logistic-regression",
    score: ClassScore = "f1",
    train: OneSide = "masked",
    test: OneSide = "original",
    features: Features = None,
    weight: ColumnName = None,
    splits: Splits = 5,
    repeats: Repeats = 1,
    test_share: TestShare = None,
    holdout: HoldOut = None,
    sample: Persons = SAMPLE,
    random_state: Draw = 0,
) -> Measurement:
    """How well a model trained on the masked table predicts classes of original records.

    Persons are split into stratified folds. A model learns from the masked records of the
    training persons and predicts the original records of the others; the value is the mean
    score. The baseline is the same learner on the original, tested on the same persons.
    ``details`` has the difference, the percentage difference 100 (Ra - Rb) / Rb with its
    interval, every score, every fold, and what was done with each column.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    target : str, optional
        The column to predict; by default the target of the roles.
    learner : str, mapping or estimator
        A name of ``shoal.utility.models.learners``, the name of a class of scikit-learn, a
        mapping of such a name and parameters (``{"name": "svm", "C": 10.0}``), or an estimator.
    score : str
        ``"f1"`` (of the rarer of two classes; the macro F1 of more), ``"f1-micro"``,
        ``"f1-macro"``, ``"f1-weighted"``, ``"accuracy"``, ``"balanced-accuracy"``, ``"auc"`` or
        ``"g-mean"``.
    train : {"masked", "original"}
        The table from which the model learns.
    test : {"original", "masked"}
        The table whose records it predicts.
    features : list of str, optional
        The columns to learn from; by default all but the target, identifiers and the weight.
    weight : str, optional
        A column of weights for the training rows.
    splits : int
        The number of folds.
    repeats : int
        How many times the persons are split again.
    test_share : float, optional
        If set, each repeat is one split that tests this share of the persons.
    holdout : Table, optional
        Original rows that were never masked: all persons train, and these rows are tested.
    sample : int
        At most so many persons take part, drawn by class.
    random_state : int
        Changes the folds, and seeds the learner. It is not a secret.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance trade-off
    <https://arxiv.org/abs/2201.05226>. Nadeau, Bengio (2003), Inference for the generalization
    error <https://doi.org/10.1023/A:1024068626366>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> frame = pl.DataFrame({"age": list(range(20, 60)), "old": [i >= 40 for i in range(20, 60)]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], target="old"))
    >>> masked = Round(base=10).fit_transform(table)
    >>> found = predictive_performance(table, masked, learner="decision-tree")
    >>> round(found.baseline, 2), round(found.value, 2)
    (0.98, 0.8)
    """
    found = Comparison(
        learner=learner,
        target=target,
        train=train,
        test=test,
        features=features,
        weight=weight,
        splits=splits,
        repeats=repeats,
        test_share=test_share,
        holdout=holdout,
        sample=sample,
        random_state=random_state,
    ).run(original, masked, "classification", score)
    classes, details = found.target.classes, found.details()
    warnings = found.warnings()
    chance = 1 / classes
    reached = details["scores"]["balanced-accuracy"]
    possible = details["baseline_scores"].get("balanced-accuracy")
    if possible is not None and possible <= chance:
        warnings.append("The original predicts the target no better than guessing.")
    elif reached <= chance:
        warnings.append("The model is no better than guessing a class.")
    return _measurement("predictive_performance", found, details | {"classes": classes}, warnings)


@measure("share of variance that a model explains", direction="higher", limits=(0, 1), target=True)
def regression_performance(
    original: Table,
    masked: Table,
    *,
    target: ColumnName = None,
    learner: Learner = "ridge-regression",
    train: OneSide = "masked",
    test: OneSide = "original",
    features: Features = None,
    weight: ColumnName = None,
    splits: Splits = 5,
    repeats: Repeats = 1,
    test_share: TestShare = None,
    holdout: HoldOut = None,
    sample: Persons = SAMPLE,
    random_state: Draw = 0,
) -> Measurement:
    """How well a model trained on the masked table predicts a number in original records.

    This works like ``predictive_performance``, for a numeric target. The value is R², the share
    of the variance that the model explains, and 0 if it does worse than the mean; ``details``
    has R² itself, and the root mean squared and mean absolute error in units of the target.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    target : str, optional
        The column to predict; by default the target of the roles.
    learner : str, mapping or estimator
        A name of ``shoal.utility.models.learners``, the name of a class of scikit-learn, a
        mapping of such a name and parameters (``{"name": "svm", "C": 10.0}``), or an estimator.
    train : {"masked", "original"}
        The table from which the model learns.
    test : {"original", "masked"}
        The table whose records it predicts.
    features : list of str, optional
        The columns to learn from; by default all but the target, identifiers and the weight.
    weight : str, optional
        A column of weights for the training rows.
    splits : int
        The number of folds.
    repeats : int
        How many times the persons are split again.
    test_share : float, optional
        If set, each repeat is one split that tests this share of the persons.
    holdout : Table, optional
        Original rows that were never masked: all persons train, and these rows are tested.
    sample : int
        At most so many persons take part, drawn by bands of the target.
    random_state : int
        Changes the folds, and seeds the learner. It is not a secret.

    References
    ----------
    Nadeau, Bengio (2003), Inference for the generalization error
    <https://doi.org/10.1023/A:1024068626366>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> frame = pl.DataFrame({"age": list(range(20, 60)), "pay": [i * 40 for i in range(20, 60)]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], target="pay"))
    >>> masked = Round(base=10).fit_transform(table)
    >>> found = regression_performance(table, masked)
    >>> round(found.baseline, 2), round(found.value, 2)
    (1.0, 0.98)
    """
    found = Comparison(
        learner=learner,
        target=target,
        train=train,
        test=test,
        features=features,
        weight=weight,
        splits=splits,
        repeats=repeats,
        test_share=test_share,
        holdout=holdout,
        sample=sample,
        random_state=random_state,
    ).run(original, masked, "regression", "r2")
    warnings = found.warnings()
    if found.baseline is not None and found.baseline <= 0:
        warnings.append("The original predicts the target no better than its mean.")
    elif found.value <= 0:
        warnings.append("The model predicts the target no better than its mean.")
    return _measurement("regression_performance", found, found.details(), warnings)


def _measurement(
    name: str, found: Findings, details: dict[str, Any], warnings: Sequence[str]
) -> Measurement:
    def inside(value: float) -> float:
        return min(1.0, max(0.0, value))

    interval = found.interval
    return Measurement(
        name,
        inside(found.value),
        interval=None if interval is None else (inside(interval[0]), inside(interval[1])),
        baseline=None if found.baseline is None else inside(found.baseline),
        direction="higher",
        details=details,
        warnings=tuple(warnings),
    )
