"""The kd order: every row once, and every aligned run of leaves cut off from its neighbour."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shoal.kernels.space.kd_order import kd_order

Copies = npt.NDArray[np.float32]


def is_cut(part: Copies, leaf: int) -> bool:
    """Whether some column parts the left from the right, down to the leaves."""
    if len(part) <= leaf:
        return True
    leaves = -(-len(part) // leaf)
    middle = leaf * 2 ** ((leaves - 1).bit_length() - 1)
    left, right = part[:middle], part[middle:]
    parted = bool((left.max(axis=0) <= right.min(axis=0)).any())
    return parted and is_cut(left, leaf) and is_cut(right, leaf)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 33, 1000, 4096, 5000])
@pytest.mark.parametrize("kind", ["normal", "digits", "sorted", "constant"])
def test_parts_are_cut_off(rows: int, kind: str) -> None:
    rng = np.random.default_rng(rows)
    copies = {
        "normal": rng.normal(size=(rows, 3)),
        "digits": rng.integers(0, 4, (rows, 3)),
        "sorted": np.sort(rng.normal(size=(rows, 3)), axis=0)[::-1],
        "constant": np.zeros((rows, 3)),
    }[kind].astype(np.float32)
    order = kd_order(copies, 16)
    assert sorted(order.tolist()) == list(range(rows))
    assert is_cut(copies[order], 16)


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 200), st.integers(1, 3)),
        elements=st.floats(-1, 1, width=32),
    ),
    st.integers(1, 9),
)
def test_any_rows(copies: Copies, leaf: int) -> None:
    order = kd_order(copies, leaf)
    assert sorted(order.tolist()) == list(range(len(copies)))
    assert is_cut(copies[order], leaf)


def test_equal_values_keep_the_order_of_rows() -> None:
    assert kd_order(np.zeros((100, 2), np.float32), 4).reshape(25, 4).max(axis=1).tolist() == list(
        range(3, 100, 4)
    )
