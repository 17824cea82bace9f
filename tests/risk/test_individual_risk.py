"""Individual and household risk: published numbers, closed forms and numerical integration."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import nbinom

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.risk import household_risk, individual_risk
from shoal.risk._sampled_population import expected_risk

ROLES = Roles(quasi_identifiers=["x"])


def table(*values, roles=ROLES, **more):
    return Table(pl.DataFrame({"x": list(values), **more}), roles)


def test_francdat():
    """The example of Capobianchi, Polettini and Lucarelli as in the sdcMicro guidelines.

    Printed there, to three decimals: 0.017 0.022 0.022 0.177 0.012 0.297 0.402 0.017.
    """
    frame = pl.DataFrame(
        {
            "Key1": [1, 1, 1, 3, 4, 4, 6, 1],
            "Key2": [2, 2, 2, 3, 3, 3, 2, 2],
            "Key3": [5, 1, 1, 1, 1, 1, 1, 5],
            "Key4": [1, 1, 1, 5, 4, 1, 5, 1],
            "w": [18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0],
        }
    )
    roles = Roles(quasi_identifiers=["Key1", "Key2", "Key3", "Key4"], weight="w")
    found = individual_risk(Table(frame, roles))
    printed = [0.017, 0.022, 0.022, 0.177, 0.012, 0.297, 0.402, 0.017]
    assert found.per_record.round(3).tolist() == printed
    assert found.details["expected_records"] == pytest.approx(found.per_record.sum())
    assert found.details["highest"] == pytest.approx(math.log(5) / 4)
    assert found.value == pytest.approx(found.per_record.mean())


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.9, 0.999999])
def test_closed_forms(p):
    """Franconi and Polettini 2004, equations for f = 1, 2 and 3."""
    odds, log = p / (1 - p), math.log(1 / p)
    if p > 0.99:  # the closed forms lose their digits here, so they are not used
        expected = [1, 1 / 2, 1 / 3]
    else:
        expected = [odds * log, odds - odds**2 * log, odds / 2 - odds**2 + odds**3 * log]
    found = expected_risk(np.array([1.0, 2.0, 3.0]), np.full(3, p))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 29, 30, 40, 1000, 250_000])
@pytest.mark.parametrize("p", [1e-5, 0.02, 0.4, 0.95, 1.0])
def test_numerical_integration(size, p):
    """E(1/F) is the integral of the generating function: of (p e⁻ᵗ / (1 − (1 − p) e⁻ᵗ))ᶠ."""

    def integrand(u):  # t = -log(u) / size, which spreads the mass over 0 to 1
        e = u ** (1 / size)
        return (p / (1 - (1 - p) * e)) ** size / size

    value, _ = quad(integrand, 0, 1, limit=500, points=[0.9, 0.99, 0.9999] if p < 0.1 else None)
    (found,) = expected_risk(np.array([float(size)]), np.array([p]))
    assert found == pytest.approx(value, rel=1e-4)
    assert 0 < found <= 1 / size


def test_every_size_has_a_number():
    """Larger classes are always safer, even where one way of computing replaces another."""
    sizes = np.arange(1.0, 2000.0)
    for p in (1e-9, 1e-4, 0.01, 0.5, 0.99, 1.0):
        found = expected_risk(sizes, np.full(len(sizes), p))
        assert np.isfinite(found).all()
        assert (np.diff(found) < 0).all()
    assert np.isfinite(expected_risk(np.array([1e9]), np.array([1e-9]))).all()


def test_the_sum_over_all_populations():
    """The definition itself: 1/F weighted by its probability given f."""
    for size, p in [(1, 0.2), (3, 0.1), (7, 0.5)]:
        people = np.arange(size, 4000)
        expected = (nbinom.pmf(people - size, size, p) / people).sum()
        (found,) = expected_risk(np.array([float(size)]), np.array([p]))
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_sampling_fraction():
    """f = 2 2 1 at a fraction of 0.2: odds 1/4."""
    pair, single = 0.25 - 0.0625 * math.log(5), 0.25 * math.log(5)
    found = individual_risk(table("a", "a", "b"), sampling_fraction=0.2)
    assert found.per_record == pytest.approx([pair, pair, single])
    whole = individual_risk(table("a", "a", "b"), sampling_fraction=1.0)
    assert whole.per_record.tolist() == [0.5, 0.5, 1.0]
    assert found.warnings == ("The population sizes are estimates from the sample.",)


def test_a_fraction_is_used_instead_of_weights():
    people = table("a", "b", roles=ROLES.replacing(weight="w"), w=[10.0, 0.5])
    assert individual_risk(people).per_record.tolist() == [pytest.approx(math.log(10) / 9), 1.0]
    assert individual_risk(people, sampling_fraction=0.5).per_record == pytest.approx(
        [math.log(2)] * 2
    )


def test_wildcards():
    """x = 1 1 2 *: sizes 3, 3, 2 and 4, with weights 7, 7, 7 and 10."""
    people = table(1, 1, 2, None, roles=ROLES.replacing(weight="w"), w=[1.0, 2.0, 3.0, 4.0])
    found = individual_risk(people, missing="wildcard")
    expected = expected_risk(np.array([3.0, 3, 2, 4]), np.array([3 / 7, 3 / 7, 2 / 7, 4 / 10]))
    assert found.per_record == pytest.approx(expected)


# -- households


def test_households_by_hand():
    """Risks ln 2, ln 2, 1/2 and 1/2 at certain fractions; three homes, one person alone."""
    people = table("a", "b", "c", "d", "e", home=["h", "h", "i", None, None])
    risk = math.log(2)
    found = household_risk(people, household="home", sampling_fraction=0.5)
    together = 1 - (1 - risk) ** 2
    assert found.per_record == pytest.approx([together, together, risk, risk, risk])
    assert found.value == pytest.approx((2 * together + 3 * risk) / 5)
    assert found.details["households"] == 4
    assert found.details["expected_records"] == pytest.approx(2 * together + 3 * risk)


def test_one_certain_member_gives_the_household_away():
    people = table(
        *"aabb", "c", home=[1, 1, 2, 2, 2], roles=ROLES.replacing(weight="w"), w=[2.0] * 4 + [1.0]
    )
    found = household_risk(people, household="home")
    assert found.per_record[2:].tolist() == [1.0, 1.0, 1.0]
    assert found.per_record[0] == pytest.approx(
        1 - (1 - individual_risk(people).per_record[0]) ** 2
    )


def test_households_against_a_loop():
    rng = np.random.default_rng(4)
    homes = rng.integers(0, 40, 150)
    people = table(*rng.integers(0, 30, 150).tolist(), home=homes)
    own = individual_risk(people, sampling_fraction=0.1).per_record
    expected = [1 - math.prod(1 - own[homes == home]) for home in homes]
    found = household_risk(people, household="home", sampling_fraction=0.1)
    assert found.per_record == pytest.approx(expected)
    assert (found.per_record >= own).all()


def test_what_is_refused():
    people = table("a", "b", home=[1, 2])
    with pytest.raises(InputError, match="sampling_fraction"):
        individual_risk(people)
    with pytest.raises(InputError, match="> 0 and ≤ 1"):
        individual_risk(people, sampling_fraction=0)
    with pytest.raises(InputError, match="household"):
        household_risk(people, sampling_fraction=0.5)
    with pytest.raises(InputError, match="has no column 'hom'"):
        household_risk(people, household="hom", sampling_fraction=0.5)
    with pytest.raises(InputError, match=r"the name of a column. Got 3"):
        household_risk(people, household=3, sampling_fraction=0.5)
