"""Privacy models: one frozen dataclass per model, with level, holds and violations."""

from shoal.models._alpha_k_anonymity import AlphaKAnonymity
from shoal.models._average_risk import AverageRisk
from shoal.models._base import Condition, PrivacyModel, counted, discover_models
from shoal.models._beta_likeness import BetaLikeness
from shoal.models._conditions import conditions_of, population_of, table_conditions
from shoal.models._delta_disclosure import DeltaDisclosure
from shoal.models._differential_privacy import (
    DifferentialPrivacy,
    delta_for_class,
    smallest_class_for,
)
from shoal.models._k_anonymity import KAnonymity
from shoal.models._l_diversity import LDiversity
from shoal.models._population import DeltaPresence, KMap, PopulationModel, PopulationUniqueness
from shoal.models._probabilistic_k_anonymity import ProbabilisticKAnonymity
from shoal.models._sensitive_model import SensitiveModel
from shoal.models._t_closeness import TCloseness

__all__ = [
    "AlphaKAnonymity",
    "AverageRisk",
    "BetaLikeness",
    "Condition",
    "DeltaDisclosure",
    "DeltaPresence",
    "DifferentialPrivacy",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "PopulationModel",
    "PopulationUniqueness",
    "PrivacyModel",
    "ProbabilisticKAnonymity",
    "SensitiveModel",
    "TCloseness",
    "conditions_of",
    "counted",
    "delta_for_class",
    "discover_models",
    "population_of",
    "smallest_class_for",
    "table_conditions",
]
