"""Swapping within groups of similar records: probabilistic k-anonymity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Integers, Labels
from shoal.masking._base import Masker, StepLog
from shoal.masking.grouping._dissimilarity import DISSIMILARITIES
from shoal.masking.grouping._group_models import Models, PrivacyModels
from shoal.masking.grouping._partitions import PARTITIONS, check_size, form_groups, rank_groups
from shoal.parameters import ColumnNames, Flag, Integer, OneOf, Real, Secret
from shoal.randomness import SecretStream
from shoal.table import Exchange, Table


@dataclass(kw_only=True)
class Swap(Masker):
    """Permute values among at least ``k`` similar records, so that one link in k is right.

    By default the step protects against *uninformed* intruders, who know quasi-identifiers.
    Records with similar quasi-identifiers form groups. In each group the quasi-identifiers are
    permuted, all together or block by block, against the rest of the record. With
    ``informed=True`` the step protects against *informed* intruders, who may know everything
    except one secret. Each sensitive column is permuted within groups of records that are similar
    in all other quasi-identifiers and sensitive columns of the table, including the swaps so far
    (MDAV-SWAP). With ``partition="individual-ranking"`` the groups have neighboring ranks of the
    column itself (IR-SWAP).

    Every column keeps its exact distribution. The bound of 1/k is for links by the swapped
    columns. Columns that stay in place can link a row as well as before, and strong correlations
    narrow down who is who.

    Parameters
    ----------
    k : int
        The size of the smallest group.
    partition : str
        How groups are formed, as for Microaggregate.
    dissimilarity : {"gower", "euclidean", "ahmad-dey", "ahmad-dey-squared"}
        How records are compared; ``"euclidean"`` is for numbers only.
    blocks : {"joint", "mutual-information"}
        Whether the quasi-identifiers move together, or in pairs by their mutual information with
        the first sensitive column.
    informed : bool
        Swap the sensitive columns, one after the other, instead of the quasi-identifiers.
    standardize : bool
        Scale numbers to mean 0 and variance 1 before computing Euclidean distances.
    refine : bool
        Improve the groups by local search, as for Microaggregate.
    seconds : float
        How long the local search may take.
    gamma : float
        For ``"v-mdav"``: how readily a group accepts further records.
    models : privacy model or list of privacy models, optional
        What every group must satisfy in addition to its size, as for Microaggregate. With
        ``LDiversity(2)``, for example, no group has only one sensitive value. With
        ``informed=True`` the models also cover the column that is swapped, and groups of
        neighboring ranks are not possible.
    columns : list of str, optional
        The columns to swap; by default the quasi-identifiers (informed: the sensitive columns).
    random_state : int, optional
        For tests only: anyone who learns the seed can undo every swap.

    Attributes
    ----------
    groups_ : numpy.ndarray
        The group of each record; with ``informed=True``, the groups of the last column. Private.
    blocks_ : list of tuple
        The columns that moved together.

    References
    ----------
    Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and data
    swapping <https://doi.org/10.1109/FUZZ-IEEE.2012.6251280>. Senavirathne, Torra (2021),
    Systematic evaluation of probabilistic k-anonymity for privacy preserving micro-data publishing
    and analysis <https://doi.org/10.5220/0010560703070320>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [20, 22, 61, 63], "ill": ["flu", "gout", "flu", "ok"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> swapped = Swap(2).fit_transform(table).frame
    >>> sorted(swapped["age"][:2]), sorted(swapped["age"][2:])
    ([20, 22], [61, 63])
    """

    k: Annotated[int, Integer(minimum=2)] = field(kw_only=False)
    partition: Annotated[str, OneOf(PARTITIONS)] = "mdav"
    dissimilarity: Annotated[str, OneOf(DISSIMILARITIES)] = "gower"
    blocks: Annotated[str, OneOf(("joint", "mutual-information"))] = "joint"
    informed: Annotated[bool, Flag()] = False
    standardize: Annotated[bool, Flag()] = True
    refine: Annotated[bool, Flag()] = False
    seconds: Annotated[float, Real(above=0)] = 1.0
    gamma: Annotated[float, Real(minimum=0)] = 0.2
    models: Annotated[Models | None, PrivacyModels()] = None
    columns: Annotated[list[str] | None, ColumnNames()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "swap"
    renamed = MappingProxyType({"groups_satisfy": "models", "refine_seconds": "seconds"})
    summary = "permutes values among at least k similar records"
    reference = "Soria-Comas and Domingo-Ferrer 2012; Senavirathne and Torra 2021"
    is_random = True

    @property
    def needs_columns(self) -> bool:
        """For informed intruders the sensitive columns are swapped; no others are required."""
        return not self.informed

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        check_size(self.k, table)
        stream = self._stream(table, log)
        swapped = (self._swap_secrets if self.informed else self._swap_hints)(
            table, columns, stream, log
        )
        log.private["blocks"] = [list(block) for block in self.blocks_]
        log.compare((name for block in self.blocks_ for name in block), swapped, table)
        return swapped

    def _swap_hints(
        self, table: Table, columns: Sequence[str], stream: SecretStream, log: StepLog
    ) -> Table:
        """For uninformed intruders: swap blocks of quasi-identifiers within one partition."""
        self.groups_ = form_groups(table, columns, self, stream, log, even=True)
        self.blocks_ = [tuple(columns)]
        if self.blocks == "mutual-information":
            if not table.roles.sensitive:
                raise InputError(
                    "Blocks by mutual information need a sensitive column. Declare one in the "
                    "roles, or swap the quasi-identifiers jointly."
                )
            self.blocks_ = blocks_by_information(table, columns, table.roles.sensitive[0])
        swapped = table
        for block in self.blocks_:
            swapped = _exchanged(swapped, block, self.groups_, stream)
        return swapped

    def _swap_secrets(
        self, table: Table, columns: Sequence[str], stream: SecretStream, log: StepLog
    ) -> Table:
        """For informed intruders: swap each column in turn, in groups formed by all others."""
        secrets = list(self.columns or table.roles.sensitive)
        if not secrets:
            raise InputError(
                "Swapping for informed intruders needs sensitive columns. Declare them in the "
                "roles, or name columns."
            )
        if self.partition == "individual-ranking" and self.models is not None:
            raise InputError(
                "The records in groups of neighboring ranks have similar secrets, so the groups "
                "cannot satisfy conditions on it. Remove 'models', or choose the partition 'mdav'."
            )
        known = [*table.roles.quasi_identifiers, *table.roles.sensitive]
        known = [name for name in table.columns if name in {*known, *secrets}]
        self.blocks_ = [(name,) for name in secrets]
        swapped = table
        for name in secrets:
            if self.partition == "individual-ranking":
                self.groups_ = rank_groups(swapped, name, self.k)
            else:
                others = [other for other in known if other != name]
                own = stream.derive("groups", name)
                self.groups_ = form_groups(swapped, others, self, own, log, even=True)
            swapped = _exchanged(swapped, (name,), self.groups_, stream)
        return swapped


def _exchanged(table: Table, block: tuple[str, ...], groups: Labels, stream: SecretStream) -> Table:
    """One uniform permutation of a block within each group, recorded with the table."""
    order = np.argsort(groups, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    source = stream.derive("swap", *block).permute_within(order, offsets)
    exchange = Exchange(block, groups, table.row_key[source], stream.origin)
    return table.with_cells_of(dict.fromkeys(block, source)).with_exchange(exchange)


_BINS = 10


def blocks_by_information(
    table: Table, columns: Sequence[str], sensitive: str
) -> list[tuple[str, ...]]:
    """Pairs of columns in descending order of their mutual information with a sensitive one.

    Ties keep the order of the columns. An odd last column joins the block before it, so that
    every block has at least two columns if there are that many. Numbers are first put into ten
    bins of equal frequency (Senavirathne and Torra 2021, section 4.3).
    """
    from shoal.kernels.joint_entropy import mutual_informations

    if sensitive not in table.columns:
        raise InputError(f"The table has no sensitive column '{sensitive}'.")
    secret = _as_categories(table, sensitive)
    shared = [mutual_informations([_as_categories(table, name), secret])[0, 1] for name in columns]
    ranked = [columns[place] for place in np.argsort(-np.array(shared), kind="stable")]
    pairs = [tuple(ranked[start : start + 2]) for start in range(0, len(ranked), 2)]
    if len(pairs) > 1 and len(pairs[-1]) == 1:
        pairs[-2:] = [pairs[-2] + pairs[-1]]
    return pairs


def _as_categories(table: Table, name: str) -> Integers:
    codes = table.codes(name)
    if table.kind(name) not in ("integer", "float") or codes.count <= _BINS:
        return codes.codes.astype(np.int64)
    numbers = table.numbers(name)
    inside = numbers.values[numbers.present].astype(np.float64)
    edges = np.quantile(inside, np.arange(1, _BINS) / _BINS)
    bins = np.searchsorted(edges, numbers.values.astype(np.float64), side="right")
    return np.where(numbers.present, bins, _BINS).astype(np.int64)
