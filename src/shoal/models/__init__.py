"""Privacy models: one frozen dataclass per model, with level, holds and violations."""

from shoal.models._base import PrivacyModel, discover_models
from shoal.models._k_anonymity import KAnonymity

__all__ = ["KAnonymity", "PrivacyModel", "discover_models"]
