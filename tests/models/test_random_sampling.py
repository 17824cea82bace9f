"""The crowd that random sampling needs for differential privacy, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from shoal.errors import ParameterError
from shoal.models import delta_for_class, smallest_class_for


def exact_delta(k, epsilon, sampling, most=160):
    """The definition with whole numbers: the largest tail over the numbers of people."""
    gamma = 1 - (1 - float(sampling)) * math.exp(-epsilon)
    tails = []
    for n in range(max(1, math.ceil(k / gamma - 1)), most):
        drawn = range(math.floor(gamma * n) + 1, n + 1)
        tails.append(sum(math.comb(n, j) * sampling**j * (1 - sampling) ** (n - j) for j in drawn))
    return float(max(tails))


@pytest.mark.parametrize(
    ("k", "epsilon", "sampling"),
    [(2, 1.0, "1/10"), (9, 1.0, "1/10"), (10, 0.5, "3/10"), (7, 0.3, "1/4"), (15, 2.0, "4/5")],
)
def test_delta_is_the_largest_tail(k, epsilon, sampling):
    share = Fraction(sampling)
    found = delta_for_class(k, epsilon, sampling=float(share))
    assert found == pytest.approx(exact_delta(k, epsilon, share), rel=1e-9)


def test_two_records_are_both_drawn():
    """With k = 2 and ε = 1 the worst case is two people, both of whom are drawn."""
    assert delta_for_class(2, 1.0, sampling=0.1) == pytest.approx(0.01)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_smallest_class_is_the_smallest(epsilon, delta):
    sampling = 1 - math.exp(-epsilon)
    k = smallest_class_for(epsilon, delta, sampling=sampling)
    assert delta_for_class(k, epsilon, sampling=sampling) <= delta
    assert delta_for_class(k - 1, epsilon, sampling=sampling) > delta


def test_an_epsilon_that_allows_everything():
    """γ rounds to 1, and the careful side of it is that one person is drawn."""
    assert delta_for_class(2, 100.0, sampling=0.5) == pytest.approx(0.5)


def test_delta_falls_with_k():
    deltas = [delta_for_class(k, 0.5, sampling=0.2) for k in range(1, 60)]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize(
    "wrong", [(0, 1e-6, 0.1), (1, 0, 0.1), (1, 1e-6, 0), (1, 1e-6, 0.64), (1, 2, 0.1)]
)
def test_what_no_crowd_gives(wrong):
    """A record that is drawn with more than 1 - exp(-ε) is not hidden by any crowd."""
    epsilon, delta, sampling = wrong
    with pytest.raises(ParameterError):
        smallest_class_for(epsilon, delta, sampling=sampling)
