"""Dissimilarities and MDAV of mixed records against slow, obvious references."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from shoal.kernels import compile as compiling
from shoal.kernels.groups.mixed_mdav import MixedMdav, RandomStartMdav, mdav_of_few
from shoal.kernels.lanes import WIDTH, store
from shoal.kernels.linkage.mixed_linkage import NearestRecords
from shoal.kernels.space.ahmad_dey import ahmad_dey, ahmad_dey_deltas, equal_width, significance
from shoal.kernels.space.mixed_distance import lower_bounds, open_windows, set_query, upper_bounds
from shoal.kernels.space.mixed_records import MixedRecords, gower, mixed_records
from shoal.kernels.space.mixed_tree import grow

from ..compared import dissimilarities, finished

Labels = npt.NDArray[np.int64]


class Case(NamedTuple):
    """Records as they are given."""

    numeric: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    tables: list[npt.NDArray[np.float64]] | None = None
    squared: bool = False
    mean: bool = True

    @property
    def records(self) -> MixedRecords:
        numeric, codes, weights, tables, squared, mean = self
        return mixed_records(
            numeric, codes, weights=weights, tables=tables, squared=squared, mean=mean
        )


def compare(case: Case, values: Any, code: Any) -> npt.NDArray[np.float64]:
    """A record of values and codes with all records of a case."""
    sums, differing, shared = (np.zeros(len(case.numeric)) for _ in range(3))
    for column, x in enumerate(values):
        gap = np.abs(case.numeric[:, column] - x)
        both = ~np.isnan(gap)
        gap = case.weights[column] * (gap * gap if case.squared else gap)
        sums += np.where(both, gap, 0.0)
        shared += both
    for column, own in enumerate(code):
        theirs = case.codes[:, column]
        both = (theirs >= 0) & (own >= 0)
        entry = theirs != own if case.tables is None else case.tables[column][own, theirs]
        differing += np.where(both, entry, 0.0)
        shared += both
    if not case.mean:
        return sums + differing
    with np.errstate(invalid="ignore"):
        return np.where(shared > 0, (sums + differing) / shared, 1.0)


def matrix(case: Case) -> npt.NDArray[np.float64]:
    records = zip(case.numeric, case.codes, strict=True)
    return np.array([compare(case, *record) for record in records])


def centroid(case: Case, left: Labels) -> tuple[list[float], list[int]]:
    """Exactly rounded means and the lowest of the most frequent codes; NaN and -1 for nothing."""
    values, codes = [], []
    for column in case.numeric[left].T:
        present = column[~np.isnan(column)]
        values.append(math.fsum(present) / len(present) if len(present) else math.nan)
    for column in case.codes[left].T:
        present = column[column >= 0]
        codes.append(int(np.bincount(present).argmax()) if len(present) else -1)
    return values, codes


def group_around(seed: int, gaps: npt.NDArray[np.float64], left: Labels, k: int) -> Labels:
    others = left[left != seed]
    return np.append(seed, others[np.argsort(gaps[others], kind="stable")[: k - 1]])


def mdav(case: Case, k: int) -> Labels:
    gaps, left, groups = matrix(case), np.arange(len(case.numeric)), []
    while len(left) >= 2 * k:
        from_where = compare(case, *centroid(case, left))
        for _ in range(2 if len(left) >= 3 * k else 1):
            seed = left[from_where[left].argmax()]
            groups.append(group_around(seed, gaps[seed], left, k))
            left, from_where = np.setdiff1d(left, groups[-1]), gaps[seed]
    return numbered([*groups, left])


def random_start_mdav(case: Case, k: int, permutation: Labels) -> Labels:
    gaps, left, groups = matrix(case), np.arange(len(case.numeric)), []
    turns = iter([*permutation] * len(permutation))
    while len(left) >= 2 * k:
        start = next(turn for turn in turns if turn in left)
        seed = left[gaps[start][left].argmax()]
        groups.append(group_around(seed, gaps[seed], left, k))
        left = np.setdiff1d(left, groups[-1])
    return numbered([*groups, left])


def numbered(groups: list[Labels]) -> Labels:
    labels = np.full(sum(map(len, groups)), -1)
    for number, members in enumerate(groups):
        labels[members] = number
    return labels


def check(case: Case, k: int, seed: int = 0) -> None:
    """Both variants form the groups of their references."""
    permutation = np.random.default_rng(seed).permutation(len(case.numeric))
    found = finished(RandomStartMdav(case.records, k, permutation))
    np.testing.assert_array_equal(found, random_start_mdav(case, k, permutation))
    expected = mdav(case, k)
    np.testing.assert_array_equal(finished(MixedMdav(case.records, k)), expected)
    np.testing.assert_array_equal(mdav_of_few(case.records, k), expected)
    sizes = np.bincount(found)
    assert (sizes[:-1] == k).all()
    assert k <= sizes[-1] < 2 * k


def repeated(random: np.random.Generator, rows: Any) -> Any:
    return rows[random.integers(0, min(9, len(rows)), len(rows))]


VALUES = {
    "normal": lambda random, shape: random.normal(size=shape),
    "digits": lambda random, shape: random.integers(0, 10, shape).astype(float),
    "mostly zero": lambda random, shape: np.where(
        random.random(shape) < 0.7, 0, random.integers(0, 10, shape)
    ).astype(float),
    "skewed": lambda random, shape: np.exp(4 * random.normal(size=shape)),
    "constant": lambda random, shape: np.full(shape, 3.7),
    "duplicated": lambda random, shape: repeated(random, random.normal(size=shape)),
    "far from 0": lambda random, shape: 1e9 + random.normal(size=shape).round(2),
    "huge": lambda random, shape: 1e100 * random.normal(size=shape),
}


def made(
    random: np.random.Generator,
    kind: str,
    rows: int,
    *,
    numeric: int = 3,
    levels: tuple[int, ...] = (2, 5, 9),
    missing: float = 0.0,
    form: str = "gower",
) -> Case:
    """Records of a kind, compared as Gower or Ahmad and Dey do, or with any weights and tables."""
    values = VALUES[kind](random, (rows, numeric))
    # Squared, so that low codes are frequent.
    drawn = [(random.random(rows) ** 2 * size).astype(np.int64) for size in levels]
    codes = np.column_stack([np.zeros((rows, 0), np.int64), *drawn])
    if kind == "duplicated":
        codes = repeated(random, codes)
    values[random.random(values.shape) < missing] = np.nan
    codes[random.random(codes.shape) < missing] = -1
    if form == "gower":
        return Case(values, codes, gower(values, codes).measure.weights)
    tables = []
    for size in levels:
        table = random.integers(0, 5, (size, size)) / 4
        table = np.minimum(table, table.T)
        np.fill_diagonal(table, 0)
        tables.append(table)
    spread = max(1.0, float(np.nan_to_num(np.abs(values)).max(initial=1.0)))
    weights = random.integers(0, 4, numeric) / spread ** (1 if form == "any" else 2)
    return Case(values, codes, weights, tables, squared=form != "any", mean=form == "squared mean")


FORMS = ["gower", "ahmad-dey", "squared mean", "any"]


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", VALUES)
def test_dissimilarities_are_equal_to_the_last_bit(kind: str, form: str, missing: float) -> None:
    case = made(np.random.default_rng(1), kind, 150, missing=missing, form=form)
    for row in range(0, 150, 29):
        expected = compare(case, case.numeric[row], case.codes[row])
        np.testing.assert_array_equal(dissimilarities(case.records, row), expected)


def test_gower_without_a_common_column_is_1() -> None:
    numeric = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan], [np.nan, np.nan]])
    records = gower(numeric, np.array([[-1], [-1], [0], [-1]]))
    assert dissimilarities(records, 0).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert dissimilarities(records, 3).tolist() == [1.0, 1.0, 1.0, 1.0]


@njit
def bounds(tree, measure, node, lower, upper):  # type: ignore[no-untyped-def]
    if len(measure.tables) > 0:
        open_windows(tree.query, measure, False)
    store(lower_bounds(tree.query, measure, tree.edges, tree.code_edges, node), lower, 0, 0)
    if len(measure.tables) > 0:
        open_windows(tree.query, measure, True)
    store(upper_bounds(tree.query, measure, tree.edges, tree.code_edges, node), upper, 0, 0)


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", VALUES)
def test_bounds_hold_to_the_last_bit(kind: str, form: str, missing: float) -> None:
    random = np.random.default_rng(2)
    case = made(random, kind, 600, missing=missing, form=form)
    records = case.records
    tree = grow(records, np.arange(600))
    leaves, (_, above, lanes) = len(tree.values), tree.links
    lower, upper = np.empty((1, 1, WIDTH)), np.empty((1, 1, WIDTH))
    for row in random.integers(0, 600, 10):
        set_query(tree.query, records, row)
        gaps = compare(case, case.numeric[row], case.codes[row])
        inside = [gaps[tree.places // WIDTH == leaf] for leaf in range(leaves)]
        ranges = [(found.min(), found.max()) for found in inside]
        for entry in range(leaves, tree.links.shape[1]):
            bounds(tree, records.measure, entry - leaves, lower, upper)
            children = np.flatnonzero(above == entry)
            for child in children:
                assert lower[0, 0, lanes[child]] <= ranges[child][0]
                assert upper[0, 0, lanes[child]] >= ranges[child][1]
            lows, highs = zip(*[ranges[child] for child in children], strict=True)
            ranges.append((min(lows), max(highs)))


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", VALUES)
def test_groups_are_those_of_the_plain_algorithm(kind: str, form: str, missing: float) -> None:
    random = np.random.default_rng(3)
    check(made(random, kind, 300, missing=missing, form=form), 4)


@pytest.mark.parametrize(
    ("rows", "k"), [(2, 1), (5, 1), (6, 3), (7, 4), (8, 4), (40, 13), (90, 30)]
)
def test_few_records(rows: int, k: int) -> None:
    for seed in range(10):
        check(made(np.random.default_rng(seed), "digits", rows, missing=0.1), k, seed)


@pytest.mark.parametrize("form", ["gower", "ahmad-dey"])
def test_2000_records(form: str) -> None:
    random = np.random.default_rng(4)
    check(made(random, "skewed", 2_000, missing=0.02, form=form), 3)
    check(made(random, "mostly zero", 2_000, levels=(2, 2, 3), form=form), 10)


@pytest.mark.parametrize(("numeric", "levels"), [(0, (3, 40)), (4, ()), (1, ()), (0, (7,))])
@pytest.mark.parametrize("form", FORMS)
def test_columns_of_one_type(numeric: int, levels: tuple[int, ...], form: str) -> None:
    random = np.random.default_rng(5)
    check(made(random, "digits", 250, numeric=numeric, levels=levels, form=form), 5)


def test_a_column_with_very_many_codes() -> None:
    random = np.random.default_rng(6)
    case = made(random, "digits", 400)
    codes = np.column_stack([case.codes, random.permutation(100_000)[:400]])
    assert case._replace(codes=codes).records.codes.dtype == np.uint32
    check(case._replace(codes=codes), 3)


def test_more_than_32_columns_with_missing_values() -> None:
    random = np.random.default_rng(7)
    check(made(random, "digits", 300, numeric=20, levels=(3,) * 20, missing=0.01), 5)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["normal", "digits", "mostly zero", "constant", "duplicated"])
@pytest.mark.parametrize("small_work", [0, math.inf])
def test_nearest_records(
    kind: str, form: str, missing: float, small_work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "small_work", small_work)
    case = made(np.random.default_rng(9), kind, 500, missing=missing, form=form)
    rows, candidates = np.arange(0, 200, 3), np.arange(200, 500)
    link = NearestRecords(case.records, rows, candidates)
    while link.advance() < len(rows):
        pass
    gaps = matrix(case)[np.ix_(rows, candidates)]
    np.testing.assert_array_equal(link.nearest, candidates[gaps.argmin(axis=1)])
    np.testing.assert_array_equal(link.gaps, gaps.min(axis=1))
    np.testing.assert_array_equal(link.ties, (gaps == gaps.min(axis=1)[:, None]).sum(axis=1))


@settings(max_examples=60)
@given(
    st.integers(1, 9),
    st.integers(0, 2**32),
    st.sampled_from(FORMS),
    st.sampled_from(list(VALUES)),
    st.sampled_from([0.0, 0.02, 0.4]),
    st.integers(0, 150),
    st.lists(st.integers(1, 12), max_size=4).map(tuple),
)
def test_any_records(
    k: int,
    seed: int,
    form: str,
    kind: str,
    missing: float,
    more: int,
    levels: tuple[int, ...],
) -> None:
    random = np.random.default_rng(seed)
    numeric = int(random.integers(0 if levels else 1, 4))
    check(
        made(random, kind, k + more, numeric=numeric, levels=levels, missing=missing, form=form),
        k,
        seed,
    )


def test_golden_partitions() -> None:
    """Worked by hand; groups in the order in which they are formed."""

    def groups(values: list[float]) -> list[list[float]]:
        column = np.array(values, float)
        records = gower(column[:, None], np.zeros((len(values), 0), np.int64))
        labels = finished(MixedMdav(records, 3))
        return [sorted(column[labels == group]) for group in range(labels.max() + 1)]

    assert groups([1, 2, 3, 10, 11, 12, 20, 21, 22]) == [[20, 21, 22], [1, 2, 3], [10, 11, 12]]
    assert groups([0, 1, 2, 3, 4, 5, 6, 7]) == [[0, 1, 2], [3, 4, 5, 6, 7]]
    assert groups([0, 1, 2, 3, 4, 5, 6, 7, 8, 20]) == [[7, 8, 20], [0, 1, 2], [3, 4, 5, 6]]


@pytest.mark.parametrize(("k", "loss"), [(3, 5.6922), (5, 9.0884), (10, 14.1559)])
def test_golden_loss(shared_data: Path, k: int, loss: float) -> None:
    """Squared differences make it MDAV proper; losses of an independent implementation."""
    values = polars.read_parquet(shared_data / "casc" / "census.parquet").to_numpy().astype(float)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    ones, no_codes = np.ones(values.shape[1]), np.zeros((len(values), 0), np.int64)
    records = mixed_records(values, no_codes, weights=ones, squared=True, mean=False)
    labels = finished(MixedMdav(records, k))
    means = np.array([values[labels == group].mean(axis=0) for group in range(labels.max() + 1)])
    found = 100 * ((values - means[labels]) ** 2).sum() / (values**2).sum()
    assert found == pytest.approx(loss, abs=5e-5)


def adult(folder: Path, rows: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    frame = polars.read_parquet(folder / "uci" / "adult.parquet").head(rows)
    texts = frame.select(polars.selectors.string()).iter_columns()
    ranks = [text.rank("dense").cast(polars.Int64).fill_null(0).to_numpy() - 1 for text in texts]
    numeric = frame.select(polars.selectors.numeric()).to_numpy().astype(float)
    return numeric, np.column_stack(ranks)


def test_adult_by_gower(shared_data: Path) -> None:
    numeric, codes = adult(shared_data, 1_500)
    assert (codes < 0).any()
    check(Case(numeric, codes, 1 / np.ptp(numeric, axis=0)), 5)


@pytest.mark.parametrize("original", [False, True])
def test_adult_by_ahmad_dey(shared_data: Path, original: bool) -> None:
    numeric, codes = adult(shared_data, 1_200)
    codes = np.where(codes < 0, codes.max(axis=0) + 1, codes)
    binned = [equal_width(column, 5) for column in numeric.T]
    deltas = ahmad_dey_deltas([*binned, *codes.T])
    weight = np.array([significance(deltas[column], bins) for column, bins in enumerate(binned)])
    ranges = np.ptp(numeric, axis=0)
    weights = (weight / ranges) ** 2 if original else weight / ranges**2
    tables = [delta**2 if original else delta for delta in deltas[len(binned) :]]
    case = Case(numeric, codes, weights, tables, squared=True, mean=False)
    check(case, 5)
    ours = finished(MixedMdav(ahmad_dey(*adult(shared_data, 1_200), original=original), 5))
    np.testing.assert_array_equal(ours, finished(MixedMdav(case.records, 5)))


def test_steps_are_short_and_count_records() -> None:
    case = made(np.random.default_rng(8), "normal", 5_000, levels=(2,) * 6)
    partition = MixedMdav(case.records, 2)
    assert (partition.labels == -1).all()
    counts = [0]
    while counts[-1] < 5_000:
        counts.append(partition.advance())
        assert counts[-1] == (partition.labels >= 0).sum()
    assert len(counts) > 3
    assert all(before < after for before, after in pairwise(counts))
    assert partition.advance() == 5_000
