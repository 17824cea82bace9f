"""Labels of the nearest records, counted against a scan over all of them."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.linkage.mixed_linkage import NearestRecords
from shoal.kernels.space.mixed_records import gower
from shoal.kernels.space.mixed_tree import dissimilarities


@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_labels_of_the_nearest_are_counted(distinct):
    """On many ties and on none; a negative label is never alike, not even another negative one."""
    draw = np.random.default_rng(distinct)
    numeric = draw.integers(0, distinct, (400, 2)).astype(float)
    codes = draw.integers(-1, 3, (400, 2))
    records, labels = gower(numeric, codes), draw.integers(-1, 4, 400)
    rows, candidates = np.arange(150), np.arange(150, 400)
    link = NearestRecords(records, rows, candidates, labels)
    while link.advance() < len(rows):
        pass
    for row in rows:
        gaps = dissimilarities(records, row)[candidates]
        nearest = candidates[gaps == gaps.min()]
        assert link.ties[row] == len(nearest)
        assert link.nearest[row] == nearest.min()
        same = labels[nearest] == labels[row]
        assert link.alike[row] == (same.sum() if labels[row] >= 0 else 0)


def test_without_labels_nothing_is_alike():
    link = NearestRecords(
        gower(np.zeros((4, 1)), np.zeros((4, 0), int)), np.arange(2), np.arange(4)
    )
    link.advance()
    assert link.ties.tolist() == [4, 4]
    assert link.alike.tolist() == [0, 0]
