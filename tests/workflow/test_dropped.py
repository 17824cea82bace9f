"""Columns that do not leave: dropped by their role, and identifiers beside those that stay."""

from __future__ import annotations

import json

import polars as pl
import pytest

import shoal as sh
from shoal import KAnonymity, Plan, Pseudonymize, Roles, Table
from shoal.errors import RolesError

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def stays(**roles):
    frame = pl.DataFrame(
        {
            "site": [n // 30 for n in range(60)],
            "nr": [f"H{n // 3 % 10:04}" for n in range(60)],
            "scan_file": [f"scan-{n:05}.dcm" for n in range(60)],
            "notes": ["came by bus"] * 60,
            "age": [30 + n // 3 % 4 for n in range(60)],
        }
    )
    return Table(frame, Roles(quasi_identifiers=["age"], **roles))


PLAN = Plan([], require=[KAnonymity(3)])


def test_what_is_dropped_is_nowhere(tmp_path):
    table = stays(unit=["site", "nr"], drop=["notes", "scan_file"])
    release = sh.protect(table, PLAN)
    assert release.masked.columns == ["age"]
    assert release.dropped == ("notes", "scan_file")
    assert release.removed_identifiers == ("site", "nr")
    folder = release.save(tmp_path / "out", format="csv")
    assert sh.verify(folder, original=table).holds
    facts = json.loads((folder / "public/release.json").read_text())
    assert (facts["identifiers_removed"], facts["columns_dropped"]) == (2, 2)
    for name in ("notes", "scan_file", "came by bus"):
        for path in (folder / "public").iterdir():
            assert name not in path.read_text(), path.name
    assert "2\u00a0columns were left out" in (folder / "public/report.html").read_text()


def test_a_release_that_hides_what_it_dropped_fails(tmp_path):
    folder = sh.protect(stays(unit="nr", drop=["notes", "scan_file"]), PLAN).save(tmp_path / "out")
    path = folder / "public/release.json"
    facts = json.loads(path.read_text())
    del facts["columns_dropped"]
    path.write_text(json.dumps(facts))
    assert not sh.verify(folder).holds


def test_a_dropped_column_is_asked_nothing():
    """It need not be declared otherwise, however much it looks like an identifier."""
    with pytest.raises(RolesError, match="scan_file"):
        sh.protect(stays(unit="nr", drop=["notes"]), PLAN)
    assert sh.protect(stays(unit="nr", drop=["notes", "scan_file"]), PLAN)


def test_a_role_of_its_own():
    with pytest.raises(RolesError, match="two roles"):
        Roles(drop=["a"], sensitive=["a"])
    roles = Roles(drop=["a"], identifiers=["b"])
    assert roles.withheld == ("b", "a")
    assert roles.naming == ("b",)
    assert Roles.from_dict(roles.to_dict()) == roles
    assert roles.without(["a"]).drop == ()
    assert Plan.from_toml(Plan(roles=roles).to_toml()).roles == roles


@pytest.mark.parametrize("named", [["nr"], ["site", "nr"], ["site"]])
def test_a_part_of_a_unit_may_leave_as_a_pseudonym(tmp_path, named):
    table = stays(unit=["site", "nr"], drop=["notes", "scan_file"])
    release = sh.protect(table, PLAN.replacing(steps=[Pseudonymize(named)]))
    assert release.masked.columns == [*named, "age"]
    assert bool(release.masked.roles.unit_columns) == (len(named) == 2)
    folder = release.save(tmp_path / "out", format="csv")
    found = sh.verify(folder, original=table)
    assert found.holds, found
    assert release.masked.person_count == table.person_count


def test_an_identifier_that_is_a_unit_too(tmp_path):
    table = stays(unit="nr", identifiers=["nr"], drop=["notes", "scan_file"])
    release = sh.protect(table, PLAN.replacing(steps=[Pseudonymize(["nr"])]))
    assert release.masked.roles == Roles(quasi_identifiers=["age"], unit="nr")
    folder = release.save(tmp_path / "out")
    assert sh.verify(folder, original=table).holds
    assert json.loads((folder / "public/release.json").read_text())["identifiers_removed"] == 0


@pytest.mark.parametrize("also", [[], ["nr"]])
def test_a_household_may_leave_as_a_pseudonym(tmp_path, also):
    table = stays(unit="nr", household="site", drop=["notes", "scan_file"])
    release = sh.protect(table, PLAN.replacing(steps=[Pseudonymize(["site", *also])]))
    folder = release.save(tmp_path / "out", format="tsv")
    assert sh.verify(folder, original=table).holds
    assert release.masked.roles.household == ()
