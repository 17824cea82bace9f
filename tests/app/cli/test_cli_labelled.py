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
