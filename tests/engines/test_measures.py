"""Risk and utility on an engine: counted over all rows, or on a sample of persons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.engines import _measures, assess
from shoal.errors import DoesNotApply, InputError, RequirementNotMet
from shoal.measurement import Measurement
from shoal.workflow import Limit
from shoal.workflow import protect as in_memory

from .parts.tables import people, written

QUASI = ["alter", "Wohn ort", "member"]
ROLES = sh.Roles(
    quasi_identifiers=QUASI, sensitive=["ill"], insensitive=["born", "wage"], target="ill"
)
COARSER = sh.Generalize(
    "full-domain",
    k=5,
    suppression_limit=0.05,
    hierarchies={"alter": sh.Hierarchy.intervals([10, 30])},
)
MOVED = sh.Pram(keep=0.6, columns=["Wohn ort"])
EXACT = ["total_variation", "suppressed_cells", "normalized_certainty_penalty", "distance_linkage"]

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def plan(*steps, require=(), roles=ROLES) -> sh.Plan:
    return sh.Plan(list(steps), require=list(require), roles=roles)


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return people(3000)


def test_all_rows_give_what_memory_gives(frame: pl.DataFrame, tmp_path: Path) -> None:
    asked = plan(COARSER, sh.Round(base=100, columns=["wage"]))
    here = in_memory(sh.Table(frame, ROLES), asked)
    there = sh.protect(written(frame, tmp_path), asked, engine="duckdb")
    for name in [*EXACT, "skewness", "homogeneity"]:
        assert there.after[name].value == pytest.approx(here.after[name].value, rel=1e-6), name
    assert there.after["attribute_inference"].interval is not None
    assert there.after["predictive_performance"].value > 0
    assert "sampled_persons" not in there.after["total_variation"].details


def test_a_sample_has_intervals_that_hold_what_all_rows_give(
    frame: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_measures, "SAMPLED", 900)
    asked = plan(COARSER, MOVED)
    here = in_memory(sh.Table(frame, ROLES), asked)
    there = sh.protect(written(frame, tmp_path), asked, engine="duckdb")
    for name in ("distance_linkage", "normalized_certainty_penalty", "attribute_inference"):
        found = there.after[name]
        assert found.interval is not None
        assert 500 < found.details["sampled_persons"] < 1300
        assert any("sample of" in warning for warning in found.warnings)
    link = there.after["distance_linkage"]
    # among all released records, not among those of the sample
    assert link.details["records"] == there.after.rows
    assert link.value == pytest.approx(here.after["distance_linkage"].value, abs=0.03)
    assert any("sample of" in note for note in there.after.notes)


def test_a_requirement_on_a_sample_is_judged_by_its_worse_end(
    frame: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(frame, tmp_path)
    monkeypatch.setattr(_measures, "SAMPLED", 900)
    loose = plan(COARSER, require=[Limit("distance_linkage", at_most=0.5)])
    release = sh.protect(source, loose, engine="duckdb")
    claim = release.claims[0]
    low, high = release.after["distance_linkage"].interval
    assert low < claim.measured < high
    assert "worse end" in claim.sentence
    folder = release.save(tmp_path / "release")
    assert "on a sample of about" in (folder / "public" / "report.html").read_text("utf-8")
    assert [c.status for c in sh.verify(folder).claims] == ["skipped"]
    assert [c.status for c in sh.verify(folder, source=source).claims] == ["passed"]
    found = assess(folder, original=source)
    assert found["distance_linkage"].value == claim.measured
    seen = Measurement("distance_linkage", 0.1, (0.05, 0.15), details={"sampled_persons": 900})
    monkeypatch.setattr(_measures.Comparison, "_linked", lambda self, options: seen)
    between = plan(COARSER, require=[Limit("distance_linkage", at_most=0.12)])
    with pytest.raises(RequirementNotMet, match="sample of 900 persons"):
        sh.protect(source, between, engine="duckdb")
    counted = plan(COARSER, require=[Limit("total_variation", at_most=0.2)])
    assert sh.protect(source, counted, engine="duckdb").claims[0].holds


@pytest.mark.parametrize("unit", ["row", "patient"])
def test_who_is_in_a_sample(unit: str, frame: pl.DataFrame, tmp_path: Path) -> None:
    """The most certain class and the highest risk are those of memory on the same sample."""
    owners = pl.Series(np.random.default_rng(3).integers(0, 700, len(frame)))
    whole = frame.with_columns(patient=owners)
    left = ["born", "wage", *(["patient"] if unit == "row" else [])]
    roles = ROLES.replacing(unit=unit, insensitive=left)
    source = written(whole, tmp_path)
    asked = plan(COARSER, sh.Sample(fraction=0.4), roles=roles)
    there = sh.protect(source, asked, engine="duckdb")
    folder = there.save(tmp_path / "release")
    released = pl.read_parquet(folder / "public" / "data" / "*.parquet")
    population = sh.protect(source, plan(COARSER, roles=roles), engine="duckdb")
    everybody = population.masked.frame.pl()
    if unit == "row":
        f = released.group_by(QUASI).len()
        both = f.join(everybody.group_by(QUASI).len(), on=QUASI, nulls_equal=True)
        shares = both["len"] / both["len_right"]
        assert there.after["certainty"].value == pytest.approx(shares.max())
        assert there.after["journalist_risk"].value == pytest.approx(1 / both["len_right"].min())
    else:
        assert 0.4 <= there.after["certainty"].value <= 1


ROUNDED = sh.Round(base=400, columns=["wage"])


@pytest.mark.parametrize("step", [COARSER, sh.Generalize("mondrian", k=8), ROUNDED])
@pytest.mark.parametrize("unit", ["row", "patient"])
def test_attacks_on_single_records(
    unit: str, step: sh.Masker, frame: pl.DataFrame, tmp_path: Path, monkeypatch
) -> None:
    """Conditions are counted over all persons, so memory finds the same ones."""
    owners = pl.Series(np.random.default_rng(3).integers(0, 900, len(frame)))
    left = ["born", *(["patient"] if unit == "row" else [])]
    more = ["wage"] if step is ROUNDED else []
    left += [name for name in ("wage",) if name not in more]
    roles = ROLES.replacing(unit=unit, insensitive=left, quasi_identifiers=[*QUASI, *more])
    whole = frame.with_columns(patient=owners)
    names = ["singling_out", "suda", "linkability"]
    require = [Limit(name, at_most=1.0) for name in names]
    source = written(whole, tmp_path)
    release = sh.protect(source, plan(step, require=require, roles=roles), engine="duckdb")
    place = release.save(tmp_path / "release")
    masked = pl.read_parquet(place / "public" / "data" / "*.parquet")
    if unit == "patient":
        private = pl.read_parquet(place / "private" / "records" / "*.parquet")
        masked = masked.with_columns(private["unit: patient"].alias("patient"))
    here = sh.Table(whole, roles), sh.Table(masked, roles)
    for claim in release.claims:
        info = claim.requirement.info
        found = info.take(*here)
        tolerance = 0.02 if info.name == "linkability" else 1e-9  # one of each person's rows
        assert claim.measured == pytest.approx(found.value, abs=tolerance), info.name
    assert (release.claims[0].measured > 0.05) == (step is ROUNDED)
    assert {check.status for check in sh.verify(place, source=source).claims} == {"passed"}
    monkeypatch.setattr(_measures, "SAMPLED", 900)
    sampled = assess(place, original=source, measures=names)
    assert sampled["singling_out"].value == release.claims[0].measured
    low, high = sampled["linkability"].interval
    assert low - 0.02 <= release.claims[2].measured <= high + 0.02
    assert "sampled_persons" in sampled["linkability"].details


def test_columns_that_only_records_tell_are_not_passed_over(frame, tmp_path: Path) -> None:
    names = {"Bern": "a", "Jena": "a", "Ærø": "b", "São Tomé": "b", "京都": "b"}
    rows = [[town, one, "*"] for town, one in names.items()]
    levels = {"Wohn ort": sh.Hierarchy.from_rows(rows)}
    step = sh.Generalize(k=2, hierarchies=levels, levels={"Wohn ort": 1}, columns=["Wohn ort"])
    asked = plan(step, require=[Limit("singling_out", at_most=0.9)])
    with pytest.raises(DoesNotApply, match="Wohn ort"):
        sh.protect(written(frame, tmp_path), asked, engine="duckdb")


def test_what_is_not_measured_is_refused_first(frame: pl.DataFrame, tmp_path: Path) -> None:
    source = written(frame, tmp_path)
    for name, options in (
        ("singling_out", {"mode": "univariate"}),
        ("membership_inference", {}),
        ("attribute_inference", {"attack": "distance"}),
    ):
        asked = plan(COARSER, require=[Limit(name, at_most=0.5, options=options)])
        with pytest.raises(InputError, match="on an engine"):
            sh.protect(source, asked, engine="duckdb")


def test_whole_persons_are_in_the_sample(
    frame: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = pl.Series(np.random.default_rng(3).integers(0, 700, len(frame)))
    roles = ROLES.replacing(unit="patient")
    source = written(frame.with_columns(patient=owners), tmp_path)
    monkeypatch.setattr(_measures, "SAMPLED", 900)
    asked = plan(COARSER, roles=roles, require=[Limit("distance_linkage", at_most=0.6)])
    there = sh.protect(source, asked, engine="duckdb")
    found = there.after["distance_linkage"]
    assert 150 < found.details["sampled_persons"] < 280
    here = in_memory(sh.Table(frame.with_columns(patient=owners), roles), asked)
    assert found.value == pytest.approx(here.after["distance_linkage"].value, abs=0.05)
