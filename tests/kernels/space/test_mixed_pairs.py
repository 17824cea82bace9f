"""Pairs of records against the search for the nearest record, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.linkage.mixed_linkage import NearestRecords
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_records import by_record, gower, mixed_records, pair_gap

from ..compared import dissimilarities


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_gap_of_the_nearest_is_found_again(squared, mean, missing):
    """Values without a short binary form, so that another order of adding would show."""
    random = np.random.default_rng(7)
    numeric = random.normal(size=(300, 5)) / 3
    numeric[random.random(numeric.shape) < missing] = np.nan
    codes = random.integers(0, 4, (300, 3))
    codes[random.random(codes.shape) < missing] = -1
    records = mixed_records(
        numeric, codes, weights=np.array([0.1, 1 / 3, 0.7, 0.0, 2.1]), squared=squared, mean=mean
    )
    rows, candidates = np.arange(120), np.arange(120, 300)
    link = NearestRecords(records, rows, candidates)
    while link.advance() < len(rows):
        pass
    pairs = by_record(records)
    gaps = [pair_gap(pairs, row, nearest) for row, nearest in zip(rows, link.nearest, strict=True)]
    np.testing.assert_array_equal(gaps, link.gaps)
    for candidate in candidates[::20]:
        gaps = np.array([pair_gap(pairs, row, candidate) for row in rows])
        assert (gaps >= link.gaps).all()


@pytest.mark.parametrize("kind", ["gower", "ahmad-dey", "squared"])
def test_the_gap_of_one_pair_is_that_of_a_search(kind):
    draw = np.random.default_rng(3)
    numeric, codes = draw.normal(size=(40, 5)), draw.integers(0, 4, (40, 3))
    numeric[draw.random(numeric.shape) < 0.2] = np.nan
    codes[draw.random(codes.shape) < 0.2] = -1
    numeric[0], codes[0] = np.nan, -1  # under Gower, nothing to compare
    records = gower(numeric, codes)
    if kind != "gower":
        records = ahmad_dey(numeric, codes, original=kind == "squared")
    pairs = by_record(records)
    for row in range(40):
        found = [pair_gap(pairs, row, other) for other in range(40)]
        np.testing.assert_array_equal(found, dissimilarities(records, row))
