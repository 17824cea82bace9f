"""The sets of columns that must be anonymous, each with its own k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from shoal.errors import InputError, quoted
from shoal.parameters import Constraint, Integer

_MOST_SETS = 1_000
_PARTS = {"columns", "size", "k"}


@dataclass(frozen=True)
class KeySets(Constraint):
    """Sets of columns: names, a number of columns, or a table with one of them and a k."""

    words = (
        "a list of sets of columns: each a list of names, a number of columns (all sets of that "
        "size) or a table with 'columns' or 'size', and 'k'"
    )

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) > 0 and all(map(_is_set, value))


def _is_set(given: Any) -> bool:
    if isinstance(given, Mapping):
        what = [name for name in ("columns", "size") if name in given]
        k = given.get("k", 2)
        return (
            len(what) == 1
            and _PARTS.issuperset(given)
            and Integer(minimum=2).accepts(k)
            and not isinstance(given[what[0]], Mapping)
            and isinstance(given[what[0]], list) == (what == ["columns"])
            and _is_set(given[what[0]])
        )
    if isinstance(given, list):
        return (
            bool(given)
            and all(isinstance(one, str) for one in given)
            and (len(set(given)) == len(given))
        )
    return Integer(minimum=1).accepts(given)


def sets_of(
    given: Sequence[Any] | None, every: Sequence[str], k: int
) -> list[tuple[list[str], int]]:
    """The sets of columns that must be anonymous, the largest first, with their k."""
    if given is None:
        return [([*every], k)]
    found: list[tuple[list[str], int]] = []
    for one in given:
        asked = (
            one if isinstance(one, Mapping) else {"size" if np.isscalar(one) else "columns": one}
        )
        names, own = asked.get("columns"), int(asked.get("k", k))
        if names is None:
            size = int(asked["size"])
            if size > len(every):
                raise InputError(
                    f"'combinations' asks for sets of {size} columns, but the step has "
                    f"{len(every)}. Ask for smaller sets."
                )
            if comb(len(every), size) > _MOST_SETS:
                raise InputError(
                    f"'combinations' asks for all {comb(len(every), size):,} sets of {size} "
                    f"columns, and at most {_MOST_SETS:,} can be processed. Name the sets."
                )
            found.extend(([*each], own) for each in combinations(every, size))
        elif stray := [name for name in names if name not in every]:
            raise InputError(
                f"'combinations' names {quoted(stray)}, but the columns of this step are "
                f"{quoted(every)}. Correct the names, or the roles."
            )
        else:
            found.append(([*names], own))
    return sorted(found, key=lambda one: (-len(one[0]), -one[1]))
