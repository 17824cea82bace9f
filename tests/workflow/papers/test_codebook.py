"""The DDI codebook, against the structure that DDI-Codebook 2.5 demands of what Shoal writes."""

from __future__ import annotations

import datetime as dt
import os
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Generalize, KAnonymity, Plan, Roles, Table, protect, read
from shoal.errors import ShoalWarning
from shoal.table import DescribedColumn, Description, metadata_text

from ...table.storage.labelled import samples

SPACE = "{ddi:codebook:2_5}"
MANY = None  # as often as wanted
#: What the schema allows within each element that Shoal writes, in this order: a child, how often
#: at least and at most. Elements that are not here hold text only.
CHILDREN = {
    "codeBook": [("stdyDscr", 1, MANY), ("fileDscr", 0, MANY), ("dataDscr", 0, MANY)],
    "stdyDscr": [("citation", 1, MANY), ("stdyInfo", 0, MANY), ("dataAccs", 0, MANY)],
    "citation": [("titlStmt", 1, 1), ("prodStmt", 0, 1), ("distStmt", 0, 1)],
    "titlStmt": [("titl", 1, 1)],
    "prodStmt": [("producer", 0, MANY)],
    "distStmt": [("contact", 0, MANY), ("distDate", 0, MANY)],
    "stdyInfo": [("abstract", 0, MANY)],
    "dataAccs": [("useStmt", 0, MANY)],
    "useStmt": [("restrctn", 0, MANY), ("conditions", 0, MANY)],
    "fileDscr": [("fileTxt", 0, MANY)],
    "fileTxt": [("fileName", 0, MANY), ("fileType", 0, MANY)],
    "dataDscr": [("var", 0, MANY)],
    "var": [("labl", 0, MANY), ("txt", 0, MANY), ("catgry", 0, MANY), ("varFormat", 0, 1)],
    "catgry": [("catValu", 0, 1), ("labl", 0, MANY)],
}
ANY, NUMBER = r"(?s).*", r"\d+"
#: Their attributes; every element may have an ID.
ATTRIBUTES = {
    "codeBook": {"version": r"2\.5"},
    "abstract": {"contentType": "abstract|purpose|mixed"},
    "distDate": {"date": ANY},
    "var": {"name": ANY, "files": ANY, "intrvl": "contin|discrete", "dcml": ANY},
    "varFormat": {"type": "numeric|character", "category": "date|time|currency|other"},
}


def faults(text: str) -> list[str]:
    """What the schema would refuse."""
    root = ElementTree.fromstring(text)
    found = [] if root.tag == f"{SPACE}codeBook" else ["root"]
    ids = [one.get("ID") for one in root.iter() if one.get("ID") is not None]
    if len({*ids}) < len(ids) or not all(re.fullmatch(r"[A-Za-z_][\w.-]*", one) for one in ids):
        found.append("ID")
    for one in root.iter():
        name = one.tag.removeprefix(SPACE)
        inside = [child.tag.removeprefix(SPACE) for child in one]
        allowed = CHILDREN.get(name, [])
        order = [child for child, _, _ in allowed]
        if inside != sorted(inside, key=lambda tag: order.index(tag) if tag in order else -1):
            found.append(f"{name}: order of {inside}")
        found += [f"{tag} in {name}" for tag in inside if tag not in order]
        for child, least, most in allowed:
            if not least <= inside.count(child) <= (len(inside) if most is MANY else most):
                found.append(f"{name}: number of {child}")
        if allowed and "".join([one.text or "", *(child.tail or "" for child in one)]).strip():
            found.append(f"{name}: text")
        known = {"ID": ANY, **ATTRIBUTES.get(name, {})}
        for attribute, value in one.attrib.items():
            if attribute not in known or re.fullmatch(known[attribute], value) is None:
                found.append(f"{name}: attribute {attribute}")
        if name == "var" and ("name" not in one.attrib or not one.attrib["files"].split()):
            found.append("var: name or files")
        found += [f"{name}: no {ref}" for ref in one.get("files", "").split() if ref not in ids]
    return found


@pytest.fixture(scope="module", params=["structure", "schema"])
def accepted(request):
    """A check by the structure above, and by the schema itself where a folder has it.

    The schema is not here since its licence is another one.
    """
    if request.param == "structure":
        return lambda text: faults(text) == []
    folder = os.environ.get("SHOAL_DDI_SCHEMA")
    if folder is None:
        pytest.skip("no folder with codebook.xsd (SHOAL_DDI_SCHEMA can name it)")
    etree = pytest.importorskip("lxml.etree")
    schema = etree.XMLSchema(file=str(Path(folder) / "codebook.xsd"))
    return lambda text: schema.validate(etree.fromstring(text.encode())) or schema.error_log


def released(table: Table, folder: Path, format: str, **about: str) -> str:
    plan = Plan(
        [Generalize("mondrian", k=4)],
        require=[KAnonymity(4)],
        release={"metadata": ["ddi"], **about},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        protect(table, plan).save(folder / "out", format=format)
    return (folder / "out" / "public" / "ddi.xml").read_text("utf-8")


ABOUT = {
    "title": "Patients <of> Köln & Bonn",
    "publisher": "Amt für „Statistik“",
    "contact": "statistik@example.org",
    "recipient": "everyone",
    "purpose": "research\nand teaching",
    "licence": "CC BY 4.0",
}


@pytest.mark.parametrize("about", [{}, ABOUT])
def test_dates_weights_and_names_of_all_kinds(tmp_path, about, accepted):
    rows = range(60)
    frame = pl.DataFrame(
        {
            "born": [dt.date(1941, 3, 7) + dt.timedelta(days=97 * n) for n in rows],
            "seen": [dt.datetime(2025, 1, 1) + dt.timedelta(hours=31 * n) for n in rows],
            "at": [dt.time(n % 24, n) for n in rows],
            "größe in cm <&>'\"": [150.5 + n for n in rows],
            "🐟": ["yes", "no & <maybe>", None] * 20,
            "weight": [1.0 + n % 7 for n in rows],
            "is_ill": [n % 2 == 0 for n in rows],
            "nothing": pl.Series([None] * 60, dtype=pl.Int64),
        }
    )
    roles = Roles(
        quasi_identifiers=["born", "größe in cm <&>'\""],
        sensitive=["🐟"],
        weight="weight",
        insensitive=["seen", "at", "is_ill", "nothing"],
    )
    text = released(Table(frame, roles), tmp_path, "csv", **about)
    assert len(ElementTree.fromstring(text).findall(f".//{SPACE}var")) == frame.width
    assert accepted(text) is True


def test_many_columns(tmp_path, accepted):
    frame = pl.DataFrame({f"c{n}": [n + row % 9 for row in range(40)] for n in range(300)})
    table = Table(frame, Roles(quasi_identifiers=["c0", "c1"]))
    assert accepted(released(table, tmp_path, "parquet")) is True


@pytest.mark.parametrize("format", ["dta", "sav", "por", "csv"])
def test_labels_and_reasons_for_missing_values(tmp_path, format, accepted):
    pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")
    make = samples.stata if format == "dta" else samples.spss
    roles = Roles(
        identifiers=["pid"],
        quasi_identifiers=["age", "sex", "marital", "income", "born"],
        sensitive=["ill"],
    )
    text = released(read(make(tmp_path), roles=roles), tmp_path, format)
    labels = [one.text for one in ElementTree.fromstring(text).iter(f"{SPACE}labl")]
    assert "Age in years" in labels
    assert accepted(text) is True


@given(
    st.lists(
        st.builds(
            DescribedColumn,
            st.text(min_size=1),
            st.sampled_from(["integer", "float", "text", "date", "datetime", "time", "boolean"]),
            st.none() | st.text(),
            st.none() | st.text(),
            labels=st.dictionaries(st.text(), st.text(), max_size=3),
        ),
        max_size=4,
    ),
    st.dictionaries(st.sampled_from([*ABOUT]), st.text()),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_texts_are(accepted, columns, about, parts):
    file = {
        "paths": [f"data/part-{n}.csv" for n in range(parts)],
        "format": "csv",
        "sha256": "0" * 64,
        "created": "2025-01-01T00:00:00Z",
    }
    assert accepted(metadata_text("ddi", Description(tuple(columns)), about, file)) is True


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("codeBook", "codebook"),
        ('version="2.5"', 'version="2.6"'),
        ("titl>", "title>"),
        ("<distDate", "stray<distDate"),
        ('ID="V2"', 'ID="V1"'),
        ('files="F1"', 'files="F9"'),
        ('type="numeric"', 'type="number"'),
        ('intrvl="discrete"', 'intrvl="whole"'),
        (' name="age"', ""),
        ("<txt>", "<varFormat/><txt>"),
    ],
)
def test_the_check_finds_faults(before, after):
    columns = tuple(DescribedColumn(name, "integer", description="x") for name in ("age", "sex"))
    file = {"paths": ["data.csv"], "format": "csv", "created": "2025-01-01", "sha256": "0" * 64}
    text = metadata_text("ddi", Description(columns), {}, file)
    assert faults(text) == []
    assert before in text
    assert faults(text.replace(before, after))
