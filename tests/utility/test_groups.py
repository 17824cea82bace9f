"""Who pays: the loss of groups adds up to the loss of all, and says who has it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.utility import normalized_certainty_penalty
from shoal.utility._groups import losses_by_group


@pytest.fixture
def table():
    frame = pl.DataFrame(
        {
            "age": [20, 30, 40, 50, 60, 70, 80, None],
            "sex": ["f", "f", "f", "m", "m", "m", "m", None],
            "town": list("abcdefgh"),
            "income": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        }
    )
    return Table(frame, Roles(quasi_identifiers=["age", "sex"], sensitive=["income"]))


def _losses(original, masked, column, **options):
    return losses_by_group(original, masked, [column], **options)[column]


def test_records_taken_out_cost_their_group_everything(table):
    masked = table.keep(np.array([True, True, True, True, False, False, True, True]))
    women, men, unknown = _losses(table, masked, "sex")
    assert (women.taken_out, women.detail, women.changed) == (0.0, 0.0, 0.0)
    assert (men.records, men.taken_out, men.detail, men.changed) == (4, 0.5, 0.5, 0.5)
    assert (unknown.label, unknown.taken_out) == ("missing", 0.0)


@pytest.mark.parametrize("column", ["age", "sex", "town", "income"])
def test_the_losses_add_up_to_that_of_the_table(table, column):
    starred = table.starred(["age"], np.arange(8) % 3 == 0).drop(["sex"])
    masked = starred.keep(np.arange(8) != 5)
    groups = _losses(table, masked, column, most=3)
    total = sum(group.detail * group.records for group in groups) / len(table)
    assert total == pytest.approx(normalized_certainty_penalty(table, masked).value)
    assert sum(group.records for group in groups) == len(table)


def test_a_column_that_was_taken_out_is_changed_for_everybody(table):
    groups = _losses(table, table.drop(["town"]), "sex")
    assert {group.changed for group in groups} == {0.25}


def test_many_numbers_become_stretches_and_many_texts_the_most_frequent(table):
    labels = [group.label for group in _losses(table, table, "income", most=2)]
    assert labels == ["1.0 to 4.0", "5.0 to 8.0"]
    towns = _losses(table, table, "town", most=3)
    assert [(group.label, group.records) for group in towns][-1] == ("all other values", 6)
