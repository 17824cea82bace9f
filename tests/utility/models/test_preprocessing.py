"""Mixed columns as a matrix: rare, unknown and missing values, and nothing at all."""

from __future__ import annotations

import numpy as np

from shoal.utility.models._columns import UNKNOWN, SplitColumn
from shoal.utility.models._learners import MOST, RARE, matrices, preprocessing


def made(columns, encoding="one-hot"):
    train, test, numbers = matrices(columns, (len(columns[0].train), len(columns[0].test)))
    prepared = preprocessing(numbers, train.shape[1] - numbers, encoding)
    return prepared.fit_transform(train), prepared.transform(test)


def nominal(train, test):
    return SplitColumn("x", False, np.array(train), np.array(test))


class TestNominal:
    def test_rare_and_unknown_values_go_together(self):
        train, test = made([nominal([0] * RARE + [1] * 9 + [2, 3], [0, 1, 3, 7, UNKNOWN])])
        assert train.sum(axis=0).tolist() == [RARE, 9, 2]
        assert test.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]

    def test_unknown_values_are_none_of_them_where_none_is_rare(self):
        _, test = made([nominal([0] * RARE + [1] * RARE, [0, UNKNOWN])])
        assert test.tolist() == [[1, 0], [0, 0]]

    def test_missing_is_a_value_of_its_own(self):
        _, test = made([nominal([-1] * RARE + [1] * RARE, [-1, 1])])
        assert test.tolist() == [[1, 0], [0, 1]]

    def test_many_values_make_a_few_columns(self):
        train, _ = made([nominal(np.repeat(np.arange(300), RARE), [0])])
        assert train.shape[1] == MOST

    def test_trees_get_codes(self):
        train, test = made([nominal([7, 3, 3, 9], [3, 9, 4])], "ordinal")
        assert train.ravel().tolist() == [1, 0, 0, 2]
        assert test.ravel().tolist() == [0, 2, -1]


class TestNumbers:
    def test_the_median_and_a_flag_where_missing(self):
        known = np.array([1.0, 2.0, 9.0, np.nan])
        train, test = made([SplitColumn("x", True, known, np.array([np.nan, 3.5]))])
        filled = np.array([1.0, 2.0, 9.0, 2.0])
        assert np.allclose(train[:, 0], (filled - filled.mean()) / filled.std())
        assert np.allclose(test[:, 0], (np.array([2.0, 3.5]) - filled.mean()) / filled.std())
        assert test[0, 1] > 0 > test[1, 1]

    def test_numbers_come_first(self):
        numbers = SplitColumn("n", True, np.arange(10.0), np.arange(2.0))
        codes = nominal([0] * 5 + [1] * 5, [0, 1])
        train, _, count = matrices([codes, numbers], (10, 2))
        assert count == 1
        assert train[:, 0].tolist() == list(range(10))

    def test_without_columns_there_is_one_constant(self):
        train, test, numbers = matrices([], (3, 2))
        assert (train.shape, test.shape, numbers) == ((3, 1), (2, 1), 1)
        assert not preprocessing(1, 0, "one-hot").fit_transform(train).any()
