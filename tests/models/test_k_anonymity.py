"""k-anonymity; what holds for every model is in the contracts."""

from __future__ import annotations

import polars as pl
import pytest

from shoal import KAnonymity, Roles, Table
from shoal.errors import InputError, ParameterError


def table(*values):
    return Table(pl.DataFrame({"x": list(values)}), Roles(quasi_identifiers=["x"]))


def test_the_smallest_class_counts():
    people = table("a", "a", "a", "b", "b", None, None)
    assert KAnonymity(2).level(people) == 2
    assert KAnonymity(2).holds(people)
    assert not KAnonymity(3).holds(people)
    assert KAnonymity(3).violations(people).tolist() == [False] * 3 + [True] * 4


def test_exactly_k_is_enough():
    assert KAnonymity(3).holds(table("a", "a", "a"))
    assert not KAnonymity(4).holds(table("a", "a", "a"))


def test_a_missing_value_is_no_hiding_place():
    """Dropping records with a missing key, as group-by does by default, would give k = 3 here."""
    people = table("a", "a", "a", None)
    assert KAnonymity(2).level(people) == 1
    assert KAnonymity(2, missing="wildcard").level(people) == 4


def test_sentences():
    said = KAnonymity(3).explain(table("a", "a", "a", "b"))
    assert said == (
        "k-anonymity with k = 3 asks for classes of at least 3 records; the smallest class has 1, "
        "and 1 of 4 records are in classes that are too small"
    )
    with pytest.raises(InputError, match="k = 5 is larger than the table, which has 4 records"):
        KAnonymity(5).check(table("a", "a", "a", "b"))
    KAnonymity(4).check(table("a", "a", "a", "b"))


@pytest.mark.parametrize("k", [1, 0, -3, 2.0, True, "3", None])
def test_k_is_an_integer_of_two_or_more(k):
    with pytest.raises(ParameterError, match="an integer ≥ 2"):
        KAnonymity(k)


def test_no_records():
    nobody = Table(pl.DataFrame({"x": []}), Roles(quasi_identifiers=["x"]))
    assert KAnonymity(2).level(nobody) == 0
    with pytest.raises(InputError, match="has 0 records"):
        KAnonymity(2).check(nobody)
