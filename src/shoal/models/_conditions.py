"""Models as what a search asks: of each group while it forms them, and of a whole partition."""

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

    The distribution that groups are compared with is that of ``table``. Models that speak of a
    whole partition ask nothing here: see ``table_conditions``.

    Parameters
    ----------
    models : iterable of PrivacyModel
        The models; together they ask the most that any of them asks.
    table : Table
        The table to be masked, with its sensitive columns.
    smallest : int
        The fewest persons of a group, where no model asks for more.
    whole : bool
        Whether a search that takes out a person takes out all of their rows.

    Returns
    -------
    conditions : Conditions
        As the kernels take them.
    codes : numpy.ndarray of int32
        A row per sensitive column that is asked about, a column per record. A missing value is
        a value of its own: the last one. Where a person has several records, codes stand for
        persons with values, and there is one more row, of the persons.

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
            f"{model.title} is not about groups of records, so no search can form groups by it; "
            "require it of the release instead."
        )
    return conditions


def table_conditions(models: Iterable[PrivacyModel]) -> tuple[Callable[..., bool], ...]:
    """What must hold for a partition as a whole, each asked with the sizes of its classes and,
    where persons are counted, the class and the person of each pair."""
    return tuple(model.holds_for_sizes for model in models if isinstance(model, PartitionModel))


def population_of(models: Iterable[PrivacyModel]) -> Table | None:
    """The population that models speak of, or None where none does."""
    tables = [model.people() for model in models if isinstance(model, PopulationModel)]
    if any(table is not tables[0] for table in tables[1:]):
        raise InputError(
            "The models speak of different populations; a search counts its groups in one. Give "
            "all of them the same table or path."
        )
    return tables[0] if tables else None


def _slots(asked: Sequence[Condition]) -> tuple[list[tuple[str, Integers | None]], Integers]:
    """The sensitive columns to count, each once per tree over it, and which one each asks about."""
    slots: list[tuple[str, Integers | None]] = []
    places = np.zeros(len(asked), np.int64)
    # those with a tree first: a condition without one is as well off in their slot
    for i in sorted(range(len(asked)), key=lambda i: asked[i].tree is None):
        name, tree = asked[i].column, asked[i].tree
        if name is None:
            continue  # about the size in a population: no column is read
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
