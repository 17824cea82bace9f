"""A first plan: it runs as it is, says why, and what each k of it would cost."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import InputError
from shoal.workflow.advice._left import what_is_left

ROLES = sh.Roles(quasi_identifiers=["age", "zip", "born"], sensitive=["ill", "pay"])


def people(rows=400, **more):
    rng = np.random.default_rng(8)
    day = dt.date(1950, 1, 1)
    columns = {
        "age": rng.integers(20, 80, rows),
        "zip": [f"{n:05d}" for n in rng.integers(10000, 10900, rows)],
        "born": [day + dt.timedelta(days=int(n)) for n in rng.integers(0, 20000, rows)],
        "ill": rng.choice(["flu", "cold", "asthma", "gout", "none"], rows),
        "pay": rng.normal(3000, 500, rows).round(2),
    }
    return sh.Table(pl.DataFrame(columns | more), ROLES)


def test_it_runs_as_it_is_and_from_its_text():
    table, found = people(), sh.suggest_plan(people())
    assert found.plan.require == (sh.KAnonymity(5), sh.LDiversity(3))
    release = sh.protect(table, found.plan)
    assert [claim.holds for claim in release.claims] == [True, True]
    assert len(release.masked) == len(table)
    again = sh.Plan.from_toml(found.to_toml())
    assert again.require == found.plan.require
    assert again.roles == ROLES
    assert "removes nobody" in found._repr_html_()
    assert all(reason in " ".join(found.to_toml().split("\n# ")) for reason in ["removes nobody"])


def test_roles_are_suggested_where_the_table_has_none():
    found = sh.suggest_plan(sh.Table(people().frame.rename({"ill": "diagnosis"})))
    assert "diagnosis" in found.roles.sensitive
    assert found.roles.quasi_identifiers


@pytest.mark.parametrize(
    ("ill", "asked"),
    [
        (["flu"] * 400, []),  # nothing to tell apart
        (["flu", "cold"] * 200, [sh.LDiversity(2, column="ill")]),
        (["flu"] * 300 + ["a", "b", "c", "d"] * 25, [sh.LDiversity(2, column="ill")]),
    ],
)
def test_no_more_diversity_than_a_column_has(ill, asked):
    table = people(ill=ill)
    found = [m for m in sh.suggest_plan(table).plan.require if isinstance(m, sh.LDiversity)]
    assert [m for m in found if m.column == "ill"] == asked
    sh.protect(table, sh.suggest_plan(table).plan)


def test_a_small_table_has_a_small_crowd():
    found = sh.suggest_plan(people(3))
    assert found.k == 3
    assert "3 persons" in found.reasons["k"]
    with pytest.raises(InputError, match="2 records"):
        sh.suggest_plan(people(1))


def test_the_curve_of_k():
    points = sh.k_curve(people(), ks=[2, 5, 20, 1000])
    assert [point.k for point in points] == [2, 5, 20]  # no crowd of 1000
    assert all(a.risk > b.risk for a, b in itertools.pairwise(points))
    assert all(a.loss < b.loss for a, b in itertools.pairwise(points))
    assert isinstance(points, tuple)
    first, *others = points
    assert (len(points), points[0], points[1:]) == (3, first, tuple(others))
    assert points._repr_html_().count("<rect") == 6
    assert repr(points).startswith("KCurve: k = 2: ")
    with pytest.raises(InputError, match="has a k"):
        sh.k_curve(people(), sh.Plan([sh.Round(base=5, columns=["age"])]))


def test_what_is_left():
    table = people()
    hierarchies = {
        "age": sh.Hierarchy.intervals(10),
        "zip": sh.Hierarchy.prefixes([3]),
        "born": sh.Hierarchy.dates(["year"]),
    }
    masked = table
    for name, hierarchy in hierarchies.items():
        masked = hierarchy.generalize(masked, name, 1)
    masked = sh.Round(base=100, columns=["pay"]).fit_transform(masked)
    assert what_is_left(table, masked) == {
        "age": "ranges, half of them up to 10 wide",
        "zip": "3 of 5 digits",
        "born": "year",
        "ill": "unchanged",
        "pay": "changed in 100 % of the records",
    }
    several = ["2020-02", "2021-05", "2021-Q1", "2020", "2015-2019", "2010s"]
    for count, words in ((2, "month"), (3, "month to quarter"), (6, "month to decade")):
        places = np.arange(len(table)) % count
        mixed = table.with_labels("born", several, places.astype(np.uint8))
        assert what_is_left(table, mixed)["born"] == words
    whole = table.with_labels("zip", ["01067", "0106*"], (np.arange(len(table)) % 2).astype("u1"))
    assert what_is_left(table, whole)["zip"] == "4 to 5 of 5 digits"
    gone = sh.Hierarchy.suppression().generalize(table, "zip", 1).drop(["born"])
    left = what_is_left(table, gone)
    assert (left["zip"], left["born"]) == ("nothing left", "removed")
