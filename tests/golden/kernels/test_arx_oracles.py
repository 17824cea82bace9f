"""The optimal generalizations that ARX finds, and an independent brute force confirmed.

Each case of ``oracles/arx_adult.json`` names the test of ARX it comes from. Levels, suppressed
records and losses are compared at the level of the search itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.kernels.conditions import (
    DISTINCT,
    ENTROPY,
    EQUAL,
    HIERARCHICAL,
    ORDERED,
    RECURSIVE,
    Conditions,
    only_size,
)
from shoal.kernels.lattice.lattice import FullDomainSearch
from shoal.kernels.lattice.roll_up import Base

METRICS = {
    "entropy_monotonic": "entropy-monotonic",
    "entropy": "entropy",
    "loss": "loss",
    "loss, default configuration": "loss",
    "discernibility_monotonic": "discernibility-monotonic",
}
DISTANCES = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}
ADULT = [
    "adult_k5_s0.04_entropy",
    "adult_k5_s0_entropy",
    "adult_k5_s1_loss",
    "adult_entropyl5_s0.04_entropy",
    "adult_t0.2equal_k5_s0_dm",
    "adult_t0.2ordered_k5_s0.04_dm",
    "adult_t0.2hier_k5_s0_entropy",
    "adult_k5_s0.05_loss",
    "adult_k5_l2_s0.05_loss",
    "adult_k5_t0.2_s0_loss",
]


@pytest.fixture(scope="module")
def oracles(shared_data: Path) -> dict[str, Any]:
    file = shared_data.parent / "oracles" / "arx_adult.json"
    if not file.is_file():
        pytest.skip("the oracles are not beside the public tables")
    cases = json.loads(file.read_text())["cases"]
    return {case["id"]: case for case in cases}


def levels_of(rows: list[list[str]]) -> tuple[list[str], Any, Any]:
    """A hierarchy's values, and the codes and leaves of each value at each level."""
    columns = list(zip(*rows, strict=True))
    codes, leaves = [], []
    for column in columns:
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        codes.append(np.arange(len(column)) if column is columns[0] else inverse)
        leaves.append(counts[inverse].astype(float))
    return list(columns[0]), np.array(codes, np.int32), np.array(leaves)


def base_of(columns: list[Any], sensitive: Any) -> Base:
    """The distinct tuples of coded columns, and their pairs with a coded sensitive column."""
    rows = np.stack(columns, axis=1).astype(np.int32)
    tuples, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    none = np.empty(0, np.int32)
    pairs, pair_counts = np.empty((2, 0), np.int32), np.empty(0, np.int64)
    if sensitive is not None:
        both = np.stack([inverse.ravel(), sensitive])
        pairs, pair_counts = np.unique(both, axis=1, return_counts=True)
    codes = pairs[1:].astype(np.int32) if sensitive is not None else none.reshape(0, 0)
    return Base(
        tuples, counts, np.zeros_like(counts), pairs[0].astype(np.int32), codes, pair_counts
    )


def kind_of(criterion: dict[str, Any]) -> tuple[int, float]:
    model = criterion["model"]
    if model == "t-closeness":
        return DISTANCES[criterion["distance"].split()[0]], criterion["t"]
    return {"distinct-l-diversity": DISTINCT, "entropy-l-diversity": ENTROPY}[model], criterion["l"]


def conditions_of(criteria: list[dict[str, Any]], sensitive: Any, tree: Any) -> Conditions:
    sizes = [c["k"] for c in criteria if c["model"] == "k-anonymity"]
    others = [kind_of(c) for c in criteria if c["model"] != "k-anonymity"]
    smallest = sizes[0] if sizes else 1
    if not others:
        return only_size(smallest)
    counts = np.bincount(sensitive)
    trees = np.zeros((1, 1, len(counts)), np.int64) if tree is None else tree[None]
    return Conditions(
        smallest,
        np.array([kind for kind, _ in others]),
        np.zeros(len(others), np.int64),
        np.array([float(bound) for _, bound in others]),
        np.full(len(others), 3.0),  # the c of recursive (c, l); the others have no second number
        (counts / counts.sum())[None],
        np.array([len(counts)]),
        trees.astype(np.int64),
        np.array([trees.shape[1] - 1]),
    )


def solve(base: Base, maps: Any, leaves: Any, conditions: Conditions, limit: int, loss: str) -> Any:
    domains = [float(steps.shape[1]) for steps in maps]
    search = FullDomainSearch(base, maps, leaves, domains, conditions, limit=limit, loss=loss)
    while search.advance() < 1:
        pass
    assert search.optimal
    assert search.bound == search.loss
    return search


@pytest.mark.parametrize("name", ADULT)
def test_adult(oracles: dict[str, Any], shared_data: Path, name: str) -> None:
    case = oracles[name]
    table = pl.read_parquet(shared_data / case["dataset"])
    columns, maps, leaves = [], [], []
    for column in case["quasi_identifiers"]:
        text = (shared_data / case["hierarchies"][column]).read_text().strip("\n").split("\n")
        values, codes, under = levels_of([line.split(";") for line in text])
        place = {value: code for code, value in enumerate(values)}
        columns.append([place[value] for value in table[column].cast(pl.String).str.strip_chars()])
        maps.append(codes)
        leaves.append(under)
    sensitive = tree = None
    if case["sensitive_attribute"]:
        values, sensitive = np.unique(
            table[case["sensitive_attribute"]].cast(pl.String).to_numpy(), return_inverse=True
        )
        file = shared_data / "hierarchies" / "adult_arx" / f"{case['sensitive_attribute']}.csv"
        above = {line.split(";")[0]: line.split(";") for line in file.read_text().split("\n")}
        steps = list(zip(*(above[value] for value in values), strict=True))
        tree = np.array([np.unique(step, return_inverse=True)[1] for step in steps])
    base = base_of(columns, sensitive)
    conditions = conditions_of(case["criteria"], sensitive, tree)
    limit = case["max_suppressed_rows"]
    search = solve(base, maps, leaves, conditions, limit, METRICS[case["metric"]])
    assert list(search.levels) == case["expected_level_vector"]
    assert search.loss == pytest.approx(case["expected_loss"], rel=1e-9, abs=0)
    confirmed = case["confirmed"]["independent_numpy_brute_force"]
    assert search.suppressed == confirmed["suppressed_rows"]


def coded(rows: list[list[str]], columns: dict[int, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Columns of small tables, coded by hierarchies that a function of the value gives."""
    made, maps, leaves = [], [], []
    for index, levels in columns.items():
        values = sorted({row[index] for row in rows})
        _, codes, under = levels_of([[value, *levels(value)] for value in values])
        made.append([values.index(row[index]) for row in rows])
        maps.append(codes)
        leaves.append(under)
    return made, maps, leaves


def masked(code: str) -> list[str]:
    return [code[: 5 - hidden] + "*" * hidden for hidden in range(1, 6)]


def test_seven_rows(oracles: dict[str, Any]) -> None:
    case = oracles["seven_rows_k2"]
    given = case["hierarchies"]
    columns, maps, leaves = coded(
        case["rows"], {0: given["age"].get, 1: given["gender"].get, 2: masked}
    )
    conditions = conditions_of(case["criteria"], None, None)
    search = solve(base_of(columns, None), maps, leaves, conditions, 0, METRICS[case["metric"]])
    assert list(search.levels) == list(case["expected_levels"].values())
    assert search.loss == pytest.approx(case["expected_loss"], rel=1e-12)


@pytest.mark.parametrize("kind", [DISTINCT, ENTROPY, RECURSIVE])
def test_seven_diverse_rows(oracles: dict[str, Any], kind: int) -> None:
    case, table = oracles["seven_rows_distinct_l2"], oracles["seven_rows_k2"]
    columns, maps, leaves = coded(table["rows"], {1: table["hierarchies"]["gender"].get, 2: masked})
    _, sensitive = np.unique([row[0] for row in table["rows"]], return_inverse=True)
    conditions = conditions_of(case["criteria"], sensitive, None)._replace(kinds=np.array([kind]))
    search = solve(base_of(columns, sensitive), maps, leaves, conditions, 0, "loss")
    assert list(search.levels) == list(case["expected_levels"].values())
    assert search.loss == pytest.approx(case["expected_loss"], rel=1e-12)


def test_nine_close_rows(oracles: dict[str, Any]) -> None:
    case = oracles["nine_rows_t0.6_equal_k2"]
    columns, maps, leaves = coded(
        case["rows"], {0: masked, 1: lambda age: ["<=40" if int(age) <= 40 else ">40", "*"]}
    )
    _, sensitive = np.unique([row[2] for row in case["rows"]], return_inverse=True)
    conditions = conditions_of(case["criteria"], sensitive, None)
    search = solve(base_of(columns, sensitive), maps, leaves, conditions, 0, "loss")
    assert list(search.levels) == list(case["expected_levels"].values())
    assert search.loss == pytest.approx(case["independent_value"], rel=1e-9)
