"""Spark: tables larger than one machine, on the executors of a cluster.

The engine uses only frames, SQL and functions of Arrow batches, so Spark Connect works as well.
All executors must reach the private folder under the same path: the parts of a release are written
there, and so are sources whose rows Spark cannot number by itself. Nothing depends on where a row
is processed, so a task that runs again returns the same rows.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

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
    TextFiles,
    check_parquet,
    is_text,
    listed,
    parquet_files,
    partition_kinds,
    text_files,
    typed_texts,
)
from shoal.engines._parts import PLACE, SHARD, Placed, part_name
from shoal.engines._spark_tasks import (
    Chain,
    Written,
    applying,
    checking,
    held_kinds,
    held_schema,
    in_words,
    mapping,
)
from shoal.errors import DisclosureWarning, InputError, MissingExtra, ReadError
from shoal.randomness import SecretStream
from shoal.workflow import EngineSettings

_CHUNK = HIDDEN + "chunk"
_FILE = HIDDEN + "file"
#: Seconds between two looks at what the executors have written.
_GLANCE = 0.5
#: An escaped byte beyond ASCII in the name of a partition.
_ESCAPED = re.compile("%[89A-Fa-f][0-9A-Fa-f]")


class Spark(Engine):
    """An engine on a cluster.

    A given or running session is used and left running. Otherwise, one is started with
    ``settings.master``, and ``close`` stops it.
    """

    name = "spark"
    sign = "`"

    def __init__(self, settings: EngineSettings, private: Path, session: Any = None) -> None:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise MissingExtra("The engine 'spark'", "spark") from None
        self._settings, self._private = settings, private.absolute()
        self._session, self._started = session, False
        self._looked = False
        self._mark = f"shoal_{secrets.token_hex(8)}"
        self._views: list[str] = []
        self._kept: list[Any] = []
        self._stages: list[Path] = []

    @property
    def session(self) -> Any:
        """The Spark session, started when it is first needed."""
        if self._session is None:
            with in_words(), warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                self._session, self._started = _session(self._settings, self._private)
        if not self._looked:
            self._looked = True
            _warn_unless_encrypted(self._session)
        return self._session

    @contextlib.contextmanager
    def _working(self) -> Iterator[Any]:
        """Run Spark with plain errors and with jobs that ctrl-C cancels."""
        session = self.session
        with in_words(), warnings.catch_warnings(), self._cancelled_by_signal(session) as stopped:
            warnings.simplefilter("ignore", FutureWarning)  # Spark names versions of pandas
            session.addTag(self._mark)
            try:
                yield session
            except Exception:
                if stopped:  # Spark reports cancelled jobs as errors
                    raise KeyboardInterrupt from None
                raise
            except BaseException:
                self._cancel(session)
                raise
            finally:
                with contextlib.suppress(Exception):
                    session.removeTag(self._mark)

    def _cancel(self, session: Any) -> None:
        with contextlib.suppress(Exception):
            session.interruptTag(self._mark)

    @contextlib.contextmanager
    def _cancelled_by_signal(self, session: Any) -> Iterator[list[int]]:
        """Cancel jobs as soon as ctrl-C is pressed; Spark would wait until they end."""
        stopped: list[int] = []
        before = signal.getsignal(signal.SIGINT)
        here = threading.current_thread() is threading.main_thread()
        if not here or not callable(before):
            yield stopped
            return

        def cancel(number: int, frame: Any) -> None:
            stopped.append(number)
            logging.disable(logging.ERROR)  # calls to Java would log that they were stopped
            self._cancel(session)
            before(number, frame)

        disabled = logging.root.manager.disable
        signal.signal(signal.SIGINT, cancel)
        try:
            yield stopped
        finally:
            signal.signal(signal.SIGINT, before)
            logging.disable(disabled)

    # -- queries

    def query(self, text: str) -> pl.DataFrame:
        with self._working() as session:
            return _fetched(session.sql(text))

    def view(self, text: str) -> str:
        with self._working() as session:
            return self._named(session.sql(text))

    def _named(self, frame: Any) -> str:
        """A name for a frame in SQL."""
        name = f"{self._mark}_{len(self._views)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def counted(self, rows: Rows, columns: Sequence[str]) -> pl.DataFrame:
        """Count once, and fetch the combinations only if they fit into memory."""
        if not columns:
            return super().counted(rows, columns)
        names = rows._listed(columns)
        with self._working() as session:
            grouped = session.sql(
                f"SELECT {names}, count(*) AS {_TIMES} FROM {rows.name} GROUP BY {names}"
            ).persist()
            try:
                refuse_too_many(grouped.count(), columns)
                found = _fetched(grouped)
            finally:
                grouped.unpersist()
        return found.cast(rows.kinds(columns)).sort(columns)

    # -- rows

    def source(self, given: Any) -> Rows:
        """A file or folder of Parquet or CSV, the name of a table, or a Spark DataFrame."""
        if isinstance(given, (str, os.PathLike)):
            text = os.fspath(given)
            if not _is_table(text):
                return self._rows_of_path(text)
            with self._working() as session:
                return self._numbered(session.table(text))
        if not (hasattr(given, "sparkSession") and hasattr(given, "mapInArrow")):
            raise InputError(
                "The engine 'spark' reads a path to Parquet, the name of a table or a Spark "
                f"DataFrame; got {type(given).__name__}."
            )
        if self._session is not None and self._started:
            self._session.stop()
            self._started = False
        self._session = given.sparkSession
        with self._working():
            return self._numbered(given)

    def _rows_of_path(self, path: str) -> Rows:
        if os.path.exists(path) and is_text(Path(path)):
            return self._rows_of_text(Path(path))
        if Path(path).suffix.lower() not in ("", ".parquet", ".pq") and not os.path.isdir(path):
            raise ReadError(
                "The engine 'spark' reads Parquet, tables, and CSV that this machine can open, not "
                f"'{Path(path).name}'. Convert it to Parquet, or pass a DataFrame from spark.read."
            )
        if not os.path.exists(path):
            return self._read([path], merged=True)
        files = parquet_files(Path(path))
        if not files:
            raise ReadError(f"There is no Parquet or CSV file in '{path}'.")
        check_parquet(files)
        if any(_ESCAPED.search(str(file.relative_to(path).parent)) for file in files):
            raise ReadError(
                "A folder name of the source has escaped letters ('%E4'), which Spark decodes "
                "differently. Write the letters themselves, or use the engine 'duckdb'."
            )
        return self._read([_address(Path(path))], merged=True, only="*.parquet")

    def _rows_of_text(self, path: Path) -> Rows:
        """Text files, with the same types as when they are read in memory."""
        text = text_files(path, self._private)
        options = {
            "header": True,
            "sep": text.delimiter,
            "quote": '"',
            "escape": '"',
            "multiLine": True,
            "mode": "FAILFAST",
            "enforceSchema": False,
            "encoding": "UTF-8",
            "maxCharsPerColumn": -1,
        }
        names = ", ".join(f"{self.quote(column.name)} STRING" for column in text.columns)
        with self._working() as session:
            self._check_records(text)
            read = session.read.options(**options).schema(names)
            frame = read.csv([_address(file) for file in text.files])
            shown = [
                f"CASE WHEN {self.quote(c.name)} IN ({listed(text.missing)}) THEN NULL "
                f"ELSE {self.quote(c.name)} END AS {self.quote(c.name)}"
                for c in text.columns
            ]
            raw = self._numbered(frame.selectExpr(*shown))
            return self._described(session.sql(typed_texts(self, raw.name, text.columns)))

    def _check_records(self, text: TextFiles) -> None:
        """Check every text file in a task, since Spark itself accepts unclosed quotes."""
        import pyarrow

        files = self.session.createDataFrame(pyarrow.table({_FILE: [str(f) for f in text.files]}))
        look = checking(text.delimiter, len(text.columns))
        _fetched(files.mapInArrow(look, f"{_TIMES} BIGINT"))

    def read(self, files: Sequence[Path]) -> Rows:
        return self._read([_address(Path(file)) for file in files], merged=False)

    def _read(self, paths: Sequence[str], *, merged: bool, only: str = "*") -> Rows:
        """Parquet files; the key of a row is the number of its file and its place in it."""
        import pyarrow
        from pyspark.sql import functions

        with self._working() as session:
            reader = session.read.options(mergeSchema=merged, pathGlobFilter=only)
            frame = reader.parquet(*paths)
            check_names(frame.columns)
            if merged:
                frame = _with_partitions(frame, reader, paths[0])
            about = frame.metadataColumn("_metadata")
            frame = frame.withColumns(
                {_FILE: about.getField("file_path"), ROW: about.getField("row_index")}
            )
            files = _fetched(frame.select(_FILE).distinct())[_FILE].sort().to_list()
            if len(files) > 1:
                numbers = session.createDataFrame(
                    pyarrow.table({_FILE: files, SHARD: list(range(len(files)))})
                )
                frame = frame.join(functions.broadcast(numbers), _FILE)
                key = functions.expr(f"shiftleft({SHARD}, 40) + {ROW}")
                frame = frame.withColumn(ROW, key).drop(SHARD)
            return self._described(frame.drop(_FILE))

    def _numbered(self, frame: Any) -> Rows:
        """Rows of any origin, stored once with their keys, so that the keys do not change."""
        from pyspark.sql import functions

        check_names(frame.columns)
        _refuse_types(frame)
        stage = self._private / f"source-{len(self._stages)}"
        self._stages.append(stage)
        stage.mkdir(mode=0o700)
        keyed = frame.withColumn(ROW, functions.monotonically_increasing_id())
        address = _address(stage / "rows")  # Spark sets its own modes on what it creates
        keyed.write.mode("overwrite").option("compression", "zstd").parquet(address)
        return self._described(self.session.read.parquet(address))

    def _described(self, frame: Any) -> Rows:
        """Rows with one form of each value: −0.0 is 0.0, NaN is missing, texts are plain."""
        from pyspark.sql import functions
        from pyspark.sql.types import DoubleType, FloatType, StringType

        _refuse_types(frame)
        shown = []
        for column in frame.schema.fields:
            quoted, kind = self.quote(column.name), column.dataType
            text = quoted
            if isinstance(kind, (FloatType, DoubleType)):
                zero = f"CAST(0 AS {kind.simpleString()})"
                text = (
                    f"CASE WHEN isnan({quoted}) THEN NULL WHEN {quoted} = {zero} THEN {zero} "
                    f"ELSE {quoted} END"
                )
            elif isinstance(kind, StringType):
                text = f"CAST({quoted} AS STRING)"
            shown.append(functions.expr(text).alias(column.name))
        frame = frame.select(*shown)
        kinds = _fetched(frame.limit(0)).schema
        schema = {name: kind for name, kind in kinds.items() if name != ROW}
        return Rows(self, self._named(frame), schema)

    def mapped(
        self,
        rows: Rows,
        function: Function,
        schema: dict[str, pl.DataType],
        hidden: dict[str, pl.DataType],
        whole_parts: bool,
    ) -> Rows:
        """The function is applied when the rows are needed, together with those before it."""
        made = Rows(self, "", schema, hidden, before=rows, function=function)
        with self._working():
            if whole_parts:
                frame = self._grouped(rows, f"{ROW} div {PART}", function, made.all_kinds)
                made = replace(made, before=None, function=None)
            else:
                base, chain = Chain.to(made)
                frame = self._frame(base).mapInArrow(mapping(chain), held_schema(chain.made))
            return replace(made, name=self._named(frame))

    def _frame(self, rows: Rows) -> Any:
        """The rows as a Spark DataFrame; the columns of the table are numbered instead of named.

        Functions of batches do not support column names with a dot.
        """
        kinds = rows.all_kinds
        ours = [name for name in kinds if name.startswith(HIDDEN) and name.isidentifier()]
        shown = [
            self.quote(name) if name in ours else f"{self.quote(name)} AS c{place}"
            for place, name in enumerate(kinds)
        ]
        return self.session.table(rows.name).selectExpr(*shown)

    def _grouped(
        self, rows: Rows, number: str, function: Function, kinds: Mapping[str, pl.DataType]
    ) -> Any:
        """What a function returns for all rows with one number, for each number."""
        from pyspark.sql import functions

        chain = Chain(rows.all_kinds, ((function, kinds),))
        groups = self._frame(rows).groupBy(functions.expr(number))
        return groups.applyInArrow(applying(chain), held_schema(kinds))

    def chunked(
        self,
        rows: Rows,
        chunk_of: Function,
        function: Function,
        schema: Mapping[str, pl.DataType],
        hidden: Mapping[str, pl.DataType],
    ) -> Rows:
        """Each chunk is masked once and stored, and again only if its executor is lost."""
        cut = rows.mapped(chunk_of, hidden={**rows.hidden, _CHUNK: pl.Int64()})
        made = Rows(self, "", schema, hidden)
        with self._working():
            frame = self._grouped(cut, _CHUNK, function, made.all_kinds).persist()
            self._kept.append(frame)
            return replace(made, name=self._named(frame))

    @contextlib.contextmanager
    def offered(self, frame: pl.DataFrame) -> Iterator[str]:
        held = frame.cast(pl.Schema(held_kinds(frame.schema)))
        with self._working() as session:
            name = self._named(session.createDataFrame(held.to_arrow()))
        yield name

    # -- a release

    def write(self, rows: Rows, place: Path, order: SecretStream, parts: int) -> None:
        place = place.absolute()
        for half in ("public", "private"):
            (place / half).mkdir(mode=0o700, parents=True)
        hidden = {**rows.hidden, PLACE: pl.Int64(), SHARD: pl.Int64()}
        placed = rows.mapped(Placed(order.key_hex, parts), hidden=hidden)
        sizes: dict[str, pl.DataType] = {SHARD: pl.Int64(), _TIMES: pl.Int64()}
        writing = Written(str(place), tuple(rows.schema))
        with self._working(), self._watched(place / "public", parts):
            done = _fetched(self._grouped(placed, SHARD, writing, sizes))
        for attempt in place.glob("attempt-*"):  # of lost tasks
            shutil.rmtree(attempt, ignore_errors=True)
        for number, part in enumerate(done[SHARD].sort().to_list()):
            for half in ("public", "private"):
                self._renumber(place / half, part, number)

    @contextlib.contextmanager
    def _watched(self, folder: Path, parts: int) -> Iterator[None]:
        """Report how many parts exist while they are written."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(_GLANCE):
                self.done(min(1.0, len(list(folder.iterdir())) / parts))

        watching = threading.Thread(target=look, daemon=True)
        if self.progress is not None:
            watching.start()
        try:
            yield
        finally:
            over.set()
            if self.progress is not None:
                watching.join()

    def _renumber(self, folder: Path, old: int, new: int) -> None:
        """Renumber a part without gaps; a missing part was written to another folder."""
        if not (folder / part_name(old)).exists():
            raise InputError(
                "The executors wrote the parts where this process cannot find them. Set "
                "'temporary' to a folder that all machines share. Nothing was written."
            )
        (folder / part_name(old)).replace(folder / part_name(new))

    def given_back(self, files: Sequence[Path]) -> Any:
        with self._working() as session:
            return session.read.parquet(*(_address(Path(file)) for file in files))

    def close(self) -> None:
        if self._session is not None:
            for frame in self._kept:
                with contextlib.suppress(Exception):
                    frame.unpersist()
            for name in self._views:
                with contextlib.suppress(Exception):
                    self._session.catalog.dropTempView(name)
            if self._started:
                with contextlib.suppress(Exception):
                    self._session.stop()
        for folder in (*self._stages, self._private / "spill"):
            shutil.rmtree(folder, ignore_errors=True)
        self._kept, self._views, self._stages = [], [], []
        self._session, self._started = None, False


def _fetched(frame: Any) -> pl.DataFrame:
    """All rows of a Spark DataFrame."""
    found = pl.from_arrow(frame.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found


def _is_table(text: str) -> bool:
    """Whether a text names a table and not a file."""
    known = (".parquet", ".pq", ".csv", ".tsv", ".gz", ".json", ".orc", ".xlsx", ".txt", ".db")
    return "/" not in text and not os.path.exists(text) and not text.lower().endswith(known)


def _address(path: Path) -> str:
    """A path of this machine for Spark, with all wildcards escaped."""
    return "file://" + re.sub(r"([\[\]{}*?,\\])", r"\\\1", str(path.absolute()))


def _with_partitions(frame: Any, reader: Any, path: str) -> Any:
    """The frame with partition columns in the types that DuckDB uses."""
    from pyspark.sql import types

    sorts = {"BIGINT": types.LongType, "DOUBLE": types.DoubleType, "VARCHAR": types.StringType}
    place = re.sub(
        "^[a-z0-9+.-]+://[^/]*", "", path
    )  # not parsed as a URL, since it is not escaped like one
    above = len(PurePosixPath(os.path.normpath(place)).parts)
    files = [PurePosixPath(unquote(urlsplit(file).path)) for file in frame.inputFiles()]
    kinds = partition_kinds({part for file in files for part in file.parts[above:-1]})
    schema = types.StructType(
        [
            types.StructField(f.name, sorts[kinds[f.name]]() if f.name in kinds else f.dataType)
            for f in frame.schema.fields
        ]
    )
    changed = kinds and [f.dataType for f in schema] != [f.dataType for f in frame.schema]
    return reader.schema(schema).parquet(path) if changed else frame


def _refuse_types(frame: Any) -> None:
    """Raise InputError for a column whose values are not numbers, texts, dates or times."""
    from pyspark.sql import types

    fine = (
        types.NumericType,
        types.StringType,
        types.BooleanType,
        types.DateType,
        types.TimestampType,
        types.TimestampNTZType,
        types.DayTimeIntervalType,
        *([types.TimeType] if hasattr(types, "TimeType") else []),
    )
    for column in frame.schema.fields:
        if not isinstance(column.dataType, fine):
            raise InputError(
                f"Column '{column.name}' holds {column.dataType.simpleString()}, but a table "
                "supports only numbers, texts, dates and times."
            )


def _session(settings: EngineSettings, private: Path) -> tuple[Any, bool]:
    """The running session or a new one, and whether it is new."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
    if running is not None:
        return running, False
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("shoal")
    if settings.master is not None and settings.master.startswith("sc://"):
        return builder.remote(settings.master).getOrCreate(), True
    submitted = any(name in os.environ for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"))
    if settings.master is not None or not submitted:
        builder = builder.master(settings.master or "local[*]")
    for name, value in _options(settings, private).items():
        builder = builder.config(name, value)
    with _own_signals():
        return builder.getOrCreate(), True


def _warn_unless_encrypted(session: Any) -> None:
    """Warn if a given session spills rows unencrypted."""
    with contextlib.suppress(Exception):  # a client may not know the settings of its server
        if session.conf.get("spark.io.encryption.enabled", "false") != "true":
            warnings.warn(
                "This Spark session spills and shuffles rows unencrypted. Start it with "
                "spark.io.encryption.enabled = true, or make sure its local disks are encrypted.",
                DisclosureWarning,
                stacklevel=5,
            )


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handler of ctrl-C; Spark would install its own, which outlives the session."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _options(settings: EngineSettings, private: Path) -> dict[str, str]:
    """The settings of our own session: spilled data is encrypted, and nothing is logged."""
    spill = private / "spill"
    spill.mkdir(mode=0o700, exist_ok=True)
    options = {
        "spark.io.encryption.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",  # a message of Spark may quote a cell
        "spark.eventLog.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(spill / "warehouse"),
        "spark.driver.maxResultSize": "0",
        "spark.driver.memory": f"{memory_of(settings.memory_limit or '2GB') >> 20}m",
    }
    if (settings.master or "local").startswith("local"):
        options |= {"spark.local.dir": str(spill), "spark.driver.host": "127.0.0.1"}
    return options
