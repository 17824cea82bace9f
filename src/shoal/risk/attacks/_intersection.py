"""Many releases of one table: what they reveal together that none of them reveals alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, Literal

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Integers
from shoal.measurement import Measurement
from shoal.parameters import Fits, Integer, OneOf, checked
from shoal.risk._classes import one_value_for_all
from shoal.risk._options import ColumnName
from shoal.table import NUMBERS, Table, owned_pairs, stacked_table

IntersectionAttack = Annotated[Literal["records", "values"], OneOf(("records", "values"))]


_TABLE = Fits("a shoal.Table", lambda value: isinstance(value, Table))


@checked
def intersection(
    releases: Sequence[Table],
    *,
    attack: IntersectionAttack = "records",
    secret: ColumnName = None,
    k: Annotated[int | None, Integer(1)] = None,
    original: Annotated[Table | None, _TABLE] = None,
) -> Measurement:
    """The share of people whom several releases of one table expose together.

    An intruder who knows a person's quasi-identifiers finds a class of records in each release. The
    person is in all of these classes.

    - ``"records"``: the intruder can follow records from release to release, by a pseudonym or by
      columns that were not masked. The person is among those who are in the same class every time.
      The value is the share of people in such a crowd of fewer than ``k``. If a person has several
      records, each is followed on its own.
    - ``"values"``: the intruder cannot follow records, but the person's sensitive value occurs in
      every class. The value is the share of people for whom only one value remains, and it is
      theirs, in any sensitive column.

    Parameters
    ----------
    releases : list of Table
        At least two releases that come from one input, each with its quasi-identifiers.
    attack : {"records", "values"}
        What is intersected.
    secret : str, optional
        The sensitive column. Default: every sensitive column that all releases have.
    k : int, optional
        How many people must stay together. Default: the size of the smallest class in all releases,
        but at least two, since a person alone is exposed.
    original : Table, optional
        The input. ``per_record`` then follows its rows. Default: it follows the first release.

    Returns
    -------
    Measurement
        The baseline is the value of the most revealing single release. ``per_record`` is private: 1
        for a person who is exposed, and NaN for a person who is not in all releases.

    References
    ----------
    Ganta, Kasiviswanathan, Smith (2008), Composition attacks and auxiliary information in data
    privacy <https://doi.org/10.1145/1401890.1401926>, section 2 (intersection attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> frame = pl.DataFrame({"age": [31, 34, 36, 39], "sex": ["f", "m", "f", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> other = Hierarchy.suppression().generalize(table, "age", 1)
    >>> one = Hierarchy.suppression().generalize(table, "sex", 1)
    >>> one = Hierarchy.intervals(5).generalize(one, "age", 1)
    >>> one.classes.k, other.classes.k, intersection([one, other]).value
    (2, 2, 1.0)
    """
    _check_releases(releases, original)
    in_all = _records_in_all(releases)
    names = _secrets(releases, secret, needed=attack == "values")
    least = max(2, min(one.classes.k for one in releases)) if k is None else int(k)

    def share(marked: Flags) -> float:
        return float(in_all.first.of_persons(marked).mean())

    # who is in the same class in every release
    labels = np.unique(in_all.classes, axis=1, return_inverse=True)[1].ravel()
    crowds = np.bincount(owned_pairs(labels, in_all.first.persons)[0])[labels]
    exposed = crowds < least
    alone = zip(releases, in_all.classes, strict=True)
    singles = [share(release.classes.sizes[labels] < least) for release, labels in alone]
    details: dict[str, Any] = {
        "persons": in_all.first.person_count,
        "releases": len(releases),
        "k": least,
        "k_of_releases": [release.classes.k for release in releases],
        "smallest_crowd": int(crowds.min()),
        "average_crowd": float(-in_all.first.of_persons(-crowds).mean()),
        "below_k": share(exposed),
        "alone": share(crowds == 1),
    }
    if names:
        disclosed = [_disclosed(in_all, releases, name) for name in names]
        certain = [share(together) for together, _ in disclosed]
        details["value_is_certain"] = dict(zip(names, certain, strict=True))
        if attack == "values":
            exposed = np.logical_or.reduce([together for together, _ in disclosed])
            of_releases = zip(*(apart for _, apart in disclosed), strict=True)
            singles = [share(np.logical_or.reduce(apart)) for apart in of_releases]
    table = releases[0] if original is None else original
    rows, per_record = table.rows_of_keys(in_all.keys), np.full(len(table), np.nan)
    per_record[rows[rows >= 0]] = exposed[rows >= 0]
    return Measurement(
        "intersection",
        share(exposed),
        baseline=max(singles),
        per_record=per_record,
        details=details | {"attack": attack, "single_releases": singles},
        warnings=_warnings(in_all, releases, least),
    )


@dataclass(frozen=True, eq=False)
class RecordsInAll:
    """The records in all releases, with the row and class of each record in each release."""

    first: Table  # the records themselves, as the first release has them
    keys: Integers
    rows: Integers  # [release, person]
    classes: Integers  # [release, person]


def _check_releases(releases: Any, original: Any) -> None:
    tables = list(releases) if isinstance(releases, (list, tuple)) else []
    if len(tables) < 2 or not all(isinstance(one, Table) for one in tables):
        raise InputError("'releases' must be a list of at least two shoal.Tables.")
    if any(not one.pairs_with(tables[0]) for one in (*tables, *([original] if original else []))):
        raise InputError(
            "The releases do not come from one input, so people cannot be followed from one to the "
            "other. If their rows are those of the input, declare it with release.paired(original)."
        )
    bare = sum(not one.roles.quasi_identifiers for one in tables)
    if bare:
        raise InputError(
            f"{bare} of the releases have no quasi-identifiers. Declare them in the roles."
        )


def _records_in_all(releases: Sequence[Table]) -> RecordsInAll:
    keys = reduce(np.intersect1d, [release.row_key for release in releases])
    if len(keys) == 0:
        raise InputError("Nobody is in all of the releases, so there is nothing to intersect.")
    rows = np.stack([release.rows_of_keys(keys) for release in releases])
    labels = [one.classes.labels[at] for one, at in zip(releases, rows, strict=True)]
    first = releases[0].reorder(rows[0])
    return RecordsInAll(first, keys, rows, np.stack(labels).astype(np.int64))


def _secrets(releases: Sequence[Table], secret: Any, *, needed: bool) -> tuple[str, ...]:
    if secret is not None:
        for release in releases:
            release.chosen([secret])
        names: tuple[str, ...] = (secret,)
    else:
        named = dict.fromkeys(name for one in releases for name in one.roles.sensitive)
        names = tuple(n for n in named if all(n in release.columns for release in releases))
    if needed and not names:
        raise InputError(
            "No sensitive column is in all of the releases. Name one as 'secret', or choose the "
            "attack 'records'."
        )
    kinds = {name: {release.kind(name) for release in releases} for name in names}
    mixed = [name for name in names if len(kinds[name]) > 1 and not kinds[name] <= set(NUMBERS)]
    if mixed and needed:
        raise InputError(
            f"Column {quoted(mixed)} is text in some of the releases and not in others, so its "
            "values cannot be compared. Choose the attack 'records'."
        )
    return tuple(name for name in names if name not in mixed)


def _disclosed(
    in_all: RecordsInAll, releases: Sequence[Table], name: str
) -> tuple[Flags, list[Flags]]:
    """Who has only one value of a column left, their own: by all releases, and by each."""
    from shoal.kernels.uniques.intersections import common_members

    stacked = reduce(lambda above, below: stacked_table(above, below, [name]), releases)
    ends = np.cumsum([len(release) for release in releases])[:-1]
    codes = np.split(stacked.codes(name).codes.astype(np.int64), ends)
    first, starts, members = 0, [np.zeros(1, np.int64)], []
    chosen = np.empty(in_all.classes.shape[::-1], np.int64)
    own = np.stack([one[rows] for one, rows in zip(codes, in_all.rows, strict=True)])
    same = (own == own[0]).all(axis=0)  # common values do not find people whose value changed
    apart: list[Flags] = []
    for place, (release, values) in enumerate(zip(releases, codes, strict=True)):
        cells = np.stack([release.classes.labels.astype(np.int64), values])
        pairs = np.unique(cells, axis=1)
        sizes = np.bincount(pairs[0], minlength=release.classes.count)
        certain = one_value_for_all(release.classes.labels, values, release.persons)
        apart.append(certain[in_all.classes[place]])
        chosen[:, place] = in_all.classes[place] + first
        starts.append(starts[-1][-1] + np.cumsum(sizes))
        members.append(pairs[1])
        first += release.classes.count
    different, labels = np.unique(chosen, axis=0, return_inverse=True)
    counts, value = common_members(different, np.concatenate(starts), np.concatenate(members), 2)
    of_person = labels.ravel()
    together = (counts[of_person] == 1) & same & (value[of_person] == own[0])
    if in_all.first.has_persons:  # a value can be certain even if not all records have it
        together |= np.logical_or.reduce(apart) & same
    return together, apart


def _warnings(in_all: RecordsInAll, releases: Sequence[Table], k: int) -> tuple[str, ...]:
    messages = []
    left = max(len(release) for release in releases) - len(in_all.keys)
    if left:
        messages.append(
            f"Up to {left:,} records of a release are not in all of them. People who are only in "
            "some releases can be exposed by that alone, which is not measured here."
        )
    if any(release.exchanges for release in releases):
        messages.append(
            "Values were swapped in a release. Its classes are formed from the released values, so "
            "a person is not always in the class where an intruder would look."
        )
    if k == 1:
        messages.append(
            "No crowd is smaller than k = 1, so nobody counts as exposed. Pass a larger k."
        )
    return tuple(messages)
