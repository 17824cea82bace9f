"""Saving a release: the two halves, what may be in the way, and nothing when something fails."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal import KAnonymity, Plan, Round, Suppress, protect, verify
from shoal.errors import InputError, ReleaseError, RequirementNotMet, VerificationFailed
from shoal.workflow.release import _release, _verify

from ...parts.installed import INSTALLED
from ..samples import COLUMNS, people, plan, thorough_plan

posix = pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def release():
    return protect(people(), plan())


@pytest.fixture
def out(tmp_path, release):
    return release.save(tmp_path / "out")


WHOLE = [
    "private",
    "private/audit.json",
    "private/records.parquet",
    "public",
    "public/data.parquet",
    "public/release.json",
    "public/report.html",
]


def test_the_two_halves(out):
    assert names(out) == WHOLE
    facts = json.loads((out / "public" / "release.json").read_text("utf-8"))
    assert facts["data"]["rows"] == 24
    assert (
        facts["data"]["sha256"]
        == hashlib.sha256((out / "public" / "data.parquet").read_bytes()).hexdigest()
    )
    assert facts["data"]["columns"] == [
        {"name": "age", "type": "int64", "role": "quasi_identifiers"},
        {"name": "city", "type": "string", "role": "quasi_identifiers"},
        {"name": "diagnosis", "type": "string", "role": "sensitive"},
        {"name": "visits", "type": "int64", "role": "insensitive"},
    ]
    assert facts["identifiers_removed"] == 1
    assert facts["methods"] == [
        {
            "method": "round",
            "parameters": {"base": 20},
            "columns": ["age"],
            "left_alone": {"city": "text, not integer or float"},
            "columns_removed": [],
            "records_removed": 0,
            "facts": {},
        }
    ]
    assert facts["claims"] == [
        {
            "claim": "k_anonymity",
            "requirement": 3,
            "required": 3,
            "measured": 5,
            "holds": True,
            "needs_original": False,
            "private_parameters": False,
            "rests_on_seed": False,
        }
    ]
    assert facts["measured"]["k"] == 5
    assert facts["measured"]["classes"] == 4


def test_the_private_half(out, release):
    audit = json.loads((out / "private" / "audit.json").read_text("utf-8"))
    assert audit["rows_before"] == 24
    assert audit["identifiers"] == ["name"]
    assert Plan.from_dict(audit["plan"]) == release.plan
    assert audit["unchanged_records"] == 2
    records = pl.read_parquet(out / "private" / "records.parquet")
    data = pl.read_parquet(out / "public" / "data.parquet")
    assert records["row_key"].to_list() == release.masked.row_key.tolist()
    for key, row in zip(records["row_key"], data.iter_rows(named=True), strict=True):
        assert row["diagnosis"] == COLUMNS["diagnosis"][key]
        assert row["visits"] == COLUMNS["visits"][key]
    sizes = data.select(pl.len().over("age", "city")).to_series()
    assert records["class_size"].to_list() == sizes.to_list()


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes(tmp_path, release, umask):
    before = os.umask(umask)
    try:
        out = release.save(tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((out / "private").stat().st_mode) == 0o700
    for path in (out / "private").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) & 0o700 == 0o700


def test_the_source_is_known_by_its_checksum(tmp_path, release):
    source = tmp_path / "people.csv"
    source.write_text("name,age\nAnn,3\n")
    out = release.save(tmp_path / "out", source=source)
    audit = json.loads((out / "private" / "audit.json").read_text("utf-8"))
    assert audit["source_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()


@pytest.mark.parametrize("format", INSTALLED)
def test_every_format(tmp_path, release, format):
    if format == "por":  # names of at most eight letters
        with pytest.raises(InputError, match="names"):
            release.save(tmp_path / "out", format=format)
        assert names(tmp_path) == []
        return
    out = release.save(tmp_path / "out", format=format)
    assert (out / "public" / f"data.{format}").is_file()
    assert verify(out).holds


def test_an_unknown_format(tmp_path, release):
    with pytest.raises((ReleaseError, InputError), match="no format 'xml'"):
        release.save(tmp_path / "out", format="xml")
    assert names(tmp_path) == []


def test_numbers_of_numpy_can_be_saved(tmp_path):
    """A loop over thresholds gives numpy's numbers, which JSON does not know."""
    numpy_plan = Plan([Round(base=np.int64(20))], require=[KAnonymity(np.int64(3))])
    out = protect(people(), numpy_plan).save(tmp_path / "out")
    assert verify(out, original=people()).holds


def test_a_release_can_be_saved_twice(tmp_path, release):
    """The same rows in the same order, and nothing of the first place in the second."""
    first, second = release.save(tmp_path / "first"), release.save(tmp_path / "second")
    data = [(out / "public" / "data.parquet").read_bytes() for out in (first, second)]
    assert data[0] == data[1]
    assert b"first" not in b"".join(path.read_bytes() for path in (second / "public").iterdir())


def test_the_place_is_made(tmp_path, release):
    out = release.save(tmp_path / "a" / "b" / "out")
    assert out == tmp_path / "a" / "b" / "out"
    assert verify(out).holds


def test_progress_is_told(tmp_path, release):
    said = []
    release.save(tmp_path / "out", progress=lambda label, share: said.append(share))
    assert said == sorted(said)
    assert len(said) >= 3


# -- something in the way


def test_an_existing_release_stays(tmp_path, out, release):
    before = (out / "private" / "audit.json").read_bytes()
    with pytest.raises(ReleaseError, match=r"already a release.*force"):
        release.save(out)
    assert (out / "private" / "audit.json").read_bytes() == before
    assert names(out) == WHOLE


def test_force_replaces_it(tmp_path, out):
    other = protect(people(), plan(base=100))
    other.save(out, force=True, format="csv")
    assert verify(out).holds
    assert (out / "public" / "data.csv").is_file()
    assert not (out / "public" / "data.parquet").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_force_does_not_need_anything_there(tmp_path, release):
    assert verify(release.save(tmp_path / "out", force=True)).holds


@pytest.mark.parametrize("force", [False, True])
def test_an_empty_folder_is_used(tmp_path, release, force):
    (tmp_path / "out").mkdir()
    assert verify(release.save(tmp_path / "out", force=force)).holds


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_no_release_stays(tmp_path, release, force):
    (tmp_path / "out" / "public").mkdir(parents=True)
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ReleaseError, match="holds other files"):
        release.save(tmp_path / "out", force=force)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


def test_a_release_with_other_files_beside_it_stays(out, release):
    """Replacing the folder would take them along."""
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(ReleaseError, match="holds other files"):
        release.save(out, force=True)
    assert (out / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("force", [False, True])
def test_a_file_stays(tmp_path, release, force):
    (tmp_path / "out").write_text("text")
    with pytest.raises(ReleaseError, match="is a file"):
        release.save(tmp_path / "out", force=force)
    assert (tmp_path / "out").read_text() == "text"


@posix
@pytest.mark.parametrize("leads_to", ["a release", "an empty folder", "a file", "nothing"])
@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_refused(tmp_path, release, force, leads_to):
    """Neither is the link replaced nor is what it leads to."""
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "out"
    if leads_to == "a release":
        release.save(elsewhere)
    elif leads_to == "an empty folder":
        elsewhere.mkdir()
    elif leads_to == "a file":
        elsewhere.touch()
    link.symlink_to(elsewhere)
    before = names(tmp_path)
    with pytest.raises(ReleaseError, match="is a link"):
        release.save(link, force=force)
    assert link.is_symlink()
    assert names(tmp_path) == before
    if leads_to == "a release":
        assert verify(elsewhere).holds


@posix
def test_a_link_on_the_way_is_followed(tmp_path, release):
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    assert verify(release.save(tmp_path / "home" / "out")).holds
    assert verify(tmp_path / "disk" / "out").holds


@pytest.mark.parametrize("force", [False, True])
def test_the_current_folder_is_refused(tmp_path, release, monkeypatch, force):
    """It would be renamed away from under the shell that stands in it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for given in (".", here, "../here", tmp_path):
        with pytest.raises(ReleaseError, match=r"current folder|other files"):
            release.save(given, force=force)
    with pytest.raises(ReleaseError, match="the current folder"):
        release.save(".", force=force)
    assert names(tmp_path) == ["here"]
    out = release.save("out")
    monkeypatch.chdir(out / "public")
    with pytest.raises(ReleaseError, match="the current folder"):
        release.save("..", force=True)
    assert verify(out).holds


@pytest.mark.parametrize("force", [False, True])
def test_a_mount_point_is_refused(tmp_path, release, monkeypatch, force):
    """It cannot be renamed, which would be found only after the work."""
    disk = tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: str(path) == str(disk))
    with pytest.raises(ReleaseError, match="is a mount point"):
        release.save(disk, force=force)
    assert names(tmp_path) == ["disk"]
    assert verify(release.save(disk / "out")).holds


@pytest.mark.parametrize("force", [False, True])
def test_a_parent_that_is_a_file_is_refused_at_once(tmp_path, force):
    (tmp_path / "file").write_text("text")
    for target in (tmp_path / "file" / "out", tmp_path / "file" / "a" / "out"):
        with pytest.raises(ReleaseError, match=r"file' is not a folder"):
            _release.check_targets(target, None, force=force)


# -- nothing when something fails


def test_what_is_not_met_writes_nothing(tmp_path):
    with pytest.raises(RequirementNotMet):
        protect(people(), plan(k=20)).save(tmp_path / "out")
    assert names(tmp_path) == []


LATE_STEPS = {
    "the data": (_release, "_digest"),
    "the private half": (_release, "_write_private"),
    "the private files": (_release, "write_private"),
    "the check of the files": (_verify, "verify"),
}


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("step", LATE_STEPS)
def test_an_error_on_the_way_leaves_nothing(tmp_path, release, monkeypatch, step, problem):
    def fails(*_, **__):
        raise problem("no space left on the device")

    monkeypatch.setattr(*LATE_STEPS[step], fails)
    with pytest.raises(problem):
        release.save(tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", LATE_STEPS)
def test_an_error_on_the_way_leaves_the_old_release(tmp_path, out, monkeypatch, step):
    before = {name: (out / name).read_bytes() for name in names(out) if (out / name).is_file()}
    other = protect(people(), plan(base=100))

    def fails(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(*LATE_STEPS[step], fails)
    with pytest.raises(KeyboardInterrupt):
        other.save(out, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert before == {n: (out / n).read_bytes() for n in names(out) if (out / n).is_file()}


def test_files_that_do_not_verify_are_not_put_in_place(tmp_path, release, monkeypatch):
    """The release checks its own files before anybody sees them."""
    write = _release._write_private

    def damages(release, folder, *more):
        write(release, folder, *more)
        (folder.parent / "public" / "report.html").write_text("damaged on the way to the disk")

    monkeypatch.setattr(_release, "_write_private", damages)
    with pytest.raises(VerificationFailed, match="report unchanged"):
        release.save(tmp_path / "out")
    assert names(tmp_path) == []


def test_what_verification_needs_is_not_the_private_half(tmp_path):
    out = protect(people(), thorough_plan()).save(tmp_path / "out")
    shutil.rmtree(out / "private")
    assert verify(out).holds


def test_a_plan_without_quasi_identifiers_left(tmp_path):
    emptied = Plan([Suppress(max_distinct=0)], require=[KAnonymity(24)])
    out = protect(people(), emptied).save(tmp_path / "out")
    found = verify(out, original=people())
    assert found.holds, str(found)


def test_who_lives_together_is_on_record(tmp_path):
    """A claim about households is checked by the private half, and not without it."""
    columns = {"age": [20 + n % 20 for n in range(40)], "home": [n // 3 for n in range(40)]}
    table = sh.Table(pl.DataFrame(columns), sh.Roles(quasi_identifiers=["age"], household="home"))
    limit = sh.Limit("household_risk", at_most=0.9, options={"sampling_fraction": 0.1})
    plan = sh.Plan([sh.Generalize("mondrian", k=5)], require=[limit])
    release = sh.protect(table, plan)
    release.save(tmp_path / "made")
    shutil.copytree(tmp_path / "made" / "public", tmp_path / "public")
    found = {
        place: {check.name: check.status for check in sh.verify(tmp_path / place).checks}
        for place in ("made", "public")
    }
    assert found["made"]["claim max_household_risk"] == "passed"
    assert found["public"]["claim max_household_risk"] == "skipped"
