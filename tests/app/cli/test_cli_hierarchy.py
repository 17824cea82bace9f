"""`shoal hierarchy` shows and writes one; `shoal init` writes those of the quasi-identifiers."""

from __future__ import annotations

import json
import stat
import tomllib

import pytest

from shoal import Hierarchy, read
from shoal.app.cli._hierarchy import propose_hierarchies
from shoal.app.demo import PEOPLE
from shoal.workflow.advice._suggest_plan import assignment


@pytest.fixture
def towns(tmp_path):
    names = ["Bern"] * 60 + ["Jena"] * 30 + ["Kiel"] * 6 + ["Graz"] * 4
    rows = "".join(f"{20 + n % 60},{name},person {n * n}\n" for n, name in enumerate(names))
    path = tmp_path / "data.csv"
    path.write_text(f"age,town,note\n{rows}")
    return path


def test_a_function_shows_levels_and_no_cell(shoal, towns):
    result = shoal("hierarchy", towns, "age")
    assert result.exit_code == 0, result.stderr
    assert "intervals of 2.5, 5, 10, 20, in whole numbers" in result.stdout
    assert "[20, 25), [25, 30), [30, 35), [35, 40) and 8 more" in result.stdout
    assert "age = { intervals = [2.5, 5, 10, 20], whole = true }" in result.stdout
    assert "First lines" not in result.stdout


def test_a_list_shows_its_first_lines(shoal, towns):
    result = shoal("hierarchy", towns, "town")
    assert result.exit_code == 0, result.stderr
    assert "a list of 4 values" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["Kiel", "(other)", "*"] in [line[:1] + line[-2:] for line in lines if line]
    assert "--out FILE" in result.stdout


def test_texts_that_all_differ_are_not_printed(shoal, towns):
    result = shoal("hierarchy", towns, "note")
    assert result.exit_code == 0, result.stderr
    assert "person" not in result.stdout
    assert "note = { suppression = true }" in result.stdout


def test_a_file_is_written_for_its_owner_alone(shoal, towns, tmp_path):
    result = shoal("hierarchy", towns, "town", "--out", "town.csv")
    assert result.exit_code == 0, result.stderr
    assert "as private as the table" in " ".join(result.stdout.split())
    assert 'town = "town.csv"' in result.stdout
    path = tmp_path / "town.csv"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    table = read(towns)
    assert Hierarchy.from_csv(path) == Hierarchy.propose(table, "town")
    assert shoal("hierarchy", towns, "age", "--out", "town.csv").exit_code == 2
    assert shoal("hierarchy", towns, "age", "--out", "town.csv", "--force").exit_code == 0
    assert Hierarchy.from_csv(path) == Hierarchy.propose(table, "age").listed(table, "age")


def test_the_facts_as_json(shoal, towns):
    facts = json.loads(shoal("hierarchy", towns, "age", "--kind", "rounding", "--json").stdout)
    assert facts["hierarchy"] == {"rounding": [5, 10, 20]}
    assert facts["levels"][0] == {"level": 0, "nodes": 60}
    assert facts["levels"][3]["labels"] == ["20", "40", "60", "80"]
    assert facts["is_function"] is True
    assert facts["file"] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("agee",), "Did you mean 'age'?"),
        (("age", "--kind", "interval"), "Did you mean 'intervals'?"),
        (("town", "--kind", "quantiles"), "hierarchy of numbers does not fit"),
        (("age", "--out", "no/age.csv"), "folder"),
    ],
)
def test_a_wrong_call_is_refused_in_a_sentence(shoal, towns, words, part):
    result = shoal("hierarchy", towns, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert part in result.stderr


ODD = {
    "one": ["x"] * 40,
    "huge": [str(2**62 + 3 * n) for n in range(40)],
    "beyond": ["9" * 30 + str(n % 7) for n in range(40)],
    "unicode": [["Zürich", "Łódź", "東京", "e\u0301", "é"][n % 5] for n in range(40)],
    "date": [f"20{10 + n % 10}-0{1 + n % 9}-11" for n in range(40)],
    "moment": [f"20{10 + n % 10}-0{1 + n % 9}-11T0{n % 9}:30:00" for n in range(40)],
    "quoted": ['"a;b"' if n % 2 else '"q""r"' for n in range(40)],
    "star": ["*" if n % 5 else "v" for n in range(40)],
    "gaps": [f"v{n % 4}" if n % 3 else "" for n in range(40)],
}


@pytest.mark.parametrize("column", ODD)
def test_odd_columns_have_a_hierarchy_that_covers_them(shoal, tmp_path, column):
    lines = [f"{value},{number}" for number, value in enumerate(ODD[column])]
    (tmp_path / "odd.csv").write_text("\n".join([f"{column},other", *lines]) + "\n", "utf-8")
    shown = shoal("hierarchy", "odd.csv", column, "--json")
    assert shown.exit_code == 0, shown.stderr
    written = shoal("hierarchy", "odd.csv", column, "--out", "h.csv")
    assert written.exit_code == 0, written.stderr
    table = read(tmp_path / "odd.csv")
    for made in (
        Hierarchy.from_csv(tmp_path / "h.csv"),
        Hierarchy.from_plan(json.loads(shown.stdout)["hierarchy"]),
    ):
        assert made.uncovered(table, column) == 0
        top = made.generalize(table, column, made.levels - 1).frame[column]
        assert set(top) == {"*"}


def test_a_column_without_any_value_has_nothing_to_list(shoal, tmp_path):
    (tmp_path / "odd.csv").write_text("age,none\n" + "31,\n" * 9)
    assert shoal("hierarchy", "odd.csv", "none").exit_code == 0
    result = shoal("hierarchy", "odd.csv", "none", "--out", "h.csv")
    assert result.exit_code == 2
    assert "Column 'none' has no value" in result.stderr
    assert not (tmp_path / "h.csv").exists()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        ("Bern;CH\nBern;DE\nJena;DE\nKiel;DE\nGraz;AT\n", "repeated"),
        ("Bern;CH;EU\nJena;DE\nKiel;DE\nGraz;AT\n", "of the 4 lines"),
        ("Bern;CH;EU\nJena;CH;US\nKiel;DE;EU\nGraz;AT;EU\n", "more than one parent"),
        ("town;land\n", "lacks 4 of its 4 values"),
        ("Bern:CH\nJena:DE\nKiel:DE\nGraz:AT\n", "lacks 4 of its 4 values"),
        ("Bern;CH\nJena;DE\nKiel;DE\n", "lacks 1 of its 4 values"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(shoal, towns, tmp_path, text, part):
    (tmp_path / "town.csv").write_text(text)
    (tmp_path / "plan.toml").write_text(
        '[roles]\nquasi_identifiers = ["age", "town"]\ninsensitive = ["note"]\n'
        '[[steps]]\nmethod = "generalize"\nk = 4\n'
        '[steps.hierarchies]\ntown = "town.csv"\n'
    )
    result = shoal("protect", towns, "--plan", "plan.toml", "--out", "release")
    assert result.exit_code == 2, result.stderr
    assert part in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Graz" not in result.stderr
    assert not (tmp_path / "release").exists()


# -- next to a first plan


def test_two_hundred_quasi_identifiers_are_proposed_for_and_protected(shoal, tmp_path):
    """Forty records of two hundred dates: a first plan as it is written makes a release."""
    rows = [
        ",".join(f"19{10 + (3 * n * n + c * n) % 80}-0{1 + (n + c) % 9}-11" for c in range(200))
        for n in range(40)
    ]
    names = ",".join(f"day {c}" for c in range(200))
    (tmp_path / "wide.csv").write_text("\n".join([names, *rows]) + "\n")
    made = shoal("init", "wide.csv", "--json")
    assert made.exit_code == 0, made.stderr
    assert len(json.loads(made.stdout)["roles"]["quasi_identifiers"]) == 200
    result = shoal("protect", "wide.csv", "--plan", "plan.toml", "--out", "release", "--json")
    assert result.exit_code == 0, result.stderr
    assert shoal("verify", "release").exit_code == 0


def proposals_of(text):
    """The hierarchies of a first plan, those in use and those that are commented out."""
    block = text[text.index("[steps.hierarchies]") :].split("\n\n")[0]
    lines = [line.removeprefix("# ") for line in block.splitlines()[1:]]
    return tomllib.loads("\n".join(line for line in lines if "Mondrian" not in line))


def test_init_proposes_one_for_every_quasi_identifier(shoal, tmp_path):
    result = shoal("init", PEOPLE, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    text = (tmp_path / "plan.toml").read_text()
    found = proposals_of(text)
    assert found == facts["hierarchies"]
    assert sorted(found) == sorted(facts["roles"]["quasi_identifiers"])
    used = tomllib.loads(text)["steps"][0]["hierarchies"]
    assert used == {n: v for n, v in found.items() if read(PEOPLE).kind(n) == "text"}
    table = read(PEOPLE)
    for column, value in found.items():
        made = Hierarchy.from_plan(value, tmp_path)
        assert made == Hierarchy.propose(table, column)
        assert made.uncovered(table, column) == 0
    files = sorted((tmp_path / "hierarchies").iterdir())
    assert [f"hierarchies/{file.name}" for file in files] == sorted(facts["files"])
    assert files
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_init_says_where_they_are_and_never_replaces_one(shoal, tmp_path):
    first = shoal("init", PEOPLE)
    assert "as private as the table" in " ".join(first.stdout.split())
    path = tmp_path / "hierarchies" / "occupation.csv"
    path.write_text("mine")
    second = shoal("init", PEOPLE, "--force")
    assert second.exit_code == 0, second.stderr
    assert "Kept" in second.stdout
    assert path.read_text() == "mine"


def test_a_file_in_the_place_of_the_folder_is_told(shoal, tmp_path):
    (tmp_path / "hierarchies").write_text("mine")
    result = shoal("init", PEOPLE)
    assert result.exit_code == 2
    assert "'hierarchies' is a file" in result.stderr
    assert not (tmp_path / "plan.toml").exists()


def test_names_of_columns_become_names_of_files(tmp_path):
    import polars as pl

    from shoal import Table

    values = list("aaaabbbccd") * 10
    names = ["home town", "Home/Town", "../up", "größe", "a\nb", "..."]
    table = Table(pl.DataFrame(dict.fromkeys(names, values)))
    made = propose_hierarchies(table, names, tmp_path / "plan.toml")
    files = [path.name for path in made.written]
    assert files == [
        "home_town.csv",
        "Home_Town_2.csv",
        "up.csv",
        "größe.csv",
        "a_b.csv",
        "column.csv",
    ]
    assert all(path.parent == tmp_path / "hierarchies" for path in made.written)
    lines = "\n".join(assignment(column, value) for column, value in made.in_plan.items())
    assert tomllib.loads(lines) == dict(made.in_plan)


@pytest.mark.parametrize("column", ["age", "home town", 'a"b', "c\nd", "é = 1 # [x]"])
def test_a_line_of_a_plan_reads_back(column):
    for value in ("hierarchies/a.csv", {"edges": [[1, 2.5], [2.5]]}, {"prefixes": [2], "pad": 5}):
        line = assignment(column, value)
        assert "\n" not in line
        assert tomllib.loads(line) == {column: value}


def test_dates_in_doubt_are_asked_for_and_then_have_units(shoal, tmp_path):
    days = [f"{n % 12 + 1:02}/{n % 11 + 1:02}/{1950 + n % 50}" for n in range(200)]
    (tmp_path / "people.csv").write_text("born;n\n" + "".join(f"{day};1\n" for day in days))
    found = shoal("hierarchy", "people.csv", "born", "--json")
    assert json.loads(found.stdout)["hierarchy"] == {"suppression": True}
    assert "--date-format 'born=%d/%m/%Y'" in found.stderr
    asked = shoal("hierarchy", "people.csv", "born", "--kind", "dates")
    assert asked.exit_code == 2
    assert "--date-format" in asked.stderr
    given = shoal("hierarchy", "people.csv", "born", "--json", "--date-format", "born=%d/%m/%Y")
    assert json.loads(given.stdout)["hierarchy"]["dates"][-2:] == ["5 years", "decade"]
