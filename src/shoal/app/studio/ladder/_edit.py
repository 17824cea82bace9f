"""Edits of a list: groups are joined, split, renamed and moved; levels are added and removed.

A row is a value with its labels up to the root. A *node* is a label of one level, numbered by first
appearance. After every edit the levels nest.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from shoal.errors import InputError
from shoal.table.columns._domain import ROOT

Row = tuple[str, ...]
Rows = Sequence[Row]
_LONGEST: Final = 200


def labels_of(rows: Rows, level: int) -> list[str]:
    """The labels of a level, by the number of their node."""
    return list(dict.fromkeys(row[level] for row in rows))


def join(rows: Rows, level: int, nodes: Collection[int], name: str) -> list[Row]:
    """Join several groups into one, or values into a group of the first level."""
    if level == 0:
        return move(rows, level, nodes, name)
    name, chosen = checked_name(name), _chosen(rows, level, nodes)
    _check_free(rows, level, chosen, {name})
    return _labelled(rows, level, chosen, level, name)


def move(rows: Rows, level: int, nodes: Collection[int], name: str) -> list[Row]:
    """Put nodes under a group of the next level; under a new group if none has the name."""
    name, chosen = checked_name(name), _chosen(rows, level, nodes)
    if level + 2 == len(rows[0]):
        rows = add_level(rows, level)
    return _labelled(rows, level, chosen, level + 1, name)


def split(rows: Rows, level: int, nodes: Collection[int], name: str = "") -> list[Row]:
    """Split groups into their groups on the level below."""
    _check_group(level)
    chosen = _chosen(rows, level, nodes)
    _check_free(rows, level, chosen, {row[level - 1] for row in rows if row[level] in chosen})
    return [
        (*row[:level], row[level - 1], *row[level + 1 :]) if row[level] in chosen else row
        for row in rows
    ]


def rename(rows: Rows, level: int, nodes: Collection[int], name: str) -> list[Row]:
    """Give a group another name."""
    _check_group(level)
    name, chosen = checked_name(name), _chosen(rows, level, nodes)
    if len(chosen) > 1:
        raise InputError(f"{len(chosen)} groups are selected. Rename one, or join them.")
    _check_free(rows, level, chosen, {name})
    return _labelled(rows, level, chosen, level, name)


def add_level(rows: Rows, level: int) -> list[Row]:
    """Add a copy of this level above it, to be edited."""
    if not 0 <= level <= len(rows[0]) - 2:
        raise InputError("There is no such level. Reload the page.")
    return [(*row[: level + 1], row[level], *row[level + 1 :]) for row in rows]


def drop_level(rows: Rows, level: int) -> list[Row]:
    """Remove a level."""
    if not 1 <= level <= len(rows[0]) - 2:
        raise InputError("The values and the last level cannot be removed. Choose one in between.")
    return [(*row[:level], *row[level + 1 :]) for row in rows]


#: What can be done with selected nodes.
WITH_NODES: Final[dict[str, Callable[[Rows, int, Collection[int], str], list[Row]]]] = {
    "join": join,
    "move": move,
    "split": split,
    "rename": rename,
}
#: What can be done with a level.
WITH_LEVEL: Final[dict[str, Callable[[Rows, int], list[Row]]]] = {
    "add": add_level,
    "drop": drop_level,
}


def checked_name(name: str) -> str:
    """A name for a group, of one line; the error does not quote it, since it may be a value."""
    name = name.strip()
    if not name or len(name) > _LONGEST or any(map(_is_unfit, name)):
        raise InputError(f"A group needs a name of 1 to {_LONGEST} characters on one line.")
    if set(name) == {ROOT}:
        raise InputError(f"'{ROOT}' is the name of the last level. Choose another name.")
    return name


def _is_unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def _chosen(rows: Rows, level: int, nodes: Collection[int]) -> set[str]:
    if not 0 <= level <= len(rows[0]) - 2:
        raise InputError("There is no such level to edit. Reload the page.")
    labels = labels_of(rows, level)
    if not nodes:
        raise InputError("Nothing is selected. Select values or groups first.")
    if not all(0 <= node < len(labels) for node in nodes):
        raise InputError("The selection is not in the list. Reload the page.")
    return {labels[node] for node in nodes}


def _check_group(level: int) -> None:
    if level == 0:
        raise InputError("Values of the table are selected. Select groups of a level above them.")


def _check_free(rows: Rows, level: int, chosen: set[str], names: set[str]) -> None:
    """Refuse a name that a group outside the selection has: the two would become one."""
    if any(row[level] in names and row[level] not in chosen for row in rows):
        raise InputError(
            "Another group of this level already has this name. Select it as well and join them, "
            "or choose another name."
        )


def _labelled(rows: Rows, level: int, chosen: set[str], target: int, name: str) -> list[Row]:
    """The rows with a new name at a level for some nodes, and above as the group with that name.

    A new group takes the place of the first of its nodes.
    """

    def coarser() -> Iterator[Row]:
        for inside in (False, True):
            for row in rows:
                if (row[level] in chosen) == inside and (inside or row[target] == name):
                    yield row[target + 1 :]

    above = next(coarser())
    return [(*row[:target], name, *above) if row[level] in chosen else row for row in rows]
