"""What an intruder can conclude from a swap, by exact enumeration of everything it may draw.

The intruder knows the quasi-identifiers of all k persons of a group, sees the released rows in any
order, and holds every assignment of secrets to persons for equally likely. All outcomes of the
draws that the code makes are gone through: a shuffle of g rows takes one of 2, of 3, … of g
choices, each equally likely, and a word in the middle of a choice's range makes it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Swap, Table
from shoal.randomness import SecretStream


class Scripted(SecretStream):
    """A stream whose children for swaps draw the words of a script, one after the other."""

    def __init__(self, script: list[int]) -> None:
        super().__init__(bytes(32), origin="entropy")
        self.script = script

    def derive(self, *purpose: str) -> SecretStream:
        return self if purpose[0] == "swap" else super().derive(*purpose)

    def words(self, n: int) -> Any:
        assert self.script or not n, "more is drawn than one word per choice"
        drawn, self.script = self.script[:n], self.script[n:]
        return np.array(drawn, np.uint64)

    def permute_within(self, order: Any, offsets: Any) -> Any:
        """As it is, but with the words of one permutation at hand, not more."""
        choices, later = self.script[: len(order) - 1], self.script[len(order) - 1 :]
        self.script = choices
        source = super().permute_within(order, offsets)
        assert self.script == [], "fewer words are drawn than one per choice"
        self.script = later
        return source


def word(choice: int, bound: int) -> int:
    """A word that makes the choice: one from the middle of its share of all words."""
    return (2 * choice + 1) * 2**64 // (2 * bound)


def outcomes(k: int, blocks: int) -> list[list[int]]:
    """Scripts for all choices of ``blocks`` shuffles of k rows, all equally likely."""
    one = [range(bound) for bound in range(2, k + 1)]
    bounds = [*range(2, k + 1)] * blocks
    return [
        [word(choice, bound) for choice, bound in zip(made, bounds, strict=True)]
        for made in itertools.product(*(one * blocks))
    ]


def releases(k: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """For each assignment of secrets and each outcome: the assignment, and the released rows."""
    hints = {f"q{i}": [10 * i + p for p in range(k)] for i in range(2 * blocks)}
    how = "joint" if blocks == 1 else "mutual-information"
    for secrets in itertools.permutations(range(k)):
        frame = pl.DataFrame({**hints, "secret": [f"s{s}" for s in secrets]})
        table = Table(frame, Roles(quasi_identifiers=[*hints], sensitive=["secret"]))
        for script in outcomes(k, blocks):
            stream = Scripted(script)
            monkeypatch.setattr(SecretStream, "from_state", lambda *_, made=stream, **__: made)
            swap = Swap(k=k, blocks=how)
            masked = swap.fit_transform(table)
            assert len(swap.blocks_) == blocks
            assert stream.script == []
            unchanged = masked.frame.equals(frame)
            yield secrets, frozenset(masked.frame.iter_rows()), unchanged


def posteriors(k: int, found: Any) -> list[Fraction]:
    """For each release, person and secret: the chance that the secret is the person's."""
    seen: Counter[Any] = Counter()
    own: Counter[Any] = Counter()
    for secrets, rows in found:
        seen[rows] += 1
        own.update((rows, person, secret) for person, secret in enumerate(secrets))
    return [
        Fraction(own[rows, person, secret], total)
        for rows, total in seen.items()
        for person in range(k)
        for secret in range(k)
    ]


@pytest.mark.parametrize(("k", "blocks"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)])
def test_the_posterior_is_exactly_one_in_k(k, blocks, monkeypatch):
    found = [(secrets, rows) for secrets, rows, _ in releases(k, blocks, monkeypatch)]
    assert len(found) == math.factorial(k) ** (1 + blocks)
    assert set(posteriors(k, found)) == {Fraction(1, k)}


@pytest.mark.parametrize(
    ("k", "worst"), [(2, Fraction(1)), (3, Fraction(2, 5)), (4, Fraction(6, 23))]
)
def test_to_draw_again_would_break_it(k, worst, monkeypatch):
    """If draws that change nothing were drawn again: (k-1)! / (k!-1), more than 1/k."""
    found = [
        (secrets, rows) for secrets, rows, unchanged in releases(k, 1, monkeypatch) if not unchanged
    ]
    assert max(posteriors(k, found)) == worst


def test_every_order_of_a_group_is_drawn_alike():
    """2,000 groups of four in one swap: each of the 24 orders about as often as any other."""
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rows = 8000
    frame = pl.DataFrame({"x": np.repeat(np.arange(rows // 4) * 100, 4) + np.arange(rows) % 4})
    table = Table(frame, Roles(quasi_identifiers=["x"]))
    masked = Swap(k=4, dissimilarity="euclidean").fit_transform(table)
    exchange = masked.exchanges[0]
    order = np.argsort(exchange.groups, kind="stable")
    assert (np.bincount(exchange.groups) == 4).all()
    ranks = np.argsort(np.argsort(exchange.source[order].reshape(-1, 4), axis=1), axis=1)
    counts = Counter(map(tuple, ranks.tolist()))
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


def test_a_pair_stays_as_it_is_half_of_the_time():
    rows = 6000
    frame = pl.DataFrame({"x": np.repeat(np.arange(rows // 2) * 10, 2) + np.arange(rows) % 2})
    table = Table(frame, Roles(quasi_identifiers=["x"]))
    masked = Swap(k=2, dissimilarity="euclidean").fit_transform(table)
    stayed = (masked.exchanges[0].source == masked.row_key).reshape(-1, 2)
    assert (stayed[:, 0] == stayed[:, 1]).all()
    assert stayed[:, 0].mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(rows / 2))
