"""What the trade-off study comes to: numbers, claims, and where the claims do not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import ORIGINAL
from shoal.study._results import Results
from shoal.study._statistics import bayes_sign_test, ranks, spearman
from shoal.study.builtin._builtin import paper
from shoal.study.figures import (
    Figure,
    Point,
    boxes,
    rank_plot,
    risk_utility,
    upset,
    violins,
    win_draw_lose,
)

#: Ends the name of a family whose parameters are the first of equally good ones.
FIRST: Final = " (first of ties)"
#: A difference of at most so many percent is none: the paper's region of practical equivalence.
ROPE: Final = 1.0


@dataclass(frozen=True)
class Seen:
    """One masked table: its risk with and without the threshold, and its predictions."""

    table: str
    family: str
    r3: float
    r4: float
    validation: float
    oracle: float
    over_folds: float
    without_model: bool

    @property
    def is_single(self) -> bool:
        """Whether it is one technique alone."""
        return "+" not in self.family


def seen(results: Results) -> dict[tuple[str, str], Seen]:
    """All that was measured in full, by table and family: the original, and the combinations."""
    done = results.done
    risks = done.where(measure="r3").by("table", "variant")
    best = done.where(measure="r4").by("table", "variant")
    out = {}
    for row in done.where(measure="F1"):
        place = row.table, row.variant
        if place in risks and place in best:
            details = row.facts["details"]
            out[row.table, row.family] = Seen(
                row.table,
                row.family,
                float(risks[place].mean()),
                float(best[place].mean()),
                row.value,
                float(details["oracle"]),
                float(details["mean_over_folds"]),
                bool(details["without_model"]),
            )
    return out


def change(after: float, before: float) -> float:
    """The percentage difference; NaN where there is nothing to compare with."""
    return 100 * (after - before) / before if before else math.nan


def relation(masked: Sequence[Seen]) -> float:
    """Spearman's correlation of the risk and the mean F1 of masked tables."""
    return spearman([one.r3 for one in masked], [one.over_folds for one in masked])[0]


#: Of the same design, run once by other code; the paper prints no table's.
PUBLISHED: Final = paper("tradeoff")["published"]
# Their risk was of 800 persons at most, whose standard error is up to 0.018.
_RISK_ROOM = 0.04
# Other folds move a mean F1 by 0.01 to 0.02; what is left under strong noise hangs on the draw.
_F1_ROOM, _NOISY_ROOM = 0.03, 0.1
# The standard error of a rank correlation of 15 pairs is about 0.25.
_SPEARMAN_ROOM = 0.25


def conclude(results: Results) -> Conclusion:
    """Hold the results against what is known of the design, and against the paper's claims."""
    found = seen(results)
    mildest = {place: one for place, one in found.items() if not one.family.endswith(FIRST)}
    return Conclusion(_findings(found), _claims(mildest, found), figures(mildest), _notes(mildest))


def conclude_elsewhere(results: Results) -> Conclusion:
    """The claims on other tables; one that is called as a published one is held against it."""
    found = conclude(results)
    measured = [finding for finding in found.findings if not math.isnan(finding.measured)]
    return replace(found, findings=measured, notes=_notes(seen(results), own=True))


def _findings(found: dict[tuple[str, str], Seen]) -> list[Finding]:
    """The published numbers beside what was measured; none where no such table was run."""
    if not any(table in PUBLISHED for table, _ in found):
        return []
    rows: list[tuple[str, float, float, float]] = []
    for table, published in PUBLISHED.items():
        first = _by_first_rule(found, table)
        masked = [one for family, one in first.items() if family != ORIGINAL]
        count = float(len(masked)) if masked else math.nan
        rows.append((f"{table}, number of combinations", published["variants"], count, 0.0))
        for family, (risk, f1) in published["pairs"].items():
            one = first.get(family)
            room = _NOISY_ROOM if "N" in family.split("+") else _F1_ROOM
            measured = (math.nan, math.nan) if one is None else (one.r3, one.over_folds)
            rows.append((f"{table}, {family}, r3", risk, measured[0], _RISK_ROOM))
            rows.append((f"{table}, {family}, F1", f1, measured[1], room))
        related = relation(masked) if len(masked) >= 3 else math.nan
        name = f"{table}, Spearman of r3 and F1"
        rows.append((name, published["correlation"], related, _SPEARMAN_ROOM))
    return [Finding(*row, absolute=True) for row in rows]


def _by_first_rule(found: dict[tuple[str, str], Seen], table: str) -> dict[str, Seen]:
    """The original and the combinations of a table, by the rule of the published numbers."""
    mine = {family: one for (of, family), one in found.items() if of == table}
    return {
        family.removesuffix(FIRST): one
        for family, one in mine.items()
        if family == ORIGINAL or family.endswith(FIRST)
    }


def _claims(
    mildest: dict[tuple[str, str], Seen], found: dict[tuple[str, str], Seen]
) -> list[Claim]:
    tables = {
        table: {family: one for (of, family), one in mildest.items() if of == table}
        for table, family in mildest
        if family == ORIGINAL
    }
    masked = {
        table: [one for one in mine.values() if one.family != ORIGINAL]
        for table, mine in tables.items()
    }
    return [
        _claim(
            "Top and bottom coding keeps the predictions, and the risk.",
            {t: m for t, m in tables.items() if "T" in m},
            lambda mine: (
                mine["T"].r3 >= 0.95 * mine[ORIGINAL].r3
                and abs(change(mine["T"].over_folds, mine[ORIGINAL].over_folds)) <= ROPE
            ),
            lambda mine: (
                f"r3 {mine['T'].r3:.2f}, F1 {mine[ORIGINAL].over_folds:.3f} to "
                f"{mine['T'].over_folds:.3f}"
            ),
        ),
        _claim(
            "Noise with rounding has the lowest risk, or nearly.",
            {t: m for t, m in tables.items() if "N+R" in m},
            lambda mine: mine["N+R"].r3 <= min(one.r3 for one in mine.values()) + 0.05,
            lambda mine: f"{mine['N+R'].r3:.2f} against {min(one.r3 for one in mine.values()):.2f}",
        ),
        _claim(
            "What has less risk predicts less well: the rank correlation is above 0.1.",
            {t: {one.family: one for one in m} for t, m in masked.items() if len(m) >= 3},
            lambda mine: relation([*mine.values()]) > 0.1,
            lambda mine: f"{relation([*mine.values()]):.2f}",
        ),
        _claim(
            "The least risk is not to be had without a loss of performance.",
            {t: m for t, m in tables.items() if len(m) > 1},
            lambda mine: _free(mine) is None,
            lambda mine: _worded_free(_free(mine)),
        ),
        _claim(
            "Nobody is found where the 70 % rule sees no risk (r3 below 1 %).",
            {t: m for t, m in tables.items() if any(one.r3 < 0.01 for one in m.values())},
            lambda mine: _hidden(mine).r4 < 0.05,
            lambda mine: f"{_hidden(mine).family}: r4 {_hidden(mine).r4:.2f}",
        ),
        _tie_claim(found),
    ]


def _free(mine: dict[str, Seen]) -> Seen | None:
    """A masked table of the lowest risk that predicts as well as the original, within the rope."""
    masked = [one for one in mine.values() if one.family != ORIGINAL]
    lowest = min(one.r3 for one in masked)
    good = [
        one
        for one in masked
        if one.r3 <= lowest + 0.01 and change(one.over_folds, mine[ORIGINAL].over_folds) >= -ROPE
    ]
    return max(good, key=lambda one: one.over_folds) if good else None


def _worded_free(one: Seen | None) -> str:
    return "" if one is None else f"{one.family}: r3 {one.r3:.2f}, F1 {one.over_folds:.3f}"


def _hidden(mine: dict[str, Seen]) -> Seen:
    return max((one for one in mine.values() if one.r3 < 0.01), key=lambda one: one.r4)


def _tie_claim(found: dict[tuple[str, str], Seen]) -> Claim:
    """Whether the paper's unstated rule for equal risks matters."""
    text = "Among parameters of equal risk it does not matter which is taken."
    pairs = [
        (one, found[table, family.removesuffix(FIRST)])
        for (table, family), one in found.items()
        if family.endswith(FIRST) and one.is_single and (table, family.removesuffix(FIRST)) in found
    ]
    apart = [
        f"{mild.table}, {mild.family}: F1 {first.over_folds:.3f} by the first, "
        f"{mild.over_folds:.3f} by the mildest"
        for first, mild in pairs
        if abs(first.r3 - mild.r3) < 1e-9 and abs(change(first.over_folds, mild.over_folds)) > ROPE
    ]
    if not pairs:
        return Claim(text, None, f"both choices are run on {', '.join(PUBLISHED)} alone")
    return Claim(text, not apart, "; ".join(apart) or f"in all {len(pairs)} cases measured")


def _claim(
    text: str,
    tables: dict[str, dict[str, Seen]],
    holds: Callable[[dict[str, Seen]], bool],
    worded: Callable[[dict[str, Seen]], str],
) -> Claim:
    if not tables:
        return Claim(text, None, "no table was measured that can judge it")
    against = [table for table, mine in tables.items() if not holds(mine)]
    if not against:
        facts = [(table, worded(mine)) for table, mine in tables.items()]
        told = "; ".join(f"{table} {fact}" for table, fact in facts if fact)
        return Claim(text, True, told or f"on every table that can judge it: {', '.join(tables)}")
    told = "; ".join(f"{table} ({worded(tables[table])})" for table in against)
    return Claim(text, False, f"on {len(against)} of {len(tables)} tables not: {told}")


def _notes(found: dict[tuple[str, str], Seen], *, own: bool = False) -> list[str]:
    measured = {table for table, _ in found}
    empty = {(one.family, one.table) for one in found.values() if one.without_model}
    empty = {place for place in empty if not place[0].endswith(FIRST)}
    unknown = [name for name in PUBLISHED if name not in measured]
    notes = [
        "S suppression of columns, T top and bottom coding, N noise, R rounding, G recoding; "
        "every column but the class is a quasi-identifier, unless a table says which are.",
        "r3 is the share of right links whose score reaches 70 % of the columns, r4 the same "
        "without that rule; columns are compared for equality.",
        "Parameters are those of the lowest r3 alone, of equal ones the mildest.",
        "The test rows are masked too, as in the paper, which flatters.",
        "The region of practical equivalence is 1 %; one draw of noise for each table.",
    ]
    if measured & PUBLISHED.keys():
        notes.append(
            "The paper prints no numbers of single tables; the published ones are of the same "
            "design run once by other code, which took the first of equal parameters, and are held "
            "against runs by that rule."
        )
    if unknown and measured and not own:
        notes.append(f"No table is at hand for the published numbers of {', '.join(unknown)}.")
    if empty:
        notes.append(
            f"No column is left to learn from, so F1 is 0, in {len(empty)} combinations with "
            "suppression."
        )
    return notes


Found = dict[tuple[str, str], Seen]
Number = Callable[[Seen], float]


def figures(found: Found) -> dict[str, Figure]:
    """Which techniques apply; ranks, differences and verdicts of risk and F1; both together."""
    tables = list(dict.fromkeys(table for table, _ in found))
    families = sorted(
        {family for _, family in found if family != ORIGINAL},
        key=lambda family: (family.count("+"), ["STNRG".index(x) for x in family.split("+")]),
    )
    if not families:
        return {}
    validated = differences(found, families, lambda one: one.validation)
    oracle = differences(found, families, lambda one: one.oracle)
    risks = differences(found, families, lambda one: one.r3)
    return {
        "techniques": upset(
            [[family for of, family in found if of == t and len(family) == 1] for t in tables],
            order="GRNTS",
            title="Techniques that change a table",
        ),
        "ranks-risk": _ranks(found, families, tables, lambda s: s.r3, "Risk (r3)", higher=False),
        "ranks-f1": _ranks(found, families, tables, lambda s: s.validation, "F1", higher=True),
        "differences-risk": boxes(risks, ylabel="r3: difference (%)", title="Risk"),
        "differences-f1": boxes(validated, ylabel="F1: difference (%)", title="F1, validation"),
        "verdicts-validation": _verdicts(validated, "F1 against the original, validation"),
        "verdicts-oracle": _verdicts(oracle, "F1 against the original, oracle"),
        "risk-f1": risk_utility(
            _points(found),
            risk="right links, r3",
            utility="F1, % of the original's",
            title="Risk and F1",
        ),
        "violins-f1": violins(
            _by_size(validated),
            ylabel="F1: difference (%)",
            title="F1 by the number of techniques",
            marks=(0.0,),
        ),
    }


def differences(found: Found, families: list[str], number: Number) -> dict[str, list[float]]:
    """For each family its percentage differences to the original, one for each table.

    Where the original has 0 there is none.
    """
    out: dict[str, list[float]] = {family: [] for family in families}
    for (table, family), one in found.items():
        original = found.get((table, ORIGINAL))
        if family != ORIGINAL and original is not None and number(original) > 0:
            out[family].append(change(number(one), number(original)))
    return {family: values for family, values in out.items() if values}


def _ranks(
    found: Found, families: list[str], tables: list[str], number: Number, what: str, *, higher: bool
) -> Figure:
    values = np.full((len(families), len(tables)), np.nan)
    for (table, family), one in found.items():
        if family != ORIGINAL:
            values[families.index(family), tables.index(table)] = number(one)
    ranked = np.where(np.isnan(values), np.nan, ranks(values, higher_is_better=higher))
    named = {family: list(row) for family, row in zip(families, ranked, strict=True)}
    return rank_plot(named, title=f"{what}: ranks of the combinations")


def _points(found: Found) -> list[Point]:
    """Risk and F1 of every combination; F1 beside the original's, which differs by table."""
    return [
        Point(
            f"{one.family}, {table}",
            one.r3,
            100 + change(one.validation, found[table, ORIGINAL].validation),
            table,
        )
        for (table, _), one in found.items()
        if (table, ORIGINAL) in found and found[table, ORIGINAL].validation > 0
    ]


def _verdicts(groups: dict[str, list[float]], title: str) -> Figure:
    return win_draw_lose(
        {
            family: bayes_sign_test(values, rope=ROPE).probabilities
            for family, values in groups.items()
        },
        title=title,
    )


def _by_size(groups: dict[str, list[float]]) -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    for family, values in groups.items():
        out.setdefault(str(family.count("+") + 1), []).extend(values)
    return out
