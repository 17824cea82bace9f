"""Who is in a sample, computed from the row key and the secret alone, without Shoal's code.

The construction is that of docs/methods/sample.md: a secret of 32 bytes, a key of 16 bytes made
from it with BLAKE2b, and SipHash-2-4 (Aumasson, Bernstein 2012) of each row key. Whatever reads
the rows elsewhere, in whatever order, takes the same records.
"""

from __future__ import annotations

import hashlib
import struct
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from shoal import Plan, Roles, Sample, Table, protect

MASK = 2**64 - 1


def rotated(word, bits):
    return (word << bits | word >> (64 - bits)) & MASK


def siphash(key, message):
    """SipHash-2-4 of a message, as its authors write it down."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def rounds(number):
        for _ in range(number):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)

    whole = len(message) // 8 * 8
    words = [word for (word,) in struct.iter_unpack("<Q", message[:whole])]
    tail = message[whole:].ljust(7, b"\0") + bytes([len(message) & 255])
    for word in [*words, *struct.unpack("<Q", tail)]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_siphash_of_its_authors():
    """The key 00 … 0f and the messages 00 01 … of 0, 8 and 15 bytes (appendix A, vectors_sip64)."""
    key = bytes(range(16))
    assert siphash(key, b"") == 0x726FDB47DD0E0E31
    assert siphash(key, bytes(range(8))) == 0x93F5F5799A932462
    assert siphash(key, bytes(range(15))) == 0xA129CA6149BE45E5


def hash_of(secret, row_key):
    purpose = b"sample"
    message = len(purpose).to_bytes(8, "little") + purpose
    key = hashlib.blake2b(message, digest_size=16, key=secret, person=b"shoal/siphash").digest()
    return siphash(key, row_key.to_bytes(8, "little", signed=True))


def sampled(table, secret=None, **options):
    """The keys of the rows that stay, under a secret that is given instead of drawn."""
    with pytest.MonkeyPatch.context() as patch:
        if secret is not None:
            patch.setattr("shoal.randomness._entropy", lambda length: secret)
        return set(Sample(**options).fit_transform(table).row_key.tolist())


def people(classes):
    return Table(pl.DataFrame({"zip": classes}), Roles(quasi_identifiers=["zip"]))


CLASSES = [row * row % 7 for row in range(200)]


@pytest.mark.parametrize("word", [b"", b"shoal", b"other"])
@pytest.mark.parametrize("fraction", [0.3, 0.125])
def test_the_same_records_as_by_hand(word, fraction):
    secret, share = hashlib.sha256(word).digest(), Fraction(str(fraction))
    hashes = {row: hash_of(secret, row) for row in range(200)}
    whole = people(CLASSES)
    options = {"secret": secret, "fraction": fraction}
    in_order = sorted(hashes, key=hashes.__getitem__)
    assert sampled(whole, **options) == set(in_order[: int(share * 200)])
    bound = int(share * 2**64)
    below = {row for row in hashes if hashes[row] < bound}
    assert sampled(whole, strategy="bernoulli", **options) == below
    chosen = set()
    for label in set(CLASSES):
        inside = [row for row in in_order if CLASSES[row] == label]
        chosen |= set(inside[: int(share * len(inside))])
    assert sampled(whole, strategy="stratified", **options) == chosen


def test_a_balanced_sample_by_hand():
    """Classes by their smallest hash; the most frequent target left in the class goes first."""
    secret, share = hashlib.sha256(b"balanced").digest(), Fraction("0.3")
    hashes = [hash_of(secret, row) for row in range(200)]
    targets = ["ill" if row % 5 == 0 else "well" for row in range(200)]
    frame = pl.DataFrame({"zip": CLASSES, "health": targets})
    whole = Table(frame, Roles(quasi_identifiers=["zip"], target="health"))
    left, chosen = {value: targets.count(value) for value in targets}, set(range(200))
    members = {label: [r for r in range(200) if CLASSES[r] == label] for label in set(CLASSES)}
    for rows in sorted(members.values(), key=lambda rows: min(hashes[row] for row in rows)):
        for _ in range(len(rows) - int(share * len(rows))):
            inside = [row for row in rows if row in chosen]
            most = max(sorted({targets[row] for row in inside}), key=left.__getitem__)
            gone = max((row for row in inside if targets[row] == most), key=hashes.__getitem__)
            chosen.remove(gone)
            left[most] -= 1
    found = sampled(whole, secret, fraction=0.3, strategy="balanced")
    assert found == chosen
    assert left == {"ill": 34, "well": 25}, "of 40 and 160"


def test_an_engine_that_reads_parts_in_another_order():
    """Row keys go with the rows: parts that are sampled on their own by the bound agree."""
    whole = people(CLASSES)
    turned = whole.reorder(np.random.default_rng(4).permutation(200))
    options = {"secret": bytes(32), "fraction": 0.4, "strategy": "bernoulli"}
    parts = [turned.keep(np.arange(200) // 50 == part) for part in range(4)]
    assert set().union(*(sampled(part, **options) for part in parts)) == sampled(whole, **options)


def test_it_is_the_key_in_the_private_audit():
    """Without a seed the secret is the operating system's; the private half keeps it."""
    whole = people(CLASSES)
    release = protect(whole, Plan([Sample(fraction=0.25)]))
    (step,) = release.audit["steps"]
    secret = bytes.fromhex(step["key"])
    in_order = sorted(range(200), key=lambda row: hash_of(secret, row))
    assert sorted(release.masked.row_key.tolist()) == sorted(in_order[:50])
