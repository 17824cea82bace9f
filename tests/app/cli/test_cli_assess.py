"""``shoal assess``: releases and their originals, what is asked for, and what is said."""

from __future__ import annotations

import json
import re

import pytest

from .test_cli_bad_input import assert_one_sentence

ROLES = ("--quasi", "age,sex", "--sensitive", "diagnosis", "--identifiers", "email")


@pytest.fixture
def release(shoal, people, plan, tmp_path):
    result = shoal("protect", people, "--plan", plan, "--out", "release")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "release"


@pytest.fixture
def answer(shoal):
    """The JSON of an assessment."""

    def ask(*words):
        result = shoal("assess", *words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return ask


def test_a_release_is_paired_with_its_original(answer, release, people):
    """The rows of a release are shuffled; its private half says whose they are."""
    facts = answer(release, "--original", people)
    assert facts["roles"]["quasi_identifiers"] == ["age", "sex"]
    assert facts["original_rows"] == 40
    found = facts["measurements"]["distance_linkage"]
    assert found["about"] == "risk"
    assert found["interval"][0] <= found["value"] <= found["interval"][1]
    assert found["baseline"] == 1 / 40
    # ages of 20, 30, 40, 50 became 20, 40, 40, 40; somebody of 30 is as near to 20 as to 40
    assert found["value"] == pytest.approx((1 / 5 + 1 / 20 + 1 / 15 + 1 / 15) / 4)
    assert "unchanged_records" in facts["measurements"]


def test_the_public_half_alone(answer, release, people):
    alone = answer(release / "public")
    assert alone["roles"]["quasi_identifiers"] == ["age", "sex"]
    assert "distance_linkage" in alone["left_out"]
    facts = answer(release / "public", "--original", people)
    assert "cannot be paired" in facts["left_out"]["distance_linkage"]
    assert "total_variation" in facts["measurements"]
    whole = answer(release)
    assert whole["measurements"]["marketer_risk"] == alone["measurements"]["marketer_risk"]


def test_other_roles_than_those_of_the_release(answer, release, people):
    facts = answer(release, "--original", people, "--quasi", "age")
    assert facts["roles"] == {"quasi_identifiers": ["age"]}
    assert "distance_linkage" in facts["measurements"]


def test_a_swap_is_read_back_from_its_release(shoal, answer, tmp_path):
    rows = "".join(f"{20 + i},{i * 7 % 50}\n" for i in range(60))
    (tmp_path / "wages.csv").write_text(f"age,wage\n{rows}")
    (tmp_path / "swap.toml").write_text(
        '[roles]\nquasi_identifiers = ["age"]\nsensitive = ["wage"]\n'
        '[[steps]]\nmethod = "swap"\nk = 4\n[require]\nprobabilistic_k_anonymity = 4\n'
    )
    made = shoal("protect", "wages.csv", "--plan", "swap.toml", "--out", "out")
    assert made.exit_code == 0, made.stderr
    facts = answer("out", "--original", "wages.csv")
    assert facts["swapping"]["k"] == 4
    assert any("swapped within groups of at least 4" in note for note in facts["notes"])


def test_rows_in_the_same_order(answer, people):
    """Two files of equal length pair only if somebody says so."""
    apart = answer(people, "--original", people, *ROLES)
    assert "--same-order" in apart["left_out"]["distance_linkage"]
    paired = answer(people, "--original", people, *ROLES, "--same-order")
    assert paired["measurements"]["distance_linkage"]["value"] == pytest.approx(1 / 5)
    assert paired["measurements"]["unchanged_records"]["value"] == 1


def test_measures_by_name(answer, people):
    facts = answer(people, *ROLES, "--measure", "uniqueness,suda", "--measure", "marketer_risk")
    assert set(facts["measurements"]) == {"uniqueness", "suda", "marketer_risk"}
    assert facts["left_out"] == {}


def test_all_measures(answer, people):
    assert "household_risk" in answer(people, *ROLES)["left_out"]
    assert "household_risk" in answer(people, *ROLES, "--all")["failed"]


def test_what_an_intruder_knows(answer, release, people):
    facts = answer(release, "--original", people, "--known", "sex", "--measure", "distance_linkage")
    assert facts["measurements"]["distance_linkage"]["details"]["known"] == ["sex"]
    assert facts["measurements"]["distance_linkage"]["value"] == pytest.approx(1 / 20)


def test_a_target(answer, people):
    facts = answer(people, *ROLES, "--target", "diagnosis")
    assert facts["roles"]["target"] == "diagnosis"


def test_a_control_is_read_with_the_roles(shoal, answer, people, monkeypatch):
    from shoal.workflow import assess

    seen = []

    def spy(*tables, **options):
        seen.append(options["control"])
        return assess(*tables, **options)

    monkeypatch.setattr("shoal.workflow.assess", spy)
    answer(people, *ROLES, "--control", people)
    assert seen[0].roles.quasi_identifiers == ("age", "sex")
    assert len(seen[0]) == 40


def test_a_sample_that_lost_its_k_is_told_everywhere(shoal, tmp_path):
    """A balanced sample: not k-anonymous any more, and certain for anyone who knows the label."""
    rows = [f"{30 + 10 * (i % 2)},{'yes' if i < 6 else 'no'}\n" for i in range(40)]
    (tmp_path / "whole.csv").write_text("age,label\n" + "".join(rows))
    (tmp_path / "plan.toml").write_text(
        '[roles]\nquasi_identifiers = ["age"]\ntarget = "label"\ninsensitive = ["label"]\n'
        '[[steps]]\nmethod = "sample"\nfraction = 0.4\nstrategy = "balanced"\n'
    )
    made = shoal("protect", "whole.csv", "--plan", "plan.toml", "--out", "out")
    assert made.exit_code == 0, made.stderr
    told = shoal("assess", "out", "--original", "whole.csv", "--html", "page.html")
    as_json = shoal("assess", "out", "--original", "whole.csv", "--json")
    page = re.sub(r"\s+", " ", (tmp_path / "page.html").read_text("utf-8"))
    for text in (" ".join(told.stdout.split()), as_json.stdout, page):
        assert "The table before sampling is 20-anonymous; the release is not" in text
        assert "it is up to 1" in text
    assert " ".join(told.stdout.split()).count("is 20-anonymous; the release is not") == 1
    facts = json.loads(as_json.stdout)
    assert facts["measurements"]["certainty"]["value"] == 0.4
    assert facts["distributions"]["journalist_risk"]["quantiles"]["1.0"] == 1 / 20


def test_what_is_shown(shoal, release, people):
    result = shoal(
        "assess", release, "--original", people, "--quasi", "age,sex", "--target", "sexx"
    )
    assert_one_sentence(result.stderr, "'sexx'")
    text = shoal("assess", release, "--original", people).stdout
    assert text.index("Risk: what an intruder can learn") < text.index("Utility: what an analyst")
    assert "Attacks that were tried" in text
    assert "95 % interval" in text
    assert "baseline" in text
    left_out = text[text.index("Left out") :]
    assert "household_risk: pass the column that identifies households as its" in left_out
    assert "--all" in left_out
    assert max(map(len, text.splitlines())) <= 80


def test_what_could_not_be_measured_is_shown(shoal, tmp_path):
    (tmp_path / "whole.csv").write_text("age\n11\n12\n13\n")
    (tmp_path / "part.csv").write_text("age\n1*\n1*\n")
    result = shoal("assess", "part.csv", "--original", "whole.csv", "--quasi", "age")
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "Could not be measured certainty, journalist_risk: 2 of 2 records" in told


def test_a_name_in_a_reason_steers_no_terminal(shoal, tmp_path):
    """A column that nobody in the release has kept its values: its name is in the reason."""
    rows = "".join(f"{n},{n % 3}\n" for n in range(12))
    (tmp_path / "whole.csv").write_text(f"a\x1b[31mge,b\n{rows}")
    (tmp_path / "part.csv").write_text("b\n1\n1\n2\n")
    words = ("--original", "whole.csv", "--quasi", "a\x1b[31mge,b")
    result = shoal("assess", "part.csv", *words)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout


def test_progress_names_each_measure(shoal, people, monkeypatch):
    said = []
    monkeypatch.setattr(
        "shoal.app.cli.output._progress.Working.__call__",
        lambda self, label, share: said.append(label),
    )
    shoal("assess", people, *ROLES, "--measure", "uniqueness,suda")
    assert said == [
        "Measuring: share of records unique on few columns",
        "Measuring: share of unique records",
    ]


BAD_CALLS = {
    "a measure that is not there": (("--measure", "sudda"), "Did you mean 'suda'?"),
    "measures twice": (("--measure", "suda", "--all"), "--measure"),
    "a known column that is not there": (("--known", "agee"), "agee"),
    "no original to have the same order": (("--same-order",), "--original"),
    "a target that is not there": (("--target", "colour"), "'colour'"),
    "a control that is not there": (("--control", "nobody.csv"), "'nobody.csv'"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_wrong_call_is_one_sentence(shoal, people, name):
    words, part = BAD_CALLS[name]
    result = shoal("assess", people, *ROLES, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert_one_sentence(result.stderr, part)


def test_tables_of_other_lengths_have_no_same_order(shoal, people, tmp_path):
    (tmp_path / "few.csv").write_text("\n".join(people.read_text().splitlines()[:9]) + "\n")
    result = shoal("assess", "few.csv", "--original", people, *ROLES, "--same-order")
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, "8 rows")


def test_a_folder_that_is_no_release(shoal, tmp_path):
    assert_one_sentence(shoal("assess", tmp_path, *ROLES).stderr, "is not a release")


def test_a_release_keeps_its_own_pairing(shoal, release, people):
    result = shoal("assess", release, "--original", people, "--same-order")
    assert_one_sentence(result.stderr, "--same-order")


def test_another_original_is_refused(shoal, release, people, tmp_path):
    lines = people.read_text().splitlines()
    (tmp_path / "other.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    result = shoal("assess", release, "--original", "other.csv")
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, "not the one that was released: 'sex'")
    (tmp_path / "short.csv").write_text("\n".join(lines[:9]) + "\n")
    result = shoal("assess", release, "--original", "short.csv")
    assert_one_sentence(result.stderr, "has 8 records, but the release was made from 40")


@pytest.mark.parametrize("file", ["public/data.csv", "public/release.json", "private/audit.json"])
def test_a_damaged_release_is_refused(shoal, release, people, file):
    path = release / file
    path.write_bytes(path.read_bytes()[:-30])
    result = shoal("assess", release, "--original", people)
    assert result.exit_code == 2
    assert_one_sentence(result.stderr)


def test_one_changed_cell_is_refused(shoal, release, people):
    data = release / "public" / "data.csv"
    data.write_text(data.read_text().replace(",m,", ",f,", 1))
    result = shoal("assess", release, "--original", people)
    assert result.exit_code == 2
    assert_one_sentence(result.stderr, "does not have the recorded checksum; 'shoal verify'")


def test_a_sample_of_boxes_against_its_raw_original(shoal, answer, people, tmp_path):
    """Equal ages are in different boxes; the private half says in which classes people were."""
    (tmp_path / "boxes.toml").write_text(
        """
[roles]
identifiers = ["email"]
quasi_identifiers = ["age", "sex"]
sensitive = ["diagnosis"]

[[steps]]
method = "generalize"
algorithm = "mondrian"
k = 4

[[steps]]
method = "sample"
fraction = 0.5
strategy = "stratified"
"""
    )
    result = shoal("protect", people, "--plan", "boxes.toml", "--out", "boxes")
    assert result.exit_code == 0, result.stderr
    found = answer("boxes", "--original", people)
    assert not {"certainty", "journalist_risk"} & set(found["failed"])
    assert found["measurements"]["certainty"]["value"] <= 0.5
    assert found["measurements"]["journalist_risk"]["value"] <= 1 / 4
