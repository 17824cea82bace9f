"""How wide released values are, and at which levels of their hierarchies."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.utility import generalization_intensity, normalized_certainty_penalty

from .tables import masked_as, quasi


def penalty(people, masked):
    return normalized_certainty_penalty(people, masked).value


def test_intervals_cost_their_width():
    people = quasi(age=[20, 24, 31, 60])
    tree = Hierarchy.intervals([10, 40])
    assert penalty(people, people) == 0.0
    assert penalty(people, tree.generalize(people, "age", 1)) == pytest.approx(27 / 40 / 4)
    # [0, 40) reaches from 20 to 39, [40, 80) from 40 to 60
    assert penalty(people, tree.generalize(people, "age", 2)) == pytest.approx(77 / 40 / 4)
    # among fractions, it reaches up to its end
    parts = quasi(age=[20.5, 24.5, 31.5, 60.5])
    assert penalty(parts, tree.generalize(parts, "age", 1)) == pytest.approx(29.5 / 160)
    assert penalty(people, tree.generalize(people, "age", 3)) == 1.0


def test_sets_cost_their_size():
    """Two of four values were released as one: 1/3."""
    people = quasi(town=list("abcd"))
    masked = masked_as(people, town=["ab", "ab", "c", "d"])
    assert penalty(people, masked) == pytest.approx(2 / 3 / 4)
    assert penalty(people, masked_as(people, town=["all"] * 4)) == 1.0


def test_other_names_of_numbers_cost_what_is_below_them():
    people = quasi(age=[20, 24, 31, 60], day=[dt.date(2020, 1, d) for d in (1, 3, 5, 11)])
    masked = masked_as(people, age=["young", "young", "young", "old"], day=["a", "a", "b", "b"])
    found = normalized_certainty_penalty(people, masked).details["columns"]
    assert found["age"] == pytest.approx(3 * 11 / 40 / 4)
    assert found["day"] == pytest.approx((2 * 2 + 2 * 6) / 10 / 4)


def test_what_is_gone_costs_one():
    people = quasi(x=[1, 2, None, 4], y=list("abcd"))
    emptied = people.blank({"x": np.array([True, False, False, False])})
    assert normalized_certainty_penalty(people, emptied).details["columns"]["x"] == 1 / 4
    starred = masked_as(people, x=["*", "2", None, "4"], y=list("abcd"))
    assert normalized_certainty_penalty(people, starred).details["columns"]["x"] == 1 / 4
    assert normalized_certainty_penalty(people, people.drop(["x"])).details["columns"] == {
        "x": 3 / 4,
        "y": 0.0,
    }
    taken_out = people.keep(np.array([False, True, True, True]))
    found = normalized_certainty_penalty(people, taken_out)
    assert found.value == 1 / 4
    assert found.details["released_records"] == 0.0
    assert found.details["records_taken_out"] == 1


def test_numbers_that_moved_cost_nothing():
    people = quasi(x=[1.0, 2.0, 3.0])
    assert penalty(people, masked_as(people, x=[9.0, 9.0, 9.0])) == 0.0


def test_a_constant_column_costs_nothing_but_suppressed():
    people = quasi(x=[5, 5])
    assert penalty(people, Hierarchy.intervals(10).generalize(people, "x", 1)) == 0.0
    assert penalty(people, masked_as(people, x=["*", "*"])) == 1.0


def test_huge_and_open_intervals():
    people = quasi(x=[-1.7e308, 0.0, 1.7e308])
    masked = masked_as(people, x=["<0", "[0, 0]", ">=0"])
    assert penalty(people, masked) == pytest.approx((0.5 + 0 + 0.5) / 3)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_loss_of_the_search_for_one_nominal_column(seed):
    """Of one column the geometric mean of the searches is the mean itself."""
    rng = np.random.default_rng(seed)
    values = list("abcdefgh")
    people = Table(
        pl.DataFrame({"x": [*values, *rng.choice(values, 60)]}), Roles(quasi_identifiers=["x"])
    )
    step = Generalize(k=10, hierarchies={"x": Hierarchy.ordered(values)}, suppression_limit=0.2)
    masked = step.fit_transform(people)
    assert step.loss_ > 0
    assert penalty(people, masked) == pytest.approx(step.loss_, abs=1e-9)


def test_mondrian_costs_less_than_a_star():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.integers(0, 90, 400), "b": rng.normal(size=400)})
    people = Table(frame, Roles(quasi_identifiers=["a", "b"]))
    costs = [
        penalty(people, Generalize(k=k, algorithm="mondrian").fit_transform(people))
        for k in (2, 10, 100)
    ]
    assert 0 < costs[0] < costs[1] < costs[2] < 1


def test_tables_read_apart_are_refused():
    with pytest.raises(InputError, match="cannot be paired"):
        normalized_certainty_penalty(quasi(x=[1]), quasi(x=[1]))
    people = Table(pl.DataFrame({"x": [1]}))
    with pytest.raises(InputError, match="no quasi-identifiers"):
        normalized_certainty_penalty(people, people)


def test_rows_are_paired_by_their_key():
    people = quasi(town=list("aabcd"))
    masked = masked_as(people, town=["ab", "ab", "ab", "c", "d"])
    turned = masked.reorder(np.array([3, 0, 4, 2, 1]))
    assert penalty(people, masked) == penalty(people, turned) == pytest.approx(3 * (1 / 3) / 5)


AGES = Hierarchy.intervals([10, 20])
TOWNS = Hierarchy.tree({"north": ["a", "b"], "south": ["c", "d"]})
TREES = {"age": AGES, "town": TOWNS}


def people():
    return quasi(age=[20, 24, 31, None], town=list("abcd"))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_one_level(level):
    table = people()
    found = generalization_intensity(table, AGES.generalize(table, "age", level), hierarchies=TREES)
    # a missing value stays missing up to the root, and costs nothing until then
    at_level = [0.0] * 4
    at_level[level] += 0.75
    at_level[3 if level == 3 else 0] += 0.25
    assert found.details["levels"]["age"] == at_level
    assert found.details["levels"]["town"] == [1.0, 0.0, 0.0]
    expected = np.mean([np.dot(at_level, [0, 1 / 3, 2 / 3, 1]), 0.0])
    assert found.value == pytest.approx(expected)


def test_cells_at_several_levels():
    table = people()
    masked = masked_as(table, age=["20", "[20, 30)", "*", None], town=["north", "b", "south", None])
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.details["levels"] == {"age": [0.5, 0.25, 0.0, 0.25], "town": [0.25, 0.5, 0.25]}


def test_records_and_columns_that_were_taken_out():
    table = people()
    masked = table.drop(["town"]).keep(np.array([True, True, False, False]))
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.details["columns"] == {"age": 0.5, "town": 1.0}


def test_a_value_from_elsewhere_has_the_lowest_level_that_has_it():
    table = people()
    masked = masked_as(table, age=[20, 24, 31, None], town=["south", "a", "c", "elsewhere"])
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.details["levels"]["town"] == [0.75, 0.25, 0.0]
    assert found.details["elsewhere"] == {"age": 0, "town": 3}


def test_it_is_the_precision_of_the_search():
    table = quasi(age=list(range(20, 60)), town=list("abcd") * 10)
    step = Generalize(k=5, hierarchies=TREES, loss="precision")
    masked = step.fit_transform(table)
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.value == pytest.approx(step.loss_, abs=1e-9)
    assert found.value > 0


def test_hierarchies_are_needed():
    table = people()
    with pytest.raises(InputError, match="hierarchies"):
        generalization_intensity(table, table)
    with pytest.raises(InputError, match="not a column"):
        generalization_intensity(table, table, hierarchies={"agee": AGES})
    with pytest.raises(InputError, match="no hierarchy for 'town'"):
        generalization_intensity(table, table, hierarchies={"age": AGES}, columns=["age", "town"])
    only = generalization_intensity(table, table, hierarchies={"age": AGES})
    assert list(only.details["columns"]) == ["age"]


def test_levels_are_of_rows_paired_by_their_key():
    table = people()
    masked = TOWNS.generalize(table, "town", 1).reorder(np.array([3, 1, 0, 2]))
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.details["levels"]["town"] == [0.0, 1.0, 0.0]
    assert found.details["elsewhere"] == {"age": 0, "town": 0}
