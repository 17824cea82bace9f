"""Columns of two tables in one code: one above the other, or counted in each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table._classes import Classes, agreement_of, form_classes, weights_by_class
from shoal.table._persons import owned_pairs
from shoal.table.columns._column import Column, Numbers, in_one_code
from shoal.table.columns._comparable import stacked
from shoal.table.columns._encode import Codes
from shoal.table.columns._quantities import quantities, scale_name

if TYPE_CHECKING:
    from shoal.table._table import Table


def counted_in(
    sample: Sequence[Column],
    population: Sequence[Column],
    classes: tuple[Classes, Classes],
    *,
    wildcard: bool,
    persons: Integers | None = None,
) -> Integers:
    """How many people of ``population`` agree with each class of ``sample``, column by column.

    The two ``classes`` are those of the sample and of the population by these columns. Each row
    is one person, or of one of the ``persons`` that have several. Those who agree by wildcards are
    then counted as shares of persons: no more are counted than there are.
    """
    mine, theirs = classes
    both = [
        stacked_code(above, below, [part.first_rows for part in classes])
        for above, below in zip(sample, population, strict=True)
    ]
    joint = form_classes(both, mine.count + theirs.count)
    asked, met = joint.labels[: mine.count], joint.labels[mine.count :]
    # values that differ in one table may be equal beside those of another: large whole numbers
    people = np.bincount(met, theirs.rows, joint.count).astype(np.float64)
    equal = people[asked].astype(np.int64)
    if persons is not None:
        owned, _ = owned_pairs(met[theirs.labels], persons)
        equal = np.bincount(owned, minlength=joint.count)[asked]
        shares = weights_by_class(theirs, 1.0 / np.bincount(persons)[persons])
        people = np.bincount(met, shares, joint.count).astype(np.float64)
    if not wildcard:
        return equal
    counts = agreement_of(both, joint).totals(people)[asked]
    # whoever has a part of a row in it is somebody
    least = np.maximum(0 if persons is None else equal, counts > 0)
    return np.maximum(np.floor(counts + 1e-9).astype(np.int64), least)


def stacked_code(above: Column, below: Column, rows: Sequence[Integers]) -> Codes:
    """Some rows of one column above those of another, in codes that both share."""
    upper, lower = in_one_code(above, below)
    codes = np.concatenate([upper[above.codes.codes[rows[0]]], lower[below.codes.codes[rows[1]]]])
    count = int(max(upper.max(initial=-1), lower.max(initial=-1))) + 1
    missing = bool((codes < 0).any())
    codes[codes < 0] = count
    levels = pl.Series(above.name, range(count), dtype=pl.Int64)
    return Codes(codes.astype(np.uint64), levels, count if missing else None)


_NUMERIC = ("integer", "float")


def stacked_codes(column: str, above: Table, below: Table) -> Integers:
    """The codes of a column, the rows of one table above those of another; -1 where missing.

    Equal values have equal codes. Numbers of different types are compared as numbers, dates and
    moments as moments, a number and a text as texts.
    """
    upper, lower = shared_codes(column, above, below)
    return np.concatenate([upper[above.codes(column).codes], lower[below.codes(column).codes]])


def shared_codes(column: str, above: Table, below: Table) -> tuple[Integers, Integers]:
    """For each code of a column of two tables a number, equal where the values are; missing: -1.

    What :func:`stacked_codes` has by row this has by code.
    """
    return in_one_code(above.column(column), below.column(column))


def stacked_numbers(column: str, above: Table, below: Table) -> Floats:
    """A column of quantities, one table above the other, about 1 in size; NaN where missing.

    Whole numbers start at the least of them: they are shifted before they become floats, so that
    large ones keep their digits. Dates, times and durations are compared with their kind.
    """
    return stacked_numbers_and_unit(column, above, below)[0]


def stacked_numbers_and_unit(column: str, above: Table, below: Table) -> tuple[Floats, float]:
    """The numbers of :func:`stacked_numbers`, and how much of their scale a difference of 1 is."""
    if above.kind(column) not in _NUMERIC:
        both = [table.codes(column) for table in (above, below)]
        rows = [numbers[c.codes] for numbers, c in zip(_quantities(both), both, strict=True)]
        return _to_one_scale(np.concatenate(rows))
    return _joined([table.numbers(column) for table in (above, below)])


def shared_numbers(column: str, above: Table, below: Table) -> tuple[Floats, Floats, float]:
    """The numbers of :func:`stacked_numbers` for each code of the two tables, and their unit."""
    alone = above.column(column) is below.column(column)  # a table beside itself
    both = [table.codes(column) for table in ((above,) if alone else (above, below))]
    if above.kind(column) in _NUMERIC:
        values, unit = _joined([Column(codes.levels).numbers for codes in both])
        parts = np.split(values, [len(both[0].levels)])
        for place, codes in enumerate(both):
            if codes.missing is not None:
                parts[place] = np.append(parts[place], np.nan)
    else:
        values, unit = _to_one_scale(np.concatenate(_quantities(both)))
        parts = np.split(values, [both[0].count])
    return parts[0], parts[0 if alone else 1], unit


def _joined(both: Sequence[Numbers]) -> tuple[Floats, float]:
    """Columns of numbers, one after the other, in one scale; and its unit."""
    present = np.concatenate([numbers.present for numbers in both])
    values: npt.NDArray[Any]
    if all(numbers.values.dtype.kind in "iu" for numbers in both):
        least = min(
            (int(n.values[n.present].min()) for n in both if n.present.any()), default=0
        )  # differences are exact modulo 2 ** 64
        shift = np.uint64(least % 2**64)
        parts = [n.values.view(np.uint64) - shift for n in both]
        values = np.concatenate(parts).astype(np.float64)
    else:
        values = np.concatenate([numbers.values.astype(np.float64) for numbers in both])
    return _to_one_scale(np.where(present, values, np.nan))


def to_one_scale(values: Floats) -> Floats:
    """Numbers divided by a power of two: their ranges then neither overflow nor vanish."""
    return _to_one_scale(values)[0]


def _to_one_scale(values: Floats) -> tuple[Floats, float]:
    largest = np.nanmax(np.abs(values), initial=0.0)
    power = -int(np.frexp(largest)[1])
    if abs(power) < 1000:  # then the power of two is itself a number, and a product is exact
        return values * 2.0**power, 2.0**power
    with np.errstate(over="ignore"):  # beside the smallest numbers there are, 1 is infinite
        return np.ldexp(values, power), float(np.ldexp(1.0, power))


def _quantities(both: Sequence[Codes]) -> list[Floats]:
    """The quantities of the codes of two columns, in the scale of the first."""
    return [quantities(codes, scale_name(both[0])) for codes in both]


def stacked_table(above: Table, below: Table, columns: Sequence[str]) -> Table:
    """Some columns of two tables, the rows of the one above those of the other."""
    from shoal.table._table import Table

    lacking = [name for name in columns if name not in below.columns]
    if lacking:
        raise InputError(
            f"The population has no column {quoted(lacking)}; it needs all quasi-identifiers."
        )
    both = [stacked(above.column(name).series, below.column(name).series) for name in columns]
    return Table(pl.DataFrame(both))


def shared_persons(above: Table, below: Table) -> Flags:
    """Which rows of ``below`` are of a person who is in ``above``, as far as the units tell."""
    names = above.roles.unit_columns
    if not names or names != below.roles.unit_columns:
        return np.zeros(len(below), np.bool_)
    labels = stacked_table(above, below, names).group(names).labels
    return np.isin(labels[len(above) :], labels[: len(above)])
