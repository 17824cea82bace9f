"""What the mixed-ml study comes to: the paper's numbers and claims, judged by a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.study._conclusion import Conclusion, Finding
from shoal.study._design import ORIGINAL
from shoal.study._results import Results
from shoal.study.builtin._builtin import paper
from shoal.study.builtin._mixed_ml_claims import (
    ATTACKS,
    F1,
    GENERALIZED,
    KNOWN_OF,
    LINKS,
    LOSS,
    MEMBERSHIP,
    NETWORK,
    RULES,
    SWAPS,
    Value,
    baseline_of,
    claims_of,
    f1_of,
    guessed,
    lost_of,
    mean,
    precision_of,
    readings_of,
    reduction,
    relative_of,
    short,
    value_of,
)
from shoal.study.figures import Figure, Point, against, risk_utility

_PAPER = paper("mixed-ml")
_PUBLISHED, _OTHER_CODE = _PAPER["published"], _PAPER["other_code"]
# In units. The paper's columns, tables and k are not quite those here. About twice as much as a
# mean moves when one of five tables is left out: 0.02 to 0.03, and 0.05 for a reduction.
_OF_SHARES, _OF_REDUCTIONS, _OF_LOSSES = 0.05, 0.10, 0.05


def conclude(results: Results) -> Conclusion:
    """The verdict on results of any extent; what is not there is not judged."""
    readings = readings_of(results)
    findings, claims = [*findings_of(readings), *compared(readings)], claims_of(readings)
    notes = [*notes_of(results), *_PAPER["notes_of_other_code"]]
    return Conclusion(findings, claims, figures_of(readings), notes)


def conclude_elsewhere(results: Results) -> Conclusion:
    """The claims on other tables; the paper's numbers are means over its own."""
    readings = readings_of(results)
    return Conclusion((), claims_of(readings), figures_of(readings), notes_of(results))


def findings_of(readings: Results) -> list[Finding]:
    """The paper's numbers beside those of a run."""
    original, swapped = readings.where(family=ORIGINAL), readings.where(family=SWAPS)
    rows: list[tuple[str, float, float, float]] = []
    for attack, published in _PUBLISHED["on_original"].items():
        name = f"secrets guessed on the original, {short(attack)}"
        rows.append((name, published, _both_rules(original, attack), _OF_SHARES))
    for rule, attack, published in _leaves(_PUBLISHED["reduction"]):
        name = f"fewer secrets guessed, {rule} swapped (gower), {short(attack)}"
        found = reduction(readings, attack, rule, ("gower",))
        rows.append((name, published, found, _OF_REDUCTIONS))
    for family, rule, published in _leaves(_PUBLISHED["f1_loss"]):
        name = f"loss of F1, {rule} swapped ({family})"
        found = mean(swapped, lost_of, family=family, rule=rule, measure=F1)
        rows.append((name, published, found, _OF_LOSSES))
    name = "precision of a guess of membership, swapped (one half is blind)"
    found = mean(swapped, precision_of, measure=MEMBERSHIP)
    rows.append((name, _PUBLISHED["precision"], found, _OF_SHARES))
    return [Finding(*row, absolute=True) for row in rows]


def compared(readings: Results) -> list[Finding]:
    """The numbers of the other code beside those of a run, on the tables that both have."""
    shared = readings.where(table=tuple(_OTHER_CODE["tables"]))
    rows: list[tuple[str, float, float, float]] = []
    for rule, attack, published in _leaves(_OTHER_CODE["reduction"]):
        name = f"fewer secrets guessed, {rule} swapped, {short(attack)}"
        rows.append((name, published, reduction(shared, attack, rule, ("gower",)), _OF_REDUCTIONS))
    ran = set(shared.known("k"))
    for rule, k, published in _leaves(_OTHER_CODE["by_k"]):
        if int(k) not in ran:
            continue
        swapped = shared.where(family="gower", rule=rule, k=int(k))
        measured = {
            "rows linked by distance": mean(swapped, measure=LINKS),
            "relative loss of mutual information": mean(swapped, relative_of, measure=LOSS),
            "loss of F1": mean(swapped, lost_of, measure=F1),
        }
        for (what, found), printed in zip(measured.items(), published, strict=True):
            rows.append((f"{what}, {rule} swapped, k = {k}", printed, found, _OF_SHARES))
    return [Finding(f"other code: {row[0]}", *row[1:], absolute=True) for row in rows]


def _both_rules(readings: Results, attack: str) -> float:
    """The mean over both choices of columns, each with the intruder who knows these."""
    means = [mean(readings, rule=rule, measure=guessed(attack, KNOWN_OF[rule])) for rule in RULES]
    return sum(means) / len(means)


def notes_of(results: Results) -> list[str]:
    """What a reader of the verdict must know, and what is missing from it."""
    notes = list(_PAPER["notes"])
    network = f1_of(NETWORK)
    if any(row.status == "failed" and row.measure.startswith(network) for row in results):
        notes.append("The network could not be trained everywhere; the failures say why.")
    return notes


def _leaves(nested: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for outer, inside in nested.items():
        for inner, value in inside.items():
            yield outer, inner, value


Lines = dict[str, dict[float, Sequence[float]]]

_COLUMNS = {"part": "the columns that identify", "all": "all columns"}


def figures_of(readings: Results) -> dict[str, Figure]:
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
    readings: Results, tables: Sequence[str], value: Value = value_of
) -> dict[float, Sequence[float]]:
    """At each k the mean of each trial."""
    line = {k: _by_trial(readings.where(k=k), tables, value) for k in readings.known("k")}
    return {k: means for k, means in line.items() if means}


def _by_trial(readings: Results, tables: Sequence[str], value: Value = value_of) -> list[float]:
    """The mean of each trial that has come to all of these tables."""
    trials = [readings.where(seed=seed) for seed in readings.known("seed")]
    return [mean(trial, value) for trial in trials if trial.known("table") == sorted(tables)]


def _present(lines: Lines) -> Lines:
    return {name: line for name, line in lines.items() if line}


def _losses(readings: Results) -> Lines:
    some, tables = readings.where(measure=LOSS), readings.known("table")
    return _present(
        {
            f"{family}, {rule}": _line(some.where(family=family, rule=rule), tables, relative_of)
            for family in SWAPS
            for rule in RULES
        }
    )


def _scores(readings: Results) -> Lines:
    some, tables = readings.where(measure=F1), readings.known("table")
    families = (*SWAPS, *GENERALIZED)
    lines = {family: _line(some.where(family=family), tables) for family in families}
    before = _by_trial(some.where(family=ORIGINAL), tables)
    level: dict[float, Sequence[float]] = {k: before for k in some.known("k") if before}
    return _present({ORIGINAL: level, **lines})


def _guesses(readings: Results, known: str) -> Lines:
    """The three attacks, and beside them what blind guessing gets."""
    swapped, tables = readings.where(family="gower"), readings.known("table")
    names = {attack: guessed(attack, known) for attack in ATTACKS}
    lines = {
        short(attack): _line(swapped.where(measure=name), tables) for attack, name in names.items()
    }
    every = tuple(names.values())
    lines["most frequent class"] = _line(swapped.where(measure=every), tables, baseline_of)
    return _present(lines)


def _points(readings: Results, risk: str) -> list[Point]:
    """Every variant by what is guessed of secrets and by F1, both as means over the tables."""
    points, tables = [], readings.known("table")
    for family in (ORIGINAL, *SWAPS, *GENERALIZED):
        mine = readings.where(family=family)
        for k in mine.known("k") or [None]:
            low, high = (mine.where(k=k, measure=each) for each in (risk, F1))
            if tables and low.known("table") == high.known("table") == tables:
                label = family if k is None else f"{family}, k = {k}"
                points.append(Point(label, mean(low), mean(high), family))
    return points
