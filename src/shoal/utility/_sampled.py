"""Records that stand for all of them, where all would take too long."""

from __future__ import annotations

import numpy as np

from shoal.randomness import SecretStream
from shoal.utility._columns import Integers

# Who is measured is no secret, and whoever verifies a release must measure the same records.
_PUBLIC_KEY = "00" * 32


def public_stream(*purpose: str) -> SecretStream:
    """Draws that anybody can repeat."""
    return SecretStream.from_key_hex(_PUBLIC_KEY).derive(*purpose)


def sampled_rows(row_key: Integers, most: int) -> Integers:
    """The rows of at most so many records, chosen by their keys: the same ones in every table.

    Examples
    --------
    >>> rows = sampled_rows(np.arange(100), 10)
    >>> len(rows), (99 - sampled_rows(np.arange(100)[::-1], 10)[::-1]).tolist() == rows.tolist()
    (10, True)
    """
    if len(row_key) <= most:
        return np.arange(len(row_key))
    places = public_stream("utility").keyed_hash(row_key, "records")
    return np.sort(np.argsort(places, kind="stable")[:most])
