"""The hierarchy of a column: from its values through coarser and coarser ones to ``*``."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from shoal.errors import InputError, PlanError, did_you_mean
from shoal.hints import Helpful, helpful
from shoal.kernels.arrays import Integers
from shoal.notebook import listing, view
from shoal.parameters import Integer
from shoal.table.columns._domain import ROOT
from shoal.table.hierarchy._codes import HierarchyCodes, codes_of
from shoal.table.hierarchy._intervals import between, exact_number, grid, quantile_edges
from shoal.table.hierarchy._listed import (
    Listed,
    listed,
    ordered_rows,
    positions,
    read_rows,
    tree_rows,
)
from shoal.table.hierarchy._rule import Rule, Suppression, Unseen, calendar, prefixes
from shoal.table.storage._types import as_text

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Helpful):
    """How the values of a column become coarser, level by level; frozen.

    Level 0 is the value itself, the last level is ``*``, which reveals nothing, and each value has
    one coarser value on the next level. Make a hierarchy with one of the class methods below.

    Hierarchies of numbers, dates and prefixes are functions, which cover any value. A hierarchy
    that lists its values (from a file, rows, an ordered list, a tree) refuses a value that it does
    not list. With ``unseen="top"`` such a value is ``*`` at every level above 0; with
    ``unseen="nearest"`` it takes the place of the nearest number or date. A missing value stays
    missing up to the last level.

    References
    ----------
    Samarati (2001), Protecting Respondents' Identities in Microdata Release
    <https://doi.org/10.1109/69.971193>, section 4 (domain and value generalization hierarchies).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> table = Table(pl.DataFrame({"age": [23, 38, 41]}))
    >>> ages = Hierarchy.intervals([10, 20])
    >>> ages
    Hierarchy: 4 levels, intervals of 10, 20
    >>> ages.generalize(table, "age", 1).frame["age"].to_list()
    ['[20, 30)', '[30, 40)', '[40, 50)']
    >>> ages.generalize(table, "age", 2).frame["age"].to_list()
    ['[20, 40)', '[20, 40)', '[40, 60)']
    """

    _rule: Rule = field(default=None)  # type: ignore[assignment]
    #: The path of the file it was read from, as given.
    source: str | None = field(default=None)

    def __post_init__(self) -> None:
        if not isinstance(self._rule, Rule):
            raise InputError(
                "A hierarchy cannot be created directly. Use Hierarchy.intervals([5, 10]), "
                "prefixes, dates, ordered, tree or from_csv, or let "
                "Hierarchy.propose(table, column) suggest one."
            )

    # -- kinds

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        separator: str | None = None,
        header: bool | None = None,
        *,
        encoding: str | None = None,
    ) -> Hierarchy:
        """Read a file with a value and its coarser labels on each line, in the format of ARX.

        The separator, a line of names and a byte order mark are detected. If the file has no
        single root, the root is added. The root is always ``*`` here, whatever its name in the
        file.
        """
        rows = read_rows(path, separator=separator, header=header, encoding=encoding)
        return cls(listed(rows), os.fspath(path))

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any]]) -> Hierarchy:
        """A list of rows, each a value and its labels from level 1; the root is optional."""
        return cls(listed(rows))

    @classmethod
    @helpful
    def intervals(
        cls,
        width: float | Sequence[float] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        origin: float = 0,
        levels: int | None = None,
        whole: bool = False,
    ) -> Hierarchy:
        """Intervals ``[low, high)`` of equal width, or between given edges.

        Parameters
        ----------
        width : number or list of numbers
            The width at each level, each a multiple of the one before. A single number is doubled
            at each of the ``levels``.
        edges : list of numbers or list of such lists
            The beginnings of intervals, ascending. The intervals below the first edge and from the
            last edge on are open. With a list for each level, each list contains a part of the one
            before. From a single list, every second edge is dropped at each of the ``levels``.
        origin : number
            A point at which an interval of equal width begins.
        levels : int, optional
            The number of levels with intervals; 1 by default.
        whole : bool
            Whether ends are rounded up to whole numbers, so that a width of 2.5 splits every five
            into three and two: ``[0, 3)``, ``[3, 5)``.

        Examples
        --------
        >>> Hierarchy.intervals(5, levels=3)
        Hierarchy: 5 levels, intervals of 5, 10, 20
        >>> Hierarchy.intervals(edges=[[18, 30, 50, 65], [18, 65]])
        Hierarchy: 4 levels, 5, 3 intervals between given edges
        """
        if (width is None) == (edges is None):
            raise InputError("A hierarchy of intervals needs either 'width' or 'edges'.")
        if levels is not None and levels < 1:
            raise InputError(f"A hierarchy of intervals needs 'levels' of 1 or more; got {levels}.")
        if edges is not None:
            for name, given in (("origin", origin), ("whole", whole)):
                if given:
                    raise InputError(
                        f"'edges' and '{name}' cannot be combined. Leave out '{name}'."
                    )
            return cls(between(edges, levels=levels))
        if isinstance(width, Sequence):
            if levels is not None:
                raise InputError(
                    "'width' already lists a width for every level. Leave out 'levels'."
                )
            return cls(grid(width, origin=origin, whole=whole))
        first = exact_number(width, "widths")
        return cls(grid([first * 2**n for n in range(levels or 1)], origin=origin, whole=whole))

    @classmethod
    def quantiles(cls, values: Any, groups: Sequence[int] = (8, 4, 2)) -> Hierarchy:
        """Intervals with about equally many of the given values; ``groups`` of them at each level.

        Each number of groups divides the one before it. An edge is the roundest number between two
        neighboring values of the data, and never the value of a single record.

        Examples
        --------
        >>> ages = [18, 22, 25, 31, 38, 44, 52, 67]
        >>> Hierarchy.quantiles(ages, groups=(4, 2)).to_plan()
        {'edges': [[24, 35, 50], [35]]}
        """
        edges = quantile_edges(values, groups)
        return cls(edges if edges.edges else Suppression())

    @classmethod
    def rounding(cls, bases: Sequence[float]) -> Hierarchy:
        """Numbers rounded half up to multiples of a base, each a multiple of the base before.

        Each level rounds the level below and not the value. Otherwise the levels would not nest:
        12.5 is 15 by fives, and therefore 20 by tens.

        Examples
        --------
        >>> Hierarchy.rounding([5, 10])
        Hierarchy: 4 levels, rounded to 5, 10
        """
        return cls(grid(bases, rounds=True))

    @classmethod
    def prefixes(
        cls, lengths: Sequence[int], *, pad: int | None = None, any_length: bool = False
    ) -> Hierarchy:
        """Keep the first characters of a code and mask the others: 12345, 1234*, 123**.

        Parameters
        ----------
        lengths : list of int
            The number of characters kept at each level, from many to few.
        pad : int, optional
            The number of digits of a full code, if a column of whole numbers lost leading zeros.
        any_length : bool
            Whether codes have different lengths and one ``*`` stands for whatever follows: F10.2
            and F10 are both F1*. Otherwise there is one ``*`` for each masked character.

        Examples
        --------
        >>> Hierarchy.prefixes([3, 1], any_length=True)
        Hierarchy: 4 levels, prefixes of 3, 1 characters
        """
        return cls(prefixes(lengths, pad=pad, any_length=any_length))

    @classmethod
    def dates(cls, units: Sequence[str] = ("month", "quarter", "year", "decade")) -> Hierarchy:
        """Dates by calendar units, from fine to coarse.

        The units are minute, hour, day, month, quarter, year, 5 years, decade and century. Weeks
        (ISO 8601) do not nest in months or years, so only ``iso-year`` can follow ``week``. Times
        of day have minutes and hours.
        """
        return cls(calendar(units))

    @classmethod
    def ordered(
        cls, values: Sequence[Any], *, fan_out: int = 2, groups: Sequence[int] | None = None
    ) -> Hierarchy:
        """An ordered list: each level joins ``fan_out`` neighbors, until one group is left.

        ``groups`` are the sizes of the groups of level 1, if they are not all ``fan_out``.

        Examples
        --------
        >>> Hierarchy.ordered(["low", "medium", "high"], groups=[1, 2]).to_plan()["rows"]
        [['low', 'low', '*'], ['medium', 'medium..high', '*'], ['high', 'medium..high', '*']]
        """
        return cls(listed(ordered_rows(values, fan_out=fan_out, groups=groups)))

    @classmethod
    def tree(cls, branches: Mapping[str, Any]) -> Hierarchy:
        """A tree: labels with trees or lists of values below them; None means a single value.

        Examples
        --------
        >>> Hierarchy.tree({"Europe": {"West": ["FR"], "East": ["PL"]}, "Asia": ["JP"]})
        Hierarchy: 4 levels, a list of 3 values
        """
        return cls(listed(tree_rows(branches)))

    @classmethod
    def suppression(cls) -> Hierarchy:
        """The value itself or ``*``, with nothing between."""
        return cls(Suppression())

    @classmethod
    def propose(cls, table: Table, column: str, *, kind: str | None = None) -> Hierarchy:
        """A hierarchy that fits the values of a column: a first guess to check and edit.

        Numbers get intervals, dates get calendar units, and codes such as postcodes get prefixes.
        Other texts get a list that joins rare values or, if an order is recognized, neighbors. Such
        a list contains values of the table, including rare ones: keep it as private as the table.
        Texts that are nearly all different are not listed; they can only be suppressed.

        ``kind`` requests a different hierarchy from the one that fits best: intervals, sizes (edges
        at 1, 2 and 5 times powers of ten), quantiles, rounding, dates, prefixes, ordered (by
        value), frequency (rare values joined) or suppression.
        """
        from shoal.table._table import check_table
        from shoal.table.hierarchy._propose import proposed

        check_table(table, "Hierarchy.propose")

        return cls(proposed(table, column, kind))

    # -- properties

    @property
    def levels(self) -> int:
        """The number of levels, including the value itself and the root."""
        return self._rule.inner_levels + 2

    @property
    def is_function(self) -> bool:
        """Whether the hierarchy is a function, which covers any value and lists none."""
        return not isinstance(self._rule, Listed)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The listed values, each with its labels up to the root; empty for a function."""
        listing = self._rule.rows if isinstance(self._rule, Listed) else ()
        return tuple((*row, ROOT) for row in listing)

    def __repr__(self) -> str:
        return f"Hierarchy: {self.levels} levels, {self._rule.describe()}"

    def _repr_html_(self) -> str:
        levels = enumerate([*self._levels_in_words(), f"nothing: {ROOT}"])
        return view(repr(self), listing(("level", "what is left"), levels, of="levels"))

    def _levels_in_words(self) -> list[str]:
        """Each level below the root; for a list only counts, as its values come from a table."""
        inner = range(1, self.levels - 1)
        if isinstance(self._rule, Listed):
            rows = self._rule.rows
            counts = [f"{len({row[level] for row in rows}):,} labels" for level in inner]
            return [f"{len(rows):,} values", *counts]
        kind, given = next(iter(self._rule.to_plan().items()))
        steps = given if isinstance(given, list) and len(given) == len(inner) else [given]
        words = [
            f"{len(step) + 1:,} intervals" if kind == "edges" else _LEVELS[kind].format(step)
            for step in steps[: len(inner)]
        ]
        return [
            "the value itself",
            *(word.replace("first 1 characters", "first character") for word in words),
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self._rule == other._rule

    def __hash__(self) -> int:
        return hash(self._rule)

    # -- on a table

    def codes(self, table: Table, column: str, *, unseen: Unseen = "refuse") -> HierarchyCodes:
        """The column at every level as arrays; InputError if a value is not covered."""
        if unseen not in ("refuse", "top", "nearest"):
            raise InputError(f"unseen must be 'refuse', 'top' or 'nearest'; got '{unseen}'.")
        return codes_of(self._rule, table, column, unseen)

    def uncovered(self, table: Table, column: str) -> int:
        """The number of distinct values of a column that the hierarchy lacks, without missing."""
        if not isinstance(self._rule, Listed):
            return 0
        return int(self._rule.uncovered(table.codes(column).levels).sum())

    def places(self, table: Table, column: str) -> Integers:
        """The row of the list for each value of a column; -1 if the list lacks the value."""
        if not isinstance(self._rule, Listed):
            raise InputError("This hierarchy is a function and does not list values.")
        return positions(table.codes(column).levels, self._rule.leaves)

    def generalize(
        self, table: Table, column: str, level: int, *, unseen: Unseen = "refuse"
    ) -> Table:
        """The table with the column at one level; as text, unless the level is 0."""
        if not Integer(minimum=0).accepts(level) or not 0 <= level < self.levels:
            raise InputError(
                f"The level of column '{column}' must be an integer from 0 to {self.levels - 1}; "
                f"got {level!r}."
            )
        coded = self.codes(table, column, unseen=unseen)
        if level == 0:
            return table
        codes = coded.maps[level][coded.column.codes]
        return table.with_labels(column, coded.labels[level], codes, coded.meaning([level]))

    def extended(self, values: Iterable[Any]) -> Hierarchy:
        """The hierarchy with more values, ``*`` above level 0; a function stays unchanged."""
        if not isinstance(self._rule, Listed):
            return self
        texts = as_text(pl.Series(list(values), strict=False)).drop_nulls().to_list()
        return Hierarchy(self._rule.extended(texts))

    def covering(self, table: Table, column: str) -> Hierarchy:
        """The hierarchy, extended with the values of a column that it lacks."""
        if not isinstance(self._rule, Listed):
            return self
        values = table.codes(column).levels
        absent = self._rule.uncovered(values)
        if not absent.any():
            return self
        return Hierarchy(self._rule.extended(as_text(values.filter(pl.Series(absent))).to_list()))

    def listed(self, table: Table, column: str) -> Hierarchy:
        """A list of the values of a column with their labels, for a file that people edit.

        It contains all values of the column: keep it as private as the table. A list is returned
        unchanged.
        """
        if not self.is_function:
            return self
        coded = self.codes(table, column)
        if not len(coded.column.levels):
            raise InputError(
                f"Column '{column}' has no values to list. Leave it out of the quasi-identifiers."
            )
        columns = [
            [coded.labels[level][node] for node in coded.maps[level][: len(coded.column.levels)]]
            for level in range(coded.levels)
        ]
        return Hierarchy.from_rows(zip(*columns, strict=True))

    # -- files and plans

    def to_csv_text(self, separator: str = ";") -> str:
        """The text of a file that ``from_csv`` reads; for a function, see ``listed``."""
        if self.is_function:
            raise InputError(
                "This hierarchy is a function and does not list values. Write it into the plan, or "
                "use hierarchy.listed(table, column)."
            )
        text = io.StringIO()
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(self.rows)
        return text.getvalue()

    def to_csv(self, path: str | os.PathLike[str], separator: str = ";") -> None:
        """Write a file that ``from_csv`` reads; only its owner has access."""
        text = self.to_csv_text(separator)
        place = Path(path)
        place.touch(mode=0o600)
        place.write_text(text, encoding="utf-8", newline="")

    def to_plan(self) -> str | dict[str, Any]:
        """The hierarchy as written in a plan: the path of its file, or its kind and options."""
        return self.source if self.source is not None else self._rule.to_plan()

    @classmethod
    def from_plan(cls, value: Any, folder: str | os.PathLike[str] | None = None) -> Hierarchy:
        """A hierarchy from a plan; paths are relative to ``folder``, the folder of the plan."""
        if isinstance(value, Hierarchy):
            return value
        if isinstance(value, (str, os.PathLike)):
            read = Hierarchy.from_csv(Path(folder or "") / value)
            return replace(read, source=os.fspath(value))
        if not isinstance(value, Mapping):
            raise PlanError(
                "A hierarchy in a plan must be the path of a file or a table such as "
                f"{{ intervals = [5, 10] }}; got {type(value).__name__}."
            )
        kinds = [name for name in value if name in _KINDS]
        if len(kinds) != 1:
            stray = next((str(name) for name in value if name not in _KINDS), "")
            raise PlanError(
                f"A hierarchy in a plan must have one kind; this one has {len(kinds)}. "
                f"{did_you_mean(stray, _KINDS)}"
            )
        make, options = _KINDS[kinds[0]]
        for name in value:
            if name != kinds[0] and name not in options:
                raise PlanError(
                    f"A hierarchy of '{kinds[0]}' has no option '{name}'. "
                    f"{did_you_mean(str(name), (kinds[0], *options))}"
                )
        given = {name: option for name, option in value.items() if name != kinds[0]}
        try:
            return make(value[kinds[0]], **given)
        except (TypeError, AttributeError):
            # the value has a wrong shape; Python's message may quote it
            raise PlanError(
                f"A hierarchy of '{kinds[0]}' cannot be made from "
                f"{type(value[kinds[0]]).__name__}. See the page on hierarchies."
            ) from None


#: What remains of a value at a level of each kind of function.
_LEVELS: Final[dict[str, str]] = {
    "intervals": "an interval of {}",
    "rounding": "a multiple of {}",
    "prefixes": "the first {} characters",
    "dates": "the {}",
}

#: For each kind, the function that makes it and its options.
_KINDS: Final[dict[str, tuple[Callable[..., Hierarchy], tuple[str, ...]]]] = {
    "intervals": (Hierarchy.intervals, ("origin", "levels", "whole")),
    "edges": (lambda edges, **options: Hierarchy.intervals(edges=edges, **options), ("levels",)),
    "rounding": (Hierarchy.rounding, ()),
    "prefixes": (Hierarchy.prefixes, ("pad", "any_length")),
    "dates": (Hierarchy.dates, ()),
    "ordered": (Hierarchy.ordered, ("fan_out", "groups")),
    "tree": (Hierarchy.tree, ()),
    "rows": (Hierarchy.from_rows, ()),
    "suppression": (lambda _: Hierarchy.suppression(), ()),
}
