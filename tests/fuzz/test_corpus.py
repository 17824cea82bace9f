"""Everything that ever failed, tried again: one small file each in ``corpus/``.

An entry has the files of a folder, a command, and ``exit``, the code that it must end with. It may
begin with a whole ``release``, of which some facts are ``set`` to something else.
"""

from __future__ import annotations

import base64
import json
import shutil
import tomllib
from pathlib import Path

import pytest

from .cases import Verdict, a_release, call, counted
from .draw_tables import far_dates, far_workbook

CORPUS = Path(__file__).parent / "corpus"
ENTRIES = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in CORPUS.glob("*.toml")}


def lay_out(entry, folder):
    """The files of an entry."""
    if "release" in entry:
        shutil.copytree(a_release(entry["release"], False) / "out", folder / "out")
        path = folder / "out" / "public" / "release.json"
        facts = json.loads(path.read_text("utf-8")) | entry.get("set", {})
        path.write_text(json.dumps(facts), "utf-8")
        if not entry.get("private", False):
            shutil.rmtree(folder / "out" / "private")
    for name, text in entry.get("files", {}).items():
        (folder / name).write_text(text, "utf-8", newline="")
    for name, content in entry.get("base64", {}).items():
        (folder / name).write_bytes(base64.b64decode(content))
    made = {"far dates": lambda path: far_dates().write_parquet(path), "far cell": far_workbook}
    for name, how in entry.get("made", {}).items():
        made[how](folder / name)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_it_does_not_fail_again(name, tmp_path, monkeypatch):
    entry = ENTRIES[name]
    monkeypatch.chdir(tmp_path)
    lay_out(entry, tmp_path)
    verdict = Verdict(0, "corpus")
    code = call(verdict, *entry["command"])
    if code == 0 and entry["command"][0] == "protect":
        counted(verdict, tmp_path / "out" / "public", "corpus")
    assert verdict.failures == []
    assert code in entry["exit"]
