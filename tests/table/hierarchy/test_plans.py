"""Hierarchies in plans: a path or an inline table, which round-trip."""

from __future__ import annotations

import pickle
import tomllib
from copy import deepcopy

import polars as pl
import pytest
import tomlkit

from shoal import Hierarchy, Table
from shoal.errors import InputError, PlanError, ReadError

FUNCTIONS = [
    Hierarchy.intervals([5, 10, 20]),
    Hierarchy.intervals(0.1, origin=0.05, levels=3),
    Hierarchy.intervals(edges=[[18, 30.5, 65], [30.5]]),
    Hierarchy.rounding([10, 100]),
    Hierarchy.prefixes([4, 3, 2]),
    Hierarchy.prefixes([2], pad=5),
    Hierarchy.dates(),
    Hierarchy.dates(["day", "week", "iso-year"]),
    Hierarchy.suppression(),
]
LISTS = [
    Hierarchy.from_rows([["a", "v"], ["b", "w"]]),
    Hierarchy.tree({"Europe": ["FR"], "Asia": ["JP"]}),
    Hierarchy.ordered(["low", "medium", "high"]),
]


@pytest.mark.parametrize("hierarchy", FUNCTIONS + LISTS, ids=repr)
def test_a_hierarchy_round_trips_through_a_plan(hierarchy):
    text = tomlkit.dumps({"hierarchies": {"x": hierarchy.to_plan()}})
    again = Hierarchy.from_plan(tomllib.loads(text)["hierarchies"]["x"])
    assert again == hierarchy
    assert hash(again) == hash(hierarchy)
    assert again.to_plan() == hierarchy.to_plan()
    assert sum(other == again for other in FUNCTIONS + LISTS) == 1
    assert pickle.loads(pickle.dumps(hierarchy)) == deepcopy(hierarchy) == hierarchy
    assert Hierarchy.from_plan(hierarchy) is hierarchy


def test_a_path_is_relative_to_the_plan_and_stays_as_it_was_written(tmp_path):
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "hierarchies" / "x.csv").write_text("a;v;*\nb;w;*\n")
    found = Hierarchy.from_plan("hierarchies/x.csv", tmp_path)
    assert found == LISTS[0]
    assert found.to_plan() == "hierarchies/x.csv"
    absolute = str(tmp_path / "hierarchies" / "x.csv")
    assert Hierarchy.from_plan(absolute, tmp_path / "other").to_plan() == absolute
    assert "rows" in found.extended(["c"]).to_plan(), "no longer what the file says"
    with pytest.raises(ReadError, match="no hierarchy file"):
        Hierarchy.from_plan("hierarchies/x.csv", tmp_path / "other")


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ({"ordered": ["a", "b", "c"], "groups": [1, 2]}, ["a", "b..c", "b..c"]),
        ({"ordered": ["a", "b", "c"], "fan_out": 2}, ["a..b", "a..b", "c"]),
        ({"tree": {"v": ["a"], "w": ["b", "c"]}}, ["v", "w", "w"]),
    ],
)
def test_lists_can_be_written_by_hand(value, rows):
    assert [row[1] for row in Hierarchy.from_plan(value).to_plan()["rows"]] == rows


def test_edges_and_widths_can_be_written_by_hand():
    assert Hierarchy.from_plan({"edges": [1, 2, 3], "levels": 2}).levels == 4
    assert Hierarchy.from_plan({"intervals": 5, "levels": 3}) == FUNCTIONS[0]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (5, "path of a file or a table"),
        ({}, "has 0"),
        ({"prefix": [2]}, "Did you mean 'prefixes'"),
        ({"prefixes": [2], "dates": ["year"]}, "has 2"),
        ({"prefixes": [2], "pat": 5}, "no option 'pat'. Did you mean 'pad'"),
        ({"prefixes": None}, "cannot be made from NoneType"),
        ({"rows": 5}, "cannot be made from int"),
    ],
)
def test_a_plan_that_cannot_be_understood(value, told):
    with pytest.raises(PlanError, match=told):
        Hierarchy.from_plan(value)


def test_what_does_not_nest_is_an_input_error_in_a_plan_too():
    with pytest.raises(InputError, match="not a multiple"):
        Hierarchy.from_plan({"intervals": [5, 12]})


def test_it_is_frozen_and_prints_no_value():
    with pytest.raises(AttributeError):
        LISTS[0].source = "x"
    assert repr(LISTS[0]) == "Hierarchy: 3 levels, a list of 2 values"
    codes = LISTS[0].codes(Table(pl.DataFrame({"x": ["a"]})), "x")
    assert repr(codes) == "HierarchyCodes('x', levels=3, count=1)"
    with pytest.raises(ValueError, match="read-only"):
        codes.maps[0, 0] = 5
