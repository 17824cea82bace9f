"""A file as a German spreadsheet exports it, from `init` to `verify --original` without a flag."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shlex

import pytest

from shoal import Plan
from shoal.app.cli._options import Reading

ROWS = 4000
HEAD = (
    "Patientennummer;Geschlecht;Geburtsdatum;PLZ;Ort;Gewicht kg;Aufnahme;Kosten €;Diagnose;"
    "Hochrechnungsfaktor"
).split(";")


def number(value, places):
    """A number as Germans write it."""
    return f"{value:,.{places}f}".translate(str.maketrans(",.", ".,"))


def stays(rng):
    """Invented stays in a hospital."""
    for row in range(ROWS):
        weight = number(rng.uniform(45, 120), 1)
        yield [
            f"P{row:05}",
            rng.choice("mw"),
            f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.{rng.randint(1930, 2005)}",
            rng.choice(["01067", "10115", "20095", "50667", "80331", "04109"]),
            rng.choice(["Köln", "München", "Plön", "Görlitz"]),
            rng.choice(["k.A.", "-", "unbekannt"]) if rng.random() < 0.02 else weight,
            f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.2024 {rng.randint(0, 23)}:30",
            number(rng.uniform(50, 20_000), 2),
            rng.choice(["F10.2", "I10.90", "B24"]),
            number(rng.uniform(1, 9), 3),
        ]


def exported(path, rows, head=HEAD):
    text = "\r\n".join(";".join(row) for row in [head, *rows]) + "\r\n"
    path.write_bytes(text.encode("cp1252"))
    return path


@pytest.fixture
def rows(request):
    return list(stays(random.Random(request.node.name)))


@pytest.fixture
def patients(tmp_path, rows):
    return exported(tmp_path / "patienten.csv", rows)


def done(result):
    assert result.exit_code == 0, result.stderr
    return result


def released(folder):
    """The cells as another program reads them."""
    text = (folder / "public" / "data.csv").read_bytes().decode("cp1252")
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=";"))


def test_from_init_to_verify_without_a_flag(shoal, tmp_path, patients):
    found = done(shoal("init", patients))
    assert "cp1252" in found.stderr
    said = " ".join(found.stdout.split())
    assert "3 different texts" in said
    assert found.stderr.count("cp1252") == 1
    assert "prefixes" not in re.sub("PLZ = .*", "", (tmp_path / "plan.toml").read_text())
    read = Plan.load(tmp_path / "plan.toml").read
    assert (read.delimiter, read.encoding, read.decimal, read.thousands) == (
        ";",
        "cp1252",
        ",",
        ".",
    )
    assert read.date_formats == {"Geburtsdatum": "%d.%m.%Y", "Aufnahme": "%d.%m.%Y %H:%M"}
    kinds = dict(read.columns)
    assert (kinds["Geburtsdatum"], kinds["Aufnahme"], kinds["PLZ"]) == ("date", "datetime", "text")
    assert (kinds["Kosten €"], kinds["Gewicht kg"]) == ("float", "float")
    assert {*read.missing_values} == {"k.A.", "-", "unbekannt"}
    done(shoal("protect", patients, "--plan", "plan.toml", "--out", "release"))
    cells = released(tmp_path / "release")
    assert len(cells) == ROWS
    assert all(
        re.fullmatch(r"\*|.*\b[12]\d{3}-\d\d-\d\d\b.*", row["Geburtsdatum"]) for row in cells
    )
    assert all(re.fullmatch(r"\d+,\d+", row["Kosten €"]) for row in cells)
    assert {row["Ort"] for row in cells} >= {"Köln", "München"}
    shown = done(shoal("verify", "release", "--original", patients))
    assert "holds what it claims" in shown.stdout
    assert "failed" not in shown.stdout
    ranges = {row["Gewicht kg"] for row in cells}
    assert not ranges & {"k.A.", "-", "unbekannt"}
    assert len(ranges) > 5  # ranges, as for any number


def test_usual_signs_of_missing_are_kept_as_texts_by_the_printed_command(shoal, tmp_path, patients):
    said = " ".join(done(shoal("init", patients)).stdout.split())
    command = re.search(r"If they are not missing, run: shoal (init .* --force)", said)[1]
    done(shoal(*shlex.split(command)))
    read = Plan.load(tmp_path / "plan.toml").read
    assert read.missing_values is None
    assert read.columns["Gewicht kg"] == "text"


def test_dates_become_months_or_years(shoal, tmp_path, patients):
    plan = """
[roles]
identifiers = ["Patientennummer"]
quasi_identifiers = ["Geburtsdatum", "Geschlecht"]
sensitive = ["Diagnose"]
insensitive = ["PLZ", "Ort", "Gewicht kg", "Aufnahme", "Kosten €", "Hochrechnungsfaktor"]
[[steps]]
method = "generalize"
k = 3
hierarchies.Geburtsdatum = { dates = ["month", "year", "decade"] }
[require]
k_anonymity = 3
"""
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    done(shoal("protect", patients, "--plan", "plan.toml", "--out", "release"))
    assert {len(row["Geburtsdatum"]) for row in released(tmp_path / "release")} == {len("1980")}
    done(shoal("verify", "release", "--original", patients))


def test_missing_values_that_are_said_stay_in_the_plan(shoal, tmp_path, patients):
    signs = ["--missing-value", "k.A.", "--missing-value", "-", "--missing-value", "unbekannt"]
    done(shoal("init", patients, *signs))
    assert Plan.load(tmp_path / "plan.toml").read.columns["Gewicht kg"] == "float"
    done(shoal("protect", patients, "--plan", "plan.toml", "--out", "release"))
    facts = json.loads((tmp_path / "release/private/audit.json").read_text("utf-8"))
    assert facts["read"]["missing_values"] == ["k.A.", "-", "unbekannt"]
    done(shoal("verify", "release", "--original", patients))
    done(shoal("assess", "release", "--original", patients, "--measure", "marketer_risk"))
    other = shoal("verify", "release", "--original", patients, "--missing-value", "F10.2")
    assert other.exit_code == 1
    assert "('missing_values')" in " ".join(other.stdout.split())


def test_likely_missing_values_stand_in_the_plan_as_a_proposal(shoal, tmp_path, rows):
    for row in rows[:9]:
        row[5] = "Canary 7"  # a cell, and not a known spelling of missing
    patients = exported(tmp_path / "patienten.csv", rows)
    done(shoal("init", patients))
    text = (tmp_path / "plan.toml").read_text("utf-8")
    assert "Canary" not in text
    proposed = re.search(r"^# (missing_values = .*)$", text, re.MULTILINE)
    assert Plan.load(tmp_path / "plan.toml").read.missing_values is None
    for row in rows[:9]:
        row[5] = "-"
    exported(patients, rows)
    accepted = text.replace(f"# {proposed[1]}", proposed[1])
    accepted = re.sub(r'^"Gewicht kg" = .*\n', "", accepted, flags=re.MULTILINE)
    (tmp_path / "plan.toml").write_text(accepted, "utf-8")
    read = Plan.load(tmp_path / "plan.toml").read
    assert {*read.missing_values} == {"k.A.", "-", "unbekannt"}
    done(shoal("protect", patients, "--plan", "plan.toml", "--dry-run"))


def test_a_new_column_at_night_is_refused_by_name(shoal, tmp_path, patients, rows):
    done(shoal("init", patients))
    night = exported(tmp_path / "night.csv", [[*row, "neg"] for row in rows], [*HEAD, "hiv_status"])
    result = shoal("protect", night, "--plan", "plan.toml", "--out", "release")
    assert result.exit_code == 2
    assert "'hiv_status'" in result.stderr
    assert not (tmp_path / "release").exists()
    text = (tmp_path / "plan.toml").read_text("utf-8")
    (tmp_path / "plan.toml").write_text(text.replace('unlisted = "refuse"', 'unlisted = "drop"'))
    result = done(shoal("protect", night, "--plan", "plan.toml", "--out", "release", "--json"))
    facts = json.loads(result.stdout)
    assert any("'hiv_status'" in told for told in facts["warnings"])
    assert "hiv_status" not in released(tmp_path / "release")[0]


@pytest.mark.parametrize(
    ("place", "cell", "word"),
    [(7, "frei", "'Kosten €' is text"), (2, "1.2.80", "'Geburtsdatum'")],
)
def test_a_column_that_reads_differently_is_refused_by_name(
    shoal, tmp_path, patients, rows, place, cell, word
):
    done(shoal("init", patients))
    rows[17][place] = cell
    night = exported(tmp_path / "night.csv", rows)
    result = shoal("protect", night, "--plan", "plan.toml", "--out", "release")
    assert result.exit_code == 2
    assert word in result.stderr
    assert cell not in result.stderr
    assert not (tmp_path / "release").exists()


def test_what_is_read_on_an_engine_is_what_memory_reads_or_refused(shoal, patients):
    done(shoal("init", patients))
    words = ["protect", patients, "--plan", "plan.toml", "--out", "release", "--engine", "duckdb"]
    result = shoal(*words)
    assert result.exit_code == 2
    for option in ("thousands", "missing_values", "date_formats", "encoding"):
        assert f"'{option}'" in result.stderr


@pytest.mark.parametrize(
    ("words", "delimiter", "decimal", "encoding"),
    [
        ([], ";", ",", "cp1252"),
        (["--out-encoding", "utf-8-sig"], ";", ",", "utf-8-sig"),
        (["--out-delimiter", ","], ",", ".", "cp1252"),
        (["--out-delimiter", "|", "--out-encoding", "utf-16"], "|", ",", "utf-16"),
        (["--out-decimal", "."], ";", ".", "cp1252"),
        (["--format", "tsv"], "\t", ",", "cp1252"),
    ],
)  # fmt: skip
def test_a_release_is_written_like_its_source_or_as_asked(
    shoal, tmp_path, patients, words, delimiter, decimal, encoding
):
    done(shoal("init", patients))
    done(shoal("protect", patients, "--plan", "plan.toml", "--out", "release", *words))
    (path,) = (tmp_path / "release" / "public").glob("data.*")
    text = path.read_bytes().decode(encoding)
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert len(rows) == ROWS
    assert all(decimal in row["Kosten €"] for row in rows)
    facts = json.loads((path.parent / "release.json").read_text("utf-8"))
    assert facts["data"]["dialect"] == {
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
    }
    done(shoal("verify", "release", "--original", patients))
    done(shoal("verify", "release/public"))


def test_words_are_the_options():
    reading = Reading(skip_lines=0, date_format=["a=%d/%m/%Y"], header=True, thousands="'")
    assert shlex.split(" ".join(reading.words())) == [
        *("--thousands", "'", "--date-format", "a=%d/%m/%Y", "--header", "--skip-lines", "0"),
    ]
