"""The claims about swapping mixed data, in words, each judged by a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from shoal.study._conclusion import Claim
from shoal.study._design import ORIGINAL
from shoal.study._statistics import signed_rank
from shoal.study.builtin._mixed_ml_readings import (
    ATTACKS,
    BUDGETS,
    F1,
    GENERALIZED,
    KNOWLEDGE,
    KNOWN_OF,
    LINKS,
    LOSS,
    MEMBERSHIP,
    NETWORK,
    RULES,
    SWAPS,
    Readings,
    baseline_of,
    f1_of,
    guessed,
    lift_of,
    lost_of,
    precision_of,
    relative_of,
    short,
)

_LEVEL = 0.05  # of a test
_NEAR_BLIND = 0.1  # the part of what a blind guess does not get that counts as nothing
_HARDLY_MORE = 0.05  # the part of all secrets by which members may be guessed better than others
_NEAR_HALF = 0.025  # how far above one half a precision may be and still be blind
#: Under each choice of columns the attacks by the intruder who knows these.
_ATTACKS_OF = {
    rule: tuple(guessed(attack, known) for attack in ATTACKS) for rule, known in KNOWN_OF.items()
}


def claims_of(readings: Readings) -> list[Claim]:
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


def _less_is_guessed(readings: Readings) -> Claim:
    text = "Swapping leaves fewer secrets to be guessed, by every attack."
    found = {
        (family, rule, attack): readings.reduction(attack, rule, (family,))
        for family in SWAPS
        for rule in RULES
        for attack in ATTACKS
    }
    known = [value for value in found.values() if math.isfinite(value)]
    if not known:
        return _unknown(text)
    evidence = f"{min(known):.0%} to {max(known):.0%} fewer, by attack, columns and dissimilarity"
    return Claim(text, min(known) > 0, evidence)


def _down_to_blind_guesses(readings: Readings) -> Claim:
    text = "From k = 50 on, hardly more is guessed after a swap than the most frequent class."
    late = [k for k in readings.known("k") if k >= 50]
    found = {
        (rule, attack): readings.where(
            family=SWAPS, k=tuple(late), rule=rule, measure=guessed(attack, KNOWN_OF[rule])
        )
        for rule in RULES
        for attack in ATTACKS
    }
    lifts = {place: some.mean(lift_of) for place, some in found.items() if len(some)}
    if not lifts:
        return _unknown(text)
    blind = found["part", "distance"].mean(baseline_of)
    told = ", ".join(f"{rule} by {short(attack)} {v:.2f}" for (rule, attack), v in lifts.items())
    return Claim(
        text,
        max(lifts.values()) < _NEAR_BLIND,
        f"of what the most frequent class (right for {blind:.0%}) does not get, is guessed: {told}",
    )


def _no_more_than_of_others(readings: Readings) -> Claim:
    text = (
        "From k = 50 on, a random forest guesses hardly more secrets of those in the table than of "
        "people who never were."
    )
    late = tuple(k for k in readings.known("k") if k >= 50)
    members, others = readings.where(family=SWAPS, k=late, rule="all").means_where_all_are(
        {"measure": guessed("model", KNOWN_OF["all"])}, {"measure": f1_of("random-forest")}
    )
    if not (math.isfinite(members) and math.isfinite(others)):
        return _unknown(text)
    return Claim(
        text,
        members - others < _HARDLY_MORE,
        f"all columns swapped and known: {members:.3f} against {others:.3f} of the rows held out",
    )


def _columns_in_place(readings: Readings) -> Claim:
    text = "To swap the columns that identify protects against who knows the others too."
    late = max(readings.known("k"), default=None)
    some = readings.where(family=SWAPS, rule="part", k=late)
    pairs = {
        attack: [some.where(measure=guessed(attack, known)).mean(lift_of) for known in KNOWLEDGE]
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


def _links(readings: Readings) -> Claim:
    text = "Who knows the swapped columns links a row with a chance of about 1/k, or less."
    rates = {
        (rule, k): readings.where(family=SWAPS, rule=rule, k=k, measure=LINKS).mean()
        for rule in RULES
        for k in readings.known("k")
    }
    rates = {place: rate for place, rate in rates.items() if math.isfinite(rate)}
    if not rates:
        return _unknown(text)
    told = ", ".join(f"{rate:.3f} at k = {k} ({rule})" for (rule, k), rate in rates.items())
    return Claim(text, all(rate <= 1.1 / k for (_, k), rate in rates.items()), told)


def _membership(readings: Readings) -> Claim:
    text = "Swapping hides who was in the table: guesses of membership are no better than blind."
    some = readings.where(measure=MEMBERSHIP)
    means = [some.where(family=family).mean(precision_of) for family in (ORIGINAL, SWAPS)]
    areas = [some.where(family=family).mean() for family in (ORIGINAL, SWAPS)]
    if not all(map(math.isfinite, (*means, *areas))):
        return _unknown(text)
    return Claim(
        text,
        means[1] <= 0.5 + _NEAR_HALF,
        f"precision {means[1]:.2f} (original {means[0]:.2f}), area under the ROC curve "
        f"{areas[1]:.2f} (original {areas[0]:.2f}); one half is the base rate by construction",
    )


def _costs_grow(readings: Readings) -> Claim:
    text = "The loss of F1 and of mutual information grows with k and with the columns swapped."
    swapped = readings.where(family=SWAPS)
    ks, against, cases = readings.known("k"), [], 0
    for name, measures, value in (("F1", F1, lost_of), ("information", (LOSS,), relative_of)):
        for family in SWAPS:
            mine = swapped.where(family=family, measure=measures)
            at = {(r, k): mine.where(rule=r, k=k).mean(value) for r in RULES for k in ks}
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


def _better_than_generalizing(readings: Readings) -> Claim:
    text = "Models learn more from swapped records than from Mondrian's, at the same k."
    scores = readings.where(measure=F1)
    cases, against = 0, []
    for other, rule, k in itertools.product(GENERALIZED, RULES, readings.known("k")):
        swapped, theirs = scores.where(rule=rule, k=k).means_where_all_are(
            {"family": "gower"}, {"family": other}
        )
        if math.isfinite(swapped) and math.isfinite(theirs):
            cases += 1
            if swapped <= theirs:
                against.append(f"{other}, {rule}, k = {k}: {swapped:.3f} against {theirs:.3f}")
    return _of_cases(text, cases, against)


def _better_than_noise(readings: Readings) -> Claim:
    text = "Models learn more from swapped records than a network learns under DP-SGD."
    cases, against = 0, []
    for epsilon, rule, k in itertools.product(BUDGETS, RULES, readings.known("k")):
        swapped, noisy = readings.where(rule=rule).means_where_all_are(
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


def _same_dissimilarities(readings: Readings) -> Claim:
    text = "No difference between Gower and Ahmad-Dey is to be seen, for models or in secrets."
    told, seen = [], []
    for name, measures in (("F1", dict.fromkeys(RULES, F1)), ("secrets", _ATTACKS_OF)):
        gaps = [
            readings.where(table=table, rule=rule, k=k, measure=measures[rule]).gap(*SWAPS)
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
