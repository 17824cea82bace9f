"""``shoal assess``: options of single measures, and what earlier releases add."""

from __future__ import annotations

import json

import pytest

from .test_cli_bad_input import assert_one_sentence

PLAN = """
[roles]
identifiers = ["email"]
quasi_identifiers = ["age", "sex"]
sensitive = ["illness"]

[[steps]]
method = "generalize"
k = 4
levels = {{ age = {age}, sex = {sex} }}
hierarchies = {{ age = {{ intervals = [20] }}, sex = {{ suppression = true }} }}

[require]
k_anonymity = 4
"""


@pytest.fixture
def releases(shoal, tmp_path):
    """Sixteen people, released by age alone and by sex alone: crowds of eight, and of four both."""
    rows = [
        f"p{number}@example.org,{20 + 30 * (number // 8)},{'fm'[number % 2]},"
        f"{'flu' if number % 2 and number < 8 else 'ok' if number % 4 else 'gout'}"
        for number in range(16)
    ]
    (tmp_path / "sixteen.csv").write_text("\n".join(["email,age,sex,illness", *rows]) + "\n")
    for name, age, sex in (("by-age", 0, 1), ("by-sex", 2, 0)):
        (tmp_path / "plan.toml").write_text(PLAN.format(age=age, sex=sex))
        result = shoal("protect", "sixteen.csv", "--plan", "plan.toml", "--out", name)
        assert result.exit_code == 0, result.stderr
    return "by-age", "--original", "sixteen.csv"


def answer(shoal, *words):
    result = shoal("assess", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_an_option_reaches_its_measure(shoal, releases):
    asked = ("--measure", "records_at_risk", "--option")
    for limit, at_risk in ((0.1, 1.0), (0.2, 0.0)):
        facts = answer(shoal, *releases, *asked, f"records_at_risk.threshold={limit}")
        assert facts["measurements"]["records_at_risk"]["value"] == at_risk
    known = 'distance_linkage.known = ["sex"]'
    facts = answer(shoal, *releases, "--measure", "distance_linkage", "--option", known)
    assert facts["measurements"]["distance_linkage"]["details"]["known"] == ["sex"]


def test_two_releases_expose_together_whom_none_exposes_alone(shoal, releases):
    assert answer(shoal, *releases)["together"] == {}
    facts = answer(shoal, *releases, "--earlier", "by-sex")["together"]
    assert facts["records"]["value"] == 1.0
    assert facts["records"]["baseline"] == 0.0
    assert facts["records"]["details"]["smallest_crowd"] == 4
    assert facts["records"]["details"]["k"] == 8
    # young men have the flu, all other classes and all single releases leave more
    assert facts["values"]["value"] == pytest.approx(0.25)
    assert facts["values"]["baseline"] == 0.0


def test_it_is_shown_beside_the_rest(shoal, releases, tmp_path):
    result = shoal("assess", *releases, "--earlier", "by-sex", "--html", "page.html")
    assert result.exit_code == 0, result.stderr
    assert "Together with earlier releases" in result.stdout
    assert "share of persons in a smaller crowd" in result.stdout
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("Together with earlier releases") == 1
    assert "Share of persons with a certain secret" in page


def test_without_a_sensitive_column_records_are_followed(shoal, releases):
    facts = answer(shoal, *releases, "--earlier", "by-sex", "--quasi", "age,sex")
    assert list(facts["together"]) == ["records"]
    assert any("only records were followed" in note for note in facts["notes"])


BAD_OPTIONS = {
    "nothing": "MEASURE.OPTION=VALUE",
    "suda=1": "MEASURE.OPTION=VALUE",
    ".known=1": "MEASURE.OPTION=VALUE",
    "sudda.x=1": "Did you mean 'suda'?",
    "distance_linkage.knwon=1": "Did you mean 'known'?",
    "distance_linkage.known=age": "TOML",
    "distance_linkage.known=": "TOML",
    "distance_linkage.sample=1\nx=2": "TOML",
    'records_at_risk.threshold="high"': "must be a number",
    "predictive_performance.random_state=1": "target",
}


@pytest.mark.parametrize("word", BAD_OPTIONS)
def test_a_wrong_option_is_one_sentence(shoal, releases, word):
    result = shoal("assess", *releases, "--option", word)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert_one_sentence(result.stderr, BAD_OPTIONS[word])


def test_an_option_twice(shoal, releases):
    words = [f"--option=records_at_risk.threshold={limit}" for limit in (0.1, 0.2)]
    assert_one_sentence(shoal("assess", *releases, *words).stderr, "is given twice")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("by-age", "--earlier", "by-sex"), "as --original"),
        (("by-age", "--original", "sixteen.csv", "--earlier", "nowhere"), "no release folder"),
        (("by-age", "--original", "sixteen.csv", "--earlier", "by-sex/public"), "no private half"),
        (("by-age/public", "--original", "sixteen.csv", "--earlier", "by-sex"), "be paired with"),
    ],
)
def test_releases_that_cannot_be_followed(shoal, releases, words, part):
    result = shoal("assess", *words)
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, part)
