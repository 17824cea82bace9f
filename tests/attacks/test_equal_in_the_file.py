"""Values that are one class are written in one way, so that readers see the same classes."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections import Counter

import polars as pl
import pytest

from shoal import (
    Generalize,
    KAnonymity,
    LDiversity,
    Plan,
    Roles,
    Suppress,
    Swap,
    Table,
    TopBottomCode,
    protect,
    verify,
)
from shoal.errors import ShoalWarning

pytestmark = pytest.mark.filterwarnings("ignore", category=ShoalWarning)

BALANCE = [0.0, -0.0, 0.0, 0.0, 1.5, 1.5]
DIAGNOSIS = ["flu", "hiv", "cold", "flu", "cold", "flu"]
ROLES = Roles(quasi_identifiers=["balance"], sensitive=["diagnosis"])

STEPS = {
    "suppress": Suppress(min_class_size=2),
    "swap": Swap(k=2, columns=["diagnosis"]),
    "top and bottom": TopBottomCode(fence=3, columns=["balance"]),
    "mondrian": Generalize(k=2, algorithm="mondrian"),
}


def table():
    return Table(pl.DataFrame({"balance": BALANCE, "diagnosis": DIAGNOSIS}), ROLES)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_a_negative_zero_is_no_class_of_its_own(tmp_path, step, format):
    """One row of -0.0 and rows of 0.0: k = 2 was claimed, but the row was unique."""
    release = protect(table(), Plan([step], require=[KAnonymity(2)]))
    out = release.save(tmp_path / "out", format=format)
    with (out / "public" / f"data.{format}").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="," if format == "csv" else "\t"))
    assert min(Counter(row["balance"] for row in rows).values()) >= 2
    assert verify(out, original=table()).holds


def test_k_and_l_of_the_text(tmp_path):
    plan = Plan([Suppress(min_class_size=2)], require=[KAnonymity(2), LDiversity(2)])
    out = protect(table(), plan).save(tmp_path / "out", format="csv")
    with (out / "public" / "data.csv").open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    for value in {balance for balance, _ in rows}:
        assert len({diagnosis for balance, diagnosis in rows if balance == value}) >= 2


@pytest.mark.parametrize("other", ["-0.0", "0", "0.00"])
def test_verify_counts_what_is_written_not_what_it_means(tmp_path, other):
    """The file as version 0.1 wrote it, with checksums that fit: its k is 1."""
    plan = Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)])
    out = protect(table(), plan).save(tmp_path / "out", format="csv")
    shutil.rmtree(out / "private")
    data, facts = out / "public" / "data.csv", out / "public" / "release.json"
    data.write_text(data.read_text().replace("0.0,", f"{other},", 1))
    told = json.loads(facts.read_text())
    told["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    facts.write_text(json.dumps(told))
    found = verify(out)
    assert not found.holds
    failed = [check.name for check in found.checks if check.status == "failed"]
    assert failed == ["class sizes counted twice"]
