"""The figures of the mixed-ml study: everything against k, and risk against utility."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.study._design import ORIGINAL
from shoal.study.builtin._mixed_ml_readings import (
    ATTACKS,
    F1,
    GENERALIZED,
    KNOWN_OF,
    LOSS,
    RULES,
    SWAPS,
    Readings,
    Value,
    baseline_of,
    guessed,
    relative_of,
    short,
    value_of,
)
from shoal.study.figures import Figure, Point, against, risk_utility

Lines = dict[str, dict[float, Sequence[float]]]

_COLUMNS = {"part": "the columns that identify", "all": "all columns"}


def figures_of(readings: Readings) -> dict[str, Figure]:
    """Every figure that there are results for.

    A mean over some of the tables is not shown beside one over all: what a stopped study has not
    come to on every table is left out.
    """
    found: dict[str, Figure] = {}
    if lines := _losses(readings):
        found["information-against-k"] = against(
            lines,
            xlabel="k",
            ylabel="share of mutual information lost",
            title="Mutual information against k",
        )
    for rule in RULES:
        mine = readings.where(rule=rule)
        if lines := _scores(mine):
            found[f"f1-against-k-{rule}"] = against(
                lines,
                xlabel="k",
                ylabel="F1, mean over tables and learners",
                title=f"F1 against k: {_COLUMNS[rule]} are masked",
            )
        if lines := _guesses(mine, KNOWN_OF[rule]):
            found[f"disclosure-against-k-{rule}"] = against(
                lines,
                xlabel="k",
                ylabel="share of secrets guessed",
                title=f"Attribute disclosure against k: {_COLUMNS[rule]} are swapped (Gower)",
            )
        if points := _points(mine, guessed("model", KNOWN_OF[rule])):
            found[f"risk-utility-{rule}"] = risk_utility(
                points,
                risk="share of secrets guessed by a random forest",
                utility="F1",
                title=f"Risk and utility: {_COLUMNS[rule]} are masked",
            )
    return found


def _line(
    readings: Readings, tables: Sequence[str], value: Value = value_of
) -> dict[float, Sequence[float]]:
    """At each k the mean of each trial."""
    line = {k: readings.where(k=k).by_trial(tables, value) for k in readings.known("k")}
    return {k: means for k, means in line.items() if means}


def _present(lines: Lines) -> Lines:
    return {name: line for name, line in lines.items() if line}


def _losses(readings: Readings) -> Lines:
    some, tables = readings.where(measure=LOSS), readings.known("table")
    return _present(
        {
            f"{family}, {rule}": _line(some.where(family=family, rule=rule), tables, relative_of)
            for family in SWAPS
            for rule in RULES
        }
    )


def _scores(readings: Readings) -> Lines:
    some, tables = readings.where(measure=F1), readings.known("table")
    families = (*SWAPS, *GENERALIZED)
    lines = {family: _line(some.where(family=family), tables) for family in families}
    before = some.where(family=ORIGINAL).by_trial(tables)
    level: dict[float, Sequence[float]] = {k: before for k in some.known("k") if before}
    return _present({ORIGINAL: level, **lines})


def _guesses(readings: Readings, known: str) -> Lines:
    """The three attacks, and beside them what blind guessing gets."""
    swapped, tables = readings.where(family="gower"), readings.known("table")
    names = {attack: guessed(attack, known) for attack in ATTACKS}
    lines = {
        short(attack): _line(swapped.where(measure=name), tables) for attack, name in names.items()
    }
    every = tuple(names.values())
    lines["most frequent class"] = _line(swapped.where(measure=every), tables, baseline_of)
    return _present(lines)


def _points(readings: Readings, risk: str) -> list[Point]:
    """Every variant by what is guessed of secrets and by F1, both as means over the tables."""
    points, tables = [], readings.known("table")
    for family in (ORIGINAL, *SWAPS, *GENERALIZED):
        mine = readings.where(family=family)
        for k in mine.known("k") or [None]:
            low, high = (mine.where(k=k, measure=each) for each in (risk, F1))
            if tables and low.known("table") == high.known("table") == tables:
                label = family if k is None else f"{family}, k = {k}"
                points.append(Point(label, low.mean(), high.mean(), family))
    return points
