"""The configurations that papers tried, learner by learner."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shoal.errors import InputError, did_you_mean

Choices = Mapping[str, Sequence[Any]]

_TREES: Final = (100, 250, 500)
_DEPTHS: Final = (4, 6, 8, 10)
_CONTROLS: Final = (1e-4, 1.0, 1e4)  # of a logistic regression
_ITERATIONS: Final = (10_000, 100_000)


def _layers(features: int) -> list[tuple[int, ...]]:
    """Hidden layers as wide as the columns, half or two thirds of them; at least one node."""
    whole, half, most = features, max(1, features // 2), max(1, int(features * (2 / 3)))
    return [
        (whole,),
        (half,),
        (most,),
        (whole, half),
        (whole, most),
        (half, most),
        (whole, half, most),
    ]


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
    # the second number of iterations only repeats what has converged before
    "carvalho-distinct": _carvalho(_ITERATIONS[:1]),
    # one configuration of each kind of learner: what takes seconds where the whole takes hours
    "carvalho-reduced": {
        "random-forest": lambda _: {"n_estimators": _TREES[:1], "max_depth": (8,)},
        "xgboost": lambda _: {
            "n_estimators": _TREES[:1],
            "max_depth": (4,),
            "learning_rate": (0.1,),
        },
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
        A name of :func:`learners`.
    preset : {"carvalho", "carvalho-distinct", "carvalho-reduced", "senavirathne", "verdonck"}
        Whose choice it is. ``"carvalho-distinct"`` leaves out what differs only in an upper limit
        of iterations that is not reached, ``"carvalho-reduced"`` is one configuration for each
        of three learners. The last two papers name a learner and no parameters: their grid is
        the library's defaults.
    features : int, optional
        The number of columns that reach the learner; the layers of a perceptron hang on it.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance
    trade-off; the values are those of the authors' public code.

    Examples
    --------
    >>> len(grid("random-forest")), grid("random-forest")[0]
    (12, {'n_estimators': 100, 'max_depth': 4})
    >>> grid("multi-layer-perceptron", features=9)[-1]["hidden_layer_sizes"]
    (9, 4, 6)
    """
    if preset not in PRESETS:
        raise InputError(f"There is no preset '{preset}'. {did_you_mean(str(preset), PRESETS)}")
    choices = PRESETS[preset]
    if learner not in choices:
        raise InputError(
            f"The preset '{preset}' has no learner '{learner}'. "
            f"{did_you_mean(str(learner), choices)}"
        )
    if learner == "multi-layer-perceptron" and features is None:
        raise InputError(
            "The layers of a multi-layer-perceptron hang on the number of columns; give it as "
            "features."
        )
    named = choices[learner](1 if features is None else features)
    return [dict(zip(named, values, strict=True)) for values in itertools.product(*named.values())]
