"""Methods that form classes and groups reach k persons, counted again in plain Python."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal import Roles, Table
from shoal.errors import InputError, NothingLeftWarning, ParameterError, RequirementNotMet

QUASI = ["age", "zip", "sex"]


def visits(persons=60, most=5, seed=7):
    """Several rows of each person, whose age grows and whose diagnosis changes."""
    draw = np.random.default_rng(seed)
    times = draw.integers(1, most + 1, persons)
    who = np.repeat(np.arange(persons), times)
    age = np.repeat(draw.integers(20, 80, persons), times) + np.arange(len(who)) % 3
    frame = pl.DataFrame(
        {
            "pid": who,
            "age": age,
            "zip": np.repeat(draw.integers(0, 12, persons), times),
            "sex": np.repeat(draw.choice(["f", "m"], persons), times),
            "ill": draw.choice(["a", "b", "c", "d", "e"], len(who)),
        }
    )
    return Table(frame, Roles(unit="pid", quasi_identifiers=QUASI, sensitive=["ill"]))


def classes(masked, quasi=QUASI):
    """For each class the persons, each with the values of ``ill`` that they have there."""
    found = defaultdict(lambda: defaultdict(set))
    ill = masked.frame["ill"].to_list()
    for row, (person, *key) in enumerate(
        zip(masked.persons.tolist(), *(masked.frame[q].to_list() for q in quasi), strict=True)
    ):
        found[tuple(key)][person].add(ill[row])
    return found


def counts(people):
    return Counter(value for values in people.values() for value in values)


def distinct(people):
    had = counts(people)
    return 1 if max(had.values()) == len(people) else len(had)


def entropy(people):
    if max(counts(people).values()) == len(people):
        return 1.0
    had, total = counts(people), sum(counts(people).values())
    return math.exp(-sum(n / total * math.log(n / total) for n in had.values()))


def apart(people, everybody):
    had, all_had = counts(people), counts(everybody)
    n, m = sum(had.values()), sum(all_had.values())
    moved = sum(max(0, had[v] / n - all_had[v] / m) for v in had)
    return max([moved, *(had[v] / len(people) - all_had[v] / len(everybody) for v in had)])


def everybody(table):
    people = defaultdict(set)
    for person, value in zip(table.persons.tolist(), table.frame["ill"].to_list(), strict=True):
        people[person].add(value)
    return people


ALGORITHMS = ["mondrian", "local", "full-domain"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("model", "level"),
    [
        (None, None),
        (sh.LDiversity(3), lambda people, _: distinct(people) >= 3),
        (sh.LDiversity(2.5, kind="entropy"), lambda people, _: entropy(people) >= 2.5 - 1e-9),
        (sh.TCloseness(0.3), lambda people, all_: apart(people, all_) <= 0.3 + 1e-9),
        (
            sh.AlphaKAnonymity(0.6, 3),
            lambda people, _: max(counts(people).values()) / len(people) <= 0.6 + 1e-9,
        ),
    ],
    ids=["k", "distinct", "entropy", "t", "alpha"],
)
def test_generalization_reaches_persons(algorithm, model, level):
    table = visits()
    masked = sh.Generalize(algorithm, k=4, models=model).fit_transform(table)
    assert len(masked) == len(table)
    for people in classes(masked).values():
        assert len(people) >= 4
        assert level is None or level(people, everybody(table))
    assert sh.KAnonymity(4).holds(masked)
    assert model is None or model.holds(masked)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_models_agree_with_plain_counting(algorithm):
    masked = sh.Generalize(algorithm, k=2).fit_transform(visits(seed=11))
    found, all_ = classes(masked), everybody(masked)
    assert sh.KAnonymity(2).level(masked) == min(map(len, found.values()))
    assert sh.LDiversity(2).level(masked) == min(map(distinct, found.values()))
    entropies = min(map(entropy, found.values()))
    assert sh.LDiversity(2, kind="entropy").level(masked) == pytest.approx(entropies)
    furthest = max(apart(people, all_) for people in found.values())
    assert sh.TCloseness(0.1).level(masked) == pytest.approx(furthest)
    largest = max(max(counts(p).values()) / len(p) for p in found.values())
    assert sh.AlphaKAnonymity(0.5, 2).level(masked) == pytest.approx(largest)
    risk = defaultdict(float)
    for people in found.values():
        for person in people:
            risk[person] = max(risk[person], 1 / len(people))
    assert sh.AverageRisk(0.5).level(masked) == pytest.approx(sum(risk.values()) / len(risk))


def test_a_model_holds_for_persons_as_for_rows_where_each_has_one():
    frame = visits().frame
    once = frame.with_columns(pid=pl.int_range(len(frame)))
    rows = Table(frame, Roles(quasi_identifiers=QUASI, sensitive=["ill"]))
    persons = Table(once, Roles(unit="pid", quasi_identifiers=QUASI, sensitive=["ill"]))
    for model in (sh.LDiversity(2), sh.TCloseness(0.3), sh.BetaLikeness(1), sh.AverageRisk(0.1)):
        assert model.level(rows) == pytest.approx(model.level(persons))
    for algorithm in ALGORITHMS:
        step = sh.Generalize(algorithm, k=5, models=sh.LDiversity(2))
        one, two = step.fit_transform(rows), step.fit_transform(persons.drop(["pid"]))
        assert one.frame.drop("pid").equals(two.frame)


def test_suppression_takes_persons_whole():
    table = visits(persons=200, seed=3)
    step = sh.Generalize("full-domain", k=5, suppression_limit=0.5)
    masked = step.fit_transform(table)
    assert 0 < len(masked) < len(table)
    before, after = Counter(table.persons.tolist()), Counter(masked.frame["pid"].to_list())
    assert all(after[person] == before[person] for person in after)
    assert min(len(people) for people in classes(masked).values()) >= 5
    loose = sh.Generalize("full-domain", k=5, suppression_limit=0.5, whole=False)
    assert len(loose.fit_transform(table)) >= len(masked)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_histories_are_reached_or_refused(algorithm):
    table = visits(persons=80, most=2)
    limit = {"suppression_limit": 0.3} if algorithm == "full-domain" else {}
    step = sh.Generalize(algorithm, models=sh.KAnonymity(3, of="histories"), **limit)
    masked = step.fit_transform(table)
    shared = defaultdict(Counter)
    for person, *key in zip(
        masked.persons.tolist(), *(masked.frame[q].to_list() for q in QUASI), strict=True
    ):
        shared[person][tuple(key)] += 1
    sizes = Counter(frozenset(events.items()) for events in shared.values())
    assert min(sizes.values()) >= 3
    lonely = pl.concat([table.frame, table.frame.filter(pl.col("pid") == 0)] * 3)
    alone = Table(lonely, table.roles)  # somebody with a number of rows that nobody else has
    if algorithm != "full-domain":
        with pytest.raises(RequirementNotMet, match="histories"):
            step.fit_transform(alone.drop(["pid"]))


@pytest.mark.parametrize("partition", ["mdav", "v-mdav", "mondrian", "mdav-random"])
def test_groups_have_k_persons(partition):
    table = visits(persons=40, most=4).drop(["pid", "sex"])
    masked = sh.Microaggregate(4, partition=partition).fit_transform(table)
    assert min(len(people) for people in classes(masked, ["age", "zip"]).values()) >= 4


def test_groups_are_diverse_in_persons():
    table = visits(persons=40, most=4).drop(["pid", "sex"])
    step = sh.Microaggregate(4, models=sh.LDiversity(3))
    masked = step.fit_transform(table)
    people = defaultdict(lambda: defaultdict(set))
    for group, person, value in zip(
        step.groups_.tolist(), table.persons.tolist(), table.frame["ill"], strict=True
    ):
        people[group][person].add(value)
    assert all(distinct(one) >= 3 and len(one) >= 4 for one in people.values())
    assert len(masked) == len(table)


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("partition", ["mdav", "individual-ranking"])
def test_nobody_has_more_than_a_kth_of_a_swapped_group(partition, informed):
    if partition == "individual-ranking" and not informed:
        pytest.skip("one column at a time")
    table = visits(persons=40, most=4).drop(["pid"])
    step = sh.Swap(4, partition=partition, informed=informed)
    step.fit_transform(table)
    pairs = Counter(zip(step.groups_.tolist(), table.persons.tolist(), strict=True))
    sizes = Counter(step.groups_.tolist())
    assert all(4 * rows <= sizes[group] for (group, _), rows in pairs.items())


def test_a_person_with_most_of_the_rows_cannot_be_swapped_away():
    frame = pl.DataFrame({"pid": [0] * 20 + [1, 2, 3, 4], "age": range(24)})
    table = Table(frame, Roles(unit="pid", quasi_identifiers=["age"]))
    with pytest.raises(RequirementNotMet, match="person"):
        sh.Swap(3).fit_transform(table)


def test_a_sample_takes_persons_whole():
    table = visits(persons=60, most=4)
    masked = sh.Sample(fraction=0.5).fit_transform(table)
    before, after = Counter(table.frame["pid"]), Counter(masked.frame["pid"])
    assert len(after) == 30
    assert all(after[person] == before[person] for person in after)
    with pytest.raises(InputError, match="whole"):
        sh.Sample(fraction=0.5, strategy="stratified").fit_transform(table)


def test_a_sample_takes_households_whole():
    frame = pl.DataFrame({"home": [n // 4 for n in range(80)], "age": [20 + n for n in range(80)]})
    table = Table(frame, Roles(household="home", quasi_identifiers=["age"]))
    masked = sh.Sample(fraction=0.5, strategy="bernoulli").fit_transform(table)
    assert set(Counter(masked.frame["home"]).values()) == {4}


def test_suppress_takes_persons_whole_until_nobody_is_short():
    # without Bo the class of 41 is too small for Cy
    frame = pl.DataFrame(
        {"who": ["Ann", "Bo", "Bo", "Cy", "Di", "Ed"], "age": [30, 99, 41, 41, 30, 30]}
    )
    table = Table(frame, Roles(unit="who", quasi_identifiers=["age"]))
    masked = sh.Suppress(min_class_size=2).fit_transform(table)
    assert masked.frame["who"].to_list() == ["Ann", "Di", "Ed"]
    rows = sh.Suppress(min_class_size=2, whole=False).fit_transform(table)
    assert rows.frame["who"].to_list() == ["Ann", "Bo", "Cy", "Di", "Ed"]
    older = sh.Suppress(where="age = 99", target="records").fit_transform(table)
    assert older.frame["who"].to_list() == ["Ann", "Cy", "Di", "Ed"]


def test_suppress_takes_out_rare_histories():
    frame = pl.DataFrame({"who": [1, 1, 2, 2, 3, 3, 4], "age": [30, 41, 30, 41, 30, 41, 30]})
    table = Table(frame, Roles(unit="who", quasi_identifiers=["age"]))
    masked = sh.Suppress(min_class_size=3, of="histories").fit_transform(table)
    assert set(masked.frame["who"]) == {1, 2, 3}
    with pytest.raises(ParameterError, match="whole"):
        sh.Suppress(min_class_size=3, of="histories", whole=False).fit_transform(table)


def test_what_everybody_has_is_no_secret():
    """Each of five persons has hiv and something else: no kind of diversity may hide that."""
    rows = [(f"a{p}", 30, v) for p in range(5) for v in ("hiv", f"x{p % 3}")]
    rows += [(f"b{p}", 40, v) for p in range(5) for v in ("flu", f"x{p % 3}")]
    frame = pl.DataFrame(rows, schema=["who", "age", "ill"], orient="row")
    table = Table(frame, Roles(unit="who", quasi_identifiers=["age"], sensitive=["ill"]))
    for kind, c in (("distinct", None), ("entropy", None), ("recursive", 2.0)):
        assert sh.LDiversity(2, kind=kind, c=c).level(table) <= 1
    # every value is as frequent as any other in both classes, but all of one class have hiv
    both = [(f"a{p}", 30, v) for p in range(4) for v in "wxyz"]
    both += [(f"b{p}", 40, "wxyz"[p]) for p in range(4)]
    frame = pl.DataFrame(both, schema=["who", "age", "ill"], orient="row")
    even = Table(frame, table.roles)
    assert sh.TCloseness(0.1).level(even) == pytest.approx(1 - 5 / 8)
    assert sh.BetaLikeness(0.1).level(even) == pytest.approx(8 / 5 - 1)
    assert sh.DeltaDisclosure(0.1).level(even) == pytest.approx(math.log(5 / 8 / (1 / 4)))


def test_the_mean_of_a_group_is_not_that_of_one_person_with_many_rows():
    frame = pl.DataFrame(
        {"pid": [0] * 100 + [1, 2, 3, 4, 5], "age": [37] * 100 + [30, 31, 44, 60, 61]}
    )
    table = Table(frame, Roles(unit="pid", quasi_identifiers=["age"]))
    masked = sh.Microaggregate(3).fit_transform(table)
    assert 37 not in masked.frame["age"].to_list()


@pytest.mark.parametrize("algorithm", ["local", "mondrian"])
def test_a_whole_partition_of_persons_is_found(algorithm):
    frame = pl.DataFrame({"pid": [1, 0, 4, 2, 2, 4, 3, 3], "a": [3, 4, 3, 4, 2, 4, 4, 3]})
    table = Table(frame, Roles(unit="pid", quasi_identifiers=["a"]))
    with pytest.warns(NothingLeftWarning):
        masked = sh.Generalize(algorithm, k=2, models=sh.AverageRisk(0.2)).fit_transform(table)
    assert sh.AverageRisk(0.2).holds(masked)


def test_differential_privacy_is_not_for_what_is_drawn_together():
    frame = pl.DataFrame({"age": [25] * 9 + [35] * 600, "home": [0] * 9 + list(range(1, 601))})
    table = Table(frame, Roles(quasi_identifiers=["age"], household="home"))
    with pytest.raises(InputError, match="household"):
        sh.DifferentialPrivacy(1.0, 1e-6).check(table)


def test_populations_are_counted_in_persons(tmp_path):
    pl.DataFrame({"pid": [1] * 10, "age": [30] * 10}).write_parquet(tmp_path / "pop.parquet")
    one = pl.DataFrame({"pid": [1, 1], "age": [30, 30]})
    table = Table(one, Roles(unit="pid", quasi_identifiers=["age"])).drop(["pid"])
    population = str(tmp_path / "pop.parquet")
    assert sh.KMap(2, population=population).level(table) == 1
    assert sh.DeltaPresence(0.2, population=population).level(table) == 1.0
