"""Changes of correlations against pandas and numpy."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.utility import correlation_difference
from shoal.utility._moments import correlations

from .tables import masked_as, mixed, quasi, table


def numbers(seed, gaps):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 5)) * 100 + 1e4
    values[:, 1] = values[:, 1].round(-2)  # ties
    values[rng.random(values.shape) < gaps] = np.nan
    return values


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_pearson_is_that_of_pandas(seed, gaps):
    pandas = pytest.importorskip("pandas")
    values = numbers(seed, gaps)
    expected = pandas.DataFrame(values).corr(min_periods=2).to_numpy()
    assert correlations(values) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_spearman_is_that_of_pandas(seed):
    """On complete columns; with gaps, ranks are those of the whole column."""
    pandas = pytest.importorskip("pandas")
    values = numbers(seed, 0.0)
    expected = pandas.DataFrame(values).corr(method="spearman").to_numpy()
    assert correlations(values, "spearman") == pytest.approx(expected, abs=1e-10)


def test_spearman_with_gaps():
    values = np.array([[1.0, 9], [2, np.nan], [50, 7], [60, 8]])
    ranks = np.array([[1.0, 3], [3, 1], [4, 2]])
    expected = np.corrcoef(ranks, rowvar=False)[0, 1]
    assert correlations(values, "spearman")[0, 1] == pytest.approx(expected)


def test_a_constant_has_none():
    values = np.column_stack([[1.0, 2, 3], [0.1] * 3])
    assert np.isnan(correlations(values)[0, 1])
    beside = np.array([[1.0, 2], [1, 3], [5, np.nan]])  # constant where the other one is there
    assert np.isnan(correlations(beside)[0, 1])


def test_by_definition():
    rng = np.random.default_rng(4)
    old, new = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    names = list("xyz")
    found = correlation_difference(
        table(**dict(zip(names, old.T, strict=True))), table(**dict(zip(names, new.T, strict=True)))
    )
    change = np.abs(np.corrcoef(old, rowvar=False) - np.corrcoef(new, rowvar=False))
    cells = change[np.triu_indices(3, 1)]
    assert found.value == pytest.approx(cells.mean())
    assert found.details["spread"] == pytest.approx(cells.std())
    assert found.details["largest"] == pytest.approx(cells.max())
    assert found.details["columns"]["y"] == pytest.approx((change[0, 1] + change[1, 2]) / 2)
    assert found.details["cells"]["mean"] == pytest.approx(cells.sum() / 6)
    assert found.details["cells"]["sd"] == pytest.approx(np.append(cells, [0, 0, 0]).std())


def test_a_correlation_that_is_gone_counts_as_zero():
    before = table(x=[1, 2, 3], y=[2, 4, 6], z=[1, 5, 3])
    assert correlation_difference(before, table(x=[1, 2, 3], y=[7, 7, 7])).value == pytest.approx(
        (1 + 0.5 + 0.5) / 3
    )
    lost = correlation_difference(before, table(q=[1]))
    assert lost.value == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert "'x'" in lost.warnings[0]


def test_a_correlation_that_never_was_is_left_out():
    before = table(x=[1, 2, 3], y=[7, 7, 7])
    found = correlation_difference(before, table(x=[1, 2, 3], y=[1, 2, 3]))
    assert found.value == 0.0
    assert found.details["pairs"] == 0
    assert "to lose" in found.warnings[-1]


def test_opposite_correlations_are_two_apart():
    before, after = table(x=[1, 2], y=[1, 2]), table(x=[1, 2], y=[2, 1])
    assert correlation_difference(before, after).value == 2.0


def test_pairs_with_a_sensitive_column():
    frame = mixed(40, 3).frame
    people = Table(frame, Roles(quasi_identifiers=["whole", "tied"], sensitive=["real"]))
    found = correlation_difference(people, people, pairs="confidential")
    assert found.details["pairs"] == 3  # real with whole, tied and day
    assert found.details["cells"]["count"] == 7
    with pytest.raises(InputError, match="sensitive"):
        correlation_difference(mixed(40, 3), mixed(40, 3), pairs="confidential")


def test_only_one_column_of_numbers_is_refused():
    people = quasi(x=[1, 2], text=list("ab"))
    with pytest.raises(InputError, match="two columns"):
        correlation_difference(people, people)


def test_a_swap_of_rows_changes_nothing_and_one_of_cells_does():
    people = mixed(200, 5)
    turned = people.reorder(np.arange(200)[::-1])
    assert correlation_difference(people, turned).value == pytest.approx(0.0, abs=1e-12)
    cells = {"whole": np.arange(200)[::-1]}
    assert correlation_difference(people, people.with_cells_of(cells)).value > 0.001


def test_monotone_scales_do_not_matter_to_ranks():
    people = quasi(x=[1.0, 2, 3, 4], y=[1.0, 3, 2, 4])
    masked = masked_as(people, x=[1.0, 4, 9, 1600], y=[1.0, 3, 2, 4])
    assert correlation_difference(people, masked, method="spearman").value == 0.0
    assert correlation_difference(people, masked).value > 0.01
