"""Many releases of one table: what they tell together that none of them tells alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import Fits, Integer, OneOf, checked
from shoal.risk._classes import one_value_for_all
from shoal.risk._options import ColumnName
from shoal.table import Table, owned_pairs, stacked_table

Scalar = TypeVar("Scalar", bound=np.generic)

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
    """The share of persons whom several releases of one table expose together.

    Somebody who knows the quasi-identifiers of a person finds a class of records in each release.
    The person is in all of them.

    - ``"records"``: where records can be followed from release to release (by a pseudonym, or by
      columns that were not masked), the person is among those who are in the same class every
      time. The value is the share of persons in such a crowd of fewer than ``k``; of a person who
      has several records each is followed by itself.
    - ``"values"``: where they cannot, the sensitive value is one that every class has. The value
      is the share of persons for whom one value is left, and is theirs, in any sensitive column.

    Parameters
    ----------
    releases : list of Table
        Two releases or more that come from one input, each with its quasi-identifiers.
    attack : {"records", "values"}
        What is intersected.
    secret : str, optional
        The sensitive column; by default all that every release has.
    k : int, optional
        How many must stay together; the smallest class of all releases without it, but at least
        two: somebody alone is exposed.
    original : Table, optional
        The input: ``per_record`` then follows its rows, and those of the first release without it.

    Returns
    -------
    Measurement
        The baseline is the value of the single release that tells most. ``per_record`` is private:
        1 for a person who is exposed, and NaN for one who is not in all releases.

    References
    ----------
    Ganta, Kasiviswanathan, Smith (2008), Composition attacks and auxiliary information in data
    privacy, section 2 (intersection attack).

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
    seen = _persons(releases)
    names = _secrets(releases, secret, needed=attack == "values")
    least = max(2, min(one.classes.k for one in releases)) if k is None else int(k)
    crowds = _crowds(seen)
    alone = [seen.sizes(place) for place in range(len(releases))]
    exposed = crowds < least
    persons = seen.of_persons
    singles = [float(persons(sizes < least).mean()) for sizes in alone]
    details: dict[str, Any] = {
        "persons": seen.person_count,
        "releases": len(releases),
        "k": least,
        "k_of_releases": [release.classes.k for release in releases],
        "smallest_crowd": int(crowds.min()),
        "average_crowd": float(-persons(-crowds).mean()),
        "below_k": float(persons(exposed).mean()),
        "alone": float(persons(crowds == 1).mean()),
    }
    if names:
        told = {name: _disclosed(seen, releases, name) for name in names}
        details["value_is_certain"] = {
            name: float(persons(one[0]).mean()) for name, one in told.items()
        }
        if attack == "values":
            exposed = np.logical_or.reduce([together for together, _ in told.values()])
            singles = [
                float(
                    persons(
                        np.logical_or.reduce([apart[place] for _, apart in told.values()])
                    ).mean()
                )
                for place in range(len(releases))
            ]
    return Measurement(
        "intersection",
        float(persons(exposed).mean()),
        baseline=max(singles),
        per_record=_per_record(seen, exposed, releases[0] if original is None else original),
        details=details | {"attack": attack, "single_releases": singles},
        warnings=_warnings(seen, releases, details),
    )


@dataclass(frozen=True, eq=False)
class RecordsInAll:
    """The records that are in all releases, and the row and class of each in each of them."""

    first: Table  # the records themselves, as the first release has them
    keys: Integers
    rows: Integers  # [release, person]
    classes: Integers  # [release, person]
    counts: tuple[Integers, ...]  # for each release the sizes of its classes

    @property
    def person_count(self) -> int:
        """The number of persons, who may have several records."""
        return self.first.person_count

    def of_persons(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The largest value among the records of each person."""
        return self.first.of_persons(values)

    def sizes(self, release: int) -> Integers:
        """The size of the class of each person in a release."""
        return self.counts[release][self.classes[release]]


def _check_releases(releases: Any, original: Any) -> None:
    tables = list(releases) if isinstance(releases, (list, tuple)) else []
    if len(tables) < 2 or not all(isinstance(one, Table) for one in tables):
        raise InputError("An intersection needs a list of two shoal.Tables or more.")
    if any(not one.pairs_with(tables[0]) for one in (*tables, *([original] if original else []))):
        raise InputError(
            "The releases do not come from one input, so nobody can be followed from one to the "
            "other; declare that their rows are those of the input by release.paired(original)."
        )
    bare = sum(not one.roles.quasi_identifiers for one in tables)
    if bare:
        raise InputError(f"{bare} of the releases have no quasi-identifiers; declare them.")


def _persons(releases: Sequence[Table]) -> RecordsInAll:
    keys = reduce(np.intersect1d, [release.row_key for release in releases])
    if len(keys) == 0:
        raise InputError("Nobody is in all of the releases, so there is nothing to intersect.")
    rows = []
    for release in releases:
        order = np.argsort(release.row_key)
        rows.append(order[np.searchsorted(release.row_key[order], keys)])
    labels = [one.classes.labels[at] for one, at in zip(releases, rows, strict=True)]
    counts = tuple(release.classes.sizes for release in releases)
    first = releases[0].reorder(rows[0])
    return RecordsInAll(first, keys, np.stack(rows), np.stack(labels).astype(np.int64), counts)


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
            "No sensitive column is in all of the releases; name one as 'secret', or choose the "
            "attack 'records'."
        )
    mixed = [name for name in names if len({_terms(one, name) for one in releases}) > 1]
    if mixed and needed:
        raise InputError(
            f"Column {quoted(mixed)} is text in some of the releases and not in others, so that "
            "its values cannot be compared; choose the attack 'records'."
        )
    return tuple(name for name in names if name not in mixed)


def _terms(release: Table, name: str) -> str:
    kind = release.kind(name)
    return "number" if kind in ("integer", "float") else kind


def _crowds(seen: RecordsInAll) -> Integers:
    """How many persons are in the same class as each one, in every release."""
    labels = np.unique(seen.classes, axis=1, return_inverse=True)[1].ravel()
    same, _ = owned_pairs(labels, seen.first.persons)
    crowds: Integers = np.bincount(same)[labels].astype(np.int64)
    return crowds


def _disclosed(
    seen: RecordsInAll, releases: Sequence[Table], name: str
) -> tuple[Flags, list[Flags]]:
    """For whom one value of a column is left and is theirs: from all releases, and from each."""
    from shoal.kernels.uniques.intersections import common_members

    stacked = reduce(lambda above, below: stacked_table(above, below, [name]), releases)
    codes = np.split(stacked.codes(name).codes.astype(np.int64), _ends(releases))
    first, starts, members = 0, [np.zeros(1, np.int64)], []
    chosen = np.empty(seen.classes.shape[::-1], np.int64)
    own = np.stack([one[rows] for one, rows in zip(codes, seen.rows, strict=True)])
    same = (own == own[0]).all(axis=0)  # who has other values now is not found by what is common
    apart: list[Flags] = []
    for place, (release, values) in enumerate(zip(releases, codes, strict=True)):
        cells = np.stack([release.classes.labels.astype(np.int64), values])
        pairs = np.unique(cells, axis=1)
        sizes = np.bincount(pairs[0], minlength=release.classes.count)
        certain = one_value_for_all(release.classes.labels, values, release.persons)
        apart.append(certain[seen.classes[place]])
        chosen[:, place] = seen.classes[place] + first
        starts.append(starts[-1][-1] + np.cumsum(sizes))
        members.append(pairs[1])
        first += release.classes.count
    different, labels = np.unique(chosen, axis=0, return_inverse=True)
    counts, value = common_members(different, np.concatenate(starts), np.concatenate(members), 2)
    of_person = labels.ravel()
    together = (counts[of_person] == 1) & same & (value[of_person] == own[0])
    if seen.first.has_persons:  # a value may be certain that not all records have
        together |= np.logical_or.reduce(apart) & same
    return together, apart


def _ends(releases: Sequence[Table]) -> Integers:
    """Where the rows of each release but the last end, in one pile."""
    return np.cumsum([len(release) for release in releases])[:-1].astype(np.int64)


def _per_record(seen: RecordsInAll, exposed: Flags, table: Table) -> Floats:
    found = np.full(len(table), np.nan)
    at = np.searchsorted(seen.keys, table.row_key).clip(0, len(seen.keys) - 1)
    there = seen.keys[at] == table.row_key
    found[there] = exposed[at[there]]
    return found


def _warnings(
    seen: RecordsInAll, releases: Sequence[Table], details: dict[str, Any]
) -> tuple[str, ...]:
    said = []
    left = max(len(release) for release in releases) - len(seen.keys)
    if left:
        said.append(
            f"Up to {left:,} records of a release are not in all of them; who is in some only can "
            "be exposed by having come or gone, which is not measured here."
        )
    if any(release.exchanges for release in releases):
        said.append(
            "Values were swapped in a release: its classes are of the released values, so that a "
            "person is not always in the class that somebody looks for."
        )
    if details["k"] == 1:
        said.append("No crowd falls below k = 1, so that nobody is exposed by it; give a larger k.")
    return tuple(said)
