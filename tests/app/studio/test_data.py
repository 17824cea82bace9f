"""Data: files of every kind, typed, chosen and broken; what is shown at once or on request."""

from __future__ import annotations

import os
import re

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.app.studio import _warming
from shoal.workflow.report._words import SPACE

MESSY = (
    "\ufeffName;größe cm;安全;Einkommen;Ort\n"
    "Ada;1,75;a;12,5;Köln\n"
    "Bob;;b;k. A.;Bonn\n"
    "Cid;1,80;a;;Köln\n"
    "Dee;1,62;NA;9,25;Bonn\n"
)


def written(folder, name, text, encoding="utf-8"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def shown(answer):
    return answer.text.replace(SPACE, " ")


def reading(browser):
    """How the plan, which the command line runs too, reads the table."""
    return browser.studio.project.plan.to_dict().get("read", {})


def test_a_messy_file_is_found_out_and_no_cell_is_shown(open_studio, folder):
    browser = open_studio(written(folder, "messy.csv", MESSY))
    text = shown(browser.get("/data"))
    assert "4 rows and 5 columns" in text
    assert "with semicolons between fields, a decimal comma, a byte order mark" in text
    assert "größe cm" in text
    assert "安全" in text
    assert not any(cell in text for cell in ("Ada", "Köln", "1,75", "1.75", "k. A."))


def test_cells_are_shown_on_request(open_studio, folder):
    browser = open_studio(written(folder, "messy.csv", MESSY))
    text = shown(browser.get("/data?show=values"))
    assert "Ada" in text
    assert '<span class="quiet">missing</span>' in text
    assert "Ada" not in shown(browser.get("/data"))


def test_what_stands_for_missing_is_said(open_studio, folder):
    browser = open_studio(written(folder, "messy.csv", MESSY))
    assert browser.studio.dataset.loaded(9).table.column("Einkommen").kind == "text"
    browser.post("/data/read", missing_values="k. A.\r\nNA\r\n\r\n")
    assert reading(browser) == {"missing_values": ["k. A.", "NA"]}
    table = browser.studio.dataset.loaded(9).table
    assert table.column("Einkommen").kind == "float"
    assert table.column("Einkommen").missing_count == 2
    page = shown(browser.get("/data"))
    assert "k. A.\nNA</textarea>" in page
    browser.post("/data/read", missing_values="")
    assert "missing_values" not in reading(browser)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"delimiter": "ab"}, "delimiter"),
        ({"encoding": "klingon"}, "klingon"),
        ({"delimiter": '"'}, "delimiter"),
        ({"encoding": "utf-16"}, "messy.csv"),
    ],
)
def test_a_way_of_reading_that_fails_is_said_and_can_be_changed(
    open_studio, folder, fields, problem
):
    browser = open_studio(written(folder, "messy.csv", MESSY))
    text = shown(browser.post("/data/read", **fields))
    assert problem in text.partition('role="alert">')[2]
    assert 'id="delimiter"' in text
    assert "Ada" not in text
    assert "4 rows" in shown(browser.post("/data/read"))


def test_what_was_found_out_is_said(open_studio, folder):
    text = "name;born;ort\nÄnne;01/02/1980;Köln\nBob;03/04/1981;Bonn\n"
    page = shown(open_studio(written(folder, "latin.csv", text, "cp1252")).get("/data"))
    assert "read as cp1252" in page
    assert "born=%d/%m/%Y" in page
    assert "1980" not in page


def test_marks_that_cannot_be_are_refused(open_studio, folder):
    browser = open_studio(written(folder, "messy.csv", MESSY))
    assert "decimal mark" in browser.post("/data/read", 422, decimal="x").text
    assert reading(browser) == {}


def test_another_encoding(open_studio, folder):
    source = written(folder, "latin.csv", "name;ort\nÄnne;Köln\nBob;Bonn\n", "cp850")
    browser = open_studio(folder=str(source.parent / "p"))
    browser.studio.dataset.roots += (folder,)
    assert "encoding" in shown(browser.post("/data/choose", path=str(source)))
    assert "2 rows" in shown(browser.post("/data/read", encoding="cp850"))
    assert "Änne" in shown(browser.get("/data?show=values"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.csv", b"", "empty"),
        ("blank.csv", b"\n\n\n", "blank.csv"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "ragged.csv"),
        ("zeros.csv", b"a,b\n\0\0\0\n", "null bytes"),
        ("no.parquet", b"PAR1", "no.parquet"),
        ("no.xlsx", b"PK\3\4", "no.xlsx"),
        ("no.arrow", b"ARROW1", "no.arrow"),
        ("twice.csv", b"a,a\n1,2\n", "twice.csv"),
        ("torn.csv.gz", b"\x1f\x8b\x08", "torn.csv.gz"),
    ],
)
def test_a_broken_file_is_one_sentence_and_another_can_be_chosen(
    open_studio, folder, name, content, problem
):
    browser = open_studio()
    browser.studio.dataset.roots += (folder,)
    good = written(folder, "good.csv", "a,b\n1,2\n3,4\n")
    text = browser.post("/data/choose", path=str(written(folder, name, content))).text
    assert problem in text.partition('role="alert">')[2].partition("</p>")[0]
    assert problem in browser.client.get("/roles").text
    assert "2 rows" in shown(browser.post("/data/choose", path=str(good)))


def test_a_table_without_rows(open_studio, folder):
    browser = open_studio()
    browser.studio.dataset.roots += (folder,)
    browser.post("/data/choose", path=str(written(folder, "none.csv", "a,b\n")))
    assert browser.client.get("/data").status_code == 200
    assert browser.client.get("/data?show=values&from=50").status_code == 200


def test_sheets_of_a_workbook_are_offered(open_studio, folder):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="workbooks are an extra")
    folder.mkdir()
    with xlsxwriter.Workbook(folder / "book.xlsx") as book:
        for name, rows in {"notes": [["word"], ["x"]], "people": [["age"], [3], [4]]}.items():
            sheet = book.add_worksheet(name)
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
    browser = open_studio(folder / "book.xlsx")
    text = shown(browser.get("/data"))
    assert "1 row" in text
    assert "with 2 sheets" in text
    assert '<option value="people">people</option>' in text
    assert "2 rows" in shown(browser.post("/data/read", sheet="people"))
    assert browser.studio.dataset.loaded(9).table.columns == ["age"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_other_formats(open_studio, folder, kind):
    folder.mkdir()
    frame = pl.DataFrame({"age": [1, 2, None], "when": pl.Series(["2020-01-01"] * 3).str.to_date()})
    (frame.write_parquet if kind == "parquet" else frame.write_ipc)(folder / f"people.{kind}")
    browser = open_studio(folder / f"people.{kind}")
    assert "3 rows" in shown(browser.get("/data"))
    assert "2020-01-01" in shown(browser.get("/data?show=values"))


# -- looking further


@pytest.fixture
def long(open_studio, folder):
    lines = [f"c{number},{number}" for number in range(1, 131)]
    return open_studio(written(folder, "long.csv", "\n".join(["code,n", *lines, ""])))


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("", 1, 20),
        ("&from=0", 1, 50),
        ("&from=50", 51, 100),
        ("&from=100", 101, 130),
        ("&from=60", 51, 100),
        ("&from=5000", 1, 50),
        ("&from=-1", 1, 50),
        ("&from=x", 1, 50),
        ("&from=²", 1, 50),
        (f"&from={'9' * 5000}", 1, 50),
    ],
)
def test_pages_of_rows(long, query, first, last):
    text = shown(long.get(f"/data?show=values{query}"))
    rows = [n for n in range(1, 131) if f"<bdi>c{n}</bdi>" in text]
    assert (rows[0], rows[-1], len(rows)) == (first, last, last - first + 1)


def test_a_wide_table_comes_in_pages(open_studio, folder):
    names = [f"column {number}" for number in range(5000)]
    lines = [";".join(names), *(";".join(str(at % 7) for at in range(5000)) for _ in range(30))]
    browser = open_studio(written(folder, "wide.csv", "\n".join([*lines, ""])))
    text = shown(browser.get("/data"))
    assert "5,000 columns" in text
    assert len(text) < 1_500_000
    assert text.count('<th scope="row">') == 100
    text = shown(browser.get("/data?show=values&columns=4900&from=0"))
    assert "<bdi>column 4999</bdi>" in text
    assert "<bdi>column 1</bdi>" not in text


# -- whose is a row


def test_whose_a_row_is(browser):
    project = browser.studio.project
    browser.post("/data/whose", whose="several", unit=["email"])
    assert project.plan.roles.unit == ("email",)
    assert "email" not in project.plan.roles.identifiers
    browser.post("/data/whose", whose="once", unit=["email"])
    assert project.plan.roles.unit == "row"
    assert [version.what for version in project.versions][:2] == ["row ownership"] * 2


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"whose": "several"},
        {"whose": "nobody"},
        {"whose": "several", "unit": "no such column"},
        {"whose": "once", "household": "no such column"},
    ],
)
def test_an_answer_that_is_none_is_refused(browser, fields):
    before = browser.studio.project.version
    browser.post("/data/whose", 422, **fields)
    assert browser.studio.project.version == before


def test_the_mark_asks_whose_a_row_is(open_studio, people):
    browser = open_studio(people)
    assert "whose are they?" in shown(browser.get("/data"))
    browser.post("/data/whose", whose="once")
    assert "whose is a row?" not in shown(browser.get("/data"))


# -- where files are


def test_files_here_are_offered_and_one_is_chosen(open_studio, people):
    browser = open_studio()
    browser.studio.dataset.roots += (people.parent,)
    written(people.parent, "readme.md", "# no data")
    page = shown(browser.get("/data"))
    assert "people.csv" in page
    assert "readme.md" not in page
    assert "2,000 rows" in shown(browser.post("/data/choose", path=str(people)))


def test_a_file_in_the_project_is_named_by_its_place_there(open_studio, tmp_path):
    browser = open_studio()
    written(browser.studio.project.folder, "in.csv", "a,b\n1,2\n")
    browser.post("/data/choose", path="in.csv")
    assert browser.studio.project.settings["source"] == {"path": "in.csv"}
    browser.post("/data/read", delimiter=";")
    written(browser.studio.project.folder, "other.csv", "a,b\n1,2\n")
    browser.post("/data/choose", path="other.csv")
    assert reading(browser) == {}


@pytest.mark.parametrize(
    "given", ["postgresql://ada:secret@host/db", "sqlite:///x.db", "http://x/y.csv"]
)
def test_a_database_is_not_for_the_studio(browser, given):
    text = shown(browser.post("/data/choose", 422, path=given))
    assert "databases" in text
    assert "secret" not in text


def test_a_file_that_changes_is_read_again(open_studio, folder):
    browser = open_studio(written(folder, "a.csv", "a,b\n1,2\n"))
    assert "1 row and" in shown(browser.get("/data"))
    written(folder, "a.csv", "a,b\n1,2\n3,4\n")
    assert "2 rows" in shown(browser.get("/data"))
    (folder / "a.csv").unlink()
    assert "no longer where" in shown(browser.get("/data"))


def test_a_folder_that_others_may_open_is_said(browser):
    assert "chmod" not in shown(browser.get("/data"))
    browser.studio.project.folder.chmod(0o755)
    assert "other users of this machine" in shown(browser.get("/data"))


# -- what is compiled meanwhile


def test_a_large_table_has_the_kernels_compiled_behind_the_screen(open_studio, folder):
    begun = []
    small = open_studio(written(folder, "small.csv", "a,b\n1,2\n"))
    small.studio.warm = lambda: begun.append("small")
    small.get("/data")
    lines = "".join(f"{number},{number % 7}\n" for number in range(20_000))
    large = open_studio(written(folder, "large.csv", f"a,b\n{lines}"), folder="other")
    large.studio.warm = lambda: begun.append("large")
    large.get("/data")
    assert begun == ["large"]


def test_compiling_is_begun_once_at_the_lowest_priority_and_stopped(monkeypatch):
    monkeypatch.setattr(_warming, "_PROGRAM", "import time; time.sleep(600)")
    warming = _warming.Warming()
    warming.close()
    warming.begin()
    process = warming.process
    warming.begin()
    assert warming.process is process
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    warming.close()
    assert process.returncode is not None


WEIGHTS = "Gewicht kg;Ort\n" + "".join(f"{60 + n % 30};A\n" for n in range(96))


def test_texts_that_may_be_missing_are_pointed_out_and_added(open_studio, folder):
    odd = "k. A.;B\nk. A.;B\n?;C\n<b>zu schwer</b>;C\n"
    browser = open_studio(written(folder, "weights.csv", WEIGHTS + odd))
    text = shown(browser.get("/data"))
    assert "96 % of the values" in text
    assert "3 other texts" in text
    assert re.findall(r'name="sign" value="([^"]*)"', text) == ["?", "k. A."]
    assert "zu schwer" not in text  # a cell, until it is asked for
    assert "&lt;b&gt;zu schwer&lt;/b&gt;" in browser.get("/data?texts=0").text
    browser.post("/data/missing", sign=["k. A.", "?"])
    assert reading(browser)["missing_values"] == ["k. A.", "?"]
    after = browser.get("/data").text
    assert "Do these mean a missing value?" in after  # one text is left
    browser.post("/data/missing", sign="<b>zu schwer</b>")
    table = browser.studio.dataset.loaded(60).table
    assert table.kind("Gewicht kg") == "integer"
    assert table.column("Gewicht kg").missing_count == 4
    assert "Do these mean a missing value?" not in browser.get("/data").text


def test_no_text_chosen_is_refused(browser):
    assert "Choose the texts" in browser.post("/data/missing", code=422).text
    assert "Reload the page" in browser.post("/data/missing", code=422, sign="12").text
    assert browser.get("/data?texts=99&texts=x").status_code == 200


def test_what_a_file_says_of_its_columns_is_shown(open_studio, folder):
    folder.mkdir()
    fields = [
        pa.field("q17", pa.int64(), metadata={"label": "Age <in> years"}),
        pa.field("q18", pa.string()),
    ]
    ages = pa.table([list(range(30)), ["a", "b"] * 15], schema=pa.schema(fields))
    pq.write_table(ages, folder / "people.parquet")
    page = open_studio(folder / "people.parquet").get("/data").text
    assert "Age &lt;in&gt; years" in page
