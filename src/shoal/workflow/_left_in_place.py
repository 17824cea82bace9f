"""Columns outside the quasi-identifiers that link more persons than these do.

Quasi-identifiers are what somebody thought of. A column that nobody thought of, and that no step
touched, links as it did before; whoever signs a release must know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.errors import quoted
from shoal.measurement import Measurement
from shoal.risk import distance_linkage
from shoal.table import Table

#: So many persons are linked by each column, or by all of them: ± 2 percent.
PERSONS = 2_000
#: So many columns are tried alone, those with the most different values first.
MOST_COLUMNS = 20


@dataclass(frozen=True, eq=False)
class LinkingColumns:
    """Columns that link clearly more persons than the quasi-identifiers.

    ``found`` is the linkage by all of them where ``together``, else by the worst of them alone.
    """

    columns: tuple[str, ...]
    together: bool
    found: Measurement
    by_quasi_identifiers: Measurement

    @property
    def sentence(self) -> str:
        """What was found, beside what the quasi-identifiers link."""
        plural = len(self.columns) > 1
        named = f"the column{'s' * plural} {quoted(self.columns)}"
        if not self.together:
            named = f"one of {named}" if plural else f"{named} alone"
        up_to = "up to " if plural and not self.together else ""
        kind = "are no quasi-identifiers" if plural else "is no quasi-identifier"
        return (
            f"whoever knows {named}, which {kind}, finds {up_to}{_percent(self.found)} of the "
            f"persons; the quasi-identifiers find {_percent(self.by_quasi_identifiers)}"
        )


def linking_columns(
    original: Table, masked: Table, by_quasi_identifiers: Measurement | None = None
) -> tuple[LinkingColumns, ...]:
    """The columns, each alone and all together, that link more persons than quasi-identifiers do.

    More means that the two intervals are apart. Columns are tried by :func:`distance_linkage`, on
    a sample of persons; ``by_quasi_identifiers`` is its measurement, where it was taken already.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles
    >>> frame = pl.DataFrame({"sex": ["f", "m"] * 20, "shoe": range(40)})
    >>> table = Table(frame, Roles(quasi_identifiers=["sex"]))
    >>> for found in linking_columns(table, table):
    ...     print(found.sentence)
    whoever knows the column 'shoe' alone, which is no quasi-identifier, finds 100 % (95 % 91.2 to
    100 %) of the persons; the quasi-identifiers find 5 % (95 % 1.38 to 16.5 %)
    """
    if not masked.pairs_with(original) or not original.roles.quasi_identifiers or not len(masked):
        return ()
    by_quasi = by_quasi_identifiers or distance_linkage(original, masked)
    others = other_columns(original, masked)
    alone = _alone(original, masked, _tried_alone(original, masked, others), by_quasi)
    if len(others) < 2:
        return alone
    together = distance_linkage(original, masked, known=others, sample=PERSONS)
    if not _is_more(together, by_quasi):
        return alone
    return (*alone, LinkingColumns(tuple(others), True, together, by_quasi))


def other_columns(original: Table, masked: Table) -> list[str]:
    """The columns of both tables that are neither identifier, quasi-identifier nor sensitive."""
    roles = original.roles
    declared = {*roles.identifiers, *roles.quasi_identifiers, *roles.sensitive}
    return [n for n in original.columns if n in masked.columns and n not in declared]


def _tried_alone(original: Table, masked: Table, others: Sequence[str]) -> list[str]:
    """Other columns; and, where there are several, each secret, which may tell another one."""
    secrets = [name for name in original.roles.sensitive if name in masked.columns]
    return [*others, *(secrets if len(secrets) > 1 else ())]


def _alone(
    original: Table, masked: Table, columns: Sequence[str], by_quasi: Measurement
) -> tuple[LinkingColumns, ...]:
    """The columns of which each links more persons than the quasi-identifiers."""
    # Records of one value hide each other: at most one person is found by each value.
    most = {name: masked.distinct(name) / len(original) for name in columns}
    ranked = sorted(most, key=lambda name: -most[name])[:MOST_COLUMNS]
    _, enough = by_quasi.interval or (by_quasi.value, by_quasi.value)
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
    low, _ = one.interval or (one.value, one.value)
    _, high = other.interval or (other.value, other.value)
    return low > high


def _percent(found: Measurement) -> str:
    low, high = found.interval or (found.value, found.value)
    return f"{100 * found.value:.3g} % (95 % {100 * low:.3g} to {100 * high:.3g} %)"
