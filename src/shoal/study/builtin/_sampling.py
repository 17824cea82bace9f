"""Verdonck et al. (2022): a sample before or after generalization, and what it does to risk."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

from shoal.study._conclusion import Conclusion
from shoal.study._design import Study
from shoal.study._results import Results
from shoal.study._tables import DATA_VARIABLE
from shoal.study.builtin._builtin import BuiltIn
from shoal.study.builtin._sampling_verdict import (
    CHI_SQUARE,
    CHI_SQUARE_OF_TARGET,
    ON_HELD_OUT,
    ON_RELEASE,
    PLACES,
    STRATEGIES,
    VARIANCES,
    claims,
    figures,
    findings,
)

_TITLE = "A sample before or after generalization"
_QUASI = ("AGEP", "COW", "SCHL", "MAR", "SEX", "RAC1P", "POBP", "OCCP")
_TARGET = "PINCP"
_ROWS = {"quick": 40_000, "full": None}
_LEARNERS = {"quick": 5_000, "full": 20_000}  # people who take part in training and testing
_FRACTIONS = {"quick": [0.5, 0.125], "full": [0.5, 0.25, 0.125]}
_KS = {"quick": [5, 20], "full": [5, 10, 20, 50]}
_SEEDS = {"quick": 1, "full": 3}
_PUBLISHED = ("post", "random", 0.5, 5)  # the numbers that were printed are of this one
_DRAWS = 8  # of it: whether a large class is above its share moves many people at once
_HELD_OUT = 0.25
_NOTES = (
    "The table has 46 of the 50 states, 1,121,894 of the 1,664,500 records of the paper; the quick "
    "preset takes 40,000 of them, chosen by a public hash. A quarter of the people is held out "
    "before anything is masked.",
    "F counts everybody in the table at the levels that were found, whether sampled or not. The "
    "paper does not say whether shares above 0.5 and 0.8 are of the released records or of all "
    "people, so both are given; the 5 % of the people who were suppressed are among the latter, "
    "with certainty 0.",
    "Certainties above 0.5 and 0.8 follow from the sizes of the classes, and are no constants: "
    "with F = 5 half of the classes are above 0.5 and 3 % above 0.8, with F ≥ 50 none is above "
    "0.8.",
    "Before generalization classes are those of the raw values, most of them one person, and "
    "floor(s · 1) = 0: stratified and balanced samples that are drawn first keep next to nobody.",
    "Gradient boosting has the library's defaults and 5,000 people (quick) or 20,000 (full) in "
    "five folds; those of them who were sampled train it. Chi-square has the correction for a "
    "finite population, and the F-test takes values to be normal, which hours per week are not.",
)


def _design(preset: str) -> Study:
    data = os.environ.get(DATA_VARIABLE)
    rows = _ROWS[preset]
    return Study.from_dict(
        {
            "name": "sampling",
            "title": _TITLE,
            "seeds": _DRAWS,
            "baseline": False,
            "tables": [
                {
                    "path": "acs/acs_income_2018.parquet",
                    "roles": {"quasi_identifiers": list(_QUASI), "sensitive": [_TARGET]},
                    "target": _TARGET,
                    "only": [*_QUASI, "WKHP", _TARGET],
                    "held_out": _HELD_OUT,
                    **({} if rows is None else {"rows": rows}),
                }
            ],
            "variants": [
                {
                    "name": f"{place} {strategy}",
                    "steps": _steps(place, strategy),
                    "grid": {"sample.fraction": [fraction], "generalize.k": [k]},
                    "seeds": _DRAWS
                    if (place, strategy, fraction, k) == _PUBLISHED
                    else _SEEDS[preset],
                }
                for place, strategy, fraction, k in itertools.product(
                    PLACES, STRATEGIES, _FRACTIONS[preset], _KS[preset]
                )
            ],
            "measures": _measures(_LEARNERS[preset]),
        },
        folder=None if data is None else Path(data),
    )


def _steps(place: str, strategy: str) -> list[dict[str, Any]]:
    sample = {"method": "sample", "strategy": strategy}
    generalize = {
        "method": "generalize",
        "algorithm": "full-domain",
        "hierarchies": {name: f"hierarchies/acs_income_2018/{name}.csv" for name in _QUASI},
        "suppression_limit": 0.05,
    }
    return [sample, generalize] if place == "pre" else [generalize, sample]


def _measures(people: int) -> list[dict[str, Any]]:
    boosted = {
        "measure": "predictive_performance",
        "learner": "gradient-boosting",
        "score": "accuracy",
        "sample": people,
    }
    return [
        {"measure": "sampled_risk", "population": True},
        {
            "measure": "sampled_chi_square",
            "name": CHI_SQUARE,
            "population": True,
            "columns": list(_QUASI),
        },
        {"measure": "chi_square", "name": CHI_SQUARE_OF_TARGET, "columns": [_TARGET]},
        {"measure": "variance_ratio", "name": VARIANCES, "columns": ["WKHP"]},
        {**boosted, "name": ON_RELEASE, "test": "masked"},
        {**boosted, "name": ON_HELD_OUT, "holdout": True},
    ]


def _conclude(results: Results) -> Conclusion:
    return Conclusion(findings(results), claims(results), figures(results), _NOTES)


STUDY = BuiltIn(
    "sampling",
    _TITLE,
    "Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), Poster: The impact of data sampling in "
    "the anonymization pipeline",
    _design,
    _conclude,
)
