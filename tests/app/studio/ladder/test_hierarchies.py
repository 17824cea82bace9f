"""Hierarchies: levels, unique people, edits that can be undone, and files."""

from __future__ import annotations

import html
import re
import stat
from pathlib import Path

import polars as pl
import pytest

from shoal import Hierarchy, Roles, Table
from shoal.app.studio._pages import mark_of
from shoal.app.studio.ladder import _edit
from shoal.app.studio.screens import hierarchies
from shoal.app.studio.screens.hierarchies import ROOM
from shoal.errors import InputError
from shoal.risk import uniqueness

from ..conftest import ROLES

SCRIPT = "<script>alert(1)</script>"
COLUMN = "/hierarchies/column?name="


def alone(text):
    """The numbers on the rungs, in their order."""
    return [int(n.replace(",", "")) for n in re.findall(r"<span>([\d,]+) unique</span>", text)]


def plan_of(browser):
    return browser.studio.project.plan


def hierarchy_of(browser, column):
    return plan_of(browser).steps[0].hierarchies[column]


def file_of(browser, column):
    """The file that the plan names, and that it is one of the project."""
    place = Path(hierarchy_of(browser, column).source)
    assert place.parent == browser.studio.project.folder / "hierarchies"
    return place.name


def as_list(browser, column="occupation"):
    """The column's hierarchy in a file, which the plan names."""
    browser.post("/hierarchies/list", name=column)
    if column not in (plan_of(browser).steps[0].hierarchies or {}):  # a list already
        browser.post("/hierarchies/propose", name=column, kind="frequency")
    return hierarchy_of(browser, column)


def edit(browser, do, nodes=(), label="", column="occupation", code=200):
    return browser.post(
        "/hierarchies/edit",
        code,
        name=column,
        do=do,
        node=list(nodes),
        label=label,
        version=browser.studio.project.version.number,
    )


# -- looking


def test_the_overview_counts_as_the_measure_does(browser):
    text = browser.get("/hierarchies").text
    table = browser.studio.dataset.loaded().with_roles(plan_of(browser).roles)
    expected = round(uniqueness(table).value * len(table))
    assert f'<span class="big">{expected:,}</span>' in text
    assert alone(text)[0] == expected
    for name in ("age", "sex", "marital", "zip", "occupation"):
        assert f"name={name}" in text


def test_a_level_that_is_chosen_is_that_of_a_generalized_table(browser):
    table = browser.studio.dataset.loaded().with_roles(plan_of(browser).roles)
    coarse = Hierarchy.propose(table, "age").generalize(table, "age", 2)
    coarse = Hierarchy.propose(table, "zip").generalize(coarse, "zip", 3)
    expected = round(uniqueness(coarse).value * len(table))
    text = browser.get("/hierarchies?levels=2.0.0.3.0").text
    assert f'<span class="big">{expected:,}</span>' in text
    assert "at level 2" in text
    text = browser.get(f"{COLUMN}zip&levels=2.0.0.3.0").text
    assert alone(text)[3] == expected
    by_itself = Table(table.frame, Roles(quasi_identifiers=["zip"], unit="row"))
    assert f"{by_itself.classes.uniques:,} by this column alone" in text


def test_persons_are_counted_where_they_have_several_rows(open_studio, tmp_path):
    rows = {"who": [1, 1, 2, 3, 4], "age": [30, 31, 40, 41, 40]}
    folder = tmp_path / "visits"
    folder.mkdir()
    pl.DataFrame(rows).write_csv(folder / "visits.csv")
    plan = '[roles]\nquasi_identifiers = ["age"]\nunit = "who"\n'
    browser = open_studio(folder / "visits.csv", plan)
    browser.post("/hierarchies/rule", name="age", kind="intervals", widths="10")
    text = browser.get(f"{COLUMN}age").text
    assert alone(text) == [2, 1, 0]  # persons 1 and 3; person 1 alone in her thirties; nobody
    assert "of 4" in text


def test_a_page_that_counts_too_long_asks_again(browser, monkeypatch):
    monkeypatch.setattr(hierarchies, "_PATIENCE", -1.0)
    text = browser.get("/hierarchies?levels=1.0.0.0.0").text
    assert 'hx-get="/hierarchies?levels=1.0.0.0.0"' in text
    assert alone(text) == []
    monkeypatch.setattr(hierarchies, "_PATIENCE", 60.0)
    assert "hx-get" not in browser.get("/hierarchies?levels=1.0.0.0.0").text


def test_values_are_hidden_until_asked_for(browser):
    hidden = browser.get(f"{COLUMN}marital").text
    shown = browser.get(f"{COLUMN}marital&show=values").text
    main = hidden.partition("<main")[2]
    assert "married" not in main
    assert "married" in shown
    assert "value 1" in hidden


def test_the_prefix_of_a_code_is_hidden_and_an_interval_is_not(browser):
    assert not re.search(r"<bdi>\d\*+</bdi>", browser.get(f"{COLUMN}zip&at=4").text)
    assert re.search(r"<bdi>\d\*+</bdi>", browser.get(f"{COLUMN}zip&at=4&show=values").text)
    assert "[20, 40)" in browser.get(f"{COLUMN}age").text


def test_a_ladder_has_every_person_on_every_level(browser):
    text = browser.get(f"{COLUMN}age&at=1").text
    rows = re.findall(r'class="node[^"]*">.*?class="people">([\d,]+)', text, re.DOTALL)
    people = [int(one.replace(",", "")) for one in rows]
    assert sum(people) == 2000 * 6  # levels 1 to 5 and the root


def test_a_long_ladder_comes_in_pages_and_opens_by_group(browser):
    first = browser.get(f"{COLUMN}zip&at=0").text
    assert first.count('id="page-next"') == 1
    assert len(re.findall(r"<tr><td", first)) == 50
    second = browser.get(f"{COLUMN}zip&at=0&page=2").text
    assert "continued from the previous page" in second
    under = browser.get(f"{COLUMN}zip&at=3&under=4.0").text
    assert "Only one group is shown" in under


def test_the_room_says_how_it_stands(browser, open_studio, people):
    assert mark_of(ROOM, browser.studio).standing == "attention"
    browser.post("/hierarchies/keep")
    assert mark_of(ROOM, browser.studio).standing == "done"
    empty = open_studio(people, folder="other")
    assert mark_of(ROOM, empty.studio).standing == "open"
    assert "No column is a quasi-identifier yet" in empty.get("/hierarchies").text


# -- rules


@pytest.mark.parametrize(
    ("column", "fields", "expected"),
    [
        ("age", {"kind": "intervals", "widths": "5; 10 20"}, {"intervals": [5, 10, 20]}),
        (
            "age",
            {"kind": "intervals", "widths": "2.5", "origin": "1"},
            {"intervals": [2.5], "origin": 1},
        ),
        ("age", {"kind": "edges", "edges": "18, 30\n\n30"}, {"edges": [[18, 30], [30]]}),
        ("age", {"kind": "rounding", "bases": "5,10"}, {"rounding": [5, 10]}),
        ("zip", {"kind": "prefixes", "lengths": "3, 2"}, {"prefixes": [3, 2]}),
    ],
)  # fmt: skip
def test_a_rule_goes_into_the_plan_and_back(browser, column, fields, expected):
    before = browser.studio.project.version
    browser.post("/hierarchies/rule", name=column, **fields)
    assert hierarchy_of(browser, column) == Hierarchy.from_plan(expected)
    browser.post("/history/go", version=before.number, back="/hierarchies")
    assert plan_of(browser).steps[0].hierarchies is None


def test_calendar_units_are_chosen_for_dates(open_studio, tmp_path):
    folder = tmp_path / "births"
    folder.mkdir()
    days = [f"{year}-0{month}-11" for year in (1970, 1985) for month in (1, 2, 5)]
    pl.DataFrame({"born": days}).write_csv(folder / "births.csv")
    plan = '[roles]\nquasi_identifiers = ["born"]\nunit = "row"\n'
    browser = open_studio(folder / "births.csv", plan)
    browser.post("/hierarchies/rule", name="born", kind="dates", unit=["year", "month"])
    assert browser.studio.project.settings["hierarchies"]["born"] == {"dates": ["month", "year"]}
    assert alone(browser.get(f"{COLUMN}born").text) == [6, 6, 0, 0]
    answer = browser.post(
        "/hierarchies/rule", 422, name="born", kind="dates", unit=["week", "year"]
    )
    assert "Weeks do not nest" in answer.text


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"kind": "intervals", "widths": "0"}, "above 0"),
        ({"kind": "intervals", "widths": "5, 7"}, "not a multiple"),
        ({"kind": "intervals", "widths": "wide"}, "separated by commas"),
        ({"kind": "intervals", "widths": ", ".join(["5"] * 21)}, "1 to 20"),
        ({"kind": "intervals", "widths": "5", "origin": "1, 2"}, "one number"),
        ({"kind": "intervals", "widths": "inf"}, "finite"),
        ({"kind": "dates", "unit": ["year"]}, "not a date"),
        ({"kind": "dates"}, "calendar unit"),
        ({"kind": "prefixes", "lengths": "2, 3"}, "long to short"),
        ({"kind": "edges", "edges": "\n"}, "1 to 20"),
        ({"kind": "magic"}, "no such kind"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_a_sentence(browser, fields, word):
    before = browser.studio.project.version
    answer = browser.post("/hierarchies/rule", 422, name="age", **fields)
    assert word in answer.text
    assert answer.headers["hx-push-url"] == "false"  # the address stays one that can be reloaded
    assert browser.studio.project.version == before


def test_without_a_step_the_hierarchy_waits_beside_the_plan(open_studio, people):
    browser = open_studio(people, ROLES)
    browser.post("/hierarchies/rule", name="age", kind="intervals", widths="10, 20")
    kept = browser.studio.project.settings["hierarchies"]
    assert kept == {"age": {"intervals": [10, 20]}}
    text = ROLES + '\n[[steps]]\nmethod = "generalize"\nk = 5\n'
    browser.studio.project.replace_plan(text, based_on=browser.studio.project.version.number)
    assert "saved with the project" in browser.get("/hierarchies").text
    browser.post("/hierarchies/use")
    assert hierarchy_of(browser, "age") == Hierarchy.intervals([10, 20])
    assert browser.studio.project.settings["hierarchies"] == {}


def test_a_hierarchy_is_left_to_shoal_again(browser):
    browser.post("/hierarchies/rule", name="age", kind="intervals", widths="7")
    browser.post("/hierarchies/reset", name="age")
    assert not plan_of(browser).steps[0].hierarchies
    assert "Shoal proposes this" in browser.get(f"{COLUMN}age").text


# -- lists


def test_a_changed_list_is_a_new_file_and_undo_finds_the_old_one(browser):
    first = as_list(browser)
    before = browser.studio.project.version
    edit(browser, "join", ["0.0", "0.1"], "Both")
    second = hierarchy_of(browser, "occupation")
    assert file_of(browser, "occupation") == "occupation-2.csv"
    assert Path(first.source).name == "occupation-1.csv"
    for hierarchy in (first, second):
        assert stat.S_IMODE(Path(hierarchy.source).stat().st_mode) == 0o600
        assert Hierarchy.from_csv(hierarchy.source) == hierarchy
    assert [row[1] for row in second.rows].count("Both") == 2
    browser.post("/history/go", version=before.number, back="/hierarchies")
    assert hierarchy_of(browser, "occupation") == first
    edit(browser, "rename", ["1.0"], "Other work")
    assert file_of(browser, "occupation") == "occupation-3.csv"


def test_undo_comes_back_to_the_column(browser):
    before = browser.studio.project.version.number
    browser.post("/hierarchies/rule", name="age", kind="intervals", widths="10")
    text = browser.get(f"{COLUMN}age&show=values").text
    back = html.unescape(re.search(r'name="back" value="([^"]+)"', text)[1])
    answer = browser.post("/history/go", version=before, back=back)
    assert "<h1><bdi>age</bdi></h1>" in answer.text


def test_a_release_is_made_with_an_edited_list(browser):
    as_list(browser)
    edit(browser, "join", ["0.0", "0.1", "0.2", "0.3"], "Some")
    text = browser.studio.project.version.plan.replace("mondrian", "full-domain")
    number = browser.studio.project.version.number
    browser.studio.project.replace_plan(text, based_on=number)
    ended = browser.wait(browser.studio.start("protect", "Release", format="csv"))
    assert (ended.state, ended.sentence) == ("done", "")


def test_a_file_that_a_version_names_is_never_written_again(browser):
    first = as_list(browser)
    (browser.studio.project.folder / first.source).unlink()
    browser.post("/hierarchies/propose", name="occupation", kind="ordered")
    assert file_of(browser, "occupation") == "occupation-2.csv"


ROWS = (
    ("a", "A", "X", "*"),
    ("b", "A", "X", "*"),
    ("c", "C", "X", "*"),
    ("d", "D", "Y", "*"),
)


@pytest.mark.parametrize(
    ("what", "level", "nodes", "name", "expected"),
    [
        ("join", 1, {1, 2}, "CD", ["a A X", "b A X", "c CD X", "d CD X"]),
        ("join", 0, {2, 3}, "CD", ["a A X", "b A X", "c CD X", "d CD X"]),
        ("join", 0, {3}, "A", ["a A X", "b A X", "c C X", "d A X"]),
        ("move", 1, {0}, "Y", ["a A Y", "b A Y", "c C X", "d D Y"]),
        ("move", 2, {0, 1}, "Z", ["a A X Z", "b A X Z", "c C X Z", "d D Y Z"]),
        ("split", 2, {0}, "", ["a A A", "b A A", "c C C", "d D Y"]),
        ("rename", 1, {0}, "B", ["a B X", "b B X", "c C X", "d D Y"]),
    ],
)
def test_an_edit_keeps_levels_nested(what, level, nodes, name, expected):
    rows = _edit.WITH_NODES[what](ROWS, level, nodes, name)
    assert [" ".join(row[:-1]) for row in rows] == expected
    assert Hierarchy.from_rows(rows).rows == tuple(rows)


def test_levels_are_put_in_and_taken_out():
    more = _edit.add_level(ROWS, 1)
    assert more[0] == ("a", "A", "A", "X", "*")
    assert _edit.drop_level(more, 2) == list(ROWS)


@pytest.mark.parametrize(
    ("what", "level", "nodes", "name", "word"),
    [
        ("join", 1, {0, 1}, "D", "already has this name"),
        ("rename", 1, {0}, "C", "already has this name"),
        ("rename", 1, {0, 1}, "Q", "Rename one"),
        ("rename", 0, {0}, "Q", "Select groups"),
        ("split", 0, {0}, "", "Select groups"),
        ("join", 1, set(), "Q", "Nothing is selected"),
        ("join", 1, {7}, "Q", "not in the list"),
        ("join", 3, {0}, "Q", "no such level"),
        ("join", 1, {0}, " ", "needs a name"),
        ("join", 1, {0}, "two\nlines", "one line"),
        ("join", 1, {0}, "*", "last level"),
        ("join", 1, {0}, "x" * 201, "200"),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused(what, level, nodes, name, word):
    with pytest.raises(InputError, match=word):
        _edit.WITH_NODES[what](ROWS, level, nodes, name)


def test_selected_nodes_are_of_one_level_of_this_version(browser):
    as_list(browser)
    assert "one level" in edit(browser, "join", ["0.0", "1.0"], "Q", code=422).text
    assert "no such change" in edit(browser, "burn", ["0.0"], code=422).text
    old = {"name": "occupation", "do": "join", "node": "0.0", "label": "Q", "version": 1}
    assert "in the meantime" in browser.post("/hierarchies/edit", 409, **old).text
    assert "is a rule" in edit(browser, "join", ["0.0"], "Q", column="age", code=422).text


def test_a_name_with_a_script_is_text(browser):
    as_list(browser)
    edit(browser, "join", ["0.0", "0.1"], SCRIPT)
    text = browser.get(f"{COLUMN}occupation&show=values").text
    assert SCRIPT not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_column_with_a_script_in_its_name_is_text(open_studio, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    pl.DataFrame({SCRIPT: ["a", "b", "c", "a"]}).write_csv(folder / "odd.csv")
    plan = f'[roles]\nquasi_identifiers = ["{SCRIPT}"]\nunit = "row"\n'
    browser = open_studio(folder / "odd.csv", plan)
    for path in ("/hierarchies", f"{COLUMN}%3Cscript%3Ealert(1)%3C/script%3E"):
        assert SCRIPT not in browser.get(path).text.replace("/static", "")


# -- files


def test_a_file_is_imported_and_says_what_it_lacks(browser, people):
    values = browser.studio.dataset.loaded().table.value_counts("marital")
    known = sorted(values)[:-1]
    rows = [[value, "known", "*"] for value in known]
    Hierarchy.from_rows(rows).to_csv(people.with_name("marital.csv"))
    browser.post("/hierarchies/import", name="marital", file=str(people.with_name("marital.csv")))
    assert file_of(browser, "marital") == "marital-1.csv"
    text = browser.get(f"{COLUMN}marital").text
    assert "The list does not have 1\u202fvalue" in text.replace("\xa0", "\u202f")
    browser.post("/hierarchies/cover", name="marital")
    table = browser.studio.dataset.loaded().table
    assert hierarchy_of(browser, "marital").uncovered(table, "marital") == 0


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("a;b;*\nc;*\n", "as many fields"),
        ("x;A;Z;*\ny;A;W;*\n", "do not nest"),
        ("nobody;A;*\nnoone;A;*\n", "lists none"),
        ("", "is empty"),
        ("\x00\x01;\x02", "lists none|parsed|text"),
    ],
)
def test_a_file_that_is_not_a_hierarchy_is_refused(browser, people, content, word):
    people.with_name("bad.csv").write_text(content)
    before = browser.studio.project.version
    path = str(people.with_name("bad.csv"))
    answer = browser.post("/hierarchies/import", 422, name="marital", file=path)
    assert re.search(word, answer.text)
    assert browser.studio.project.version == before
    assert not list(browser.studio.project.folder.glob("hierarchies/*.csv"))


def test_a_file_elsewhere_is_not_read(browser, tmp_path):
    Hierarchy.from_rows([["single", "x"]]).to_csv(tmp_path / "secret.csv")
    for path in (str(tmp_path / "secret.csv"), "../secret.csv", "/etc/passwd", "\0"):
        answer = browser.post("/hierarchies/import", 422, name="marital", file=path)
        assert "single" not in answer.text


def test_a_file_that_is_gone_leaves_a_way_out(browser, open_studio, people):
    first = as_list(browser)
    Path(first.source).unlink()
    browser = open_studio(people)  # as after a restart
    browser.studio.dataset.loaded(60)
    assert "cannot be read" in browser.get("/hierarchies").text
    text = browser.get(f"{COLUMN}occupation").text
    assert 'id="reset"' in text
    browser.post("/hierarchies/reset", name="occupation")
    assert "Shoal proposes this" in browser.get(f"{COLUMN}occupation").text


def test_a_list_of_20000_values_is_edited(open_studio, tmp_path):
    folder = tmp_path / "codes"
    folder.mkdir()
    pl.DataFrame({"code": [f"c{n:05}" for n in range(20_000)] * 2}).write_csv(folder / "codes.csv")
    plan = '[roles]\nquasi_identifiers = ["code"]\nunit = "row"\n'
    browser = open_studio(folder / "codes.csv", plan)
    browser.post("/hierarchies/list", name="code")
    edit(browser, "join", ["1.0", "1.1"], "first", column="code")
    text = browser.get(f"{COLUMN}code&at=0").text
    assert "of 400" in text
    path = browser.studio.project.folder / browser.studio.project.settings["hierarchies"]["code"]
    rows = Hierarchy.from_csv(path).rows
    assert len(rows) == 20_000
    assert sum(row[1] == "first" for row in rows) == 20


# -- bad input


@pytest.mark.parametrize(
    "path",
    [
        f"{COLUMN}unknown",
        f"{COLUMN}income",
        f"{COLUMN}age&at=x",
        f"{COLUMN}age&page=0",
        f"{COLUMN}age&page=99999",
        f"{COLUMN}age&page=-1",
        f"{COLUMN}age&under=9.9",
        f"{COLUMN}age&under=1.99999999999999999999",
        f"{COLUMN}age&levels=1.2",
        f"{COLUMN}age&levels=a.b.c.d.e",
        "/hierarchies?levels=9",
    ],
)
def test_an_address_that_means_nothing_is_refused_in_a_sentence(browser, path):
    answer = browser.client.get(path)
    assert answer.status_code == 422
    assert 'id="sentence"' in answer.text


def test_an_unknown_column_cannot_be_changed(browser):
    for action in ("rule", "propose", "reset", "list", "import", "cover", "edit"):
        answer = browser.post(f"/hierarchies/{action}", 422, name="unknown")
        assert "not a quasi-identifier" in answer.text


def test_people_alone_are_those_that_the_measure_finds_with_persons(open_studio, tmp_path):
    frame = pl.DataFrame(
        {
            "who": [n * 7 % 120 for n in range(300)],
            "age": [20 + n * 13 % 60 for n in range(300)],
            "town": [f"t{n * 5 % 11}" for n in range(300)],
        }
    )
    folder = tmp_path / "visits"
    folder.mkdir()
    frame.write_csv(folder / "visits.csv")
    plan = '[roles]\nquasi_identifiers = ["age", "town"]\nunit = "who"\n'
    browser = open_studio(folder / "visits.csv", plan)
    browser.post("/hierarchies/rule", name="age", kind="intervals", widths="5, 10, 30")
    table = Table(frame, Roles(quasi_identifiers=["age", "town"], unit="who"))
    ages = Hierarchy.intervals([5, 10, 30])
    expected = [
        round(uniqueness(ages.generalize(table, "age", level)).value * table.person_count)
        for level in range(ages.levels)
    ]
    assert alone(browser.get(f"{COLUMN}age").text) == expected
    assert expected[0] > expected[1]
