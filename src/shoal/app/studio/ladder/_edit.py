"""Edits of a list: groups are joined, split, renamed and moved, levels put in and taken out.

A row is a value with its labels up to the root. A *node* is a label of one level; it has its number
by first appearance. Every edit leaves levels that nest.
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
    """Make one group of several, or of values a group of the first level."""
    if level == 0:
        return move(rows, level, nodes, name)
    name, chosen = checked_name(name), _chosen(rows, level, nodes)
    _check_free(rows, level, chosen, {name})
    return _labelled(rows, level, chosen, level, name)


def move(rows: Rows, level: int, nodes: Collection[int], name: str) -> list[Row]:
    """Put nodes under a group of the next level; under a new one where none has the name."""
    name, chosen = checked_name(name), _chosen(rows, level, nodes)
    if level + 2 == len(rows[0]):
        rows = add_level(rows, level)
    return _labelled(rows, level, chosen, level + 1, name)


def split(rows: Rows, level: int, nodes: Collection[int], name: str = "") -> list[Row]:
    """Let groups fall apart into what they were on the level below."""
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
        raise InputError(f"{len(chosen)} groups are selected; rename one, or join them.")
    _check_free(rows, level, chosen, {name})
    return _labelled(rows, level, chosen, level, name)


def add_level(rows: Rows, level: int) -> list[Row]:
    """Put a level above this one that is the same, to be edited."""
    if not 0 <= level <= len(rows[0]) - 2:
        raise InputError("There is no such level; reload the page.")
    return [(*row[: level + 1], row[level], *row[level + 1 :]) for row in rows]


def drop_level(rows: Rows, level: int) -> list[Row]:
    """Take a level out."""
    if not 1 <= level <= len(rows[0]) - 2:
        raise InputError("The values themselves and the last level stay; choose one between them.")
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
        raise InputError(f"A group needs a name of 1 to {_LONGEST} letters in one line.")
    if set(name) == {ROOT}:
        raise InputError(f"'{ROOT}' says nothing and is the last level; take another name.")
    return name


def _is_unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def _chosen(rows: Rows, level: int, nodes: Collection[int]) -> set[str]:
    if not 0 <= level <= len(rows[0]) - 2:
        raise InputError("There is no such level to edit; reload the page.")
    labels = labels_of(rows, level)
    if not nodes:
        raise InputError("Nothing is selected; select values or groups first.")
    if not all(0 <= node < len(labels) for node in nodes):
        raise InputError("What is selected is not in the list; reload the page.")
    return {labels[node] for node in nodes}


def _check_group(level: int) -> None:
    if level == 0:
        raise InputError("Values of the table are selected; select groups of a level above them.")


def _check_free(rows: Rows, level: int, chosen: set[str], names: set[str]) -> None:
    """No group that is not selected may have one of the names: the two would become one."""
    if any(row[level] in names and row[level] not in chosen for row in rows):
        raise InputError(
            "Another group of this level has this name already; select it as well and join, or "
            "take another name."
        )


def _labelled(rows: Rows, level: int, chosen: set[str], target: int, name: str) -> list[Row]:
    """The rows of nodes with a name at a level, and from there on as the group that has it.

    A new group stands where the first of its nodes stood.
    """

    def coarser() -> Iterator[Row]:
        for inside in (False, True):
            for row in rows:
                if (row[level] in chosen) == inside and (inside or row[target] == name):
                    yield row[target + 1 :]

    above = next(coarser())
    return [(*row[:target], name, *above) if row[level] in chosen else row for row in rows]
