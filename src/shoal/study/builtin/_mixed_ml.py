"""Senavirathne and Torra (2021): swapped mixed data, attribute disclosure and machine learning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shoal.errors import InputError
from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import ORIGINAL, Study
from shoal.study._results import Results, Row
from shoal.study._statistics import signed_rank
from shoal.study.builtin._builtin import (
    BuiltIn,
    OnOtherTables,
    Verdict,
    at_most,
    judge_claims,
    mean_of_known,
    paper,
    with_target,
)
from shoal.study.data._tables import TableSource
from shoal.study.figures import Figure, Point, against, risk_utility
from shoal.table import Roles

_PAPER = paper("mixed-ml")
_PUBLISHED, _OTHER_CODE = _PAPER["published"], _PAPER["other_code"]
#: Which columns are quasi-identifiers, and are swapped.
RULES = ("part", "all")
ATTACKS = ("distance", "model", "probabilistic")
#: What a partly and a fully informed intruder know.
KNOWLEDGE = ("part", "everything")
#: What the intruder knows that the paper considers for each choice of columns.
KNOWN_OF = {"part": "part", "all": "everything"}
SWAPS = ("gower", "ahmad-dey")
GENERALIZED = ("k-anonymity", "l-diversity", "t-closeness")
LEARNERS = tuple(_PAPER["learners"])
#: The budgets ε of the network.
BUDGETS = tuple(_PAPER["budgets"])
NETWORK = "dp-sgd"
LOSS, LINKS, MEMBERSHIP = "loss of mutual information", "row links", "membership"

# Tolerances in units. The paper's columns, tables and k differ a little from those here. They are
# about twice the change of a mean if one of five tables is left out: 0.02 to 0.03, and 0.05 for a
# reduction.
_OF_SHARES, _OF_REDUCTIONS, _OF_LOSSES = 0.05, 0.10, 0.05
_LEVEL = 0.05  # of a test
_NEAR_BLIND = 0.1  # the part of what a blind guess does not get that counts as nothing
_HARDLY_MORE = 0.05  # the part of all secrets by which members may be guessed better than others
_NEAR_HALF = 0.025  # how far above one half a precision may be and still be blind


def guessed(attack: str, known: str) -> str:
    """The name of an attack on the secret by an intruder with this knowledge."""
    return f"secrets guessed by {attack}, {known} known"


def f1_of(learner: str, epsilon: float | None = None) -> str:
    """The name of a learner's score."""
    return f"F1 of {learner}" + ("" if epsilon is None else f", ε = {epsilon:g}")


#: The scores of the learners that are trained on masked records.
F1 = tuple(f1_of(name) for name in LEARNERS)


def _design(preset: str) -> Study:
    chosen = _PAPER["presets"][preset]
    sources = [TableSource.from_dict(entry) for entry in _PAPER["tables"]]
    if "rows" in chosen:
        sources = [at_most(s, chosen["rows"]) if s.name == "adult" else s for s in sources]
    return Study.from_dict(
        {
            "name": "mixed-ml",
            "title": _PAPER["title"],
            "seeds": chosen["seeds"],
            "tables": [one.to_dict() for source in sources for one in _twice(source)],
            "variants": [
                {"name": name, "steps": [step], "grid": {"k": chosen["k"]}}
                for name, step in _PAPER["steps"].items()
            ],
            "measures": [*_risks(), *_utilities()],
        }
    )


def _twice(source: TableSource) -> list[TableSource]:
    """A table under both rules for the quasi-identifiers, with rows held out."""
    held_out = source.held_out or _PAPER["held_out"]
    return [
        replace(source, name=f"{source.name}, {rule}", roles=rule, held_out=held_out)
        for rule in RULES
    ]


def _on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same study on other tables; the quick preset takes as many rows as from Adult."""
    taken = []
    for source in sources:
        if isinstance(source.roles, Roles):
            raise InputError(
                f"The study '{study.name}' chooses the quasi-identifiers itself; declare a target "
                f"for the table '{source.name}' and the columns to leave out (--without), but no "
                "roles."
            )
        rows = _PAPER["presets"][preset].get("rows")
        taken += _twice(at_most(with_target(study, source), rows))
    return replace(study, tables=tuple(taken))


def _risks() -> Iterator[Mapping[str, Any]]:
    inference = {"measure": "attribute_inference"}
    for attack, known in itertools.product(ATTACKS, KNOWLEDGE):
        yield {**inference, "name": guessed(attack, known), "attack": attack, "known": known}
    yield {"measure": "distance_linkage", "name": LINKS}
    yield {"measure": "membership_inference", "name": MEMBERSHIP, "control": True}


def _utilities() -> Iterator[Mapping[str, Any]]:
    on_others = {"measure": "predictive_performance", "score": "f1-micro", "holdout": True}
    yield {"measure": "mutual_information_loss", "name": LOSS}
    for name in LEARNERS:
        yield {**on_others, "name": f1_of(name), "learner": name}
    # only on the original: nothing is masked, because the training itself is noisy
    on_others |= {"families": [ORIGINAL], "train": "original"}
    for epsilon in BUDGETS:
        network = {"name": NETWORK, "epsilon": epsilon, "delta": _PAPER["delta"]}
        yield {**on_others, "name": f1_of(NETWORK, epsilon), "learner": network}


def table_and_rule(name: str) -> tuple[str, str]:
    """A table and the choice of columns; "all" if the name of a user's own table has none.

    Examples
    --------
    >>> table_and_rule("cmc, part"), table_and_rule("patients, 2020")
    (('cmc', 'part'), ('patients, 2020', 'all'))
    """
    table, _, rule = name.rpartition(", ")
    return (table, rule) if rule in RULES else (name, "all")


def readings_of(results: Results) -> Results:
    """The results that have a value, with the choice of columns and the numbers to compare."""
    return Results(tuple(_reading(row) for row in results.done))


def _reading(row: Row) -> Row:
    """A row with the other numbers that are compared.

    ``lift`` is the share guessed of what a blind guess (the ``baseline``) misses, ``lost`` the
    difference from the original, ``relative`` the loss divided by what there is to lose, and
    ``precision`` the share of members among the people who are taken for members.
    """
    table, rule = table_and_rule(row.table)
    details = row.facts.get("details") or {}
    base = row.facts.get("baseline")
    blind = math.nan if base is None else float(base)
    read = {
        "rule": rule,
        "baseline": blind,
        "lift": (row.value - blind) / (1 - blind) if blind < 1 else 0.0,
        "lost": blind - row.value,
        "relative": details.get("relative"),
        "precision": details.get("precision"),
    }
    return replace(row, table=table, parameters={**row.parameters, **read})


def mean(readings: Results, read: str = "value", **wanted: Any) -> float:
    """The mean over tables of the mean on each table, so that every table has the same weight."""
    tables = readings.where(**wanted).split("table").values()
    return mean_of_known(mean_of_known(row.at(read) for row in some) for some in tables)


def means_where_all_are(readings: Results, *choices: Mapping[str, Any]) -> list[float]:
    """The mean of each choice over the tables for which all choices have results.

    A study that was stopped may lack some variants on some tables.
    """
    chosen = [readings.where(**choice) for choice in choices]
    shared = set.intersection(*(set(some.known("table")) for some in chosen))
    return [mean(some, table=tuple(shared)) for some in chosen]


def reduction(readings: Results, attack: str, rule: str, family: str) -> float:
    """The mean over tables of 1 - AD(masked) / AD(original)."""
    rates = readings.where(rule=rule, measure=guessed(attack, KNOWN_OF[rule]))
    reductions = []
    for table in rates.known("table"):
        before = mean(rates, table=table, family=ORIGINAL)
        after = mean(rates, table=table, family=family)
        reductions.append(1 - after / before if before > 0 else math.nan)
    return mean_of_known(reductions)


def conclude(results: Results, *, own: bool = False) -> Conclusion:
    """The verdict on the results so far; claims without results stay undecided.

    The paper's numbers are means over its own tables, so they are left out on other tables.
    """
    readings, notes, findings = readings_of(results), notes_of(results), list[Finding]()
    if not own:
        notes += _PAPER["notes_of_other_code"]
        findings += [*findings_of(readings), *compared(readings)]
    return Conclusion(findings, claims_of(readings), figures_of(readings), notes)


def notes_of(results: Results) -> list[str]:
    """What a reader of the verdict must know, including what is missing."""
    notes = list(_PAPER["notes"])
    network = f1_of(NETWORK)
    if any(row.status == "failed" and row.measure.startswith(network) for row in results):
        notes.append("The network could not be trained everywhere; the failures state why.")
    return notes


def findings_of(readings: Results) -> list[Finding]:
    """The paper's numbers next to the measured ones."""
    original, swapped = readings.where(family=ORIGINAL), readings.where(family=SWAPS)
    rows: list[tuple[str, float, float, float]] = []
    for attack, published in _PUBLISHED["on_original"].items():
        name = f"secrets guessed on the original, {_short(attack)}"
        means = [mean(original, rule=r, measure=guessed(attack, KNOWN_OF[r])) for r in RULES]
        rows.append((name, published, sum(means) / len(means), _OF_SHARES))
    for rule, attack, published in _leaves(_PUBLISHED["reduction"]):
        name = f"fewer secrets guessed, {rule} swapped (gower), {_short(attack)}"
        rows.append((name, published, reduction(readings, attack, rule, "gower"), _OF_REDUCTIONS))
    for family, rule, published in _leaves(_PUBLISHED["f1_loss"]):
        lost = mean(swapped, "lost", family=family, rule=rule, measure=F1)
        rows.append((f"loss of F1, {rule} swapped ({family})", published, lost, _OF_LOSSES))
    name = "precision of a guess of membership, swapped (one half is blind)"
    precision = mean(swapped, "precision", measure=MEMBERSHIP)
    rows.append((name, _PUBLISHED["precision"], precision, _OF_SHARES))
    return [Finding(*row, absolute=True) for row in rows]


def compared(readings: Results) -> list[Finding]:
    """The numbers of the other code next to the measured ones, on the tables that both have."""
    shared = readings.where(table=tuple(_OTHER_CODE["tables"]))
    rows: list[tuple[str, float, float, float]] = []
    for rule, attack, published in _leaves(_OTHER_CODE["reduction"]):
        name = f"fewer secrets guessed, {rule} swapped, {_short(attack)}"
        rows.append((name, published, reduction(shared, attack, rule, "gower"), _OF_REDUCTIONS))
    measured_k = shared.known("k")
    for rule, k, published in _leaves(_OTHER_CODE["by_k"]):
        if int(k) in measured_k:
            swapped = shared.where(family="gower", rule=rule, k=int(k))
            measured = {
                "rows linked by distance": mean(swapped, measure=LINKS),
                "relative loss of mutual information": mean(swapped, "relative", measure=LOSS),
                "loss of F1": mean(swapped, "lost", measure=F1),
            }
            for (what, value), printed in zip(measured.items(), published, strict=True):
                rows.append((f"{what}, {rule} swapped, k = {k}", printed, value, _OF_SHARES))
    return [Finding(f"other code: {row[0]}", *row[1:], absolute=True) for row in rows]


def _short(attack: str) -> str:
    """The name of an attack in reports."""
    return {"model": "random forest", "probabilistic": "probabilistic linkage"}.get(attack, attack)


def _leaves(nested: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for outer, inside in nested.items():
        for inner, value in inside.items():
            yield outer, inner, value


def _less_is_guessed(readings: Results) -> Verdict | None:
    choices = itertools.product(ATTACKS, RULES, SWAPS)
    reductions = [reduction(readings, *choice) for choice in choices]
    known = [value for value in reductions if math.isfinite(value)]
    if not known:
        return None
    evidence = f"{min(known):.0%} to {max(known):.0%} fewer, by attack, columns and dissimilarity"
    return min(known) > 0, evidence


def _down_to_blind_guesses(readings: Results) -> Verdict | None:
    some = {
        (rule, attack): _late_swaps(readings, rule, guessed(attack, KNOWN_OF[rule]))
        for rule, attack in itertools.product(RULES, ATTACKS)
    }
    lifts = {place: mean(mine, "lift") for place, mine in some.items() if len(mine)}
    if not lifts:
        return None
    blind = mean(some["part", "distance"], "baseline")
    shares = ", ".join(f"{rule} by {_short(attack)} {v:.2f}" for (rule, attack), v in lifts.items())
    return (
        max(lifts.values()) < _NEAR_BLIND,
        f"share guessed of what the most frequent class (right for {blind:.0%}) misses: {shares}",
    )


def _late_swaps(readings: Results, rule: str, *measures: str) -> Results:
    """The swaps with k = 50 and more."""
    late = tuple(k for k in readings.known("k") if k >= 50)
    return readings.where(family=SWAPS, k=late, rule=rule, measure=measures)


def _no_more_than_of_others(readings: Results) -> Verdict | None:
    names = guessed("model", KNOWN_OF["all"]), f1_of("random-forest")
    members, others = means_where_all_are(
        _late_swaps(readings, "all", *names), *({"measure": name} for name in names)
    )
    if not (math.isfinite(members) and math.isfinite(others)):
        return None
    return (
        members - others < _HARDLY_MORE,
        f"all columns swapped and known: {members:.3f} against {others:.3f} for the rows held out",
    )


def _columns_in_place(readings: Results) -> Verdict | None:
    late = max(readings.known("k"), default=None)
    some = readings.where(family=SWAPS, rule="part", k=late)
    pairs = {
        attack: [mean(some, "lift", measure=guessed(attack, known)) for known in KNOWLEDGE]
        for attack in ATTACKS
    }
    pairs = {attack: both for attack, both in pairs.items() if all(map(math.isfinite, both))}
    if not pairs:
        return None
    lifts = ", ".join(f"{_short(attack)} {a:.2f} and {b:.2f}" for attack, (a, b) in pairs.items())
    return (
        all(everything - part < _NEAR_BLIND for part, everything in pairs.values()),
        f"lift over blind guesses at k = {late} if the intruder knows the swapped columns, and if "
        f"the intruder knows all: {lifts}",
    )


def _links(readings: Results) -> Verdict | None:
    rates = {
        (rule, k): mean(readings, family=SWAPS, rule=rule, k=k, measure=LINKS)
        for rule, k in itertools.product(RULES, readings.known("k"))
    }
    rates = {place: rate for place, rate in rates.items() if math.isfinite(rate)}
    if not rates:
        return None
    evidence = ", ".join(f"{rate:.3f} at k = {k} ({rule})" for (rule, k), rate in rates.items())
    return all(rate <= 1.1 / k for (_, k), rate in rates.items()), evidence


def _membership(readings: Results) -> Verdict | None:
    some = readings.where(measure=MEMBERSHIP)
    means = [mean(some, "precision", family=family) for family in (ORIGINAL, SWAPS)]
    areas = [mean(some, family=family) for family in (ORIGINAL, SWAPS)]
    if not all(map(math.isfinite, (*means, *areas))):
        return None
    return (
        means[1] <= 0.5 + _NEAR_HALF,
        f"precision {means[1]:.2f} (original {means[0]:.2f}), area under the ROC curve "
        f"{areas[1]:.2f} (original {areas[0]:.2f}); one half is the base rate by construction",
    )


def _costs_grow(readings: Results) -> Verdict | None:
    ks, cases = readings.known("k"), []
    steps = [((r, low), (r, high)) for r in RULES for low, high in itertools.pairwise(ks)]
    steps += [(("part", k), ("all", k)) for k in ks]
    for name, measures, read in (("F1", F1, "lost"), ("information", (LOSS,), "relative")):
        for family in SWAPS:
            mine = readings.where(family=family, measure=measures)
            costs = {(r, k): mean(mine, read, rule=r, k=k) for r in RULES for k in ks}
            for less, more in steps:
                words = f"{name}, {family}, {{}} at k = {{}} {costs[less]:.3f} to {{}} at k = {{}} "
                words = words.format(*less, *more) + f"{costs[more]:.3f}"
                cases.append((costs[more], costs[less], words))
    return _all_are_more(cases)


def _better_than_generalizing(readings: Results) -> Verdict | None:
    scores, cases = readings.where(measure=F1), []
    for other, rule, k in itertools.product(GENERALIZED, RULES, readings.known("k")):
        swapped, theirs = means_where_all_are(
            scores.where(rule=rule, k=k), {"family": "gower"}, {"family": other}
        )
        words = f"{other}, {rule}, k = {k}: {swapped:.3f} against {theirs:.3f}"
        cases.append((swapped, theirs, words))
    return _all_are_more(cases)


def _better_than_noise(readings: Results) -> Verdict | None:
    cases = []
    for epsilon, rule, k in itertools.product(BUDGETS, RULES, readings.known("k")):
        swapped, noisy = means_where_all_are(
            readings.where(rule=rule),
            {"family": "gower", "k": k, "measure": F1},
            {"family": ORIGINAL, "measure": f1_of(NETWORK, epsilon)},
        )
        words = f"ε = {epsilon:g} against {rule} swapped with k = {k}: {noisy:.3f} against "
        cases.append((swapped, noisy, f"{words}{swapped:.3f}"))
    without = "no network was trained; it needs the extra 'dp' of Shoal"
    return _all_are_more(cases) or (None, without)


def _all_are_more(cases: Iterable[tuple[float, float, str]]) -> Verdict | None:
    """Whether the first number of every case is larger than the second; lists the exceptions."""
    known = [case for case in cases if math.isfinite(case[0]) and math.isfinite(case[1])]
    if not known:
        return None
    wrong = [words for more, less, words in known if more <= less]
    if not wrong:
        return True, f"in all comparisons ({len(known)})"
    shown = "; ".join(wrong[:4]) + ("; …" if len(wrong) > 4 else "")
    return False, f"not in {len(wrong)} of {len(known)} comparisons: {shown}"


def _same_dissimilarities(readings: Results) -> Verdict | None:
    guesses = {r: tuple(guessed(attack, KNOWN_OF[r]) for attack in ATTACKS) for r in RULES}
    differences, differ = [], []
    for name, measures in (("F1", dict.fromkeys(RULES, F1)), ("secrets", guesses)):
        gaps = []
        for choice in itertools.product(readings.known("table"), RULES, readings.known("k")):
            table, rule, k = choice
            mine = readings.where(table=table, rule=rule, k=k, measure=measures[rule])
            gower, other = (mean(mine, family=family) for family in SWAPS)
            gaps.append(other - gower)
        gaps = [gap for gap in gaps if math.isfinite(gap)]
        if not gaps:
            return None
        p_value = signed_rank(gaps)[1]
        differ.append(p_value < _LEVEL)
        mean_gap = sum(gaps) / len(gaps)
        differences.append(f"{name} {mean_gap:+.3f} (signed-rank test, p = {p_value:.2g})")
    return not any(differ), f"Ahmad-Dey minus Gower: {', '.join(differences)}"


def claims_of(readings: Results) -> list[Claim]:
    """The paper's claims and the claims of this page, checked against a run."""
    judges = {
        "less_is_guessed": _less_is_guessed,
        "down_to_blind_guesses": _down_to_blind_guesses,
        "no_more_than_of_others": _no_more_than_of_others,
        "columns_in_place": _columns_in_place,
        "links": _links,
        "membership": _membership,
        "costs_grow": _costs_grow,
        "better_than_generalizing": _better_than_generalizing,
        "better_than_noise": _better_than_noise,
        "same_dissimilarities": _same_dissimilarities,
    }
    return judge_claims("mixed-ml", judges, readings)


Line = dict[float, Sequence[float]]

_COLUMNS = {"part": "the identifying columns", "all": "all columns"}


def figures_of(readings: Results) -> dict[str, Figure]:
    """Every figure for which there are results.

    A mean over some of the tables is not comparable with one over all. If the study was stopped,
    variants that are not measured on every table are left out.
    """
    losses = readings.where(measure=LOSS)
    lines = {
        f"{family}, {rule}": _line(losses.where(family=family, rule=rule), readings, "relative")
        for family, rule in itertools.product(SWAPS, RULES)
    }
    loss = "share of mutual information lost"
    drawn = _against_k("information-against-k", lines, loss, "Mutual information against k")
    for rule in RULES:
        mine, which = readings.where(rule=rule), _COLUMNS[rule]
        score = "F1, mean over tables and learners"
        title = f"F1 against k: {which} are masked"
        drawn |= _against_k(f"f1-against-k-{rule}", _scores(mine), score, title)
        share = "share of secrets guessed"
        title = f"Attribute disclosure against k: {which} are swapped (Gower)"
        lines = _guesses(mine, KNOWN_OF[rule])
        drawn |= _against_k(f"disclosure-against-k-{rule}", lines, share, title)
        if points := _points(mine, guessed("model", KNOWN_OF[rule])):
            drawn[f"risk-utility-{rule}"] = risk_utility(
                points,
                risk=f"{share} by a random forest",
                utility="F1",
                title=f"Risk and utility: {which} are masked",
            )
    return drawn


def _against_k(name: str, lines: Mapping[str, Line], ylabel: str, title: str) -> dict[str, Figure]:
    known = {line: values for line, values in lines.items() if values}
    return {name: against(known, xlabel="k", ylabel=ylabel, title=title)} if known else {}


def _line(some: Results, every: Results, read: str = "value") -> Line:
    """For each k, the means of the trials that are complete on all tables."""
    line = {k: _by_trial(some.where(k=k), every, read) for k in some.known("k")}
    return {k: means for k, means in line.items() if means}


def _by_trial(some: Results, every: Results, read: str = "value") -> list[float]:
    trials = [some.where(seed=seed) for seed in some.known("seed")]
    return [mean(t, read) for t in trials if t.known("table") == every.known("table")]


def _scores(readings: Results) -> dict[str, Line]:
    scores = readings.where(measure=F1)
    before = _by_trial(scores.where(family=ORIGINAL), readings)
    level: Line = {k: before for k in scores.known("k") if before}
    families = (*SWAPS, *GENERALIZED)
    return {ORIGINAL: level} | {f: _line(scores.where(family=f), readings) for f in families}


def _guesses(readings: Results, known: str) -> dict[str, Line]:
    """The three attacks, and the result of blind guessing."""
    swapped = readings.where(family="gower")
    names = {_short(attack): guessed(attack, known) for attack in ATTACKS}
    lines = {a: _line(swapped.where(measure=name), readings) for a, name in names.items()}
    every = swapped.where(measure=tuple(names.values()))
    return lines | {"most frequent class": _line(every, readings, "baseline")}


def _points(readings: Results, risk: str) -> list[Point]:
    """Every variant by the share of secrets guessed and by F1, both as means over the tables."""
    points, tables = [], readings.known("table")
    for family in (ORIGINAL, *SWAPS, *GENERALIZED):
        mine = readings.where(family=family)
        for k in mine.known("k") or [None]:
            low, high = (mine.where(k=k, measure=each) for each in (risk, F1))
            if tables and low.known("table") == high.known("table") == tables:
                label = family if k is None else f"{family}, k = {k}"
                points.append(Point(label, mean(low), mean(high), family))
    return points


STUDY = BuiltIn(
    "mixed-ml",
    _PAPER["title"],
    _PAPER["reference"],
    _design,
    conclude,
    elsewhere=OnOtherTables(_on_tables, partial(conclude, own=True)),
    made_from=_PAPER["made_from"],
)
