"""What every privacy model promises."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Roles, Table
from shoal.errors import InputError, ParameterError
from shoal.models import discover_models
from shoal.parameters import parameters_of

from .registry import AWKWARD, MODELS, models, people

each_example = pytest.mark.parametrize("example", MODELS, ids=lambda example: example.id)
each_class = pytest.mark.parametrize(
    "cls", discover_models().values(), ids=lambda cls: cls.__name__
)
each_table = pytest.mark.parametrize("name", AWKWARD)


@each_example
@each_table
def test_level_violations_and_holds_agree(example, name):
    model, table = example.make(), AWKWARD[name]()
    before = table.frame.clone()
    violations = model.violations(table)
    assert violations.shape == (len(table),)
    assert violations.dtype == np.bool_
    assert model.holds(table) is (not violations.any())
    assert model.holds(table) == (model.level(table) >= model.threshold)
    assert table.frame.equals(before)


@each_example
def test_masking_everything_away_satisfies_it(example):
    """Thirteen equal records are the best that thirteen records can be."""
    table = Table(pl.DataFrame({"x": [1] * 13}), Roles(quasi_identifiers=["x"]))
    assert example.make().holds(table)


@each_example
def test_all_records_apart_violate_it(example):
    table = Table(pl.DataFrame({"x": list(range(13))}), Roles(quasi_identifiers=["x"]))
    assert example.make().violations(table).all()


@each_example
def test_it_is_frozen_and_compares_by_value(example):
    model = example.make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(model, parameters_of(type(model))[0].name, 99)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.set_params(**model.get_params())
    assert model == example.make()
    assert hash(model) == hash(example.make())


@each_example
def test_the_impossible_is_refused_before_any_work(example):
    assert example.impossible is not None, "say in the registry what is impossible, or why nothing"
    table = people()
    example.make().check(table)
    hopeless = type(example.make())(**example.impossible(len(table)))
    with pytest.raises(InputError, match=rf"has {len(table)} records.*\.$"):
        hopeless.check(table)


@each_example
def test_the_explanation_is_a_sentence_without_cells(example):
    table = Table(
        pl.DataFrame({"x": ["canary-7d1f", "b", "b"], "y": [918273645, 1, 1]}),
        Roles(quasi_identifiers=["x", "y"]),
    )
    said = example.make().explain(table)
    assert "canary" not in said
    assert "918273645" not in said
    assert str(example.make().threshold) in said
    assert not said.endswith(".")  # it becomes a part of a longer sentence


@each_class
@given(data=st.data())
def test_plans_carry_every_parameter(cls, data):
    model = data.draw(models(cls.model))
    plan = Plan(require=[model])
    (back,) = Plan.from_toml(plan.to_toml()).require
    assert back == model


@each_class
def test_numbers_of_numpy_are_numbers(cls):
    """A threshold from a loop over numpy numbers must not break the file formats."""
    model = cls(np.int64(3))
    assert model == cls(3)
    assert Plan.from_toml(Plan(require=[model]).to_toml()).require == (cls(3),)


@each_class
def test_an_unknown_key_in_a_plan_names_the_nearest(cls):
    name = parameters_of(cls)[0].name
    with pytest.raises(ParameterError, match=f"'{cls.model}' has no parameter '{name}s'"):
        Plan.from_dict({"require": {cls.model: {name: 2, f"{name}s": 2}}})
    with pytest.raises(ParameterError, match=f"needs a value for '{name}'"):
        Plan.from_dict({"require": {cls.model: {}}})


@each_class
def test_two_readings_of_missing(cls):
    if "missing" not in {parameter.name for parameter in parameters_of(cls)}:
        pytest.skip("the model has one reading of missing values")
    table = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own, wildcard = (cls(2, missing=reading) for reading in ("own", "wildcard"))
        assert wildcard.level(table) >= own.level(table)
        assert not (wildcard.violations(table) & ~own.violations(table)).any()
