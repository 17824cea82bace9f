"""Folds of persons: balanced, repeatable, and the same whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.utility.models import stratified_folds, stratified_sample
from shoal.utility.models._columns import Target

STRATA = np.array([0] * 41 + [1] * 12 + [2] * 4)
KEYS = np.random.default_rng(5).permutation(500)[: len(STRATA)]


class TestFolds:
    def test_everybody_is_tested_once_in_each_repeat(self):
        folds = stratified_folds(STRATA, KEYS, splits=5, repeats=3)
        assert [(f.repeat, f.number) for f in folds] == [(r, n) for r in range(3) for n in range(5)]
        for repeat in range(3):
            tested = np.concatenate([f.test for f in folds if f.repeat == repeat])
            assert sorted(tested) == list(range(len(STRATA)))
        for fold in folds:
            assert sorted([*fold.train, *fold.test]) == list(range(len(STRATA)))

    def test_folds_and_strata_in_them_differ_by_one(self):
        folds = stratified_folds(STRATA, KEYS, splits=5)
        sizes = [len(fold.test) for fold in folds]
        assert max(sizes) - min(sizes) <= 1
        for stratum in range(3):
            counts = [(STRATA[fold.test] == stratum).sum() for fold in folds]
            assert max(counts) - min(counts) <= 1

    def test_the_order_of_rows_does_not_matter(self):
        turned = np.random.default_rng(1).permutation(len(STRATA))
        for test_share in (None, 0.3):
            there = stratified_folds(STRATA, KEYS, repeats=2, test_share=test_share)
            here = stratified_folds(STRATA[turned], KEYS[turned], repeats=2, test_share=test_share)
            for one, other in zip(there, here, strict=True):
                assert set(KEYS[one.test]) == set(KEYS[turned][other.test])

    def test_repeats_and_seeds_give_other_folds(self):
        first, second = stratified_folds(STRATA, KEYS, splits=2, repeats=2)[::2]
        assert first.test.tolist() != second.test.tolist()
        again = stratified_folds(STRATA, KEYS, splits=2, random_state=1)[0]
        assert first.test.tolist() != again.test.tolist()
        same = stratified_folds(STRATA, KEYS, splits=2)[0]
        assert first.test.tolist() == same.test.tolist()

    @pytest.mark.parametrize("share", [0.2, 0.3, 0.5])
    def test_a_share_for_testing(self, share):
        folds = stratified_folds(STRATA, KEYS, test_share=share, repeats=4)
        assert len(folds) == 4
        for fold in folds:
            assert abs(len(fold.test) - share * len(STRATA)) < 1
            for stratum, count in enumerate(np.bincount(STRATA)):
                assert abs((STRATA[fold.test] == stratum).sum() - share * count) <= 1

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"splits": 1}, "into 1 folds"),
            ({"splits": 58}, "57 persons cannot be split into 58"),
            ({"repeats": 0}, "at least one repeat"),
            ({"test_share": 1.0}, r"in \(0, 1\)"),
        ],
    )
    def test_what_is_no_split_is_refused(self, options, said):
        with pytest.raises(InputError, match=said):
            stratified_folds(STRATA, KEYS, **options)


class TestSample:
    @pytest.mark.parametrize("size", [1, 7, 20, 56])
    def test_each_stratum_by_its_share(self, size):
        drawn = stratified_sample(STRATA, KEYS, size)
        assert len(np.unique(drawn)) == len(drawn) == size
        for stratum, count in enumerate(np.bincount(STRATA)):
            assert abs((STRATA[drawn] == stratum).sum() - size * count / len(STRATA)) <= 1

    def test_a_small_table_is_taken_whole(self):
        assert stratified_sample(STRATA, KEYS, 57).tolist() == list(range(57))

    def test_it_hangs_on_keys_not_on_places(self):
        turned = np.random.default_rng(2).permutation(len(STRATA))
        here = stratified_sample(STRATA, KEYS, 20)
        there = stratified_sample(STRATA[turned], KEYS[turned], 20)
        assert set(KEYS[here]) == set(KEYS[turned][there])
        assert set(here) != set(stratified_sample(STRATA, KEYS, 20, random_state=3))


def test_bands_are_equally_large_and_in_order():
    values = np.random.default_rng(3).normal(size=53)
    found = Target("pay", "regression", values).strata(np.arange(len(values)))
    assert np.bincount(found).max() - np.bincount(found).min() <= 1
    assert (np.diff(found[np.argsort(values)]) >= 0).all()
    assert len(set(found)) == 10
