"""Carvalho et al. (2022): what five techniques, alone and combined, cost in predictions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.study import figures as charts
from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import ORIGINAL, Study, Variant
from shoal.study._results import Results
from shoal.study._statistics import bayes_sign_test, ranks, spearman
from shoal.study.builtin._builtin import (
    BuiltIn,
    OnOtherTables,
    Verdict,
    at_most,
    judge_claims,
    paper,
    with_target,
)
from shoal.study.data._tables import TableSource
from shoal.study.figures import Figure, Point

_PAPER = paper("tradeoff")
#: From the same design, run once by other code; the paper prints no numbers of single tables.
PUBLISHED: Final = _PAPER["published"]
#: The suffix of a family whose parameters are the first of several equally good ones.
FIRST: Final = " (first of ties)"
#: Differences up to this many percent count as none: the paper's region of practical equivalence.
ROPE: Final = 1.0
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
        """The values, from the one that changes least to the one that changes most."""
        return self.values if self.values[0] == self.mildest else self.values[::-1]

    def step(self, value: float) -> dict[str, Any]:
        """The step of a plan with this value."""
        return {"method": self.method, self.parameter: value}

    def place(self, value: float) -> tuple[str, str]:
        """The family of the technique alone, and the name of its variant with one value."""
        return f"{self.letter} alone", f"{self.letter} alone {self.parameter}={value}"


#: The techniques in the order in which they are applied.
TECHNIQUES: Final = (
    Technique("S", "suppress", "max_distinct", (0.7, 0.8, 0.9), 0.9),
    Technique("T", "top_bottom_code", "fence", (1.5, 3.0), 3.0),
    Technique("N", "add_noise", "epsilon", (0.5, 2.0, 4.0, 8.0, 16.0), 16.0),
    Technique("R", "round", "base", (0.2, 5.0, 10.0), 0.2),
    Technique("G", "recode", "magnitude", (0.5, 1.5), 0.5),
)


def design(preset: str) -> Study:
    """The first stage: every technique alone, over its grid. Only the risk is measured."""
    chosen, r3 = _PAPER["presets"][preset], {"measure": "similarity_linkage", "name": "r3"}
    return Study.from_dict(
        {
            "name": "tradeoff",
            "title": _PAPER["title"],
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
                {**r3, "comparator": "exact"},
                {**r3, "name": "r4", "comparator": "exact", "threshold": None},
                {"measure": "unchanged_records", "name": "unchanged"},
                {"measure": "tuned_performance", "name": "F1", **chosen["learning"]},
            ],
        }
    )


def _tables(preset: str) -> list[dict[str, Any]]:
    """The tables of a preset; scikit-learn's table always exists."""
    chosen = _PAPER["presets"][preset]
    if "tables" not in chosen:
        return list(_PAPER["tables"])
    named = {one.name: one for one in map(TableSource.from_dict, _PAPER["tables"])}
    quick = [named[name] for name in chosen["tables"]]
    return [(one if one.scikit_learn else at_most(one, chosen["rows"])).to_dict() for one in quick]


def on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The first stage on other tables; quick takes as many rows as from its own tables."""
    rows = _PAPER["presets"][preset].get("rows")
    return replace(study, tables=tuple(at_most(with_target(study, s), rows) for s in sources))


def with_combinations(study: Study, results: Results) -> Study:
    """The second stage: all combinations of the techniques that apply to each table.

    Each technique takes the value with the lowest risk, or the mildest of several with equal risk.
    The published tables used the first of equal ones, so they are also run by that rule.
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
    """All 2^t - 1 combinations of one or more techniques, in the order of application.

    Examples
    --------
    >>> combinations("TN"), len(combinations("STNRG"))
    ([('T',), ('N',), ('T', 'N')], 31)
    """
    sizes = range(1, len(letters) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(letters, size)]


def chosen_values(alone: Results, *, mildest: bool = True) -> dict[str, float]:
    """For each technique that changes a table, the value with the lowest risk.

    Of several with equal risk, the mildest is taken, or the first in the paper's list. A value that
    changes nothing is not a candidate, and a technique without a candidate does not apply.
    """
    risks = alone.where(measure="r3").by("family", "variant")
    unchanged = alone.where(measure="unchanged").by("family", "variant")
    out = {}
    for one in TECHNIQUES:
        candidates = {
            value: float(risks[place].mean())
            for value in (one.mildest_first if mildest else one.values)
            if (place := one.place(value)) in risks
            and place in unchanged
            and unchanged[place].mean() < 1
        }
        if candidates:
            lowest = min(candidates.values())
            out[one.letter] = next(v for v, risk in candidates.items() if risk <= lowest + _SAME)
    return out


def _variant(
    table: str, letters: tuple[str, ...], values: Mapping[str, float], alone: Results, suffix: str
) -> Variant:
    named = {one.letter: one for one in TECHNIQUES}
    # If suppression leaves no column, the other techniques have nothing to change.
    applied = letters[:1] if letters[0] == "S" and _takes_all(alone, values["S"]) else letters
    family = "+".join(letters) + suffix
    return Variant(
        f"{family} on {table}",
        tuple(named[letter].step(values[letter]) for letter in applied),
        family,
        {named[letter].parameter: values[letter] for letter in letters},
        tables=(table,),
        measures=("r3", "r4", "F1"),
    )


def _takes_all(alone: Results, value: float) -> bool:
    """Whether suppression with this value leaves no column that the intruder knows."""
    rows = alone.where(variant=TECHNIQUES[0].place(value)[1], measure="r3").rows
    return any(not row.facts["details"]["known"] for row in rows)


@dataclass(frozen=True)
class Measured:
    """One masked table: its risk with and without the threshold, and its predictions."""

    table: str
    family: str
    r3: float
    r4: float
    validation: float
    oracle: float
    over_folds: float
    without_model: bool


#: The masked tables by table and family; those of one table by family.
MeasuredTables = dict[tuple[str, str], Measured]
OfTable = dict[str, Measured]


def measured_tables(results: Results) -> MeasuredTables:
    """All complete measurements by table and family: the original and the combinations."""
    done, out = results.done, {}
    r3, r4 = (done.where(measure=name).by("table", "variant") for name in ("r3", "r4"))
    for row in done.where(measure="F1"):
        place, details = (row.table, row.variant), row.facts["details"]
        if place in r3 and place in r4:
            risks = float(r3[place].mean()), float(r4[place].mean())
            scores = row.value, float(details["oracle"]), float(details["mean_over_folds"])
            without_model = bool(details["without_model"])
            found = Measured(row.table, row.family, *risks, *scores, without_model)
            out[row.table, row.family] = found
    return out


def _by_table(found: MeasuredTables) -> dict[str, OfTable]:
    out: dict[str, OfTable] = {}
    for (table, family), one in found.items():
        out.setdefault(table, {})[family] = one
    return out


def change(after: float, before: float) -> float:
    """The percentage difference; NaN if there is nothing to compare with."""
    return 100 * (after - before) / before if before else math.nan


def _masked(mine: OfTable) -> list[Measured]:
    return [one for family, one in mine.items() if family != ORIGINAL]


def relation(mine: OfTable) -> float:
    """Spearman's correlation of the risk and the mean F1 of masked tables; NaN if too few."""
    masked = _masked(mine)
    if len(masked) < 3:
        return math.nan
    return spearman([one.r3 for one in masked], [one.over_folds for one in masked])[0]


def conclude(results: Results, *, own: bool = False) -> Conclusion:
    """Compare the results with the known numbers of the design and with the paper's claims.

    Of other tables, only those that are named like a published one have known numbers.
    """
    found = measured_tables(results)
    mildest = {place: one for place, one in found.items() if not one.family.endswith(FIRST)}
    findings = [f for f in _findings(found) if not (own and math.isnan(f.measured))]
    given = (findings, _claims(mildest, found), figures(mildest), _notes(mildest, own))
    return Conclusion(*given, terms=_PAPER["terms"])


def _findings(found: MeasuredTables) -> list[Finding]:
    """The published numbers next to the measured ones; empty if no such table was run."""
    tables, room = _by_table(found), _PAPER["tolerances"]
    if not tables.keys() & PUBLISHED.keys():
        return []
    rows: list[tuple[str, float, float, float]] = []
    for table, published in PUBLISHED.items():
        first = {  # by the rule of the published numbers
            family.removesuffix(FIRST): one
            for family, one in tables.get(table, {}).items()
            if family == ORIGINAL or family.endswith(FIRST)
        }
        count = float(len(_masked(first)) or math.nan)
        rows.append((f"{table}, number of combinations", published["variants"], count, 0.0))
        for family, (risk, f1) in published["pairs"].items():
            one = first.get(family)
            measured = (math.nan, math.nan) if one is None else (one.r3, one.over_folds)
            of_f1 = room["noisy_f1" if "N" in family.split("+") else "f1"]
            rows.append((f"{table}, {family}, r3", risk, measured[0], room["risk"]))
            rows.append((f"{table}, {family}, F1", f1, measured[1], of_f1))
        name = f"{table}, Spearman of r3 and F1"
        rows.append((name, published["correlation"], relation(first), room["correlation"]))
    return [Finding(*row, absolute=True) for row in rows]


def _claims(mildest: MeasuredTables, found: MeasuredTables) -> list[Claim]:
    tables = {table: mine for table, mine in _by_table(mildest).items() if ORIGINAL in mine}
    judges = {
        "coding": _coding,
        "noise_and_rounding": _noise_and_rounding,
        "less_risk": _less_risk,
        "no_free_lunch": _no_free_lunch,
        "nobody_is_found": _nobody_is_found,
        "ties": lambda _: _ties(found),
    }
    return judge_claims("tradeoff", judges, tables)


def _coding(tables: dict[str, OfTable]) -> Verdict | None:
    def words(mine: OfTable) -> str:
        coded = mine["T"]
        return f"r3 {coded.r3:.2f}, F1 {mine[ORIGINAL].over_folds:.3f} to {coded.over_folds:.3f}"

    return _on_every_table(
        {t: m for t, m in tables.items() if "T" in m},
        lambda mine: (
            mine["T"].r3 >= 0.95 * mine[ORIGINAL].r3
            and abs(change(mine["T"].over_folds, mine[ORIGINAL].over_folds)) <= ROPE
        ),
        words,
    )


def _noise_and_rounding(tables: dict[str, OfTable]) -> Verdict | None:
    return _on_every_table(
        {t: m for t, m in tables.items() if "N+R" in m},
        lambda mine: mine["N+R"].r3 <= min(one.r3 for one in mine.values()) + 0.05,
        lambda mine: f"{mine['N+R'].r3:.2f} against {min(one.r3 for one in mine.values()):.2f}",
    )


def _less_risk(tables: dict[str, OfTable]) -> Verdict | None:
    return _on_every_table(
        {t: m for t, m in tables.items() if not math.isnan(relation(m))},
        lambda mine: relation(mine) > 0.1,
        lambda mine: f"{relation(mine):.2f}",
    )


def _no_free_lunch(tables: dict[str, OfTable]) -> Verdict | None:
    def free(mine: OfTable) -> Measured | None:
        """A masked table with the lowest risk that predicts as well as the original."""
        lowest, before = min(one.r3 for one in _masked(mine)), mine[ORIGINAL].over_folds
        low = [one for one in _masked(mine) if one.r3 <= lowest + 0.01]
        good = [one for one in low if change(one.over_folds, before) >= -ROPE]
        return max(good, key=lambda one: one.over_folds) if good else None

    def words(mine: OfTable) -> str:
        one = free(mine)
        return "" if one is None else f"{one.family}: r3 {one.r3:.2f}, F1 {one.over_folds:.3f}"

    some = {t: m for t, m in tables.items() if len(m) > 1}
    return _on_every_table(some, lambda mine: free(mine) is None, words)


def _nobody_is_found(tables: dict[str, OfTable]) -> Verdict | None:
    def hidden(mine: OfTable) -> Measured:
        return max((one for one in mine.values() if one.r3 < 0.01), key=lambda one: one.r4)

    return _on_every_table(
        {t: m for t, m in tables.items() if any(one.r3 < 0.01 for one in m.values())},
        lambda mine: hidden(mine).r4 < 0.05,
        lambda mine: f"{hidden(mine).family}: r4 {hidden(mine).r4:.2f}",
    )


def _ties(found: MeasuredTables) -> Verdict:
    """Whether the paper's unstated rule for equal risks matters."""
    pairs = [
        (one, found[table, family.removesuffix(FIRST)])
        for (table, family), one in found.items()
        if family.endswith(FIRST)
        and "+" not in family
        and (table, family.removesuffix(FIRST)) in found
    ]
    if not pairs:
        return None, f"both choices are only run on {', '.join(PUBLISHED)}"
    apart = [
        f"{mild.table}, {mild.family}: F1 {first.over_folds:.3f} by the first, "
        f"{mild.over_folds:.3f} by the mildest"
        for first, mild in pairs
        if abs(first.r3 - mild.r3) < 1e-9 and abs(change(first.over_folds, mild.over_folds)) > ROPE
    ]
    return not apart, "; ".join(apart) or f"in all {len(pairs)} cases measured"


def _on_every_table(
    tables: dict[str, OfTable],
    holds: Callable[[OfTable], bool],
    worded: Callable[[OfTable], str],
) -> Verdict | None:
    if not tables:
        return None
    against = [table for table, mine in tables.items() if not holds(mine)]
    if against:
        exceptions = "; ".join(f"{table} ({worded(tables[table])})" for table in against)
        return False, f"not on {len(against)} of {len(tables)} tables: {exceptions}"
    facts = [(table, worded(mine)) for table, mine in tables.items()]
    evidence = "; ".join(f"{table} {fact}" for table, fact in facts if fact)
    return True, evidence or f"on every table that can decide it: {', '.join(tables)}"


def _notes(found: MeasuredTables, own: bool) -> list[str]:
    measured, notes = {table for table, _ in found}, list(_PAPER["notes"])
    unknown = [name for name in PUBLISHED if name not in measured]
    empty = [one for one in found.values() if one.without_model]
    if measured & PUBLISHED.keys():
        notes.append(_PAPER["note_of_other_code"])
    if unknown and measured and not own:
        notes.append(f"The tables of the published numbers are missing: {', '.join(unknown)}.")
    if empty:
        notes.append(
            f"Suppression leaves no column to learn from in {len(empty)} combinations, so their "
            "F1 is 0."
        )
    return notes


def figures(found: MeasuredTables) -> dict[str, Figure]:
    """Which techniques apply; ranks, differences and verdicts of risk and F1; both together."""
    tables = list(dict.fromkeys(table for table, _ in found))
    families = sorted(
        {family for _, family in found if family != ORIGINAL},
        key=lambda family: (family.count("+"), ["STNRG".index(x) for x in family.split("+")]),
    )
    if not families:
        return {}
    validated = differences(found, families, "validation")
    difference, by_size = "F1: difference (%)", dict[str, list[float]]()
    for family, values in validated.items():
        by_size.setdefault(str(family.count("+") + 1), []).extend(values)
    return {
        "techniques": charts.upset(
            [[family for of, family in found if of == t and len(family) == 1] for t in tables],
            order="GRNTS",
            title="Techniques that change a table",
        ),
        "ranks-risk": _ranks(found, families, tables, "r3", "Risk (r3)"),
        "ranks-f1": _ranks(found, families, tables, "validation", "F1"),
        "differences-risk": charts.boxes(
            differences(found, families, "r3"), ylabel="r3: difference (%)", title="Risk"
        ),
        "differences-f1": charts.boxes(validated, ylabel=difference, title="F1, validation"),
        "verdicts-validation": _verdicts(validated, "validation"),
        "verdicts-oracle": _verdicts(differences(found, families, "oracle"), "oracle"),
        "risk-f1": charts.risk_utility(
            _points(found),
            risk="right links, r3",
            utility="F1, % of the original's",
            title="Risk and F1",
        ),
        "violins-f1": charts.violins(
            by_size, ylabel=difference, title="F1 by the number of techniques", marks=(0.0,)
        ),
    }


def differences(found: MeasuredTables, families: list[str], number: str) -> dict[str, list[float]]:
    """The percentage differences from the original by family, one for each table.

    A table whose original has 0 is left out.
    """
    out: dict[str, list[float]] = {family: [] for family in families}
    for (table, family), one in found.items():
        before = getattr(found.get((table, ORIGINAL)), number, 0.0)
        if family != ORIGINAL and before > 0:
            out[family].append(change(getattr(one, number), before))
    return {family: values for family, values in out.items() if values}


def _ranks(
    found: MeasuredTables, families: list[str], tables: list[str], number: str, what: str
) -> Figure:
    values = np.full((len(families), len(tables)), np.nan)
    for (table, family), one in found.items():
        if family != ORIGINAL:
            values[families.index(family), tables.index(table)] = getattr(one, number)
    ranked = ranks(values, higher_is_better=number != "r3")
    ranked[np.isnan(values)] = np.nan
    named = {family: list(row) for family, row in zip(families, ranked, strict=True)}
    return charts.rank_plot(named, title=f"{what}: ranks of the combinations")


def _points(found: MeasuredTables) -> list[Point]:
    """Risk and F1 of every combination; F1 in percent of the original's, which differs by table."""
    return [
        Point(f"{one.family}, {table}", one.r3, 100 + change(one.validation, before), table)
        for (table, _), one in found.items()
        if (before := getattr(found.get((table, ORIGINAL)), "validation", 0.0)) > 0
    ]


def _verdicts(groups: dict[str, list[float]], setting: str) -> Figure:
    likely = {f: bayes_sign_test(v, rope=ROPE).probabilities for f, v in groups.items()}
    return charts.win_draw_lose(likely, title=f"F1 against the original, {setting}")


STUDY = BuiltIn(
    "tradeoff",
    _PAPER["title"],
    _PAPER["reference"],
    design,
    conclude,
    stages=(with_combinations,),
    elsewhere=OnOtherTables(on_tables, partial(conclude, own=True)),
    made_from=_PAPER["made_from"],
)
