"""Tables of a fixed recipe: the same cells on every machine, under every version of any library.

No generator of a library takes part. A column comes from :func:`draws`, which mixes the number of
the row and the name of the column.
"""

from __future__ import annotations

import datetime as dt
import functools
import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal import Roles, Table

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def draws(name: str, rows: int) -> npt.NDArray[np.uint64]:
    """One number of 64 bits for each row: SplitMix64 (Steele, Lea, Flood 2014), from the name."""
    start = np.uint64(zlib.crc32(name.encode()) + 1)
    with np.errstate(over="ignore"):
        mixed = (np.arange(1, rows + 1, dtype=np.uint64) + start) * _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def whole(name: str, rows: int, below: int) -> npt.NDArray[np.int64]:
    """Whole numbers from 0 to below a bound, all about equally often."""
    return (draws(name, rows) % np.uint64(below)).astype(np.int64)


def heaped(name: str, rows: int, below: int) -> npt.NDArray[np.int64]:
    """Whole numbers that are more often small: the smallest of three draws."""
    return np.minimum.reduce([whole(f"{name}{part}", rows, below) for part in "abc"])


def among(name: str, rows: int, values: Sequence[Any]) -> list[Any]:
    """Values, the first ones more often."""
    return [values[at] for at in heaped(name, rows, len(values)).tolist()]


def gaps(name: str, values: Sequence[Any], one_in: int) -> list[Any]:
    """The values with about one in so many missing."""
    gone = whole(f"gaps of {name}", len(values), one_in) == 0
    return [None if empty else value for value, empty in zip(values, gone.tolist(), strict=True)]


def people(rows: int = 500) -> Table:
    """Numbers, codes and texts without a gap: the table that most runs are about."""
    ages = 18 + whole("age", rows, 40) + heaped("older", rows, 25)
    zips = [f"{1000 + 100 * a + b}" for a, b in zip(heaped("zip", rows, 6).tolist(),
                                                    whole("street", rows, 5).tolist(),
                                                    strict=True)]  # fmt: skip
    frame = pl.DataFrame(
        {
            "name": [f"person {row}" for row in range(rows)],
            "age": ages,
            "zip": zips,
            "sex": among("sex", rows, ["f", "m"]),
            "height": 150.5 + whole("height", rows, 180) / 4,
            "ill": among("ill", rows, ["none", "flu", "asthma", "gout", "cancer"]),
            "income": 1000 + 10 * heaped("income", rows, 600) + 3 * ages,
            "visits": heaped("visits", rows, 7),
        }
    )
    roles = Roles(
        identifiers=["name"],
        quasi_identifiers=["age", "zip", "sex", "height"],
        sensitive=["ill", "income"],
        insensitive=["visits"],
    )
    return Table(frame, roles)


def known() -> Table:
    """The people as an intruder knows them: nothing but quasi-identifiers."""
    table = people()
    return table.drop([*table.roles.sensitive, *table.roles.insensitive])


def numbers(rows: int = 600) -> Table:
    """Nothing but numbers: whole ones, fractions, one column of a long tail, one of two values."""
    first = whole("first", rows, 1000) / 8
    frame = pl.DataFrame(
        {
            "first": first,
            "second": first * 3 + whole("second", rows, 400) / 16 - 25,
            "steps": whole("steps", rows, 90) - 45,
            "tail": (1.0 + heaped("tail", rows, 4000)) ** 2 / 64,
            "flag": heaped("flag", rows, 2),
            "outcome": whole("outcome", rows, 500) + (first * 2).astype(np.int64),
        }
    )
    roles = Roles(
        quasi_identifiers=["first", "second", "steps", "tail", "flag"], sensitive=["outcome"]
    )
    return Table(frame, roles)


def visits(rows: int = 700) -> Table:
    """Persons with one to several rows, in households, with a day each."""
    person = heaped("person", rows, 420)
    day = dt.date(2021, 1, 1)
    frame = pl.DataFrame(
        {
            "patient": [f"p{one:04}" for one in person.tolist()],
            "home": [f"h{one // 3}" for one in person.tolist()],
            "age": 20 + (person * 7) % 60,
            "ward": among("ward", rows, ["east", "north", "south", "west"]),
            "day": [day + dt.timedelta(days=int(one)) for one in heaped("day", rows, 500)],
            "ill": among("ill of visits", rows, ["none", "flu", "asthma", "gout"]),
        }
    )
    roles = Roles(
        quasi_identifiers=["age", "ward", "day"],
        sensitive=["ill"],
        unit="patient",
        household="home",
    )
    return Table(frame, roles)


def survey(rows: int = 800) -> Table:
    """Gaps in every quasi-identifier, weights, and a target."""
    ages = gaps("age", (15 + whole("age of survey", rows, 70)).tolist(), 12)
    regions = among("region", rows, ["Nord", "Süd", "Ost", "West", "Mitte"])
    frame = pl.DataFrame(
        {
            "age": pl.Series(ages, dtype=pl.Int16),
            "region": gaps("region", regions, 15),
            "married": gaps("married", (whole("married", rows, 2) == 1).tolist(), 9),
            "wage": gaps("wage", (800 + 25 * heaped("wage", rows, 200)).astype(float).tolist(), 7),
            "vote": gaps("vote", among("vote", rows, ["red", "blue", "green"]), 10),
            "weight": 1 + whole("weight", rows, 80) / 4,
            "again": among("again", rows, ["yes", "no"]),
        }
    )
    roles = Roles(
        quasi_identifiers=["age", "region", "married", "wage"],
        sensitive=["vote"],
        weight="weight",
        target="again",
    )
    return Table(frame, roles)


def calendar(rows: int = 400) -> Table:
    """Days, moments, clocks and stretches of time, some of them missing."""
    born = [dt.date(1940, 1, 1) + dt.timedelta(days=31 * int(d)) for d in whole("born", rows, 700)]
    seen = [
        dt.datetime(2020, 1, 1) + dt.timedelta(hours=6 * int(d)) for d in heaped("seen", rows, 900)
    ]
    clock = [dt.time(int(d) // 4, 15 * (int(d) % 4)) for d in whole("clock", rows, 96)]
    stay = [dt.timedelta(minutes=30 * int(d)) for d in heaped("stay", rows, 96)]
    frame = pl.DataFrame(
        {
            "born": gaps("born", born, 25),
            "seen": seen,
            "clock": gaps("clock", clock, 20),
            "stay": stay,
            "ward": among("ward of calendar", rows, ["east", "north", "west"]),
            "ill": among("ill of calendar", rows, ["none", "flu", "gout"]),
        }
    )
    roles = Roles(
        quasi_identifiers=["born", "seen", "clock", "stay", "ward"], sensitive=["ill"], unit="row"
    )
    return Table(frame, roles)


def odd(rows: int = 300) -> Table:
    """Names and cells that careless code loses: beyond ASCII, huge, tiny, negative zeros."""
    low, top = -(2**63), 2**64 - 1
    spread = whole("spread", rows, 2**20)
    towns = ["=1+1", "Zürich", "大阪", 'say "hi"', "a,b", " padded ", "NA", ""]
    frame = pl.DataFrame(
        {
            "größe cm": 150 + whole("size", rows, 40),
            "年齢": [(-0.0 if one == 0 else one / 32) for one in whole("years", rows, 64).tolist()],
            "a\"b'c": among("towns", rows, towns),
            "huge": pl.Series([low + 3 * one for one in spread.tolist()], dtype=pl.Int64),
            "beyond": pl.Series([top - 5 * one for one in spread.tolist()], dtype=pl.UInt64),
            "tiny": [one * 5e-324 for one in heaped("tiny", rows, 50).tolist()],
            "owed": pl.Series(
                [Decimal(one) / 100 for one in whole("owed", rows, 9999).tolist()],
                dtype=pl.Decimal(12, 2),
            ),
            "geheim": among("secret", rows, ["ja", "nein", "vielleicht"]),
        }
    )
    roles = Roles(
        quasi_identifiers=["größe cm", "年齢", "a\"b'c", "huge", "owed"],
        sensitive=["geheim"],
        insensitive=["beyond", "tiny"],
        unit="row",
    )
    return Table(frame, roles)


#: Made once: nothing may change a table.
TABLES: dict[str, Callable[[], Table]] = {
    make.__name__: functools.cache(make)
    for make in (people, known, numbers, visits, survey, calendar, odd)
}
