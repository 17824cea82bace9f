"""Mondrian for generalization, against a recursion that is slow and obvious."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.boxes.mondrian_boxes import Attribute, MondrianBoxes, ordered
from shoal.kernels.conditions import DISTINCT, EQUAL, Conditions, holds, only_size

# -- the slow way


def reference(codes, counts, secrets, attributes, conditions, relaxed=False, weights=None):
    """The parts in the order of the cuts, as sets of rows."""
    parts = []
    waiting = [list(range(len(codes)))]
    while waiting:
        rows = waiting.pop()
        halves = cut(rows, codes, counts, secrets, attributes, conditions, relaxed, weights)
        if halves is None:
            parts.append(frozenset(rows))
        else:
            waiting += [halves[1], halves[0]]
    return parts


def cut(rows, codes, counts, secrets, attributes, conditions, relaxed, weights):
    widths = [width(attribute, codes[rows, j]) for j, attribute in enumerate(attributes)]
    widths = widths if weights is None else [w * by for w, by in zip(widths, weights, strict=True)]
    for j in sorted(range(len(attributes)), key=lambda j: (-widths[j], j)):
        if widths[j] <= 0:
            return None
        own = codes[rows, j]
        if own.min() == own.max():
            continue
        middle = int(
            np.repeat(np.sort(own), counts[rows][np.argsort(own)])[counts[rows].sum() // 2]
        )
        if relaxed and not len(attributes[j].first):
            low = [row for row in rows if codes[row, j] < middle]
            same = [row for row in rows if codes[row, j] == middle]
            taken = len(rows) // 2 - len(low)
            # which of the equal records goes where is left open: only numbers are compared
            halves = [low + same[:taken], same[taken:] + [r for r in rows if codes[r, j] > middle]]
            if all(valid(half, counts, secrets, conditions) for half in halves):
                return halves
            continue
        below, upto = middle - 1, middle
        if len(attributes[j].first):
            child = height(attributes[j], own) - 1
            below = attributes[j].first[child, middle] - 1
            upto = attributes[j].last[child, middle]
        weigh = {
            last: abs(2 * counts[rows][own <= last].sum() - counts[rows].sum())
            for last in (below, upto)
        }
        for last in sorted((below, upto), key=lambda last: (weigh[last], last)):
            halves = [
                [r for r in rows if codes[r, j] <= last],
                [r for r in rows if codes[r, j] > last],
            ]
            if all(valid(half, counts, secrets, conditions) for half in halves):
                return halves
    return None


def height(attribute, own):
    return next(
        level
        for level in range(len(attribute.first))
        if attribute.last[level, own.min()] >= own.max()
    )


def width(attribute, own):
    if len(attribute.first):
        return attribute.widths[height(attribute, own), own.min()]
    return attribute.positions[own.max()] - attribute.positions[own.min()]


def valid(rows, counts, secrets, conditions):
    if not rows:
        return False
    tally = np.zeros(conditions.shares.shape, np.int64)
    for column, values in enumerate(secrets):
        np.add.at(tally[column], values[rows], counts[rows])
    size = int(counts[rows].sum())
    return bool(holds(conditions, size, size, tally))


# -- what is tried


def tree_of(sizes):
    """A tree of height 2: ``sizes[i]`` leaves under node i, then the root."""
    total = sum(sizes)
    ends = np.cumsum(sizes)
    first = np.empty((3, total), np.int32)
    last = np.empty((3, total), np.int32)
    widths = np.zeros((3, total))
    first[0] = last[0] = np.arange(total)
    for end, size in zip(ends, sizes, strict=True):
        first[1, end - size : end], last[1, end - size : end] = end - size, end - 1
        widths[1, end - size : end] = (size - 1) / max(1, total - 1)
    first[2], last[2], widths[2] = 0, total - 1, 1.0
    return Attribute(np.arange(float(total)), first, last, widths)


def diverse(smallest, secrets, kind, bound):
    values = int(secrets.max()) + 1
    shares = np.bincount(secrets[0], minlength=values) / secrets.shape[1]
    return Conditions(
        smallest,
        np.array([kind]),
        np.zeros(1, np.int64),
        np.array([bound]),
        np.zeros(1),
        shares[None, :],
        np.array([values]),
        np.zeros((1, 1, values), np.int64),
        np.zeros(1, np.int64),
    )


def parts_of(boxes, rows):
    before = 0
    while (done := boxes.advance()) < rows:
        assert done >= before
        before = done
    labels = boxes.labels
    return [frozenset(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)]


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 120),
    k=st.integers(1, 9),
    kind=st.sampled_from([None, DISTINCT, EQUAL]),
    weights=st.sampled_from([None, [0.5, 0.5, 2.0], [2.0, 0.5, 0.5]]),
)
def test_equal_to_the_recursion(seed, rows, k, kind, weights):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, rng.integers(1, 4)).tolist()
    attributes = [
        ordered(np.sort(rng.integers(0, 40, 30)) / 39),
        tree_of(sizes),
        ordered(np.arange(3) / 2),
    ]
    codes = np.column_stack(
        [rng.integers(0, 30, rows), rng.integers(0, sum(sizes), rows), rng.integers(0, 3, rows)]
    ).astype(np.int32)
    counts = rng.integers(1, 4, rows)
    secrets = rng.choice(4, (1, rows), p=[0.7, 0.1, 0.1, 0.1]).astype(np.int32)
    conditions = (
        only_size(k) if kind is None else diverse(k, secrets, kind, 2.0 - 1.6 * (kind == EQUAL))
    )
    if kind is None:
        secrets = secrets[:0]
    given = None if weights is None else np.array(weights)
    boxes = MondrianBoxes(codes, counts, counts, secrets, attributes, conditions, weights=given)
    parts = parts_of(boxes, rows)
    assert parts == reference(codes, counts, secrets, attributes, conditions, weights=weights)
    for part, low, high in zip(parts, boxes.lows, boxes.highs, strict=True):
        assert codes[list(part)].min(axis=0).tolist() == low.tolist()
        assert codes[list(part)].max(axis=0).tolist() == high.tolist()


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 150), k=st.integers(1, 9))
def test_relaxed_cuts_halve_a_single_column(seed, rows, k):
    """With one column every choice among equal records gives parts of the same sizes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (rows, 1)).astype(np.int32)
    ones, none = np.ones(rows, np.int64), np.empty((0, rows), np.int32)
    attributes = [ordered(np.arange(6) / 5)]
    boxes = MondrianBoxes(codes, ones, ones, none, attributes, only_size(k), relaxed=True)
    parts = parts_of(boxes, rows)
    expected = reference(codes, ones, none, attributes, only_size(k), relaxed=True)
    assert [sorted(codes[list(part), 0]) for part in parts] == [
        sorted(codes[list(part), 0]) for part in expected
    ]
    assert min(map(len, parts)) >= min(k, rows)


def test_the_cut_beside_the_median_saves_a_top_heavy_column():
    """Where the median is the largest value the cut is below it (the strict cut above fails)."""
    codes = np.array([[0]] * 4 + [[1]] * 6, np.int32)
    ones, none = np.ones(10, np.int64), np.empty((0, 10), np.int32)
    boxes = MondrianBoxes(codes, ones, ones, none, [ordered(np.arange(2.0))], only_size(4))
    assert [len(part) for part in parts_of(boxes, 10)] == [4, 6]


def test_codes_from_a_wide_range_are_sorted_not_counted():
    """A few records over a million codes: the other way to find the median."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1_000_000, (50, 1)).astype(np.int32)
    ones, none = np.ones(50, np.int64), np.empty((0, 50), np.int32)
    attributes = [ordered(np.arange(1_000_000) / 999_999)]
    boxes = MondrianBoxes(codes, ones, ones, none, attributes, only_size(4))
    assert parts_of(boxes, 50) == reference(codes, ones, none, attributes, only_size(4))


def test_relaxed_needs_single_records():
    with pytest.raises(ValueError, match="one combination per record"):
        MondrianBoxes(
            np.zeros((1, 1), np.int32),
            np.array([2]),
            np.array([2]),
            np.empty((0, 1), np.int32),
            [ordered(np.zeros(1))],
            only_size(1),
            relaxed=True,
        )
