"""A network trained under differential privacy; where the extra dp is installed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.utility import predictive_performance
from shoal.utility.models import learners


def classes(rows=400, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    centres = np.array([[2.0, 0.0], [-2.0, 1.5], [0.0, -2.0]])
    return centres[y] + rng.normal(0, 0.5, (rows, 2)), np.array([10, 20, 30])[y]


@pytest.fixture
def made():
    pytest.importorskip("opacus")
    return learners()["dp-sgd"]


def test_it_learns_within_its_budget(made):
    X, y = classes()
    model = made(epsilon=3.0, epochs=5, random_state=0).fit(X, y)
    assert model.classes_.tolist() == [10, 20, 30]
    assert (model.predict(X) == y).mean() > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert 2.5 < model.spent_ <= 3.0 + 1e-6


def test_less_budget_is_more_noise(made):
    X, y = classes(200)
    models = [made(epsilon=e, epochs=2, random_state=0).fit(X, y) for e in (5.0, 0.5)]
    assert 2 * models[0].noise_ < models[1].noise_
    assert models[1].spent_ <= 0.5 + 1e-6


def test_a_seed_gives_the_same_network_and_leaves_the_others_random(made):
    import torch

    X, y = classes(100)
    before = torch.random.get_rng_state()
    told = [made(epochs=2, random_state=seed).fit(X, y).predict_proba(X) for seed in (3, 3, 4)]
    assert np.array_equal(told[0], told[1])
    assert not np.array_equal(told[0], told[2])
    assert torch.equal(before, torch.random.get_rng_state())


def test_it_is_a_learner_of_predictive_performance(made):
    X, y = classes(200)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": y.astype(str)})
    table = Table(frame, Roles(quasi_identifiers=["a", "b"], target="kind"))
    learner = {"name": "dp-sgd", "epsilon": 3.0, "epochs": 5}
    found = predictive_performance(table, table, learner=learner, score="accuracy", splits=2)
    assert found.details["learner"] == "dp-sgd"
    assert found.details["failed"] == []
    assert found.value > 0.7
