"""Who trains and who is tested: stratified folds of persons, the same whatever the row order.

A person who has several rows is on one side with all of them: a model that has seen one of them
would be asked about somebody it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.randomness import SecretStream

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of the persons: places among the rows that were given, ascending."""

    repeat: int
    number: int
    train: Integers
    test: Integers

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the others."""
        return self.repeat, self.number


def stratified_folds(
    strata: Integers,
    row_key: Integers,
    persons: Integers | None = None,
    *,
    splits: int = 5,
    repeats: int = 1,
    test_share: float | None = None,
    random_state: int = 0,
) -> list[Fold]:
    """Repeated stratified k-fold, or repeated splits with a share for testing.

    Folds, and the strata in each, differ by at most one person in size. They hang on the row
    keys and on ``random_state``, not on the order of the rows.

    Parameters
    ----------
    strata : array of int
        The stratum of each row: the class, or a band of a number.
    row_key : array of int
        The key of each row.
    persons : array of int, optional
        The number of the person of each row; each row is one without it. Somebody who has several
        is in the stratum of the first by key.
    splits : int
        The number of folds in each repeat.
    repeats : int
        How often everything is split anew.
    test_share : float, optional
        Where given, each repeat is one split with this share of persons to be tested.
    random_state : int
        Gives other folds. It is no secret.

    Examples
    --------
    >>> keys = np.arange(6)
    >>> folds = stratified_folds(np.array([0, 0, 0, 1, 1, 1]), keys, splits=3)
    >>> [np.array([0, 0, 0, 1, 1, 1])[fold.test].tolist() for fold in folds]
    [[0, 1], [0, 1], [0, 1]]
    """
    first, whose = _first_rows(row_key, persons)
    if test_share is None and not 2 <= splits <= len(first):
        raise InputError(
            f"{len(first):,} persons cannot be split into {splits} folds; take at least 2, and at "
            "most one for each person."
        )
    if repeats < 1 or (test_share is not None and not 0 < test_share < 1):
        raise InputError("Folds need at least one repeat, and a share for testing in (0, 1).")
    found = []
    for repeat in range(repeats):
        purpose = f"folds of repeat {repeat}"
        order = _drawn_order(strata[first], row_key[first], purpose, random_state)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        place = place[whose]
        if test_share is None:
            number = place % splits
            tested = [number == fold for fold in range(splits)]
        else:  # every time the running share passes a whole number, one is tested
            tested = [np.floor((place + 1) * test_share) > np.floor(place * test_share)]
        found += [
            Fold(repeat, number, np.flatnonzero(~test), np.flatnonzero(test))
            for number, test in enumerate(tested)
        ]
    return found


def stratified_sample(
    strata: Integers,
    row_key: Integers,
    size: int,
    persons: Integers | None = None,
    *,
    random_state: int = 0,
) -> Integers:
    """The places of about ``size`` rows, ascending, each stratum by its share.

    They are at most so many where each row is a person; whoever has several comes with all.

    Examples
    --------
    >>> strata = np.repeat([0, 1], [80, 20])
    >>> np.bincount(strata[stratified_sample(strata, np.arange(100), 10)]).tolist()
    [8, 2]
    """
    if len(strata) <= size:
        return np.arange(len(strata))
    first, whose = _first_rows(row_key, persons)
    order = _drawn_order(strata[first], row_key[first], "sample", random_state)
    count = max(1, size * len(first) // len(strata))
    drawn = np.zeros(len(first), np.bool_)
    drawn[order[np.arange(count) * len(order) // count]] = True
    return np.flatnonzero(drawn[whose])


def _first_rows(row_key: Integers, persons: Integers | None) -> tuple[Integers, Integers]:
    """The place of the first row of each person by key, and for each row whose it is."""
    if persons is None:
        return np.arange(len(row_key)), np.arange(len(row_key))
    by_key = np.argsort(row_key, kind="stable")
    _, first, whose = np.unique(persons[by_key], return_index=True, return_inverse=True)
    of_row = np.empty(len(row_key), np.int64)
    of_row[by_key] = whose
    return by_key[first], of_row


def _drawn_order(strata: Integers, row_key: Integers, purpose: str, random_state: int) -> Integers:
    """The persons by stratum, in a drawn order within each."""
    draw = np.empty(len(row_key), np.int64)
    stream = SecretStream.public("utility by models", purpose, str(random_state))
    draw[np.argsort(row_key)] = stream.permutation(len(row_key))
    return np.lexsort((draw, strata))
