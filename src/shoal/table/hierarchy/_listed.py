"""Hierarchies that list their values, and their files, in the format of ARX."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from shoal.errors import InputError, ReadError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table.columns._domain import ROOT
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import line_of
from shoal.table.hierarchy._rule import Rule, Rung, Unseen, dense
from shoal.table.storage._text import load_text
from shoal.table.storage._types import parsed


def positions(values: pl.Series, leaves: pl.Series) -> Integers:
    """The position of each value among the leaves, or -1."""
    known = pl.DataFrame(
        {"value": leaves_as(leaves, values.dtype), "at": np.arange(len(leaves), dtype=np.int64)}
    )
    known = known.filter(known["value"].is_not_null()).unique("value", keep="first")
    asked = values.alias("value").to_frame()
    return (
        asked.join(known, on="value", how="left", maintain_order="left")["at"]
        .fill_null(-1)
        .to_numpy()
    )


def leaves_as(leaves: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Texts in the type of a column; null for a text that does not fit."""
    kind = kind_of(dtype)
    if kind == "text":
        return leaves.cast(dtype)
    bare = leaves.str.strip_chars(" ")
    if kind == "boolean":
        flags = {"true": True, "1": True, "false": False, "0": False}
        return bare.str.to_lowercase().replace_strict(flags, default=None, return_dtype=pl.Boolean)
    if kind == "integer":
        exact = bare.cast(dtype, strict=False)
        floats = bare.cast(pl.Float64, strict=False)
        whole = floats.filter(floats == floats.round())
        if exact.null_count() == len(leaves) - len(whole):
            return exact
        spare = floats.set(floats != floats.round(), None).cast(dtype, strict=False)
        return exact.zip_with(exact.is_not_null(), spare)
    if isinstance(dtype, pl.Datetime):
        bare = bare.str.replace(" ", "T", literal=True)
    number = parsed(bare, dtype)
    if not dtype.is_float():
        return number
    number = number.set(number.is_nan() | number.is_infinite(), None)
    return number.set(number == 0, 0.0)  # -0.0 is 0.0


Row = tuple[str, ...]


@dataclass(frozen=True)
class Listed(Rule):
    """Values with their coarser labels; each row begins with a value and omits the root."""

    rows: tuple[Row, ...]

    kind = "rows"

    @property
    def inner_levels(self) -> int:
        return len(self.rows[0]) - 1

    def size(self, values: pl.Series) -> int:
        return len(self.rows)

    @cached_property
    def leaves(self) -> pl.Series:
        """The values as the given texts."""
        return pl.Series([row[0] for row in self.rows], dtype=pl.String)

    @cached_property
    def _nodes(self) -> list[tuple[Integers, list[str]]]:
        """For each inner level, the node of each leaf and the labels in order of appearance."""
        found = []
        for level in range(1, len(self.rows[0])):
            place: dict[str, int] = {}
            nodes = [place.setdefault(row[level], len(place)) for row in self.rows]
            found.append((np.array(nodes, np.int64), list(place)))
        return found

    def uncovered(self, values: pl.Series) -> Flags:
        """Which of the values the list lacks."""
        return positions(values, self.leaves) < 0

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        at = positions(values, self.leaves)
        absent = int((at < 0).sum())
        if absent and unseen == "refuse":
            raise InputError(
                f"The hierarchy of column '{values.name}' lacks {absent} of its {len(at)} values. "
                "Add them to the hierarchy, or use hierarchy.covering(table, column) (extend = "
                f"true in a plan), which puts them directly under '{ROOT}'."
            )
        if absent and unseen == "nearest":
            at = self._nearest(values, at)
        quantities = line_of(values) is not None
        numbers = line_of(leaves_as(self.leaves, values.dtype)) if quantities else None
        return [self._rung(at, nodes, labels, numbers) for nodes, labels in self._nodes]

    def _rung(
        self, at: Integers, node_of_leaf: Integers, labels: list[str], numbers: Floats | None
    ) -> Rung:
        labels = labels if ROOT in labels else [*labels, ROOT]
        root = labels.index(ROOT)
        leaves = np.bincount(node_of_leaf, minlength=len(labels)).astype(np.float64)
        nodes = np.where(at < 0, root, node_of_leaf[at])
        present, dense_nodes = dense(nodes)
        if numbers is None:
            return Rung(dense_nodes, [labels[n] for n in present], None, leaves[present])
        bounds = np.full((len(labels), 2), np.nan)
        np.fmin.at(bounds[:, 0], node_of_leaf, numbers)
        np.fmax.at(bounds[:, 1], node_of_leaf, numbers)
        bounds[root] = -np.inf, np.inf
        # values come in ascending order, so nodes do in the order of their first value
        _, first = np.unique(nodes, return_index=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        present = present[order]
        return Rung(
            rank[dense_nodes], [labels[n] for n in present], bounds[present], leaves[present]
        )

    def _nearest(self, values: pl.Series, at: Integers) -> Integers:
        """The leaf of each value; for a value that is not listed, the nearest, or lower, leaf."""
        known = line_of(leaves_as(self.leaves, values.dtype))
        given = line_of(values)
        if known is None or given is None:
            raise InputError(
                f"Column '{values.name}' is {kind_of(values.dtype)}, so its values have no nearest "
                "value. Use unseen='top'."
            )
        order = np.argsort(known, kind="stable")
        order = order[: int((~np.isnan(known)).sum())]  # NaN comes last
        if not len(order):
            return at
        line = known[order]
        above = np.searchsorted(line, given).clip(1, max(len(line) - 1, 1)).clip(0, len(line) - 1)
        below = (above - 1).clip(0)
        lower = given - line[below] <= line[above] - given
        return np.where(at < 0, order[np.where(lower, below, above)], at)

    def extended(self, values: Iterable[str]) -> Listed:
        """The list with more values directly under the root."""
        known = {row[0] for row in self.rows}
        new = [value for value in dict.fromkeys(values) if value not in known]
        return Listed((*self.rows, *((value, *[ROOT] * self.inner_levels) for value in new)))

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: [[*row, ROOT] for row in self.rows]}

    def describe(self) -> str:
        return f"a list of {len(self.rows)} value{'s' * (len(self.rows) != 1)}"


def listed(rows: Iterable[Sequence[Any]]) -> Listed:
    """A checked list: equal lengths, no repeated value, nested levels, one root."""
    texts = [tuple(map(_text, row)) for row in rows]
    if not texts:
        raise InputError("A hierarchy needs at least one row.")
    width = max(len(row) for row in texts)
    short = sum(len(row) != width for row in texts)
    if short or width == 0:
        raise InputError(
            f"{short} of the {len(texts)} rows of the hierarchy have fewer than {width} levels. "
            "Give every row all levels."
        )
    texts = list(dict.fromkeys(_without_root(texts, width)))
    twice = len(texts) - len({row[0] for row in texts})
    if twice:
        raise InputError(
            f"{twice} values of the hierarchy are repeated with other levels. Keep one row for "
            "each value."
        )
    _check_nesting(texts)
    return Listed(tuple(texts))


def _text(value: Any) -> str:
    if value is None:
        raise InputError(
            "A row of the hierarchy has an empty value. Remove it: a missing value needs no row, "
            "because it stays missing up to the root."
        )
    return ("true" if value else "false") if isinstance(value, (bool, np.bool_)) else str(value)


def _without_root(rows: list[Row], width: int) -> list[Row]:
    """The rows without the root, which is optional in a list."""
    last = [row[-1] for row in rows]
    if width > 1 and len(set(last)) == 1:
        return [row[:-1] for row in rows]
    if width > 1 and ROOT in last:
        others = sum(label != ROOT for label in last)
        raise InputError(
            f"{others} of the {len(rows)} rows of the hierarchy do not end in '{ROOT}', but the "
            "others do. End every row in the same root."
        )
    return rows


def _check_nesting(rows: list[Row]) -> None:
    for level in range(1, len(rows[0]) - 1):
        parents = Counter(child for child, _ in {(row[level], row[level + 1]) for row in rows})
        broken = sum(count > 1 for count in parents.values())
        if broken:
            raise InputError(
                f"{broken} labels of level {level} of the hierarchy have more than one parent at "
                f"level {level + 1}, so the levels do not nest. Rename these labels, or give each "
                "of them one parent."
            )


def ordered_rows(values: Sequence[Any], *, fan_out: int, groups: Sequence[int] | None) -> list[Row]:
    """Rows of an ordered list: join neighbors, then neighboring groups, until one is left."""
    texts = [_text(value) for value in values]
    if len(set(texts)) != len(texts) or not texts:
        raise InputError("An ordered list needs at least one value, and each value only once.")
    if isinstance(fan_out, bool) or not isinstance(fan_out, int) or fan_out < 2:
        raise InputError("'fan_out' of an ordered list must be a whole number of 2 or more.")
    if groups is not None and (sum(groups) != len(texts) or min(groups) < 1):
        raise InputError(
            f"The groups of an ordered list must be sizes of 1 or more that add up to its "
            f"{len(texts)} values; they add up to {sum(groups)}."
        )
    sizes = list(groups) if groups is not None else _joined([1] * len(texts), fan_out)
    columns = [texts]
    while len(sizes) > 1:
        ends = list(itertools.accumulate(sizes))
        labels: dict[str, int] = {}
        for end, size in zip(ends, sizes, strict=True):
            first, last = texts[end - size], texts[end - 1]
            label = first if size == 1 else f"{first}..{last}"
            while label in labels:
                label = f"({label})"  # a value looks like the label of a group
            labels[label] = size
        columns.append([label for label, size in labels.items() for _ in range(size)])
        sizes = _joined(sizes, fan_out)
    return [(*row, ROOT) for row in zip(*columns, strict=True)]


def _joined(sizes: Sequence[int], fan_out: int) -> list[int]:
    return [sum(sizes[at : at + fan_out]) for at in range(0, len(sizes), fan_out)]


def tree_rows(branches: Mapping[str, Any]) -> list[Row]:
    """Rows of a tree: a mapping of labels to further mappings, to lists of values, or to None."""
    paths = list(_paths(branches, ()))
    if not paths:
        raise InputError("A tree needs at least one value.")
    depth = max(map(len, paths))
    rows = []
    for path in paths:
        above, leaf = path[:-1], path[-1]
        # a short branch repeats its lowest label, because levels count from the root
        lowest = above[-1] if above else leaf
        rows.append((leaf, *[lowest] * (depth - len(path)), *reversed(above), ROOT))
    return rows


def _paths(branches: Any, above: Row) -> Iterable[Row]:
    if isinstance(branches, Mapping):
        for label, below in branches.items():
            name = (*above, _text(label))
            yield from [name] if below is None else _paths(below, name)
    elif isinstance(branches, Iterable) and not isinstance(branches, (str, bytes)):
        for leaf in branches:
            yield (*above, _text(leaf))
    else:
        raise InputError(
            "A tree must map labels to mappings, to lists of values, or to None; got "
            f"{type(branches).__name__}."
        )


#: In this order, because labels such as [0, 5) contain commas, but few contain semicolons.
_SEPARATORS: Final = (";", "\t", "|", ",")
_LEVEL: Final = re.compile(r"(level|ebene|stufe)[ _-]*\d*|value|leaf|wert", re.IGNORECASE)


def read_rows(
    path: str | os.PathLike[str],
    *,
    separator: str | None,
    header: bool | None,
    encoding: str | None,
) -> list[list[str]]:
    """The rows of a file, without its line of names."""
    place = Path(path)
    if not place.is_file():
        raise ReadError(f"There is no hierarchy file '{place}'. Check its name and folder.")
    text = load_text(place, encoding).decoded()
    if separator is None:
        separator = next((one for one in _SEPARATORS if _cuts_all(text, one)), ";")
    elif len(separator) != 1 or separator in '"\r\n':
        raise ReadError("The separator must be one character that is not a quotation mark.")
    rows = _parsed(text, separator)
    if rows is None:
        raise ReadError(
            f"'{place}' cannot be parsed as lines of fields. Check its separator and quotation "
            "marks."
        )
    width = len(rows[0])
    wrong = sum(len(row) != width for row in rows)
    if wrong:
        raise ReadError(
            f"{wrong} of the {len(rows)} lines of the hierarchy '{place}' do not have as many "
            f"fields as the first one, which has {width} with the separator {separator!r}. Fix "
            "these lines, or set another separator=."
        )
    if all(field.startswith(" ") for row in rows for field in row[1:]):
        # in "value; label; *" the blank belongs to the separator
        rows = [[row[0], *(field.strip() for field in row[1:])] for row in rows]
    named = _has_names(rows) if header is None else header
    if named and len(rows) == 1:
        raise ReadError(
            f"The hierarchy '{place}' has a line of names but no values. Add a line for each value."
        )
    return rows[1:] if named else rows


def _parsed(text: str, separator: str) -> list[list[str]] | None:
    """The fields of each line that is not empty; None if they cannot be parsed."""
    try:
        return [row for row in csv.reader(io.StringIO(text, ""), delimiter=separator) if row]
    except csv.Error:
        return None


def _cuts_all(text: str, separator: str) -> bool:
    """Whether a separator splits every line into the same number of fields, at least two."""
    rows = _parsed(text, separator)
    return rows is not None and len(rows[0]) > 1 and len(set(map(len, rows))) == 1


def _has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line names the levels: none of its fields occurs in another line."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return False
    if all(_LEVEL.fullmatch(name.strip()) for name in first):
        return True
    # only if the root is obvious, because a value that is mistaken for a name would be lost
    if {row[-1] for row in rest} != {ROOT} or not any(map(str.isalpha, first[-1])):
        return False
    labels = [{row[level] for row in rest} for level in range(len(first))]
    return not any(name in known for name, known in zip(first, labels, strict=True))
