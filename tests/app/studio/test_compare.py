"""Compare: jobs measure candidates, which are shown side by side, without a cell value."""

from __future__ import annotations

import json

import pytest
from tests.app.studio.conftest import PLAN
from tests.app.studio.parts.finished import finished, put

REFUSED = PLAN.replace("k_anonymity = 5", "k_anonymity = 500")


@pytest.fixture(scope="module")
def candidate(tmp_path_factory):
    return finished("compare", tmp_path_factory.mktemp("project"))


@pytest.fixture
def compared(browser, candidate, people):
    """A candidate of the plan in force."""
    return put(browser, candidate, people)


def test_the_empty_screen_offers_the_plan_as_it_is(browser):
    text = browser.get("/compare").text
    assert "Compare the current plan" in text
    assert "nothing compared yet" in text


def test_a_candidate_shows_risk_utility_crowds_and_who_pays(browser, compared):
    text = browser.get("/compare").text
    for word in ("Holds what it requires", "links is right", "of detail", "Attacks that were tried",
                 "Who bears the loss", "blind guess", "How large the crowds are"):  # fmt: skip
        assert word in text
    assert "Holds what it requires".lower() in text.split('id="room-compare"')[1][:600]


def test_no_value_of_a_cell_is_shown_until_asked(browser, compared):
    groups = compared.result()["groups"]["diagnosis"]
    told = ("all other values", "missing")
    labels = [group["label"] for group in groups if group["label"] not in told]
    hidden = browser.get("/compare?by=diagnosis").text
    named = browser.get("/compare?by=diagnosis&show=values").text
    assert [label for label in labels if f">{label}<" in hidden] == []
    assert all(f">{label}<" in named for label in labels)
    assert "group 1" in hidden


def test_a_refused_plan_is_measured_all_the_same(browser):
    browser.studio.project.replace_plan(REFUSED, based_on=browser.studio.project.version.number)
    browser.post("/compare/add")
    job = browser.wait(browser.studio.jobs.latest("compare"))
    assert job.state == "done"
    text = browser.get("/compare").text
    assert "does not satisfy the plan" in text
    assert "✗ refused" in text
    assert "loses" in text


def test_a_plan_that_takes_out_everybody_is_shown_with_its_sentence(browser):
    everybody = '[[steps]]\nmethod = "suppress"\nmin_class_size = 5\n\n[[steps]]'
    plan = PLAN.replace("[[steps]]", everybody)
    browser.post("/compare/add", plan=plan, title="From a search")
    job = browser.wait(browser.studio.jobs.latest("compare"))
    assert job.state == "refused"
    text = browser.get("/compare").text
    assert "From a search" in text
    assert "every record" in text


def test_an_earlier_version_can_be_compared(browser, compared):
    number = browser.studio.project.version.number
    browser.studio.project.replace_plan(REFUSED, based_on=number)
    assert "the plan has changed since it was compared" in browser.get("/compare").text
    browser.post("/compare/add", version=str(number))
    assert browser.studio.jobs.latest("compare").plan == PLAN


@pytest.mark.parametrize(
    "fields", [{"version": "99"}, {"version": "x"}, {"plan": "no toml ["}, {"plan": "[steps]"}]
)
def test_what_is_no_plan_starts_nothing(browser, fields):
    browser.post("/compare/add", 422, **fields)
    assert browser.studio.jobs.all("compare") == []


@pytest.mark.parametrize(
    "query", ["with=nobody", "with=..", "with=a&with=b&with=c&with=d", "by=<script>", "loss=all"]
)
def test_an_address_that_means_nothing_is_refused(browser, compared, query):
    answer = browser.client.get(f"/compare?{query}")
    assert answer.status_code == 422
    assert "<script>" not in answer.text


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"rows": 1}', "null"])
def test_a_damaged_result_spoils_nothing(browser, compared, content):
    (compared.folder / "result.json").write_text(content, encoding="utf-8")
    assert "cannot be read" in browser.get("/compare").text
    browser.get("/release")


def test_a_result_with_parts_of_another_shape_is_damaged(browser, compared):
    found = compared.result()
    for part in ("sizes", "columns", "groups", "after", "before"):
        (compared.folder / "result.json").write_text(json.dumps(found | {part: [1]}))
        assert "cannot be read" in browser.get("/compare").text


def test_a_job_that_was_stopped_can_go_on_or_be_taken_away(browser):
    browser.post("/compare/add")
    job = browser.studio.jobs.latest("compare")
    browser.post(f"/jobs/{job.id}/cancel", back="/compare")
    assert browser.studio.jobs.get(job.id).state == "stopped"
    assert "Resume" in browser.get("/compare").text
    browser.post(f"/jobs/{job.id}/remove", back="/compare")
    assert browser.studio.jobs.all("compare") == []


def test_a_table_that_changed_is_said(browser, compared, people):
    people.write_text(people.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    text = browser.get("/compare").text
    assert "The table has changed since then" in text
