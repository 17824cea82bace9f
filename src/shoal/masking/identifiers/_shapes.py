"""What pseudonyms look like, and how they are made under a key: hashes, or a permutation.

Three shapes are keyed hashes (BLAKE2b), of so many bits that two values hardly ever get one name;
a table in which they do is refused. The fourth keeps the length and the alphabet of each value. It
is a permutation of all values of that form: nobody shares a pseudonym, and no value is its own.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Integers, Words
from shoal.randomness import SecretStream
from shoal.table import Table

_BYTES: Final = 10
_FIRST_NUMBER, _NUMBERS = 10**17, 9 * 10**17
#: Syllables that can be read aloud, each letter one of 16 or of 4 (Wilkerson 2009).
_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"
_WORDS: Final = 4
_POINT_ZERO: Final = re.compile(r"\.0+$")


def plain_texts(table: Table, name: str) -> list[str]:
    """The different values as text, by code: a number is written without a fraction of zeros."""
    texts = table.codes(name).texts
    return [_POINT_ZERO.sub("", t) for t in texts] if table.kind(name) == "float" else texts


def hashed_names(texts: Sequence[str], key: bytes, shape: str = "hex") -> list[str]:
    """For each text its pseudonym: a hash under the key, which nobody can make without it."""
    begun, written = hashlib.blake2b(digest_size=_BYTES, key=key), _HASHED[shape]
    return [written(_digest(begun, text)) for text in texts]


def _digest(begun: hashlib.blake2b, text: str) -> bytes:
    one = begun.copy()
    one.update(text.encode(errors="surrogatepass"))
    return one.digest()


def _in_hex(digest: bytes) -> str:
    # a letter first: a text of digits, or one such as 12e4567, would be read as a number
    return f"P{digest.hex()}"


def _in_digits(digest: bytes) -> str:
    return str(_FIRST_NUMBER + int.from_bytes(digest, "big") % _NUMBERS)


def _in_words(digest: bytes) -> str:
    return "-".join(
        _word(int.from_bytes(digest[2 * at : 2 * at + 2], "big")) for at in range(_WORDS)
    )


def _word(bits: int) -> str:
    return (
        _CONSONANTS[bits >> 12]
        + _VOWELS[bits >> 10 & 3]
        + _CONSONANTS[bits >> 6 & 15]
        + _VOWELS[bits >> 4 & 3]
        + _CONSONANTS[bits & 15]
    )


_HASHED: Final[Mapping[str, Callable[[bytes], str]]] = {
    "hex": _in_hex,
    "digits": _in_digits,
    "words": _in_words,
}
#: The shapes; the last one is no hash.
SHAPES: Final = (*_HASHED, "format")

# -- the same length and alphabet

_ALPHABETS: Final = {"0": ("0", 10), "1": ("1", 9), "a": ("a", 26), "A": ("A", 26)}
_CLASSES: Final = str.maketrans(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0" * 10 + "a" * 26 + "A" * 26,
)
_ROUNDS: Final = 16
#: Up to so many values of a form are shuffled one by one, which no known pair says anything about.
SMALL: Final = 1_000_000
#: Halves of a value are numbers below this; the remainder of 64 random bits is even for them.
_LARGEST_HALF: Final = 1 << 31


@dataclass(frozen=True)
class Form:
    """Values of one length and alphabet: ``rows`` of them, out of ``room`` that are possible.

    In ``text`` a 0 stands for any digit, a 1 for any but 0, ``a`` and ``A`` for any letter.
    """

    text: str
    rows: npt.NDArray[np.int64]

    @property
    def letters(self) -> list[int]:
        """The places that change; all others stay as they are."""
        return [at for at, char in enumerate(self.text) if char in _ALPHABETS]

    @property
    def sizes(self) -> list[int]:
        """How many letters there are for each place that changes."""
        return [_ALPHABETS[self.text[at]][1] for at in self.letters]

    @property
    def room(self) -> int:
        """How many values have this form."""
        return math.prod(self.sizes)

    @property
    def cut(self) -> int:
        """How many of the places are in the first half: both halves are about as large."""
        sizes = self.sizes
        return min(
            range(len(sizes) + 1),
            key=lambda at: max(math.prod(sizes[:at]), math.prod(sizes[at:])),
        )

    @property
    def is_too_long(self) -> bool:
        """Whether a half is too large for its numbers."""
        sizes, cut = self.sizes, self.cut
        return max(math.prod(sizes[:cut]), math.prod(sizes[cut:])) >= _LARGEST_HALF


def forms_of(texts: Sequence[str], *, whole: bool) -> list[Form]:
    """The forms of some values; ``whole`` numbers keep a first digit that is not 0."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text.translate(_CLASSES), []).append(row)
    return [
        Form(
            text.replace("0", "1", 1) if whole and text.count("0") > 1 else text,
            np.array(at, np.int64),
        )
        for text, at in rows.items()
    ]


def has_other_letters(text: str) -> bool:
    """Whether a value has letters or digits beyond a-z, A-Z and 0-9, which would stay in place."""
    return any(char.isalnum() and not char.isascii() for char in text)


def permuted(texts: Sequence[str], forms: Sequence[Form], stream: SecretStream) -> list[str]:
    """For each text another one of its form: under one key, no two texts get the same."""
    found = [""] * len(texts)
    for form in forms:
        given = [texts[row] for row in form.rows.tolist()]
        for row, name in zip(form.rows.tolist(), _permuted(given, form, stream), strict=True):
            found[row] = name
    return found


def _permuted(texts: list[str], form: Form, stream: SecretStream) -> list[str]:
    """The texts of one form, each moved a secret number of steps in a secret order of all.

    The order is a permutation under the key, and its inverse leads back: so the whole is a
    permutation too, and since the steps never lead around, no text becomes itself.
    """
    width, places = len(form.text), form.letters
    chars = np.array(texts, dtype=f"<U{width}").view(np.uint32).reshape(len(texts), width)
    first = np.array([ord(_ALPHABETS[form.text[at]][0]) for at in places], np.int64)
    sizes, cut = form.sizes, form.cut
    digits = chars[:, places].astype(np.int64) - first
    halves = _number(digits[:, :cut], sizes[:cut]), _number(digits[:, cut:], sizes[cut:])
    rooms = math.prod(sizes[:cut]), math.prod(sizes[cut:])
    own = stream.derive("form", form.text)
    steps = 1 + int(own.derive("steps").integers_below([form.room - 1])[0])
    if form.room <= SMALL:
        order = own.derive("order").permutation(form.room)
        back = np.empty_like(order)
        back[order] = np.arange(form.room)
        joined = back[(order[halves[0] * rooms[1] + halves[1]] + steps) % form.room]
        halves = joined // rooms[1], joined % rooms[1]
    else:
        halves = _feistel(halves, rooms, own)
        moved = (halves[0] * rooms[1] + halves[1] + steps) % form.room
        halves = _feistel((moved // rooms[1], moved % rooms[1]), rooms, own, back=True)
    new = np.hstack([_digits(halves[0], sizes[:cut]), _digits(halves[1], sizes[cut:])])
    out = chars.copy()
    out[:, places] = (new + first).astype(np.uint32)
    return [str(text) for text in out.view(f"<U{width}").ravel().tolist()]


def _feistel(
    halves: tuple[Integers, Integers],
    rooms: tuple[int, int],
    stream: SecretStream,
    *,
    back: bool = False,
) -> tuple[Integers, Integers]:
    """A permutation of pairs: in turn, each half is moved by a keyed hash of the other (as FF1).

    Both halves stay below their own bound, so that nothing has to be tried again.
    """
    now = list(halves)
    for turn in range(_ROUNDS)[:: -1 if back else 1]:
        at = turn % 2
        hashes: Words = stream.keyed_hash(now[1 - at], "round", str(turn))
        by = (hashes % np.uint64(rooms[at])).astype(np.int64)
        now[at] = (now[at] - by if back else now[at] + by) % rooms[at]
    return now[0], now[1]


def _number(digits: Integers, sizes: Sequence[int]) -> Integers:
    """Digits of several alphabets as one number."""
    number = np.zeros(len(digits), np.int64)
    for at, size in enumerate(sizes):
        number = number * size + digits[:, at]
    return number


def _digits(number: Integers, sizes: Sequence[int]) -> Integers:
    """A number as digits of several alphabets."""
    found = np.zeros((len(number), len(sizes)), np.int64)
    for at in range(len(sizes) - 1, -1, -1):
        number, found[:, at] = np.divmod(number, sizes[at])
    return found
