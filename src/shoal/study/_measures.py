"""What a study can measure: every measure of risk and utility, and some of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from shoal.measurement import Measurement
from shoal.study._sampled import sampled_chi_square, sampled_risk
from shoal.workflow import discover_all_measures

#: Measures that keep what only a study asks for.
_OWN: Mapping[str, Callable[..., Measurement]] = {
    "sampled_chi_square": sampled_chi_square,
    "sampled_risk": sampled_risk,
}


@cache
def study_measures() -> Mapping[str, Callable[..., Measurement]]:
    """The measures by name; each is called with the original and the masked table."""
    out = dict(_OWN)
    for name, info in discover_all_measures().items():
        out[name] = info.function if info.needs_original else _of_masked(info.function)
    return out


def _of_masked(function: Callable[..., Measurement]) -> Callable[..., Measurement]:
    def measured(original: object, masked: object, **options: object) -> Measurement:
        return function(masked, **options)

    return measured
