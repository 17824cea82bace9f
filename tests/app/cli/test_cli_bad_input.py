"""Bad input: one sentence on stderr, exit 2, nothing written, no traceback, no cell."""

from __future__ import annotations

import json
import sqlite3

import pytest

ROLES = '[roles]\nquasi_identifiers = ["age", "zip"]\n'
GOOD = f"{ROLES}[require]\nk_anonymity = 2\n"
CELL = "CANARY"
TABLE = f"age,zip\n1,{CELL}1\n2,{CELL}2\n1,{CELL}1\n2,{CELL}2\n"

# name: the data, the plan, a part of the sentence
BAD = {
    "missing file": (None, GOOD, "There is no file 'data.csv'"),
    "empty file": ("", GOOD, "is empty"),
    "blank file": ("\n \n", GOOD, "is empty"),
    "a column named twice": (f"age,age\n1,{CELL}\n", GOOD, "the name 'age'"),
    "roles name an absent column": (TABLE, GOOD.replace('"zip"', '"zipp"'), "'zipp'"),
    "a column with two roles": (
        TABLE,
        GOOD.replace("[require]", 'sensitive = ["zip"]\n[require]'),
        "'zip' has two roles",
    ),
    "unknown part of a plan": (TABLE, GOOD.replace("[require]", "[requires]"), "'require'?"),
    "unknown key of a step": (
        TABLE,
        f'{ROLES}[[steps]]\nmethod = "round"\nbse = 5\n',
        "Did you mean 'base'?",
    ),
    "unknown method": (TABLE, f'{ROLES}[[steps]]\nmethod = "rond"\nbase = 5\n', "'round'?"),
    "unknown requirement": (TABLE, f"{ROLES}[require]\nk_anonimity = 2\n", "'k_anonymity'?"),
    "unknown role": (TABLE, GOOD.replace("quasi_identifiers", "quasi"), "'quasi_identifiers'"),
    "parameter out of range": (TABLE, f"{ROLES}[require]\nk_anonymity = 1\n", "an integer ≥ 2"),
    "plan that is no TOML": (TABLE, "[roles\n", "not valid TOML"),
    "rows of different length": (f"age,zip\n1,{CELL}\n2,{CELL},{CELL}\n", GOOD, "Line 3"),
    "a quasi-identifier entirely missing": (f"age,zip\n,{CELL}\n,{CELL}\n", GOOD, "'age' has no"),
    "unreadable encoding": (
        f"age,zip\n1,{CELL}é\n".encode("cp437"),
        GOOD,
        "--encoding cp1252",
    ),
    "a record where the names should be": (
        f"{CELL},31\nBo,40\nCy,31\n",
        GOOD,
        "'data.csv' looks like a record, not like column names (1 of 2 fields",
    ),
    "a name that is a pattern": (f"^age$,zip\n1,{CELL}\n,{CELL}2\n", GOOD, "begin with ^"),
    "no records": ("age,zip\n", GOOD, "no records"),
    "no quasi-identifiers": (TABLE, "[roles]\n", "No quasi-identifiers"),
    "an undeclared identifier": (
        "age,zip,mail\n" + "".join(f"1,a,{CELL}{n}@example.org\n" for n in range(9)),
        GOOD,
        "look like identifiers",
    ),
}


def prepare(folder, data, plan):
    if data is not None:
        content = data if isinstance(data, bytes) else data.encode()
        (folder / "data.csv").write_bytes(content)
    (folder / "plan.toml").write_text(plan)


def assert_one_sentence(stderr, part=""):
    assert stderr.startswith("shoal: "), stderr
    assert stderr.endswith("\n")
    assert stderr.count("\n") == 1, stderr
    assert part in stderr
    assert "Traceback" not in stderr
    assert CELL not in stderr


@pytest.mark.parametrize("name", BAD)
def test_protect_refuses(shoal, tmp_path, name):
    data, plan, part = BAD[name]
    prepare(tmp_path, data, plan)
    before = sorted(tmp_path.iterdir())
    result = shoal("protect", "data.csv", "--plan", "plan.toml", "--out", "release")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert_one_sentence(result.stderr, part)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "name", [n for n in BAD if not n.startswith(("unknown method", "an undeclared"))]
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_assess_refuses(shoal, tmp_path, name, more):
    data, plan, part = BAD[name]
    prepare(tmp_path, data, plan)
    result = shoal("assess", "data.csv", "--plan", "plan.toml", *more)
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, part)
    if more:
        assert json.loads(result.stdout)["exit_code"] == 2
    else:
        assert result.stdout == ""


@pytest.mark.parametrize(
    "plan",
    [
        GOOD.replace("k_anonymity = 2", "k_anonymity = 5"),
        f'{ROLES}[[steps]]\nmethod = "generalize"\nk = 5\n',
        f'{ROLES}[[steps]]\nmethod = "generalize"\nalgorithm = "local"\nk = 5\n',
    ],
)
def test_a_k_beyond_the_table_is_a_level_that_cannot_be_reached(shoal, tmp_path, plan):
    prepare(tmp_path, TABLE, plan)
    before = sorted(tmp_path.iterdir())
    result = shoal("protect", "data.csv", "--plan", "plan.toml", "--out", "release")
    assert result.exit_code == 1
    part = "k = 5 is larger than the table, which has 4 records. Choose k of at most 4."
    assert_one_sentence(result.stderr, part)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["missing file", "rows of different length", "empty file"])
def test_the_program_itself_refuses(shoal_process, tmp_path, name):
    data, plan, part = BAD[name]
    prepare(tmp_path, data, plan)
    before = sorted(tmp_path.iterdir())
    result = shoal_process("protect", "data.csv", "--plan", "plan.toml", "--out", "release")
    assert result.returncode == 2
    assert result.stdout == ""
    assert_one_sentence(result.stderr, part)
    assert sorted(tmp_path.iterdir()) == before


CALLS = {
    "no such command": (("protec",), "'protect'"),
    "no such option": (("roles", "people.csv", "--quasy", "a"), "--quasy"),
    "an option is missing": (("protect", "people.csv", "--out", "x"), "'--plan'"),
    "an engine that is not there": (
        ("protect", "people.csv", "--plan", "plan.toml", "--out", "x", "--engine", "ray"),
        "'ray' is not",
    ),
    "a format that is not there": (
        ("protect", "people.csv", "--plan", "plan.toml", "--out", "x", "--format", "parqet"),
        "Did you mean 'parquet'?",
    ),
    "the target is a file": (
        ("protect", "people.csv", "--plan", "plan.toml", "--out", "plan.toml", "--force"),
        "is a file",
    ),
    "the target holds other files": (
        ("protect", "people.csv", "--plan", "plan.toml", "--out", ".", "--force"),
        "holds other files",
    ),
    "no plan": (("protect", "people.csv", "--plan", "none.toml", "--out", "x"), "no plan at"),
    "a folder for data": (("roles", "."), "is a folder"),
    "no roles given": (("assess", "people.csv"), "--quasi"),
    "roles given twice": (
        ("assess", "people.csv", "--plan", "plan.toml", "--quasi", "age"),
        "twice",
    ),
    "a threshold beyond 1": (("assess", "people.csv", "--quasi", "age", "--threshold", "7"), "7"),
    "a reading of missing": (("assess", "people.csv", "--quasi", "age", "--missing", "x"), "'own'"),
    "a page over the data": (
        ("assess", "people.csv", "--quasi", "age", "--html", "people.csv"),
        "ends in .html",
    ),
    "an option of another format": (("roles", "people.csv", "--sheet", "2"), "--delimiter"),
    "no database": (("roles", "sqlite:///none.db", "--query", "SELECT 1"), "'none.db'"),
    "no release folder": (("verify", "nowhere"), "no release folder"),
    "a folder that is no release": (("verify", "."), "is not a release"),
    "a method that is not there": (("methods", "kanonymity"), "'k_anonymity'?"),
    "a plan that is there": (("init", "people.csv"), "--force"),
    "a folder that is not there": (("init", "people.csv", "--out", "no/plan.toml"), "folder"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_refused(shoal, tmp_path, people, plan, name):
    words, part = CALLS[name]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = shoal(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert_one_sentence(result.stderr, part)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_password_is_not_told(shoal):
    result = shoal("roles", "postgresql://ann:sesame@localhost:1/people", "--query", "SELECT 1")
    assert result.exit_code == 2
    assert_one_sentence(result.stderr)
    assert "sesame" not in result.stderr


def test_a_database_without_a_query_says_how_to_give_one(shoal, tmp_path):
    sqlite3.connect(tmp_path / "people.db").close()
    result = shoal("roles", "sqlite:///people.db")
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, "--query 'SELECT * FROM")


def test_a_column_may_be_called_like_an_option(shoal, tmp_path):
    (tmp_path / "data.csv").write_text(f"query,query\n{CELL},{CELL}\n")
    assert_one_sentence(shoal("roles", "data.csv").stderr, "the name 'query'")


def test_names_that_look_like_a_record_can_be_told_to_be_names(shoal, tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n3,4\n3,4\n")
    refused = shoal("assess", "data.csv", "--quasi", "1")
    assert refused.exit_code == 2
    assert_one_sentence(refused.stderr, "--header")
    told = shoal("assess", "data.csv", "--quasi", "1", "--header", "--json")
    assert told.exit_code == 0, told.stderr


def test_a_wrong_query_tells_no_cell(shoal, tmp_path):
    with sqlite3.connect(tmp_path / "people.db") as base:
        base.execute("CREATE TABLE people (age, zip)")
        base.execute("INSERT INTO people VALUES (1, ?)", (CELL,))
    result = shoal("roles", "sqlite:///people.db", "--query", "SELECT nothing FROM people")
    assert result.exit_code == 2
    assert_one_sentence(result.stderr)
