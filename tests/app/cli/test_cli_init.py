"""`shoal init` writes a plan that runs as it is, whatever the columns are."""

from __future__ import annotations

import datetime
import json
import random
import shlex
import tomllib

import pytest

from shoal import Plan, Roles, Table
from shoal.app.cli._init import first_plan
from shoal.app.demo import PEOPLE

pl = pytest.importorskip("polars")


def test_the_plan_for_the_demo_runs_as_it_is(shoal, tmp_path):
    result = shoal("init", PEOPLE)
    assert result.exit_code == 0, result.stderr
    assert "shoal protect" in result.stdout
    text = (tmp_path / "plan.toml").read_text()
    plan = tomllib.loads(text)
    assert plan["roles"]["identifiers"] == ["name", "email"]
    assert plan["require"] == {"k_anonymity": 5, "l_diversity": 3}
    assert plan["steps"][0]["models"] == {"l_diversity": 3}
    (step,) = plan["steps"]
    assert (step["method"], step["algorithm"], step["k"]) == ("generalize", "mondrian", 5)
    assert all("#" in part for part in text.strip().split("\n\n"))  # every part is explained
    result = shoal("protect", PEOPLE, "--plan", "plan.toml", "--out", "made", "--json")
    assert result.exit_code == 0, result.stderr
    assert "did not change columns" not in result.stderr
    facts = json.loads(result.stdout)
    assert facts["rows"] == facts["rows_before"]


def test_what_was_written_as_json(shoal, people, tmp_path):
    result = shoal("init", people, "--out", "first.toml", "--json")
    facts = json.loads(result.stdout)
    assert facts["plan"] == "first.toml"
    assert facts["roles"] == tomllib.loads((tmp_path / "first.toml").read_text())["roles"]
    assert facts["k"] == 5


def test_a_plan_is_replaced_only_by_force(shoal, tmp_path, people):
    (tmp_path / "plan.toml").write_text("mine")
    assert shoal("init", people).exit_code == 2
    assert (tmp_path / "plan.toml").read_text() == "mine"
    assert shoal("init", people, "--force").exit_code == 0
    assert (tmp_path / "plan.toml").read_text() != "mine"


def test_options_of_reading_are_in_the_plan_and_not_in_the_next_command(shoal, people):
    people.write_text(people.read_text().replace(",", ";"))
    result = shoal("roles", people, "--delimiter", ";")
    assert f"shoal init {people} --delimiter ';'" in result.stdout
    result = shoal("init", people, "--delimiter", ";", "--missing-value", "k. A.")
    assert f"shoal protect {people} --plan plan.toml" in result.stdout
    read = Plan.load("plan.toml").read
    assert read.delimiter == ";"
    assert read.missing_values == ("k. A.",)


def tables():
    draw = random.Random(5)
    many = range(400)
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(number) for number in range(9999)]
    whole = [draw.randrange(20, 90) for _ in many]
    return {
        "whole numbers": ({"age": whole}, ["age"]),
        "decimals": ({"size": [draw.gauss(0, 1e-3) for _ in many]}, ["size"]),
        "large numbers": ({"size": [draw.lognormvariate(20, 4) for _ in many]}, ["size"]),
        "text": ({"town": [draw.choice("aaaabbbccd") for _ in many]}, ["town"]),
        "dates": ({"born": [draw.choice(days) for _ in many]}, ["born"]),
        "few dates": ({"born": [days[n % 3] for n in many]}, ["born"]),
        "flags": ({"flag": [draw.random() < 0.5 for _ in many]}, ["flag"]),
        "constant": ({"one": [7] * 400, "two": [0.5] * 400}, ["one", "two"]),
        "gaps": ({"age": [None if n % 3 else n % 7 for n in many]}, ["age"]),
        "nearly unique": ({"code": [f"c{n}" for n in many]}, ["code"]),
        "many columns": (
            {f"c{at}": [draw.randrange(30) for _ in many] for at in range(12)},
            [f"c{at}" for at in range(12)],
        ),
        "odd names": (
            {'a"b': whole, "c\nd": whole, "é = 1 # [x]": ["a", "b"] * 200},
            ['a"b', "c\nd", "é = 1 # [x]"],
        ),
        "five records": ({"age": [30, 30, 30, 30, 30]}, ["age"]),
        "two records": ({"age": [30, 60]}, ["age"]),
    }


@pytest.mark.parametrize("name", tables())
def test_a_first_plan_runs(name, recwarn, tmp_path):
    from shoal import protect

    columns, quasi = tables()[name]
    told = {"told": ["yes"] * len(columns[quasi[0]])}
    table = Table(pl.DataFrame(columns | told))
    _, text, _ = first_plan(table, Roles(quasi_identifiers=quasi), tmp_path / "plan.toml")
    assert list(recwarn) == []
    plan = Plan.from_toml(text, folder=tmp_path)
    assert plan.roles.quasi_identifiers == tuple(quasi)
    release = protect(table, plan)
    assert len(release.masked) == len(table)
    assert all(claim.holds for claim in release.claims)
    recwarn.clear()  # protect may warn about what the roles leave open


def test_without_quasi_identifiers_the_plan_says_what_to_do(shoal, tmp_path):
    (tmp_path / "flat.csv").write_text("x\n" + "same\n" * 30)
    result = shoal("init", "flat.csv")
    assert result.exit_code == 0, result.stderr
    assert "an intruder may know" in result.stdout.replace("\n", " ")
    assert shoal("protect", "flat.csv", "--plan", "plan.toml", "--out", "r").exit_code == 2


def test_columns_without_a_role_are_offered(shoal, tmp_path):
    rows = "".join(f"{20 + n % 5},x,{n % 2}\n" for n in range(60))
    (tmp_path / "data.csv").write_text(f"age,same,flag\n{rows}")
    assert shoal("init", "data.csv").exit_code == 0
    text = (tmp_path / "plan.toml").read_text()
    assert '# insensitive = ["same"' in text
    assert "insensitive" not in tomllib.loads(text)["roles"]


def test_the_way_back_from_signs_of_missing_values_keeps_the_place_of_the_plan(shoal, tmp_path):
    rows = "".join(f"{20 + n % 40};{'k.A.' if n == 7 else f'{n},5'};1,{n:03d}\n" for n in range(60))
    (tmp_path / "leute.csv").write_text(f"Alter;Gewicht;Faktor\n{rows}")
    result = shoal("init", "leute.csv", "--out", "first.toml")
    assert Plan.load("first.toml").read.columns["Faktor"] == "float"
    assert "'Faktor'" not in result.stderr  # the comma is clear once 'k.A.' is missing
    back = next(line for line in result.stdout.splitlines() if "--only-missing-value" in line)
    assert shoal(*shlex.split(back)[1:]).exit_code == 0
    assert Plan.load("first.toml").read.columns["Gewicht"] == "text"


def test_roles_are_suggested_for_the_table_that_a_plan_reads(shoal, tmp_path):
    rows = "".join(f"{20 + n % 40};{'k.A.' if n == 7 else f'{n},5'}\n" for n in range(60))
    (tmp_path / "leute.csv").write_text(f"Alter;Gewicht\n{rows}")
    result = shoal("roles", "leute.csv")
    assert "Read as missing: 'k.A.'" in result.stdout
    back = next(line for line in result.stdout.splitlines() if "--only-missing-value" in line)
    kinds = [
        {one["name"]: one["kind"] for one in json.loads(shoal(*words).stdout)["columns"]}
        for words in (["roles", "leute.csv", "--json"], [*shlex.split(back)[1:], "--json"])
    ]
    assert [one["Gewicht"] for one in kinds] == ["float", "text"]
