"""Codes that one record has alone: the same groups, from tighter bounds."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.groups.mixed_mdav import MixedMdav, RandomStartMdav
from shoal.kernels.space.mixed_records import gower, with_unshared_codes

from ..compared import dissimilarities


def mixed(rows, seed):
    """A column of which half the codes occur once, some twice; one with gaps; a number."""
    draw = np.random.default_rng(seed)
    codes = np.column_stack([draw.permutation(rows) // 2 * draw.integers(0, 2, rows)] * 2)
    codes[:, 0] = np.unique(codes[:, 0], return_inverse=True)[1]
    codes[:, 1] = np.where(draw.random(rows) < 0.2, -1, np.arange(rows))
    return gower(draw.integers(0, 9, (rows, 1)) * 1.0, codes)


def test_which_codes_are_unshared():
    codes = np.array([[0, 0], [0, 1], [1, 2], [2, -1], [2, -1]])
    records = with_unshared_codes(gower(np.zeros((5, 0)), codes))
    assert records.measure.unshared.tolist() == [2, 0]
    assert gower(np.zeros((5, 0)), codes).measure.unshared.tolist() == [3, 3]


def plain_mdav(gaps, k, permutation):
    left, labels, group = list(range(len(gaps))), np.empty(len(gaps), int), 0
    turns = iter([*permutation] * len(gaps))
    while len(left) >= 2 * k:
        start = next(turn for turn in turns if turn in left)
        seed = max(left, key=lambda row: (gaps[start, row], -row))
        others = sorted(set(left) - {seed}, key=lambda row: (gaps[seed, row], row))[: k - 1]
        labels[[seed, *others]] = group
        left = [row for row in left if row != seed and row not in others]
        group += 1
    labels[left] = group
    return labels


@pytest.mark.parametrize("seed", range(6))
def test_groups_stay_the_same(seed):
    records, permutation = mixed(150, seed), np.random.default_rng(seed).permutation(150)
    gaps = np.array([dissimilarities(records, row) for row in range(150)])
    partition = RandomStartMdav(records, 3, permutation)
    while partition.advance() < 150:
        pass
    np.testing.assert_array_equal(partition.labels, plain_mdav(gaps, 3, permutation))


def test_a_column_of_all_different_codes_changes_no_group():
    """It adds the same to every pair of records."""
    rows = 20_000
    draw = np.random.default_rng(1)
    ages, names = draw.integers(0, 90, (rows, 1)) * 1.0, draw.permutation(rows)[:, None]
    with_names, without = (
        MixedMdav(gower(ages, codes), 5) for codes in (names, np.zeros((rows, 1), np.int64))
    )
    for partition in (with_names, without):
        while partition.advance() < rows:
            pass
    np.testing.assert_array_equal(with_names.labels, without.labels)
