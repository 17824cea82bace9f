"""Utility measures by hand."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Round, Suppress, Table
from shoal.errors import InputError
from shoal.utility import suppressed_cells, total_variation


def table(**columns):
    return Table(pl.DataFrame(columns))


# -- total variation


def test_texts():
    """Shares 1/2, 1/2 against 1/4, 1/4 and 1/2 of a new one: half of 1/4 + 1/4 + 1/2."""
    before, after = table(x=list("aabb")), table(x=list("abcc"))
    assert total_variation(before, after).value == 0.5
    assert total_variation(before, before).value == 0.0
    assert total_variation(before, table(x=list("cccc"))).value == 1.0


def test_a_missing_value_is_a_value():
    assert total_variation(table(x=["a", "a"]), table(x=["a", None])).value == 0.5
    assert total_variation(table(x=[1, 1]), table(x=[1, None])).value == 0.5
    assert total_variation(table(x=[1.0, None]), table(x=[None, 1.0])).value == 0.0


def test_numbers_are_compared_in_twenty_bins():
    """0 … 19 and 20: bins of width 1, and a value moved within its bin does not count."""
    before = table(x=[float(i) for i in range(21)])
    assert total_variation(before, table(x=[i + 0.4 for i in range(20)] + [20.0])).value == 0.0
    moved = table(x=[1.0] + [float(i) for i in range(1, 21)])
    assert total_variation(before, moved).value == pytest.approx(1 / 21)


def test_the_mean_over_columns():
    before = table(x=list("aabb"), y=[1, 1, 2, 2], gone=list("abcd"))
    after = table(x=list("aabb"), y=[1, 1, 1, 1])
    found = total_variation(before, after)
    assert found.details["columns"] == {"x": 0.0, "y": 0.5, "gone": 1.0}
    assert found.value == 0.5


def test_identifiers_take_no_part():
    frame = pl.DataFrame({"name": ["Ann", "Bo"], "x": [1, 2]})
    before = Table(frame, Roles(identifiers=["name"]))
    assert total_variation(before, before.drop(["name"])).value == 0.0
    with pytest.raises(InputError, match="nothing to compare"):
        total_variation(Table(frame, Roles(identifiers=["name", "x"])), table(x=[1]))


def test_every_kind_of_column():
    days = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]
    before = table(
        day=days,
        span=[dt.timedelta(1), None, dt.timedelta(2)],
        flag=[True, None, False],
        wide=[-1.7e308, 1.7e308, 0.0],
        huge=[-(2**63), 2**63 - 1, 0],
        tiny=[5e-324, 0.0, 1e-310],
        same=[7.5, 7.5, 7.5],
        none=pl.Series([None] * 3, dtype=pl.Float64),
    )
    assert total_variation(before, before).value == 0.0
    after = before.blank({name: np.array([True, False, False]) for name in before.columns})
    assert 0 < total_variation(before, after).value < 1


def test_tables_of_different_length():
    assert total_variation(table(x=[1, 2]), table(x=[1, 2] * 50)).value == 0.0


# -- suppressed cells


def test_cells_columns_and_records():
    """Eight cells, one of them missing from the start: seven can be lost."""
    before = table(x=[1, 2, 3, None], y=list("abcd"))
    assert suppressed_cells(before, before).value == 0.0
    blanked = before.blank({"y": np.array([True, False, False, False])})
    assert suppressed_cells(before, blanked).value == pytest.approx(1 / 7)
    dropped = before.drop(["y"])
    found = suppressed_cells(before, dropped)
    assert found.value == pytest.approx(4 / 7)
    assert found.details == {"columns": ["y"], "records": 0}
    kept = before.keep(np.array([True, False, False, False]))
    assert suppressed_cells(before, kept).value == pytest.approx(5 / 7)
    assert suppressed_cells(before, kept).details["records"] == 3
    assert suppressed_cells(before, before.keep(np.zeros(4, dtype=bool))).value == 1.0


def test_changed_cells_are_not_suppressed():
    frame = pl.DataFrame({"x": [1, 2, 3, 99]})
    before = Table(frame, Roles(quasi_identifiers=["x"]))
    assert suppressed_cells(before, Round(base=10).fit_transform(before)).value == 0.0
    assert suppressed_cells(before, Suppress(max_distinct=0).fit_transform(before)).value == 1.0


def test_nothing_to_lose():
    with pytest.raises(InputError, match="no filled cells"):
        suppressed_cells(table(x=pl.Series([None], dtype=pl.Int64)), table(x=[1]))


def test_an_outlier_does_not_hide_the_rest():
    """Bins of equal width over one huge value would hold everybody else in one bin."""
    ages = [20 + i % 40 for i in range(4000)]
    for first in (ages[0], 10**9):
        people = Table(pl.DataFrame({"age": [first, *ages[1:]]}), Roles(quasi_identifiers=["age"]))
        assert total_variation(people, Round(base=40).fit_transform(people)).value > 0.8
