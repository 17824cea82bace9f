"""The only source of randomness: a ChaCha20 keystream under a secret 256-bit key.

Groups can be recomputed from a release, so anyone who knows the random numbers can undo every swap.
The numbers are therefore a key and come from a cipher. By default the key is the operating system's
entropy; an integer seed is for tests. Nothing is global: a stream is made once and passed on.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
import secrets
import warnings
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from shoal.errors import InputError, SeedWarning

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Origin = Literal["entropy", "seed", "key"]

_entropy = secrets.token_bytes  # from the operating system

_CHUNK = 1 << 16  # words per kernel call: half a megabyte stays in the cache
_ZEROS = bytes(8 * _CHUNK)
_LONGEST = 2**32 * 64  # bytes until the block counter of RFC 8439 would restart
_EXACT = 2**53  # every integer up to here is a float64
_FINENESS = 30  # a grid step is at most 2**-30 of the smallest scale
_HEADROOM = 48.0  # room for noise in scales, exceeded with probability exp(-48)


class SecretStream:
    """A secret stream of random words, and everything that Shoal draws from it.

    Create one with :meth:`from_state`, derive one child for each step, column or worker with
    :meth:`derive`, and draw from a child in one thread of one process. A stream cannot be
    copied or pickled: a copy would draw the same words again, a pickle would contain the key.

    Parameters
    ----------
    key : bytes
        32 secret bytes.
    origin : {"key", "entropy", "seed"}
        Where the key came from. Children inherit it; the private audit records it.

    Examples
    --------
    >>> stream = SecretStream.from_key_hex("2a" * 32)
    >>> stream
    SecretStream(origin='key')
    >>> stream.derive("swap", "age").permutation(5).tolist()
    [4, 3, 0, 1, 2]
    """

    __slots__ = ("_drawn", "_keystream", "_secret", "origin")

    def __init__(self, key: bytes, *, origin: Origin = "key") -> None:
        if len(key) != 32:
            raise InputError(f"The key of a SecretStream has 32 bytes; got {len(key)}.")
        self._secret = key
        # The nonce may be constant, because no key is used for two streams.
        self._keystream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._drawn = 0
        self.origin = origin

    @classmethod
    def from_state(cls, random_state: int | None = None, *, stacklevel: int = 2) -> SecretStream:
        """A stream from the operating system's entropy, or, for tests, from a seed.

        Parameters
        ----------
        random_state : int, optional
            None draws a new 256-bit key. An integer ≥ 0 repeats the same numbers and emits a
            SeedWarning: a seed can be guessed, and anyone who has it can undo the release.
        stacklevel : int
            The caller at which the warning points: 2 is the line that calls this method.
        """
        if random_state is None:
            return cls(_entropy(32), origin="entropy")
        if isinstance(random_state, bool) or (seed := _index(random_state)) < 0:
            raise InputError(
                "The random_state must be an integer ≥ 0, or None for the operating system's "
                "entropy. Got something else, which is not shown because it may be a secret."
            )
        warnings.warn(
            "A random_state was set, so anyone who learns or guesses the seed can repeat and undo "
            "the result. Keep it as secret as the original table, or remove it.",
            SeedWarning,
            stacklevel=stacklevel,
        )
        digits = str(seed).encode()
        key = hashlib.blake2b(digits, digest_size=32, person=b"shoal/seed").digest()
        return cls(key, origin="seed")

    @classmethod
    def from_key_hex(cls, key_hex: str, *, origin: Origin = "key") -> SecretStream:
        """The stream of a key in the form of :attr:`key_hex`, from its beginning."""
        try:
            key = bytes.fromhex(key_hex)
        except ValueError:
            raise InputError("The key of a SecretStream must be 64 hexadecimal digits.") from None
        return cls(key, origin=origin)

    @classmethod
    def public(cls, *purpose: str) -> SecretStream:
        """Draws that anyone can repeat: they choose whom to measure, and protect nobody.

        Anyone who verifies a release must measure the same records.
        """
        return cls.from_key_hex("00" * 32).derive(*purpose)

    @property
    def key_hex(self) -> str:
        """The key, only for the private half of a release: it undoes the masking."""
        return self._secret.hex()

    def __repr__(self) -> str:
        return f"SecretStream(origin={self.origin!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A SecretStream cannot be pickled or copied, because its key undoes a release and a "
            "copy draws the same words again. Derive one per worker and pass on its key_hex."
        )

    def derive(self, *purpose: str) -> SecretStream:
        """An independent child stream for a purpose, regardless of earlier draws.

        The same purpose gives the same child, so use each purpose once: name the step and its
        place in the plan, then the column. ``("ab", "c")`` and ``("a", "bc")`` are different
        purposes.
        """
        return SecretStream(self._subkey(32, b"shoal/derive", purpose), origin=self.origin)

    def _subkey(self, size: int, use: bytes, purpose: tuple[str, ...]) -> bytes:
        if not purpose:
            raise InputError("A purpose is needed to derive from a SecretStream; got none.")
        digest = hashlib.blake2b(digest_size=size, key=self._secret, person=use)
        for part in purpose:
            encoded = part.encode(errors="surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.digest()

    def words(self, n: int) -> Words:
        """The next ``n`` words of 64 uniformly random bits."""
        words = np.empty(_count(n), dtype="<u8")
        self._drawn += words.nbytes
        if self._drawn > _LONGEST:
            raise InputError("A SecretStream ends after 256 GiB; derive one stream per column.")
        room = words.view(np.uint8).data
        for start in range(0, len(room), len(_ZEROS)):
            part = room[start : start + len(_ZEROS)]
            self._keystream.update_into(_ZEROS[: len(part)], part)
        return words.astype(np.uint64, copy=False)

    def uniform(self, n: int) -> Floats:
        """``n`` numbers in the open interval (0, 1), uniform over the multiples of 2**-53."""
        bits = self.words(n) >> np.uint64(11)
        while (zeros := np.flatnonzero(bits == 0)).size:
            bits[zeros] = self.words(zeros.size) >> np.uint64(11)
        return np.ldexp(bits.astype(np.float64), -53)

    def integers_below(self, bounds: npt.ArrayLike) -> Integers:
        """For each bound, one integer in 0 … bound - 1, all exactly equally likely."""
        from shoal.kernels.shuffling import fill_below

        below = _integers(bounds, "bounds")
        if below.size and below.min() < 1:
            raise InputError("Integers need bounds of at least 1; got a smaller bound.")
        results = np.empty(below.size, np.int64)
        kernel = functools.partial(fill_below, results, below)
        self._feed(kernel, [0], done=below.size, expected=below.size)
        return results

    def permutation(self, n: int) -> Integers:
        """One of the n! orders of 0 … n - 1, each equally likely (Fisher-Yates)."""
        order = np.arange(_count(n), dtype=np.int64)
        self._shuffle(order, np.array([0, n], np.int64))
        return order

    def permute_within(self, order: npt.ArrayLike, offsets: npt.ArrayLike) -> Integers:
        """One uniform permutation within each group of a partition, drawn once.

        A draw that leaves a group unchanged is not repeated: a pair stays unswapped half of the
        time. Only then is each of the k rows of a group equally likely, 1/k, to be the source.

        Parameters
        ----------
        order : array of int
            All rows, with those of a group adjacent.
        offsets : array of int
            The start of each group in ``order``, then the number of rows.

        Returns
        -------
        numpy.ndarray of int64
            ``source``: row i gets what was in row ``source[i]``, a row of its own group.

        Examples
        --------
        >>> stream = SecretStream.from_key_hex("2a" * 32)
        >>> stream.permute_within([4, 0, 2, 1, 3], [0, 3, 5]).tolist()
        [2, 1, 4, 3, 0]
        """
        rows, ends = _integers(order, "order"), _integers(offsets, "offsets")
        if ends.size < 1 or ends[0] != 0 or ends[-1] != rows.size or np.any(np.diff(ends) < 0):
            raise InputError(
                f"The offsets must rise from 0 to the number of rows, which is {rows.size}."
            )
        shuffled = rows.copy()
        self._shuffle(shuffled, ends)
        source = np.full(rows.size, -1, np.int64)
        if rows.size and rows.min() >= 0 and rows.max() < rows.size:
            source[rows] = shuffled
        if source.min(initial=0) < 0:
            raise InputError(f"The order must hold each of the {rows.size} rows once.")
        return source

    def choose(self, n: int, m: int) -> Integers:
        """``m`` of the rows 0 … n - 1, ascending; every set of m is equally likely."""
        from shoal.kernels.shuffling import select

        if _count(m) > _count(n):
            raise InputError(f"Of {n} rows at most {n} can be chosen; got {m}.")
        chosen = np.empty(m, np.int64)
        self._feed(functools.partial(select, chosen, n), [0, 0], done=m, expected=n)
        return chosen

    def laplace_on_grid(
        self, values: npt.ArrayLike, scales: npt.ArrayLike, *, grid: float | None = None
    ) -> Floats:
        """Values with Laplace noise that the last bits of the result cannot undo.

        Laplace noise added in float64 leaks: only some floats near x can be a sum x + noise, and
        another x' reaches other floats, so the last bits of a published number rule out most
        originals (Mironov 2012). Here nothing is rounded after the noise:

        1. one grid, a power of two, serves the whole column, and values are rounded to it first;
        2. the noise is an integer number k of grid steps with probability proportional to
           exp(-|k| · grid / scale), drawn using only integers (Canonne, Kamath and Steinke
           2020, Algorithm 2), so that every k has its exact probability, even far out;
        3. the sum is an integer, clamped to ±2**53 steps, hence an exact float64.

        Therefore every record can become every point of one set, the multiples of the grid up to
        ±2**53 steps. Scales are rounded up to whole steps, by less than 2**-30 of them unless
        float64 is too coarse for that at the largest value: there is never less noise than
        requested. The clamp is reached with a probability below exp(-48) per record.

        This is not differential privacy if scales, or the range behind them, come from the
        data. The default grid reveals the order of magnitude of the smallest scale or the largest
        value (a fixed grid does not). Noise on several releases of one value averages out.

        Parameters
        ----------
        values : array of float
            Finite numbers.
        scales : float or array of float
            Scale of the Laplace distribution (its mean absolute deviation), above 0.
        grid : float, optional
            A power of two; by default :func:`laplace_grid` of the values and scales.

        Examples
        --------
        >>> stream = SecretStream.from_key_hex("2a" * 32)
        >>> stream.laplace_on_grid([1.0, 2.0, 3.0], 0.5, grid=0.25).tolist()
        [1.0, 2.0, 3.75]
        """
        from shoal.kernels.shuffling import discrete_laplace

        exact, wanted = _noise_arguments(values, scales)
        _, exponent = math.frexp(_checked_grid(grid, exact, wanted))
        steps = np.rint(np.ldexp(exact, 1 - exponent)).astype(np.int64)
        widths = np.maximum(np.ceil(np.ldexp(wanted, 1 - exponent)), 1.0).astype(np.int64)
        noise = np.empty(steps.size, np.int64)
        kernel = functools.partial(discrete_laplace, noise, widths)
        self._feed(kernel, [0], done=noise.size, expected=9 * noise.size)
        noise += steps
        np.clip(noise, -_EXACT, _EXACT, out=noise)
        return np.ldexp(noise.astype(np.float64), exponent - 1)

    def keyed_hash(self, row_keys: npt.ArrayLike, *purpose: str) -> Words:
        """64 bits per row key: the same for the same key and purpose, wherever it is computed.

        This is SipHash-2-4 of the key's 8 little-endian bytes with a secret for the purpose.
        Nothing is drawn from the stream. Sampling compares these hashes, which gives the same
        sample whatever the order and partition of the rows.
        """
        from shoal.kernels.shuffling import siphash

        low, high = np.frombuffer(self._subkey(16, b"shoal/siphash", purpose), dtype="<u8")
        keys = _integers(row_keys, "row_keys")
        hashes: Words = siphash(keys, np.uint64(low), np.uint64(high))
        return hashes

    def _shuffle(self, items: Integers, offsets: Integers) -> None:
        from shoal.kernels.shuffling import shuffle_within

        kernel = functools.partial(shuffle_within, items, offsets)
        self._feed(kernel, [0, 0], done=offsets.size - 1, expected=items.size)

    def _feed(
        self, kernel: Callable[..., Any], state: list[int], *, done: int, expected: int
    ) -> None:
        """Pass words to a kernel until the first number of its state says that it is done."""
        words = self.words(0)
        while state[0] < done:
            fresh = self.words(min(expected + 16, _CHUNK))
            words = np.concatenate([words, fresh]) if words.size else fresh
            *state, used = kernel(words, *state)
            words = words[used:]


def laplace_grid(values: npt.ArrayLike, scales: npt.ArrayLike) -> float:
    """The power of two on which :meth:`SecretStream.laplace_on_grid` rounds by default.

    It is at most 2**-30 of the smallest scale, but coarse enough that the largest value with its
    noise is still an exact float64.
    """
    exact, wanted = _noise_arguments(values, scales)
    return _checked_grid(None, exact, wanted)


def _checked_grid(grid: float | None, values: Floats, scales: Floats) -> float:
    reach = float(np.abs(values).max(initial=0.0)) + _HEADROOM * float(scales.max(initial=0.0))
    if not reach < 2.0**1000:
        raise InputError("The values and scales are too large for noise in 64-bit numbers.")
    # frexp gives reach < 2**exponent; half of the 2**53 steps stay free for rounded-up scales.
    finest = math.ldexp(1.0, max(math.frexp(reach)[1] - 52, -1022))
    if grid is None:
        smallest = float(scales.min()) if scales.size else 1.0
        return max(finest, math.ldexp(1.0, math.frexp(smallest)[1] - 1 - _FINENESS))
    if not math.isfinite(grid) or math.frexp(grid)[0] != 0.5 or grid < finest:
        raise InputError(
            "The grid must be a power of two and coarse enough for exact sums. "
            "Use laplace_grid of the same values and scales."
        )
    return grid


def _noise_arguments(values: npt.ArrayLike, scales: npt.ArrayLike) -> tuple[Floats, Floats]:
    given, asked = np.asarray(values), np.asarray(scales)
    if given.ndim != 1 or asked.shape not in ((), given.shape):
        raise InputError("Noise needs one column of values, and one scale or one for each value.")
    # Checked here, because numpy's own error would quote the cell that is not a number.
    if any(array.size and array.dtype.kind not in "fiu" for array in (given, asked)):
        raise InputError(f"Noise needs numbers; got {given.dtype} and scales of {asked.dtype}.")
    exact, wanted = given.astype(np.float64, copy=False), asked.astype(np.float64, copy=False)
    if refused := int(np.count_nonzero(~np.isfinite(exact))):
        raise InputError(f"Noise needs finite values; {refused} of {exact.size} are not.")
    if refused := int(np.count_nonzero(~(np.isfinite(wanted) & (wanted > 0)))):
        raise InputError(f"Noise needs finite scales above 0; {refused} of {wanted.size} are not.")
    return exact, np.broadcast_to(wanted, exact.shape)


def _integers(values: npt.ArrayLike, called: str) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"The {called} must be a one-dimensional array of integers; "
            f"got {array.ndim} dimensions of {array.dtype}."
        )
    # Writable and contiguous; otherwise numba would compile the kernel again.
    return np.require(array, np.int64, ["C", "W"])


def _count(n: int) -> int:
    if (count := _index(n)) < 0:
        raise InputError("A number of rows or draws must be an integer ≥ 0.")
    return count


def _index(value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return -1
