"""Modes are set, not inherited: whatever the umask is, only the public half is open to others."""

from __future__ import annotations

import os
import stat

import polars as pl
import pytest

from shoal.masking import Round
from shoal.study import Study, run_study
from shoal.table import Roles, Table
from shoal.workflow import Plan, protect

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")


@pytest.fixture(params=[0o000, 0o022, 0o027, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def people():
    ages = [20 + 10 * (i % 4) for i in range(40)]
    frame = pl.DataFrame({"age": ages, "ill": ["yes", "no"] * 20})
    return Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_release(umask, people, tmp_path):
    """Finding 13: under umask 000 anyone could change the public half."""
    out = tmp_path / "deep" / "er" / "out"
    protect(people, Plan([Round(base=20)])).save(out)
    found = {path.relative_to(out).as_posix(): mode(path) for path in (out, *out.rglob("*"))}
    folders = {".": 0o755, "public": 0o755, "private": 0o700}
    assert {name: found.pop(name) for name in folders} == folders
    assert len(found) >= 5
    assert found == {name: 0o600 if name.startswith("private") else 0o644 for name in found}
    for parent in (out.parent, out.parent.parent):
        assert mode(parent) == 0o755 & ~umask


def test_a_study(umask, tmp_path):
    """Its results are about original records, also in a folder that others can enter."""
    pl.DataFrame({"age": list(range(50)), "ill": ["yes", "no"] * 25}).write_csv(tmp_path / "p.csv")
    study = Study.from_dict(
        {
            "tables": [{"path": str(tmp_path / "p.csv"), "target": "ill"}],
            "variants": [{"name": "round", "steps": [{"method": "round", "base": 10}]}],
            "measures": ["uniqueness"],
        }
    )
    out = tmp_path / "out"
    out.mkdir(mode=0o755)
    run_study(study, out, jobs=1)
    found = {path: mode(path) for path in out.rglob("*")}
    assert {"results.sqlite", "results.csv", "report.html", "verdict.json"} <= {
        path.name for path in found
    }
    assert found == {path: 0o700 if path.is_dir() else 0o600 for path in found}
    run_study(study, tmp_path / "new" / "out", jobs=1)
    assert mode(tmp_path / "new" / "out") == 0o700
    assert mode(tmp_path / "new") == 0o755 & ~umask


def test_what_commands_write(umask, tmp_path, monkeypatch):
    """A page of an assessment has counts of the original; a plan has names of columns only."""
    from typer.testing import CliRunner

    from shoal.app.cli import app

    monkeypatch.chdir(tmp_path)
    lines = [f"{20 + i % 40},{'abcd'[i % 4]},flu" for i in range(80)]
    (tmp_path / "people.csv").write_text("\n".join(["age,city,diagnosis", *lines, ""]))
    for words in (
        "assess people.csv --quasi age,city --html page.html",
        "hierarchy people.csv city --out city.csv",
        "init people.csv --out plan.toml",
    ):
        result = CliRunner().invoke(app, words.split())
        assert result.exit_code == 0, result.output
    assert mode(tmp_path / "page.html") == 0o600
    assert mode(tmp_path / "city.csv") == 0o600
    assert mode(tmp_path / "plan.toml") == 0o644 & ~umask
