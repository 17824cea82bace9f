"""Every command does its job, says so, and leaves with the right exit code."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3

import pytest

from shoal.app.demo import PATIENTS, PEOPLE, PLAN

#: The lists that ``shoal methods --json`` has.
PARTS = ("methods", "models", "measures")


@pytest.fixture
def release(shoal, people, plan, tmp_path):
    result = shoal("protect", people, "--plan", plan, "--out", "release")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "release"


def test_demo_ends_with_a_release_and_a_report(shoal, tmp_path):
    result = shoal("demo", "--out", "made")
    assert result.exit_code == 0, result.stderr
    report = tmp_path / "made" / "public" / "report.html"
    assert str(report) in result.stdout
    assert re.search(
        r"before   1 row fits: .*, for certain\n  after    \d+ rows fit, with \d+", result.stdout
    )
    assert "looks like at least 4 others" in result.stdout
    assert "No patient was removed" in result.stdout
    assert 24 <= len(result.stdout.splitlines()) <= 40  # one screen
    assert max(map(len, result.stdout.splitlines()[:30])) <= 80
    assert len(re.findall("this one$", result.stdout, re.MULTILINE)) == 1
    page = (tmp_path / "demo-plans.html").read_text("utf-8")
    assert page.startswith("<!")
    assert page.count("within the limits, on the front") > 3
    assert page.count('class="chosen"') == 2  # the plan, and the legend
    assert report.read_text("utf-8").startswith("<!")
    assert shoal("verify", "made").exit_code == 0
    assert "shoal studio demo-studio" in result.stdout
    assert (tmp_path / "demo-studio" / PATIENTS.name).read_bytes() == PATIENTS.read_bytes()


def test_demo_refuses_to_overwrite_and_may_be_forced(shoal, tmp_path):
    assert shoal("demo").exit_code == 0
    written = (tmp_path / "demo-release" / "public" / "release.json").read_bytes()
    assert shoal("demo").exit_code == 2
    assert (tmp_path / "demo-release" / "public" / "release.json").read_bytes() == written
    result = shoal("demo", "--force", "--json")
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts["verified"] is True
    assert facts["before"]["k"] == 1
    assert facts["after"]["k"] >= 5


def test_roles_suggest_with_evidence_and_the_next_command(shoal):
    result = shoal("roles", PEOPLE)
    assert result.exit_code == 0
    assert "e-mail address" in result.stdout
    assert "distinction" in result.stdout
    assert f"shoal init {PEOPLE}" in result.stdout
    assert "example.org" not in result.stdout


def test_roles_of_a_wide_table_count_the_columns_without_one(shoal, tmp_path):
    """Not one line for each of 60 columns that tell nothing."""
    names = ["age", "sex", *(f"same_{n}" for n in range(60))]
    rows = [f"{20 + n},{'fm'[n % 2]},{','.join(['x'] * 60)}" for n in range(40)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    text = shoal("roles", "wide.csv").stdout
    assert "No role is suggested for the other 60" in text
    assert "60 columns: the same value in every row" in text
    assert "same_1" not in text
    assert len(json.loads(shoal("roles", "wide.csv", "--json").stdout)["columns"]) == 62


def test_protect_by_a_swap_says_how_to_read_crowds(shoal, people, tmp_path):
    (tmp_path / "swap.toml").write_text(
        '[roles]\nidentifiers = ["email"]\nquasi_identifiers = ["age", "sex"]\n'
        'sensitive = ["diagnosis"]\n[[steps]]\nmethod = "swap"\nk = 8\n'
    )
    said = "Crowds do not protect"
    text = shoal("protect", people, "--plan", "swap.toml", "--out", "swapped").stdout
    assert said in text
    assert text.index("share of right links") < text.index("detail lost")
    text = shoal("assess", "swapped", "--original", people).stdout
    assert said in text
    assert re.search(r"Who could be\s+found\s+without\s+the\s+swap:", text)
    assert said not in shoal("assess", people, "--quasi", "age,sex").stdout


def test_many_measures_with_one_reason_are_counted(shoal, people):
    text = shoal("assess", people, "--quasi", "age,sex").stdout
    assert re.search(r"distance_linkage\s+and\s+\d+\s+more:", text)
    assert "--original" in text


def test_roles_as_json(shoal):
    facts = json.loads(shoal("roles", PEOPLE, "--json").stdout)
    assert facts["roles"]["identifiers"] == ["name", "email"]
    assert facts["rows"] == 2000
    assert {"name", "distinction", "separation", "reason"} <= set(facts["columns"][0])


def test_assess_counts_classes(shoal, people):
    result = shoal("assess", people, "--quasi", "age,sex", "--sensitive", "diagnosis", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["k"] == 5
    assert facts["classes"]["count"] == 8
    assert facts["measurements"]["marketer_risk"]["value"] == pytest.approx(8 / 40)
    assert facts["roles"] == {"quasi_identifiers": ["age", "sex"], "sensitive": ["diagnosis"]}


def test_assess_takes_the_roles_of_a_plan(shoal, people, plan):
    by_plan = shoal("assess", people, "--plan", plan, "--json")
    by_name = shoal(
        *("assess", people, "--quasi", "age", "--quasi", "sex", "--sensitive", "diagnosis"),
        *("--identifiers", "email", "--json"),
    )
    assert json.loads(by_plan.stdout) == json.loads(by_name.stdout)


def test_assess_against_the_original(shoal, people, release, plan):
    data = release / "public" / "data.csv"
    result = shoal("assess", data, "--original", people, "--plan", plan, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["roles"]["quasi_identifiers"] == ["age", "sex"]
    assert "identifiers" not in facts["roles"]  # they are not in the released data
    assert facts["measurements"]["total_variation"]["value"] > 0


def test_assess_with_a_population_and_a_fraction(shoal, people, tmp_path):
    half = tmp_path / "half.csv"
    lines = people.read_text().splitlines()
    half.write_text("\n".join(lines[:21]) + "\n")
    given = ("assess", half, "--quasi", "age,sex", "--json")
    counted = json.loads(shoal(*given, "--population", people).stdout)["measurements"]
    estimated = json.loads(shoal(*given, "--sampling-fraction", "0.5").stdout)["measurements"]
    assert counted["journalist_risk"]["value"] == pytest.approx(1 / 5)
    assert estimated["journalist_risk"]["value"] == pytest.approx(0.5 / 2)


def test_assess_reads_missing_values_both_ways(shoal, tmp_path):
    (tmp_path / "gaps.csv").write_text("age,sex\n30,f\n30,f\n30,\n")
    own = shoal("assess", "gaps.csv", "--quasi", "age,sex", "--json")
    wildcard = shoal("assess", "gaps.csv", "--quasi", "age,sex", "--missing", "wildcard", "--json")
    assert json.loads(own.stdout)["k"] == 1
    assert json.loads(wildcard.stdout)["k"] == 3


def test_assess_writes_a_page(shoal, people, tmp_path):
    result = shoal("assess", people, "--quasi", "age,sex", "--html", "page.html", "--json")
    assert result.exit_code == 0, result.stderr
    json.loads(result.stdout)
    assert (tmp_path / "page.html").read_text("utf-8").lstrip().lower().startswith("<!doctype")
    assert "page.html" in result.stderr


def test_protect_writes_a_release_in_the_format_of_the_input(shoal, release, people):
    assert (release / "public" / "data.csv").is_file()
    assert (release / "private" / "audit.json").stat().st_mode & 0o077 == 0
    audit = json.loads((release / "private" / "audit.json").read_text())
    assert audit["source_sha256"] == hashlib.sha256(people.read_bytes()).hexdigest()
    assert "example.org" not in (release / "public" / "data.csv").read_text()


def test_protect_as_json(shoal, people, plan, tmp_path):
    words = ("protect", people, "--plan", plan, "--out", "made", "--format", "parquet", "--json")
    result = shoal(*words)
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["rows"] == facts["rows_before"] == 40
    assert facts["claims"][0]["holds"] is True
    assert facts["before"]["k"] == 5
    assert (tmp_path / "made" / "public" / "data.parquet").is_file()


def test_protect_reads_a_database_and_writes_parquet(shoal, people, plan, tmp_path):
    lines = [line.split(",") for line in people.read_text().splitlines()]
    with sqlite3.connect(tmp_path / "people.db") as base:
        base.execute(f"CREATE TABLE people ({', '.join(lines[0])})")
        base.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?)",
            [(mail, int(age), sex, told) for mail, age, sex, told in lines[1:]],
        )
    words = ("sqlite:///people.db", "--query", "SELECT * FROM people", "--plan", plan)
    result = shoal("protect", *words, "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "made" / "public" / "data.parquet").is_file()
    audit = json.loads((tmp_path / "made" / "private" / "audit.json").read_text())
    assert audit["source_sha256"] is None


def test_protect_does_not_overwrite_without_force(shoal, release, people, plan):
    written = (release / "public" / "data.csv").read_bytes()
    result = shoal("protect", people, "--plan", plan, "--out", release)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert (release / "public" / "data.csv").read_bytes() == written
    assert shoal("protect", people, "--plan", plan, "--out", release, "--force").exit_code == 0


def test_protect_looks_at_the_target_before_it_reads(shoal, release, plan):
    result = shoal("protect", "not-there.csv", "--plan", plan, "--out", release)
    assert "already a release" in result.stderr


def test_a_requirement_that_does_not_hold(shoal, people, plan, tmp_path):
    plan.write_text(plan.read_text().replace("k_anonymity = 5", "k_anonymity = 30"))
    before = sorted(tmp_path.iterdir())
    result = shoal("protect", people, "--plan", plan, "--out", "release")
    assert result.exit_code == 1
    assert result.stdout == ""
    step, reason = result.stderr.splitlines()
    assert "step 1: round changed age" in step
    assert "k = 30" in reason
    assert "Nothing was written" in reason
    assert sorted(tmp_path.iterdir()) == before


def test_a_program_reads_why_a_requirement_does_not_hold(shoal, people, plan):
    plan.write_text(plan.read_text().replace("k_anonymity = 5", "k_anonymity = 30"))
    result = shoal("protect", people, "--plan", plan, "--out", "release", "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["exit_code"] == 1
    assert facts["error"] in result.stderr
    assert [(c["claim"], c["required"], c["holds"]) for c in facts["requirements"]] == [
        ("k_anonymity", 30, False)
    ]
    assert facts["steps"][0]["columns"] == ["age"]
    assert "mondrian" in facts["advice"][0]["change"]


def test_a_plan_that_takes_everybody_out(shoal, people, plan):
    with plan.open("a") as file:
        file.write('[[steps]]\nmethod = "suppress"\nmin_class_size = 40\n')
    result = shoal("protect", people, "--plan", plan, "--out", "release")
    assert result.exit_code == 1
    assert "every record" in result.stderr


def test_verify_accepts_and_shows_the_checks(shoal, release, people):
    result = shoal("verify", "release", "--original", people)
    assert result.exit_code == 0, result.stderr
    assert "claim k_anonymity" in result.stdout
    assert "holds what it claims" in result.stdout
    facts = json.loads(shoal("verify", release, "--json").stdout)
    assert facts["holds"] is True
    assert {check["status"] for check in facts["checks"]} <= {"passed", "skipped"}


def words_of(result):
    return " ".join(result.stdout.split())


def test_verify_says_how_many_claims_it_checked(shoal, release):
    told = words_of(shoal("verify", "release"))
    assert "release holds what it claims: 1 of 1 claim checked." in told
    assert "cannot be checked" not in told


def test_verify_of_the_public_half_says_what_it_cannot_know(shoal, release, tmp_path):
    """Whoever sends it can take a claim out of release.json, or write a weaker one."""
    shutil.copytree(release / "public", tmp_path / "store")
    result = shoal("verify", "store")
    assert result.exit_code == 0, result.stderr
    told = words_of(result)
    assert "store holds what it claims: 1 of 1 claim checked." in told
    assert "removed or weakened" in told
    facts = json.loads(shoal("verify", "store", "--json").stdout)
    assert facts["authenticity"] == "skipped"
    assert facts["claims_checked"] == 1


def test_verify_of_a_release_without_claims_does_not_praise_it(shoal, release):
    shutil.rmtree(release / "private")
    path = release / "public" / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "claims": []}), "utf-8")
    told = words_of(shoal("verify", "release"))
    assert "release makes no claims" in told
    assert "holds what it claims" not in told
    assert "removed or weakened" in told


def test_verify_names_the_claims_that_it_could_not_check(shoal, people, plan):
    with plan.open("a") as file:
        file.write("max_unchanged_records = 1\n")
    assert shoal("protect", people, "--plan", plan, "--out", "release").exit_code == 0
    result = shoal("verify", "release")
    assert result.exit_code == 0
    told = words_of(result)
    assert "release holds as far as it could be checked: 1 of 2 claims checked." in told
    assert "Not checked: max_unchanged_records." in told
    assert "2 of 2 claims" in words_of(shoal("verify", "release", "--original", people))


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_protect_refuses_special_places_before_it_reads(shoal, plan, tmp_path, monkeypatch, force):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "real")
    for out, why in (
        (".", "current folder"),
        ("../link", "is a link"),
        ("/", "is a mount point"),
        (plan / "out", "is not a folder"),
    ):
        result = shoal("protect", "not-there.csv", "--plan", plan, "--out", out, *force)
        assert result.exit_code == 2
        assert why in result.stderr


@pytest.mark.parametrize("half", ["public/data.csv", "public/release.json", "public/report.html"])
def test_verify_fails_after_a_changed_byte(shoal, release, half):
    path = release / half
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    result = shoal("verify", release, "--json")
    assert result.exit_code in (1, 2)  # a release.json that is no JSON is no release
    if half != "public/release.json":
        assert result.exit_code == 1
        assert json.loads(result.stdout)["holds"] is False
        assert "does not hold what it claims" in shoal("verify", "release").stdout


def test_methods_list_everything(shoal):
    from shoal.masking import discover_maskers
    from shoal.models import discover_models
    from shoal.workflow import discover_all_measures

    result = shoal("methods")
    assert result.exit_code == 0
    names = [*discover_maskers(), *discover_models(), *discover_all_measures()]
    assert [name for name in names if name not in result.stdout] == []
    facts = json.loads(shoal("methods", "--json").stdout)
    listed = [entry["name"] for part in PARTS for entry in facts[part]]
    assert sorted(listed) == sorted(names)


def test_every_example_of_methods_is_a_plan(shoal):
    from shoal import Plan

    facts = json.loads(shoal("methods", "--json").stdout)
    for entry in [entry for part in PARTS for entry in facts[part]]:
        plan = Plan.from_toml(entry["example"])
        assert len(plan.steps) + len(plan.require) == 1, entry["name"]
        assert entry["reference"], entry["name"]
        assert all(option["accepts"] for option in entry["parameters"]), entry["name"]


@pytest.mark.parametrize("name", ["round", "Round", "k_anonymity", "max_marketer_risk"])
def test_methods_explain_one(shoal, name):
    result = shoal("methods", name)
    assert result.exit_code == 0
    assert "In a plan" in result.stdout
    assert "References" in result.stdout


def test_addresses_of_references_end_before_the_sentence_does(shoal):
    found = shoal("methods", "suda").stdout
    assert "(https://doi.org/10.1111/1467-9868.00365)." in found


def test_the_plan_of_the_demo_runs_by_hand(shoal):
    result = shoal("protect", PATIENTS, "--plan", PLAN, "--out", "made", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["after"]["k"] >= 5


def test_a_dry_run_says_what_the_plan_does_and_writes_nothing(shoal, people, plan, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    result = shoal("protect", people, "--plan", plan, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "What is left of each column" in result.stdout
    assert "nothing was written" in result.stdout
    facts = json.loads(shoal("protect", people, "--plan", plan, "--dry-run", "--json").stdout)
    assert facts["dry_run"]
    assert facts["left"]["age"]
    assert "release" not in facts
    assert sorted(tmp_path.rglob("*")) == before
    result = shoal("protect", people, "--plan", plan)
    assert (result.exit_code, "--dry-run" in result.stderr) == (2, True)


def test_the_curve_of_k_on_the_terminal_and_on_the_page(shoal, people, tmp_path):
    args = ("assess", people, "--quasi", "age,sex", "--k-curve")
    result = shoal(*args, "--html", "page.html")
    assert result.exit_code == 0, result.stderr
    assert "What each k costs" in result.stdout
    assert "What each k costs" in (tmp_path / "page.html").read_text("utf-8")
    assert next(point["k"] for point in json.loads(shoal(*args, "--json").stdout)["k_curve"]) == 2
    refused = shoal(*args, "--original", people)
    assert (refused.exit_code, "--k-curve" in refused.stderr) == (2, True)
