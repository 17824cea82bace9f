"""`shoal tune` finds a plan that protects, or says that there is none."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import numpy as np
import polars as pl
import pytest

from shoal.app.cli.output import ui
from shoal.study.tuning import Family

SWAP = {"method": "swap", "dissimilarity": "gower"}


@pytest.fixture
def workers(tmp_path):
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, 300)
    path = tmp_path / "workers.csv"
    pl.DataFrame(
        {
            "name": [f"person-{number}" for number in range(300)],
            "age": age,
            "city": rng.choice(["Bern", "Graz", "Jena"], 300),
            "ill": np.where(age + rng.normal(0, 12, 300) > 55, "yes", "no"),
        }
    ).write_csv(path)
    (tmp_path / "roles.toml").write_text(
        '[roles]\nidentifiers = ["name"]\nquasi_identifiers = ["age", "city"]\n'
        'sensitive = ["ill"]\n'
    )
    return path


@pytest.fixture(autouse=True)
def small_space(monkeypatch):
    space = [
        Family("swap", (SWAP,), {"0.k": (3, 12)}),
        Family("round", ({"method": "round"},), {"0.base": (2,)}),
    ]
    monkeypatch.setattr("shoal.study.tuning._tune.default_space", lambda table: space)


def words(workers, *more):
    plan = ("--plan", "roles.toml", "--target", "ill", "--out", "tuned")
    return ("tune", workers, *plan, *more)


def test_the_plan_it_writes_protects_and_verifies(shoal, workers, tmp_path):
    result = shoal(*words(workers, "--max-risk", 0.2))
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "'swap k=12' has the most utility" in told
    assert "the search never saw" in told
    facts = json.loads((tmp_path / "tuned" / "tuning.json").read_text("utf-8"))
    assert "that predicts 'ill'" in facts["utility_name"]
    value, ends = facts["utility"]["value"], facts["utility"]["interval"]
    low, high = map(ui.number, ends)
    assert f"({facts['utility_name']}) is {ui.number(value)} (95 % {low} to {high})" in told
    others = [one for one in facts["tried"] if one["plan"] != "swap k=12" and one["risk"] <= 0.2]
    inside = sum(ends[0] <= one["utility"] <= ends[1] for one in others)
    assert facts["not_told_apart"] == inside
    assert ("too few people" in told) == (inside > 0)
    assert "shoal protect" in " ".join((result.stdout + result.stderr).split())
    files = {path.name for path in (tmp_path / "tuned").iterdir()}
    assert {"plan.toml", "tuning.json", "front.svg", "front.csv", "results.sqlite"} <= files
    drawn = (tmp_path / "tuned" / "front.svg").read_text("utf-8")
    assert xml.etree.ElementTree.fromstring(drawn).get("viewBox")
    assert "chosen: swap k=12" in drawn
    text = (tmp_path / "tuned" / "plan.toml").read_text("utf-8")
    assert "max_linkage_rate = 0.2" in text
    assert "random_state" not in text  # a release is drawn anew
    protected = shoal("protect", workers, "--plan", "tuned/plan.toml", "--out", "release")
    assert protected.exit_code == 0, protected.stderr
    assert shoal("verify", "release", "--original", workers).exit_code == 0


def test_the_facts_as_json_and_a_second_run_computes_nothing(shoal, workers, tmp_path):
    facts = json.loads(shoal(*words(workers, "--max-risk", 0.2, "--json")).stdout)
    assert facts["limit"] == 0.2
    assert facts["risk"]["value"] <= 0.2
    assert facts["people"] == {"searched_on": 225, "confirmed_on": 225, "held_out": 75}
    assert [one["plan"] for one in facts["tried"]] == ["swap k=3", "swap k=12", "round base=2"]
    results = tmp_path / "tuned" / "results.sqlite"
    before = results.stat().st_mtime_ns
    again = shoal(*words(workers, "--max-risk", 0.2, "--json", "--force"))
    assert json.loads(again.stdout) == facts
    assert results.stat().st_mtime_ns == before


def test_a_limit_that_nothing_reaches(shoal, workers, tmp_path):
    result = shoal(*words(workers, "--max-risk", 0.001))
    assert result.exit_code == 1
    assert "the least risk was" in " ".join(result.stderr.split())
    assert "'swap k=12'" in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert not (tmp_path / "tuned" / "plan.toml").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--max-risk, --min-utility, or both"),
        (("--max-risk", 2), "must be a number > 0 and < 1"),
        (("--max-risk", 0.2, "--risk", "luck"), "no measure of risk called 'luck'"),
        (("--max-risk", 0.2, "--target", "no"), "'no'"),
        (("--max-risk", 0.2, "--trials", 0), "trials"),
        (("--max-risk", 0.2, "--learner", "nosuch"), "There is no learner 'nosuch'"),
        (("--max-risk", 0.2, "--plan", "absent.toml"), "no plan at 'absent.toml'"),
        (("--max-risk", 0.2, "--out", "roles.toml"), "is a file"),
        (("--max-risk", 0.2, "--out", "no/where"), "no/where"),
    ],
)
def test_bad_input_is_one_sentence(shoal, workers, tmp_path, more, said):
    result = shoal(*words(workers, *more))
    assert not (tmp_path / "tuned").exists()
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_plan_that_is_there_is_not_written_over(shoal, workers, tmp_path):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "plan.toml").write_text("mine")
    result = shoal(*words(workers, "--max-risk", 0.2))
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert (tmp_path / "tuned" / "plan.toml").read_text() == "mine"


def test_the_best_are_shown_again_with_everybody(shoal, workers):
    result = shoal(*words(workers, "--max-risk", 0.3, "--search-rows", 150))
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "The best plans within the limits, on all 225 people of the search" in told
    assert told.split("on all 225")[1].split("Of 3 plans")[0].count("chosen") == 1


def test_who_stops_it_is_told_that_it_goes_on(shoal, workers, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.study.tuning.tune", stopped)
    result = shoal(*words(workers, "--max-risk", 0.2))
    assert result.exit_code == 130
    assert "the same command" in result.stderr
