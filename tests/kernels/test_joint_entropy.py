"""Mutual information of many columns against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from shoal.kernels.joint_entropy import mutual_informations


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("widths", [(2, 3, 40), (1, 7, 300), (5, 5, 5)])
def test_it_is_that_of_scikit_learn(seed, widths):
    """300 codes for 200 records are counted by sorting, the others by counting."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, width, 200) * 3 for width in widths]
    columns.append(columns[0] // 2)
    told = mutual_informations(columns)
    for one, a in enumerate(columns):
        for other, b in enumerate(columns):
            expected = 0.0 if one == other else mutual_info_score(a, b)
            assert told[one, other] == pytest.approx(expected, abs=1e-12)


def test_one_record_and_none():
    assert mutual_informations([np.array([4]), np.array([0])]).tolist() == [[0, 0], [0, 0]]
    nobody = np.zeros(0, np.int64)
    assert mutual_informations([nobody, nobody]).tolist() == [[0, 0], [0, 0]]
