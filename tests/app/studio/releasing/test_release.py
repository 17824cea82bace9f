"""Release: the checklist, the job that writes it, and the page about a finished release."""

from __future__ import annotations

import json
import shutil
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.app.studio.conftest import PLAN, ROLES
from tests.app.studio.parts.finished import finished, put

from shoal import verify
from shoal.app.studio._tasks import protect
from shoal.app.studio._work import Task
from shoal.workflow import sign

REASON = "neighbours know it"


ABOUT = """
[release]
recipient = "a research group"
means = "a voter list"
pages = "decisions"
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    project = tmp_path_factory.mktemp("project")
    return finished("protect", project, format="csv", reasons={"age": REASON})


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A release whose plan says for whom it is."""
    project = tmp_path_factory.mktemp("described")
    return finished("protect", project, PLAN + ABOUT, format="csv", reasons={"age": REASON})


@pytest.fixture
def released(browser, written, people):
    """A release of the demo's table in the project."""
    return put(browser, written, people)


def _point(text: str, title: str) -> str:
    """What the checklist says of a point."""
    return text.split(f"<strong>{title}</strong>")[1].split("</li>")[0]


# -- the files


def test_a_release_is_written_and_holds(written):
    folder = written / "release"
    assert verify(folder).holds
    assert stat.S_IMODE(written.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "private").stat().st_mode) == 0o700
    audit = json.loads((folder / "private" / "audit.json").read_text(encoding="utf-8"))
    assert audit["studio"]["reasons"] == {"age": REASON}
    assert audit["plan"]["release"] == {"reasons": {"age": REASON}}


def test_reasons_and_means_are_not_in_the_public_half(described):
    public = [path.read_bytes() for path in (described / "release" / "public").iterdir()]
    assert len(public) == 3
    assert not any(REASON.encode() in text or b"voter list" in text for text in public)
    assert sum(b"research group" in text for text in public) == 2  # the report, release.json
    page = (described / "release" / "private" / "decisions.html").read_text(encoding="utf-8")
    assert REASON in page
    assert "voter list" in page


def test_what_is_verified_is_told_line_by_line(written):
    lines = json.loads((written / "lines.json").read_text(encoding="utf-8"))
    for line in ("Verifying what the plan requires", "Writing the data", "Verifying the files"):
        assert line in lines
    assert any(line.startswith("Holds: ") for line in lines)


# -- the checklist


def test_the_checklist_names_what_is_left(browser):
    text = browser.get("/release").text
    assert "Each row is a different person" in _point(text, "Row ownership is declared")
    assert "blocks" not in _point(text, "Every column has a role")
    assert "0 of" in _point(text, "Reasons are written down")
    assert "was not compared" in _point(text, "The requirements hold")
    assert "no earlier release" in _point(text, "Earlier releases are compared")
    assert "recipient and purpose" in _point(text, "Recipient and purpose are written")


def test_a_column_without_a_role_blocks_the_release(open_studio, people):
    browser = open_studio(people, PLAN.replace('"height_cm", ', ""))
    text = browser.get("/release").text
    assert "blocks the release" in _point(text, "Every column has a role")
    assert "disabled" in text.split('id="release-now"')[1][:80]
    browser.post("/release/begin", 422, then="release")
    assert browser.studio.jobs.all() == []


def test_without_a_table_nothing_is_released(open_studio):
    browser = open_studio()
    assert "There is none yet" in browser.get("/release").text
    browser.post("/release/begin", 422, then="release")


def test_reasons_and_purpose_that_are_written_are_done(browser):
    names = browser.studio.dataset.loaded(60).table.columns
    with browser.studio.project.changing("reasons") as (_, settings):
        settings["reasons"] = dict.fromkeys(names, "known")
    fields = {"recipient": "the public", "purpose": "research", "context": "a safe room"}
    text = browser.post("/release/begin", **fields, **{"metadata.ddi": "1"}).text
    assert "Each role has one" in _point(text, "Reasons are written down")
    assert ">done<" in _point(text, "Recipient and purpose are written")
    about = browser.studio.project.plan.release
    assert about.public == {"recipient": "the public", "purpose": "research"}
    assert (about.context, about.metadata) == ("a safe room", ("ddi",))
    assert 'name="metadata.ddi" value="1" checked' in text


def test_texts_of_an_earlier_version_are_offered_and_move_into_the_plan(browser):
    with browser.studio.project.changing("as before") as (_, settings):
        settings["release"] = {"title": "Visits", "format": "tsv"}
    assert 'value="Visits"' in browser.get("/release").text
    browser.post("/release/begin", title="Visits", format="tsv")
    assert browser.studio.project.settings["release"] == {"format": "tsv"}
    assert browser.studio.project.plan.release.title == "Visits"
    browser.post("/release/begin", title="", format="tsv")
    assert "release" not in browser.studio.project.version.plan


def test_a_plan_that_requires_nothing_is_said(open_studio, people):
    browser = open_studio(people, ROLES)
    assert "requires nothing" in _point(browser.get("/release").text, "The requirements hold")


@pytest.mark.parametrize("fields", [{"format": "exe"}, {"title": "x" * 3000}])
def test_what_cannot_be_kept_is_refused(browser, fields):
    browser.post("/release/begin", 422, **fields)
    assert "release" not in browser.studio.project.settings


def test_what_is_written_is_escaped(browser):
    text = browser.post("/release/begin", title="<script>alert(1)</script>").text
    assert "<script>alert" not in text


# -- the job


def test_the_way_from_the_form_to_the_release(browser):
    answer = browser.post("/release/begin", then="release", title="Health 2026", format="parquet")
    job = browser.studio.jobs.latest("protect")
    assert str(answer.url).endswith(f"/release/{job.id}")
    assert 'id="lines"' in browser.get(f"/release/{job.id}/lines").text
    ended = browser.wait(job)
    assert (ended.state, ended.sentence) == ("done", "")
    text = browser.get(f"/release/{job.id}").text
    assert "Health 2026" in text
    assert "Released and verified" in text
    assert "--format" not in text.split('id="repeat-command"')[1].split("<")[0]
    assert (job.folder / "release" / "public" / "data.parquet").is_file()
    assert verify(job.folder / "release").holds


def test_a_refused_release_says_why_and_what_to_do(browser):
    refused = PLAN.replace("k_anonymity = 5", "k_anonymity = 500")
    browser.studio.project.replace_plan(refused, based_on=browser.studio.project.version.number)
    browser.post("/release/begin", then="release")
    job = browser.wait(browser.studio.jobs.latest("protect"))
    assert job.state == "refused"
    assert not (job.folder / "release").exists()
    for path in ("/release", f"/release/{job.id}"):
        text = browser.get(path).text
        assert "does not satisfy the plan" in text
        assert 'href="/search"' in text
    assert browser.client.get(f"/release/{job.id}/report").status_code == 422


def test_a_release_that_was_stopped_leaves_nothing(browser):
    browser.post("/release/begin", then="release")
    job = browser.studio.jobs.latest("protect")
    browser.post(f"/jobs/{job.id}/cancel", back="/release")
    assert browser.studio.jobs.get(job.id).state == "stopped"
    left = [path.name for path in job.folder.iterdir()]
    assert not [name for name in left if name == "release" or name.startswith(".shoal-partial")]
    assert "Nothing was released" in browser.get(f"/release/{job.id}").text


class _Stopping(Task):
    """A job that somebody stops at a certain line."""

    def progress(self, label: str, share: float) -> None:
        if label == self.options["stop_at"]:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "line",
    ["Writing the private half", "Verifying the files", "Verifying the files that were written"],
)
def test_no_half_of_a_release_is_left_wherever_it_is_stopped(tmp_path, people, line):
    folder = tmp_path / "project" / "runs" / "job"
    folder.mkdir(parents=True)
    facts = {"source": str(people), "reading": {}, "plan": PLAN, "options": {"stop_at": line}}
    with pytest.raises(KeyboardInterrupt):
        protect(_Stopping(folder, facts))
    assert [path.name for path in folder.iterdir()] == ["lines.json"]
    assert json.loads((folder / "lines.json").read_text(encoding="utf-8"))[-1] == line


# -- one release


def test_a_release_shows_folders_checks_commands_and_report(browser, released, people):
    text = browser.get(f"/release/{released.id}").text
    folder = released.folder / "release"
    for word in (f"{folder}/public", f"{folder}/private", "✓ passed", "k_anonymity",
                 f"shoal sign {folder} --key", f"shoal verify {folder} --original {people}",
                 "not signed yet", f'src="/release/{released.id}/report" sandbox'):  # fmt: skip
        assert word in text
    assert ">none</span>" in browser.get("/release").text


def test_the_report_may_do_nothing_and_be_framed_here_alone(browser, released):
    answer = browser.get(f"/release/{released.id}/report")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    )
    assert "frame-ancestors 'self'" in policy
    assert "script" not in policy
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["cache-control"] == "no-store"
    assert "release report" in answer.text


@pytest.mark.parametrize("id", ["nobody", "%2e%2e", "..%2F..%2Fplan.toml"])
def test_a_release_that_is_none_is_refused(browser, released, id):
    for path in (f"/release/{id}", f"/release/{id}/report"):
        assert browser.client.get(path).status_code in (404, 422)


def test_a_link_in_the_place_of_the_report_is_not_followed(browser, released, people):
    report = released.folder / "release" / "public" / "report.html"
    report.unlink()
    report.symlink_to(people)
    assert browser.client.get(f"/release/{released.id}/report").status_code == 422


def test_what_changed_since_is_said(browser, released, people):
    commented = f"# only a comment\n{PLAN}"
    project = browser.studio.project
    project.replace_plan(commented, based_on=project.version.number)
    assert "changed since" not in browser.get(f"/release/{released.id}").text
    project.replace_plan(PLAN.replace("k = 5", "k = 7"), based_on=project.version.number)
    assert "The plan has changed since" in browser.get(f"/release/{released.id}").text
    people.write_text(people.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert "The table has changed since" in browser.get(f"/release/{released.id}").text


def test_a_signature_is_shown_after_it_was_made(browser, released, tmp_path):
    private = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    (tmp_path / "key").write_bytes(private)
    fingerprint = sign(released.folder / "release", key=tmp_path / "key")
    assert f"Signed by {fingerprint}" in browser.get(f"/release/{released.id}").text


def test_a_release_is_verified_again_on_request(browser, released):
    data = released.folder / "release" / "public" / "data.csv"
    data.write_bytes(data.read_bytes() + b" ")
    browser.post(f"/release/{released.id}/verify")
    browser.wait(browser.studio.jobs.latest("verify"))
    text = browser.get(f"/release/{released.id}").text
    assert "✗ failed" in text
    assert "Not verified" in text


@pytest.mark.parametrize("content", ["", "[1]", '{"checks": {"checks": [1, {"name": 2}]}}'])
def test_a_damaged_result_spoils_nothing(browser, released, content):
    (released.folder / "result.json").write_text(content, encoding="utf-8")
    text = browser.get(f"/release/{released.id}").text
    assert "The record of the checks is gone" in text
    assert "not verified" in browser.get("/release").text


def test_a_release_whose_folder_is_gone_is_not_listed(browser, released):
    shutil.rmtree(released.folder / "release")
    assert "Releases of this project" not in browser.get("/release").text
    assert "is gone" in browser.get(f"/release/{released.id}").text


def test_earlier_releases_are_compared_with_the_next_one(browser, released):
    text = _point(browser.get("/release").text, "Earlier releases are compared")
    assert "not compared with this plan" in text
    browser.post("/compare/add")
    job = browser.wait(browser.studio.jobs.latest("compare"))
    assert job.result()["earlier"] == {released.id: None}
    assert "Together with earlier releases" in browser.get("/compare").text
    text = _point(browser.get("/release").text, "Earlier releases are compared")
    assert ">done<" in text


def test_the_next_release_says_whom_both_expose(browser, released):
    browser.post("/release/begin", then="release")
    job = browser.wait(browser.studio.jobs.latest("protect"))
    assert job.result()["earlier"] == {released.id: None}
    assert {"records", "values"} <= set(job.result()["together"])
    assert "Together with earlier releases" in browser.get(f"/release/{job.id}").text
