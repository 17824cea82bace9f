"""What an intruder compares: known values of persons, and records, equal ones once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.risk.linkage._intruder import Floats, Integers, Intruder
from shoal.risk.linkage._right_links import known_codes
from shoal.table import Table, scale_name

if TYPE_CHECKING:
    from shoal.kernels.linkage.best_scores import BestScores, Scored, Scoring

_NUMERIC = ("integer", "float")
_QUANTITIES = ("date", "datetime", "time", "duration")
#: So many persons are compared with all records, unless the caller wants more: ± 2 percent at 0.2.
SCORED_SAMPLE = 2_000


def is_numeric(name: str, original: Table, masked: Table) -> bool:
    """Whether a column is of finite numbers in both tables; infinite ones have no distance."""
    if original.kind(name) not in _NUMERIC or masked.kind(name) not in _NUMERIC:
        return False
    try:
        original.numbers(name), masked.numbers(name)
    except InputError:
        return False
    return True


def is_quantity(name: str, original: Table, masked: Table) -> bool:
    """Whether it is of finite numbers, or of dates, times or durations, in both tables."""
    if original.kind(name) in _QUANTITIES and masked.kind(name) in _QUANTITIES:
        return scale_name(original.codes(name)) == scale_name(masked.codes(name))
    return is_numeric(name, original, masked)


@dataclass(frozen=True, eq=False)
class Compared:
    """Two sides in the same codes and units; masked records that are equal are one.

    ``tuples`` has for each masked record the number of the one that stands for it, ``rows`` all
    masked records in the order of ``tuples``, those of tuple t from ``starts[t]`` on. ``coarser``
    are the columns whose values became coarser.
    """

    persons: Scored
    records: Scored
    tuples: Integers
    rows: Integers
    starts: Integers
    coarser: tuple[str, ...]

    @property
    def sizes(self) -> Integers:
        """How many masked records each tuple stands for."""
        return np.diff(self.starts)


def compared(who: Intruder, values: Sequence[tuple[str, Floats]] = ()) -> Compared:
    """What is known and was released, as codes; some columns as the values given with them.

    The values are those of the rows of the original, then of the masked table.
    """
    from shoal.kernels.linkage.best_scores import Scored

    own_values = {name for name, _ in values}
    names = [name for name in who.released if name not in own_values]
    sides = [
        known_codes(who, name, coarsened=not is_numeric(name, who.original, who.masked))
        for name in names
    ]
    keys = [side.records for side in sides]
    keys += [_value_codes(column[len(who.original) :]) for _, column in values]
    tuples = _numbered(keys, len(who.masked))
    sizes = np.bincount(tuples)
    rows = np.argsort(tuples, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first = rows[starts[:-1]]
    persons = Scored(
        _by_column([side.persons for side in sides], np.int32, len(who.persons)),
        _by_column([column[who.persons] for _, column in values], np.float64, len(who.persons)),
    )
    records = Scored(
        _by_column([side.records[first] for side in sides], np.int32, len(first)),
        _by_column(
            [column[len(who.original) + first] for _, column in values], np.float64, len(first)
        ),
    )
    coarser = tuple(name for name, side in zip(names, sides, strict=True) if side.coarser)
    return Compared(persons, records, tuples, rows, starts, coarser)


def best_scores(
    who: Intruder,
    both: Compared,
    how: Scoring,
    person_labels: Integers,
    record_labels: Integers,
) -> BestScores:
    """Every person compared with every record."""
    from shoal.kernels.linkage.best_scores import BestScores

    own = np.where(who.own >= 0, both.tuples[who.own], -1)
    found = BestScores(
        both.persons,
        both.records,
        how,
        both.starts,
        record_labels[both.rows],
        person_labels.astype(np.int64),
        own,
    )
    while found.advance() < len(both.sizes):
        pass  # in portions, so that ctrl-C stops it
    return found


def _numbered(keys: Sequence[Integers], rows: int) -> Integers:
    """Equal rows of some columns of codes from -1 on have equal numbers, from 0 on."""
    from shoal.kernels.grouping import group

    labels = np.zeros(rows, np.int64)
    for codes in keys:
        words = (labels.astype(np.uint64) << np.uint64(32)) | (codes + 1).astype(np.uint64)
        labels = group(words)[0].astype(np.int64)
    return labels


def _value_codes(values: Floats) -> Integers:
    _, codes = np.unique(values, return_inverse=True)  # NaN is one value
    return codes.astype(np.int64)


def _by_column(columns: Sequence[npt.NDArray[Any]], dtype: Any, rows: int) -> npt.NDArray[Any]:
    return np.array(columns, dtype).reshape(len(columns), rows)
