"""The whole job: plan, assess, protect, verify, release, report."""

from shoal.masking import Progress
from shoal.risk import KNOWN_WORDS
from shoal.workflow._assess import assess
from shoal.workflow._assessment import (
    ATTACKS,
    Assessment,
    ClassFacts,
    CostOfK,
    MeasureGroup,
    RiskDistribution,
    bound_of,
    by_reason,
    grouped_measures,
)
from shoal.workflow._leaks import Leak, Swapping
from shoal.workflow._plan import (
    Plan,
    StepRecord,
    minimalities_of,
    minimality_in_words,
    minimality_of,
)
from shoal.workflow._plan_parts import AboutRelease, EngineSettings
from shoal.workflow._protect import protect
from shoal.workflow._require import Claim, Limit, discover_all_measures
from shoal.workflow.advice._k_curve import k_curve
from shoal.workflow.advice._suggest_plan import PlanSuggestion, suggest_plan
from shoal.workflow.release._release import Release
from shoal.workflow.release._release_files import read_release, recorded_reading
from shoal.workflow.release._signing import sign
from shoal.workflow.release._verification import Check, Verification
from shoal.workflow.release._verify import verify

__all__ = [
    "ATTACKS",
    "KNOWN_WORDS",
    "AboutRelease",
    "Assessment",
    "Check",
    "Claim",
    "ClassFacts",
    "CostOfK",
    "EngineSettings",
    "Leak",
    "Limit",
    "MeasureGroup",
    "Plan",
    "PlanSuggestion",
    "Progress",
    "Release",
    "RiskDistribution",
    "StepRecord",
    "Swapping",
    "Verification",
    "assess",
    "bound_of",
    "by_reason",
    "discover_all_measures",
    "grouped_measures",
    "k_curve",
    "minimalities_of",
    "minimality_in_words",
    "minimality_of",
    "protect",
    "read_release",
    "recorded_reading",
    "sign",
    "suggest_plan",
    "verify",
]
