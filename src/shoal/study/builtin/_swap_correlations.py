"""Soria-Comas and Domingo-Ferrer (2012): what k-anonymity and swapping do to correlations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from shoal.errors import InputError, quoted
from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import Study, expanded
from shoal.study._results import Results
from shoal.study.builtin._builtin import BuiltIn, OnOtherTables, paper
from shoal.study.data._tables import TableSource
from shoal.study.figures import Figure, against
from shoal.table import NUMBERS, Roles

_PAPER = paper("swap-correlations")
_CENSUS, _EIA = _PAPER["census"], _PAPER["eia"]
_KS, _QUICK = _PAPER["k"], _PAPER["quick_k"]
_METHODS = ("MDAV-ID", "MDAV-SWAP", "IR-SWAP")
_TITLES = {"census": "Census", "eia": "EIA"}
# Digits after the point that Table XI prints for MDAV-ID.
_DIGITS = (3, 2, 3, 3, 3, 2, 2, 2, 2)
# The paper's means are over these many cells, the zeros of the diagonal among them; its divisor
# for Census is not stated and was found to fit. The honest mean is over the pairs alone.
_CELLS = {"census": 63 / 76, "eia": 45 / 55}
_RUNS = {"quick": {"MDAV-SWAP": 12, "IR-SWAP": 80}, "full": {"MDAV-SWAP": 60, "IR-SWAP": 400}}


def _design(preset: str) -> Study:
    ks = list(_QUICK if preset == "quick" else _KS)
    swap: dict[str, Any] = {
        "method": "swap",
        "informed": True,
        "dissimilarity": "euclidean",
        "standardize": False,
    }
    averaged = [_averaged("census", _CENSUS, ks), _averaged("eia", _EIA, ks)]
    swapped = [
        {
            "name": name,
            "seeds": _RUNS[preset][name],
            "steps": [{**swap, "partition": partition}],
            "grid": {"k": ks},
        }
        for name, partition in (("MDAV-SWAP", "mdav"), ("IR-SWAP", "individual-ranking"))
    ]
    census = {"quasi_identifiers": _CENSUS[:6], "sensitive": _CENSUS[6:]}
    return Study.from_dict(
        {
            "name": "swap-correlations",
            "title": "What k-anonymity and swapping do to correlations",
            "seeds": max(_RUNS[preset].values()),
            "baseline": False,
            "tables": [
                {"path": "casc/census.parquet", "roles": census, "floats": True},
                {
                    "path": "casc/eia.parquet",
                    "roles": {"sensitive": _EIA},
                    "only": _EIA,
                    "floats": True,
                },
            ],
            "variants": [*averaged, *swapped],
            "measures": [{"measure": "correlation_difference", "pairs": "confidential"}],
        }
    )


def _averaged(table: str, columns: Sequence[str], ks: Sequence[int]) -> dict[str, Any]:
    """MDAV-ID, which averages all columns of a table and so has to name them."""
    step = {"method": "microaggregate", "standardize": False, "columns": list(columns)}
    return {
        "name": f"MDAV-ID on {table}",
        "family": "MDAV-ID",
        "tables": [table],
        "steps": [step],
        "grid": {"k": list(ks)},
    }


def _on_tables(study: Study, sources: Sequence[TableSource], preset: str) -> Study:
    """The same on the numbers of other tables: their quasi-identifiers and sensitive columns."""
    ks = _QUICK if preset == "quick" else _KS
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
                f"The study '{study.name}' is about correlations of numbers, and the table "
                f"'{source.name}' has other values in {quoted(texts)}; leave them out of the roles."
            )
        if sum(table.distinct(name) > 1 for name in columns) < 2:
            raise InputError(
                f"The study '{study.name}' is about correlations of numbers, and fewer than two of "
                f"those of the table '{source.name}' have more than one value; name others."
            )
        taken.append(replace(source, only=columns, without=(), floats=True))
        averaged += expanded(_averaged(source.name, columns, ks))
    swapped = [variant for variant in study.variants if not variant.tables]
    return replace(study, tables=tuple(taken), variants=(*averaged, *swapped))


def _conclude(results: Results) -> Conclusion:
    found = {
        (table, method, k): _CELLS[table] * values
        for (table, method, k), values in results.by("table", "family", "k").items()
    }
    means = {place: float(values.mean()) for place, values in found.items()}
    findings = [
        Finding(
            f"{table}, {method}, k = {k}",
            published,
            means.get((table, method, k), math.nan),
            *_tolerance(table, method, k),
        )
        for table, of_methods in _PAPER["published"].items()
        for method, printed in of_methods.items()
        for k, published in zip(_KS, printed, strict=True)
        if (table, method, k) in means
    ]
    return Conclusion(findings, _claims(means), _figures(found, published=True), _PAPER["notes"])


def _conclude_elsewhere(results: Results) -> Conclusion:
    """The claims on other tables, with means over the pairs of columns alone."""
    found = results.by("table", "family", "k")
    means = {place: float(values.mean()) for place, values in found.items()}
    figures = _figures(found, published=False)
    return Conclusion((), _claims(means), figures, _PAPER["notes_elsewhere"])


def _tolerance(table: str, method: str, k: int) -> tuple[float, bool]:
    """How near a run of the same method comes to what was printed, and whether in units of it."""
    if method == "MDAV-ID" and table == "eia":
        return 0.5 * 10.0 ** -_DIGITS[_KS.index(k)], True
    if method == "IR-SWAP":
        if table == "census":
            return (0.15 if k <= 25 else 0.06), False
        return (0.08 if k in (5, 50) else 0.06), False
    return (0.07 if table == "census" else 0.06), False


def _claims(means: dict[tuple[str, str, int], float]) -> list[Claim]:
    """The paper's conclusions, judged by this run."""
    ks = sorted({k for _, _, k in means})
    return [
        _claim(
            "IR-SWAP changes correlations far less than the other two for k up to 100.",
            means,
            [k for k in ks if k <= 100],
            lambda t, k: (
                2 * means[t, "IR-SWAP", k]
                < min(means[t, other, k] for other in ("MDAV-ID", "MDAV-SWAP"))
            ),
        ),
        _claim(
            "IR-SWAP is the best of the three, whatever k.",
            means,
            ks,
            lambda t, k: (
                means[t, "IR-SWAP", k]
                < min(means[t, other, k] for other in ("MDAV-ID", "MDAV-SWAP"))
            ),
        ),
        _claim(
            "MDAV-SWAP changes correlations less than MDAV-ID.",
            means,
            ks,
            lambda t, k: means[t, "MDAV-SWAP", k] < means[t, "MDAV-ID", k],
        ),
    ]


def _claim(
    text: str,
    means: dict[tuple[str, str, int], float],
    ks: list[int],
    holds: Callable[[str, int], bool],
) -> Claim:
    tables = dict.fromkeys(table for table, _, _ in means)
    cases = [(t, k) for t in tables for k in ks if _whole(means, t, k)]
    if not cases:
        return Claim(text, None, "nothing measured yet")
    against = [f"{table} at k = {k}" for table, k in cases if not holds(table, k)]
    if not against:
        return Claim(text, True, f"in all {len(cases)} cases measured")
    return Claim(text, False, f"not on {', '.join(against)}")


def _whole(means: dict[tuple[str, str, int], float], table: str, k: int) -> bool:
    return all((table, method, k) in means for method in _METHODS)


def _figures(found: dict[tuple[str, str, int], Any], *, published: bool) -> dict[str, Figure]:
    figures = {}
    for number, table in enumerate(dict.fromkeys(table for table, _, _ in found), start=1):
        lines: dict[str, dict[float, Any]] = {
            method: {k: v for (t, m, k), v in found.items() if t == table and m == method}
            for method in _METHODS
        }
        if not all(lines.values()):
            continue
        name = f"correlations-{table if published else number}"  # any name may be a table's
        figures[name] = against(
            lines,
            xlabel="k",
            ylabel="mean difference of correlations",
            title=f"{_TITLES[table] if published else table}: correlations against k",
            published=_printed(table, lines) if published else {},
        )
    return figures


def _printed(table: str, lines: dict[str, dict[float, Any]]) -> dict[str, dict[float, float]]:
    """The published numbers of a table, at the k that were run."""
    return {
        method: {
            k: printed
            for k, printed in zip(_KS, _PAPER["published"][table][method], strict=True)
            if k in lines[method]
        }
        for method in _METHODS
    }


STUDY = BuiltIn(
    "swap-correlations",
    "What k-anonymity and swapping do to correlations",
    "Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and "
    "data swapping, Tables VI to XI",
    _design,
    _conclude,
    elsewhere=OnOtherTables(_on_tables, _conclude_elsewhere),
)
