"""Blocks of quasi-identifiers that are permuted together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Integers
from shoal.table import Table

_BINS = 10


def blocks_by_information(
    table: Table, columns: Sequence[str], sensitive: str
) -> list[tuple[str, ...]]:
    """Pairs of columns in descending order of their mutual information with a sensitive one.

    Ties keep the order of the columns; an odd last column joins the block before it, so that a
    block has at least two columns where there are as many. Numbers are put into ten bins of
    equal frequency first (Senavirathne and Torra 2021, section 4.3).
    """
    from shoal.kernels.joint_entropy import mutual_informations

    if sensitive not in table.columns:
        raise InputError(f"The table has no sensitive column '{sensitive}'.")
    secret = _as_categories(table, sensitive)
    told = [mutual_informations([_as_categories(table, name), secret])[0, 1] for name in columns]
    ranked = [columns[place] for place in np.argsort(-np.array(told), kind="stable")]
    pairs = [tuple(ranked[start : start + 2]) for start in range(0, len(ranked), 2)]
    if len(pairs) > 1 and len(pairs[-1]) == 1:
        pairs[-2:] = [pairs[-2] + pairs[-1]]
    return pairs


def _as_categories(table: Table, name: str) -> Integers:
    codes = table.codes(name)
    if table.kind(name) not in ("integer", "float") or codes.count <= _BINS:
        return codes.codes.astype(np.int64)
    numbers = table.numbers(name)
    inside = numbers.values[numbers.present].astype(np.float64)
    edges = np.quantile(inside, np.arange(1, _BINS) / _BINS)
    bins = np.searchsorted(edges, numbers.values.astype(np.float64), side="right")
    return np.where(numbers.present, bins, _BINS).astype(np.int64)
