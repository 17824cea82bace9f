"""Declared parameters: what they accept, in code and in words."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated

import numpy as np
import polars as pl
import pytest

from shoal import Table
from shoal.errors import InputError, ParameterError
from shoal.measurement import Measurement, measure
from shoal.parameters import (
    ByColumn,
    ColumnNames,
    Condition,
    Integer,
    OneOf,
    Parametrized,
    Real,
    Secret,
    Text,
    check_parameter_name,
    column_weights,
    parameters_of,
)

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("constraint", "good", "bad", "said"),
    [
        (
            Integer(minimum=2),
            [2, 10**30, np.int8(3), np.uint64(5)],
            [1, 0, -2, 2.0, True, np.float64(2), "2", None, NAN, Decimal(2)],
            "an integer ≥ 2",
        ),
        (
            Real(above=0),
            [1, 0.5, 1e-300, np.float32(0.5), np.int64(1), Fraction(1, 3)],
            [0, -1, NAN, INF, -INF, True, "1", None, 1j, np.bool_(True)],
            "a number > 0",
        ),
        (
            Real(minimum=0, maximum=1),
            [0, 1, 0.5, -0.0],
            [-0.1, 1.1, NAN, INF, False],
            "a number ≥ 0 and ≤ 1",
        ),
        (Real(), [-5, 0, 1e300], [NAN, INF, "x"], "a number"),
        (
            OneOf(("own", "wildcard")),
            ["own", "wildcard"],
            ["Own", "", None, 1, ["own"], ("own",)],
            "one of 'own', 'wildcard'",
        ),
        (Text(), ["a", " a "], ["", "  ", "\n", None, 5, b"a"], "a text that is not empty"),
        (Condition(), ["age > 5"], ["", " ", 5], "a condition as in SQL"),
        (
            ColumnNames(),
            [["a"], ("a", "b"), ["*", ""]],
            [[], (), "a", b"a", ["a", "a"], [1], None, {"a"}, {"a": 1}, 5],
            "a list of different column names",
        ),
        (
            ByColumn("weights", Real(above=0), "1"),
            [{}, {"a": 3}, {"a": 0.5, "*": np.float32(2)}, MappingProxyType({"": 1})],
            [
                *({"a": bad} for bad in (0, -1, NAN, INF, True, "1", None, 10**400, {})),
                *({"a": 1, other: 1} for other in (5, None, b"b")),
                *(None, [("a", 1)], "a", 1, ["a"]),
            ],
            "a table of columns with their weights, each a number > 0",
        ),
        (
            Secret(),
            [0, 5, 2**200, np.int64(3)],
            [-1, 0.5, "5", True],
            "an integer ≥ 0, or None for the operating system's entropy",
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "accepts") else "",
)
def test_constraints(constraint, good, bad, said):
    assert [value for value in good if not constraint.accepts(value)] == []
    assert [value for value in bad if constraint.accepts(value)] == []
    assert constraint.describe() == said


@dataclass(kw_only=True)
class Method(Parametrized):
    k: Annotated[int, Integer(minimum=2)]
    share: Annotated[float | None, Real(above=0)] = None
    where: Annotated[str | None, Condition()] = None
    seed: Annotated[int | None, Secret()] = None
    mode: Annotated[str, OneOf(("a", "b"))] = "a"


def test_declared_parameters():
    declared = parameters_of(Method)
    assert [p.name for p in declared] == ["k", "share", "where", "seed", "mode"]
    assert [p.required for p in declared] == [True, False, False, False, False]
    assert [p.optional for p in declared] == [False, True, True, True, False]
    assert [p.private for p in declared] == [False, False, True, True, False]
    assert declared[4].default == "a"


def test_a_parameter_without_a_constraint_is_a_mistake_of_the_author():
    @dataclass
    class Careless(Parametrized):
        k: int = 5

    with pytest.raises(TypeError, match=r"Careless\.k declares no constraint"):
        Careless()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 1}, "The 'k' parameter of Method must be an integer ≥ 2. Got 1 instead."),
        ({"k": None}, "Got None instead."),
        ({"k": 2, "share": 0}, "The 'share' parameter of Method must be a number > 0. Got 0"),
        ({"k": 2, "mode": None}, "one of 'a', 'b'. Got None instead."),
        ({"k": 2, "mode": "x" * 500}, "..."),
    ],
)
def test_errors(given, said):
    with pytest.raises(ParameterError) as caught:
        Method(**given)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": 3, "zip": 0}, "0 for 'zip'"),
        ({"a": True}, "True for 'a'"),
        ({"a": "x" * 500}, "... for 'a'"),
        ({5: 1}, "1 for 5"),
        ([3], "[3]"),
    ],
)
def test_an_error_names_the_first_column_with_an_invalid_value(given, said):
    assert ByColumn("weights", Real(above=0), "1").shown(given).endswith(said)


def test_weights_are_relative_to_the_largest():
    assert column_weights(None, ["a", "b"], "weights") == (1.0, 1.0)
    assert column_weights({"b": 4}, ["a", "b", "c"], "weights") == (0.25, 1.0, 0.25)
    assert column_weights({"b": 0.25}, ["a", "b"], "weights") == (1.0, 0.25)
    assert column_weights({"a": 0.1, "b": 0.3}, ["a", "b"], "weights") == column_weights(
        {"a": 1, "b": 3}, ["a", "b"], "weights"
    )
    assert column_weights({"a": 1e308, "b": 1e-308}, ["a", "b"], "weights") == (1.0, 1e-12)
    assert column_weights({}, [], "weights") == ()


def test_weights_of_other_columns_are_refused():
    with pytest.raises(InputError, match=r"'importance' names 'aeg', 'ill', .* 'age'"):
        column_weights({"age": 1, "aeg": 2, "ill": 1}, ["age", "zip"], "importance")


def test_private_values_are_in_no_error():
    with pytest.raises(ParameterError) as caught:
        Method(k=2, seed="my password")
    assert "password" not in str(caught.value)
    assert "Got str instead" in str(caught.value)


def test_optional_parameters_may_be_none():
    assert Method(k=2, share=None, where=None, seed=None).share is None


def test_get_and_set():
    method = Method(k=2)
    assert method.get_params() == {"k": 2, "share": None, "where": None, "seed": None, "mode": "a"}
    assert method.get_params(deep=False) == method.get_params()
    assert method.set_params(k=3, mode="b") is method
    assert (method.k, method.mode) == (3, "b")
    with pytest.raises(ParameterError, match="The Method has no parameter 'mod'"):
        method.set_params(mod="a")
    with pytest.raises(ParameterError, match="Got 1 instead"):
        method.set_params(k=1)


def test_changed_parameters_are_the_required_and_the_others_than_default():
    assert Method(k=2).changed_params() == {"k": 2}
    full = Method(k=2, share=0.5, where="x = 1", seed=7, mode="b")
    assert full.changed_params() == {
        "k": 2,
        "share": 0.5,
        "where": "x = 1",
        "seed": 7,
        "mode": "b",
    }
    assert full.changed_params(public=True) == {"k": 2, "share": 0.5, "mode": "b"}


def test_from_a_mapping():
    assert Method.from_params({"k": 2, "mode": "b"}, called="step 'x'") == Method(k=2, mode="b")
    with pytest.raises(ParameterError, match="The step 'x' needs a value for 'k'"):
        Method.from_params({}, called="step 'x'")
    with pytest.raises(
        ParameterError, match=r"The step 'x' has no parameter 'shar'\. Did you mean 'share'\?"
    ):
        Method.from_params({"k": 2, "shar": 1}, called="step 'x'")


def test_names():
    assert check_parameter_name(Method, "k") == "k"
    with pytest.raises(ParameterError, match=r"Use one of 'k', 'share'"):
        check_parameter_name(Method, "zzzzz")


def test_a_measure_declares_its_options_in_the_same_way():
    @measure("invented", direction="lower", limits=(0, 1))
    def invented(table, *, k: Annotated[int, Integer(2)] = 5, free=None):
        return Measurement("invented", 1 / k)

    table = Table(pl.DataFrame({"age": [31]}))
    assert invented(table, k=2).value == 0.5
    with pytest.raises(InputError, match=r"needs a shoal\.Table; got str"):
        invented("a table", k=2)
    with pytest.raises(ParameterError, match="'k' parameter of invented must be an integer ≥ 2"):
        invented(table, k=1)
    assert list(invented.info.options) == ["k", "free"]
    assert not invented.info.needs_original
    with pytest.raises(ParameterError, match="'invented' has no option 'l'"):
        invented.info.check_names(["k", "l"])
