"""The learners by name, and how columns become the numbers from which they learn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from shoal.errors import InputError, MissingExtra, did_you_mean
from shoal.utility.models._columns import Floats, SplitColumn, Task

#: Values with fewer training rows are combined with the other rare ones.
RARE: Final = 5
#: The most columns for one nominal column, and for all of them together.
MOST: Final = 30
MOST_IN_ALL: Final = 1_000


def matrices(columns: Sequence[SplitColumn], rows: tuple[int, int]) -> tuple[Floats, Floats, int]:
    """The training and the test rows, numbers first, and how many columns are numbers.

    Without any column, a model can learn only the frequency of each class: the matrix is one
    constant.
    """
    if not columns:
        return np.zeros((rows[0], 1)), np.zeros((rows[1], 1)), 1
    ordered = [c for c in columns if c.numeric] + [c for c in columns if not c.numeric]
    train = np.column_stack([column.train for column in ordered]).astype(np.float64)
    test = np.column_stack([column.test for column in ordered]).astype(np.float64)
    return train, test, sum(column.numeric for column in columns)


def preprocessing(numbers: int, nominal: int, encoding: Encoding) -> Any:
    """A transformer that turns a matrix of numbers and codes into input for any learner.

    Missing numbers become the median, with a flag; then numbers get mean 0 and variance 1. Codes,
    one of which means missing, become one column per value; rare values, and values that the
    training rows lack, share one column. For trees, the codes stay as they are.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    parts: list[tuple[str, Any, slice]] = []
    if numbers:
        filled = SimpleImputer(strategy="median", add_indicator=True)
        parts.append(("numbers", make_pipeline(filled, StandardScaler()), slice(0, numbers)))
    if nominal:
        codes: Any
        if encoding == "one-hot":
            codes = OneHotEncoder(
                min_frequency=RARE,
                max_categories=int(np.clip(MOST_IN_ALL // nominal, 3, MOST)),
                handle_unknown="infrequent_if_exist",
                sparse_output=False,
            )
        else:
            codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        parts.append(("nominal", codes, slice(numbers, numbers + nominal)))
    return ColumnTransformer(parts)


Encoding = Literal["one-hot", "ordinal"]

_KINDS: Final[dict[Task, str]] = {"classification": "classifier", "regression": "regressor"}


@dataclass(frozen=True)
class Preset:
    """A named learner: its classes in the libraries, and the parameters that Shoal sets."""

    classifier: str | None
    regressor: str | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: Trees split codes as well as flags, with far fewer columns.
    encoding: Encoding = "one-hot"
    #: The extra to install if the learner's library is missing.
    extra: str = "study"

    @classmethod
    def pair(cls, stem: str, *, encoding: Encoding = "one-hot", **more: Any) -> Preset:
        """A learner whose two classes have similar names."""
        return cls(f"{stem}Classifier", f"{stem}Regressor", more, encoding)


# All other parameters have the library's defaults.
_PRESETS: Final[dict[str, Preset]] = {
    "bagging": Preset.pair("sklearn.ensemble.Bagging", encoding="ordinal"),
    "decision-tree": Preset.pair("sklearn.tree.DecisionTree", encoding="ordinal"),
    "dp-sgd": Preset("shoal.utility.models._dp_sgd.dp_sgd_network", None, extra="dp"),
    "gradient-boosting": Preset.pair("sklearn.ensemble.GradientBoosting", encoding="ordinal"),
    "logistic-regression": Preset(
        "sklearn.linear_model.LogisticRegression",
        None,
        {"max_iter": 1_000, "tol": 1e-3},  # a tenth of the steps, same predictions
    ),
    "multi-layer-perceptron": Preset.pair("sklearn.neural_network.MLP"),
    "random-forest": Preset.pair("sklearn.ensemble.RandomForest", encoding="ordinal"),
    "ridge-regression": Preset(None, "sklearn.linear_model.Ridge"),
    "svm": Preset("sklearn.svm.SVC", "sklearn.svm.SVR"),
    "xgboost": Preset.pair("xgboost.XGB", encoding="ordinal", n_jobs=1),
}


def learners(task: Task = "classification") -> dict[str, Callable[..., Any]]:
    """The named learners, each with its factory: ``learners()[name](**parameters)``.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether to predict classes or numbers.

    Examples
    --------
    >>> learners()["random-forest"](n_estimators=250)
    RandomForestClassifier(n_estimators=250)
    >>> "logistic-regression" in learners("regression")
    False
    """
    if not isinstance(task, str) or task not in _KINDS:
        raise InputError("The task of a learner must be 'classification' or 'regression'.")
    paths = {name: getattr(preset, _KINDS[task]) for name, preset in _PRESETS.items()}
    return {
        name: partial(_made, name, path, _PRESETS[name])
        for name, path in paths.items()
        if path is not None
    }


@dataclass(frozen=True, eq=False)
class Chosen:
    """A chosen learner: an unfitted estimator, and how it encodes nominal columns."""

    name: str
    estimator: Any
    encoding: Encoding


def chosen_learner(learner: Any, task: Task, random_state: int) -> Chosen:
    """The learner for a name or an estimator, with a seed of its own if it has none.

    A name is one of :func:`learners`, or of a scikit-learn class, with or without its module.
    A mapping has such a name and also parameters, as in a file.
    """
    from sklearn.base import clone, is_classifier, is_regressor

    encoding: Encoding = "one-hot"
    parameters: Mapping[str, Any] = {}
    if isinstance(learner, Mapping):
        parameters = {part: value for part, value in learner.items() if part != "name"}
        learner = learner.get("name")
    if isinstance(learner, str):
        named = learners(task)
        if learner in named:
            name, estimator, encoding = learner, named[learner](), _PRESETS[learner].encoding
        else:
            name, estimator = learner.rpartition(".")[2], _from_scikit_learn(learner, task)
    elif not isinstance(learner, type) and all(
        callable(getattr(learner, part, None)) for part in ("fit", "predict", "get_params")
    ):
        if is_regressor(learner) if task == "classification" else is_classifier(learner):
            raise InputError(
                f"A {type(learner).__name__} does not learn a {task}. Use a {_KINDS[task]}."
            )
        name, estimator = type(learner).__name__, clone(learner)
    else:
        raise InputError(
            "A learner must be a name or a scikit-learn estimator that is not a class; got "
            f"{type(learner).__name__}. Known names are {', '.join(learners(task))}."
        )
    known = estimator.get_params()
    for part in parameters:
        if part not in known:
            raise InputError(
                f"The learner '{name}' has no parameter '{part}'. {did_you_mean(part, known)}"
            )
    estimator.set_params(**parameters)
    if estimator.get_params(deep=False).get("random_state", 0) is None:
        estimator.set_params(random_state=random_state)
    return Chosen(name, estimator, encoding)


def _made(name: str, path: str, preset: Preset, /, **parameters: Any) -> Any:
    module, _, cls = path.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), cls)
        return made(**{**preset.parameters, **parameters})
    except ImportError:
        raise MissingExtra(f"The learner '{name}'", preset.extra) from None


def _from_scikit_learn(name: str, task: Task) -> Any:
    """An estimator by the name of its class; only scikit-learn is ever imported."""
    from sklearn.utils import all_estimators

    classes = dict(all_estimators(type_filter=_KINDS[task]))
    module, _, short = name.rpartition(".")
    found = classes.get(short)
    if found is None or (module and not found.__module__.startswith(module)):
        raise InputError(
            f"There is no learner '{name}' for a {task}. "
            f"{did_you_mean(name, learners(task))} Classes of scikit-learn have their own names."
        )
    try:
        return found()
    except TypeError:
        raise InputError(
            f"The learner '{name}' cannot be created without parameters. Create it in Python."
        ) from None
