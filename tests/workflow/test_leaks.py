"""Columns outside the quasi-identifiers that link more persons than these do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Swap, Table
from shoal.risk import distance_linkage
from shoal.workflow import _leaks
from shoal.workflow._leaks import linking_columns, other_columns


def people(rows=300, **columns):
    draw = np.random.default_rng(1)
    quasi = {"age": draw.permutation(rows), "sex": draw.choice(["f", "m"], rows)}
    given = {name: make(draw, rows) for name, make in columns.items()}
    return pl.DataFrame({**quasi, **given})


def unique(draw, rows):
    return draw.permutation(rows)


def coarse(draw, rows):
    return draw.integers(0, 12, rows)


def swapped(frame, **roles):
    table = Table(frame, Roles(quasi_identifiers=["age", "sex"], **roles))
    return table, Swap(k=5).fit_transform(table)


class TestAlone:
    def test_a_column_that_tells_everybody_apart(self):
        original, masked = swapped(people(shoe=unique))
        (found,) = linking_columns(original, masked)
        assert (found.columns, found.together) == (("shoe",), False)
        assert found.found.value == 1
        assert found.by_quasi_identifiers.value < 0.4
        assert found.sentence.startswith(
            "an intruder who knows the column 'shoe' alone, which is not a quasi-identifier, "
            "finds 100 % (95 %"
        )

    def test_the_worst_of_several_is_told(self):
        original, masked = swapped(people(half=lambda d, n: d.permutation(n) // 2, shoe=unique))
        found, together = linking_columns(original, masked)
        assert found.columns == ("shoe", "half"), "the worst first"
        assert "knows one of the columns 'shoe', 'half', which are no" in found.sentence
        assert "finds up to 100 %" in found.sentence
        assert together.columns == ("half", "shoe")

    def test_a_secret_counts_where_there_is_another_to_learn(self):
        frame = people(ill=unique, wage=unique)
        one = linking_columns(*swapped(frame.drop("wage"), sensitive=["ill"]))
        assert one == ()
        (both,) = linking_columns(*swapped(frame, sensitive=["ill", "wage"]))
        assert both.columns == ("ill", "wage")
        assert not both.together

    def test_columns_with_few_values_are_not_even_tried(self, monkeypatch):
        """A value finds one person at most: 12 values of 300 cannot beat a fifth."""
        original, masked = swapped(people(shoe=coarse))
        by_quasi = distance_linkage(original, masked)
        monkeypatch.setattr(_leaks, "distance_linkage", None)
        assert linking_columns(original, masked, by_quasi) == ()

    def test_not_more_columns_than_the_limit(self, monkeypatch):
        monkeypatch.setattr(_leaks, "MOST_COLUMNS", 2)
        made = {f"c{i}": (lambda d, n, i=i: d.permutation(n) // (4 - i)) for i in range(4)}
        found = linking_columns(*swapped(people(**made)))[0]
        assert found.columns == ("c3", "c2"), "those with the most values"


class TestTogether:
    def test_columns_that_only_together_tell_people_apart(self):
        original, masked = swapped(people(a=coarse, b=coarse, c=coarse))
        (found,) = linking_columns(original, masked)
        assert (found.columns, found.together) == (("a", "b", "c"), True)
        assert found.found.value > 0.7
        assert found.sentence.startswith(
            "an intruder who knows the columns 'a', 'b', 'c', which are not quasi-identifiers, "
            "finds 93 %"
        )

    def test_a_little_more_may_be_chance(self):
        """28 values find 70 % of 40 persons, 20 values 50 %: the intervals overlap."""
        frame = pl.DataFrame({"age": np.arange(40) // 2, "shoe": np.minimum(np.arange(40), 27)})
        table = Table(frame, Roles(quasi_identifiers=["age"]))
        assert distance_linkage(table, table, known=["shoe"]).value == 0.7
        assert linking_columns(table, table) == ()

    def test_nothing_is_told_where_quasi_identifiers_link_as_well(self):
        frame = people(shoe=unique, hat=unique)
        table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
        assert linking_columns(table, table) == ()


def test_other_columns_have_no_role_that_hides_them():
    frame = people(name=unique, shoe=unique, ill=coarse, free=coarse, gone=coarse)
    roles = Roles(
        identifiers=["name"],
        quasi_identifiers=["age", "sex"],
        sensitive=["ill"],
        insensitive=["free"],
    )
    original = Table(frame, roles)
    assert other_columns(original, original.drop(["name", "gone"])) == ["shoe", "free"]


@pytest.mark.parametrize("how", ["apart", "without quasi-identifiers", "empty"])
def test_nothing_is_told_where_nothing_can_be_compared(how):
    original, masked = swapped(people(shoe=unique))
    if how == "apart":
        masked = Table(masked.frame, masked.roles)
    elif how == "empty":
        masked = masked.keep(np.zeros(len(masked), bool))
    else:
        original = original.with_roles(Roles())
    assert linking_columns(original, masked) == ()
