"""Singling out: compared with brute force, on copies, shuffles, swaps and generalized tables."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Suppress, Swap, Table
from shoal.errors import InputError
from shoal.risk import singling_out
from shoal.risk.attacks import _singling_out
from shoal.risk.linkage._intruder import drawn_persons
from shoal.workflow import assess

ADULT = ["age", "education", "marital-status", "occupation", "race", "sex", "native-country"]


def people(rows, seed=1):
    """Related columns of every kind, with some values missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    born = [dt.date(2020, 1, 1) - dt.timedelta(days=int(365 * a + rng.integers(365))) for a in age]
    region = rng.integers(0, 12, rows)
    return pl.DataFrame(
        {
            "age": age,
            "born": born,
            "ort": [None if rng.random() < 0.02 else f"Ört {r}" for r in region],
            "zip": [f"{r:02d}{rng.integers(0, 9)}" for r in region],
            "pay": (1000 + 40 * age + rng.normal(0, 300, rows)).round(1),
        }
    )


def table(frame):
    return Table(frame, Roles(quasi_identifiers=frame.columns))


def shuffled(original, seed=3):
    """Every column is permuted separately: only the marginals are left."""
    rng = np.random.default_rng(seed)
    columns = {n: rng.permutation(len(original)) for n in original.columns}
    return original.with_cells_of(columns)


@pytest.fixture(scope="module")
def persons():
    return table(people(1500))


@pytest.fixture(scope="module")
def control():
    return table(people(1500, seed=2))


@pytest.fixture(scope="module")
def adult(shared_data):
    frame = pl.read_parquet(shared_data / "uci" / "adult.parquet").select(ADULT)
    order = np.random.default_rng(0).permutation(frame.height)
    roles = Roles(quasi_identifiers=ADULT)
    return Table(frame[order[:8000]], roles), Table(frame[order[8000:16000]], roles)


def test_success_is_the_share_of_records_that_fit_one_person():
    """By hand: intervals, sets, a missing cell, a record that fits two and one that fits nobody."""
    original = table(pl.DataFrame({"age": [20, 25, 30, 31], "sex": ["f", "m", "f", "f"]}))
    masked = table(
        pl.DataFrame(
            {
                "age": ["[20, 26)", "[20, 26)", "[30, 40)", None, "25"],
                "sex": ["f", "{f, m}", "f", "m", "f"],
            }
        )
    )
    found = singling_out(original, masked)
    assert found.details["success"] == 2 / 5  # the first and the fourth
    assert found.details["isolated"] == 2
    assert "isolated_by_own_record" not in found.details
    paired = singling_out(original, masked.keep(np.arange(5) < 4).paired(original))
    assert paired.details["success"] == 2 / 4
    assert paired.details["isolated_by_own_record"] == 1  # the fourth fits the second person


@pytest.mark.parametrize("seed", range(3))
def test_an_unmasked_record_singles_out_who_is_unique(seed):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.integers(0, 9, 60), "b": rng.choice(["x", "y", "z"], 60)})
    original = table(frame)
    found = singling_out(original, original)
    assert found.details["success"] == original.classes.uniques / 60
    assert found.details["isolated_by_own_record"] == original.classes.uniques


def test_a_copy_singles_out(persons, control):
    for options in ({}, {"control": control}, {"mode": "univariate"}, {"columns": 2}):
        found = singling_out(persons, persons, **options)
        assert found.interval[0] > 0.5, options


@pytest.mark.parametrize("options", [{}, {"columns": 2}, {"columns": 3, "numbers": "beyond"}])
@pytest.mark.parametrize("mode", ["multivariate", "univariate"])
def test_shuffled_columns_single_nobody_out(persons, control, mode, options):
    masked = shuffled(persons)
    for more in ({}, {"control": control}):
        found = singling_out(persons, masked, mode=mode, **options, **more)
        assert found.interval[0] == 0.0
        assert found.value < 0.03
        assert any("no better than" in said for said in found.warnings)


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("mode", ["multivariate", "univariate"])
def test_shuffled_adult_singles_nobody_out(adult, mode, columns):
    original, control = adult
    for more in ({}, {"control": control}):
        found = singling_out(original, shuffled(original), mode=mode, columns=columns, **more)
        assert found.interval[0] == 0.0
        assert found.value < 0.02


def test_a_copy_of_adult_singles_out(adult):
    original, control = adult
    found = singling_out(original, original, control=control)
    assert found.interval[0] > 0.3
    assert found.details["control"] < found.details["success"]


def test_a_table_of_other_people_is_no_risk(persons, control):
    """What a synthetic table knows about the population holds for everybody."""
    found = singling_out(persons, control, control=table(people(1500, seed=5)))
    assert found.interval[0] == 0.0


def test_a_swap_leaves_the_people_and_takes_their_records():
    """Released combinations are those of real people, but their records belong to others."""
    original = table(people(800).select("age", "pay"))
    masked = Swap(k=5).fit_transform(original)
    found = singling_out(original, masked)
    own = found.details["isolated_by_own_record"] / found.details["isolated"]
    assert found.value == pytest.approx(singling_out(original, original).value)
    assert 0.1 < own < 0.35
    one = singling_out(original, masked, mode="univariate")
    assert one.details["success"] < 0.4


def test_control_persons_are_right_as_often_as_those_with_a_record(persons, control):
    """In one column, a swap takes the record from the person, not the value from the table."""
    masked = Swap(k=5).fit_transform(persons)
    copy, found = (
        singling_out(persons, release, mode="univariate", control=control)
        for release in (persons, masked)
    )
    own = found.details["isolated_by_own_record"] / found.details["isolated"]
    assert own < 0.5
    assert found.details["control"] == pytest.approx(copy.details["control"] * own)
    assert copy.details["control"] > 0


def test_equal_records_count_as_one(persons):
    """The same predicate ten times carries no more information than once."""
    once = persons.keep(np.arange(len(persons)) < 60)
    mixed = once.with_cells_of({"zip": np.arange(60) // 2 * 2})  # every second fits nobody
    often = table(pl.concat([mixed.frame] * 10))
    one, ten = (singling_out(persons, release) for release in (table(mixed.frame), often))
    assert one.details["success"] == ten.details["success"]
    assert 0.2 < one.details["success"] < 0.9
    assert ten.details["attacks"] == 600
    widths = [np.diff(found.details["intervals"]["success"])[0] for found in (one, ten)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)


@pytest.mark.parametrize("algorithm", ["mondrian", "full-domain", "local"])
def test_a_generalized_table_singles_nobody_out(persons, control, algorithm):
    masked = Generalize(algorithm=algorithm, k=10).fit_transform(persons)
    for mode in ("multivariate", "univariate"):
        found = singling_out(persons, masked, mode=mode, control=control)
        assert found.details["known"] == sorted(persons.columns)
        assert found.details["isolated"] == 0
        assert found.value == 0.0


def test_intervals_that_hold_one_person_single_out():
    """A release that is coarse but not k-anonymous is found and not called safe."""
    ages = list(range(20, 80))
    original = table(pl.DataFrame({"age": ages, "sex": ["f", "m"] * 30, "since": ages}))
    masked = Hierarchy.intervals(2).generalize(original, "age", 1)
    found = singling_out(original, Hierarchy.intervals(3).generalize(masked, "since", 1))
    assert found.details["success"] == 1.0
    assert found.interval[0] > 0.8


def test_extremes_are_open_to_their_side():
    original = table(pl.DataFrame({"pay": [1.0, 2.0, 3.0, 90.0]}))
    masked = table(pl.DataFrame({"pay": [1.1, 2.1, 3.1, 50.0]})).paired(original)
    found = singling_out(original, masked, mode="univariate")
    assert found.details["success"] == 1.0


def test_what_is_rarest_comes_first():
    values = ["rare", *["a"] * 20, *["b"] * 30]
    original = table(pl.DataFrame({"x": values}))
    found = singling_out(original, original, mode="univariate", attacks=1)
    assert found.details["success"] == 1.0
    assert singling_out(original, original, mode="univariate").details["attacks"] == 3


def test_a_smaller_control_is_said(persons, control):
    few = control.keep(np.arange(len(control)) < 300)
    found = singling_out(persons, persons, control=few)
    assert any("300 of them" in warning for warning in found.warnings)
    assert found.value > 0.9, "as with a control of any size"
    one_column = singling_out(persons, persons, mode="univariate", known=["pay"], control=few)
    assert one_column.details["isolated_by_own_record"] > 0.9 * one_column.details["attacks"]
    apart = table(persons.frame)
    assert singling_out(persons, apart, control=few).value > 0.9
    found = singling_out(few, few, control=persons)
    assert not any("among" in said for said in found.warnings)


def test_a_control_of_whom_nobody_is_comparable(persons, control):
    one = control.keep(np.arange(len(control)) < 1)
    rest = drawn_persons(persons.row_key, 1, None)
    with pytest.raises(InputError, match="larger control"):
        singling_out(persons, persons.keep(np.arange(len(persons)) != rest[0]), control=one)


def test_texts_that_cannot_be_read_are_left_out_and_said(persons):
    masked = table(persons.frame.with_columns(zip=pl.lit("somewhere")))
    found = singling_out(persons, masked)
    assert found.details["known"] == ["age", "born", "ort", "pay"]
    assert any("'zip' could not be read" in said for said in found.warnings)


def test_nothing_released_is_no_risk(persons):
    gone = Suppress(columns=persons.columns, max_distinct=0.0001).fit_transform(persons)
    kept = [name for name in persons.columns if name in gone.columns]
    found = singling_out(persons, gone.drop(kept))
    assert found.value == 0.0
    assert any("Nothing was released" in said for said in found.warnings)


def test_fewer_predicates_where_each_takes_long(persons, monkeypatch):
    """Half of all persons have a value: two predicates look at all persons."""
    whole = singling_out(persons, persons)
    assert whole.details["attacks"] == len(persons)
    monkeypatch.setattr(_singling_out, "_MOST_LOOKS", 60)
    monkeypatch.setattr(_singling_out, "_FEWEST_ATTACKS", 10)
    few = singling_out(persons, persons)
    assert 10 <= few.details["attacks"] < 60
    assert few.interval[0] < whole.value < few.interval[1] + 1e-9
    halves = table(pl.DataFrame({"sex": ["f", "m"] * 50}))
    assert singling_out(halves, halves).details["attacks"] == 10


def test_one_column_needs_pairs(persons, control):
    with pytest.raises(InputError, match="'multivariate'"):
        singling_out(persons, control, mode="univariate")


def test_a_control_without_the_columns_is_refused(persons, control):
    with pytest.raises(InputError, match="The control group has no column 'pay'"):
        singling_out(persons, persons, control=control.drop(["pay"]))


def test_another_random_state_tries_other_predicates(persons):
    values = {
        singling_out(persons, persons, columns=2, attacks=200, random_state=s).value
        for s in (None, 1, 2, 3)
    }
    assert len(values) > 1


def test_every_kind_of_frame(frame):
    columns = {"age": [30, 31, 48, None], "sex": ["f", "m", "f", "ü"]}
    original = Table(frame(columns), Roles(quasi_identifiers=list(columns)))
    masked = Hierarchy.intervals(10).generalize(original, "age", 1)
    assert singling_out(original, masked).details["isolated"] == 4


def test_assess_measures_it(persons):
    found = assess(shuffled(persons), original=persons)["singling_out"]
    assert found.value == pytest.approx(0.0, abs=0.03)
