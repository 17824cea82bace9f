"""The contract of engines: the same result as in memory, or a refusal before anything starts.

Methods, models and measures are found by discovery. DuckDB is tried on every awkward table, Spark
on one that has all that is awkward.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.engines import assess
from shoal.engines._engine import ROW
from shoal.engines.steps import Course, _chunked, _way, check_steps, name_identifiers
from shoal.errors import InputError, RequirementNotMet, RolesError, ShoalError
from shoal.masking import Masker
from shoal.randomness import SecretStream
from shoal.workflow._require import discover_all_measures, make_claim

from ..contracts.parts.model_examples import KNOWN_MODELS, MODELS, with_secret
from ..contracts.parts.registry import AWKWARD, KNOWN_METHODS, MASKERS, MaskerExample
from .parts.kinds import EngineKind
from .parts.plans import LEVELS, PLANS, QUASI, ROLES
from .parts.tables import people, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

NOWHERE = "nowhere/people.parquet"
#: Methods that draw random numbers, or whose search ends with its time.
CHANCE = ("add_noise", "pram", "rank_swap", "sample", "swap")
#: A column of Parquet for spans of time is a column of whole numbers to DuckDB and Spark.
WITHOUT = {"times": ["span"]}
#: Spark takes it for a decimal.
NOT_ON_SPARK = "unsigned"


def everything() -> sh.Table:
    """Sixty awkward rows: missing cells, both zeros, huge numbers, odd names."""
    rows = np.arange(60) % 20
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(60)],
            "größe.cm `x`": pl.Series([(None, -0.0, 0.0, 1.5, float("nan"))[i % 5] for i in rows]),
            "a\"b'c": [(None, "京都", "São Tomé", "")[i % 4] for i in rows],
            "born": [(None, dt.date(1899, 1, 1), dt.date(2024, 2, 29))[i % 3] for i in rows],
            "seen": [(dt.datetime(1969, 12, 31, 23), None)[i % 2] for i in rows],
            "huge": [(-(2**63), 2**63 - 1, 7, None)[i % 4] for i in rows],
            "unsigned": pl.Series([(2**64 - 1, 0)[i % 2] for i in rows], dtype=pl.UInt64),
            "wage": pl.Series(
                [(Decimal("99.99"), Decimal("0.01"), None)[i % 3] for i in rows],
                dtype=pl.Decimal(4, 2),
            ),
            "member": [(True, None, False)[i % 3] for i in rows],
            "same": [7] * 60,
            "ill": [("flu", "gout", "asthma")[i % 3] for i in range(60)],
        }
    )
    quasi = [name for name in frame.columns if name not in ("name", "ill")]
    roles = sh.Roles(identifiers=["name"], quasi_identifiers=quasi, sensitive=["ill"])
    return sh.Table(frame, roles)


def _cases() -> list[Any]:
    """Each method on each engine: its first example with every table, the others with one."""
    found, seen = [], set()
    for example in MASKERS:
        first = example.method not in seen
        seen.add(example.method)
        tables = [n for n in AWKWARD if first and n not in (*example.refuses, "200 columns")]
        for engine in ("memory", "duckdb", "spark"):
            names = ["everything"] if engine != "spark" or first else []
            names += tables if engine == "duckdb" else []
            found += [
                pytest.param(engine, example, name, id=f"{engine}-{example.id}-{name}")
                for name in names
            ]
    return found


def _table(name: str, engine: EngineKind) -> sh.Table:
    if name == "everything":
        table = everything()
        return table.drop([NOT_ON_SPARK]) if engine.name == "spark" else table
    table = AWKWARD[name]()
    return table.drop(WITHOUT.get(name, []))


@pytest.mark.parametrize(("engine", "example", "name"), _cases(), indirect=["engine"])
def test_steps(engine: EngineKind, example: MaskerExample, name: str, fixed: Any) -> None:
    table = _table(name, engine)
    step = example.make(table)
    if _is_refused(step, table.roles):
        return
    before = table.frame.drop(table.roles.withheld)
    drawn = KNOWN_METHODS[example.method].is_random and example.method in CHANCE
    with fixed(example.id):
        found, record = engine.stepped(step, table)
    by_key = example.method == "sample"  # the key decides, and not who draws
    # memory also sees all dates of a person, and draws a shift again that meets one of them
    by_key |= example.method == "shift_dates" and engine.name != "memory"
    if not drawn or by_key or engine.name == "spark":
        with fixed(example.id):
            other = engine.other("duckdb" if drawn and not by_key else "memory")
            key = record.private["key"] if by_key else None
            expected, known = other.stepped(step, table, key)
        assert _cells(found) == _cells(expected)
        assert record.removed == known.removed
        assert set(record.touched) >= set(known.touched)  # of a chunk nobody asks what changed
        assert record.touched == known.touched or _way(step) is _chunked.by_chunks
        assert record.removed_columns == known.removed_columns
    if drawn:
        _check_draw(example.method, before, found.drop(ROW))


def _is_refused(step: Masker, roles: sh.Roles) -> bool:
    """Whether engines refuse a step; then they do so before anything starts, in one sentence."""
    try:
        check_steps([step])
    except InputError as error:
        _refused_at_the_door(sh.Plan([step], roles=roles), str(error))
        return True
    return False


def _refused_at_the_door(plan: sh.Plan, sentence: str | None = None) -> None:
    """The source is not looked for, and no engine is started."""
    for engine in ("duckdb", "spark"):
        with pytest.raises(InputError) as caught:
            sh.protect(NOWHERE, plan, engine=engine)  # type: ignore[arg-type]
        said = str(caught.value)
        assert sentence is None or said == sentence
        assert said.endswith(".")
        assert "\n" not in said
        assert "nowhere" not in said


def _cells(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows as texts: types may be wider on an engine, values are the same."""
    return [tuple(map(_text, row)) for row in frame.select(sorted(frame.columns)).rows()]


def _text(cell: Any) -> str:
    return str(cell.normalize()) if isinstance(cell, Decimal) else str(cell)


def _check_draw(method: str, before: pl.DataFrame, after: pl.DataFrame) -> None:
    """No new value appears, and missing values stay missing."""
    for name in before.columns:
        old, new = before[name].to_list(), after[name].to_list()
        if method in ("swap", "rank_swap"):
            assert rows_of(before.select(name)) == rows_of(after.select(name))
        elif method == "pram":
            assert set(map(_text, new)) <= set(map(_text, old))
        if method in ("pram", "add_noise"):
            assert [cell is None for cell in new] == [cell is None or cell != cell for cell in old]


# -- in chunks: the promise holds in each, and in one chunk memory's own code gives what it gives


def _in_chunks(engine: EngineKind, step: Masker, table: sh.Table) -> pl.DataFrame:
    found, record = engine.stepped(step, table)
    assert record.facts["chunks"] > 2
    assert found.height == len(table)
    others = [name for name in table.columns if name not in record.touched]
    assert found.select(others).equals(table.frame.select(others))
    return found


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 600)


each_engine = pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)


@each_engine
def test_relaxed_boxes(engine: EngineKind, monkeypatch: pytest.MonkeyPatch) -> None:
    table, step = sh.Table(people(3000), ROLES), sh.Generalize("mondrian", k=20, relaxed=True)
    if engine.name == "duckdb":
        found, _ = engine.stepped(step, table)
        expected, _ = engine.other("memory").stepped(step, table)
        assert rows_of(found.select(expected.columns)) == rows_of(expected)
    monkeypatch.setattr(_chunked, "CHUNK", 600)
    cut = _in_chunks(engine, step, table)
    sizes = cut.group_by(QUASI).len()["len"]
    assert sizes.min() >= 20  # type: ignore[operator]
    assert len(sizes) > 30


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
@pytest.mark.usefixtures("small_chunks")
def test_boxes_in_chunks_are_narrow_where_it_counts(engine: EngineKind) -> None:
    frame = people(3000)
    ages = []  # in the interval of a record
    for weights in ({"alter": 100}, None, {"alter": 0.01}):
        step = sh.Generalize("mondrian", k=20, relaxed=True, weights=weights)
        found = _in_chunks(engine, step, sh.Table(frame, ROLES))
        both = frame.select("alter", interval=found["alter"])
        ages.append(both.select(pl.col("alter").n_unique().over("interval")).mean().item())
    assert ages[0] < ages[1] < ages[2]
    for wrong in ({"atler": 2}, {"born": 2}):
        step = sh.Generalize("mondrian", k=20, relaxed=True, weights=wrong)
        with pytest.raises(InputError, match="'weights' names"):
            engine.stepped(step, sh.Table(frame, ROLES))


@each_engine
@pytest.mark.usefixtures("small_chunks")
def test_fewest_blanks(engine: EngineKind) -> None:
    """Classes of different chunks may be one class, which only makes it larger."""
    step = sh.Suppress(k=4, models=sh.LDiversity(2), importance={"alter": 3})
    cut = _in_chunks(engine, step, sh.Table(people(3000), ROLES))
    classes = cut.group_by(QUASI).agg(pl.len().alias("rows"), pl.col("ill").n_unique())
    assert classes["rows"].min() >= 4  # type: ignore[operator]
    assert classes["ill"].min() >= 2  # type: ignore[operator]


@each_engine
@pytest.mark.usefixtures("small_chunks")
def test_redrawn_secrets(engine: EngineKind) -> None:
    frame = people(3000).with_columns(pl.col("alter") // 5)
    alike = (pl.col("alter") < 8) & (pl.col("Wohn ort") == "Jena")
    frame = frame.with_columns(ill=pl.when(alike).then(pl.lit("flu")).otherwise("ill"))
    table = sh.Table(frame.filter(pl.len().over(QUASI) > 9), ROLES)
    failing = sh.LDiversity(2).violations(table)
    found = _in_chunks(engine, sh.Redraw(models=sh.LDiversity(2)), table)
    assert sh.LDiversity(2).holds(sh.Table(found.drop(ROW), ROLES))
    moved = found["ill"].ne_missing(table.frame["ill"]).to_numpy()
    assert moved.any()
    assert not (moved & ~failing).any()


@each_engine
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("partition", ["mdav", "individual-ranking"])
def test_secrets_are_swapped(engine: EngineKind, partition: str, tmp_path: Path) -> None:
    frame = people(3000).drop_nulls()
    roles = ROLES.replacing(sensitive=["ill", "wage"], insensitive=["born"])
    step = sh.Swap(4, informed=True, partition=partition)
    if engine.name == "spark" or partition == "individual-ranking":
        table = sh.Table(frame, roles)
        found = _in_chunks(engine, step, table)
        assert (found["wage"] != frame["wage"]).mean() > 0.5  # type: ignore[operator]
    else:
        plan = sh.Plan([step], require=[sh.ProbabilisticKAnonymity(4)], roles=roles)
        place = engine.protect(frame, plan).save(tmp_path / "release")
        assert sh.verify(place).holds
        found = pl.read_parquet(place / "public" / "data" / "*.parquet")
        records = pl.read_parquet(place / "private" / "records" / "*.parquet")
        for block in range(2):
            groups = records.group_by("0_chunk", f"0_group_{block}")
            assert groups.len()["len"].min() >= 4  # type: ignore[operator]
    for name in frame.columns:
        assert rows_of(found.select(name)) == rows_of(frame.select(name))


# -- counts: what models and measures are made of


_COUNTED = [("duckdb", name) for name in AWKWARD if name != "200 columns"]
_COUNTED += [(e, "everything") for e in ("memory", "duckdb", "spark")] + [("spark", "16 bits")]


@pytest.mark.parametrize(("engine", "name"), _COUNTED, indirect=["engine"])
def test_models_and_measures(engine: EngineKind, name: str) -> None:
    """With ``by_counts``, the result for an engine's counts is that for the records."""
    table = _table(name, engine)
    table = with_secret(table.with_roles(table.roles.replacing(identifiers=[], insensitive=[])))
    names = [*table.roles.quasi_identifiers, *table.roles.sensitive]
    tally = engine.tally(table, names)
    assert tally.records == len(table)
    for column in names:
        here, there = table.value_counts(column), tally.value_counts(column)
        assert {_text(k): v for k, v in there.items()} == {_text(k): v for k, v in here.items()}
    for example in MODELS:
        if KNOWN_MODELS[example.model].by_counts:
            model = example.make(table)
            here, there = (make_claim(model, each, None) for each in (table, tally))
            assert there.measured == pytest.approx(here.measured, rel=1e-9), example.id
            assert (there.holds, there.sentence) == (here.holds, here.sentence)
    for info in discover_all_measures().values():
        if info.by_counts and not info.needs_original:
            here, there = (_measured(info, each) for each in (table, tally))
            assert there == pytest.approx(here, rel=1e-9), info.name


def _measured(info: Any, table: sh.Table) -> float:
    try:
        return float(info.take(None, table).value)
    except ShoalError:
        return -1.0


def test_models_that_need_records_are_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sh.KAnonymity, "by_counts", False)  # no model does today
    _refused_at_the_door(sh.Plan([sh.Round(base=5)], require=[sh.KAnonymity(2)], roles=ROLES))


def test_a_plan_that_cannot_run_is_refused_first() -> None:
    for plan in (
        sh.Plan([sh.Generalize("mondrian", models=sh.TCloseness(0.2), relaxed=True)], roles=ROLES),
        sh.Plan([sh.Redraw(models=[sh.LDiversity(2), sh.BetaLikeness(1)])], roles=ROLES),
        sh.Plan([sh.Microaggregate(3, models=sh.TCloseness(0.2))], roles=ROLES),
        sh.Plan([sh.Sample(fraction=0.5, random_state=3)], roles=ROLES),
        sh.Plan([sh.Round(base=5)], roles=ROLES, keep_order=True),
        sh.Plan([sh.Round(base=5)]),
        sh.Plan([sh.Round(base=5), sh.Swap(5, blocks="mutual-information")], roles=ROLES),
    ):
        _refused_at_the_door(plan)


# -- whole plans, through the doors

_RUN = [(engine, name) for engine in ("memory", "duckdb") for name in PLANS]
_RUN += [("spark", "full-domain"), ("spark", "weighted boxes")]


@pytest.mark.parametrize(("engine", "name"), _RUN, indirect=["engine"])
def test_plans(engine: EngineKind, name: str, tmp_path: Path) -> None:
    frame = people(3000)
    here = engine.other("memory").protect(frame, PLANS[name])
    there = engine.protect(engine.written(frame, files=3), PLANS[name])
    assert rows_of(engine.released(there)) == rows_of(here.masked.frame)
    assert [c.measured for c in there.claims] == pytest.approx([c.measured for c in here.claims])
    assert [s.removed for s in there.steps] == [s.removed for s in here.steps]
    assert [s.touched for s in there.steps] == [s.touched for s in here.steps]
    assert there.after.classes == here.after.classes
    folder = there.save(tmp_path / "release")
    assert sh.verify(folder).holds


def test_persons(engine: EngineKind, tmp_path: Path) -> None:
    owners = np.random.default_rng(3).integers(0, 500, 2000)
    frame = people(2000).with_columns(patient=pl.Series(owners))
    roles = ROLES.replacing(unit="patient")
    step = sh.Generalize("full-domain", k=5, suppression_limit=0.1, hierarchies=LEVELS)
    plan = sh.Plan([step], require=[sh.KAnonymity(5)], roles=roles)
    here = engine.other("memory").protect(frame, plan)
    there = engine.protect(frame, plan)
    assert there.steps[0].removed == here.steps[0].removed
    assert there.masked.person_count == here.masked.person_count
    assert there.after.k == here.after.k >= 5
    released = engine.released(there)
    assert rows_of(released) == rows_of(here.masked.frame.select(released.columns))
    folder = there.save(tmp_path / "release")
    assert sh.verify(folder).holds
    if engine.name != "memory":
        private = pl.read_parquet(folder / "private" / "records" / "*.parquet")
        shown = pl.read_parquet(folder / "public" / "data" / "*.parquet")
        assert "patient" not in shown.columns
        beside = shown.with_columns(private["unit: patient"])
        crowds = beside.group_by(QUASI).agg(pl.col("unit: patient").n_unique().alias("n"))
        assert crowds["n"].min() == there.after.k


@pytest.mark.parametrize("engine", ["memory", "duckdb"], indirect=True)
def test_differential_privacy(engine: EngineKind, tmp_path: Path) -> None:
    """It holds by how rows were drawn and made coarser, and only if this covers all columns."""
    private = sh.DifferentialPrivacy(2.0, 1e-4)
    kinds = {"alter": sh.Hierarchy.intervals([30]), "member": sh.Hierarchy.suppression()}
    drawn = sh.Sample(fraction=0.5, strategy="bernoulli")
    step = sh.Generalize(
        models=private,
        hierarchies=kinds,
        levels={"alter": 1, "member": 0},
        suppression_limit=1.0,
    )
    frame = people(2000).select("alter", "member")
    roles = sh.Roles(quasi_identifiers=["alter", "member"])
    plan = sh.Plan([drawn, step], require=[private], roles=roles)
    release = engine.protect(frame, plan)
    known = engine.other("memory").protect(frame, plan)
    assert release.claims[0].measured == pytest.approx(known.claims[0].measured)
    folder = release.save(tmp_path / "release")
    assert [claim.status for claim in sh.verify(folder).claims] == ["passed"]
    sized = replace(step, models=None, k=9)
    for wrong in (
        [step],
        [drawn, sh.Round(base=5), step],
        [sh.Sample(fraction=0.5), step],
        [drawn, sized, sh.Suppress(where="alter > 90", target="records")],
    ):
        with pytest.raises((InputError, RequirementNotMet)):
            engine.protect(frame, sh.Plan(wrong, require=[private], roles=roles))
    more = people(2000).select("alter", "member", "wage")
    with pytest.raises(InputError, match="'wage'"):
        engine.protect(more, plan)


_PEOPLE = [("duckdb", "full-domain"), ("duckdb", "mondrian"), ("duckdb", "persons")]
_PEOPLE += [("spark", "full-domain")]


@pytest.mark.parametrize(("engine", "name"), _PEOPLE, indirect=["engine"])
def test_models_of_a_population(engine: EngineKind, name: str, tmp_path: Path) -> None:
    """The table is a part of the population, and the engine counts both."""
    owners = pl.Series(np.random.default_rng(3).integers(0, 1500, 3000))
    everyone = people(3000).with_columns(patient=owners).drop("ill")
    file = str(engine.folder / "everyone.parquet")
    everyone.write_parquet(file)
    frame = everyone.filter(pl.col("patient") < 500)
    frame = frame.with_columns(people(len(frame))["ill"])
    most = 1.0 if name == "persons" else 0.9
    models = [sh.KMap(20, population=file), sh.DeltaPresence(most, population=file)]
    step = sh.Generalize("full-domain", models=models, hierarchies=LEVELS, suppression_limit=0.1)
    if name == "mondrian":
        step = sh.Generalize("mondrian", k=5, models=models[:1])
    roles = ROLES.replacing(insensitive=["born", "wage", "patient"], unit="row")
    if name == "persons":
        roles = ROLES.replacing(unit="patient")
    if engine.name == "spark":
        (found, _), (expected, _) = (
            each.stepped(step, sh.Table(frame, roles)) for each in (engine, engine.other("memory"))
        )
        assert found.equals(expected.select(found.columns))
        return
    plan = sh.Plan([sh.Round(base=3, columns=["wage"]), step], require=models, roles=roles)
    here = engine.other("memory").protect(frame, plan)
    there = engine.protect(frame, plan)
    released = engine.released(there)
    assert rows_of(released) == rows_of(here.masked.frame.select(released.columns))
    assert [c.measured for c in there.claims] == pytest.approx([c.measured for c in here.claims])
    assert [c.sentence for c in there.claims] == [c.sentence for c in here.claims]
    assert there.steps[1].parameters == here.steps[1].parameters
    folder = there.save(tmp_path / "release")
    assert sh.verify(folder).holds
    assert "everyone" not in (folder / "public" / "release.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("engine", "unit"),
    [("memory", ["patient", "p.q"]), ("duckdb", ["patient", "p.q"]), ("duckdb", ["patient"])],
    indirect=["engine"],
)
def test_pseudonyms(engine: EngineKind, unit: list[str], tmp_path: Path) -> None:
    """Each person has a unique one, and only the private half records whose it is."""
    owners = pl.Series(np.random.default_rng(3).integers(0, 90, 600))
    frame = people(600).with_columns(pl.lit("x").alias("p.q"), patient=owners)
    others = [name for name in ("born", "wage", "p.q") if name not in unit]
    plan = sh.Plan(
        [sh.Generalize("mondrian", k=3)],
        roles=ROLES.replacing(unit=unit, insensitive=others),
        pseudonyms=True,
        require=[sh.KAnonymity(3)],
    )
    release = engine.protect(frame, plan)
    assert release.masked.roles.unit_columns == (("patient",) if len(unit) == 1 else ("person",))
    folder = release.save(tmp_path / "release")
    for place in (folder, folder / "public"):
        found = sh.verify(place)
        assert found.holds
        assert [claim.status for claim in found.claims] == ["passed"]
    named = engine.released(release)
    called = release.masked.roles.unit_columns[0]
    assert named.columns[0] == called
    assert named[called].n_unique() == release.masked.person_count > 50
    assert named[called].str.contains("^P[0-9a-f]+$").all()
    rows = [
        each.group_by(who).len()["len"].sort()
        for each, who in ((frame, "patient"), (named, called))
    ]
    assert rows[0].equals(rows[1])
    if engine.name != "memory":
        private = pl.read_parquet(folder / "private" / "records" / "*.parquet")
        pairs = private.select(pl.col("^unit: .*$")).with_columns(named[called]).unique()
        assert len(pairs) == named[called].n_unique() == pairs["unit: patient"].n_unique()


@each_engine
def test_pseudonyms_are_hashes_under_a_key(engine: EngineKind) -> None:
    """They are the same on every engine, and differ under another key."""
    owners = pl.Series(np.random.default_rng(3).integers(0, 90, 300))
    frame = people(300).with_columns(pl.lit("x").alias("p.q"), patient=owners)
    roles = ROLES.replacing(unit=["patient", "p.q"])
    with engine.running() as running:
        rows = running.source(engine.written(frame)).hide(roles.unit_columns)
        found = []
        for key in ("2a", "2b"):
            course = Course(rows, roles, len(frame))
            public = name_identifiers(course, SecretStream.from_key_hex(key * 32))
            assert public.unit_columns == ("person",)
            found.append(running.collected(course.rows).sort(ROW)["person"])
    text = b'{"patient":"7","p.q":"x"}'
    known = "P" + hashlib.blake2b(text, digest_size=10, key=bytes.fromhex("2a" * 32)).hexdigest()
    assert (found[0] == known).equals(owners == 7)
    assert found[0].n_unique() == found[1].n_unique() == owners.n_unique()
    assert not (found[0] == found[1]).any()


def test_rows_of_nobody_are_refused(engine: EngineKind) -> None:
    """The refusal of missing units, or parts of them, names the columns and the numbers of rows."""
    frame = people(200).with_columns(ward=pl.Series([1, 2, None, 3] * 50))
    frame = frame.with_columns(bed=pl.Series([*range(1, 200), None]))
    roles = ROLES.replacing(unit=["ward", "bed"])
    with pytest.raises(RolesError) as known:
        sh.Table(frame, roles)
    with pytest.raises(RolesError) as caught:
        assess(engine.written(frame) / "00000.parquet", roles=roles, engine=engine.name)
    assert str(caught.value) == str(known.value)
    if engine.name == "duckdb":
        with pytest.raises(RolesError, match="50 in 'ward', 1 in 'bed'"):
            engine.protect(frame, sh.Plan([sh.Round(base=5)], roles=roles))


def test_weights_that_are_none_are_refused(engine: EngineKind) -> None:
    """They are checked before they are summed, since one below 0 would hide others of its class."""
    for bad in ([-1.0, 0.0, None, float("inf"), float("nan")], ["1", "2", "3", "4", "5"]):
        frame = people(200).with_columns(w=pl.Series(bad * 40))
        roles = sh.Roles(quasi_identifiers=QUASI, weight="w")
        with pytest.raises(RolesError) as known:
            sh.Table(frame, roles)
        with pytest.raises(RolesError) as caught:
            assess(engine.written(frame) / "00000.parquet", roles=roles, engine=engine.name)
        assert str(caught.value) == str(known.value)


def test_assess(engine: EngineKind) -> None:
    frame = people(1000)
    here = assess(sh.Table(frame, ROLES))
    source = engine.written(frame) / "00000.parquet"
    there = assess(source, roles=ROLES, engine=engine.name)
    assert (there.rows, there.classes) == (here.rows, here.classes)
    for name in ("prosecutor_risk", "marketer_risk", "records_at_risk", "uniqueness"):
        assert there[name].value == pytest.approx(here[name].value)


# -- what is read

#: The names of two folders, and what they stand for.
PARTITIONS = {
    "codes": (("01", "2"), ["01", "2"]),
    "years": (("2025", "-7"), [2025, -7]),
    "gaps": (("__HIVE_DEFAULT_PARTITION__", "7"), [None, 7]),
    "shares": (("0.5", "2"), [0.5, 2.0]),
    "no one way": (("0.50", "1"), ["0.50", "1"]),
    "too long": (("9223372036854775808", "1"), ["9223372036854775808", "1"]),
    "days": (("2026-01-01", "2026-01-02"), ["2026-01-01", "2026-01-02"]),
    "texts": (("京都", "true"), ["京都", "true"]),
}


@each_engine
def test_values_of_partitions_are_texts_unless_all_are_numbers(engine: EngineKind) -> None:
    base = engine.folder / "a [set] #1"
    for number in range(2):
        place = base.joinpath(
            *(f"{name}={given[number]}" for name, (given, _) in PARTITIONS.items())
        )
        place.mkdir(parents=True)
        pl.DataFrame({"a": [number]}).write_parquet(place / "0.parquet")
    with engine.running() as running:
        found = running.collected(running.source(base)).sort("a")
    assert {name: found[name].to_list() for name in PARTITIONS} == {
        name: values for name, (_, values) in PARTITIONS.items()
    }


def test_names_that_stand_for_others_are_refused(engine: EngineKind) -> None:
    """The awkward table has names with special characters and letters of other scripts."""
    for name in ("^a.*$", *(["*"] if engine.name != "memory" else [])):
        frame = pl.DataFrame({name: [1, None] * 30, "ab": [1, 2] * 30, "a b": ["x"] * 60})
        roles = sh.Roles(quasi_identifiers=["ab"], insensitive=[name, "a b"])
        with pytest.raises(InputError, match=r"[Rr]ename|another name"):
            engine.protect(frame, sh.Plan([sh.Round(base=2)], roles=roles))
