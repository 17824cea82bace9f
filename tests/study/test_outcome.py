"""A whole study: its numbers, its figures, its page, and its verdict."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from shoal.errors import InputError, PlanError
from shoal.study import (
    BuiltIn,
    Conclusion,
    Finding,
    Results,
    Study,
    TableSource,
    built_in,
    read_verdict,
    run_study,
)
from shoal.study._conclusion import Claim
from shoal.study._declared import View
from shoal.study._outcome import _mean_of
from shoal.study._results import Row
from shoal.table import read


def design(people_file, **more):
    given = {
        "title": "Rounding <and> swapping",
        "seeds": 2,
        "tables": [
            {"path": str(people_file), "target": "ill"},
            {"path": str(people_file), "name": "half", "rows": 150, "target": "ill"},
        ],
        "variants": [
            {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 20]}},
            {"name": "swap", "steps": [{"method": "swap"}], "grid": {"k": [3, 10]}},
        ],
        "measures": ["distance_linkage", "total_variation"],
        "figures": [
            {"kind": "risk-utility", "risk": "distance_linkage", "utility": "total_variation"},
            {"kind": "ranks", "measure": "distance_linkage"},
            {"kind": "win-draw-lose", "measure": "distance_linkage"},
            {"kind": "boxes", "measure": "distance_linkage", "by": "variant"},
            {"kind": "violins", "measure": "distance_linkage"},
            {"kind": "against", "measure": "distance_linkage", "x": "k"},
        ],
    }
    return Study.from_dict(given | more)


def test_everything_is_written_down(people_file, tmp_path, every_format):
    out = tmp_path / "out"
    outcome = run_study(design(people_file), out, jobs=1)
    assert outcome.run.complete
    pictures = {path.name for path in (out / "figures").iterdir()}
    assert len(pictures) == 6 * 4
    assert "1-risk-utility.svg" in pictures
    page = (out / "report.html").read_text("utf-8")
    assert "Rounding &lt;and&gt; swapping" in page
    assert page.count("data:image/svg+xml;base64,") == 6
    assert str(tmp_path) not in page
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == outcome.run.tasks == 2 * 2 * (1 + 2 + 2 * 2)
    swapped = [row for row in rows if row["variant"] == "swap k=10"]
    assert {row["k"] for row in swapped} == {"10"}
    assert {row["seed"] for row in swapped} == {"0", "1"}
    kept = pl.read_parquet(out / "results.parquet")
    assert len(kept) == len(rows)
    assert kept["k"].drop_nulls().unique().sort().to_list() == [3.0, 10.0]
    assert json.loads(kept["facts"][0])["direction"] == "lower"
    assert kept["value"].to_list() == pytest.approx([float(row["value"]) for row in rows])
    facts = json.loads((out / "verdict.json").read_text("utf-8"))
    assert facts == read_verdict(out)
    assert facts["claims"][0]["evidence"].startswith("Spearman")
    assert not list(out.glob(".*.part"))


def test_every_measure_and_how_it_was_made_is_on_the_page(people_file, tmp_path):
    study = design(people_file, figures=[], measures=["distance_linkage", "predictive_performance"])
    outcome = run_study(study, tmp_path, jobs=1)
    facts, page = read_verdict(tmp_path), (tmp_path / "report.html").read_text("utf-8")
    shown = outcome._repr_html_()  # the same numbers as on the page, table by table
    assert facts["measures"]["measures"] == ["distance_linkage", "predictive_performance"]
    for row in facts["measures"]["rows"]:
        for name, found in zip(facts["measures"]["measures"], row["values"], strict=True):
            mine = outcome.results.where(variant=row["variant"], table=row["table"], measure=name)
            assert found["mean"] == pytest.approx(mine.values.mean())
            assert found["results"] == len(mine)
            assert f"{found['mean']:.4g}" in page
            assert f"{found['mean']:.4g}" in shown
    with (tmp_path / "measures.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 2 * 2 * len(study.variants)
    assert outcome.sentence == "5 variants on 2 tables with 2 measures."
    rows = {table["name"]: table["rows"] for table in facts["tables"]}
    assert rows == {"people": len(read(people_file)), "half": 150}
    assert (facts["seeds"], facts["preset"]) == ([0, 1], None)
    assert all(part in page for part in ("half", "150\u00a0rows", facts["date"]))


def test_an_interval_is_the_measures_own_or_that_of_enough_seeds_or_tables():
    def rows(count, *, tables=1, interval=None):
        told = ("v", "f", 0, "m", "done")
        return Results(
            tuple(
                Row(f"t{n % tables}", *told, float(n), None, 0.0, {}, {"interval": interval})
                for n in range(count)
            )
        )

    assert _mean_of(rows(1, interval=[-1.0, 2.0])) == (0.0, -1.0, 2.0, 1)
    assert _mean_of(rows(4)) == (1.5, None, None, 4)
    two_tables = _mean_of(rows(8, tables=2))  # however many seeds
    assert two_tables == (3.5, None, None, 8)
    mean, low, high, count = _mean_of(rows(10))
    assert (mean, count) == (4.5, 10)
    assert 0 < low < 4.5 < high < 9


def test_a_verdict_of_the_quick_preset_says_so(people_file, tmp_path, monkeypatch):
    claims = [Claim("It holds.", True, "seen"), Claim("It may.", None, "not seen")]
    made = BuiltIn(
        "quickly",
        "",
        "",
        lambda preset: design(people_file, figures=[]),
        lambda results: Conclusion(claims=claims),
        verdicts_of_full={"It holds.": False},
    )
    monkeypatch.setattr("shoal.study._outcome.built_in", lambda name: made)
    outcome = run_study("quickly", tmp_path / "quick", jobs=1)
    assert outcome.sentence.startswith("With the preset quick: 1 of 1 claims")
    remarks = [claim["remark"] for claim in outcome.to_dict()["claims"]]
    assert remarks == ["with the preset quick; with the preset full it does not hold", ""]
    page = (tmp_path / "quick" / "report.html").read_text("utf-8")
    assert "what does not with the preset quick" in page
    assert remarks[0] in page
    whole = run_study("quickly", tmp_path / "full", preset="full", jobs=1)
    assert whole.sentence.startswith("With the preset full")
    assert whole.to_dict()["claims"][0]["remark"] == ""


def test_a_number_of_the_verdict_is_held_against_that_of_the_results():
    task = ("MDAV-ID on census k=5", "MDAV-ID", 0, "correlation_difference", "done", 0.0671)
    results = Results((Row("census", *task, None, 0.0, {"k": 5}),))
    found = built_in("swap-correlations").conclude(results)
    assert found.findings[0].measured == pytest.approx(0.0671 * 63 / 76)
    assert "census, MDAV-ID, k = 5: 0.05562 here, 0.0671 there" in found.relation
    assert "results.csv" in found.relation
    assert built_in("swap-correlations").conclude(Results(())).relation.endswith("as large.")


def test_the_figures_have_the_numbers_of_the_results(people_file, tmp_path):
    study = design(people_file)
    outcome = run_study(study, tmp_path, jobs=1)
    drawn = {row[0]: row for row in outcome.conclusion.figures["4-boxes"].rows}
    found = View(study, outcome.results).differences("distance_linkage", "variant")
    assert drawn["swap k=10"][5] == pytest.approx(np.median(found["swap k=10"]))
    links = outcome.results.where(measure="distance_linkage", table="people")
    before = links.where(variant="original").values.mean()
    after = links.where(variant="swap k=10").values.mean()
    assert found["swap k=10"][0] == pytest.approx(100 * (after - before) / before)
    # lower is better for a risk, so a swap that lowers it wins
    lose, _, win = {r[0]: r[1:] for r in outcome.conclusion.figures["3-win-draw-lose"].rows}[
        "swap k=10"
    ]
    assert win > lose


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ({"kind": "pie", "measure": "uniqueness"}, "There is no figure 'pie'"),
        ({"kind": "boxes"}, "'1-boxes' needs the option 'measure'"),
        ({"kind": "boxes", "measure": "distance_linkage", "colour": "red"}, "no option 'colour'"),
        ({"kind": "boxes", "measure": "distance_linkag"}, "Did you mean 'distance_linkage'"),
        ({"kind": "violins", "measure": "distance_linkage", "by": "colour"}, "'by' of the figure"),
        ({"kind": "against", "measure": "distance_linkage", "x": "l"}, "Use one of 'base', 'k'"),
        ({"kind": "win-draw-lose", "measure": "distance_linkage", "rope": -1}, "a number ≥ 0"),
        ({"kind": "ranks", "measure": "distance_linkage", "name": "../up"}, "file"),
    ],
)
def test_a_figure_that_is_wrong_is_told_in_a_sentence(people_file, tmp_path, figure, said):
    with pytest.raises(InputError, match=said):
        run_study(design(people_file, figures=[figure]), tmp_path, jobs=1)


def test_a_folder_without_a_study_is_said_to_be_one(tmp_path):
    with pytest.raises(InputError, match="no finished study"):
        read_verdict(tmp_path)
    (tmp_path / "verdict.json").write_text("[]")
    with pytest.raises(InputError, match="verdict"):
        read_verdict(tmp_path)


def test_a_preset_and_a_name_that_do_not_exist(tmp_path):
    with pytest.raises(InputError, match="one of 'quick', 'full'"):
        run_study("swap-correlations", tmp_path, preset="slow")
    with pytest.raises(InputError, match="Did you mean 'swap-correlations'"):
        run_study("swap-correlation", tmp_path)
    with pytest.raises(PlanError, match="There is no study at"):
        run_study("nowhere.toml", tmp_path)


def test_a_later_stage_sees_all_results_of_the_one_before_or_is_not_begun(
    people_file, tmp_path, monkeypatch
):
    given = {
        "tables": [{"path": str(people_file), "target": "ill"}],
        "variants": [{"name": "round", "steps": [{"method": "round", "base": 5}]}],
        "measures": ["uniqueness"],
    }
    seen = []

    def stage(study, results):
        seen.append((len(results), results.missing))
        return replace(study, variants=(*study.variants, replace(study.variants[1], name="again")))

    staged = BuiltIn(
        "staged", "", "", lambda preset: Study.from_dict(given),
        lambda results: Conclusion(notes=[f"{len(results)} rows"]), stages=(stage,),
    )  # fmt: skip
    monkeypatch.setattr("shoal.study._outcome.built_in", lambda name: staged)
    begun = run_study("staged", tmp_path / "out", jobs=1, seconds=0.0)
    assert begun.run.stopped
    assert not seen
    ended = run_study("staged", tmp_path / "out", jobs=1)
    assert seen == [(2, 0)]
    assert ended.conclusion.notes == ["3 rows"]
    assert (ended.run.tasks, ended.run.computed) == (2, 2)  # the same steps are the same task


def test_a_study_with_variants_for_its_own_tables_takes_no_others(people_file, tmp_path):
    bound = {"name": "round", "steps": [{"method": "round", "base": 5}], "tables": ["half"]}
    study = design(people_file, variants=[bound], figures=[])
    other = TableSource("people", str(people_file))
    with pytest.raises(InputError, match=r"variants for its own tables 'half'.* on others"):
        run_study(study, tmp_path, tables=[other])


@pytest.mark.parametrize(
    ("published", "measured", "tolerance", "absolute", "within"),
    [
        (0.1, 0.107, 0.07, False, True),
        (0.1, 0.1071, 0.07, False, False),
        (0.018, 0.0184, 0.0005, True, True),
        (0.018, 0.0186, 0.0005, True, False),
        (-0.1, -0.107, 0.07, False, True),
        (None, 0.1, 0.07, False, None),
        (0.1, math.nan, 0.07, False, None),
    ],
)
def test_a_finding_is_within_its_tolerance_or_not(published, measured, tolerance, absolute, within):
    assert Finding("x", published, measured, tolerance, absolute).within_tolerance is within


def test_a_conclusion_in_a_sentence():
    findings = [
        Finding("a", 1.0, 1.0, 0.1),
        Finding("b", 1.0, 2.0, 0.1),
        Finding("c", 1, math.nan, 1),
    ]
    claims = [Claim("x", True, ""), Claim("y", False, ""), Claim("z", None, "")]
    assert Conclusion(findings, claims).sentence == (
        "1 of 2 published numbers are within tolerance; 1 were not measured; "
        "1 of 2 claims that could be judged hold here."
    )
    assert json.dumps(Conclusion(findings, claims).to_dict(), allow_nan=False)


def test_results_can_be_looked_at_from_every_side():
    def row(table, variant, seed, value, status="done"):
        return Row(table, variant, variant[0], seed, "m", status, value, None, 0.0, {"k": seed})

    results = Results(
        (
            row("a", "x", 0, 1.0),
            row("a", "x", 1, 3.0),
            row("b", "x", 0, 5.0),
            row("b", "y", 0, math.nan, "failed"),
        )
    )
    assert results.where(table="a", k=1).values.tolist() == [3.0]
    assert {place: v.tolist() for place, v in results.by("table").items()} == {
        "a": [1.0, 3.0],
        "b": [5.0],
    }
    matrix = results.matrix(["x", "y"], ["a", "b"], by=("variant", "table"))
    assert matrix[0].tolist() == [2.0, 5.0]
    assert np.isnan(matrix[1]).all()
    assert results.mean() == 3.0
    assert math.isnan(results.where(table="c").mean())


def test_parameters_of_many_kinds_in_one_column(tmp_path):
    rows = tuple(
        Row("a", f"v{n}", "v", 0, "m", "done", 0.5, None, 0.1, {"k": value, "seed": n, "b": n})
        for n, value in enumerate((3, "auto", True, None, 2.5))
    )
    Results(rows).to_parquet(tmp_path / "r.parquet")
    kept = pl.read_parquet(tmp_path / "r.parquet")
    assert kept["k"].to_list() == ["3", "auto", "True", None, "2.5"]
    assert kept["parameter seed"].to_list() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert kept["seed"].to_list() == [0] * 5


def test_whole_numbers_beyond_all_floats_are_texts(tmp_path):
    rows = tuple(
        Row("a", f"v{n}", "v", 0, "m", "failed", math.nan, "r", 0.1, {"k": value, "c": [value]})
        for n, value in enumerate((5, 10**400))
    )
    Results(rows).to_parquet(tmp_path / "r.parquet")
    kept = pl.read_parquet(tmp_path / "r.parquet")
    assert kept["k"].to_list() == ["5", str(10**400)]
    assert kept["c"].to_list() == ["[5]", f"[{10**400}]"]
