"""Samples of generalized tables against the raw original: in memory, and from a release folder."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import (
    Generalize,
    Limit,
    Microaggregate,
    Plan,
    Roles,
    Sample,
    Table,
    assess,
    protect,
    verify,
)
from shoal.workflow import read_release

ROLES = Roles(quasi_identifiers=["age", "town"], sensitive=["ill"])
PUBLIC = {"data.csv", "release.json", "report.html"}


def people(rows=200):
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "town": rng.choice(list("abcde"), rows),
            "ill": rng.choice(["flu", "cold"], rows),
        }
    )
    return Table(frame, ROLES)


def coarser(algorithm):
    """With time to refine until nothing is gained, so that a busy machine finds the same."""
    return Generalize(algorithm=algorithm, k=5, **({"seconds": 60} if algorithm == "local" else {}))


def plan(algorithm, *, first):
    steps = [coarser(algorithm), Sample(fraction=0.4)]
    steps = steps[::-1] if first else steps
    toml = Plan(steps, require=[Limit("certainty", at_most=1.0)]).to_toml()
    return Plan.from_toml(toml)


@pytest.mark.parametrize("algorithm", ["mondrian", "local"])
@pytest.mark.parametrize("first", [False, True])
def test_plan_protect_assess(algorithm, first, tmp_path):
    table = people()
    release = protect(table, plan(algorithm, first=first))
    found = assess(release.masked, original=table, measures=["certainty", "journalist_risk"])
    assert found.failed == {}
    if not first:  # the same generalization without the sample
        coarse = coarser(algorithm).fit_transform(table)
        sizes = Counter(coarse.frame.select("age", "town").iter_rows())
        rows = release.masked.frame.select("age", "town").iter_rows()
        assert (1 / found["journalist_risk"].per_record).tolist() == [sizes[row] for row in rows]
    assert found["certainty"].value == release.claims[0].measured
    assert release.after["certainty"].value == found["certainty"].value
    out = release.save(tmp_path / "out", format="csv")
    masked, original = read_release(out, original=Table(table.frame))
    again = assess(masked, original=original, measures=["certainty", "journalist_risk"])
    assert again.to_dict()["measurements"] == found.to_dict()["measurements"]
    for name in ("certainty", "journalist_risk"):
        np.testing.assert_array_equal(again[name].per_record, found[name].per_record)
    checked = verify(out, original=Table(table.frame))
    assert checked.holds
    assert {c.name: c.status for c in checked.checks}["claim max_certainty"] == "passed"


def test_a_claim_that_only_the_record_can_prove(tmp_path):
    """Of centroids nothing tells who else would be near them."""
    steps = [Microaggregate(k=5, dissimilarity="gower"), Sample(fraction=0.4)]
    release = protect(people(), Plan(steps, require=[Limit("certainty", at_most=1.0)]))
    out = release.save(tmp_path / "out", format="csv")
    checked = verify(out, original=Table(people().frame))
    assert {c.name: c.status for c in checked.checks}["claim max_certainty"] == "passed"


def test_who_was_there_is_in_the_private_half_alone(tmp_path):
    out = protect(people(), plan("mondrian", first=False)).save(tmp_path / "out", format="csv")
    assert {path.name for path in (out / "public").iterdir()} == PUBLIC
    assert b"sampling" not in (out / "public" / "release.json").read_bytes()
    path = out / "private" / "sampling.parquet"
    assert path.stat().st_mode & 0o077 == 0
    kept = pl.read_parquet(path)
    assert kept["row_key"].to_list() == list(range(200))
    assert kept.columns == ["row_key", "code_0", "code_1"]
    assert all(dtype.is_integer() for dtype in kept.dtypes), "numbers, never a value"
    audit = json.loads((out / "private" / "audit.json").read_text("utf-8"))
    assert audit["sampling"]["columns"] == ["age", "town"]
    path.unlink()
    kept.with_columns(code_0=pl.lit(0)).write_parquet(path)
    path.chmod(0o600)
    failed = [check for check in verify(out).checks if check.status == "failed"]
    assert [check.detail for check in failed] == ["sampling.parquet was changed"]


def test_nothing_is_kept_where_nothing_was_sampled_last(tmp_path):
    for number, first in enumerate((True, None)):
        steps = plan("mondrian", first=bool(first)) if first else Plan([Generalize(k=5)])
        out = protect(people(), steps).save(tmp_path / str(number), format="csv")
        assert not (out / "private" / "sampling.parquet").exists()
        audit = json.loads((out / "private" / "audit.json").read_text("utf-8"))
        assert audit["sampling"] is None


def test_the_record_names_no_value():
    masked = Sample(fraction=0.5).fit_transform(people())
    assert repr(masked.sampling) == "Sampling(columns=('age', 'town'), rows=200)"
