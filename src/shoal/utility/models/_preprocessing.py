"""Mixed columns as a matrix for a learner; everything is learned from the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.utility.models._domain import SplitColumn
from shoal.utility.models._learners import Encoding

Matrix = npt.NDArray[np.float64]

#: A value with fewer training rows goes with the other rare ones.
RARE: Final = 5
#: At most so many columns for one nominal column, and for all of them together.
MOST: Final = 30
MOST_IN_ALL: Final = 1_000


def matrices(columns: Sequence[SplitColumn], rows: tuple[int, int]) -> tuple[Matrix, Matrix, int]:
    """The training and the test rows, numbers first, and how many columns are numbers.

    Without any column a model can only learn how frequent each class is: the matrix is one
    constant.
    """
    if not columns:
        return np.zeros((rows[0], 1)), np.zeros((rows[1], 1)), 1
    ordered = [c for c in columns if c.numeric] + [c for c in columns if not c.numeric]
    train = np.column_stack([column.train for column in ordered]).astype(np.float64)
    test = np.column_stack([column.test for column in ordered]).astype(np.float64)
    return train, test, sum(column.numeric for column in columns)


def preprocessing(numbers: int, nominal: int, encoding: Encoding) -> Any:
    """What turns a matrix of numbers and codes into one that every learner takes.

    Numbers: the median where missing, and a flag for it; then mean 0 and variance 1. Codes, one
    of which stands for missing: one column per value, the rare ones together, also those that
    the training rows do not have; or, for trees, the codes themselves.
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
