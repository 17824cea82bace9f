"""How good predictions are: scores of classes and of numbers, all with the same interface."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.randomness import SecretStream
from shoal.utility.models._columns import Floats, Integers


@dataclass(frozen=True, eq=False)
class Predictions:
    """A model's predictions for the tested rows.

    ``true`` and ``predicted`` are classes 0, 1, 2, … (or numbers, in a regression). ``support`` has
    the model's score for each row and class, if it provides one. ``positive`` is the class that a
    binary score concerns.
    """

    true: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    support: Floats | None = None
    positive: int = 1
    binary: bool = True

    def at(self, rows: Integers) -> Predictions:
        """The predictions for some rows."""
        support = None if self.support is None else self.support[rows]
        return Predictions(
            self.true[rows], self.predicted[rows], support, self.positive, self.binary
        )


def _counts(found: Predictions) -> tuple[Integers, Integers, Integers]:
    """For each class: how often it is true, how often it is predicted, how often both."""
    classes = int(max(found.true.max(initial=0), found.predicted.max(initial=0))) + 1
    right = found.true[found.true == found.predicted]
    true, predicted, both = (
        np.bincount(values, minlength=classes) for values in (found.true, found.predicted, right)
    )
    return true, predicted, both


def _f1_of_each(found: Predictions) -> tuple[Floats, Integers]:
    """F1 of every class that is true or predicted somewhere, and how often each is true."""
    true, predicted, both = _counts(found)
    there = true + predicted > 0
    return 2 * both[there] / (true + predicted)[there], true[there]


def _f1_macro(found: Predictions) -> float:
    return float(_f1_of_each(found)[0].mean())


def _f1(found: Predictions) -> float:
    if not found.binary:
        return _f1_macro(found)
    there, predicted = found.true == found.positive, found.predicted == found.positive
    marked = int(there.sum() + predicted.sum())
    return 2 * int((there & predicted).sum()) / marked if marked else 0.0


def _accuracy(found: Predictions) -> float:
    return float(np.mean(found.true == found.predicted))


def _recalls(found: Predictions) -> Floats:
    """The recall of each tested class: the share of it that is found."""
    true, _, both = _counts(found)
    return both[true > 0] / true[true > 0]


def _g_mean(found: Predictions) -> float:
    recalls = _recalls(found)
    return float(np.prod(recalls) ** (1 / len(recalls)))


def _auc(found: Predictions) -> float:
    """One class against the rest, averaged over the classes; NaN if it cannot be computed."""
    from sklearn.metrics import roc_auc_score

    tested = np.unique(found.true)
    if found.support is None or len(tested) < 2:
        return math.nan
    classes = [found.positive] if found.binary else tested.tolist()
    areas = [roc_auc_score(found.true == one, found.support[:, one]) for one in classes]
    return float(np.mean(areas))


def _r2(found: Predictions) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(found.true, found.predicted)) if len(found.true) > 1 else math.nan


Score = Callable[[Predictions], float]

#: Scores of classes, all from 0 (worst) to 1. ``f1`` is that of the rarer of two classes, or the
#: macro F1 of more than two.
CLASSIFICATION_SCORES: Final[dict[str, Score]] = {
    "f1": _f1,
    "f1-micro": _accuracy,  # the same, because each row has one class
    "f1-macro": _f1_macro,
    "f1-weighted": lambda found: float(
        np.average(_f1_of_each(found)[0], weights=_f1_of_each(found)[1])
    ),
    "accuracy": _accuracy,
    "balanced-accuracy": lambda found: float(_recalls(found).mean()),
    "auc": _auc,
    "g-mean": _g_mean,
}

#: Scores of numbers: R² up to 1 (higher is better), and two errors in units of the target.
REGRESSION_SCORES: Final[dict[str, Score]] = {
    "r2": _r2,
    "rmse": lambda found: float(np.sqrt(np.mean((found.true - found.predicted) ** 2))),
    "mae": lambda found: float(np.mean(np.abs(found.true - found.predicted))),
}


RESAMPLES = 200


def over_folds(values: Floats, tested: float) -> tuple[float, float] | None:
    """The 95 % interval of a mean over folds, or None for fewer than two.

    Folds share most of their training rows, so their variance is far too small. It is
    corrected by ``tested``, the number of tested rows divided by that of training rows.

    Nadeau, Bengio (2003), Inference for the generalization error, section 4.
    """
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return None
    spread = math.sqrt((1 / count + tested) * float(values.var(ddof=1)))
    reach = float(t.ppf(0.975, count - 1)) * spread
    middle = float(values.mean())
    return middle - reach, middle + reach


def over_rows(
    statistic: Callable[[Integers], float], rows: int | Integers, random_state: int
) -> tuple[float, float] | None:
    """The 95 % percentile interval of a statistic of resampled rows.

    ``rows`` is their number, or the number of the person of each. All rows of a person are drawn
    together, because they carry less information than rows of as many persons.
    """
    stream = SecretStream.public("utility by models", "bootstrap", str(random_state))
    persons = np.arange(rows) if isinstance(rows, int) else rows
    order = np.argsort(persons, kind="stable")
    counts = np.unique(persons, return_counts=True)[1]
    starts, bounds = np.cumsum(counts) - counts, np.full(len(counts), len(counts))

    def drawn() -> Integers:
        chosen = stream.integers_below(bounds)
        if len(counts) == len(persons):
            return chosen
        ends = np.cumsum(counts[chosen])
        within = np.arange(ends[-1]) - np.repeat(ends - counts[chosen], counts[chosen])
        return order[np.repeat(starts[chosen], counts[chosen]) + within]

    found = np.array([statistic(drawn()) for _ in range(RESAMPLES)])
    found = found[np.isfinite(found)]
    if len(found) < RESAMPLES / 2:  # if most draws give no value, there is no interval
        return None
    low, high = np.quantile(found, [0.025, 0.975])
    whole = statistic(np.arange(len(persons)))  # with few rows, most draws can be on one side of it
    return float(min(low, whole)), float(max(high, whole))
