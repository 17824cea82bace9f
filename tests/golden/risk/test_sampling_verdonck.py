"""Certainty and journalist risk of samples, with the numbers that the mathematics and Adult give.

Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
anonymization pipeline: of F people of a class f are released; risk 1/F, certainty f/F. What the
paper says of its tables ("almost 50 %" above .5, ".2 %" above .8) depends on the class sizes.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, hypergeom

from shoal import Generalize, Roles, Sample, Table
from shoal.risk import certainty

ROLES = Roles(quasi_identifiers=["x"])


def of_sizes(sizes):
    return Table(pl.DataFrame({"x": np.repeat(np.arange(len(sizes)), sizes)}), ROLES)


def above(sizes, bound, chance):
    """The share of people above a bound that is expected, and its standard deviation.

    ``chance`` gives for each size the chance that more than the bound of a class is drawn.
    """
    chances = chance(np.floor(bound * sizes + 1e-9), sizes)
    people = sizes.sum()
    spread = np.sqrt((sizes.astype(float) ** 2 * chances * (1 - chances)).sum()) / people
    return (sizes * chances).sum() / people, spread


def by_ones(at_most, sizes):
    return binom.sf(at_most, sizes, 0.5)


# -- classes of one size


@pytest.mark.parametrize(
    ("size", "above_half", "above_most"),
    [
        (5, 0.5, 0.031),
        (6, 0.344, 0.109),
        (7, 0.5, 0.0625),
        (10, 0.377, 0.0107),
        (20, 0.412, 0.0013),
        (50, 0.444, 0.0),
        (99, 0.5, 0.0),
        (100, 0.460, 0.0),
    ],
)
def test_half_of_classes_of_one_size(size, above_half, above_most):
    """f is binomial: the chance of more than half is 1/2 for odd F, and less for even ones."""
    sizes = np.full(2_000, size)
    sample = Sample(fraction=0.5, strategy="bernoulli").fit_transform(of_sizes(sizes))
    found = certainty(of_sizes(sizes), sample).details["people_above"]
    for bound, printed in ((0.5, above_half), (0.8, above_most)):
        expected, spread = above(sizes, bound, by_ones)
        assert expected == pytest.approx(printed, abs=5.1e-4)
        assert found[str(bound)] == pytest.approx(expected, abs=5 * spread + 1e-9)


@pytest.mark.parametrize(("size", "kept", "half_even", "half_up"), [(7, 3, 4, 4), (5, 2, 2, 3)])
def test_only_rounding_down_keeps_the_bound(size, kept, half_even, half_up):
    """Half of 7 would be 4 by Python's rounding, a certainty of .571; of 5 by hand 3, or .6."""
    assert (round(0.5 * size), math.floor(0.5 * size + 0.5)) == (half_even, half_up)
    assert max(half_even, half_up) / size in (4 / 7, 3 / 5)
    whole = of_sizes([size])
    sample = Sample(fraction=0.5, strategy="stratified").fit_transform(whole)
    assert len(sample) == kept
    assert certainty(whole, sample).value == kept / size < 0.5


# -- classes of many sizes


@pytest.mark.parametrize(
    ("mean", "deviation", "median", "half", "most", "released"),
    [(3.5, 1.2, 137, 0.482, 0.0011, 0.0019), (3.0, 1.0, 55, 0.475, 0.0033, 0.0059)],
)
def test_half_of_lognormal_classes(mean, deviation, median, half, most, released):
    """Of at least 5: 48.2 % of the people above .5, .11 % above .8, .19 % of the released records.

    Half of all people are in classes of up to 137. For the smaller classes 47.5 % and .33 %.
    """
    rng = np.random.default_rng(3)
    many = np.maximum(rng.lognormal(mean, deviation, 200_000).astype(int), 5)
    in_order = np.sort(many)
    middle = in_order[np.searchsorted(np.cumsum(in_order), many.sum() / 2)]
    assert middle == pytest.approx(median, rel=0.05)
    assert above(many, 0.5, by_ones)[0] == pytest.approx(half, abs=0.006)
    assert above(many, 0.8, by_ones)[0] == pytest.approx(most, abs=0.0001)
    sizes = many[:3_000]
    sample = Sample(fraction=0.5, strategy="bernoulli").fit_transform(of_sizes(sizes))
    found = certainty(of_sizes(sizes), sample).details
    for bound in (0.5, 0.8):
        expected, spread = above(sizes, bound, by_ones)
        assert found["people_above"][str(bound)] == pytest.approx(expected, abs=5 * spread)
    # a class of which much is released has more released records, so these are more often certain
    assert found["records_above"]["0.8"] == pytest.approx(released, rel=0.4)
    assert found["records_above"]["0.8"] > 1.5 * found["people_above"]["0.8"]


def test_stratified_samples_of_lognormal_classes():
    sizes = np.maximum(np.random.default_rng(0).lognormal(3, 1, 400).astype(int), 5)
    sample = Sample(fraction=0.5, strategy="stratified").fit_transform(of_sizes(sizes))
    assert certainty(of_sizes(sizes), sample).value == 0.5
    assert len(sample) == (sizes // 2).sum()


# -- Adult, 30,162 records


@pytest.fixture(scope="module")
def adult(shared_data):
    """Adult by some quasi-identifiers, and the hierarchies that are ARX's."""
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    folder = shared_data / "hierarchies" / "adult_arx"

    def by(*names):
        table = Table(frame, Roles(quasi_identifiers=names, target="salary-class"))
        return table, {name: str(folder / f"{name}.csv") for name in names}

    return by


#: Six generalizations with classes of at least 5: age, education, marital status (sex as it is).
SIX = [(0, 0, 0), (0, 0, 2), (1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 0)]


@pytest.mark.parametrize("levels", SIX)
def test_half_of_adult(adult, levels):
    """Random halves, k = 5: 45 to 54 % of the people above .5, and .06 to 1.7 % above .8.

    That is what is expected of the class sizes; a single draw moves large classes as a whole.
    """
    names = ("age", "education", "marital-status")
    whole, trees = adult("sex", *names)
    chosen = dict(zip(names, levels, strict=True), sex=0)
    step = Generalize(k=5, hierarchies=trees, levels=chosen, suppression_limit=0.2)
    coarse = step.fit_transform(whole)
    sizes, people = coarse.classes.sizes, len(coarse)

    def at_once(at_most, sizes):  # without replacement, from everybody
        return hypergeom.sf(at_most, people, sizes, people // 2)

    half, spread = above(sizes, 0.5, at_once)
    most, small = above(sizes, 0.8, at_once)
    assert 0.45 <= half <= 0.54
    assert 0.0006 <= most <= 0.017
    found = certainty(coarse, Sample(fraction=0.5).fit_transform(coarse)).details["people_above"]
    assert found["0.5"] == pytest.approx(half, abs=5 * spread)
    assert found["0.8"] == pytest.approx(most, abs=5 * small)
    exact = Sample(fraction=0.5, strategy="stratified").fit_transform(coarse)
    assert certainty(coarse, exact).value == 0.5
    assert 0.481 <= len(exact) / people <= 0.4995


def test_classes_that_vanish(adult):
    """An eighth of 203 classes of at least 5: 38 have fewer than 8 records and leave nobody.

    Of all 12,960 combinations of levels of the nine columns it is the only one with these two.
    """
    levels = {"race": 0, "marital-status": 1, "education": 2, "workclass": 0, "occupation": 1}
    whole, trees = adult(*levels)
    step = Generalize(k=5, hierarchies=trees, levels=levels, suppression_limit=0.05)
    coarse = step.fit_transform(whole)
    sample = Sample(fraction=0.125, strategy="stratified").fit_transform(coarse)
    assert coarse.classes.count == 203
    assert coarse.classes.count - sample.classes.count == 38
    assert certainty(coarse, sample).value == 0.125


def test_after_generalization(adult):
    """k = 20, an eighth, sampled last: 1/F is .0036 on average and at most .05.

    Found with age, sex, race and marital status, the loss metric and at most 5 % suppressed. 13
    to 15 % of the released records are in classes below 20, the smallest of 1.
    """
    whole, trees = adult("age", "sex", "race", "marital-status")
    coarse = Generalize(k=20, hierarchies=trees, suppression_limit=0.05).fit_transform(whole)
    risks, below = [], []
    for _ in range(3):
        sample = Sample(fraction=0.125).fit_transform(coarse)
        found = certainty(coarse, sample)
        risks.append(found.details["journalist_risk"])
        below.append((sample.class_sizes() < 20).mean())
        assert any("is 20-anonymous; the release is not" in said for said in found.warnings)
        assert sample.classes.k <= 3
    assert np.mean([one["mean"] for one in risks]) == pytest.approx(0.0036, abs=0.0002)
    assert max(one["highest"] for one in risks) == pytest.approx(0.05)
    assert np.mean(below) == pytest.approx(0.14, abs=0.02)


def test_before_generalization(adult):
    """The same, sampled first: 1/F is .0005 on average and at most .0048, in ten draws.

    F counts all people at the levels that the search finds on the sample, and the mean is over
    the released records; over classes it would be two to four times as much. The levels differ by
    draw: age 3 and marital status 2, with the rest as it is, are found in a third of the draws and
    give .00044 to .00057, .00051 on average; all draws give .00065 on average, and a few .0012.
    The highest risk is that of one class, from .003 to .0123 in 120 draws.
    """
    whole, trees = adult("age", "sex", "race", "marital-status")
    often = {"age": 3, "sex": 0, "race": 0, "marital-status": 2}
    options = {"k": 20, "hierarchies": trees}
    for levels, expected, deviation in ((often, 0.00051, 0.00005), (None, 0.00065, 0.0002)):
        means = []
        for _ in range(10):
            step = Generalize(**options, levels=levels, suppression_limit=0.1 if levels else 0.05)
            masked = step.fit_transform(Sample(fraction=0.125).fit_transform(whole))
            found = certainty(whole, masked)
            risk = found.details["journalist_risk"]
            means.append(risk["mean"])
            assert 0.0025 < risk["highest"] < 0.0125
            # what became of a value is learned from who is in both, which places nearly everybody
            at_levels = Generalize(**options, levels=step.levels_, suppression_limit=0.2)
            people = masked.class_sizes_in(at_levels.fit_transform(whole))
            assert risk["mean"] == pytest.approx((1 / people).mean(), rel=0.05)
            by_class = np.unique(masked.classes.labels, return_index=True)[1]
            assert (1 / people)[by_class].mean() > 2 * risk["mean"]
        assert np.mean(means) == pytest.approx(expected, abs=deviation)


def test_a_balanced_sample_gives_the_rare_label_away(adult):
    """A half: .85 of label 1 and .38 of label 0 stay, and 45 % of the people with label 1 are in
    the release with certainty 1, although f/F is at most .5.
    """
    whole, trees = adult("age", "sex", "education", "marital-status")
    step = Generalize(k=5, hierarchies=trees, suppression_limit=0.05)
    coarse = step.fit_transform(whole)
    found = certainty(coarse, Sample(fraction=0.5, strategy="balanced").fit_transform(coarse))
    assert found.value == 0.5
    rare, frequent = found.details["with_target"]["values"]
    assert rare["inclusion"] == pytest.approx(0.85, abs=0.01)
    assert frequent["inclusion"] == pytest.approx(0.38, abs=0.01)
    assert rare["certain_people"] == pytest.approx(0.45, abs=0.01)
