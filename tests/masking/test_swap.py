"""Swapping: exact permutations inside groups, drawn once; the published tables are in golden."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from shoal import ProbabilisticKAnonymity, Roles, Swap, Table
from shoal.errors import InputError, ParameterError, SeedWarning, UnprotectedColumnWarning
from shoal.masking._swap import blocks_by_information


def swap(table, **options):
    """A seeded swap and its method."""
    options.setdefault("random_state", 0)
    method = Swap(**options)
    with pytest.warns(SeedWarning):
        return method.fit_transform(table), method


def mixed(rows=120):
    """Numbers, text, a date and a row number that no method may touch."""
    draw = np.random.default_rng(5)
    age = draw.integers(18, 90, rows)
    days = draw.integers(0, 4000, rows)
    frame = pl.DataFrame(
        {
            "row": np.arange(rows),
            "age": age,
            "income": draw.normal(0, 1, rows) * 100 + age,
            "sex": draw.choice(["f", "m"], rows),
            "born": pl.Series(days, dtype=pl.Int32).cast(pl.Date),
            "ill": draw.choice(["flu", "gout", "ok"], rows),
        }
    )
    roles = Roles(
        quasi_identifiers=["age", "income", "sex", "born"],
        sensitive=["ill"],
        insensitive=["row"],
    )
    return Table(frame, roles)


def assert_permuted_within(before, after, columns, groups):
    """The tuples of a block are the same in each group, whatever their order."""
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        old = before.frame.select(columns)[rows].rows()
        new = after.frame.select(columns)[rows].rows()
        assert sorted(old, key=repr) == sorted(new, key=repr)


@pytest.mark.parametrize("dissimilarity", ["gower", "ahmad-dey", "ahmad-dey-squared"])
@pytest.mark.parametrize("partition", ["mdav", "mdav-random", "v-mdav", "mondrian"])
@pytest.mark.parametrize("k", [2, 7])
def test_quasi_identifiers_travel_together(k, partition, dissimilarity):
    table = mixed()
    after, method = swap(table, k=k, partition=partition, dissimilarity=dissimilarity)
    quasi = ["age", "income", "sex", "born"]
    assert method.blocks_ == [tuple(quasi)]
    assert np.unique(method.groups_, return_counts=True)[1].min() >= k
    assert_permuted_within(table, after, quasi, method.groups_)
    assert after.frame.select("row", "ill").equals(table.frame.select("row", "ill"))
    assert not after.frame.equals(table.frame)
    assert after.frame.schema == table.frame.schema
    assert {*method.touched_, *method.skipped_} == set(quasi)
    assert {"age", "income", "born"} <= set(method.touched_)  # groups may be of one sex


@pytest.mark.parametrize("partition", ["mdav", "mdav-random", "v-mdav", "mu-approx", "mondrian"])
@pytest.mark.parametrize("refine", [False, True])
def test_every_euclidean_partition(partition, refine):
    table = mixed().with_roles(Roles(quasi_identifiers=["age", "income"], sensitive=["ill"]))
    after, method = swap(
        table,
        k=4,
        partition=partition,
        dissimilarity="euclidean",
        refine=refine,
        seconds=0.05,
    )
    assert np.unique(method.groups_, return_counts=True)[1].min() >= 4
    assert_permuted_within(table, after, ["age", "income"], method.groups_)


@pytest.mark.parametrize("partition", ["individual-ranking", "optimal"])
def test_partitions_of_one_column(partition):
    table = mixed().with_roles(Roles(quasi_identifiers=["income"], sensitive=["ill"]))
    after, method = swap(table, k=5, partition=partition, dissimilarity="euclidean")
    assert np.unique(method.groups_, return_counts=True)[1].min() >= 5
    assert_permuted_within(table, after, ["income"], method.groups_)


def test_blocks_move_apart_but_each_as_one():
    table = mixed()
    after, method = swap(table, k=6, blocks="mutual-information")
    assert [len(block) for block in method.blocks_] == [2, 2]
    for block in method.blocks_:
        assert_permuted_within(table, after, list(block), method.groups_)
    assert [exchange.columns for exchange in after.exchanges] == method.blocks_
    first, second = (exchange.source for exchange in after.exchanges)
    assert (first != second).any()


def test_blocks_go_by_mutual_information():
    """By hand, in nats: b tells all (ln 2), d half of it, a and c nothing, e nothing.

    d is wrong in two of eight, 0.1308; a and c are independent of ill. Ties keep their order.
    """
    ill = list("xxxxyyyy")
    frame = pl.DataFrame(
        {
            "a": list("uvuvuvuv"),
            "b": list("ppppqqqq"),
            "c": list("mmnnmmnn"),
            "d": list("ppprqrrr"),
            "e": ["k"] * 8,
            "ill": ill,
        }
    )
    table = Table(frame, Roles(quasi_identifiers=list("abcde"), sensitive=["ill"]))
    assert blocks_by_information(table, list("abcde"), "ill") == [("b", "d"), ("a", "c", "e")]
    assert blocks_by_information(table, list("abd"), "ill") == [("b", "d", "a")]
    assert blocks_by_information(table, ["a"], "ill") == [("a",)]
    _, method = swap(table, k=4, blocks="mutual-information")
    assert method.blocks_ == [("b", "d"), ("a", "c", "e")]


def test_a_pair_stays_half_of_the_time():
    """A draw that is repeated until something moves would swap every pair: a certain link."""
    frame = pl.DataFrame({"x": [0, 1], "ill": ["a", "b"]})
    table = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["ill"]))
    kept = 0
    for seed in range(400):
        kept += swap(table, k=2, random_state=seed)[0].frame["x"].to_list() == [0, 1]
    assert abs(kept - 200) < 40  # four standard deviations


def test_all_orders_of_three_are_equally_likely():
    """3,000 groups of three ranks: six orders, and each record from each row a third."""
    frame = pl.DataFrame({"x": np.arange(9000)})
    after, method = swap(
        Table(frame, Roles(quasi_identifiers=["x"])),
        k=3,
        partition="individual-ranking",
        dissimilarity="euclidean",
    )
    assert (np.unique(method.groups_, return_counts=True)[1] == 3).all()
    draws = after.frame["x"].to_numpy().reshape(3000, 3) % 3
    orders = [tuple(draw) for draw in draws.tolist()]
    counts = np.array([orders.count(order) for order in itertools.permutations(range(3))])
    assert counts.sum() == 3000
    assert ((counts - 500) ** 2 / 500).sum() < 20.5  # the 0.999 quantile, 5 degrees of freedom
    for place in range(3):
        came_from = np.bincount(draws[:, place], minlength=3)
        assert ((came_from - 1000) ** 2 / 1000).sum() < 13.8  # the 0.999 quantile, 2 degrees


def test_two_blocks_are_drawn_independently():
    """All four outcomes of two pairs of columns in a group of two are equally likely."""
    frame = pl.DataFrame(
        {"a": [0, 1], "b": [0, 1], "c": ["p", "q"], "d": ["p", "q"], "ill": ["x", "y"]}
    )
    table = Table(frame, Roles(quasi_identifiers=list("abcd"), sensitive=["ill"]))
    counts = dict.fromkeys(itertools.product((0, 1), ("p", "q")), 0)
    for seed in range(200):
        masked, method = swap(table, k=2, blocks="mutual-information", random_state=seed)
        assert method.blocks_ == [("a", "b"), ("c", "d")]
        row = masked.frame.row(0, named=True)
        assert row["a"] == row["b"]
        assert row["c"] == row["d"]
        counts[row["a"], row["c"]] += 1
    assert sum((count - 50) ** 2 / 50 for count in counts.values()) < 16.3


def test_without_a_seed_two_swaps_differ_and_nothing_warns():
    table = mixed()
    first = Swap(k=5).fit_transform(table)
    second = Swap(k=5).fit_transform(table)
    assert not first.frame.equals(second.frame)


def test_a_seed_repeats_the_swap():
    table = mixed()
    assert swap(table, k=5)[0].frame.equals(swap(table, k=5)[0].frame)
    assert not swap(table, k=5)[0].frame.equals(swap(table, k=5, random_state=1)[0].frame)


def two_secrets(rows=60):
    draw = np.random.default_rng(8)
    x = np.sort(draw.normal(size=rows))
    frame = pl.DataFrame({"x": x, "s": x + draw.normal(size=rows), "t": draw.normal(size=rows)})
    return Table(frame, Roles(quasi_identifiers=["x"], sensitive=["s", "t"]))


def test_informed_swaps_each_secret_in_its_own_groups():
    table = two_secrets()
    after, method = swap(table, k=4, informed=True, dissimilarity="euclidean")
    assert method.blocks_ == [("s",), ("t",)]
    assert after.frame["x"].equals(table.frame["x"])
    for exchange in after.exchanges:
        assert np.unique(exchange.groups, return_counts=True)[1].min() >= 4
        assert_permuted_within(table, after, list(exchange.columns), exchange.groups)
    assert (after.exchanges[-1].groups == method.groups_).all()
    assert ProbabilisticKAnonymity(4).holds(after.accepting_seeds())


def groups_alone(table, columns, k):
    """The groups that a swap of other columns forms."""
    only = table.with_roles(Roles(quasi_identifiers=columns))
    return swap(only, k=k, dissimilarity="euclidean")[1].groups_


def test_informed_is_sequential():
    """The groups of t come from the table in which s has been swapped already."""
    table = two_secrets()
    after, _ = swap(table, k=4, informed=True, dissimilarity="euclidean")
    first, second = (exchange.groups for exchange in after.exchanges)
    assert (first == groups_alone(table, ["x", "t"], 4)).all()
    assert (second == groups_alone(after, ["x", "s"], 4)).all()
    assert (second != groups_alone(table, ["x", "s"], 4)).any()


def test_informed_by_rank():
    """Groups of k neighbouring ranks; what is left over does not swell the top group."""
    values = [float(value) for value in (5, 3, 9, 1, 7, 8, 2, 6, 4, 10, 11)]
    frame = pl.DataFrame({"x": ["a"] * 11, "s": values})
    table = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["s"]))
    after, method = swap(table, k=3, informed=True, partition="individual-ranking")
    ranked = method.groups_[np.argsort(values)]
    assert (np.diff(ranked) != 0).sum() == 2  # three runs of ranks
    sizes = np.unique(ranked, return_counts=True)[1]
    assert sorted(sizes) in ([3, 3, 5], [3, 4, 4])
    assert (ranked == ranked[-1]).sum() <= 4  # not all of the left-over records
    assert_permuted_within(table, after, ["s"], method.groups_)


def test_informed_by_rank_works_on_text_and_dates():
    table = mixed()
    frame = table.frame.with_columns(ill=pl.col("row").cast(pl.String))
    table = Table(frame, table.roles)
    after, method = swap(
        table, k=5, informed=True, partition="individual-ranking", columns=["born", "ill"]
    )
    assert method.blocks_ == [("born",), ("ill",)]
    for exchange in after.exchanges:
        assert_permuted_within(table, after, list(exchange.columns), exchange.groups)


def test_informed_without_quasi_identifiers():
    """All columns may be secret, as in the EIA table of the paper."""
    frame = two_secrets().frame
    table = Table(frame, Roles(sensitive=["x", "s", "t"]))
    after, method = swap(table, k=4, informed=True, dissimilarity="euclidean")
    assert method.blocks_ == [("x",), ("s",), ("t",)]
    assert ProbabilisticKAnonymity(4).holds(after)


@pytest.mark.parametrize("dissimilarity", ["euclidean", "gower", "ahmad-dey"])
def test_missing_values_travel_like_others(dissimilarity):
    x = [None if i % 4 == 0 else float(i % 13) for i in range(40)]
    y = [None if i % 5 == 0 else i % 7 for i in range(40)]
    frame = pl.DataFrame({"x": x, "y": y, "ill": [str(i) for i in range(40)]})
    table = Table(frame, Roles(quasi_identifiers=["x", "y"], sensitive=["ill"]))
    after, method = swap(table, k=4, dissimilarity=dissimilarity)
    assert_permuted_within(table, after, ["x", "y"], method.groups_)
    assert after.frame["x"].null_count() == 10


def test_a_column_without_any_value():
    frame = pl.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0], "y": pl.Series([None] * 4, dtype=pl.Float64), "ill": [*"abcd"]}
    )
    table = Table(frame, Roles(sensitive=["ill"]))
    for dissimilarity in ("euclidean", "gower", "ahmad-dey"):
        with pytest.warns(UnprotectedColumnWarning, match="'y': no value changes"):
            after, method = swap(table, k=2, dissimilarity=dissimilarity, columns=["x", "y"])
        assert_permuted_within(table, after, ["x", "y"], method.groups_)


def test_more_than_there_are():
    table = mixed(10)
    for informed in (False, True):
        with pytest.raises(InputError, match=r"k = 11 .* 10 records"):
            Swap(k=11, informed=informed).fit_transform(table)
    assert_permuted_within(
        table, swap(table, k=10)[0], ["age", "income", "sex", "born"], np.zeros(10)
    )


def test_k_of_one_is_no_protection():
    with pytest.raises(ParameterError):
        Swap(k=1).fit_transform(mixed(10))


def test_what_is_needed_is_named():
    plain = mixed().with_roles(Roles(quasi_identifiers=["age", "sex"]))
    with pytest.raises(InputError, match="sensitive column"):
        Swap(k=3, blocks="mutual-information").fit_transform(plain)
    with pytest.raises(InputError, match="sensitive columns"):
        Swap(k=3, informed=True).fit_transform(plain)
    with pytest.raises(InputError, match="not numeric: 'sex'"):
        Swap(k=3, dissimilarity="euclidean").fit_transform(plain)
    with pytest.raises(InputError, match="is for one column; got 2"):
        Swap(k=3, dissimilarity="euclidean", partition="optimal").fit_transform(
            plain.with_roles(Roles(quasi_identifiers=["age", "income"]))
        )


def test_an_infinite_value_is_refused():
    frame = pl.DataFrame({"x": [1.0, 2.0, float("inf"), 4.0]})
    with pytest.raises(InputError, match="'x' holds 1 infinite"):
        Swap(k=2).fit_transform(Table(frame, Roles(quasi_identifiers=["x"])))
