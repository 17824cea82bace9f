"""The risk above a baseline, and its interval."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from shoal import Table
from shoal.errors import InputError
from shoal.risk import singling_out
from shoal.risk.attacks._success import Attack, Rate, Rates, risk_above


def test_the_risk_is_what_the_baseline_leaves():
    assert risk_above(Rate(0.6, 500), Rate(0.2, 500))[0] == pytest.approx(0.5)
    assert risk_above(Rate(1.0, 500), Rate(0.2, 500))[0] == 1.0
    assert risk_above(Rate(0.2, 500), Rate(0.6, 500))[0] == 0.0
    assert risk_above(Rate(1.0, 500), Rate(1.0)) == (0.0, (0.0, 1.0))


def test_against_a_known_baseline_it_is_the_interval_of_the_rate():
    attack = Rate(0.3, 200)
    value, interval = risk_above(attack, Rate(0.1))
    assert value == pytest.approx((0.3 - 0.1) / 0.9)
    assert interval == pytest.approx([(end - 0.1) / 0.9 for end in attack.interval])


@pytest.mark.parametrize(
    ("r", "b", "n"), [(0.3, 0.1, 300), (0.05, 0.05, 500), (0.9, 0.7, 200), (0.02, 0.0, 400)]
)
def test_the_interval_covers_the_risk(r, b, n):
    """In about 95 of 100 experiments; if the risk is 0, only the upper half counts."""
    rng = np.random.default_rng(11)
    risk, covered = (r - b) / (1 - b), 0
    for hits, others in zip(rng.binomial(n, r, 600), rng.binomial(n, b, 600), strict=True):
        low, high = risk_above(Rate(hits / n, n), Rate(others / n, n))[1]
        covered += low <= risk + 1e-12 and risk <= high + 1e-12
    assert 0.92 <= covered / 600 <= 1.0


@pytest.mark.parametrize(("r", "b"), [(0.6, 0.2), (0.9, 0.5), (0.31, 0.3)])
def test_the_ends_solve_the_equation_of_the_method(r, b):
    """The difference of the failures is as large as its recovered standard deviation."""
    attack, baseline = Rate(r, 300), Rate(b, 80)
    low, high = risk_above(attack, baseline)[1]
    fails, kept = 1 - r, 1 - b
    (least_kept, most_kept), (least, most) = (
        (1 - rate.interval[1], 1 - rate.interval[0]) for rate in (baseline, attack)
    )
    ratio = 1 - high
    assert fails - ratio * kept == pytest.approx(
        math.hypot(fails - least, ratio * (most_kept - kept))
    )
    if low > 0:
        ratio = 1 - low
        assert ratio * kept - fails == pytest.approx(
            math.hypot(most - fails, ratio * (kept - least_kept))
        )


def test_more_trials_narrow_it():
    widths = [np.diff(risk_above(Rate(0.4, n), Rate(0.2, n))[1])[0] for n in (50, 500, 5000)]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


@pytest.mark.parametrize("share", [0.0, 0.37, 1.0])
@pytest.mark.parametrize("baseline", [0.0, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("trials", [1.0, 30.0, math.inf])
def test_it_stays_between_0_and_1(share, baseline, trials):
    value, (low, high) = risk_above(Rate(share, trials), Rate(baseline, trials))
    assert 0.0 <= low <= value <= high <= 1.0


def test_the_higher_baseline_counts_and_is_named():
    table = Table(pl.DataFrame({"x": [1]}))
    attack, rate, blind = Attack("x", table, table, None), Rate(0.5, 100), Rate(0.1, 100)
    found = attack.measurement(Rates(rate, blind, Rate(0.4, 100)), {})
    assert found.value == pytest.approx(1 / 6)
    assert found.details["control"] == 0.4
    assert found.baseline == 0.0
    assert any("not in the table" in said for said in found.warnings) == (found.interval[0] == 0)
    found = attack.measurement(Rates(rate, blind, Rate(0.05, 100)), {})
    assert found.value == pytest.approx(4 / 9)
    assert found.warnings == ()
    found = attack.measurement(Rates(rate, Rate(0.5, 100)), {})
    assert found.value == 0.0
    assert "'control'" in found.warnings[0]
    assert "no better than blind guessing" in found.warnings[1]


def test_control_persons_were_not_in_the_table():
    table = Table(pl.DataFrame({"x": range(6)}))
    half = np.arange(6) < 3
    Attack("x", table.keep(half), table.keep(half), table.keep(~half))
    with pytest.raises(InputError, match="in the original"):
        Attack("x", table.keep(half), table.keep(half), table)
    with pytest.raises(InputError, match="no persons"):
        Attack("x", table, table, Table(pl.DataFrame({"x": []})))
    with pytest.raises(InputError, match="Got something of type DataFrame"):
        singling_out(table, table, known=["x"], control=table.frame)
