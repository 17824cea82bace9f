"""Risks of tables in which a person has several rows, recounted in plain Python."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.risk import (
    attribute_inference,
    certainty,
    distance_linkage,
    group_disclosure,
    homogeneity,
    household_risk,
    individual_risk,
    inference,
    intersection,
    journalist_risk,
    marketer_risk,
    membership_inference,
    own_values,
    population_uniqueness,
    probabilistic_linkage,
    prosecutor_risk,
    records_at_risk,
    similarity,
    similarity_linkage,
    singling_out,
    skewness,
    special_uniques,
    suda,
    unchanged_records,
    uniqueness,
)
from shoal.risk._sampled_population import expected_risk
from shoal.risk.linkage._intruder import drawn_rows, intruder_of
from shoal.risk.linkage._right_links import bound_of
from shoal.table import Exchange, Sampling, swapped_crowds

ROLES = Roles(quasi_identifiers=["a", "b"], sensitive=["ill"], unit="who")
seeds = pytest.mark.parametrize("seed", range(12))


def drawn(seed, *, gaps=False):
    """A few dozen rows of fewer persons, each with several rows; values that often agree."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(6, 40))
    frame = pl.DataFrame(
        {
            "who": rng.integers(0, max(2, rows // 2), rows),
            "a": rng.integers(0, 4, rows),
            "b": rng.integers(0, 3, rows),
            "c": rng.integers(0, 3, rows),
            "ill": rng.integers(0, 3, rows),
            "pay": rng.integers(0, 30, rows),
        }
    )
    if gaps:
        holes = [
            pl.when(pl.Series(rng.random(rows) < 0.2))
            .then(None)
            .otherwise(pl.col(name))
            .alias(name)
            for name in ("a", "b")
        ]
        frame = frame.with_columns(holes)
    return Table(frame, ROLES)


def persons_by(table, *columns):
    """The persons who have each combination of values."""
    found = {}
    for row in table.frame.iter_rows(named=True):
        found.setdefault(tuple(row[c] for c in columns), set()).add(row["who"])
    return found


def of_persons(table, per_row):
    """The largest value of each person."""
    best = {}
    for who, value in zip(table.frame["who"], per_row, strict=True):
        best[who] = max(value, best.get(who, 0))
    return best


@seeds
def test_risks_of_classes(seed):
    table = drawn(seed)
    crowds = persons_by(table, "a", "b")
    risks = [1 / len(crowds[row]) for row in table.frame.select("a", "b").iter_rows()]
    each = of_persons(table, risks).values()
    assert prosecutor_risk(table).per_record.tolist() == risks
    assert prosecutor_risk(table).value == max(risks)
    assert marketer_risk(table).value == pytest.approx(mean(each))
    assert records_at_risk(table).value == pytest.approx(mean(risk > 0.2 for risk in each))
    assert uniqueness(table).value == pytest.approx(mean(risk == 1 for risk in each))
    one = [float(expected_risk(np.array([1 / r]), np.array([0.25]))[0]) for r in risks]
    found = individual_risk(table, sampling_fraction=0.25)
    assert found.value == pytest.approx(mean(of_persons(table, one).values()))


@seeds
def test_minimal_uniques_are_of_persons(seed):
    names = ("a", "b", "c")
    table = drawn(seed)
    table = table.with_roles(ROLES.replacing(quasi_identifiers=names))
    crowds = {
        chosen: persons_by(table, *chosen)
        for size in (1, 2, 3)
        for chosen in combinations(names, size)
    }
    smallest, scores = [], []
    for row in table.frame.iter_rows(named=True):
        alone = [c for c in crowds if crowds[c][tuple(row[n] for n in c)] == {row["who"]}]
        minimal = [c for c in alone if not any(set(o) < set(c) for o in alone)]
        smallest.append(min(map(len, minimal), default=0))
        scores.append(sum({1: 2, 2: 1, 3: 1}[len(c)] for c in minimal))
    found = special_uniques(table, size=3)
    assert found.smallest.tolist() == smallest
    assert found.scores.tolist() == scores
    share = mean(value > 0 for value in of_persons(table, smallest).values())
    assert suda(table).value == pytest.approx(share)


@seeds
def test_minimal_uniques_with_wildcards(seed):
    table = drawn(seed, gaps=True)
    rows = table.frame.select("who", "a", "b").rows()
    smallest = []
    for who, *own in rows:
        sizes = []
        for columns in ((0,), (1,), (0, 1)):
            if any(own[c] is None for c in columns):
                continue
            met = any(
                other[0] != who and all(other[1 + c] in (None, own[c]) for c in columns)
                for other in rows
            )
            sizes += [] if met else [len(columns)]
        smallest.append(min(sizes, default=0))
    assert special_uniques(table, size=2, missing="wildcard").smallest.tolist() == smallest


def certain_classes(table, alike):
    """The classes in which every person has at least one of some similar values."""
    found = {}
    rows = table.frame.rows(named=True)
    for key, persons in persons_by(table, "a", "b").items():
        here = [row for row in rows if (row["a"], row["b"]) == key]
        found[key] = any(
            {row["who"] for row in here if alike(start, row)} == persons for start in here
        )
    return [found[row["a"], row["b"]] for row in rows]


@seeds
def test_what_every_person_of_a_class_has_is_certain(seed):
    table = drawn(seed)
    marked = certain_classes(table, lambda one, other: one["ill"] == other["ill"])
    assert homogeneity(table).per_record.tolist() == marked
    share = mean(of_persons(table, marked).values())
    assert homogeneity(table).value == pytest.approx(share)
    paid = table.with_roles(ROLES.replacing(sensitive=["pay"]))
    span = table.frame["pay"].max() - table.frame["pay"].min()
    marked = certain_classes(
        paid, lambda one, other: 0 <= other["pay"] - one["pay"] <= 0.2 * span + 1e-9
    )
    assert similarity(paid, closeness=0.2).per_record.tolist() == marked


def test_a_value_that_one_person_lacks_is_not_certain():
    frame = pl.DataFrame({"who": [1, 1, 2], "a": [0] * 3, "b": [0] * 3, "ill": [5, 6, 5]})
    assert homogeneity(Table(frame, ROLES)).value == 1.0
    other = frame.with_columns(pl.Series("ill", [5, 6, 7]))
    assert homogeneity(Table(other, ROLES)).value == 0.0


@seeds
def test_wildcards_hide_no_certain_value(seed):
    """With wildcards it is an upper bound: never below a plain count."""
    table = drawn(seed, gaps=True)
    rows = table.frame.rows(named=True)
    marked = []
    for own in rows:
        met = [
            row
            for row in rows
            if all(row[c] is None or own[c] is None or row[c] == own[c] for c in ("a", "b"))
        ]
        persons = {row["who"] for row in met}
        values = {row["ill"] for row in met}
        marked.append(
            any({row["who"] for row in met if row["ill"] == value} == persons for value in values)
        )
    assert (homogeneity(table, missing="wildcard").per_record >= marked).all()
    assert (similarity(table, missing="wildcard").per_record >= marked).all()


@seeds
def test_skewness_counts_a_value_once_for_each_person(seed):
    table = drawn(seed)
    rows = table.frame.rows(named=True)
    overall = {(row["who"], row["ill"]) for row in rows}
    highest = 0.0
    for key in persons_by(table, "a", "b"):
        here = {(row["who"], row["ill"]) for row in rows if (row["a"], row["b"]) == key}
        distance = sum(
            abs(
                sum(ill == v for _, ill in here) / len(here)
                - sum(ill == v for _, ill in overall) / len(overall)
            )
            for v in range(3)
        )
        highest = max(highest, distance / 2)
    assert skewness(table).details["highest"] == pytest.approx(highest)


@seeds
def test_households_have_members_not_rows(seed):
    table = drawn(seed)
    homes = {who: who % 3 for who in table.frame["who"].unique()}
    named = table.frame.with_columns(
        pl.col("who").map_elements(homes.get, return_dtype=pl.Int64).alias("home")
    )
    declared = Table(named, ROLES.replacing(household="home"))
    risks = of_persons(table, individual_risk(table, sampling_fraction=0.25).per_record)
    expected = {}
    for home in set(homes.values()):
        members = [risks[who] for who in homes if homes[who] == home]
        expected[home] = 1 - np.prod([1 - risk for risk in members])
    found = household_risk(declared, sampling_fraction=0.25)
    by_option = household_risk(Table(named, ROLES), household="home", sampling_fraction=0.25)
    assert found.value == pytest.approx(mean(expected[homes[who]] for who in homes))
    assert by_option.to_dict() == found.to_dict()
    with pytest.raises(InputError, match="household"):
        household_risk(table, sampling_fraction=0.25)


# -- attacks


def test_one_row_of_each_person_is_known():
    table = Table(
        pl.DataFrame({"who": np.repeat(np.arange(50), 4), "x": range(200)}), Roles(unit="who")
    )
    rows = drawn_rows(table, 20)
    assert len(set(table.persons[rows].tolist())) == len(rows) == 20
    everybody = drawn_rows(table, 1000)
    assert table.persons[everybody].tolist() == list(range(50))
    turned = table.reorder(np.arange(200)[::-1].copy())
    assert sorted(turned.row_key[drawn_rows(turned, 20)]) == sorted(table.row_key[rows])
    assert len(set((everybody % 4).tolist())) > 1  # not always the first
    others = drawn_rows(table, 20, random_state=1)
    assert rows.tolist() != others.tolist()


@pytest.mark.parametrize("linkage", [distance_linkage, probabilistic_linkage, similarity_linkage])
def test_any_record_of_the_person_is_the_right_one(linkage):
    """Two persons who share a city: a link is right by the share of its records."""
    frame = pl.DataFrame({"who": [1, 1, 1, 2, 3, 3], "city": ["x", "x", "x", "x", "y", "y"]})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    found = linkage(table, table.drop(["who"]))
    chances = found.per_record[~np.isnan(found.per_record)]
    assert sorted(chances.tolist()) == [0.25, 0.75, 1.0]
    assert found.value == pytest.approx(2 / 3)
    assert found.baseline == pytest.approx(1 / 3)
    assert found.details["persons"] == 3


def test_a_person_without_the_known_record_is_found_by_another_one():
    frame = pl.DataFrame({"who": [1, 1, 2, 2], "city": ["x", "x", "y", "y"]})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    for gone in range(4):
        masked = table.keep(np.arange(4) != gone)
        assert distance_linkage(table, masked).value == 1.0
    masked = table.keep(np.array([True, True, False, False]))
    assert distance_linkage(table, masked).details["released_persons"] == 1


def test_the_bound_is_no_smaller_than_what_a_link_achieves():
    """Four of five records of a class belong to one person: they hide that person from nobody."""
    frame = pl.DataFrame({"who": [1, 1, 1, 1, 2], "city": ["x"] * 5})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    who = intruder_of(table, table, known=None, sample=10, random_state=None)
    assert bound_of(who) is None
    even = table.keep(np.array([True, False, False, False, True]))
    assert bound_of(intruder_of(even, even, known=None, sample=9, random_state=None)).k == 2


def swapped(groups, source, who):
    table = Table(
        pl.DataFrame({"who": who, "city": range(len(who))}),
        Roles(quasi_identifiers=["city"], unit="who"),
    )
    exchange = Exchange(("city",), np.array(groups, np.int32), np.array(source), "key")
    return table.with_exchange(exchange)


def test_a_swap_hides_a_person_by_the_records_of_others():
    masked = swapped([0, 0, 0, 0, 1, 1], [1, 0, 3, 2, 5, 4], [1, 1, 2, 3, 4, 4])
    assert swapped_crowds(masked, ["city"]).tolist() == [2, 2, 4, 4, 1, 1]
    found = own_values(masked, masked.exchanges)
    assert found.value == pytest.approx(4 / 6)  # a value of the person's other record is their own
    assert found.baseline == pytest.approx((0.5 + 0.5 + 0.25 + 0.25 + 1 + 1) / 6)


def test_what_all_persons_of_a_swapped_group_have_is_disclosed():
    frame = pl.DataFrame({"who": [1, 1, 2, 3, 4], "ill": [5, 6, 5, 7, 8]})
    table = Table(frame, Roles(sensitive=["ill"], unit="who"))
    groups, source = np.array([0, 0, 0, 1, 1], np.int32), np.array([2, 0, 1, 3, 4])
    carried = table.with_cells_of({"ill": source})
    masked = carried.with_exchange(Exchange(("ill",), groups, source, "key"))
    assert group_disclosure(masked, "ill").per_record.tolist() == [1, 1, 1, 0, 0]
    assert group_disclosure(masked, "ill").value == 0.5


@seeds
def test_singling_out_is_of_one_person(seed):
    table = drawn(seed)
    crowds = persons_by(table, "a", "b")
    alone = [len(crowds[row]) == 1 for row in table.frame.select("a", "b").iter_rows()]
    found = singling_out(table, table.drop(["who"]))
    assert found.details["success"] == pytest.approx(mean(alone))
    assert found.details["isolated"] == found.details["isolated_by_own_record"] == sum(alone)


def test_singling_out_by_one_value():
    frame = pl.DataFrame({"who": [1, 1, 2, 3, 3], "city": ["x", "x", "y", "y", "z"]})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    found = singling_out(table, table.drop(["who"]), mode="univariate")
    assert found.details["isolated_by_own_record"] == 2  # x and z, each of one person


@pytest.mark.parametrize("attack", ["model", "distance", "probabilistic", "similarity"])
def test_any_secret_of_the_person_is_right(attack):
    """All look the same, so a guess is blind; everybody shares one secret."""
    who = np.repeat(np.arange(30), 2)
    secrets = np.where(np.arange(60) % 2, 0, 1 + who)
    frame = pl.DataFrame({"who": who, "city": ["x"] * 60, "ill": secrets.astype(str)})
    table = Table(frame, Roles(quasi_identifiers=["city"], sensitive=["ill"], unit="who"))
    found = attribute_inference(table, table.drop(["who"]), attack=attack)
    assert found.baseline == 1.0
    if attack == "model":
        assert found.value == 1.0
    else:
        assert found.value == pytest.approx(0.5 + 0.5 / 30)


def test_control_persons_are_others():
    frame = pl.DataFrame({"who": [1, 1, 2, 3], "city": ["x", "x", "y", "z"]})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    inside, outside = table.keep(np.arange(4) < 1), table.keep(np.arange(4) > 0)
    with pytest.raises(InputError, match="unit"):
        membership_inference(inside, inside, control=outside)
    found = membership_inference(
        table.keep(np.arange(4) < 2), table, control=table.keep(np.arange(4) > 1)
    )
    assert found.details["persons"] == 1
    assert found.details["control"] == 2


def test_rows_of_a_person_are_not_as_many_trials():
    """Twenty persons whose rows are all found or all missed: no more certain than twenty trials."""
    who, visit = np.repeat(np.arange(40), 25), np.tile(np.arange(25), 40)
    alone, shared = who * 25 + visit, 1000 + who // 2 * 25 + visit
    frame = pl.DataFrame({"who": who, "city": np.where(who < 20, alone, shared)})
    widths = []
    for unit in ((), "who"):
        table = Table(frame, Roles(quasi_identifiers=["city"], unit=unit))
        found = singling_out(table, table)
        assert found.details["success"] == 0.5
        low, high = found.details["intervals"]["success"]
        widths.append(high - low)
    assert widths[0] < 0.1
    assert widths[1] > 0.25


def test_unchanged_records_are_of_persons():
    frame = pl.DataFrame({"who": [1, 1, 2], "city": ["x", "y", "z"]})
    table = Table(frame, Roles(quasi_identifiers=["city"], unit="who"))
    masked = table.blank({"city": np.array([True, False, True])})
    assert unchanged_records(table, masked).value == 0.5


def test_intersections_follow_persons():
    """Both rows of a person in one class do not make a crowd of two."""
    frame = pl.DataFrame(
        {"who": [1, 1, 2, 3], "a": [0, 0, 1, 1], "b": [0] * 4, "ill": [5, 6, 5, 6]}
    )
    table = Table(frame, ROLES)
    found = intersection([table, table])
    assert found.details["persons"] == 3
    assert found.details["alone"] == pytest.approx(1 / 3)
    assert found.value == pytest.approx(1 / 3)
    values = intersection([table, table], attack="values")
    assert values.value == pytest.approx(1 / 3)  # both values of the first person are certain


# -- samples


def certainties(original, masked, coarse):
    """f/F of each released row, counted in persons."""
    before, after = {}, {}
    for found, table in ((before, original), (after, masked)):
        for row in table.frame.iter_rows(named=True):
            found.setdefault(coarse(row), set()).add(row["who"])
    rows = masked.frame.iter_rows(named=True)
    return [len(after[key]) / len(before[key]) for key in map(coarse, rows)]


@seeds
def test_certainty_counts_persons(seed):
    table = drawn(seed)
    kept = np.random.default_rng(seed).random(len(table)) < 0.6
    kept[0] = True
    sample = table.keep(kept)
    shares = certainties(table, sample, lambda row: (row["a"], row["b"]))
    found = certainty(table, sample.drop(["who"]))
    assert found.per_record == pytest.approx(shares)
    assert found.details["mean"] == pytest.approx(mean(of_persons(sample, shares).values()))


@seeds
def test_certainty_of_classes_that_were_formed_first(seed):
    """The sample has its classes on record, or they are reconstructed."""
    table = drawn(seed).with_roles(ROLES.replacing(quasi_identifiers=["a"]))
    kept = np.random.default_rng(seed).random(len(table)) < 0.6
    kept[0] = True
    coarse = Hierarchy.intervals(2).generalize(table, "a", 1)
    for masked in (coarse, coarse.with_sampling(Sampling.of(coarse))):
        sample = masked.keep(kept)
        shares = certainties(coarse, sample, lambda row: row["a"])
        found = certainty(table, sample.drop(["who"]))
        if found.details["unplaced"] == 0:
            assert found.per_record == pytest.approx(shares)
        assert (found.per_record >= np.array(shares) - 1e-12).all()


def test_covered_people_are_never_too_many():
    """Overlapping boxes: a person with rows in many classes is not many people."""
    frame = pl.DataFrame({"who": [1, 1, 1, 1, 2, 3, 3, 4], "age": [1, 2, 3, 4, 2, 3, 9, 9]})
    table = Table(frame, Roles(quasi_identifiers=["age"], unit="who"))
    masked = table.with_labels(
        "age", ["[1, 4]", "[2, 3]", "[9, 9]"], np.array([0, 0, 0, 0, 1, 1, 2, 2])
    )
    sample = masked.keep(np.array([True, True, True, True, True, False, True, False]))
    found = certainty(table, sample.drop(["who"]))
    true = [1 / 3] * 4 + [1 / 3] + [1 / 2]  # three persons are in both of the first two boxes
    assert (found.per_record >= np.array(true) - 1e-12).all()
    assert found.per_record.tolist() == [0.5] * 5 + [1.0]  # a row is a share of its person


@seeds
def test_journalist_and_population_count_persons(seed):
    everyone = drawn(seed)
    kept = np.random.default_rng(seed).random(len(everyone)) < 0.5
    kept[0] = True
    sample = everyone.keep(kept)
    crowds = persons_by(everyone, "a", "b")
    risks = [1 / len(crowds[row]) for row in sample.frame.select("a", "b").iter_rows()]
    found = journalist_risk(sample, population=everyone)
    assert found.per_record == pytest.approx(risks)
    alone = population_uniqueness(sample, population=everyone)
    assert alone.value == pytest.approx(uniqueness(everyone).value)
    assert journalist_risk(sample, population=everyone, missing="wildcard").value <= 1
    gappy = drawn(seed, gaps=True)
    assert journalist_risk(gappy, population=gappy, missing="wildcard").value <= 1


# -- the nearest released record


def ailing(values, **more):
    frame = pl.DataFrame({"who": [1, 1, 2, 2], "city": ["x", "x", "y", "y"], "ill": values})
    roles = Roles(quasi_identifiers=["city"], sensitive=["ill"], unit="who")
    return Table(frame.with_columns(**more), roles)


def test_a_nearest_record_of_the_person_tells_a_secret_of_the_person():
    for values in (["a", "b", "c", "d"], [1.0, 50.0, 99.0, 148.0]):
        table = ailing(values)
        found = inference(table, table.drop(["who"]))
        rates = found.details["success"], found.details["blind"]
        # for numbers, the likelier of two secrets counts, which is a half
        assert rates == ((1.0, 0.5) if isinstance(values[0], str) else (0.5, 0.5))
        assert found.details["persons"] == 2
    rows = Table(table.frame.drop("who").with_columns(ill=pl.Series(["a", "b", "c", "d"])),
                 Roles(quasi_identifiers=["city"], sensitive=["ill"]))  # fmt: skip
    assert inference(rows, rows).details["success"] == 0.5


def test_nobody_is_a_control_of_oneself():
    table = ailing(["a", "b", "c", "d"])
    same, other = ailing(["e", "f", "g", "h"]), ailing(["e", "f", "g", "h"], who=pl.col("who") + 9)
    for attack in (inference, singling_out):
        with pytest.raises(InputError, match="unit"):
            attack(table, table, control=same)
        assert "control" in attack(table, table, control=other).details
