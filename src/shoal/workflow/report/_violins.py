"""How the risk of the records is spread, as a violin: where it is thick, there are many records.

Only risks are drawn, never a value of a record. A million records are counted into a few hundred
bins first; the shape ends at the lowest and the highest risk there is, so that it shows none that
nobody has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.workflow._assessment import RiskDistribution
from shoal.workflow.report import _words
from shoal.workflow.report._figures import Tick

Floats = npt.NDArray[np.float64]

_WIDTH = 280.0  # three stand beside each other on a wide page
_LEFT, _RIGHT = 26.0, _WIDTH - 20.0
_MIDDLE, _HALF = 66.0, 40.0
_BINS, _POINTS = 512, 160
#: How wide the records are smoothed, in shares of the scale: more hides, less frays.
_NARROWEST, _WIDEST = 0.008, 0.04
_MOST_TICKS = 4

_TITLES = {
    "journalist_risk": (
        "Journalist risk, 1/F",
        "Chance to find a record for whoever does not know that the person is in the table, by the "
        "F people who look like it",
    ),
    "certainty": (
        "Certainty, f/F",
        "How sure it is that a person is in the table, by the f of F people who are",
    ),
    "prosecutor_risk": (
        "Prosecutor risk, 1/f",
        "Chance to find a record for whoever knows that the person is in the table, by the f "
        "records that look like it",
    ),
}


@dataclass(frozen=True)
class Violin:
    """A distribution of risks: its outline, where its quarters lie, and what it says in words."""

    title: str
    what: str
    outline: str
    quarters: tuple[float, float]
    median: float
    fraction: Tick | None
    ticks: tuple[Tick, ...]
    sentences: tuple[str, ...]
    numbers: tuple[tuple[str, str], ...]
    width: float = _WIDTH
    height: float = 142.0
    middle: float = _MIDDLE
    top: float = _MIDDLE - _HALF
    base: float = _MIDDLE + _HALF


def violin(distribution: RiskDistribution) -> Violin:
    """The picture of a distribution of risks."""
    chances = distribution.measure != "certainty"  # one over a count: told in ratios
    quantiles = {float(q): value for q, value in distribution.quantiles.items()}
    decades = max(1, math.ceil(-math.log10(quantiles[0.0]) - 1e-9)) if chances else 0

    def place(value: float) -> float:
        share = 1 + math.log10(value) / decades if chances else value
        return _LEFT + share * (_RIGHT - _LEFT)

    values, counts = np.unique(distribution.values, return_counts=True)
    shares = 1 + np.log10(values) / decades if chances else values
    title, what = _TITLES[distribution.measure]
    fraction = distribution.fraction
    return Violin(
        title,
        what,
        _outline(shares, counts.astype(np.float64)),
        (place(quantiles[0.25]), place(quantiles[0.75])),
        place(quantiles[0.5]),
        None if fraction is None else Tick(place(fraction), f"in the table: {fraction:.3g}"),
        _chance_ticks(decades) if chances else _share_ticks(),
        _sentences(distribution, quantiles, chances),
        _numbers(distribution, quantiles, chances),
    )


def _outline(shares: Floats, counts: Floats) -> str:
    """The closed path around a distribution; one value alone is a bar."""
    low, high = float(shares.min()), float(shares.max())
    scale = _RIGHT - _LEFT
    if high - low < 0.006:
        middle = _LEFT + (low + high) / 2 * scale
        top, base = _MIDDLE - _HALF, _MIDDLE + _HALF
        return f"M{middle - 2:.1f} {top}H{middle + 2:.1f}V{base}H{middle - 2:.1f}Z"
    thick = _HALF * _density(shares, counts, low, high)
    x = _LEFT + scale * np.linspace(low, high, _POINTS)
    upper = [f"{a:.1f} {_MIDDLE - t:.1f}" for a, t in zip(x, thick, strict=True)]
    lower = [f"{a:.1f} {_MIDDLE + t:.1f}" for a, t in zip(x, thick, strict=True)]
    return "M" + "L".join([*upper, *reversed(lower)]) + "Z"


def _density(shares: Floats, counts: Floats, low: float, high: float) -> Floats:
    """How many records lie near each point of the scale, against the most; a Gaussian kernel.

    The width is Silverman's (1986, equation 3.31), within what a picture of this size can show.
    """
    binned, edges = np.histogram(shares, bins=_BINS, range=(low, high), weights=counts)
    at = (edges[:-1] + edges[1:]) / 2
    total = counts.sum()
    spread = math.sqrt(float(np.cov(shares, aweights=counts, ddof=0)))
    width = float(np.clip(0.9 * spread * total**-0.2, _NARROWEST, _WIDEST))
    points = np.linspace(low, high, _POINTS)
    used = binned > 0
    gaps = (points[:, None] - at[used][None, :]) / width
    found: Floats = np.exp(-0.5 * gaps**2) @ binned[used]
    return found / found.max()


def _chance_ticks(decades: int) -> tuple[Tick, ...]:
    step = math.ceil(decades / (_MOST_TICKS - 1))
    powers = range(0, decades + 1, step)
    return tuple(
        Tick(
            _LEFT + (1 - power / decades) * (_RIGHT - _LEFT),
            "certain" if power == 0 else f"1 in {10**power:,}",
        )
        for power in reversed(powers)
    )


def _share_ticks() -> tuple[Tick, ...]:
    return tuple(
        Tick(_LEFT + share * (_RIGHT - _LEFT), f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)
    )


def _sentences(
    distribution: RiskDistribution, quantiles: dict[float, float], chances: bool
) -> tuple[str, ...]:
    """What the picture shows."""
    if quantiles[0.0] == quantiles[1.0]:
        told = [f"All records have {_said(quantiles[0.0], chances)}."]
    else:
        told = [
            f"Half of the records have at most {_said(quantiles[0.5], chances)}, the highest "
            f"{_said(quantiles[1.0], chances)}."
        ]
    if distribution.fraction is not None and distribution.above is not None:
        above = _words.percent(100 * distribution.above)
        told.append(
            f"Overall {distribution.fraction:.3g} of the people are in the table; {above} of the "
            "records have a higher certainty than that."
        )
    return tuple(told)


def _said(value: float, chances: bool) -> str:
    """A risk in words; a chance as one in so many where that is what it is."""
    if not chances:
        return _words.number(value)
    if value >= 1:
        return "1 (certain)"
    times = 1 / value
    exact = abs(times - round(times)) < 1e-6 * times
    return f"1 in {_words.number(round(times) if exact else round(times, 1))}"


def _numbers(
    distribution: RiskDistribution, quantiles: dict[float, float], chances: bool
) -> tuple[tuple[str, str], ...]:
    names: Sequence[tuple[float, str]] = (
        (0.0, "lowest"),
        (0.25, "a quarter of the records at most"),
        (0.5, "half of the records at most"),
        (0.75, "three quarters at most"),
        (0.95, "95 % of the records at most"),
        (1.0, "highest"),
    )
    rows = [(name, _said(quantiles[q], chances)) for q, name in names]
    return (*rows, ("mean", _words.number(distribution.mean)))
