"""How often a link may be right by what the masked table can claim: one time in k."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.risk._intruder import Intruder
from shoal.table import shared_crowds, swapped_crowds


class Bound(NamedTuple):
    """No link by the known columns is right more often than 1/k, under what hides the records."""

    k: int
    by: str


def bound_of(who: Intruder) -> Bound | None:
    """The bound for what the intruder knows; None where a record is alone.

    Records that are equal in all known columns hide each other from any link. Records that
    exchanged them uniformly within a group hide each other under the draw. The more of them are of
    one person, the less they hide that person.
    """
    names = list(who.released)
    if not names:
        k = int(shared_crowds(np.zeros(len(who.masked), np.int64), who.masked).min())
        return Bound(k, "nothing known was released") if k > 1 else None
    classes = who.masked.crowds(names)
    equal = np.minimum(classes.record_sizes, shared_crowds(classes.labels, who.masked))
    swapped = swapped_crowds(who.masked, names)
    k = int(np.maximum(equal, swapped).min())
    if k < 2:
        return None
    if equal.min() >= k:
        return Bound(k, "equal records")
    return Bound(k, "swapped groups" if swapped.min() >= k else "equal records or swapped groups")
