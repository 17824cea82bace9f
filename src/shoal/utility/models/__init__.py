"""Utility by models: learners, their grids, folds of persons, features and scores."""

from shoal.utility.models._columns import Column, Task, columns_of
from shoal.utility.models._evaluation import (
    Attempt,
    Fold,
    cross_validated,
    evaluate,
    stratified_folds,
    stratified_sample,
)
from shoal.utility.models._learners import learners
from shoal.utility.models._scores import CLASSIFICATION_SCORES, REGRESSION_SCORES
from shoal.utility.models._tuning import PRESETS, Tried, Tuned, grid, tuned

SEARCHED = False  # it declares no measure, and some learners import slowly

__all__ = [
    "CLASSIFICATION_SCORES",
    "PRESETS",
    "REGRESSION_SCORES",
    "Attempt",
    "Column",
    "Fold",
    "Task",
    "Tried",
    "Tuned",
    "columns_of",
    "cross_validated",
    "evaluate",
    "grid",
    "learners",
    "stratified_folds",
    "stratified_sample",
    "tuned",
]
