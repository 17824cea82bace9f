"""What the trade-off study saw of each masked table, in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shoal.study._results import Results
from shoal.study._statistics import spearman

#: Ends the name of a family whose parameters are the first of equally good ones.
FIRST: Final = " (first of ties)"
#: A difference of at most so many percent is none: the paper's region of practical equivalence.
ROPE: Final = 1.0


@dataclass(frozen=True)
class Seen:
    """One masked table: its risk with and without the threshold, and its predictions."""

    table: str
    family: str
    r3: float
    r4: float
    validation: float
    oracle: float
    over_folds: float
    without_model: bool

    @property
    def is_single(self) -> bool:
        """Whether it is one technique alone."""
        return "+" not in self.family


def seen(results: Results) -> dict[tuple[str, str], Seen]:
    """All that was measured in full, by table and family: the original, and the combinations."""
    done = results.done
    risks = done.where(measure="r3").by("table", "variant")
    best = done.where(measure="r4").by("table", "variant")
    out = {}
    for row in done.where(measure="F1"):
        place = row.table, row.variant
        if place in risks and place in best:
            details = row.facts["details"]
            out[row.table, row.family] = Seen(
                row.table,
                row.family,
                float(risks[place].mean()),
                float(best[place].mean()),
                row.value,
                float(details["oracle"]),
                float(details["mean_over_folds"]),
                bool(details["without_model"]),
            )
    return out


def change(after: float, before: float) -> float:
    """The percentage difference; NaN where there is nothing to compare with."""
    return 100 * (after - before) / before if before else math.nan


def relation(masked: Sequence[Seen]) -> float:
    """Spearman's correlation of the risk and the mean F1 of masked tables."""
    return spearman([one.r3 for one in masked], [one.over_folds for one in masked])[0]
