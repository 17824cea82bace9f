"""What several releases of one table tell together, and JSON that every reader takes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Table, assess
from shoal.errors import InputError
from shoal.risk import intersection

HIERARCHIES = {"age": Hierarchy.intervals([40]), "sex": Hierarchy.suppression()}


@pytest.fixture
def table():
    frame = pl.DataFrame(
        {"age": [20, 50] * 8, "sex": [*"ffmm"] * 4, "ill": ["flu", "ok", "gout", "ok"] * 4}
    )
    return Table(frame, Roles(quasi_identifiers=["age", "sex"], sensitive=["ill"]))


def released(table, **levels):
    return Generalize(k=4, hierarchies=HIERARCHIES, levels=levels).fit_transform(table)


def test_earlier_releases_are_intersected_by_both_attacks(table):
    now, before = released(table, age=0, sex=1), released(table, age=2, sex=0)
    found = assess(now, original=table, earlier=[before], measures=["uniqueness"])
    for attack in ("records", "values"):
        expected = intersection([now, before], attack=attack, original=table)
        assert found.together[attack].to_dict() == expected.to_dict()
    assert found.together["records"].value == 1.0
    assert "together with earlier releases:" in str(found)
    assert json.loads(found.to_json())["together"]["records"]["baseline"] == 0.0
    assert "Together with earlier releases" in found.to_html()
    assert "Together with earlier releases" in found._repr_html_()
    assert assess(now, original=table, measures=["uniqueness"]).together == {}


def test_earlier_releases_that_cannot_be_followed(table):
    now = released(table, age=0, sex=1)
    for given, part in (
        ([Table(now.frame, now.roles)], "1 of the 1 earlier releases cannot be paired"),
        ([now.frame], "must be a list of shoal.Tables"),
        ("release", "must be a list of shoal.Tables"),
    ):
        with pytest.raises(InputError, match=part):
            assess(now, original=table, earlier=given)


def test_json_has_null_for_what_is_not_finite(table):
    found = assess(table, measures=["uniqueness"])
    odd = replace(found["uniqueness"], value=math.inf, details={"shares": [math.nan, 1.0]})
    facts = json.loads(
        replace(found, measurements={"uniqueness": odd}).to_json(),
        parse_constant=lambda word: pytest.fail(f"{word} is no JSON"),
    )
    assert facts["measurements"]["uniqueness"]["value"] is None
    assert facts["measurements"]["uniqueness"]["details"]["shares"] == [None, 1.0]
