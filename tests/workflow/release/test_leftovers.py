"""The next run removes what killed runs left behind, and never anything else."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys

import pytest

from shoal.workflow.release import _folder
from shoal.workflow.release._folder import WORKSHOP, complete_files, complete_or_absent

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes and locks of POSIX")

NAME = WORKSHOP + "0123456789abcdef"

KILLED = """
import os, sys
from pathlib import Path
from shoal.workflow.release import _folder

def die(*_):
    os.kill(os.getpid(), 9)

_folder._remove = die  # after it was put in its place
with _folder.complete_or_absent(Path(sys.argv[1]), replace=True) as folder:
    (folder / "private").mkdir()
    (folder / "private" / "key").write_text("secret")
    if sys.argv[2] == "before":
        die()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def make(target, text="new", *, replace=False):
    with complete_or_absent(target, replace=replace) as folder:
        (folder / "file").write_text(text)


def kill(target, when="before"):
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), when], check=False)
    assert done.returncode == -9


def a_leftover(parent, name=NAME):
    """A workshop whose process is gone."""
    workshop = parent / name
    (workshop / "folder" / "private").mkdir(parents=True)
    (workshop / "folder" / "private" / "key").write_text("secret")
    (workshop / "shoal.lock").touch()
    return workshop


# What is cleared.


def test_a_run_into_another_folder_clears_what_a_killed_one_left(tmp_path):
    """Finding 10: with dated folders, no later run writes to the same place."""
    kill(tmp_path / "release-2026-11-15")
    (left,) = tmp_path.iterdir()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert [path.name for path in tmp_path.rglob("key")] == ["key"]
    make(tmp_path / "release-2026-11-16")
    assert names(tmp_path) == ["release-2026-11-16"]


def test_a_file_written_later_clears_it_too(tmp_path):
    kill(tmp_path / "release")
    with complete_files(tmp_path) as aside:
        (aside / "page.html").write_text("text")
    assert names(tmp_path) == ["page.html"]


def test_an_old_release_whose_replacement_was_killed_is_out_of_reach_and_cleared(tmp_path):
    """Finding 13: a folder that was left open to all; and the old private half goes too."""
    make(tmp_path / "release", "old")
    kill(tmp_path / "release", "after")
    assert (tmp_path / "release" / "private" / "key").exists()
    (left,) = (path for path in tmp_path.iterdir() if path.name != "release")
    assert (left / "folder" / "file").read_text() == "old"
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    make(tmp_path / "other")
    assert names(tmp_path) == ["other", "release"]


def test_one_that_was_killed_before_it_held_its_lock_is_cleared(tmp_path):
    (tmp_path / NAME).mkdir()
    make(tmp_path / "release")
    assert names(tmp_path) == ["release"]


def test_clearing_that_is_cut_short_can_be_taken_up_again(tmp_path, monkeypatch):
    workshop = a_leftover(tmp_path)

    def fails(*_, **__):
        raise OSError("cut short")

    with monkeypatch.context() as patch:
        patch.setattr(_folder.shutil, "rmtree", fails)
        _folder._clear_leftovers(tmp_path)
    assert names(workshop) == ["folder", "shoal.lock"]
    make(tmp_path / "release")
    assert names(tmp_path) == ["release"]


def test_cleaning_up_goes_on_when_it_is_interrupted(tmp_path, monkeypatch):
    """Whoever presses ctrl-C twice has the private half removed all the same."""
    real, interruptions = shutil.rmtree, iter([KeyboardInterrupt, KeyboardInterrupt])

    def interrupted(*words, **options):
        for each in interruptions:
            raise each
        real(*words, **options)

    def stopped():
        with complete_or_absent(tmp_path / "release", replace=False) as folder:
            (folder / "key").write_text("secret")
            monkeypatch.setattr(_folder.shutil, "rmtree", interrupted)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert names(tmp_path) == []


# What is not.


@pytest.mark.parametrize(
    "name", [".release.partial-0123456789abcdef", NAME[:-1], NAME + "0", NAME.upper(), NAME + "~"]
)
def test_folders_of_a_similar_name_stay(tmp_path, name):
    a_leftover(tmp_path, name)
    make(tmp_path / "release")
    assert names(tmp_path) == sorted([name, "release"])
    assert (tmp_path / name / "folder" / "private" / "key").exists()


def test_a_folder_without_our_lock_stays(tmp_path):
    workshop = a_leftover(tmp_path)
    (workshop / "shoal.lock").unlink()
    make(tmp_path / "release")
    assert (workshop / "folder" / "private" / "key").exists()


def test_what_belongs_to_another_user_stays(tmp_path, monkeypatch):
    workshop = a_leftover(tmp_path)
    monkeypatch.setattr(_folder.os, "geteuid", lambda: workshop.stat().st_uid + 1)
    make(tmp_path / "release")
    assert (workshop / "folder" / "private" / "key").exists()


@pytest.mark.parametrize("what", ["workshop", "lock", "inside"])
def test_links_lead_nowhere(tmp_path, what):
    """In a folder that others can write to, anything may be a link to important files."""
    dear = tmp_path / "dear"
    dear.mkdir()
    (dear / "work").write_text("of years")
    (dear / "shoal.lock").touch()
    shared = tmp_path / "shared"
    shared.mkdir()
    if what == "workshop":
        (shared / NAME).symlink_to(dear)
    else:
        workshop = a_leftover(shared)
        if what == "lock":
            (workshop / "shoal.lock").unlink()
            (workshop / "shoal.lock").symlink_to(dear / "shoal.lock")
        else:
            (workshop / "folder" / "link").symlink_to(dear)
            (workshop / "link").symlink_to(dear)
    make(shared / "release")
    assert names(dear) == ["shoal.lock", "work"]
    assert (NAME in names(shared)) == (what != "inside")


def test_a_folder_that_takes_the_name_meanwhile_stays(tmp_path, monkeypatch):
    """Somebody swaps the leftover for a link between the look at it and its removal."""
    dear, workshop = tmp_path / "dear", a_leftover(tmp_path)
    dear.mkdir()
    (dear / "folder").write_text("of years")
    real = fcntl.flock

    def swapped(descriptor, how):
        real(descriptor, how)
        if how & fcntl.LOCK_NB:
            workshop.rename(tmp_path / "moved")
            workshop.symlink_to(dear)

    monkeypatch.setattr(_folder.fcntl, "flock", swapped)
    _folder._clear_leftovers(tmp_path)
    assert (dear / "folder").read_text() == "of years"


@pytest.mark.parametrize("moment", ["before the lock", "before it is held"])
def test_a_run_that_has_just_begun_is_not_taken_for_a_leftover(tmp_path, monkeypatch, moment):
    """Another run removes the folder before this one has its lock, so this one starts again."""
    place, name = (_folder, "_enter") if moment == "before the lock" else (_folder.fcntl, "flock")
    real, calls = getattr(place, name), iter([True])

    def raced(*words):
        for _ in calls:
            _folder._clear_leftovers(tmp_path)
            assert names(tmp_path) == []
        return real(*words)

    monkeypatch.setattr(place, name, raced)
    with complete_or_absent(tmp_path / "release", replace=False) as folder:
        monkeypatch.undo()
        (folder / "file").write_text("new")
        make(tmp_path / "other")
        assert folder.is_dir()
    assert next(calls, None) is None
    assert names(tmp_path) == ["other", "release"]
