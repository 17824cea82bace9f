"""How often a link is right: the share, its interval, and what the masked table promises.

Each person's link is right with some chance. All linkages return these chances as
:class:`Links`; this module turns them into a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.errors import columns_that, quoted
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.risk.linkage._intruder import Intruder
from shoal.table import Table, shared_crowds, swapped_crowds

_Z = 1.959963984540054  # of 95 %


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a chance that came true in a share of the trials (Wilson 1927)."""
    spread = _Z * math.sqrt(share * (1 - share) / trials + _Z**2 / (4 * trials**2))
    middle, scale = share + _Z**2 / (2 * trials), 1 + _Z**2 / trials
    low, high = (middle - spread) / scale, (middle + spread) / scale
    # rounding at the ends must not exclude the value itself
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def clusters_if_repeated(numbers: Integers) -> list[Integers]:
    """The numbers as clusters if any occurs twice; none otherwise."""
    return [numbers] if len(np.unique(numbers)) < len(numbers) else []


def independent_trials(outcomes: Floats, *clusterings: Integers | None) -> float:
    """How many independent trials these trials are worth if some are correlated.

    If two people exchange values, both are in place or neither is: the pair is worth one trial. The
    number of trials is divided by the design effect if that is above 1: the variance between
    clusters over that of as many independent trials (Kish 1965, section 5.4). With several
    clusterings, the one that leaves the fewest trials counts.
    """
    trials = float(len(outcomes))
    if len(outcomes) == 0:
        return trials
    off = outcomes - outcomes.mean()
    alone = float((off**2).sum())
    for clusters in clusterings:
        if clusters is not None and alone > 0:
            _, labels = np.unique(clusters, return_inverse=True)
            together = float((np.bincount(labels, weights=off) ** 2).sum())
            trials = min(trials, len(outcomes) / max(1.0, together / alone))
    return trials


@dataclass(frozen=True)
class Rate:
    """A share of successes and the number of trials behind it; infinite if it is known exactly."""

    share: float
    trials: float = math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval (Wilson)."""
        known = math.isinf(self.trials)
        return (self.share, self.share) if known else wilson(self.share, self.trials)

    @classmethod
    def of(cls, successes: npt.NDArray[Any], *together: Integers) -> Rate:
        """The mean chance of success, each a trial; fewer trials if some are correlated."""
        outcomes = successes.astype(np.float64)
        return cls(float(outcomes.mean()), independent_trials(outcomes, *together))


@dataclass(frozen=True, eq=False)
class Links:
    """The chance that each person's link is right, with details and warnings to report."""

    chances: Floats
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def blind_links(intruder: Intruder) -> Links:
    """The links if no known column was released: any record is as good as another."""
    person_labels, record_labels = intruder.labels
    values, counts = np.unique(record_labels, return_counts=True)
    at = np.minimum(np.searchsorted(values, person_labels), len(values) - 1)
    there = (values[at] == person_labels) & (person_labels >= 0)
    return Links(np.where(there, counts[at] / intruder.masked.records, 0.0))


def about_coarser(names: Iterable[str]) -> tuple[str, ...]:
    """What an intruder is assumed to know about columns that were made coarser."""
    if not (names := list(names)):
        return ()
    return (
        columns_that(names, "was made coarser", "were made coarser")
        + ". The attack assumes that the intruder knows which released value a person has there.",
    )


def about_sampled(original: Table, masked: Table) -> tuple[str, ...]:
    """A sample that hides most people does not hide those who are in it."""
    if masked.person_count >= original.person_count:
        return ()
    return (
        f"The masked table has {len(masked):,} records of {original.person_count:,} persons. All "
        "of them count here. The risk can be higher for those who are in the masked table.",
    )


def about_renamed(original: Table, masked: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Warn of columns that may have been renamed."""
    lacking = [name for name in names if name not in masked.columns]
    added = [name for name in masked.columns if name not in original.columns]
    if not lacking or not added:
        return ()
    return (
        f"The masked table lacks column {quoted(lacking)} and has {quoted(added)}, which the "
        "original does not have. A renamed column counts as removed. Restore its old name.",
    )


class Bound(NamedTuple):
    """Links by the known columns are right at most 1/k of the time, because of ``by``."""

    k: int
    by: str


def bound_of(intruder: Intruder) -> Bound | None:
    """The bound for what the intruder knows; None if a record is alone.

    Records that are equal in all known columns hide each other from any link. Records that
    exchanged these columns uniformly within a group hide each other through the draw. The more of
    them belong to one person, the less they hide that person.
    """
    names = list(intruder.released)
    if not names:
        k = int(shared_crowds(np.zeros(len(intruder.masked), np.int64), intruder.masked).min())
        return Bound(k, "nothing known was released") if k > 1 else None
    classes = intruder.masked.crowds(names)
    if not intruder.masked.exchanges and not intruder.masked.has_persons:
        return Bound(classes.k, "equal records") if classes.k > 1 else None
    equal = np.minimum(classes.record_sizes, shared_crowds(classes.labels, intruder.masked))
    swapped = swapped_crowds(intruder.masked, names)
    k = int(np.maximum(equal, swapped).min())
    if k < 2:
        return None
    if equal.min() >= k:
        return Bound(k, "equal records")
    return Bound(k, "swapped groups" if swapped.min() >= k else "equal records or swapped groups")


def right_links(name: str, intruder: Intruder, links: Links) -> Measurement:
    """The measurement of a linkage, from the chance that each person's link is right."""
    together = correlated_links(intruder)
    rate = Rate.of(links.chances, *together)
    # picking any record for any person: most persons of a small sample have none
    blind = 1.0 / max(intruder.original.person_count, intruder.masked.person_count)
    warnings = [*links.warnings, *about_renamed(intruder.original, intruder.masked, intruder.known)]
    there = intruder.there
    of_released = rate if there.all() else Rate(0.0)
    facts: dict[str, Any] = {}
    if not there.all():
        facts["released_persons"] = int(there.sum())
        facts["of_released"] = None
        if there.any():
            clusters = (numbers[there] for numbers in together)
            of_released = Rate.of(links.chances[there], *clusters)
            facts["of_released"] = of_released.share
        warnings.append(_about_the_released(intruder, facts["of_released"]))
    if rate.interval[0] <= blind:
        warnings.append("The links are no better than blind guessing.")
    bound = bound_of(intruder)
    if bound is not None and of_released.interval[0] > 1 / bound.k:
        warnings.append(
            f"The links are right more often than 1 in {bound.k}, the limit that the masked table "
            f"promises ({bound.by})."
        )
    return Measurement(
        name,
        rate.share,
        interval=rate.interval,
        baseline=blind,
        per_record=partial(placed, len(intruder.original), intruder.persons, links.chances),
        details={
            "persons": len(intruder.persons),
            "records": intruder.masked.records,
            "known": list(intruder.released),
            **facts,
            **({} if bound is None else {"bound": 1 / bound.k, "bound_by": bound.by}),
            **links.details,
        },
        warnings=tuple(warnings),
    )


def placed(rows: int, persons: Integers, chances: Floats) -> Floats:
    """The chances at the rows of their persons; NaN where nobody was linked."""
    per_record = np.full(rows, np.nan)
    per_record[persons] = chances
    return per_record


def _about_the_released(intruder: Intruder, share: float | None) -> str:
    """A sample that hides most people does not hide those who are in it."""
    gone = (
        f"{(~intruder.there).sum():,} of {len(intruder.own):,} persons are not in the masked table"
    )
    if share is None:
        return f"{gone}, so nobody could be linked. Pass a larger 'sample'."
    return f"{gone} and cannot be linked. Of those who are, {100 * share:.3g} % are linked."


def correlated_links(intruder: Intruder) -> list[Integers]:
    """What correlates links: one draw of a swap, and one person with several links."""
    found = []
    for exchange in intruder.masked.exchanges:
        if set(exchange.columns) & set(intruder.known):
            groups = exchange.groups.astype(np.int64)
            alone = -1 - np.arange(len(intruder.own))  # a removed record is a group of its own
            found.append(np.where(intruder.own >= 0, groups[intruder.own], alone))
            break
    if intruder.original.has_persons:
        found += clusters_if_repeated(intruder.original.persons[intruder.persons])
    return found
