"""What a release tells together with earlier ones of the same table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import InputError
from shoal.measurement import MeasureInfo, Measurement
from shoal.risk import intersection
from shoal.table import Table

#: What each attack on several releases finds out.
ATTACKS = {
    "records": MeasureInfo(
        "records", "share of persons in a smaller crowd", "lower", (0, 1), intersection
    ),
    "values": MeasureInfo(
        "values", "share of persons whose secret is certain", "lower", (0, 1), intersection
    ),
}

MEANINGS = {
    "records": "Records can be followed from release to release: the share of persons who are "
    "left with fewer others than the smallest crowd of any release.",
    "values": "They cannot: the share of persons for whom all releases together leave one "
    "sensitive value, which is theirs.",
}


def check_earlier(earlier: Any, table: Table) -> list[Table]:
    """The earlier releases; raises InputError unless each pairs with the table."""
    given = list(earlier) if isinstance(earlier, (list, tuple)) else [earlier]
    if not all(isinstance(one, Table) for one in given):
        raise InputError("The earlier releases must be a list of shoal.Tables.")
    lost = sum(not one.pairs_with(table) for one in given)
    if lost:
        raise InputError(
            f"{lost} of the {len(given)} earlier releases cannot be paired with the table, so that "
            "nobody can be followed from one to the other; read each with its private half and "
            "the same original, or declare their rows by release.paired(original)."
        )
    return given


def exposed_together(
    table: Table, earlier: Sequence[Table], original: Table | None
) -> tuple[Mapping[str, Measurement], tuple[str, ...]]:
    """What both attacks find, and why one could not be tried."""
    releases = [table, *earlier]
    found = {"records": intersection(releases, attack="records", original=original)}
    try:
        found["values"] = intersection(releases, attack="values", original=original)
    except InputError:
        return found, (
            "Together with the earlier releases only records were followed, since no sensitive "
            "column is in all of them that could be compared.",
        )
    return found, ()
