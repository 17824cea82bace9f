"""What an engine does with its rows: count, sample and map them, and write them in parts.

An engine counts combinations, so everything that needs only counts has the same result as in
memory. Rows are changed by functions of frames. A function gets some rows in the order of their
keys. A function that draws random numbers gets all rows of a part, so it draws the same numbers
if a part is processed again, on any machine.
"""

from __future__ import annotations

import contextlib
import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from shoal.errors import InputError, ReleaseError, RolesError, quoted
from shoal.kernels.arrays import Integers
from shoal.randomness import SecretStream
from shoal.table import Codes, Column, Roles, Table
from shoal.table._roles import refuse_unowned, refuse_weights
from shoal.table.columns._frames import check_names as check_columns

#: The private key of each row. It never reaches the public half of a release.
ROW = "__shoal_row"
#: The number of consecutive keys in a part; a function gets at most so many rows at once.
PART = 1 << 17
#: Prefix of columns that a step adds for the private half, such as the group or source of a row.
HIDDEN = "__shoal_"
#: Prefix of columns of the private half that state whose row it is.
OWNER = "unit: "

#: Maps a frame of rows with their keys to another. It may state which columns it ``touches`` and
#: whether it ``drops`` rows. Then columns that it does not touch can be counted before it runs.
Function = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of an engine, which has them under a name; a step returns new ones.

    ``schema`` has the columns that may be released. ``hidden`` has those that stay private: whose
    row it is, and what steps add for the private half.
    """

    engine: Engine
    name: str
    schema: Mapping[str, pl.DataType]
    hidden: Mapping[str, pl.DataType] = field(default_factory=dict)
    #: The rows that ``function`` is applied to, if the engine applies it only on demand.
    before: Rows | None = None
    function: Function | None = None

    @property
    def columns(self) -> list[str]:
        return list(self.schema)

    def count(self) -> int:
        """The number of rows."""
        return int(self.engine.counted(self, [])[_TIMES].sum())

    def repeats(self, columns: Sequence[str]) -> int | None:
        """The number of different combinations of some columns; None if none repeats."""
        present = " AND ".join(f"{self.engine.quote(name)} IS NOT NULL" for name in columns)
        here = f"FROM {self.name} WHERE {present}"
        found = self.engine.query(
            f"SELECT (SELECT count(*) {here}) AS n, count(*) AS d FROM "
            f"(SELECT DISTINCT {self._listed(columns)} {here})"
        )
        return int(found["d"][0]) if found["d"][0] < found["n"][0] else None

    def tally(
        self,
        columns: Sequence[str],
        roles: Roles,
        *,
        released: bool = True,
        weight: str | None = None,
    ) -> Table:
        """The combinations of some columns, each with its number of rows.

        A column may be empty after masking, but not in a source. A ``weight`` is summed over the
        rows of each combination; if the combinations include the person, it is the person's.
        """
        if not released and roles.unit_columns:
            refuse_unowned(self.gaps(roles.unit_columns), self.count())
        if not released and weight is not None:
            refuse_weights(weight, self.schema[weight], lambda: self._bad_weights(weight))
        counted = self.engine.counted(self, columns)
        if weight is not None and columns:
            summed = self.engine.weighed(self, columns, weight, once=bool(roles.unit_columns))
            summed = summed.cast(pl.Schema({n: counted.schema[n] for n in columns}))
            counted = counted.join(summed, on=columns, how="left", nulls_equal=True)
            roles = roles.replacing(weight=weight)
        cells = [_coded(series) for series in counted.drop(_TIMES)]
        if not columns:  # no column is left, so all rows are equal
            cells, counted = [Column(pl.Series(ROW, [0]))], counted.select(pl.col(_TIMES).sum())
        table = Table.of_columns(cells).with_roles(roles, released=released)
        return table.tallied(counted[_TIMES].to_numpy())

    def check_roles(self, roles: Roles) -> None:
        """Raise RolesError if the roles name a column that the rows do not have."""
        absent = [name for _, name in roles.items() if name not in self.columns]
        if absent:
            raise RolesError(f"The source has no column {quoted(absent)}, which the roles name.")

    def gaps(self, columns: Sequence[str]) -> dict[str, int]:
        """How many values of each column are missing."""
        asked = [
            f"count(*) - count({self.engine.quote(name)}) AS n{place}"
            for place, name in enumerate(columns)
        ]
        found = self.engine.query(f"SELECT {', '.join(['count(*)', *asked])} FROM {self.name}")
        return {name: int(found[f"n{place}"][0]) for place, name in enumerate(columns)}

    def _bad_weights(self, name: str) -> int:
        """How many values of a column are missing, infinite or not above 0."""
        value = f"CAST({self.engine.quote(name)} AS DOUBLE)"
        found = self.engine.query(
            f"SELECT count(*) AS n FROM {self.name} WHERE {value} IS NULL OR {value} <= 0 "
            f"OR {value} = CAST('Infinity' AS DOUBLE)"
        )
        return int(found["n"][0])

    def some(self, total: int, number: int = 200_000) -> pl.DataFrame:
        """About ``number`` of all ``total`` rows, to look at; others each time."""
        look = SecretStream.from_state(None).derive("look")
        return self.engine.sample(self, number, look, total)

    def sooner(self, columns: Sequence[str]) -> Rows:
        """The same rows before functions that neither change these columns nor drop rows."""
        rows = self
        while rows.before is not None and not getattr(rows.function, "drops", True):
            if set(columns) & set(getattr(rows.function, "touches", columns)):
                break
            rows = rows.before
        return rows

    def crowds(self, columns: Sequence[str]) -> Table:
        """The classes of some columns, known only by their sizes."""
        sizes, classes = self.histogram(columns)
        refuse_too_many(int(classes.sum()), columns)
        each = np.repeat(sizes, classes)
        name = HIDDEN + "class"  # no column of the rows has this name
        numbers = pl.DataFrame({name: np.arange(len(each), dtype=np.int32)})
        return Table(numbers, Roles(quasi_identifiers=[name])).tallied(each)

    def histogram(self, columns: Sequence[str]) -> tuple[Integers, Integers]:
        """The different class sizes of some columns, and how many classes have each."""
        rows = self.engine.settled(self, columns)
        found = self.engine.query(
            "SELECT n, count(*) AS classes FROM (SELECT count(*) AS n FROM "
            f"{rows.name} GROUP BY {rows._listed(columns)}) GROUP BY n ORDER BY n"
        )
        return found["n"].to_numpy(), found["classes"].to_numpy()

    @property
    def all_kinds(self) -> dict[str, pl.DataType]:
        """The types of all columns, with the key first."""
        return {ROW: pl.Int64(), **self.schema, **self.hidden}

    def kinds(self, columns: Sequence[str]) -> pl.Schema:
        """The types of some columns, released or hidden."""
        known = {**self.hidden, **self.schema}
        return pl.Schema({name: known[name] for name in columns})

    def hide(self, columns: Sequence[str]) -> Rows:
        """The rows with some columns kept for the private half only."""
        hidden = {**self.hidden, **self.kinds([n for n in columns if n in self.schema])}
        return replace(self.drop(columns), hidden=hidden)

    def drop(self, columns: Sequence[str]) -> Rows:
        """The rows without some columns."""
        kept = {name: kind for name, kind in self.schema.items() if name not in columns}
        return replace(self, schema=kept)

    def mapped(
        self,
        function: Function,
        schema: Mapping[str, pl.DataType] | None = None,
        hidden: Mapping[str, pl.DataType] | None = None,
        *,
        whole_parts: bool = False,
    ) -> Rows:
        """The rows that a function returns for these; by default they have the same columns."""
        shown = dict(self.schema if schema is None else schema)
        beside = dict(self.hidden if hidden is None else hidden)
        return self.engine.mapped(self, function, shown, beside, whole_parts)

    def _listed(self, columns: Sequence[str]) -> str:
        return ", ".join(self.engine.quote(name) for name in columns)


def _coded(series: pl.Series) -> Column:
    """A counted column; the codes of an engine for texts are used as they are."""
    if not isinstance(series.dtype, pl.Enum):
        return Column(series)
    levels = pl.Series(series.name, series.dtype.categories, dtype=pl.String)
    missing = len(levels) if series.null_count() else None
    narrow = pl.UInt8 if len(levels) < 255 else pl.UInt16 if len(levels) < 65_535 else pl.UInt32
    codes = series.to_physical().cast(narrow).fill_null(len(levels)).to_numpy()
    return Column(Codes(codes, levels, missing))


_TIMES = "__shoal_times"
#: The number of combinations that fit into a few gigabytes.
MOST_COMBINATIONS = 20_000_000


class TooManyCombinations(InputError):
    """Combinations do not fit into memory."""


def refuse_too_many(combinations: int, columns: Sequence[str]) -> None:
    """Raise TooManyCombinations if combinations do not fit into memory."""
    if combinations > MOST_COMBINATIONS:
        raise TooManyCombinations(
            f"The columns {quoted(columns)} have {combinations:,} different combinations, but at "
            f"most {MOST_COMBINATIONS:,} fit into memory. Round or recode some of these columns in "
            "an earlier step. Nothing was written."
        )


class Engine(ABC):
    """A database or cluster that processes rows that do not fit into memory."""

    name: ClassVar[str]
    #: What stands around names in SQL.
    sign: ClassVar[str] = '"'
    #: Called with the share of the current work that is done, if the engine knows it.
    progress: Callable[[float], None] | None = None

    def done(self, share: float) -> None:
        """Report the share of the current work that is done."""
        if self.progress is not None:
            self.progress(share)

    @abstractmethod
    def query(self, text: str) -> pl.DataFrame:
        """The small result of an SQL query."""

    @abstractmethod
    def view(self, text: str) -> str:
        """A name for the result of an SQL query, which runs when it is needed."""

    @classmethod
    def quote(cls, name: str) -> str:
        """The name of a column, quoted for SQL."""
        return cls.sign + name.replace(cls.sign, 2 * cls.sign) + cls.sign

    @abstractmethod
    def source(self, given: Any) -> Rows:
        """The rows of a path, a frame or a relation, with keys that do not change."""

    @abstractmethod
    def mapped(
        self,
        rows: Rows,
        function: Function,
        schema: dict[str, pl.DataType],
        hidden: dict[str, pl.DataType],
        whole_parts: bool,
    ) -> Rows:
        """The rows that a function returns, when they are needed; see ``Rows.mapped``."""

    @abstractmethod
    def chunked(
        self,
        rows: Rows,
        chunk_of: Function,
        function: Function,
        schema: Mapping[str, pl.DataType],
        hidden: Mapping[str, pl.DataType],
    ) -> Rows:
        """The rows that a function returns for each chunk; ``chunk_of`` adds the chunk numbers."""

    @abstractmethod
    def write(self, rows: Rows, place: Path, order: SecretStream, parts: int) -> None:
        """Write the rows as Parquet files into ``place``, in the order of the hashes of their keys.

        The columns of the release go to ``place/public``. The keys and hidden columns go to
        ``place/private``, in the same order.
        """

    @abstractmethod
    def read(self, files: Sequence[Path]) -> Rows:
        """The rows of Parquet files."""

    @abstractmethod
    def given_back(self, files: Sequence[Path]) -> Any:
        """Files of a release in the type of the input: a relation, a frame of a cluster, a path."""

    @abstractmethod
    def offered(self, frame: pl.DataFrame) -> contextlib.AbstractContextManager[str]:
        """A name in SQL for a small frame, for the time of the block."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources, and remove spilled data."""

    def counted(self, rows: Rows, columns: Sequence[str]) -> pl.DataFrame:
        """The combinations of some columns with their numbers of rows."""
        names = rows._listed(columns)
        head, group = (f"{names}, ", f" GROUP BY {names}") if columns else ("", "")
        found = self.query(f"SELECT {head}count(*) AS {_TIMES} FROM {rows.name}{group}")
        return found.cast(rows.kinds(columns))

    def weighed(
        self, rows: Rows, columns: Sequence[str], weight: str, *, once: bool
    ) -> pl.DataFrame:
        """The combinations of some columns with their weight; missing if a row has none."""
        rows = self.settled(rows, [*columns, weight])
        names, value = rows._listed(columns), self.quote(weight)
        total = f"{'max' if once else 'sum'}(CAST({value} AS DOUBLE))"
        found = self.query(
            f"SELECT {names}, CASE WHEN count({value}) = count(*) THEN {total} END AS {value} "
            f"FROM {rows.name} GROUP BY {names}"
        )
        return found.cast(rows.kinds(columns))

    def picked(self, rows: Rows, among: pl.DataFrame) -> pl.DataFrame:
        """A frame of the rows whose values occur in a small frame, such as one of keys."""
        keys = {name: f"k{place}" for place, name in enumerate(among.columns)}
        equal = " AND ".join(
            f"a.{self.quote(name)} IS NOT DISTINCT FROM b.{key}" for name, key in keys.items()
        )
        shown = ", ".join(f"a.{self.quote(name)}" for name in (ROW, *rows.columns))
        with self.offered(among.rename(keys)) as asked:
            found = self.query(
                f"SELECT /*+ BROADCAST(b) */ {shown} FROM {rows.name} AS a "
                f"SEMI JOIN {asked} AS b ON {equal}"
            )
        return found.cast(rows.kinds(rows.columns))

    def joined(self, rows: Rows, others: Rows, columns: Sequence[str]) -> Rows:
        """The rows with some columns of other rows that have the same keys."""
        more = ", ".join(f"b.{self.quote(name)}" for name in columns)
        name = self.view(
            f"SELECT a.*, {more} FROM {rows.name} AS a JOIN {others.name} AS b ON a.{ROW} = b.{ROW}"
        )
        return Rows(self, name, rows.schema, {**rows.hidden, **others.kinds(columns)})

    def outcomes(
        self, rows: Rows, written: Rows, private: Rows, columns: Sequence[str]
    ) -> dict[str, pl.DataFrame]:
        """The released value of each value: ``was``, ``now``, whether it is ``gone``, ``times``."""
        if not columns:
            return {}
        shown, sets = [], []
        for place, name in enumerate(columns):
            quoted = self.quote(name)
            shown.append(f"o.{quoted} AS was_{place}, r.{quoted} AS now_{place}")
            sets.append(f"(gone, was_{place}, now_{place})")
        released = self.view(
            f"SELECT {', '.join(f'w.{self.quote(name)}' for name in columns)}, p.row_key "
            f"FROM {written.name} AS w JOIN {private.name} AS p ON w.{ROW} = p.{ROW}"
        )
        both = self.view(
            f"SELECT {', '.join(shown)}, r.row_key IS NULL AS gone FROM {rows.name} AS o "
            f"LEFT JOIN {released} AS r ON o.{ROW} = r.row_key"
        )
        listed = ", ".join(
            f"was_{place}, now_{place}, grouping(was_{place}) AS other_{place}"
            for place in range(len(columns))
        )
        found = self.query(
            f"SELECT gone, {listed}, count(*) AS times FROM {both} "
            f"GROUP BY GROUPING SETS ({', '.join(sets)})"
        )
        return {
            name: found.filter(pl.col(f"other_{place}") == 0).select(
                pl.col(f"was_{place}").cast(rows.schema[name]).alias("was"),
                pl.col(f"now_{place}").cast(written.schema[name]).alias("now"),
                "gone",
                pl.col("times").cast(pl.Int64),
            )
            for place, name in enumerate(columns)
        }

    def settled(self, rows: Rows, columns: Sequence[str]) -> Rows:
        """The rows in a form that SQL can query, with at least these columns."""
        return rows

    def sample(self, rows: Rows, number: int, order: SecretStream, total: int) -> pl.DataFrame:
        """About ``number`` rows, those with the smallest keyed hashes, with their keys."""
        from shoal.engines.steps._functions import Below

        share = 1 << 64 if number >= total else int((1 << 64) * (number / total))
        return self.drawn(rows, Below(order.key_hex, share)).sort(ROW)

    def drawn(self, rows: Rows, chosen: Function) -> pl.DataFrame:
        """The few rows that a function of keys keeps, with their keys."""
        if rows.before is not None or rows.hidden:
            return self.collected(rows.mapped(chosen))
        keys = self.collected(replace(rows, schema={}).mapped(chosen))
        return self.picked(rows, keys.select(ROW))

    def collected(self, rows: Rows) -> pl.DataFrame:
        """Few rows as a frame, with their keys."""
        shown = ", ".join(map(self.quote, rows.all_kinds))
        found = self.query(f"SELECT {shown} FROM {rows.name}")
        return found.cast(rows.kinds([*rows.schema, *rows.hidden]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: With less memory, neither DuckDB nor Spark starts.
_LEAST_MEMORY = 450_000_000


def memory_of(limit: str) -> int:
    """The bytes of a memory limit; InputError if it is not one, or too small."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])(i?)b?", limit.strip().lower())
    if found is None:
        raise InputError(f"'{limit}' is not a memory limit. Write it as '2GB' or '500MB'.")
    unit = 1024 if found[3] else 1000
    count = int(float(found[1]) * unit ** ("kmgt".index(found[2]) + 1))
    if count < _LEAST_MEMORY:
        raise InputError(f"The memory limit '{limit}' is too small. Set it to at least 500MB.")
    return count


def _used_up() -> InputError:
    return InputError(
        "This machine is out of memory. Set a smaller 'memory_limit' under [engine], or round or "
        "recode columns in an earlier step, so that there are fewer combinations. Nothing was "
        "written."
    )


@contextlib.contextmanager
def in_one_sentence() -> Iterator[None]:
    """Report a full disk or full memory as an error that says what to do."""
    try:
        yield
    except MemoryError:
        raise _used_up() from None
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise _used_up() from None
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise ReleaseError(
            "The disk where the release is made is full. Free space there, or set 'temporary' "
            "under [engine] to a folder on another disk. Nothing was written."
        ) from None


def roles_on(roles: Roles, columns: Sequence[str]) -> Roles:
    """The roles of some columns."""
    return roles.without({name for _, name in roles.items()} - set(columns))


def as_table(frame: pl.DataFrame, roles: Roles) -> Table:
    """Rows of an engine as a table in memory, with their keys."""
    shown = frame.drop([name for name in frame.columns if name.startswith(HIDDEN)])
    table = Table(shown).with_roles(roles_on(roles, shown.columns), released=True)
    return table.on_record(np.array(frame[ROW].to_numpy(), np.int64), ())


def as_frame(table: Table) -> pl.DataFrame:
    """The rows of a table with their keys, as an engine expects them."""
    frame: pl.DataFrame = table.frame
    return frame.with_columns(pl.Series(ROW, np.array(table.row_key)))


def check_names(columns: Sequence[str]) -> None:
    """Raise InputError if a column has a name that an engine does not support."""
    check_columns(columns, "The source")
    if "*" in columns:
        raise InputError(
            "A column has the name '*', which means all columns in SQL. Rename it, or use the "
            "engine 'memory'."
        )
    taken = [name for name in columns if name.startswith(HIDDEN)]
    if taken:
        raise InputError(
            f"A column has the name '{taken[0]}', but names that begin with '{HIDDEN}' are "
            "reserved. Rename it."
        )
    folded = [name.casefold() for name in columns]
    if len(set(folded)) < len(folded):
        raise InputError(
            "Two column names differ only in upper and lower case. DuckDB and Spark treat them as "
            "one name. Rename them, or use the engine 'memory'."
        )
