"""Interval disclosure: numbers that a release reveals closely, if not exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from shoal.errors import DoesNotApply, InputError, columns_that, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import OneOf, Real
from shoal.risk._options import Names, risk
from shoal.risk.linkage._intruder import is_quantity
from shoal.risk.linkage._right_links import about_renamed, about_sampled
from shoal.table import Table, ends_of_members, stacked_numbers

Interval = Annotated[
    Literal["ranks", "deviations", "groups"], OneOf(("ranks", "deviations", "groups"))
]


@dataclass(frozen=True, eq=False)
class _ColumnDisclosure:
    """One column: for each person, whether the interval is close to the value, and its width.

    Widths are in standard deviations of the original, NaN if nothing is disclosed. ``blind`` is
    the share that the intervals of other records would disclose, or None.
    """

    close: Floats
    widths: Floats
    blind: float | None

    @property
    def median_width(self) -> float | None:
        widths = self.widths[~np.isnan(self.widths)]
        return float(np.median(widths)) if len(widths) else None

    @property
    def exactly(self) -> Flags:
        """Whether the interval is a single value, and the person's own."""
        return (self.widths == 0) & (self.close > 0)


@risk("share of numbers disclosed closely", pairs=True)
def interval_disclosure(
    original: Table,
    masked: Table,
    *,
    columns: Names = None,
    interval: Interval = "ranks",
    percent: Annotated[float, Real(minimum=0, maximum=100)] = 5.0,
) -> Measurement:
    """The share of numbers that lie in a narrow interval around their released value.

    An intruder who finds a person's record can learn much from it without the exact value: after
    rank swapping, microaggregation, rounding or noise, the released value is near. A record's
    interval extends ``percent`` % of the released column's ranks, or of its standard deviation, to
    both sides of the released value. The measure checks whether the original value is in it.

    Groups also disclose numbers. With ``interval="groups"``, the interval spans the released value
    and all original values that became it. After a swap, it spans all values of the group, which
    anyone can read from the release. A number counts as disclosed if its interval is at most twice
    ``percent`` % of the standard deviation wide, and as disclosed exactly if the interval is a
    single value. If a person has several records, the most exposed one counts, and shares are of
    persons.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    columns : list of str, optional
        Columns of numbers, dates, times or durations. Default: all such columns among the
        quasi-identifiers and sensitive columns.
    interval : {"ranks", "deviations", "groups"}
        How the interval is formed.
    percent : float
        How far it extends to each side.

    References
    ----------
    Domingo-Ferrer, Torra (2001), A quantitative comparison of disclosure control methods for
    microdata, section 3 (interval disclosure). Mateo-Sanz, Sebé, Domingo-Ferrer (2004), Outlier
    protection in continuous microdata masking (intervals by standard deviations).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Round, Table
    >>> table = Table(pl.DataFrame({"wage": [100, 104, 220, 480]}), Roles(sensitive=["wage"]))
    >>> rounded = Round(base=100, columns=["wage"]).fit_transform(table)
    >>> interval_disclosure(table, rounded, interval="deviations").per_record.tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    masked.check_pairs_with(original)
    if len(original) == 0 or len(masked) == 0:
        raise InputError("Interval disclosure needs records, and one of the two tables has none.")
    names, left_out = _numeric(original, masked, columns)
    own = masked.rows_of_keys(original.row_key)
    found = {
        name: _column_disclosure(name, original, masked, own, interval, float(percent))
        for name in names
    }
    persons = original.of_persons
    per_record = np.mean([one.close for one in found.values()], axis=0)
    blind = [one.blind for one in found.values() if one.blind is not None]
    everything = np.all([one.close > 0 for one in found.values()], axis=0)
    exactly = {name: float(persons(one.exactly).mean()) for name, one in found.items()}
    return Measurement(
        "interval_disclosure",
        float(persons(per_record).mean()),
        baseline=float(np.mean(blind)) if len(blind) == len(found) else None,
        per_record=per_record,
        details={
            "persons": original.person_count,
            "interval": interval,
            "percent": float(percent),
            "zero_width": float(np.mean(list(exactly.values()))),
            "all_columns": float(persons(everything).mean()),
            "columns": {name: float(persons(one.close).mean()) for name, one in found.items()},
            "zero_widths": exactly,
            "median_widths": {name: one.median_width for name, one in found.items()},
        },
        warnings=(
            *_about(left_out),
            *about_sampled(original, masked),
            *about_renamed(original, masked, names),
        ),
    )


def _column_disclosure(
    name: str, original: Table, masked: Table, own: Integers, interval: Interval, percent: float
) -> _ColumnDisclosure:
    if name not in masked.columns:
        return _ColumnDisclosure(np.zeros(len(own)), np.full(len(own), np.nan), 0.0)
    both = stacked_numbers(name, original, masked)
    before, after = both[: len(own)], both[len(own) :]
    deviation, blind = _deviation(before), None
    if interval == "groups":
        low, high = _of_people(own, *_hulls(name, masked, own, before, after))
        close = high - low <= 2 * percent / 100 * deviation
    else:
        reach = percent / 100 * _deviation(after)
        ends = (
            _rank_windows(after, percent) if interval == "ranks" else (after - reach, after + reach)
        )
        low, high = _of_people(own, *ends)
        close = (low <= before) & (before <= high)
        blind = _chance_inside(original, before, *ends) * float((own >= 0).mean())
    close &= ~np.isnan(before)
    widths = np.where(np.isnan(before), np.nan, high - low)
    # a constant column has no deviation to scale by: a width is 0 or not a number
    scaled = widths / deviation if deviation > 0 else np.where(widths == 0, 0.0, np.nan)
    return _ColumnDisclosure(close.astype(np.float64), scaled, blind)


def _of_people(own: Integers, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The interval of each person's own record; NaN if the record was removed."""
    there = own >= 0
    return np.where(there, low[own], np.nan), np.where(there, high[own], np.nan)


def _rank_windows(values: Floats, percent: float) -> tuple[Floats, Floats]:
    """For each value, the values that are ``percent`` % of the ranks below and above it."""
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    there = ~np.isnan(values)
    ordered = np.sort(values[there])
    if len(ordered):
        reach = int(percent * len(ordered) / 100 + 1e-9)
        first = np.searchsorted(ordered, values[there], side="left")
        last = np.searchsorted(ordered, values[there], side="right") - 1
        low[there] = ordered[np.maximum(first - reach, 0)]
        high[there] = ordered[np.minimum(last + reach, len(ordered) - 1)]
    return low, high


def _hulls(
    name: str, masked: Table, own: Integers, before: Floats, after: Floats
) -> tuple[Floats, Floats]:
    """For each record, the ends of its group's values; NaN if its own value is missing."""
    swaps = [exchange for exchange in masked.exchanges if name in exchange.columns]
    if swaps:  # a swap keeps all values in their group
        groups = swaps[-1].groups.astype(np.int64)
        members, values = groups, after
    else:
        groups = masked.codes(name).codes.astype(np.int64)
        released = own >= 0
        members = np.concatenate([groups, groups[own[released]]])
        values = np.concatenate([after, before[released]])
    there = ~np.isnan(values)
    ends = ends_of_members(members[there], values[there], groups.max(initial=0) + 1)[groups]
    ends[np.isnan(after)] = np.nan
    return ends[:, 0], ends[:, 1]


def _chance_inside(original: Table, before: Floats, low: Floats, high: Floats) -> float:
    """The chance that a person's value is in a random record's interval."""
    ordered = np.sort(before[~np.isnan(before)])
    released = ~np.isnan(low)
    if original.has_persons:  # any of a person's values may be inside, each with its own record
        present = ~np.isnan(before)
        inside = np.searchsorted(np.sort(low[released]), before[present], side="right")
        inside = inside - np.searchsorted(np.sort(high[released]), before[present], side="left")
        missed = np.log1p(-np.minimum(inside / len(low), 1 - 1e-12))
        of_person = np.bincount(original.persons[present], missed, original.person_count)
        return float(-np.expm1(of_person).mean())
    inside = np.searchsorted(ordered, high[released], side="right") - np.searchsorted(
        ordered, low[released], side="left"
    )
    return float(inside.sum() / len(before) / len(low))


def _deviation(values: Floats) -> float:
    present = values[~np.isnan(values)]
    return float(present.std()) if len(present) else 0.0


def _numeric(
    original: Table, masked: Table, columns: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The columns to measure, and those that are no longer numbers."""
    if columns is None:
        roles = original.roles
        declared = [*roles.quasi_identifiers, *roles.sensitive]
        columns = [name for name in declared if is_quantity(name, original, original)]
        if not columns:
            raise DoesNotApply(
                "No quasi-identifier and no sensitive column of the original is numeric, so no "
                "interval can be disclosed. Name numeric columns as 'columns'."
            )
    wrong = [name for name in columns if name not in original.columns]
    wrong = wrong or [name for name in columns if not is_quantity(name, original, original)]
    if wrong:
        raise InputError(f"The original has no column {quoted(wrong)} of finite numbers.")
    chosen = list(dict.fromkeys(columns))
    kept = [n for n in chosen if n not in masked.columns or is_quantity(n, original, masked)]
    if not kept:
        raise DoesNotApply(
            columns_that(chosen, "is no longer numeric", "are no longer numeric")
            + " after masking. The released values show their own width."
        )
    return kept, [name for name in chosen if name not in kept]


def _about(left_out: Sequence[str]) -> tuple[str, ...]:
    if not left_out:
        return ()
    return (
        columns_that(left_out, "is left out", "are left out")
        + ", because the released values are coarser and show their own width.",
    )
