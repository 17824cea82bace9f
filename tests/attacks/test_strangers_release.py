"""A release made to do harm: `verify` answers in plain words and within seconds."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib.util
import json
import os
import shutil
import struct
import zipfile

import numpy as np
import polars as pl
import pytest

from shoal import (
    KAnonymity,
    LDiversity,
    Limit,
    Plan,
    Roles,
    Round,
    Suppress,
    Table,
    TCloseness,
    protect,
    verify,
)
from shoal.errors import ReleaseError
from shoal.table.storage import _size
from shoal.workflow import read_release

posix = pytest.mark.skipif(os.name != "posix", reason="links and devices of POSIX")
excel = pytest.mark.skipif(
    importlib.util.find_spec("fastexcel") is None or importlib.util.find_spec("xlsxwriter") is None,
    reason="workbooks need the extra 'excel'",
)

ROLES = Roles(
    identifiers=["name"], quasi_identifiers=["age", "city"], sensitive=["ill"], insensitive=["n"]
)


def people():
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(24)],
            "age": [20 + i for i in range(24)],
            "city": ["Bern", "Jena"] * 12,
            "ill": ["flu", "gout", "asthma"] * 8,
            "n": [i % 5 for i in range(24)],
        }
    )
    return Table(frame, ROLES)


def plan():
    return Plan(
        [Round(base=20), Suppress(min_class_size=2)],
        require=[
            KAnonymity(3),
            LDiversity(2),
            Limit("marketer_risk", at_most=0.5),
            Limit("unchanged_records", at_most=0.5),
        ],
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return protect(people(), plan()).save(tmp_path_factory.mktemp("saved") / "out")


@pytest.fixture
def out(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "out")


@pytest.fixture
def half(saved, tmp_path):
    """The public half, as a stranger sends it."""
    return shutil.copytree(saved / "public", tmp_path / "half")


def facts_of(half):
    return json.loads((half / "release.json").read_text("utf-8"))


def write(half, facts):
    (half / "release.json").write_text(json.dumps(facts), "utf-8")


def outcome(found):
    return {check.name: check.status for check in found.checks}


def details(found):
    return " ".join(check.detail for check in found.checks)


# -- claims that say what nobody can check


def with_claim(half, **claim):
    facts = facts_of(half)
    usual = {
        "measured": claim.get("required"),
        "holds": True,
        "needs_original": False,
        "private_parameters": False,
        "rests_on_seed": False,
    }
    facts["claims"] = [{**usual, **claim}]
    write(half, facts)
    return verify(half)


FORGED = {
    "an unknown name": {"claim": "gdpr_compliance", "requirement": 1, "required": 1},
    "an unknown name with private parameters": {
        "claim": "gdpr_compliance",
        "requirement": 1,
        "required": 1,
        "private_parameters": True,
    },
    "private parameters of a model that has none": {
        "claim": "k_anonymity",
        "requirement": 50,
        "required": 50,
        "private_parameters": True,
    },
    "private parameters of a limit that has none": {
        "claim": "max_uniqueness",
        "requirement": 0.5,
        "required": 0.5,
        "private_parameters": True,
    },
    "private parameters where none is missing": {
        "claim": "t_closeness",
        "requirement": 0.01,
        "required": 0.01,
        "private_parameters": True,
    },
    "a comparison that is none": {
        "claim": "k_anonymity",
        "requirement": 50,
        "required": 50,
        "needs_original": True,
    },
    "no comparison where there is one": {
        "claim": "max_unchanged_records",
        "requirement": 0.5,
        "required": 0.5,
    },
    "a k beyond the table": {
        "claim": "probabilistic_k_anonymity",
        "requirement": 50,
        "required": 50,
    },
    "a value that does not reach": {
        "claim": "probabilistic_k_anonymity",
        "requirement": 5,
        "required": 5,
        "measured": 2,
    },
    "a number beside the requirement": {
        "claim": "probabilistic_k_anonymity",
        "requirement": 2,
        "required": 20,
    },
    "no value": {
        "claim": "probabilistic_k_anonymity",
        "requirement": 2,
        "required": 2,
        "measured": None,
    },
    "columns that differential privacy does not cover": {
        "claim": "differential_privacy",
        "requirement": {"epsilon": 1.0, "delta": 1e-6},
        "required": 1.0,
    },
    "a population that fits nobody": {
        "claim": "k_map",
        "requirement": 5,
        "required": 5,
        "measured": 4,
        "private_parameters": True,
    },
    "a population without a number": {
        "claim": "k_map",
        "requirement": "five",
        "required": 5,
        "private_parameters": True,
    },
    "a claim that does not hold": {
        "claim": "k_map",
        "requirement": 5,
        "required": 5,
        "holds": False,
        "private_parameters": True,
    },
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_claim_fails(half, what):
    found = with_claim(half, **FORGED[what])
    assert not found.holds, str(found)
    assert [check.status for check in found.claims] == ["failed"]


@pytest.mark.parametrize(
    "claim",
    [
        {"claim": "probabilistic_k_anonymity", "requirement": 2, "required": 2},
        {"claim": "k_map", "requirement": 5, "required": 5, "private_parameters": True},
        {
            "claim": "t_closeness",
            "requirement": {"t": 0.5, "distance": "hierarchical", "column": "ill"},
            "required": 0.5,
            "measured": 0.4,
            "private_parameters": True,
        },
    ],
)
def test_a_claim_that_might_hold_is_skipped(half, claim):
    """Else the tests above would prove nothing."""
    found = with_claim(half, **claim)
    assert [check.status for check in found.claims] == ["skipped"], str(found)


# -- files that a claim names


NAMING_FILES = {
    "t_closeness": lambda path: {
        "claim": "t_closeness",
        "requirement": {"t": 1.0, "distance": "hierarchical", "column": "ill", "hierarchy": path},
        "required": 1.0,
    },
    "max_similarity": lambda path: {
        "claim": "max_similarity",
        "requirement": {"value": 1.0, "column": "ill", "hierarchy": path},
        "required": 1.0,
    },
    "k_map": lambda path: {
        "claim": "k_map",
        "requirement": {"k": 2, "population": path},
        "required": 2,
    },
}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("claim", NAMING_FILES)
def test_no_claim_says_whether_a_file_exists(half, tmp_path, claim, private):
    """The result must not depend on whether such a file exists or what it lists."""
    listed = tmp_path / "secret.csv"
    listed.write_text("flu;cold;*\ngout;other;*\nasthma;other;*\n")
    there, missing = (
        with_claim(half, **NAMING_FILES[claim](str(path)), private_parameters=private)
        for path in (listed, tmp_path / "nothing.csv")
    )
    assert there == missing
    assert not there.holds
    assert "private" in details(there)


@posix
@pytest.mark.parametrize("claim", ["t_closeness", "max_similarity"])
def test_an_audit_that_names_a_file_does_not_open_it(saved, out, tmp_path, claim):
    """A whole folder of a stranger, with an audit that fits: a pipe that nobody writes to hangs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    forged = NAMING_FILES[claim](str(pipe))
    facts = facts_of(out / "public")
    stated = {n: v for n, v in forged["requirement"].items() if n != "hierarchy"}
    facts["claims"] = [
        {
            **forged,
            "requirement": stated,
            "measured": 0.5,
            "holds": True,
            "needs_original": False,
            "private_parameters": True,
            "rests_on_seed": False,
        }
    ]
    write(out / "public", facts)
    refit(out, requirements=[forged["requirement"]])
    found = verify(out)
    (check,) = found.claims
    assert (check.status, found.holds) == ("skipped", True), str(found)
    assert "outside" in check.detail


def refit(out, **changes):
    """An audit with changes, and with the checksum of release.json as it is now."""
    path = out / "private" / "audit.json"
    audit = json.loads(path.read_text("utf-8"))
    digest = hashlib.sha256((out / "public" / "release.json").read_bytes()).hexdigest()
    path.write_text(json.dumps({**audit, "release_sha256": digest, **changes}), "utf-8")


def test_a_hierarchy_in_a_file_is_on_record_with_its_content(tmp_path):
    """So nobody has to open the file, and the claim is checked all the same."""
    listed = tmp_path / "ill.csv"
    listed.write_text("flu;cold;*\ngout;other;*\nasthma;other;*\n")
    model = TCloseness(1.0, distance="hierarchical", column="ill", hierarchy=str(listed))
    out = protect(people(), Plan([Round(base=20)], require=[model])).save(tmp_path / "out")
    listed.unlink()
    (check,) = verify(out).claims
    assert check.status == "passed", check
    (check,) = verify(out / "public").claims
    assert check.status == "skipped"
    assert "ill.csv" not in (out / "public" / "release.json").read_text()


def test_a_limit_does_not_publish_the_file_of_its_hierarchy(tmp_path):
    listed = tmp_path / "ill.csv"
    listed.write_text("flu;cold;*\ngout;other;*\nasthma;other;*\n")
    limit = Limit("similarity", at_most=1, options={"column": "ill", "hierarchy": str(listed)})
    out = protect(people(), Plan([Round(base=20)], require=[limit])).save(tmp_path / "out")
    assert "ill.csv" not in (out / "public" / "release.json").read_text()
    (claim,) = facts_of(out / "public")["claims"]
    assert claim["private_parameters"] is True
    assert verify(out).holds
    assert verify(out / "public").holds


# -- the file that was released


def test_the_source_is_compared(tmp_path):
    """Every column was touched, so that any table of the same length used to pass."""
    table = Table(pl.DataFrame({"age": list(range(20, 44))}), Roles(quasi_identifiers=["age"]))
    source = tmp_path / "people.csv"
    table.frame.write_csv(source)
    other = tmp_path / "other.csv"
    Table(table.frame.with_columns(pl.col("age") + 1)).frame.write_csv(other)
    again = tmp_path / "people.parquet"
    table.frame.write_parquet(again)
    release = protect(table, Plan([Round(base=100)], require=[KAnonymity(3)]))
    out = release.save(tmp_path / "out", source=source)
    right = verify(out, original=table, source=source)
    assert outcome(right)["source of the release"] == "passed"
    wrong = verify(out, original=Table(pl.read_csv(other)), source=other)
    assert not wrong.holds
    assert "not the file that was released" in details(wrong)
    # the same table in another format has another checksum, and the words say so
    exported = verify(out, original=table, source=again)
    assert not exported.holds
    assert "another format" in details(exported)
    # a table in memory has no file: the check is skipped, with its reason
    unnamed = verify(out, original=table)
    assert unnamed.holds
    assert outcome(unnamed)["source of the release"] == "skipped"
    assert "source=" in details(unnamed)


# -- files that do not belong


@pytest.mark.parametrize("folder", ["public", "private", "."])
@pytest.mark.parametrize("name", ["more.csv", ".hidden", "sampling.parquet", "data.csv"])
def test_an_unrecorded_file_fails(out, folder, name):
    (out / folder / name).write_text("name\nperson 1\n")
    (out / folder / name).chmod(0o600)
    assert outcome(verify(out))["no other files"] == "failed"


@posix
@pytest.mark.parametrize("where", ["public", "private"])
@pytest.mark.parametrize("kind", ["pipe", "device", "link", "dangling link", "folder", "socket"])
def test_what_is_not_a_file_is_not_opened(out, tmp_path, where, kind):
    """Opening a pipe would wait forever, and /dev/zero never ends."""
    names = ["release.json", "data.parquet", "release.json.sig"]
    for name in names if where == "public" else ["audit.json", "records.parquet"]:
        path = out / where / name
        kept = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        replace_by(path, kind, tmp_path)
        found = verify(out)
        assert outcome(found) == {"plain files": "failed"}
        path.rmdir() if kind == "folder" else path.unlink()
        if kept is not None:
            path.write_bytes(kept)
            path.chmod(0o600)
    assert verify(out).holds


def replace_by(path, kind, tmp_path):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        import socket

        at = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(at)
    elif kind == "folder":
        path.mkdir()
    else:
        leads = {"device": "/dev/zero", "link": "/etc/passwd"}
        path.symlink_to(leads.get(kind, tmp_path / "nothing"))


@pytest.mark.parametrize(
    "name",
    ["../private/records.parquet", "/etc/passwd", "..", ".", "", "a/b", "data.parquet/", "~/x"],
)
@pytest.mark.parametrize("which", ["data", "report"])
def test_paths_out_of_the_folder_are_not_taken(half, name, which):
    facts = facts_of(half)
    facts[which]["file"] = name
    write(half, facts)
    assert outcome(verify(half)) == {"release.json": "failed"}


# -- JSON that is no plain JSON


def test_names_that_come_twice_are_refused(half):
    """Readers differ in which one they take."""
    text = (half / "release.json").read_text("utf-8")
    (half / "release.json").write_text(text.replace("{", '{"claims": [],', 1), "utf-8")
    assert outcome(verify(half)) == {"release.json": "failed"}


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 400, "1" * 10_000, "-1", "0.5e"]
)
def test_numbers_that_are_none_are_refused(half, number):
    facts = facts_of(half)
    facts["data"]["rows"] = "HERE"
    (half / "release.json").write_text(json.dumps(facts).replace('"HERE"', number), "utf-8")
    assert outcome(verify(half)) == {"release.json": "failed"}


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize("pair", ["[]", ['{"a":', "}"]])
@pytest.mark.parametrize("where", ["requirement", "parameters", "audit"])
def test_deep_nesting_is_answered(out, depth, pair, where):
    deep = pair[0] * depth + ("1" if pair[0] != "[" else "") + pair[1] * depth
    facts = facts_of(out / "public")
    if where == "audit":
        path = out / "private" / "audit.json"
        audit = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps({**audit, "requirements": "HERE"}).replace('"HERE"', deep))
    else:
        shutil.rmtree(out / "private")
        part = facts["claims"][0] if where == "requirement" else facts["methods"][0]
        part[where] = "HERE"
        text = json.dumps(facts).replace('"HERE"', deep)
        (out / "public" / "release.json").write_text(text, "utf-8")
    found = verify(out)
    assert not found.holds or (where, depth, pair[0]) == ("parameters", 500, '{"a":')


def test_a_huge_file_of_facts_is_not_read(half):
    """Sparse, so that it takes no space."""
    with (half / "release.json").open("wb") as file:
        file.truncate(1 << 40)
    found = verify(half)
    assert outcome(found) == {"release.json": "failed"}
    assert "large" in details(found)


@pytest.mark.parametrize("name", ["data.parquet", "report.html", "release.json.sig"])
def test_a_huge_file_is_not_hashed(half, name):
    with (half / name).open("ab") as file:
        file.truncate(1 << 43)
    assert not verify(half).holds


def test_many_claims_are_not_measured(half):
    facts = facts_of(half)
    facts["claims"] = facts["claims"][:1] * 20_000
    write(half, facts)
    found = verify(half)
    assert outcome(found) == {"release.json": "failed"}
    assert "20,000" in details(found)


def test_many_columns_are_not_read(half):
    facts = facts_of(half)
    facts["data"]["columns"] *= 20_000
    write(half, facts)
    assert outcome(verify(half)) == {"release.json": "failed"}


def test_many_files_are_answered(half):
    for number in range(1_001):
        (half / f"{number}").touch()
    assert outcome(verify(half)) == {"plain files": "failed"}


# -- tables that do not fit


def with_data(half, format, path):
    """A public half with other data, and checksums that fit."""
    facts = facts_of(half)
    (half / facts["data"]["file"]).unlink()
    shutil.move(path, half / f"data.{format}")
    digest = hashlib.sha256((half / f"data.{format}").read_bytes()).hexdigest()
    facts["data"].update(file=f"data.{format}", format=format, sha256=digest)
    write(half, facts)
    return verify(half)


def refused_for_memory(found):
    assert outcome(found)["data unchanged"] == "passed"
    assert outcome(found)["columns and rows"] == "failed"
    return "memory" in details(found)


@pytest.fixture
def little_memory(monkeypatch):
    """Independent of this machine, so that the tests have the same result everywhere."""
    monkeypatch.setattr(_size, "available_memory", lambda: 32 << 20)


def test_a_parquet_file_of_many_equal_rows(half, tmp_path, little_memory):
    """A small file, since equal values are written once."""
    path = tmp_path / "bomb"
    pl.DataFrame({"age": np.zeros(4_000_000, np.int64)}).write_parquet(path)
    assert path.stat().st_size < 1 << 20
    assert refused_for_memory(with_data(half, "parquet", path))


def test_a_parquet_file_of_a_long_text(half, tmp_path, little_memory):
    path = tmp_path / "bomb"
    pl.DataFrame({"age": ["x" * (64 << 20)]}).write_parquet(path)
    assert path.stat().st_size < 1 << 20
    assert refused_for_memory(with_data(half, "parquet", path))


@pytest.mark.parametrize(
    "column", [np.zeros(4_000_000, np.int64), ["x" * (64 << 20)]], ids=["rows", "a long text"]
)
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_an_arrow_file_that_is_packed_well(half, tmp_path, little_memory, column, compression):
    path = tmp_path / "bomb"
    frame = pl.DataFrame({"age": column})
    frame.write_ipc(path, compression=compression, compat_level=pl.CompatLevel.oldest())
    assert path.stat().st_size < 1 << 20
    assert refused_for_memory(with_data(half, "arrow", path))


def test_a_large_text_file(half, tmp_path, little_memory):
    path = tmp_path / "large"
    path.write_text("age\n" + "1\n" * 2_000_000)
    assert refused_for_memory(with_data(half, "csv", path))


def test_a_table_of_people_fits_little_memory(saved, little_memory):
    """Else the tests above would prove nothing."""
    assert verify(saved).holds


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100, b"PAR1" + b"\0" * 50 + b"PAR1", b"ARROW1\0\0"]
)
@pytest.mark.parametrize("format", ["parquet", "arrow", "csv", "tsv", "xlsx"])
def test_data_that_are_damaged_are_answered(half, tmp_path, format, content):
    path = tmp_path / "damaged"
    path.write_bytes(content)
    assert not with_data(half, format, path).holds


def test_an_arrow_footer_that_points_anywhere_is_answered(half, tmp_path):
    path = tmp_path / "damaged"
    pl.DataFrame({"age": [1, 2, 3]}).write_ipc(path, compat_level=pl.CompatLevel.oldest())
    whole = path.read_bytes()
    (length,) = struct.unpack("<i", whole[-10:-6])
    for at in range(len(whole) - 10 - length, len(whole) - 6, 3):
        content = bytearray(whole)
        content[at] ^= 0xFF
        path.write_bytes(content)
        assert not with_data(half, "arrow", path).holds


@excel
def test_a_workbook_that_is_a_bomb(half, tmp_path):
    path = tmp_path / "bomb"
    sheet = b'<worksheet><sheetData><row r="1"><c r="A1"><v>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", sheet + b"1" * (64 << 20))
    assert path.stat().st_size < 1 << 20
    found = with_data(half, "xlsx", path)
    assert outcome(found)["columns and rows"] == "failed"
    assert "packed" in details(found)


@excel
@pytest.mark.parametrize("place", ["XFD1048576", "xfd1048576"])
def test_a_workbook_with_a_cell_at_the_far_corner(half, tmp_path, place, little_memory):
    import io

    import xlsxwriter

    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet("data")
        sheet.write_string(0, 0, "age")
        sheet.write_number(1, 0, 1)
        sheet.write_number(1_048_575, 16_383, 1)
    path = tmp_path / "corner"
    rewritten(content, path, lambda text: text.replace(b"XFD1048576", place.encode()))
    assert refused_for_memory(with_data(half, "xlsx", path))


def rewritten(content, path, change):
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            text = old.read(member)
            new.writestr(member, change(text) if "worksheets" in member else text)


# -- every field of both files by a value of another type


JUNK = (None, [], {}, "x", -1, 1e308, True)


def fields(value, at=()):
    """The place of every entry, and of the entries in it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inside:
        yield (*at, key)
        if isinstance(item, (dict, list)):
            yield from fields(item, (*at, key))


def replaced(value, at, by):
    made = copy.deepcopy(value)
    part = made
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = by
    return made


#: Entries about which nothing else in a public half says anything: any value of their type will do.
FREE = {
    "methods": [[]],
    "claims": [[]],
    "shuffled": [True],
    "parameters": [{}],
    "facts": [{}],
    "columns": [[]],
    "left_alone": [{}],
    "columns_removed": [[]],
    "method": ["x"],
    "role": [None],
    "base": list(JUNK),
    "min_class_size": list(JUNK),
}


def is_free(at, junk):
    if at[:2] == ("data", "columns") and at[-1] != "role":
        return False
    if len(at) > 1 and isinstance(at[-1], int):
        return at[-2] == "columns" and junk == "x"  # the name of a column that a step touched
    if "left_alone" in at[:-1]:
        return junk == "x"  # the reason
    return (type(junk), junk) in [(type(value), value) for value in FREE.get(at[-1], [])]


def test_no_entry_of_release_json_takes_another_type(half):
    facts = facts_of(half)
    wrong = []
    for at in fields(facts):
        for junk in JUNK:
            changed = replaced(facts, at, junk)
            if changed == facts or is_free(at, junk):
                continue
            write(half, changed)
            if verify(half).holds:
                wrong.append((at, junk))
            with contextlib.suppress(ReleaseError):
                read_release(half)
    assert wrong == [], wrong


def test_no_entry_of_audit_json_takes_another_type(out):
    path = out / "private" / "audit.json"
    audit = json.loads(path.read_text("utf-8"))
    table, wrong = people(), []
    inside = ("plan", "steps")  # kept for people to read, and not used
    free = {("source_sha256", None), ("unchanged_records", None), ("warning", "x")}
    for at in fields(audit):
        for junk in JUNK:
            changed = replaced(audit, at, junk)
            if (
                changed == audit
                or (len(at) > 1 and at[0] in inside)
                or (at == ("plan",) and junk == {})
            ):
                continue
            path.write_text(json.dumps(changed), "utf-8")
            found = verify(out), verify(out, original=table)
            if (at[-1], junk if isinstance(junk, (str, type(None))) else 0) in free:
                continue
            if all(one.holds for one in found):
                wrong.append((at, junk))
    assert wrong == [], wrong


def test_a_method_list_that_is_none_ends_in_words(half):
    """`shoal assess DIR` reads the same file."""
    for methods in (5, None, "x", {}, [5], [{}], [{"columns": 5}]):
        facts = facts_of(half)
        facts["methods"] = methods
        write(half, facts)
        with pytest.raises(ReleaseError, match=r"release\.json"):
            read_release(half)
