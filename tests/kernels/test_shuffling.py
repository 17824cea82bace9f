"""The kernels that turn words into draws equal slow references, whatever the words."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels import shuffling as kernels

ALL = 2**64
NEVER_REFUSED = ALL - 1
any_word = st.integers(0, ALL - 1) | st.sampled_from([0, 2**62, 2**63, NEVER_REFUSED])
any_words = st.lists(any_word, min_size=1, max_size=40)


class OutOfWords(Exception):
    """The slow reference wants another word and there is none."""


class Words:
    """Words one after the other, for the slow references."""

    def __init__(self, words: list[int]) -> None:
        self.rest = list(words)

    def below(self, bound: int) -> int:
        while True:
            if not self.rest:
                raise OutOfWords
            high, low = divmod(self.rest.pop(0) * bound, ALL)
            if low >= ALL % bound:
                return high


def until_dry(draw: Callable[[int], int], arguments: list[int]) -> Iterator[int]:
    """What the slow reference draws before the words run out."""
    try:
        yield from map(draw, arguments)
    except OutOfWords:
        return


def word_for(value: int, bound: int) -> int:
    """The smallest word that the kernels accept as ``value`` below ``bound``."""
    return -(-(value * ALL + ALL % bound) // bound)


def in_pieces(
    kernel: Callable[..., Any], arrays: list[Any], state: list[int], words: list[int], piece: int
) -> list[int]:
    """Run a kernel on ``piece`` new words at a time, after those it left; gives its state."""
    total = 0
    for end in range(piece, len(words) + piece, piece):
        *state, used = kernel(*arrays, np.array(words[total:end], np.uint64), *state)
        total += used
    return state


# ------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 10, 1000, 2**31 + 11, 2**32, 2**32 + 15])
def test_every_result_has_the_same_number_of_words(bound: int) -> None:
    share = ALL // bound
    results = range(bound) if bound <= 10 else [0, 1, bound // 3, bound - 2, bound - 1]
    for value in results:
        first = word_for(value, bound)
        after_last = -(-(value + 1) * ALL // bound)  # the first word with a higher product
        assert after_last - first == share
        for word in (first, after_last - 1):
            assert kernels.pick(np.uint64(word), np.uint64(bound)) == value
        refused = range(-(-value * ALL // bound), first)
        assert len(refused) in (0, 1)
        for word in refused:
            assert kernels.pick(np.uint64(word), np.uint64(bound)) == -1


@given(st.integers(0, ALL - 1), st.integers(1, 2**63 - 1))
def test_pick_is_the_high_half_of_the_product(word: int, bound: int) -> None:
    high, low = divmod(word * bound, ALL)
    expected = -1 if low < ALL % bound else high
    assert kernels.pick(np.uint64(word), np.uint64(bound)) == expected


@given(
    any_words,
    st.lists(st.integers(1, 2**63 - 1) | st.integers(1, 9), min_size=1, max_size=12),
    st.integers(1, 7),
)
def test_fill_below_equals_the_reference(words: list[int], bounds: list[int], piece: int) -> None:
    slow = Words(words)
    expected = list(until_dry(slow.below, bounds))
    results = np.full(len(bounds), -7, np.int64)
    (reached,) = in_pieces(
        kernels.fill_below, [results, np.array(bounds, np.int64)], [0], words, piece
    )
    assert reached == len(expected)
    assert results[:reached].tolist() == expected
    assert (results[reached:] == -7).all()


# ------------------------------------------------------------------------------- shuffles


def slow_shuffle(items: list[int], offsets: list[int], words: Words) -> list[int]:
    items = list(items)
    for first, end in itertools.pairwise(offsets):
        for i in range(first + 1, end):
            j = first + words.below(i - first + 1)
            items[i], items[j] = items[j], items[i]
    return items


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_each_permutation_comes_from_exactly_one_choice_of_words(n: int) -> None:
    offsets = np.array([0, n], np.int64)
    seen: Counter[tuple[int, ...]] = Counter()
    for picks in itertools.product(*(range(bound) for bound in range(2, n + 1))):
        words = [word_for(value, bound) for bound, value in enumerate(picks, start=2)]
        items = np.arange(n)
        state = kernels.shuffle_within(items, offsets, np.array(words, np.uint64), 0, 0)
        assert state == (1, n, n - 1)
        seen[tuple(items.tolist())] += 1
    assert seen == Counter(itertools.permutations(range(n)))


def test_a_refused_word_is_passed_over() -> None:
    # Word 0 is refused for every bound that does not divide 2**64.
    offsets = np.array([0, 3], np.int64)
    plain, refused = np.arange(3), np.arange(3)
    words = [word_for(1, 2), word_for(0, 3)]
    kernels.shuffle_within(plain, offsets, np.array(words, np.uint64), 0, 0)
    longer = np.array([words[0], 0, 0, words[1]], np.uint64)
    assert kernels.shuffle_within(refused, offsets, longer, 0, 0) == (1, 3, 4)
    assert plain.tolist() == refused.tolist() == [2, 1, 0]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6),
    any_words,
    st.integers(1, 61),
)
def test_shuffle_within_equals_the_reference(
    sizes: list[int], words: list[int], piece: int
) -> None:
    words = [*words, *[NEVER_REFUSED] * 36]
    offsets = [0, *itertools.accumulate(sizes)]
    items = list(range(100, 100 + offsets[-1]))
    shuffled = np.array(items, np.int64)
    state = in_pieces(
        kernels.shuffle_within, [shuffled, np.array(offsets, np.int64)], [0, 0], words, piece
    )
    assert state[0] == len(sizes)
    assert shuffled.tolist() == slow_shuffle(items, offsets, Words(words))


# -------------------------------------------------------------------------------- samples


def slow_select(n: int, m: int, words: Words) -> list[int]:
    chosen: list[int] = []
    for row in range(n):
        if len(chosen) < m and words.below(n - row) < m - len(chosen):
            chosen.append(row)
    return chosen


@given(
    st.integers(0, 12),
    st.integers(0, 12),
    any_words,
    st.integers(1, 41),
)
def test_select_equals_the_reference(n: int, m: int, words: list[int], piece: int) -> None:
    words = [*words, *[NEVER_REFUSED] * 12]
    m = min(n, m)
    chosen = np.full(m, -1, np.int64)
    state = in_pieces(kernels.select, [chosen, n], [0, 0], words, piece)
    assert state[0] == m
    assert chosen.tolist() == slow_select(n, m, Words(words))


@pytest.mark.parametrize(("n", "m"), [(4, 1), (4, 2), (5, 3), (4, 4)])
def test_every_sample_comes_from_as_many_choices_of_words(n: int, m: int) -> None:
    # All n! sequences of accepted draws; a sample that is complete leaves the rest unread.
    seen: Counter[tuple[int, ...]] = Counter()
    for draws in itertools.product(*(range(n - row) for row in range(n))):
        words = [word_for(value, n - row) for row, value in enumerate(draws)]
        chosen = np.empty(m, np.int64)
        kernels.select(chosen, n, np.array(words, np.uint64), 0, 0)
        seen[tuple(chosen.tolist())] += 1
    expected = math.factorial(n) // math.comb(n, m)
    assert seen == dict.fromkeys(itertools.combinations(range(n), m), expected)


# ---------------------------------------------------------------------------------- noise


def slow_coin(numerator: int, denominator: int, words: Words) -> bool:
    for k in itertools.count(1):
        bound = denominator * k
        if (0 if bound == 1 else words.below(bound)) >= numerator:
            return k % 2 == 1
    raise AssertionError


def slow_laplace(scale: int, words: Words) -> int:
    while True:
        fraction = 0 if scale == 1 else words.below(scale)
        if not slow_coin(fraction, scale, words):
            continue
        whole = 0
        while fraction + whole * scale < kernels.BEYOND_EXACT and slow_coin(1, 1, words):
            whole += 1
        magnitude, negative = fraction + whole * scale, words.below(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


@given(
    st.lists(st.integers(1, 4) | st.integers(1, 2**53), min_size=1, max_size=6),
    any_words,
    st.integers(1, 41),
)
def test_discrete_laplace_equals_the_reference(
    scales: list[int], words: list[int], piece: int
) -> None:
    slow = Words(words)
    expected = list(until_dry(lambda scale: slow_laplace(scale, slow), scales))
    noise = np.zeros(len(scales), np.int64)
    arrays = [noise, np.array(scales, np.int64)]
    (reached,) = in_pieces(kernels.discrete_laplace, arrays, [0], words, piece)
    assert reached == len(expected)
    assert noise[:reached].tolist() == expected


def laplace_words(noise: int, scale: int) -> list[int]:
    """Words that make the kernel draw exactly this noise."""
    whole, fraction = divmod(abs(noise), scale)
    # A coin of exp(-1) skips k = 1, falls at k = 2 (no), or at k = 3 after passing 2 (yes).
    yes, no = [word_for(0, 2), word_for(2, 3)], [word_for(1, 2)]
    start = [] if scale == 1 else [word_for(fraction, scale), word_for(scale - 1, scale)]
    return [*start, *(yes * whole), *no, word_for(int(noise < 0), 2)]


@pytest.mark.parametrize("scale", [1, 2, 3, 1000])
def test_every_multiple_is_reached_from_every_value(scale: int) -> None:
    """What closes the hole: two values share all their outputs, not only some."""
    outputs = range(-3 * scale - 5, 3 * scale + 6)
    for value in (0, 1, -2):
        words = [laplace_words(output - value, scale) for output in outputs]
        noise = np.empty(len(outputs), np.int64)
        flat = np.array([word for draw in words for word in draw], np.uint64)
        scales = np.full(noise.size, scale)
        assert kernels.discrete_laplace(noise, scales, flat, 0) == (noise.size, flat.size)
        assert (value + noise).tolist() == list(outputs)


def test_noise_stops_growing_where_the_caller_clamps() -> None:
    scale = 2**53
    words = np.array(laplace_words(9 * scale, scale), np.uint64)
    noise = np.empty(1, np.int64)
    reached, used = kernels.discrete_laplace(noise, np.array([scale]), words, 0)
    assert reached == 1
    assert used < words.size
    assert abs(noise[0]) == kernels.BEYOND_EXACT


# --------------------------------------------------------------------------------- hashes


def slow_siphash(secret: bytes, message: bytes) -> int:
    """SipHash-2-4 of any message, step by step as in the paper."""

    def turned(word: int, bits: int) -> int:
        return (word << bits | word >> 64 - bits) % ALL

    def rounds(v: list[int], times: int) -> None:
        for _ in range(times):
            for a, b, bits, c, d, more in ((0, 1, 13, 2, 3, 16), (2, 1, 17, 0, 3, 21)):
                v[a] = (v[a] + v[b]) % ALL
                v[b] = turned(v[b], bits) ^ v[a]
                v[a] = turned(v[a], 32)
                v[c] = (v[c] + v[d]) % ALL
                v[d] = turned(v[d], more) ^ v[c]

    halves = [int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")] * 2
    start = b"somepseudorandomlygeneratedbytes"
    v = [half ^ int.from_bytes(start[8 * i : 8 * i + 8], "big") for i, half in enumerate(halves)]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        block = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= block
        rounds(v, 2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


SECRET = bytes(range(16))
SECRET_LOW, SECRET_HIGH = (np.uint64(word) for word in np.frombuffer(SECRET, dtype="<u8"))


def test_published_vectors_of_siphash() -> None:
    # Aumasson and Bernstein (2012), appendix A: 15 bytes 00 … 0e under the key 00 … 0f.
    assert slow_siphash(SECRET, bytes(range(15))) == 0xA129CA6149BE45E5
    # The authors' reference code, vectors.h, entry 8: the message 00 … 07.
    published = int.from_bytes(bytes.fromhex("6224939a79f5f593"), "little")
    key = np.array([int.from_bytes(bytes(range(8)), "little")], np.int64)
    assert kernels.siphash(key, SECRET_LOW, SECRET_HIGH).tolist() == [published]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), st.binary(min_size=16, max_size=16))
def test_siphash_equals_the_reference(keys: list[int], secret: bytes) -> None:
    low, high = (np.uint64(word) for word in np.frombuffer(secret, dtype="<u8"))
    expected = [slow_siphash(secret, (key % ALL).to_bytes(8, "little")) for key in keys]
    assert kernels.siphash(np.array(keys, np.int64), low, high).tolist() == expected
