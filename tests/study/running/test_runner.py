"""A study computes what is missing, once, and survives whatever happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from shoal.errors import InputError, PlanError
from shoal.study._design import Study
from shoal.study.data._tables import TableSource
from shoal.study.running._runner import keys_of, run
from shoal.study.running._store import Store


def design(people_file, **more):
    given = {
        "name": "small",
        "seeds": 2,
        "tables": [{"path": str(people_file), "target": "ill"}],
        "variants": [
            {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 20]}},
            {"name": "swap", "steps": [{"method": "swap"}], "grid": {"k": [3]}},
        ],
        "measures": ["distance_linkage", "total_variation", "uniqueness"],
    }
    return given | more


def values(study, folder):
    found = Store(folder).read(keys_of(study).values())
    return {name: found[key].value for name, key in keys_of(study).items() if key in found}


def test_every_task_gets_its_result(people_file, tmp_path):
    study = Study.from_dict(design(people_file))
    told = []
    ended = run(study, tmp_path / "out", jobs=1, progress=lambda label, share: told.append(share))
    # original and two roundings once, the swap under two seeds, three measures each
    assert (ended.tasks, ended.done, ended.failed, ended.computed) == (15, 15, 0, 15)
    assert ended.complete
    assert not ended.stopped
    assert told[-1] == 1.0
    assert told == sorted(told)
    found = values(study, tmp_path / "out")
    assert found["people", "original", 0, "distance_linkage"] > 0.95
    assert found["people", "swap k=3", 0, "distance_linkage"] < 0.6
    assert found["people", "original", 0, "total_variation"] == 0.0
    assert (
        found["people", "swap k=3", 0, "distance_linkage"]
        != found["people", "swap k=3", 1, "distance_linkage"]
    )


def test_a_second_run_computes_nothing_and_a_change_only_what_it_touches(people_file, tmp_path):
    run(Study.from_dict(design(people_file)), tmp_path, jobs=1)
    again = run(Study.from_dict(design(people_file)), tmp_path, jobs=1)
    assert (again.computed, again.done) == (0, 15)
    changed = design(people_file)
    changed["variants"][0]["grid"]["base"] = [5, 10]
    assert run(Study.from_dict(changed), tmp_path, jobs=1).computed == 3
    more = design(people_file, measures=[*changed["measures"], "marketer_risk"])
    assert run(Study.from_dict(more), tmp_path, jobs=1).computed == 5
    renamed = design(people_file)
    renamed["variants"][1]["name"] = "exchange"  # a name is not a parameter
    assert run(Study.from_dict(renamed), tmp_path, jobs=1).computed == 0


def test_other_data_are_other_tasks(people_file, tmp_path):
    import polars as pl

    study = Study.from_dict(design(people_file))
    before = set(keys_of(study).values())
    pl.read_parquet(people_file).head(200).write_parquet(people_file)
    assert not before & set(keys_of(study).values())


def test_two_workers_find_what_one_finds(people_file, tmp_path):
    study = Study.from_dict(design(people_file))
    run(study, tmp_path / "one", jobs=1)
    run(study, tmp_path / "two", jobs=2)
    assert values(study, tmp_path / "one") == values(study, tmp_path / "two")


def test_a_task_that_fails_is_recorded_and_stops_nothing(people_file, tmp_path):
    given = design(people_file)
    given["variants"].append({"name": "impossible", "steps": [{"method": "swap", "k": 301}]})
    given["measures"].append({"measure": "distance_linkage", "name": "by nobody", "known": ["no"]})
    study = Study.from_dict(given)
    ended = run(study, tmp_path, jobs=1)
    assert ended.complete
    # four measures of the variant that cannot be masked, and one of the other five masked tables
    assert (ended.failed, ended.done) == (4 * 2 + 5, 15)
    found = Store(tmp_path).read(keys_of(study).values())
    reasons = {
        found[key].reason for key in keys_of(study).values() if found[key].status == "failed"
    }
    assert any(reason.startswith("masking: ") for reason in reasons)
    assert any("no column 'no'" in reason for reason in reasons)
    assert run(study, tmp_path, jobs=1).computed == 0
    assert run(study, tmp_path, jobs=1, retry=True).computed == 13


def test_a_budget_of_nothing_begins_nothing_new(people_file, tmp_path):
    study = Study.from_dict(design(people_file))
    ended = run(study, tmp_path, jobs=1, seconds=0.0)
    assert ended.stopped
    assert not ended.complete
    assert ended.computed == 0
    assert not run(study, tmp_path, jobs=1, seconds=3600.0).stopped


def test_what_is_done_after_any_time_is_balanced(people_file):
    given = design(people_file, seeds=3)
    given["tables"].append({"path": str(people_file), "name": "again", "target": "ill"})
    cells = list(Study.from_dict(given).cells())
    seeds = [cell.seed for cell in cells]
    assert seeds == sorted(seeds)
    first = [(cell.table.name, cell.variant.family) for cell in cells[:4]]
    assert len({table for table, _ in first}) == 2


KILLED = """
import sys, time
from dataclasses import replace
from shoal.study.running import _runner
from shoal.study._design import Study
import shoal.study._measures as measures

real = measures.study_measures()
count = 0
def slowly(table, **options):
    global count
    count += 1
    if count == 4:
        print("in flight", flush=True)
        time.sleep(60)
    return real["uniqueness"].function(table, **options)
changed = {**real, "uniqueness": replace(real["uniqueness"], function=slowly)}
_runner.study_measures = lambda: changed
cells = list(Study.load(sys.argv[1]).cells())
study = Study.load(sys.argv[1])
store = _runner.Store(sys.argv[2])
keys = _runner.keys_of(study)
for cell, todo in _runner._open_cells(study, keys, set()):
    _runner.measure_cell(cell, todo, study.folder, store.folder)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not on Windows")
def test_killed_in_the_middle_it_goes_on_and_ends_the_same(people_file, tmp_path):
    """-9 while a task runs: earlier results are kept, and only missing ones are computed."""
    file = tmp_path / "study.toml"
    file.write_text(
        textwrap.dedent(f"""
        name = "small"
        [[tables]]
        path = "{people_file.name}"
        target = "ill"
        [[variants]]
        name = "round"
        steps = [{{ method = "round" }}]
        grid = {{ base = [5, 10, 20] }}
        [[variants]]
        name = "swap"
        steps = [{{ method = "swap", k = 3 }}]
        [[measures]]
        measure = "uniqueness"
        [[measures]]
        measure = "total_variation"
        """)
    )
    study = Study.load(file)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(file), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "in flight\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(Store(tmp_path / "out").known(keys_of(study).values())) == 6
    ended = run(study, tmp_path / "out", jobs=1)
    assert (ended.computed, ended.complete) == (4, True)
    run(study, tmp_path / "whole", jobs=1)
    assert values(study, tmp_path / "out") == values(study, tmp_path / "whole")


def test_results_that_are_none_are_said_to_be(people_file, tmp_path):
    (tmp_path / "results.sqlite").write_text("no database at all, but long enough to look like it")
    with pytest.raises(InputError, match="damaged"):
        run(Study.from_dict(design(people_file)), tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tables": []}, "needs 'tables'"),
        ({"seeds": 0}, "seed"),
        ({"seeds": "many"}, "seeds"),
        ({"measure": []}, "no part 'measure'. Did you mean 'measures'"),
        ({"measures": ["uniquenes"]}, "Did you mean 'uniqueness'"),
        ({"measures": ["uniqueness", "uniqueness"]}, "Two measures"),
        ({"tables": [{"target": "ill"}]}, "path"),
        ({"tables": [{"path": "x.csv", "roles": "most"}]}, "'all' or 'part'"),
        ({"variants": [{"name": "x"}]}, "'steps' or 'combine'"),
        ({"variants": [{"name": "x", "steps": [{"method": "swap"}], "grid": {"k": 3}}]}, "list"),
        (
            {
                "variants": [
                    {
                        "name": "x",
                        "steps": [{"method": "round"}, {"method": "swap"}],
                        "grid": {"k": [3]},
                    }
                ]
            },
            "write method.parameter",
        ),
    ],
)
def test_a_design_that_is_wrong_is_told_in_a_sentence(people_file, changed, said):
    with pytest.raises(InputError, match=said):
        Study.from_dict(design(people_file, **changed))


def test_all_combinations_of_techniques():
    given = {
        "combine": [
            {"method": "suppress", "max_distinct": 0.7},
            {"method": "top-bottom-code"},
            {"method": "round", "base": 5},
        ]
    }
    from shoal.study._design import variants_of

    names = [variant.name for variant in variants_of(given)]
    assert len(names) == 7
    assert names[-1] == "suppress+top-bottom-code+round"


def test_a_table_that_is_nowhere_is_said_to_be(tmp_path):
    given = design(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="SHOAL_DATA"):
        run(Study.from_dict(given), tmp_path)


def test_tables_are_found_where_the_variable_says(people_file, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(people_file.parent))
    monkeypatch.chdir("/")
    study = Study.from_dict(design(people_file.name))
    assert len(study.tables[0].load()) == 300


def test_the_part_rule_chooses_the_fewest_that_tell_apart(people_file):
    given = design(people_file)
    given["tables"][0]["roles"] = "part"
    roles = Study.from_dict(given).tables[0].load().roles
    assert roles.quasi_identifiers == ("height",)
    assert roles.sensitive == ("ill",)
    given["tables"][0]["rows"] = 50
    assert len(Study.from_dict(given).tables[0].load()) == 50


def test_a_variant_may_be_measured_by_some_measures_only(people_file, tmp_path):
    given = design(people_file)
    given["variants"][0]["measures"] = ["uniqueness"]
    study = Study.from_dict(given)
    assert run(study, tmp_path, jobs=1).done == 3 + 2 * 1 + 2 * 3
    taken = {variant for _, variant, _, measure in keys_of(study) if measure == "total_variation"}
    assert taken == {"original", "swap k=3"}
    given["variants"][0]["measures"] = ["uniquenes"]
    with pytest.raises(PlanError, match=r"names the measure 'uniquenes'.*Did you mean"):
        Study.from_dict(given)


def test_a_table_that_comes_with_scikit_learn():
    source = TableSource.from_dict({"scikit_learn": "iris", "target": "target"})
    table = source.load()
    assert (source.name, len(table), len(table.columns)) == ("iris", 150, 5)
    assert table.distinct("target") == 3
    assert source.fingerprint() == "scikit-learn:iris"
    with pytest.raises(InputError, match="one of 'breast_cancer', 'digits', 'iris', 'wine'"):
        TableSource.from_dict({"scikit_learn": "wines"})
