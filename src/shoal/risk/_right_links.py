"""How many links are right: the share, its interval, and what blind guessing gives."""

from __future__ import annotations

import numpy as np

from shoal.measurement import Measurement
from shoal.risk._bound import bound_of
from shoal.risk._interval import independent_trials, wilson
from shoal.risk._intruder import Integers, Intruder
from shoal.risk._links import Links


def right_links(name: str, who: Intruder, links: Links) -> Measurement:
    """The measurement of a linkage, from the chance of each person's link to be right."""
    per_record = np.full(len(who.original), np.nan)
    per_record[who.persons] = links.chances
    value, blind = float(links.chances.mean()), 1.0 / len(who.masked)
    interval = wilson(value, independent_trials(links.chances, _exchanged_together(who)))
    warnings = list(links.warnings)
    if interval[0] <= blind:
        warnings.append("The links are no better than blind guessing.")
    bound = bound_of(who)
    if bound is not None and interval[0] > 1 / bound.k:
        warnings.append(
            f"The links are right more often than 1 in {bound.k}, which is what the masked table "
            f"promises by its {bound.by}."
        )
    return Measurement(
        name,
        value,
        interval=interval,
        baseline=blind,
        per_record=per_record,
        details={
            "persons": len(who.persons),
            "records": len(who.masked),
            "known": list(who.released),
            **({} if bound is None else {"bound": 1 / bound.k, "bound_by": bound.by}),
            **links.details,
        },
        warnings=tuple(warnings),
    )


def _exchanged_together(who: Intruder) -> Integers | None:
    """For each person the group that shares one draw; None where nothing known was swapped."""
    for exchange in who.masked.exchanges:
        if set(exchange.columns) & set(who.known):
            groups = exchange.groups.astype(np.int64)
            alone = -1 - np.arange(len(who.own))  # who is gone is a group of one
            return np.where(who.own >= 0, groups[who.own], alone)
    return None
