"""Secrets guessed from the nearest released record, against persons who were not in the table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Swap, Table
from shoal.errors import InputError
from shoal.risk import inference

ROLES = Roles(quasi_identifiers=["a", "b"], sensitive=["ill"])


def people(rows, seed, *, rule=0.0):
    """A disease by chance or, in a share of the cases, by a rule that applies to everyone."""
    rng = np.random.default_rng(seed)
    b = rng.choice(["x", "y", "z"], rows)
    ill = np.where(rng.random(rows) < rule, b, rng.choice(["x", "y", "z"], rows))
    frame = pl.DataFrame(
        {"a": rng.normal(0, 1, rows), "b": b, "ill": ill, "pay": rng.uniform(0, 100, rows)}
    )
    return Table(frame, ROLES)


@pytest.fixture(scope="module")
def persons():
    return people(900, 1)


@pytest.fixture(scope="module")
def control():
    return people(900, 2)


def test_a_copy_tells_the_secret(persons, control):
    for more in ({}, {"control": control}, {"control": control, "secret": "pay"}):
        found = inference(persons, persons, **more)
        assert found.details["success"] == 1.0
        assert found.value == 1.0
    assert found.details["blind"] == pytest.approx(0.1, abs=0.03)  # 5 percent on both sides
    assert found.details["control"] == pytest.approx(0.1, abs=0.03)


def test_shuffled_secrets_tell_nothing(persons, control):
    rows = np.random.default_rng(4).permutation(len(persons))
    masked = persons.with_cells_of({"ill": rows, "pay": rows})
    for secret in ("ill", "pay"):
        found = inference(persons, masked, secret=secret, control=control)
        assert found.interval[0] == 0.0
        assert found.value < 0.08


def test_what_is_known_of_everybody_is_no_risk_of_the_table():
    """A rule that also holds for control persons counts as risk without them, but not with them."""
    original, control, release = (people(900, seed, rule=0.9) for seed in (1, 2, 3))
    alone = inference(original, release)
    assert alone.interval[0] > 0.5
    assert any("'control'" in said for said in alone.warnings)
    beside = inference(original, release, control=control)
    assert beside.interval[0] == 0.0
    assert beside.details["control"] == pytest.approx(beside.details["success"], abs=0.06)


def test_masking_takes_it_away(persons, control):
    swapped = Swap(k=5).fit_transform(persons)
    found = inference(persons, swapped, control=control)
    assert 0.05 < found.value < 0.35
    boxes = Generalize(algorithm="mondrian", k=10).fit_transform(persons)
    assert inference(persons, boxes, control=control).value < 0.15


def test_ties_and_blind_guesses_by_hand():
    frame = pl.DataFrame({"a": [1, 1, 2, 2], "b": ["x"] * 4, "ill": ["p", "q", "p", "p"]})
    original = Table(frame, ROLES)
    found = inference(original, original)
    assert found.details["success"] == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    assert found.details["blind"] == 0.75
    assert found.value == 0.0


def test_a_coarse_secret_is_guessed_among_its_values():
    frame = pl.DataFrame(
        {"a": [1, 2, 3, 4], "b": ["x"] * 4, "ill": ["flu", "cold", "gout", "gout"]}
    )
    original = Table(frame, ROLES)
    tree = Hierarchy.tree({"airways": ["flu", "cold"], "joints": ["gout"]})
    found = inference(original, tree.generalize(original, "ill", 1))
    assert found.details["success"] == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    assert found.details["blind"] == 0.5
    numbers = Table(pl.DataFrame({"a": [1, 2, 3], "b": ["x"] * 3, "ill": [0, 10, 100]}), ROLES)
    coarse = Hierarchy.intervals(50).generalize(numbers, "ill", 1)
    assert inference(numbers, coarse).details["success"] == 1.0  # 5 is within 5 of 0 and of 10
    assert inference(numbers, coarse, closeness=0.01).details["success"] == pytest.approx(1 / 3)


def test_the_worst_of_several_secrets_counts(persons):
    both = persons.with_roles(Roles(quasi_identifiers=["a", "b"], sensitive=["ill", "pay"]))
    rows = np.random.default_rng(4).permutation(len(persons))
    masked = both.with_cells_of({"pay": rows})
    found = inference(both, masked)
    assert found.details["secret"] == "ill"
    assert found.value == found.details["columns"]["ill"] == 1.0
    assert found.details["columns"]["pay"] < 0.05


def test_missing_secrets_are_not_guessed():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x"] * 3, "ill": ["p", None, "q"]})
    original = Table(frame, ROLES)
    assert inference(original, original).details["success"] == 1.0
    nobody = Table(frame.with_columns(ill=pl.lit(None, dtype=pl.String)), ROLES)
    assert inference(nobody, original).value == 0.0


def test_a_taken_out_secret_is_not_told(persons):
    found = inference(persons, persons.drop(["ill"]))
    assert found.value == 0.0
    assert any("Nothing was released" in said for said in found.warnings)


def test_what_is_refused(persons):
    with pytest.raises(InputError, match="known"):
        inference(persons, persons, secret="a", known=["a"])
    bare = persons.with_roles(Roles(quasi_identifiers=["a"]))
    with pytest.raises(InputError, match="sensitive"):
        inference(bare, bare)


def test_every_kind_of_frame(frame):
    columns = {"größe": [170, 171, None], "ill": ["f", "m", "ü"]}
    roles = Roles(quasi_identifiers=["größe"], sensitive=["ill"])
    original = Table(frame(columns), roles)
    assert inference(original, original).details["success"] == pytest.approx((1 + 1 + 1 / 3) / 3)
