"""The private half in a place of its own: never a public half without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from shoal.workflow.release._folder import complete_or_absent


@pytest.fixture
def protect(shoal, people, plan):
    """Release into ``out`` and ``kept/private``."""

    def run(*more, private="kept/private"):
        words = ("protect", people, "--plan", plan, "--out", "out")
        return shoal(*words, "--private-out", private, *more)

    return run


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_halves_lie_apart_and_are_verified_together(shoal, protect, people, tmp_path):
    result = protect("--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    private = tmp_path / "kept" / "private"
    assert (facts["public"], facts["private"]) == (str(tmp_path / "out/public"), str(private))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["public"]
    assert sorted(path.name for path in private.iterdir()) == ["audit.json", "records.parquet"]
    assert {mode_of(private), *map(mode_of, private.iterdir())} == {0o700, 0o600}
    assert mode_of(tmp_path / "out") == 0o755
    words = ("verify", "out", "--original", people, "--json")
    alone = json.loads(shoal(*words).stdout)
    whole = json.loads(shoal(*words, "--private", private).stdout)
    assert (alone["authenticity"], whole["authenticity"]) == ("skipped", "passed")
    assert whole["claims_skipped"] == 0
    assert whole["holds"]


def test_the_next_command_is_one_that_works(shoal, protect, tmp_path):
    text = protect().stdout
    (line,) = [line for line in text.splitlines() if "shoal verify" in line]
    assert "--private kept/private" in line
    assert "kept/private: to keep" in text
    assert shoal(*line.split()[1:]).exit_code == 0


def test_the_private_half_of_another_release_fails(shoal, protect, people, plan, tmp_path):
    assert protect().exit_code == 0
    shoal("protect", people, "--plan", plan, "--out", "two", "--private-out", "kept/two")
    result = shoal("verify", "out", "--private", "kept/two", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["authenticity"] == "failed"


@pytest.mark.parametrize("private", ["out", "out/private", ".", "people.csv", "full", "link"])
def test_a_place_that_cannot_be_is_refused_before_the_work(protect, tmp_path, private):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    (tmp_path / "link").symlink_to("full")
    before = sorted(tmp_path.rglob("*"))
    result = protect("--force", private=private)
    assert result.exit_code == 2, result.stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_both_halves_are_replaced_if_forced_and_else_none(shoal, protect, tmp_path):
    assert protect().exit_code == 0
    first = (tmp_path / "kept/private/records.parquet").read_bytes()
    assert protect().exit_code == 2
    shutil.rmtree(tmp_path / "out")
    assert protect().exit_code == 2  # the private half alone is one that somebody may need
    assert (tmp_path / "kept/private/records.parquet").read_bytes() == first
    assert protect("--force").exit_code == 0
    assert protect("--force").exit_code == 0
    assert (tmp_path / "kept/private/records.parquet").read_bytes() != first
    assert shoal("verify", "out", "--private", "kept/private").exit_code == 0
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["private"]


def test_one_private_half_is_enough(shoal, people, plan, tmp_path):
    shoal("protect", people, "--plan", plan, "--out", "out")
    result = shoal("verify", "out", "--private", "out/private")
    assert result.exit_code == 2
    assert "private half" in result.stderr
    assert shoal("verify", "out/public", "--private", "out/private").exit_code == 0
    assert shoal("verify", "out/public", "--private", "nowhere").exit_code == 2


def test_another_file_system(shoal, protect, tmp_path):
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        private = Path(elsewhere, "private")
        assert protect(private=private).exit_code == 0
        assert {mode_of(private), *map(mode_of, private.iterdir())} == {0o700, 0o600}
        assert shoal("verify", "out", "--private", private).exit_code == 0
        assert [path.name for path in Path(elsewhere).iterdir()] == ["private"]


def test_a_release_in_parts(shoal, people, plan, tmp_path):
    pytest.importorskip("duckdb")
    shutil.copy(people, tmp_path / "table.csv")
    words = ("protect", "table.csv", "--plan", plan, "--out", "out", "--engine", "duckdb")
    result = shoal(*words, "--private-out", "kept")
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["public"]
    assert {mode_of(path) for path in (tmp_path / "kept").rglob("*.parquet")} == {0o600}
    whole = json.loads(shoal("verify", "out", "--private", "kept", "--json").stdout)
    assert (whole["authenticity"], whole["holds"]) == ("passed", True)
    (tmp_path / "kept" / "records" / "link").symlink_to(people)
    assert shoal("verify", "out", "--private", "kept").exit_code == 1


def release(place: Path, name: str, *, replace: bool) -> None:
    """Two halves that know each other by a name."""
    halves = complete_or_absent(place / "out", replace=replace, private=place / "kept" / "half")
    with halves as folder:
        for half in ("public", "private"):
            (folder / half).mkdir()
            (folder / half / "name").write_text(name)


def names(place: Path) -> tuple[str | None, str | None]:
    """The name in the public half and in the private one."""
    files = (place / "out/public/name", place / "kept/half/name")
    return tuple(file.read_text() if file.exists() else None for file in files)  # type: ignore[return-value]


class Stop(BaseException):
    """Like an interruption between two steps."""


def steps(monkeypatch, at: int, act) -> list[str]:
    """Do something before the n-th change of a name; the list has those that were done."""
    done: list[str] = []

    def rename(old, new, *more, real=os.rename, **named):
        if len(done) == at:
            done.append("stopped")
            act()
        done.append(str(new))
        return real(old, new, *more, **named)

    monkeypatch.setattr(os, "rename", rename)
    return done


KILLED = """
import os, sys
from pathlib import Path
from shoal.workflow.release._folder import complete_or_absent

place, at, replace = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
done, real = [], os.rename

def rename(*names, **more):
    if len(done) == at:
        os._exit(9)
    done.append(names)
    real(*names, **more)

os.rename = rename
private = place / "kept" / "half"
with complete_or_absent(place / "out", replace=replace, private=private) as folder:
    for half in ("public", "private"):
        (folder / half).mkdir()
        (folder / half / "name").write_text("second")
"""


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_killed_before_any_change_of_a_name(tmp_path, replace, at):
    """The process ends at once; the next run removes what it left behind."""
    if replace:
        release(tmp_path, "first", replace=False)
    words = [sys.executable, "-c", KILLED, str(tmp_path), str(at), str(replace)]
    ended = subprocess.run(words, check=False).returncode
    assert ended in (0, 9)
    public, private = names(tmp_path)
    assert public is None or public == private
    assert (ended == 0) == (public == "second")
    release(tmp_path, "third", replace=True)
    assert names(tmp_path) == ("third", "third")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["half"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "out"]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_stopped_before_any_change_of_a_name(tmp_path, monkeypatch, replace, at):
    """All is as it was before, or the release is complete."""
    if replace:
        release(tmp_path, "first", replace=False)
    before = names(tmp_path)

    def stop():
        raise Stop

    done = steps(monkeypatch, at, stop)
    try:
        release(tmp_path, "second", replace=replace)
        assert "stopped" not in done
        assert names(tmp_path) == ("second", "second")
    except Stop:
        assert names(tmp_path) == before
    assert not list(tmp_path.rglob(".shoal-partial-*"))
