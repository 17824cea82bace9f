"""Records with missing values are near everybody, and the measurement says so."""

from __future__ import annotations

import polars as pl
import pytest

from shoal import Roles, Table
from shoal.risk import distance_linkage


def people(cities):
    frame = pl.DataFrame({"age": [20, 30, 40, 50], "city": cities})
    return Table(frame, Roles(quasi_identifiers=["age", "city"]))


def test_a_gap_ties_with_the_right_record_and_a_warning_counts_it():
    frame = pl.DataFrame({"age": [20, 30, None], "city": ["Bern", "Bern", "Bern"]})
    table = Table(frame, Roles(quasi_identifiers=["age", "city"]))
    found = distance_linkage(table, table)
    assert found.value == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    assert any(said.startswith("In 1 of 3 released records") for said in found.warnings)


def test_without_gaps_in_what_is_known_nothing_is_said():
    table = people(list("abcd"))
    assert distance_linkage(table, table).warnings == ()
    table = people(["a", None, "c", "d"])
    assert distance_linkage(table, table, known=["age"]).warnings == ()
    assert "In 1 of 4" in distance_linkage(table, table).warnings[0]
