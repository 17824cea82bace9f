"""The sets of columns on which a tuple is alone, against all sets one after the other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.uniques.minimal_uniques import minimal_uniques


def sets_of_each(codes, single, size, owners):
    """For each tuple the minimal sets on which nobody else is."""
    columns, tuples = codes.shape
    sets = [[] for _ in range(tuples)]
    for length in range(1, size + 1):
        for chosen in combinations(range(columns), length):
            for row in range(tuples):
                same = (codes[list(chosen)] == codes[list(chosen), row][:, None]).all(axis=0)
                alone = single[row] and (owners[same] == owners[row]).all()
                if alone and not any(set(part) <= set(chosen) for part in sets[row]):
                    sets[row].append(chosen)
    return sets


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 40), columns=st.integers(1, 5))
def test_equal_to_all_sets(seed, rows, columns):
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(0, 4, (columns, rows)), axis=1).astype(np.int32, order="C")
    tuples = codes.shape[1]
    single = rng.random(tuples) < 0.8
    owners = np.arange(tuples, dtype=np.int32)
    if seed % 2:
        owners = rng.integers(0, tuples, tuples).astype(np.int32)
    size = int(rng.integers(1, columns + 1))
    weights = np.arange(size + 1, dtype=np.float64)
    found = minimal_uniques(codes, single, size, weights, owners)
    expected = sets_of_each(codes, single, size, owners)
    assert found.scores.tolist() == [float(sum(map(len, sets))) for sets in expected]
    assert found.smallest.tolist() == [min(map(len, sets), default=0) for sets in expected]
    for length in range(1, size + 1):
        assert found.found[length] == sum(len(s) == length for sets in expected for s in sets)
    for row, sets in enumerate(expected):
        for column in range(columns):
            share = sum(len(s) for s in sets if column in s)
            assert found.contributions[row, column] == share
