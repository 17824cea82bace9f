"""Linkage by similarity on breast cancer (569 records, 30 columns): the comparator decides.

Rounding and noise as in Carvalho, Moniz, Faria, Antunes (2022), "Towards a data
privacy-predictive performance trade-off". The expected shares were computed once with other code
than Shoal's, a plain matrix of all pairs; noise is drawn anew, so its tolerance is a few times the
spread from draw to draw.
"""

from __future__ import annotations

import polars as pl
import pytest

from shoal import AddNoise, Roles, Round, Table
from shoal.risk import similarity_linkage

IN_SD = {"comparator": "linear", "units": "sd"}


@pytest.fixture(scope="module")
def breast_cancer():
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    data = datasets.load_breast_cancer().data
    frame = pl.DataFrame({f"x{i}": values for i, values in enumerate(data.T)})
    return Table(frame, Roles(quasi_identifiers=frame.columns))


@pytest.mark.parametrize(
    ("options", "expected", "best"),
    [
        ({"comparator": "exact"}, 0.00, 0.83),
        ({"comparator": "linear"}, 1.00, 1.00),
        ({"comparator": "gauss"}, 1.00, 1.00),
        (IN_SD, 0.046, 1.00),
    ],
)
def test_rounding_to_fifths(breast_cancer, options, expected, best):
    """Null risk by the 70 % rule, while the best match alone finds nearly everybody."""
    found = similarity_linkage(
        breast_cancer, Round(base=0.2).fit_transform(breast_cancer), **options
    )
    assert found.value == pytest.approx(expected, abs=0.001)
    assert found.details["best_match"] == pytest.approx(best, abs=0.005)
    hidden = [warning for warning in found.warnings if "threshold hides right links" in warning]
    assert bool(hidden) == (best - expected > 0.1)


@pytest.mark.parametrize(
    ("options", "expected", "tolerance"),
    [
        ({"comparator": "exact"}, 0.0, 0.001),
        ({"comparator": "linear"}, 0.16, 0.06),
        (IN_SD, 0.55, 0.08),
    ],
)
def test_noise_of_a_sixteenth_of_the_range(breast_cancer, options, expected, tolerance):
    masked = AddNoise(epsilon=16).fit_transform(breast_cancer)
    found = similarity_linkage(breast_cancer, masked, **options)
    assert found.value == pytest.approx(expected, abs=tolerance)
