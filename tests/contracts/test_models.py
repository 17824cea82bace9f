"""The contract of privacy models."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Roles, Table
from shoal.errors import InputError, ParameterError, PlanError
from shoal.models import conditions_of, discover_models, table_conditions
from shoal.parameters import parameters_of

from .parts.model_examples import MODELS, with_secret
from .parts.registry import AWKWARD, crossed, models, people

each_example = pytest.mark.parametrize("example", MODELS, ids=lambda example: example.id)
each_class = pytest.mark.parametrize(
    "cls", discover_models().values(), ids=lambda cls: cls.__name__
)
each_case = pytest.mark.parametrize(("example", "name"), crossed(MODELS))


@each_case
def test_level_violations_and_holds_agree(example, name):
    table = with_secret(AWKWARD[name]())
    model = example.make(table)
    before = table.frame.clone()
    violations = model.violations(table)
    assert violations.shape == (len(table),)
    assert violations.dtype == np.bool_
    assert model.holds(table) is (not violations.any())
    level = model.level(table)
    assert model.holds(table) == bool(model.accepts(level))
    better = level - model.threshold if model.direction == "higher" else model.threshold - level
    assert not model.holds(table) or better > -1e-8
    assert model.holds(table) or better < 1e-8
    assert table.frame.equals(before)


@each_example
def test_masking_everything_away_satisfies_it(example):
    """Thirteen equal records have the best level that thirteen records can have."""
    table = with_secret(Table(pl.DataFrame({"x": [1] * 13}), Roles(quasi_identifiers=["x"])))
    assert example.make(table).holds(table) is not bool(example.by_steps)


@each_example
def test_all_records_apart_violate_it(example):
    table = Table(pl.DataFrame({"x": list(range(13))}), Roles(quasi_identifiers=["x"]))
    table = with_secret(table)
    if example.holds_apart:
        assert not example.make(table).violations(table).any(), example.holds_apart
    else:
        assert example.make(table).violations(table).all()


@each_example
def test_nobody_violates_nothing(example):
    nobody = with_secret(Table(pl.DataFrame({"x": []}), Roles(quasi_identifiers=["x"])))
    model = example.make(nobody)
    assert model.violations(nobody).shape == (0,)
    assert model.level(nobody) == 0
    assert model.holds(nobody)


@each_example
def test_a_search_that_forms_groups_is_told_what_it_asks(example):
    """A search without a demand would claim what it does not check."""
    table = people()
    model = example.make(table)
    if not (model.smallest_class > 1 or model.conditions(table) or table_conditions([model])):
        with pytest.raises(InputError, match="no search can form groups by it"):
            conditions_of([model], table)
        return
    conditions, codes = conditions_of([model], table)
    assert codes.shape == (len(conditions.values), len(table))
    assert len(conditions.kinds) == len(model.conditions(table))
    assert conditions.smallest == model.smallest_class


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
    table = people()
    if example.by_steps:
        with pytest.raises(InputError, match="covers only quasi-identifiers"):
            example.make(table).check(table)
        return
    example.make(table).check(table)
    if isinstance(example.impossible, str):
        assert example.impossible
        return
    hopeless = example.make(table, **example.impossible(len(table)))
    with pytest.raises(InputError, match=r"\d.*\. Choose .*\d\.$"):
        hopeless.check(table)


@each_example
def test_the_explanation_is_a_sentence_without_cells(example):
    table = Table(
        pl.DataFrame({"x": ["canary-7d1f", "b", "b"], "y": [918273645, 1, 1]}),
        Roles(quasi_identifiers=["x", "y"]),
    )
    table = with_secret(table)
    said = example.make(table).explain(table)
    assert "canary" not in said
    assert "s1" not in said
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


@each_example
def test_numbers_of_numpy_are_numbers(example):
    """A threshold from a loop over numpy numbers must not break the file formats."""
    kinds = {int: np.int64, float: np.float64}
    given = {n: kinds.get(type(v), lambda v: v)(v) for n, v in example.parameters.items()}
    model = example.make(**given)
    assert type(model.threshold) in kinds.values()
    assert model == example.make()
    assert Plan.from_toml(Plan(require=[model]).to_toml()).require == (example.make(),)


def test_a_plan_holds_a_population_by_its_path_alone():
    table = people()
    for example in MODELS:
        if "population" in example.parameters:
            Plan(require=[example.make()])
            with pytest.raises(PlanError, match=r"'population' of .* path of its file"):
                Plan(require=[example.make(table)])


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
