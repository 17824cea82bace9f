"""What masking leaves open, measured by attacks, with the size of each leak.

Quasi-identifiers are the columns that someone thought of. A column that nobody thought of and no
step touched still links as before. Anyone who signs a release must know about such columns.

The random swap alone limits the chance of a right link by swapped columns to one in k. Three
things can leak more, and each is tried: columns that stayed in place, correlations that reveal who
is who within a group, and groups with only one value of what they should hide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from shoal.errors import quoted
from shoal.measurement import Measurement
from shoal.risk import distance_linkage, group_disclosure, own_values, rank_matching
from shoal.table import Table, swapped_blocks, swapped_crowds
from shoal.workflow._require import Claim
from shoal.workflow.release._crowds import crowded_percent, share_step

LeakKind = Literal["columns-left-in-place", "correlation", "groups-of-one-value"]

#: A correlation leaks if even the lower end of its interval is this many times 1/k.
MARGIN = 1.25
#: At most this many sensitive columns are attacked, in their order; each attack reads all known
#: columns.
MOST_SECRETS = 10
#: At most this many persons are linked by each other column, or by all of them: ± 2 percent.
PERSONS = 2_000
#: At most this many other columns are tried alone, those with the most different values first.
MOST_COLUMNS = 20


@dataclass(frozen=True, eq=False)
class Leak:
    """A way around a swap that was tried and worked.

    ``columns`` are those that leak; ``found`` is the attack by the worst of them.
    """

    kind: LeakKind
    columns: tuple[str, ...]
    found: Measurement
    k: int

    def sentence(self, *, size: str | None = None, named: str | None = None) -> str:
        """The leak in words; ``size`` and ``named`` replace the exact size and column names."""
        size = f"{100 * self.found.value:.3g} %" if size is None else size
        plural = len(self.columns) > 1
        named = f"the column{'s' * plural} {quoted(self.columns)}" if named is None else named
        if self.kind == "columns-left-in-place":
            stayed = "were" if plural else "was"
            return (
                f"an intruder who knows {named}, which {stayed} not swapped, finds {size} of the "
                f"persons; the swap promises at most 1 in {self.k}"
            )
        up_to = "up to " if plural else ""
        if self.kind == "correlation":
            return (
                "matching by rank within the groups, using what other columns reveal about "
                f"{named}, is right for {up_to}{size} of the persons; the swap alone would allow "
                f"1 in {self.k}"
            )
        return (
            f"{up_to}{size} of the records are in groups with only one value of {named}; that "
            "value is disclosed no matter who is who"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "columns": list(self.columns), **self.found.to_dict()}

    def public(self) -> dict[str, Any]:
        """The leak as the public may see it: its share in steps of a crowd."""
        return {"kind": self.kind, "columns": list(self.columns), **_in_steps(self.found)}


@dataclass(frozen=True, eq=False)
class Swapping:
    """What protects a swapped table: ``k`` from its groups, the measured linkage, and leaks.

    ``informed`` is true if the sensitive columns were swapped instead of the quasi-identifiers.
    The release shows the values of each group: for each swapped numeric column, ``widths`` has the
    median range of a record's group, in standard deviations.
    """

    k: int
    columns: tuple[str, ...]
    informed: bool
    linkage: Measurement
    leaks: tuple[Leak, ...]
    widths: Mapping[str, float]

    @property
    def sentence(self) -> str:
        """The measured linkage next to its bound."""
        low, high = _interval(self.linkage)
        what = "sensitive values still with their own person" if self.informed else "right links"
        return (
            f"swapped within groups of at least {self.k}: {100 * self.linkage.value:.3g} % "
            f"{what} (95 % {100 * low:.3g} to {100 * high:.3g} %), where 1 in {self.k} is the bound"
        )

    @property
    def sentences(self) -> list[str]:
        """All of it, for the steward."""
        sentences = [self.sentence]
        if self.widths:
            name = min(self.widths, key=lambda column: self.widths[column])
            sentences.append(
                "the groups show the range of a sensitive value: at the median they span "
                f"{self.widths[name]:.2g} standard deviations of '{name}', the narrowest column"
            )
        sentences += [f"what the swap does not cover: {leak.sentence()}" for leak in self.leaks]
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """All facts, exact; for the steward."""
        return {
            "k": self.k,
            "columns": list(self.columns),
            "informed": self.informed,
            "linkage": self.linkage.to_dict(),
            "widths": dict(self.widths),
            "leaks": [leak.to_dict() for leak in self.leaks],
        }

    def public(self) -> dict[str, Any]:
        """The facts as in ``release.json``: shares in steps of a crowd."""
        return {
            "k": self.k,
            "columns": list(self.columns),
            "swapped": "sensitive" if self.informed else "quasi_identifiers",
            "linkage": _in_steps(self.linkage),
            "widths": {name: float(f"{width:.2g}") for name, width in self.widths.items()},
            "leaks": [leak.public() for leak in self.leaks],
        }


def swapping_of(
    original: Table, masked: Table, by_quasi_identifiers: Measurement | None = None
) -> Swapping | None:
    """What protects a swapped table; None if no swap does.

    ``by_quasi_identifiers`` is the result of :func:`distance_linkage`, if it was measured already.
    """
    if not masked.exchanges or not masked.pairs_with(original) or len(masked) == 0:
        return None
    quasi, sensitive = masked.roles.quasi_identifiers, masked.roles.sensitive
    by_hints, by_secrets = _smallest_crowd(masked, quasi), _smallest_crowd(masked, sensitive)
    k, informed = max(by_hints, by_secrets), by_secrets > by_hints
    known = [name for name in quasi if name in original.columns]
    if k <= masked.classes.k or not (known or informed):
        return None
    blocks = swapped_blocks(masked, sensitive if informed else quasi)
    if informed:
        linkage = own_values(masked, blocks)
    elif by_quasi_identifiers is not None and tuple(known) == original.roles.quasi_identifiers:
        linkage = by_quasi_identifiers
    else:
        linkage = distance_linkage(original, masked, known=known)
    columns = tuple(dict.fromkeys(name for block in blocks for name in block.columns))
    disclosed = {name: group_disclosure(masked, name) for name in masked.roles.sensitive}
    widths = {
        name: found.details["median_width"]
        for name, found in disclosed.items()
        if name in columns and "median_width" in found.details
    }
    leaks = [
        *_left_in_place(original, masked, informed, max(linkage.value, 1 / k), k),
        *_correlations(original, masked, informed, k),
        *_worst("groups-of-one-value", [(n, m) for n, m in disclosed.items() if m.value > 0], k),
    ]
    return Swapping(k, columns, informed, linkage, tuple(leaks), widths)


def refutes(swapping: Swapping, claim: Claim) -> bool:
    """Whether too many links are right for the claimed bound to be true.

    In a group of k records that exchanged values uniformly, right links have no larger
    moments than a Poisson count with mean 1, so Chernoff's bound for that count holds for their
    sum. A draw that keeps the claim is rejected less than once in a thousand.
    """
    if not claim.bounds_links:
        return False
    facts = swapping.linkage.details
    share = facts.get("of_released", swapping.linkage.value)
    trials = facts.get("trials", facts.get("released_persons", facts["persons"]))
    bound = 1 / claim.measured
    if not share or share <= bound:
        return False
    evidence = trials * (share * math.log(share / bound) - share + bound)
    return bool(evidence > math.log(1e3))


def _smallest_crowd(masked: Table, protected: Sequence[str]) -> int:
    """The smallest number of records that any record hides among, by its class or by a swap."""
    return int(np.maximum(masked.class_sizes(), swapped_crowds(masked, protected)).min())


def _left_in_place(
    original: Table, masked: Table, informed: bool, bound: float, k: int
) -> Iterator[Leak]:
    """Columns that link more persons than the swapped ones, and more than 1 in k."""
    quasi, sensitive = masked.roles.quasi_identifiers, masked.roles.sensitive
    moved = {name for exchange in masked.exchanges for name in exchange.columns}
    left = [name for name in masked.columns if name not in moved and name in original.columns]
    others = [name for name in other_columns(original, masked) if name not in moved]
    secrets = [name for name in left if name in sensitive]
    tried = []
    if informed and others:  # rows are found by what was not swapped, and reveal the rest
        tried.append([name for name in left if name in quasi])
    elif not informed:
        tried.append(others)
        if len(secrets) > 1:  # someone who knows all secrets but one is after that one
            tried.append([name for name in left if name != secrets[0]])
    for known in tried:
        if known:
            found = distance_linkage(original, masked, known=known)
            if found.interval is not None and found.interval[0] > bound:
                yield Leak("columns-left-in-place", tuple(known), found, k)
                return


def _correlations(original: Table, masked: Table, informed: bool, k: int) -> Iterator[Leak]:
    """Secrets that matching by rank finds clearly more often than 1 in k."""
    quasi, sensitive = masked.roles.quasi_identifiers, masked.roles.sensitive
    found = []
    for secret in sensitive[:MOST_SECRETS]:
        known = [*quasi, *sensitive] if informed else quasi
        known = [name for name in known if name != secret and name in original.columns]
        if known:
            attack = rank_matching(original, masked, secret, known=known)
            if attack.interval is not None and attack.interval[0] > MARGIN / k:
                found.append((secret, attack))
    yield from _worst("correlation", found, k)


def _worst(kind: LeakKind, found: Sequence[tuple[str, Measurement]], k: int) -> Iterator[Leak]:
    if found:
        ranked = sorted(found, key=lambda pair: -pair[1].value)
        yield Leak(kind, tuple(name for name, _ in ranked), ranked[0][1], k)


def _in_steps(found: Measurement) -> dict[str, Any]:
    """A share and its interval, in percents that stand for crowds; None if too small."""
    people = int(found.details["persons"])
    step = share_step(people)
    interval = None
    if step is not None and found.interval is not None:
        low, high = found.interval
        interval = [
            step * math.floor(100 * low / step),
            min(100, step * math.ceil(100 * high / step)),
        ]
    return {"percent": crowded_percent(found.value, people), "interval": interval}


@dataclass(frozen=True, eq=False)
class LinkingColumns:
    """Columns that link clearly more persons than the quasi-identifiers.

    ``found`` is the linkage by all of them if ``together``, otherwise by the worst one alone.
    """

    columns: tuple[str, ...]
    together: bool
    found: Measurement
    by_quasi_identifiers: Measurement

    @property
    def sentence(self) -> str:
        """What these columns link, next to what the quasi-identifiers link."""
        plural = len(self.columns) > 1
        named = f"the column{'s' * plural} {quoted(self.columns)}"
        if not self.together:
            named = f"one of {named}" if plural else f"{named} alone"
        up_to = "up to " if plural and not self.together else ""
        kind = "are not quasi-identifiers" if plural else "is not a quasi-identifier"
        return (
            f"an intruder who knows {named}, which {kind}, finds {up_to}{_percent(self.found)} of "
            f"the persons; the quasi-identifiers find {_percent(self.by_quasi_identifiers)}"
        )


def linking_columns(
    original: Table, masked: Table, by_quasi_identifiers: Measurement | None = None
) -> tuple[LinkingColumns, ...]:
    """The columns, each alone and all together, that link more persons than quasi-identifiers do.

    More means that the two intervals do not overlap. Columns are tried by
    :func:`distance_linkage`, on a sample of persons; ``by_quasi_identifiers`` is its result, if it
    was measured already.
    """
    if not masked.pairs_with(original) or not original.roles.quasi_identifiers or not len(masked):
        return ()
    by_quasi = by_quasi_identifiers or distance_linkage(original, masked)
    others = other_columns(original, masked)
    secrets = [name for name in original.roles.sensitive if name in masked.columns]
    # one secret may reveal another
    tried = [*others, *secrets] if len(secrets) > 1 else others
    alone = _alone(original, masked, tried, by_quasi)
    if len(others) < 2:
        return alone
    together = distance_linkage(original, masked, known=others, sample=PERSONS)
    if not _is_more(together, by_quasi):
        return alone
    return (*alone, LinkingColumns(tuple(others), True, together, by_quasi))


def other_columns(original: Table, masked: Table) -> list[str]:
    """The columns of both tables that are neither identifier, quasi-identifier nor sensitive."""
    roles = original.roles
    declared = {*roles.withheld, *roles.quasi_identifiers, *roles.sensitive}
    return [n for n in original.columns if n in masked.columns and n not in declared]


def _alone(
    original: Table, masked: Table, columns: Sequence[str], by_quasi: Measurement
) -> tuple[LinkingColumns, ...]:
    """The columns that each link more persons than the quasi-identifiers."""
    # Records with the same value hide each other: each value finds at most one person.
    most = {name: masked.distinct(name) / len(original) for name in columns}
    ranked = sorted(most, key=lambda name: -most[name])[:MOST_COLUMNS]
    _, enough = _interval(by_quasi)
    found = {
        name: distance_linkage(original, masked, known=[name], sample=PERSONS)
        for name in ranked
        if most[name] > enough
    }
    leaking = [name for name, one in found.items() if _is_more(one, by_quasi)]
    if not leaking:
        return ()
    leaking.sort(key=lambda name: -found[name].value)
    return (LinkingColumns(tuple(leaking), False, found[leaking[0]], by_quasi),)


def _is_more(one: Measurement, other: Measurement) -> bool:
    return _interval(one)[0] > _interval(other)[1]


def _interval(found: Measurement) -> tuple[float, float]:
    return found.interval or (found.value, found.value)


def _percent(found: Measurement) -> str:
    low, high = _interval(found)
    return f"{100 * found.value:.3g} % (95 % {100 * low:.3g} to {100 * high:.3g} %)"
