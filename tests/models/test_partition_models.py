"""Limits on a table as a whole: average risk and population uniqueness."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from shoal import AverageRisk, KAnonymity, PopulationUniqueness, Roles, Table
from shoal.errors import InputError
from shoal.kernels.uniques.population_uniqueness import (
    dankar,
    pitman,
    slide_negative_binomial,
    zayatz,
)
from shoal.models import table_conditions


def of_sizes(*sizes):
    frame = pl.DataFrame({"x": np.repeat(np.arange(len(sizes)), sizes)})
    return Table(frame, Roles(quasi_identifiers=["x"]))


def test_the_average_is_that_over_records():
    table = of_sizes(1, 4, 5)
    assert AverageRisk(0.3).level(table) == pytest.approx(np.mean(1 / table.class_sizes()))
    assert AverageRisk(0.3).holds(table)
    assert AverageRisk(0.29).violations(table).all()


def test_searches_ask_with_sizes():
    asked = table_conditions([AverageRisk(0.3), KAnonymity(2), PopulationUniqueness(0, 0.5)])
    assert [ask(np.array([1, 4, 5])) for ask in asked] == [True, False]
    assert [ask(np.array([2, 4, 5])) for ask in asked] == [True, True]
    assert [ask(np.array([1, 1])) for ask in asked] == [False, False]
    assert [ask(np.array([], np.int64)) for ask in asked] == [True, True]


def test_what_cannot_be_reached_is_refused():
    AverageRisk(0.1).check(of_sizes(4, 6))
    with pytest.raises(InputError, match="at least 1 / 10"):
        AverageRisk(0.09).check(of_sizes(4, 6))


@pytest.mark.parametrize("estimator", ["dankar", "pitman", "zayatz", "snb"])
def test_without_unique_records_nobody_is_estimated_unique(estimator):
    assert PopulationUniqueness(0, 0.1, estimator).level(of_sizes(2, 2, 5)) == 0


@pytest.mark.parametrize("estimator", ["zayatz", "snb", "dankar"])
def test_a_whole_population_needs_no_estimate(estimator):
    table = of_sizes(*[1] * 20, *[2] * 9, 3, 3, 3, 7, 12)
    assert PopulationUniqueness(0, 1, estimator).level(table) == pytest.approx(20 / 66, abs=1e-9)


@pytest.mark.parametrize("estimator", ["dankar", "pitman", "zayatz", "snb"])
@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1), (1, 9), (1, 1, 2), (1, 50, 3)])
@pytest.mark.parametrize("fraction", [1e-6, 0.05, 0.5, 1])
def test_small_tables_have_an_answer(estimator, sizes, fraction):
    """Never a traceback, never NaN; at worst the share of unique records."""
    level = PopulationUniqueness(0.5, fraction, estimator).level(of_sizes(*sizes))
    assert 0 <= level <= 1


def test_where_pitman_has_no_solution_the_sample_stands_in():
    """Without pairs the formula cannot be fitted; ARX answers 0 here, which looks safe."""
    assert PopulationUniqueness(0.1, 0.05, "pitman").level(of_sizes(1, 1, 4)) == pytest.approx(
        2 / 6
    )


def test_zayatz_by_hand():
    """4 records of 8 people; sizes 1, 1, 2.

    A class of 1 is seen once with probability 4/8, one of 2 with 2 × 4/8 × 4/7 = 4/7. Of unique
    records (2 × 1/2) / (2 × 1/2 + 4/7) = 7/11 are unique people: 7/11 × 2/4 of all.
    """
    sizes, numbers = np.array([1, 2]), np.array([2, 1])
    assert zayatz(sizes, numbers, 0.5) == pytest.approx(7 / 11 * 2 / 4)


@pytest.mark.parametrize("fraction", [0.2, 0.5])
def test_the_slide_negative_binomial_finds_what_it_assumes(fraction):
    rng = np.random.default_rng(7)
    population = 1 + rng.negative_binomial(0.7, 0.35, 300_000)
    sample = rng.binomial(population, fraction)
    sizes, numbers = np.unique(sample[sample > 0], return_counts=True)
    true = (population == 1).sum() / population.sum()
    assert slide_negative_binomial(sizes, numbers, fraction) == pytest.approx(true, rel=0.05)


def restaurant(rng, theta, alpha, guests):
    """Pitman's model of classes: a guest opens a table or joins one, by its size less alpha."""
    table_of = np.zeros(guests, np.int64)
    sizes = [1]
    for guest in range(1, guests):
        place = None
        if rng.random() >= (theta + alpha * len(sizes)) / (theta + guest):
            while place is None:
                picked = table_of[rng.integers(guest)]
                if rng.random() < 1 - alpha / sizes[picked]:
                    place = picked
            sizes[place] += 1
        else:
            place = len(sizes)
            sizes.append(1)
        table_of[guest] = place
    return table_of, np.array(sizes)


@pytest.fixture(scope="module")
def guests():
    """The sizes of all tables, and those of a fifth of the guests with their numbers."""
    rng = np.random.default_rng(3)
    table_of, everyone = restaurant(rng, theta=300.0, alpha=0.4, guests=20_000)
    seen = np.bincount(rng.choice(table_of, 4000, replace=False))
    return everyone, *np.unique(seen[seen > 0], return_counts=True)


def test_pitman_finds_what_it_assumes(guests):
    everyone, sizes, numbers = guests
    true = (everyone == 1).sum() / everyone.sum()
    assert pitman(sizes, numbers, 0.2) == pytest.approx(true, rel=0.15)


def test_the_rule_chooses_by_the_sampling_fraction(guests):
    _, sizes, numbers = guests
    assert dankar(sizes, numbers, 0.1) == pitman(sizes, numbers, 0.1)
    both = zayatz(sizes, numbers, 0.3), slide_negative_binomial(sizes, numbers, 0.3)
    assert dankar(sizes, numbers, 0.3) == min(both)
    assert not math.isnan(min(both))


def test_the_rule_falls_back_on_zayatz():
    """Few and equal classes have no tail for Pitman's formula, whose best alpha is at its end."""
    sizes, numbers = np.array([1, 2, 3, 4]), np.array([1400, 390, 130, 34])
    assert math.isnan(pitman(sizes, numbers, 0.1))
    assert dankar(sizes, numbers, 0.1) == zayatz(sizes, numbers, 0.1)
