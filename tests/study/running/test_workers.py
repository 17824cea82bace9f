"""The workers of a study end with their parent, and say nothing when it is stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX are needed")

PATIENCE = 120.0  # seconds; the machine may be busy

# One worker is in a task, the other has none; the main process waits for both.
WORKING = """
import os, sys, threading, time
from pathlib import Path
from shoal.study.running._workers import on_this_machine

def work(folder, seconds):
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.05)
    time.sleep(seconds)

def run():
    list(on_this_machine(work, iter([(Path(sys.argv[1]), 0), (Path(sys.argv[1]), 600)]), 2))

if sys.argv[2] == "thread":
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
"""

STUDY = """
measures = ["uniqueness"]
seeds = 3000
[[tables]]
path = "people.csv"
target = "ill"
[[variants]]
name = "swap"
steps = [{method = "rank_swap", percent = 5}]
"""


def wait_for(what):
    until = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def is_alive(process):
    try:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=True
        ).stdout
    except subprocess.CalledProcessError:
        return False
    return not state.startswith("Z")


@pytest.mark.parametrize("where", ["main", "thread"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path, where):
    """Finding 10: they lived on for minutes and kept the output open: `… | tee log` hung."""
    child = subprocess.Popen(
        [sys.executable, "-c", WORKING, str(tmp_path), where],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    child.kill()
    try:
        child.communicate(timeout=PATIENCE)  # nobody else has the output open
        assert not any(map(is_alive, workers))
    finally:
        for worker in filter(is_alive, workers):
            os.kill(worker, signal.SIGKILL)


@pytest.fixture
def study(tmp_path):
    """A study of many tasks, in a process group of its own, as a terminal starts it."""
    lines = [f"{n % 40},{'yn'[n % 3 == 0]}" for n in range(120)]
    (tmp_path / "people.csv").write_text("\n".join(["age,ill", *lines, ""]))
    (tmp_path / "study.toml").write_text(STUDY)
    program = (
        "import signal\n"
        "for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"
        "    signal.signal(each, signal.SIG_DFL)  # the tests may run under nohup\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from shoal.app.cli import main\n"
        "main()\n"
    )
    words = ["study", "study.toml", "--out", "out", "--jobs", "2"]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield child
    with_group(child, signal.SIGKILL)
    child.communicate()


def with_group(child, number):
    """Send a signal to the process and all that it started, as a terminal does."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def workers_of(child):
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    parts = [line.split(None, 1) for line in listed]
    return [args for parent, args in parts if parent == str(child.pid) and "popen_loky" in args]


def results_in(folder):
    try:
        with closing(sqlite3.connect(f"file:{folder}/results.sqlite?mode=ro", uri=True)) as found:
            return found.execute("SELECT count(*) FROM results").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def check_end(child, code, by):
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == code, err
    assert out == ""
    assert err.splitlines() == [
        "shoal: finished work is kept; run the same command again to resume.",
        f"shoal: stopped{by}; nothing is left half written.",
    ]


def test_ctrl_c_while_workers_start(study):
    """Their tracebacks were shown, one for each."""
    wait_for(lambda: len(workers_of(study)) == 2)
    with_group(study, signal.SIGINT)
    check_end(study, 130, "")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_study_at_work_is_stopped(study, tmp_path, name, code):
    wait_for(lambda: results_in(tmp_path / "out"))
    with_group(study, signal.Signals[name])
    check_end(study, code, f" by {name}")
    assert not [path for path in tmp_path.rglob(".*") if path.name.startswith(".shoal")]


def test_the_library_leaves_signals_alone(tmp_path):
    """Only the program listens; whoever imports Shoal decides about signals."""
    program = (
        "import signal\n"
        "names = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]\n"
        "before = [signal.getsignal(n) for n in names], signal.pthread_sigmask(0, [])\n"
        "import shoal.app.cli, shoal.study, shoal.workflow\n"
        "from shoal.study.running._workers import on_this_machine\n"
        "assert list(on_this_machine(abs, iter([(-1,), (-2,)]), 2)).sort() is None\n"
        "after = [signal.getsignal(n) for n in names], signal.pthread_sigmask(0, [])\n"
        "assert before == after, (before, after)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
