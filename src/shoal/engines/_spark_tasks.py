"""What runs in Spark's tasks: functions of frames as functions of Arrow batches.

Spark has fewer types than a table, so each value travels in the nearest Spark type and is
converted back before a function gets it. Errors in a task are written to logs all over the
cluster. So only our own messages leave a task, and only the class name of any other error.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal import errors
from shoal.engines._engine import _TIMES, PART, ROW, Function, Rows, in_one_sentence
from shoal.engines._files import check_records
from shoal.engines._parts import PLACE, SHARD, part_name, write_frame
from shoal.errors import InputError, ReadError, ShoalError

Kinds = Mapping[str, pl.DataType]


@dataclass(frozen=True)
class Chain:
    """Functions that run one after the other, each with the columns that it returns.

    ``kinds`` are the columns that the first function gets.
    """

    kinds: Kinds
    steps: tuple[tuple[Function, Kinds], ...]

    @classmethod
    def to(cls, rows: Rows) -> tuple[Rows, Chain]:
        """The rows before any function, and all functions that lead from them to some rows."""
        steps: list[tuple[Function, Kinds]] = []
        while rows.before is not None and rows.function is not None:
            steps.insert(0, (rows.function, rows.all_kinds))
            rows = rows.before
        return rows, cls(rows.all_kinds, tuple(steps))

    @property
    def made(self) -> Kinds:
        """The columns of the result."""
        return self.steps[-1][1]

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        frame = frame.cast(pl.Schema(self.kinds))
        for function, kinds in self.steps:
            if frame.height == 0:
                return pl.DataFrame(schema=dict(self.made))
            frame = function(frame).select(list(kinds)).cast(pl.Schema(kinds))
        return frame


@dataclass(frozen=True)
class Written:
    """Write all rows of a part, complete or not at all, even if several tasks write the same."""

    place: str
    columns: tuple[str, ...]

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        number = int(frame[SHARD][0])
        rows = frame.sort(PLACE, ROW).drop(PLACE, SHARD)
        place = Path(self.place)
        attempt = place / f"attempt-{secrets.token_hex(8)}"
        attempt.mkdir(mode=0o700)  # without parents: an abandoned release is not started again
        write_frame(rows, self.columns, attempt, number)
        for half in ("private", "public"):
            os.replace(attempt / half / part_name(number), place / half / part_name(number))
            (attempt / half).rmdir()
        attempt.rmdir()
        return pl.DataFrame({SHARD: [number], _TIMES: [rows.height]})


def mapping(chain: Chain) -> Callable[[Any], Any]:
    """The chain as a function of batches, about a part of rows at a time."""

    def run(batches: Any) -> Any:
        for held in _gathered(batches):
            with in_a_task():
                made = _as_arrow(chain(_as_frame(held, chain.kinds)), chain.made)
            yield from made.to_batches()

    return run


def applying(chain: Chain) -> Callable[[Any], Any]:
    """The chain as a function of all rows of a group, in the order of their keys."""

    def run(table: Any) -> Any:
        with in_a_task():
            frame = _as_frame(table.to_batches(), chain.kinds)
            return _as_arrow(chain(frame.sort(ROW)), chain.made)

    return run


def checking(delimiter: str, width: int) -> Callable[[Any], Any]:
    """A function that checks text files, given by their paths, and counts their records."""

    def run(batches: Any) -> Any:
        import pyarrow

        for batch in batches:
            with in_a_task():
                found = [check_records(Path(p), delimiter, width) for p in batch[0].to_pylist()]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(found, "int64")], [_TIMES])

    return run


def _gathered(batches: Any) -> Iterator[list[Any]]:
    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= PART:
            yield held
            held = []
    if held:
        yield held


def _as_frame(batches: Sequence[Any], kinds: Kinds) -> pl.DataFrame:
    """Batches as a frame with the expected columns, in the same order."""
    import pyarrow

    frame = pl.from_arrow(pyarrow.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    frame.columns = list(kinds)
    return frame


def _as_arrow(frame: pl.DataFrame, kinds: Kinds) -> Any:
    return frame.cast(pl.Schema(held_kinds(kinds))).to_arrow().cast(_arrow_schema(kinds))


def held_kinds(kinds: Kinds) -> dict[str, pl.DataType]:
    """The Spark types of some columns, as polars types."""
    return {name: _held(kind) for name, kind in kinds.items()}


def _held(kind: pl.DataType) -> pl.DataType:
    wider: dict[Any, pl.DataType] = {
        pl.UInt8: pl.Int16(),
        pl.UInt16: pl.Int32(),
        pl.UInt32: pl.Int64(),
        pl.UInt64: pl.Decimal(20, 0),
        pl.Null: pl.String(),
    }
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", kind.time_zone)
    if isinstance(kind, pl.Duration):
        return pl.Duration("us")
    return wider.get(type(kind), kind)


def _arrow_schema(kinds: Kinds) -> Any:
    import pyarrow

    schema = pl.DataFrame(schema=held_kinds(kinds)).to_arrow().schema
    plain = {pyarrow.large_string(): pyarrow.string(), pyarrow.string_view(): pyarrow.string()}
    return pyarrow.schema([(one.name, plain.get(one.type, one.type)) for one in schema])


def held_schema(kinds: Kinds) -> Any:
    """The columns as Spark declares them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(_arrow_schema(kinds))


# -- errors


_CARRIED = re.compile(r"shoal-error:([A-Za-z0-9_=-]+):")


class TaskFailed(Exception):
    """The only error that leaves a task: the class and message of another, in base64."""


@contextlib.contextmanager
def in_a_task() -> Iterator[None]:
    """Let no error leave a task that could quote a cell."""
    try:
        with in_one_sentence():
            yield
    except Exception as error:
        sentence = str(error) if isinstance(error, ShoalError) else None
        packed = json.dumps([type(error).__name__, sentence]).encode()
        raise TaskFailed(f"shoal-error:{base64.urlsafe_b64encode(packed).decode()}:") from None


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """Replace errors of Spark with sentences that quote no cell."""
    from pyspark.errors import PySparkException

    kinds: tuple[type[Exception], ...] = (PySparkException,)
    with contextlib.suppress(ImportError):  # clients of Spark Connect lack it
        from py4j.protocol import Py4JError

        kinds += (Py4JError,)
    try:
        yield
    except kinds as error:
        raise _worded(error) from None


def _worded(error: Exception) -> ShoalError:
    text = str(error)
    carried = _CARRIED.search(text)
    if carried is not None:
        return _rebuilt(*json.loads(base64.urlsafe_b64decode(carried[1])))
    for sign, sentence in _KNOWN.items():
        if sign in text:
            return ReadError(f"{sentence} Nothing was written.")
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return ReadError(f"Spark failed ({condition}). Nothing was written.")


def _rebuilt(kind: str, sentence: str | None) -> ShoalError:
    """The error of a task as an error of this process."""
    if sentence is None:
        return InputError(f"A Spark task failed ({kind}). Nothing was written.")
    known = getattr(errors, kind, InputError)
    if not (isinstance(known, type) and issubclass(known, ShoalError)):
        known = InputError
    found = known.__new__(known)
    Exception.__init__(found, sentence)
    return found


_KNOWN = {
    "JAVA_GATEWAY_EXITED": "Spark did not start. It needs Java 17 or newer; install it.",
    "PATH_NOT_FOUND": "Spark cannot find the source at its path.",
    "TABLE_OR_VIEW_NOT_FOUND": "Spark has no table with this name. Pass its full name or a path.",
    "UNABLE_TO_INFER_SCHEMA": "There is no Parquet file at the path of the source.",
    "No space left on device": "The disk to which Spark spills is full. Free space there.",
    "OutOfMemoryError": "Spark needs more memory than its driver or an executor has. Raise "
    "'memory_limit', or assign more to the executors.",
    "maxResultSize": "The combinations exceed what Spark's driver accepts. Raise "
    "'spark.driver.maxResultSize'.",
    "FAILED_READ_FILE": "Spark cannot read a file of the source: it is damaged or was removed.",
    "CANNOT_MERGE_SCHEMAS": "The files of the source do not have the same types.",
    "UNSUPPORTED_TIME_TYPE": "Spark has no type for times of day. Convert such columns to text.",
    "All masters are unresponsive": "No Spark master answers at the address 'master'.",
}
