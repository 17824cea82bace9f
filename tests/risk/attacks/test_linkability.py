"""Two halves of a person's data, linked through the release or not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Roles, Swap, Table
from shoal.errors import InputError
from shoal.risk import linkability
from shoal.risk.attacks._linkability import _blind

NAMES = ["a", "b", "c", "d"]


def table(frame):
    return Table(frame, Roles(quasi_identifiers=frame.columns))


def people(rows, seed):
    """Each half distinguishes a person; the halves have little to do with each other."""
    rng = np.random.default_rng(seed)
    return table(
        pl.DataFrame(
            {
                "a": rng.normal(0, 1, rows),
                "b": rng.choice(["x", "y", "z"], rows),
                "c": rng.normal(50, 10, rows),
                "d": rng.integers(0, 5, rows),
            }
        )
    )


@pytest.fixture(scope="module")
def persons():
    return people(900, 1)


@pytest.fixture(scope="module")
def control():
    return people(700, 2)


def test_a_copy_links(persons, control):
    for more in ({}, {"control": control}, {"left": ["a"], "right": ["c", "d"]}):
        found = linkability(persons, persons, **more)
        assert found.details["success"] == 1.0
        assert found.value == 1.0


def test_equal_halves_count_by_chance():
    """Two people with equal left halves: the right one is chosen half of the time."""
    original = table(pl.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "z"]}))
    found = linkability(original, original)
    assert found.details["success"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert found.details["blind"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("neighbours", [1, 5])
def test_shuffled_halves_do_not_link(persons, control, neighbours):
    rng = np.random.default_rng(4)
    rows = {name: rng.permutation(len(persons)) for name in NAMES}
    for more in ({}, {"control": control}):
        masked = persons.with_cells_of(rows)
        found = linkability(persons, masked, neighbours=neighbours, **more)
        assert found.interval[0] == 0.0
        assert found.value < 0.01


def test_other_people_do_not_link(persons, control):
    found = linkability(persons, control, control=people(900, 3))
    assert found.interval[0] == 0.0


def test_masking_parts_the_halves(persons):
    """One half was swapped within groups of five; boxes of ten contain ten equal records."""
    swapped = Swap(k=5, columns=["a", "b"]).fit_transform(persons)
    found = linkability(persons, swapped, left=["a", "b"], right=["c", "d"])
    assert 0.1 < found.value < 0.35
    boxes = Generalize(algorithm="mondrian", k=10).fit_transform(persons)
    assert linkability(persons, boxes).value < 0.02


def test_more_neighbours_share_more(persons):
    masked = Generalize(algorithm="mondrian", k=10).fit_transform(persons)
    rates = [linkability(persons, masked, neighbours=n).details["success"] for n in (1, 10, 50)]
    assert rates[0] < rates[1] < rates[2]
    few = persons.keep(np.arange(len(persons)) < 20)
    every = linkability(few, few, neighbours=10_000)
    assert every.details["success"] == every.details["blind"] == 1.0
    assert every.value == 0.0


@pytest.mark.parametrize(("records", "neighbours"), [(6, 1), (6, 2), (6, 3), (6, 4), (1, 1)])
def test_blind_guessing_by_enumeration(records, neighbours):
    from itertools import combinations

    ways = list(combinations(range(records), neighbours))
    shared = np.mean([bool(set(one) & set(other)) for one in ways for other in ways])
    assert _blind(records, neighbours) == pytest.approx(shared)


def test_the_columns_are_dealt_out_by_what_they_tell(persons):
    found = linkability(persons, persons)
    assert found.details["left"] == ["a", "d"]
    assert found.details["right"] == ["b", "c"]


def test_a_source_of_which_nothing_is_left_links_nothing(persons):
    found = linkability(persons, persons.drop(["a", "d"]))
    assert found.value == 0.0
    assert any("no released column" in warning for warning in found.warnings)


def test_what_is_refused(persons):
    with pytest.raises(InputError, match="both sources"):
        linkability(persons, persons, left=["a"])
    with pytest.raises(InputError, match="'b' is in both sources"):
        linkability(persons, persons, left=["a", "b"], right=["b"])
    one = persons.drop(["b", "c", "d"])
    with pytest.raises(InputError, match="'a' alone"):
        linkability(one, one)


def test_a_sample_of_persons(persons):
    found = linkability(persons, persons, sample=100)
    assert found.details["persons"] == 100
    assert found.interval[0] < linkability(persons, persons).interval[0]


def test_every_kind_of_frame(frame):
    columns = {"größe": [170, 171, None], "b": ["f", "m", "ü"]}
    original = Table(frame(columns), Roles(quasi_identifiers=list(columns)))
    assert linkability(original, original).details["success"] == pytest.approx(7 / 9)
