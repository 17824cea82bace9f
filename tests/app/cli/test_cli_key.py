"""``shoal key``, and the steps that take its file, as people type them."""

from __future__ import annotations

import json
import re

import polars as pl

PLAN = """
[roles]
unit = "patient_id"
quasi_identifiers = ["sex"]
insensitive = ["came", "went"]
drop = ["notes"]

[[steps]]
method = "shift_dates"
days = 60
key_file = "patients.key"

[[steps]]
method = "pseudonymize"
columns = ["patient_id"]
key_file = "patients.key"

[require]
k_anonymity = 2
"""


def test_a_key_is_made_once_and_for_its_owner(shoal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = shoal("key", "patients.key")
    assert result.exit_code == 0
    path = tmp_path / "patients.key"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    assert text.strip() not in result.stdout + result.stderr
    again = shoal("key", "patients.key", "--json")
    assert again.exit_code == 2
    assert path.read_text() == text
    other = shoal("key", "other.key", "--json")
    assert json.loads(other.stdout)["key_file"] == "other.key"


def test_two_tables_released_with_one_key_join(shoal, tmp_path, monkeypatch):
    """From another folder than that of the plan, which names the key beside it."""
    folder = tmp_path / "plans"
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    assert shoal("key", "plans/patients.key").exit_code == 0
    for name in ("stays", "labs"):
        pl.DataFrame(
            {
                "patient_id": [f"H-{n // 2:04}" for n in range(60)],
                "came": [f"2023-0{1 + n % 9}-1{n % 7}" for n in range(60)],
                "went": [f"2023-0{1 + n % 9}-2{n % 7}" for n in range(60)],
                "sex": ["fm"[n // 2 % 2] for n in range(60)],
                "notes": ["x"] * 60,
            }
        ).write_csv(f"{name}.csv")
        words = ("--plan", "plans/plan.toml", "--out", f"{name}-out", "--format", "csv")
        result = shoal("protect", f"{name}.csv", *words)
        assert result.exit_code == 0, result.stderr
        assert shoal("verify", f"{name}-out", "--original", f"{name}.csv").exit_code == 0
    one, other = (pl.read_csv(f"{name}-out/public/data.csv") for name in ("stays", "labs"))
    assert one.columns == ["patient_id", "came", "went", "sex"]
    assert set(one["patient_id"]) == set(other["patient_id"])
    names = one.columns
    assert one.sort(names).equals(other.sort(names))


def test_a_key_that_others_can_read_stops_the_release(shoal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "people.csv").write_text(
        "patient_id,came,went,sex,notes\n"
        + "".join(f"{n},2023-01-01,2023-01-02,f,x\n" for n in range(8))
    )
    shoal("key", "patients.key")
    (tmp_path / "patients.key").chmod(0o644)
    result = shoal("protect", "people.csv", "--plan", "plan.toml", "--out", "out")
    assert result.exit_code == 2, result.stdout + result.stderr
    assert "0600" in result.stderr
    assert not (tmp_path / "out").exists()
