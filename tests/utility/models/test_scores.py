"""Scores against scikit-learn, and against formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics

from shoal.utility.models import CLASSIFICATION_SCORES, REGRESSION_SCORES
from shoal.utility.models._scores import Predictions


def scored(found):
    return {name: score(found) for name, score in CLASSIFICATION_SCORES.items()}


def test_two_classes_by_hand():
    """3 of 4 positives found, 1 of 6 negatives called positive."""
    true = np.array([1] * 4 + [0] * 6)
    said = np.array([1, 1, 1, 0, 1, 0, 0, 0, 0, 0])
    found = scored(Predictions(true, said, positive=1))
    assert found["f1"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 1))
    assert found["accuracy"] == found["f1-micro"] == pytest.approx(0.8)
    assert found["balanced-accuracy"] == pytest.approx((3 / 4 + 5 / 6) / 2)
    assert found["g-mean"] == pytest.approx(math.sqrt(3 / 4 * 5 / 6))
    assert math.isnan(found["auc"])
    assert scored(Predictions(true, said, positive=0))["f1"] == pytest.approx(10 / 12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [2, 4])
def test_against_scikit_learn(seed, classes):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, 60)
    support = rng.integers(1, 5, (60, classes)).astype(float)  # with ties
    support /= support.sum(axis=1, keepdims=True)
    said = support.argmax(axis=1)
    found = scored(Predictions(true, said, support, 1, classes == 2))
    for average in ("micro", "macro", "weighted"):
        expected = metrics.f1_score(true, said, average=average)
        assert found[f"f1-{average}"] == pytest.approx(expected)
    assert found["balanced-accuracy"] == pytest.approx(metrics.balanced_accuracy_score(true, said))
    if classes == 2:
        assert found["f1"] == pytest.approx(metrics.f1_score(true, said))
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(true, support[:, 1]))
    else:
        assert found["f1"] == found["f1-macro"]
        expected = metrics.roc_auc_score(true, support, multi_class="ovr")
        assert found["auc"] == pytest.approx(expected)


def test_one_class_in_the_test_has_no_auc():
    found = scored(Predictions(np.zeros(5, int), np.zeros(5, int), np.ones((5, 2)) / 2))
    assert math.isnan(found["auc"])
    assert found["accuracy"] == 1
    assert found["f1"] == 0


def test_numbers_by_hand():
    true, said = np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, 2.0, 5.0, 5.0])
    found = Predictions(true, said)
    scores = {name: score(found) for name, score in REGRESSION_SCORES.items()}
    assert scores["r2"] == pytest.approx(1 - 5 / 14)
    assert scores["rmse"] == pytest.approx(math.sqrt(5 / 4))
    assert scores["mae"] == pytest.approx(3 / 4)
