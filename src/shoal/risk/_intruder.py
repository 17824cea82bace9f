"""An intruder who links: what is known, about whom, and how often a link is right."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.measurement import Measurement
from shoal.randomness import SecretStream
from shoal.risk._interval import independent_trials, wilson
from shoal.table import Table

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: So many persons are linked at most, unless the caller wants more: ± 1 percent at a rate of 0.2.
SAMPLE = 5_000

# Who is measured is no secret, and whoever verifies a release must measure the same persons.
_PUBLIC_KEY = "00" * 32


@dataclass(frozen=True, eq=False)
class Intruder:
    """Somebody who knows columns of persons in the original and sees the masked table.

    ``persons`` are rows of the original; ``own`` is for each of them its row in the masked
    table, or -1 where it was taken out.
    """

    original: Table
    masked: Table
    known: tuple[str, ...]
    persons: Integers
    own: Integers

    @property
    def released(self) -> tuple[str, ...]:
        """What is known and was released: the columns that a link can use."""
        return tuple(name for name in self.known if name in self.masked.columns)

    def judge(self, name: str, correct: Floats, warnings: Sequence[str] = ()) -> Measurement:
        """The share of right links, from the chance of each person's link to be right."""
        per_record = np.full(len(self.original), np.nan)
        per_record[self.persons] = correct
        value, blind = float(correct.mean()), 1.0 / len(self.masked)
        interval = wilson(value, independent_trials(correct, self._exchanged_together()))
        if interval[0] <= blind:
            warnings = (*warnings, "The links are no better than blind guessing.")
        return Measurement(
            name,
            value,
            interval=interval,
            baseline=blind,
            per_record=per_record,
            details={
                "persons": len(self.persons),
                "records": len(self.masked),
                "known": list(self.released),
            },
            warnings=tuple(warnings),
        )

    def _exchanged_together(self) -> Integers | None:
        """For each person the group that shares one draw; None where nothing known was swapped."""
        for exchange in self.masked.exchanges:
            if set(exchange.columns) & set(self.known):
                groups = exchange.groups.astype(np.int64)
                alone = -1 - np.arange(len(self.own))  # who is gone is a group of one
                return np.where(self.own >= 0, groups[self.own], alone)
        return None


def intruder(
    original: Table,
    masked: Table,
    *,
    known: Sequence[str] | None,
    sample: int,
    random_state: int | None,
) -> Intruder:
    """Check what was asked, draw the persons and pair them with their records."""
    if not masked.pairs_with(original):
        raise InputError(
            "The two tables do not come from one input, so their rows cannot be paired; mask the "
            "original with Shoal, or declare that the rows have the same order by "
            "masked.paired(original)."
        )
    if len(masked) == 0 or len(original) == 0:
        raise InputError("A table without records has nobody to link.")
    names = _known_columns(original, known)
    _check_whole(sample, "sample", 1, "the number of persons to link at most")
    if random_state is not None:
        _check_whole(random_state, "random_state", 0, "or None for the usual sample")
    persons = _drawn(original.row_key, int(sample), random_state)
    return Intruder(original, masked, names, persons, rows_of(original.row_key[persons], masked))


def _known_columns(original: Table, known: Sequence[str] | None) -> tuple[str, ...]:
    if known is None:
        known = original.roles.quasi_identifiers
        if not known:
            raise InputError(
                "The original has no quasi-identifiers, so nothing says what an intruder knows; "
                "declare them in the roles, or name columns as known."
            )
    if not isinstance(known, (list, tuple)) or not all(isinstance(name, str) for name in known):
        raise InputError("What an intruder knows must be a list of column names, or None.")
    absent = [name for name in known if name not in original.columns]
    if absent or not known:
        raise InputError(
            f"The original has no column {quoted(absent)} that an intruder could know."
            if absent
            else "An intruder who knows no column links nobody; name at least one as known."
        )
    return tuple(dict.fromkeys(known))


def _check_whole(value: Any, name: str, least: int, meaning: str) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(
            f"The option '{name}' must be a whole number ≥ {least}, {meaning}; got "
            f"{value!r} instead."
        )


def _drawn(row_key: Integers, sample: int, random_state: int | None) -> Integers:
    """The rows of at most ``sample`` persons, the same ones whatever the order of the rows."""
    if len(row_key) <= sample:
        return np.arange(len(row_key))
    purpose = ("persons",) if random_state is None else ("persons", str(int(random_state)))
    stream = SecretStream.from_key_hex(_PUBLIC_KEY).derive(*purpose)
    return np.sort(np.argsort(row_key)[stream.choose(len(row_key), sample)])


def rows_of(keys: Integers, table: Table) -> Integers:
    """The rows of a table that have these keys; -1 where none has."""
    order = np.argsort(table.row_key)
    at = np.minimum(np.searchsorted(table.row_key[order], keys), len(order) - 1)
    return np.where(table.row_key[order[at]] == keys, order[at], -1)
