"""Every option of a generalization through a plan in TOML, `protect` and `verify`."""

from __future__ import annotations

import json
import tomllib

import polars as pl
import pytest

from shoal import Generalize, Plan
from shoal.parameters import parameters_of

CITIES = "city;region\nKiel;North\nBremen;North\nUlm;South\nPassau;South\nGraz;South\n"

#: Parameters of steps besides hierarchies; each plan is released and verified.
STEPS = {
    "losses": 'k = 4\nloss = "entropy-monotonic"\nsuppression_limit = 0.1',
    "another loss": 'k = 4\nloss = "kl-divergence"',
    "weights": "k = 4\nweights = { age = 3, city = 0.5 }",
    "kept, with sensitive values": (
        'k = 9\nsuppression_limit = 0.5\nsuppressed = "kept"\nkeep_sensitive = true'
    ),
    "kept": 'k = 9\nsuppression_limit = 0.5\nsuppressed = "kept"',
    "several models": "models = [{ l_diversity = 2 }, { k_anonymity = 3 }]",
    "models with options": (
        'models = { l_diversity = { l = 2, kind = "recursive", c = 3, column = "ill" }, '
        't_closeness = { t = 0.6, column = "ill" } }'
    ),
    "a whole partition": 'algorithm = "mondrian"\nk = 2\nmodels = { average_risk = 0.2 }',
    "relaxed": 'algorithm = "mondrian"\nk = 4\nrelaxed = true',
    "a population": (
        'algorithm = "local"\nmodels = { k_map = { k = 4, population = "people.csv" } }'
    ),
    "presence": (
        'algorithm = "local"\nk = 2\n'
        'models = { delta_presence = { delta_max = 1, population = "people.csv" } }'
    ),
    "refined": 'algorithm = "local"\nk = 4\nseconds = 0.01',
    "some columns": 'k = 4\ncolumns = ["city", "grade"]\nsuppression_limit = 1',
    "given levels": "k = 4\nsuppression_limit = 1\nlevels = { age = 2, city = 1, grade = 1 }",
    "extended": "k = 4\nextend = true\nsuppression_limit = 1",
    "single rows": "k = 4\nsuppression_limit = 1\nwhole = false",
}
HIERARCHIES = {
    "age": "{ intervals = [5, 20, 40] }",
    "city": '"towns.csv"',
    "grade": '{ ordered = ["a", "b", "c", "d"], fan_out = 2 }',
}


@pytest.fixture
def folder(tmp_path):
    """Sixty records; the file of cities lacks none unless one is taken out."""
    frame = pl.DataFrame(
        {
            "age": [20 + number * 7 % 40 for number in range(60)],
            "city": [["Kiel", "Bremen", "Ulm", "Passau", "Graz"][n * n % 5] for n in range(60)],
            "grade": ["abcd"[number // 3 % 4] for number in range(60)],
            "ill": [["flu", "ok", "gout", "ok"][number % 7 % 4] for number in range(60)],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    (tmp_path / "towns.csv").write_text(CITIES, encoding="utf-8")
    return tmp_path


def write_plan(folder, step, require="", columns=("age", "city", "grade")):
    given = "".join(f"{name} = {HIERARCHIES[name]}\n" for name in columns)
    text = (
        '[roles]\nquasi_identifiers = ["age", "city", "grade"]\nsensitive = ["ill"]\n'
        f'[[steps]]\nmethod = "generalize"\n{step}\n[steps.hierarchies]\n{given}{require}'
    )
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return text


def test_all_options_are_tried():
    said = {name for step in STEPS.values() for name in tomllib.loads(step)}
    assert said | {"hierarchies"} == {parameter.name for parameter in parameters_of(Generalize)}


@pytest.mark.parametrize("name", STEPS)
def test_a_plan_is_released_and_verified(shoal, folder, name):
    columns = ("city", "grade") if name == "some columns" else ("age", "city", "grade")
    if name == "extended":
        (folder / "towns.csv").write_text(CITIES.replace("Graz;South\n", ""), encoding="utf-8")
    text = write_plan(folder, STEPS[name], "[require]\nmax_uniqueness = 1\n", columns)
    plan = Plan.load(folder / "plan.toml")
    assert Plan.from_dict(plan.to_dict()).to_dict() == plan.to_dict()
    result = shoal("protect", "people.csv", "--plan", "plan.toml", "--out", "out", "--json")
    assert result.exit_code == 0, result.stderr
    verified = shoal("verify", "out", "--original", "people.csv", "--json")
    assert verified.exit_code == 0, verified.stdout
    public = (folder / "out" / "public" / "release.json").read_text("utf-8")
    recorded = json.loads(public)["methods"][0]
    private = {"hierarchies", "columns"} & {p.name for p in parameters_of(Generalize) if p.private}
    if recorded["records_removed"] == "fewer than 10":
        private.add("suppression_limit")  # it would say how few
    assert {*recorded["parameters"]} == {*tomllib.loads(text)["steps"][0]} - {"method"} - private
    assert "people.csv" not in public
    assert "towns.csv" not in public
    assert str(folder) not in public


def test_a_value_that_a_hierarchy_lacks_is_counted_and_not_named(shoal, folder):
    (folder / "towns.csv").write_text(CITIES.replace("Graz;South\n", ""), encoding="utf-8")
    write_plan(folder, "k = 4")
    result = shoal("protect", "people.csv", "--plan", "plan.toml", "--out", "out")
    assert result.exit_code == 2
    assert "city" in result.stderr
    assert "Graz" not in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("step", "code", "part"),
    [
        ("", 2, "'k' or 'models'"),
        ("k = 1", 2, "an integer ≥ 2"),
        ('k = 4\nalgorithm = "modrian"', 2, "'mondrian'"),
        ("k = 4\nrelaxed = true", 2, "for the algorithm 'mondrian'"),
        ('k = 4\nalgorithm = "local"\nsuppression_limit = 0.1', 2, "'full-domain'"),
        ("k = 4\nlevels = { age = 9, city = 1, grade = 1 }", 2, "levels 0 to 4"),
        ("k = 4\nlevels = { age = 1 }", 2, "missing: 'city'"),
        ("k = 4\nweights = { age = 0 }", 2, "0 for 'age'"),
        ("k = 4\nweights = { aeg = 2 }", 2, "'aeg'"),
        ('k = 4\nloss = "discernibility"\nweights = { age = 2 }', 2, "counts classes"),
        ("models = { l_diversity = 9 }", 1, ""),
        ('algorithm = "local"\nmodels = { t_closeness = 0 }', 1, "othing"),
        ('algorithm = "mondrian"\nmodels = { t_closeness = 0 }', 1, "t-closeness require"),
        ("models = { differential_privacy = { epsilon = 1, delta = 1e-6 } }", 2, "every search"),
        ('models = { k_map = { k = 99, population = "people.csv" } }', 1, "60 people"),
        ('models = { k_map = { k = 9, population = "none.csv" } }', 2, "none.csv"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(shoal, folder, step, code, part):
    write_plan(folder, step)
    result = shoal("protect", "people.csv", "--plan", "plan.toml", "--out", "out")
    assert result.exit_code == code, result.stderr
    lines = [line for line in result.stderr.splitlines() if "warning:" not in line]
    assert len(lines) == 1
    assert part in lines[0]
    warned = [line.split("warning: ")[1] for line in result.stderr.splitlines() if line != lines[0]]
    assert not [text for text in warned if text in lines[0]]  # nothing is said twice
    assert "Something unexpected" not in lines[0]
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('algorithm = "local"\nk = 4', "one level below"),
        ("k = 4", "some class would have failed"),
    ],
)
def test_protect_says_what_a_search_gives_away(shoal, folder, step, said):
    write_plan(folder, step)
    result = shoal("protect", "people.csv", "--plan", "plan.toml", "--out", "out")
    assert result.exit_code == 0, result.stderr
    assert said in " ".join(result.stdout.split())
