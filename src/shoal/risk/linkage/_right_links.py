"""How often a link is right: the share, its interval, and what the masked table promises.

A link is right with some chance for each person. All linkages give these chances as
:class:`Links`; here a measurement is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.errors import quoted
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
    # the value itself is never outside, whatever rounding does at the ends
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def clusters_if_repeated(numbers: Integers) -> list[Integers]:
    """The numbers as clusters, if one of them comes twice; none otherwise."""
    return [numbers] if len(np.unique(numbers)) < len(numbers) else []


def independent_trials(outcomes: Floats, *clusterings: Integers | None) -> float:
    """How many independent trials tell as much as these, of which some go together.

    Two people who exchange values are both in place or both not: a pair tells as much as one of
    them. The number of trials is divided by the design effect, the variance between clusters
    over that of as many independent trials, where it is above 1 (Kish 1965, section 5.4). Where
    trials go together in several ways, the one that leaves the fewest counts.
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
    """A share of successes and the trials that it was seen in; infinite where it is known."""

    share: float
    trials: float = math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval (Wilson)."""
        known = math.isinf(self.trials)
        return (self.share, self.share) if known else wilson(self.share, self.trials)

    @classmethod
    def of(cls, successes: npt.NDArray[Any], *together: Integers) -> Rate:
        """The mean chance of success, each a trial; fewer where some go together."""
        outcomes = successes.astype(np.float64)
        return cls(float(outcomes.mean()), independent_trials(outcomes, *together))


@dataclass(frozen=True, eq=False)
class Links:
    """The chance of each person's link to be right; what a measurement of it is to say."""

    chances: Floats
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def blind_links(intruder: Intruder, person_labels: Integers, record_labels: Integers) -> Links:
    """Where nothing that is known was released: any record is as good as another."""
    values, counts = np.unique(record_labels, return_counts=True)
    at = np.minimum(np.searchsorted(values, person_labels), len(values) - 1)
    there = (values[at] == person_labels) & (person_labels >= 0)
    return Links(np.where(there, counts[at] / intruder.masked.records, 0.0))


def about_coarser(names: Iterable[str]) -> tuple[str, ...]:
    """What an intruder is taken to know about columns that were made coarser."""
    if not (names := list(names)):
        return ()
    return (
        f"The columns {quoted(names)} were made coarser: the intruder is taken to know which "
        "released value a person has in them.",
    )


def about_sampled(original: Table, masked: Table) -> tuple[str, ...]:
    """A sample that hides most people does not hide those who are in it."""
    if masked.person_count >= original.person_count:
        return ()
    return (
        f"The masked table has {len(masked):,} records of {original.person_count:,} "
        "persons, all of whom count here; the risk of those who are in it can be higher.",
    )


def about_renamed(original: Table, masked: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Columns that may still be there under names which nobody can know."""
    lacking = [name for name in names if name not in masked.columns]
    added = [name for name in masked.columns if name not in original.columns]
    if not lacking or not added:
        return ()
    return (
        f"The masked table has no column {quoted(lacking)}, and it has {quoted(added)}, which the "
        "original has not: a column under another name counts as taken out; give it its old name.",
    )


class Bound(NamedTuple):
    """No link by the known columns is right more often than 1/k, under what hides the records."""

    k: int
    by: str


def bound_of(intruder: Intruder) -> Bound | None:
    """The bound for what the intruder knows; None where a record is alone.

    Records that are equal in all known columns hide each other from any link. Records that
    exchanged them uniformly within a group hide each other under the draw. The more of them are of
    one person, the less they hide that person.
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
    """The measurement of a linkage, from the chance of each person's link to be right."""
    per_record = np.full(len(intruder.original), np.nan)
    per_record[intruder.persons] = links.chances
    together = _together(intruder)
    rate = Rate.of(links.chances, *together)
    # whoever picks any record for any person: most persons of a small sample have none
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
            f"The links are right more often than 1 in {bound.k}, which is what the masked table "
            f"promises by its {bound.by}."
        )
    return Measurement(
        name,
        rate.share,
        interval=rate.interval,
        baseline=blind,
        per_record=per_record,
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


def _about_the_released(intruder: Intruder, share: float | None) -> str:
    """A sample that hides most people does not hide those who are in it."""
    gone = (
        f"{(~intruder.there).sum():,} of {len(intruder.own):,} persons are not in the masked table"
    )
    if share is None:
        return f"{gone}, so that none could be linked; give a larger sample of persons."
    return f"{gone} and cannot be linked; of those who are, {100 * share:.3g} % are."


def _together(intruder: Intruder) -> list[Integers]:
    """What links go together by: one draw of a swap, and one person with several of them."""
    found = []
    for exchange in intruder.masked.exchanges:
        if set(exchange.columns) & set(intruder.known):
            groups = exchange.groups.astype(np.int64)
            alone = -1 - np.arange(len(intruder.own))  # who is gone is a group of one
            found.append(np.where(intruder.own >= 0, groups[intruder.own], alone))
            break
    return found + clusters_if_repeated(intruder.original.persons[intruder.persons])
