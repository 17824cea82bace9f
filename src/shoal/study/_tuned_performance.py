"""What the best of many models achieves, chosen without and with sight of the test rows."""

from __future__ import annotations

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import Table
from shoal.utility.models import tuned


@measure(
    "predictive performance of the best configuration",
    direction="higher",
    limits=(0, 1),
    target=True,
)
def tuned_performance(
    original: Table,
    masked: Table,
    *,
    target: str | None = None,
    grid: str = "carvalho",
    score: str = "f1",
    splits: int = 5,
    repeats: int = 5,
    test_share: float = 0.2,
    random_state: int = 0,
) -> Measurement:
    """The score of the best of many configurations, all trained and tested on the masked table.

    The value is that of the validation setting: the configuration that repeated folds of the
    training rows choose, scored on the test rows. ``details["oracle"]`` is the best score of any
    configuration on the test rows, which nobody can know to choose. The test rows are masked
    too, as in the paper: it flatters, and is not what a model achieves on people as they are.
    Where no column is left to learn from there is no model, and the value is 0.

    Parameters
    ----------
    original : Table
        The table before masking; it names the target, and is not learned from.
    masked : Table
        The table after masking.
    target : str, optional
        The column to predict; the target of the roles without it.
    grid : str
        Whose configurations are tried: a preset of :func:`shoal.utility.models.grid`.
    score : str
        A score of classes.
    splits, repeats : int
        The folds of the training rows, and how often they are split anew.
    test_share : float
        The share of the rows that is kept for testing.
    random_state : int
        Gives other splits, and seeds the learners. It is no secret.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance
    trade-off, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [20, 30, 40, 50] * 15, "old": [False, False, True, True] * 15})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], target="old"))
    >>> found = tuned_performance(table, table, grid="carvalho-reduced", repeats=1)
    >>> found.value, found.details["oracle"], found.details["configurations"]
    (1.0, 1.0, 3)
    """
    name = original.roles.target if target is None else target
    if name is None:
        raise InputError(
            "There is no column to predict; name a target, or declare it in the roles."
        )
    found = tuned(
        masked,
        name,
        grid,
        score=score,
        splits=splits,
        repeats=repeats,
        test_share=test_share,
        random_state=random_state,
    )
    over_folds = found.over_folds()
    details = {
        "grid": grid,
        "score": score,
        "configurations": len(found.tried),
        "oracle": found.oracle,
        "chosen": None if found.best is None else found.best.learner,
        "over_folds": over_folds,
        "mean_over_folds": float(np.mean([*over_folds.values()])) if over_folds else 0.0,
        "without_model": found.best is None,
    }
    warnings = ["The tested records are masked too, which flatters."]
    if found.best is None:
        why = "No column is left to learn from" if not found.tried else "Every configuration failed"
        warnings.append(f"{why}, so there is no model, and the value is 0.")
    return Measurement(
        "tuned_performance",
        found.validation,
        interval=found.interval(random_state),
        direction="higher",
        details=details,
        warnings=tuple(warnings),
    )
