"""Linkage by distance: the nearest released record is taken for the person's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from shoal.errors import InputError, quoted
from shoal.measurement import Measurement, measure
from shoal.risk.linkage._compared import (
    is_quantity,
    known_codes,
    known_numbers,
    numbered_tuples,
    values_before,
)
from shoal.risk.linkage._intruder import SAMPLE, Floats, Integers, Intruder, intruder
from shoal.risk.linkage._right_links import (
    Links,
    about_coarser,
    blind_links,
    right_links,
)
from shoal.table import Table

if TYPE_CHECKING:
    from shoal.kernels.space.mixed_records import MixedRecords

LinkageDissimilarity = Literal["gower", "euclidean"]


@measure(
    "share of right links by distance",
    direction="lower",
    limits=(0, 1),
    needs_original=True,
    pairs=True,
)
def distance_linkage(
    original: Table,
    masked: Table,
    *,
    known: Sequence[str] | str | None = None,
    dissimilarity: LinkageDissimilarity = "gower",
    sample: int = SAMPLE,
    random_state: int | None = None,
) -> Measurement:
    """The share of persons whose nearest released record is their own.

    An intruder knows some columns of every person in the original and takes the nearest record
    of the masked table for the person's own. Where t records are equally near, and the right one
    is among them, the link counts 1/t. Somebody whose record was taken out is not linked, nor is
    anybody by a column that was taken out. All masked records are candidates, always.

    Numbers, dates, times and durations are compared in the scale of the original. A column counts
    for two records only where both have a value (Gower's rule, for both dissimilarities); records
    that share none are 1 apart. Other columns, or such as are none in both tables, are equal or
    different.

    The value is of all persons of the original, whoever was released: what an intruder achieves
    who does not know who is in the masked table. ``details["of_released"]`` is of those who are.

    The interval is Wilson's (binomial), of the chance that the masking gives: what another
    draw of persons, or of a random masking, would show. It is not narrowed where the whole table
    was linked, and persons who were swapped with each other count as one.

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
        How records are compared; ``"euclidean"`` is for numbers only, standardised.
    sample : int
        So many persons are linked at most. Without ``random_state`` a larger table always gives
        the same sample, so that a release can be verified.
    random_state : int, optional
        Gives another sample. It is no secret.

    References
    ----------
    Domingo-Ferrer, Torra (2001), A quantitative comparison of disclosure control methods for
    microdata, section 3. Gower (1971), A general coefficient of similarity.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"age": [30, 31, 48]}), Roles(quasi_identifiers=["age"]))
    >>> distance_linkage(table, Round(base=10).fit_transform(table)).per_record.tolist()
    [0.5, 0.5, 1.0]
    """
    _check_dissimilarity(dissimilarity)
    who = intruder(original, masked, known=known, sample=sample, random_state=random_state)
    links = distance_links(who, *who.people, dissimilarity=dissimilarity)
    return right_links("distance_linkage", who, links)


def distance_links(
    who: Intruder,
    person_labels: Integers,
    record_labels: Integers,
    *,
    dissimilarity: LinkageDissimilarity = "gower",
) -> Links:
    """The chance that the nearest record, ties at random, has the person's label."""
    _check_dissimilarity(dissimilarity)
    if not who.released:
        return blind_links(who, person_labels, record_labels)
    numeric = [name for name in who.released if is_quantity(name, who.original, who.masked)]
    nominal = [name for name in who.released if name not in numeric]
    if nominal and dissimilarity == "euclidean":
        raise InputError(
            f"Euclidean distance compares numbers, but {quoted(nominal)} is not numeric in both "
            "tables; choose the dissimilarity 'gower', or name other columns as known."
        )
    sides = _sides(who, numeric, nominal, squared=dissimilarity == "euclidean")
    chances = _nearest(who, sides, person_labels, record_labels)
    return Links(chances, warnings=(*about_coarser(sides.coarser), *_about_gaps(who)))


class _Sides(NamedTuple):
    """Persons, equal ones once, then records, equal ones once, in the scale of the original.

    ``person`` has for each person the number of the one that stands for it.
    """

    records: MixedRecords
    person: Integers
    persons: int
    coarser: list[str]


def _sides(
    who: Intruder, numeric: Sequence[str], nominal: Sequence[str], *, squared: bool
) -> _Sides:
    from shoal.kernels.space.mixed_records import mixed_records

    numbers = [known_numbers(who, name) for name in numeric]
    sides = [known_codes(who, name) for name in nominal]
    keys = [who.original.codes(name).codes[who.persons].astype(np.int64) for name in numeric]
    person, first = numbered_tuples([*keys, *(side.persons for side in sides)], len(who.persons))
    rows = len(first) + who.crowds.count
    values, codes = np.empty((rows, len(numeric))), np.empty((rows, len(nominal)), np.int64)
    for place, column in enumerate(numbers):
        values[:, place] = np.concatenate([column.persons[first], column.records])
    for place, side in enumerate(sides):
        codes[:, place] = np.concatenate([side.persons[first], side.records])
    scales = [
        float(values_before(who, name).var() if squared else np.ptp(column.levels))
        if len(column.levels)
        else 0.0
        for name, column in zip(numeric, numbers, strict=True)
    ]
    # a column that is constant in the original counts for nothing
    weights = np.array([1.0 / scale if scale > 0 else 0.0 for scale in scales])
    coarser = [name for name, side in zip(nominal, sides, strict=True) if side.coarser]
    records = mixed_records(values, codes, weights=weights, squared=squared)
    return _Sides(records, person, len(first), coarser)


def _nearest(
    who: Intruder, sides: _Sides, person_labels: Integers, record_labels: Integers
) -> Floats:
    """For each person the chance that one of the nearest records, any of them, has the label."""
    from shoal.kernels.linkage.mixed_linkage import NearestRecords, behind

    rows = np.arange(sides.persons)
    candidates = np.arange(sides.persons, sides.persons + who.crowds.count)
    whom = behind(
        np.concatenate([np.ones(sides.persons, np.int64), who.crowds.rows]),
        sides.persons + who.crowds.labels,
        record_labels,
        person_labels,
    )
    order = np.argsort(sides.person, kind="stable")
    starts = np.searchsorted(sides.person[order], np.arange(sides.persons + 1))
    link = NearestRecords(sides.records, rows, candidates, whom, starts, person_labels[order])
    while link.advance() < len(rows):
        pass  # in portions, so that ctrl-C stops it
    chances = np.empty(len(order))
    chances[order] = link.alike
    return chances / link.ties[sides.person]


def _about_gaps(who: Intruder) -> tuple[str, ...]:
    """That records with missing values are near to everybody, which hides the right ones."""
    columns = [who.masked.codes(name) for name in who.released]
    missing = [c.codes[who.first_rows] == c.missing for c in columns if c.missing is not None]
    if not missing:
        return ()
    gaps = int(who.crowds.rows[np.logical_or.reduce(missing)].sum())
    return (
        f"In {gaps:,} of {len(who.masked):,} released records a known value is missing; this "
        "attack takes a gap to agree with any value, so whoever prefers records without gaps "
        "links more.",
    )


def _check_dissimilarity(dissimilarity: str) -> None:
    if dissimilarity not in ("gower", "euclidean"):
        raise InputError("The dissimilarity of a linkage must be 'gower' or 'euclidean'.")
