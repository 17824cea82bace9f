"""Folders that appear complete or not at all, also when something dies on the way."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from shoal.errors import ReleaseError
from shoal.workflow.release import _folder
from shoal.workflow.release._folder import complete_or_absent, write_private

posix = pytest.mark.skipif(os.name != "posix", reason="file modes and locks of POSIX")


def fill(folder: Path, text: str = "new") -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_appears_complete(tmp_path):
    target = tmp_path / "deep" / "out"
    with complete_or_absent(target, replace=False) as partial:
        assert target.parent in partial.parents, "on the same disk, so that a rename suffices"
        assert not target.exists()
        fill(partial)
        assert not target.exists()
    assert (target / "sub" / "file").read_text() == "new"
    assert names(target.parent) == ["out"]


@posix
def test_it_is_private_while_it_is_filled(tmp_path):
    with complete_or_absent(tmp_path / "out", replace=False) as partial:
        for folder in (partial, partial.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_leaves_nothing(tmp_path, problem):
    def breaks():
        with complete_or_absent(tmp_path / "out", replace=False) as partial:
            fill(partial)
            raise problem

    with pytest.raises(problem):
        breaks()
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", ["_seal", "_put_in_place", "_flush"])
@pytest.mark.parametrize("problem", [OSError, KeyboardInterrupt])
def test_an_error_at_the_end_leaves_the_old_or_the_new(tmp_path, monkeypatch, step, problem):
    """Whatever step fails, what is there is whole."""
    target = tmp_path / "out"
    with complete_or_absent(target, replace=False) as partial:
        fill(partial, "old")

    def fails(*_, **__):
        raise problem

    monkeypatch.setattr(_folder, step, fails)
    with pytest.raises(problem), complete_or_absent(target, replace=True) as partial:
        fill(partial)
    assert names(tmp_path) == ["out"]
    assert (target / "sub" / "file").read_text() in ("old", "new")


@pytest.mark.parametrize("atomic", [True, False])
def test_replacing(tmp_path, monkeypatch, atomic):
    """Also where the system cannot swap two folders in one step."""
    target = tmp_path / "out"
    with complete_or_absent(target, replace=False) as partial:
        fill(partial, "old")
    if not atomic:
        monkeypatch.setattr(_folder.ctypes, "CDLL", lambda *_, **__: object())
    with complete_or_absent(target, replace=True) as partial:
        fill(partial, "new")
        assert (target / "sub" / "file").read_text() == "old"
    assert (target / "sub" / "file").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_the_old_folder_stays_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    """Where the system swaps folders in two steps, and the second fails."""
    target = tmp_path / "out"
    with complete_or_absent(target, replace=False) as partial:
        fill(partial, "old")
    real = os.rename

    def rename(source, place):
        if place == target and source.name == "folder":
            raise KeyboardInterrupt
        real(source, place)

    monkeypatch.setattr(_folder.ctypes, "CDLL", lambda *_, **__: object())
    monkeypatch.setattr(_folder.os, "rename", rename)
    with pytest.raises(KeyboardInterrupt), complete_or_absent(target, replace=True) as partial:
        fill(partial, "new")
    assert (target / "sub" / "file").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    with complete_or_absent(tmp_path / "out", replace=False) as partial:
        fill(partial)
    assert names(tmp_path / "out") == ["sub"]


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_appears_meanwhile_is_not_overwritten(tmp_path, what):
    target = tmp_path / "out"

    def raced():
        with complete_or_absent(target, replace=False) as partial:
            fill(partial)
            if what == "folder":
                target.mkdir()
                (target / "theirs").touch()
            else:
                target.touch()

    with pytest.raises(ReleaseError, match="appeared"):
        raced()
    assert names(tmp_path) == ["out"]
    assert target.is_file() or names(target) == ["theirs"]


@posix
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_a_link_is_not_replaced(tmp_path, replace, there):
    """Also one that appears meanwhile; what it leads to stays as it is."""
    target, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    if there:
        elsewhere.mkdir()
        (elsewhere / "theirs").touch()

    def raced():
        with complete_or_absent(target, replace=replace) as partial:
            fill(partial)
            target.symlink_to(elsewhere)

    with pytest.raises(ReleaseError, match="appeared"):
        raced()
    assert target.is_symlink()
    assert names(tmp_path) == (["elsewhere", "out"] if there else ["out"])
    assert not there or names(elsewhere) == ["theirs"]


@posix
def test_a_place_where_no_folder_can_be(tmp_path):
    """One sentence, not the error of the system."""
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "out", Path("/dev/null/out")):
        with (
            pytest.raises(ReleaseError, match="cannot be created"),
            complete_or_absent(target, replace=False),
        ):
            pass
    assert names(tmp_path) == ["file"]


@posix
def test_leftovers_of_a_live_run_are_not_touched(tmp_path):
    """Two runs to one place: the first to end wins, and neither disturbs the other."""
    target = tmp_path / "out"
    with complete_or_absent(target, replace=True) as first:
        fill(first, "first")
        with complete_or_absent(target, replace=True) as second:
            assert (first / "sub" / "file").read_text() == "first"
            fill(second, "second")
        assert (target / "sub" / "file").read_text() == "second"
        assert (first / "sub" / "file").read_text() == "first"
    assert (target / "sub" / "file").read_text() == "first"
    assert names(tmp_path) == ["out"]


@posix
def test_private_files_are_private_from_the_first_moment(tmp_path):
    before = os.umask(0)
    try:
        write_private(tmp_path / "secret", b"text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "secret", b"other")
    shutil.rmtree(tmp_path)
