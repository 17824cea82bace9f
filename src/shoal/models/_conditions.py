"""Models in the form that a search needs: conditions on each group, and on a whole partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Integers, Labels
from shoal.models._base import Condition, PartitionModel, PrivacyModel
from shoal.models._population import PopulationModel
from shoal.table import Table, owned_pairs

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions


def conditions_of(
    models: Iterable[PrivacyModel], table: Table, *, smallest: int = 1, whole: bool = True
) -> tuple[Conditions, Labels]:
    """What every group must satisfy so that the models hold, and the sensitive values.

    Groups are compared with the distribution of ``table``. Models that concern a whole partition
    require nothing here: see ``table_conditions``.

    Parameters
    ----------
    models : iterable of PrivacyModel
        The models. Of several requirements, the strictest applies.
    table : Table
        The table to mask, with its sensitive columns.
    smallest : int
        The fewest persons of a group, if no model requires more.
    whole : bool
        Whether a search that removes a person removes all of their rows.

    Returns
    -------
    conditions : Conditions
        In the form that the kernels use.
    codes : numpy.ndarray of int32
        A row per sensitive column that a model uses, a column per record. A missing value is
        a value of its own: the last one. If a person has several records, the columns are pairs
        of person and value, and one more row holds the persons.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import KAnonymity, LDiversity, Roles
    >>> frame = pl.DataFrame({"age": [30, 30, 41], "ill": ["flu", None, "gout"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> conditions, codes = conditions_of([KAnonymity(3), LDiversity(2)], table)
    >>> conditions.smallest, conditions.bounds.tolist(), codes.tolist()
    (3, [2.0], [[0, 2, 1]])
    """
    from shoal.kernels import conditions as kernel
    from shoal.kernels.conditions import each_record, persons_of

    models = list(models)
    smallest = max([smallest, *(model.smallest_class for model in models)])
    asked = [condition for model in models for condition in _asked(model, table)]
    slots, columns = _slots(asked)
    encoded = [table.codes(name) for name, _ in slots]
    values = np.array([column.count for column in encoded], np.int64)
    codes = np.zeros((len(slots), len(table)), np.int32)
    shares = np.zeros((len(slots), max(values, default=0)))
    persons, rates = each_record(), np.zeros_like(shares)
    for place, column in enumerate(encoded):
        codes[place] = column.codes
        counted = column.counts
        if table.has_persons:
            values_had, _ = owned_pairs(column.codes, table.persons)
            counted = np.bincount(values_had, minlength=column.count)
        shares[place, : column.count] = counted / max(1, int(counted.sum()))
        rates[place, : column.count] = counted / max(1, table.person_count)
    if table.together is not None:
        histories = max([1, *(getattr(model, "rarest_history", 1) for model in models)])
        persons, codes = persons_of(
            list(codes), table.persons, table.together, rates, histories=histories, whole=whole
        )
    trees, heights = _trees([tree for _, tree in slots], shares.shape[1])
    conditions = kernel.Conditions(
        smallest=smallest,
        kinds=np.array([getattr(kernel, c.kind.upper()) for c in asked], np.int64),
        columns=columns,
        bounds=np.array([c.bound for c in asked], np.float64),
        extras=np.array([c.extra for c in asked], np.float64),
        shares=shares,
        values=values,
        trees=trees,
        heights=heights,
        persons=persons,
    )
    return conditions, codes


def _asked(model: PrivacyModel, table: Table) -> tuple[Condition, ...]:
    conditions = model.conditions(table)
    if not conditions and model.smallest_class < 2 and not isinstance(model, PartitionModel):
        raise InputError(
            f"{model.title} does not concern groups of records, so no search can form groups by "
            "it. Require it of the release instead."
        )
    return conditions


def table_conditions(models: Iterable[PrivacyModel]) -> tuple[Callable[..., bool], ...]:
    """What must hold for a partition as a whole: each is called with the sizes of its classes
    and, if persons are counted, with the class and the person of each pair."""
    return tuple(model.holds_for_sizes for model in models if isinstance(model, PartitionModel))


def population_of(models: Iterable[PrivacyModel]) -> Table | None:
    """The population of the models, or None if none has one."""
    tables = [model.people() for model in models if isinstance(model, PopulationModel)]
    if any(table is not tables[0] for table in tables[1:]):
        raise InputError(
            "The models use different populations, but a search counts its groups in one. Pass "
            "the same table or path to all of them."
        )
    return tables[0] if tables else None


def _slots(asked: Sequence[Condition]) -> tuple[list[tuple[str, Integers | None]], Integers]:
    """The sensitive columns to count, each once per tree, and the one that each condition uses."""
    slots: list[tuple[str, Integers | None]] = []
    places = np.zeros(len(asked), np.int64)
    # those with a tree first: a condition without one can use their slot too
    for i in sorted(range(len(asked)), key=lambda i: asked[i].tree is None):
        name, tree = asked[i].column, asked[i].tree
        if name is None:
            continue  # about the size in a population: it reads no column
        fits = [
            place
            for place, (known, known_tree) in enumerate(slots)
            if known == name and (tree is None or np.array_equal(tree, known_tree))  # type: ignore[arg-type]
        ]
        if not fits:
            slots.append((name, tree))
        places[i] = fits[0] if fits else len(slots) - 1
    return slots, places


def _trees(given: Sequence[Integers | None], values: int) -> tuple[Integers, Integers]:
    """All trees in one array, padded."""
    heights = np.array([0 if tree is None else len(tree) - 1 for tree in given], np.int64)
    trees = np.zeros((len(given), max(heights, default=0) + 1, values), np.int64)
    for place, tree in enumerate(given):
        if tree is not None:
            trees[place, : len(tree), : tree.shape[1]] = tree
    return trees, heights
