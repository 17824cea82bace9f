"""DuckDB: tables larger than memory on one machine.

Data beyond the memory limit is spilled to files in a private folder, encrypted with a key that only
the process knows. If a process is killed, nobody can read its files, and the next process that
writes into the same folder removes them. OpenSSL encrypts if DuckDB's extension ``httpfs`` is
installed. Otherwise DuckDB's own cipher does, whose keys come from a weaker source of randomness.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines._engine import (
    _TIMES,
    HIDDEN,
    PART,
    ROW,
    Engine,
    Function,
    Rows,
    check_names,
    memory_of,
    refuse_too_many,
)
from shoal.engines._files import (
    check_parquet,
    is_text,
    listed,
    parquet_files,
    partition_kinds,
    text_files,
    typed_texts,
)
from shoal.engines._parts import ROWS_OF_A_PART, Shards, write_frame
from shoal.errors import InputError, MissingExtra, ReadError
from shoal.randomness import SecretStream
from shoal.workflow import EngineSettings

#: Text columns with at most this many values are counted by codes.
_MOST_LEVELS = 100_000
_LEAST_MEMORY = 160_000_000


class DuckDb(Engine):
    """The engine on one machine, for tables larger than memory."""

    name = "duckdb"

    def __init__(self, settings: EngineSettings, private: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("The engine 'duckdb'", "sql") from None
        self._private = private
        self._duckdb = duckdb
        self._names = itertools.count()
        self._lazy = False
        with _in_words():
            self.database = duckdb.connect(":memory:")
        spill = private / "spill"
        spill.mkdir(mode=0o700, exist_ok=True)
        self._set("temp_directory", str(spill))
        self._encrypt()
        if settings.memory_limit is not None:
            # a quarter is for DuckDB, the rest for the combinations and rows that Python holds
            share = max(_LEAST_MEMORY, memory_of(settings.memory_limit) // 4)
            self._set("memory_limit", f"{share}B")
        self._set("threads", str(os.cpu_count() or 1))
        self.database.execute("SET preserve_insertion_order = true")
        self.database.execute("SET enable_progress_bar = false")
        # as Spark calls them
        self.database.execute("CREATE MACRO regexp_like(t, pattern) AS regexp_matches(t, pattern)")
        self.database.execute("CREATE TYPE TIMESTAMP_NTZ AS TIMESTAMP")

    def _set(self, name: str, value: str) -> None:
        self.database.execute(f"SET {name} = '{value.replace(chr(39), chr(39) * 2)}'")

    def _encrypt(self) -> None:
        """Encrypt spilled data, with OpenSSL if DuckDB's extension for it is installed."""
        with contextlib.suppress(self._duckdb.Error):
            self.database.execute("SET autoinstall_known_extensions = false")
            self.database.execute("LOAD httpfs")
            self.database.execute("SET temp_file_encryption = true")
            return
        self.database.execute("SET force_mbedtls_unsafe = 'true'")
        self.database.execute("SET temp_file_encryption = true")

    # -- queries

    def query(self, text: str) -> pl.DataFrame:
        with _in_words():
            found = pl.from_arrow(self.database.sql(text).to_arrow_table())
        assert isinstance(found, pl.DataFrame)
        return found

    def view(self, text: str) -> str:
        name = self._fresh()
        with _in_words():
            self.database.execute(f"CREATE VIEW {name} AS {text}")
        return name

    def _stored(self, text: str) -> str:
        """A name for the stored result; what does not fit into memory is spilled, encrypted."""
        name = self._fresh()
        with _in_words():
            self.database.execute(f"CREATE TABLE {name} AS {text}")
        return name

    def _fresh(self) -> str:
        return f"shoal_{next(self._names)}"

    @contextlib.contextmanager
    def offered(self, frame: Any) -> Iterator[str]:
        """A name in SQL for a frame, or for what reads Arrow batches."""
        name = self._fresh()
        self.database.register(name, frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame)
        yield name
        self.database.unregister(name)

    def counted(self, rows: Rows, columns: Sequence[str]) -> pl.DataFrame:
        """Count by codes if a text column has few values, which takes less memory."""
        rows = rows.sooner(columns)
        if rows.before is not None:
            return self._summed(rows, columns)
        shown, made, kinds = [], [], dict(rows.kinds(columns))
        for name in columns:
            quoted = self.quote(name)
            values = self._few_values(rows, quoted) if kinds[name] == pl.String else None
            if values is None:
                shown.append(quoted)
                continue
            made.append(self._numbering(values))
            kinds[name] = pl.Enum(values)
            shown.append(f"CAST({quoted} AS {made[-1]}) AS {quoted}")
        listed = ", ".join([*shown, f"count(*) AS {_TIMES}"])
        found = self._grouped(f"SELECT {listed} FROM {rows.name} GROUP BY ALL", columns)
        found = found.cast(pl.Schema(kinds))
        for kind in made:
            self.database.execute(f"DROP TYPE {kind}")
        return found

    def _grouped(self, text: str, columns: Sequence[str]) -> pl.DataFrame:
        """The result of a grouping, fetched only if it fits into memory."""
        import pyarrow

        name = self._stored(text)
        refuse_too_many(int(self.query(f"SELECT count(*) AS n FROM {name}")["n"][0]), columns)
        found = self.query(f"SELECT * FROM {name}").rechunk()
        self.database.execute(f"DROP TABLE {name}")
        pyarrow.default_memory_pool().release_unused()  # was copied above
        return found

    def _few_values(self, rows: Rows, quoted: str) -> pl.Series | None:
        """The values of a text column in their order; None if there are too many."""
        found = self.query(
            f"SELECT DISTINCT {quoted} AS value FROM {rows.name} "
            f"WHERE {quoted} IS NOT NULL LIMIT {_MOST_LEVELS + 1}"
        )["value"]
        return found.sort() if 0 < len(found) <= _MOST_LEVELS else None

    def _numbering(self, values: pl.Series) -> str:
        """A new SQL type whose values are texts stored as codes."""
        kind = self._fresh()
        with self.offered(values.alias("value").to_frame()) as offered:
            self.database.execute(f"CREATE TYPE {kind} AS ENUM (SELECT value FROM {offered})")
        return kind

    def _summed(self, rows: Rows, columns: Sequence[str]) -> pl.DataFrame:
        """Count rows while functions make them."""
        times = pl.len().cast(pl.Int64).alias(_TIMES)
        counts = (
            frame.group_by(columns).agg(times) if columns else frame.select(times)
            for frame in self._frames(rows)
        )
        name = self._kept_table(counts, {**rows.kinds(columns), _TIMES: pl.Int64()})
        listed = ", ".join(
            [*(self.quote(n) for n in columns), f"sum({_TIMES})::BIGINT AS {_TIMES}"]
        )
        group = " GROUP BY ALL" if columns else ""
        found = self._grouped(f"SELECT {listed} FROM {name}{group}", columns)
        found = found.cast(rows.kinds(columns))
        self.database.execute(f"DROP TABLE {name}")
        return found.drop_nulls(_TIMES)

    def settled(self, rows: Rows, columns: Sequence[str]) -> Rows:
        rows = rows.sooner(columns)
        if rows.before is None:
            return rows
        kinds = rows.kinds(columns)
        frames = (frame.select(columns) for frame in self._frames(rows))
        return Rows(self, self._kept_table(frames, kinds), kinds)

    def collected(self, rows: Rows) -> pl.DataFrame:
        frames = list(self._frames(rows))
        if frames:
            return pl.concat(frames)
        return pl.DataFrame(schema=rows.all_kinds)

    # -- rows

    def source(self, given: Any) -> Rows:
        """A file or folder of Parquet, a CSV file, a table of a DuckDB file, or a relation."""
        if isinstance(given, (str, os.PathLike)) and not is_duckdb_file(given):
            return self._rows_of_path(Path(given))
        if isinstance(given, (str, os.PathLike)):
            given = DatabaseTable(os.fspath(given))
        if isinstance(given, DatabaseTable):
            with given.opened() as relation:
                return self._rows_of(relation)
        return self._rows_of(given)

    def _rows_of(self, given: Any) -> Rows:
        """The rows of a relation or a lazy frame, stored once with their keys."""
        self._lazy = isinstance(given, pl.LazyFrame)
        with _in_words(), self.offered(_reader_of(given)) as offered:
            name = self._stored(f"SELECT row_number() OVER () - 1 AS {ROW}, * FROM {offered}")
        return self._described(name)

    def _rows_of_path(self, path: Path) -> Rows:
        if is_text(path):
            return self._rows_of_text(path)
        if path.is_dir() or path.suffix.lower() in (".parquet", ".pq"):
            files = parquet_files(path)
            if not files:
                raise ReadError(f"There is no Parquet or CSV file in '{path}'.")
            return self.read(files, base=path)
        if not path.exists():
            raise ReadError(f"There is no file '{path}'. Check its name and the current folder.")
        raise ReadError(
            f"The engine 'duckdb' reads Parquet, CSV and DuckDB tables, not '{path.name}'. "
            "Convert the file to Parquet first."
        )

    def read(self, files: Sequence[Path], base: Path | None = None) -> Rows:
        """Parquet files; the key of a row is the number of its file and its place in it."""
        check_parquet(files)
        keys, without = _partitions(files, base) if base is not None and base.is_dir() else ({}, "")
        options = f"union_by_name = {len(files) > 1}, hive_partitioning = {bool(keys)}".lower()
        if keys:
            typed = ", ".join(f"{self.quote(name)}: {kind}" for name, kind in keys.items())
            options += f", hive_types = {{{typed}}}"
        import pyarrow.parquet as pq

        check_names(pq.read_schema(files[0]).names)
        name = self.view(
            f"SELECT ((file_index << 40) + file_row_number)::BIGINT AS {ROW}, *{without} "
            f"FROM read_parquet([{listed(map(str, files))}], {options})"
        )
        return self._described(name)

    def _rows_of_text(self, path: Path) -> Rows:
        """Text files, with the same types as when they are read in memory."""
        text = text_files(path, self._private)
        options = (
            f"all_varchar = true, header = true, delim = '{text.delimiter}', quote = '\"', "
            "escape = '\"', strict_mode = true, null_padding = false, "
            f"nullstr = [{listed(text.missing)}]"
        )
        raw = self._stored(
            f"SELECT row_number() OVER () - 1 AS {ROW}, * "
            f"FROM read_csv([{listed(map(str, text.files))}], {options})"
        )
        return self._described(self.view(typed_texts(self, raw, text.columns)))

    def _described(self, name: str) -> Rows:
        """The rows under a name, with one form of each value: −0.0 is 0.0, and NaN is missing."""
        sample = self.query(f"SELECT * FROM {name} LIMIT 0")
        check_names([n for n in sample.columns if n != ROW])
        shown, schema = [ROW], {}
        for column, kind in sample.drop(ROW).schema.items():
            quoted = self.quote(column)
            if kind.is_nested() or kind == pl.Binary or kind == pl.Object:
                raise InputError(
                    f"Column '{column}' holds {kind}, but a table supports only numbers, texts, "
                    "dates and times."
                )
            if kind.is_float():
                shown.append(
                    f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} + 0.0 END AS {quoted}"
                )
            elif isinstance(kind, (pl.Categorical, pl.Enum)):
                kind = pl.String()
                shown.append(f"CAST({quoted} AS VARCHAR) AS {quoted}")
            else:
                shown.append(quoted)
            schema[column] = kind
        return Rows(self, self.view(f"SELECT {', '.join(shown)} FROM {name}"), schema)

    def _frames(self, rows: Rows) -> Iterator[pl.DataFrame]:
        """The rows as frames, each with whole parts, in the order of their keys."""
        names = list(rows.all_kinds)
        if rows.before is not None and rows.function is not None:
            for frame in self._frames(rows.before):
                made = rows.function(frame)
                if made.height:
                    yield made.select(names)
            return
        text = f"SELECT {', '.join(map(self.quote, names))} FROM {rows.name}"
        frames = (frame.cast(rows.kinds(names[1:])) for frame in self._batches(text))
        yield from _group_by_group(frames, pl.col(ROW) // PART)

    def _batches(self, text: str) -> Iterator[pl.DataFrame]:
        """The result of a query, some rows at a time."""
        cursor = self.database.cursor()
        with _in_words():
            for batch in cursor.sql(text).to_arrow_reader(PART):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                if frame.height:
                    yield frame

    def mapped(
        self,
        rows: Rows,
        function: Function,
        schema: dict[str, pl.DataType],
        hidden: dict[str, pl.DataType],
        whole_parts: bool,
    ) -> Rows:
        """The function is applied when the rows are needed; it always gets whole parts."""
        return Rows(self, "", schema, hidden, before=rows, function=function)

    def _kept_table(self, frames: Iterator[pl.DataFrame], kinds: Mapping[str, pl.DataType]) -> str:
        """A name for the stored rows of frames."""
        import pyarrow

        schema = pl.DataFrame(schema=dict(kinds)).to_arrow().schema
        raised: list[BaseException] = []

        def batches() -> Iterator[Any]:
            try:
                for frame in frames:
                    yield from frame.select(list(kinds)).to_arrow().cast(schema).to_batches()
            except BaseException as error:  # DuckDB would hide which error it was
                raised.append(error)
                raise

        reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
        try:
            with _in_words(), self.offered(reader) as offered:
                return self._stored(f"SELECT * FROM {offered}")
        except Exception:
            if raised:
                raise raised[0] from None
            raise

    def chunked(
        self,
        rows: Rows,
        chunk_of: Function,
        function: Function,
        schema: Mapping[str, pl.DataType],
        hidden: Mapping[str, pl.DataType],
    ) -> Rows:
        chunk = HIDDEN + "chunk"
        kinds = {**rows.all_kinds, chunk: pl.Int64()}
        cut = self._kept_table(map(chunk_of, self._frames(rows)), kinds)
        count = int(self.query(f"SELECT count(DISTINCT {chunk}) AS n FROM {cut}")["n"][0])
        ordered = f"SELECT * FROM {cut} ORDER BY {chunk}, {ROW}"
        frames = (frame.cast(pl.Schema(kinds)) for frame in self._batches(ordered))
        made = self._watched(map(function, _group_by_group(frames, pl.col(chunk))), count)
        found = self._kept_table(made, {ROW: pl.Int64(), **schema, **hidden})
        self.database.execute(f"DROP TABLE {cut}")
        view = self._fresh()  # in the order of the keys again, as parts need them
        self.database.execute(f"CREATE VIEW {view} AS SELECT * FROM {found} ORDER BY {ROW}")
        return Rows(self, view, dict(schema), dict(hidden))

    def _watched(self, frames: Iterator[pl.DataFrame], count: int) -> Iterator[pl.DataFrame]:
        """The frames, with progress reported after each."""
        for number, frame in enumerate(frames):
            self.done((number + 1) / count)
            yield frame

    # -- a release

    def write(self, rows: Rows, place: Path, order: SecretStream, parts: int) -> None:
        shards = Shards(self._private / "shards", parts, order)
        done, most = 0, parts * ROWS_OF_A_PART
        for frame in self._frames(rows):
            shards.add(frame)
            done += frame.height
            self.done(0.7 * min(1.0, done / most))
        for number, frame in enumerate(shards.drain()):
            write_frame(frame, list(rows.schema), place, number)
            self.done(0.7 + 0.3 * (number + 1) / parts)

    def given_back(self, files: Sequence[Path]) -> Any:
        if self._lazy:
            return pl.scan_parquet([str(file) for file in files], glob=False)
        return self._duckdb.sql(f"SELECT * FROM read_parquet([{listed(map(str, files))}])")

    def close(self) -> None:
        self.database.close()


@dataclass(frozen=True)
class DatabaseTable:
    """The rows of a query on a DuckDB file, or of its only table."""

    place: str
    query: str | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        """The rows as a relation that is open during the block."""
        from shoal.errors import quoted
        from shoal.table.storage._sql import Duckdb, QueryFailed, database_file

        rest = self.place.partition("://")[2] or f"/{os.path.abspath(self.place)}"
        database = Duckdb(database_file(rest, self.place), self.place)
        try:
            names, query = database.tables(), self.query
            if query is None and len(names) == 1:
                query = 'SELECT * FROM "' + names[0].replace('"', '""') + '"'
            if query is None:
                raise ReadError(
                    f"'{self.place}' needs a query that selects what to read (--query). Its tables "
                    f"are {quoted(names)}."
                )
            yield database.relation(query)
        except QueryFailed as failure:
            raise ReadError(f"The query on '{self.place}' fails: {failure}.") from None
        finally:
            database.close()


def _partitions(files: Sequence[Path], base: Path) -> tuple[dict[str, str], str]:
    """The columns that folders below a source name, and those above it to leave out."""
    inside = {part for file in files for part in file.relative_to(base).parts[:-1]}
    keys, others = partition_kinds(inside), {*partition_kinds(base.absolute().parts)}
    import pyarrow.parquet as pq

    if keys and others & {*keys, *pq.read_schema(files[0]).names}:
        raise ReadError(
            "A folder above the source is named like a column ('column=value'), so DuckDB would "
            "put that value into every row. Rename the folder."
        )
    without = ", ".join(map(DuckDb.quote, sorted(others)))
    return keys, f" EXCLUDE ({without})" if keys and others else ""


def is_duckdb_file(source: Any) -> bool:
    """Whether a source is a DuckDB file, by its name or URI."""
    text = os.fspath(source).lower() if isinstance(source, (str, os.PathLike)) else ""
    return text.startswith("duckdb://") or text.endswith((".duckdb", ".ddb"))


def _group_by_group(frames: Iterator[pl.DataFrame], number: pl.Expr) -> Iterator[pl.DataFrame]:
    """The rows of frames group by group; the rows of a group are adjacent and have one number."""
    group = HIDDEN + "group"
    held: pl.DataFrame | None = None
    for frame in frames:
        numbered = frame.with_columns(number.alias(group))
        held = numbered if held is None else pl.concat([held, numbered])
        done = held[group] != held[group][-1]
        if done.any():
            yield from held.filter(done).partition_by(group, maintain_order=True, include_key=False)
            held = held.filter(~done)
    if held is not None:
        yield held.drop(group)


def _reader_of(given: Any) -> Any:
    """A relation or a lazy frame, batch by batch."""
    import duckdb
    import pyarrow

    if isinstance(given, duckdb.DuckDBPyRelation):
        return given.to_arrow_reader(PART)
    if isinstance(given, pl.LazyFrame):
        schema = given.collect_schema().to_frame().to_arrow().schema
        batches = (
            batch
            for frame in given.collect_batches(maintain_order=True)
            for batch in frame.to_arrow().cast(schema).to_batches()
        )
        return pyarrow.RecordBatchReader.from_batches(schema, batches)
    raise InputError(
        "The engine 'duckdb' reads a path, a DuckDB relation or a polars LazyFrame; got "
        f"{type(given).__name__}."
    )


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Replace errors of DuckDB with sentences that quote no cell."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise InputError(
            "DuckDB needs more memory than its limit. Raise 'memory_limit', or free disk space in "
            "the folder 'temporary'. Nothing was written."
        ) from None
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        full = "No space left" in str(error)
        raise ReadError(
            "The disk to which DuckDB spills is full. Free space there, or set 'temporary' to a "
            "folder on another disk. Nothing was written."
            if full
            else "DuckDB cannot read the source: a file is missing, damaged or in another format."
        ) from None
    except duckdb.Error as error:
        kind = type(error).__name__
        raise ReadError(f"DuckDB failed ({kind}). Nothing was written.") from None
