"""Records of mixed type in the form that kernels need: by column, ranked, missing values marked.

Codes are replaced by ranks, 0 for the most frequent of its column. Ordinary values of a column are
then adjacent, and so are rare ones, which helps the boxes of a tree to separate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.grouping import group
from shoal.kernels.lanes import WIDTH
from shoal.kernels.points.mdav import within_range
from shoal.kernels.space.mixed_distance import Codes, Measure, spans_of

_RARE = 2 * WIDTH  # rarer patterns of missing values are not kept apart


class MixedRecords(NamedTuple):
    """Records and how they are compared, made by :func:`mixed_records` or :func:`gower`."""

    values: Floats  # numeric columns by records; any value if missing
    codes: Codes  # ranks of nominal columns, then presence, by records; 0 if missing
    patterns: Integers  # number of a record's missing values; rare patterns share one
    ranked: Integers  # the given codes of nominal columns by rank, one column after the other
    measure: Measure


def gower(numeric: Floats, codes: npt.NDArray[Any]) -> MixedRecords:
    """Records under Gower's dissimilarity (1971): the mean over the columns that both have.

    A numeric column adds ``|x - y| / range``, 0 if the range is 0; a nominal column adds 1 if
    the codes differ.
    """
    # over present values: fmax and fmin skip those that are missing
    ranges = np.fmax.reduce(numeric, axis=0, initial=-np.inf)
    ranges = ranges - np.fmin.reduce(numeric, axis=0, initial=np.inf)
    weights = np.divide(1.0, ranges, out=np.zeros_like(ranges), where=ranges > 0)
    return mixed_records(numeric, codes, weights=weights)


def squared_euclidean(points: Floats) -> MixedRecords:
    """Points under the square of Euclidean distance, which orders them as the distance does."""
    points, none = within_range(points), np.empty((len(points), 0), np.int64)
    return mixed_records(points, none, weights=np.ones(points.shape[1]), squared=True, mean=False)


def mixed_records(
    numeric: Floats,
    codes: npt.NDArray[Any],
    *,
    weights: Floats,
    tables: Sequence[Floats] | None = None,
    squared: bool = False,
    mean: bool = True,
) -> MixedRecords:
    """Prepare records of mixed type, by row; missing values are NaN or negative codes.

    A difference of 1 in a numeric column adds its weight; ``squared`` squares differences first.
    Two codes of a nominal column add their entry of its table, which is symmetric, not negative,
    and 0 for equal codes; without tables different codes add 1. A missing value adds nothing.
    ``mean`` divides a sum by the number of columns that both records have; it is 1 if there are
    none.
    """
    given = codes.T
    values = np.array(numeric.T, np.float64, order="C")
    has = [~np.isnan(column) for column in values] + [column >= 0 for column in given]
    gaps = [column for column, there in enumerate(has) if not there.all()]
    presence = np.full(len(has), -1)
    presence[gaps] = len(given) + np.arange(len(gaps))
    for column, weight, there in zip(values, weights, has):
        if not there.all():
            column[~there] = column[there].min(initial=np.inf) if there.any() else 0.0
        if weight == 0:
            column[:] = 0.0  # what adds nothing must not overflow either
    levels = [int(column.max(initial=0)) + 1 for column in given]
    if tables is not None:
        levels = [len(table) for table in tables]
    # With tables, the windows of a column must be within reach of a code, too.
    reach = [size * (size.bit_length() if tables else 1) for size in levels]
    code_type = np.uint16 if max(reach, default=0) <= 2**16 else np.uint32
    ranks, order = _ranked(given, has[len(values) :], levels, len(gaps), code_type)
    for at, column in enumerate(gaps):
        ranks[len(given) + at] = has[column]
    entries = [table[np.ix_(by_rank, by_rank)] for table, by_rank in zip(tables or (), order)]
    terms = weights * (np.ptp(values, axis=1) ** (2 if squared else 1))
    measure = Measure(
        np.array(weights, np.float64),
        squared,
        mean,
        np.concatenate([np.empty(0), *map(np.ravel, entries)]),
        np.cumsum([0, *[size * size for size in levels]])[:-1],
        np.array(levels, np.int64),
        np.array(levels, np.int64),
        *spans_of(np.array(levels if tables else [], np.int64), code_type),
        presence,
        max([1.0, *terms.tolist(), *(float(table.max()) for table in entries)]),
    )
    ranked = np.concatenate([np.empty(0, np.int64), *order])
    return MixedRecords(values, ranks, _patterns(ranks[len(given) :]), ranked, measure)


def with_unshared_codes(records: MixedRecords) -> MixedRecords:
    """The same records, for searches in which no record is compared with itself.

    Codes that only one record has differ from all others. A bound that uses this is tight even
    if a column has a million distinct values; without it, such a column hides all others.
    """
    measure = records.measure
    unshared = measure.levels.copy()
    if len(measure.tables) == 0:
        for column, at in enumerate(measure.presence[len(records.values) :]):
            codes = records.codes[column]
            have = codes if at < 0 else codes[records.codes[at] != 0]
            counts = np.bincount(have, minlength=int(unshared[column]))
            unshared[column] = np.count_nonzero(counts > 1)  # ranks go by frequency
    return records._replace(measure=measure._replace(unshared=unshared))


def _ranked(
    given: npt.NDArray[Any], has: Sequence[Flags], levels: list[int], spare: int, code_type: Any
) -> tuple[Codes, list[Integers]]:
    """The ranks of the given codes, with some spare rows; and the codes by rank."""
    ranks = np.zeros((len(given) + spare, given.shape[1]), code_type)
    order = []
    for column, (theirs, there) in enumerate(zip(given, has)):
        counts = np.bincount(theirs[there], minlength=levels[column])
        by_rank = np.argsort(-counts, kind="stable")
        rank = np.empty(len(by_rank), code_type)
        rank[by_rank] = np.arange(len(by_rank))
        ranks[column, there] = rank[theirs[there]]
        order.append(by_rank)
    return ranks, order


def _patterns(presence: Codes) -> Integers:
    """The pattern of present columns of each record, numbered; rare ones share one number."""
    labels = np.zeros(presence.shape[1], np.int64)
    for start in range(0, len(presence), 32):
        keys = labels.astype(np.uint64) << np.uint64(32)
        for bit, has in enumerate(presence[start : start + 32]):
            keys |= has.astype(np.uint64) << np.uint64(bit)
        groups, sizes = group(keys)
        labels = groups.astype(np.int64)
    if len(presence):
        labels[sizes[labels] < _RARE] = len(sizes)
    return labels


class ByRecord(NamedTuple):
    """Records as in ``MixedRecords``, but by record, then column.

    A pair then occupies few places in memory.
    """

    values: Floats
    codes: Codes
    measure: Measure


def by_record(records: MixedRecords) -> ByRecord:
    """The same records, to be compared in pairs."""
    values, codes = np.ascontiguousarray(records.values.T), np.ascontiguousarray(records.codes.T)
    return ByRecord(values, codes, records.measure)


@njit(cache=True)
def pair_gap(records: ByRecord, one: int, two: int) -> float:
    """The dissimilarity of two records, equal to that of a search to the last bit."""
    values, codes, measure = records
    numeric, sums, differing, shared = values.shape[1], 0.0, 0.0, 0
    for column in range(len(measure.presence)):
        at = measure.presence[column]
        if at >= 0 and (codes[one, at] == 0 or codes[two, at] == 0):
            continue
        shared += 1
        if column < numeric:
            gap = abs(values[one, column] - values[two, column])
            sums += measure.weights[column] * (gap * gap if measure.squared else gap)
        else:
            nominal = column - numeric
            a, b = np.int64(codes[one, nominal]), np.int64(codes[two, nominal])
            if len(measure.tables) > 0:
                row = measure.starts[nominal] + a * measure.levels[nominal]
                differing += measure.tables[row + b]
            else:
                differing += a != b
    if measure.mean:
        return (sums + differing) / shared if shared > 0 else 1.0
    return sums + differing
