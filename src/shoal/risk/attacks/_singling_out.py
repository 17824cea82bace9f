"""Singling out: conditions taken from the release that hold for one person alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Integers
from shoal.measurement import Measurement, measure
from shoal.parameters import Integer, OneOf
from shoal.randomness import SecretStream
from shoal.risk._options import Control, Count, Draw, Known
from shoal.risk.attacks._success import (
    attack_measurement,
    check_tables,
    nothing_found,
    one_numbering,
    public_stream,
    readable_columns,
)
from shoal.risk.linkage._intruder import drawn_rows, known_columns, persons_of_records
from shoal.risk.linkage._right_links import Rate, clusters_if_repeated
from shoal.table import ReleasedColumn, Table, owned_pairs

if TYPE_CHECKING:
    from shoal.kernels.boxes.predicates import Indexed, Runs

#: So many rows are looked at, in all, for more predicates than the fewest: about a second.
_MOST_LOOKS = 40_000_000
_FEWEST_ATTACKS = 300
#: Of more records some may be drawn twice, since to draw each once takes a number for each.
_MOST_CHOSEN = 10_000_000

SinglingOutMode = Annotated[
    Literal["multivariate", "univariate"], OneOf(("multivariate", "univariate"))
]
NumberCondition = Annotated[Literal["near", "beyond"], OneOf(("near", "beyond"))]


@measure(
    "risk of being singled out, above blind guessing",
    direction="lower",
    limits=(0, 1),
    by_counts=True,
)
def singling_out(
    original: Table,
    masked: Table,
    *,
    mode: SinglingOutMode = "multivariate",
    known: Known = None,
    columns: Annotated[int | None, Integer(1)] = None,
    numbers: NumberCondition = "near",
    attacks: Count = 2_000,
    control: Control = None,
    random_state: Draw = None,
) -> Measurement:
    """How often conditions taken from the release hold for exactly one person of the original.

    ``"multivariate"`` takes the cells of a released record, or as many of them as ``columns`` says,
    and asks whom all of them fit. A cell may be a value, an interval, a set, a unit of the
    calendar, a prefix or ``*``; a missing cell asks for nothing. Blind guessing joins the same
    kinds of cells, each from another released record: whoever sees the columns one by one can do
    that, so columns that were shuffled independently single nobody out.

    ``"univariate"`` takes the rarest released values, and the extremes, of one column each. As one
    column alone says nothing about a record, the one person that a condition holds for counts only
    if that person's own record has the value; so rows must be paired.

    The value is (r - b) / (1 - b): r is the rate of success, b that of blind guessing, or of the
    same conditions on as many control persons where that is higher. Conditions that hold for
    several records of one person alone single that person out.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, or a synthetic one.
    mode : {"multivariate", "univariate"}
        Whether conditions are about several columns of a record or one.
    known : list of str, optional
        The columns that conditions are about; the quasi-identifiers without it.
    columns : int, optional
        The number of conditions of a predicate in the multivariate mode, about columns drawn for
        each; all known columns without it.
    numbers : {"near", "beyond"}
        Whether the condition of a released number is to be nearer to it than to any other released
        one, or at least as far out. The least and the largest number are open to their side.
    attacks : int
        The number of predicates at most, each from a released record of its own. Where each takes
        long, in large tables of columns with few values, there are fewer, but 300 of them.
    control : Table, optional
        Persons of the same kind who were not in the table.
    random_state : int, optional
        Gives other predicates. It is no secret.

    References
    ----------
    Article 29 Working Party (2014), Opinion 05/2014 on anonymisation techniques, section 2.2.2.
    Cohen, Nissim (2020), Towards formalizing the GDPR's notion of singling out, definition 2.
    Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A unified framework for quantifying privacy risk in
    synthetic data, section 4.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 48, 30], "sex": ["f", "m", "f", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> singling_out(table, table).details["success"]
    1.0
    """
    check_tables(original, masked, control)
    names = known_columns(original, masked, known)
    if mode == "univariate" and not masked.pairs_with(original):
        raise InputError(
            "One column alone isolates a value and no record, unless rows are paired, and the two "
            "tables do not come from one input; choose the mode 'multivariate'."
        )
    read, said = readable_columns(names, original, masked, control)
    details = {"known": [column.name for column in read], "mode": mode}
    if not any((column.labels >= 0).any() for column in read):
        said.append("Nothing was released that a condition could be about.")
        return nothing_found("singling_out", control, details | {"attacks": 0}, said)
    read = [column.near() if numbers == "near" else column.beyond() for column in read]
    space, short = _predicate_space(read, original, masked, control, random_state)
    stream = public_stream("predicates", random_state)
    if mode == "multivariate":
        width = len(read) if columns is None else min(int(columns), len(read))
        outcome = _multivariate(space, original, masked, width, int(attacks), stream)
    else:
        outcome = _univariate(space, original, masked, int(attacks), stream)
    return attack_measurement(
        "singling_out",
        outcome.attack,
        blind=outcome.blind,
        control=outcome.control,
        details=details | outcome.facts,
        warnings=[*said, *short],
    )


@dataclass(frozen=True, eq=False)
class PredicateSpace:
    """The persons and what released labels stand for, all columns in one numbering."""

    columns: Sequence[ReleasedColumn]
    labels: Integers  # [column, released record], -1 where the cell is missing
    runs: Runs
    sources: Integers  # rows of the masked table that conditions are taken from
    persons: Integers  # rows of the original, all of each person
    inside: Indexed
    outside: Indexed | None  # control persons

    def isolated(self, rows: Indexed, columns: Integers, labels: Integers) -> Integers:
        """A row of the one person that each predicate holds for; below 0 where there is none."""
        from shoal.kernels.boxes.predicates import isolated_rows

        found: Integers = isolated_rows(rows, columns, labels, self.runs)
        return found

    def affordable(self, columns: Integers, *labels: Integers) -> int:
        """How many of the predicates, the first ones, can be tried without taking long."""
        from shoal.kernels.boxes.predicates import rows_to_look_at

        looks = sum(rows_to_look_at(self.inside, columns, one, self.runs) for one in labels)
        within = int(np.searchsorted(np.cumsum(looks), _MOST_LOOKS, side="right"))
        return min(len(columns), max(_FEWEST_ATTACKS, within))


@dataclass(frozen=True)
class AttackRates:
    """The rates of an attack."""

    attack: Rate
    blind: Rate
    control: Rate | None
    facts: dict[str, Any]


def _predicate_space(
    read: Sequence[ReleasedColumn],
    original: Table,
    masked: Table,
    control: Table | None,
    random_state: int | None,
) -> tuple[PredicateSpace, list[str]]:
    from shoal.kernels.boxes.predicates import indexed

    values = np.stack([column.values for column in read])
    counts = np.array([len(column.places) for column in read])
    people, paired = original.person_count, masked.pairs_with(original)
    outside, said = None, []
    if control is not None:
        others = _all_rows(control, drawn_rows(control, people, random_state))
        outside = indexed(values[:, len(original) + others], counts, control.persons[others])
        if control.person_count < people:
            said.append(_about_control(control.person_count, people, paired))
            people = control.person_count if paired else people
    persons = _all_rows(original, drawn_rows(original, people, random_state))
    sources = np.arange(len(masked))
    if people < original.person_count:  # who is not among them cannot be found by a record
        sources = np.flatnonzero(np.isin(masked.row_key, original.row_key[persons]))
        if len(sources) == 0:
            raise InputError(
                f"None of {people:,} persons, as many as the control has, has a released record; "
                "give a larger control."
            )
    labels, runs = one_numbering(read)
    owners = original.persons[persons]
    if original.times is not None and not original.has_persons:
        # of several persons who are alike nobody is alone: two of them say so
        persons = np.repeat(np.arange(len(original)), np.minimum(original.times, 2))
        owners = np.arange(len(persons))
    inside = indexed(values[:, persons], counts, owners)
    return PredicateSpace(read, labels, runs, sources, persons, inside, outside), said


def _all_rows(table: Table, rows: Integers) -> Integers:
    """The rows of the persons of whom some rows have one each."""
    return (
        np.flatnonzero(np.isin(table.persons, table.persons[rows])) if table.has_persons else rows
    )


def _about_control(others: int, people: int, paired: bool) -> str:
    fewer = f"The control has {others:,} persons where the original has {people:,}, so that"
    if paired:
        return f"{fewer} people are singled out among {others:,} of them."
    return f"{fewer} conditions hold for fewer of them, and the risk may be overstated."


def _multivariate(
    space: PredicateSpace,
    original: Table,
    masked: Table,
    width: int,
    attacks: int,
    stream: SecretStream,
) -> AttackRates:
    # by what they say, so that the order of rows and columns does not matter
    order = np.lexsort(space.labels[::-1])
    sources = order if len(space.sources) == len(order) else order[np.isin(order, space.sources)]
    count = min(attacks, len(sources) if masked.times is None else masked.records)
    source = _drawn_records(masked, sources, count, stream.derive("records"))
    ranks = stream.derive("columns").uniform(count * len(space.columns)).reshape(count, -1)
    columns = np.argsort(ranks, axis=1)[:, :width].astype(np.int64)
    mixed = _at(
        masked, order, stream.derive("mixed").integers_below(np.full(count * width, masked.records))
    )
    predicates = space.labels[columns, source[:, None]]
    strangers = space.labels[columns, mixed.reshape(count, width)]
    count = space.affordable(columns, predicates, strangers)
    source, columns = source[:count], columns[:count]
    predicates, strangers = predicates[:count], strangers[:count]
    found = space.isolated(space.inside, columns, predicates)
    blind = space.isolated(space.inside, columns, strangers) >= 0
    alike = masked.group([column.name for column in space.columns]).labels[source]
    persons = clusters_if_repeated(masked.persons[source]) if masked.has_persons else []
    facts = {"attacks": count, "conditions": width, "isolated": int((found >= 0).sum())}
    if masked.pairs_with(original):
        owners = persons_of_records(original, masked)[source]
        own = original.persons[space.persons[found.clip(0)]] == owners
        facts["isolated_by_own_record"] = int((own & (found >= 0)).sum())
    return AttackRates(
        Rate.of(found >= 0, alike.astype(np.int64), *persons),
        Rate.of(blind),
        _control_rate(space, columns, predicates),
        facts,
    )


def _drawn_records(masked: Table, rows: Integers, count: int, stream: SecretStream) -> Integers:
    """The rows of so many records, of all that some rows stand for; of very many, any ones."""
    total = len(rows) if masked.times is None else int(masked.times[rows].sum())
    if total > _MOST_CHOSEN:
        return _at(masked, rows, stream.integers_below(np.full(count, total)))
    return _at(masked, rows, stream.choose(total, count))


def _at(masked: Table, rows: Integers, records: Integers) -> Integers:
    """The rows of records that are numbered through some rows in their order."""
    if masked.times is None:
        return rows[records]
    found: Integers = rows[np.searchsorted(np.cumsum(masked.times[rows]), records, side="right")]
    return found


def _univariate(
    space: PredicateSpace, original: Table, masked: Table, attacks: int, stream: SecretStream
) -> AttackRates:
    """The rarest released values; the one person counts who has a record with the value."""
    there = space.labels >= 0
    cells = space.labels[there]
    if masked.has_persons:  # a value counts once for each person who has it
        cells, _ = owned_pairs(cells, masked.persons[np.nonzero(there)[1]])
    counts = np.bincount(cells)
    column_of = np.zeros(len(counts), np.int64)
    for place, labels in enumerate(space.labels):
        column_of[labels[labels >= 0]] = place
    shown = np.unique(space.labels[:, space.sources])
    shown = shown[shown >= 0]
    luck = stream.derive("rarest").permutation(len(shown))
    rarest = shown[np.lexsort((luck, counts[shown]))[:attacks]]
    columns, labels = column_of[rarest][:, None], rarest[:, None]
    found = space.isolated(space.inside, columns, labels)
    own = (found >= 0) & _have(space, original, masked, rarest, space.persons[found.clip(0)])
    isolated = int((found >= 0).sum())
    chance = np.where(found >= 0, counts[rarest] / masked.person_count, 0.0)
    control = _control_rate(space, columns, labels)
    if control is not None:  # nobody there has a record: right as often as with those who have
        right = int(own.sum()) / max(isolated, 1)
        control = replace(control, share=control.share * right)
    return AttackRates(
        Rate.of(own),
        Rate(float(chance.mean())),
        control,
        {"attacks": len(rarest), "isolated": isolated, "isolated_by_own_record": int(own.sum())},
    )


def _have(
    space: PredicateSpace, original: Table, masked: Table, labels: Integers, rows: Integers
) -> Flags:
    """Whether the person of each row of the original has a record with the label beside it."""
    asked = np.zeros(int(space.labels.max()) + 1, np.bool_)
    asked[labels] = True
    column, record = np.nonzero((space.labels >= 0) & asked[space.labels])
    owners = persons_of_records(original, masked)
    width = max(int(owners.max()) + 1, original.person_count)
    held = space.labels[column, record] * width + owners[record]
    return np.isin(labels * width + original.persons[rows], held)


def _control_rate(space: PredicateSpace, columns: Integers, labels: Integers) -> Rate | None:
    if space.outside is None:
        return None
    return Rate.of(space.isolated(space.outside, columns, labels) >= 0)
