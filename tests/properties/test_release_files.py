"""A release verifies as it was written, and not after anything in it has changed."""

from __future__ import annotations

import json
import shutil
import warnings

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import AddNoise, KAnonymity, Limit, Plan, Roles, Round, Suppress, Table, protect, verify
from shoal.errors import InputError, ReleaseError, ShoalWarning
from shoal.table import LABELLED

from ..parts.installed import INSTALLED
from .tables import TRICKY, tables

each_format = pytest.mark.parametrize("format", INSTALLED)


def texts_only(texts):
    return Table(pl.DataFrame({"x": texts}), Roles(quasi_identifiers=["x"]))


def saved(table, plan, folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return protect(table, plan).save(folder, **options)


def small_release(folder, format="parquet"):
    """A release with a claim of each kind, and the original."""
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(12)],
            "age": [31, 32, 33, 34, 51, 52, 53, 54, 71, 72, 73, 74],
            "city": ["Bern", "Bern", "Jena", "Jena"] * 3,
            "wage": [1000.5 + 10 * i for i in range(12)],
        }
    )
    roles = Roles(identifiers=["name"], quasi_identifiers=["age", "city"], sensitive=["wage"])
    table = Table(frame, roles)
    plan = Plan(
        [Round(base=20), AddNoise(epsilon=2, columns=["wage"]), Suppress(min_class_size=2)],
        require=[
            KAnonymity(2),
            Limit("marketer_risk", at_most=0.5),
            Limit("unchanged_records", at_most=0.5),
        ],
    )
    return saved(table, plan, folder, format=format), table


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """One release per format, never to be changed in place."""
    root = tmp_path_factory.mktemp("releases")
    return {name: small_release(root / name, name)[0] for name in INSTALLED}


@pytest.fixture
def release(releases, tmp_path):
    """A copy of the parquet release that a test may damage."""
    return shutil.copytree(releases["parquet"], tmp_path / "copy")


def verifies(folder, **options):
    """Whether verification accepts; it must never end in anything but its own words."""
    try:
        return verify(folder, **options).holds
    except ReleaseError:
        return False


@each_format
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables(rows=st.integers(1, 12)))
@example(table=texts_only([text for text in TRICKY if "\x00" not in text]))
@example(table=texts_only(["\x00"]))
@example(table=texts_only(["a", None, ""]))
@example(table=texts_only(["\ufeff", "b"]))
def test_what_is_saved_verifies(tmp_path_factory, format, table):
    """Any table in any format, with the original beside it too.

    Text files and workbooks cannot hold everything; then they say so and nothing is written.
    """
    folder = tmp_path_factory.mktemp("any")
    plan = Plan(require=[Limit("uniqueness", at_most=1)])
    try:
        out = saved(table, plan, folder / "out", format=format)
        assert verify(out).holds, str(verify(out))
        assert verify(out, original=table).holds, str(verify(out, original=table))
    except InputError:
        assert format in ("csv", "tsv", "xlsx", *LABELLED)
        assert list(folder.iterdir()) == []
    finally:
        shutil.rmtree(folder)


@each_format
@pytest.mark.parametrize("half", ["with", "without"])
def test_the_small_release_verifies(releases, format, half, tmp_path):
    folder = shutil.copytree(releases[format], tmp_path / "copy")
    if half == "without":
        shutil.rmtree(folder / "private")
    found = verify(folder)
    assert found.holds, str(found)
    claims = {check.name: check.status for check in found.checks if check.name.startswith("claim")}
    assert claims == {
        "claim k_anonymity": "passed",
        "claim max_marketer_risk": "passed",
        "claim max_unchanged_records": "skipped",  # it compares with the original
    }


# -- one byte


def flip(path, position, bits):
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= bits
    path.write_bytes(content)


@each_format
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(position=st.integers(0, 10**6), bits=st.integers(1, 255))
@example(position=0, bits=1)
@example(position=10**6, bits=128)
def test_a_changed_byte_of_the_data_is_noticed(releases, tmp_path_factory, format, position, bits):
    """Even without the private half."""
    folder = shutil.copytree(releases[format], tmp_path_factory.mktemp("byte") / "copy")
    shutil.rmtree(folder / "private")
    flip(folder / "public" / f"data.{format}", position, bits)
    assert not verifies(folder)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(position=st.integers(0, 10**6), bits=st.integers(1, 255))
def test_a_changed_byte_of_the_report_is_noticed(releases, tmp_path_factory, position, bits):
    folder = shutil.copytree(releases["parquet"], tmp_path_factory.mktemp("byte") / "copy")
    shutil.rmtree(folder / "private")
    flip(folder / "public" / "report.html", position, bits)
    assert not verifies(folder)


def test_a_changed_byte_of_the_facts_is_noticed(release):
    """With the private half, whose audit knows the checksum of release.json."""
    path = release / "public" / "release.json"
    content = path.read_bytes()
    for position in range(0, len(content), 5):
        flip(path, position, 1 << position % 8)
        assert not verifies(release), f"byte {position}"
        path.write_bytes(content)
    assert verifies(release)


@pytest.mark.parametrize("name", ["audit.json", "records.parquet"])
def test_a_changed_byte_of_the_private_half_ends_in_words(release, name):
    """What cannot be read fails the check, whatever its reader raises."""
    path = release / "private" / name
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        flip(path, position, 255)
        verifies(release)  # must not raise anything else
        path.write_bytes(content)
    assert verifies(release)


# -- files


@pytest.mark.parametrize("name", ["data.parquet", "report.html", "release.json"])
def test_a_missing_file_is_noticed(release, name):
    (release / "public" / name).unlink()
    assert not verifies(release)


@pytest.mark.parametrize("name", ["audit.json", "records.parquet"])
def test_a_missing_private_file_is_noticed(release, name):
    (release / "private" / name).unlink()
    assert not verifies(release)


@pytest.mark.parametrize("name", ["original.csv", ".hidden", "data.csv", "private"])
def test_an_added_file_is_noticed(release, name):
    (release / "public" / name).write_text("name\nperson 1\n")
    assert not verifies(release)


def test_an_added_folder_is_noticed(release):
    (release / "public" / "more").mkdir()
    assert not verifies(release)


@pytest.mark.parametrize("cut", [0, 1, 100])
@pytest.mark.parametrize("name", ["data.parquet", "report.html", "release.json"])
def test_a_cut_file_is_noticed(release, name, cut):
    path = release / "public" / name
    path.write_bytes(path.read_bytes()[:cut])
    assert not verifies(release)


# -- what release.json says, edited with care: without the private half nothing knows its checksum


def edited(folder, change):
    shutil.rmtree(folder / "private", ignore_errors=True)
    path = folder / "public" / "release.json"
    facts = json.loads(path.read_text("utf-8"))
    change(facts)
    path.write_text(json.dumps(facts), "utf-8")


EDITS = {
    "a measured value": lambda f: f["claims"][0].update(measured=f["claims"][0]["measured"] + 1),
    "a slightly better value": lambda f: f["claims"][1].update(
        measured=f["claims"][1]["measured"] - 0.001
    ),
    "a claim that does not hold": lambda f: f["claims"][0].update(holds=False),
    "a larger requirement": lambda f: f["claims"][0].update(requirement=3, required=3),
    "a larger number beside the requirement": lambda f: f["claims"][0].update(required=50),
    "another measure": lambda f: f["claims"][1].update(claim="max_uniqueness"),
    "no such measure": lambda f: f["claims"][1].update(claim="max_nothing"),
    "a text as measured value": lambda f: f["claims"][0].update(measured="2"),
    "an endless measured value": lambda f: f["claims"][0].update(measured=float("inf")),
    "a number beyond floats": lambda f: f["claims"][0].update(measured=10**400),
    "a claim that is a text": lambda f: f.update(claims=["k_anonymity"]),
    "claims that are no list": lambda f: f.update(claims={"k_anonymity": 5}),
    "a claim without its number": lambda f: f["claims"][0].pop("measured"),
    "k": lambda f: f["measured"].update(k=3),
    "a measure left out": lambda f: f["measured"].pop("uniqueness"),
    "no measures": lambda f: f.update(measured={}),
    "a measure more": lambda f: f["measured"].update(safety=1.0),
    "the number of rows": lambda f: f["data"].update(rows=f["data"]["rows"] + 1),
    "the name of a column": lambda f: f["data"]["columns"][0].update(name="years"),
    "the type of a column": lambda f: f["data"]["columns"][1].update(type="int64"),
    "no type at all": lambda f: f["data"]["columns"][0].update(type="nothing"),
    "a column less": lambda f: f["data"]["columns"].pop(),
    "a column twice": lambda f: f["data"]["columns"].append(f["data"]["columns"][0]),
    "a role": lambda f: f["data"]["columns"][2].update(role="quasi_identifiers"),
    "an identifier": lambda f: f["data"]["columns"][2].update(role="identifiers"),
    "no such role": lambda f: f["data"]["columns"][0].update(role="nobody"),
    "the checksum": lambda f: f["data"].update(sha256="0" * 64),
    "the checksum of the report": lambda f: f["report"].update(sha256="0" * 64),
    "a file elsewhere": lambda f: f["data"].update(file="../private/records.parquet"),
    "an absolute file": lambda f: f["data"].update(file="/etc/passwd"),
    "another format": lambda f: f["data"].update(format="csv"),
    "no format": lambda f: f["data"].update(format=None),
    "another version": lambda f: f.update(format_version=2),
    "no data": lambda f: f.pop("data"),
    "no report": lambda f: f.pop("report"),
    "a list as data": lambda f: f.update(data=[]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_fact_is_noticed(release, edit):
    edited(release, EDITS[edit])
    assert not verifies(release)


def test_facts_that_were_only_read_and_written_again_verify(release):
    """Else the tests above would prove nothing."""
    edited(release, lambda facts: None)
    assert verifies(release)


def test_another_release_of_the_same_table_does_not_fit(release, tmp_path):
    """The private half of one release and the public half of another."""
    other, _ = small_release(tmp_path / "other")
    shutil.rmtree(release / "private")
    shutil.copytree(other / "private", release / "private")
    assert not verifies(release)
