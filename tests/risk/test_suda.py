"""SUDA: compared with brute force over all sets of columns, and with published numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.risk import dis_scores, special_uniques, suda


def table(**columns):
    return Table(pl.DataFrame(columns), Roles(quasi_identifiers=list(columns)))


def equal(one, other):
    return one == other


def agree(one, other):
    """A missing value agrees with every value."""
    return one is None or other is None or one == other


def brute(rows, size, same=equal):
    """The minimal sets of each record, straight from the definition."""
    columns = range(len(rows[0]))
    alone = {}
    for k in range(1, size + 1):
        for chosen in itertools.combinations(columns, k):
            alone[chosen] = [
                sum(all(same(row[c], other[c]) for c in chosen) for other in rows) == 1
                for row in rows
            ]
    found = [[] for _ in rows]
    for chosen, marks in alone.items():
        smaller = [s for n in range(1, len(chosen)) for s in itertools.combinations(chosen, n)]
        for row, is_alone in enumerate(marks):
            if is_alone and not any(alone[s][row] for s in smaller):
                found[row].append(chosen)
    return found


def weight(columns, k, size):
    return math.prod(columns - i for i in range(k, min(size, columns - 1) + 1))


@pytest.mark.parametrize("gaps", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("missing", ["own", "wildcard"])
@pytest.mark.parametrize("seed", range(12))
def test_brute_force(seed, missing, gaps):
    """Few values and repeated records, many values, and one column that is a copy of another."""
    rng = np.random.default_rng(seed)
    columns, records = int(rng.integers(1, 7)), int(rng.integers(1, 120))
    codes = rng.integers(0, rng.integers(2, 12), (records, columns)).astype(object)
    if seed % 3 == 0:
        codes[rng.integers(0, records, records // 2)] = codes[0]
    if seed % 4 == 0:
        codes[:, -1] = codes[:, 0]
    codes[rng.random(codes.shape) < gaps] = None
    if seed % 5 == 0:
        codes[:, 0] = np.arange(records) % 9  # one column without gaps
    size = int(rng.integers(1, columns + 1))
    people = table(**{f"c{i}": codes[:, i].tolist() for i in range(columns)})
    found = special_uniques(people, size=size, missing=missing)
    expected = brute(codes.tolist(), size, agree if missing == "wildcard" else equal)
    scores = [sum(weight(columns, len(s), size) for s in sets) for sets in expected]
    assert found.scores.tolist() == scores
    assert found.smallest.tolist() == [min(map(len, sets), default=0) for sets in expected]
    sizes = Counter(len(s) for sets in expected for s in sets)
    assert found.found.tolist() == [sizes[k] for k in range(1, size + 1)]
    for row, sets in enumerate(expected):
        parts = [sum(weight(columns, len(s), size) for s in sets if c in s) for c in range(columns)]
        assert found.contributions[row].tolist() == parts


def test_the_tests_see_large_sets():
    """Sets of every size up to 5 occur, so that the search is tested at every depth."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (150, 6))
    people = table(**{f"c{i}": codes[:, i] for i in range(6)})
    found = special_uniques(people, size=6)
    assert (found.found[2:5] > 0).all()
    expected = brute(codes.tolist(), 6)
    assert found.scores.tolist() == [sum(weight(6, len(s), 6) for s in sets) for sets in expected]


def test_contributions_of_sdcmicro():
    """The example of sdcMicro's own tests (test_suda2.R): contributions of 50, 37.5, 37.5 %."""
    found = special_uniques(table(a=[2, 1, 1], b=[0, 3, 0], c=[0, 6, 0]))
    assert found.column_shares() == {"a": 0.5, "b": 0.375, "c": 0.375}
    # unique on a; on b and on c; on (a, b) and on (a, c): 2, 2 + 2, 1 + 1
    assert found.scores.tolist() == [2.0, 4.0, 2.0]
    turned = special_uniques(table(c=[0, 6, 0], a=[2, 1, 1], b=[0, 3, 0]))
    assert turned.column_shares() == {"a": 0.5, "b": 0.375, "c": 0.375}


def test_scores_of_elliot_manning_and_ford():
    """(A - k)! if all sizes are allowed: 6, 2, 1, 1 for four columns."""
    people = table(a=[1, 2, 2, 2], b=[0, 0, 1, 0], c=[0, 0, 0, 1], d=[0, 0, 0, 0])
    found = special_uniques(people, size=4)
    # records 0, 2, 3 are unique on one column; record 1 only on (a, b, c)
    assert found.scores.tolist() == [6.0, 1.0, 6.0, 6.0]
    assert found.smallest.tolist() == [1, 3, 1, 1]
    # sets of at most two: record 1 is not found, and one column counts (4 - 1) (4 - 2)
    assert special_uniques(people, size=2).scores.tolist() == [6.0, 0.0, 6.0, 6.0]


def test_measure():
    people = table(age=[30, 30, 41, 41, 52, 52, 52], sex=list("fmfmmff"))
    found = suda(people)
    assert found.value == 5 / 7
    assert found.per_record.tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert found.details["sets"] == {"1": 0, "2": 5}
    assert found.details["records"] == 5
    assert found.details["columns"] == {"age": 1.0, "sex": 1.0}
    assert found.details["mean_score"] == 5 / 7
    assert found.details["highest_score"] == 1.0
    assert "highest_dis" not in found.details
    assert suda(people, size=1).value == 0.0
    assert suda(people, size=1).details["columns"] == {"age": 0.0, "sex": 0.0}


def test_dis_scores_by_hand():
    """5 unique, one pair, a fraction of 0.2: all scores are equal, so each has the DIS risk.

    5 × 0.2 / (5 × 0.2 + 2 × 0.8) = 1 / 2.6.
    """
    people = table(age=[30, 30, 41, 41, 52, 52, 52], sex=list("fmfmmff"))
    scores = dis_scores(people, special_uniques(people), 0.2)
    assert scores == pytest.approx([1 / 2.6] * 5 + [0, 0])
    found = suda(people, sampling_fraction=0.2)
    assert found.details["highest_dis"] == pytest.approx(1 / 2.6)
    assert found.details["mean_dis"] == pytest.approx(5 / 2.6 / 7)
    assert dis_scores(people, special_uniques(people), 1.0).tolist() == [1.0] * 5 + [0.0] * 2


def test_dis_scores_follow_the_formula():
    """Records with higher scores are more at risk, by the power 1 + (8 - columns) / 20."""
    rng = np.random.default_rng(3)
    people = table(**{f"c{i}": rng.integers(0, 5, 80) for i in range(4)})
    found = special_uniques(people, size=4)
    sizes = people.classes.sizes
    singles, pairs = (sizes == 1).sum(), (sizes == 2).sum()
    risk = singles * 0.1 / (singles * 0.1 + 2 * pairs * 0.9)
    raised = [score**1.2 for score in found.scores if score]
    total = sum(1 / value for value in raised)
    expected = [1 / (1 + (singles / risk - singles) / (value * total)) for value in raised]
    scores = dis_scores(people, found, 0.1)
    assert scores[found.scores > 0] == pytest.approx(expected)
    assert scores.max() <= 1


def test_missing_values_in_both_readings():
    """x = 1 1 * 2 2 and y = * * 3 3 3: the gap of x is unique as a value, but not as a wildcard."""
    people = table(x=[1, 1, None, 2, 2], y=[None, None, 3, 3, 3])
    assert special_uniques(people).smallest.tolist() == [0, 0, 1, 0, 0]
    assert special_uniques(people, missing="wildcard").smallest.tolist() == [0] * 5


def test_wildcards_by_hand():
    """Sets of up to three of four columns count 6, 2 and 1.

    a  b  c  d     alone on
    1  1  1  1     a, where nobody has a gap
    2  1  1  1     nothing: the last record is its equal
    2  2  1  1     (b, d): on b it meets the gap of the next, also with a or c beside it
    2  *  1  2     (c, d): on d it meets the gap of the next, also with a beside it
    2  1  2  *     c
    2  1  1  1     nothing
    """
    people = table(
        a=[1, 2, 2, 2, 2, 2],
        b=[1, 1, 2, None, 1, 1],
        c=[1, 1, 1, 1, 2, 1],
        d=[1, 1, 1, 2, None, 1],
    )
    found = special_uniques(people, missing="wildcard")
    assert found.smallest.tolist() == [1, 0, 2, 2, 1, 0]
    assert found.scores.tolist() == [6.0, 0.0, 2.0, 2.0, 6.0, 0.0]
    assert found.column_shares() == {"a": 6 / 16, "b": 2 / 16, "c": 8 / 16, "d": 4 / 16}
    assert found.missing == "wildcard"
    assert suda(people, missing="wildcard").value == 4 / 6
    assert suda(people, missing="wildcard", size=1).value == 2 / 6
    assert suda(people, size=1).value == 4 / 6


def test_dis_scores_count_the_pairs_of_the_reading():
    """x = 1 * 2 3 3 3, y = 1 1 2 3 3 3: with wildcards the first two are a pair, else unique."""
    people = table(x=[1, None, 2, 3, 3, 3], y=[1, 1, 2, 3, 3, 3])
    own, wildcard = (special_uniques(people, missing=m) for m in ("own", "wildcard"))
    assert dis_scores(people, own, 0.5).tolist() == [1, 1, 1, 0, 0, 0]
    assert wildcard.smallest.tolist() == [0, 0, 1, 0, 0, 0]
    # U = 1 and P = 2: a half of one against a half of two
    assert dis_scores(people, wildcard, 0.5) == pytest.approx([0, 0, 1 / 3, 0, 0, 0])


def test_one_record_with_gaps_is_alone_in_both_readings():
    people = table(a=[None, 1], b=[None, 2]).keep(np.array([True, False]))
    for missing in ("own", "wildcard"):
        assert special_uniques(people, missing=missing).smallest.tolist() == [1]


def test_one_record_and_no_quasi_identifiers():
    assert special_uniques(table(a=[1], b=[2])).smallest.tolist() == [1]
    nothing = Table(pl.DataFrame({"a": [1, 2]}))
    assert suda(nothing).value == 0.0
    assert special_uniques(nothing).found.tolist() == []


@pytest.mark.parametrize("size", [0, -1, 1.5, "3", True, None])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(InputError, match="integer ≥ 1"):
        suda(table(a=[1]), size=size)


def test_what_would_take_too_long_is_refused_at_once():
    people = table(**{f"c{i}": np.arange(2000) % (i + 2) for i in range(40)})
    with pytest.raises(InputError, match="4,598,478 sets"):
        suda(people, size=6)
