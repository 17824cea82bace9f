"""What released cells stand for, beside the values of persons."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Round, Table
from shoal.errors import InputError
from shoal.table import released_column


def table(values, **more):
    return Table(pl.DataFrame({"x": values, **more}, strict=False), Roles(quasi_identifiers=["x"]))


def stands_for(column, record, person):
    """Whether the released cell of a record stands for the value of a person."""
    label, value = column.labels[record], column.values[person]
    if label < 0 or value < 0:
        return None
    runs = range(column.starts[label], column.starts[label + 1])
    return any(column.low[run] <= value <= column.high[run] for run in runs)


def matrix(column):
    persons, records = range(len(column.values)), range(len(column.labels))
    return [[stands_for(column, record, person) for person in persons] for record in records]


def test_values_are_themselves():
    found = released_column("x", table([3, None, 5]), table([5.0, 3.5, None]))
    assert found.reading == "values"
    assert matrix(found) == [[False, None, True], [False, None, False], [None, None, None]]
    assert found.places[found.values[2]] - found.places[found.values[0]] == pytest.approx(1.0)


def test_control_persons_come_after_those_of_the_original():
    found = released_column("x", table(["a", "b"]), table(["b", "c"]), table(["c", None]))
    assert matrix(found) == [[False, True, False, None], [False, False, True, None]]


def test_control_persons_of_another_type():
    spans = [dt.timedelta(seconds=5), dt.timedelta(days=1)]
    coarse = table(pl.Series(spans, dtype=pl.Duration("ms")))
    assert matrix(released_column("x", table(spans), coarse)) == [[True, False], [False, True]]
    found = released_column("x", table(spans), table(spans), coarse)
    assert matrix(found) == [[True, False, True, False], [False, True, False, True]]
    with pytest.raises(InputError, match="is duration in the original and text in the control"):
        released_column("x", table(spans), table(spans), table(["a"]))
    names = table(pl.Series(["a", "b"], dtype=pl.Categorical))
    assert matrix(released_column("x", names, names, table(["b"]))) == [
        [True, False, False],
        [False, True, True],
    ]


@pytest.mark.parametrize("algorithm", ["mondrian", "full-domain", "local"])
def test_a_generalized_cell_stands_for_its_own_person(algorithm):
    """Whatever the search released, the person's value is under the person's label."""
    rng = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "born": [
                dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 9000, 200)
            ],
            "zip": [f"{z:05d}" for z in rng.integers(0, 400, 200) * 7],
            "job": rng.choice(["clerk", "nurse", "smith", "baker", "pilot"], 200),
            "pay": rng.normal(3000, 500, 200).round(2),
        }
    )
    names = frame.columns
    original = Table(frame, Roles(quasi_identifiers=names))
    masked = Generalize(algorithm=algorithm, k=5).fit_transform(original)
    for name in names:
        found = released_column(name, original, masked)
        own = [stands_for(found, record, record) for record in range(len(masked))]
        assert all(own), name


def test_a_node_of_a_list_stands_for_whose_records_have_it():
    tree = Hierarchy.tree({"North": ["a", "b"], "South": ["c", "d"]})
    original = table(["a", "b", "c", "a"])
    masked = tree.generalize(original, "x", 1)
    found = released_column("x", original, masked)
    assert found.reading == "pairs"
    assert matrix(found)[0] == [True, True, False, True]
    assert matrix(found)[2] == [False, False, True, False]
    fewer = masked.reorder(np.array([3, 2, 1]))
    assert matrix(released_column("x", original, fewer)) == [
        [True, True, False, True],
        [False, False, True, False],
        [True, True, False, True],
    ]
    apart = released_column("x", original, Table(masked.frame))
    assert apart.reading == "nothing"


def test_a_new_value_of_a_synthetic_table_stands_for_nobody():
    found = released_column("x", table(["a", "b"]), table(["a", "new"]))
    assert found.reading == "labels"
    assert matrix(found) == [[True, False], [False, False]]


def test_rounded_numbers_in_text_are_numbers():
    original = table([11, 13, 16, 29])
    masked = Hierarchy.rounding([5]).generalize(original, "x", 1)
    found = released_column("x", original, masked)
    assert found.reading == "values"
    assert matrix(found.near()) == [
        [True, False, False, False],
        [False, True, True, False],
        [False, True, True, False],
        [False, False, False, True],
    ]


def test_stars_beside_rounded_numbers_say_nothing():
    found = released_column("x", table([11, 29]), table(["10", "*"])).near()
    assert matrix(found) == [[True, True], [True, True]]


def by_distance(values, shown, cell):
    """Which values are nearer to a released number than to any other; the lower one of two."""
    return [min(shown, key=lambda s: (abs(s - v), s)) == cell for v in values]


@pytest.mark.parametrize("seed", range(8))
def test_near_is_the_nearest_released_number(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-30, 30, 25)
    shown = rng.choice(np.arange(-28, 28), 6, replace=False)
    found = released_column("x", table(values), table(shown)).near()
    for record, cell in enumerate(shown):
        expected = by_distance(values.tolist(), sorted(shown.tolist()), cell)
        assert matrix(found)[record] == expected


@pytest.mark.parametrize("seed", range(4))
def test_beyond_is_as_far_out(seed):
    rng = np.random.default_rng(seed)
    values, shown = rng.integers(-30, 30, 25), rng.integers(-28, 28, 7)
    found = released_column("x", table(values), table(shown)).beyond()
    middle = np.median(shown)
    for record, cell in enumerate(shown):
        expected = values >= cell if cell >= middle else values <= cell
        assert matrix(found)[record] == expected.tolist()


def test_beyond_leaves_what_has_no_order():
    column = released_column("x", table(["a", "b"]), table(["a", "b"]))
    assert column.beyond() is column
    assert column.near() is column


def test_huge_whole_numbers_stay_apart():
    large = [2**63 - 1, 2**63 - 2, -(2**63)]
    found = released_column("x", table(large), table(large)).near()
    assert matrix(found) == np.eye(3, dtype=bool).tolist()


def test_dates_beside_datetimes():
    day = dt.datetime(2020, 5, 17, 13)
    found = released_column("x", table([day]), table([day.date()]))
    assert matrix(found) == [[True]]


def test_infinite_numbers_are_only_names():
    values = [1.0, float("inf"), 2.0]
    found = released_column("x", table(values), table(values)).near()
    assert not found.ordered
    assert matrix(found) == np.eye(3, dtype=bool).tolist()
    text = released_column("x", table(values), table(["1.0", "inf", "[1, 2]"]))
    assert text.reading == "labels"


def test_every_kind_of_frame(frame):
    original = Table(frame({"x": [23, 41, None]}), Roles(quasi_identifiers=["x"]))
    masked = Round(base=10).fit_transform(original)
    assert matrix(released_column("x", original, masked).near()) == [
        [True, False, None],
        [False, True, None],
        [None, None, None],
    ]
