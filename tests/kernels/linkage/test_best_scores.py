"""Best scores against plain Python over all pairs, on tied and on continuous data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.kernels.linkage.best_scores import BestScores, Scored, all_scores, on_grid, scoring


def plain_score(persons, records, how, person, record):
    """One column after the other; what is missing adds nothing."""
    total = 0.0
    for column, (agreeing, differing) in enumerate(zip(how.agreeing, how.differing, strict=True)):
        one, other = persons.codes[column, person], records.codes[column, record]
        if one >= 0 and other >= 0:
            total += agreeing if one == other else differing
    for column, scale in enumerate(how.scales):
        gap = abs(persons.values[column, person] - records.values[column, record]) / scale
        if not math.isnan(gap):
            alike = 2 ** -(gap**2) if how.gauss else max(0.0, 1 - gap / 2)
            total += round(alike * 2**40) / 2**40
    return total


def a_case(seed, gauss, levels):
    draw = np.random.default_rng(seed)
    sides = []
    for count in (60, 5000):
        values = draw.integers(0, 4 * levels, (2, count)) / 4
        values[draw.random(values.shape) < 0.1] = np.nan
        sides.append(Scored(draw.integers(-1, levels, (3, count)).astype(np.int32), values))
    weights = draw.normal(size=(2, 3))
    return (*sides, scoring(weights[0], weights[1], np.array([1.0, 3.0]), gauss=gauss)), draw


@pytest.mark.parametrize("gauss", [False, True])
@pytest.mark.parametrize("levels", [2, 40])
def test_they_equal_plain_python(gauss, levels):
    (persons, records, how), draw = a_case(levels, gauss, levels)
    sizes = draw.integers(1, 4, 5000)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    members, labels = draw.integers(-1, 5, starts[-1]), draw.integers(-1, 5, 60)
    own = draw.integers(-1, 5000, 60)
    found = BestScores(persons, records, how, starts, members, labels, own)
    calls = 1
    while found.advance() < 5000:
        calls += 1
    assert calls > 2, "records come in blocks"
    for person in range(0, 60, 7):
        scores = [plain_score(persons, records, how, person, record) for record in range(5000)]
        np.testing.assert_array_equal(all_scores(persons, records, how, person), scores)
        best = np.flatnonzero(np.array(scores) == max(scores))
        behind = np.concatenate([members[starts[r] : starts[r + 1]] for r in best])
        assert found.best[person] == max(scores)
        assert found.ties[person] == len(behind)
        same = (behind == labels[person]).sum() if labels[person] >= 0 else 0
        assert found.alike[person] == same
        assert found.own[person] == (scores[own[person]] if own[person] >= 0 else -np.inf)


def test_sums_do_not_depend_on_the_order_of_columns():
    """Thirds and tenths have no binary form; on the grid their sums are exact, so ties are ties."""
    weights = np.array([1 / 3, 0.1, 0.7, 2.1, 0.15])
    codes = np.eye(5, dtype=np.int32)
    everyone = Scored(np.ones((5, 1), np.int32), np.empty((0, 1)))
    turned = [3, 1, 4, 0, 2]
    sums = []
    for order in (np.arange(5), np.array(turned)):
        how = scoring(weights[order], -weights[order] / 3, np.empty(0), gauss=False)
        records = Scored(np.ascontiguousarray(1 - codes[order]), np.empty((0, 5)))
        sums.append(all_scores(everyone, records, how, 0).tolist())
    assert sums[0] == sums[1]
    assert np.abs(on_grid(weights) - weights).max() <= 2**-41
