"""Losses of information, by hand and against scipy and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from shoal import Hierarchy, Table
from shoal.errors import InputError
from shoal.utility import mutual_information_loss, nonuniform_entropy
from shoal.utility._information import _edges, _into_bins

from .tables import masked_as, mixed, quasi, table

# -- mutual information


def test_the_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    x, y, z = (rng.integers(0, 5, 300) for _ in range(3))
    y = np.where(rng.random(300) < 0.5, x, y)
    new = rng.permutation(y)
    found = mutual_information_loss(
        table(x=x.astype(str), y=y.astype(str), z=z.astype(str)),
        table(x=x.astype(str), y=new.astype(str), z=z.astype(str)),
    )
    lost = {
        "x": (mutual_info_score(x, y) - mutual_info_score(x, new)) / 2,
        "z": (mutual_info_score(z, y) - mutual_info_score(z, new)) / 2,
    }
    lost["y"] = lost["x"] + lost["z"]
    for name, expected in lost.items():
        assert found.details["columns"][name] == pytest.approx(expected, abs=1e-12)
    assert found.value == pytest.approx(np.mean(list(lost.values())), abs=1e-12)
    assert found.details["relative"] == pytest.approx(found.value / found.baseline)


def test_numbers_in_ten_bins_of_equal_frequency():
    values = np.arange(1000.0)
    bins = _into_bins(values, _edges(values))
    assert np.bincount(bins).tolist() == [100] * 10
    assert _into_bins(np.array([-1e9, np.nan, 1e9]), _edges(values)).tolist() == [0, 10, 9]


def test_few_numbers_are_kept_apart():
    values = np.array([0.0, 5e-324, 1.0, 1e308, -1e308])
    assert _into_bins(values, _edges(values)).tolist() == [1, 2, 3, 4, 0]
    noisy = np.array([0.2, 0.9, -7.0])
    assert _into_bins(noisy, _edges(np.array([0.0, 1.0]))).tolist() == [0, 1, 0]


def test_a_column_that_is_gone_tells_nothing():
    before = table(x=list("aabb"), y=list("ccdd"), z=[1, 1, 2, 2])
    found = mutual_information_loss(before, table(x=list("aabb"), z=[1, 1, 2, 2]))
    assert found.details["columns"]["y"] == pytest.approx(math.log(2))
    assert found.details["columns"]["x"] == pytest.approx(math.log(2) / 2)


def test_intervals_tell_what_their_middles_tell():
    """Ages in tens are coarser than tenths of the table; ages by one are as fine as they were."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 80, 500)
    frame = pl.DataFrame({"age": age, "pay": age * 10 + rng.integers(0, 60, 500)})
    people = Table(frame)
    for width, low, high in ((1, -1e-9, 1e-9), (20, 0.1, 1.5)):
        tree = Hierarchy.intervals(width)
        found = mutual_information_loss(people, tree.generalize(people, "age", 1))
        assert low < found.value < high


def test_labels_of_dates_tell_no_more_than_the_dates():
    """As text, each day a label of its own: nothing is lost, and nothing gained."""
    rng = np.random.default_rng(1)
    days = rng.integers(0, 5000, 400)
    born = pl.Series("born", days).cast(pl.Date)
    frame = pl.DataFrame({"born": born, "pay": days + rng.integers(0, 900, 400)})
    people = Table(frame)
    texts = Table(frame.with_columns(pl.col("born").cast(pl.String))).paired(people)
    assert mutual_information_loss(people, texts).value == pytest.approx(0, abs=1e-12)
    years = frame.with_columns(pl.col("born").dt.strftime("%Y"))
    found = mutual_information_loss(people, Table(years).paired(people))
    assert abs(found.details["relative"]) < 0.1
    stars = Table(frame.with_columns(born=pl.lit("*"))).paired(people)
    assert mutual_information_loss(people, stars).details["relative"] == pytest.approx(1)


def test_a_shuffle_loses_almost_all():
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    before = table(x=x, y=x + 0.1 * rng.normal(size=2000))
    after = table(x=x, y=rng.permutation(before.frame["y"].to_numpy()))
    assert mutual_information_loss(before, after).details["relative"] > 0.95
    assert mutual_information_loss(after, before).value < -0.5


def test_very_many_columns_are_sampled_alike(monkeypatch):
    monkeypatch.setattr("shoal.utility._information._CELLS", 1)
    people = mixed(1500, 3)
    found = mutual_information_loss(people, people)
    assert found.value == 0.0
    assert found.details["records"] == [1000, 1000]
    shuffled = people.reorder(np.random.default_rng(0).permutation(1500))
    assert mutual_information_loss(people, shuffled).value == pytest.approx(0.0, abs=1e-12)


def test_one_column_is_refused():
    with pytest.raises(InputError, match="two columns"):
        mutual_information_loss(table(x=[1, 2]), table(x=[1, 2]))


# -- non-uniform entropy


@pytest.mark.parametrize("seed", range(3))
def test_bits_are_the_conditional_entropy(seed):
    rng = np.random.default_rng(seed)
    people = quasi(x=rng.integers(0, 9, 120))
    labels = np.array(["low", "mid", "high"])[people.frame["x"].to_numpy() // 3]
    masked = masked_as(people, x=labels)
    joint = people.frame.with_columns(pl.Series("g", labels)).group_by("x", "g").len()["len"]
    groups = pl.Series(labels).value_counts()["count"]
    whole = people.frame["x"].value_counts()["count"]
    bits = 120 * (entropy(joint, base=2) - entropy(groups, base=2))
    found = nonuniform_entropy(people, masked)
    assert found.details["bits"] == pytest.approx(bits, rel=1e-10)
    assert found.value == pytest.approx(bits / (120 * entropy(whole, base=2)), rel=1e-10)
    assert found.details["columns"]["x"] == pytest.approx(found.value)


def test_suppressed_in_whatever_way():
    """Four values, one cell each of the first two suppressed: a coin to toss for both, 2 bits."""
    people = quasi(x=list("abcd"))
    starred = masked_as(people, x=["*", "*", "c", "d"])
    emptied = masked_as(people, x=[None, None, "c", "d"])
    taken_out = people.keep(np.array([False, False, True, True]))
    for masked in (starred, emptied, taken_out):
        found = nonuniform_entropy(people, masked)
        assert found.details["bits"] == 2.0
        assert found.value == 2 / 8
    assert nonuniform_entropy(people, masked_as(people, x=["*"] * 4)).value == 1.0
    assert nonuniform_entropy(people, people.drop(["x"])).value == 1.0


def test_missing_and_stars_of_the_original_are_values():
    people = quasi(x=["*", "*", None, "a"])
    assert nonuniform_entropy(people, people).value == 0.0
    joined = masked_as(people, x=["*", "*", None, "*"])
    assert nonuniform_entropy(people, joined).details["bits"] == pytest.approx(
        2 * math.log2(3 / 2) + math.log2(3)
    )


def test_a_constant_column_has_nothing_to_lose():
    people = quasi(x=["a", "a"])
    assert nonuniform_entropy(people, masked_as(people, x=["*", "*"])).value == 0.0


def test_renaming_loses_nothing():
    people = quasi(x=list("abca"))
    assert nonuniform_entropy(people, masked_as(people, x=list("xyzx"))).value == 0.0


def test_rows_are_paired_by_their_key():
    people = quasi(x=list("aabbc"))
    masked = masked_as(people, x=["g", "g", "g", "b", "c"])
    turned = masked.reorder(np.array([3, 0, 4, 2, 1]))
    # of the three that became g two were a and one was b
    bits = 2 * math.log2(3 / 2) + math.log2(3)
    for one in (masked, turned):
        assert nonuniform_entropy(people, one).details["bits"] == pytest.approx(bits)
    # without the first row g is one a and one b, and that row is alone in what is gone
    part = turned.keep(np.array([True, False, True, True, True]))
    assert nonuniform_entropy(people, part).details["bits"] == pytest.approx(2.0)
