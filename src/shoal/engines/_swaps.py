"""The guarantee of a swap in chunks, from the groups and sources in the private half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.engines._engine import OWNER, Rows
from shoal.models import PrivacyModel
from shoal.table import Roles, Table
from shoal.workflow import Claim, StepRecord

#: Steps as a release records them.
_Steps = Sequence[Mapping[str, Any]]


def swap_claim(
    model: PrivacyModel, private: Rows, records: Sequence[StepRecord], roles: Roles, after: Table
) -> Claim:
    """The claim that a link is right 1 in k times, by the smallest group or the smallest class.

    A swap counts if it covers every quasi-identifier or, for informed intruders, every sensitive
    column, and if it is the last step that touched them.
    """
    steps = [
        {"method": one.method, "columns": one.touched, "parameters": one.parameters}
        for one in records
    ]
    level = linked_crowd(private, steps, roles, after)
    sentence = (
        f"{model.title} with k = {model.threshold} requires groups of at least {model.threshold} "
        f"records that exchanged their values; the smallest has {level}"
    )
    return Claim(model, level, bool(model.accepts(level)), sentence, after.records)


def linked_crowd(private: Rows, steps: _Steps, roles: Roles, after: Table) -> int:
    """The size of the smallest crowd of a record: its class, or its group in a swap."""
    owners = [OWNER + name for name in roles.unit_columns]
    asked = roles.quasi_identifiers, roles.sensitive
    crowds = [swapped_crowd(private, steps, names, owners) for names in asked if names]
    return max([even_crowd(after), *crowds])


def even_crowd(after: Table) -> int:
    """The size of the smallest class: its rows, divided by those of any one person in it."""
    if not after.has_persons:
        return after.classes.k
    rows = after.group(after.roles.quasi_identifiers)
    labels = rows.labels.astype(np.int64) * after.person_count + after.persons
    _, place = np.unique(labels, return_inverse=True)
    own = np.bincount(place, after.times).astype(np.int64)[place]
    return int((rows.rows[rows.labels] // own).min())


def swapped_crowd(
    private: Rows, steps: _Steps, protected: Sequence[str], owners: Sequence[str] = ()
) -> int:
    """The size of the smallest group that exchanged the protected columns; 1 if none did.

    If persons have several rows, it is the rows of a group divided by those of any one person.
    """
    touching = [(n, step) for n, step in enumerate(steps) if {*step["columns"]} & {*protected}]
    if not touching or touching[-1][1]["method"] != "swap":
        return 1
    number, step = touching[-1]
    blocks = range(len(step["columns"]) if step["parameters"].get("informed") else 1)
    kept = all(f"{number}_group_{block}" in private.schema for block in blocks)
    if not {*protected} <= {*step["columns"]} or not kept:
        return 1
    return min(_crowd_of_block(private, f"{number}_", block, owners) for block in blocks)


def _crowd_of_block(private: Rows, first: str, block: int, owners: Sequence[str]) -> int:
    """The same for columns that moved together; 1 if they did not stay in their groups."""
    quote, query = private.engine.quote, private.engine.query
    chunk, group, source = (
        quote(first + name) for name in ("chunk", f"group_{block}", f"source_{block}")
    )
    found = query(
        f"SELECT min(n) AS k, sum(n - d) AS twice FROM (SELECT count(*) AS n, "
        f"count(DISTINCT {source}) AS d FROM {private.name} GROUP BY {chunk}, {group})"
    )
    strays = query(
        f"SELECT count(*) AS n FROM {private.name} AS a LEFT JOIN {private.name} AS b "
        f"ON a.{source} = b.row_key AND a.{chunk} = b.{chunk} AND a.{group} = b.{group} "
        "WHERE b.row_key IS NULL"
    )
    whole = int(found["twice"][0]) == 0 and int(strays["n"][0]) == 0
    if not whole or not owners:
        return int(found["k"][0]) if whole else 1
    whose = ", ".join(map(quote, owners))
    shares = query(
        f"SELECT sum(n) AS n, max(n) AS own FROM (SELECT {chunk}, {group}, count(*) AS n "
        f"FROM {private.name} GROUP BY {chunk}, {group}, {whose}) GROUP BY {chunk}, {group}"
    )
    return int((shares["n"] // shares["own"]).min())  # type: ignore[arg-type]
