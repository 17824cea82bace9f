"""Models that speak of a population: k-map and δ-presence."""

from __future__ import annotations

import math
import os

import polars as pl
import pytest

from shoal import DeltaPresence, KMap, Plan, Roles, Round, Table, protect, verify
from shoal.errors import InputError, ParameterError, ReadError
from shoal.models import conditions_of, population_of

ROLES = Roles(quasi_identifiers=["x"])


def people(*values):
    return Table(pl.DataFrame({"x": list(values)}), ROLES)


EVERYONE = people(*"aaaa", *"bbb", *"cc")


def test_k_map_counts_people_and_not_records():
    model = KMap(3, population=EVERYONE)
    assert model.violations(people("a", "b", "b")).tolist() == [False] * 3
    assert model.level(people("a", "b", "b")) == 3
    assert model.violations(people("a", "c")).tolist() == [False, True]


def test_a_record_outside_the_population_is_no_safe_record():
    assert KMap(2, population=EVERYONE).violations(people("a", "z")).tolist() == [False, True]
    assert DeltaPresence(1, population=EVERYONE).violations(people("a", "z")).tolist() == [
        False,
        True,
    ]


def test_presence_is_bounded_from_above():
    model = DeltaPresence(0.5, population=EVERYONE)
    assert model.violations(people("a", "a", "b", "b")).tolist() == [False] * 2 + [True] * 2
    assert model.level(people("a", "a", "b", "b")) == pytest.approx(2 / 3)


def test_presence_is_bounded_from_below():
    table = people("a", "b", "b", "c")  # 1/4, 2/3, 1/2
    model = DeltaPresence(0.7, 0.3, population=EVERYONE)
    assert model.violations(table).tolist() == [True, False, False, False]
    assert model.level(table) == math.inf
    assert DeltaPresence(0.7, 0.25, population=EVERYONE).holds(table)


def test_a_class_that_is_not_in_the_table_is_surely_not_in_it():
    """No record shows it: that nobody of class c is in the table is known all the same."""
    table = people("a", "a", "b", "b")
    assert DeltaPresence(0.7, population=EVERYONE).holds(table)
    assert DeltaPresence(0.7, 0.1, population=EVERYONE).violations(table).all()


def test_a_population_by_path(tmp_path):
    path = tmp_path / "everyone.csv"
    path.write_text("x\na\na\nb\n")
    model = KMap(2, population=str(path))
    assert model.violations(people("a", "b")).tolist() == [False, True]
    path.write_text("x\na\na\nb\nb\n")
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    assert model.violations(people("a", "b")).tolist() == [False, False]
    with pytest.raises(ReadError):
        KMap(2, population=str(tmp_path / "nobody.csv")).level(people("a"))


def test_searches_get_one_population():
    models = [KMap(2, population=EVERYONE), DeltaPresence(0.5, population=EVERYONE)]
    assert population_of(models) is EVERYONE
    assert population_of([]) is None
    conditions, codes = conditions_of(models, people("a"))
    assert conditions.bounds.tolist() == [2, 0.5]
    assert len(codes) == 0
    with pytest.raises(InputError, match="different populations"):
        population_of([*models, KMap(2, population=people("a", "a"))])


def test_what_makes_no_sense():
    with pytest.raises(ParameterError, match="needs a 'population'"):
        DeltaPresence(0.5)
    with pytest.raises(ParameterError, match=r"at most delta_max = 0\.2"):
        DeltaPresence(0.2, 0.3, population=EVERYONE)
    with pytest.raises(ParameterError, match="a table or the path of its file"):
        KMap(2, population=7)
    with pytest.raises(InputError, match="at most 9"):
        KMap(10, population=EVERYONE).check(people("a"))


def test_the_population_is_masked_as_the_table_was(tmp_path):
    """Rounded like the release; only whoever protects can do that, so verify does not tell."""
    path = tmp_path / "everyone.csv"
    path.write_text("age\n" + "19\n" * 9 + "41\n" * 7)
    table = Table(pl.DataFrame({"age": [18, 21, 22, 39]}), Roles(quasi_identifiers=["age"]))
    model = KMap(7, population=str(path))
    release = protect(table, Plan([Round(base=20)], require=[model]))
    assert [claim.measured for claim in release.claims] == [7]
    release.save(tmp_path / "out")
    for folder in ("out", "out/public"):
        (check,) = verify(tmp_path / folder).claims
        assert check.status == "skipped"
        assert "masked as the release was" in check.detail
    assert "everyone" not in (tmp_path / "out" / "public" / "release.json").read_text()
