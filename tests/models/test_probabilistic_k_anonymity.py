"""Probabilistic k-anonymity: by exchanges, by classes, and not by anything less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Microaggregate, ProbabilisticKAnonymity, Roles, Swap, Table
from shoal.errors import InputError, ParameterError
from shoal.table import Exchange

MODEL = ProbabilisticKAnonymity(3)
ROLES = Roles(quasi_identifiers=["x", "y"], sensitive=["ill", "debt"])


def people(rows=30, roles=ROLES):
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "x": draw.normal(size=rows),
            "y": draw.normal(size=rows),
            "ill": [str(i) for i in range(rows)],
            "debt": draw.normal(size=rows),
        }
    )
    return Table(frame, roles)


def swapped(table, **options):
    method = Swap(**options)
    return method.fit_transform(table), method


def on_record(table, columns, groups, source):
    return table.with_exchange(
        Exchange(tuple(columns), np.array(groups, np.int32), np.array(source, np.int64), "entropy")
    )


def six():
    frame = pl.DataFrame({"x": range(6), "y": range(6), "ill": [*"abcdef"], "debt": range(6)})
    return Table(frame, ROLES)


def test_nothing_done_is_one():
    assert MODEL.level(people()) == 1
    assert MODEL.violations(people()).all()


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"blocks": "mutual-information"}, {"informed": True}])
def test_level_by_swap(k, options):
    after, _ = swapped(people(), k=k, **options)
    smallest = min(np.unique(e.groups, return_counts=True)[1].min() for e in after.exchanges)
    level = ProbabilisticKAnonymity(k).level(after)
    assert level == smallest >= k
    assert ProbabilisticKAnonymity(k).holds(after)
    assert not ProbabilisticKAnonymity(smallest + 1).holds(after)


def test_level_by_classes():
    after = Microaggregate(k=4).fit_transform(people())
    assert not after.exchanges
    assert MODEL.level(after) >= 4
    assert MODEL.holds(after)


def test_the_better_of_both_counts_for_each_record():
    """A class of four without a swap, and a swapped group of two."""
    frame = six().frame.with_columns(x=pl.Series([9, 9, 9, 9, 1, 2]), y=pl.lit(0))
    table = on_record(Table(frame, ROLES), "xy", [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 5, 4])
    assert MODEL.violations(table).tolist() == [False] * 4 + [True] * 2
    assert MODEL.level(table) == 2


def test_groups_by_hand():
    table = on_record(six(), "xy", [0, 0, 0, 1, 1, 1], [1, 2, 0, 3, 5, 4])
    assert MODEL.level(table) == 3
    uneven = on_record(six(), "xy", [0, 0, 1, 1, 1, 1], [1, 0, 2, 3, 4, 5])
    assert MODEL.level(uneven) == 2
    assert MODEL.violations(uneven).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    "source",
    [
        [0, 0, 2, 3, 4, 5],  # one record twice, another lost
        [3, 1, 2, 0, 4, 5],  # across groups
        [0, 1, 99, 3, 4, 5],  # a record that is not there
    ],
)
def test_a_broken_exchange_is_no_protection(source):
    table = on_record(six(), "xy", [0, 0, 0, 1, 1, 1], source)
    assert MODEL.level(table) == 1
    assert MODEL.violations(table)[:3].all()


def test_one_broken_group_does_not_spoil_the_others():
    table = on_record(six(), "xy", [0, 0, 0, 1, 1, 1], [0, 0, 2, 3, 4, 5])
    assert MODEL.violations(table).tolist() == [True] * 3 + [False] * 3


def test_a_column_left_out_is_no_protection():
    only_x, _ = swapped(people(), k=5, columns=["x"])
    assert MODEL.level(only_x) == 1
    one_secret, _ = swapped(people(), k=5, informed=True, columns=["debt"])
    assert MODEL.level(one_secret) == 1
    both, _ = swapped(one_secret, k=5, informed=True, columns=["ill"])
    assert MODEL.level(both) >= 5


def test_the_smallest_group_of_any_block_counts():
    table = on_record(six(), "x", [0] * 6, [1, 2, 3, 4, 5, 0])
    table = on_record(table, "y", [0, 0, 0, 1, 1, 1], [1, 2, 0, 4, 5, 3])
    assert MODEL.level(table) == 3


def test_other_roles_ask_for_other_columns():
    after, _ = swapped(people(roles=Roles(quasi_identifiers=["x"])), k=5)
    assert MODEL.level(after) >= 5
    assert MODEL.level(after.with_roles(Roles(quasi_identifiers=["x", "y"]))) == 1


def test_order_does_not_matter():
    after, _ = swapped(people(), k=4)
    order = np.random.default_rng(0).permutation(len(after))
    moved = after.reorder(order)
    assert MODEL.level(moved) == MODEL.level(after) >= 4
    assert (MODEL.violations(moved) == MODEL.violations(after)[order]).all()


def test_whole_groups_may_go():
    after, method = swapped(people(), k=4)
    kept = after.keep(method.groups_ != method.groups_[0])
    assert MODEL.level(kept) >= 4


def test_a_lost_record_breaks_its_group_only():
    """Its values are still with another record of the group, or its own were: no permutation."""
    table = on_record(six(), "xy", [0, 0, 0, 1, 1, 1], [1, 2, 0, 4, 5, 3])
    kept = table.keep(np.array([False, True, True, True, True, True]))
    assert MODEL.violations(kept).tolist() == [True, True, False, False, False]
    assert MODEL.level(kept) == 1
    stayed = on_record(six(), "xy", [0, 0, 0, 1, 1, 1], [0, 2, 1, 4, 5, 3])
    assert MODEL.level(stayed.keep(np.array([False] + [True] * 5))) == 2


def test_reordered_then_kept():
    after, method = swapped(people(), k=4)
    order = np.random.default_rng(3).permutation(len(after))
    groups = method.groups_[order]
    kept = after.reorder(order).keep(groups != groups[0])
    assert MODEL.level(kept) >= 4


def test_no_records():
    after, _ = swapped(people(), k=4)
    assert MODEL.level(after.keep(np.zeros(len(after), dtype=bool))) == 0


def test_k_is_checked():
    with pytest.raises(InputError, match=r"k = 31 .* 30 records"):
        ProbabilisticKAnonymity(31).check(people())
    with pytest.raises(ParameterError):
        ProbabilisticKAnonymity(1)


def test_sentence():
    uneven = on_record(six(), "xy", [0, 0, 1, 1, 1, 1], [1, 0, 2, 3, 4, 5])
    assert "2 of 6 records" in MODEL.explain(uneven)
