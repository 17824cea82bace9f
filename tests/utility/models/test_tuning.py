"""Configurations are tried on folds, and on rows that none of them saw."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.utility.models import (
    PRESETS,
    cross_validated,
    evaluate,
    learners,
    stratified_folds,
    tuned,
)
from shoal.utility.models._evaluation import Attempt
from shoal.utility.models._tuning import Tried, Tuned

SMALL = {
    "logistic-regression": lambda _: {"C": (1e-4, 1.0)},
    "decision-tree": lambda _: {},
}


@pytest.fixture
def people(monkeypatch):
    monkeypatch.setitem(PRESETS, "small", SMALL)
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, 150)
    frame = pl.DataFrame(
        {
            "age": age,
            "city": rng.choice(["Bern", "Graz", "Jena"], 150),
            "ill": np.where(age + rng.normal(0, 12, 150) > 60, "yes", "no"),
        }
    )
    return Table(frame, Roles(quasi_identifiers=["age", "city"], target="ill"))


def test_every_configuration_is_scored_as_folds_and_tables_of_its_own_are(people):
    found = tuned(people, "ill", "small", splits=3, repeats=2, random_state=4)
    codes = (people.frame["ill"] == "yes").to_numpy().astype(np.int64)
    [fold] = stratified_folds(codes, people.row_key, test_share=0.2, random_state=4)
    kept = np.zeros(len(people), bool)
    kept[fold.train] = True
    train, test = people.keep(kept), people.keep(~kept)
    assert (len(train), len(test)) == (120, 30)
    assert [one.learner for one in found.tried] == [*["logistic-regression"] * 2, "decision-tree"]
    for one in found.tried:
        # by its name a tree takes codes, as an estimator it would take flags
        named = not one.parameters
        model = one.learner if named else learners()[one.learner](**one.parameters)
        folds = cross_validated(model, train, "ill", splits=3, repeats=2, random_state=4)
        assert len(folds) == 6
        assert one.validation == pytest.approx(np.mean([each.scores["f1"] for each in folds]))
        scores = evaluate(model, train, test, "ill", ["f1"], random_state=4)
        assert one.tested == pytest.approx(scores["f1"])


def test_the_two_settings():
    tried = [("a", 0.9, 0.6), ("b", 0.9, 0.9), ("b", 0.7, 0.8), ("c", math.nan, 0.95)]
    found = Tuned("f1", tuple(Tried(name, {}, folds, test) for name, folds, test in tried))
    assert found.best is found.tried[0]  # of equally good ones the first
    assert found.validation == 0.6
    assert found.oracle == 0.95
    assert found.over_folds() == {"a": 0.9, "b": 0.9}
    assert found.interval() is None  # nothing was predicted here


def test_the_score_has_an_interval_that_holds_it(people):
    found = tuned(people, "ill", "small", repeats=1)
    low, high = found.interval()
    assert low <= found.validation <= high
    assert low < high


def test_another_score_is_the_one_that_is_chosen_by(people):
    found = tuned(people, "ill", "small", repeats=1, score="accuracy")
    said = found.best.predictions
    assert found.validation == pytest.approx((said.true == said.predicted).mean())


def test_the_split_hangs_on_the_row_key_and_not_on_the_order(people):
    turned = people.reorder(np.arange(len(people))[::-1].copy())
    first, second = (tuned(table, "ill", "small", repeats=1) for table in (people, turned))
    trees = [one.tested for one in first.tried], [one.tested for one in second.tried]
    assert trees[0] == pytest.approx(trees[1])


def test_without_a_column_there_is_no_model(people):
    found = tuned(people.drop(["age", "city"]), "ill", "small")
    assert (found.tried, found.best, found.validation, found.oracle) == ((), None, 0.0, 0.0)


def test_a_configuration_that_fails_is_not_chosen(people, monkeypatch):
    monkeypatch.setitem(PRESETS, "broken", {"logistic-regression": lambda _: {"C": (-1.0, 1.0)}})
    found = tuned(people, "ill", "broken", repeats=1)
    assert math.isnan(found.tried[0].validation)
    assert found.best is found.tried[1]


def test_the_layers_of_a_perceptron_are_as_wide_as_the_matrix(people, monkeypatch):
    widths = []

    def choices(features):
        widths.append(features)
        return {"C": (1.0,)}

    monkeypatch.setitem(PRESETS, "wide", {"logistic-regression": choices})
    tuned(people, "ill", "wide", repeats=1)
    assert widths == [1 + 3]  # the age, and a flag for each city


def test_the_whole_grid_of_the_paper_has_99_configurations(people, monkeypatch):
    untrained = Attempt(0, 0, (1, 1))
    monkeypatch.setattr("shoal.utility.models._tuning.attempt", lambda *given: untrained)
    found = tuned(people, "ill", "carvalho", repeats=1)
    assert len(found.tried) == 99
