"""Stopped or killed at any moment, `protect` leaves a complete release or none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are needed")

# Runs shoal and, when it is about to take its n-th step in the file system inside a folder, sends
# itself a signal, or waits to be sent one.
WATCHED = """
import os, signal, sys, time
folder, at, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
steps = 0
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background
for name in ("SIGTERM", "SIGHUP"):
    signal.signal(signal.Signals[name], signal.SIG_DFL)  # or under nohup

def watch(event, args):
    global steps
    if event != "open" and not event.startswith(("os.", "shutil.")):
        return
    paths = [os.fsdecode(arg) for arg in args[:2] if isinstance(arg, (str, bytes, os.PathLike))]
    if any(path.startswith(folder + os.sep) for path in paths):
        steps += 1
        if steps == at and what == "wait":
            print("waiting", flush=True)
            time.sleep(60)
        elif steps == at:
            os.kill(os.getpid(), signal.Signals[what])

sys.addaudithook(watch)
from shoal.app.cli import main
try:
    main()
finally:
    if what != "wait":
        print("steps", steps, file=sys.stderr)
"""


@pytest.fixture
def place(tmp_path):
    """A folder that contains nothing but the release."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def protect(warm_process, people, plan, place, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)
    beside = tmp_path_factory.mktemp("watched")
    script = beside / "watched.py"
    script.write_text(WATCHED)

    def run(at=0, what="SIGKILL", force=False):
        words = ("protect", people, "--plan", plan, "--out", place / "release")
        more = ("--force",) if force else ()
        return warm_process.run(
            script, place, at, what, *words, *more, folder=tmp_path, streams=beside, COLUMNS="80"
        )

    return run


def count_steps(protect, place, *, force):
    result = protect(force=force)
    assert result.returncode == 0, result.stderr
    if not force:
        shutil.rmtree(place / "release")
    return int(result.stderr.split()[-1])


@pytest.mark.parametrize("force", [False, True])
def test_killed_at_some_steps(shoal, protect, place, force):
    if force:
        assert protect().returncode == 0
    steps = count_steps(protect, place, force=force)
    assert steps > 10
    left = 0
    for at in [1 + steps * part // 5 for part in range(5)]:
        result = protect(at=at, force=force)
        assert result.returncode == -signal.SIGKILL, (at, result.stderr)
        left += any(path.name.startswith(".") for path in place.iterdir())
        if force or (place / "release").exists():
            assert shoal("verify", place / "release").exit_code == 0, at
            if not force:
                shutil.rmtree(place / "release")
    assert left > 0  # otherwise it was never killed at work
    assert protect(force=force).returncode == 0
    assert [path.name for path in place.iterdir()] == ["release"]
    assert shoal("verify", place / "release").exit_code == 0


@pytest.mark.parametrize(
    ("what", "code", "by"), [("SIGINT", 130, ""), ("SIGTERM", 143, " by SIGTERM")]
)
def test_stopped_at_some_steps(protect, place, what, code, by):
    steps = count_steps(protect, place, force=False)
    for part in (0.1, 0.5, 0.9):
        result = protect(at=max(1, int(part * steps)), what=what)
        told = result.stderr.splitlines()
        assert result.returncode == code, (part, result.stderr)
        assert told[0] == f"shoal: stopped{by}; nothing is left half written."
        assert len(told) == 2  # and the count of steps
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("what", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_stopped_from_outside(people, plan, place, tmp_path, what):
    """A signal arrives twice, as ``timeout`` and a closing terminal send it."""
    words = ["protect", str(people), "--plan", str(plan), "--out", str(place / "release")]
    child = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(place), "8", "wait", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    assert any(path.name.startswith(".shoal-partial-") for path in place.iterdir())
    time.sleep(0.1)
    child.send_signal(signal.Signals[what])
    child.send_signal(signal.Signals[what])
    out, err = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.Signals[what]
    assert out == ""
    by = "" if what == "SIGINT" else f" by {what}"
    assert err.splitlines()[0] == f"shoal: stopped{by}; nothing is left half written."
    assert "Traceback" not in err
    assert list(place.iterdir()) == []


def test_a_terminal_that_is_gone(people, plan, place, tmp_path):
    """Nothing can be printed any more, but written files are still removed."""
    words = ["protect", str(people), "--plan", str(plan), "--out", str(place / "release")]
    ours, theirs = os.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(place), "8", "wait", *words],
        cwd=tmp_path,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    while b"waiting" not in os.read(ours, 1000):
        pass
    os.close(ours)
    child.send_signal(signal.SIGHUP)
    assert child.wait(timeout=60) == 129
    assert list(place.iterdir()) == []


# In place of a command: it works on although it was interrupted, as a library may that calls back.
SWALLOWING = """
import os, signal, time
from shoal.app import cli

def app(**settings):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGTERM)  # while it cleans up: not heard
        time.sleep(0.1)
        print("cleaned up", flush=True)
    time.sleep(60)
    print("worked on", flush=True)

signal.signal(signal.SIGTERM, signal.SIG_DFL)
cli.app = app
cli.main()
"""


def test_a_signal_that_was_swallowed_comes_again(shoal_process):
    result = shoal_process(program=SWALLOWING)
    assert result.returncode == 143
    assert result.stdout == "cleaned up\n"
    assert result.stderr == "shoal: stopped by SIGTERM; nothing is left half written.\n"
