"""V-MDAV and Mondrian on mixed records against slow, obvious references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.groups.mondrian import Mondrian
from shoal.kernels.groups.v_mdav import VMdav
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_records import gower

from ..compared import dissimilarities, finished


def records_of(kind, rows, seed, *, tied):
    draw = np.random.default_rng(seed)
    points = draw.integers(0, 4, (rows, 2)) * 1.0 if tied else draw.normal(size=(rows, 2))
    categories = draw.integers(0, 4, (rows, 2))
    if kind == "gower":
        points = np.where(draw.random(points.shape) < 0.1, np.nan, points)
        categories = np.where(draw.random(points.shape) < 0.1, -1, categories)
        return gower(points, categories)
    return ahmad_dey(points, categories, original=kind == "squared")


def with_centre(records, rows, *, by_code):
    """The records and, last, the centre of some of them."""
    values, codes = np.zeros(len(records.values)), np.zeros(len(records.codes))
    first = 0
    for column, at in enumerate(records.measure.presence):
        have = [row for row in rows if at < 0 or records.codes[at, row]]
        if at >= 0:
            codes[at] = len(have) > 0
        if column < len(values):
            values[column] = math.fsum(records.values[column, have]) / max(1, len(have))
            continue
        nominal = column - len(values)
        code_of = records.ranked[first : first + records.measure.levels[nominal]]
        first += records.measure.levels[nominal]
        ranks = records.codes[nominal, have]
        if have and by_code:
            codes[nominal] = np.flatnonzero(code_of == np.bincount(code_of[ranks]).argmax())[0]
        elif have:
            codes[nominal] = np.bincount(ranks).argmax()
    return records._replace(
        values=np.column_stack([records.values, values]),
        codes=np.column_stack([records.codes, codes]).astype(records.codes.dtype),
        patterns=np.append(records.patterns, 0),
    )


def v_mdav(records, k, gamma):
    rows = records.values.shape[1]
    gaps = np.array([dissimilarities(records, row) for row in range(rows)])
    everybody = with_centre(records, range(rows), by_code=True)
    away = dissimilarities(everybody, rows)[:rows]
    free, groups = set(range(rows)), []

    def nearest(row, but):
        return min((gaps[row, other], other) for other in free - {but})

    while len(free) >= k:
        seed = max(free, key=lambda row: (away[row], -row))
        group = [seed]
        group += sorted(free - {seed}, key=lambda row: (gaps[seed, row], row))[: k - 1]
        free -= set(group)
        while free and len(group) < 2 * k - 1 and gamma > 0:
            inside, candidate = min(nearest(member, None) for member in group)
            if len(free) > 1 and not inside < gamma * nearest(candidate, candidate)[0]:
                break
            group.append(candidate)
            free.discard(candidate)
        groups.append(group)
    labels = np.empty(rows, np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    for row in sorted(free):
        to = [dissimilarities(with_centre(records, g, by_code=False), row)[-1] for g in groups]
        labels[row] = int(np.argmin(to))
    return labels


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["gower", "ahmad-dey", "squared"]),
    rows=st.integers(2, 60),
    k=st.integers(2, 6),
    gamma=st.sampled_from([0.0, 0.2, 0.9, 1.5]),
    seed=st.integers(0, 9999),
    tied=st.booleans(),
)
def test_v_mdav_is_that_of_the_slow_version(kind, rows, k, gamma, seed, tied):
    k = min(k, rows)
    records = records_of(kind, rows, seed, tied=tied)
    found = finished(VMdav(records, k, gamma))
    np.testing.assert_array_equal(found, v_mdav(records, k, gamma))


def test_v_mdav_grows_trees_anew():
    records = records_of("gower", 900, 4, tied=False)
    found = finished(VMdav(records, 3, 0.9))
    np.testing.assert_array_equal(found, v_mdav(records, 3, 0.9))
    assert np.bincount(found).max() > 3


def width(records, rows, column):
    """The most that two of some records differ by in a column."""
    measure, numeric = records.measure, len(records.values)
    if column < numeric:
        gap = np.ptp(records.values[column, rows])
        return measure.weights[column] * (gap**2 if measure.squared else gap)
    codes = np.unique(records.codes[column - numeric, rows]).astype(int)
    if len(measure.tables) == 0:
        return float(len(codes) > 1)
    levels = measure.levels[column - numeric]
    start = measure.starts[column - numeric]
    table = measure.tables[start : start + levels**2].reshape(levels, levels)
    return table[np.ix_(codes, codes)].max()


def mondrian(records, rows, k):
    """Groups as sets, by cutting again and again."""
    columns = np.vstack([records.values, records.codes[: len(records.measure.levels)]])
    widths = [width(records, rows, column) for column in range(len(columns))]
    for column in np.argsort(-np.array(widths), kind="stable"):
        if len(rows) < 2 * k or widths[column] == 0:
            break
        own = columns[column, rows]
        median = np.sort(own)[len(rows) // 2]
        sides = [own < median, own <= median]
        sides = [side for side in sides if k <= side.sum() <= len(rows) - k]
        if sides:
            side = min(sides, key=lambda side: abs(2 * int(side.sum()) - len(rows)))
            return mondrian(records, rows[side], k) + mondrian(records, rows[~side], k)
    return [frozenset(rows.tolist())]


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["gower", "ahmad-dey", "squared"]),
    rows=st.integers(2, 120),
    k=st.integers(1, 6),
    seed=st.integers(0, 9999),
    tied=st.booleans(),
)
def test_mondrian_is_that_of_the_slow_version(kind, rows, k, seed, tied):
    k = min(k, rows)
    records = records_of(kind, rows, seed, tied=tied)
    found = finished(Mondrian(records, k))
    groups = [frozenset(np.flatnonzero(found == g).tolist()) for g in range(found.max() + 1)]
    assert groups == mondrian(records, np.arange(rows), k)


@pytest.mark.parametrize("rows", [3, 7])
def test_no_columns_and_equal_records(rows):
    bare = gower(np.empty((rows, 0)), np.empty((rows, 0), np.int64))
    equal = gower(np.ones((rows, 1)), np.zeros((rows, 1), np.int64))
    assert finished(Mondrian(bare, 2)).tolist() == [0] * rows
    assert finished(Mondrian(equal, 2)).tolist() == [0] * rows
    for records in (bare, equal):
        assert np.bincount(finished(VMdav(records, 3, 0.5))).min() >= 3
