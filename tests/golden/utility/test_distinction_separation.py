"""Distinction and separation against ARX's hand-calculated example.

Source: arx-deidentifier/arx, src/test/org/deidentifier/arx/test/TestRiskQuasiIdentifiers.java
("Calculated by hand"); there the numbers are called alpha-distinction and alpha-separation
(Motwani and Xu, 2007).
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.table.columns._encode import encode
from shoal.table.suggestion._column_sets import measure_set, search_sets

ROWS = [
    ("20", "Female", "CA"),
    ("30", "Female", "CA"),
    ("40", "Female", "TX"),
    ("20", "Male", "NY"),
    ("40", "Male", "CA"),
]
FRAME = pl.DataFrame(ROWS, schema=["age", "sex", "state"], orient="row")
EXPECTED = {
    ("sex",): (0.4, 0.6),
    ("state",): (0.6, 0.7),
    ("age",): (0.6, 0.8),
    ("sex", "state"): (0.8, 0.9),
    ("age", "sex"): (1.0, 1.0),
    ("age", "state"): (1.0, 1.0),
    ("age", "sex", "state"): (1.0, 1.0),
}


@pytest.mark.parametrize("columns", EXPECTED)
def test_one_set(columns):
    found = measure_set([encode(FRAME[name]) for name in columns], FRAME.height)
    assert (found.distinction, found.separation) == pytest.approx(EXPECTED[columns])


def test_the_search_sees_every_set():
    found = search_sets([encode(FRAME[name]) for name in FRAME.columns], FRAME.height)
    measured = {one.columns: (one.distinction, one.separation) for one in found}
    assert measured == {columns: pytest.approx(both) for columns, both in EXPECTED.items()}


def by_hand(rows):
    """The definitions, pair by pair."""
    pairs = list(itertools.combinations(rows, 2))
    return len(set(rows)) / len(rows), sum(a != b for a, b in pairs) / len(pairs)


@given(st.lists(st.tuples(*[st.sampled_from([None, 1, 2, 3])] * 4), min_size=2, max_size=40))
def test_all_sets_equal_the_definition_pair_by_pair(rows):
    names = ["a", "b", "c", "d"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    found = search_sets([encode(frame[name]) for name in names], frame.height, max_set_size=4)
    assert len(found) == 15
    for one in found:
        places = [names.index(name) for name in one.columns]
        expected = by_hand([tuple(row[i] for i in places) for row in rows])
        assert (one.distinction, one.separation) == pytest.approx(expected)


def test_growing_goes_on_until_nearly_every_record_is_alone():
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({f"c{i}": draw.integers(0, 4, 3000) for i in range(9)})
    found = search_sets([encode(frame[name]) for name in frame.columns], 3000, max_set_size=2)
    grown = [one for one in found if one.grown]
    assert [len(one.columns) for one in grown] == list(range(3, 3 + len(grown)))
    for before, after in itertools.pairwise(grown):
        assert after.columns[:-1] == before.columns
        assert after.distinction > before.distinction
    assert grown[-1].distinction >= 0.98
    assert all(one.distinction < 0.99 for one in grown[:-1])
