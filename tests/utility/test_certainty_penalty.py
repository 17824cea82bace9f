"""The normalised certainty penalty, by hand and against what the searches call loss."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.utility import normalized_certainty_penalty

from .tables import masked_as, quasi


def penalty(people, masked):
    return normalized_certainty_penalty(people, masked).value


def test_intervals_cost_their_width():
    people = quasi(age=[20, 24, 31, 60])
    tree = Hierarchy.intervals([10, 40])
    assert penalty(people, people) == 0.0
    assert penalty(people, tree.generalize(people, "age", 1)) == (10 + 10 + 10 + 0) / 40 / 4
    # [0, 40) reaches from 20 on: 20 of 40; [40, 80) from 40 to 60
    assert penalty(people, tree.generalize(people, "age", 2)) == 0.5
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
