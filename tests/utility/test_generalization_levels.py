"""Levels of generalization, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Generalize, Hierarchy
from shoal.errors import InputError
from shoal.utility import generalization_intensity

from .tables import masked_as, quasi

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
    with pytest.raises(InputError, match="no column"):
        generalization_intensity(table, table, hierarchies={"agee": AGES})
    with pytest.raises(InputError, match="no hierarchy for 'town'"):
        generalization_intensity(table, table, hierarchies={"age": AGES}, columns=["age", "town"])
    only = generalization_intensity(table, table, hierarchies={"age": AGES})
    assert list(only.details["columns"]) == ["age"]


def test_rows_are_paired_by_their_key():
    table = people()
    masked = TOWNS.generalize(table, "town", 1).reorder(np.array([3, 1, 0, 2]))
    found = generalization_intensity(table, masked, hierarchies=TREES)
    assert found.details["levels"]["town"] == [0.0, 1.0, 0.0]
    assert found.details["elsewhere"] == {"age": 0, "town": 0}
