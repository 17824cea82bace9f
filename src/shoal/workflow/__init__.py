"""The whole job: plan, assess, protect, verify, release, report."""

from shoal.masking import Progress
from shoal.workflow._assess import Assessment, ClassFacts, assess
from shoal.workflow._plan import Plan, StepRecord
from shoal.workflow._protect import Release, protect
from shoal.workflow._require import Claim, Limit, discover_all_measures
from shoal.workflow._swapping import Leak, Swapping
from shoal.workflow._verification import Check, Verification
from shoal.workflow._verify import verify

__all__ = [
    "Assessment",
    "Check",
    "Claim",
    "ClassFacts",
    "Leak",
    "Limit",
    "Plan",
    "Progress",
    "Release",
    "StepRecord",
    "Swapping",
    "Verification",
    "assess",
    "discover_all_measures",
    "protect",
    "verify",
]
