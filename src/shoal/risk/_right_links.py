"""How many links are right: the share, its interval, and what blind guessing gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.measurement import Measurement
from shoal.risk._bound import bound_of
from shoal.risk._interval import independent_trials, repeated, wilson
from shoal.risk._intruder import Floats, Integers, Intruder
from shoal.risk._links import Links, about_renamed


def right_links(name: str, who: Intruder, links: Links) -> Measurement:
    """The measurement of a linkage, from the chance of each person's link to be right."""
    per_record = np.full(len(who.original), np.nan)
    per_record[who.persons] = links.chances
    together = _together(who)
    value, interval = _rate(links.chances, *together)
    # whoever picks any record for any person: most persons of a small sample have none
    blind = 1.0 / max(who.original.person_count, who.masked.person_count)
    warnings = [*links.warnings, *about_renamed(who.original, who.masked, who.known)]
    there = who.there
    of_released = interval if there.all() else (0.0, 0.0)
    facts: dict[str, Any] = {}
    if not there.all():
        facts["released_persons"] = int(there.sum())
        facts["of_released"] = None
        if there.any():
            chances = links.chances[there]
            share, of_released = _rate(chances, *(clusters[there] for clusters in together))
            facts["of_released"] = share
        warnings.append(_about_the_released(who, facts["of_released"]))
    if interval[0] <= blind:
        warnings.append("The links are no better than blind guessing.")
    bound = bound_of(who)
    if bound is not None and of_released[0] > 1 / bound.k:
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
            **facts,
            **({} if bound is None else {"bound": 1 / bound.k, "bound_by": bound.by}),
            **links.details,
        },
        warnings=tuple(warnings),
    )


def _rate(chances: Floats, *together: Integers) -> tuple[float, tuple[float, float]]:
    share = float(chances.mean())
    return share, wilson(share, independent_trials(chances, *together))


def _about_the_released(who: Intruder, share: float | None) -> str:
    """A sample that hides most people does not hide those who are in it."""
    gone = f"{(~who.there).sum():,} of {len(who.own):,} persons are not in the masked table"
    if share is None:
        return f"{gone}, so that none could be linked; give a larger sample of persons."
    return f"{gone} and cannot be linked; of those who are, {100 * share:.3g} % are."


def _together(who: Intruder) -> list[Integers]:
    """What links go together by: one draw of a swap, and one person with several of them."""
    found = []
    for exchange in who.masked.exchanges:
        if set(exchange.columns) & set(who.known):
            groups = exchange.groups.astype(np.int64)
            alone = -1 - np.arange(len(who.own))  # who is gone is a group of one
            found.append(np.where(who.own >= 0, groups[who.own], alone))
            break
    return found + repeated(who.original.persons[who.persons])
