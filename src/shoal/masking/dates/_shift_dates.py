"""Dates moved by one secret number of days for each person."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np

from shoal.errors import DisclosureWarning, InputError, UnprotectedColumnWarning, quoted
from shoal.kernels.arrays import Integers
from shoal.masking._base import Masker, StepLog
from shoal.masking.dates._derived import derived_columns
from shoal.masking.identifiers._key_file import KeyFile, stream_of_file
from shoal.masking.identifiers._shapes import hashed_names, plain_texts
from shoal.parameters import ColumnNames, Flag, Integer, Secret
from shoal.randomness import SecretStream
from shoal.table import DAYS_OF_CALENDAR, Roles, Table, ends_of_members

_DATES: Final = ("date", "datetime")
#: From 9999-01-01 on: no date of a person, but what some systems write for none.
_NO_DATE: Final = 2_932_532
#: So many days to either side fit a datetime in nanoseconds.
_NANOSECONDS: Final = 106_751
#: A shift that moves a date onto another date of the same person is drawn again so often.
_DRAWS: Final = 100
#: More than all days of the calendar, and a shift.
_SPAN: Final = np.int64(1 << 24)
#: A date that so many persons share, and so large a part of them, shows their shifts.
_MANY: Final = 10
_PART: Final = 0.05
_MONTH = r"(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])"
_MONTH += r"(uary?|ruary?|ch|z|il|e|y|i|ust|t|t?ember|ober)?"
_YEAR, _MONTHS, _DAYS = r"(1[89]|2[01])\d\d", r"(0[1-9]|1[0-2])", r"(0[1-9]|[12]\d|3[01])"
_LIKE_A_DATE: Final = re.compile(
    rf"(\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|{_YEAR}{_MONTHS}{_DAYS}(?!\d)|{_YEAR}[-/]{_MONTHS}(?!\d)"
    rf"|\d{{1,2}}[-/. ]*{_MONTH}[-/., ]*\d{{2,4}}|{_MONTH}[-/., ]*(\d{{1,2}},? +)?\d{{4}}).*",
    re.IGNORECASE,
)
#: Whoever has so small a part of all shifts left for a person, or for many, has nearly found them.
_FOUND, _NARROWED = 0.02, 0.1
_LOOKED_AT: Final = 1000


@dataclass(kw_only=True)
class ShiftDates(Masker):
    """Move all dates of a person by one secret number of days.

    Each person of the declared unit, or each row where none is declared, has one shift between
    ``-days`` and ``days``, never 0. It moves every named column, so that the days between two dates
    of a person stay what they were. Datetimes move by days of 24 hours and keep their time, but for
    daylight saving in a time zone. Missing dates stay missing.

    Parameters
    ----------
    days : int
        The largest shift, to either side.
    weekdays : bool
        Shift by whole weeks, so that a Monday stays a Monday.
    columns : list of str, optional
        The dates to shift; all dates and datetimes of the release without it.
    key_file : str, optional
        The path of a key file, as for ``Pseudonymize``. A unit then has the same shift in every
        table with this key, ``days`` and ``weekdays``. Columns of the unit must not be
        pseudonymized in an earlier step.
    random_state : int, optional
        A seed, for tests only: whoever guesses it can undo every shift.

    References
    ----------
    Hripcsak, Mirhaji, Low, Malin (2016), Preserving temporal relations in clinical data while
    maintaining privacy <https://doi.org/10.1093/jamia/ocw001>, JAMIA 23(6).

    Examples
    --------
    >>> import datetime as dt
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> stays = pl.DataFrame(
    ...     {
    ...         "patient": [1, 2],
    ...         "admitted": [dt.date(2024, 2, 27), dt.date(2023, 5, 10)],
    ...         "left": [dt.date(2024, 3, 2), dt.date(2023, 5, 12)],
    ...     }
    ... )
    >>> table = Table(stays, Roles(unit="patient", quasi_identifiers=["admitted", "left"]))
    >>> shifted = ShiftDates(days=90).fit_transform(table).frame
    >>> (shifted["left"] - shifted["admitted"]).dt.total_days().to_list()
    [4, 2]
    >>> (shifted["left"] == stays["left"]).any()
    False
    """

    days: Annotated[int, Integer(minimum=7)] = 365
    weekdays: Annotated[bool, Flag()] = False
    columns: Annotated[list[str] | None, ColumnNames()] = None
    key_file: Annotated[str | None, KeyFile()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "shift_dates"
    summary = "moves all dates of a person by one secret number of days"
    reference = "Hripcsak et al. 2016"
    is_random = True
    kinds = _DATES

    @property
    def needs_columns(self) -> bool:
        """Without names it takes every date, whatever its role."""
        return False

    def identifiers_needed(self, roles: Roles) -> tuple[str, ...]:
        return roles.unit_columns if self.key_file is not None else ()

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        chosen = self._dates(table, columns, log)
        if not chosen:
            if self.columns is None:
                _warn("No column has dates, so ShiftDates moved none.", UnprotectedColumnWarning)
            return table
        dates = _Dates(table, chosen)
        shifts = self._shifts(table, dates, log)
        warn_of_shifts(table, chosen, self.days)
        log.touched.extend(chosen)
        return table.shifted(dict.fromkeys(chosen, shifts[table.persons]))

    def _dates(self, table: Table, columns: Sequence[str], log: StepLog) -> list[str]:
        """The columns with dates; of the others that were meant, why they are left."""
        for name in columns:
            if table.kind(name) not in _DATES:
                log.skipped[name] = f"{table.kind(name)}, not date or datetime"
        meant = columns if self.columns is not None else _released(table)
        found = [name for name in meant if table.kind(name) in _DATES]
        for name in found:
            if not table.present(name).any():
                log.skipped[name] = "no value present"
        return [name for name in found if name not in log.skipped]

    def _shifts(self, table: Table, dates: _Dates, log: StepLog) -> Integers:
        """The days by which each person is moved."""
        step = 7 if self.weekdays else 1
        low, high = dates.room(self.days, step)
        # 0 is between the two, and not among the shifts
        if stuck := int(np.count_nonzero(high - low < 1)):
            raise InputError(
                f"The dates of {stuck:,} persons span nearly the whole calendar, so no shift keeps "
                "them within the years 1 to 9999. Make such dates missing first."
            )
        if self.key_file is not None or log.stream is not None:
            return self._keyed(table, step, (low, high), log)
        stream = self._stream(table, log)
        shifts = step * _drawn(low, high, stream.derive("shifts"))
        again = dates.meeting(shifts, np.arange(dates.count))
        for draw in range(_DRAWS):
            if not len(again):
                break
            own = stream.derive("again", str(draw))
            shifts[again] = step * _drawn(low[again], high[again], own)
            again = dates.meeting(shifts, again)
        return shifts

    def _keyed(
        self, table: Table, step: int, room: tuple[Integers, Integers], log: StepLog
    ) -> Integers:
        """Shifts that depend on the key and the unit alone, so that other tables have the same.

        So have the parts of a table that an engine masks one by one.
        """
        unit, stream = table.roles.unit_columns, log.stream
        if self.key_file is not None:
            refuse_nameless_shifts(unit)
            stream = stream_of_file(self.key_file, log)
        assert stream is not None
        most = self.days // step
        key = bytes.fromhex(stream.derive("shifts", str(self.days), str(step)).key_hex)
        numbers = [int(one[1:], 16) % (2 * most) for one in hashed_names(_names(table, unit), key)]
        places = np.array(numbers, np.int64) - most
        places += places >= 0
        if beyond := int(np.count_nonzero((places < room[0]) | (places > room[1]))):
            raise InputError(
                f"The shifts of {beyond:,} persons lead out of the years 1 to 9999. With a key "
                "file no other shift is drawn. Make such dates missing first."
            )
        return step * places


def refuse_nameless_shifts(unit: Sequence[str]) -> None:
    """Raise InputError where a key file is to move a person alike, and no column says who it is."""
    if not unit:
        raise InputError(
            "ShiftDates with a key file needs the unit, whose rows are moved alike in every "
            'table. Declare unit = "..." in the roles, or leave out the key file.'
        )


def _names(table: Table, unit: Sequence[str]) -> list[str]:
    """What each person is called, by their numbers; a row that is a person, by its key."""
    if not unit:
        return [str(key) for key in table.row_key.tolist()]
    first = np.unique(table.persons, return_index=True)[1]
    parts = []
    for name in unit:
        texts = np.array([*plain_texts(table, name), ""], dtype=object)
        parts.append([f"{len(one)}:{one}" for one in texts[table.codes(name).codes[first]]])
    return ["".join(one) for one in zip(*parts, strict=True)]


def _drawn(low: Integers, high: Integers, stream: SecretStream) -> Integers:
    """One number from ``low`` to ``high`` for each person, which is not 0; all equally likely."""
    drawn = low + stream.integers_below(high - low)
    return drawn + (drawn >= 0)


class _Dates:
    """The days of some columns: of whom, and which, one after the other."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        owners, days = zip(*(_days_of(table, name) for name in columns), strict=True)
        self.owners, self.days = np.concatenate(owners), np.concatenate(days)
        self.count = int(table.persons.max(initial=-1)) + 1
        narrow = any(table.ticks(name)[1] > 10**12 for name in columns)
        self.calendar = (-_NANOSECONDS, _NANOSECONDS) if narrow else DAYS_OF_CALENDAR
        if count := int(np.count_nonzero(self.days >= _NO_DATE)):
            raise InputError(
                f"{count:,} cells of {quoted(columns)} lie in the year 9999, which stands for no "
                "date. A shift would move them as well, and show itself. Read them as missing."
            )

    def room(self, days: int, step: int) -> tuple[Integers, Integers]:
        """The lowest and highest number of steps by which each person can be moved."""
        earliest, latest = ends_of_members(self.owners, self.days.astype(float), self.count).T
        first = np.minimum(0, np.maximum(-days, self.calendar[0] - earliest)).astype(np.int64)
        last = np.maximum(0, np.minimum(days, self.calendar[1] - latest)).astype(np.int64)
        return -(-first // step), last // step

    def meeting(self, shifts: Integers, persons: Integers) -> Integers:
        """Which of some persons have a date now that is another of their own dates."""
        asked = np.zeros(self.count, np.bool_)
        asked[persons] = True
        rows = asked[self.owners]
        owners, days = self.owners[rows], self.days[rows]
        before = np.sort(owners * _SPAN + days)
        after = owners * _SPAN + days + shifts[owners]
        at = np.minimum(np.searchsorted(before, after), len(before) - 1)
        found = np.zeros(self.count, np.bool_)
        found[owners[before[at] == after]] = True
        return np.flatnonzero(found)


def _days_of(table: Table, name: str) -> tuple[Integers, Integers]:
    """The persons who have a date in a column, and the days of these dates."""
    ticks, per_day = table.ticks(name)
    there = table.present(name)
    return table.persons[there], ticks[there] // per_day


def _released(table: Table) -> list[str]:
    return [name for name in table.columns if name not in table.roles.withheld]


def _dates_left(table: Table, shifted: Sequence[str]) -> list[str]:
    """Columns that would leave with dates, or with texts that look like dates."""
    found = []
    for name in _released(table):
        if name in shifted or not table.present(name).any():
            continue
        if table.kind(name) in _DATES:
            found.append(name)
        elif table.kind(name) == "text":
            texts = table.codes(name).texts[:_LOOKED_AT]
            alike = sum(_LIKE_A_DATE.fullmatch(text.strip()) is not None for text in texts)
            if alike >= 0.9 * len(texts):
                found.append(name)
    return found


def warn_of_shifts(table: Table, shifted: Sequence[str], days: int) -> None:
    """Warn of dates that are not shifted, and of what shows by how much the others were."""
    left = _dates_left(table, shifted)
    if left:
        _warn(
            f"These columns have dates that are not shifted: {quoted(left)}. Beside shifted dates "
            "they are released as they were. Name them in the step, or drop them; read texts as "
            "dates.",
            UnprotectedColumnWarning,
        )
    common = [name for name in shifted if _most_shared(table, name) >= _MANY]
    if common:
        _warn(
            f"In {quoted(common)} one date belongs to many persons, such as a default or the start "
            "of a study. Whoever knows or guesses that date finds the shift of each of them. Make "
            "it missing, or drop the column.",
            DisclosureWarning,
        )
    narrow = {name: _nearly_found(table, name, days) for name in shifted if name not in common}
    if found := {name: count for name, count in narrow.items() if count}:
        told = "; ".join(f"{count:,} by '{name}'" for name, count in found.items())
        _warn(
            "The dates of some persons fill nearly the whole period of the table. Whoever knows "
            "that period, such as the year of a data set, can leave out nearly all shifts of "
            f"these numbers of persons: {told}. Make those dates missing or coarser, or drop the "
            "column.",
            DisclosureWarning,
        )
    derived = derived_columns(table, shifted, _released(table))
    if derived:
        told = "; ".join(f"'{name}' is {what}" for name, what in derived.items())
        _warn(
            f"Columns that are not shifted follow from dates that are: {told}. Together with the "
            "shifted dates they may show the shift, and so the true dates. Drop them, make them "
            "coarser, or compute them again from the shifted dates.",
            DisclosureWarning,
        )


def _most_shared(table: Table, name: str) -> int:
    """How many persons have the most frequent date, where that is a large part of them; else 0."""
    owners, days = _days_of(table, name)
    owned = np.sort(owners * _SPAN + days - days.min(initial=0))
    once = owned[np.append(True, owned[1:] != owned[:-1])] if len(owned) else owned
    most = int(np.bincount(once % _SPAN).max(initial=0))
    persons = np.count_nonzero(np.diff(once // _SPAN)) + 1
    return most if most >= _PART * persons else 0


def _nearly_found(table: Table, name: str, days: int) -> int:
    """How many persons few of the shifts keep within the first and the last date of a column."""
    owners, when = _days_of(table, name)
    first, last = ends_of_members(owners, when.astype(float), table.person_count).T
    owners = np.unique(owners)
    left = np.ptp(when) - (last[owners] - first[owners])
    few, some = (int(np.count_nonzero(left < part * 2 * days)) for part in (_FOUND, _NARROWED))
    return some if some >= _PART * len(left) else few


def _warn(text: str, category: type[Warning]) -> None:
    warnings.warn(text, category, stacklevel=6)
