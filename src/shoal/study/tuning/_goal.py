"""What is asked of a plan: a limit of risk, of utility, or both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.errors import InputError
from shoal.measurement import Measurement
from shoal.study.tuning._tuning import Tried

_HOPELESS = 3.0  # times the limit: a plan of such risk is not worth a model


_WORDS = {"max_risk": "largest risk to accept", "min_utility": "least utility to accept"}


@dataclass(frozen=True)
class Goal:
    """The most risk and the least utility that are accepted; one of them at least.

    Under a limit of risk the most useful plan is the best; without one it is the plan with the
    least risk that is useful enough.

    Examples
    --------
    >>> Goal(max_risk=0.05).is_hopeless(0.2)
    True
    """

    max_risk: float | None = None
    min_utility: float | None = None

    def __post_init__(self) -> None:
        if self.max_risk is None and self.min_utility is None:
            raise InputError("Tuning needs a limit: give max_risk, min_utility, or both.")
        for name in _WORDS:
            value = getattr(self, name)
            if value is None:
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 < value < 1:
                raise InputError(
                    f"The {_WORDS[name]} must be a number between 0 and 1; got {value!r}."
                )

    def is_hopeless(self, risk: float) -> bool:
        """Whether no model needs to be trained to know that a plan will not be recommended."""
        return self.max_risk is not None and risk > _HOPELESS * self.max_risk

    def allows(self, risk: Measurement, *, whole_interval: bool = True) -> bool:
        """Whether a risk is under the limit, its whole interval unless told otherwise."""
        if self.max_risk is None:
            return True
        top = risk.interval[1] if whole_interval and risk.interval is not None else risk.value
        return max(risk.value, top) <= self.max_risk

    def meets(self, one: Tried) -> bool:
        """Whether a plan of the search is within both limits."""
        top = one.risk if one.risk_interval is None else max(one.risk, one.risk_interval[1])
        return (
            math.isfinite(one.utility)
            and (self.max_risk is None or top <= self.max_risk)
            and (self.min_utility is None or one.utility >= self.min_utility)
        )

    def best_first(self, found: Sequence[Tried]) -> list[Tried]:
        """The plans within the limits, the one to recommend first."""
        good = [one for one in found if self.meets(one)]
        if self.max_risk is None:
            return sorted(good, key=lambda one: (one.risk, -one.utility))
        return sorted(good, key=lambda one: (-one.utility, one.risk))

    @property
    def words(self) -> str:
        """The limits as a part of a sentence."""
        parts = []
        if self.max_risk is not None:
            parts.append(f"a risk of at most {self.max_risk:g}, with its whole interval")
        if self.min_utility is not None:
            parts.append(f"a utility of at least {self.min_utility:g}")
        return " and ".join(parts)
