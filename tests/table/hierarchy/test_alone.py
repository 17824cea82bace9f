"""The people who are unique at each level are those of the generalized tables."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.risk import uniqueness
from shoal.table.hierarchy._alone import LevelCombinations, people_by_node

HIERARCHIES = {
    "age": Hierarchy.intervals([5, 10, 40]),
    "town": Hierarchy.tree({"north": ["t0", "t1", "t2"], "south": ["t3", "t4"]}),
}


def table_of(unit: str) -> Table:
    frame = pl.DataFrame(
        {
            "who": [n * 7 % 40 for n in range(90)],
            "age": [None if n % 17 == 0 else 20 + n * 13 % 60 for n in range(90)],
            "town": [f"t{n * 3 % 5}" for n in range(90)],
        }
    )
    return Table(frame, Roles(quasi_identifiers=["age", "town"], unit=unit))


@pytest.mark.parametrize("unit", ["row", "who"])
def test_counted_as_on_the_generalized_table(unit):
    table = table_of(unit)
    codes = {name: one.codes(table, name) for name, one in HIERARCHIES.items()}
    combinations = LevelCombinations(table, codes)
    seen = set()
    for age, town in itertools.product(range(5), range(3)):
        coarse = HIERARCHIES["age"].generalize(table, "age", age)
        coarse = HIERARCHIES["town"].generalize(coarse, "town", town)
        expected = round(uniqueness(coarse).value * table.person_count)
        assert combinations.alone({"age": age, "town": town}) == expected
        assert combinations.alone_by_level("age", {"town": town})[age] == expected
        seen.add(expected)
    assert len(seen) > 3


@pytest.mark.parametrize(("unit", "fewer"), [("row", 3), ("who", 1)])
def test_more_combinations_than_a_word_can_number(unit, fewer):
    values = list(range(128))  # seven bits in each of ten columns
    columns = {"c0": [*values, 2, 4]} | {f"c{n}": [*values, 0, 0] for n in range(1, 10)}
    frame = pl.DataFrame({"who": [n // 2 for n in range(130)]} | columns)
    table = Table(frame, Roles(quasi_identifiers=list(columns), unit=unit))
    codes = {name: Hierarchy.intervals([8]).codes(table, name) for name in columns}
    combinations = LevelCombinations(table, codes)
    people = table.person_count
    assert combinations.alone_by_level("c9", {}) == [people, people, people]
    assert combinations.alone_by_level("c0", {}) == [people, people - fewer, people - fewer]


@pytest.mark.parametrize(("unit", "total"), [("row", 90), ("who", 40)])
def test_people_are_counted_once_in_a_node(unit, total):
    table = table_of(unit)
    everyone = np.zeros(table.codes("town").count, np.int64)
    assert people_by_node(table, "town", everyone, 1).tolist() == [total]
    nobody = people_by_node(table, "town", everyone - 1, 2)
    assert nobody.tolist() == [0, 0]


def test_places_of_values_in_a_list():
    table = Table(pl.DataFrame({"town": ["b", "c", "a"]}))
    towns = Hierarchy.from_rows([["c", "x"], ["a", "x"], ["q", "y"]])
    assert towns.places(table, "town").tolist() == [1, -1, 0]
    with pytest.raises(InputError, match="does not list values"):
        Hierarchy.intervals(5).places(table, "town")
