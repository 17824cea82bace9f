"""Every command on a file of SPSS: labels go in and come out, by default in the same format."""

from __future__ import annotations

import tomllib

import pytest

from ...table.storage.labelled import samples
from ...table.storage.labelled.samples import ps

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return samples.spss(tmp_path).name


def test_every_command(shoal, source, tmp_path):
    assert "income_reason" in shoal("roles", source).stdout
    assert shoal("init", source, "--out", "plan.toml").exit_code == 0
    plan = tomllib.loads((tmp_path / "plan.toml").read_text("utf-8"))
    assert plan["read"]["format"] == "sav"
    roles = plan["roles"]
    assert [r for r, names in roles.items() if "income" in names] == [
        r for r, names in roles.items() if "income_reason" in names
    ]
    assert shoal("assess", source, "--plan", "plan.toml").exit_code == 0
    result = shoal("protect", source, "--plan", "plan.toml", "--out", "out")
    assert result.exit_code == 0, result.stderr
    frame, about = ps.read_sav("out/public/data.sav", output_format="polars")
    assert len(frame) == samples.ROWS
    assert about.column_names_to_labels["income"] == "Net income"
    assert shoal("verify", "out", "--original", source).exit_code == 0


def test_what_a_format_cannot_hold_is_told(shoal, source, tmp_path):
    shoal("init", source, "--out", "plan.toml")
    given = ("protect", source, "--plan", "plan.toml", "--out", "out", "--format")
    result = shoal(*given, "sas7bdat")
    assert result.exit_code == 2
    assert "'xpt'" in result.stderr
    assert not (tmp_path / "out").exists()
    result = shoal(*given, "csv")
    assert result.exit_code == 0
    assert result.stderr.count("no labels of values") == 1
    result = shoal(*given, "csv", "--force", "--strict")
    assert result.exit_code == 1


def test_reasons_and_engines(shoal, source):
    text = shoal("roles", source, "--missing-reasons", "dropped").stdout
    assert "income" in text
    assert "income_reason" not in text
    shoal("init", source, "--out", "plan.toml")
    given = ("protect", source, "--plan", "plan.toml", "--out", "out", "--engine", "duckdb")
    result = shoal(*given)
    assert result.exit_code == 2
    assert "memory" in result.stderr


def test_a_catalog_of_sas_is_part_of_the_plan(shoal, tmp_path, monkeypatch):
    """Every command reads it by the option, or by the plan and the private half of a release."""
    monkeypatch.chdir(tmp_path)
    samples.sas_data(tmp_path)
    samples.catalog(tmp_path, samples.FORMATS)
    given = ("people.sas7bdat", "--catalog", "formats.sas7bcat")
    result = shoal("init", *given, "--out", "plan.toml")
    assert result.exit_code == 0, result.stderr
    assert "has labels for values of 'sex', 'marital', 'job', 'income'" in result.stderr
    plan = tomllib.loads((tmp_path / "plan.toml").read_text("utf-8"))
    assert plan["read"]["format"] == "sas7bdat"
    assert plan["read"]["catalog"] == "formats.sas7bcat"
    options = ("--plan", "plan.toml", "--out", "out", "--format", "sav")
    result = shoal("protect", "people.sas7bdat", *options)
    assert result.exit_code == 0, result.stderr
    _, about = ps.read_sav("out/public/data.sav", output_format="polars")
    assert "married" in str(about.variable_value_labels["marital"])
    assert "without a person" not in str(about.variable_value_labels)
    assert shoal("verify", "out", "--original", "people.sas7bdat").exit_code == 0
    samples.catalog(tmp_path, {"OTHER": {1: "one"}}, "other")
    other = ("--plan", "plan.toml", "--catalog", "other.sas7bcat")
    result = shoal("assess", "people.sas7bdat", *other)
    assert result.exit_code == 2
    assert "leave out --catalog" in " ".join(result.stderr.split())
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    result = shoal("roles", "a.csv", "--catalog", "formats.sas7bcat")
    assert result.exit_code == 2
    assert "--catalog does not apply to a text file" in " ".join(result.stderr.split())
