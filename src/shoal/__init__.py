"""Shoal anonymizes tables about people and proves what it did."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal import risk, utility
    from shoal.engines import protect, verify
    from shoal.masking import (
        AddNoise,
        DatesToYear,
        Generalize,
        Microaggregate,
        Pram,
        Pseudonymize,
        RankSwap,
        Recode,
        Redraw,
        Round,
        Sample,
        ShiftDates,
        Suppress,
        Swap,
        TopBottomCode,
    )
    from shoal.measurement import Measurement
    from shoal.models import (
        AlphaKAnonymity,
        AverageRisk,
        BetaLikeness,
        DeltaDisclosure,
        DeltaPresence,
        DifferentialPrivacy,
        KAnonymity,
        KMap,
        LDiversity,
        PopulationUniqueness,
        ProbabilisticKAnonymity,
        TCloseness,
    )
    from shoal.study import Study, run_study
    from shoal.study.tuning import tune
    from shoal.table import Hierarchy, ReadOptions, Roles, Table, read, suggest_roles
    from shoal.workflow import Assessment, Limit, Plan, Release, assess, k_curve, sign, suggest_plan
    from shoal.workflow._protector import Protector

__version__ = "0.1.0"

__all__ = [
    "AddNoise",
    "AlphaKAnonymity",
    "Assessment",
    "AverageRisk",
    "BetaLikeness",
    "DatesToYear",
    "DeltaDisclosure",
    "DeltaPresence",
    "DifferentialPrivacy",
    "Generalize",
    "Hierarchy",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "Limit",
    "Measurement",
    "Microaggregate",
    "Plan",
    "PopulationUniqueness",
    "Pram",
    "ProbabilisticKAnonymity",
    "Protector",
    "Pseudonymize",
    "RankSwap",
    "ReadOptions",
    "Recode",
    "Redraw",
    "Release",
    "Roles",
    "Round",
    "Sample",
    "ShiftDates",
    "Study",
    "Suppress",
    "Swap",
    "TCloseness",
    "Table",
    "TopBottomCode",
    "assess",
    "k_curve",
    "protect",
    "read",
    "risk",
    "run_study",
    "sign",
    "suggest_plan",
    "suggest_roles",
    "tune",
    "utility",
    "verify",
]

#: The module of each name. Modules are loaded on first use, so that the command line answers
#: at once.
_ROOMS = {
    "shoal.masking": (
        "AddNoise",
        "DatesToYear",
        "Generalize",
        "Microaggregate",
        "Pram",
        "Pseudonymize",
        "RankSwap",
        "Recode",
        "Redraw",
        "Round",
        "Sample",
        "ShiftDates",
        "Suppress",
        "Swap",
        "TopBottomCode",
    ),
    "shoal.measurement": ("Measurement",),
    "shoal.models": (
        "AlphaKAnonymity",
        "AverageRisk",
        "BetaLikeness",
        "DeltaDisclosure",
        "DeltaPresence",
        "DifferentialPrivacy",
        "KAnonymity",
        "KMap",
        "LDiversity",
        "PopulationUniqueness",
        "ProbabilisticKAnonymity",
        "TCloseness",
    ),
    "shoal.study": ("Study", "run_study"),
    "shoal.study.tuning": ("tune",),
    "shoal.table": ("Hierarchy", "ReadOptions", "Roles", "Table", "read", "suggest_roles"),
    "shoal.engines": ("protect", "verify"),
    "shoal.workflow": (
        "Assessment",
        "Limit",
        "Plan",
        "Release",
        "assess",
        "k_curve",
        "sign",
        "suggest_plan",
    ),
    "shoal.workflow._protector": ("Protector",),  # separate: it imports scikit-learn
}


def __getattr__(name: str) -> Any:
    if name in ("risk", "utility"):
        return importlib.import_module(f"shoal.{name}")
    for room, names in _ROOMS.items():
        if name in names:
            thing = getattr(importlib.import_module(room), name)
            globals()[name] = thing
            return thing
    from shoal.hints import unknown_in

    raise unknown_in("shoal", name, __all__)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
