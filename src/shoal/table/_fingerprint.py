"""A hash of a table's data, so that results of other data are not taken for these."""

from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.table._table import Table


def fingerprint(table: Table) -> str:
    """The hash of the rows in their order, and of the roles. Private: it is a hash of people.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> first, second = (Table(pl.DataFrame({"age": ages})) for ages in ([30, 41], [41, 30]))
    >>> fingerprint(first) == fingerprint(second)
    False
    """
    buffer = io.BytesIO()
    table._data.write_ipc(buffer)
    digest = hashlib.sha256(buffer.getbuffer())
    digest.update(json.dumps(table.roles.to_dict(), sort_keys=True).encode())
    return digest.hexdigest()
