"""Which rows of the original and of the masked table train, and which are tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.table import Table, shared_persons, stacked_table
from shoal.utility.models._columns import Side
from shoal.utility.models._domain import SplitRows
from shoal.utility.models._splits import Fold, Integers, stratified_folds, stratified_sample
from shoal.utility.models._target import Target


@dataclass(frozen=True)
class Splitting:
    """How persons are split."""

    splits: int
    repeats: int
    test_share: float | None
    sample: int
    random_state: int

    def folds(self, strata: Integers, row_key: Integers, persons: Integers) -> list[Fold]:
        """The folds of a sample, as places among all."""
        drawn = self.drawn(strata, row_key, persons)
        folds = stratified_folds(
            strata[drawn],
            row_key[drawn],
            persons[drawn],
            splits=self.splits,
            repeats=self.repeats,
            test_share=self.test_share,
            random_state=self.random_state,
        )
        return [Fold(f.repeat, f.number, drawn[f.train], drawn[f.test]) for f in folds]

    def drawn(self, strata: Integers, row_key: Integers, persons: Integers) -> Integers:
        """The places of the rows of the persons who take part."""
        return stratified_sample(
            strata, row_key, self.sample, persons, random_state=self.random_state
        )


@dataclass(frozen=True, eq=False)
class Split:
    """One split, with its place among the others."""

    place: tuple[int, int]
    rows: SplitRows


def with_holdout(original: Table, holdout: Table | None, columns: list[str]) -> Table:
    """The original, with the rows of a hold-out below it."""
    if holdout is None:
        return original
    absent = [name for name in columns if name not in holdout.columns]
    if absent or not len(holdout):
        raise InputError(
            f"The hold-out has no column {quoted(absent)}; it needs the target and all columns "
            "that a model learns from, as they are in the original."
            if absent
            else "The hold-out has no rows, so nothing can be tested on it."
        )
    if holdout.pairs_with(original):
        shared = int(np.isin(holdout.row_key, original.row_key).sum())
        if shared:
            raise InputError(
                f"The hold-out shares {shared:,} rows with the original, so models would be "
                "tested on what they learned from; keep its rows out of the masking."
            )
    known = int(shared_persons(original, holdout).sum())
    if known:
        raise InputError(
            f"{known:,} rows of the hold-out are of persons who have rows in the original by their "
            "unit, so models would be asked about people that they know; keep a person on one side."
        )
    both = stacked_table(original, holdout, columns)
    if not original.has_persons and not holdout.has_persons:
        return both
    return both.owned_by(np.append(original.persons, original.person_count + holdout.persons))


def own_rows(original: Table, masked: Table) -> Integers | None:
    """For each row of the original its row in the masked table, -1 where it has none."""
    if not masked.pairs_with(original):
        return None
    order = np.argsort(masked.row_key)
    if not len(order):
        return np.full(len(original), -1)
    at = np.searchsorted(masked.row_key[order], original.row_key)
    found = order[np.minimum(at, len(order) - 1)]
    return np.where(masked.row_key[found] == original.row_key, found, -1)


def arranged(
    target: Target,
    original: Table,
    masked: Table,
    splitting: Splitting,
    *,
    train: Side,
    test: Side,
    untouched: Table | None = None,
) -> list[Split]:
    """The splits of both tables.

    Persons are split, and all records of a person in both tables are on the same side. Where the
    tables do not pair, each is split by itself if models stay within one table. ``untouched`` has
    the original and, below it, a hold-out to test on.
    """
    own = own_rows(original, masked)
    if untouched is not None:
        return [_against_holdout(target, original, untouched, masked, splitting, own)]
    if own is not None:
        return _by_person(target, original, splitting, own)
    if train != test:
        raise InputError(
            "The two tables do not come from one input, so nobody knows which masked records "
            "belong to the persons who are tested; mask the original with Shoal, declare that "
            "the rows have the same order by masked.paired(original), or give original rows "
            "that were never masked as holdout."
        )
    return _apart(target, original, masked, splitting)


def _by_person(target: Target, original: Table, splitting: Splitting, own: Integers) -> list[Split]:
    persons = np.flatnonzero(target.present("original"))
    labelled = target.present("masked")
    found = []
    whose = original.persons[persons]
    for fold in splitting.folds(target.strata(persons), original.row_key[persons], whose):
        learn, ask = persons[fold.train], persons[fold.test]
        both = learn[own[learn] >= 0]
        rows = SplitRows(
            {"original": learn, "masked": own[both][labelled[own[both]]]},
            {"original": ask, "masked": _labelled(own[ask], labelled)},
            (both, own[both]),
        )
        found.append(Split((fold.repeat, fold.number), rows))
    return found


def _labelled(rows: Integers, labelled: npt.NDArray[np.bool_]) -> Integers:
    there = rows[rows >= 0]
    return there[labelled[there]]


def _against_holdout(
    target: Target,
    original: Table,
    untouched: Table,
    masked: Table,
    splitting: Splitting,
    own: Integers | None,
) -> Split:
    known = target.present("original")
    persons, asked = (
        rows + start
        for rows, start in (
            (np.flatnonzero(known[: len(original)]), 0),
            (np.flatnonzero(known[len(original) :]), len(original)),
        )
    )
    keys, whose = original.row_key[persons], untouched.persons
    persons = persons[splitting.drawn(target.strata(persons), keys, whose[persons])]
    asked = asked[splitting.drawn(target.strata(asked), asked, whose[asked])]
    labelled = target.present("masked")
    if own is not None:
        both = persons[own[persons] >= 0]
        learn, paired = _labelled(own[both], labelled), (both, own[both])
    else:
        learn, paired = np.flatnonzero(labelled), None
        strata, keys = target.strata(learn, "masked"), masked.row_key[learn]
        learn = learn[splitting.drawn(strata, keys, masked.persons[learn])]
    nobody = np.empty(0, np.int64)
    rows = SplitRows(
        {"original": persons, "masked": learn}, {"original": asked, "masked": nobody}, paired
    )
    return Split((0, 0), rows)


def _apart(target: Target, original: Table, masked: Table, splitting: Splitting) -> list[Split]:
    """Each table split by itself; the places of the folds agree, their persons do not."""
    persons = np.flatnonzero(target.present("original"))
    records = np.flatnonzero(target.present("masked"))
    before = splitting.folds(
        target.strata(persons), original.row_key[persons], original.persons[persons]
    )
    after = splitting.folds(
        target.strata(records, "masked"), masked.row_key[records], masked.persons[records]
    )
    return [
        Split(
            (one.repeat, one.number),
            SplitRows(
                {"original": persons[one.train], "masked": records[other.train]},
                {"original": persons[one.test], "masked": records[other.test]},
            ),
        )
        for one, other in zip(before, after, strict=True)
    ]
