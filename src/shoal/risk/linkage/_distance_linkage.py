"""Linkage by distance: the nearest released record is taken for the person's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.errors import InputError, quoted
from shoal.measurement import Measurement, measure
from shoal.risk.linkage._compared import is_quantity
from shoal.risk.linkage._intruder import SAMPLE, Floats, Integers, Intruder, intruder
from shoal.risk.linkage._right_links import (
    Links,
    about_coarser,
    blind_links,
    known_codes,
    right_links,
)
from shoal.table import Table, stacked_numbers

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
    from shoal.kernels.linkage.mixed_linkage import NearestRecords

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
    records, coarser = _records(who, numeric, nominal, squared=dissimilarity == "euclidean")
    persons = np.arange(len(who.persons))
    labels = np.concatenate([person_labels, record_labels]).astype(np.int64)
    link = NearestRecords(records, persons, np.arange(len(persons), len(labels)), labels)
    while link.advance() < len(persons):
        pass  # in portions, so that ctrl-C stops it
    return Links(link.alike / link.ties, warnings=(*about_coarser(coarser), *_about_gaps(who)))


def _about_gaps(who: Intruder) -> tuple[str, ...]:
    """That records with missing values are near to everybody, which hides the right ones."""
    whole = np.logical_and.reduce([who.masked.present(name) for name in who.released])
    gaps = int(len(whole) - whole.sum())
    if gaps == 0:
        return ()
    return (
        f"In {gaps:,} of {len(whole):,} released records a known value is missing; this attack "
        "takes a gap to agree with any value, so whoever prefers records without gaps links more.",
    )


def _check_dissimilarity(dissimilarity: str) -> None:
    if dissimilarity not in ("gower", "euclidean"):
        raise InputError("The dissimilarity of a linkage must be 'gower' or 'euclidean'.")


def _records(
    who: Intruder, numeric: Sequence[str], nominal: Sequence[str], *, squared: bool
) -> tuple[MixedRecords, list[str]]:
    """The persons, then all masked records, in the scale of the original; and what is coarser."""
    from shoal.kernels.space.mixed_records import mixed_records

    rows = np.concatenate([who.persons, len(who.original) + np.arange(len(who.masked))])
    values = np.empty((len(rows), len(numeric)))
    weights = np.zeros(len(numeric))
    for place, name in enumerate(numeric):
        column = stacked_numbers(name, who.original, who.masked)
        before = column[: len(who.original)]
        weights[place] = _weight(before[~np.isnan(before)], squared)
        values[:, place] = column[rows]
    both = [known_codes(who, name) for name in nominal]
    codes = np.empty((len(rows), len(nominal)), np.int64)
    for place, side in enumerate(both):
        codes[:, place] = np.concatenate([side.persons, side.records])
    coarser = [name for name, side in zip(nominal, both, strict=True) if side.coarser]
    return mixed_records(values, codes, weights=weights, squared=squared), coarser


def _weight(before: Floats, squared: bool) -> float:
    """One over the range, or the variance; 0 for a column that is constant in the original."""
    if len(before) == 0:
        return 0.0
    scale = float(before.var()) if squared else float(np.ptp(before))
    return 1.0 / scale if scale > 0 else 0.0
