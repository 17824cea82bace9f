"""What whoever knows the algorithm can undo, by enumerating all tables that it could have seen."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, LDiversity, Plan, Redraw, Roles, Table
from shoal.errors import NothingLeftWarning, RequirementNotMet

HOUSES = [1, 1, 2, 2, 2]
ILLNESSES = ["flu", "flu", "ok", "gout", "cold"]
STREET = {"house": Hierarchy.suppression()}


def table(illnesses, houses=HOUSES):
    frame = pl.DataFrame({"house": houses, "ill": illnesses})
    return Table(frame, Roles(quasi_identifiers=["house"], sensitive=["ill"]))


def released(step, illnesses):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        masked = step.fit_transform(table(illnesses)).frame
    return masked["house"].cast(pl.String).to_list(), tuple(sorted(illnesses))


def every_assignment():
    return sorted(set(itertools.permutations(ILLNESSES)))


def posterior(step, truth, person, illness):
    """The share of the tables with the same release in which a person has an illness."""
    seen = released(step, truth)
    possible = [one for one in every_assignment() if released(step, one) == seen]
    return sum(one[person] == illness for one in possible) / len(possible)


def test_a_search_that_looks_at_sensitive_values_gives_them_away():
    """Wong et al. (2007): asked for two illnesses per class, certain of one."""
    step = Generalize(k=2, models=LDiversity(2), hierarchies=STREET)
    assert released(step, ILLNESSES)[0] == ["*"] * 5
    assert posterior(step, ILLNESSES, person=0, illness="flu") == 1.0


def test_a_blind_search_tells_nothing_of_sensitive_values():
    """Which classes are formed is the same for every assignment of the illnesses."""
    step = Generalize(k=2, hierarchies=STREET)
    assert len({tuple(released(step, one)[0]) for one in every_assignment()}) == 1


def test_redraw_then_makes_every_class_diverse():
    steps = [Generalize(k=2, hierarchies=STREET), Redraw(LDiversity(2))]
    for one in every_assignment():
        masked = Plan(steps).apply(table(one))[0]
        assert LDiversity(2).holds(masked)
        assert masked.frame["house"].to_list() == HOUSES


def test_only_classes_that_fail_are_redrawn():
    step = Redraw(LDiversity(2))
    given = table(["flu", "flu", "ok", "gout", "cold"])
    masked = step.fit_transform(given)
    assert step.redrawn_ == 2
    assert masked.frame["ill"][2:].to_list() == ["ok", "gout", "cold"]
    assert set(masked.frame["ill"][:2]) <= {"ok", "gout", "cold"}
    fine = table(["flu", "ok", "ok", "gout", "cold"])
    assert step.fit_transform(fine).frame.equals(fine.frame)


def test_redrawn_values_are_those_of_classes_chosen_at_random():
    """One failing pair beside two classes: each person gets a value of the one or of the other."""
    houses = [1, 1, 2, 2, 3, 3]
    ills = ["flu", "flu", "a", "b", "c", "d"]
    drawn = Counter(
        frozenset(Redraw(LDiversity(2)).fit_transform(table(ills, houses)).frame["ill"][:2])
        for _ in range(120)
    )
    assert set(drawn) == {frozenset(pair) for pair in itertools.combinations("abcd", 2)}


def test_redrawn_values_come_from_near_classes():
    """A class of young people gets the values of young people, however many classes there are."""
    ages = np.repeat(np.arange(20, 80), 4)
    ills = [f"{one // 10}{'ab'[place % 2]}" for place, one in enumerate(ages)]
    poor = np.isin(ages, [22, 75])
    ills = np.where(poor, "x", ills)
    frame = pl.DataFrame({"age": [f"[{one}, {one + 1})" for one in ages], "ill": ills})
    given = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    masked = Redraw(LDiversity(2)).fit_transform(given).frame["ill"].to_numpy()
    assert set(masked[ages == 22]) == {"2a", "2b"}
    assert set(masked[ages == 75]) == {"7a", "7b"}
    assert (masked[~poor] == ills[~poor]).all()


@pytest.mark.parametrize("illnesses", [["flu"] * 5, ["flu", "flu", "ok", "ok", "ok"]])
def test_nothing_to_draw_from(illnesses):
    with pytest.raises(RequirementNotMet, match="nothing to draw from"):
        Redraw(LDiversity(2)).fit_transform(table(illnesses))


def test_records_of_several_sensitive_columns_stay_together():
    frame = pl.DataFrame(
        {"house": [1, 1, 2, 2, 2], "ill": ["x", "x", "a", "b", "c"], "cost": [9, 9, 1, 2, 3]}
    )
    roles = Roles(quasi_identifiers=["house"], sensitive=["ill", "cost"])
    masked = Redraw(LDiversity(2)).fit_transform(Table(frame, roles)).frame
    assert set(masked.select("ill", "cost").rows()) <= {("a", 1), ("b", 2), ("c", 3)}


def test_downcoding():
    """Cohen (2022): two people released as [20, 40) are one in each half of it."""
    tens = {"age": Hierarchy.intervals([10, 20])}
    halves = set()
    for ages in itertools.product(range(20, 40, 3), repeat=2):
        people = Table(pl.DataFrame({"age": ages}), Roles(quasi_identifiers=["age"]))
        masked = Generalize("local", k=2, hierarchies=tens, seconds=0.01).fit_transform(people)
        if set(masked.frame["age"].cast(pl.String)) == {"[20, 40)"}:
            halves.add(tuple(sorted(age < 30 for age in ages)))
    assert halves == {(False, True)}


def test_given_levels_do_not_depend_on_the_data():
    tens = {"age": Hierarchy.intervals([10, 20])}
    step = Generalize(k=2, hierarchies=tens, levels={"age": 1}, suppression_limit=1.0)
    for ages in ([20, 21, 25], [20, 35, 36], [20, 21, 38]):
        people = Table(pl.DataFrame({"age": ages}), Roles(quasi_identifiers=["age"]))
        assert step.fit_transform(people).frame["age"].str.len_chars().unique().to_list() == [8]
        assert step.levels_ == {"age": 1}
