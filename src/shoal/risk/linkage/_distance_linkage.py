"""Linkage by distance: the nearest released record is taken for the person's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import OneOf
from shoal.risk._options import Count, Draw, Known, risk
from shoal.risk.linkage._intruder import (
    SAMPLE,
    Intruder,
    KnownCodes,
    KnownNumbers,
    intruder_of,
    is_quantity,
    known_codes,
    known_numbers,
    mixed_rows,
    numbered_tuples,
)
from shoal.risk.linkage._right_links import Links, about_coarser, blind_links, right_links
from shoal.table import Listed, Table

if TYPE_CHECKING:
    from shoal.kernels.linkage.mixed_linkage import Behind
    from shoal.kernels.space.mixed_records import MixedRecords

#: Numbers of about 1 in size that differ by less may be at distance 0.
_LEAST_GAP = 1e-100

LinkageDissimilarity = Annotated[Literal["gower", "euclidean"], OneOf(("gower", "euclidean"))]


@risk("share of right links by distance", pairs=True)
def distance_linkage(
    original: Table,
    masked: Table,
    *,
    known: Known = None,
    dissimilarity: LinkageDissimilarity = "gower",
    sample: Count = SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """The share of people whose nearest released record is their own.

    An intruder knows some columns of every person in the original and takes the nearest record in
    the masked table for the person's own. If t records are equally near and the right one is among
    them, the link counts 1/t. A person whose record was removed cannot be linked, and a column that
    was removed links nobody. All masked records are always candidates.

    Numbers, dates, times and durations are compared on the scale of the original. A column counts
    for two records only if both have a value (Gower's rule, for both dissimilarities). Records that
    share no such column are 1 apart. All other columns, including those that are quantities in one
    table only, are equal or different.

    The value covers everyone in the original, released or not: it is what an intruder achieves
    without knowing who is in the masked table. ``details["of_released"]`` covers only the people
    who are in it.

    The interval is Wilson's (binomial). It shows how much the value could vary with another draw of
    people or of a random masking. It is not narrower if the whole table was linked, and people
    whose values were swapped with each other count as one.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    known : list of str or a word, optional
        The columns that the intruder knows: a list, or ``"quasi-identifiers"`` (the default),
        ``"left-in-place"``, ``"informed"`` or ``"everything"``.
    dissimilarity : {"gower", "euclidean"}
        How records are compared; ``"euclidean"`` is for numbers only, standardized.
    sample : int
        At most this many people are linked. Without ``random_state``, a larger table always yields
        the same sample, so that a release can be verified.
    random_state : int, optional
        Another number draws another sample. It is not a secret.

    References
    ----------
    Domingo-Ferrer, Torra (2001), A quantitative comparison of disclosure control methods for
    microdata, section 3. Gower (1971), A general coefficient of similarity
    <https://doi.org/10.2307/2528823>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"age": [30, 31, 48]}), Roles(quasi_identifiers=["age"]))
    >>> distance_linkage(table, Round(base=10).fit_transform(table)).per_record.tolist()
    [0.5, 0.5, 1.0]
    """
    intruder = intruder_of(original, masked, known=known, sample=sample, random_state=random_state)
    links = distance_links(intruder, dissimilarity=dissimilarity)
    return right_links("distance_linkage", intruder, links)


def distance_links(intruder: Intruder, *, dissimilarity: LinkageDissimilarity = "gower") -> Links:
    """The chance that the nearest record, ties at random, has the person's label."""
    if not intruder.released:
        return blind_links(intruder)
    numeric = [
        name for name in intruder.released if is_quantity(name, intruder.original, intruder.masked)
    ]
    nominal = [name for name in intruder.released if name not in numeric]
    if nominal and dissimilarity == "euclidean":
        raise InputError(
            "Euclidean distance compares numbers, but these columns of the tables are not "
            f"numeric: {quoted(nominal)}. Choose the dissimilarity 'gower', or name other columns "
            "as 'known'."
        )
    sides = _sides(intruder, numeric, nominal, squared=dissimilarity == "euclidean")
    chances = _chances(intruder, sides)
    coarser = [name for name, codes in zip(nominal, sides.codes, strict=True) if codes.coarser]
    return Links(chances, warnings=(*about_coarser(coarser), *_about_gaps(intruder)))


@dataclass(frozen=True, eq=False)
class _Sides:
    """Known columns of persons and of groups of equal records, and the weights of differences."""

    numbers: list[KnownNumbers]
    codes: list[KnownCodes]
    weights: Floats
    squared: bool

    def tells_apart(self) -> bool:
        """Whether records with different numbers are never at distance 0."""
        return all(
            len(column.after.present) < 2 or (0 < weight < np.inf and _differ_clearly(column.after))
            for column, weight in zip(self.numbers, self.weights, strict=True)
        )

    def equal(self, persons: Integers, records: Integers) -> Flags:
        """Whether each person has exactly the known values of the matching record."""
        same = np.ones(len(persons), np.bool_)
        columns: list[KnownNumbers | KnownCodes] = [*self.numbers, *self.codes]
        for column in columns:
            same &= column.equal(persons, records)
        return same

    def records(self, persons: Integers) -> MixedRecords:
        """The groups of records, then some persons, on the scale of the original."""
        values, codes = (
            [np.concatenate([column.records, column.persons[persons]]) for column in columns]
            for columns in (self.numbers, self.codes)
        )
        rows = len((values or codes)[0])
        return mixed_rows(values, codes, rows, self.weights, squared=self.squared)


def _differ_clearly(released: Listed) -> bool:
    """Whether different released numbers are more than the least gap apart."""
    values = released.present
    if released.codes is not None:  # different values may be the same float
        return float(np.diff(values).min()) > _LEAST_GAP
    least = np.abs(values[values != 0]).min(initial=np.inf)
    if least > _LEAST_GAP * 2.0**60:  # neighboring floats differ by more than their size / 2**54
        return True
    return float(np.diff(np.unique(values)).min(initial=np.inf)) > _LEAST_GAP


def _sides(
    intruder: Intruder, numeric: Sequence[str], nominal: Sequence[str], *, squared: bool
) -> _Sides:
    numbers = [known_numbers(intruder, name) for name in numeric]
    scales = [
        float(column.values_before.var() if squared else np.ptp(column.before.present))
        if len(column.before.present)
        else 0.0
        for column in numbers
    ]
    # a column that is constant in the original counts for nothing
    weights = np.array([1.0 / scale if scale > 0 else 0.0 for scale in scales])
    return _Sides(numbers, [known_codes(intruder, name) for name in nominal], weights, squared)


def _chances(intruder: Intruder, sides: _Sides) -> Floats:
    """For each person, the chance that a random one of the nearest records has the label."""
    from shoal.kernels.linkage.mixed_linkage import behind, with_label

    crowds, (person_labels, record_labels) = intruder.crowds, intruder.labels
    whom = behind(crowds.rows, crowds.labels, record_labels, person_labels)
    alike = np.zeros(len(intruder.persons), np.int64)
    ties = np.ones(len(intruder.persons), np.int64)
    searched = np.flatnonzero(person_labels >= 0)  # a person without a record is never found
    # Without gaps, a record that equals what is known is nearer than any other.
    gaps = any(map(intruder.masked.missing_count, intruder.released))
    if sides.tells_apart() and not gaps:
        there = np.flatnonzero(intruder.own >= 0)
        there = there[sides.equal(there, crowds.labels[intruder.own[there]])]
        own = crowds.labels[intruder.own[there]]
        alike[there] = with_label(whom, person_labels[there], own)
        ties[there] = crowds.rows[own]
        searched = np.setdiff1d(searched, there, assume_unique=True)
    if len(searched):
        alike[searched], ties[searched] = _nearest(sides, searched, person_labels[searched], whom)
    return alike / ties


def _nearest(
    sides: _Sides, persons: Integers, labels: Integers, whom: Behind
) -> tuple[Integers, Integers]:
    """How many of the nearest records have a person's label, and how many there are."""
    from shoal.kernels.linkage.mixed_linkage import NearestRecords

    keys = [np.unique(column.persons[persons], return_inverse=True)[1] for column in sides.numbers]
    keys += [column.persons[persons] for column in sides.codes]
    kind, first = numbered_tuples(keys, len(persons))
    groups, kinds = len(whom.sizes), len(first)
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], np.arange(kinds + 1))
    link = NearestRecords(
        sides.records(persons[first]),
        np.arange(groups, groups + kinds),
        np.arange(groups),
        whom,
        starts,
        labels[order],
    )
    while link.advance() < kinds:
        pass  # in portions, so that ctrl-C stops it
    alike = np.empty(len(order), np.int64)
    alike[order] = link.alike
    return alike, link.ties[kind]


def _about_gaps(intruder: Intruder) -> tuple[str, ...]:
    """Records with missing values are near to everyone, which hides the right ones."""
    gappy = filter(intruder.masked.missing_count, intruder.released)
    columns = [intruder.masked.codes(name) for name in gappy]
    rows = intruder.crowds.first_rows
    missing = [c.codes[rows] == c.missing for c in columns if c.missing is not None]
    if not missing:
        return ()
    gaps = int(intruder.crowds.rows[np.logical_or.reduce(missing)].sum())
    return (
        f"In {gaps:,} of {intruder.masked.records:,} released records, a known value is missing. "
        "This attack assumes that a gap agrees with any value. An intruder who prefers records "
        "without gaps finds more people.",
    )
