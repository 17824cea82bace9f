"""Verifying: from the files alone, with the private half, and with the original."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import polars as pl
import pytest

from shoal import KAnonymity, Limit, Plan, Roles, Round, Suppress, Table, protect, verify
from shoal.errors import InputError, ReleaseError, VerificationFailed
from shoal.workflow import Check, Verification
from shoal.workflow.release._verify import _all_differ

from ..samples import COLUMNS, ROLES, people, plan, thorough_plan

posix = pytest.mark.skipif(os.name != "posix", reason="links of POSIX")


@pytest.fixture
def out(tmp_path):
    return protect(people(), thorough_plan()).save(tmp_path / "out")


def statuses(verification):
    return {check.name: check.status for check in verification.checks}


def test_the_public_half_alone(out):
    shutil.rmtree(out / "private")
    found = verify(out)
    assert found.holds
    assert statuses(found) == {
        "data unchanged": "passed",
        "report unchanged": "passed",
        "no other files": "passed",
        "audit belongs to this release": "skipped",
        "columns and rows": "passed",
        "class sizes counted twice": "passed",
        "claim k_anonymity": "passed",
        "claim max_records_at_risk": "passed",
        "claim max_unchanged_records": "skipped",
        "claim max_suppressed_cells": "skipped",
        "measured values": "passed",
    }


def test_with_the_private_half_and_the_original(out):
    found = verify(out, original=people())
    assert found.holds, str(found)
    said = statuses(found)
    assert [name for name, status in said.items() if status == "skipped"] == [
        "source of the release"  # a table in memory has no file
    ]
    for name in (
        "pairing",
        "records left unmasked",
        "columns left as they were",
        "claim max_unchanged_records",
        "claim max_suppressed_cells",
        "audit belongs to this release",
        "private files are private",
        "per-record risk",
    ):
        assert said[name] == "passed"


def test_the_public_half_as_it_is_sent(tmp_path, out):
    """A recipient has the three files in a folder of any name, and nothing above it."""
    store = tmp_path / "store"
    shutil.copytree(out / "public", store)
    found = verify(store)
    assert found.holds, str(found)
    assert found.authenticity == "skipped"
    shutil.rmtree(out / "private")
    assert statuses(found) == statuses(verify(out))
    (store / "more.csv").touch()
    assert statuses(verify(store))["no other files"] == "failed"


def test_what_lies_beside_a_public_half_is_not_its_business(out):
    """Neither the private half above it nor a neighbour."""
    (out / "notes.txt").touch()
    assert verify(out / "public").holds
    assert "private files are private" not in statuses(verify(out / "public"))


def test_the_original_without_roles_will_do(out):
    """Whoever verifies reads the file again; the audit knows the roles."""
    assert verify(out, original=Table(pl.DataFrame(COLUMNS))).holds


def test_the_original_without_the_private_half(out):
    shutil.rmtree(out / "private")
    found = verify(out, original=people())
    assert found.holds
    assert statuses(found)["pairing"] == "skipped"


@pytest.mark.parametrize("frame_of", ["polars", "pandas", "pyarrow"])
def test_the_original_as_any_frame(out, frame_of):
    pytest.importorskip(frame_of, reason=f"{frame_of} is not installed")
    original = pl.DataFrame(COLUMNS)
    if frame_of == "pandas":
        original = original.to_pandas()
    if frame_of == "pyarrow":
        original = original.to_arrow()
    assert verify(out, original=Table(original, ROLES)).holds


def test_the_original_must_be_a_table(out):
    with pytest.raises(InputError, match=r"The original must be a shoal\.Table; got DataFrame"):
        verify(out, original=pl.DataFrame(COLUMNS))


WRONG = {
    "another order of rows": lambda frame: frame.reverse(),
    "a row less": lambda frame: frame.head(23),
    "a row more": lambda frame: pl.concat([frame, frame.tail(1)]),
    "a column less": lambda frame: frame.drop("city"),
    "another name of a column": lambda frame: frame.rename({"city": "town"}),
    "a quasi-identifier all missing": lambda frame: frame.with_columns(
        city=pl.lit(None, dtype=pl.String)
    ),
    "other people": lambda frame: frame.with_columns(age=pl.Series([40] * 24)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_original_fails(out, what):
    wrong = Table(WRONG[what](people().frame))
    found = verify(out, original=wrong)
    assert not found.holds, str(found)
    with pytest.raises(VerificationFailed, match="does not verify") as caught:
        found.raise_if_failed()
    assert caught.value.exit_code == 1


def test_a_wrong_original_of_which_no_cell_was_kept(tmp_path):
    """Not even the number of unmasked records tells it from the right one: both have none."""
    moved = Plan([Round(base=1000)], require=[Limit("unchanged_records", at_most=0)])
    out = protect(people(), moved).save(tmp_path / "out")
    assert verify(out, original=people()).holds
    other = people().frame.with_columns(pl.col("age") + 1, diagnosis=pl.lit("gout"))
    assert not verify(out, original=Table(other, ROLES)).holds


def test_a_claim_is_measured_on_the_files_not_believed(tmp_path):
    """Data that break the claim, under checksums that fit: only counting again finds it."""
    import hashlib

    out = protect(people(), plan()).save(tmp_path / "out")
    shutil.rmtree(out / "private")
    data = pl.read_parquet(out / "public" / "data.parquet")
    ages = data["age"].to_numpy().copy()
    ages[0] = 99
    data.with_columns(age=pl.Series(ages)).write_parquet(out / "public" / "data.parquet")
    path = out / "public" / "release.json"
    facts = json.loads(path.read_text("utf-8"))
    facts["data"]["sha256"] = hashlib.sha256(
        (out / "public" / "data.parquet").read_bytes()
    ).hexdigest()
    path.write_text(json.dumps(facts), "utf-8")
    found = verify(out)
    assert statuses(found)["data unchanged"] == "passed"
    assert statuses(found)["claim k_anonymity"] == "failed"
    assert statuses(found)["measured values"] == "failed"
    # and where the claim is lowered to what is measured, it does not hold
    facts["claims"][0]["measured"] = 1
    path.write_text(json.dumps(facts), "utf-8")
    assert statuses(verify(out))["claim k_anonymity"] == "failed"


def test_counting_twice_is_counting_in_two_ways(monkeypatch, out):
    """If the grouping that the risks use were wrong, the second count would show it."""
    from shoal.table import _table

    right = _table.form_classes

    def wrong(parts, rows):
        return right([], rows)

    monkeypatch.setattr(_table, "form_classes", wrong)
    assert statuses(verify(out))["class sizes counted twice"] == "failed"


# -- the private half


def test_files_that_others_can_read(out):
    if os.name != "posix":
        pytest.skip("file modes of POSIX")
    (out / "private" / "audit.json").chmod(0o644)
    assert statuses(verify(out))["private files are private"] == "failed"


def test_a_private_folder_that_others_can_list(out):
    if os.name != "posix":
        pytest.skip("file modes of POSIX")
    (out / "private").chmod(0o755)
    assert statuses(verify(out))["private files are private"] == "failed"


def edited_records(out, **columns):
    path = out / "private" / "records.parquet"
    records = pl.read_parquet(path)
    path.unlink()
    records.with_columns(**columns).write_parquet(path)
    path.chmod(0o600)


def test_risks_of_records_that_were_changed(out):
    edited_records(out, class_size=pl.Series([99] * 24))
    assert statuses(verify(out))["per-record risk"] == "failed"


def test_keys_that_name_a_row_twice(out):
    edited_records(out, row_key=pl.Series([0] * 24))
    assert not verify(out).holds


@pytest.mark.parametrize("step", [1, 3, 2**50])
def test_a_key_that_comes_twice_is_found_however_far_keys_lie_apart(step):
    keys = step * np.arange(-8, 9)
    assert _all_differ(keys[::-1])
    assert not _all_differ(np.append(keys, step * 3))
    assert _all_differ(keys[:0])


def test_keys_that_name_no_row(out):
    edited_records(out, row_key=pl.Series(range(100, 124)))
    assert not verify(out, original=people()).holds


def test_keys_of_other_rows(out):
    """Pairing released rows with wrong originals would make every comparison wrong."""
    keys = pl.read_parquet(out / "private" / "records.parquet")["row_key"]
    edited_records(out, row_key=keys.reverse())
    assert not verify(out, original=people()).holds


def test_an_audit_that_is_no_audit(out):
    path = out / "private" / "audit.json"
    for text in ("", "[]", "5", "{}", "null", '{"release_sha256": 5}'):
        path.write_text(text)
        assert not verify(out).holds
        assert not verify(out, original=people()).holds


def test_an_audit_from_before_there_was_a_checksum_of_the_records(out):
    """It is not damaged; it only proves less."""
    path = out / "private" / "audit.json"
    audit = json.loads(path.read_text("utf-8"))
    for missing, file in (
        ("records_sha256", "records.parquet"),
        ("release_sha256", "release.json"),
    ):
        path.write_text(json.dumps({k: v for k, v in audit.items() if k != missing}), "utf-8")
        found = {check.name: check for check in verify(out).checks}
        check = found["audit belongs to this release"]
        assert check.status == "failed"
        assert check.detail == f"the audit records no checksum of {file}"


# -- plain files, and no others


@pytest.mark.parametrize("name", ["thesis.txt", ".hidden", "release.json"])
def test_a_file_beside_the_halves(out, name):
    (out / name).write_text("name\nperson 1\n")
    assert statuses(verify(out))["no other files"] == "failed"


def test_a_folder_beside_the_halves(out):
    (out / "original").mkdir()
    assert statuses(verify(out))["no other files"] == "failed"


def test_a_private_half_that_is_a_file(out):
    """It must not pass for one that is not there."""
    shutil.rmtree(out / "private")
    (out / "private").touch()
    assert not verify(out).holds


@posix
@pytest.mark.parametrize("name", ["data.parquet", "report.html", "release.json"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_link_is_not_a_file_of_the_release(tmp_path, out, name, alone):
    """What it leads to may be another file tomorrow, or the private half today."""
    path = out / "public" / name
    path.rename(tmp_path / name)
    path.symlink_to(tmp_path / name)
    (check,) = verify(out / "public" if alone else out).checks  # and nothing was opened
    assert (check.name, check.status) == ("plain files", "failed")
    assert "link" in check.detail


@posix
@pytest.mark.parametrize("half", ["public", "private"])
def test_a_half_that_is_a_link(tmp_path, out, half):
    (out / half).rename(tmp_path / half)
    (out / half).symlink_to(tmp_path / half, target_is_directory=True)
    assert statuses(verify(out)) == {"plain files": "failed"}


# -- what is not a release


def test_no_release(tmp_path):
    with pytest.raises(ReleaseError, match="There is no release folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(ReleaseError, match=r"neither public/release\.json"):
        verify(tmp_path)
    (tmp_path / "public").mkdir()
    facts = tmp_path / "public" / "release.json"
    for text in ("", "{", "\xff", "[]", "5", "null", "{}", '{"format_version": "1"}'):
        facts.write_text(text, "latin-1")
        assert statuses(verify(tmp_path)) == {"release.json": "failed"}


def test_deep_nesting_ends_in_words(out):
    """A file made to break the reader of JSON."""
    (out / "public" / "release.json").write_text("[" * 100_000)
    assert statuses(verify(out)) == {"release.json": "failed"}


# -- the result


def test_a_verification_says_what_it_checked():
    checks = (Check("a", "passed", "good"), Check("b", "skipped", "why"), Check("c", "failed", "x"))
    found = Verification(checks)
    assert not found.holds
    assert Verification(checks[:2]).holds
    assert str(found).splitlines() == ["ok   a: good", "--   b: why", "FAIL c: x"]
    assert found.to_dict() == {
        "holds": False,
        "claims_checked": 0,
        "claims_skipped": 0,
        "authenticity": "skipped",
        "signature": None,
        "signed_by": None,
        "checks": [
            {"name": "a", "status": "passed", "detail": "good"},
            {"name": "b", "status": "skipped", "detail": "why"},
            {"name": "c", "status": "failed", "detail": "x"},
        ],
    }
    with pytest.raises(VerificationFailed, match="c: x"):
        found.raise_if_failed()
    Verification(checks[:2]).raise_if_failed()


def test_a_verification_counts_its_claims(out):
    told = verify(out).to_dict()
    assert told["claims_checked"] == 3
    assert told["claims_skipped"] == 2  # these compare with the original
    assert told["authenticity"] == "passed"
    told = verify(out, original=people()).to_dict()
    assert (told["claims_checked"], told["claims_skipped"]) == (5, 0)
    path = out / "public" / "release.json"
    path.write_bytes(path.read_bytes() + b"\n")
    assert verify(out).authenticity == "failed"
    shutil.rmtree(out / "private")
    assert verify(out).to_dict()["authenticity"] == "skipped"


NASTY = {
    "escape codes": "\x1b[2J\x1b[32mok",
    "lines": "x: good\nok   claim k_anonymity: required 99",
    "a long name": "k" * 1_000_000,
    "a turn of direction": "\u202eymonyna",
    "half of a pair": "\ud800",
    "a list": ["\x1b", "\n"] * 1000,
}


@pytest.mark.parametrize("where", ["claim", "requirement", "measured", "data", "report"])
@pytest.mark.parametrize("what", NASTY)
def test_no_check_repeats_what_would_steer_a_terminal(out, what, where):
    """Names in release.json come from whoever wrote it."""
    shutil.rmtree(out / "private")
    path = out / "public" / "release.json"
    facts = json.loads(path.read_text("utf-8"))
    if where in ("data", "report"):
        facts[where]["file"] = NASTY[what]
    elif where == "measured":
        facts["measured"][str(NASTY[what])] = 1
    else:
        facts["claims"][0][where] = NASTY[what]
    path.write_text(json.dumps(facts), "utf-8")
    found = verify(out)
    assert not found.holds
    for check in found.checks:
        assert check.name.isprintable()
        assert check.detail.isprintable()
        assert len(check.name) <= 60
        assert len(check.detail) <= 200
    assert len(str(found).splitlines()) == len(found.checks)
    with pytest.raises(VerificationFailed) as caught:
        found.raise_if_failed()
    assert str(caught.value).isprintable()


def test_no_check_tells_a_cell(tmp_path):
    frame = pl.DataFrame({"age": [918273645, 1, 1, 1], "city": ["canary-7d1f", "a", "a", "a"]})
    table = Table(frame, Roles(quasi_identifiers=["age", "city"]))
    release = protect(table, Plan([Suppress(min_class_size=2)], require=[KAnonymity(3)]))
    out = release.save(tmp_path / "out")
    found = verify(out, original=Table(frame.reverse(), table.roles))
    assert "canary" not in str(found)
    assert "918273645" not in str(found)
    assert np.array_equal(release.masked.row_key.sum(), 1 + 2 + 3)
