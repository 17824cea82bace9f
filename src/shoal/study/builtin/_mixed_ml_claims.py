"""The claims about swapping mixed data, in words, each judged by a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.study._conclusion import Claim
from shoal.study._design import ORIGINAL
from shoal.study._results import Results, Row
from shoal.study._statistics import signed_rank

#: Which columns are quasi-identifiers, and are swapped.
RULES = ("part", "all")
ATTACKS = ("distance", "model", "probabilistic")
#: What a partly and a fully informed intruder know.
KNOWLEDGE = ("part", "everything")
#: What is known to the intruder whom the paper holds against each choice of columns.
KNOWN_OF = {"part": "part", "all": "everything"}
SWAPS = ("gower", "ahmad-dey")
GENERALIZED = ("k-anonymity", "l-diversity", "t-closeness")
LEARNERS = (
    "logistic-regression",
    "decision-tree",
    "random-forest",
    "svm",
    "multi-layer-perceptron",
)
#: The budgets ε of the network.
BUDGETS = (3.0, 1.0, 0.5, 0.25)
NETWORK = "dp-sgd"
LOSS, LINKS, MEMBERSHIP = "loss of mutual information", "row links", "membership"


def parted(name: str) -> tuple[str, str]:
    """A table and the choice of columns; all, where a table of somebody's own says nothing.

    Examples
    --------
    >>> parted("cmc, part"), parted("patients, 2020")
    (('cmc', 'part'), ('patients, 2020', 'all'))
    """
    table, _, rule = name.rpartition(", ")
    return (table, rule) if rule in RULES else (name, "all")


def guessed(attack: str, known: str) -> str:
    """The name of an attack on the secret by an intruder who knows so much."""
    return f"secrets guessed by {attack}, {known} known"


def f1_of(learner: str, epsilon: float | None = None) -> str:
    """The name of a learner's score."""
    return f"F1 of {learner}" + ("" if epsilon is None else f", ε = {epsilon:g}")


def short(attack: str) -> str:
    """What an attack is called where people read."""
    return {"model": "random forest", "probabilistic": "probabilistic linkage"}.get(attack, attack)


#: The scores of the learners that are trained on masked records.
F1 = tuple(f1_of(name) for name in LEARNERS)


Value = Callable[[Row], float]


def readings_of(results: Results) -> Results:
    """The results that have a value, the choice of columns apart from the table."""
    rows = []
    for row in results.done:
        table, rule = parted(row.table)
        rows.append(replace(row, table=table, parameters={**row.parameters, "rule": rule}))
    return Results(tuple(rows))


def value_of(row: Row) -> float:
    """What was measured."""
    return row.value


def baseline_of(row: Row) -> float:
    """What it is compared with."""
    return _number(row.facts.get("baseline"))


def lift_of(row: Row) -> float:
    """The part of what a blind guess does not get that is guessed."""
    blind = baseline_of(row)
    return (row.value - blind) / (1 - blind) if blind < 1 else 0.0


def lost_of(row: Row) -> float:
    """How much worse than the original."""
    return baseline_of(row) - row.value


def relative_of(row: Row) -> float:
    """The loss over what there is to lose."""
    return _number((row.facts.get("details") or {}).get("relative"))


def precision_of(row: Row) -> float:
    """The share of members among those who are taken for members."""
    return _number((row.facts.get("details") or {}).get("precision"))


def _number(found: Any) -> float:
    return math.nan if found is None else float(found)


def mean(readings: Results, value: Value = value_of, **wanted: Any) -> float:
    """The mean over tables of the mean on each: every table counts alike."""
    tables: dict[str, list[float]] = {}
    for row in readings.where(**wanted):
        tables.setdefault(row.table, []).append(value(row))
    return _mean(_mean(values) for values in tables.values())


def means_where_all_are(readings: Results, *choices: Mapping[str, Any]) -> list[float]:
    """The mean of each choice over the tables that every one of them has results of.

    A study that was stopped has some variants on fewer tables than others.
    """
    chosen = [readings.where(**choice) for choice in choices]
    shared = set.intersection(*(set(some.known("table")) for some in chosen))
    return [mean(some, table=tuple(shared)) for some in chosen]


def reduction(readings: Results, attack: str, rule: str, families: tuple[str, ...]) -> float:
    """The mean over tables of 1 - AD(masked) / AD(original)."""
    asked = readings.where(rule=rule, measure=guessed(attack, KNOWN_OF[rule]))
    found = []
    for table in asked.known("table"):
        before = mean(asked, table=table, family=ORIGINAL)
        after = mean(asked, table=table, family=families)
        found.append(1 - after / before if before > 0 else math.nan)
    return _mean(found)


def _mean(values: Iterable[float]) -> float:
    """The mean of the numbers among some; NaN without any."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


_LEVEL = 0.05  # of a test
_NEAR_BLIND = 0.1  # the part of what a blind guess does not get that counts as nothing
_HARDLY_MORE = 0.05  # the part of all secrets by which members may be guessed better than others
_NEAR_HALF = 0.025  # how far above one half a precision may be and still be blind
#: Under each choice of columns the attacks by the intruder who knows these.
_ATTACKS_OF = {
    rule: tuple(guessed(attack, known) for attack in ATTACKS) for rule, known in KNOWN_OF.items()
}


def claims_of(readings: Results) -> list[Claim]:
    """What the paper says, and what is said of it here, held against a run."""
    return [
        _less_is_guessed(readings),
        _down_to_blind_guesses(readings),
        _no_more_than_of_others(readings),
        _columns_in_place(readings),
        _links(readings),
        _membership(readings),
        _costs_grow(readings),
        _better_than_generalizing(readings),
        _better_than_noise(readings),
        _same_dissimilarities(readings),
    ]


def _less_is_guessed(readings: Results) -> Claim:
    text = "Swapping leaves fewer secrets to be guessed, by every attack."
    found = {
        (family, rule, attack): reduction(readings, attack, rule, (family,))
        for family in SWAPS
        for rule in RULES
        for attack in ATTACKS
    }
    known = [value for value in found.values() if math.isfinite(value)]
    if not known:
        return _unknown(text)
    evidence = f"{min(known):.0%} to {max(known):.0%} fewer, by attack, columns and dissimilarity"
    return Claim(text, min(known) > 0, evidence)


def _down_to_blind_guesses(readings: Results) -> Claim:
    text = "From k = 50 on, hardly more is guessed after a swap than the most frequent class."
    late = [k for k in readings.known("k") if k >= 50]
    found = {
        (rule, attack): readings.where(
            family=SWAPS, k=tuple(late), rule=rule, measure=guessed(attack, KNOWN_OF[rule])
        )
        for rule in RULES
        for attack in ATTACKS
    }
    lifts = {place: mean(some, lift_of) for place, some in found.items() if len(some)}
    if not lifts:
        return _unknown(text)
    blind = mean(found["part", "distance"], baseline_of)
    told = ", ".join(f"{rule} by {short(attack)} {v:.2f}" for (rule, attack), v in lifts.items())
    return Claim(
        text,
        max(lifts.values()) < _NEAR_BLIND,
        f"of what the most frequent class (right for {blind:.0%}) does not get, is guessed: {told}",
    )


def _no_more_than_of_others(readings: Results) -> Claim:
    text = (
        "From k = 50 on, a random forest guesses hardly more secrets of those in the table than of "
        "people who never were."
    )
    late = tuple(k for k in readings.known("k") if k >= 50)
    members, others = means_where_all_are(
        readings.where(family=SWAPS, k=late, rule="all"),
        {"measure": guessed("model", KNOWN_OF["all"])},
        {"measure": f1_of("random-forest")},
    )
    if not (math.isfinite(members) and math.isfinite(others)):
        return _unknown(text)
    return Claim(
        text,
        members - others < _HARDLY_MORE,
        f"all columns swapped and known: {members:.3f} against {others:.3f} of the rows held out",
    )


def _columns_in_place(readings: Results) -> Claim:
    text = "To swap the columns that identify protects against who knows the others too."
    late = max(readings.known("k"), default=None)
    some = readings.where(family=SWAPS, rule="part", k=late)
    pairs = {
        attack: [mean(some, lift_of, measure=guessed(attack, known)) for known in KNOWLEDGE]
        for attack in ATTACKS
    }
    pairs = {attack: both for attack, both in pairs.items() if all(map(math.isfinite, both))}
    if not pairs:
        return _unknown(text)
    told = ", ".join(
        f"{short(attack)} {part:.2f} and {everything:.2f}"
        for attack, (part, everything) in pairs.items()
    )
    return Claim(
        text,
        all(everything - part < _NEAR_BLIND for part, everything in pairs.values()),
        f"lift over blind guesses at k = {late} by who knows the swapped columns and by who knows "
        f"all: {told}",
    )


def _links(readings: Results) -> Claim:
    text = "Who knows the swapped columns links a row with a chance of about 1/k, or less."
    rates = {
        (rule, k): mean(readings, family=SWAPS, rule=rule, k=k, measure=LINKS)
        for rule in RULES
        for k in readings.known("k")
    }
    rates = {place: rate for place, rate in rates.items() if math.isfinite(rate)}
    if not rates:
        return _unknown(text)
    told = ", ".join(f"{rate:.3f} at k = {k} ({rule})" for (rule, k), rate in rates.items())
    return Claim(text, all(rate <= 1.1 / k for (_, k), rate in rates.items()), told)


def _membership(readings: Results) -> Claim:
    text = "Swapping hides who was in the table: guesses of membership are no better than blind."
    some = readings.where(measure=MEMBERSHIP)
    means = [mean(some, precision_of, family=family) for family in (ORIGINAL, SWAPS)]
    areas = [mean(some, family=family) for family in (ORIGINAL, SWAPS)]
    if not all(map(math.isfinite, (*means, *areas))):
        return _unknown(text)
    return Claim(
        text,
        means[1] <= 0.5 + _NEAR_HALF,
        f"precision {means[1]:.2f} (original {means[0]:.2f}), area under the ROC curve "
        f"{areas[1]:.2f} (original {areas[0]:.2f}); one half is the base rate by construction",
    )


def _costs_grow(readings: Results) -> Claim:
    text = "The loss of F1 and of mutual information grows with k and with the columns swapped."
    swapped = readings.where(family=SWAPS)
    ks, against, cases = readings.known("k"), [], 0
    for name, measures, value in (("F1", F1, lost_of), ("information", (LOSS,), relative_of)):
        for family in SWAPS:
            mine = swapped.where(family=family, measure=measures)
            at = {(r, k): mean(mine, value, rule=r, k=k) for r in RULES for k in ks}
            steps = [((r, low), (r, high)) for r in RULES for low, high in itertools.pairwise(ks)]
            steps += [(("part", k), ("all", k)) for k in ks]
            for less, more in steps:
                if math.isfinite(at[less]) and math.isfinite(at[more]):
                    cases += 1
                    if at[more] <= at[less]:
                        against.append(
                            f"{name}, {family}, {_place(less)} {at[less]:.3f} to {_place(more)} "
                            f"{at[more]:.3f}"
                        )
    return _of_cases(text, cases, against)


def _better_than_generalizing(readings: Results) -> Claim:
    text = "Models learn more from swapped records than from Mondrian's, at the same k."
    scores = readings.where(measure=F1)
    cases, against = 0, []
    for other, rule, k in itertools.product(GENERALIZED, RULES, readings.known("k")):
        swapped, theirs = means_where_all_are(
            scores.where(rule=rule, k=k), {"family": "gower"}, {"family": other}
        )
        if math.isfinite(swapped) and math.isfinite(theirs):
            cases += 1
            if swapped <= theirs:
                against.append(f"{other}, {rule}, k = {k}: {swapped:.3f} against {theirs:.3f}")
    return _of_cases(text, cases, against)


def _better_than_noise(readings: Results) -> Claim:
    text = "Models learn more from swapped records than a network learns under DP-SGD."
    cases, against = 0, []
    for epsilon, rule, k in itertools.product(BUDGETS, RULES, readings.known("k")):
        swapped, noisy = means_where_all_are(
            readings.where(rule=rule),
            {"family": "gower", "k": k, "measure": F1},
            {"family": ORIGINAL, "measure": f1_of(NETWORK, epsilon)},
        )
        if math.isfinite(swapped) and math.isfinite(noisy):
            cases += 1
            if swapped <= noisy:
                against.append(
                    f"ε = {epsilon:g} against {rule} swapped with k = {k}: {noisy:.3f} against "
                    f"{swapped:.3f}"
                )
    if not cases:
        return Claim(text, None, 'no network was trained; install it with: pip install "shoal[dp]"')
    return _of_cases(text, cases, against)


def _same_dissimilarities(readings: Results) -> Claim:
    text = "No difference between Gower and Ahmad-Dey is to be seen, for models or in secrets."
    told, seen = [], []
    for name, measures in (("F1", dict.fromkeys(RULES, F1)), ("secrets", _ATTACKS_OF)):
        gaps = [
            _gap(readings.where(table=table, rule=rule, k=k, measure=measures[rule]))
            for table, rule, k in itertools.product(
                readings.known("table"), RULES, readings.known("k")
            )
        ]
        gaps = [gap for gap in gaps if math.isfinite(gap)]
        if not gaps:
            return _unknown(text)
        p_value = signed_rank(gaps)[1]
        seen.append(p_value < _LEVEL)
        told.append(f"{name} {sum(gaps) / len(gaps):+.3f} (signed-rank test, p = {p_value:.2g})")
    return Claim(text, not any(seen), f"Ahmad-Dey less Gower: {', '.join(told)}")


def _gap(readings: Results) -> float:
    """How much higher the mean of the second dissimilarity is; NaN where one is missing."""
    gower, other = (mean(readings, family=family) for family in SWAPS)
    return other - gower


def _of_cases(text: str, cases: int, against: Sequence[str]) -> Claim:
    if not cases:
        return _unknown(text)
    if not against:
        return Claim(text, True, f"in all comparisons ({cases})")
    shown = "; ".join(against[:4]) + ("; …" if len(against) > 4 else "")
    return Claim(text, False, f"not in {len(against)} of {cases} comparisons: {shown}")


def _unknown(text: str) -> Claim:
    return Claim(text, None, "not measured yet")


def _place(at: tuple[str, int]) -> str:
    return f"{at[0]} at k = {at[1]}"
