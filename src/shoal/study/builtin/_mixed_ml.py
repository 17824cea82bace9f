"""Senavirathne and Torra (2021): swapped mixed data, attribute disclosure and machine learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.errors import InputError
from shoal.study._design import ORIGINAL, Study
from shoal.study.builtin._builtin import BuiltIn, OnOtherTables, at_most, paper, with_target
from shoal.study.builtin._mixed_ml_claims import (
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
)
from shoal.study.builtin._mixed_ml_verdict import conclude, conclude_elsewhere
from shoal.study.data._tables import TableSource
from shoal.table import Roles

_TITLE = "What swapping mixed data does to secrets and to models"
_KS = {"quick": (5, 50), "full": (5, 50, 100, 200)}
_TRIALS = {"quick": 2, "full": 5}
_HELD_OUT = 0.3  # the paper's 70/30 split
_DELTA = 1e-5

_QUICK_ROWS = 2_000  # of Adult, and of tables of somebody's own

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
    for each in paper("mixed-ml")["tables"]:
        source = TableSource.from_dict(each)
        if preset == "quick" and source.name == "adult":
            source = replace(source, rows=_QUICK_ROWS)
        entries += [one.to_dict() for one in _twice(source)]
    return entries


def _twice(source: TableSource) -> list[TableSource]:
    """A table under both rules for the quasi-identifiers, with rows put aside."""
    held_out = source.held_out or _HELD_OUT
    return [
        replace(source, name=f"{source.name}, {rule}", roles=rule, held_out=held_out)
        for rule in RULES
    ]


def _on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same on other tables; the quick preset takes as many rows of them as of Adult."""
    taken = []
    for source in sources:
        if isinstance(source.roles, Roles):
            raise InputError(
                f"The study '{study.name}' chooses the quasi-identifiers itself, some and all of "
                f"the columns; give the table '{source.name}' a target, and the columns that are "
                "left out (--without), but no roles."
            )
        rows = _QUICK_ROWS if preset == "quick" else None
        taken += _twice(at_most(with_target(study, source), rows))
    return replace(study, tables=tuple(taken))


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
    elsewhere=OnOtherTables(_on_tables, conclude_elsewhere),
)
