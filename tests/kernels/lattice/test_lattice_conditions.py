"""What the search concludes about nodes it does not look at, checked on random classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.kernels.conditions import Conditions, holds
from shoal.kernels.lattice.conditions import UPWARD_CLOSED

from .test_lattice import KINDS


def unlike(random: np.random.Generator, conditions: Conditions) -> tuple[int, int, Any]:
    counts = random.multinomial(int(random.integers(1, 12)), conditions.shares[0])
    size = int(counts.sum())
    both = np.stack([counts, counts])
    return size, size + int(random.integers(0, 9)), both


@pytest.mark.parametrize("kind", KINDS)
def test_what_holds_apart_holds_together(kind: int) -> None:
    """Pruning rests on this; and on upward closed kinds holding with anything added."""
    random = np.random.default_rng(kind)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    tree = np.array([[[0, 1, 2, 3], [0, 0, 1, 1], [0] * 4]])
    bound, extra = KINDS[kind]
    one = np.zeros(1, np.int64)
    conditions = Conditions(
        1, one + kind, one, one + bound, one + extra, shares[None], one + 4, tree, one + 2
    )
    held, broken = 0, 0
    for _ in range(4000):
        first, second = unlike(random, conditions), unlike(random, conditions)
        together = [a + b for a, b in zip(first, second, strict=True)]
        alone = [holds(conditions, *each) for each in (first, second)]
        if all(alone) or (any(alone) and kind in UPWARD_CLOSED):
            held += 1
            assert holds(conditions, *together)
        broken += any(alone) and not holds(conditions, *together)
    assert held > 20
    assert (broken > 0) == (kind not in UPWARD_CLOSED)
