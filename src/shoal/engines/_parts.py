"""Rows in parts and in random order: the secret hash of its key decides where a row goes.

Rows are first distributed to shards, in encrypted files. Each shard is then sorted by its hashes.
So no more than one part is in memory, and the place of a row does not reveal where it came from.
"""

from __future__ import annotations

import io
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.engines._engine import HIDDEN, OWNER, ROW
from shoal.engines.steps._functions import Keys
from shoal.kernels.arrays import Integers
from shoal.randomness import SecretStream
from shoal.table import Table

#: The size of a part: about this many rows, and at most about this many bytes of memory.
ROWS_OF_A_PART, BYTES_OF_A_PART = 500_000, 100 << 20
PLACE, SHARD = HIDDEN + "place", HIDDEN + "shard"
#: A shard is written when this many of its bytes wait, or its share of what may wait in all.
_WAITING, _ALL_WAITING = 4 << 20, 128 << 20
#: Rows are distributed once there are this many for each shard.
_WORTH_DEALING = 10_000
_NONCE = 16


def parts_for(rows: int, width: float = 0.0) -> int:
    """The number of parts for rows with a width in bytes."""
    return max(1, -(-rows // ROWS_OF_A_PART), math.ceil(rows * width / BYTES_OF_A_PART))


def part_name(number: int) -> str:
    """The name of a part; its number reveals nothing about its rows."""
    return f"part-{number:05d}.parquet"


@dataclass(frozen=True)
class Placed:
    """Add the part of each row and its place there, by the hash of its key."""

    key: str
    parts: int

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        order = SecretStream.from_key_hex(self.key)
        hashes = order.keyed_hash(frame[ROW].to_numpy(), "row-order").astype(np.uint64)
        shard = (hashes >> np.uint64(32)) * np.uint64(self.parts) >> np.uint64(32)
        place = (hashes ^ np.uint64(1 << 63)).view(np.int64)  # signed, in the same order
        return frame.with_columns(pl.Series(PLACE, place), pl.Series(SHARD, shard.astype(np.int64)))


class Shards:
    """Rows in files by their hashes; only this process can read the files."""

    def __init__(self, folder: Path, count: int, order: SecretStream) -> None:
        folder.mkdir(mode=0o700)
        self._folder, self._count = folder, count
        self._placed = Placed(order.key_hex, count)
        self._key = secrets.token_bytes(32)
        self._arrived: list[pl.DataFrame] = []
        self._waiting: list[list[pl.DataFrame]] = [[] for _ in range(count)]
        self._bytes = [0] * count
        self._most = max(1 << 16, min(_WAITING, _ALL_WAITING // count))

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows; they are distributed once there are enough of them."""
        self._arrived.append(frame)
        enough = min(_WORTH_DEALING * self._count, ROWS_OF_A_PART)
        rows = sum(one.height for one in self._arrived)
        if rows >= enough or sum(one.estimated_size() for one in self._arrived) > BYTES_OF_A_PART:
            self._deal()

    def _deal(self) -> None:
        if not self._arrived:
            return
        placed, self._arrived = self._placed(pl.concat(self._arrived)), []
        parts = placed.partition_by(SHARD, as_dict=True, include_key=False)
        for (number,), part in parts.items():
            self._waiting[number].append(part)
            self._bytes[number] += int(part.estimated_size())
            if self._bytes[number] > self._most:
                self._flush(number)

    def _flush(self, number: int) -> None:
        if not self._waiting[number]:
            return
        content = io.BytesIO()
        pl.concat(self._waiting[number]).write_ipc(content, compression="lz4")
        sealed = self._crypted(content.getvalue(), nonce := secrets.token_bytes(_NONCE))
        descriptor = os.open(
            self._folder / str(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        with os.fdopen(descriptor, "ab") as file:
            file.write(len(sealed).to_bytes(8, "little") + nonce + sealed)
        self._waiting[number], self._bytes[number] = [], 0

    def _crypted(self, content: bytes, nonce: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        cipher = Cipher(algorithms.ChaCha20(self._key, nonce), mode=None)
        return cipher.encryptor().update(content)

    def drain(self) -> Iterator[pl.DataFrame]:
        """Each shard in the order of its hashes; its file is removed first."""
        self._deal()
        for number in range(self._count):
            self._flush(number)
            frames = list(self._read(self._folder / str(number)))
            if frames:
                yield pl.concat(frames).sort(PLACE).drop(PLACE)
        self._folder.rmdir()

    def _read(self, path: Path) -> Iterator[pl.DataFrame]:
        if not path.exists():
            return
        with path.open("rb") as file:
            while length := file.read(8):
                nonce = file.read(_NONCE)
                content = self._crypted(file.read(int.from_bytes(length, "little")), nonce)
                yield pl.read_ipc(io.BytesIO(content))
        path.unlink()


def write_frame(frame: pl.DataFrame, columns: Sequence[str], place: Path, number: int) -> None:
    """Write the public and the private half of a part."""
    private = frame.select(
        pl.col(name).alias(private_name(name)) for name in frame.columns if name not in columns
    )
    for half, shown in (("public", frame.select(columns)), ("private", private)):
        folder = place / half
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        Table(shown).write(folder / part_name(number), format="parquet")


def private_name(column: str) -> str:
    """The name in the private half of a column with keys, groups, sources or owners."""
    if column == ROW:
        return "row_key"
    return column.removeprefix(HIDDEN) if column.startswith(HIDDEN) else OWNER + column


def finish_private(
    public: Path, private: Path, place: Path, sizes: Sizes, columns: Sequence[str]
) -> None:
    """Write the private half of a part with the size of each record's class."""
    here = sizes(pl.read_parquet(public, columns=list(columns)))
    risks = [pl.Series("class_size", here), pl.Series("prosecutor_risk", 1.0 / here)]
    Table(pl.read_parquet(private).with_columns(risks)).write(place, format="parquet")


class Sizes:
    """The size of the class of each row, from the counts of the written rows."""

    def __init__(self, tally: Table) -> None:
        self._keys = Keys(tally, tally.roles.quasi_identifiers)
        self._sizes = tally.class_sizes()[self._keys.first]

    def __call__(self, frame: pl.DataFrame) -> Integers:
        return self._sizes[self._keys.of(frame)]
