"""Labels of the nearest records, counted against a scan over all of them."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.linkage.mixed_linkage import NearestRecords, behind
from shoal.kernels.space.mixed_records import gower

from ..compared import dissimilarities


@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_labels_of_the_nearest_are_counted(distinct):
    """On many ties and on none; a negative label is never alike, not even another negative one."""
    draw = np.random.default_rng(distinct)
    numeric = draw.integers(0, distinct, (400, 2)).astype(float)
    codes = draw.integers(-1, 3, (400, 2))
    records, labels = gower(numeric, codes), draw.integers(-1, 4, 400)
    rows, candidates = np.arange(150), np.arange(150, 400)
    one_each = np.ones(400, np.int64)
    whom = behind(one_each, candidates, labels[candidates], labels[rows])
    link = NearestRecords(records, rows, candidates, whom, np.arange(151), labels[rows])
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
    assert link.alike.tolist() == []


@pytest.mark.parametrize("labels_of", [2, 40, 5_000])
def test_records_that_stand_for_many_count_as_many(labels_of):
    """Equal records once, with whom they stand for, give what all of them give one by one."""
    draw = np.random.default_rng(labels_of)
    numeric = draw.integers(0, 4, (600, 2)).astype(float)
    codes, labels = draw.integers(-1, 3, (600, 1)), draw.integers(-1, labels_of, 600)
    different, place = np.unique(np.hstack([numeric, codes]), axis=0, return_inverse=True)
    place = place.ravel()
    persons, behind_them = np.arange(len(different)), np.arange(200, 600)
    both = np.vstack([different, different])
    records = gower(both[:, :2], both[:, 2:].astype(int))
    there = np.unique(place[behind_them])
    order = np.argsort(place[:200], kind="stable")
    starts = np.searchsorted(place[:200][order], np.arange(len(different) + 1))
    sizes = np.concatenate([0 * persons, np.bincount(place[behind_them], minlength=len(different))])
    whom = behind(sizes, len(different) + place[behind_them], labels[behind_them], labels[:200])
    link = NearestRecords(
        records, persons, len(different) + there, whom, starts, labels[:200][order]
    )
    while link.advance() < len(persons):
        pass
    every = gower(numeric, codes)
    for at, row in enumerate(order):
        gaps = dissimilarities(every, row)[behind_them]
        nearest = behind_them[gaps == gaps.min()]
        assert link.ties[place[row]] == len(nearest)
        same = labels[nearest] == labels[row]
        assert link.alike[at] == (same.sum() if labels[row] >= 0 else 0)
