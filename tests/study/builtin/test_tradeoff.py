"""The trade-off study: its two stages, its choice of parameters, and its conclusion."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from shoal.study import Results, Study, TableSource, built_in, run_study
from shoal.study._results import Row
from shoal.study.builtin import _tradeoff
from shoal.study.builtin._builtin import paper
from shoal.study.builtin._tradeoff import (
    FIRST,
    PUBLISHED,
    TECHNIQUES,
    Measured,
    chosen_values,
    combinations,
    conclude,
    figures,
    measured_tables,
)
from shoal.utility.models import PRESETS


def alone(table, **risks):
    """The results of stage one: for each letter, its risks by value; None changes nothing."""
    rows = []
    for one in TECHNIQUES:
        for value, risk in risks.get(one.letter, {}).items():
            name = f"{one.letter} alone {one.parameter}={value}"
            for measure, found in (
                ("r3", 1.0 if risk is None else risk),
                ("unchanged", 1.0 if risk is None else 0.5),
            ):
                rows.append(
                    Row(
                        table, name, f"{one.letter} alone", 0, measure, "done", found, None, 0.0,
                        {one.parameter: value}, {"details": {"known": ["a"]}},
                    )
                )  # fmt: skip
    return Results(tuple(rows))


def measured(table, family, r3, f1, *, r4=None, oracle=None, folds=None, model=True):
    """The three results of one masked table."""
    details = {
        "oracle": f1 if oracle is None else oracle,
        "mean_over_folds": f1 if folds is None else folds,
        "without_model": not model,
    }
    values = {"r3": r3, "r4": r3 if r4 is None else r4, "F1": f1}
    return [
        Row(
            table, f"{family} on {table}", family, 0, measure, "done", value, None, 0.0, {},
            {"details": details},
        )
        for measure, value in values.items()
    ]  # fmt: skip


def concluded(*rows):
    return conclude(Results(tuple(row for group in rows for row in group)))


def test_there_are_so_many_combinations_as_the_paper_says():
    assert [len(combinations("STNRG"[:t])) for t in (3, 4, 5)] == [7, 15, 31]
    # 62 tables, of which 18 need all five techniques, give the paper's 1,074 combinations
    assert 18 * 31 + 26 * 15 + 18 * 7 == 1074
    assert combinations("STN")[-1] == ("S", "T", "N")  # in the order of application


def test_the_first_stage_has_every_technique_alone_over_its_grid():
    whole = built_in("tradeoff").design("quick")
    assert [source.name for source in whole.tables] == paper("tradeoff")["presets"]["quick"][
        "tables"
    ]
    study = replace(whole, tables=whole.tables[:1])
    cells = list(study.cells())
    assert len(cells) == 1 + 3 + 2 + 5 + 3 + 2
    assert [m.name for m in cells[0].measures] == ["r3", "r4", "unchanged", "F1"]
    assert {tuple(m.name for m in cell.measures) for cell in cells[1:]} == {("r3", "unchanged")}


def test_the_presets_differ_in_learners_folds_and_tables():
    quick, full = (built_in("tradeoff").design(preset) for preset in ("quick", "full"))
    assert {t.rows for t in quick.tables[1:]} == {1000}
    assert len(full.tables) == 1 + 57
    assert {t.rows for t in full.tables} == {None}
    fetched = {t.name: (t.openml, t.openml_target) for t in full.tables if t.openml is not None}
    assert fetched["segment"] == (958, "binaryClass")
    assert len(fetched) == len({number for number, _ in fetched.values()}) == 21
    assert quick.measures[-1].options == {"grid": "carvalho-reduced", "repeats": 1}
    assert full.measures[-1].options == {"grid": "carvalho", "repeats": 5}


def test_the_lowest_risk_is_chosen_and_of_equal_ones_the_mildest():
    found = alone(
        "t",
        S={0.7: 0.2, 0.8: 0.5, 0.9: 1.0},
        T={1.5: 1.0, 3.0: 1.0},
        N={0.5: 0.0, 2.0: 0.0, 4.0: 0.0, 8.0: 0.3, 16.0: 0.3},
        R={0.2: 0.4, 5.0: 0.1, 10.0: 0.1},
        G={0.5: 0.1, 1.5: 0.1 + 1e-15},
    )
    assert chosen_values(found) == {"S": 0.7, "T": 3.0, "N": 4.0, "R": 5.0, "G": 0.5}
    first = chosen_values(found, mildest=False)
    assert first == {"S": 0.7, "T": 1.5, "N": 0.5, "R": 5.0, "G": 0.5}


def test_what_changes_nothing_is_no_candidate():
    found = alone(
        "t",
        S={0.7: None, 0.8: None, 0.9: None},
        T={1.5: 1.0, 3.0: None},  # the same risk, but 3 finds no outlier
        R={0.2: None, 5.0: 0.9, 10.0: 0.9},
    )
    assert chosen_values(found) == {"T": 1.5, "R": 5.0}


def test_the_second_stage_combines_what_applies_to_each_table():
    study = Study.from_dict(
        {
            "tables": [
                {"path": "three.csv", "target": "y"},
                {"scikit_learn": "breast_cancer", "target": "target"},
            ],
            "variants": [{"name": "x", "steps": [{"method": "round", "base": 5}]}],
            "measures": ["uniqueness"],
        }
    )
    three = alone("three", T={1.5: 1.0, 3.0: 1.0}, N={0.5: 0.0}, R={5.0: 0.0, 10.0: 0.2})
    four = alone(
        "breast_cancer", S={0.7: 0.0, 0.9: 0.0}, T={3.0: 1.0}, N={0.5: 0.0, 16.0: 0.0}, R={0.2: 0.0}
    )
    found = _tradeoff.with_combinations(study, Results((*three.rows, *four.rows)))
    assert found.variants[:2] == study.variants  # what was run before stays
    of = {name: [v for v in found.variants[2:] if v.tables == (name,)] for name in ("three",)}
    assert len(of["three"]) == 7
    last = of["three"][-1]
    assert (last.name, last.family) == ("T+N+R on three", "T+N+R")
    assert [dict(step) for step in last.steps] == [
        {"method": "top_bottom_code", "fence": 3.0},
        {"method": "add_noise", "epsilon": 0.5},
        {"method": "round", "base": 5.0},
    ]
    assert last.measures == ("r3", "r4", "F1")
    cancer = {v.family: v for v in found.variants if v.tables == ("breast_cancer",)}
    assert len(cancer) == 2 * 15  # by both rules
    assert cancer["N"].parameters == {"epsilon": 16.0}
    assert cancer["N" + FIRST].parameters == {"epsilon": 0.5}


def test_after_suppression_of_all_columns_nothing_is_left_to_do():
    rows = alone("t", S={0.7: 0.0}, T={3.0: 1.0}).rows
    gone = tuple(
        replace(row, facts={"details": {"known": []}}) if row.family == "S alone" else row
        for row in rows
    )
    study = Study("x", (TableSource("t", "t.csv"),), (), ())
    found = {v.family: v for v in _tradeoff.with_combinations(study, Results(gone)).variants}
    assert [step["method"] for step in found["S+T"].steps] == ["suppress"]
    assert [step["method"] for step in found["T"].steps] == ["top_bottom_code"]


def test_published_numbers_are_held_against_the_runs_by_their_own_rule():
    found = concluded(
        measured("breast_cancer", "original", 1.0, 0.97, folds=0.96),
        measured("breast_cancer", "N", 0.0, 0.9),
        measured("breast_cancer", "N" + FIRST, 0.0, 0.2, folds=0.3),
        measured("breast_cancer", "T" + FIRST, 0.93, 0.9),
    )
    numbers = {finding.name: finding for finding in found.findings}
    assert numbers["breast_cancer, N, F1"].measured == 0.3
    assert numbers["breast_cancer, N, F1"].within_tolerance
    assert numbers["breast_cancer, original, F1"].measured == 0.96
    assert numbers["breast_cancer, T, r3"].within_tolerance is False
    assert numbers["breast_cancer, number of combinations"].measured == 2
    assert numbers["stroke, N+R, r3"].within_tolerance is None
    assert "german, stroke, airline" in " ".join(found.notes)
    assert json.dumps(found.to_dict(), allow_nan=False)


def judged(*rows):
    return [claim.holds for claim in concluded(*rows).claims]


def test_the_claims_hold_where_they_hold():
    rows = [
        measured("a", "original", 1.0, 0.9),
        measured("a", "T", 1.0, 0.9),
        measured("a", "N", 0.2, 0.5),
        measured("a", "R", 0.3, 0.6),
        measured("a", "N+R", 0.0, 0.3),
        measured("breast_cancer", "N" + FIRST, 0.2, 0.5),
        measured("breast_cancer", "N", 0.2, 0.5),
    ]
    assert judged(*rows) == [True] * 6


def test_the_claims_do_not_hold_where_they_do_not():
    rows = [
        measured("a", "original", 1.0, 0.9),
        measured("a", "T", 1.0, 0.88),  # 2 % less
        measured("a", "R", 0.0, 0.9, r4=0.8),  # no risk at no cost, and yet nearly all are found
        measured("a", "N+R", 0.2, 0.3),
        measured("breast_cancer", "N" + FIRST, 0.0, 0.3),
        measured("breast_cancer", "N", 0.0, 0.9),
    ]
    found = concluded(*rows)
    assert [claim.holds for claim in found.claims] == [False] * 6
    assert "r4 0.80" in found.claims[4].evidence
    assert "F1 0.300 by the first, 0.900 by the mildest" in found.claims[5].evidence


@pytest.mark.parametrize(("r3", "f1", "holds"), [(0.96, 0.895, True), (0.9, 0.9, False)])
def test_coding_that_lowers_the_risk_does_not_keep_it(r3, f1, holds):
    claims = concluded(measured("a", "original", 1.0, 0.9), measured("a", "T", r3, f1)).claims
    assert claims[0].holds is holds


def test_nothing_measured_is_nothing_claimed():
    found = concluded()
    assert {claim.holds for claim in found.claims} == {None}
    assert not found.figures
    assert not found.findings


def test_on_other_tables_only_what_is_called_as_a_published_one_is_held_against_it():
    mine = (*measured("mine", "original", 1.0, 0.9), *measured("mine", "T", 1.0, 0.9))
    own = conclude(Results(mine), own=True)
    assert not own.findings
    assert not any("published" in note for note in own.notes)
    assert own.claims[0].holds is True
    results = Results((*mine, *measured("german", "original", 1.0, 0.512)))
    german = conclude(results, own=True)
    assert [f.name for f in german.findings] == ["german, original, r3", "german, original, F1"]
    assert any("run once by other code" in note for note in german.notes)
    assert not any("at hand" in note for note in german.notes)


def test_a_table_without_columns_is_flagged():
    found = concluded(
        measured("a", "original", 1.0, 0.9), measured("a", "S", 0.0, 0.0, model=False)
    )
    assert "1 combinations" in found.notes[-1]


def test_the_figures_have_the_numbers():
    rows = [
        *measured("a", "original", 1.0, 0.8, oracle=0.8),
        *measured("a", "T", 1.0, 0.8, oracle=0.8),
        *measured("a", "N", 0.0, 0.4, oracle=0.8),
        *measured("a", "T+N", 0.0, 0.2),
        *measured("b", "original", 1.0, 0.5),
        *measured("b", "T", 0.5, 0.6),
        *measured("c", "original", 1.0, 0.0),  # a difference to 0 is none
        *measured("c", "T", 0.5, 0.6),
    ]
    drawn = figures(measured_tables(Results(tuple(rows))))
    assert set(drawn["techniques"].rows) == {("T", 2), ("N & T", 1)}
    boxes = {row[0]: row for row in drawn["differences-f1"].rows}
    assert boxes["T"][1:3] == (2, pytest.approx(0.0))
    assert boxes["N"][5] == pytest.approx(-50.0)
    assert {row[0]: row[1] for row in drawn["violins-f1"].rows} == {"1": 3, "2": 1}
    risk = {(row[0], row[1]): row[3] for row in drawn["ranks-risk"].rows}
    assert risk["N", "all"] == 1.5  # the lowest risk is the first rank, shared with T+N
    assert risk["T", "common"] == 3.0  # only on table a
    f1 = {(row[0], row[1]): row[3] for row in drawn["ranks-f1"].rows}
    assert f1["T", "all"] == 1.0
    validation, oracle = (
        {row[0]: row[1:] for row in drawn[f"verdicts-{name}"].rows}
        for name in ("validation", "oracle")
    )
    assert validation["N"][0] > oracle["N"][0]  # with the best model of all, nothing is lost
    points = {row[0]: row[2:4] for row in drawn["risk-f1"].rows}
    assert len(points) == 6
    assert points["T+N, a"] == (0.0, pytest.approx(25.0))
    assert points["original, b"] == (1.0, 100.0)


def test_what_was_seen_needs_all_three_measures():
    rows = measured("a", "T", 0.5, 0.6, r4=0.7, oracle=0.8, folds=0.65)
    assert measured_tables(Results(tuple(rows))) == {
        ("a", "T"): Measured("a", "T", 0.5, 0.7, 0.6, 0.8, 0.65, without_model=False)
    }
    assert not measured_tables(Results(tuple(rows[:2])))
    assert not measured_tables(Results((rows[0], rows[2])))


@pytest.fixture
def small_tables(monkeypatch, tmp_path):
    """Two small tables and one quick learner."""
    rng = np.random.default_rng(3)
    size = rng.normal(170, 10, 90)
    size[:3] = 400.0
    ill = np.where(size + rng.normal(0, 4, 90) > 170, "yes", "no")
    pl.DataFrame({"size": np.round(size), "ill": ill}).write_parquet(tmp_path / "few.parquet")
    pl.DataFrame({"code": np.round(size, 6), "ill": ill}).write_parquet(tmp_path / "codes.parquet")
    monkeypatch.chdir(tmp_path)
    quick = {"logistic-regression": lambda _: {"C": (1.0,)}}
    monkeypatch.setitem(PRESETS, "carvalho-reduced", quick)
    return [TableSource(name, f"{name}.parquet", target="ill") for name in ("few", "codes")]


def test_a_small_run_goes_through_both_stages_and_on_where_it_stopped(small_tables, tmp_path):
    def go_on(**more):
        return run_study("tradeoff", tmp_path / "out", tables=small_tables, jobs=1, **more)

    begun = go_on(seconds=0.0)
    assert begun.run.stopped
    assert len(begun.study.variants) == 1 + 15  # without results there is no second stage
    outcome = go_on()
    assert outcome.run.complete
    assert not outcome.run.failed
    found = measured_tables(outcome.results)
    families = {t: {f for of, f in found if of == t} - {"original"} for t in ("few", "codes")}
    assert len(families["few"]) == 7  # T, N, R: no column is nearly unique
    assert len(families["codes"]) == 15  # and S
    assert found["few", "original"].r4 >= found["few", "original"].r3 > 0
    assert found["few", "T"].oracle >= found["few", "T"].validation
    # the only column is suppressed: no model, and people are found only by luck
    for family in ("S", "S+T+N+R"):
        gone = found["codes", family]
        assert gone.without_model
        assert (gone.r3, gone.validation, gone.r4) == (0.0, 0.0, pytest.approx(1 / 90))
    facts = json.loads((tmp_path / "out" / "verdict.json").read_text("utf-8"))
    assert len(facts["figures"]) == 9
    assert math.isclose(facts["computed"], facts["tasks"])
    again = go_on()
    assert again.run.computed == 0
    assert again.conclusion.to_dict() == outcome.conclusion.to_dict()


def test_the_published_tables_are_named_as_they_are_found():
    assert "breast_cancer" in PUBLISHED
