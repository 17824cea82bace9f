"""Where the rows of one table are in another: searched once, and never guessed."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Table
from shoal.errors import InputError
from shoal.table._provenance import KeyPositions

from ..parts.counting import counted

keys = st.lists(st.integers(-5, 40) | st.integers(-(10**12), 10**12), unique=True, max_size=30)


@given(keys, keys)
def test_each_key_is_where_it_is(there, asked):
    """Keys close together index an array; keys far apart are searched for."""
    at = {key: row for row, key in enumerate(there)}
    found = KeyPositions(np.array(there, np.int64)).of(np.array(asked, np.int64))
    assert found.tolist() == [at.get(key, -1) for key in asked]


def one():
    return Table(pl.DataFrame({"x": range(6)}))


def test_two_tables_are_paired_once():
    table = one()
    turned = table.reorder(np.array([3, 1, 5]))
    with counted() as work:
        for _ in range(3):
            assert turned.rows_in(table).tolist() == [3, 1, 5]
            assert turned.with_roles(table.roles).rows_in(table).tolist() == [3, 1, 5]
    assert work.searches == 1
    assert table.rows_of_keys(table.row_key).tolist() == list(range(6))


def test_keys_that_may_change_are_searched_for_again():
    table, asked = one(), np.array([2, 9])
    assert table.rows_of_keys(asked).tolist() == [2, -1]
    asked[:] = 4, 5
    assert table.rows_of_keys(asked).tolist() == [4, 5]


def test_new_keys_have_new_places():
    table = one()
    assert table.rows_of_keys(np.array([0])).tolist() == [0]
    other = table.on_record(np.arange(6)[::-1].copy(), ())
    assert other.rows_of_keys(np.array([0])).tolist() == [5]


def test_a_pickled_table_keeps_no_pairs():
    table = one()
    turned = table.reorder(np.arange(6)[::-1].copy())
    turned.rows_in(table)
    again = pickle.loads(pickle.dumps(table))
    assert again._past.positions._paired == []
    assert turned.rows_in(again).tolist() == [5, 4, 3, 2, 1, 0]


def test_a_row_that_is_not_there_is_refused():
    table = one()
    with pytest.raises(InputError, match="same rows"):
        table.rows_in(table.keep(np.arange(6) < 5))
