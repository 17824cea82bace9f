"""The stream of secrets: its cipher, its independence, and the exactness of what it draws."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import os
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError, SeedWarning
from shoal.randomness import SecretStream

KEY = "00112233445566778899aabbccddeeff" * 2


@pytest.fixture
def stream() -> SecretStream:
    return SecretStream.from_key_hex(KEY)


def chi_square(counts: list[int]) -> float:
    """The p-value of Pearson's test for equal shares."""
    stats = pytest.importorskip("scipy.stats", reason="scipy checks the distributions")
    return float(stats.chisquare(counts).pvalue)


# ------------------------------------------------------------------------------ the cipher


def test_words_are_the_keystream_of_rfc_8439() -> None:
    # RFC 8439, appendix A.1: test vectors 1 and 2, key 0, nonce 0, block counters 0 and 1.
    published = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    stream = SecretStream.from_key_hex("00" * 32)
    drawn = [stream.words(3), stream.words(0), stream.words(13)]
    assert all(words.dtype == np.uint64 for words in drawn)
    assert np.concatenate(drawn).astype("<u8").tobytes() == published


def test_long_and_short_draws_give_the_same_words(stream: SecretStream) -> None:
    again = SecretStream.from_key_hex(KEY)
    pieces = [again.words(n) for n in (1, 70_000, 65_536, 64_463)]
    assert np.array_equal(stream.words(200_000), np.concatenate(pieces))


def test_a_stream_ends_before_its_block_counter_starts_again(stream: SecretStream) -> None:
    stream._drawn = 2**38 - 8
    stream.words(1)
    with pytest.raises(InputError, match="256 GiB"):
        stream.words(1)


# ------------------------------------------------------------------------------- the secret


@pytest.mark.operating_system_entropy
def test_without_a_seed_every_stream_has_its_own_key() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = SecretStream.from_state(None), SecretStream.from_state()
    assert first.origin == second.origin == "entropy"
    assert len({first.key_hex, second.key_hex}) == 2
    assert len(first.key_hex) == 64


def test_a_seed_repeats_and_warns_at_the_caller() -> None:
    with pytest.warns(SeedWarning, match="secret") as caught:
        first, second, other = (SecretStream.from_state(seed) for seed in (7, np.int64(7), 8))
    assert {warning.filename for warning in caught} == {__file__}
    assert "7" not in str(caught[0].message)
    assert first.key_hex == second.key_hex != other.key_hex
    assert first.origin == first.derive("child").origin == "seed"


def test_the_warning_can_point_further_up() -> None:
    def step() -> SecretStream:
        return SecretStream.from_state(1, stacklevel=3)

    with pytest.warns(SeedWarning) as caught:
        step()
    assert caught[0].lineno == sys._getframe().f_lineno - 1


@pytest.mark.parametrize("given", [-98761, True, 0.98761, "98761", [98761]])
def test_other_seeds_are_refused_and_not_shown(given: Any) -> None:
    with pytest.raises(InputError, match="random_state") as refused:
        SecretStream.from_state(given)
    assert "98761" not in str(refused.value)


def test_the_key_brings_the_stream_back(stream: SecretStream) -> None:
    drawn = stream.words(5)
    again = SecretStream.from_key_hex(stream.key_hex, origin="entropy")
    assert np.array_equal(again.words(5), drawn)
    assert again.origin == "entropy"


@pytest.mark.parametrize("given", ["", "00", "zz" * 32, KEY + "00"])
def test_a_key_that_is_none_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(InputError, match="key of a SecretStream") as refused:
        SecretStream.from_key_hex(given)
    assert not given or given not in str(refused.value)


def test_nothing_shows_the_key(stream: SecretStream) -> None:
    assert repr(stream) == str(stream) == f"{stream}" == "SecretStream(origin='key')"
    assert not hasattr(stream, "__dict__")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_is_neither_copied_nor_pickled(stream: SecretStream, duplicate: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(stream)


def test_another_process_draws_the_same() -> None:
    program = f"""
import warnings; warnings.simplefilter("ignore")
from shoal.randomness import SecretStream as S
seeded = S.from_state(3).derive("noise", "größe")
print(seeded.permutation(50).tolist(), seeded.laplace_on_grid([1.5, 2.5], 0.1).tolist())
print(S.from_key_hex("{KEY}").keyed_hash([1, -1], "sample").tolist())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment | {"PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout.decode()
        for hash_seed in ("1", "2")
    }
    with pytest.warns(SeedWarning):
        seeded = SecretStream.from_state(3).derive("noise", "größe")
    here = f"{seeded.permutation(50).tolist()} {seeded.laplace_on_grid([1.5, 2.5], 0.1).tolist()}\n"
    hashed = SecretStream.from_key_hex(KEY).keyed_hash([1, -1], "sample")
    assert outputs == {here + f"{hashed.tolist()}\n"}


# ----------------------------------------------------------------------------- derivation


def test_a_child_is_blake2b_of_its_lengths_and_names(stream: SecretStream) -> None:
    message = (5).to_bytes(8, "little") + b"noise" + (3).to_bytes(8, "little") + b"age"
    expected = hashlib.blake2b(
        message, key=bytes.fromhex(KEY), digest_size=32, person=b"shoal/derive"
    )
    assert stream.derive("noise", "age").key_hex == expected.hexdigest()


def test_no_two_purposes_share_a_stream(stream: SecretStream) -> None:
    purposes = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("c", "ab"), ("",)]
    keys = {stream.derive(*purpose).key_hex for purpose in purposes}
    keys |= {stream.key_hex, stream.derive("ab").derive("c").key_hex}
    assert len(keys) == len(purposes) + 2


def test_a_child_does_not_depend_on_what_was_drawn(stream: SecretStream) -> None:
    before = stream.derive("swap").words(4)
    stream.words(1000)
    assert np.array_equal(stream.derive("swap").words(4), before)
    assert stream.derive("swap") is not stream.derive("swap")


def test_children_look_independent(stream: SecretStream) -> None:
    # 64 x 2000 pairs of bits of two children: equal half of the time, within 5 standard errors.
    left, right = stream.derive("column", "1"), stream.derive("column", "2")
    equal = 64 * 2000 - int(np.bitwise_count(left.words(2000) ^ right.words(2000)).sum())
    assert abs(equal - 64_000) < 5 * math.sqrt(64 * 2000 / 4)


def test_a_purpose_is_needed(stream: SecretStream) -> None:
    with pytest.raises(InputError, match="purpose"):
        stream.derive()
    with pytest.raises(InputError, match="purpose"):
        stream.keyed_hash([1])


# --------------------------------------------------------------------------------- numbers


def test_uniform_numbers_are_the_high_53_bits(stream: SecretStream) -> None:
    words = SecretStream.from_key_hex(KEY).words(1000)
    expected = [(int(word) >> 11) / 2**53 for word in words]
    assert stream.uniform(1000).tolist() == expected


class Scripted(SecretStream):
    """A stream whose words are written down."""

    def __init__(self, script: list[int]) -> None:
        super().__init__(bytes(32))
        self.script = script

    def words(self, n: int) -> Any:
        assert self.script or not n, "the script has ended"
        drawn, self.script = self.script[:n], self.script[n:]
        return np.array(drawn, np.uint64)


def test_uniform_is_open_at_both_ends() -> None:
    zero, one, most = 0, 1 << 11, 2**64 - 1
    stream = Scripted([zero, most, 2047, zero, one, one])
    # The first and third would be 0: they are drawn anew, the first of them twice.
    assert stream.uniform(3).tolist() == [2.0**-53, 1 - 2.0**-53, 2.0**-53]
    assert stream.script == []


def test_uniform_fits_its_distribution(stream: SecretStream) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy checks the distributions")
    assert stats.kstest(stream.uniform(100_000), "uniform").pvalue > 0.01


def test_integers_below_fit_their_bounds(stream: SecretStream) -> None:
    bounds = np.tile([1, 2, 3, 10, 2**63 - 1], 20_000)
    drawn = stream.integers_below(bounds)
    assert drawn.dtype == np.int64
    assert ((drawn >= 0) & (drawn < bounds)).all()
    for bound in (2, 3, 10):
        assert chi_square(np.bincount(drawn[bounds == bound], minlength=bound).tolist()) > 0.01
    large = drawn[bounds == 2**63 - 1]
    assert chi_square(np.bincount(large >> 59, minlength=16).tolist()) > 0.01


@pytest.mark.parametrize("bounds", [[0], [3, -1], [2**63], [[1, 2]], [1.5], ["a"], 3])
def test_bounds_that_cannot_be(stream: SecretStream, bounds: Any) -> None:
    with pytest.raises(InputError, match=r"[Bb]ounds"):
        stream.integers_below(np.array(bounds))


@pytest.mark.parametrize("n", [-1, 1.5, "3", None])
def test_counts_that_cannot_be(stream: SecretStream, n: Any) -> None:
    for draw in (stream.words, stream.uniform, stream.permutation, lambda n: stream.choose(n, 0)):
        with pytest.raises(InputError, match="integer ≥ 0"):
            draw(n)


def test_nothing_is_drawn_for_nothing(stream: SecretStream) -> None:
    empty = [
        stream.uniform(0),
        stream.integers_below([]),
        stream.permutation(0),
        stream.permute_within([], [0]),
        stream.choose(5, 0),
        stream.laplace_on_grid([], 1.0),
        stream.keyed_hash([], "sample"),
    ]
    assert [array.size for array in empty] == [0] * 7
    assert stream.permutation(1).tolist() == [0]


# ------------------------------------------------------------------- permutations, samples


@pytest.mark.parametrize("n", [2, 3, 4])
def test_permutations_are_uniform(stream: SecretStream, n: int) -> None:
    seen = Counter(tuple(stream.permutation(n).tolist()) for _ in range(4000))
    assert chi_square([seen[order] for order in itertools.permutations(range(n))]) > 0.01


def test_a_long_permutation_holds_every_row_once(stream: SecretStream) -> None:
    order = stream.permutation(300_000)  # several chunks of words
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(300_000))
    assert abs(np.corrcoef(order, np.arange(300_000))[0, 1]) < 0.01
    assert np.count_nonzero(order == np.arange(300_000)) < 10  # one is expected


def test_a_pair_stays_unswapped_half_of_the_time(stream: SecretStream) -> None:
    # A draw that leaves the pair as it was is not repeated: else k = 2 would swap for certain.
    n = 200_000
    source = stream.permute_within(np.arange(n), np.arange(0, n + 1, 2))
    kept = int(np.count_nonzero(source[::2] == np.arange(0, n, 2)))
    assert chi_square([kept, n // 2 - kept]) > 0.01


@pytest.mark.parametrize("k", [3, 4])
def test_permutations_inside_groups_are_uniform(stream: SecretStream, k: int) -> None:
    groups = 20_000
    order = stream.permutation(groups * k)
    source = stream.permute_within(order, np.arange(0, groups * k + 1, k))
    place = np.argsort(order) % k  # of a row in its own group
    patterns = place[source[order]].reshape(groups, k)
    seen = Counter(map(tuple, patterns.tolist()))
    assert chi_square([seen[pattern] for pattern in itertools.permutations(range(k))]) > 0.01


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 2**32))
def test_each_row_gets_a_row_of_its_own_group(labels: list[int], key: int) -> None:
    groups = np.array(labels)
    order = np.argsort(groups, kind="stable")
    order.flags.writeable = False  # as zero-copy views of a frame are
    offsets = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    source = SecretStream(key.to_bytes(32, "little")).permute_within(order, offsets)
    assert np.array_equal(groups[source], groups)
    assert np.array_equal(np.sort(source), np.arange(len(labels)))


@pytest.mark.parametrize(
    ("order", "offsets"),
    [
        ([0, 1, 2], [0, 2]),
        ([0, 1, 2], [1, 3]),
        ([0, 1, 2], [0, 2, 1, 3]),
        ([0, 1, 2], []),
        ([0, 1, 1], [0, 3]),
        ([0, 1, 3], [0, 3]),
        ([0, 1, -1], [0, 3]),
        ([0.0, 1.0, 2.0], [0, 3]),
    ],
)
def test_a_partition_that_is_none_is_refused(
    stream: SecretStream, order: list[Any], offsets: list[int]
) -> None:
    with pytest.raises(InputError, match=r"order|offsets"):
        stream.permute_within(order, offsets)


@pytest.mark.parametrize(("n", "m"), [(5, 2), (4, 3), (3, 3), (6, 1)])
def test_every_sample_is_equally_likely(stream: SecretStream, n: int, m: int) -> None:
    seen = Counter(tuple(stream.choose(n, m).tolist()) for _ in range(4000))
    assert sum(seen.values()) == 4000
    samples = list(itertools.combinations(range(n), m))
    assert set(seen) == set(samples)
    if len(samples) > 1:
        assert chi_square([seen[sample] for sample in samples]) > 0.01


def test_a_long_sample_is_sorted_and_spread(stream: SecretStream) -> None:
    chosen = stream.choose(500_000, 100_000)
    assert (np.diff(chosen) > 0).all()
    assert chi_square(np.bincount(chosen // 50_000, minlength=10).tolist()) > 0.01


def test_no_more_rows_than_there_are(stream: SecretStream) -> None:
    with pytest.raises(InputError, match="at most 3 can be chosen; got 4"):
        stream.choose(3, 4)


# ---------------------------------------------------------------------------------- hashes


def test_a_hash_belongs_to_key_and_purpose_not_to_place(stream: SecretStream) -> None:
    keys = stream.permutation(1000)
    hashes = stream.keyed_hash(keys, "sample", "2024")
    assert hashes.dtype == np.uint64
    in_order = stream.keyed_hash(np.arange(1000), "sample", "2024")
    assert np.array_equal(hashes[np.argsort(keys)], in_order)
    assert len(set(hashes.tolist())) == 1000
    assert not np.isin(stream.keyed_hash(keys, "sample"), hashes).any()
    other = SecretStream.from_key_hex("11" * 32)
    assert not np.isin(other.keyed_hash(keys, "sample", "2024"), hashes).any()


def test_hashes_are_spread_evenly(stream: SecretStream) -> None:
    hashes = stream.keyed_hash(np.arange(100_000), "sample")
    for shift in (0, 30, 60):
        nibble = (hashes >> np.uint64(shift)) & np.uint64(15)
        assert chi_square(np.bincount(nibble.astype(int), minlength=16).tolist()) > 0.01


def test_row_keys_are_integers(stream: SecretStream) -> None:
    with pytest.raises(InputError, match="row_keys"):
        stream.keyed_hash([1.0, 2.0], "sample")
    unsigned = np.array([2**64 - 1], np.uint64)
    assert stream.keyed_hash(unsigned, "x") == stream.keyed_hash([-1], "x")
