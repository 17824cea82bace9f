"""Labels of linked records, for each linkage, compared with plain Python over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Roles, Round, Table
from shoal.risk import distance_linkage, probabilistic_linkage, similarity_linkage
from shoal.risk.attacks._attribute_inference import _LINKAGES
from shoal.risk.linkage._intruder import intruder_of

MEASURES = {
    "distance": distance_linkage,
    "probabilistic": probabilistic_linkage,
    "similarity": similarity_linkage,
}


@pytest.fixture(scope="module")
def tables():
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "x": draw.integers(0, 12, 300),
            "c": draw.choice(list("abc"), 300),
            "secret": draw.integers(0, 4, 300),
        }
    )
    original = Table(frame, Roles(quasi_identifiers=["x", "c"], sensitive=["secret"]))
    masked = Round(base=3, columns=["x"]).fit_transform(original)
    order = draw.permutation(300)[:220]
    return original, masked.reorder(np.sort(order)).reorder(draw.permutation(220))


def label_chances(intruder, person_labels, record_labels, linkage="distance", **options):
    secrets = replace(intruder, secrets=(person_labels, record_labels))
    return _LINKAGES[linkage](secrets, **options).chances


def whom(tables, sample=1000):
    return intruder_of(*tables, known=None, sample=sample, random_state=None)


def secrets(intruder):
    before = intruder.original.frame["secret"].to_numpy()[intruder.persons]
    return before, intruder.masked.frame["secret"].to_numpy()


@pytest.mark.parametrize("linkage", MEASURES)
def test_rows_as_labels_are_record_linkage(tables, linkage):
    intruder = whom(tables, sample=100)
    chances = label_chances(intruder, intruder.own, np.arange(220), linkage=linkage)
    measured = MEASURES[linkage](*tables, sample=100).per_record[intruder.persons]
    assert chances.tolist() == measured.tolist()
    assert len(chances) == 100


def test_a_secret_is_told_by_the_share_of_the_nearest_that_have_it(tables):
    intruder = whom(tables)
    before, after = secrets(intruder)
    x, c = (intruder.original.frame[name].to_numpy() for name in "xc")
    mx, mc = (intruder.masked.frame[name].to_numpy() for name in "xc")
    expected = []
    for row in range(300):
        gaps = np.abs(mx - x[row]) / (x.max() - x.min()) + (mc != c[row])
        nearest = np.isclose(gaps, gaps.min(), 1e-12, 1e-12)
        expected.append((after[nearest] == before[row]).mean())
    assert label_chances(intruder, before, after).tolist() == pytest.approx(expected)


def test_a_secret_is_told_by_the_records_of_the_best_score(tables):
    intruder = whom(tables)
    before, after = secrets(intruder)
    x, c = (intruder.original.frame[name].to_numpy() for name in "xc")
    mx, mc = (intruder.masked.frame[name].to_numpy() for name in "xc")
    expected = []
    for row in range(300):
        scores = (mx == x[row]).astype(int) + (mc == c[row])
        best = scores == scores.max()
        expected.append((after[best] == before[row]).mean())
    found = label_chances(intruder, before, after, linkage="similarity", threshold=None)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("options", [{}, {"one_to_one": True}])
def test_a_secret_is_told_by_equal_records_at_random(options):
    """Two kinds of people: with any weights, a person is linked to one of the same kind."""
    frame = pl.DataFrame({"x": [1, 1, 1, 2, 2]})
    table = Table(frame, Roles(quasi_identifiers=["x"]))
    intruder = whom((table, table))
    labels = np.array([7, 7, 8, 9, -1])
    found = label_chances(intruder, labels, labels, linkage="probabilistic", **options)
    assert found.tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1 / 2, 0])


@pytest.mark.parametrize("linkage", MEASURES)
def test_a_negative_label_is_never_right(tables, linkage):
    intruder = whom(tables, sample=20)
    nothing = np.full(20, -1), np.full(220, -1)
    assert label_chances(intruder, *nothing, linkage=linkage).tolist() == [0] * 20


@pytest.mark.parametrize("linkage", ["distance", "probabilistic"])
def test_where_nothing_known_was_released_all_records_are_alike(tables, linkage):
    original, masked = tables
    intruder = whom((original, masked.drop(["x", "c"])))
    before, after = secrets(intruder)
    shares = np.bincount(after, minlength=4) / 220
    found = label_chances(intruder, before, after, linkage=linkage)
    assert found.tolist() == pytest.approx(shares[before].tolist())


@pytest.mark.parametrize("linkage", MEASURES)
def test_who_was_taken_out_has_no_released_value(linkage):
    """The coarser values of others reveal nothing about a person who is absent."""
    frame = pl.DataFrame({"x": [1, 2, 11, 12, 3]})
    original = Table(frame, Roles(quasi_identifiers=["x"]))
    masked = Hierarchy.intervals([10]).generalize(original, "x", 1).keep(np.arange(5) < 4)
    intruder = whom((original, masked))
    labels = np.array([5, 5, 6, 6, 6])
    options = {"threshold": None} if linkage == "similarity" else {}
    found = label_chances(intruder, labels, labels[:4], linkage=linkage, **options)
    assert found.tolist() == [1, 1, 1, 1, 0.5]
