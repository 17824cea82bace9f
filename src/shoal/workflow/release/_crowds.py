"""What may be told about the original: crowds, never a handful of people.

Whole percents hide a person only where a percent is a crowd. In a table of 50 records one percent
is half a person, and what is missing to 100 is as telling as what is shown. So a share of the
original is told in steps of at least :data:`SMALLEST_CROWD` people, and where that leaves less
than ten steps it is not told at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SMALLEST_CROWD = 10
#: A count that is not told.
SOME = "some"
_FEWEST_STEPS = 10


def share_step(rows: int) -> int | None:
    """The step of percents in which shares of so many records may be told; None for not at all."""
    if rows < SMALLEST_CROWD * _FEWEST_STEPS:
        return None
    return max(1, math.ceil(100 * SMALLEST_CROWD / rows))


def crowded_percent(share: float, rows: int) -> float | None:
    """A share of ``rows`` records in percent, in steps of at least a crowd; None for untold."""
    step = share_step(rows)
    return None if step is None else float(min(100, step * round(100 * share / step)))


def crowded_count(count: int) -> int | str:
    """A count that may be published: few people are only called few."""
    return f"fewer than {SMALLEST_CROWD}" if 0 < count < SMALLEST_CROWD else count


def crowded_removals(
    counts: Sequence[int], persons: Sequence[int] | None = None
) -> list[int | str]:
    """How many records each step took out, told so that no sum gives a small one away.

    Of several steps that took out records, one of them few, none is told, and neither is their
    total (:func:`crowded_total`): a sample takes out a known share, and a limit bounds what is
    suppressed, so that the total would tell the rest. Where ``persons`` lost these records, few of
    them are few, however many records they had.
    """
    removing = [count for count in counts if count]
    few_persons = persons is not None and any(0 < count < SMALLEST_CROWD for count in persons)
    few = few_persons and list(persons or ()) != list(counts)
    if few or (len(removing) > 1 and any(count < SMALLEST_CROWD for count in removing)):
        return [SOME if count else 0 for count in counts]
    return [crowded_count(count) for count in counts]


def crowded_total(counts: Sequence[int], persons: Sequence[int] | None = None) -> int | str:
    """How many records all steps together took out, where that gives no small count away."""
    return SOME if SOME in crowded_removals(counts, persons) else crowded_count(sum(counts))
