"""Why a swap is drawn once, and what its key is worth: by enumeration, and by guessing keys.

Senavirathne and Torra (2021), algorithm 2, draw again while a group is unchanged. All that a
shuffle of Shoal can draw is gone through, and what that rule would make of it is counted.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Swap, Table
from shoal.errors import SeedWarning
from shoal.randomness import SecretStream
from shoal.risk import group_disclosure


class Scripted(SecretStream):
    """A stream that draws the words of a script."""

    def __init__(self, script: list[int]) -> None:
        super().__init__(bytes(32), origin="entropy")
        self.script = script

    def words(self, n):
        drawn, self.script = self.script[:n], self.script[n:]
        return np.array(drawn, np.uint64)


def orders(k):
    """All orders that one shuffle of k rows draws, each once: its choices are of 2, 3, … k."""
    choices = itertools.product(*(range(bound) for bound in range(2, k + 1)))
    drawn = []
    for made in choices:
        # a word in the middle of a choice's share of all words makes it
        script = [
            (2 * choice + 1) * 2**64 // (2 * bound)
            for choice, bound in zip(made, range(2, k + 1), strict=True)
        ]
        source = Scripted(script).permute_within(np.arange(k), np.array([0, k]))
        drawn.append(tuple(source.tolist()))
    return drawn


@pytest.mark.parametrize("k", range(2, 7))
def test_one_uniform_order(k):
    """Every order once, so every row is the source of every other with exactly 1/k."""
    drawn = orders(k)
    assert sorted(drawn) == sorted(itertools.permutations(range(k)))
    counts = Counter((row, order[row]) for order in drawn for row in range(k))
    assert {Fraction(count, len(drawn)) for count in counts.values()} == {Fraction(1, k)}


@pytest.mark.parametrize(
    ("k", "own", "other"),
    [
        (2, Fraction(0), Fraction(1)),
        (3, Fraction(1, 5), Fraction(2, 5)),
        (4, Fraction(5, 23), Fraction(6, 23)),
        (5, Fraction(23, 119), Fraction(24, 119)),
        (6, Fraction(119, 719), Fraction(120, 719)),
    ],
)
def test_drawing_again_breaks_the_bound(k, own, other):
    """Its own row (k-1)!-1 in k!-1, each other row (k-1)! in k!-1, which is more than 1/k."""
    kept = [order for order in orders(k) if order != tuple(range(k))]
    counts = Counter(order[0] for order in kept)
    assert Fraction(counts[0], len(kept)) == own
    assert {Fraction(counts[row], len(kept)) for row in range(1, k)} == {other}
    assert other > Fraction(1, k)


def shown(order, values):
    return tuple(values[row] for row in order)


def test_drawing_again_with_ties():
    """By what the frame shows. AAAA would never end; in AAAB the odd value certainly moves."""
    four = orders(4)
    assert not [order for order in four if shown(order, "AAAA") != tuple("AAAA")]
    moved = [order for order in four if shown(order, "AAAB") != tuple("AAAB")]
    places = Counter(order.index(3) for order in moved)  # where the B went
    assert places[3] == 0
    assert {Fraction(places[row], len(moved)) for row in range(3)} == {Fraction(1, 3)}
    moved = [order for order in four if shown(order, "AABB") != tuple("AABB")]
    same = sum("AABB"[order[0]] == "A" for order in moved)
    assert Fraction(same, len(moved)) == Fraction(2, 5)
    assert Fraction(sum("AABB"[order[0]] == "A" for order in four), 24) == Fraction(1, 2)
    # by the number of the row the loop ends, and the frame can still be as it was
    numbered = [order for order in four if order != (0, 1, 2, 3)]
    as_it_was = sum(shown(order, "AAAB") == tuple("AAAB") for order in numbered)
    assert Fraction(as_it_was, len(numbered)) == Fraction(5, 23)


@pytest.mark.parametrize(
    ("k", "blocks", "mean", "worst"),
    [
        (3, 1, 0.400, Fraction(2, 5)),
        (3, 2, 0.480, Fraction(1, 2)),
        (3, 3, 0.512, Fraction(2, 3)),
        (4, 1, 0.261, Fraction(6, 23)),
        (4, 2, 0.272, Fraction(3, 11)),
        (2, 2, 1.0, Fraction(1)),
    ],
)
def test_drawing_again_is_worse_with_more_blocks(k, blocks, mean, worst):
    """Each block rules one assignment out. Drawn once, all remain, and it is 1/k for any blocks.

    The assignment of secrets to persons is as good as the first; each block shows another one.
    """
    every = orders(k)
    true = tuple(range(k))
    allowed = [order for order in every if order != true]
    highest = []
    for seen in itertools.product(allowed, repeat=blocks):
        left = [order for order in every if order not in seen]
        counts = Counter(order[0] for order in left)  # the rows that may be the first person's
        highest.append(Fraction(max(counts.values()), len(left)))
    assert float(sum(highest) / len(highest)) == pytest.approx(mean, abs=6e-4)
    assert max(highest) == worst > Fraction(1, k)


# -- the key


def by_rank(table, k, seed=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeedWarning)
        swap = Swap(k=k, informed=True, partition="individual-ranking", random_state=seed)
        return swap.fit_transform(table)


def turned_round(theirs, again):
    """The values of a release, put back by a swap of the release itself."""
    back = np.empty_like(theirs)
    back[again.exchanges[0].source] = theirs
    return back


def test_the_key_undoes_a_swap(shared_data, monkeypatch):
    """Rank groups are the same in the release, so the key and the code give everything back.

    Who knows three records and guesses keys is left with about one in 5³ of them; six records
    leave the right one. Under a seed the key depends on the original too, so that the seed and
    the release alone give nothing back.
    """
    frame = pl.read_parquet(shared_data / "casc" / "census.parquet").select("TAXINC")[:300]
    table = Table(frame, Roles(sensitive=["TAXINC"]))
    true = frame["TAXINC"].to_numpy()
    secret, keys = 71, 125

    def under(key, held):
        monkeypatch.setattr("shoal.randomness._entropy", lambda length: key.to_bytes(length))
        return by_rank(held, 5)

    theirs = under(secret, table).frame["TAXINC"].to_numpy()
    sought = Table(pl.DataFrame({"TAXINC": theirs}), table.roles)
    known = np.random.default_rng(1).permutation(len(true))[:6]
    guesses = {key: turned_round(theirs, under(key, sought)) for key in range(keys)}
    assert (guesses[secret] == true).mean() > 0.99
    by_three = [key for key, back in guesses.items() if (back == true)[known[:3]].all()]
    by_six = [key for key, back in guesses.items() if (back == true)[known].all()]
    assert secret in by_three
    assert len(by_three) <= 6  # 2 expected
    assert by_six == [secret]

    theirs = by_rank(table, 5, secret).frame["TAXINC"].to_numpy()
    again = by_rank(Table(pl.DataFrame({"TAXINC": theirs}), table.roles), 5, secret)
    assert (turned_round(theirs, again) == true).mean() < 0.5


def widths(values, sizes):
    """The width of the rank group of each record, in standard deviations of the column."""
    ends = np.cumsum([0, *sizes])
    spans = [values[end - 1] - values[start] for start, end in itertools.pairwise(ends)]
    return np.repeat(spans, sizes) / values.std()


@pytest.mark.parametrize(("k", "printed"), [(5, 0.0007), (50, 0.012), (300, 0.11)])
def test_how_wide_the_groups_of_eia_are(shared_data, k, printed):
    """Median over the records, mean over ten columns.

    The groups are of k, with what is left over in the middle one.
    """
    frame = pl.read_parquet(shared_data / "casc" / "eia.parquet")
    names = frame.columns[frame.columns.index("RESREVENUE") : frame.columns.index("TOTSALES") + 1]
    table = Table(frame.select(names), Roles(sensitive=names))
    columns = [np.sort(frame[name].to_numpy().astype(float)) for name in names]
    groups, left = divmod(len(frame), k)
    middle = [k] * (groups // 2) + [k + left] + [k] * (groups - 1 - groups // 2)
    expected = np.mean([np.median(widths(column, middle)) for column in columns])
    assert expected == pytest.approx(printed, rel=0.06)
    masked = by_rank(table, k)
    found = np.mean([group_disclosure(masked, name).details["median_width"] for name in names])
    assert found == pytest.approx(expected, rel=1e-9)
