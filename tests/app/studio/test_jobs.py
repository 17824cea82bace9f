"""Jobs are processes that outlive the server, end on request, and are found again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time

import pytest

from shoal.app.studio._jobs import JOB, LOCK, OUTCOME, PROCESS, PROGRESS, Jobs, write_json
from shoal.errors import InputError

from .parts.server import Server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are needed")

#: A worker that holds on: it says how far it is, starts a child, and waits to be stopped.
SLOW = """
import subprocess, sys, time
from shoal.app.studio import _work
def run(task):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _work.write_json(task.folder / "child.json", {"pid": child.pid})
    if (task.folder / "again").exists():
        child.kill(); child.wait()
        return {"again": True}
    (task.folder / "again").touch()
    task.progress("Holding on", 0.5)
    time.sleep(600)
from shoal.app.studio._tasks import TASKS
TASKS["assess"] = run
_work.main()
"""


@pytest.fixture
def slow(browser, monkeypatch):
    """A studio whose jobs hold on when they are begun, and end when they go on."""
    popen = subprocess.Popen

    def start(words, **more):
        if "shoal.app.studio._work" in words:
            words = [words[0], "-c", SLOW, words[-1]]
        return popen(words, **more)

    monkeypatch.setattr("shoal.app.studio._jobs.subprocess.Popen", start)
    return browser


def begun(browser):
    job = browser.studio.start("assess", "Measure")
    wait_for(lambda: browser.studio.jobs.get(job.id).label == "Holding on")
    return browser.studio.jobs.get(job.id)


def wait_for(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.02)


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def processes_of(job):
    names = (PROCESS, "child.json")
    return [json.loads((job.folder / name).read_text())["pid"] for name in names]


# -- while it runs


def test_a_job_is_shown_and_stopped_with_all_that_it_started(slow):
    job = begun(slow)
    pids = processes_of(job)
    assert all(map(is_there, pids))
    page = slow.get("/data").text
    assert "Holding on" in page
    assert f"/jobs/{job.id}/cancel" in page
    slow.post(f"/jobs/{job.id}/cancel", back="/data")
    ended = slow.studio.jobs.get(job.id)
    assert (ended.state, ended.can_go_on) == ("stopped", True)
    wait_for(lambda: not any(map(is_there, pids)))
    assert not list(job.folder.glob(".*"))


def test_a_job_that_does_not_listen_is_ended(slow, monkeypatch):
    monkeypatch.setattr("shoal.app.studio._jobs._GRACE", 0.3)
    job = begun(slow)
    pids = processes_of(job)
    os.kill(pids[0], signal.SIGSTOP)
    assert slow.studio.jobs.cancel(job.id).state == "stopped"
    wait_for(lambda: not any(map(is_there, pids)))


def test_a_job_goes_on(slow):
    job = begun(slow)
    slow.studio.jobs.cancel(job.id)
    slow.post(f"/jobs/{job.id}/go-on", back="/data")
    ended = slow.wait(job)
    assert (ended.state, ended.result()) == ("done", {"again": True})
    slow.post(f"/jobs/{job.id}/go-on", 422)


def test_closing_the_studio_stops_what_runs(slow):
    job = begun(slow)
    pids = processes_of(job)
    slow.studio.jobs.close()
    wait_for(lambda: not any(map(is_there, pids)))
    assert slow.studio.jobs.get(job.id).can_go_on


def test_a_running_job_is_neither_removed_nor_begun_again(slow):
    job = begun(slow)
    slow.post(f"/jobs/{job.id}/remove", 422)
    slow.post(f"/jobs/{job.id}/go-on", 422)
    slow.studio.jobs.cancel(job.id)
    slow.post(f"/jobs/{job.id}/remove")
    assert not job.folder.exists()


# -- found again


def test_another_server_finds_a_job_that_runs_and_can_stop_it(slow):
    job = begun(slow)
    other = Jobs(job.folder.parent)
    assert (other.get(job.id).state, other.get(job.id).label) == ("running", "Holding on")
    pids = processes_of(job)
    assert other.cancel(job.id).state == "stopped"
    wait_for(lambda: not any(map(is_there, pids)))


def test_a_job_whose_process_was_killed_is_interrupted_and_goes_on(slow):
    job = begun(slow)
    os.killpg(processes_of(job)[0], signal.SIGKILL)
    wait_for(lambda: not slow.studio.jobs.get(job.id).is_running)
    assert slow.studio.jobs.get(job.id).state == "interrupted"
    other = Jobs(job.folder.parent)
    assert other.get(job.id).state == "interrupted"
    other.go_on(job.id)
    wait_for(lambda: not other.get(job.id).is_running)
    assert other.get(job.id).result() == {"again": True}
    other.close()


def test_whoever_asks_is_not_taken_for_the_process(tmp_path):
    """Two pages that look at an interrupted job at once both see that it is interrupted."""
    import threading

    jobs = Jobs(tmp_path)
    folder = tmp_path / "20260101-000000-assess-0000"
    folder.mkdir()
    facts = {"kind": "assess", "title": "x", "options": {}, "version": 1, "plan": "", "started": 0}
    write_json(folder / JOB, facts)
    (folder / LOCK).touch()
    seen = []

    def look():
        seen.extend(jobs.get(folder.name).state for _ in range(100))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {"interrupted"}


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"kind": 3}', "null"])
def test_files_that_somebody_broke_break_no_page(browser, content):
    folder = browser.studio.project.folder / "runs" / "20260101-000000-assess-0000"
    folder.mkdir()
    (folder / JOB).write_text(content)
    (browser.studio.project.folder / "runs" / "odd").mkdir()
    (browser.studio.project.folder / "runs" / "file").touch()
    browser.get("/data")
    browser.post(f"/jobs/{folder.name}/cancel", 422)
    facts = {"kind": "assess", "title": "x", "options": {}, "version": 1, "plan": "", "started": 0}
    (folder / JOB).write_text(json.dumps(facts))
    for name in (OUTCOME, PROGRESS, PROCESS):
        (folder / name).write_text(content)
        browser.get("/data")


def test_a_job_of_a_kind_that_there_is_not_fails(browser):
    job = browser.studio.start("os", "Something else")
    assert browser.wait(job).state == "failed"


def test_a_job_that_cannot_hold_is_refused_in_a_sentence(open_studio, people):
    from .conftest import ROLES

    browser = open_studio(people, ROLES + "[require]\nk_anonymity = 5\n")
    ended = browser.wait(browser.studio.start("protect", "Release"))
    assert (ended.state, "k" in ended.sentence) == ("refused", True)
    assert not (ended.folder / "release").exists()


def test_without_a_table_or_with_a_broken_plan_nothing_begins(open_studio, people):
    browser = open_studio()
    with pytest.raises(InputError, match="No table"):
        browser.studio.start("assess", "Measure")
    browser = open_studio(people, folder="other")
    (browser.studio.project.folder / "plan.toml").write_text("k = = 3")
    with pytest.raises(InputError, match="TOML"):
        browser.studio.start("assess", "Measure")
    assert browser.studio.jobs.all() == []


# -- the server ends


@pytest.fixture
def server(people):
    found = Server(people).enter()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "stopped; nothing is left"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    ],
)
def test_a_signal_ends_the_studio_in_good_order(server, number, code, said):
    with socket.create_connection(("127.0.0.1", server.port)) as open_page:
        cookie = f"cookie: {server.cookie}\r\n\r\n"
        asked = f"GET /events HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n{cookie}"
        open_page.sendall(asked.encode())
        assert b"200" in open_page.recv(100)
        ended = server.stop(number)
    assert ended[0] == code
    assert said in ended[1]
    assert ended[1].count("\n") == 1
    assert not list((server.place.parent / "people-studio").glob(".shoal-partial-*"))


def test_a_port_that_is_taken_is_one_sentence(server, shoal_process, tmp_path):
    (tmp_path / "p").mkdir()
    done = shoal_process("studio", "p", "--no-browser", "--port", server.port)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"Port {server.port} is in use" in done.stderr


def test_the_page_that_opens_the_browser_is_private_and_gone_once_entered(people, tmp_path):
    """The system shows everybody how a browser is called: the token is not in it."""
    seen = tmp_path / "opened"
    program = f"""
import webbrowser
webbrowser.open = lambda page: open({str(seen)!r}, "w").write(page)
import sys; sys.argv.remove("--no-browser")
from shoal.app.cli import main; main()
"""
    server = Server(people, program=program)
    try:
        door = people.with_name("people-studio") / "open.html"
        wait_for(lambda: seen.exists() and seen.read_text())
        assert seen.read_text() == door.as_uri()
        assert door.stat().st_mode & 0o777 == 0o600
        assert server.entrance in door.read_text()
        server.ask("GET", "/enter/wrong")
        assert door.exists()
        server.enter()
        assert not door.exists()
    finally:
        server.close()


def test_no_module_comes_from_the_folder_that_it_is_started_in(browser, tmp_path, monkeypatch):
    """A file in a stranger's folder of data that is called as a library is not run."""
    monkeypatch.chdir(tmp_path)
    for name in ("tomlkit", "polars", "shoal"):
        (tmp_path / f"{name}.py").write_text("open('was-run', 'w').close()\n")
    job = browser.wait(browser.studio.start("assess", "Assess"))
    assert not (tmp_path / "was-run").exists()
    assert (job.state, job.sentence) == ("done", "")
