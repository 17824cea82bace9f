"""Verdonck et al. (2022): a sample before or after generalization, and what it does to risk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import Study
from shoal.study._results import Results, Row
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
from shoal.study.data._fetching import data_folder, find
from shoal.study.data._tables import TableSource
from shoal.study.figures import Figure, against, violins
from shoal.table import NUMBERS, Roles

_PAPER = paper("sampling")
PLACES = ("pre", "post")
STRATEGIES = ("random", "stratified", "balanced")
CHI_SQUARE = "chi-square of the quasi-identifiers"
CHI_SQUARE_OF_TARGET = "chi-square of the target"
VARIANCES = "variance of numbers that are not masked"
ON_RELEASE = "accuracy on the release"
ON_HELD_OUT = "accuracy on the hold-out"

_RISK = "sampled_risk"
_S, _K = "sample.fraction", "generalize.k"
_FAMILIES = [f"{place} {strategy}" for place in PLACES for strategy in STRATEGIES]


def _design(preset: str) -> Study:
    folder, chosen = data_folder(), _PAPER["presets"][preset]
    table = {**_PAPER["table"], "states": chosen["states"], "held_out": _PAPER["held_out"]}
    if "rows" in chosen:
        table["rows"] = chosen["rows"]
    quasi = table["roles"]["quasi_identifiers"]
    files = {name: f"{_PAPER['hierarchies']}/{name}.csv" for name in quasi}
    there = {name: file for name, file in files.items() if folder and (folder / file).is_file()}
    return _study(preset, table, quasi, ["WKHP"], there, folder)


def _study(
    preset: str,
    table: Mapping[str, Any],
    quasi: Sequence[str],
    numbers: Sequence[str],
    hierarchies: Mapping[str, str],
    folder: Path | None = None,
) -> Study:
    """The study of a table: ``numbers`` are not masked; ``hierarchies`` are files by column."""
    chosen, draws = _PAPER["presets"][preset], _PAPER["draws"]
    published = tuple(_PAPER["published"]["variant"])
    return Study.from_dict(
        {
            "name": "sampling",
            "title": _PAPER["title"],
            "seeds": draws,
            "baseline": False,
            "tables": [table],
            "variants": [
                {
                    "name": f"{place} {strategy}",
                    "steps": _steps(place, strategy, hierarchies),
                    "grid": {_S: [fraction], _K: [k]},
                    "seeds": draws
                    if (place, strategy, fraction, k) == published
                    else chosen["seeds"],
                }
                for place, strategy, fraction, k in itertools.product(
                    PLACES, STRATEGIES, chosen["fractions"], chosen["k"]
                )
            ],
            "measures": list(_measures(chosen["learners"], quasi, table["target"], numbers)),
        },
        folder=folder,
    )


def _steps(place: str, strategy: str, hierarchies: Mapping[str, str]) -> list[dict[str, Any]]:
    sample = {"method": "sample", "strategy": strategy}
    generalize = {"method": "generalize", "algorithm": "full-domain", "suppression_limit": 0.05}
    if hierarchies:
        generalize["hierarchies"] = dict(hierarchies)
    return [sample, generalize] if place == "pre" else [generalize, sample]


def _measures(
    people: int, quasi: Sequence[str], target: str, numbers: Sequence[str]
) -> Iterator[dict[str, Any]]:
    boosted = {
        "measure": "predictive_performance",
        "learner": "gradient-boosting",
        "score": "accuracy",
        "sample": people,
    }
    of_quasi = {"population": True, "columns": list(quasi)}
    yield {"measure": _RISK, "population": True}
    yield {"measure": "sampled_chi_square", "name": CHI_SQUARE, **of_quasi}
    yield {"measure": "chi_square", "name": CHI_SQUARE_OF_TARGET, "columns": [target]}
    if numbers:
        yield {"measure": "variance_ratio", "name": VARIANCES, "columns": list(numbers)}
    yield {**boosted, "name": ON_RELEASE, "test": "masked"}
    yield {**boosted, "name": ON_HELD_OUT, "holdout": True}


def _on_table(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same study on another table, with its own or suggested hierarchies."""
    if len(sources) != 1:
        raise InputError(
            f"The study '{study.name}' takes one table; got {len(sources)}. Run it once per table, "
            "with a different folder each time."
        )
    source = with_target(study, sources[0])
    roles = source.roles
    if not isinstance(roles, Roles) or not roles.quasi_identifiers:
        raise InputError(
            f"The study '{study.name}' generalizes quasi-identifiers, but the table "
            f"'{source.name}' declares none; name them (--quasi)."
        )
    source = at_most(source, _PAPER["presets"][preset].get("rows"))
    source = replace(source, held_out=source.held_out or _PAPER["held_out"])
    table = source.load()
    taken = {*roles.quasi_identifiers, *roles.identifiers, source.target}
    numbers = [name for name in table.columns if name not in taken and table.kind(name) in NUMBERS]
    quasi = roles.quasi_identifiers
    return _study(preset, source.to_dict(), quasi, numbers, _hierarchies(source, quasi))


def _hierarchies(source: TableSource, columns: Sequence[str]) -> dict[str, str]:
    """The files of the folder that a table names, by column; other columns have none."""
    if source.hierarchies is None:
        return {}
    folder = find(source.hierarchies)
    files = {} if folder is None else {name: folder / f"{name}.csv" for name in columns}
    there = {name: str(file.resolve()) for name, file in files.items() if file.is_file()}
    if not there:
        raise InputError(
            f"The folder '{source.hierarchies}' has no hierarchy for any quasi-identifier of the "
            f"table '{source.name}'; add a file COLUMN.csv for each column that has one."
        )
    return there


def _conclude(results: Results, *, own: bool = False) -> Conclusion:
    notes = _PAPER["notes"] if own else [*_PAPER["notes_of_the_paper"], *_PAPER["notes"]]
    compared = [] if own else findings(results)
    return Conclusion(compared, claims(results), figures(results), notes)


def _risks(results: Results, family: str) -> dict[tuple[float, int], Results]:
    """The measured risks of a variant, by size of sample and k."""
    return results.where(measure=_RISK, family=family).done.split(_S, _K)


def findings(results: Results) -> list[Finding]:
    """The published numbers, and bounds that follow from the definitions."""
    compared, after = [], _risks(results, "post random")
    for whose, part in (("released records", "records_above"), ("people", "people_above")):
        for bound, (published, tolerance) in _PAPER["published"]["above"].items():
            name = f"post random, s = 0.5, k = 5: share of the {whose} with certainty above {bound}"
            runs = after.get((0.5, 5), Results(())).details
            measured = mean_of_known(run[part][bound] for run in runs)
            compared.append(Finding(name, published, measured, tolerance, absolute=True))
    for (s, k), some in _risks(results, "post stratified").items():
        highest = max(run["highest_certainty"] for run in some.details)
        name = f"post stratified, s = {s:g}, k = {k}: highest certainty"
        compared.append(Finding(name, s, highest, 1e-12, absolute=True))
    for (s, k), some in after.items():
        highest = max(run["journalist_risk"]["highest"] for run in some.details)
        name = f"post random, s = {s:g}, k = {k}: highest journalist risk (1/k)"
        compared.append(Finding(name, 1 / k, highest, 0.1))
    return compared


def claims(results: Results) -> list[Claim]:
    """The paper's conclusions, and what readers may conclude from it, judged by this run."""
    judges = {
        "pre_has_less_risk": _pre_has_less_risk,
        "every_strategy_fits_before": _every_strategy_fits_before,
        "stratified_is_bounded": _stratified_is_bounded,
        "bound_with_target": _bound_with_target,
        "still_k_anonymous": _still_k_anonymous,
        "same_shares": _same_shares,
        "balanced_learns_better": _balanced_learns_better,
        "release_tells_the_score": _release_tells_the_score,
    }
    return judge_claims("sampling", judges, results)


def _pre_has_less_risk(results: Results) -> Verdict | None:
    before, after = (_risks(results, f"{place} random") for place in PLACES)
    pairs = {c: [runs[c].mean() for runs in (before, after)] for c in before if c in after}
    if not pairs:
        return None
    against = [case for case, (pre, post) in pairs.items() if not pre < post]
    s, k = max(pairs, key=lambda case: case[1] / case[0])
    pre, post = pairs[s, k]
    evidence = (
        f"mean 1/F with s = {s:g}, k = {k}: {pre:.2g} before, {post:.2g} after; most of it is "
        f"arithmetic, because f ≥ k in the sample means F of about k/s = {k / s:g}"
    )
    if against:
        evidence += f"; not in {len(against)} of {len(pairs)} cases"
    return not against, evidence


def _every_strategy_fits_before(results: Results) -> Verdict | None:
    kept: dict[str, list[float]] = {
        strategy: [
            row.facts["details"]["released"] / row.parameters[_S] if row.status == "done" else 0.0
            for row in results.where(measure=_RISK, family=f"pre {strategy}")
        ]
        for strategy in STRATEGIES
    }
    if not all(kept.values()):
        return None
    evidence = "share of the intended sample that they keep: " + ", ".join(
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % ({strategy})"
        for strategy, shares in kept.items()
    )
    return all(min(shares) > 0.5 for shares in kept.values()), evidence


def _stratified_is_bounded(results: Results) -> Verdict | None:
    runs = _risks(results, "post stratified")
    if not runs:
        return None
    room = max(r["highest_certainty"] - s for (s, _), some in runs.items() for r in some.details)
    return room <= 1e-12, f"highest certainty minus s: at most {room:.2g}"


def _bound_with_target(results: Results) -> Verdict | None:
    runs = _risks(results, "post balanced")
    if not runs:
        return None
    s, k = max(runs, key=lambda case: (case[0], -case[1]))
    known = [run["with_target"] for run in runs[s, k].details]
    evidence = f"s = {s:g}, k = {k}: certainty of up to {max(one['highest'] for one in known):.2g}"
    if values := known[0].get("values"):  # many values are not counted one by one
        rates = [one["inclusion"] for one in values]
        sure = max(one["certain_people"] for one in values)
        evidence += (
            f"; the chance to be in the release is {max(rates):.2f} with one value and "
            f"{min(rates):.2f} with {'the other' if len(values) == 2 else 'another'}, and "
            f"{100 * sure:.0f} % of the people with one value are in it with certainty 1"
        )
    return all(one["highest"] <= s for one in known), evidence


def _still_k_anonymous(results: Results) -> Verdict | None:
    runs = {case: some.details for case, some in _risks(results, "post random").items()}
    if not runs:
        return None
    shares = {
        (s, k): mean_of_known(run["records_below"][str(k)] for run in mine)
        for (s, k), mine in runs.items()
    }
    s, k = max(shares, key=lambda case: shares[case])
    smallest = min(run["smallest_class"] for mine in runs.values() for run in mine)
    evidence = (
        f"with s = {s:g}, k = {k}, {100 * shares[s, k]:.0f} % of the released records are in "
        f"classes of fewer than {k}; the smallest class has {smallest}"
    )
    return max(shares.values()) == 0, evidence


def _same_shares(results: Results) -> Verdict | None:
    chosen = results.where(measure=CHI_SQUARE_OF_TARGET).done
    values = {
        strategy: [
            test["cramers_v"]
            for details in chosen.where(family=f"post {strategy}").details
            for test in details["tests"].values()  # of the target alone
        ]
        for strategy in STRATEGIES
    }
    if not all(values.values()):
        return None
    most = {strategy: max(given) for strategy, given in values.items()}
    evidence = "Cramér's V of at most " + ", ".join(f"{v:.3f} ({n})" for n, v in most.items())
    least = min(values["balanced"])
    return max(most["random"], most["stratified"]) < 0.05 < least, evidence


def _scores(results: Results, strategy: str, measure: str) -> tuple[float, float]:
    """The mean accuracy and F1 of what was sampled after generalization; NaN without any."""
    some = results.where(family=f"post {strategy}", measure=measure).done
    return some.mean(), mean_of_known(details["scores"]["f1"] for details in some.details)


def _balanced_learns_better(results: Results) -> Verdict | None:
    both = {name: _scores(results, name, ON_HELD_OUT) for name in ("random", "balanced")}
    if any(math.isnan(value) for pair in both.values() for value in pair):
        return None
    evidence = "on held-out people: " + "; ".join(
        f"{strategy} accuracy {accuracy:.3f}, F1 {f1:.3f}"
        for strategy, (accuracy, f1) in both.items()
    )
    better = [balanced > random for random, balanced in zip(*both.values(), strict=True)]
    return better[0] if better[0] == better[1] else None, evidence


def _release_tells_the_score(results: Results) -> Verdict | None:
    released, real = (_scores(results, "balanced", name) for name in (ON_RELEASE, ON_HELD_OUT))
    if any(map(math.isnan, (*released, *real))):
        return None
    evidence = (
        f"accuracy {released[0]:.3f} and F1 {released[1]:.3f} on the release, {real[0]:.3f} and "
        f"{real[1]:.3f} on held-out people"
    )
    return all(abs(one - other) < 0.02 for one, other in zip(released, real, strict=True)), evidence


def figures(results: Results) -> dict[str, Figure]:
    """Violins of both risks; levels, tests and accuracy against k or the size of the sample."""
    drawn, runs = {}, {family: _risks(results, family) for family in _FAMILIES}
    if runs["post random"]:
        s, k = case = max(runs["post random"], key=lambda case: (case[0], -case[1]))
        for name, part, label, mark in (
            ("certainty", "certainty_quantiles", "certainty f/F", s),
            ("journalist-risk", "journalist_quantiles", "journalist risk 1/F", 1 / k),
        ):
            drawn[name] = violins(
                {f: mine[case].details[0][part] for f, mine in runs.items() if case in mine},
                ylabel=label,
                title=f"{label}, released records, s = {s:g}, k = {k}",
                marks=(mark,),
            )
    for name, measure, strategy, label in (
        ("levels", _RISK, "random", "sum of the levels of all columns"),
        ("chi-square", CHI_SQUARE, "random", "chi-square per degree of freedom"),
        ("variance-ratio", VARIANCES, "", "variance: smaller over larger"),
    ):
        if lines := _lines(results, measure, strategy):
            drawn[name] = against(lines, xlabel="k", ylabel=label)
    accuracy = {
        f"{family}, {where}": line
        for family in ("post random", "post balanced")
        for where, measure in (("release", ON_RELEASE), ("hold-out", ON_HELD_OUT))
        if (line := results.where(family=family, measure=measure).by(_S))
    }
    if accuracy:
        title = "Gradient boosting, tested on the release and on held-out people"
        drawn["accuracy"] = against(
            accuracy, xlabel="share that is sampled", ylabel="accuracy", title=title
        )
    return drawn


def _lines(results: Results, measure: str, strategy: str) -> dict[str, dict[float, list[float]]]:
    """The runs by k, for each size of sample and each variant of a strategy (or all variants)."""
    out: dict[str, dict[float, list[float]]] = {}
    for family in (family for family in _FAMILIES if family.endswith(strategy)):
        chosen = results.where(measure=measure, family=family).done
        for s, of_size in sorted(chosen.split(_S).items(), key=itemgetter(0), reverse=True):
            out[f"{family}, s = {s:g}"] = {
                k: [_levels(row) if measure == _RISK else row.value for row in some]
                for k, some in of_size.split(_K).items()
            }
    return out


def _levels(row: Row) -> float:
    levels = [step["levels"] for step in row.facts["steps"] if "levels" in step]
    return float(sum(sum(of_columns.values()) for of_columns in levels))


STUDY = BuiltIn(
    "sampling",
    _PAPER["title"],
    _PAPER["reference"],
    _design,
    _conclude,
    elsewhere=OnOtherTables(_on_table, partial(_conclude, own=True), takes_hierarchies=True),
)
