"""Functions that apply to rows what a step learned, wherever an engine has the rows.

They are sent to the workers of a cluster, so each is plain data that can be pickled. A key in it
is a secret of the release: it travels to the workers but is never written.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.engines._engine import HIDDEN, PART, ROW, Function, as_frame, as_table
from shoal.errors import RequirementNotMet, ShoalWarning
from shoal.kernels.arrays import Integers
from shoal.masking import Masker, hashed_names
from shoal.randomness import SecretStream, laplace_grid
from shoal.table import Roles, Table
from shoal.table.storage._types import as_text

_ROOM = 1 << 62


@dataclass(frozen=True)
class Together:
    """Which rows are drawn or removed as a whole: those of a person or a household.

    ``columns`` identify the person or household. A row without one of these values is on its own,
    and so is every row if there are no columns.
    """

    columns: tuple[str, ...] = ()
    #: If persons and households overlap: each pair with the number of its connected rows.
    parts: pl.DataFrame | None = None

    def numbers(self, frame: pl.DataFrame) -> Integers:
        """A number for each row, equal for rows that belong together."""
        keys = frame[ROW].to_numpy()
        if not self.columns:
            return keys
        named = frame.select(self.columns)
        if self.parts is not None:
            placed = named.join(
                self.parts, on=self.columns, how="left", nulls_equal=True, maintain_order="left"
            )
            return placed[WHOLE].to_numpy()
        alone = named.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        mixed = named.hash_rows(seed=0).to_numpy().view(np.int64)
        return np.where(alone, keys, mixed)

    def all_of(self, named: pl.DataFrame) -> pl.DataFrame:
        """The column values of all persons or households that belong together with ``named``."""
        if self.parts is None:
            return named.select(self.columns).drop_nulls()
        met = self.parts.join(named, on=self.columns, how="semi", nulls_equal=True).select(WHOLE)
        return self.parts.join(met, on=WHOLE, how="semi").select(self.columns)


#: The column of :class:`Together` that has the numbers.
WHOLE = HIDDEN + "whole"


@dataclass(frozen=True)
class Below:
    """Keep the rows whose keyed hash is below a bound; rows that belong together have one hash."""

    key: str
    bound: int
    purpose: str = "sample"
    together: Together = Together()

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        if self.bound >= 1 << 64:
            return frame
        stream = SecretStream.from_key_hex(self.key)
        hashes = stream.keyed_hash(self.together.numbers(frame), self.purpose)
        return frame.filter(pl.Series(hashes < np.uint64(self.bound)))


@dataclass(frozen=True)
class Hashed:
    """The hash of each key as a signed number, in the same order."""

    key: str
    together: Together = Together()

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream = SecretStream.from_key_hex(self.key)
        hashes = stream.keyed_hash(self.together.numbers(frame), "sample")
        return frame.select(pl.col(ROW), _in_order(hashes).alias(HIDDEN + "place"))


def _in_order(hashes: npt.NDArray[np.uint64]) -> pl.Series:
    """Hashes as signed numbers, in the same order."""
    return pl.Series((hashes ^ np.uint64(1 << 63)).view(np.int64))


class InStrata:
    """Keep a quota of rows of each stratum: those with the smallest keyed hashes.

    ``bounds`` has the hash of the last row to keep in each stratum. Without bounds, the function
    returns the stratum, quota and hash of each row, from which they follow.
    """

    def __init__(self, key: str, strata: Keys, quotas: Integers) -> None:
        self.key, self.strata, self.quotas = key, strata, quotas
        self.bounds: npt.NDArray[np.uint64] | None = None

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream = SecretStream.from_key_hex(self.key)
        hashes = stream.keyed_hash(frame[ROW].to_numpy(), "sample")
        stratum = self.strata.of(frame)
        quota = self.quotas[stratum]
        if self.bounds is not None:
            return frame.filter(pl.Series((quota > 0) & (hashes <= self.bounds[stratum])))
        return frame.select(
            pl.col(ROW),
            pl.Series(HIDDEN + "stratum", stratum),
            pl.Series(HIDDEN + "quota", quota),
            _in_order(hashes).alias(HIDDEN + "place"),
        )


class Levels:
    """The counted values of a column; the code of a value is its place."""

    def __init__(self, table: Table, name: str) -> None:
        self.name, self.values = name, table.codes(name).levels
        self.missing = len(self.values)
        self.count = self.missing + 1

    def of(self, cells: pl.Series) -> Integers:
        """The code of each cell; an error for a value that was not counted."""
        values = self.values
        if not values.dtype.is_nested() and values.dtype.is_numeric():
            known = values.to_numpy()
            given = cells.cast(values.dtype).fill_null(values[0] if len(values) else 0).to_numpy()
            found = np.searchsorted(known, given)
            wrong = len(known) == 0 or (known[np.minimum(found, len(known) - 1)] != given).any()
            codes = np.where(cells.is_null().to_numpy(), self.missing, found).astype(np.int64)
            if wrong and (cells.len() > cells.null_count()):
                raise _uncounted(self.name)
            return codes
        numbers = pl.Series(np.arange(len(values), dtype=np.int64))
        coded = cells.cast(values.dtype).replace_strict(
            values, numbers, default=None, return_dtype=pl.Int64
        )
        if coded.null_count() != cells.null_count():
            raise _uncounted(self.name)
        return coded.fill_null(self.missing).to_numpy()


def _uncounted(name: str) -> RequirementNotMet:
    return RequirementNotMet(
        f"Column '{name}' has a value that it did not have when it was counted: the source changed "
        "while it was read. Nothing was written. Run it again when the source no longer changes."
    )


class Keys:
    """Numbers for combinations of columns: equal where the combinations are.

    ``first`` has a row of the table for each known combination, in their order.
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self.levels = [Levels(table, name) for name in columns]
        self._stages: dict[int, Integers] = {}
        rows = table.group(columns).first_rows
        numbers, room = np.zeros(len(rows), np.int64), 1
        for place, levels in enumerate(self.levels):
            if room * levels.count >= _ROOM:
                self._stages[place] = np.unique(numbers)
                numbers = np.searchsorted(self._stages[place], numbers)
                room = len(self._stages[place])
            numbers = numbers * levels.count + table.codes(levels.name).codes[rows]
            room *= levels.count
        order = np.argsort(numbers)
        self.known, self.first = numbers[order], rows[order]

    def of(self, frame: pl.DataFrame) -> Integers:
        """Which of the known combinations each row has."""
        numbers = np.zeros(frame.height, np.int64)
        for place, levels in enumerate(self.levels):
            if place in self._stages:
                numbers = _found(self._stages[place], numbers, levels.name)
            numbers = numbers * levels.count + levels.of(frame[levels.name])
        return _found(self.known, numbers, self.levels[-1].name if self.levels else "")


def _found(known: Integers, numbers: Integers, name: str) -> Integers:
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    if (known[places] != numbers).any():
        raise _uncounted(name)
    return places


class ByCombination:
    """Give each row the masked values of its combination, or remove it.

    Parameters
    ----------
    tally, masked : Table
        The combinations before and after a step; missing ones were removed.
    columns : list of str
        The columns that decide how a row is masked.
    touched : list of str
        The columns that changed.
    """

    def __init__(
        self, tally: Table, masked: Table, columns: Sequence[str], touched: Sequence[str]
    ) -> None:
        self.keys = Keys(tally, columns)
        row, of_row = masked.rows_of_keys(tally.row_key), tally.group(columns).labels
        left, last = row >= 0, np.full(len(self.keys.known), -1)
        last[of_row[left]] = row[left]
        last = last[of_row[self.keys.first]]  # a remaining row, if there is one
        self.kept = last >= 0
        self.dropped = [name for name in touched if name not in masked.columns]
        shown = [name for name in touched if name in masked.columns]
        self.cells = {
            name: (masked.codes(name).codes[np.maximum(last, 0)], masked.codes(name).levels)
            for name in shown
            if name in columns
        }
        self.blank = {
            name: _blanked(tally, masked, row, of_row, name)[of_row[self.keys.first]]
            for name in shown
            if name not in columns
        }
        #: The owners whose rows are removed as a whole, and the columns that identify them.
        self.gone: pl.DataFrame | None = None
        self.touches, self.drops = tuple(touched), len(masked) < len(tally)

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        combination = self.keys.of(frame)
        new = []
        for name, (codes, levels) in self.cells.items():
            new.append(_taken(levels, codes[combination]).alias(name))
        for name, blank in self.blank.items():
            kept = pl.Series(~blank[combination])
            new.append(pl.select(pl.when(kept).then(frame[name])).to_series().alias(name))
        frame = frame.with_columns(new).drop(self.dropped)
        if self.drops:
            frame = frame.filter(pl.Series(self.kept[combination]))
        return frame if self.gone is None else without_owners(frame, self.gone)


def _blanked(
    tally: Table, masked: Table, row: Integers, of_row: npt.NDArray[Any], name: str
) -> npt.NDArray[np.bool_]:
    """The combinations in which a column was emptied."""
    here = row >= 0
    emptied = np.zeros(len(tally), np.bool_)
    emptied[here] = tally.present(name)[here] & ~masked.present(name)[row[here]]
    found = np.zeros(int(of_row.max(initial=0)) + 1, np.bool_)
    found[of_row[emptied]] = True
    return found


def _taken(levels: pl.Series, codes: npt.NDArray[Any]) -> pl.Series:
    """The values of codes; missing if a code is beyond the levels."""
    place = codes.astype(np.int64)
    if not len(levels):
        return pl.Series([None], dtype=levels.dtype).new_from_index(0, len(place))
    missing = place >= len(levels)
    taken = levels.gather(np.where(missing, 0, place))
    if not missing.any():
        return taken
    return pl.select(pl.when(pl.Series(~missing)).then(taken)).to_series()


@dataclass(frozen=True)
class Served:
    """Map each row by itself with a fitted step."""

    step: Masker
    roles: Roles
    #: The columns that it changes, with their new types.
    kinds: Mapping[str, pl.DataType]
    drops: bool = False

    @property
    def touches(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        hidden = [name for name in frame.columns if name.startswith(HIDDEN)]
        masked = self.step.transform(as_table(frame, self.roles))
        out: pl.DataFrame = masked.frame
        return out.cast(pl.Schema(self.kinds)).with_columns(frame[name] for name in hidden)


@dataclass(frozen=True)
class Emptied:
    """Remove rows that meet a condition, and those of some owners; with ``met``, all others."""

    where: str
    roles: Roles
    met: bool = False
    gone: pl.DataFrame | None = None

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        holds = as_table(frame, self.roles).matching(self.where)
        left = frame.filter(pl.Series(holds == self.met))
        return left if self.gone is None else without_owners(left, self.gone)


def without_owners(frame: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """The rows without those of some persons or households."""
    return frame.join(gone, on=gone.columns, how="anti", nulls_equal=True, maintain_order="left")


@dataclass(frozen=True)
class PersonNames:
    """Add a column with a pseudonym for the person of each row.

    It is a hash of 80 bits with a key in the private half, so no two persons get the same
    pseudonym.
    """

    key: str
    unit: tuple[str, ...]
    called: str

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.called,)

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        persons, place = frame.select(self.unit).unique(), HIDDEN + "name"
        texts = pl.DataFrame([as_text(persons[name]) for name in self.unit])
        written = texts.to_struct().struct.json_encode()
        names = hashed_names(written.to_list(), bytes.fromhex(self.key))
        named = persons.with_columns(pl.Series(place, names))
        found = frame.join(named, on=self.unit, how="left", maintain_order="left")
        return found.with_columns(pl.col(place).alias(self.called))


@dataclass(frozen=True)
class Lost:
    """The rows that another function removes."""

    function: Function

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(self.function(frame).select(ROW), on=ROW, how="anti")


@dataclass(frozen=True)
class Noise:
    """Add Laplace noise to the rows of whole parts, scaled by the range of their class."""

    key: str
    method: str
    epsilon: float
    by: tuple[str, ...]
    #: For each column, the range of each class, and the lowest and highest of all values.
    ranges: Mapping[str, tuple[pl.DataFrame, float, float]]
    #: The new types of these columns.
    kinds: Mapping[str, pl.DataType]

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream = SecretStream.from_key_hex(self.key)
        tiny = np.finfo(np.float64).tiny
        new = []
        for name, (ranges, low, high) in self.ranges.items():
            if self.by:
                found = frame.select(self.by).join(
                    ranges, on=self.by, how="left", nulls_equal=True, maintain_order="left"
                )
                widths = (found["high"] - found["low"]).fill_null(0.0).to_numpy()
            else:
                widths = np.full(frame.height, high - low)
            scales = np.maximum(np.where(widths > 0, widths, high - low) / self.epsilon, tiny)
            least = self._least(ranges, high - low)
            grid = laplace_grid([low, high], [least, (high - low) / self.epsilon])
            present = frame[name].is_not_null().to_numpy()
            cells = frame[name].cast(pl.Float64).fill_null(0.0).to_numpy().copy()
            part = str(int(frame[ROW][0]) // PART)
            own = stream.derive(self.method, name, part)
            cells[present] = own.laplace_on_grid(cells[present], scales[present], grid=grid)
            kind = self.kinds[name]
            noisy = pl.Series(name, cells).set(pl.Series(~present), None)
            noisy = noisy.round(kind.scale) if isinstance(kind, pl.Decimal) else noisy
            new.append(noisy.cast(kind))
        return frame.with_columns(new)

    def _least(self, ranges: pl.DataFrame, whole: float) -> float:
        widths = (ranges["high"] - ranges["low"]).drop_nulls()
        widths = widths.filter(widths > 0)
        least = float(widths.min()) if len(widths) else whole  # type: ignore[arg-type]
        return max(least / self.epsilon, np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Redrawn:
    """Keep a category with a probability, or else draw one by their frequencies."""

    key: str
    method: str
    keep: float
    #: For each column, its values and their numbers of records.
    counts: Mapping[str, tuple[pl.Series, Integers]]

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream = SecretStream.from_key_hex(self.key)
        part = str(int(frame[ROW][0]) // PART)
        new = []
        for name, (values, counts) in self.counts.items():
            own = stream.derive(self.method, name, part)
            bounds = np.cumsum(counts)
            places = own.integers_below(np.full(frame.height, bounds[-1]))
            drawn = values.gather(np.searchsorted(bounds, places, side="right"))
            redrawn = pl.Series(own.uniform(frame.height) >= self.keep) & frame[name].is_not_null()
            new.append(pl.select(pl.when(redrawn).then(drawn).otherwise(frame[name])).to_series())
        return frame.with_columns(s.alias(n) for s, n in zip(new, self.counts, strict=True))


@dataclass(frozen=True)
class InChunk:
    """Run a step on all rows of a chunk, with its own random numbers."""

    step: Masker
    roles: Roles
    key: str
    number: int
    #: Columns that become text in every chunk, even if a chunk does not change them.
    texts: tuple[str, ...] = ()

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        chunk = HIDDEN + "chunk"
        frame = frame.sort(ROW)
        whole = SecretStream.from_key_hex(self.key, origin="entropy")
        stream = whole.derive("chunk", str(frame[chunk][0]))
        hidden = [n for n in frame.columns if n.startswith(HIDDEN) and n not in (ROW, chunk)]
        table = as_table(frame, self.roles)
        step = copy.copy(self.step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            masked = step.fit_transform(table, stream=stream)
        out = as_frame(masked).with_columns(frame[name] for name in hidden)
        out = out.with_columns(as_text(out[name]) for name in self.texts)
        first = f"{HIDDEN}{self.number}_"
        more = [pl.Series(first + "chunk", frame[chunk])]
        for place, exchange in enumerate(masked.exchanges):
            more.append(pl.Series(f"{first}group_{place}", exchange.groups.astype(np.int64)))
            more.append(pl.Series(f"{first}source_{place}", exchange.source))
        return out.with_columns(more)
