"""Trouble around a study: changed files, dead processes, wrong files, no results."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace

import polars as pl
import pytest

from shoal.errors import InputError, PlanError
from shoal.study import Finding, Results, Study, run_study
from shoal.study.running import _runner as running
from shoal.study.running import _store as naming
from shoal.study.running._runner import keys_of, run
from shoal.study.running._store import Result, Store
from shoal.study.running._workers import DIED, retry_broken_pool


def design(path, *, folder=None, **more):
    given = {
        "tables": [{"path": str(path), "target": "ill"}],
        "variants": [{"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 20]}}],
        "measures": ["uniqueness", "total_variation"],
    }
    return Study.from_dict(given | more, folder=folder)


def found(study, folder):
    results = Store(folder).read(keys_of(study).values())
    return {place[1:]: results[key] for place, key in keys_of(study).items() if key in results}


def write_ages(path, ages):
    pl.DataFrame({"age": ages, "ill": ["yes", "no"] * (len(ages) // 2)}).write_csv(path)


# What results are taken for.


def test_a_table_that_changed_is_read_again_by_the_same_process(tmp_path):
    path = tmp_path / "people.csv"
    write_ages(path, list(range(50)))
    run(design(path), tmp_path / "out", jobs=1)
    write_ages(path, [30] * 50)
    run(design(path), tmp_path / "out", jobs=1)
    assert found(design(path), tmp_path / "out")["original", 0, "uniqueness"].value == 0.0


def test_content_counts_where_size_and_time_of_a_file_are_the_same(tmp_path):
    path = tmp_path / "people.csv"
    write_ages(path, [11] * 50)
    before, stat = keys_of(design(path)), path.stat()
    path.write_text(path.read_text().replace("11", "12"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert not set(before.values()) & set(keys_of(design(path)).values())


def test_a_table_that_changes_while_the_study_runs_gives_no_result(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    write_ages(path, list(range(50)))
    study, real = design(path), running._Masked.of

    def changed_meanwhile(cell, folder):
        write_ages(path, [30] * 50)
        return real(cell, folder)

    monkeypatch.setattr(running._Masked, "of", changed_meanwhile)
    keys = list(keys_of(study).values())
    run(study, tmp_path / "out", jobs=1)
    results = Store(tmp_path / "out").read(keys)
    assert {result.status for result in results.values()} == {"failed"}
    assert {result.reason for result in results.values()} == {running._CHANGED}


def test_a_hierarchy_that_changed_is_another_task(tmp_path):
    cities = pl.DataFrame({"city": ["a", "b", "c", "d"] * 20, "ill": ["yes", "no"] * 40})
    cities.write_csv(tmp_path / "people.csv")
    tree = tmp_path / "city.csv"
    tree.write_text("a;x;*\nb;x;*\nc;z;*\nd;z;*\n")
    step = {"method": "generalize", "algorithm": "full-domain", "k": 40}
    study = design(
        "people.csv",
        folder=tmp_path,
        variants=[{"name": "up", "steps": [{**step, "hierarchies": {"city": "city.csv"}}]}],
        measures=["normalized_certainty_penalty"],
    )
    run(study, tmp_path / "out", jobs=1)
    place = ("up", 0, "normalized_certainty_penalty")
    before = found(study, tmp_path / "out")[place].value
    assert before < 1
    tree.write_text("a;x;*\nb;z;*\nc;w;*\nd;w;*\n")
    again = run(study, tmp_path / "out", jobs=1)
    assert again.computed == 1  # and not the original
    assert found(study, tmp_path / "out")[place].value == 1.0


def test_another_version_of_a_learner_is_another_task(people_file, monkeypatch):
    before = set(keys_of(design(people_file)).values())
    assert "scikit-learn" in naming.library_versions()
    monkeypatch.setattr(naming, "library_versions", lambda: {"scikit-learn": "0.1"})
    assert not before & set(keys_of(design(people_file)).values())


def test_texts_that_name_no_file_are_no_files():
    assert naming.hashes_of_named_files(["x" * 5000, "a\0b", {"k": ["nowhere.csv"]}], None) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"held_out": 0.25},
        {"rows": 200},
        {"roles": {"quasi_identifiers": ["age"], "sensitive": ["ill"]}},
        {"without": ["height"]},
        {"floats": True},
    ],
)
def test_what_is_taken_of_a_table_makes_other_tasks(people_file, changed):
    before = set(keys_of(design(people_file)).values())
    table = {"path": str(people_file), "target": "ill", **changed}
    assert not before & set(keys_of(design(people_file, tables=[table])).values())


def test_order_and_names_are_no_parameters(people_file):
    entry = {"name": "r", "family": "f", "steps": [{"method": "round"}], "grid": {"base": [20, 5]}}
    table = {"name": "another", "path": str(people_file), "target": "ill"}
    other = design(
        people_file, tables=[table], variants=[entry], measures=["total_variation", "uniqueness"]
    )
    assert set(keys_of(other).values()) == set(keys_of(design(people_file)).values())


# What stops, and what does not.


class Panic(BaseException):
    """As a library in another language raises it."""


@pytest.mark.parametrize("error", [Panic("cell 42"), MemoryError(), SystemExit(3)])
def test_whatever_a_measure_raises_is_recorded_without_what_it_says(
    people_file, tmp_path, monkeypatch, error
):
    def raising(original, masked, **options):
        raise error

    real = running.study_measures()
    monkeypatch.setattr(
        running,
        "study_measures",
        lambda: {**real, "uniqueness": replace(real["uniqueness"], function=raising)},
    )
    study = design(people_file)
    ended = run(study, tmp_path, jobs=1)
    assert (ended.done, ended.failed) == (3, 3)
    assert found(study, tmp_path)["original", 0, "uniqueness"].reason == type(error).__name__


def test_ctrl_c_is_no_reason(people_file, tmp_path, monkeypatch):
    def stopped(original, masked, **options):
        raise KeyboardInterrupt

    real = running.study_measures()
    monkeypatch.setattr(
        running,
        "study_measures",
        lambda: {**real, "total_variation": replace(real["total_variation"], function=stopped)},
    )
    study = design(people_file)
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path, jobs=1)
    assert len(found(study, tmp_path)) == 1  # what was done before


def test_a_task_that_kills_its_process_is_found_and_the_others_go_on(tmp_path):
    """A pool that dies at one task, whichever tasks are in progress with it."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    store, deadly = Store(tmp_path), {"3b", "5a"}
    pieces = [(n, [(None, f"{n}{each}") for each in "abc"], "more") for n in range(8)]
    sizes = []

    def pool(given):
        batch = list(given)
        sizes.append(len(batch))
        for _, todo, more in batch:
            assert more == "more"
            results = []
            for _, key in todo:
                if key in deadly:
                    raise TerminatedWorkerError("killed")
                results.append(Result(key, "done", 1.0))
                store.write(results[-1])
            yield results

    ended = [each for results in retry_broken_pool(pool, iter(pieces), store) for each in results]
    assert sorted(each.key for each in ended) == sorted(k for p in pieces for _, k in p[1])
    assert {each.key: each.reason for each in ended if each.status == "failed"} == dict.fromkeys(
        deadly, DIED
    )
    assert store.read(each.key for each in ended) == {each.key: each for each in ended}
    assert (sizes[0], max(sizes[1:])) == (8, 1)


def test_a_worker_that_dies_takes_no_other_task_with_it(people_file, tmp_path):
    """A real process of the pool ends itself in the middle of one task."""
    study = design(
        people_file,
        variants=[
            {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 10, 20]}},
        ],
    )

    def deadly(cell, todo, folder, target, until=None):
        import os

        from shoal.study.running import _runner

        if cell.variant.name == "round base=10":
            os._exit(9)
        return _runner.measure_cell(cell, todo, folder, target, until)

    real = running.measure_cell
    running.measure_cell, deadly.__module__ = deadly, "__main__"  # sent by value
    try:
        ended = run(study, tmp_path, jobs=2)
    finally:
        running.measure_cell = real
    assert (ended.done, ended.failed, ended.computed, ended.complete) == (6, 2, 8, True)
    reasons = {place[0]: r.reason for place, r in found(study, tmp_path).items() if r.reason}
    assert reasons == {"round base=10": DIED}


def test_after_the_budget_no_measure_is_begun_in_the_middle_of_a_cell(people_file, tmp_path):
    study = design(people_file)
    keys = keys_of(study)
    cell, todo = next(running._open_cells(study, keys, set()))
    assert running.measure_cell(cell, todo, None, None, until=time.time() - 1) == []
    assert len(running.measure_cell(cell, todo, None, None, until=time.time() + 600)) == 2


def test_a_long_grid_of_one_family_does_not_come_before_the_others(people_file):
    study = design(
        people_file,
        variants=[
            {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 10, 20, 50]}},
            {"name": "swap", "steps": [{"method": "swap"}], "grid": {"k": [3, 5]}},
        ],
        seeds=2,
    )
    opened = running._open_cells(study, keys_of(study), set())
    order = [(cell.seed, cell.variant.name) for cell, _ in opened]
    assert order[:5] == [
        (0, "original"),
        (0, "round base=5"),
        (0, "swap k=3"),
        (0, "round base=10"),
        (0, "swap k=5"),
    ]
    assert sorted(order) == sorted((cell.seed, cell.variant.name) for cell in study.cells())


def test_progress_tells_how_long_the_rest_takes():
    assert running._progress_label(0, 10, 5.0) == "0 of 10 tasks"
    assert running._progress_label(5, 10, 20.0) == "5 of 10 tasks, 20 s left"
    assert running._progress_label(10, 1_010, 60.0) == "10 of 1,010 tasks, 1 h 40 min left"
    assert running._progress_label(10, 10, 60.0) == "10 of 10 tasks"


def test_a_folder_that_cannot_be_one_is_said_to_be(people_file, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="folder"):
        run(design(people_file), tmp_path / "out")
    other = Store(tmp_path / "other")
    with other._connected() as connection:
        connection.execute("DROP TABLE results")
        connection.execute("CREATE TABLE results (key TEXT)")
    with pytest.raises(InputError, match="cannot be read or written"):
        run(design(people_file), tmp_path / "other", jobs=1)


@pytest.mark.skipif(os.name == "nt", reason="rights are others on Windows")
def test_only_its_owner_may_look_into_a_folder_of_results(tmp_path):
    assert Store(tmp_path / "out").folder.stat().st_mode & 0o077 == 0


def test_a_study_that_is_wrong_makes_no_folder(people_file, tmp_path):
    wrong = design(people_file, variants=[{"name": "x", "steps": [{"method": "rond"}]}])
    with pytest.raises(PlanError, match="Did you mean 'round'"):
        run(wrong, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# What a file may say.


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tables": ["people.csv"]}, r"must be a list of tables: write \[\[tables\]\]"),
        ({"tables": [{"path": 3}]}, "'path' .* of a table of a study must be a text"),
        ({"tables": [{"path": "x.csv", "rows": 0}]}, "'rows' .* an integer ≥ 1"),
        ({"tables": [{"path": "x.csv", "only": "age"}]}, "'only' .* a list of names"),
        ({"tables": [{"path": "x.csv", "roles": ["age"]}]}, "'roles' .* a table of roles"),
        ({"variants": [{"name": "x", "steps": "round"}]}, "'steps' .* a list of tables"),
        ({"variants": [{"name": "x", "steps": []}]}, "combine"),
        ({"variants": [{"combine": ["round"]}]}, "'combine' .* a list of tables"),
        (
            {"variants": [{"steps": [{"method": "swap"}], "grid": [3]}]},
            "'grid' .* a list of values",
        ),
        (
            {"variants": [{"steps": [{"method": "swap", "k": 3}], "seeds": 0}]},
            "'seeds' .* an integer ≥ 1",
        ),
        (
            {"variants": [{"name": "x", "steps": [{"method": "swap"}], "tables": ["peple"]}]},
            "'x' names the table 'peple', .*Did you mean 'people'",
        ),
        ({"measures": [3]}, r"write \[\[measures\]\]"),
        ({"measures": [{"measure": "uniqueness", "colour": 1}]}, "has no option 'colour'"),
        ({"measures": [{"measure": "uniqueness", "families": ["rund"]}]}, "the family 'rund'"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [True]}, "whole numbers"),
        ({"figures": "ranks"}, "must be a list"),
        ({"baseline": "no"}, "true or false"),
    ],
)
def test_a_part_of_the_wrong_kind_is_told_in_a_sentence(people_file, changed, said):
    with pytest.raises(InputError, match=said):
        design(people_file, **changed)


def test_an_option_that_json_cannot_hold_is_told_in_a_sentence(people_file):
    from datetime import date

    study = design(people_file, measures=[{"measure": "uniqueness", "missing": date(2020, 1, 1)}])
    with pytest.raises(PlanError, match="'uniqueness'"):
        keys_of(study)


def test_techniques_that_are_combined_may_have_names(people_file):
    steps = [{"method": "round", "base": b, "name": n} for b, n in ((5, "fine"), (20, "coarse"))]
    study = design(people_file, variants=[{"combine": steps}])
    assert [variant.name for variant in study.variants[1:]] == ["fine", "coarse", "fine+coarse"]
    assert len(keys_of(study)) == 2 * 4


# What is concluded.


FIGURES = [
    {"kind": "risk-utility", "risk": "uniqueness", "utility": "total_variation"},
    {"kind": "ranks", "measure": "uniqueness"},
    {"kind": "win-draw-lose", "measure": "uniqueness", "rope": 0},
    {"kind": "boxes", "measure": "uniqueness", "by": "base"},
    {"kind": "violins", "measure": "uniqueness"},
    {"kind": "against", "measure": "uniqueness", "x": "base"},
]


def test_without_any_result_there_is_a_report_that_says_so(people_file, tmp_path):
    outcome = run_study(design(people_file, figures=FIGURES), tmp_path, jobs=1, seconds=0.0)
    facts = json.loads((tmp_path / "verdict.json").read_text("utf-8"))
    assert facts["sentence"].startswith("Partial result, because 6 of 6 tasks")
    assert not facts["complete"]
    assert [claim["holds"] for claim in facts["claims"]] == [None]
    assert len(outcome.conclusion.figures) == 6
    whole = run_study(design(people_file, figures=FIGURES), tmp_path, jobs=1)
    assert "partial" not in whole.to_dict()["sentence"]


def test_figures_that_are_wrong_are_told_before_anything_is_computed(people_file, tmp_path):
    same = [{"kind": "ranks", "measure": "uniqueness", "name": "a"}] * 2
    with pytest.raises(PlanError, match="Two figures"):
        run_study(design(people_file, figures=same), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_measure_by_another_name_keeps_its_direction(people_file, tmp_path):
    """For a score, higher is better, whatever the study calls it."""
    study = design(
        people_file,
        variants=[{"name": "gone", "steps": [{"method": "round", "base": 1000}]}],
        measures=[
            {"measure": "predictive_performance", "learner": "decision-tree", "name": "F1"},
            {"measure": "distance_linkage", "name": "links"},
        ],
        figures=[
            {"kind": "ranks", "measure": "F1"},
            {"kind": "win-draw-lose", "measure": "F1"},
            {"kind": "risk-utility", "risk": "links", "utility": "F1"},
        ],
    )
    outcome = run_study(study, tmp_path, jobs=1)
    scores = outcome.results.where(measure="F1").by("variant")
    assert scores["original"] > scores["gone"]
    figures = outcome.conclusion.figures
    assert {row[0]: row[3] for row in figures["1-ranks"].rows if row[1] == "all"} == {
        "original": 1.0,
        "gone": 2.0,
    }
    (row,) = figures["2-win-draw-lose"].rows
    assert row[1] > row[3]
    assert "(F1)" in outcome.conclusion.claims[0].text


def test_the_original_is_no_masked_table_to_judge_a_claim_by(people_file, tmp_path):
    study = design(people_file, figures=FIGURES[:1])
    claim = run_study(study, tmp_path, jobs=1).conclusion.claims[0]
    assert (claim.holds, claim.evidence) == (None, "fewer than three masked tables have both")


def test_an_infinite_number_is_not_met_and_is_no_json():
    found = Finding("x", 1.0, math.inf, 0.1)
    assert found.within_tolerance is False
    assert found.to_dict()["measured"] is None


def test_a_partial_answer_has_the_same_rows_as_the_whole_one(people_file, tmp_path):
    study = design(people_file)
    run(replace(study, variants=study.variants[:2]), tmp_path, jobs=1)
    part = Results.of(study, tmp_path)
    assert (len(part), part.missing) == (4, 2)
