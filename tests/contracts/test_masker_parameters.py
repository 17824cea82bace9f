"""The contract of masking methods for their randomness and parameters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Table
from shoal.errors import (
    InputError,
    ParameterError,
    SeedWarning,
)
from shoal.parameters import Flag, parameters_of

from .parts.each_masker import each_class, each_example, each_random
from .parts.registry import (
    FIRST_BY_PLACE,
    KNOWN_METHODS,
    MASKERS,
    QUASI_IDENTIFIERS,
    ROLES,
    masked_by,
    maskers,
    people,
)

# -- randomness


@each_random
def test_a_seed_repeats_and_warns(example):
    results = []
    for _ in range(2):
        with pytest.warns(SeedWarning, match="secret"):
            results.append(example.make(people(), random_state=11).fit_transform(people()))
    assert results[0].frame.equals(results[1].frame)
    other = masked_by(example.make(people(), random_state=12), people())
    assert not other.frame.equals(results[0].frame)


@each_random
def test_without_a_seed_two_runs_differ_and_nothing_is_warned(example):
    masker = example.make(people())
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeedWarning)
        first, second = (masker.fit_transform(people()) for _ in range(2))
    assert not first.frame.equals(second.frame)


@each_random
def test_the_key_of_the_randomness_is_private(example):
    masker = example.make(people(), random_state=11)
    masked_by(masker, people())
    assert masker.audit_["key"]
    assert masker.audit_["key"] not in repr(masker)
    assert "random_state" not in masker.changed_params(public=True)


@pytest.mark.parametrize(
    "example",
    [e for e in MASKERS if not KNOWN_METHODS[e.method].is_random],
    ids=lambda example: example.id,
)
def test_without_randomness_two_runs_are_equal(example):
    first, second = (masked_by(example.make(people()), people()) for _ in range(2))
    assert first.frame.equals(second.frame)
    assert example.make(people()).fit_transform(people()).frame.equals(first.frame)


@each_example
def test_the_order_of_the_columns_does_not_matter(example):
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    table = people()
    reversed_table = Table(table.frame.select(table.columns[::-1]), ROLES)
    masked = masked_by(example.make(table, **random), table)
    other = masked_by(example.make(table, **random), reversed_table)
    assert other.frame.select(masked.columns).equals(masked.frame)


# -- parameters


@each_example
def test_parameters_as_scikit_learn_has_them(example):
    masker = example.make(people())
    params = masker.get_params()
    assert list(params) == [parameter.name for parameter in parameters_of(type(masker))]
    assert type(masker)(**params).get_params() == params
    assert masker.set_params(**params) is masker
    with pytest.raises(ParameterError, match="has no parameter 'nobody'"):
        masker.set_params(nobody=1)
    assert repr(masker).startswith(type(masker).__name__ + "(")


@each_example
def test_scikit_learn_can_clone_it(example):
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    masker = example.make(people())
    masked_by(masker, people())
    twin = base.clone(masker)
    assert twin is not masker
    assert twin.get_params() == masker.get_params()
    assert not hasattr(twin, "touched_"), "a clone is not fitted"


@each_class
def test_options_are_keyword_only(cls):
    first = FIRST_BY_PLACE.get(cls.method)
    with pytest.raises(TypeError, match="by name"):
        cls(first or 2, *([] if first is None else [2]))
    if first is not None:
        needed = {"k": 2} if cls.method == "generalize" else {}
        assert next(iter(cls(first, **needed).get_params().values())) == first


@each_class
@given(data=st.data())
def test_plans_carry_every_parameter(cls, data):
    """Python → TOML → Python is the identity, for every value that a parameter accepts."""
    masker = data.draw(maskers(cls.method))
    plan = Plan([masker])
    (back,) = Plan.from_toml(plan.to_toml()).steps
    assert type(back) is cls
    assert back.get_params() == masker.get_params()
    assert Plan([back]) == plan


@each_class
def test_an_unknown_key_in_a_plan_names_the_nearest(cls):
    name = parameters_of(cls)[0].name
    with pytest.raises(ParameterError, match=f"Did you mean '{name}'"):
        Plan.from_dict({"steps": [{"method": cls.method, f"{name}s": 1}]})


@each_class
def test_a_wrong_type_is_refused(cls):
    for parameter in parameters_of(cls):
        if parameter.name == "columns":
            continue
        truth = "yes" if isinstance(parameter.constraint, Flag) else True
        for wrong in (object(), float("nan"), [], truth):
            with pytest.raises(ParameterError, match=f"'{parameter.name}'"):
                cls(**{parameter.name: wrong, **needed(cls, parameter.name)})


def needed(cls, besides):
    """The other parameters that the class needs, so that only one parameter is wrong."""
    of_class = [e for e in MASKERS if e.method == cls.method]
    if not of_class:  # one that stands apart: its first parameter is all that it needs
        first = parameters_of(cls)[0].name
        return {} if first == besides else {first: FIRST_BY_PLACE[cls.method]}
    example = next((e for e in of_class if besides in e.parameters), of_class[0])
    return {k: v for k, v in example.parameters.items() if k != besides}


def test_the_quasi_identifiers_are_of_every_kind():
    """With the usual people, a type error would not show."""
    kinds = {people().kind(name) for name in QUASI_IDENTIFIERS}
    assert kinds == {"integer", "float", "text", "boolean", "date"}
    assert isinstance(people().row_key, np.ndarray)


@each_example
def test_new_rows_are_mapped_as_the_fitted_ones_were(example):
    """A method that works cell by cell treats a later row in the same way."""
    table = people()
    masker = example.make(table)
    with pytest.raises(InputError, match="fit_transform"):
        masker.transform(table)
    masked = masked_by(masker, table)
    served = masker.transform(table)
    assert len(served) == len(table)
    assert served.columns == masked.columns
    if example.serves:
        assert served.frame.equals(masked.frame)
    elif example.serves is not None:
        assert served.frame.equals(table.frame)
