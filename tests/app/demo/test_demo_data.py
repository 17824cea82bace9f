"""The demo's table is the output of its generator, and its plan fits the table."""

from __future__ import annotations

import csv
import io
import tomllib

from shoal.app.demo import PATIENTS, PEOPLE, PLAN

from .make_people import COLUMNS, RECORDS, STAYS, make_people, patients_csv, people_csv


def test_the_files_are_what_the_generator_makes():
    assert PEOPLE.read_bytes() == people_csv()
    assert PATIENTS.read_bytes() == patients_csv()


def test_another_seed_makes_other_people():
    assert make_people(50, seed=1) != make_people(50, seed=2)


def test_the_table_is_worth_showing():
    people = list(csv.DictReader(io.StringIO(people_csv().decode())))
    assert len(people) == RECORDS
    assert len({person["email"] for person in people}) == RECORDS
    assert any(person["zip"].startswith("0") for person in people)
    assert all(len(person["zip"]) == 5 for person in people)
    gaps = {name for person in people for name in COLUMNS if not person[name]}
    assert gaps == {"marital", "height_cm", "hours_per_week", "income"}
    incomes = sorted(float(person["income"]) for person in people if person["income"])
    assert sum(incomes) / len(incomes) > incomes[len(incomes) // 2]  # skewed to the right


def test_the_plan_names_columns_of_its_table():
    plan = tomllib.loads(PLAN.read_text("utf-8"))
    assert plan["roles"].pop("unit") == "row"
    named = [name for columns in plan["roles"].values() for name in columns]
    assert sorted(named) == sorted(STAYS)
    assert {name for step in plan["steps"] for name in step.get("columns", [])} <= set(STAYS)
