"""Privacy models: one frozen dataclass per model, with level, holds and violations."""

from shoal.models._base import PrivacyModel, discover_models
from shoal.models._k_anonymity import KAnonymity
from shoal.models._probabilistic_k_anonymity import (
    ProbabilisticKAnonymity,
    swapped_blocks,
    swapped_crowds,
)

__all__ = [
    "KAnonymity",
    "PrivacyModel",
    "ProbabilisticKAnonymity",
    "discover_models",
    "swapped_blocks",
    "swapped_crowds",
]
