"""The ten optima on Adult that ARX finds and a brute force confirmed, through ``Generalize``."""

from __future__ import annotations

import json
import warnings

import polars as pl
import pytest

from shoal import Generalize, LDiversity, Roles, Table, TCloseness
from shoal.errors import ShoalWarning

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


@pytest.fixture(scope="module")
def oracles(shared_data):
    file = shared_data.parent / "oracles" / "arx_adult.json"
    if not file.is_file():
        pytest.skip("the oracles are not beside the public tables")
    return {case["id"]: case for case in json.loads(file.read_text())["cases"]}


def model_of(criterion, folder):
    name = criterion["model"]
    if name.endswith("l-diversity"):
        return LDiversity(criterion["l"], kind=name.removesuffix("-l-diversity"))
    distance = criterion["distance"].split()[0]
    tree = str(folder / "occupation.csv") if distance == "hierarchical" else None
    column = "occupation" if tree else None
    return TCloseness(criterion["t"], distance=distance, hierarchy=tree, column=column)


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_of_arx(name, oracles, shared_data):
    case = oracles[name]
    secret = case["sensitive_attribute"]
    columns = case["quasi_identifiers"]
    frame = pl.read_parquet(shared_data / case["dataset"])
    table = Table(frame, Roles(quasi_identifiers=columns, sensitive=[secret] if secret else []))
    models = [c for c in case["criteria"] if c["model"] != "k-anonymity"]
    sizes = [c["k"] for c in case["criteria"] if c["model"] == "k-anonymity"]
    folder = shared_data / "hierarchies" / "adult_arx"
    step = Generalize(
        k=sizes[0] if sizes else None,
        models=[model_of(c, folder) for c in models] or None,
        hierarchies={
            column: str(shared_data / file) for column, file in case["hierarchies"].items()
        },
        suppression_limit=case["suppression_limit"],
        loss=case["metric"].replace("_", "-"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        masked = step.fit_transform(table)
    found = case["confirmed"]["independent_numpy_brute_force"]
    assert step.levels_ == case["expected_levels"]
    assert step.loss_ == pytest.approx(case["expected_loss"], rel=1e-9)
    assert step.suppressed_ == step.removed_ == found["suppressed_rows"]
    assert step.optimal_
    assert masked.classes.count == found["kept_classes"]
    assert masked.classes.k == found["min_kept_class"]
