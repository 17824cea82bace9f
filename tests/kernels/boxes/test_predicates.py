"""Rows that boxes cover, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.boxes.predicates import Runs, covered_rows, indexed, shared_out


@pytest.mark.parametrize("seed", range(8))
def test_against_all_pairs(seed):
    """Codes with ties; labels of no run, of one and of several; empty boxes too."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 7, 3)
    values = np.stack([rng.integers(0, count, 50) for count in counts])
    labels = rng.integers(0, 5, (20, 3)) + np.array([0, 5, 10])
    covered = [rng.random(counts[label // 5]) < 0.6 for label in range(15)]
    runs = [(label, code) for label, codes in enumerate(covered) for code in np.flatnonzero(codes)]
    starts = np.searchsorted([label for label, _ in runs], np.arange(16))
    ends = np.array([code for _, code in runs], np.int64)
    boxes = labels, Runs(starts, ends, ends)
    inside = np.array(
        [[all(covered[b[c]][r[c]] for c in range(3)) for r in values.T] for b in labels]
    )
    assert 0 < inside.mean() < 1
    weights, shares = rng.integers(1, 9, 50).astype(float), rng.integers(1, 9, 20).astype(float)
    rows = indexed(values, counts)
    assert covered_rows(rows, *boxes, weights).tolist() == (inside @ weights).tolist()
    assert shared_out(rows, *boxes, shares).tolist() == (shares @ inside).tolist()
