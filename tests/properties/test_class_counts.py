"""Class sizes of tables with every kind of column, against counting in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import KAnonymity, Roles, Table
from shoal.risk import marketer_risk, population_sizes, prosecutor_risk, uniqueness

from .tables import keys_of, tables

FEW = ["few integers", "few floats", "few texts", "booleans"]


def agree(one, other):
    """The statistics offices' reading, by its definition."""
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


@given(tables())
def test_own_value(table):
    counts = Counter(keys_of(table))
    assert table.class_sizes().tolist() == [counts[key] for key in keys_of(table)]
    assert sorted(table.classes.sizes.tolist()) == sorted(counts.values())
    assert table.classes.k == min(counts.values()) == KAnonymity(2).level(table)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 7, 12]))
def test_many_columns_of_many_values(seed, columns):
    """Their combinations outgrow what a float, and then what 64 bits hold."""
    draws = np.random.default_rng(seed)
    values = draws.integers(0, 10_000, (600, columns))
    values[1::2, :-1] = values[::2, :-1]
    values[:, -1] = np.arange(600) % 599  # the only column in which neighbors differ
    floats = pl.DataFrame(values / 8, schema=[f"c{at}" for at in range(columns)])
    for frame in (floats, floats.cast(pl.Int64), floats.cast(pl.String)):
        table = Table(frame, Roles(quasi_identifiers=frame.columns))
        counts = Counter(frame.rows())
        assert table.class_sizes().tolist() == [counts[row] for row in frame.rows()]


@given(tables(kinds=FEW) | tables())
def test_wildcard(table):
    keys = keys_of(table)
    expected = [sum(agree(one, other) for other in keys) for one in keys]
    assert table.class_sizes("wildcard").tolist() == expected


@given(tables(kinds=FEW))
def test_risks_are_their_definitions(table):
    counts = Counter(keys_of(table))
    sizes = np.array([counts[key] for key in keys_of(table)])
    assert prosecutor_risk(table).value == 1 / min(counts.values())
    assert abs(marketer_risk(table).value - len(counts) / len(table)) < 1e-12
    assert uniqueness(table).value == (sizes == 1).mean()


@given(tables(kinds=FEW), st.data())
def test_population(table, data):
    """A sample of a population, by rows: the population's counts in both readings."""
    size = data.draw(st.integers(1, len(table)))
    rows = data.draw(st.permutations(range(len(table))))[:size]
    gone = [
        name
        for name in table.roles.quasi_identifiers
        if table.frame[rows][name].null_count() == size
    ]
    people = table.drop(gone)
    sample = Table(people.frame[rows], people.roles)
    keys, everybody = keys_of(sample), keys_of(people)
    assert population_sizes(sample, population=people).tolist() == [
        everybody.count(key) for key in keys
    ]
    assert population_sizes(sample, population=people, missing="wildcard").tolist() == [
        sum(agree(one, other) for other in everybody) for one in keys
    ]


@given(tables(kinds=FEW), st.data())
def test_weights(table, data):
    # quarters add up without rounding, so any order of summing gives the same
    quarter = st.integers(1, 400).map(lambda n: n / 4)
    weights = data.draw(st.lists(quarter, min_size=len(table), max_size=len(table)))
    frame = table.frame.with_columns(pl.Series("the weight", weights))
    weighted = Table(frame, table.roles.replacing(weight="the weight"))
    keys = keys_of(table)
    for missing, same in (("own", lambda a, b: a == b), ("wildcard", agree)):
        expected = [
            sum(w for other, w in zip(keys, weights, strict=True) if same(one, other))
            for one in keys
        ]
        assert weighted.class_weights(missing).tolist() == expected


@given(st.integers(1, 30), st.integers(2, 6), st.integers(0, 2**32))
@settings(max_examples=20)
def test_many_columns(height, values, seed):
    """Forty columns, so that keys must be packed more than once."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, (height, 40))[rng.integers(0, height, 2 * height)]
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(rows.T)})
    table = Table(frame, Roles(quasi_identifiers=frame.columns))
    counts = Counter(map(tuple, rows.tolist()))
    assert table.class_sizes().tolist() == [counts[tuple(row)] for row in rows.tolist()]
