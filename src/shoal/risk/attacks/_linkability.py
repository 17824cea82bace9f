"""Linkability: whether the release joins two halves of a person's data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.risk._options import Control, Count, Draw, Names, risk
from shoal.risk.attacks._success import (
    SAMPLE,
    Attack,
    Rates,
    ReleasedRegions,
    joint_counts,
    released_regions,
)
from shoal.risk.linkage._intruder import known_columns
from shoal.risk.linkage._right_links import Rate, about_sampled
from shoal.table import Table


@risk(
    "risk that two sources are linked through the release",
    on_request="it needs two sources and people who were not in the table; ask for it by name, "
    "with a control",
)
def linkability(
    original: Table,
    masked: Table,
    *,
    left: Names = None,
    right: Names = None,
    neighbours: Count = 1,
    control: Control = None,
    sample: Count = SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """How often the nearest records by some columns and by others share a released record.

    An intruder has two sources about the same people, one with the left columns and one with the
    right columns, without names. For each person, the attack finds the nearest released records by
    the left columns and by the right columns. If the two sets share a record, the two halves are
    joined. If several records are equally near, the attack chooses among them at random, and the
    chance to share one counts. If a person has several records, one of them is known, drawn by a
    public key.

    The value is (r - b) / (1 - b). r is the success rate. b is the success rate of records taken at
    random, or of the attack on the control group if that is higher. Distances are Gower's. The
    distance from a released interval or set to a value is 0 if the interval or set contains it;
    otherwise it is the distance to the nearest value that it contains.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, or a synthetic one.
    left : list of str, optional
        The columns of one source. Default: the quasi-identifiers are divided between the two
        sources by their number of different values.
    right : list of str, optional
        The columns of the other source.
    neighbours : int
        How many nearest records to take on each side.
    control : Table, optional
        People of the same population who were not in the table.
    sample : int
        At most this many people of each group are attacked. Released records are never sampled.
    random_state : int, optional
        Another number draws another sample. It is not a secret.

    References
    ----------
    Article 29 Working Party (2014), Opinion 05/2014 on anonymisation techniques
    <https://ec.europa.eu/justice/article-29/documentation/opinion-recommendation/files/2014/wp216_en.pdf>,
    section 2.2.2. Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A unified framework for quantifying
    privacy risk in synthetic data <https://doi.org/10.56553/popets-2023-0055>, section 4.2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 48], "zip": ["a", "b", "c"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "zip"]))
    >>> linkability(table, table).value
    1.0
    """
    attack = Attack("linkability", original, masked, control)
    sources = _sources(original, masked, left, right)
    read = attack.readable_columns([*sources[0], *sources[1]])
    attack.warnings += about_sampled(original, masked)
    sides = [[column for column in read if column.name in source] for source in sources]
    details = {
        "left": [column.name for column in sides[0]],
        "right": [column.name for column in sides[1]],
        "neighbours": int(neighbours),
    }
    if not (sides[0] and sides[1]):
        nothing = "One of the two sources has no released column, so nothing links them."
        return attack.nothing_found(nothing, details | {"persons": 0})
    taken = min(int(neighbours), masked.records)
    regions = released_regions(sides[0], masked), released_regions(sides[1], masked)
    persons, others = attack.rows(int(sample), random_state)
    rates = Rates(
        Rate.of(_chances(regions, persons, taken, masked.times)),
        Rate(_blind(masked.records, taken)),
        None if others is None else Rate.of(_chances(regions, others, taken, masked.times)),
    )
    details |= {"persons": len(persons), "records": masked.records}
    return attack.measurement(rates, details)


def _sources(
    original: Table, masked: Table, left: Sequence[str] | None, right: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if (left is None) != (right is None):
        raise InputError("Name the columns of both sources, 'left' and 'right', or of neither.")
    if left is not None and right is not None:
        one, other = known_columns(original, masked, left), known_columns(original, masked, right)
        if set(one) & set(other):
            raise InputError(
                f"Column {quoted(sorted(set(one) & set(other)))} is in both sources and already "
                "links them. Name sources that share no column."
            )
        return one, other
    names = known_columns(original, masked, None)
    if len(names) < 2:
        raise InputError(
            f"Column {quoted(names)} alone cannot be divided between two sources. Name the columns "
            "of both as 'left' and 'right'."
        )
    ranked = sorted(names, key=lambda name: (-original.distinct(name), name))
    return tuple(ranked[::2]), tuple(ranked[1::2])


def _chances(
    regions: tuple[ReleasedRegions, ReleasedRegions],
    persons: Integers,
    neighbours: int,
    times: Integers | None,
) -> Floats:
    """For each person, the chance that the two sides share a record."""
    from shoal.kernels.boxes.nearest_regions import shared_neighbours

    left, right = regions
    pairs = joint_counts(left.classes, right.classes.labels.astype(np.int64), times)
    counts = shared_neighbours(left.seen_by(persons), right.seen_by(persons), pairs, neighbours)
    return overlap_chance(counts, neighbours)


def overlap_chance(counts: Integers, neighbours: int) -> Floats:
    """The chance that two sets of nearest records, with ties drawn at random, share a record.

    ``counts`` comes from :func:`shoal.kernels.boxes.nearest_regions.shared_neighbours`. One set
    takes ``a`` of the records tied on the left, the other ``b`` of those tied on the right. They
    are disjoint if two conditions hold: the first avoids the records that the second certainly has,
    and the second avoids those that the first certainly has and the ``j`` records in the first that
    are tied on both sides.
    """
    nearer, tied, right_nearer, right_tied, both, second, first, shared = counts.T
    a, b = neighbours - nearer, neighbours - right_nearer
    disjoint = np.zeros(len(counts))
    for j in range(neighbours + 1):
        avoids = _log_choose(shared, j) + _log_choose(tied - second - shared, a - j)
        other = _log_choose(right_tied - first - j, b)
        disjoint += np.exp(avoids - _log_choose(tied, a) + other - _log_choose(right_tied, b))
    return np.where(both > 0, 1.0, np.clip(1.0 - disjoint, 0.0, 1.0))


def _log_choose(n: Integers, k: Integers | int) -> Floats:
    """The logarithm of a binomial coefficient; of 0 if there is no such choice."""
    from scipy.special import gammaln

    n, k = np.broadcast_arrays(n, k)
    possible = (k >= 0) & (k <= n)
    n, k = np.where(possible, n, 0), np.where(possible, k, 0)
    found = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.where(possible, found, -np.inf)


def _blind(records: int, neighbours: int) -> float:
    """The chance that two random sets of ``neighbours`` records share one."""
    n, k = np.array([records]), neighbours
    return float(-np.expm1(_log_choose(n - k, k) - _log_choose(n, k))[0])
