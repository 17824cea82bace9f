"""Soria-Comas and Domingo-Ferrer (2012): what k-anonymity and swapping do to correlations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shoal.errors import InputError, quoted
from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import Study, variants_of
from shoal.study._results import Floats, Results
from shoal.study.builtin._builtin import BuiltIn, OnOtherTables, Verdict, judge_claims, paper
from shoal.study.data._fetching import Origin
from shoal.study.data._tables import TableSource
from shoal.study.figures import Figure, against
from shoal.table import NUMBERS, Roles

_PAPER = paper("swap-correlations")
_ORIGINS = {
    f"casc/{name}.parquet": Origin(columns=_PAPER["columns"][name], **given)
    for name, given in _PAPER["origins"].items()
}
_METHODS = ("MDAV-ID", "MDAV-SWAP", "IR-SWAP")

#: Differences of correlations, or their mean, by table, method and k.
Differences = dict[tuple[str, str, int], Floats]
Means = dict[tuple[str, str, int], float]


def _design(preset: str) -> Study:
    chosen, columns = _PAPER["presets"][preset], _PAPER["columns"]
    swapped = [
        {
            "name": name,
            "seeds": chosen["runs"][name],
            "steps": [{**_PAPER["swap"], "partition": partition}],
            "grid": {"k": chosen["k"]},
        }
        for name, partition in (("MDAV-SWAP", "mdav"), ("IR-SWAP", "individual-ranking"))
    ]
    return Study.from_dict(
        {
            "name": "swap-correlations",
            "title": _PAPER["title"],
            "seeds": max(chosen["runs"].values()),
            "baseline": False,
            "tables": _PAPER["tables"],
            "variants": [*(_averaged(t, columns[t], chosen["k"]) for t in columns), *swapped],
            "measures": [{"measure": "correlation_difference", "pairs": "confidential"}],
        }
    )


def _averaged(table: str, columns: Sequence[str], ks: Sequence[int]) -> dict[str, Any]:
    """MDAV-ID, which averages all columns of a table and therefore has to list them."""
    step = {"method": "microaggregate", "standardize": False, "columns": list(columns)}
    return {
        "name": f"MDAV-ID on {table}",
        "family": "MDAV-ID",
        "tables": [table],
        "steps": [step],
        "grid": {"k": list(ks)},
    }


def _on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same study on other tables, with their quasi-identifiers and sensitive columns."""
    taken, averaged = [], []
    for source in sources:
        roles = source.roles
        if not isinstance(roles, Roles) or not roles.sensitive:
            raise InputError(
                f"The study '{study.name}' needs to know which columns of the table "
                f"'{source.name}' are quasi-identifiers and which are sensitive; name them "
                "(--quasi, --sensitive)."
            )
        columns = (*roles.quasi_identifiers, *roles.sensitive)
        table = source.load(study.folder)
        texts = [name for name in columns if table.kind(name) not in NUMBERS]
        if texts:
            raise InputError(
                f"The study '{study.name}' is about correlations of numbers, but the table "
                f"'{source.name}' has other values in {quoted(texts)}; leave them out of the roles."
            )
        if sum(table.distinct(name) > 1 for name in columns) < 2:
            raise InputError(
                f"The study '{study.name}' is about correlations of numbers, but fewer than two "
                f"columns of the table '{source.name}' have more than one value; name others."
            )
        taken.append(replace(source, only=columns, without=(), floats=True))
        averaged += variants_of(_averaged(source.name, columns, _PAPER["presets"][preset]["k"]))
    swapped = [variant for variant in study.variants if not variant.tables]
    return replace(study, tables=tuple(taken), variants=(*averaged, *swapped))


def _conclude(results: Results, *, own: bool = False) -> Conclusion:
    """The verdict; on other tables without findings, with means over the pairs of columns alone."""
    cells = {} if own else _PAPER["cells"]
    by_case = results.by("table", "family", "k")
    differences = {case: cells.get(case[0], 1.0) * values for case, values in by_case.items()}
    means = {case: float(values.mean()) for case, values in differences.items()}
    claims, figures = _claims(means), _figures(differences, published=not own)
    if own:
        return Conclusion((), claims, figures, _PAPER["notes_elsewhere"], terms=_PAPER["terms"])
    findings = [
        Finding(f"{table}, {method}, k = {k}", printed, means[table, method, k], *tolerance)
        for table, of_methods in _PAPER["published"].items()
        for method, numbers in of_methods.items()
        for k, printed in zip(_PAPER["k"], numbers, strict=True)
        if (table, method, k) in means
        for tolerance in (_tolerance(table, method, k),)
    ]
    relation = _PAPER["relation"]
    for first in findings[:1]:  # a number of the verdict next to the same number in the results
        there = first.measured / cells[first.name.partition(",")[0]]
        relation += f" ({first.name}: {first.measured:.4g} here, {there:.4g} there)"
    notes, terms = _PAPER["notes"], _PAPER["terms"]
    return Conclusion(findings, claims, figures, notes, terms=terms, relation=f"{relation}.")


def _tolerance(table: str, method: str, k: int) -> tuple[float, bool]:
    """How far a run of the same method may be from the printed number, and whether in its units."""
    if method == "MDAV-ID" and table == "eia":
        return 0.5 * 10.0 ** -_PAPER["digits"][_PAPER["k"].index(k)], True
    if method == "IR-SWAP":
        if table == "census":
            return (0.15 if k <= 25 else 0.06), False
        return (0.08 if k in (5, 50) else 0.06), False
    return (0.07 if table == "census" else 0.06), False


def _claims(means: Means) -> list[Claim]:
    """The paper's conclusions, judged by this run."""
    tests: dict[str, Callable[[float, float, float], bool]] = {
        "far_less_up_to_100": lambda id_, swap, ranked: 2 * ranked < min(id_, swap),
        "best_of_three": lambda id_, swap, ranked: ranked < min(id_, swap),
        "swapping_is_better": lambda id_, swap, ranked: swap < id_,
    }
    most = {"far_less_up_to_100": 100}
    judges = {n: partial(_in_every_case, holds=h, most=most.get(n)) for n, h in tests.items()}
    return judge_claims("swap-correlations", judges, means)


def _in_every_case(
    means: Means, holds: Callable[[float, float, float], bool], most: int | None
) -> Verdict | None:
    """Whether it holds for the three methods on each table, for each k that all of them have."""
    tables, ks = dict.fromkeys(t for t, _, _ in means), sorted({k for _, _, k in means})
    cases = {
        (table, k): [means[table, method, k] for method in _METHODS]
        for table in tables
        for k in ks
        if (most is None or k <= most) and all((table, method, k) in means for method in _METHODS)
    }
    if not cases:
        return None
    against = [f"{table} at k = {k}" for (table, k), three in cases.items() if not holds(*three)]
    if against:
        return False, f"not on {', '.join(against)}"
    return True, f"in all {len(cases)} cases measured"


def _figures(differences: Differences, *, published: bool) -> dict[str, Figure]:
    figures = {}
    for number, table in enumerate(dict.fromkeys(table for table, _, _ in differences), start=1):
        lines: dict[str, dict[float, Any]] = {
            method: {k: v for (t, m, k), v in differences.items() if t == table and m == method}
            for method in _METHODS
        }
        if not all(lines.values()):
            continue
        name = f"correlations-{table if published else number}"  # any name may be a table's
        numbers = _PAPER["published"][table] if published else {}
        figures[name] = against(
            lines,
            xlabel="k",
            ylabel="mean difference of correlations",
            title=f"{_PAPER['titles'][table] if published else table}: correlations against k",
            published={
                method: {k: v for k, v in zip(_PAPER["k"], printed, strict=True) if k in runs}
                for method, printed in numbers.items()
                for runs in (lines[method],)
            },
        )
    return figures


STUDY = BuiltIn(
    "swap-correlations",
    _PAPER["title"],
    _PAPER["reference"],
    _design,
    _conclude,
    elsewhere=OnOtherTables(_on_tables, partial(_conclude, own=True)),
    verdicts_of_full={_PAPER["claims"][n]: held for n, held in _PAPER["verdicts_of_full"].items()},
    origins=_ORIGINS,
)
