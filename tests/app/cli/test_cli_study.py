"""`shoal study` lists, runs, shows, refuses and survives interruptions."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from shoal.app.cli.output import ui
from shoal.study import Finding, built_in_studies
from shoal.study._conclusion import Claim, Conclusion
from shoal.study.running._store import Store

FILE = """
title = "Rounding and swapping"
seeds = 2

[[tables]]
path = "people.csv"
without = ["email"]
target = "diagnosis"

[[variants]]
name = "round"
steps = [{ method = "round" }]
grid = { base = [5, 20] }

[[variants]]
name = "swap"
steps = [{ method = "swap", k = 3 }]

[[measures]]
measure = "uniqueness"

[[measures]]
measure = "total_variation"
"""
TASKS = 2 * (1 + 2 + 2)


@pytest.fixture
def study_file(tmp_path, people):
    path = tmp_path / "compare.toml"
    path.write_text(FILE)
    return path


def test_the_built_in_studies_are_listed(shoal):
    result = shoal("study", "list")
    assert result.exit_code == 0
    told = shoal("study", "list", "--json")
    names = [study["name"] for study in json.loads(told.stdout)["studies"]]
    assert names == list(built_in_studies())
    assert {"swap-correlations", "sampling"} <= set(names)
    assert all(name in result.stdout for name in names)


def test_a_study_of_ones_own_is_run_and_shown(shoal, study_file, tmp_path):
    result = shoal("study", study_file, "--out", "out", "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    assert "Rounding and swapping" in result.stdout
    assert f"{TASKS} of {TASKS} tasks done" in result.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    shown = shoal("study", "show", "out")
    assert shown.exit_code == 0
    assert f"{TASKS} of {TASKS} tasks done" in shown.stdout
    facts = json.loads(shoal("study", study_file, "--out", "out", "--jobs", 1, "--json").stdout)
    assert (facts["tasks"], facts["done"], facts["computed"]) == (TASKS, TASKS, 0)
    assert facts["complete"] is True
    assert facts["verdict"] == []


STATISTIC = """
[[measures]]
measure = "marketer_risk"
name = "risk of the marketer who knows every quasi-identifier"

[[measures]]
measure = "nonuniform_entropy"
name = "information lost by the entropy of each column"

[[statistics]]
kind = "front"
risk = "risk of the marketer who knows every quasi-identifier"
utility = "information lost by the entropy of each column"
"""


def test_the_same_numbers_are_shown_at_every_width(shoal, study_file, tmp_path, monkeypatch):
    study_file.write_text(FILE + STATISTIC)
    assert shoal("study", study_file, "--out", "out", "--jobs", 1).exit_code == 0
    facts = json.loads((tmp_path / "out" / "verdict.json").read_text())
    cells = [cell for one in facts["statistics"] for row in one["rows"] for cell in row]
    means = [mean["mean"] for row in facts["measures"]["rows"] for mean in row["values"]]
    assert len(means) == 4 * 4
    wanted = {ui.number(cell) for cell in (*cells, *means) if isinstance(cell, (int, float))}
    shown = {}
    for columns in ("60", "80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        again = shoal("study", study_file, "--out", "out", "--jobs", 1).stdout
        text = shoal("study", "show", "out").stdout
        assert again == text
        assert max(map(len, text.splitlines())) <= int(columns)
        shown[columns] = set(re.findall(r"\d+(?:[.,]\d+)*", text))
        assert wanted <= shown[columns]
    assert shown["60"] == shown["80"] == shown["120"]


def test_the_verdict_as_json_and_as_a_table(shoal, study_file, tmp_path, monkeypatch):
    """What a study with published numbers prints, whatever was measured."""
    findings = [
        Finding("met", 0.5, 0.51, 0.1),
        Finding("missed", 0.002, 0.2, 0.001, absolute=True),
        Finding("not yet", 0.5, float("nan"), 0.1),
    ]
    verdict = Conclusion(findings, [Claim("Fish swim.", False, "one did not")])
    monkeypatch.setattr("shoal.study._declared.conclude", lambda study, results: verdict)
    told = shoal("study", study_file, "--out", "out", "--jobs", 1, "--json")
    assert told.exit_code == 0, told.stderr
    rows = json.loads(told.stdout)["verdict"]
    wanted = {"name", "published", "measured", "tolerance", "within_tolerance"}
    assert all(wanted <= set(row) for row in rows)
    assert [row["within_tolerance"] for row in rows] == [True, False, None]
    assert [row["measured"] for row in rows] == [0.51, 0.2, None]
    shown = shoal("study", "show", "out").stdout
    assert "Does not hold: Fish swim." in shown
    assert "1 of 2 published numbers" in shown
    assert "± 10 %" in shown
    assert "± 0.001" in shown


def test_the_old_name_of_seconds_works_and_warns(shoal, study_file):
    result = shoal("study", study_file, "--out", "out", "--jobs", 1, "--budget", "0")
    assert result.exit_code == 0
    assert "--seconds" in result.stderr
    assert "--budget" not in shoal("study", "--help").stdout
    both = shoal("study", study_file, "--out", "b", "--seconds", "0", "--budget", "0s")
    assert both.exit_code == 2


def test_a_budget_stops_and_the_same_command_goes_on(shoal, study_file):
    result = shoal("study", study_file, "--out", "out", "--jobs", 1, "--seconds", "0s")
    assert result.exit_code == 0
    assert f"0 of {TASKS} tasks done" in result.stdout
    assert "same command" in " ".join(result.stderr.split())
    again = shoal("study", study_file, "--out", "out", "--jobs", 1, "--seconds", "2h", "--json")
    assert json.loads(again.stdout)["computed"] == TASKS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("study", "compare.toml"), "Pass a folder for the results: --out DIR."),
        (("study", "show"), "shoal study show DIR"),
        (("study", "show", "nowhere"), "no finished study in 'nowhere'"),
        (("study", "compare.toml", "there", "--out", "x"), "with --out"),
        (("study", "compare.toml", "--out", "x", "--seconds", "soon"), "90s, 30m, 2h or 1d"),
        (("study", "absent.toml", "--out", "x"), "There is no study at"),
        (("study", "samplin", "--out", "x"), "Did you mean 'sampling'"),
        (("study", "broken.toml", "--out", "x"), "not valid TOML"),
        (("study", "compare.toml", "--out", "x", "--preset", "slow"), "slow"),
    ],
)
def test_bad_input_is_one_sentence(shoal, study_file, tmp_path, words, said):
    (tmp_path / "broken.toml").write_text("tables = [")
    result = shoal(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert not (tmp_path / "x").exists()


def test_tables_that_are_not_here_are_all_named(shoal, tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    result = shoal("study", "swap-correlations", "--out", "out")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert (
        "The tables 'census' (file 'casc/census.parquet'), 'eia' (file 'casc/eia.parquet') were not"
        in said
    )
    assert "SHOAL_DATA" in said
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    assert shoal("study", "swap-correlations", "--out", "out").exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_study_runs_on_a_table_that_the_call_names(shoal, study_file, tmp_path):
    (tmp_path / "people.csv").rename(tmp_path / "folk.csv")
    named = ("--table", "folk.csv", "--target", "diagnosis", "--without", "email")
    words = ("study", study_file, "--out", "out", "--jobs", 1, *named, "--quasi", "age,sex")
    result = shoal(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["done"] == TASKS
    rows = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert {row.split(",")[0] for row in rows[1:]} == {"folk"}
    # the same by a file that lists it
    (tmp_path / "mine.toml").write_text(
        """
        [[tables]]
        path = "folk.csv"
        target = "diagnosis"
        without = ["email"]
        roles = { quasi_identifiers = ["age", "sex"], sensitive = ["diagnosis"] }
        """
    )
    again = shoal(
        "study", study_file, "--out", "out", "--jobs", 1, "--table", "mine.toml", "--json"
    )
    facts = json.loads(again.stdout)
    assert (facts["done"], facts["computed"]) == (TASKS, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("tradeoff", "--table", "absent.csv", "--target", "x"),
            "'absent' (file 'absent.csv') was",
        ),
        (("tradeoff", "--table", "people.csv"), "--target COLUMN"),
        (("tradeoff", "--target", "diagnosis"), "--table"),
        (("tradeoff", "--table", "people.csv", "--target", "disease"), "no column 'disease'"),
        (
            ("tradeoff", "--table", "people.csv", "--target", "age", "--without", "zip"),
            "has no column 'zip'",
        ),
        (("tradeoff", "--table", "mine.toml", "--target", "x"), "write them there"),
        (("mixed-ml", "--table", "people.csv", "--target", "sex", "--quasi", "age"), "no roles"),
        (("sampling", "--table", "people.csv", "--target", "sex"), "name them (--quasi)"),
        (("sampling", "--table", "people.csv", "--target", "diagnosis"), "has 1 different value;"),
        (("swap-correlations", "--table", "people.csv"), "name them (--quasi, --sensitive)"),
    ],
)
def test_tables_that_do_not_fit_a_study_are_told_in_a_sentence(
    shoal, people, tmp_path, words, said
):
    (tmp_path / "mine.toml").write_text("[[tables]]\npath = 'people.csv'")
    result = shoal("study", *words, "--out", "x")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert not (tmp_path / "x").exists()


def test_what_is_missing_is_said_beside_what_was_found(shoal, study_file, tmp_path, monkeypatch):
    sentence = "The table 'eia' (file 'eia.csv') was not found."
    shoal("study", study_file, "--out", "out", "--jobs", 1)
    path = tmp_path / "out" / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"missing": sentence}))
    assert sentence in " ".join(shoal("study", "show", "out").stderr.split())


# The program, which says when it is in the middle of a task and then waits to be killed there.
WAITING = """
import sys, time
from shoal.study.running import _runner
real, count = _runner._measured, []
def measured(*given):
    count.append(1)
    if len(count) == 4:
        print("in flight", flush=True)
        time.sleep(60)
    return real(*given)
_runner._measured = measured
import joblib
class Here:
    def __init__(self, **options): pass
    def __call__(self, calls):
        for function, given, named in calls:
            yield function(*given, **named)
joblib.Parallel = Here
from shoal.app.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are needed")
def test_killed_and_started_again_it_ends_the_same(shoal, shoal_process, study_file, tmp_path):
    words = ["study", str(study_file), "--out", "out", "--jobs", "1", "--json"]
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "in flight\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert not (tmp_path / "out" / "verdict.json").exists()
    again = json.loads(shoal(*words).stdout)
    assert (again["computed"], again["done"]) == (TASKS - 3, TASKS)
    words[3] = "whole"
    assert json.loads(shoal(*words).stdout)["computed"] == TASKS
    one, two = (Store(tmp_path / name) for name in ("out", "whole"))
    keys = _keys(one)
    assert keys == _keys(two)
    before, after = one.read(keys), two.read(keys)
    assert {k: r.value for k, r in before.items()} == {k: r.value for k, r in after.items()}


def _keys(store):
    with store._connected() as connection:
        return {row[0] for row in connection.execute("SELECT key FROM results")}


def test_statistics_are_written_down_and_shown(shoal, tmp_path):
    people = "\n".join(f"{n % 40},{'yn'[n % 3 == 0]}" for n in range(120))
    (tmp_path / "people.csv").write_text(f"age,ill\n{people}\n")
    (tmp_path / "s.toml").write_text(
        """
[[tables]]
path = "people.csv"
target = "ill"

[[variants]]
name = "round"
steps = [{ method = "round" }]
grid = { base = [5, 20] }

[[measures]]
measure = "uniqueness"

[[statistics]]
kind = "ranks"
measure = "uniqueness"
name = "by uniqueness"
"""
    )
    told = shoal("study", "s.toml", "--out", "out", "--jobs", 1)
    assert told.exit_code == 0, told.stderr
    assert "Mean ranks by" in " ".join(told.stdout.split())
    with (tmp_path / "out" / "statistics" / "by uniqueness.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["variant", "tables", "mean rank", "on common tables"]
    assert len(rows) == 4
    facts = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert [one["name"] for one in facts["statistics"]] == ["by uniqueness"]
    assert len(facts["statistics"][0]["rows"]) == 3
    assert "Mean ranks by" in (tmp_path / "out" / "report.html").read_text()
