"""Persons to predict something of, and a learner that remembers what it was shown."""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin

from shoal import Roles, Table

ROWS = 120


def people(rows=ROWS, seed=11):
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 80, rows), rng.choice(["Ulm", "Jena", "Bern"], rows)
    rich = age + 20 * (town == "Bern") + rng.normal(0, 12, rows) > 60
    frame = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(rows)],
            "age": pl.Series(age).set(pl.Series(rng.random(rows) < 0.1), None),
            "town": pl.Series(town).set(pl.Series(rng.random(rows) < 0.1), None),
            "rich": np.where(rich, "yes", "no"),
            "pay": age * 50 + rng.normal(0, 400, rows),
        }
    )
    roles = Roles(identifiers=["name"], quasi_identifiers=["age", "town"], target="rich")
    return Table(frame, roles)


def shuffled(table, seed=4):
    """The same persons in another order, ages moved by a few years and towns by one person."""
    rng = np.random.default_rng(seed)
    frame = table.frame.with_columns(
        pl.col("age") + pl.Series(rng.integers(-6, 7, len(table))), pl.col("town").shift(1)
    )
    moved = Table(frame, table.roles).paired(table)
    return moved.reorder(rng.permutation(len(table)))


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was shown; says what the first training row says."""

    shown: list = []  # noqa: RUF012 - of the class, since a learner is copied
    weights: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        Spy.shown.append(("train", X.copy()))
        Spy.weights.append(sample_weight)
        return self

    def predict(self, X):
        Spy.shown.append(("test", X.copy()))
        return np.full(len(X), self.classes_[0])


def with_numbers(rows=40):
    frame = pl.DataFrame({"number": np.arange(rows) * 1.0, "goal": ["a", "b"] * (rows // 2)})
    return Table(frame, Roles(quasi_identifiers=["number"], target="goal"))
