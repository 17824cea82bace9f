"""t-closeness: three distances, against the transport problem solved as such."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal import Plan, Roles, Table, TCloseness
from shoal.errors import ParameterError
from shoal.models._t_closeness import tree_of

from .tables import Nodes, in_classes


def earth_movers(supply, demand, ground):
    """The least cost of turning one distribution into another: the definition, as a program."""
    m = len(supply)
    rows = np.kron(np.eye(m), np.ones(m))
    columns = np.kron(np.ones(m), np.eye(m))
    found = linprog(
        np.ravel(ground), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([supply, demand])
    )
    assert found.status == 0
    return found.fun


def ground_distance(distance, m, maps):
    """How far apart two values are, as Li et al. define it."""
    place = np.arange(m)
    if distance == "equal":
        return (place[:, None] != place).astype(float)
    if distance == "ordered":
        return np.abs(place[:, None] - place) / max(1, m - 1)
    meets = [np.flatnonzero(maps[:, i] == maps[:, j])[0] for i in place for j in place]
    return np.reshape(meets, (m, m)) / (len(maps) - 1)


#: Seven values under three inner levels, in which pairs meet at every height.
MAPS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6],
        [0, 0, 1, 1, 2, 2, 3],
        [0, 0, 0, 0, 1, 1, 2],
        [0, 0, 0, 0, 1, 1, 1],
        [0] * 7,
    ]
)


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=8), min_size=1, max_size=4),
    st.sampled_from(["equal", "ordered", "hierarchical"]),
)
@settings(max_examples=60)
def test_levels_by_linear_programming(groups, distance):
    table = in_classes(*groups)
    present = np.unique(np.concatenate(groups))
    maps = MAPS[:, present]
    m = len(present)
    ground = ground_distance(distance, m, maps)
    whole = np.array([sum(g.count(v) for g in groups) for v in present]) / len(table)
    costs = [
        earth_movers(np.array([g.count(v) for v in present]) / len(g), whole, ground)
        for g in groups
    ]
    more = {"column": "ill", "hierarchy": Nodes(maps)} if distance == "hierarchical" else {}
    model = TCloseness(0.3, distance=distance, **more)
    assert model.level(table) == pytest.approx(max(costs), abs=1e-9)
    expected = [cost > 0.3 + 1e-8 for cost, g in zip(costs, groups, strict=True) for _ in g]
    assert model.violations(table).tolist() == expected


def test_a_class_like_the_table_is_at_no_distance():
    table = in_classes("aab", "aab", "aabaab")
    for distance in ("equal", "ordered"):
        assert TCloseness(0, distance=distance).holds(table)


def test_exactly_t_is_enough():
    table = in_classes("aa", "ab")  # 3/4 and 1/4 in the table: both are 1/4 away
    assert TCloseness(0.25).holds(table)
    assert not TCloseness(0.2499).holds(table)


def test_numbers_are_ordered_as_numbers_and_missing_comes_last():
    """With 2 < 10 < missing the middle one is 1/3 away, and the two ends 1/2."""
    table = in_classes([2], [10], [None])
    assert TCloseness(0.5, distance="ordered").holds(table)
    assert TCloseness(0.4, distance="ordered").violations(table).tolist() == [True, False, True]


def test_many_values_need_no_table_of_classes_by_values():
    """20,000 classes and 20,000 values: a matrix of them would have 4 × 10^8 cells."""
    rows = 20_000
    frame = pl.DataFrame({"x": np.arange(rows), "wage": np.arange(rows)[::-1]})
    table = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["wage"]))
    assert TCloseness(0.2).level(table) == pytest.approx(1 - 1 / rows)
    assert TCloseness(0.2, distance="ordered").level(table) == pytest.approx(0.5)


def test_one_value_only():
    table = in_classes("aa", "a")
    assert TCloseness(0, distance="ordered").level(table) == 0
    one = TCloseness(0, distance="hierarchical", column="ill", hierarchy=Nodes([[0], [0]]))
    assert one.level(table) == 0


def test_trees_begin_with_the_values_and_end_in_one_root():
    assert tree_of([[7, 7, 9], [4, 4, 4]]).tolist() == [[0, 1, 2], [0, 0, 1], [0, 0, 0]]
    assert tree_of([[0, 1, 2], [5, 3, 3]]).tolist() == [[0, 1, 2], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"t": -0.1},
        {"t": 1.1},
        {"t": 0.5, "distance": "hierarchical", "column": "ill"},
        {"t": 0.5, "distance": "hierarchical", "hierarchy": "ill.csv"},
        {"t": 0.5, "hierarchy": "ill.csv", "column": "ill"},
        {"t": 0.5, "distance": "hierarchical", "column": "ill", "hierarchy": 3},
    ],
)
def test_parameters_that_make_no_sense(wrong):
    with pytest.raises(ParameterError):
        TCloseness(**wrong)


def test_a_hierarchy_as_an_object_a_path_and_in_a_plan(tmp_path):
    pytest.importorskip("shoal.table.hierarchy", reason="there are no hierarchies to read")
    from shoal.table import Hierarchy

    rows = [["a", "x"], ["b", "x"], ["c", "y"], ["d", "y"]]
    table = in_classes("ab", "cd", "abcd")
    model = TCloseness(
        0.5, distance="hierarchical", column="ill", hierarchy=Hierarchy.from_rows(rows)
    )
    assert model.level(table) == pytest.approx(0.5)
    assert Plan.from_toml(Plan(require=[model]).to_toml()).require == (model,)
    path = tmp_path / "ill.csv"
    path.write_text("\n".join(";".join(row) for row in rows))
    named = TCloseness(0.5, distance="hierarchical", column="ill", hierarchy=str(path))
    assert named.level(table) == model.level(table)
    assert Plan.from_toml(Plan(require=[named]).to_toml()).require == (named,)
