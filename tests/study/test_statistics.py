"""Statistics over many tables: golden cases, closed forms and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shoal.errors import InputError
from shoal.study._statistics import (
    bayes_sign_test,
    bootstrap_interval,
    friedman,
    pareto_front,
    percentage_differences,
    ranks,
    signed_rank,
    spearman,
)


def test_the_bayes_sign_test_has_its_golden_case():
    """12 lose, 4 draw, 2 win: the posterior mean is (12, 5, 2)/19 with a prior of 1 on the rope."""
    found = bayes_sign_test([-3.0] * 12 + [0.5] * 4 + [2.0] * 2)
    assert found.counts == (12, 4, 2)
    assert found.mean == pytest.approx((12 / 19, 5 / 19, 2 / 19))
    assert found.probabilities == pytest.approx((0.961, 0.037, 0.001), abs=0.004)
    assert found.verdict == "lose"


def test_the_probabilities_are_those_of_the_posterior():
    """Of three Dirichlet shares, the first is the largest as often as in independent draws."""
    found = bayes_sign_test([-3.0] * 3 + [0.5] * 2 + [2.0] * 4)
    draws = np.random.default_rng(5).dirichlet([3, 3, 4], 200_000)
    expected = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
    assert found.probabilities == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("difference", "place"), [(-1.0, 1), (1.0, 1), (1.01, 2), (-1.01, 0)])
def test_the_edge_of_the_region_is_a_draw(difference, place):
    assert bayes_sign_test([difference]).counts[place] == 1


def test_ranks_share_ties_and_put_missing_values_last():
    values = [[0.9, np.nan, 0.2], [0.9, 0.5, 0.3], [0.4, 0.6, np.nan]]
    assert ranks(values).tolist() == [[1.5, 3, 2], [1.5, 2, 1], [3, 1, 3]]
    assert ranks(values, higher_is_better=False).tolist() == [[2.5, 3, 1], [2.5, 1, 2], [1, 2, 3]]


def test_friedman_after_demsar():
    """Demšar (2006), Table 6 and section 3.2.2: four classifiers, mean ranks 3.143, 2.000, 2.893
    and 1.964, critical difference 1.25 at 0.05, 14 data sets. Two printed
    values tie where the printed ranks do not (0.975): one of them has a fourth digit here."""
    values = np.array(
        [
            [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619,
             0.972, 0.957],
            [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666,
             0.981, 0.978],
            [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614,
             0.9751, 0.946],
            [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669,
             0.975, 0.970],
        ]
    )  # fmt: skip
    found = friedman(values)
    assert found.mean_ranks == pytest.approx((3.143, 2.000, 2.893, 1.964), abs=0.001)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    # The paper's 9.28 is Friedman's statistic without the correction for ties that scipy makes.
    spread = sum((rank - 2.5) ** 2 for rank in found.mean_ranks)
    assert 12 * 14 / (4 * 5) * spread == pytest.approx(9.28, abs=0.02)
    assert found.statistic == pytest.approx(stats.friedmanchisquare(*values).statistic)


def test_friedman_where_all_are_alike():
    found = friedman(np.ones((3, 4)))
    assert (found.statistic, found.p_value, found.mean_ranks) == (0.0, 1.0, (2.0, 2.0, 2.0))


def test_friedman_refuses_what_it_cannot_compare():
    with pytest.raises(InputError, match="three methods"):
        friedman([[1.0, 2.0], [2.0, 3.0]])
    with pytest.raises(InputError, match="every method on every table"):
        friedman([[1.0, 2.0], [2.0, np.nan], [1.0, 2.0]])


def test_signed_rank_is_wilcoxons():
    differences = [3.0, -1.0, 2.5, 0.0, 4.0, -0.5, 6.0, 1.5]
    expected = stats.wilcoxon(differences, zero_method="pratt")
    assert signed_rank(differences) == pytest.approx((expected.statistic, expected.pvalue))
    assert signed_rank([0.0, 0.0]) == (0.0, 1.0)


def test_a_bootstrap_interval_of_the_mean_is_near_the_normal_one():
    values = np.random.default_rng(1).normal(10, 2, 400)
    low, high = bootstrap_interval(values)
    half = 1.96 * values.std(ddof=1) / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03)
    assert bootstrap_interval([4.0, 4.0]) == (4.0, 4.0)
    assert bootstrap_interval([4.0]) == (4.0, 4.0)
    low, high = bootstrap_interval(values, lambda given: float(np.quantile(given, 0.9)))
    assert low < np.quantile(values, 0.9) < high


def test_spearman_is_scipys_and_knows_constants():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=30), rng.normal(size=30)
    assert spearman(x, y) == pytest.approx(tuple(stats.spearmanr(x, y)))
    assert spearman(np.ones(5), np.arange(5)) == (0.0, 1.0)
    with pytest.raises(InputError, match="three pairs"):
        spearman([1, 2], [1, 2])


def test_the_front_is_what_no_other_point_beats():
    points = np.random.default_rng(3).integers(0, 5, (60, 2)).astype(float)
    front = pareto_front(points, higher_is_better=[False, True])
    for place, (risk, score) in enumerate(points):
        beaten = any(
            other[0] <= risk and other[1] >= score and (other[0] < risk or other[1] > score)
            for other in points
        )
        assert front[place] == (not beaten)
    assert pareto_front([[0.1, np.nan], [0.5, 0.5]], higher_is_better=[False, True]).tolist() == [
        False,
        True,
    ]


def test_a_baseline_of_zero_has_no_percentage():
    found = percentage_differences([0.5, 0.2, np.nan, 0.3], [0.4, 0.0, 0.5, np.nan])
    assert found[0] == pytest.approx(25.0)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("given", [[], [1.0, np.nan], [np.inf]])
def test_missing_values_are_refused(given):
    for statistic in (bayes_sign_test, signed_rank, bootstrap_interval):
        with pytest.raises(InputError, match="missing"):
            statistic(given)


def test_without_a_region_only_what_is_equal_is_a_draw():
    found = bayes_sign_test([-2.0, 0.0, 1.0, 3.0, 4.0, 5.0], rope=0)
    assert found.counts == (1, 1, 4)
    assert sum(found.probabilities) == pytest.approx(1.0)
    assert found.verdict == "win"


@pytest.mark.parametrize(
    ("y", "p_value"),
    [([1, 2, 3], 1 / 3), ([1, 2, 3, 4, 5], 1 / 60), ([1, 1, 2, 2], 1 / 3), ([2, 1, 3], 1.0)],
)
def test_of_few_pairs_the_p_value_of_spearman_counts_orders(y, p_value):
    """Three pairs in one order are not evidence: one order of six agrees, and one is opposed."""
    assert spearman(range(len(y)), y)[1] == pytest.approx(p_value)


def test_of_nine_pairs_or_more_it_is_that_of_student():
    x, y = np.arange(9), [1, 0, 2, 4, 3, 5, 8, 6, 7]
    assert spearman(x, y)[1] == pytest.approx(stats.spearmanr(x, y).pvalue)
