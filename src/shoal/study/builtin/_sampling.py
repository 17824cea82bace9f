"""Verdonck et al. (2022): a sample before or after generalization, and what it does to risk."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.study._conclusion import Conclusion
from shoal.study._design import Study
from shoal.study._results import Results
from shoal.study.builtin._builtin import BuiltIn, OnOtherTables, at_most, paper, with_target
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
from shoal.study.data._fetching import data_folder, find
from shoal.study.data._tables import TableSource
from shoal.table import NUMBERS, Roles

_TITLE = "A sample before or after generalization"
_PAPER = paper("sampling")
_QUASI, _TARGET = _PAPER["quasi_identifiers"], _PAPER["target"]
_HIERARCHIES = "hierarchies/acs_income_2018"
_STATES = {"quick": ("GA", "NJ", "OH", "WA"), "full": ()}  # one of each region, where fetched
_ROWS = {"quick": 40_000, "full": None}
_LEARNERS = {"quick": 5_000, "full": 20_000}  # people who take part in training and testing
_FRACTIONS = {"quick": [0.5, 0.125], "full": [0.5, 0.25, 0.125]}
_KS = {"quick": [5, 20], "full": [5, 10, 20, 50]}
_SEEDS = {"quick": 1, "full": 3}
_PUBLISHED = ("post", "random", 0.5, 5)  # the numbers that were printed are of this one
_DRAWS = 8  # of it: whether a large class is above its share moves many people at once
_HELD_OUT = 0.25


@dataclass(frozen=True)
class _Columns:
    """What the design takes of a table: columns by their part, and hierarchies by column."""

    quasi_identifiers: Sequence[str]
    target: str
    numbers: Sequence[str]
    hierarchies: Mapping[str, str]


def _design(preset: str) -> Study:
    rows, states = _ROWS[preset], _STATES[preset]
    table: dict[str, Any] = {
        "path": "acs/acs_income_2018.parquet",
        "folktables": "ACSIncome",
        "states": list(states),
        "name": "acs_income_2018",
        "roles": {"quasi_identifiers": list(_QUASI), "sensitive": [_TARGET]},
        "target": _TARGET,
        "only": [*_QUASI, "WKHP", _TARGET],
        "held_out": _HELD_OUT,
        **({} if rows is None else {"rows": rows}),
    }
    folder = data_folder()
    there = {
        name: file
        for name in _QUASI
        for file in (f"{_HIERARCHIES}/{name}.csv",)
        if folder is not None and (folder / file).is_file()
    }
    return _study(preset, table, _Columns(_QUASI, _TARGET, ["WKHP"], there), folder)


def _study(
    preset: str, table: Mapping[str, Any], columns: _Columns, folder: Path | None = None
) -> Study:
    return Study.from_dict(
        {
            "name": "sampling",
            "title": _TITLE,
            "seeds": _DRAWS,
            "baseline": False,
            "tables": [table],
            "variants": [
                {
                    "name": f"{place} {strategy}",
                    "steps": _steps(place, strategy, columns.hierarchies),
                    "grid": {"sample.fraction": [fraction], "generalize.k": [k]},
                    "seeds": _DRAWS
                    if (place, strategy, fraction, k) == _PUBLISHED
                    else _SEEDS[preset],
                }
                for place, strategy, fraction, k in itertools.product(
                    PLACES, STRATEGIES, _FRACTIONS[preset], _KS[preset]
                )
            ],
            "measures": list(_measures(_LEARNERS[preset], columns)),
        },
        folder=folder,
    )


def _steps(place: str, strategy: str, hierarchies: Mapping[str, str]) -> list[dict[str, Any]]:
    sample = {"method": "sample", "strategy": strategy}
    generalize = {
        "method": "generalize",
        "algorithm": "full-domain",
        "suppression_limit": 0.05,
        **({"hierarchies": dict(hierarchies)} if hierarchies else {}),
    }
    return [sample, generalize] if place == "pre" else [generalize, sample]


def _measures(people: int, columns: _Columns) -> Iterable[dict[str, Any]]:
    boosted = {
        "measure": "predictive_performance",
        "learner": "gradient-boosting",
        "score": "accuracy",
        "sample": people,
    }
    yield {"measure": "sampled_risk", "population": True}
    yield {
        "measure": "sampled_chi_square",
        "name": CHI_SQUARE,
        "population": True,
        "columns": list(columns.quasi_identifiers),
    }
    yield {"measure": "chi_square", "name": CHI_SQUARE_OF_TARGET, "columns": [columns.target]}
    if columns.numbers:
        yield {"measure": "variance_ratio", "name": VARIANCES, "columns": list(columns.numbers)}
    yield {**boosted, "name": ON_RELEASE, "test": "masked"}
    yield {**boosted, "name": ON_HELD_OUT, "holdout": True}


def _on_table(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same on another table, with its hierarchies, or those that are proposed for it."""
    if len(sources) != 1:
        raise InputError(
            f"The study '{study.name}' is about one table, and {len(sources)} are given; run it "
            "for each, with a folder of its own."
        )
    source = with_target(study, sources[0])
    roles = source.roles
    if not isinstance(roles, Roles) or not roles.quasi_identifiers:
        raise InputError(
            f"The study '{study.name}' generalizes quasi-identifiers, and the table "
            f"'{source.name}' does not say which these are; name them (--quasi)."
        )
    source = at_most(source, _ROWS[preset])
    source = replace(source, held_out=source.held_out or _HELD_OUT)
    table = source.load()
    taken = {*roles.quasi_identifiers, *roles.identifiers, source.target}
    numbers = [name for name in table.columns if name not in taken and table.kind(name) in NUMBERS]
    hierarchies = _hierarchies(source, roles.quasi_identifiers)
    columns = _Columns(roles.quasi_identifiers, str(source.target), numbers, hierarchies)
    return _study(preset, source.to_dict(), columns)


def _hierarchies(source: TableSource, columns: Sequence[str]) -> dict[str, str]:
    """The files of the folder that a table names, by column; the others are proposed."""
    if source.hierarchies is None:
        return {}
    folder = find(source.hierarchies)
    files = {} if folder is None else {name: folder / f"{name}.csv" for name in columns}
    there = {name: str(file.resolve()) for name, file in files.items() if file.is_file()}
    if not there:
        raise InputError(
            f"The folder '{source.hierarchies}' has a hierarchy of none of the quasi-identifiers "
            f"of the table '{source.name}'; it holds a file COLUMN.csv for each that has one."
        )
    return there


def _conclude(results: Results) -> Conclusion:
    notes = [*_PAPER["notes_of_the_paper"], *_PAPER["notes"]]
    return Conclusion(findings(results), claims(results), figures(results), notes)


def _conclude_elsewhere(results: Results) -> Conclusion:
    """The claims on another table."""
    return Conclusion((), claims(results), figures(results), _PAPER["notes"])


STUDY = BuiltIn(
    "sampling",
    _TITLE,
    "Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), Poster: The impact of data sampling in "
    "the anonymization pipeline",
    _design,
    _conclude,
    elsewhere=OnOtherTables(_on_table, _conclude_elsewhere, takes_hierarchies=True),
)
