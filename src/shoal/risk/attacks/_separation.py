"""How well a score tells two groups of people apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.risk.linkage._right_links import wilson

_FALSE_ALARMS = 0.01  # the share of others that somebody may take for members who must be sure


@dataclass(frozen=True, eq=False)
class Separation:
    """Scores of members and of others; a high score speaks for a member.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated
    receiver operating characteristic curves. Birnbaum, Klose (1957), Bounds for the variance of
    the Mann-Whitney statistic.

    Examples
    --------
    >>> found = Separation(np.array([3.0, 2.0]), np.array([2.0, 1.0]))
    >>> found.shares_below.tolist(), found.area
    ([1.0, 0.75], 0.875)
    """

    members: Floats
    others: Floats

    @property
    def shares_below(self) -> Floats:
        """For each member the share of the others who score lower; equal ones count half."""
        return _shares_below(self.members, self.others)

    @property
    def area(self) -> float:
        """The chance that a member scores higher than another: the area under the ROC curve."""
        return float(self.shares_below.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Of the area, 95 %: Wilson's, with as many trials as DeLong's variance is worth.

        They are at least the smaller group, since no variance is larger than with so many; this
        holds where the groups are apart too, and DeLong's variance is 0.
        """
        area, trials = self.area, float(min(len(self.members), len(self.others)))
        above = _shares_below(-self.others, -self.members)
        variance = _variance_of_mean(self.shares_below) + _variance_of_mean(above)
        if variance > 0:
            trials = max(trials, area * (1 - area) / variance)
        return wilson(area, trials)

    def facts(self) -> dict[str, Any]:
        """What thresholds of the score are worth, for as many members as others.

        The advantage is of the best threshold for these very people. Accuracy and precision are of
        thresholds that were found with other people, so that they are not flattered.
        """
        found, alarms = _rates(self.members, self.others, self._thresholds())
        right, false = self._rates_out_of_half()
        return {
            "area": self.area,
            "advantage": float((found - alarms).max()),
            "accuracy": (1 + right - false) / 2,
            "precision": right / (right + false) if right + false > 0 else None,
            "base_rate": 0.5,
            "found_at_1_percent_false_alarms": float(found[alarms <= _FALSE_ALARMS].max()),
        }

    def _thresholds(self) -> Floats:
        return np.append(np.unique(np.concatenate([self.members, self.others])), np.inf)

    def _best_threshold(self) -> float:
        at = self._thresholds()
        found, alarms = _rates(self.members, self.others, at)
        return float(at[np.argmax(found - alarms)])

    def _rates_out_of_half(self) -> tuple[float, float]:
        """The shares of members and of others called members, by what the other half taught."""
        halves = [Separation(self.members[i::2], self.others[i::2]) for i in (0, 1)]
        if not all(len(half.members) and len(half.others) for half in halves):
            return 0.0, 0.0  # nothing to learn from: nobody is called a member
        rates = [
            _rates(half.members, half.others, np.array([teacher._best_threshold()]))
            for half, teacher in (halves, halves[::-1])
        ]
        return (
            float(np.mean([found for found, _ in rates])),
            float(np.mean([alarms for _, alarms in rates])),
        )


def _rates(members: Floats, others: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """The shares of members and of others who score at least so much."""
    shares = [
        1.0 - np.searchsorted(np.sort(scores), thresholds, side="left") / len(scores)
        for scores in (members, others)
    ]
    return shares[0], shares[1]


def _shares_below(scores: Floats, others: Floats) -> Floats:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    up_to = np.searchsorted(ordered, scores, side="right")
    shares: Floats = (below + up_to) / (2 * len(ordered))
    return shares


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
