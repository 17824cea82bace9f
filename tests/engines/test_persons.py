"""Persons who have several rows, and weights, on an engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.engines import assess
from shoal.engines._engine import ROW
from shoal.engines.steps import _chunked
from shoal.errors import InputError

from .parts.kinds import EngineKind
from .parts.tables import people, written

QUASI = ["alter", "wage"]
ROLES = sh.Roles(
    quasi_identifiers=QUASI,
    sensitive=["ill"],
    insensitive=["born", "Wohn ort", "member"],
    unit="patient",
)
OWNER = "unit: patient"

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    draw = np.random.default_rng(5)
    return people(3000).with_columns(patient=pl.Series(draw.integers(0, 900, 3000)).cast(pl.String))


@pytest.fixture
def source(frame: pl.DataFrame, tmp_path: Path) -> Path:
    return written(frame, tmp_path)


def saved(step: sh.Swap, source: Path, folder: Path, require: tuple = ()) -> pl.DataFrame:
    """The released rows with their persons."""
    plan = sh.Plan([step], require=list(require), roles=ROLES)
    place = sh.protect(source, plan, engine="duckdb").save(folder / "release")
    assert sh.verify(place).holds
    private = pl.read_parquet(place / "private" / "records" / "*.parquet")
    return pl.read_parquet(place / "public" / "data" / "*.parquet").hstack(private)


def test_groups_of_persons_in_each_chunk(source, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 800)
    found = saved(sh.Microaggregate(5), source, tmp_path, (sh.KAnonymity(5),))
    crowds = found.group_by(QUASI).agg(pl.col(OWNER).n_unique().alias("n"))
    assert crowds["n"].min() >= 5


def test_a_swap_hides_each_person_among_k(frame, source, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 800)
    found = saved(sh.Swap(k=4), source, tmp_path, (sh.ProbabilisticKAnonymity(4),))
    groups = ["0_chunk", "0_group_0"]
    shares = (
        found.group_by(*groups, OWNER)
        .len()
        .group_by(groups)
        .agg((pl.col("len").sum() // pl.col("len").max()).alias("k"))
    )
    assert shares["k"].min() >= 4
    for name in QUASI:
        assert found[name].sort().equals(frame[name].sort())


@pytest.mark.parametrize("step", [sh.RankSwap(percent=10), sh.Pram(keep=0.8, columns=["Wohn ort"])])
def test_steps_that_promise_nothing_about_persons(step, frame, source, tmp_path) -> None:
    found = saved(step, source, tmp_path)
    assert len(found) == len(frame)


@pytest.mark.parametrize("strategy", ["random", "bernoulli"])
def test_whole_persons_are_drawn(strategy: str, frame, source, tmp_path) -> None:
    found = saved(sh.Sample(fraction=0.3, strategy=strategy), source, tmp_path)
    rows = frame.group_by("patient").len()
    kept = found.group_by(OWNER).len().join(rows, left_on=OWNER, right_on="patient")
    assert (kept["len"] == kept["len_right"]).all()
    persons = frame["patient"].n_unique()
    if strategy == "random":
        assert len(kept) == int(persons * 0.3)
    assert 0.2 * persons < len(kept) < 0.4 * persons


def test_a_condition_takes_whole_persons_out(frame, source, tmp_path) -> None:
    found = saved(sh.Suppress(where="wage > 9000", target="records"), source, tmp_path)
    gone = frame.filter(pl.col("wage") > 9000)["patient"].unique()
    left = frame.filter(~pl.col("patient").is_in(gone.implode()))
    assert len(gone) > 0
    assert sorted(found[OWNER]) == sorted(left["patient"])


def test_weights_are_summed_by_class(tmp_path) -> None:
    draw = np.random.default_rng(2)
    frame = people(2000).with_columns(w=pl.Series(draw.integers(1, 40, 2000).astype(float)))
    roles = sh.Roles(quasi_identifiers=["alter", "member"], weight="w")
    here = sh.assess(sh.Table(frame, roles))
    there = assess(written(frame, tmp_path), engine="duckdb", roles=roles)
    found, known = there["journalist_risk"].value, here["journalist_risk"].value
    assert found == pytest.approx(known)
    assert known < here["prosecutor_risk"].value


STRATA = sh.Roles(quasi_identifiers=["Wohn ort", "member"], target="ill")


@pytest.mark.parametrize(
    ("engine", "strategy", "quasi"),
    [
        ("duckdb", "stratified", STRATA.quasi_identifiers),
        ("duckdb", "balanced", STRATA.quasi_identifiers),
        ("duckdb", "balanced", ()),
        ("spark", "balanced", STRATA.quasi_identifiers),
    ],
    indirect=["engine"],
)
def test_strata_are_drawn_as_in_memory(strategy: str, quasi, frame, engine: EngineKind) -> None:
    table = sh.Table(frame.drop("patient"), STRATA.replacing(quasi_identifiers=quasi))
    step = sh.Sample(fraction=0.37, strategy=strategy)
    found, record = engine.stepped(step, table)
    expected, known = engine.other("memory").stepped(step, table, record.private["key"])
    assert found[ROW].equals(expected[ROW])
    assert (record.removed, record.losing) == (known.removed, known.losing)


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_strata_of_persons(frame, engine: EngineKind) -> None:
    """Persons with one row each are drawn; otherwise the step is refused, as in memory."""
    step = sh.Sample(fraction=0.37, strategy="stratified")
    roles = STRATA.replacing(unit="patient")
    with pytest.raises(InputError) as known:
        engine.other("memory").stepped(step, sh.Table(frame, roles))
    with pytest.raises(InputError) as caught:
        engine.stepped(step, sh.Table(frame, roles))
    assert str(known.value).endswith(str(caught.value))
    alone = sh.Table(frame.unique("patient", maintain_order=True), roles)
    found, record = engine.stepped(step, alone)
    expected, _ = engine.other("memory").stepped(step, alone, record.private["key"])
    assert found[ROW].equals(expected[ROW])


HOMES = {
    "no persons": STRATA.replacing(household="home"),
    "persons": STRATA.replacing(household="home", unit="patient"),
    "two columns": STRATA.replacing(household=["home", "born"]),
}


@pytest.mark.parametrize(
    ("engine", "name"),
    [*(("duckdb", name) for name in HOMES), ("spark", "persons")],
    indirect=["engine"],
)
def test_households_go_as_a_whole(name: str, frame, engine: EngineKind) -> None:
    """People of one household are kept or removed together; people without one live alone."""
    draw = np.random.default_rng(8)
    homes = pl.Series("home", draw.integers(0, 400, 1500)).set(
        pl.Series(draw.random(1500) < 0.2), None
    )
    table = sh.Table(frame.head(1500).with_columns(homes), HOMES[name])
    steps = [
        sh.Suppress(min_class_size=60),
        sh.Suppress(where="wage > 9000", target="records"),
        sh.Generalize("full-domain", k=60, suppression_limit=0.9),
        sh.Generalize("full-domain", k=60, suppression_limit=0.9, suppressed="kept"),
    ]
    for step in steps if engine.name == "duckdb" else steps[:2]:
        found, record = engine.stepped(step, table)
        expected, known = engine.other("memory").stepped(step, table)
        assert found.equals(expected.select(found.columns))
        assert 0 < record.removed == known.removed or step.method == "generalize"
        assert record.losing == known.losing
    found, record = engine.stepped(sh.Sample(fraction=0.4), table)
    kept = np.isin(np.arange(1500), found[ROW].to_numpy())
    wholes = len(np.unique(table.together))
    assert (table.whole(kept) == kept).all()
    assert len(np.unique(table.together[kept])) == int(0.4 * wholes)


def test_a_household_is_in_no_half_of_a_release(frame, tmp_path) -> None:
    homes = pl.col("patient").cast(pl.Int64) // 2
    source = written(frame.with_columns(home=homes), tmp_path)
    roles = ROLES.replacing(household="home")
    plan = sh.Plan([sh.Sample(fraction=0.5), sh.Generalize("mondrian", k=3)], roles=roles)
    place = sh.protect(source, plan, engine="duckdb").save(tmp_path / "release")
    assert sh.verify(place).holds
    for half in ("public/data", "private/records"):
        assert not [n for n in pl.read_parquet(place / half / "*.parquet").columns if "home" in n]


def test_how_many_rows_one_person_lost_is_not_told(frame, tmp_path) -> None:
    one = pl.when(pl.int_range(pl.len()) < 60).then(pl.lit("p")).otherwise("patient")
    wage = pl.when(pl.int_range(pl.len()) < 60).then(1e6).otherwise("wage")
    source = written(frame.with_columns(one.alias("patient"), wage.alias("wage")), tmp_path)
    step = sh.Suppress(where="wage > 900000", target="records")
    release = sh.protect(source, sh.Plan([step], roles=ROLES), engine="duckdb")
    assert (release.steps[0].removed, release.steps[0].losing) == (60, 1)
    place = release.save(tmp_path / "release")
    facts = json.loads((place / "public" / "release.json").read_text("utf-8"))
    assert facts["records_removed"] == "some"


def test_a_changed_number_of_persons_is_found(frame, tmp_path) -> None:
    plan = sh.Plan([sh.Generalize("mondrian", k=3)], roles=ROLES, pseudonyms=True)
    source = written(frame, tmp_path)
    place = sh.protect(source, plan, engine="duckdb").save(tmp_path / "release")
    file = place / "public" / "release.json"
    facts = json.loads(file.read_text("utf-8"))
    facts["data"]["persons"] += 1
    file.write_text(json.dumps(facts), "utf-8")
    failed = [
        check.name for check in sh.verify(place / "public").checks if check.status == "failed"
    ]
    assert failed == ["number of persons"]


def test_ranks_are_swapped_as_far_as_in_memory(frame, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 500)
    plain = frame.drop("patient").with_columns(wage=pl.col("wage").fill_null(1.0))
    roles = sh.Roles(quasi_identifiers=["wage"], insensitive=plain.drop("wage").columns)
    plan = sh.Plan([sh.RankSwap(percent=10)], roles=roles)
    release = sh.protect(written(plain, tmp_path), plan, engine="duckdb")
    place = release.save(tmp_path / "release")
    keys = pl.read_parquet(place / "private" / "records" / "*.parquet")["row_key"].to_numpy()
    rows = (keys >> 40) * 1000 + (keys & ((1 << 40) - 1))
    after = pl.read_parquet(place / "public" / "data" / "*.parquet")["wage"].to_numpy()
    before = plain["wage"].to_numpy()
    ranks = np.sort(before)
    far = np.abs(np.searchsorted(ranks, after) - np.searchsorted(ranks, before[rows])) / len(ranks)
    masked = sh.RankSwap(percent=10).fit_transform(sh.Table(plain, roles)).frame["wage"].to_numpy()
    known = np.abs(np.searchsorted(ranks, masked) - np.searchsorted(ranks, before)) / len(ranks)
    assert far.mean() == pytest.approx(known.mean(), rel=0.2)
    assert "randomly" in (place / "public" / "report.html").read_text("utf-8")
