"""Linkage by similarity: the record with the best score over the known columns, if high enough."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.measurement import Measurement
from shoal.parameters import Fits, OneOf, Real
from shoal.risk._options import Count, Draw, Known, risk
from shoal.risk.linkage._intruder import (
    SCORED_SAMPLE,
    Intruder,
    KnownNumbers,
    best_scores,
    compared,
    intruder_of,
    is_quantity,
    known_numbers,
)
from shoal.risk.linkage._right_links import Links, about_coarser, blind_links, right_links, wilson
from shoal.table import Table

Comparator = Annotated[Literal["exact", "linear", "gauss"], OneOf(("exact", "linear", "gauss"))]
Units = Annotated[Literal["raw", "sd"], OneOf(("raw", "sd"))]

#: The share of the full score that a link must reach (Carvalho et al.).
THRESHOLD = 0.7


_SHARE_OR_NONE = Fits(
    "a number ≥ 0 and ≤ 1, or None",
    lambda value: value is None or Real(minimum=0, maximum=1).accepts(value),
)


@risk("share of right links by similarity", pairs=True)
def similarity_linkage(
    original: Table,
    masked: Table,
    *,
    known: Known = None,
    comparator: Comparator = "exact",
    scale: Annotated[float, Real(above=0)] = 1.0,
    units: Units = "raw",
    threshold: Annotated[float | None, _SHARE_OR_NONE] = THRESHOLD,
    sample: Count = SCORED_SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """The share of people whose own record scores best and reaches a share of the full score.

    Every known column scores between 0 and 1; a missing or removed value scores 0. An intruder
    takes the masked record with the highest sum for the person's own, if the sum reaches
    ``threshold`` times the number of known columns. If t records have the highest sum and the right
    one is among them, the link counts 1/t. The threshold can hide links that are right without it:
    ``details["best_match"]`` holds the share of right links without a threshold, and a warning
    appears if the two are far apart.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    known : list of str or a word, optional
        The columns that the intruder knows: a list, or ``"quasi-identifiers"`` (the default),
        ``"left-in-place"``, ``"informed"`` or ``"everything"``.
    comparator : {"exact", "linear", "gauss"}
        The score of two numbers with difference d: 1 if they are equal, else 0; ``1 - d / (2
        scale)``, at least 0; or ``2 ** -(d / scale) ** 2``. Dates (in days), times and durations
        are scored in the same way. All other columns score 1 if they are equal, else 0.
    scale : float
        The difference at which two numbers are half similar, for ``"linear"`` and ``"gauss"``.
    units : {"raw", "sd"}
        Whether the scale is in units of the column, or in standard deviations of the original.
    threshold : float or None
        The share of the full score that a link must reach; None links by the best score alone.
    sample : int
        At most this many people are linked. All masked records are always candidates.
    random_state : int, optional
        Another number draws another sample. It is not a secret.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance trade-off
    <https://arxiv.org/abs/2201.05226>, section 4: re-identification risk by record linkage.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"age": [30, 31, 48]}), Roles(quasi_identifiers=["age"]))
    >>> masked = Round(base=10).fit_transform(table)
    >>> similarity_linkage(table, masked).per_record.tolist()
    [0.5, 0.0, 0.0]
    >>> similarity_linkage(table, masked, comparator="gauss", threshold=None).per_record.tolist()
    [0.5, 0.5, 1.0]
    """
    intruder = intruder_of(original, masked, known=known, sample=sample, random_state=random_state)
    links = similarity_links(
        intruder, comparator=comparator, scale=scale, units=units, threshold=threshold
    )
    return right_links("similarity_linkage", intruder, links)


def similarity_links(
    intruder: Intruder,
    *,
    comparator: Comparator = "exact",
    scale: float = 1.0,
    units: Units = "raw",
    threshold: float | None = THRESHOLD,
) -> Links:
    """The chance that the best-scoring record reaches the threshold and has the person's label."""
    from shoal.kernels.linkage.best_scores import scoring

    if not intruder.released:  # every score is 0, and every record is the best
        links = blind_links(intruder)
        return links if threshold is None else Links(0 * links.chances)
    numbers = {
        name: known_numbers(intruder, name)
        for name in intruder.released
        if comparator != "exact" and is_quantity(name, intruder.original, intruder.masked)
    }
    halves = {name: _half_similar(column, scale, units) for name, column in numbers.items()}
    # A column that is constant in the original has scale 0: values are equal or not.
    halves = {name: difference for name, difference in halves.items() if difference > 0}
    both = compared(intruder, {name: numbers[name] for name in halves})
    ones = np.ones(len(both.persons.codes))
    how = scoring(ones, 0 * ones, np.array(list(halves.values())), gauss=comparator == "gauss")
    found = best_scores(intruder, both, how)
    best_match = found.alike / found.ties
    # Sums are exact, but a share of a number of columns, such as 0.7 times 30, is not.
    enough = (THRESHOLD if threshold is None else threshold) * len(intruder.known) - 1e-9
    reached = found.best >= enough
    details = {
        "comparator": comparator,
        "threshold": threshold,
        "best_match": float(best_match.mean()),
        "above_threshold": float((best_match * reached).mean()),
        "own_reaches": float((found.own >= enough).mean()),
        "any_reaches": float(reached.mean()),
    }
    chances = best_match if threshold is None else best_match * reached
    warnings = [*about_coarser(both.coarser), *_about_threshold(best_match, chances)]
    return Links(chances, details, tuple(warnings))


def _half_similar(column: KnownNumbers, scale: float, units: Units) -> float:
    """The difference at which two numbers of a column are half similar."""
    if units == "raw":
        return scale * column.unit
    before = column.values_before
    return scale * float(before.std()) if len(before) else 0.0


def _about_threshold(best_match: Floats, chances: Floats) -> tuple[str, ...]:
    """Warn that a threshold hides right links."""
    shown, hidden = float(chances.mean()), float(best_match.mean())
    if wilson(hidden, len(chances))[0] <= wilson(shown, len(chances))[1]:
        return ()
    return (
        f"The threshold hides right links: {100 * hidden:.3g} % of the people are found by the "
        f"best score alone, but only {100 * shown:.3g} % by a score that reaches the threshold. "
        "Read the first number as the risk (threshold=None returns it).",
    )
