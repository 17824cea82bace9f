"""The measure of the best configuration, as a study uses it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.study import MeasureSpec
from shoal.study._measures import study_measures
from shoal.utility.models import PRESETS, tuned

measure = study_measures()["tuned_performance"].function


@pytest.fixture
def people(monkeypatch):
    choices = {"logistic-regression": lambda _: {"C": (1e-4, 1.0)}}
    monkeypatch.setitem(PRESETS, "small", choices)
    monkeypatch.setitem(PRESETS, "broken", {"logistic-regression": lambda _: {"C": (-1.0,)}})
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, 150)
    ill = np.where(age + rng.normal(0, 12, 150) > 60, "yes", "no")
    roles = Roles(quasi_identifiers=["age"], target="ill")
    return Table(pl.DataFrame({"age": age, "ill": ill}), roles)


def test_the_value_is_that_of_the_masked_table_in_the_validation_setting(people):
    other = people.reorder(np.arange(len(people))[::-1].copy())
    shuffled = people.with_cells_of({"age": np.random.default_rng(1).permutation(len(people))})
    found = measure(people, shuffled, grid="small", repeats=1)
    alone = tuned(shuffled, "ill", "small", repeats=1)
    assert found.value == alone.validation
    assert found.details["oracle"] == alone.oracle
    assert found.details["mean_over_folds"] == max(one.validation for one in alone.tried)
    assert found.value < measure(people, people, grid="small", repeats=1).value - 0.1
    assert found.value == measure(other, shuffled, grid="small", repeats=1).value
    assert "masked too" in found.warnings[0]


def test_without_a_column_there_is_no_model(people):
    found = measure(people, people.drop(["age"]), grid="small")
    assert found.value == 0.0
    assert found.details["without_model"]
    assert "No column is left" in found.warnings[1]


def test_where_every_configuration_fails_there_is_none_either(people):
    found = measure(people, people, grid="broken", repeats=1)
    assert (found.value, found.details["without_model"]) == (0.0, True)
    assert "Every configuration failed" in found.warnings[1]


def test_a_study_can_ask_for_it():
    assert MeasureSpec.from_dict("tuned_performance").measure == "tuned_performance"
    assert study_measures()["tuned_performance"].direction == "higher"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grid": "smal"}, "Did you mean 'small'"),
        ({"score": "r2"}, "'score' parameter .* must be one of 'f1'"),
        ({"target": "height"}, "height"),
        ({"test_share": 1.5}, "a number > 0 and < 1"),
    ],
)
def test_what_cannot_be_is_said(people, options, said):
    with pytest.raises(InputError, match=said):
        measure(people, people, **options)


def test_without_a_target_there_is_nothing_to_predict(people):
    bare = people.with_roles(Roles(quasi_identifiers=["age"]))
    with pytest.raises(InputError, match="no column to predict"):
        measure(bare, bare)
