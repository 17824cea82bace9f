"""The folder is the state: versions, edits from outside, two tabs, and a kill at any moment."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.app.studio import _project
from shoal.app.studio._project import Conflict, Project, project_of
from shoal.errors import InputError, PlanError

from .conftest import PLAN, ROLES
from .parts.server import PROGRAM, Server

K = "[require]\nk_anonymity = {}\n"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def put(project, number):
    return project.replace_plan(K.format(number), based_on=project.version.number)


def required(project):
    return project.plan.require[0].k


def state(folder):
    """The files in the folder, without locks."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(folder): path.read_bytes() for path in files}


# -- versions


def test_only_the_owner_may_look(project):
    put(project, 3)
    modes = {path.stat().st_mode & 0o077 for path in project.folder.rglob("*")}
    assert modes == {0}
    assert project.folder.stat().st_mode & 0o777 == 0o700


def test_undo_and_redo(project):
    for number in (3, 4, 5):
        put(project, number)
    assert project.redoable is None
    project.go_to(project.undoable.number)
    assert (required(project), project.redoable.what) == (4, "plan edited as text")
    project.go_to(project.undoable.number)
    assert required(project) == 3
    project.go_to(project.redoable.number)
    assert required(project) == 4
    put(project, 9)  # another way: the newest is what redo leads to
    project.go_to(project.undoable.number)
    assert project._versions[project.redoable.number].plan == K.format(9)
    assert len(project.versions) == 5


def test_a_change_that_changes_nothing_is_no_version(project):
    before = put(project, 3)
    with project.changing("nothing"):
        pass
    assert project.version == before


def test_comments_stay(project):
    project.replace_plan("# why\n" + K.format(3) + "# after\n", based_on=project.version.number)
    with project.changing("k") as (plan, _):
        plan["require"].update(k_anonymity=7)
    assert project.version.plan == "# why\n" + K.format(7) + "# after\n"


@pytest.mark.parametrize("text", ["k = = 3", '[[steps]]\nmethod = "x"', "a = " + "[" * 5000, "\0"])
def test_what_is_no_plan_is_refused(project, text):
    before = state(project.folder)
    with pytest.raises(PlanError):
        project.replace_plan(text, based_on=project.version.number)
    assert state(project.folder) == before


def test_all_is_found_again(project):
    put(project, 3)
    put(project, 4)
    project.go_to(project.undoable.number)
    project.write_notes("mine\r\n")
    again = Project(project.folder)
    assert (again.version, again.versions) == (project.version, project.versions)
    assert (required(again), again.notes) == (3, "mine\n")
    assert again.redoable == project.redoable


# -- two tabs


def test_the_text_of_a_tab_that_is_behind_is_refused(browser):
    behind = browser.studio.project.version.number
    browser.post("/data/whose", whose="several", unit="email")
    answer = browser.post("/plan/text", 409, text=PLAN, version=behind)
    assert "changed in the meantime" in answer.text
    assert browser.studio.project.plan.roles.unit == ("email",)


def test_edits_of_two_tabs_both_stay(browser):
    """A single change applies to the current plan, not to the one that the tab shows."""
    project = browser.studio.project
    with project.changing("one") as (plan, _):
        plan["require"].update(k_anonymity=7)
    browser.post("/data/whose", whose="several", unit="email")
    assert (required(project), project.plan.roles.unit) == (7, ("email",))
    with pytest.raises(Conflict), project.changing("two", based_on=1):
        pass


# -- edits from outside


def test_an_edit_from_outside_is_a_version(browser):
    project = browser.studio.project
    before = project.version
    (project.folder / "plan.toml").write_text(PLAN.replace("k_anonymity = 5", "k_anonymity = 6"))
    assert "k_anonymity = 6" in browser.get("/data").text
    assert (project.version.what, project.undoable) == ("edited outside the studio", before)
    browser.post("/history/go", version=before.number, back="/data")
    assert required(project) == 5
    assert "k_anonymity = 5" in (project.folder / "plan.toml").read_text()


BROKEN = {
    "no TOML": ("plan.toml", b"k = = 3\n"),
    "no plan": ("plan.toml", b'[[steps]]\nmethod = "nonsense"\n'),
    "no text": ("plan.toml", b"\xff\xfe\0\0"),
    "deep": ("plan.toml", b"a = " + b"[" * 5000),
    "settings are no TOML": ("studio.toml", b"[source\n"),
    "settings are no text": ("studio.toml", b"\xff"),
    "no settings": ("studio.toml", b"source = 3\n"),
    "odd settings": ("studio.toml", b"[source]\npath = 3\nmissing_values = 4\nheader = 'x'\n"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_pages_work_with_what_somebody_broke(browser, how):
    """The sentence, the text of the plan and undo are on every page."""
    project = browser.studio.project
    good = project.version
    name, content = BROKEN[how]
    (project.folder / name).write_bytes(content)
    for path in ("/", "/data", "/history", "/roles"):
        answer = browser.client.get(path)
        assert answer.status_code in (200, 422), path
        assert 'id="toml"' in answer.text
        assert 'id="undo"' in answer.text
    shown = browser.client.get("/data").text
    if "odd" not in how and how != "no settings":
        assert "Undo the last change" in shown
        refused = browser.post("/data/whose", 422, whose="once")
        assert 'id="sentence"' in refused.text
    browser.post("/history/go", version=good.number, back="/data")
    assert project.problem is None
    assert "2,000" in browser.get("/data").text


def test_a_broken_plan_is_mended_as_text(browser):
    project = browser.studio.project
    (project.folder / "plan.toml").write_bytes(b"k = = 3\n")
    shown = browser.client.get("/data").text
    assert "k = = 3" in shown
    browser.post("/plan/text", text=PLAN, version=project.version.number, back="/data")
    assert (project.problem, required(project)) == (None, 5)


def test_a_plan_that_was_taken_away_can_be_brought_back(browser):
    project = browser.studio.project
    (project.folder / "plan.toml").unlink()
    assert browser.get("/data")
    browser.post("/history/go", version=project.undoable.number, back="/data")
    assert required(project) == 5


def test_a_project_that_is_broken_when_it_is_opened(tmp_path, open_studio):
    folder = tmp_path / "project"
    (folder / "history").mkdir(parents=True)
    (folder / "plan.toml").write_bytes(b"\xff")
    (folder / "history" / "000001.json").write_text("{")
    (folder / "history" / "000002.json").write_text('{"number": 2}')
    (folder / "history" / "head").write_text("x")
    browser = open_studio()
    assert "UTF-8" in browser.client.get("/data").text
    browser.post("/plan/text", text=PLAN, version=browser.studio.project.version.number)
    assert required(browser.studio.project) == 5


# -- which folder


def test_a_project_lies_beside_its_table(people):
    assert project_of(people) == (people.with_name("people-studio"), people)
    assert project_of(people.parent) == (people.parent, None)


def test_links_are_followed_first(people, tmp_path, open_studio):
    """Otherwise, files in the folder would seem to be outside it."""
    (tmp_path / "elsewhere").mkdir()
    (people.parent / "people-studio").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link.csv").symlink_to(people)
    assert project_of(tmp_path / "link.csv") == (tmp_path / "elsewhere", people)


@pytest.mark.parametrize("given", ["nothing.csv", "postgresql://ada:secret@host/db", "/dev/null"])
def test_what_is_neither_a_folder_nor_a_file_is_refused(given):
    with pytest.raises(InputError) as caught:
        project_of(Path(given))
    assert "secret" not in str(caught.value)


def test_a_project_finds_its_table_when_its_folder_is_opened(people):
    """The table is in another folder; it was chosen when the project was created."""
    server = Server(people).enter()
    try:
        server.wait_for("/data", "people.csv")
        assert server.stop()[0] == 130
        server.place = people.with_name("people-studio")
        server.start()
        server.enter()
        assert "2,000" in server.wait_for("/data", "What was read")
        other = people.with_name("other.csv")
        other.write_text("a,b\n1,2\n")
        assert server.post("/data/choose", path=str(other)).code == 422
    finally:
        server.close()


# -- a disk that takes nothing


@pytest.fixture
def full_disk():
    """Files cannot grow, as on a full disk; files that are already open are not affected."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_sentence_and_keeps_what_there_is(browser, full_disk):
    project = browser.studio.project
    before = state(project.folder)
    full_disk()
    answers = [
        browser.client.post(
            "/data/whose",
            data={"whose": "several", "unit": "email"},
            headers={"origin": "http://127.0.0.1:8765"},
        ),
        browser.client.get("/data"),
        browser.client.get("/history"),
    ]
    with pytest.raises(InputError) as started:
        browser.studio.start("assess", "Measure")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert [answer.status_code for answer in answers] == [422, 200, 200]
    assert "not saved" in answers[0].text
    assert "cannot start" in str(started.value)
    assert state(project.folder) == before
    again = Project(project.folder)
    assert (again.version.plan, len(again.versions)) == (
        project.version.plan,
        len(project.versions),
    )
    browser.post("/data/whose", whose="several", unit="email")
    assert project.plan.roles.unit == ("email",)


def test_a_folder_that_cannot_be_written_is_one_sentence(shoal_process, tmp_path):
    (tmp_path / "history").write_text("in the way")
    done = shoal_process("studio", tmp_path, "--no-browser")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "File exists" in done.stderr


# -- killed while it writes


class Killed(BaseException):
    """The process ends here."""


def steps_of(monkeypatch, at):
    """End at the n-th step in the file system; how many there were is counted."""
    count = [0]
    for name in ("replace", "mkdir", "rename", "unlink", "rmdir"):
        original = getattr(os, name)

        def step(*given, original=original, **more):
            count[0] += 1
            if count[0] == at:
                raise Killed
            return original(*given, **more)

        monkeypatch.setattr(os, name, step)
    return count


@pytest.mark.parametrize("what", ["change", "undo"])
def test_killed_at_any_step_a_change_is_whole_or_not_there(tmp_path, monkeypatch, what):
    def prepared(folder):
        project = Project(folder)
        project.replace_plan(ROLES, based_on=project.version.number)
        edit(project, "both")
        return project

    def edit(project, what):
        with project.changing(what) as (plan, settings):
            plan["require"] = {"k_anonymity": 3 if "require" not in plan else 4}
            settings["reasons"] = {"age": "three" if "reasons" not in settings else "four"}

    def act(project):
        if what == "change":
            edit(project, "both again")
        else:
            project.go_to(project.undoable.number)

    def seen(project):
        return project.version.plan, project.version.studio, project.problem

    whole = prepared(tmp_path / "whole")
    allowed = [seen(whole)]
    with monkeypatch.context() as patch:
        count = steps_of(patch, 0)
        act(whole)
    allowed.append(seen(whole))
    assert count[0] > 10
    outcomes = set()
    for at in range(1, count[0] + 1):
        project = prepared(tmp_path / f"{what}-{at}")
        versions = {version.number for version in project.versions}
        with monkeypatch.context() as patch:
            steps_of(patch, at)
            with pytest.raises(Killed):
                act(project)
        again = Project(project.folder)
        assert seen(again) in allowed, at
        assert again.version.what != _project._ELSEWHERE
        assert versions <= {version.number for version in again.versions}
        outcomes.add(allowed.index(seen(again)))
        put(again, 9)  # and it goes on
        assert required(Project(project.folder)) == 9
    assert outcomes == {0, 1}


# -- two studios


def test_a_second_studio_is_refused_while_the_first_works(people):
    server = Server(people).enter()
    try:
        words = ["studio", str(people), "--port", str(server.port)]
        second = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
        )
        said = " ".join(second.stderr.split())
        assert (second.returncode, second.stdout) == (2, "")
        assert f"already open in the studio at {server.origin} (process" in said
        assert f"(process {server.process.pid}). Continue in the browser that has it" in said
        assert "enter" not in said  # nothing that opens it
        assert server.get("/history")
        server.close()
        server.start()  # the lock went with the process
        assert server.enter().get("/history")
    finally:
        server.close()


def test_a_lock_is_let_go(project):
    with project.held() as say:
        with pytest.raises(InputError, match="Another studio is opening"), project.held():
            pass
        say(8123)
        said = rf"127.0.0.1:8123 \(process {os.getpid()}\)"
        with pytest.raises(InputError, match=said), project.held():
            pass
    with project.held():
        pass


def test_versions_are_read_by_others(project):
    """A version is a file that any program can read."""
    put(project, 3)
    newest = max((project.folder / "history").glob("*.json"))
    assert json.loads(newest.read_text())["plan"] == K.format(3)


def test_a_few_kills_while_somebody_clicks():
    """The same moments each time; the campaign of thirty is by hand."""
    script = Path(__file__).parent / "parts" / "kills.py"
    words = [sys.executable, str(script), "--times", "3", "--seed", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills" in done.stdout
