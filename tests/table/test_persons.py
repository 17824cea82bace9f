"""Whose row it is: persons with several rows, households, and histories."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table, suggest_roles
from shoal.errors import RolesError

STAYS = pl.DataFrame(
    {
        "patient": ["Ann", "Ann", "Ann", "Bo", "Bo", "Cy", "Di"],
        "home": [1, 1, 1, 1, 1, 2, None],
        "age": [30, 30, 41, 30, 41, 41, 41],
        "sex": ["f", None, "f", "f", "f", "f", None],
        "w": [4.0, 2.0, 3.0, 5.0, 1.0, 1.0, 1.0],
    }
)


def stays(**roles):
    return Table(STAYS, Roles(unit="patient", quasi_identifiers=["age"], **roles))


def test_classes_count_persons():
    table = stays()
    assert table.classes.sizes.tolist() == [2, 4]
    assert table.classes.rows.tolist() == [3, 4]
    assert (table.classes.k, table.person_count) == (2, 4)


def test_persons_stay_known_after_their_column_is_gone():
    table = stays().drop(["patient"])
    assert table.columns == ["home", "age", "sex", "w"]
    some = table.keep(np.array([True, True, False, False, True, True, True]))
    assert some.classes.sizes.tolist() == [1, 3]
    assert some.reorder(np.array([4, 3, 2, 1, 0])).classes.sizes.tolist() == [3, 1]
    assert some.with_roles(Roles(quasi_identifiers=["age"])).classes.k == 1
    assert some.with_roles(Roles(unit="row", quasi_identifiers=["age"])).classes.k == 2


def test_several_columns_can_name_a_person():
    frame = pl.DataFrame({"ward": [1, 1, 2, 2], "bed": [1, 1, 1, 2], "age": [30] * 4})
    table = Table(frame, Roles(unit=["ward", "bed"], quasi_identifiers=["age"]))
    assert table.classes.sizes.tolist() == [3]


def test_sizes_are_counted_again_by_another_way():
    table = stays()
    counted = table.frame.group_by("age").agg(pl.col("patient").n_unique())["patient"]
    assert sorted(table.classes.sizes.tolist()) == sorted(counted.to_list())


def test_wildcards_never_count_a_person_twice():
    table = Table(STAYS, Roles(unit="patient", quasi_identifiers=["age", "sex"]))
    agree = [
        {
            q
            for q, b, t in zip(STAYS["patient"], STAYS["age"], STAYS["sex"], strict=True)
            if a == b and (s is None or t is None or s == t)
        }
        for a, s in zip(STAYS["age"], STAYS["sex"], strict=True)
    ]
    crowds = table.class_sizes("wildcard").tolist()
    assert all(
        own <= crowd <= len(people)
        for own, crowd, people in zip(table.class_sizes().tolist(), crowds, agree, strict=True)
    )


def test_weights_of_a_person_count_once():
    table = stays(weight="w")
    # of Ann and Bo the smaller weight: 2 + 5, and 3 + 1 + 1 + 1
    assert sorted(set(table.class_weights().tolist())) == [6.0, 7.0]


def test_a_population_is_counted_in_persons():
    sample = Table(pl.DataFrame({"age": [30, 41]}), Roles(quasi_identifiers=["age"]))
    assert sample.class_sizes_in(stays()).tolist() == [2, 4]


def history(table):
    """Of each person how many share the history, by plain Python."""
    whose = defaultdict(Counter)
    for person, *values in zip(STAYS["patient"], STAYS["age"], strict=True):
        whose[person][tuple(values)] += 1
    shared = Counter(frozenset(events.items()) for events in whose.values())
    return [shared[frozenset(whose[person].items())] for person in STAYS["patient"]]


def test_histories_are_composite_records():
    table = stays()
    assert table.histories.record_sizes[table.persons].tolist() == history(table)
    assert table.histories.k == 1  # Ann has two rows of 30; Bo has one of each


def test_histories_agree_with_plain_counting_on_many_tables():
    draw = np.random.default_rng(20261116)
    for _ in range(30):
        rows = int(draw.integers(1, 60))
        persons, ages = draw.integers(0, 12, rows), draw.integers(0, 4, rows)
        frame = pl.DataFrame({"who": persons, "age": ages})
        table = Table(frame, Roles(unit="who", quasi_identifiers=["age"]))
        whose = defaultdict(list)
        for person, age in zip(persons.tolist(), ages.tolist(), strict=True):
            whose[person].append(age)
        shared = Counter(tuple(sorted(events)) for events in whose.values())
        expected = [shared[tuple(sorted(whose[p]))] for p in persons.tolist()]
        assert table.histories.record_sizes[table.persons].tolist() == expected


def test_what_goes_together():
    assert stays().together.tolist() == [0, 0, 0, 1, 1, 2, 3]
    homes = Table(STAYS, Roles(household="home", quasi_identifiers=["age"])).together
    assert len(set(homes.tolist())) == 3  # who has no household lives alone
    both = stays(household="home")
    assert both.whole(np.arange(7) == 0).tolist() == [True] * 5 + [False] * 2


def test_a_person_with_two_homes_joins_them():
    frame = pl.DataFrame({"who": [1, 1, 2, 3], "home": [7, 8, 8, 9], "age": [1] * 4})
    table = Table(frame, Roles(unit="who", household="home", quasi_identifiers=["age"]))
    assert table.whole(np.array([False, False, True, False])).tolist() == [True] * 3 + [False]


def test_a_row_without_an_owner_is_refused():
    frame = pl.DataFrame({"who": [1, None, 2], "age": [30, 30, 41]})
    with pytest.raises(RolesError, match="unit"):
        Table(frame, Roles(unit="who", quasi_identifiers=["age"]))


@pytest.mark.parametrize("unit", ["patient", ["patient"], ["patient", "home"], "row", ["row"]])
def test_roles_with_a_unit_round_trip(unit):
    roles = Roles(identifiers=["patient"], unit=unit, household="home" if unit == "row" else ())
    assert Roles.from_dict(roles.to_dict()) == roles


def test_a_unit_is_withheld_like_an_identifier():
    roles = Roles(identifiers=["name"], unit="pid", household=["hid"])
    assert roles.withheld == ("name", "pid", "hid")
    assert roles.without(["pid"]).unit == ()
    with pytest.raises(RolesError, match="two roles"):
        Roles(quasi_identifiers=["pid"], unit="pid")


class TestSuggestion:
    KEYS = pl.DataFrame(
        {
            "patient_id": [f"P{n // 5:05}" for n in range(1000)],
            "ward_id": [f"W{n % 60:03}" for n in range(1000)],
            "household_id": [n // 20 for n in range(1000)],
            "age": [20 + n % 60 for n in range(1000)],
        }
    )

    def test_the_key_with_most_values_is_the_unit(self):
        roles = suggest_roles(self.KEYS).roles
        assert (roles.unit, roles.household) == (("patient_id",), ("household_id",))

    def test_a_key_that_never_repeats_is_none(self):
        frame = pl.DataFrame({"patient_id": [f"P{n:05}" for n in range(99)], "age": [3] * 99})
        assert suggest_roles(frame).roles.unit == ()

    def test_the_note_has_both_numbers(self):
        assert any("1,000" in note and "200" in note for note in suggest_roles(self.KEYS).notes)


class TestRepeatingOwners:
    def repeating(self, frame, **roles):
        return Table(frame, Roles(quasi_identifiers=["age"], **roles)).repeating_owners()

    def test_people_of_one_name_are_told_apart_by_another_identifier(self):
        frame = pl.DataFrame(
            {
                "name": ["Ann Lee", "Ann Lee", "Bo Ray"],
                "email": ["a@example.org", "b@example.org", "c@example.org"],
                "age": [30, 41, 52],
            }
        )
        assert self.repeating(frame, identifiers=["name", "email"]) == {}
        assert self.repeating(frame, identifiers=["name"], insensitive=["email"]) == {("name",): 2}

    def test_a_number_of_visits_does_not_tell_patients_apart(self):
        frame = pl.DataFrame({"patient_id": [1, 1, 2], "visit_id": [7, 8, 9], "age": [3, 3, 4]})
        found = self.repeating(frame, identifiers=["patient_id", "visit_id"])
        assert found == {("patient_id",): 2}

    def test_a_key_that_may_leave_is_seen(self):
        frame = pl.DataFrame({"customer_id": [f"C{n // 2:06}" for n in range(200)], "age": 3})
        assert self.repeating(frame, insensitive=["customer_id"]) == {("customer_id",): 100}

    @pytest.mark.parametrize("role", [None, "insensitive", "sensitive", "household"])
    @pytest.mark.parametrize("rows", [2, 5, 20])
    def test_the_key_of_a_person_is_seen_whatever_its_role(self, role, rows):
        frame = pl.DataFrame({"patient_id": [f"PAT-{n // rows}" for n in range(200)], "age": 3})
        roles = {} if role is None else {role: ["patient_id"]}
        assert self.repeating(frame, **roles) == {("patient_id",): 200 // rows}

    def test_a_column_called_person_with_many_codes_is_a_key(self):
        frame = pl.DataFrame({"person": [f"P{n // 2}" for n in range(24)], "age": 3})
        assert self.repeating(frame) == {("person",): 12}
        assert self.repeating(frame.select(pl.col("person").str.slice(1).cast(int), "age"))

    @pytest.mark.parametrize("values", [["yes", "no", "no"], [1, 2, 2], ["Ann", "Bo", "Bo"]])
    def test_a_column_called_member_with_few_answers_is_no_key(self, values):
        assert self.repeating(pl.DataFrame({"member": values * 9, "age": 3})) == {}

    def test_a_unit_finer_than_persons_is_seen(self):
        frame = pl.DataFrame({"patient_id": [1, 1, 2], "visit": [7, 8, 9], "age": [3, 3, 4]})
        assert self.repeating(frame, identifiers=["patient_id"], unit="visit") == {
            ("patient_id",): 2
        }

    def test_people_of_one_name_with_a_number_each(self):
        frame = pl.DataFrame({"patient_id": [1, 2], "name": ["Ann Lee"] * 2, "age": [3, 3]})
        assert self.repeating(frame, identifiers=["patient_id", "name"]) == {}

    @pytest.mark.parametrize("unit", ["patient_id", "row"])
    def test_a_declared_unit_settles_it(self, unit):
        frame = pl.DataFrame({"patient_id": [1, 1, 2], "age": [3, 3, 4]})
        assert self.repeating(frame, identifiers=["patient_id"], unit=unit) == {}


def test_a_column_called_row_is_not_taken_for_each_row():
    frame = pl.DataFrame({"row": [7, 7, 8], "age": [30] * 3})
    with pytest.raises(RolesError, match="row"):
        Table(frame, Roles(unit="row", quasi_identifiers=["age"]))
    assert Table(frame, Roles(unit=["row"], quasi_identifiers=["age"])).person_count == 2


def test_a_person_without_a_household_is_one_household():
    frame = pl.DataFrame({"who": [1, 1, 2], "home": [None, None, 5], "age": [1] * 3})
    table = Table(frame, Roles(unit="who", household="home", quasi_identifiers=["age"]))
    assert len(set(table.households.tolist())) == 2


def test_pairing_keeps_whose_rows_they_are():
    masked = stays()
    assert masked.paired(Table(STAYS)).classes.k == masked.classes.k
