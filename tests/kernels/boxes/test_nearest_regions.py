"""Nearest released records, isolated rows and common members against slow, obvious references."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.kernels.boxes.nearest_regions import fill_gaps, nearest_guesses, shared_neighbours
from shoal.kernels.boxes.predicates import NOBODY, SEVERAL, indexed, isolated_rows, rows_to_look_at
from shoal.kernels.uniques.intersections import common_members
from shoal.risk.attacks._inference import _label_secrets
from shoal.risk.attacks._linkability import overlap_chance
from shoal.risk.attacks._success import joint_counts, one_numbering, released_regions
from shoal.table import released_column

SETS = ["[0, 2]", "[1, 4]", "*", "3", "[2, 2]", None]
NAMES = ["a", "b", "{a, b}", "{b, c}", "*", None]


def random_tables(seed, persons=12, records=14):
    """Persons with plain values, records with intervals and sets, ties and missing cells."""
    rng = np.random.default_rng(seed)
    pick = lambda values, count: [values[i] for i in rng.integers(0, len(values), count)]  # noqa: E731
    names = ["x", "n", "y", "m"]
    original = pl.DataFrame(
        {
            "x": [*pick([0, 1, 2, 3, 4, None], persons), 0, 4],
            "n": [*pick(["a", "b", "c", None], persons), "a", "c"],
            "y": [*pick([0.0, 0.5, 2.0], persons), 0.0, 2.0],
            "m": [*pick(["a", "b", "c"], persons), "b", "c"],
        }
    )
    masked = pl.DataFrame(
        {
            "x": pick(SETS, records),
            "n": pick(NAMES, records),
            "y": pick([0.0, 1.0, 2.0, None], records),
            "m": pick(NAMES[:4], records),
        },
        schema_overrides={"x": pl.String, "n": pl.String},
    )
    tables = [Table(frame, Roles(quasi_identifiers=names)) for frame in (original, masked)]
    return tables, {name: released_column(name, *tables) for name in names}


def slow_gap(columns, person, record):
    parts = []
    for column in columns:
        label, code = column.labels[record], column.values[person]
        if label < 0 or code < 0:
            continue
        codes = [
            other
            for run in range(column.starts[label], column.starts[label + 1])
            for other in range(column.low[run], column.high[run] + 1)
        ]
        if code in codes:
            parts.append(0.0)
        elif column.ordered and codes:
            parts.append(min(abs(column.places[code] - column.places[o]) for o in codes))
        else:
            parts.append(1.0)
    return sum(parts) / len(parts) if parts else 1.0


def gaps_of(columns, persons, records):
    return np.array([[slow_gap(columns, p, r) for r in range(records)] for p in range(persons)])


@pytest.mark.parametrize("seed", range(6))
def test_gaps(seed):
    (original, masked), columns = random_tables(seed)
    chosen = [columns["x"], columns["n"], columns["y"]]
    place = released_regions(chosen, masked)
    expected = gaps_of(chosen, len(original), len(masked))
    gaps, cells = np.empty(place.classes.count), np.empty(place.regions.bounds[-1])
    for person in range(len(original)):
        fill_gaps(place.regions, place.codes(np.array([person]))[:, 0], cells, gaps)
        assert gaps[place.classes.labels] == pytest.approx(expected[person], abs=1e-12)


def subsets(gaps, neighbours):
    """Every set of nearest records that ties allow."""
    order = np.sort(gaps)
    limit = order[neighbours - 1]
    sure = {i for i, gap in enumerate(gaps) if gap < limit - 1e-9}
    tied = [i for i, gap in enumerate(gaps) if abs(gap - limit) < 1e-9]
    return [sure | set(more) for more in itertools.combinations(tied, neighbours - len(sure))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("neighbours", [1, 2, 3])
def test_the_chance_to_share_a_record(seed, neighbours):
    """Over all ways to break ties on the two sides."""
    (original, masked), columns = random_tables(seed, persons=6, records=9)
    left, right = [columns["x"], columns["n"]], [columns["y"], columns["m"]]
    one, other = released_regions(left, masked), released_regions(right, masked)
    persons = np.arange(len(original))
    pairs = joint_counts(one.classes, other.classes.labels.astype(np.int64))
    counts = shared_neighbours(one.seen_by(persons), other.seen_by(persons), pairs, neighbours)
    sides = [gaps_of(side, len(original), len(masked)) for side in (left, right)]
    expected = []
    for person in persons:
        ways = list(itertools.product(*(subsets(side[person], neighbours) for side in sides)))
        expected.append(np.mean([bool(a & b) for a, b in ways]))
    assert overlap_chance(counts, neighbours) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("secret", ["y", "m"])
@pytest.mark.parametrize("seed", range(4))
def test_guesses_by_the_nearest(seed, secret):
    (original, masked), columns = random_tables(seed)
    known, target = [columns["x"], columns["n"]], columns[secret]
    place = released_regions(known, masked)
    persons = np.arange(len(original))
    found = nearest_guesses(
        place.regions,
        place.codes(persons),
        joint_counts(place.classes, target.labels),
        _label_secrets(target, 0.3),
        target.values,
    )
    gaps = gaps_of(known, len(original), len(masked))
    cells, values = masked.frame[secret].to_list(), original.frame[secret].to_list()
    for person in persons:
        nearest = np.flatnonzero(gaps[person] <= gaps[person].min() + 1e-9)
        right = [_right(cells[i], values[person]) for i in nearest]
        assert found[person] == pytest.approx(np.mean(right))


def _right(cell, value):
    if cell is None:
        return 0.0
    if isinstance(value, float):
        return float(abs(cell - value) <= 0.3 * 2.0)  # the range of the original is 2
    parts = cell.strip("{}").split(", ")
    return (value in parts) / len(parts)


@pytest.mark.parametrize("seed", range(6))
def test_isolated_rows(seed):
    (original, masked), columns = random_tables(seed, persons=8, records=20)
    chosen = [columns["x"], columns["n"], columns["m"]]
    labels, runs = one_numbering(chosen)
    values = np.stack([column.values for column in chosen])
    which = np.tile(np.arange(3), (len(masked), 1))
    rows = indexed(values, np.array([len(column.places) for column in chosen]))
    found = isolated_rows(rows, which, np.ascontiguousarray(labels.T), runs)
    looks = rows_to_look_at(rows, which, np.ascontiguousarray(labels.T), runs)
    kinds = set()
    for record in range(len(masked)):
        asked = [c for c in chosen if c.labels[record] >= 0]
        meet = [
            sum(c.values[p] >= 0 and slow_gap([c], p, record) == 0.0 for p in range(len(original)))
            for c in asked
        ]
        assert looks[record] == min(meet, default=0)
        fits = [
            person
            for person in range(len(original))
            if all(
                c.labels[record] < 0
                or (c.values[person] >= 0 and slow_gap([c], person, record) == 0.0)
                for c in chosen
            )
        ]
        expected = fits[0] if len(fits) == 1 else (SEVERAL if fits else NOBODY)
        assert found[record] == expected
        kinds.add(min(int(found[record]), 0))
    assert len(kinds) > 1  # not all alike


@pytest.mark.parametrize("seed", range(6))
def test_common_members(seed):
    rng = np.random.default_rng(seed)
    sets = [sorted(rng.choice(8, rng.integers(1, 7), replace=False).tolist()) for _ in range(9)]
    starts = np.cumsum([0, *map(len, sets)])
    chosen = rng.integers(0, 9, (30, 3))
    counts, first = common_members(chosen, starts, np.concatenate(sets), 3)
    for row, count, one in zip(chosen, counts, first, strict=True):
        common = set.intersection(*(set(sets[i]) for i in row))
        assert count == min(len(common), 3)
        assert one == (min(common) if common else -1)
