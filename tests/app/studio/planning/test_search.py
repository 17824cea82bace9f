"""The screen Search: the space of levels, and the plans that tuning tries."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape

import polars as pl
import pytest

from shoal.app.studio._jobs import _is_locked, write_json
from shoal.app.studio._tasks import TRIED
from shoal.app.studio.ladder._ladders import Ladders
from shoal.app.studio.planning._levels import _COUNTED, Growing
from shoal.masking import Generalize
from shoal.study.figures import front_of
from shoal.table import Roles, Table

from ..conftest import FEW_ROLES

PLAN = (
    FEW_ROLES
    + """
[[steps]]
method = "generalize"
algorithm = "full-domain"
k = 5
suppression_limit = 0.02
[steps.hierarchies]
age = { intervals = [5, 10, 20] }
zip = { prefixes = [3, 1] }

[require]
k_anonymity = 5
"""
)


@pytest.fixture
def searching(open_studio, people):
    """A studio whose plan has a full-domain step."""
    return open_studio(people, PLAN)


def counted(browser, path="/search"):
    """The page when the combinations are counted."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        page = browser.get(path)
        if "Counting combinations" not in page.text and "being counted" not in page.text:
            return page
        time.sleep(0.05)
    raise AssertionError("counting does not end")


def text_of(answer):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text)))


# -- the space


def table_of(browser):
    return browser.studio.dataset.loaded().with_roles(browser.studio.project.plan.roles)


def test_each_cell_is_what_the_method_itself_finds(searching):
    """At fixed levels, the method suppresses as the cell says, and it chooses the best cell."""
    table, step = table_of(searching), searching.studio.project.plan.steps[0]
    given = {**step.hierarchies, "sex": {"suppression": True}}
    asked = Generalize(k=5, suppression_limit=0.02, hierarchies=given)
    space = asked.space(table)
    assert space.heights == {"age": 4, "sex": 1, "zip": 3}
    grids = [space.grid("age", "zip", {"sex": level}) for level in (0, 1)]
    nodes = [node for rows in grids for row in rows for node in row]
    assert len(nodes) == space.size == 40
    for node in (nodes[3], nodes[17], nodes[26], nodes[31]):
        assert space.at(node.levels) == node
        fixed = Generalize(k=5, suppression_limit=1.0, hierarchies=given, levels=node.levels)
        fixed.fit_transform(table)
        assert node.suppressed == fixed.suppressed_
        assert node.allowed == (fixed.suppressed_ <= 0.02 * len(table))
    asked.fit_transform(table)
    best = min((node for node in nodes if node.allowed), key=lambda node: node.loss)
    assert (best.levels, best.suppressed) == (asked.levels_, asked.suppressed_)
    assert best.loss == pytest.approx(asked.loss_)


def test_persons_are_counted_where_a_unit_is_declared():
    """Five rows of one person are not a crowd."""
    rows = pl.DataFrame({"who": [1, 2, 3, 4] * 5, "sex": ["f", "m"] * 10})
    step = Generalize(k=5, suppression_limit=1.0, hierarchies={"sex": {"suppression": True}})
    by_row = Table(rows, Roles(quasi_identifiers=["sex"], insensitive=["who"]))
    assert step.space(by_row).at({"sex": 0}).suppressed == 0
    by_person = Table(rows, Roles(quasi_identifiers=["sex"], unit="who"))
    space = replace(step, k=3).space(by_person)
    assert [node.suppressed for node in space.along("sex", {})] == [20, 0]


def test_the_grid_can_be_walked_by_addresses(searching):
    page = counted(searching)
    assert page.text.count('<td class="allowed') + page.text.count('<td class="refused') == 20
    assert "level 2 of 4" not in page.text  # age is an axis and has no slider
    here = counted(searching, "/search?k=5&limit=0.02&down=0&across=2&l0=4&l1=1&l2=3").text
    assert re.search(r'<td class="allowed[^"]* here"', here)
    other = counted(searching, "/search?k=5&limit=0.02&down=0&across=1&l2=3").text
    assert 'id="level-2"' in other
    assert "Level 3 of 3: 1\u00a0distinct value" in unescape(other)


@pytest.mark.parametrize(
    ("query", "word"),
    [("down=9", "not generalized"), ("l0=9", "levels 0 to"), ("l0=x", "levels 0 to")],
)
def test_a_bad_address_is_refused(searching, query, word):
    counted(searching)
    answer = searching.client.get(f"/search?{query}")
    assert answer.status_code == 422
    assert word in answer.text


@pytest.mark.parametrize("query", ["k=1", "k=many", "k=999999", "limit=2"])
def test_what_cannot_be_asked_is_said_on_the_page(searching, query):
    page = counted(searching, f"/search?{query}")
    assert 'class="note"' in page.text
    assert "<table" not in page.text.split('id="asked-head"')[1]


def test_levels_are_written_into_the_plan(searching):
    form = {"k": "5", "limit": "0.02", "l0": 4, "l1": 0, "l2": 2}
    searching.post("/search/use-levels", 422, **form | {"l0": 0})
    assert "levels" not in searching.studio.project.plan.to_dict()["steps"][0]
    searching.post("/search/use-levels", **form)
    (step,) = searching.studio.project.plan.to_dict()["steps"]
    assert step["levels"] == {"age": 4, "sex": 0, "zip": 2}
    assert set(step["hierarchies"]) == {"age", "sex", "zip"}
    searching.studio.project.plan.apply(table_of(searching))  # as fixed levels, not by a search


def test_a_plan_without_a_step_is_searched_by_its_requirements(open_studio, people):
    browser = open_studio(people, FEW_ROLES + "[require]\nk_anonymity = 7\nl_diversity = 2\n")
    text = text_of(counted(browser))
    assert "Taken from the plan" in text
    assert "Every crowd must also satisfy its privacy models" in text
    names = {"l0": 4, "l1": 1, "l2": 4}
    browser.post("/search/use-levels", k="7", limit="0.5", **names)
    (step,) = browser.studio.project.plan.to_dict()["steps"]
    assert (step["k"], step["models"]) == (7, {"l_diversity": 2})


def test_without_quasi_identifiers_it_says_where_to_go(open_studio, people):
    answer = open_studio(people).client.get("/search")
    assert answer.status_code == 422
    assert "under Roles" in answer.text


def test_the_space_is_counted_once(searching):
    counted(searching)
    kept = dict(_COUNTED[searching.studio.dataset]._kept)
    assert len(kept) == 2  # the space, and the grid
    counted(searching, "/search?l0=1")  # a cell of the same grid
    assert _COUNTED[searching.studio.dataset]._kept == kept


def test_what_is_counted_can_be_looked_at_meanwhile():
    go_on = threading.Event()

    def make():
        yield "first row"
        assert go_on.wait(60)
        yield "second row"

    with ThreadPoolExecutor(1) as threads:
        growing = Growing(threads, make)
        while not growing.found:
            time.sleep(0.01)
        assert not growing.is_whole(time.monotonic())
        assert growing.found == ["first row"]
        go_on.set()
        assert growing.is_whole(time.monotonic() + 60)
    assert growing.found == ["first row", "second row"]


def test_when_roles_are_set_the_next_screens_are_counted_ahead(searching):
    searching.get("/roles")
    kept = _COUNTED[searching.studio.dataset]._kept
    assert kept["ahead"].is_whole(time.monotonic() + 60)
    assert kept["space"].is_whole(time.monotonic() + 60)
    ladders = Ladders(searching.studio)
    known = dict(ladders._combinations._known)
    assert {column for column, _ in known} == {"age", "sex", "zip"}
    searching.get("/hierarchies")
    counted(searching)
    assert Ladders(searching.studio)._combinations._known == known
    assert _COUNTED[searching.studio.dataset]._kept["space"] is kept["space"]


def test_the_best_levels_are_found_proved_and_ringed(searching):
    searching.post("/search/start", k="5", limit="0.02", seconds="30")
    job = searching.wait(searching.studio.jobs.latest("search"))
    assert (job.state, job.sentence) == ("done", "")
    found = job.result()
    assert found["proved"]
    page = counted(searching)
    assert "proved" in page.text
    assert re.search(r'<td class="allowed best here"', page.text)
    space = searching.studio.project.plan.steps[0].space(table_of(searching))
    assert space.at(found["levels"]).loss == pytest.approx(found["loss"])
    assert "go-to-best" not in counted(searching, "/search?k=6").text  # another question


def test_the_search_has_the_weights_of_the_plan(open_studio, people):
    """Without them, other levels are best."""
    found = []
    for weights in ("", "weights = { age = 9 }", "weights = { zip = 9 }"):
        plan = PLAN.replace("suppression_limit = 0.02", f"suppression_limit = 0.02\n{weights}")
        browser = open_studio(people, plan, folder=f"with{weights[12:15]}")
        browser.post("/search/start", k="5", limit="0.02", seconds="30")
        job = browser.wait(browser.studio.jobs.latest("search"))
        space = browser.studio.project.plan.steps[0].space(table_of(browser))
        assert space.at(job.result()["levels"]).loss == pytest.approx(job.result()["loss"])
        found.append(tuple(job.result()["levels"].values()))
    assert len(set(found)) > 1


def test_a_search_that_nothing_satisfies_is_refused_in_words(searching):
    searching.post("/search/start", 422, k="5", limit="0.02", seconds="-1")
    searching.post("/search/start", k="1999", limit="0", seconds="5")
    job = searching.wait(searching.studio.jobs.latest("search"))
    assert job.state in ("done", "refused")


# -- plans


def tried(label, risk, utility, interval=None):
    return {"plan": label, "family": label, "steps": [{"method": "swap", "k": 5}]} | {
        "risk": risk, "utility": utility, "interval": interval
    }  # fmt: skip


TRIALS = [
    tried("a", 0.02, 0.6, [0.01, 0.03]),
    tried("b", 0.05, 0.8, [0.04, 0.07]),
    tried("c", 0.2, 0.7),
    tried("d", 0.9, None),
]


def test_the_front_marks_what_is_within_the_limits():
    front = front_of(TRIALS, 0.06, None)
    assert [spot.on_front for spot in front.spots] == [True, True, False]
    assert [spot.allowed for spot in front.spots] == [True, False, False]  # the whole interval
    assert front.unmeasured == 1
    assert front_of(TRIALS, 0.3, 0.65).within == 2
    assert front_of([], None, None).path == ""


@pytest.fixture
def tuned(searching):
    """A studio with a search whose plans are on disk, as it was when the server was killed."""
    project, folder = (
        searching.studio.project,
        searching.studio.project.folder / "runs" / "20260101-000000-tune-0001",
    )
    folder.mkdir()
    options = {"max_risk": 0.1, "min_utility": None, "utility": "predictive_performance"}
    options |= {"trials": 4, "search_rows": 500, "target": "diagnosis"}
    facts = {"kind": "tune", "title": "Plans", "source": "", "reading": {}, "started": 0.0}
    facts |= {"plan": project.version.plan, "version": 1, "options": options}
    write_json(folder / "job.json", facts)
    write_json(folder / TRIED, TRIALS)
    return searching


def test_plans_are_drawn_and_can_be_looked_at(tuned):
    page = tuned.get("/search/tune?job=20260101-000000-tune-0001")
    assert page.text.count('class="spot') == 3
    assert 'data-limit="risk"' in page.text
    assert "Resume" in page.text
    chosen = text_of(tuned.get("/search/tune?job=20260101-000000-tune-0001&plan=1"))
    assert 'method = "swap"' in chosen
    assert (
        tuned.get("/search/front?job=20260101-000000-tune-0001")
        .text.lstrip()
        .startswith('<div id="front"')
    )
    assert 'id="chosen"' not in tuned.get("/search/tune?job=20260101-000000-tune-0001&plan=77").text


def test_a_plan_of_the_search_becomes_the_plan_in_one_version(tuned):
    before = tuned.studio.project.version.number
    tuned.post("/search/use-plan", job="20260101-000000-tune-0001", plan=0)
    plan = tuned.studio.project.plan.to_dict()
    assert tuned.studio.project.version.number == before + 1
    assert plan["steps"] == [{"method": "swap", "k": 5}]
    assert plan["require"] == {"k_anonymity": 5, "max_linkage_rate": 0.1}
    assert plan["roles"]["target"] == "diagnosis"
    tuned.post(
        "/search/use-plan", job="20260101-000000-tune-0001", plan=2
    )  # its risk is beyond the limit
    tuned.post("/search/use-plan", 422, job="20260101-000000-tune-0001", plan=9)
    tuned.post("/search/use-plan", 422, job="nothing", plan=0)


@pytest.mark.parametrize(
    "fields",
    [
        {"max_risk": ""},
        {"max_risk": "much"},
        {"max_risk": "1.5"},
        {"trials": "0"},
        {"trials": "9999999"},
        {"target": ""},
        {"target": "age"},
        {"target": "nothing"},
        {"utility": "magic"},
    ],
)
def test_a_bad_search_is_not_begun(searching, fields):
    form = {"max_risk": "0.1", "target": "diagnosis", "trials": "5"} | fields
    searching.post("/search/tune/start", 422, **form)
    assert searching.studio.jobs.all("tune") == []


def test_without_the_extra_the_page_says_what_to_install(searching, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "[study]" in unescape(searching.get("/search/tune").text)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": "diagnosis"}, "the search never saw, its utility (predictive performance)"),
        ({"utility": "nonuniform_entropy"}, "masked, its utility (1 - share of information lost"),
    ],
)
def test_plans_are_tried_for_real_and_a_stopped_search_goes_on(open_studio, people, asked, said):
    pytest.importorskip("optuna")
    mondrian = '[[steps]]\nmethod = "generalize"\nalgorithm = "mondrian"\nk = 5\n'
    searching = open_studio(people, FEW_ROLES + mondrian)
    form = {"max_risk": "0.9", "trials": "3", "search_rows": "300"} | asked
    searching.post("/search/tune/start", **form)
    job = searching.studio.jobs.latest("tune")
    ended = searching.wait(job, 180)
    assert (ended.state, ended.sentence) == ("done", "")
    plans = json.loads((ended.folder / TRIED).read_text(encoding="utf-8"))
    assert len(plans) == 3
    assert all(one["risk"] is not None for one in plans)
    assert ended.result()["chosen"] in range(3)
    text = text_of(searching.get("/search/tune"))
    assert "confirmed" in text
    assert said in text
    while _is_locked(ended.folder):  # its process is still on its way out
        time.sleep(0.05)
    write_json(ended.folder / "outcome.json", {"state": "stopped", "sentence": "Stopped."})
    searching.post(f"/jobs/{job.id}/go-on", back="/search/tune")
    again = searching.wait(searching.studio.jobs.get(job.id), 180)
    assert again.state == "done"
    assert json.loads((again.folder / TRIED).read_text(encoding="utf-8")) == plans
