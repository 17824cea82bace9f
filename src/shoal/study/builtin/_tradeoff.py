"""Carvalho et al. (2022): what five techniques, alone and combined, cost in predictions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from shoal.study._design import Study, Variant
from shoal.study._results import Results
from shoal.study.builtin._builtin import BuiltIn, OnOtherTables, at_most, paper, with_target
from shoal.study.builtin._tradeoff_verdict import FIRST, PUBLISHED, conclude, conclude_elsewhere
from shoal.study.data._tables import TableSource

_TITLE = "What protection costs in predictive performance"
_FOLDS = {"quick": 1, "full": 5}  # repeats
_GRIDS = {"quick": "carvalho-reduced", "full": "carvalho"}
_QUICK_ROWS: Final = 1_000
_SAME: Final = 1e-12  # risks that differ by less are equal


@dataclass(frozen=True)
class Technique:
    """One of the paper's techniques: a method, and the values of its parameter in its order."""

    letter: str
    method: str
    parameter: str
    values: tuple[float, ...]
    mildest: float

    @property
    def mildest_first(self) -> tuple[float, ...]:
        """The values from what changes least to what changes most."""
        return self.values if self.values[0] == self.mildest else self.values[::-1]

    def step(self, value: float) -> dict[str, Any]:
        """The step of a plan with this value."""
        return {"method": self.method, self.parameter: value}


#: In the order in which they are applied.
TECHNIQUES: Final = (
    Technique("S", "suppress", "max_distinct", (0.7, 0.8, 0.9), 0.9),
    Technique("T", "top_bottom_code", "fence", (1.5, 3.0), 3.0),
    Technique("N", "add_noise", "epsilon", (0.5, 2.0, 4.0, 8.0, 16.0), 16.0),
    Technique("R", "round", "base", (0.2, 5.0, 10.0), 0.2),
    Technique("G", "recode", "magnitude", (0.5, 1.5), 0.5),
)


def design(preset: str) -> Study:
    """The first stage: every technique alone, over its grid; only its risk is measured."""
    return Study.from_dict(
        {
            "name": "tradeoff",
            "title": _TITLE,
            "tables": _tables(preset),
            "variants": [
                {
                    "name": f"{one.letter} alone",
                    "family": f"{one.letter} alone",
                    "steps": [{"method": one.method}],
                    "grid": {one.parameter: list(one.values)},
                    "measures": ["r3", "unchanged"],
                }
                for one in TECHNIQUES
            ],
            "measures": [
                {"measure": "similarity_linkage", "name": "r3", "comparator": "exact"},
                {
                    "measure": "similarity_linkage",
                    "name": "r4",
                    "comparator": "exact",
                    "threshold": None,
                },
                {"measure": "unchanged_records", "name": "unchanged"},
                {
                    "measure": "tuned_performance",
                    "name": "F1",
                    "grid": _GRIDS[preset],
                    "repeats": _FOLDS[preset],
                },
            ],
        }
    )


def _tables(preset: str) -> list[dict[str, Any]]:
    """The tables of a preset; that of scikit-learn always is there."""
    if preset == "full":
        return list(paper("tradeoff")["tables"])
    named = {one.name: one for one in map(TableSource.from_dict, paper("tradeoff")["tables"])}
    quick = [named[name] for name in paper("tradeoff")["quick"]]
    return [(one if one.scikit_learn else at_most(one, _QUICK_ROWS)).to_dict() for one in quick]


def on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The first stage on other tables; quick takes as many rows of them as of its own."""
    rows = _QUICK_ROWS if preset == "quick" else None
    return replace(study, tables=tuple(at_most(with_target(study, s), rows) for s in sources))


def with_combinations(study: Study, results: Results) -> Study:
    """The second stage: of each table the techniques that apply, in all combinations.

    Each technique takes the value that has the lowest risk alone, of equal ones the mildest. The
    tables that were published for the first of equal ones are run by that rule too.
    """
    rules = [
        (source.name, alone, chosen_values(alone, mildest=not suffix), suffix)
        for source in study.tables
        for alone in (results.where(table=source.name),)
        for suffix in (("", FIRST) if source.name in PUBLISHED else ("",))
    ]
    found = [
        _variant(table, letters, values, alone, suffix)
        for letters in combinations([one.letter for one in TECHNIQUES])
        for table, alone, values, suffix in rules
        if values.keys() >= set(letters)
    ]
    return replace(study, variants=(*study.variants, *found))


def combinations(letters: Sequence[str]) -> list[tuple[str, ...]]:
    """All combinations of one technique or more, in the order of application: 2^t - 1.

    Examples
    --------
    >>> combinations("TN"), len(combinations("STNRG"))
    ([('T',), ('N',), ('T', 'N')], 31)
    """
    sizes = range(1, len(letters) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(letters, size)]


def chosen_values(alone: Results, *, mildest: bool = True) -> dict[str, float]:
    """For each technique that changes a table, the value with the lowest risk alone.

    Of equal ones the mildest is taken, or the first in the paper's list. What changes nothing is
    no candidate, and a technique without any does not apply.
    """
    risks = alone.where(measure="r3").by("family", "variant")
    unchanged = alone.where(measure="unchanged").by("family", "variant")
    out = {}
    for one in TECHNIQUES:
        values = one.mildest_first if mildest else one.values
        places = [(value, _place(one, value)) for value in values]
        able = {
            value: float(risks[place].mean())
            for value, place in places
            if place in risks and place in unchanged and unchanged[place].mean() < 1
        }
        if able:
            lowest = min(able.values())
            out[one.letter] = next(v for v, risk in able.items() if risk <= lowest + _SAME)
    return out


def _variant(
    table: str,
    letters: tuple[str, ...],
    values: Mapping[str, float],
    alone: Results,
    suffix: str,
) -> Variant:
    named = {one.letter: one for one in TECHNIQUES}
    # Where suppression leaves no column the others have nothing to work on, and change nothing.
    worked = letters[:1] if letters[0] == "S" and _takes_all(alone, values["S"]) else letters
    family = "+".join(letters) + suffix
    return Variant(
        f"{family} on {table}",
        tuple(named[letter].step(values[letter]) for letter in worked),
        family,
        {named[letter].parameter: values[letter] for letter in letters},
        tables=(table,),
        measures=("r3", "r4", "F1"),
    )


def _place(one: Technique, value: float) -> tuple[str, str]:
    """The family and the name of a technique alone, with one value."""
    return f"{one.letter} alone", f"{one.letter} alone {one.parameter}={value}"


def _takes_all(alone: Results, value: float) -> bool:
    """Whether suppression with this value leaves nothing that an intruder knows."""
    _, variant = _place(TECHNIQUES[0], value)
    rows = alone.where(variant=variant, measure="r3").rows
    return any(not row.facts["details"]["known"] for row in rows)


STUDY = BuiltIn(
    "tradeoff",
    _TITLE,
    "Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance "
    "trade-off",
    design,
    conclude,
    stages=(with_combinations,),
    elsewhere=OnOtherTables(on_tables, conclude_elsewhere),
)
