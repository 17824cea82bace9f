"""The pictures of an assessment: each measure on its scale, and risk as a violin.

A measure is drawn where its value lies between its limits, together with its interval, baseline
and bound. Places are percents of the picture's width, so that every row of a page has the same
height (``templates/measures.html.j2``). A violin is thick where many records have such a risk. Only
risks are drawn, never a value of a record. The shape ends at the lowest and the highest risk, so
that it shows no risk that nobody has.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from shoal.measurement import MeasureInfo, Measurement
from shoal.workflow._assessment import RiskDistribution, bound_of
from shoal.workflow.report import _words
from shoal.workflow.report._figures import Tick

Floats = npt.NDArray[np.float64]

_WIDTH = 280.0  # three fit side by side on a wide page
_LEFT, _RIGHT = 26.0, _WIDTH - 20.0
_MIDDLE, _HALF = 66.0, 40.0
_BINS, _POINTS = 512, 160
#: The width of the smoothing, in shares of the scale: wider hides detail, narrower looks ragged.
_NARROWEST, _WIDEST = 0.008, 0.04
_MOST_TICKS = 4


def violin(distribution: RiskDistribution) -> SimpleNamespace:
    """A distribution of risks: its outline, its quartiles, and what it shows in words."""
    chances = distribution.measure != "certainty"  # one over a count: shown as ratios
    quantiles = {float(q): value for q, value in distribution.quantiles.items()}
    decades = max(1, math.ceil(-math.log10(quantiles[0.0]) - 1e-9)) if chances else 0

    def place(value: float) -> float:
        return _at(1 + math.log10(value) / decades if chances else value)

    values, counts = distribution.counted
    shares = 1 + np.log10(values) / decades if chances else values
    fraction = distribution.fraction
    title, what = _words.WORDS["violins"][distribution.measure]
    rows = [
        (name, _risk_in_words(quantiles[float(q)], chances))
        for q, name in _words.WORDS["quantiles"].items()
    ]
    limit = None if fraction is None else Tick(place(fraction), f"in the table: {fraction:.3g}")
    return SimpleNamespace(
        width=_WIDTH,
        height=142.0,
        middle=_MIDDLE,
        top=_MIDDLE - _HALF,
        base=_MIDDLE + _HALF,
        title=title,
        what=what,
        outline=_outline(shares, counts.astype(np.float64)),
        quarters=(place(quantiles[0.25]), place(quantiles[0.75])),
        median=place(quantiles[0.5]),
        fraction=limit,
        ticks=_chance_ticks(decades) if chances else _SHARES,
        sentences=_sentences(distribution, quantiles, chances),
        numbers=(*rows, ("mean", _words.number(distribution.mean))),
    )


def _at(share: float) -> float:
    """The place of a share of the scale."""
    return _LEFT + share * (_RIGHT - _LEFT)


_SHARES = tuple(Tick(_at(share), f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1))


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
    """The density of records along the scale, relative to its maximum; a Gaussian kernel.

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
        Tick(_at(1 - power / decades), "certain" if power == 0 else f"1 in {10**power:,}")
        for power in reversed(powers)
    )


def _sentences(
    distribution: RiskDistribution, quantiles: dict[float, float], chances: bool
) -> tuple[str, ...]:
    """What the picture shows."""
    if quantiles[0.0] == quantiles[1.0]:
        sentences = [f"All records have {_risk_in_words(quantiles[0.0], chances)}."]
    else:
        sentences = [
            f"Half of the records have at most {_risk_in_words(quantiles[0.5], chances)}; the "
            f"highest is {_risk_in_words(quantiles[1.0], chances)}."
        ]
    if distribution.fraction is not None and distribution.above is not None:
        above = _words.percent(100 * distribution.above)
        sentences.append(
            f"Overall, a share of {distribution.fraction:.3g} of the people is in the table; "
            f"{above} of the records have a higher certainty than that."
        )
    return tuple(sentences)


def _risk_in_words(value: float, chances: bool) -> str:
    """A risk in words; a chance as '1 in ...'."""
    if not chances:
        return _words.number(value)
    if value >= 1:
        return "1 (certain)"
    times = 1 / value
    exact = abs(times - round(times)) < 1e-6 * times
    return f"1 in {_words.number(round(times) if exact else round(times, 1))}"


def marks_of(found: Measurement, info: MeasureInfo) -> SimpleNamespace | None:
    """The marks of a measure on its scale, in percents from the left; None if it fits on none.

    An ``endless`` measure goes on beyond the right end of the scale.
    """
    bound, interval = bound_of(found), found.interval
    baseline = None if found.baseline is None or math.isnan(found.baseline) else found.baseline
    points = [found.value, *(interval or ())]
    points += [point for point in (baseline, bound) if point is not None]
    if not math.isfinite(found.value):
        return None
    low, high = scale_ends(info.limits, [point for point in points if math.isfinite(point)])

    def place(point: float) -> float:
        return 100 * (min(max(point, low), high) - low) / (high - low)

    return SimpleNamespace(
        low=low,
        high=high,
        value=place(found.value),
        interval=None if interval is None else (place(interval[0]), place(interval[1])),
        baseline=None if baseline is None else place(baseline),
        bound=None if bound is None else place(bound),
        endless=high < info.limits[1],
    )


def scale_ends(limits: tuple[float, float], points: list[float]) -> tuple[float, float]:
    """The ends of the scale: the limits of the measure, or a round number if it has none."""
    low, high = limits
    if not math.isfinite(low):
        low = -_round_above(-min(points)) if min(points) < 0 else 0.0
    if not math.isfinite(high):
        high = _round_above(max(points)) if max(points) > low else low + 1.0
    return low, high


def _round_above(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that leaves some room above a value."""
    if value <= 0:
        return 0.0
    power = math.floor(math.log10(value))
    steps = (factor * 10.0 ** (power + more) for more in (0, 1) for factor in (1, 2, 5))
    return next((float(f"{s:.3g}") for s in steps if s >= 1.05 * value), 10.0 ** (power + 2))
