"""How well columns and sets of columns tell records apart: distinction and separation."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Integers
from shoal.notebook import percent
from shoal.table.columns._encode import Codes, combine

_ENOUGH = 0.99
_LEAST_GAIN = 0.001
_LARGEST_GROWN = 12
_SMALLEST_POOL = 8
_LARGEST_POOL = 24
_MOST_WORK = 340_000_000


@dataclass(frozen=True)
class ColumnSet:
    """A set of columns, and how well it tells records apart.

    Parameters
    ----------
    columns : tuple of str
        The columns.
    distinction : float
        Distinct tuples per record; 1 if every record is unique.
    separation : float
        The share of the pairs of records that differ in the set.
    grown : bool
        Whether the set was grown column by column. If not, all sets of its size were compared.

    Examples
    --------
    >>> print(ColumnSet(("age", "zip"), 0.4, 0.95))
    age, zip: distinction 40.0 %, separation 95.0 %
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float
    grown: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return dataclasses.asdict(self) | {"columns": list(self.columns)}

    def __str__(self) -> str:
        return (
            f"{', '.join(self.columns)}: distinction {percent(self.distinction)}, "
            f"separation {percent(self.separation)}"
        )


def distinction_and_separation(sizes: Integers) -> tuple[float, float]:
    """Both ratios, from the sizes of the groups of equal records."""
    rows = int(sizes.sum())
    if rows < 2:
        return float(rows), 0.0
    pairs = rows * (rows - 1)
    equal_pairs = int(sizes @ (sizes - 1)) if rows < 2**31 else float(sizes @ (sizes - 1.0))
    return len(sizes) / rows, float((pairs - equal_pairs) / pairs)


def measure_set(parts: Sequence[Codes], rows: int) -> ColumnSet:
    """Distinction and separation of one set of columns; a missing value counts as a value."""
    return _measured(tuple(part.name for part in parts), combine(parts, rows))


def pool_size(rows: int, max_set_size: int) -> int:
    """How many columns can be compared in sets within a bounded amount of work."""
    for columns in range(_LARGEST_POOL, _SMALLEST_POOL, -1):
        sets = sum(math.comb(columns, size) for size in range(1, max_set_size + 1))
        if sets * max(rows, 50_000) <= _MOST_WORK:
            return columns
    return _SMALLEST_POOL


def search_sets(
    parts: Sequence[Codes], rows: int, *, max_set_size: int = 3, keep: int = 10
) -> list[ColumnSet]:
    """The best sets of each size up to ``max_set_size``, then larger ones grown from the best.

    Sets are ranked by the sum of distinction and separation, and ties by the order of the columns.
    Growing adds the best column until there are 99 distinct tuples per 100 records, or until the
    gain is less than a thousandth.
    """
    every = sorted(_all_sets(parts, rows, max_set_size), key=_strength, reverse=True)
    sizes = sorted({len(found.columns) for found in every})
    ranked = [[found for found in every if len(found.columns) == n][:keep] for n in sizes]
    grown = _grow(ranked[-1][0], {part.name: part for part in parts}, rows) if ranked else []
    return [*itertools.chain.from_iterable(ranked), *grown]


def _strength(found: ColumnSet) -> float:
    """The rank of a set: separation compares weak sets, distinction strong ones."""
    return found.distinction + found.separation


def _all_sets(parts: Sequence[Codes], rows: int, max_set_size: int) -> Iterable[ColumnSet]:
    """Every set, built from the groups of the set without its last column."""
    from shoal.kernels.grouping import group

    def extend(names: tuple[str, ...], labels: npt.NDArray[Any], first: int) -> Iterable[ColumnSet]:
        for position in range(first, len(parts)):
            part = parts[position]
            columns = (*names, part.name)
            keys = _joined(labels, part)
            if len(columns) == max_set_size or position == len(parts) - 1:
                yield _measured(columns, keys)
                continue
            deeper, sizes = group(keys)
            yield ColumnSet(columns, *distinction_and_separation(sizes))
            yield from extend(columns, deeper, position + 1)

    yield from extend((), np.zeros(rows, np.int32), 0)


def _joined(labels: npt.NDArray[Any], part: Codes) -> npt.NDArray[np.uint64]:
    """Keys of the groups, split by one more column; both factors are below the number of rows."""
    keys = labels.astype(np.uint64)
    keys *= np.uint64(part.count)
    keys += part.codes
    return keys


def _measured(columns: tuple[str, ...], keys: npt.NDArray[np.uint64]) -> ColumnSet:
    from shoal.kernels.grouping import count_sizes

    return ColumnSet(columns, *distinction_and_separation(count_sizes(keys)))


def _grow(start: ColumnSet, parts: Mapping[str, Codes], rows: int) -> list[ColumnSet]:
    """Extend the start column by column, always by the one that gains most."""
    from shoal.kernels.grouping import dense_labels

    steps: list[ColumnSet] = []
    now = start
    labels, _ = dense_labels(combine([parts[name] for name in now.columns], rows))
    while now.distinction < _ENOUGH and len(now.columns) < _LARGEST_GROWN:
        left = [part for name, part in parts.items() if name not in now.columns]
        tried = [_measured((*now.columns, part.name), _joined(labels, part)) for part in left]
        best = max(tried, key=_strength, default=now)
        if _strength(best) - _strength(now) < _LEAST_GAIN:
            break
        now = dataclasses.replace(best, grown=True)
        labels, _ = dense_labels(_joined(labels, parts[now.columns[-1]]))
        steps.append(now)
    return steps


def identifying_set(parts: Sequence[Codes], rows: int) -> ColumnSet:
    """The smallest set found that tells more than 99 % of the records apart, or else the best."""
    if not parts:
        return ColumnSet((), 0.0, 0.0)
    alone = sorted((measure_set([part], rows) for part in parts), key=_strength, reverse=True)
    pooled = {found.columns[0] for found in alone[: pool_size(rows, 3)]}
    by_name = {part.name: part for part in parts}
    sets = search_sets([part for part in parts if part.name in pooled], rows, keep=1)
    grown = _grow(sets[-1], by_name, rows) if sets[-1].distinction < _ENOUGH else []
    for found in [*sets, *grown]:
        if found.distinction > _ENOUGH and found.separation > _ENOUGH:
            return found
    return [*sets, *grown][-1]
