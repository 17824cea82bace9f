"""Counts of agreement patterns against counting every pair by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shoal.kernels.linkage.agreement_patterns import Patterns, count_patterns, expected_matches


def pattern(one, other):
    """For each column 1 where they agree, 0 where they differ, None where a value is missing."""
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return tuple(None if a < 0 or b < 0 else int(a == b) for a, b in pairs)


@pytest.mark.parametrize("columns", [1, 3, 31, 32, 80])
def test_they_equal_counting_each_pair(columns):
    """With single bits as marks, up to 31 columns, and with random ones."""
    draw = np.random.default_rng(columns)
    # few columns differ, so that patterns are shared
    persons, records = (np.ones((columns, n), np.int32) for n in (20, 90))
    for side in (persons, records):
        side[draw.integers(0, columns, 4)] = draw.integers(-1, 3, (4, side.shape[1]))
    sizes = draw.integers(1, 5, 90)
    found = count_patterns(persons, records, sizes, most_patterns=5000, most_entries=5000)
    assert len(found.starts) == 21
    for person in range(20):
        expected = Counter()
        for record in range(90):
            expected[pattern(persons[:, person], records[:, record])] += int(sizes[record])
        entries = slice(found.starts[person], found.starts[person + 1])
        counted = {
            pattern(persons[:, found.persons[i]], records[:, found.records[i]]): count
            for i, count in zip(found.ids[entries], found.counts[entries], strict=True)
        }
        assert counted == expected
    assert len(set(found.ids.tolist())) == len(found.persons)


@pytest.mark.parametrize("limits", [(12, 5000), (5000, 40)])
def test_counting_ends_before_there_are_too_many(limits):
    draw = np.random.default_rng(2)
    persons, records = (draw.integers(0, 2, (6, n)).astype(np.int32) for n in (30, 12))
    ones = np.ones(12, np.int64)
    found = count_patterns(persons, records, ones, most_patterns=limits[0], most_entries=limits[1])
    whole = count_patterns(persons, records, ones, most_patterns=5000, most_entries=5000)
    done = len(found.starts) - 1
    assert 0 < done < 30
    assert len(found.persons) == len(set(found.ids.tolist())) <= limits[0]
    assert len(found.ids) <= limits[1]
    np.testing.assert_array_equal(found.starts, whole.starts[: done + 1])
    np.testing.assert_array_equal(found.ids, whole.ids[: len(found.ids)])
    np.testing.assert_array_equal(found.counts, whole.counts[: len(found.ids)])


@pytest.mark.parametrize("odds", [np.inf, 0.02])
def test_each_person_has_one_record_at_most(odds):
    """Bayes' rule over all records of a person, and nobody; also far beyond the range of exp."""
    starts, ids = np.array([0, 2, 4]), np.array([0, 1, 1, 2])
    counts, weights = np.array([3.0, 1.0, 2.0, 5.0]), np.array([-1.0, 2.0, 0.5])
    patterns = Patterns(starts, ids, counts, np.zeros(3, int), np.zeros(3, int))
    nobody = 0.0 if odds == np.inf else 1 / odds
    expected = np.zeros(3)
    for one in (slice(0, 2), slice(2, 4)):
        parts = counts[one] * np.exp(weights[ids[one]])
        expected[ids[one]] += parts / (parts.sum() + nobody)
    np.testing.assert_allclose(expected_matches(patterns, weights, odds), expected, rtol=1e-12)
    far = expected_matches(patterns, weights - 2000, np.inf)
    np.testing.assert_allclose(far, expected_matches(patterns, weights, np.inf), rtol=1e-12)
    apart = expected_matches(patterns, np.array([3000.0, -3000.0, -3000.0]), odds)
    assert np.isfinite(apart).all()
    assert apart[0] == 1
