"""Classes and both readings of missing values, against their definitions."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.table import _classes
from shoal.table._classes import Classes, counted_values, exact_total, form_classes
from shoal.table.columns._encode import Codes, encode

from ..parts.grouping import classes_of, weight_sums, wildcard_sizes, wildcard_weight_sums

Rows = list[tuple[Any, ...]]


def encoded(rows: Rows) -> list[Codes]:
    columns = zip(*rows, strict=True)
    return [encode(pl.Series(f"q{i}", list(values))) for i, values in enumerate(columns)]


def agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """The statistics offices' reading, by its definition."""
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


@st.composite
def tables(draw: st.DrawFn, *, least: int = 0) -> Rows:
    """Rows of 1 to 6 columns with few values, so that classes of all sizes come up."""
    width = draw(st.integers(1, 6))
    gaps = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    cells = [st.sampled_from("xyz") | st.none() if gap else st.sampled_from("xyz") for gap in gaps]
    return draw(st.lists(st.tuples(*cells), min_size=least, max_size=40))


@given(tables(least=1))
def test_classes_are_counts_of_equal_rows(rows: Rows) -> None:
    classes = form_classes(encoded(rows), len(rows))
    counts = Counter(rows)  # by first appearance
    assert classes.sizes.tolist() == list(counts.values())
    assert classes.labels.tolist() == [list(counts).index(row) for row in rows]
    assert classes.record_sizes.tolist() == [counts[row] for row in rows]
    assert classes.count == len(counts)
    assert classes.k == min(counts.values())
    assert classes.uniques == sum(size == 1 for size in counts.values())
    assert classes.histogram == dict(sorted(Counter(counts.values()).items()))


@given(tables(least=1))
def test_wildcard_sizes_are_their_definition(rows: Rows) -> None:
    expected = [sum(agree(one, other) for other in rows) for one in rows]
    sizes = wildcard_sizes(encoded(rows), len(rows))
    assert sizes.tolist() == expected
    assert sizes.dtype == np.int64


@given(tables(least=1), st.data())
def test_weight_sums_are_their_definition(rows: Rows, data: st.DataObject) -> None:
    # Quarters add up without rounding, so any order of summing gives the same.
    weight = st.integers(0, 4000).map(lambda quarters: quarters / 4)
    weights = data.draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    parts = encoded(rows)
    weighted = list(zip(rows, weights, strict=True))
    own_value = [sum(w for other, w in weighted if other == one) for one in rows]
    wildcard = [sum(w for other, w in weighted if agree(one, other)) for one in rows]
    assert weight_sums(form_classes(parts, len(rows)), weights).tolist() == own_value
    assert wildcard_weight_sums(parts, len(rows), weights).tolist() == wildcard


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("complete", [0, 2])
def test_wildcard_sizes_on_a_larger_table(share: float, complete: int) -> None:
    """Runs of hundreds of tuples, which meet by hash; 70 columns of gaps, more than a word."""
    rng = np.random.default_rng(7)
    table = rng.integers(0, 3, (1500, 5)).astype(float)
    table[rng.random(table.shape) < share] = np.nan
    table[:, :complete] = rng.integers(0, 3, (1500, complete))
    wide = np.tile(table[:200], (1, 14))
    for cells in (table, wide):
        left, right = cells[:, None, :], cells[None, :, :]
        expected = ((left == right) | np.isnan(left) | np.isnan(right)).all(axis=2).sum(axis=1)
        parts = [encode(pl.Series(column)) for column in cells.T]
        np.testing.assert_array_equal(wildcard_sizes(parts, len(cells)), expected)


@given(tables(least=1))
def test_wildcard_never_finds_fewer(rows: Rows) -> None:
    parts = encoded(rows)
    own_value = form_classes(parts, len(rows)).record_sizes
    assert (wildcard_sizes(parts, len(rows)) >= own_value).all()


@given(tables(least=1), st.randoms(use_true_random=False))
def test_the_order_of_records_and_columns_does_not_matter(rows: Rows, random: Any) -> None:
    order = random.sample(range(len(rows)), len(rows))
    columns = random.sample(range(len(rows[0])), len(rows[0]))
    moved = [tuple(rows[i][c] for c in columns) for i in order]
    for sizes_of in (
        lambda parts, n: form_classes(parts, n).record_sizes,
        wildcard_sizes,
    ):
        before = sizes_of(encoded(rows), len(rows))
        after = sizes_of(encoded(moved), len(rows))
        assert after.tolist() == before[order].tolist()


def test_no_records() -> None:
    parts = [encode(pl.Series("q", [], dtype=pl.Int64))]
    for classes in (form_classes(parts, 0), form_classes([], 0), classes_of([], 0)):
        assert (classes.count, classes.k, classes.uniques, classes.histogram) == (0, 0, 0, {})
        assert weight_sums(classes, []).tolist() == []
    gone = encode(pl.Series("q", [1, None])).with_codes(np.empty(0, np.uint8))
    assert wildcard_sizes([gone], 0).tolist() == []


def test_no_quasi_identifiers() -> None:
    assert form_classes([], 3).sizes.tolist() == [3]
    assert wildcard_sizes([], 3).tolist() == [3, 3, 3]
    assert wildcard_weight_sums([], 2, [1, 2]).tolist() == [3, 3]


def test_entirely_missing() -> None:
    parts = [encode(pl.Series([None, None, None])), encode(pl.Series([1, 2, None]))]
    assert form_classes(parts, 3).record_sizes.tolist() == [1, 1, 1]
    assert wildcard_sizes(parts, 3).tolist() == [2, 2, 3]


def test_two_hundred_columns() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (30, 200))[rng.integers(0, 30, 500)]
    classes = classes_of((pl.Series(column) for column in rows.T), 500)
    _, labels, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    assert classes.record_sizes.tolist() == sizes[labels].tolist()


def test_classes_are_frozen_and_the_given_arrays_are_not() -> None:
    labels, sizes = np.array([0, 0], np.int32), np.array([2])
    classes = Classes(labels, sizes)
    with pytest.raises(ValueError, match="read-only"):
        classes.labels[0] = 1
    labels[0] = sizes[0] = 0
    assert repr(classes) == "Classes(records=2, count=1, k=0)"


def test_spread() -> None:
    classes = classes_of([pl.Series(["b", "a", "b"])], 3)
    assert classes.spread(np.array([0.5, 1.0])).tolist() == [0.5, 1.0, 0.5]


@pytest.mark.parametrize("few", [0, 1 << 14])
@given(risks=st.lists(st.integers(1, 40), min_size=1), every=st.integers(1, 3))
def test_values_are_counted_and_summed_as_if_one_by_one(few: int, risks: list[int], every: int):
    values, counts = 1.0 / np.array(risks), np.arange(len(risks)) // every + 1
    one_by_one = np.repeat(values, counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_classes, "_FEW_VALUES", few)
        for found in (counted_values(values, counts), counted_values(one_by_one)):
            assert dict(zip(*map(np.ndarray.tolist, found), strict=True)) == Counter(
                one_by_one.tolist()
            )
            assert sorted(found[0]) == found[0].tolist()
        assert exact_total(values, counts) == exact_total(one_by_one) == math.fsum(one_by_one)


def test_equal_values_are_summed_once(monkeypatch: pytest.MonkeyPatch):
    summed: list[int] = []
    monkeypatch.setattr(math, "fsum", lambda numbers: summed.append(len(numbers)) or 1.0)
    exact_total(np.full(50_000, 0.2), np.full(50_000, 5))
    exact_total(np.full(100, 0.2))
    assert summed == [2, 2]
