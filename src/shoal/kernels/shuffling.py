"""What drawn words become: integers, shuffles, samples, noise; and a keyed hash.

A kernel never draws. It receives 64-bit words that :class:`shoal.randomness.SecretStream` drew,
and returns how far it got and how many words it used. When the words run out, the caller keeps the
unused ones, appends fresh ones and calls again from there. Unused words must come first in the
next call: discarding them would make results that need many words rarer than they should be.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Integers, Words
from shoal.kernels.compile import njit, python_if_small

_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

BEYOND_EXACT = 2**54
"""A magnitude of noise beyond this is as good as any larger one: the caller clamps at 2**53."""


@njit(cache=True)
def pick(word: np.uint64, bound: np.uint64) -> np.int64:
    """floor(word * bound / 2**64), or -1 for a word that would make some result more likely.

    Lemire (2019), "Fast random integer generation in an interval": of the 2**64 words,
    2**64 mod bound are refused, and each result keeps exactly floor(2**64 / bound) of the rest.
    """
    word_high, word_low = word >> _HALF, word & _LOW_HALF
    bound_high, bound_low = bound >> _HALF, bound & _LOW_HALF
    # Long multiplication in halves, since there is no 128-bit integer; no sum here overflows.
    cross = word_high * bound_low + (word_low * bound_low >> _HALF)
    middle = word_low * bound_high + (cross & _LOW_HALF)
    high = word_high * bound_high + (cross >> _HALF) + (middle >> _HALF)
    low = word * bound
    # The remainder is slow and needed only once in 2**64 / bound words.
    if low < bound and low < (np.uint64(0) - bound) % bound:
        return np.int64(-1)
    return np.int64(high)


@python_if_small(lambda results, *_: 8 * results.size)
@njit(cache=True)
def fill_below(results: Integers, bounds: Integers, words: Words, start: int) -> tuple[int, int]:
    """results[i] uniform in 0 … bounds[i]-1, from ``start`` on; (next start, words used)."""
    used = 0
    for i in range(start, results.size):
        value = np.int64(-1)
        while value < 0:
            if used == words.size:
                return i, used
            value = pick(words[used], np.uint64(bounds[i]))
            used += 1
        results[i] = value
    return results.size, used


@python_if_small(lambda items, *_: 8 * items.size)
@njit(cache=True)
def shuffle_within(
    items: Integers, offsets: Integers, words: Words, group: int, start: int
) -> tuple[int, int, int]:
    """Fisher-Yates in place within each ``items[offsets[g]:offsets[g + 1]]``.

    Forward form: after step i, the prefix of the group that ends at i is in uniformly random
    order. Returns (group, next start, words used); it is done when group == offsets.size - 1.
    """
    used = 0
    while group < offsets.size - 1:
        first = offsets[group]
        for i in range(max(start, first + 1), offsets[group + 1]):
            j = np.int64(-1)
            while j < 0:
                if used == words.size:
                    return group, i, used
                j = pick(words[used], np.uint64(i - first + 1))
                used += 1
            items[i], items[first + j] = items[first + j], items[i]
        group += 1
    return group, items.size, used


@python_if_small(lambda chosen, population, *_: 8 * population)
@njit(cache=True)
def select(
    chosen: Integers, population: int, words: Words, taken: int, start: int
) -> tuple[int, int, int]:
    """Simple random sample in ascending order (Knuth, vol. 2, 3.4.2, Algorithm S).

    A row is taken with probability (still wanted) / (still to come). Returns (taken, next start,
    words used); it is done when taken == chosen.size.
    """
    used = 0
    row = start
    while taken < chosen.size:
        if used == words.size:
            break
        draw = pick(words[used], np.uint64(population - row))
        used += 1
        if draw < 0:
            continue
        if draw < chosen.size - taken:
            chosen[taken] = row
            taken += 1
        row += 1
    return taken, row, used


@njit(cache=True)
def _below(bound: int, words: Words, used: int) -> tuple[np.int64, int]:
    """A uniform integer below ``bound``, or -1 if the words ran out; and the words used so far."""
    if bound == 1:
        return np.int64(0), used
    value = np.int64(-1)
    while value < 0:
        if used == words.size:
            return np.int64(0), -1
        value = pick(words[used], np.uint64(bound))
        used += 1
    return value, used


@njit(cache=True)
def _exponential_coin(
    numerator: int, denominator: int, words: Words, used: int
) -> tuple[bool, int]:
    """True with probability exactly exp(-numerator / denominator), a ratio of at most 1.

    The first k at which a coin of probability ratio / k fails is odd with probability
    1 - ratio + ratio**2/2! - ratio**3/3! + … Reaching k is as rare as 1 / k!, so
    denominator * k stays far below 2**63 for the denominators up to 2**53 that occur here.
    """
    k = 1
    while True:
        draw, used = _below(denominator * k, words, used)
        if used < 0 or draw >= numerator:
            return k % 2 == 1, used
        k += 1


@njit(cache=True)
def _laplace_draw(scale: int, words: Words, used: int) -> tuple[np.int64, int]:
    """One integer with probability proportional to exp(-|integer| / scale)."""
    while True:
        fraction, used = _below(scale, words, used)
        if used < 0:
            return np.int64(0), used
        kept, used = _exponential_coin(fraction, scale, words, used)
        if used < 0:
            return np.int64(0), used
        if not kept:
            continue
        magnitude = fraction
        while magnitude < BEYOND_EXACT:
            further, used = _exponential_coin(1, 1, words, used)
            if used < 0:
                return np.int64(0), used
            if not further:
                break
            magnitude += scale
        negative, used = _below(2, words, used)
        if used < 0:
            return np.int64(0), used
        # Zero has only one sign; otherwise it would come twice as often as it should.
        if magnitude > 0 or negative == 0:
            return (-magnitude if negative == 1 else magnitude), used


@python_if_small(lambda noise, *_: 64 * noise.size)
@njit(cache=True)
def discrete_laplace(
    noise: Integers, scales: Integers, words: Words, start: int
) -> tuple[int, int]:
    """noise[i] from the discrete Laplace distribution of scale scales[i], using only integers.

    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
    Algorithm 2. Returns (next start, words used).
    """
    used = 0
    for i in range(start, noise.size):
        value, reached = _laplace_draw(scales[i], words, used)
        if reached < 0:
            return i, used
        noise[i] = value
        used = reached
    return noise.size, used


@njit(cache=True)
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@python_if_small(lambda keys, *_: 128 * keys.size)
@njit(cache=True)
def siphash(keys: Integers, secret_low: np.uint64, secret_high: np.uint64) -> Words:
    """SipHash-2-4 of each key as 8 little-endian bytes (Aumasson and Bernstein, 2012)."""
    hashes = np.empty(keys.size, np.uint64)
    length = np.uint64(8 << 56)
    for i in range(keys.size):
        message = np.uint64(keys[i])
        v0 = secret_low ^ np.uint64(0x736F6D6570736575)
        v1 = secret_high ^ np.uint64(0x646F72616E646F6D)
        v2 = secret_low ^ np.uint64(0x6C7967656E657261)
        v3 = secret_high ^ np.uint64(0x7465646279746573) ^ message
        for turn in range(8):  # 2 rounds for the key, 2 for its length, 4 to finish
            if turn == 2:
                v0 ^= message
                v3 ^= length
            if turn == 4:
                v0 ^= length
                v2 ^= np.uint64(0xFF)
            v0 += v1
            v2 += v3
            v1 = _rotated(v1, 13) ^ v0
            v3 = _rotated(v3, 16) ^ v2
            v0 = _rotated(v0, 32)
            v2 += v1
            v0 += v3
            v1 = _rotated(v1, 17) ^ v2
            v3 = _rotated(v3, 21) ^ v0
            v2 = _rotated(v2, 32)
        hashes[i] = v0 ^ v1 ^ v2 ^ v3
    return hashes


@njit(cache=True)
def _next_free(leads: Integers, rank: int) -> int:
    """The first free rank from here on; the path to it is halved along the way."""
    while leads[rank] != rank:
        leads[rank] = leads[leads[rank]]
        rank = leads[rank]
    return rank


@njit(cache=True)
def swap_near_ranks(order: Integers, window: int, words: Words, source: Integers) -> None:
    """Pair ranks that are at most ``window`` apart and write the pairs into ``source``.

    From the lowest rank up, a rank without a partner draws one of the next ``window`` ranks. It
    takes the first free one from there on or, if none is left in the window, the first free one
    of the window. ``source[row]`` becomes the row of the partner.
    """
    ranks = len(order)
    leads = np.arange(ranks + 1)  # a taken rank leads to the next; the last is the end
    rank = 0
    while rank < ranks:
        leads[rank] = rank + 1
        last = min(rank + window, ranks - 1)
        if last > rank:
            drawn = rank + 1 + int(words[rank] % np.uint64(last - rank))
            partner = _next_free(leads, drawn)
            if partner > last:
                partner = _next_free(leads, rank + 1)
            if partner <= last:
                leads[partner] = partner + 1
                source[order[rank]] = order[partner]
                source[order[partner]] = order[rank]
        rank = _next_free(leads, rank + 1)
