"""Released texts: what is a number, an interval, a set, and what says nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Table
from shoal.table import (
    empty_cells,
    ends_of_members,
    released_column,
    released_text,
    usual_partners,
)
from shoal.table._released_column import runs_of
from shoal.table.columns._domain import read_domain
from shoal.table.columns._encode import encode
from shoal.table.columns._quantities import scale_name


def read_labels(texts, column):
    return runs_of(read_domain(texts, scale_name(column)), column)


def ends_of(texts):
    return read_domain(texts, "numbers").ends


def test_ends():
    texts = ["-5", "[1.5, 2]", "(0; 1)", "-3--1", "1e3..2e3", "≤7", "> 8", "*"]
    inf, nan = np.inf, np.nan
    expected = [
        [-5, -5], [1.5, 2], [0, 1], [-3, -1], [1e3, 2e3], [-inf, 7], [8, inf], [nan, nan]
    ]  # fmt: skip
    np.testing.assert_array_equal(ends_of(texts), expected)
    for text in ("", "a", "1-", "[3, 1)", "12**", "nan", "inf", "2020-01-31"):
        assert ends_of(["1", text]) is None


@pytest.mark.parametrize(
    "text",
    [
        "[1.5, 2]",
        "(0; 1)",
        "[0,2)",
        "-3--1",
        "-1..2",
        "1 – 2",
        "≤1",
        "> 0",
        "(-inf, 1.5]",
        "[2, ∞)",
        "<= 7",
        "[3, 5]",
        "(1, 2]",
    ],
)
def test_both_readings_agree(text):
    """The numbers between the ends are the values that a text stands for; ends may be outside."""
    values = np.arange(-4, 9) / 2
    (low, high), *_ = ends_of([text])
    runs, unread = read_labels([text], encode(pl.Series(values)))
    assert unread.tolist() == []
    under = {v for one, end in zip(runs.low, runs.high, strict=True) for v in values[one : end + 1]}
    inside = set(values[(values > low) & (values < high)])
    assert inside <= under <= inside | {low, high}
    assert (low in under) == (not text.startswith(("(", ">")) and low in values)
    assert (high in under) == (not text.endswith(")") and high in values)


@pytest.mark.parametrize("text", ["2020-05", "1999..2001", "2019-2021"])
def test_dates_with_a_dash_are_no_intervals_of_days(text):
    """Days are counted from 1970 inside; no text means these counts."""
    days = encode(pl.Series([0, 2000, 20000]).cast(pl.Date))
    runs, unread = read_labels([text], days)
    assert (len(runs.labels), unread.tolist()) == (0, [0])


def pair(before, after):
    return Table(pl.DataFrame({"x": before})), Table(pl.DataFrame({"x": after}))


def test_what_says_nothing():
    assert empty_cells(*pair([1, 2, 3], ["*", None, "[1, 3]"]), "x").tolist() == [True, True, False]
    assert empty_cells(*pair(["*", "a"], ["*", None]), "x").tolist() == [False, True]
    assert empty_cells(*pair([1, 2], [None, 2]), "x").tolist() == [True, False]


def test_what_was_generalized():
    assert released_text(*pair([1, 2], ["[1, 2]", "2"]), "x")
    assert not released_text(*pair([1, 2], ["1", "*"]), "x")
    assert not released_text(*pair([1, 2], [7, 8]), "x")
    assert not released_text(*pair(["a", "b"], ["b", "a"]), "x")


@pytest.mark.parametrize("seed", range(6))
class TestPairs:
    def test_usual_partners(self, seed):
        rng = np.random.default_rng(seed)
        source, target = rng.integers(-1, 6, 40), rng.integers(-2, 2, 40)  # many ties
        found, usual = usual_partners(source, target)
        assert found.tolist() == sorted(set(source.tolist()))
        for one, other in zip(found, usual, strict=True):
            counts = Counter(target[source == one].tolist())
            assert other == min(counts, key=lambda t: (-counts[t], t))

    def test_ends_of_members(self, seed):
        rng = np.random.default_rng(seed)
        labels, values = rng.integers(0, 4, 9), rng.normal(size=9)
        for label, (low, high) in enumerate(ends_of_members(labels, values, 6)):
            own = values[labels == label]
            expected = (own.min(), own.max()) if len(own) else (np.inf, -np.inf)
            assert (low, high) == expected

    def test_labels_that_stand_for_values(self, seed):
        """Overlapping labels, gaps on both sides, a star: all by a slow look at each text."""
        rng = np.random.default_rng(seed)
        values = [None if v == 9 else int(v) for v in rng.integers(0, 10, 25)]
        texts = ["[0, 3]", "[2, 6)", "7", ">6", "*", None]
        under = [{0, 1, 2, 3}, {2, 3, 4, 5}, {7}, {7, 8}, set(range(9)), set()]
        cells = rng.choice(6, 20, p=[0.2, 0.2, 0.1, 0.1, 0.2, 0.2])
        read = released_column("x", *pair(values, [texts[cell] for cell in cells]))
        for wildcard in (None, False, True):
            column = read if wildcard is None else read.with_missing(wildcard=wildcard)
            for place, value in enumerate(values):
                found = column.stands_for(column.labels, np.full(20, column.values[place]))
                for cell, said in zip(cells, found, strict=True):
                    expected = value in under[cell]
                    if wildcard is not None and value is None:
                        expected = cell >= 4 or wildcard
                    if wildcard and cell == 5:
                        expected = True
                    assert said == expected
        usual = read.usual_labels()[read.values]
        counts = np.bincount(cells, minlength=6)
        for value, label in zip(values, usual, strict=True):
            fitting = [cell for cell in range(5) if value in under[cell] and counts[cell]]
            if not fitting:
                assert label == -1
            else:
                assert counts[cells[read.labels == label][0]] == counts[fitting].max()
