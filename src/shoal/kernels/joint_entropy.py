"""The mutual information of each pair of many columns, from entropies.

I(a; b) = H(a) + H(b) - H(a, b), so only the joint counts must be computed for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.kernels.arrays import Floats, Integers


def mutual_informations(columns: Sequence[Integers]) -> Floats:
    """The mutual information of each pair of columns in nats, with observed shares; 0 with itself.

    Integers are not negative.
    """
    records = len(columns[0]) if columns else 0
    counts = np.arange(records + 1, dtype=np.float64)
    terms = counts * np.log(np.maximum(counts, 1.0))  # for each possible count
    dense = [_dense(column) for column in columns]
    sums = [terms[np.bincount(column)].sum() for column in dense]
    widths = [int(column.max(initial=-1)) + 1 for column in dense]
    told = np.zeros((len(columns), len(columns)))
    if records == 0:
        return told
    for one in range(len(columns)):
        for other in range(one + 1, len(columns)):
            pairs = dense[one] * widths[other] + dense[other]
            joint = _counts(pairs, widths[one] * widths[other])
            # H(a) + H(b) - H(a, b) without the terms in log n
            nats = np.log(records) + (terms[joint].sum() - sums[one] - sums[other]) / records
            told[one, other] = told[other, one] = max(0.0, nats)
    return told


def _counts(codes: Integers, width: int) -> Integers:
    if width <= 4 * len(codes) + 64:
        return np.bincount(codes)
    return np.unique(codes, return_counts=True)[1].astype(np.int64)


def _dense(codes: Integers) -> Integers:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64).reshape(len(codes))
