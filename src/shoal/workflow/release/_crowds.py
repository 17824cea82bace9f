"""What may be published about the original: crowds, never a handful of people.

Whole percents hide a person only if one percent is a crowd. In a table of 50 records one percent is
half a person, and what is missing to 100 reveals as much as what is shown. So a share of the
original is published in steps of at least :data:`SMALLEST_CROWD` people. If that leaves fewer than
ten steps, it is not published at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SMALLEST_CROWD = 10
#: Stands for a count that is not published.
SOME = "some"
_FEWEST_STEPS = 10


def share_step(rows: int) -> int | None:
    """The step, in percent, in which shares of ``rows`` records are published; None: not at all."""
    if rows < SMALLEST_CROWD * _FEWEST_STEPS:
        return None
    return max(1, math.ceil(100 * SMALLEST_CROWD / rows))


def crowded_percent(share: float, rows: int) -> float | None:
    """A share of ``rows`` records in percent, in steps of at least a crowd; None: unpublished."""
    step = share_step(rows)
    return None if step is None else float(min(100, step * round(100 * share / step)))


def crowded_count(count: int) -> int | str:
    """A count that may be published; a small one becomes "fewer than"."""
    return f"fewer than {SMALLEST_CROWD}" if 0 < count < SMALLEST_CROWD else count


def crowded_removals(
    counts: Sequence[int], persons: Sequence[int] | None = None
) -> list[int | str]:
    """How many records each step removed, worded so that no sum reveals a small count.

    If several steps removed records and one of them removed few, no count is published, and neither
    is their total (:func:`crowded_total`): a sample removes a known share, and a limit bounds what
    is suppressed, so the total would reveal the rest. If ``persons`` lost these records, few
    persons count as few, however many records they had.
    """
    removing = [count for count in counts if count]
    few_persons = persons is not None and any(0 < count < SMALLEST_CROWD for count in persons)
    few = few_persons and list(persons or ()) != list(counts)
    if few or (len(removing) > 1 and any(count < SMALLEST_CROWD for count in removing)):
        return [SOME if count else 0 for count in counts]
    return [crowded_count(count) for count in counts]


def crowded_total(counts: Sequence[int], persons: Sequence[int] | None = None) -> int | str:
    """How many records all steps removed together, unless that reveals a small count."""
    return SOME if SOME in crowded_removals(counts, persons) else crowded_count(sum(counts))
