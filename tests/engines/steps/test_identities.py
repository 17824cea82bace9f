"""Pseudonyms and shifted dates on an engine are those of memory: a key and a row make them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

import shoal as sh
from shoal import DatesToYear, Pseudonymize, Roles, ShiftDates, TopBottomCode
from shoal.errors import InputError, RequirementNotMet, RolesError
from shoal.masking import write_key_file

from ..parts.kinds import EngineKind

pytestmark = [
    pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning"),
    pytest.mark.parametrize("engine", ["duckdb"], indirect=True),
]

DAY = dt.timedelta(days=1)
ROLES = Roles(
    identifiers=["name"],
    unit="patient",
    household="home",
    quasi_identifiers=["sex"],
    sensitive=["ill"],
    insensitive=["born", "came", "age"],
    drop=["notes"],
)


def stays(rows: int = 900) -> pl.DataFrame:
    person = [n * 7 % 311 for n in range(rows)]
    return pl.DataFrame(
        {
            "patient": [f"H{n:05}" for n in person],
            "name": [f"person {n}" for n in person],
            "home": [f"home {n // 3}" for n in person],
            "notes": [f"note {n}" for n in range(rows)],
            "sex": ["fm"[n % 2] for n in person],
            "ill": [("flu", "gout", "asthma")[n % 3] for n in range(rows)],
            "born": [dt.date(1935, 5, 4) + (n * 61 % 25_000) * DAY for n in person],
            "came": [
                None if n % 50 == 9 else dt.datetime(2023, 1, 1, 8) + (n * 3 % 500) * DAY
                for n in range(rows)
            ],
            "age": [20 + n * 61 % 83 for n in person],
        }
    )


def plan(*steps: sh.Pseudonymize, **more: object) -> sh.Plan:
    return sh.Plan(steps, roles=ROLES, require=[sh.KAnonymity(5)], **more)


def test_an_identifier_and_the_persons_may_both_get_pseudonyms(
    engine: EngineKind, tmp_path: Path
) -> None:
    frame = stays().drop("born", "came", "age")
    columns = [name for name in ROLES.insensitive if name not in frame.columns]
    roles = ROLES.without(columns)
    asked = sh.Plan(
        [Pseudonymize(["name"])], roles=roles, require=[sh.KAnonymity(5)], pseudonyms=True
    )
    release = engine.protect(frame, asked)
    found = engine.released(release)
    assert release.masked.columns == ["patient", "name", "sex", "ill"]
    assert len(found.select("patient", "name").unique()) == frame["name"].n_unique()
    assert not {*found["patient"], *found["name"]} & {*frame["patient"], *frame["name"]}
    assert sh.verify(release.save(tmp_path / "release")).holds


def test_a_key_file_gives_what_it_gives_in_memory(engine: EngineKind, tmp_path: Path) -> None:
    key = str(write_key_file(tmp_path / "one.key"))
    steps = [
        ShiftDates(key_file=key, columns=["came"]),
        Pseudonymize(["patient", "name", "home"], key_file=key),
        DatesToYear(columns=["born"], earliest=1950),
        TopBottomCode(top=90, columns=["age"]),
    ]
    frame = stays()
    here = engine.other("memory").protect(frame, plan(*steps))
    there = engine.protect(frame, plan(*steps))
    one, other = here.masked.frame, engine.released(there)
    names = sorted(one.columns)
    assert sorted(other.columns) == names == sorted({*frame.columns} - {"notes"})
    assert one.select(names).sort(names).equals(other.select(names).sort(names))
    assert there.removed_identifiers == here.removed_identifiers == ()
    assert there.masked.roles == here.masked.roles
    assert there.left == here.left
    moved = [one for each in (here, there) for one in each.columns if one.name == "came"]
    assert {bar.before for one in moved for bar in one.bars} == {None}  # when it was is secret
    folder = there.save(tmp_path / "release")
    found = sh.verify(folder)
    assert found.holds
    assert "pseudonyms" in {check.name for check in found.checks}
    facts = json.loads((folder / "public/release.json").read_text())
    assert facts["columns_dropped"] == 1
    public = b"".join(path.read_bytes() for path in (folder / "public").rglob("*.*"))
    assert Path(key).read_bytes()[:64] not in public


def test_a_drawn_key_is_good_for_one_release(engine: EngineKind) -> None:
    frame, made = stays(), []
    for _ in range(2):
        release = engine.protect(frame, plan(ShiftDates(days=40), Pseudonymize(["patient"])))
        assert release.removed_identifiers == ("name", "home")
        made.append(engine.released(release))
    assert made[0]["patient"].n_unique() == frame["patient"].n_unique()
    assert not set(made[0]["patient"]) & {*made[1]["patient"], *frame["patient"]}
    moved = made[0].group_by("patient").agg(pl.col("born").n_unique())
    assert moved["born"].max() == 1  # rows of a person moved alike
    assert not made[0]["born"].sort().equals(made[1]["born"].sort())


def test_an_identifier_beside_the_unit(engine: EngineKind, tmp_path: Path) -> None:
    """The unit stays away, and the private half still says whose rows they are."""
    release = engine.protect(stays(), plan(Pseudonymize(["name"])))
    assert release.masked.roles.unit_columns == ()
    assert "patient" not in release.masked.columns
    folder = release.save(tmp_path / "release")
    assert sh.verify(folder).holds
    private = pl.read_parquet(folder / "private" / "records" / "*.parquet")
    assert "unit: patient" in private.columns
    assert "name" not in private.columns


def test_shapes_that_must_be_compared_are_refused(engine: EngineKind) -> None:
    with pytest.raises(InputError, match="'hex'"):
        engine.protect(stays(), plan(Pseudonymize(["patient"], shape="format")))


def test_an_identifier_inside_another_column_is_found(engine: EngineKind) -> None:
    """Memory finds it when it checks the masked table; an engine in a sample, before it writes."""
    frame = stays(400).with_columns(ill="case " + pl.col("patient"))
    with pytest.raises(RequirementNotMet, match="'ill'"):
        engine.protect(frame, plan(Pseudonymize(["patient"])))


def test_dates_are_shifted_once(engine: EngineKind) -> None:
    with pytest.raises(RolesError, match="twice"):
        engine.protect(stays(400), plan(ShiftDates(days=7), ShiftDates(days=7)))
