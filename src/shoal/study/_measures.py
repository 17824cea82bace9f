"""What a study can measure: every measure of risk and utility, and what only studies ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache

from shoal.measurement import MeasureInfo, Measurement
from shoal.study._sampled import sampled_chi_square, sampled_risk
from shoal.study._tuned_performance import tuned_performance
from shoal.workflow import discover_all_measures

#: Measures that keep what only a study asks for.
_OWN: Mapping[str, Callable[..., Measurement]] = {
    "sampled_chi_square": sampled_chi_square,
    "sampled_risk": sampled_risk,
}


@cache
def measures_known() -> Mapping[str, MeasureInfo]:
    """What each measure of a study declares about itself, by name."""
    own: MeasureInfo = tuned_performance.info  # type: ignore[attr-defined]
    return {**discover_all_measures(), own.name: own}


@cache
def study_measures() -> Mapping[str, Callable[..., Measurement]]:
    """The measures by name; each is called with the original and the masked table."""
    out = dict(_OWN)
    for name, info in measures_known().items():
        out[name] = info.function if info.needs_original else _of_masked(info.function)
    return out


def options_of(measure: str) -> list[str]:
    """The options that a measure takes."""
    infos = measures_known()
    function = infos[measure].function if measure in infos else _OWN[measure]
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def _of_masked(function: Callable[..., Measurement]) -> Callable[..., Measurement]:
    def measured(original: object, masked: object, **options: object) -> Measurement:
        return function(masked, **options)

    return measured
