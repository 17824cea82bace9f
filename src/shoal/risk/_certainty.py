"""Certainty: how sure an intruder can be that a person is in a sample at all.

It depends on how many people each released record could have stood for before sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.measurement import Measurement
from shoal.risk._classes import for_records, mean_of_classes, population_sizes
from shoal.risk._options import Missing, risk
from shoal.risk.attacks._success import one_numbering
from shoal.table import (
    QUANTITIES,
    Pair,
    ReleasedColumn,
    Roles,
    Table,
    form_classes,
    released_column,
    stacked_codes,
    weights_by_class,
)

T = TypeVar("T")

_HIGH = (0.5, 0.8)
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
#: A target with more values is not a label, and is reported as a whole.
_LABELS = 20


@risk("highest certainty of membership")
def certainty(original: Table, masked: Table, *, missing: Missing = "own") -> Measurement:
    """The largest share of a class that a sample released.

    If F people have the same quasi-identifiers and f of them are in the release, then an intruder
    who knows a person's quasi-identifiers can be certain to f/F that the person is in it. The value
    is the largest such share. The details hold the distribution and the journalist risk 1/F. If a
    person has several records, the details are about persons, each with their highest share.

    If the roles name a target, the details and warnings also report the certainty for an intruder
    who also knows the person's target value: a balanced sample releases rare values more often.

    Parameters
    ----------
    original : Table
        The table before sampling. If it is not masked in the same way as ``masked``, F counts the
        people in the classes that the sample was drawn from, provided that Shoal formed them before
        it drew the sample. Otherwise F counts the people whose values equal, or lie in, the
        released values.
    masked : Table
        The sample.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Sample, Table
    >>> table = Table(pl.DataFrame({"age": [30] * 5 + [41] * 8}), Roles(quasi_identifiers=["age"]))
    >>> found = certainty(table, Sample(fraction=0.5, strategy="stratified").fit_transform(table))
    >>> found.value, found.per_record.tolist()
    (0.5, [0.4, 0.4, 0.5, 0.5, 0.5, 0.5])
    """
    if len(masked) == 0 or len(original) == 0:
        raise InputError("Certainty needs records, and one of the two tables has none.")
    names = masked.roles.quasi_identifiers
    before = before_sampling(original, masked, names, missing)
    people, sizes = before.people, before.records
    released, certainties = masked.of_persons(sizes / people), before.certainties
    rows = masked.classes.first_rows
    shares, risks = sizes[rows] / people[rows], 1 / people[rows]
    details: dict[str, Any] = {
        "mean": mean_of_classes(masked, shares),
        "quantiles": dict(
            zip(map(str, _QUANTILES), np.quantile(released, _QUANTILES).tolist(), strict=True)
        ),
        "records_above": {str(bound): float((released > bound).mean()) for bound in _HIGH},
        "people_above": {str(b): float((certainties > b).mean()) for b in _HIGH},
        "journalist_risk": {
            "highest": float(risks.max()),
            "mean": mean_of_classes(masked, risks),
        },
        "unplaced": before.unplaced,
    }
    warnings = _about_k(before.smallest, sizes, learned=before.learned)
    if before.unplaced:
        warnings.append(
            f"{before.unplaced} of {original.person_count} people have values that nobody in the "
            "release had, so the released form of these values is unknown. These people are "
            "in no class, and the certainty tends to be too high."
        )
    known = _with_target(original, masked, missing)
    if known is not None:
        details["with_target"] = known
        warnings += _about_target(known, float(shares.max()))
    return Measurement(
        "certainty",
        float(shares.max()),
        per_record=for_records(masked, shares),
        details=details,
        warnings=tuple(warnings),
    )


def _about_k(k: int, sizes: Integers, *, learned: bool) -> list[str]:
    """A sample of a k-anonymous table is rarely k-anonymous; warn the reader."""
    smaller, smallest = int((sizes < k).sum()), int(sizes.min())
    if k < 2 or not smaller:
        return []
    if learned:  # classes may have been formed before or after sampling
        return [
            f"With everyone counted, the smallest class has {k} people, in the release {smallest}. "
            "A k-anonymous table does not make its sample k-anonymous. An intruder who knows that "
            "a person is in the release finds their record with a chance of up to "
            f"1/{smallest}."
        ]
    return [
        f"The table before sampling is {k}-anonymous; the release is not: {smaller} of "
        f"{len(sizes)} records are in classes of fewer than {k}. The smallest class has "
        f"{smallest}. An intruder who knows that a person is in the release finds their record "
        f"with a chance of up to 1/{smallest}."
    ]


def _with_target(original: Table, masked: Table, missing: Missing) -> dict[str, Any] | None:
    """The certainty for an intruder who also knows the target value; None without a target."""
    target = masked.roles.target
    if target is None or target not in original.columns:
        return None
    names = (*masked.roles.quasi_identifiers, target)
    try:
        before = before_sampling(original, masked, names, missing)
    except InputError:  # the target was changed at random: an intruder does not know the new value
        return None
    shares = before.records / before.people
    both = stacked_codes(target, before.sample, before.whole) + 1  # 0 where missing
    labels, everyone = both[: len(masked)], both[len(masked) :]
    found: dict[str, Any] = {
        "highest": float(shares.max()),
        "certain_records": float(before.sample.of_persons(shares == 1).mean()),
    }
    values = [int(value) for value in np.unique(labels)]
    if len(values) <= _LABELS and np.isin(values, everyone).all():  # not made coarser
        of_values = [
            _of_value(before, labels == value, everyone == value, shares) for value in values
        ]
        found["values"] = sorted(of_values, key=lambda one: (-one["inclusion"], one["people"]))
    return found


def _of_value(before: BeforeSampling, released: Flags, all_: Flags, shares: Floats) -> Any:
    """One value of the target. It is not named, because it is a cell of the table."""
    people = int(before.whole.of_persons(all_).sum())
    inside = int(before.sample.of_persons(released).sum())
    certain = int(before.sample.of_persons(released & (shares == 1)).sum())
    return {
        "people": people,
        "inclusion": inside / people,
        "highest": float(shares[released].max()),
        "certain_people": certain / people,
    }


def _about_target(known: dict[str, Any], highest: float) -> list[str]:
    if known["highest"] <= highest:
        return []
    sentence = (
        f"Without the target, the certainty is at most {highest:.4g}. For an intruder who knows a "
        f"person's target value, it is up to {known['highest']:.4g}."
    )
    if known.get("values"):
        rates = [one["inclusion"] for one in known["values"]]
        sure = max(one["certain_people"] for one in known["values"])
        sentence += (
            " Depending on the target's value, the chance of being in the release lies between "
            f"{min(rates):.3g} and {max(rates):.3g}. For one value, a share of {sure:.3g} of the "
            "people are in it with certainty 1."
        )
    return [sentence]


@dataclass(frozen=True, eq=False)
class BeforeSampling:
    """The people whom each record of a sample may describe.

    For each released record, ``records`` counts the f records in its class (or persons, if they
    have several records), and ``people`` the F people that it stands for. The smallest F of all
    classes is ``smallest``. For each person counted, ``certainties`` states how certain it is that
    they are in the sample. ``unplaced`` people were not counted, because the released form of their
    values is unknown. ``sample`` and ``whole`` hold the requested columns of records and people.
    """

    sample: Table
    of_whole: Callable[[], Table]
    records: Integers
    people: Floats
    certainties: Floats
    smallest: int
    unplaced: int = 0
    #: Whether the classes were reconstructed in the original, not taken as recorded.
    learned: bool = False

    @cached_property
    def whole(self) -> Table:
        """The people that the records were drawn from."""
        return self.of_whole()


#: Counts by the two tables, the columns and the reading of missing values.
_COUNTED: ContextVar[dict[tuple[object, ...], Any] | None]
_COUNTED = ContextVar("counted before sampling", default=None)


@contextmanager
def counted_once() -> Iterator[None]:
    """Inside this context, measures of the same tables share one count of the people."""
    token = _COUNTED.set({})
    try:
        yield
    finally:
        _COUNTED.reset(token)


def before_sampling(
    original: Table, masked: Table, columns: Sequence[str], missing: Missing = "own"
) -> BeforeSampling:
    """Count, for each masked record, the people of the original with the same columns."""
    return _once(
        lambda: _counted(original, masked, columns, missing), original, masked, *columns, missing
    )


def _once(make: Callable[[], T], *key: object) -> T:
    """The result of ``make``, made once inside :func:`counted_once`."""
    kept = _COUNTED.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    return kept[key]


def _counted(
    original: Table, masked: Table, columns: Sequence[str], missing: Missing
) -> BeforeSampling:
    """Count the people without a cache.

    If the columns were not changed, or the tables were read separately, people are compared with
    records as they are. Otherwise they are counted in the recorded classes that the sample was
    drawn from. Without such a record, the released form of each value is learned from the records
    in both tables. If equal values became different ones, the people whom the released values cover
    are counted.
    """
    sample, whole = (_with_columns(table, columns) for table in (masked, original))
    if not masked.pairs_with(original):
        return _count_equal(sample, whole, missing)
    if len(masked) == len(original):
        return _count_equal(sample, sample, missing)  # nobody was left out
    own = original.rows_of_keys(masked.row_key)
    if (own < 0).any():
        raise InputError(
            f"{int((own < 0).sum())} of {len(masked)} masked records are not in the original. Pass "
            "the table that the sample was drawn from."
        )
    changed = (name for name in columns if masked.changed_count(name, original))
    if (first := next(changed, None)) is None:
        return _count_equal(sample, whole, missing)
    if masked.sampling is not None and {first, *changed} <= {*masked.sampling.whole.columns}:
        recorded = _once(
            lambda: _recorded_classes(original, masked, columns), original, masked, "recorded"
        )
        if recorded is not None:
            one, other = (_with_columns(table, columns) for table in recorded)
            return _count_equal(one, other, missing)
    pair = Pair.of(original, masked)
    became = {name: _outcome_codes(pair, name) for name in columns}
    different = [name for name, labels in became.items() if labels is None]
    if different:
        return _count_covered(sample, whole, own, different, missing)
    known = {name: labels for name, labels in became.items() if labels is not None}
    return _count_learned(sample, whole, known, missing)


def journalist_risk_before_sampling(
    original: Table, masked: Table, *, missing: Missing = "own"
) -> Measurement:
    """Journalist risk of a sample, 1/F, where F counts people in the table before sampling."""
    names = masked.roles.quasi_identifiers
    people = before_sampling(original, masked, names, missing).people
    risks = 1.0 / people[masked.classes.first_rows]
    return Measurement(
        "journalist_risk",
        float(risks.max()),
        per_record=for_records(masked, risks),
        details={"population": "the table before sampling"},
    )


def _with_columns(table: Table, columns: Sequence[str]) -> Table:
    """The table with these columns as the quasi-identifiers."""
    lacking = [name for name in columns if name not in table.columns]
    if lacking:
        raise InputError(
            f"The original has no column {quoted(lacking)}, so the classes before sampling cannot "
            "be counted."
        )
    roles = Roles(quasi_identifiers=columns)
    return table if table.roles == roles else table.with_roles(roles, released=True)


def _count_equal(
    sample: Table, whole: Table, missing: Missing, *, unplaced: int = 0, learned: bool = False
) -> BeforeSampling:
    """Count the people whose values equal those of a record."""
    people = population_sizes(sample, population=whole, missing=missing)
    shares = whole.class_sizes_in(sample, missing) / whole.class_sizes(missing)
    shares = np.minimum(shares, 1.0)  # with several records per person, both are lower bounds
    smallest = int(whole.class_sizes(missing).min())
    records, certainties = sample.class_sizes(missing), whole.of_persons(shares)
    return BeforeSampling(
        sample, lambda: whole, records, people, certainties, smallest, unplaced, learned
    )


def _recorded_classes(
    original: Table, masked: Table, columns: Sequence[str]
) -> tuple[Table, Table] | None:
    """Records and people in the classes that a sample was drawn from, if they were recorded.

    A target, and columns that are not on record, are those of the original.
    """
    assert masked.sampling is not None
    whole = masked.sampling.whole
    rows = original.rows_of_keys(whole.row_key)
    if (rows < 0).any():  # the original itself lacks some of these records
        return None
    target = [name for name in (masked.roles.target,) if name in original.columns]
    more = [name for name in dict.fromkeys([*columns, *target]) if name not in whole.columns]
    if more:
        ranks = [original.ranked(more).codes(name) for name in more]
        whole = whole.with_codes({codes.name: (codes, codes.codes[rows]) for codes in ranks})
    if original.has_persons:
        whole = whole.owned_by(original.persons[rows])
    return whole.reorder(whole.rows_of_keys(masked.row_key)), whole


def _count_learned(
    sample: Table, original: Table, became: dict[str, Labels], missing: Missing
) -> BeforeSampling:
    """Count people by the released form of their values."""
    if missing == "own" and not original.has_persons:
        found = _count_learned_by_class(sample, original, became)
        if found is not None:
            return found
    labels = {name: known[original.codes(name).codes] for name, known in became.items()}
    everyone = np.ones(len(original), np.bool_)
    for name, known in became.items():
        if (known < 0).any():
            everyone &= labels[name] >= 0
    unplaced = 0
    whole = original
    if not everyone.all():
        unplaced = int(original.of_persons(~everyone).sum())
        others = [name for name in original.columns if name not in became]
        whole = original.drop(others).keep(everyone)
        labels = {name: codes[everyone] for name, codes in labels.items()}
    whole = whole.with_codes({name: (sample.codes(name), labels[name]) for name in labels})
    return _count_equal(sample, whole, missing, unplaced=unplaced, learned=True)


def _count_learned_by_class(
    sample: Table, original: Table, became: dict[str, Labels]
) -> BeforeSampling | None:
    """The same, with people of equal values counted together; None if some cannot be placed."""
    people, records = original.group(list(became)), sample.group(list(became))
    parts = []
    for name, known in became.items():
        labels = known[original.codes(name).codes[people.first_rows]]
        if labels.min(initial=0) < 0:
            return None
        codes = sample.codes(name)
        parts.append(
            codes.with_codes(np.append(codes.codes[records.first_rows], labels).astype(np.uint32))
        )
    joint = form_classes(parts, records.count + people.count)
    of_records, of_people = np.split(joint.labels, [records.count])
    counts = np.bincount(of_people, people.rows, joint.count).astype(np.float64)
    shares = np.bincount(of_records, records.rows, joint.count)[of_people] / counts[of_people]

    def whole() -> Table:
        return original.with_codes(
            {
                name: (sample.codes(name), known[original.codes(name).codes])
                for name, known in became.items()
            }
        )

    return BeforeSampling(
        sample,
        whole,
        sample.class_sizes("own"),
        records.spread(counts[of_records]),
        people.spread(shares),
        int(counts[of_people].min()),
        learned=True,
    )


def _count_covered(
    sample: Table, whole: Table, own: Integers, changed: Sequence[str], missing: Missing
) -> BeforeSampling:
    """Count the people whom the released values of a record cover.

    Of the F people in a class, f are in the sample; if classes overlap, a person's shares add up.
    People are unplaced only because nobody knows whom a released name stands for.
    """
    from shoal.kernels.boxes.predicates import covered_rows, indexed, shared_out

    read = [
        _own_column(released_column(name, whole, sample), sample, own, missing)
        for name in sample.roles.quasi_identifiers
    ]
    columns = [column for column in read if column is not None]
    if len(columns) < len(read):
        raise InputError(
            f"Equal values of {quoted(changed)} became different ones, and some do not lie in the "
            "released values. The released form of the records that were left out is therefore "
            "unknown. As the original, pass the table as it was just before sampling."
        )
    labels, runs = one_numbering(columns)
    # people with equal values, and records with equal cells, count once
    places = np.array([len(column.places) for column in columns])
    values = np.stack([column.values[whole.classes.first_rows] for column in columns])
    rows = indexed(values, places)
    boxes = np.ascontiguousarray(labels[:, sample.classes.first_rows].T), runs
    # a person with several records counts as a share in each: a lower bound of the people covered
    shares = 1.0 / np.bincount(whole.persons)[whole.persons]
    people = np.floor(covered_rows(rows, *boxes, weights_by_class(whole.classes, shares)) + 1e-9)
    # a record that agrees with others by a wildcard may agree with more people than it covers
    records = sample.class_sizes(missing)
    people = np.maximum(sample.classes.spread(people), records.astype(np.float64))
    shares = np.zeros(sample.classes.count)
    shares[sample.classes.labels] = sample.classes.record_sizes / people
    found = whole.classes.spread(shared_out(rows, *boxes, shares))
    named = any(column.reading == "pairs" for column in columns)
    unplaced = int(whole.of_persons(found == 0).sum()) if named else 0
    certainties, smallest = whole.of_persons(np.minimum(found, 1.0)), int(people.min())
    return BeforeSampling(
        sample, lambda: whole, records, people, certainties, smallest, unplaced, learned=True
    )


def _outcome_codes(pair: Pair, name: str) -> Labels | None:
    """The released code of each value, -1 if unknown; None if equal values became different."""
    values, outcomes = pair.original.codes(name), pair.outcomes(name)
    if not np.diff(outcomes.values).all():
        return None
    became = np.full(values.count, -1, np.int32)
    became[outcomes.values] = outcomes.labels
    if pair.original.kind(name) in QUANTITIES:
        became[: len(values.levels)] = _filled_between(became[: len(values.levels)])
    return became


def _filled_between(became: Labels) -> Labels:
    """Fill in ordered values: between two that became the same, all values became the same."""
    places = np.arange(len(became))
    known = became >= 0
    below = np.maximum.accumulate(np.where(known, places, -1))
    above = np.minimum.accumulate(np.where(known, places, len(became))[::-1])[::-1]
    inside = ~known & (below >= 0) & (above < len(became))
    low, high = became[below[inside]], became[above[inside]]
    became[inside] = np.where(low == high, low, -1)
    return became


def _own_column(
    column: ReleasedColumn, masked: Table, own: Integers, missing: Missing
) -> ReleasedColumn | None:
    """The column with missing values, if each record lies in its own released value."""
    readings = [column]
    if column.ordered and column.reading == "values" and masked.kind(column.name) == "text":
        # numbers that were released as text of other numbers cover the span of their records
        readings.append(column.spanned(column.values[own]))
    for reading in readings:
        whole = reading.with_missing(wildcard=missing == "wildcard")
        if whole.stands_for(whole.labels, whole.values[own]).all():
            return whole
    return None
