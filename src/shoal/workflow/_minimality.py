"""What the choices of a generalization give away: how much of it can be undone, and in what words.

A step says in its audit what follows from its own search; here it becomes what the public may read,
in shares of a crowd, and the sentence for the report and for the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import quoted
from shoal.workflow._plan import StepRecord
from shoal.workflow.release._crowds import crowded_percent


def minimality_of(step: StepRecord) -> dict[str, Any] | None:
    """What can be concluded from a step not having been finer; None where nothing can.

    ``columns`` are those of which a level finer was not possible; ``cells_percent`` is the share of
    the cells of the generalized columns that this narrows down, and ``records_percent`` that of the
    records with such a cell. A share is None where the table is too small to tell it.
    """
    told = step.private.get("minimality")
    if not told or not told["columns"]:
        return None
    rows = told["released"]
    return {
        "algorithm": step.parameters.get("algorithm", "full-domain"),
        "columns": list(told["columns"]),
        "cells_percent": crowded_percent(told["cells"] / (rows * told["width"]), rows),
        "records_percent": crowded_percent(told["records"] / rows, rows),
    }


def minimalities_of(steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """What can be concluded from each step of which something can."""
    return [found for step in steps if (found := minimality_of(step)) is not None]


def minimality_in_words(found: Mapping[str, Any], *, named: bool = True) -> str:
    """What whoever knows the algorithm and the hierarchies concludes, in one or two sentences.

    Examples
    --------
    >>> minimality_in_words({"algorithm": "local", "columns": ["age"], "cells_percent": 40.0,
    ...     "records_percent": 62.0})
    "Whoever knows the algorithm and the hierarchies knows that the records of a class differ one \
level below each coarse value of 'age'. This narrows down 40 % of the cells, in 62 % of the \
records."
    """
    of = f" of {quoted(found['columns'])}" if named else ""
    if found["algorithm"] == "local":
        known = f"the records of a class differ one level below each coarse value{of}"
    else:
        known = f"with one level finer{of}, some class would have failed"
    cells, records = found["cells_percent"], found["records_percent"]
    if cells is None:
        size = "The table is too small to say how many cells this narrows down."
    elif not cells and not records:
        size = "This narrows down less than 1 % of the cells by itself."
    else:
        size = f"This narrows down {cells:g} % of the cells, in {records:g} % of the records."
    return f"Whoever knows the algorithm and the hierarchies knows that {known}. {size}"
