"""Senavirathne and Torra (2021): swapped mixed data, attribute disclosure and machine learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.study._design import ORIGINAL, Study
from shoal.study._tables import TableSource
from shoal.study.builtin._builtin import BuiltIn
from shoal.study.builtin._mixed_ml_readings import (
    ATTACKS,
    BUDGETS,
    KNOWLEDGE,
    LEARNERS,
    LINKS,
    LOSS,
    MEMBERSHIP,
    NETWORK,
    RULES,
    f1_of,
    guessed,
    named,
)
from shoal.study.builtin._mixed_ml_verdict import conclude

_TITLE = "What swapping mixed data does to secrets and to models"
_KS = {"quick": (5, 50), "full": (5, 50, 100, 200)}
_TRIALS = {"quick": 2, "full": 5}
_HELD_OUT = 0.3  # the paper's 70/30 split
_DELTA = 1e-5

# CLASS and NSP of cardiotocography are two labels of the same records.
_TABLES: tuple[Mapping[str, Any], ...] = (
    {"path": "uci/cmc.parquet", "target": "contraceptive_method"},
    {"path": "uci/mammographic.parquet", "target": "severity"},
    {"path": "uci/heart_cleveland.parquet", "target": "disease"},
    {"path": "uci/cardiotocography.parquet", "target": "CLASS", "without": ["NSP"]},
    {"path": "uci/adult.parquet", "target": "income"},
    {"path": "uci/german.parquet", "target": "class", "openml": 31},
)
_QUICK_ROWS = 2_000  # of Adult

_SWAP = {"method": "swap", "blocks": "mutual-information"}
_MONDRIAN = {"method": "generalize", "algorithm": "mondrian"}
_STEPS: Mapping[str, Mapping[str, Any]] = {
    "gower": {**_SWAP, "dissimilarity": "gower"},
    "ahmad-dey": {**_SWAP, "dissimilarity": "ahmad-dey"},
    "k-anonymity": _MONDRIAN,
    "l-diversity": {**_MONDRIAN, "models": {"l_diversity": 2}},
    "t-closeness": {**_MONDRIAN, "models": {"t_closeness": 0.2}},
}


def _design(preset: str) -> Study:
    return Study.from_dict(
        {
            "name": "mixed-ml",
            "title": _TITLE,
            "seeds": _TRIALS[preset],
            "tables": _tables(preset),
            "variants": [
                {"name": name, "steps": [step], "grid": {"k": list(_KS[preset])}}
                for name, step in _STEPS.items()
            ],
            "measures": [*_risks(), *_utilities()],
        }
    )


def _tables(preset: str) -> list[dict[str, Any]]:
    """Every table twice: swapped in the columns that identify, and in all but the target."""
    entries = []
    for each in _TABLES:
        if preset == "quick" and not _at_hand(each):
            continue  # minutes are not spent on waiting for a network
        source = TableSource.from_dict(each)
        more = {"rows": _QUICK_ROWS} if preset == "quick" and source.name == "adult" else {}
        entries += [
            {
                **each,
                **more,
                "name": named(source.name, rule),
                "roles": rule,
                "held_out": _HELD_OUT,
            }
            for rule in RULES
        ]
    return entries


def _at_hand(entry: Mapping[str, Any]) -> bool:
    """Whether a table needs no network: those without another source are asked for anyway."""
    return "openml" not in entry or TableSource.from_dict(entry).file() is not None


def _risks() -> Sequence[Mapping[str, Any]]:
    return [
        *(
            {
                "measure": "attribute_inference",
                "name": guessed(attack, known),
                "attack": attack,
                "known": known,
            }
            for attack in ATTACKS
            for known in KNOWLEDGE
        ),
        {"measure": "distance_linkage", "name": LINKS},
        {"measure": "membership_inference", "name": MEMBERSHIP, "control": True},
    ]


def _utilities() -> Sequence[Mapping[str, Any]]:
    on_others = {
        "measure": "predictive_performance",
        "score": "f1-micro",
        "holdout": True,
    }
    return [
        {"measure": "mutual_information_loss", "name": LOSS},
        *({**on_others, "name": f1_of(name), "learner": name} for name in LEARNERS),
        # no data are masked here, the training is noisy: so on the original alone
        *(
            {
                **on_others,
                "name": f1_of(NETWORK, epsilon),
                "families": [ORIGINAL],
                "train": "original",
                "learner": {"name": NETWORK, "epsilon": epsilon, "delta": _DELTA},
            }
            for epsilon in BUDGETS
        ),
    ]


STUDY = BuiltIn(
    "mixed-ml",
    _TITLE,
    "Senavirathne, Torra (2021), Systematic evaluation of probabilistic k-anonymity for privacy "
    "preserving micro-data publishing and analysis, SECRYPT",
    _design,
    conclude,
)
