"""The dissimilarity of Ahmad and Dey against an example worked by hand, and by force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.joint_entropy import mutual_informations
from shoal.kernels.space.ahmad_dey import (
    ahmad_dey,
    ahmad_dey_deltas,
    equal_width,
    significance,
)
from shoal.kernels.space.mixed_records import gower

from ..compared import dissimilarities

# Six records: color r r g g b b, shape s s s t t s, size 1 2 3 4 5 7.
COLOR, SHAPE = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 1, 0])
SIZE = np.array([1.0, 2, 3, 4, 5, 7])
NUMERIC, CODES = SIZE[:, None], np.column_stack([COLOR, SHAPE])
BINNED = np.array([0, 0, 0, 1, 1, 1])


def test_golden_deltas_and_significance() -> None:
    np.testing.assert_array_equal(equal_width(SIZE, 2), BINNED)
    size, color, shape = ahmad_dey_deltas([BINNED, COLOR, SHAPE])
    np.testing.assert_allclose(color, [[0, 1 / 2, 3 / 4], [1 / 2, 0, 1 / 4], [3 / 4, 1 / 4, 0]])
    np.testing.assert_allclose(shape, [[0, 5 / 8], [5 / 8, 0]])
    assert significance(size, BINNED) == pytest.approx(2 / 3)


def test_golden_gower() -> None:
    records = gower(NUMERIC, CODES)
    expected = [0, 1 / 18, 4 / 9, 5 / 6, 8 / 9, 2 / 3]  # 0, .0556, .4444, .8333, .8889, .6667
    np.testing.assert_allclose(dissimilarities(records, 0), expected)
    assert dissimilarities(records, 2)[5] == pytest.approx(0.5556, abs=5e-5)
    assert dissimilarities(records, 3)[4] == pytest.approx(0.3889, abs=5e-5)


def test_golden_equation_2() -> None:
    records = ahmad_dey(NUMERIC, CODES, bins=2)
    expected = [0, 0.01852, 0.57407, 1.29167, 1.67130, 1.41667]
    np.testing.assert_allclose(dissimilarities(records, 0), expected, atol=5e-6)
    assert dissimilarities(records, 3)[4] == pytest.approx(0.26852, abs=5e-6)
    assert dissimilarities(records, 2)[5] == pytest.approx(0.54630, abs=5e-6)


def test_golden_squared_form() -> None:
    records = ahmad_dey(NUMERIC, CODES, bins=2, original=True)
    assert dissimilarities(records, 0)[1] == pytest.approx(0.01235, abs=5e-6)
    assert dissimilarities(records, 0)[4] == pytest.approx(1.15066, abs=5e-6)
    assert dissimilarities(records, 3)[4] == pytest.approx(0.07485, abs=5e-6)


def test_golden_mutual_information() -> None:
    assert mutual_informations([COLOR, SHAPE])[0, 1] == pytest.approx(0.174416, abs=5e-7)
    assert mutual_informations([COLOR, BINNED])[0, 1] == pytest.approx(0.462098, abs=5e-7)
    assert mutual_informations([SHAPE, BINNED])[0, 1] == pytest.approx(0.318257, abs=5e-7)


def by_force(this: np.ndarray, other: np.ndarray, a: int, b: int) -> float:
    """The largest P(w | a) + P(not w | b) - 1 over all sets w of codes of the other column."""
    of_a, of_b = other[this == a], other[this == b]
    codes = range(other.max() + 1)
    return max(
        np.isin(of_a, chosen).mean() + (~np.isin(of_b, chosen)).mean() - 1
        for size in range(len(codes) + 1)
        for chosen in combinations(codes, size)
    )


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_deltas_by_force(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    for this, deltas in enumerate(ahmad_dey_deltas(columns)):
        others = [column for at, column in enumerate(columns) if at != this]
        np.testing.assert_array_equal(deltas, deltas.T)
        for a, b in combinations(np.unique(columns[this]), 2):
            expected = np.mean([by_force(columns[this], other, a, b) for other in others])
            assert deltas[a, b] == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=50))
def test_mutual_information_by_definition(rows: list[tuple[int, int]]) -> None:
    a, b = (np.array(column) for column in zip(*rows, strict=True))
    expected = 0.0
    for x in np.unique(a):
        for y in np.unique(b):
            share = np.mean((a == x) & (b == y))
            if share > 0:
                expected += share * np.log(share / (np.mean(a == x) * np.mean(b == y)))
    assert mutual_informations([a, b])[0, 1] == pytest.approx(expected, abs=1e-12)


def test_one_column_differs_by_1_and_a_constant_one_weighs_nothing() -> None:
    np.testing.assert_array_equal(ahmad_dey_deltas([COLOR])[0], 1 - np.eye(3))
    records = ahmad_dey(np.zeros((6, 0)), COLOR[:, None])
    np.testing.assert_array_equal(dissimilarities(records, 0), [0, 0, 1, 1, 1, 1])
    constant = ahmad_dey(np.full((6, 1), 9.0), COLOR[:, None])
    assert constant.measure.weights.tolist() == [0.0]


def test_bins() -> None:
    assert equal_width(np.array([0.0, 1, 2, 3, 4, 5]), 5).tolist() == [0, 1, 2, 3, 4, 4]
    assert equal_width(np.array([3.0, 3, np.nan]), 5).tolist() == [0, 0, -1]
    assert equal_width(np.array([np.nan, np.nan]), 5).tolist() == [-1, -1]


def test_a_missing_code_is_a_code_of_its_own() -> None:
    with_gap, as_code = CODES.copy(), CODES.copy()
    with_gap[4:, 0], as_code[4:, 0] = -1, 2
    for row in range(6):
        np.testing.assert_array_equal(
            dissimilarities(ahmad_dey(NUMERIC, with_gap), row),
            dissimilarities(ahmad_dey(NUMERIC, as_code), row),
        )


@pytest.mark.parametrize("original", [False, True])
def test_a_missing_number_differs_as_a_bin_of_its_own(original: bool) -> None:
    gaps = NUMERIC.copy()
    gaps[[2, 5]] = np.nan
    binned = equal_width(gaps[:, 0], 2)
    size, color, shape = ahmad_dey_deltas([np.where(binned < 0, 2, binned), COLOR, SHAPE])
    weight, scaled = significance(size, binned), (SIZE - 1) / 4
    records = ahmad_dey(gaps, CODES, bins=2, original=original)
    for row in range(6):
        for other in range(6):
            missing = {row, other} & {2, 5}
            gap = weight * (scaled[row] - scaled[other]) ** 2 * (weight if original else 1)
            if missing:
                gap = size[binned[row] % 3, binned[other] % 3] if len(missing) == 1 else 0.0
            named = color[COLOR[row], COLOR[other]], shape[SHAPE[row], SHAPE[other]]
            if original:
                gap, named = gap**2 if missing else gap, tuple(delta**2 for delta in named)
            expected = gap + sum(named) if row != other else 0.0
            assert dissimilarities(records, row)[other] == pytest.approx(expected)
