"""The search without boxes finds what the tree finds, and is chosen where boxes tell little."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.groups import mixed_mdav as _mixed_mdav
from shoal.kernels.groups.mixed_mdav import MixedMdav, RandomStartMdav
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import gower
from shoal.kernels.space.mixed_tree import forget, grow, pack, rows_by_leaf, scan

from ..compared import dissimilarities, finished

KINDS = ["gower", "gaps", "ahmad-dey", "ties", "equal"]


def records_of(kind, rows, seed=0):
    draw = np.random.default_rng(seed)
    points, categories = draw.normal(size=(rows, 3)), draw.integers(0, 4, (rows, 2))
    if kind == "ties":
        points = draw.integers(0, 3, (rows, 3)) * 1.0
    if kind == "equal":
        points, categories = np.ones((rows, 3)), np.zeros((rows, 2), np.int64)
    if kind == "gaps":
        points = np.where(draw.random(points.shape) < 0.1, np.nan, points)
        categories = np.where(draw.random(categories.shape) < 0.1, -1, categories)
    return (ahmad_dey if kind == "ahmad-dey" else gower)(points, categories)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_scan_finds_the_nearest_and_the_furthest(kind, size):
    records = records_of(kind, 150)
    tree = grow(records, np.arange(150))
    for row in (3, 77, 149):
        forget(tree, row)
    held = rows_by_leaf(tree)
    assert sorted(held) == [row for row in range(150) if row not in (3, 77, 149)]
    packed = pack(records, held)
    assert len(packed.values) == -(-147 // WIDTH)
    gaps, found = np.empty(size), np.empty(size)
    for row, first in [(0, 0), (0, 9), (40, 5), (148, 2)]:
        set_query(packed.query, records, row)
        away = dissimilarities(records, row)
        others = sorted(set(held.tolist()) - {row}, key=lambda other: (away[other], other))
        furthest = min(others, key=lambda other: (-away[other], other))
        assert scan(packed, records.measure, first, row, gaps, found, True) == furthest
        assert sorted(found.tolist()) == sorted(others[:size])
        np.testing.assert_array_equal(np.sort(gaps), away[others[:size]])
        found[:] = -1
        assert scan(packed, records.measure, first, row, gaps, found, False) == -1
        assert sorted(found.tolist()) == sorted(others[:size])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "k"), [(1300, 3), (90, 1), (200, 40)])
def test_groups_do_not_depend_on_the_search(monkeypatch, kind, rows, k):
    records = records_of(kind, rows)
    permutation = np.random.default_rng(1).permutation(rows)
    found = []
    for dear in (0.0, np.inf):
        monkeypatch.setattr(_mixed_mdav, "_DEAR", dear)
        for partition in (MixedMdav(records, k), RandomStartMdav(records, k, permutation)):
            partition.advance()
            assert partition._tree is None or partition._boxes == (dear == 0.0)
            found.append(finished(partition))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])


def test_full_leaves_are_filled_anew(monkeypatch):
    monkeypatch.setattr(_mixed_mdav, "_DEAR", np.inf)
    sizes = []

    def noted(records, rows):
        sizes.append(len(rows))
        return pack(records, rows)

    monkeypatch.setattr(_mixed_mdav, "pack", noted)
    partition = MixedMdav(records_of("gower", 20_000), 3)
    while partition.advance() < 4_000:
        pass
    assert len(sizes) == 2
    assert 10_000 < sizes[1] <= 7 / 8 * sizes[0] + WIDTH
    assert len(partition._tree.values) == -(-sizes[1] // WIDTH)


@pytest.mark.parametrize("partition", ["two groups per round", "one group per round"])
def test_boxes_are_kept_where_they_tell_something(partition):
    draw = np.random.default_rng(0)
    independent = draw.random((4_000, 14))
    alike = draw.random((4_000, 1)) * np.ones(14) + 0.01 * independent
    for points, boxes in ((independent, False), (alike, True)):
        records = gower(points, np.zeros((4_000, 0), np.int64))
        if partition == "two groups per round":
            work = MixedMdav(records, 5)
        else:
            work = RandomStartMdav(records, 5, draw.permutation(4_000))
        work.advance()
        assert work._boxes == boxes
