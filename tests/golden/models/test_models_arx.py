"""Privacy models against ARX: records that it suppresses, and shares that it estimates.

The cases are those of the shared oracles: at the levels that ARX chose, the records in classes
that violate a criterion are as many as it suppressed.
"""

from __future__ import annotations

import json
from functools import reduce

import numpy as np
import polars as pl
import pytest

from shoal import (
    AverageRisk,
    KAnonymity,
    LDiversity,
    PopulationUniqueness,
    Roles,
    Table,
    TCloseness,
)


@pytest.fixture(scope="module")
def oracles(shared_data):
    path = shared_data.parent / "oracles" / "arx_adult.json"
    if not path.is_file():
        pytest.skip("the oracles are not beside the public tables")
    return {case["id"]: case for case in json.loads(path.read_text("utf-8"))["cases"]}


@pytest.fixture(scope="module")
def adult(shared_data):
    return pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")


class FromFile:
    """The nodes above the values of a column, read from a file of ARX."""

    def __init__(self, path):
        self.rows = pl.read_csv(path, separator=";", has_header=False, infer_schema=False).rows()

    def codes(self, table, column):
        above = {row[0]: row for row in self.rows}
        chosen = [above[value] for value in table.codes(column).levels.to_list()]
        levels = zip(*chosen, strict=True)
        self.maps = np.array([np.unique(level, return_inverse=True)[1] for level in levels])
        return self


def model_of(criterion, hierarchy):
    name, column = criterion["model"], criterion.get("attribute")
    if name == "k-anonymity":
        return KAnonymity(criterion["k"])
    if name == "distinct-l-diversity":
        return LDiversity(criterion["l"], column=column)
    if name == "entropy-l-diversity":
        return LDiversity(criterion["l"], kind="entropy", column=column)
    assert name == "t-closeness"
    distance = criterion["distance"].split()[0]
    tree = hierarchy if distance == "hierarchical" else None
    return TCloseness(criterion["t"], distance=distance, column=column, hierarchy=tree)


CASES = [
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


@pytest.mark.parametrize("case", CASES)
def test_as_many_records_violate_as_arx_suppresses(case, oracles, adult, shared_data):
    oracle = oracles[case]
    files = {name: shared_data / path for name, path in oracle["hierarchies"].items()}
    frame = adult.with_columns(pl.col("age").cast(pl.String))
    for name, level in oracle["expected_levels"].items():
        rows = pl.read_csv(files[name], separator=";", has_header=False, infer_schema=False).rows()
        frame = frame.with_columns(pl.col(name).replace_strict({r[0]: r[level] for r in rows}))
    secret = oracle["sensitive_attribute"]
    roles = Roles(
        quasi_identifiers=oracle["quasi_identifiers"], sensitive=[secret] if secret else []
    )
    table = Table(frame, roles)
    tree = FromFile(shared_data / "hierarchies" / "adult_arx" / "occupation.csv")
    models = [model_of(criterion, tree) for criterion in oracle["criteria"]]
    violating = reduce(np.logical_or, [model.violations(table) for model in models])
    found = oracle["confirmed"]["independent_numpy_brute_force"]
    assert violating.sum() == found["suppressed_rows"]
    kept = table.keep(~violating)
    assert kept.classes.count == found["kept_classes"]
    assert kept.classes.k == found["min_kept_class"]


def test_risks_of_a_whole_table(oracles, adult):
    expected = oracles["adult_risk"]["expected"]
    table = Table(adult, Roles(quasi_identifiers=adult.columns))
    average = AverageRisk(0.5).level(table)
    assert average == pytest.approx(expected["average_prosecutor_risk_input"], abs=1e-12)
    estimates = expected["population_uniqueness_dankar"]
    for fraction, key in ((0.01, "sampling_fraction 0.01"), (0.2, "0.2"), (1.0, "1.0")):
        level = PopulationUniqueness(0.5, fraction).level(table)
        assert level == pytest.approx(estimates[key], abs=1e-6)
    pitman, zayatz = (float(words.split()[0]) for words in estimates["0.1"].split(" or "))
    assert PopulationUniqueness(0.5, 0.1).level(table) == pytest.approx(pitman, abs=1e-6)
    by_zayatz = PopulationUniqueness(0.5, 0.1, estimator="zayatz")
    assert by_zayatz.level(table) == pytest.approx(zayatz, abs=1e-6)
