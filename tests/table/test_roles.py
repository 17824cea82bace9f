"""Roles: what fits, what contradicts, and what follows the columns."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import RolesError

FULL = Roles(
    identifiers=["name"],
    quasi_identifiers=["age", "zip"],
    sensitive=["ill"],
    insensitive=["note"],
    weight="w",
    target="ill",
)


def test_names_are_kept_in_order():
    assert FULL.quasi_identifiers == ("age", "zip")
    assert FULL.items() == [
        ("identifiers", "name"),
        ("quasi_identifiers", "age"),
        ("quasi_identifiers", "zip"),
        ("sensitive", "ill"),
        ("insensitive", "note"),
        ("weight", "w"),
        ("target", "ill"),
    ]
    assert Roles() == Roles(identifiers=iter([]))


def test_the_role_of_a_column():
    assert FULL.of("zip") == "quasi_identifiers"
    assert FULL.of("ill") == "sensitive", "the first that is declared"
    assert FULL.of("w") == "weight"
    assert FULL.of("nobody") is None


def test_roles_are_frozen_and_compare_by_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.weight = "x"
    assert Roles(identifiers=("a",)) == Roles(identifiers=["a"])
    assert hash(Roles(identifiers=["a"])) == hash(Roles(identifiers=("a",)))


def test_the_caller_s_list_is_not_kept():
    names = ["age"]
    roles = Roles(quasi_identifiers=names)
    names.append("zip")
    assert roles.quasi_identifiers == ("age",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"identifiers": "name"}, "a list of column names; got the text 'name'. Write ['name']."),
        ({"identifiers": 5}, "a list of column names; got int"),
        ({"identifiers": None}, "a list of column names; got NoneType"),
        ({"identifiers": {"a": 1}}, "a list of column names; got dict"),
        ({"identifiers": [1]}, "column names as text"),
        ({"weight": ["w"]}, "one column name or nothing"),
        ({"target": 5}, "one column name or nothing"),
        ({"identifiers": ["a", "a"]}, "'a' is listed twice under 'identifiers'"),
        ({"identifiers": ["a"], "sensitive": ["a"]}, "'a' has two roles"),
        ({"identifiers": ["a"], "quasi_identifiers": ["a"]}, "'a' has two roles"),
        ({"sensitive": ["a"], "insensitive": ["a"]}, "'a' has two roles"),
        ({"quasi_identifiers": ["a"], "weight": "a"}, "'a' has two roles"),
        ({"identifiers": ["a"], "target": "a"}, "'a' has two roles"),
        ({"quasi_identifiers": ["a"], "target": "a"}, "'a' has two roles"),
        ({"weight": "a", "target": "a"}, "'a' has two roles"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(RolesError) as caught:
        Roles(**given)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_a_target_may_have_a_second_role(role):
    roles = Roles(**{role: ["a"]}, target="a")
    assert roles.target == "a"


def test_they_are_keyword_only():
    with pytest.raises(TypeError):
        Roles(["name"])


@pytest.mark.parametrize("role", ["identifiers", "quasi_identifiers", "sensitive", "insensitive"])
def test_an_absent_column(role):
    with pytest.raises(RolesError, match=f"'{role}' names column 'agee'.*Did you mean 'age'"):
        Table(pl.DataFrame({"age": [1]}), Roles(**{role: ["agee"]}))


@pytest.mark.parametrize("role", ["weight", "target"])
def test_an_absent_single_column(role):
    with pytest.raises(RolesError, match="which the table does not have"):
        Table(pl.DataFrame({"age": [1]}), Roles(**{role: "w"}))


def test_no_columns_at_all():
    with pytest.raises(RolesError, match="the table has no columns"):
        Table(pl.DataFrame(), Roles(weight="w"))


def test_a_quasi_identifier_without_a_value():
    frame = pl.DataFrame({"age": [1, 2], "zip": pl.Series([None, None], dtype=pl.Int64)})
    with pytest.raises(RolesError, match="'zip'"):
        Table(frame, Roles(quasi_identifiers=["age", "zip"]))
    nothing = pl.DataFrame({"zip": [float("nan")] * 2})
    with pytest.raises(RolesError, match="'zip'"):
        Table(nothing, Roles(quasi_identifiers=["zip"]))
    Table(frame, Roles(quasi_identifiers=["age"], sensitive=["zip"]))


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0, -1.0], [1.0, None], [1.0, float("inf")]])
def test_a_weight_must_be_positive(weights):
    frame = pl.DataFrame({"w": weights})
    with pytest.raises(RolesError, match="1 values that are missing, infinite or not above 0"):
        Table(frame, Roles(weight="w"))


def test_a_weight_must_be_a_number():
    with pytest.raises(RolesError, match="'w' is not numeric"):
        Table(pl.DataFrame({"w": ["1"]}), Roles(weight="w"))
    Table(pl.DataFrame({"w": [1, 2]}), Roles(weight="w"))


def test_roles_follow_the_columns():
    assert FULL.without(["age", "w", "ill"]) == Roles(
        identifiers=["name"], quasi_identifiers=["zip"], insensitive=["note"]
    )
    assert FULL.without([]) == FULL
    assert FULL.replacing(identifiers=[]).identifiers == ()
    with pytest.raises(RolesError, match="two roles"):
        FULL.replacing(weight="age")


def test_plain_data_and_back():
    assert Roles.from_dict(FULL.to_dict()) == FULL
    assert Roles().to_dict() == {}
    with pytest.raises(RolesError, match=r"no role 'quasi_identifier'\. Did you mean"):
        Roles.from_dict({"quasi_identifier": ["age"]})
