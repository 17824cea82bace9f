"""Disclosure risk: one function per measure or attack, returning a Measurement."""

from typing import TYPE_CHECKING

from shoal.hints import unknown_in
from shoal.measurement import MeasureInfo, discover_measures
from shoal.risk._certainty import certainty, counted_once, journalist_risk_before_sampling
from shoal.risk._classes import (
    journalist_risk,
    marketer_risk,
    population_sizes,
    prosecutor_risk,
    records_at_risk,
    uniqueness,
)
from shoal.risk._options import KNOWN_WORDS
from shoal.risk._sampled_population import household_risk, individual_risk, population_uniqueness
from shoal.risk._sensitive_classes import homogeneity, similarity, skewness
from shoal.risk._suda import SpecialUniques, dis_scores, special_uniques, suda
from shoal.risk._unchanged import unchanged_records
from shoal.risk.attacks._attribute_inference import attribute_inference
from shoal.risk.attacks._inference import inference
from shoal.risk.attacks._intersection import intersection
from shoal.risk.attacks._interval_disclosure import interval_disclosure
from shoal.risk.attacks._linkability import linkability
from shoal.risk.attacks._membership_inference import membership_inference
from shoal.risk.attacks._singling_out import singling_out
from shoal.risk.attacks._swapped_groups import group_disclosure, own_values, rank_matching
from shoal.risk.linkage._distance_linkage import distance_linkage
from shoal.risk.linkage._probabilistic_linkage import probabilistic_linkage
from shoal.risk.linkage._similarity_linkage import similarity_linkage

__all__ = [
    "KNOWN_WORDS",
    "SpecialUniques",
    "attribute_inference",
    "certainty",
    "counted_once",
    "dis_scores",
    "discover_risks",
    "distance_linkage",
    "group_disclosure",
    "homogeneity",
    "household_risk",
    "individual_risk",
    "inference",
    "intersection",
    "interval_disclosure",
    "journalist_risk",
    "journalist_risk_before_sampling",
    "linkability",
    "marketer_risk",
    "membership_inference",
    "own_values",
    "population_sizes",
    "population_uniqueness",
    "probabilistic_linkage",
    "prosecutor_risk",
    "rank_matching",
    "records_at_risk",
    "similarity",
    "similarity_linkage",
    "singling_out",
    "skewness",
    "special_uniques",
    "suda",
    "unchanged_records",
    "uniqueness",
]


def discover_risks() -> dict[str, MeasureInfo]:
    """Every risk measure by its name in plans."""
    return discover_measures("shoal.risk")


if not TYPE_CHECKING:  # a reader of types sees the names above

    def __getattr__(name):
        raise unknown_in(__name__, name, __all__)
