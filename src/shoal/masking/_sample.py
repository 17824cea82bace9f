"""Sampling: only some records are released, so nobody knows who is in the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Integers
from shoal.masking._base import Masker, StepLog
from shoal.parameters import Flag, OneOf, Real, Secret
from shoal.table import OTHER, Course, Roles, Sampling, Table

Hashes = npt.NDArray[np.uint64]


@dataclass(kw_only=True)
class Sample(Masker):
    """Release a share of the records.

    Before a step that generalizes, this is *pre-sampling*: classes are formed in the sample, and
    each stands for more people than it shows. After such a step, it is *post-sampling*: the
    classes are those of the whole table, but the release itself may no longer be k-anonymous.

    A record is chosen by a hash of its key under a secret, so that the same key and secret choose
    the same records wherever and in whatever order they are read. If the roles name a unit or a
    household, the step chooses whole persons or households: it keeps a share of them.

    Parameters
    ----------
    fraction : float
        The share of the records to keep, above 0 and below 1.
    strategy : {"random", "stratified", "balanced", "bernoulli"}
        ``"random"``: a simple random sample of floor(fraction × records).
        ``"stratified"``: floor(fraction × size) of each class, so that nobody can be more certain
        than ``fraction`` that a person of the class is in the release; a class whose share is
        below one record disappears.
        ``"balanced"``: as many of each class as ``"stratified"``, but it removes records with the
        most frequent target value first, so that the target values become balanced.
        ``"bernoulli"``: each record independently, with probability ``fraction``. Differential
        privacy by sampling relies on this.
    whole : bool
        Keep or remove all records of a person, or of a household if one is declared.
        Strategies by class choose single records, and cannot do so if a person has several.
    random_state : int, optional
        For tests only: anyone who learns the seed can tell who was left out.

    Attributes
    ----------
    class_sizes_before_ : numpy.ndarray
        For each record in the sample, how many records its class had before. Private.

    References
    ----------
    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30] * 5 + [40] * 8})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"]))
    >>> masked = Sample(fraction=0.5, strategy="stratified").fit_transform(table)
    >>> masked.classes.histogram
    {2: 1, 4: 1}
    """

    fraction: Annotated[float, Real(above=0, below=1)]
    strategy: Annotated[str, OneOf(("random", "stratified", "balanced", "bernoulli"))] = "random"
    whole: Annotated[bool, Flag()] = True
    random_state: Annotated[int | None, Secret()] = None

    method = "sample"
    summary = "releases a share of the records, chosen at random"
    reference = "Verdonck et al. 2022"
    is_random = True

    @property
    def needs_columns(self) -> bool:
        """Records are drawn; strategies that need classes look them up themselves."""
        return False

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        stream = self._stream(table, log)
        drawn, member = self._drawn_together(table)
        hashes = stream.keyed_hash(drawn, self.method)
        if self.strategy == "bernoulli":
            chosen = hashes < np.uint64(int(exact_fraction(self.fraction) * 2**64))
        elif self.strategy == "random":
            chosen = np.zeros(len(drawn), np.bool_)
            chosen[np.argsort(hashes, kind="stable")[: self._quota(len(drawn))]] = True
        else:
            chosen = self._of_classes(table, hashes)
        kept = chosen[member]
        self.class_sizes_before_ = table.classes.record_sizes[kept]
        return table.with_sampling(Sampling.of(table)).keep(kept)

    def _drawn_together(self, table: Table) -> tuple[Integers, Integers]:
        """The keys of units drawn as a whole (from their first records), and each record's unit."""
        together = table.together
        if together is None or not self.whole:
            return table.row_key, np.arange(len(table))
        _, member = np.unique(together, return_inverse=True)
        keys = np.full(int(member.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(keys, member, table.row_key)
        self.refuse_parts(len(keys), len(table))
        return keys, member

    def refuse_parts(self, wholes: int, records: int) -> None:
        """Raise InputError if drawing records of each class would split units drawn as a whole."""
        if wholes < records and self.strategy in ("stratified", "balanced"):
            raise InputError(
                f"The strategy '{self.strategy}' draws records from each class, so it cannot draw "
                f"whole persons or households; here {records} records belong to {wholes}. "
                "Choose 'random' or 'bernoulli', or set whole=False."
            )

    def _course(self, before: Course, log: StepLog) -> Course:
        if self.strategy != "bernoulli" or before != Course():
            return OTHER
        return Course("sampled", self.fraction, log.private["randomness"])

    def _quota(self, size: int) -> int:
        """How many records to keep; exact, since a rounded product can be off by one."""
        return int(exact_fraction(self.fraction) * size)

    def _of_classes(self, table: Table, hashes: Hashes) -> Flags:
        strata = table.group(self.strata(table.roles))
        first = np.full(strata.count, np.iinfo(np.uint64).max)
        np.minimum.at(first, strata.labels, hashes)
        order = np.lexsort((hashes, strata.labels))
        starts = np.cumsum(strata.rows) - strata.rows
        rank = np.empty(len(table), np.int64)
        rank[order] = np.arange(len(table)) - np.repeat(starts, strata.rows)
        return rank < self.quotas(table, first)[strata.labels]

    def strata(self, roles: Roles) -> list[str]:
        """The columns whose combinations form the strata."""
        target = [self._target(roles)] if self.strategy == "balanced" else []
        return list(dict.fromkeys([*roles.quasi_identifiers, *target]))

    def quotas(self, table: Table, first: Hashes) -> Integers:
        """How many records of each stratum to keep, starting with the smallest hashes.

        ``first`` has the smallest hash of each stratum; classes are balanced in this order.
        """
        strata = table.group(self.strata(table.roles))
        classes = table.group(table.roles.quasi_identifiers)
        sizes, place = np.unique(classes.rows, return_inverse=True)
        quotas = np.array([self._quota(int(size)) for size in sizes], np.int64)[place]
        of_class = classes.labels[strata.first_rows]
        if self.strategy == "stratified":
            return quotas[of_class]
        from shoal.kernels.balancing import balanced_counts

        target = table.codes(self._target(table.roles))
        values = target.codes[strata.first_rows].astype(np.int64)
        soonest = np.full(classes.count, np.iinfo(np.uint64).max)
        np.minimum.at(soonest, of_class, first)
        by_turn = np.argsort(soonest, kind="stable")
        cells = np.lexsort((values, np.argsort(by_turn)[of_class]))
        offsets = np.append(0, np.cumsum(np.bincount(of_class)[by_turn]))
        removals = (classes.rows - quotas)[by_turn]
        kept = np.empty(strata.count, np.int64)
        kept[cells] = balanced_counts(
            strata.rows[cells], values[cells], offsets, removals, target.count
        )
        return kept

    @staticmethod
    def _target(roles: Roles) -> str:
        if roles.target is None:
            raise InputError(
                "A balanced sample needs a target, whose values it balances. Declare one in the "
                "roles, or choose the strategy 'stratified'."
            )
        return roles.target


def exact_fraction(fraction: float) -> Fraction:
    """The fraction as written: 0.1 is one tenth, not the double closest to it."""
    return Fraction(repr(float(fraction)))
