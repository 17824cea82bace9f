"""The figures of the trade-off study: the kinds of the paper's Figures 3 to 9."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.study._design import ORIGINAL
from shoal.study._statistics import bayes_sign_test, ranks
from shoal.study.builtin._tradeoff_seen import ROPE, Seen, change
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
