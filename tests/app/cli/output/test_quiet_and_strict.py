"""For jobs without a person: nothing is said, or nothing is let through."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shoal import __version__


@pytest.fixture
def careless(plan):
    """A plan that leaves a column of the table without a role: it works, with a warning."""
    plan.write_text(plan.read_text("utf-8").replace('sensitive = ["diagnosis"]\n', ""))
    return plan


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_module_is_the_program(option, tmp_path):
    words = [sys.executable, "-m", "shoal", option]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == (f"shoal {__version__}\n", "")


def test_the_module_calls_itself_by_the_name_of_the_program(tmp_path):
    words = [sys.executable, "-m", "shoal", "verify"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "see 'shoal verify --help'" in done.stderr


def test_quiet_says_nothing_where_all_is_well(shoal, people, careless, tmp_path):
    words = ("protect", people, "--plan", careless, "--out")
    loud = shoal(*words, "loud")
    assert "shoal: warning:" in loud.stderr
    result = shoal(*words, "release", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "release" / "public" / "release.json").is_file()
    assert "holds what" in shoal("verify", "release").stdout  # the next one may speak again


@pytest.mark.parametrize("command", [("roles",), ("init",), ("assess", "--quasi", "age,sex")])
def test_quiet_holds_for_every_command(shoal, people, command):
    name, *options = command
    result = shoal(name, people, *options, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_quiet_tells_failures_and_prints_json(shoal, people, plan, careless):
    result = shoal("protect", people, "--plan", careless, "--out", "one", "--quiet", "--json")
    assert len(json.loads(result.stdout)["warnings"]) == 1
    assert result.stderr == ""
    plan.write_text(plan.read_text("utf-8").replace("k_anonymity = 5", "k_anonymity = 39"))
    result = shoal("protect", people, "--plan", plan, "--out", "two", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "k-anonymity" in result.stderr
    assert "warning" not in result.stderr


def test_quiet_is_quiet_to_the_end(shoal, people, plan):
    """Also about a warning that waits for the end: that nothing is left."""
    steps = '[[steps]]\nmethod = "suppress"\nmin_class_size = 30\n[require]'
    text = plan.read_text("utf-8").replace("[require]", steps).replace("= 5", "= 2")
    plan.write_text(text)
    words = ("protect", people, "--plan", plan, "--out", "release")
    assert "shoal:" in shoal(*words).stderr
    result = shoal(*words, "--quiet")
    assert [line for line in result.stderr.splitlines() if "warning" in line] == []


@pytest.mark.parametrize("more", [("--out", "release"), ("--dry-run",)])
def test_strict_refuses_what_is_warned_of(shoal, people, careless, tmp_path, more):
    before = sorted(tmp_path.iterdir())
    result = shoal("protect", people, "--plan", careless, *more, "--strict", "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    (warning,) = facts["warnings"]
    assert "'diagnosis'" in warning
    assert facts["exit_code"] == 1
    (line,) = result.stderr.splitlines()  # the sentence has the warning, and it is told once
    assert line == f"shoal: {facts['error']}"
    assert warning in line
    assert "--strict" in line
    assert sorted(tmp_path.iterdir()) == before


def test_strict_refuses_what_is_warned_of_while_writing(shoal, people, plan, tmp_path):
    """The dialect of the source cannot be kept: found when the masked table is at hand."""
    text = people.read_text("utf-8").replace("flu", "flü")
    people.write_bytes(text.encode("mac-roman"))
    words = ("protect", people, "--plan", plan, "--encoding", "mac-roman", "--out", "release")
    before = sorted(tmp_path.iterdir())
    result = shoal(*words, "--strict")
    assert result.exit_code == 1, result.stderr
    assert "mac-roman" in result.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert shoal(*words).exit_code == 0


def test_strict_lets_through_what_nobody_warns_of(shoal, people, plan, tmp_path):
    result = shoal("protect", people, "--plan", plan, "--out", "release", "--strict")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "release" / "public" / "release.json").is_file()


def test_a_dry_run_reads_as_the_plan_says(shoal, people, plan):
    people.write_text(people.read_text("utf-8").replace(",", "|"))
    plan.write_text('[read]\ndelimiter = "|"\n' + plan.read_text("utf-8"))
    result = shoal("protect", people, "--plan", plan, "--dry-run")
    assert result.exit_code == 0, result.stderr
