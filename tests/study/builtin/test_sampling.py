"""The study of samples before and after generalization, and what studies measure of a sample."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.study import Results, Row, Study, built_in
from shoal.study._measures import SHARES, sampled_chi_square, sampled_risk
from shoal.study.builtin import _sampling
from shoal.study.builtin._builtin import paper
from shoal.study.data._tables import TableSource
from shoal.study.running._runner import _Masked
from shoal.workflow._plan import in_released_domain


@pytest.fixture
def acs(tmp_path, monkeypatch):
    """A small table in the shape of ACS income, with hierarchies, in the folder of SHOAL_DATA."""
    rng = np.random.default_rng(3)
    rows = 1200
    age = rng.integers(18, 66, rows)
    frame = pl.DataFrame(
        {
            "AGEP": age,
            **{
                name: rng.choice(["1", "2", "3"], rows, p=[0.6, 0.3, 0.1])
                for name in ("COW", "SCHL", "MAR", "SEX", "RAC1P", "POBP", "OCCP")
            },
            "WKHP": rng.integers(10, 60, rows),
            "PINCP": age + rng.normal(0, 10, rows) > 48,
            "ST": "x",
        }
    )
    (tmp_path / "acs").mkdir()
    frame.write_parquet(tmp_path / "acs" / "acs_income_2018.parquet")
    folder = tmp_path / "hierarchies" / "acs_income_2018"
    folder.mkdir(parents=True)
    ages = [f"{a};[{a // 10 * 10},{a // 10 * 10 + 9}];*" for a in range(18, 66)]
    (folder / "AGEP.csv").write_text("\n".join(ages))
    for name in frame.columns[1:8]:
        (folder / f"{name}.csv").write_text("1;1;*\n2;other;*\n3;other;*")
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    return tmp_path


def test_the_designs_have_the_size_of_their_grids():
    quick, full = (built_in("sampling").design(preset) for preset in ("quick", "full"))
    assert len(quick.variants) == 2 * 3 * 2 * 2
    assert len(full.variants) == 2 * 3 * 3 * 4
    assert quick.tables[0].rows == 40_000
    assert full.tables[0].rows is None
    many = [v.name for v in quick.variants if v.seeds != 1]
    assert many == ["post random sample.fraction=0.5 generalize.k=5"]
    for variant in quick.variants:
        order = [step["method"] for step in variant.steps]
        first = "sample" if variant.family.startswith("pre") else "generalize"
        assert order[0] == first
        assert len(order) == 2


def test_a_small_run_ends_with_a_verdict(acs, tmp_path, monkeypatch):
    for name, value in (("fractions", [0.5]), ("k", [5]), ("learners", 300)):
        monkeypatch.setitem(paper("sampling")["presets"]["quick"], name, value)
    monkeypatch.setitem(paper("sampling"), "draws", 1)
    outcome = sh.run_study("sampling", tmp_path / "out", jobs=1)
    assert outcome.run.tasks == 6 * 6
    by_name = {finding.name: finding for finding in outcome.conclusion.findings}
    assert by_name["post stratified, s = 0.5, k = 5: highest certainty"].measured <= 0.5
    claims = {claim.text: claim for claim in outcome.conclusion.claims}
    assert claims["In a stratified sample, no certainty exceeds the share that is sampled."].holds
    assert claims["A sample of a k-anonymous table is k-anonymous."].holds is False
    assert len(outcome.conclusion.figures) == 6
    row = next(iter(outcome.results.where(family="post random", measure="sampled_risk")))
    assert set(row.facts["steps"][0]["levels"]) == set(verdict_columns())
    assert json.dumps(outcome.to_dict(), allow_nan=False)


def verdict_columns():
    return ("AGEP", "COW", "SCHL", "MAR", "SEX", "RAC1P", "POBP", "OCCP")


def table(sizes, target=None):
    frame = {"age": np.repeat(np.arange(len(sizes)) + 20, sizes)}
    roles = sh.Roles(quasi_identifiers=["age"], target=None if target is None else "ill")
    return sh.Table(pl.DataFrame(frame | ({} if target is None else {"ill": target})), roles)


def test_sampled_risk_counts_everybody_by_hand():
    people = table([4, 6])
    kept = np.array([1, 1, 1, 0, 1, 1, 0, 0, 0, 0], bool)
    found = sampled_risk(people, people.keep(kept))
    # three of four, and two of six
    assert found.value == pytest.approx((3 / 4 + 2 / 6) / 5)
    details = found.details
    assert details["highest_certainty"] == 0.75
    assert details["certainty_quantiles"][0] == pytest.approx(1 / 3)
    assert details["certainty_quantiles"][-1] == 0.75
    assert details["journalist_quantiles"][0] == pytest.approx(1 / 6)
    assert details["journalist_quantiles"][-1] == 0.25
    assert len(details["journalist_quantiles"]) == len(SHARES) == 201
    assert details["released"] == 0.5
    assert details["smallest_class"] == 2
    assert details["records_below"] == {"5": 1.0, "10": 1.0, "20": 1.0, "50": 1.0}


def test_people_whose_value_nobody_in_the_sample_has_are_counted_by_the_levels():
    """Learned from the release alone, F would be too small and the certainty too high."""
    frame = pl.DataFrame({"town": ["a", "a", "b", "c"] * 2})
    people = sh.Table(frame, sh.Roles(quasi_identifiers=["town"]))
    plan = sh.Plan([sh.Generalize(k=8)])
    with pytest.warns(sh.errors.NothingLeftWarning):
        whole, records = plan.apply(people)
    masked = whole.keep(np.array([1, 1, 0, 0, 1, 1, 0, 0], bool))
    assert sampled_risk(people, masked).value == pytest.approx(1 / 4)
    exact = sampled_risk(people, masked, population=in_released_domain(records, people))
    assert exact.value == pytest.approx(1 / 8)
    assert exact.details["highest_certainty"] == 0.5


def test_chi_square_is_that_of_the_released_level():
    frame = pl.DataFrame({"town": ["a", "b", "c", "d"] * 5, "sex": ["f", "m"] * 10})
    people = sh.Table(frame, sh.Roles(quasi_identifiers=["town", "sex"]))
    plan = sh.Plan([sh.Generalize(k=10, columns=["town"])])
    with pytest.warns(sh.errors.NothingLeftWarning):
        masked, records = plan.apply(people)
    kept = masked.keep(np.arange(20) < 10)
    served = in_released_domain(records, people)
    found = sampled_chi_square(people, kept, population=served, columns=["town", "sex"])
    assert found.details["not_tested"] == ["town"]  # nothing of it is left that could differ
    assert found.value == pytest.approx(0.0)
    assert sampled_chi_square(people, kept, columns=["town"]).value > 5


def test_rows_are_put_aside_before_anything_is_masked(people_file):
    whole = TableSource("people", str(people_file), target="ill")
    source = TableSource("people", str(people_file), target="ill", held_out=0.2)
    table, apart = source.load_divided()
    assert (len(table), len(apart)) == (240, 60)
    assert not set(table.row_key.tolist()) & set(apart.row_key.tolist())
    assert source.to_dict() != whole.to_dict()
    assert whole.load_divided()[1] is None
    with pytest.raises(sh.errors.InputError, match=r"'held_out' .* a number > 0 and < 1"):
        TableSource.from_dict({"path": "x.csv", "held_out": 2})


def test_true_stands_for_a_table_that_only_the_runner_has(people_file):
    given = {
        "tables": [{"path": str(people_file), "target": "ill", "held_out": 0.2}],
        "variants": [{"name": "round", "steps": [{"method": "round", "base": 10}]}],
        "measures": ["uniqueness"],
    }
    cell = list(Study.from_dict(given).cells())[1]
    masked = _Masked.of(cell, None)
    options = masked.options({"holdout": True, "population": True, "score": "f1"})
    assert len(options["holdout"]) == 60
    assert len(options["population"]) == 240
    assert set(options["population"].frame["age"]) == set(masked.table.frame["age"])
    assert options["score"] == "f1"
    del given["tables"][0]["held_out"]
    whole = _Masked.of(list(Study.from_dict(given).cells())[1], None)
    with pytest.raises(sh.errors.InputError, match="held_out"):
        whole.options({"holdout": True})


def made(family, s, k, *, journalist=0.01, highest=0.5, seed=0, **details):
    facts = {
        "people_above": {"0.5": 0.47, "0.8": 0.001},
        "records_above": {"0.5": 0.6, "0.8": 0.003},
        "highest_certainty": highest,
        "journalist_risk": {"highest": 1 / k, "mean": journalist},
        "records_below": {"5": 0.1, "20": 0.3},
        "smallest_class": 1,
        "released": s,
        "certainty_quantiles": [0.1, highest],
        "journalist_quantiles": [0.01, 1 / k],
        "with_target": {
            "highest": 1.0,
            "values": [
                {"inclusion": 0.8, "certain_people": 0.4},
                {"inclusion": 0.3, "certain_people": 0.0},
            ],
        },
        **details,
    }
    steps = [{"method": "generalize", "levels": {"AGEP": 2, "COW": 1}}]
    parameters = {"sample.fraction": s, "generalize.k": k}
    return Row(
        "acs", family, family, seed, "sampled_risk", "done", journalist, None, 0.0, parameters,
        {"details": facts, "steps": steps},
    )  # fmt: skip


def test_the_verdict_reads_what_was_measured():
    rows = [
        made("pre random", 0.5, 5, journalist=0.001),
        made("post random", 0.5, 5, journalist=0.01),
        made("post random", 0.5, 5, journalist=0.03, seed=1, people_above={"0.5": 0.43, "0.8": 0}),
        made("post stratified", 0.5, 5, highest=0.5),
        made("post balanced", 0.5, 5),
    ]
    found = {finding.name: finding for finding in _sampling.findings(Results(tuple(rows)))}
    share = found["post random, s = 0.5, k = 5: share of the people with certainty above 0.5"]
    assert share.measured == pytest.approx(0.45)
    assert share.within_tolerance
    name = "post random, s = 0.5, k = 5: share of the released records with certainty above 0.5"
    assert found[name].measured == pytest.approx(0.6)
    assert found[name].within_tolerance is False
    assert found["post stratified, s = 0.5, k = 5: highest certainty"].within_tolerance
    claims = {c.text: c for c in _sampling.claims(Results(tuple(rows)))}
    first = claims["Sampling before generalization gives less journalist risk than sampling after "
                   "it."]  # fmt: skip
    assert first.holds is True
    assert "0.001 before, 0.02 after" in first.evidence
    known = next(claim for text, claim in claims.items() if "keeps that bound" in text)
    assert known.holds is False
    assert "40 % of the people" in known.evidence
    # what was not measured is not judged
    assert claims["A model learns more from a balanced sample."].holds is None
    assert _sampling.figures(Results(tuple(rows)))["levels"].rows[0][:4] == (
        "pre random, s = 0.5", 5.0, 1, 3.0,
    )  # fmt: skip


def test_a_target_of_many_values_is_judged_by_its_certainty_alone():
    """If a target has more than 20 values, they are not counted one by one."""
    text = "A balanced sample keeps that bound even for an intruder who knows the target value."
    for highest, holds in ((1.0, False), (0.5, True)):
        rows = (made("post balanced", 0.5, 5, with_target={"highest": highest}),)
        (found,) = (claim for claim in _sampling.claims(Results(rows)) if claim.text == text)
        assert found.holds is holds
        assert found.evidence == f"s = 0.5, k = 5: certainty of up to {highest:.2g}"


def test_the_verdict_says_no_where_it_must():
    rows = [
        made("pre random", 0.5, 5, journalist=0.02),
        made("post random", 0.5, 5, journalist=0.01, records_below={"5": 0.0}, smallest_class=5),
        made("post stratified", 0.5, 5, highest=0.6),
    ]
    results = Results(tuple(rows))
    held = {claim.text: claim.holds for claim in _sampling.claims(results)}
    texts = list(held)
    assert held[texts[0]] is False  # pre has more risk here
    assert held["In a stratified sample, no certainty exceeds the share that is sampled."] is False
    assert held["A sample of a k-anonymous table is k-anonymous."] is True
    findings = {f.name: f for f in _sampling.findings(results)}
    assert findings["post stratified, s = 0.5, k = 5: highest certainty"].within_tolerance is False


def test_an_empty_study_is_undecided_and_draws_nothing():
    nothing = Results(())
    assert {claim.holds for claim in _sampling.claims(nothing)} == {None}
    assert all(math.isnan(finding.measured) for finding in _sampling.findings(nothing))
    assert _sampling.figures(nothing) == {}
