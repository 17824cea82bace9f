"""Roles: the role of each column and why, and which columns together single people out."""

from __future__ import annotations

import re
import threading
from collections import Counter
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.app import studio
from shoal.app.studio._dataset import StillReading
from shoal.app.studio._pages import mark_of
from shoal.app.studio.exposure import _counts
from shoal.app.studio.exposure._counts import Counts
from shoal.app.studio.exposure._exposure import Combinations, classes_by, crowds_by

SCRIPT = "<script>alert(1)</script>"


def mark(browser):
    (room,) = (room for room in browser.studio.rooms if room.name == "roles")
    return mark_of(room, browser.studio)


def plan(browser):
    return browser.studio.project.plan.roles


def reasons(browser):
    return browser.studio.project.settings.get("reasons", {})


def versions(browser):
    return len(browser.studio.project.versions)


def written(path: Path, columns: dict[str, list[object]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    pl.DataFrame(columns, strict=False).write_csv(path)
    return path


# -- counting, against what is slow and obvious


def drawn(rows: int, persons: int | None = None) -> Table:
    draw = np.random.default_rng(len(str(rows)))
    frame = {
        "a": draw.integers(0, 9, rows),
        "b": draw.integers(0, 5, rows),
        "c": draw.choice(["x", "y", None], rows),
        "d": draw.integers(0, 40, rows),
    }
    roles = None
    if persons is not None:
        frame["id"] = draw.integers(0, persons, rows)
        roles = Roles(unit=["id"])
    return Table(pl.DataFrame(frame, strict=False), roles)


def smallest_crowds(table: Table, columns: list[str]) -> list[int]:
    """For each person the number of people in the smallest crowd that a row of theirs is in."""
    rows = table.frame.select(columns).rows() if columns else [()] * len(table)
    persons = table.frame["id"].to_list() if table.has_persons else list(range(len(table)))
    members: dict[object, set[object]] = {}
    for row, person in zip(rows, persons, strict=True):
        members.setdefault(row, set()).add(person)
    found: dict[object, int] = {}
    for row, person in zip(rows, persons, strict=True):
        found[person] = min(found.get(person, len(rows)), len(members[row]))
    return list(found.values())


@pytest.mark.parametrize("persons", [None, 120], ids=["rows", "persons"])
@pytest.mark.parametrize("columns", [["d"], ["a", "c"], ["a", "b", "c", "d"], []])
def test_crowds_are_those_of_people(columns, persons):
    table = drawn(300, persons)
    found, expected = (
        crowds_by(table, columns, classes_by(table, columns)),
        smallest_crowds(table, columns),
    )
    assert dict(zip(found.sizes, found.people, strict=True)) == Counter(expected)
    assert found.total == len(expected)
    assert found.k == min(expected)
    assert found.alone == expected.count(1)
    assert found.right == pytest.approx(sum(1 / size for size in expected) / len(expected))


@pytest.mark.parametrize("persons", [None, 120], ids=["rows", "persons"])
def test_without_a_column_as_many_stand_alone_as_by_the_others(persons):
    table, columns = drawn(300, persons), ["a", "b", "c", "d"]
    expected = {
        name: smallest_crowds(table, [each for each in columns if each != name]).count(1)
        for name in columns
    }
    assert Combinations.of(table, columns, classes_by(table, columns)).without_each() == expected
    assert len(set(expected.values())) > 1


@pytest.mark.parametrize("persons", [None, 120], ids=["rows", "persons"])
def test_sets_grow_until_nearly_all_stand_alone(persons):
    table, columns = drawn(300, persons), ["a", "b", "c", "d"]
    best, other = Combinations.of(table, columns, classes_by(table, columns)).grown_sets()
    for place, alone in enumerate(best.alone, start=1):
        assert alone == smallest_crowds(table, list(best.columns[:place])).count(1)
    assert best.columns[0] == "d"
    assert "d" not in other.columns
    assert best.alone[-1] >= 0.99 * smallest_crowds(table, columns).count(1)


def test_crowds_of_the_population_by_weights():
    table = Table(pl.DataFrame({"a": [1, 1, 2], "w": [2.0, 3.5, 0.5]}))
    weights = np.array([2.0, 3.5, 0.5])
    found = crowds_by(table, ["a"], classes_by(table, ["a"]), weights).in_population(None)
    assert found is not None
    assert dict(zip(found.sizes, found.people, strict=True)) == {1.0: 1, 5.0: 2}


def test_counts_are_made_once():
    counts, roles = Counts(drawn(50)), Roles(quasi_identifiers=["a"])
    first = counts.crowds(["a"], roles)
    assert counts.crowds(["a"], roles) is first
    assert counts.crowds(["a", "b"], roles) is not first
    assert counts.known(["b"], roles) is None
    assert first.result(60) is counts.known(["a"], roles)


# -- the page


def test_every_column_has_a_line_and_blocks_until_decided(open_studio, people):
    browser = open_studio(people)
    text = browser.get("/roles").text
    assert text.count('id="role-') == 11
    assert "11\u00a0columns to decide" in text
    assert (mark(browser).standing, mark(browser).sentence) == ("blocks", "11 columns not decided")
    assert "e-mail address" in text
    assert text.count('class="spark"') == 11


def test_no_value_is_on_the_page(open_studio, tmp_path):
    secrets = [f"Zyx{number}wvu" for number in range(30)]
    source = written(tmp_path / "data" / "t.csv", {"city": secrets, "n": list(range(870, 900))})
    text = open_studio(source).get("/roles").text
    assert not re.search(r"Zyx\d|\b88\d\b", text)


def test_all_suggestions_are_one_version_and_are_taken_back_by_one_undo(open_studio, people):
    browser = open_studio(people)
    browser.post("/roles/decide", column="zip", role="insensitive", why="only the region")
    before = versions(browser)
    browser.post("/roles/take-all")
    assert versions(browser) == before + 1
    assert plan(browser).identifiers == ("name", "email")
    assert plan(browser).insensitive == ("zip",)  # what somebody decided stays
    assert reasons(browser)["zip"] == "only the region"
    assert reasons(browser)["email"].startswith("As suggested: e-mail address")
    assert mark(browser).standing == "done"
    browser.post("/history/go", version=before, back="/roles")
    assert plan(browser).identifiers == ()


def test_one_suggestion_is_taken(open_studio, people):
    browser = open_studio(people)
    browser.post("/roles/take", column="email")
    assert plan(browser).to_dict() == {"identifiers": ["email"]}
    assert list(reasons(browser)) == ["email"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("identifiers", {"identifiers": ["age"]}),
        ("insensitive", {"insensitive": ["age"]}),
        ("weight", {"weight": "age"}),
        ("target", {"target": "age"}),
        ("sensitive_target", {"sensitive": ["age"], "target": "age"}),
        ("", {}),
    ],
)
def test_a_role_is_chosen_and_shown(open_studio, people, choice, expected):
    browser = open_studio(people)
    browser.post("/roles/decide", column="age", role="sensitive")
    text = browser.post("/roles/decide", column="age", role=choice).text
    assert plan(browser).to_dict() == expected
    number = browser.studio.dataset.loaded().table.columns.index("age")
    select = text.partition(f'id="role-{number}"')[2].partition("</select>")[0]
    assert re.findall(r'value="(\w*)" selected', select) == [choice]


def test_a_why_is_kept_and_a_suggested_one_goes_with_its_role(open_studio, people):
    browser = open_studio(people)
    browser.post("/roles/take", column="age")
    browser.post("/roles/decide", column="age", role="sensitive", why="As suggested: a guess")
    assert "age" in reasons(browser)  # said again by whoever decided
    browser.post("/roles/take-all")
    browser.post("/roles/decide", column="sex", role="insensitive", why="")
    assert "sex" not in reasons(browser)
    browser.post("/roles/decide", column="sex", role="insensitive", why='  agreed & "kept" ')
    assert reasons(browser)["sex"] == 'agreed & "kept"'
    assert "agreed &amp; &#34;kept&#34;" in browser.get("/roles").text


def test_the_numbers_follow_the_roles(browser):
    text = browser.get("/roles").text
    table = browser.studio.dataset.loaded().with_roles(plan(browser))
    alone = table.classes.uniques
    assert f"{alone:,} of 2,000 people are unique" in text
    text = browser.post("/roles/decide", column="zip", role="insensitive").text
    fewer = browser.studio.dataset.loaded().with_roles(plan(browser)).classes
    assert f"{fewer.uniques:,} of 2,000 people are unique" in text
    assert fewer.uniques < alone
    assert f"k = {fewer.k}" in text


def test_people_are_counted_where_they_have_several_rows(open_studio, tmp_path):
    source = written(
        tmp_path / "data" / "t.csv", {"who": [1, 1, 2, 3, 3], "age": [30, 31, 30, 40, 40]}
    )
    browser = open_studio(source, '[roles]\nunit = "who"\nquasi_identifiers = ["age"]\n')
    text = browser.get("/roles").text
    assert "2 of 3 people are unique" in text
    assert "whose row it is" in text
    assert 'id="role-0"' not in text
    browser.post("/roles/decide", 422, column="who", role="sensitive")
    browser.post("/roles/decide", column="who", role="", why="number of the patient")
    assert reasons(browser) == {"who": "number of the patient"}


def test_a_unit_with_gaps_is_said_and_the_page_is_there(open_studio, tmp_path):
    source = written(tmp_path / "data" / "t.csv", {"who": [1, None, 2], "age": [30, 31, 30]})
    browser = open_studio(source, '[roles]\nunit = "who"\nquasi_identifiers = ["age"]\n')
    text = browser.get("/roles").text
    assert "missing values" in text
    assert 'id="role-1"' in text


def test_what_does_not_fit_is_refused_and_nothing_changes(browser):
    before = browser.studio.project.version
    for fields in (
        {"column": "nobody", "role": "sensitive"},
        {"column": "age", "role": "king"},
        {"column": "age"},
        {"column": "age", "role": "sensitive", "why": "x" * 2001},
        {"column": "diagnosis", "role": "weight"},
    ):
        browser.post("/roles/decide", 422, **fields)
    browser.post("/roles/take", 422, column="nobody")
    browser.post("/roles/decide-many", 422, role="weight")
    assert browser.studio.project.version == before


def test_a_second_weight_takes_the_place_of_the_first(open_studio, tmp_path):
    browser = open_studio(written(tmp_path / "data" / "t.csv", {"v": [1, 2], "w": [2.5, 1.0]}))
    browser.post("/roles/decide", column="v", role="weight")
    browser.post("/roles/decide", column="w", role="weight")
    assert plan(browser).to_dict() == {"weight": "w"}


def test_an_empty_column_cannot_be_a_quasi_identifier(open_studio, tmp_path):
    source = written(
        tmp_path / "data" / "t.csv",
        {"none": [None, None], "same": ["x", "x"], "äge ÿ": [1, 2], SCRIPT: [1, 1], "a.b": [3, 4]},
    )
    browser = open_studio(source)
    text = browser.get("/roles").text
    assert SCRIPT not in text
    assert "&lt;script&gt;" in text
    answer = browser.post("/roles/decide", 422, column="none", role="quasi_identifiers")
    assert "no value" in answer.text
    for name in ("same", "äge ÿ", SCRIPT, "a.b"):
        answer = browser.post("/roles/decide", column=name, role="quasi_identifiers", why=SCRIPT)
        assert SCRIPT not in answer.text
    assert plan(browser).quasi_identifiers == ("same", "äge ÿ", SCRIPT, "a.b")
    assert reasons(browser)["a.b"] == SCRIPT
    assert "2 of 2 people are unique" in browser.get("/roles").text


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_hardly_anybody(open_studio, tmp_path, rows):
    source = tmp_path / "data" / "t.csv"
    source.parent.mkdir()
    source.write_text("age,zip\n" + "30,1000\n" * rows, encoding="utf-8")
    browser = open_studio(source)
    assert browser.get("/roles").text.count('id="role-') == 2
    text = browser.post("/roles/decide", column="age", role="quasi_identifiers").text
    assert f"{rows} of {rows} people are unique" in text


def test_roles_of_columns_that_are_gone_are_taken_out(open_studio, people):
    browser = open_studio(
        people, '[roles]\nidentifiers = ["name", "gone"]\nquasi_identifiers = ["age"]\n'
    )
    text = browser.get("/roles").text
    assert "does not have" in text
    browser.post("/roles/decide", column="zip", role="sensitive")  # the rest can be worked on
    browser.post("/roles/drop-absent")
    assert plan(browser).to_dict() == {
        "identifiers": ["name"],
        "quasi_identifiers": ["age"],
        "sensitive": ["zip"],
    }
    assert mark(browser).sentence == "8 columns not decided"


# -- many columns


@pytest.fixture
def wide(open_studio, tmp_path):
    names = [f"gene{number}" for number in range(120)]
    numbers = count()
    columns = {name: [next(numbers) % 7 for _ in range(12)] for name in names}
    return open_studio(written(tmp_path / "data" / "t.csv", {**columns, "Age": list(range(12))}))


def test_columns_come_in_pages(wide):
    pages = [wide.get(f"/roles?page={page}").text for page in (1, 2, 3)]
    assert [text.count('id="role-') for text in pages] == [50, 50, 21]
    assert "page 3 of 3" in pages[2]
    for odd in ("99", "0", "-1", "x", "9" * 30, "²"):
        assert 'id="role-' in wide.get(f"/roles?page={odd}").text


def test_columns_are_filtered_by_name_and_by_being_open(wide):
    assert wide.get("/roles?q=AGE").text.count('id="role-') == 1
    assert wide.get("/roles?q=gene11").text.count('id="role-') == 11
    assert "No column matches" in wide.get("/roles", params={"q": SCRIPT}).text
    answer = wide.post("/roles/decide", column="gene3", role="sensitive", only="open", q="gene3")
    query = parse_qs(urlsplit(str(answer.url)).query)
    assert query == {"q": ["gene3"], "only": ["open"], "keep": ["3"]}
    assert answer.text.count('id="role-') == 11  # the one just decided stays under the hands
    assert wide.get("/roles?only=open&q=gene3").text.count('id="role-') == 10
    second = wide.studio.dataset.loaded().table.columns[1]
    answer = wide.post("/roles/decide", column=second, role="sensitive", only="open")
    assert parse_qs(urlsplit(str(answer.url)).query)["keep"] == ["1"]


def test_many_are_decided_at_once(wide):
    before = versions(wide)
    wide.post("/roles/decide", column="gene1", role="sensitive")
    wide.post("/roles/decide-many", role="insensitive", why="no trait of a person", q="gene")
    assert versions(wide) == before + 2
    assert len(plan(wide).insensitive) == 119
    assert len(reasons(wide)) == 119
    assert mark(wide).sentence == "1 column not decided"


def test_a_large_table_does_not_keep_a_page_waiting(browser, monkeypatch):
    monkeypatch.setattr(_counts, "SMALL", 0)
    monkeypatch.setattr(_counts, "PATIENCE", 0.0)
    busy = threading.Event()
    browser.studio.dataset.loaded().counts._thread.submit(busy.wait)
    text = browser.get("/roles").text
    busy.set()
    assert "Counting" in text
    assert 'hx-get="/roles"' in text
    monkeypatch.setattr(_counts, "PATIENCE", 60.0)
    text = browser.get("/roles").text
    assert "Counting" not in text
    assert "people are unique" in text


def test_reasons_reach_the_settings_as_plain_text(browser):
    browser.post("/roles/decide", column="age", role="quasi_identifiers", why='"]\n[roles]\nx=1')
    assert reasons(browser)["age"] == '"]\n[roles]\nx=1'


def test_taking_back_stays_on_the_page_that_was_asked_for(browser):
    text = browser.post("/roles/decide", column="age", role="sensitive", q="a").text
    back = re.search(r'action="/history/go">\s*<input[^>]*value="([^"]*)"', text)
    assert back is not None
    assert back[1] == "/roles?q=a&amp;keep=2"
    before = browser.studio.project.undoable.number
    answer = browser.post("/history/go", version=before, back="/roles?q=a&keep=2")
    assert str(answer.url).endswith("/roles?q=a&keep=2")


def test_a_page_that_waits_for_the_table_asks_for_the_same_again(browser, monkeypatch):
    def still_reading(patience: float = 0.0) -> None:
        raise StillReading

    monkeypatch.setattr(browser.studio.dataset, "loaded", still_reading)
    assert 'hx-get="/roles?only=open&amp;page=2"' in browser.get("/roles?only=open&page=2").text


def test_no_room_styles_what_is_in_another():
    """The styles of all rooms are one file: the same class in two of them meets on both pages."""
    owners = {}
    for sheet in sorted((Path(studio.__file__).parent / "templates" / "css").glob("*.css")):
        rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in set(re.findall(r"(?:^|[},])\s*(\.[\w-]+)\s*[{,]", rules)):
            owners.setdefault(name, []).append(sheet.name)
    assert owners[".lines"] == ["roles.css"]
    assert {name: named for name, named in owners.items() if len(named) > 1} == {}
