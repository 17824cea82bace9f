"""What a linked record tells: the chance that its label, of whatever kind, is the person's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.risk.linkage._distance_linkage import distance_links
from shoal.risk.linkage._intruder import Intruder
from shoal.risk.linkage._probabilistic_linkage import probabilistic_links
from shoal.risk.linkage._right_links import Links
from shoal.risk.linkage._similarity_linkage import similarity_links

Linkage = Literal["distance", "probabilistic", "similarity"]

_LINKAGES: dict[str, Callable[..., Links]] = {
    "distance": distance_links,
    "probabilistic": probabilistic_links,
    "similarity": similarity_links,
}


def label_chances(
    intruder: Intruder,
    person_labels: Integers,
    record_labels: Integers,
    *,
    linkage: Linkage = "distance",
    **options: Any,
) -> Floats:
    """For each person the chance that the best-matching masked record has the person's label.

    The record is drawn uniformly among those that match best. Where labels are rows this is
    record linkage; where they are values of a secret, it is attribute disclosure by linkage.

    Parameters
    ----------
    intruder : Intruder
        The persons, what is known of them, and the masked table.
    person_labels : array of int
        The label of each of ``intruder.persons``; one that is negative is never right.
    record_labels : array of int
        The label of each masked record.
    linkage : {"distance", "probabilistic", "similarity"}
        How the best-matching record is found.
    **options
        Those of the linkage, such as ``dissimilarity``.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> from shoal.risk.linkage._intruder import intruder_of
    >>> table = Table(pl.DataFrame({"age": [30, 30, 48]}), Roles(quasi_identifiers=["age"]))
    >>> intruder = intruder_of(table, table, known=None, sample=10, random_state=None)
    >>> secrets = np.array([4, 4, 7])
    >>> label_chances(intruder, secrets, secrets).tolist()
    [1.0, 1.0, 1.0]
    """
    if linkage not in _LINKAGES:
        raise InputError(
            "The linkage must be 'distance', 'probabilistic' or 'similarity'; got "
            f"{linkage!r} instead."
        )
    return _LINKAGES[linkage](intruder, person_labels, record_labels, **options).chances
