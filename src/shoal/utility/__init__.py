"""Utility: one function per measure, returning a Measurement."""

from typing import TYPE_CHECKING

from shoal.hints import unknown_in
from shoal.measurement import MeasureInfo, discover_measures
from shoal.utility._classes import (
    average_class_size,
    discernibility,
    suppressed_cells,
    suppressed_records,
)
from shoal.utility._distribution import chi_square, cramers_v, total_variation, wasserstein
from shoal.utility._generalization import generalization_intensity, normalized_certainty_penalty
from shoal.utility._information import mutual_information_loss, nonuniform_entropy
from shoal.utility._moments import correlation_difference, scaled_deviation, sse_sst, variance_ratio
from shoal.utility._predictive_performance import predictive_performance, regression_performance
from shoal.utility._propensity import propensity

__all__ = [
    "average_class_size",
    "chi_square",
    "correlation_difference",
    "cramers_v",
    "discernibility",
    "discover_utilities",
    "generalization_intensity",
    "mutual_information_loss",
    "nonuniform_entropy",
    "normalized_certainty_penalty",
    "predictive_performance",
    "propensity",
    "regression_performance",
    "scaled_deviation",
    "sse_sst",
    "suppressed_cells",
    "suppressed_records",
    "total_variation",
    "variance_ratio",
    "wasserstein",
]


def discover_utilities() -> dict[str, MeasureInfo]:
    """Every utility measure by its name in plans."""
    return discover_measures("shoal.utility")


if not TYPE_CHECKING:  # type checkers see the names above

    def __getattr__(name):
        raise unknown_in(__name__, name, __all__)
