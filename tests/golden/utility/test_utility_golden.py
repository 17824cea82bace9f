"""Published numbers of utility measures, through the measures themselves."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Microaggregate, Roles, Table
from shoal.errors import ShoalWarning
from shoal.utility import (
    average_class_size,
    correlation_difference,
    discernibility,
    generalization_intensity,
    mutual_information_loss,
    nonuniform_entropy,
    sse_sst,
    suppressed_records,
)

CENSUS = (
    "AFNLWGT AGI EMCONTRB FEDTAX PTOTVAL STATETAX "
    "TAXINC POTHVAL INTVAL PEARNVAL FICA WSALVAL ERNVAL"
).split()
EIA = (
    "RESREVENUE RESSALES COMREVENUE COMSALES INDREVENUE INDSALES OTHREVENUE OTHRSALES "
    "TOTREVENUE TOTSALES"
).split()


@pytest.fixture(scope="module")
def census(shared_data):
    frame = pl.read_parquet(shared_data / "casc" / "census.parquet").select(CENSUS)
    roles = Roles(quasi_identifiers=CENSUS[:6], sensitive=CENSUS[6:])
    return Table(frame.cast(pl.Float64), roles)


@pytest.fixture(scope="module")
def eia(shared_data):
    frame = pl.read_parquet(shared_data / "casc" / "eia.parquet")
    names = ["UTILITYID", *EIA]
    return Table(frame.select(names).cast(pl.Float64), Roles(quasi_identifiers=EIA))


def averaged(table, columns, k, *, standardize):
    return Microaggregate(k=k, standardize=standardize, columns=columns).fit_transform(table)


@pytest.mark.parametrize(
    ("k", "mean", "sd"),
    [(5, 0.01816, 0.01731), (25, 0.08516, 0.07822), (300, 0.19669, 0.18474)],
)
def test_correlations_of_eia(eia, k, mean, sd):
    """Soria-Comas and Domingo-Ferrer (2012), Table XI: .018/.017, .085/.078 and .2/.18.

    Their 55 cells are the 45 pairs and the diagonal; more digits as computed once.
    """
    masked = averaged(eia, EIA, k, standardize=False)
    found = correlation_difference(eia, masked, columns=EIA)
    cells = found.details["cells"]
    assert cells["count"] == 55
    assert cells["mean"] == pytest.approx(mean, abs=6e-6)
    assert cells["sd"] == pytest.approx(sd, abs=6e-6)
    assert found.details["pairs"] == 45
    assert found.value == pytest.approx(cells["mean"] * 55 / 45)


@pytest.mark.parametrize(
    ("k", "mean", "sd", "printed"),
    [(5, 0.06706, 0.06594, 0.055), (100, 0.20674, 0.14256, 0.17)],
)
def test_correlations_of_census(census, k, mean, sd, printed):
    """Table X of the same paper, over the 63 pairs with a confidential column.

    The paper's means are over 76 cells: these pairs and the diagonal.
    """
    masked = averaged(census, CENSUS, k, standardize=False)
    found = correlation_difference(census, masked, pairs="confidential")
    assert found.details["pairs"] == 63
    assert found.details["cells"]["count"] == 76
    assert found.value == pytest.approx(mean, abs=1e-4)
    assert found.details["spread"] == pytest.approx(sd, abs=1e-4)
    assert found.details["cells"]["mean"] == pytest.approx(printed, rel=0.07)


@pytest.mark.parametrize(("k", "loss"), [(3, 5.6922), (4, 7.4947), (5, 9.0884), (10, 14.1559)])
def test_squared_error_of_census(census, k, loss):
    """MDAV on standardised columns, 100 × SSE / SST; computed once, and known from the
    literature on microaggregation."""
    masked = averaged(census, CENSUS, k, standardize=True)
    assert sse_sst(census, masked).value == pytest.approx(loss, abs=6e-5)


@pytest.mark.parametrize(("k", "loss"), [(3, 0.4829), (10, 3.8397)])
def test_squared_error_of_eia(eia, k, loss):
    masked = averaged(eia, ["UTILITYID", *EIA], k, standardize=True)
    assert sse_sst(eia, masked).value == pytest.approx(loss, abs=6e-5)


def test_mutual_information_of_six_rows():
    """Worked by hand: I(color; shape) .174416, I(color; size) .462098, I(shape; size) .318257."""
    table = Table(
        pl.DataFrame({"color": list("rrggbb"), "shape": list("ssstts"), "size": list("lllhhh")})
    )
    blind = Table(pl.DataFrame({"color": ["x"] * 6, "shape": ["x"] * 6, "size": ["x"] * 6}))
    found = mutual_information_loss(table, blind)
    told = found.details["original"]
    assert told["color"] == pytest.approx((0.174416 + 0.462098) / 2, abs=1e-6)
    assert told["shape"] == pytest.approx((0.174416 + 0.318257) / 2, abs=1e-6)
    assert told["size"] == pytest.approx((0.462098 + 0.318257) / 2, abs=1e-6)
    assert found.value == found.baseline == pytest.approx(0.318257, abs=1e-6)
    assert found.details["relative"] == 1.0


@pytest.fixture(scope="module")
def oracles(shared_data):
    file = shared_data.parent / "oracles" / "arx_adult.json"
    if not file.is_file():
        pytest.skip("the oracles are not beside the public tables")
    return {case["id"]: case for case in json.loads(file.read_text())["cases"]}


def generalized(case, shared_data, **options):
    frame = pl.read_parquet(shared_data / case["dataset"])
    table = Table(frame, Roles(quasi_identifiers=case["quasi_identifiers"]))
    trees = {name: str(shared_data / file) for name, file in case["hierarchies"].items()}
    step = Generalize(hierarchies=trees, levels=case["expected_levels"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return table, step.fit_transform(table), trees


def test_nonuniform_entropy_of_arx(oracles, shared_data):
    """ARX 3.9.2 on Adult, 30,162 records, k = 5 without suppression: 407,289.54 bits."""
    case = oracles["adult_k5_s0_entropy"]
    table, masked, trees = generalized(case, shared_data, k=5)
    found = nonuniform_entropy(table, masked)
    assert found.details["bits"] == pytest.approx(case["expected_loss"], rel=1e-9)
    assert 0 < found.value < 1
    intensity = generalization_intensity(table, masked, hierarchies=trees)
    for name, level in case["expected_levels"].items():
        assert intensity.details["levels"][name][level] == 1.0
    assert intensity.details["elsewhere"] == dict.fromkeys(trees, 0)


def test_discernibility_of_arx(oracles, shared_data):
    """ARX on Adult, k = 5 and t = 0.2, without suppression."""
    case = oracles["adult_t0.2equal_k5_s0_dm"]
    table, masked, _ = generalized(case, shared_data, k=5)
    found = discernibility(table, masked)
    assert found.details["penalty"] == pytest.approx(case["expected_loss"], rel=1e-9)
    assert found.value == pytest.approx(case["expected_loss"] / 30_162**2)


def test_discernibility_of_arx_over_all_classes(oracles, shared_data):
    """ARX's monotonic variant counts the classes that it suppresses like all others."""
    case = oracles["adult_t0.2ordered_k5_s0.04_dm"]
    assert case["metric"] == "discernibility_monotonic"
    frame = pl.read_parquet(shared_data / case["dataset"])
    table = masked = Table(frame, Roles(quasi_identifiers=case["quasi_identifiers"]))
    for name, level in case["expected_levels"].items():
        tree = Hierarchy.from_csv(shared_data / case["hierarchies"][name])
        masked = tree.generalize(masked, name, level)
    penalty = discernibility(table, masked).details["penalty"]
    assert penalty == pytest.approx(case["expected_loss"], rel=1e-9)


@pytest.mark.parametrize("suppressed", ["removed", "kept"])
def test_suppressed_records_look_like_everybody(oracles, shared_data, suppressed):
    """Whether they stay as stars or leave; classes as polars counts them."""
    case = oracles["adult_k5_s0.04_entropy"]
    table, masked, _ = generalized(
        case, shared_data, k=5, suppression_limit=0.04, suppressed=suppressed
    )
    names = case["quasi_identifiers"]
    kept = masked.frame.cast(pl.String).filter(~pl.all_horizontal(pl.col(names) == "*"))
    sizes = kept.group_by(names).len()["len"].to_list()
    found = discernibility(table, masked)
    assert found.details["suppressed"] == 906
    assert found.details["penalty"] == sum(size**2 for size in sizes) + 906 * 30_162


def test_discernibility_and_class_size_with_suppression(oracles, shared_data):
    """ARX on Adult, k = 5 with at most 4 % suppressed: classes and records as a brute force
    counted them."""
    case = oracles["adult_k5_s0.04_entropy"]
    known = case["confirmed"]["independent_numpy_brute_force"]
    table, masked, _ = generalized(case, shared_data, k=5, suppression_limit=0.04)
    found = average_class_size(table, masked, k=5)
    assert found.details == {
        "classes": known["kept_classes"],
        "suppressed": known["suppressed_rows"],
    }
    assert found.value == pytest.approx(30_162 / (known["kept_classes"] + 1) / 5)
    assert suppressed_records(table, masked).value == known["suppressed_rows"] / 30_162
    sizes = masked.classes.sizes
    assert np.count_nonzero(sizes < 5) == 0
