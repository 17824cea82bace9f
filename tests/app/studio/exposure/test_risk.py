"""Risk now: three intruders, what they know, and the whole assessment."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table, assess, risk
from shoal.app.studio._pages import mark_of
from shoal.app.studio.exposure._exposure import Crowds, classes_by, crowds_by
from shoal.app.studio.screens.risk import (
    alone_in_words,
    assessment_of,
    population_in_words,
    right_in_words,
)
from shoal.workflow._assessment import jsonable

SCRIPT = "<script>alert(1)</script>"
ASK = "/risk?chosen=1&known=age&known=occupation"


def words(text: str) -> str:
    main = text.partition("<main")[2].partition("<footer")[0]
    return re.sub(r"[\s\u00a0]+", " ", re.sub(r"<[^>]+>", " ", main))


def crowd(**people: int) -> Crowds:
    """So many people in crowds of a size, as ``of_1=3``."""
    sizes = np.array([int(name.removeprefix("of_")) for name in people])
    return Crowds(("a",), sizes, np.array(list(people.values())))


@pytest.mark.parametrize(
    ("found", "alone", "right"),
    [
        (crowd(of_1=5), "everybody is unique", "right about 100 of 100 people"),
        (crowd(of_1=999, of_2=2), "99 of 100 people are unique", "right about 99 of 100 people"),
        (crowd(of_1=2, of_4=4), "1 in 3 people is unique", "right about 50 of 100 people"),
        (crowd(of_4=8), "nobody is unique", "right about 25 of 100 people"),
        (crowd(of_400=800), "nobody is unique", "right about 2 of 1,000 people"),
        (crowd(of_90000=90000), "nobody is unique", "right about fewer than 1 in 10,000 people"),
        (crowd(), "nobody is in the table", "right about fewer than 1 in 10,000 people"),
    ],
)
def test_numbers_in_words(found, alone, right):
    assert alone_in_words(found) == alone
    assert right_in_words(found) == right


def test_the_most_exposed_of_a_population():
    assert population_in_words(crowd(of_12=24)) == "the most exposed person is 1 of about 12"
    assert "unique" in population_in_words(crowd(of_1=1, of_9=9))


def test_the_cards_say_what_the_measures_measure(browser):
    table = browser.studio.dataset.loaded().with_roles(browser.studio.project.plan.roles)
    text = words(browser.get("/risk").text)
    expected = round(risk.marketer_risk(table).value * 2000)
    assert f"right for about {expected:,} of 2,000 people" in text
    for chance in (2, 5, 10, 20):
        at_risk = risk.records_at_risk(table, threshold=1 / chance).details["records"]
        assert re.search(rf"1 in {chance} (alone|fewer)[\w ]*? {at_risk:,} ", text)


@pytest.mark.parametrize("unit", ["row", ["id"]])
def test_weights_give_the_population(unit):
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "id": draw.integers(0, 60, 90),
            "a": draw.integers(0, 9, 90),
            "w": draw.integers(1, 30, 90).astype(float),
        }
    )
    table = Table(frame, Roles(quasi_identifiers=["a"], weight="w", unit=unit))
    found = crowds_by(table, ["a"], classes_by(table, ["a"]), frame["w"].to_numpy()).in_population(
        None
    )
    assert found is not None
    assert 1 / found.sizes[0] == pytest.approx(risk.journalist_risk(table).value)


def test_what_the_intruder_knows_is_in_the_address(browser):
    everything, less = browser.get("/risk").text, browser.get(ASK).text
    assert less.count('" checked>') == 2
    assert everything.count('" checked>') == 5
    table = browser.studio.dataset.loaded().with_roles(
        Roles(quasi_identifiers=["age", "occupation"])
    )
    assert f"{table.classes.uniques:,} of 2,000 people share their values" in words(less)
    nothing = words(browser.get("/risk?chosen=1").text)
    assert "smallest crowd has 2,000 people" in nothing
    odd = browser.get("/risk", params={"chosen": "1", "known": SCRIPT}).text
    assert SCRIPT not in odd


def test_the_share_of_the_population_makes_the_journalist(browser):
    assert "Not known yet" in browser.get(ASK).text
    table = browser.studio.dataset.loaded().with_roles(
        Roles(quasi_identifiers=["age", "occupation"])
    )
    text = words(browser.get(f"{ASK}&percent=2,5").text)
    told = risk.journalist_risk(table, sampling_fraction=0.025).value
    assert f"1 of about {round(1 / told):,}" in text
    for wrong in ("0", "-1", "101", "x", "nan", "1e999"):
        answer = browser.client.get(f"{ASK}&percent={wrong}")
        assert answer.status_code == 422
        assert "at most 100" in answer.text


def test_no_value_is_on_the_page(browser):
    values = browser.studio.dataset.loaded().table.frame["occupation"].unique().drop_nulls()
    text = words(browser.get("/risk").text)
    assert not [value for value in values if value in text]


def test_without_quasi_identifiers_the_page_says_what_to_do(open_studio, people):
    browser = open_studio(people)
    assert "Choose roles" in browser.get("/risk").text
    browser.post("/risk/assess", 422)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_odd_tables(open_studio, tmp_path: Path, rows):
    source = tmp_path / "data" / "t.csv"
    source.parent.mkdir()
    lines = ["x,1,ü\n", "x,1,ü\n"][:rows]
    source.write_text(f"{SCRIPT},same,größe\n{''.join(lines)}", encoding="utf-8")
    browser = open_studio(source)
    for name in (SCRIPT, "same", "größe"):
        browser.post("/roles/decide", column=name, role="quasi_identifiers")
    text = browser.get("/risk").text
    assert SCRIPT not in text
    said = {0: "nobody can be found", 1: "everybody is unique", 2: "smallest crowd has 2"}
    assert said[rows] in words(text)


def test_people_with_several_rows_are_where_their_crowd_is_smallest(open_studio, tmp_path: Path):
    source = tmp_path / "data" / "t.csv"
    source.parent.mkdir()
    source.write_text("who,age\n1,30\n1,31\n2,30\n3,30\n", encoding="utf-8")
    browser = open_studio(source, '[roles]\nunit = "who"\nquasi_identifiers = ["age"]\n')
    assert "1 of 3 people share their values" in words(browser.get("/risk").text)


def test_the_mark_counts_nothing_by_itself(browser):
    (room,) = (room for room in browser.studio.rooms if room.name == "risk")
    assert mark_of(room, browser.studio).sentence == "not looked at"
    browser.get("/risk")
    assert mark_of(room, browser.studio).standing == "done"
    assert "unique" in mark_of(room, browser.studio).sentence


# -- the whole assessment


def test_an_assessment_is_the_same_when_read_again(browser):
    table = browser.studio.dataset.loaded().with_roles(browser.studio.project.plan.roles)
    found = assess(table)
    again = assessment_of(jsonable(found.to_dict()))
    told, retold = jsonable(found.to_dict()), jsonable(again.to_dict())
    assert retold["measurements"] == told["measurements"]
    assert retold["classes"] == told["classes"]
    assert set(retold["left_out"]) < set(told["left_out"])


def test_an_assessment_runs_aside_and_is_found_again(browser, open_studio, people):
    browser.post("/risk/assess", chosen="1", known="age")
    job = browser.wait(browser.studio.jobs.latest("assess"))
    assert (job.state, job.sentence) == ("done", "")
    assert job.result()["roles"]["quasi_identifiers"] == ["age"]
    text = browser.get("/risk").text
    assert "What crowds reveal about sensitive columns" in text
    assert "Marketer risk" in text
    assert "only 1 of the columns" in text
    assert "roles have changed" not in text
    again = open_studio(people)  # the same folder, as after a restart
    assert "Marketer risk" in again.get("/risk").text
    again.post("/roles/decide", column="zip", role="insensitive")
    assert "roles have changed" in again.get("/risk").text


def test_the_sampling_fraction_reaches_the_assessment(browser):
    browser.post("/risk/assess", percent="10")
    job = browser.wait(browser.studio.jobs.latest("assess"))
    assert "journalist_risk" in job.result()["measurements"]
    assert job.options == {"fraction": 0.1}


def test_nothing_known_is_not_assessed(browser):
    browser.post("/risk/assess", 422, chosen="1")
    assert browser.studio.jobs.all() == []
