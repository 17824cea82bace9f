"""Metadata files on the way in: what they say about a table, and what is wrong with them."""

from __future__ import annotations

import json

import pytest

from shoal import read
from shoal.errors import InputError, ReadError

CSV = "zip;age;born;cost\n01234;30;03.04.1990;1,5\n99999;-9;05.06.1980;2,5\n12345;41;;-9\n"
PACKAGE = {
    "resources": [
        {"path": "other.csv", "schema": {"fields": [{"name": "x"}]}},
        {
            "path": "p.csv",
            "dialect": {"delimiter": ";"},
            "schema": {
                "missingValues": ["", "-9"],
                "fields": [
                    {"name": "zip", "type": "string", "title": "Postcode"},
                    {"name": "age", "type": "integer"},
                    {"name": "born", "type": "date", "format": "%d.%m.%Y"},
                    {"name": "cost", "type": "number", "decimalChar": ","},
                ],
            },
        },
    ]
}
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "p.csv",
    "null": ["", "-9"],
    "dialect": {"delimiter": ";"},
    "tableSchema": {
        "columns": [
            {"titles": "zip", "datatype": "string", "rdfs:label": "Postcode"},
            {"titles": {"en": ["age"]}, "datatype": "nonNegativeInteger"},
            {"name": "born", "datatype": {"base": "date", "format": "dd.MM.yyyy"}},
            {"name": "cost", "datatype": {"base": "decimal", "format": {"decimalChar": ","}}},
        ]
    },
}
DDI = """<?xml version="1.0"?><codeBook xmlns="ddi:codebook:2_5" version="2.5">
<fileDscr ID="F1"><fileTxt><fileName>p.csv</fileName></fileTxt></fileDscr>
<dataDscr>
<var name="zip" files="F1"><labl>Postcode</labl><varFormat type="character"/></var>
<var name="age" dcml="0"><catgry missing="Y"><catValu>-9</catValu><labl>refused</labl></catgry>
<catgry><catValu>30</catValu><labl>thirty</labl></catgry><varFormat type="numeric"/></var>
<var name="cost" intrvl="contin"><invalrng><item VALUE="-9"/></invalrng>
<varFormat type="numeric"/></var>
</dataDscr></codeBook>"""


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(CSV, "utf-8")
    return path


def _checked(table):
    assert [table.kind(name) for name in table.columns] == ["text", "integer", "date", "float"]
    assert table.frame["zip"].to_list()[0] == "01234"
    assert table.frame["age"].to_list() == [30, None, 41]
    assert table.frame["cost"].to_list() == [1.5, 2.5, None]
    assert table.manner.described["zip"].label == "Postcode"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("datapackage.json", json.dumps(PACKAGE)),
        ("p.csv-metadata.json", json.dumps(CSVW)),
        ("ddi.xml", DDI),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_a_file_that_describes_the_table_is_used(csv, tmp_path, name, text, given):
    place = tmp_path / ("described" if given else name)
    place.write_text(text, "utf-8")
    table = read(csv, metadata=place if given else None)
    _checked(table)
    assert any(place.name in note for note in table.manner.notes)
    ignored = read(csv, metadata="none")
    assert ignored.frame["age"].to_list() == [30, -9, 41]
    assert not ignored.manner.described


def test_a_codebook_has_labels_of_values_but_not_of_missing_ones(csv, tmp_path):
    (tmp_path / "ddi.xml").write_text(DDI, "utf-8")
    assert read(csv).manner.described["age"].labels == {"30": "thirty"}


def test_a_file_about_other_tables_is_not_used(csv, tmp_path):
    package = {"resources": PACKAGE["resources"][:1]}
    (tmp_path / "datapackage.json").write_text(json.dumps(package), "utf-8")
    assert not read(csv).manner.described
    with pytest.raises(ReadError, match="other files"):
        read(csv, metadata=tmp_path / "datapackage.json")


def _package(*fields, **schema):
    listed = [{"name": name, "type": kind} for name, kind in fields]
    resource = {"path": "p.csv", "schema": {"fields": listed, **schema}}
    return json.dumps({"resources": [resource]})


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ("[" * 100_000, "JSON"),
        ("{}", "resources"),
        ('{"resources": 5}', "resources"),
        ('{"resources": [5]}', "objects"),
        ('{"resources": [{"path": "p.csv"}]}', "schema"),
        ('{"resources": [{"path": "p.csv", "schema": "s.json"}]}', "another file"),
        ('{"resources": [{"path": "p.csv", "schema": {"fields": [{}]}}]}', "name"),
        (_package(("zip", "zahl")), "type"),
        (_package(("zip", "string"), ("zip", "string")), "twice"),
        (_package(("zipp", "string")), "zip"),
        (_package(("zip", "date")), "contradicts"),
        (_package(("born", "integer")), "contradicts"),
        (_package(("zip", "string"), missingValues=5), "missingValues"),
        ('{"url": "p.csv", "tableSchema": "x.json"}', "another file"),
        ('{"url": "p.csv", "tableSchema": {"columns": [{"datatype": "x"}]}}', "name"),
        (
            '{"url": "p.csv", "tableSchema": {"columns": [{"name": "a", "datatype": 5}]}}',
            "datatype",
        ),
        ("<codeBook", "XML"),
        ("<other/>", "codebook"),
        ("<codeBook/>", "variables"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><codeBook/>", "entities"),
        ("<codeBook><dataDscr><var/></dataDscr></codeBook>", "name"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_without_a_cell(csv, tmp_path, text, keyword):
    place = tmp_path / "described"
    place.write_text(text, "utf-8")
    with pytest.raises(ReadError, match=keyword) as caught:
        read(csv, metadata=place)
    told = str(caught.value)
    assert "described" in told
    assert "99999" not in told
    assert "\n" not in told


def test_a_missing_or_binary_file_is_refused(csv, tmp_path):
    with pytest.raises(ReadError, match="no metadata file"):
        read(csv, metadata=tmp_path / "nowhere.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="UTF-8"):
        read(csv, metadata=tmp_path / "binary")


def test_a_given_option_wins(csv, tmp_path):
    (tmp_path / "datapackage.json").write_text(json.dumps(PACKAGE), "utf-8")
    assert read(csv, only_missing_values=["30"]).frame["age"].to_list() == [None, -9, 41]


def test_an_engine_says_that_it_does_not_read_metadata(csv, tmp_path):
    from shoal.engines import refuse_reading
    from shoal.table import ReadOptions

    (tmp_path / "datapackage.json").write_text(json.dumps(PACKAGE), "utf-8")
    with pytest.raises(InputError, match="metadata"):
        refuse_reading(csv, None, "duckdb")
    refuse_reading(csv, ReadOptions(metadata="none"), "duckdb")


def test_a_parquet_file_keeps_its_types_and_gets_labels(csv, tmp_path):
    read(csv, metadata="none").write(tmp_path / "p.parquet")
    text = _package(("age", "integer"), ("zip", "string")).replace("p.csv", "p.parquet")
    (tmp_path / "datapackage.json").write_text(text, "utf-8")
    table = read(tmp_path / "p.parquet")
    assert set(table.manner.described) == {"age", "zip"}
