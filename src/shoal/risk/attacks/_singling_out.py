"""Singling out: conditions taken from the release that hold for exactly one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Integers
from shoal.measurement import Measurement
from shoal.parameters import Integer, OneOf
from shoal.randomness import SecretStream
from shoal.risk._options import Control, Count, Draw, Known, risk
from shoal.risk.attacks._success import Attack, Rates, one_numbering
from shoal.risk.linkage._intruder import (
    PUBLIC_KEY,
    drawn_rows,
    known_columns,
    persons_of_records,
)
from shoal.risk.linkage._right_links import Rate, clusters_if_repeated
from shoal.table import ReleasedColumn, Table, owned_pairs

if TYPE_CHECKING:
    from shoal.kernels.boxes.predicates import Indexed, Runs

#: Beyond the fewest predicates, at most this many rows are checked in all: about a second.
_MOST_LOOKS = 40_000_000
_FEWEST_ATTACKS = 300
#: From more records, some may be drawn twice: drawing each once needs a number for each.
_MOST_CHOSEN = 10_000_000

SinglingOutMode = Annotated[
    Literal["multivariate", "univariate"], OneOf(("multivariate", "univariate"))
]
NumberCondition = Annotated[Literal["near", "beyond"], OneOf(("near", "beyond"))]


@risk("risk of being singled out, above blind guessing", by_counts=True)
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
    """How often conditions taken from the release hold for exactly one person in the original.

    ``"multivariate"`` takes the cells of a released record, or ``columns`` of them, and finds the
    people whom all of these cells fit. A cell may be a value, an interval, a set, a calendar unit,
    a prefix or ``*``. A missing cell sets no condition. Blind guessing combines the same kinds of
    cells, each from a different released record.

    ``"univariate"`` takes the rarest released values and the extremes, one column at a time. One
    column alone reveals nothing about a record. If a condition holds for one person, this counts
    only if that person's own record has the value, so the rows must be paired.

    The value is (r - b) / (1 - b). r is the success rate. b is the success rate of blind guessing,
    or of the same conditions on an equally large control group if that is higher. Conditions that
    hold only for several records of one person single that person out.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, or a synthetic one.
    mode : {"multivariate", "univariate"}
        Whether conditions are about several columns of a record or about one.
    known : list of str, optional
        The columns that conditions are about. Default: the quasi-identifiers.
    columns : int, optional
        In the multivariate mode, the number of conditions in a predicate, about columns drawn at
        random. Default: all known columns.
    numbers : {"near", "beyond"}
        The condition that a released number sets: a value is nearer to it than to any other
        released number, or at least as far out. The smallest number also covers everything below
        it, and the largest everything above it.
    attacks : int
        The largest number of predicates, each from a different released record. If predicates are
        slow to check (in large tables of columns with few values), fewer are tried, but at least
        300.
    control : Table, optional
        People of the same population who were not in the table.
    random_state : int, optional
        Another number draws other predicates. It is not a secret.

    References
    ----------
    Article 29 Working Party (2014), Opinion 05/2014 on anonymisation techniques
    <https://ec.europa.eu/justice/article-29/documentation/opinion-recommendation/files/2014/wp216_en.pdf>,
    section 2.2.2. Cohen, Nissim (2020), Towards formalizing the GDPR's notion of singling out
    <https://doi.org/10.1073/pnas.1914598117>, definition 2. Giomi, Boenisch, Wehmeyer, Tasnádi
    (2023), A unified framework for quantifying privacy risk in synthetic data
    <https://doi.org/10.56553/popets-2023-0055>, section 4.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 48, 30], "sex": ["f", "m", "f", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> singling_out(table, table).details["success"]
    1.0
    """
    attack = Attack("singling_out", original, masked, control)
    names = known_columns(original, masked, known)
    if mode == "univariate" and not masked.pairs_with(original):
        raise InputError(
            "The mode 'univariate' needs paired rows, and the two tables do not come from one "
            "input. Choose the mode 'multivariate'."
        )
    read = attack.readable_columns(names)
    details = {"known": [column.name for column in read], "mode": mode}
    if not any((column.labels >= 0).any() for column in read):
        nothing = "Nothing was released that could set a condition."
        return attack.nothing_found(nothing, details | {"attacks": 0})
    read = [column.near() if numbers == "near" else column.beyond() for column in read]
    space = _predicate_space(read, attack, random_state)
    # reproducible, and different for each ``random_state``
    chosen = () if random_state is None else (str(int(random_state)),)
    stream = SecretStream.from_key_hex(PUBLIC_KEY).derive("predicates", *chosen)
    if mode == "multivariate":
        width = len(read) if columns is None else min(int(columns), len(read))
        rates, facts = _multivariate(space, width, int(attacks), stream)
    else:
        rates, facts = _univariate(space, int(attacks), stream)
    return attack.measurement(rates, details | facts)


@dataclass(frozen=True, eq=False)
class PredicateSpace:
    """The persons, and the values that the released labels cover, all columns in one numbering."""

    attack: Attack
    columns: Sequence[ReleasedColumn]
    labels: Integers  # [column, released record], -1 where the cell is missing
    runs: Runs
    sources: Integers  # rows of the masked table that conditions are taken from
    persons: Integers  # rows of the original, all of each person
    inside: Indexed
    outside: Indexed | None  # control persons

    def isolated(self, rows: Indexed, columns: Integers, labels: Integers) -> Integers:
        """A row of the only person each predicate holds for; below 0 if there is none."""
        from shoal.kernels.boxes.predicates import isolated_rows

        return isolated_rows(rows, columns, labels, self.runs)

    def affordable(self, columns: Integers, *labels: Integers) -> int:
        """How many of the predicates, from the first on, can be tried in a short time."""
        from shoal.kernels.boxes.predicates import rows_to_look_at

        looks = sum(rows_to_look_at(self.inside, columns, one, self.runs) for one in labels)
        within = int(np.searchsorted(np.cumsum(looks), _MOST_LOOKS, side="right"))
        return min(len(columns), max(_FEWEST_ATTACKS, within))


def _predicate_space(
    read: Sequence[ReleasedColumn], attack: Attack, random_state: int | None
) -> PredicateSpace:
    from shoal.kernels.boxes.predicates import indexed

    original, masked, control = attack.original, attack.masked, attack.control
    values = np.stack([column.values for column in read])
    counts = np.array([len(column.places) for column in read])
    people, paired = original.person_count, masked.pairs_with(original)
    outside = None
    if control is not None:
        others = _all_rows(control, drawn_rows(control, people, random_state))
        outside = indexed(values[:, len(original) + others], counts, control.persons[others])
        if control.person_count < people:
            attack.warnings.append(_about_control(control.person_count, people, paired))
            people = control.person_count if paired else people
    persons = _all_rows(original, drawn_rows(original, people, random_state))
    sources = np.arange(len(masked))
    if people < original.person_count:  # a record cannot find people outside the sample
        sources = np.flatnonzero(np.isin(masked.row_key, original.row_key[persons]))
        if len(sources) == 0:
            raise InputError(
                f"None of the {people:,} persons drawn to match the control group has a released "
                "record. Pass a larger control group."
            )
    labels, runs = one_numbering(read)
    owners = original.persons[persons]
    if original.times is not None and not original.has_persons:
        # nobody is alone among several equal persons: two of them are enough
        persons = np.repeat(np.arange(len(original)), np.minimum(original.times, 2))
        owners = np.arange(len(persons))
    inside = indexed(values[:, persons], counts, owners)
    return PredicateSpace(attack, read, labels, runs, sources, persons, inside, outside)


def _all_rows(table: Table, rows: Integers) -> Integers:
    """All rows of the persons to whom some rows belong."""
    return (
        np.flatnonzero(np.isin(table.persons, table.persons[rows])) if table.has_persons else rows
    )


def _about_control(others: int, people: int, paired: bool) -> str:
    fewer = f"The control group has {others:,} persons and the original {people:,}, so"
    if paired:
        return f"{fewer} people are singled out among only {others:,} of them."
    return f"{fewer} conditions hold for fewer control persons, and the risk may be overstated."


def _multivariate(
    space: PredicateSpace, width: int, attacks: int, stream: SecretStream
) -> tuple[Rates, dict[str, Any]]:
    original, masked = space.attack.original, space.attack.masked
    # sorted by cells, so that the order of rows and columns does not matter
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
    attack = Rate.of(found >= 0, alike.astype(np.int64), *persons)
    return Rates(attack, Rate.of(blind), _control_rate(space, columns, predicates)), facts


def _drawn_records(masked: Table, rows: Integers, count: int, stream: SecretStream) -> Integers:
    """The rows of ``count`` records, drawn from the records that the given rows stand for.

    A very large number is drawn with replacement.
    """
    total = len(rows) if masked.times is None else int(masked.times[rows].sum())
    if total > _MOST_CHOSEN:
        return _at(masked, rows, stream.integers_below(np.full(count, total)))
    return _at(masked, rows, stream.choose(total, count))


def _at(masked: Table, rows: Integers, records: Integers) -> Integers:
    """The rows that hold these records, numbered in the order of the rows."""
    if masked.times is None:
        return rows[records]
    return rows[np.searchsorted(np.cumsum(masked.times[rows]), records, side="right")]


def _univariate(
    space: PredicateSpace, attacks: int, stream: SecretStream
) -> tuple[Rates, dict[str, Any]]:
    """The rarest released values; a person counts if their record has the value."""
    masked = space.attack.masked
    there = space.labels >= 0
    cells = space.labels[there]
    if masked.has_persons:  # a value counts once for each person who has it
        cells, _ = owned_pairs(cells, masked.persons[np.nonzero(there)[1]])
    counts = np.bincount(cells)
    column_of = np.zeros(len(counts), np.int64)
    for place, labels in enumerate(space.labels):
        column_of[labels[labels >= 0]] = place
    released = np.unique(space.labels[:, space.sources])
    released = released[released >= 0]
    luck = stream.derive("rarest").permutation(len(released))
    rarest = released[np.lexsort((luck, counts[released]))[:attacks]]
    columns, labels = column_of[rarest][:, None], rarest[:, None]
    found = space.isolated(space.inside, columns, labels)
    own = (found >= 0) & _have(space, rarest, space.persons[found.clip(0)])
    isolated = int((found >= 0).sum())
    chance = np.where(found >= 0, counts[rarest] / masked.person_count, 0.0)
    control = _control_rate(space, columns, labels)
    if control is not None:  # they have no records: assume the same share is right as for members
        right = int(own.sum()) / max(isolated, 1)
        control = replace(control, share=control.share * right)
    return Rates(Rate.of(own), Rate(float(chance.mean())), control), {
        "attacks": len(rarest),
        "isolated": isolated,
        "isolated_by_own_record": int(own.sum()),
    }


def _have(space: PredicateSpace, labels: Integers, rows: Integers) -> Flags:
    """Whether the person of each row of the original has a record with the row's label."""
    original, masked = space.attack.original, space.attack.masked
    wanted = np.zeros(int(space.labels.max()) + 1, np.bool_)
    wanted[labels] = True
    column, record = np.nonzero((space.labels >= 0) & wanted[space.labels])
    owners = persons_of_records(original, masked)
    width = max(int(owners.max()) + 1, original.person_count)
    held = space.labels[column, record] * width + owners[record]
    return np.isin(labels * width + original.persons[rows], held)


def _control_rate(space: PredicateSpace, columns: Integers, labels: Integers) -> Rate | None:
    if space.outside is None:
        return None
    return Rate.of(space.isolated(space.outside, columns, labels) >= 0)
