"""Local search on mixed records: never worse, always valid, at rest only where no trade helps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.conditions import DISTINCT, Conditions
from shoal.kernels.groups.diverse_mdav import DiverseMdav
from shoal.kernels.groups.mixed_mdav import MixedMdav
from shoal.kernels.refine.group_lists import WORDS_PER_KICK
from shoal.kernels.refine.mixed_refine import MixedRefinement
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_records import gower, squared_euclidean

from ..compared import matrix

KINDS = ["gower", "ahmad-dey", "squared", "points", "ties", "equal"]


def records_of(kind, rows, seed):
    draw = np.random.default_rng(seed)
    points, categories = draw.normal(size=(rows, 2)), draw.integers(0, 3, (rows, 2))
    if kind == "ties":
        points = draw.integers(0, 3, (rows, 2)) * 1.0
    if kind == "equal":
        points, categories = np.ones((rows, 2)), np.zeros((rows, 2), np.int64)
    if kind == "points":
        return squared_euclidean(points)
    if kind in ("ahmad-dey", "squared"):
        return ahmad_dey(points, categories, original=kind == "squared")
    gaps = np.where(draw.random(points.shape) < 0.15, np.nan, points)
    return gower(gaps, np.where(draw.random(points.shape) < 0.15, -1, categories))


def loss(gaps, labels):
    """Over groups, the dissimilarities of all pairs over the size."""
    members = [np.flatnonzero(labels == group) for group in np.unique(labels)]
    return sum(np.triu(gaps[np.ix_(own, own)], 1).sum() / len(own) for own in members)


def some_partition(rows, k, seed):
    draw = np.random.default_rng(seed)
    groups = int(draw.integers(1, rows // k + 1))
    labels = np.concatenate([np.repeat(np.arange(groups), k), draw.integers(0, groups, rows)])
    return draw.permutation(labels[:rows])


def words(kicks, seed):
    return np.random.default_rng(seed).integers(0, 2**64, kicks * WORDS_PER_KICK, np.uint64)


def at_rest(refinement):
    while refinement.advance() < len(refinement.labels):
        pass
    return refinement


def diverse(k, secrets, fewest):
    values = secrets.max(axis=1) + 1
    return Conditions(
        k,
        np.array([DISTINCT]),
        np.array([0]),
        np.array([float(fewest)]),
        np.zeros(1),
        np.array([np.bincount(secrets[0]) / secrets.shape[1]]),
        values.astype(np.int64),
        np.zeros((1, 1, values.max()), np.int64),
        np.zeros(1, np.int64),
    )


def is_valid(labels, k, secrets=None, fewest=1):
    sizes = np.bincount(labels)
    if sizes.min() < k:
        return False
    return secrets is None or all(
        len(set(secrets[0, labels == group].tolist())) >= fewest for group in range(len(sizes))
    )


@settings(max_examples=50)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 70),
    st.integers(1, 6),
    st.integers(0, 9999),
    st.booleans(),
)
def test_never_worse_and_always_valid(kind, rows, k, seed, with_conditions):
    k = min(k, rows)
    records, labels = records_of(kind, rows, seed), some_partition(rows, k, seed)
    secrets, fewest, more = None, 1, {}
    if with_conditions:
        secrets = np.random.default_rng(seed).integers(0, 3, (1, rows), dtype=np.int32)
        fewest = min(2, len(set(secrets[0].tolist())))
        conditions = diverse(k, secrets, fewest)
        more = {"conditions": conditions, "codes": secrets}
        if not is_valid(labels, k, secrets, fewest):
            work = DiverseMdav(records, k, conditions, secrets)
            while work.advance() < rows:
                pass
            labels = work.labels
    gaps = matrix(records)
    before = loss(gaps, labels)
    refinement = MixedRefinement(records, labels, k, **more)
    kicks = 0
    while kicks < 6:
        if refinement.advance() == rows:
            refinement.perturb(words(4, seed + kicks))
            kicks += 1
        found = refinement.labels
        assert found.dtype == np.int32
        assert is_valid(found, k, secrets, fewest)
        after = loss(gaps, found)
        assert after <= before * (1 + 1e-9) + 1e-12
        before = after
    assert refinement.total_loss() == pytest.approx(before, rel=1e-9, abs=1e-9)


def better(gaps, labels, k, secrets, fewest):
    """Whether a record that moves, or two that swap, would leave less lost."""
    now, rows = loss(gaps, labels), range(len(labels))
    for row, group in product(rows, range(labels.max() + 1)):
        moved = labels.copy()
        moved[row] = group
        if is_valid(moved, k, secrets, fewest) and loss(gaps, moved) < now - 1e-6:
            return True
    for one, two in product(rows, rows):
        swapped = labels.copy()
        swapped[[one, two]] = labels[[two, one]]
        if is_valid(swapped, k, secrets, fewest) and loss(gaps, swapped) < now - 1e-6:
            return True
    return False


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS),
    st.integers(4, 16),
    st.integers(2, 4),
    st.integers(0, 9999),
    st.booleans(),
)
def test_at_rest_no_trade_helps(kind, rows, k, seed, with_conditions):
    """So few records that everybody is everybody's neighbour."""
    records = records_of(kind, rows, seed)
    secrets = np.arange(rows, dtype=np.int32)[None] % 2 if with_conditions else None
    labels, more = some_partition(rows, k, seed), {}
    if with_conditions:
        labels = np.zeros(rows, np.int32)
        more = {"conditions": diverse(k, secrets, 2), "codes": secrets}
    found = at_rest(MixedRefinement(records, labels, k, **more)).labels
    assert not better(matrix(records), found, k, secrets, 2)


def test_the_loss_of_points_is_their_sum_of_squares():
    points = np.random.default_rng(2).normal(size=(60, 3))
    labels = np.arange(60) // 5
    refinement = MixedRefinement(squared_euclidean(points), labels, 5)
    for _ in range(2):  # neighbours, then sums
        refinement.advance()
    squares = sum(((own - own.mean(axis=0)) ** 2).sum() for own in points.reshape(12, 5, 3))
    assert refinement.total_loss() == pytest.approx(squares)


def test_a_group_that_should_be_two_splits_and_two_that_should_be_one_merge():
    far = np.array([[0.0], [0.1], [9.0], [9.1], [0.2], [9.2]])
    found = at_rest(MixedRefinement(squared_euclidean(far), np.zeros(6, int), 3)).labels
    assert found.tolist() == [0, 0, 1, 1, 0, 1]
    pairs = np.array([[0.0], [5.0], [5.1], [9.0], [9.1], [0.1]])
    records = squared_euclidean(pairs)
    found = at_rest(MixedRefinement(records, np.array([0, 0, 1, 1, 2, 2]), 2)).labels
    assert found.tolist() == [0, 1, 1, 2, 2, 0]


def test_better_than_mdav_on_mixed_records():
    draw = np.random.default_rng(9)
    points = draw.normal(size=(400, 3)).round(1)
    records = gower(points, (points[:, :2] + draw.normal(size=(400, 2)) > 0).astype(int))
    mdav = MixedMdav(records, 4)
    while mdav.advance() < 400:
        pass
    gaps = matrix(records)
    refinement = at_rest(MixedRefinement(records, mdav.labels, 4))
    settled = loss(gaps, refinement.labels)
    assert settled < 0.97 * loss(gaps, mdav.labels)
    assert refinement.perturb(words(200, 1)) > 0
    assert loss(gaps, refinement.labels) < settled
