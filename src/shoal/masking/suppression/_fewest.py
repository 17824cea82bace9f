"""From what a step asks for to the cells that it blanks, counted again on the masked table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.errors import InputError, RequirementNotMet
from shoal.kernels.arrays import Flags, Integers
from shoal.masking.suppression._by_agreement import blanks_by_agreement
from shoal.masking.suppression._by_class import blanks_by_class
from shoal.masking.suppression._cells import Blanks, Cells
from shoal.masking.suppression._exact import fewest_blanks
from shoal.models import KAnonymity, PrivacyModel, counted
from shoal.randomness import SecretStream
from shoal.table import Missing, Roles, Table

_ATTEMPTS = 60
_PASSES = 20  # over overlapping sets of columns


def check_k(k: int, table: Table, parameter: str) -> None:
    """Raise InputError if a table has fewer persons than a class needs."""
    if k > table.person_count:
        raise InputError(
            f"Suppress requires classes of at least {k} persons, but the table has "
            f"{counted(table)}. Lower '{parameter}'."
        )


@dataclass
class Fewest:
    """Blanks cells of a table, set of columns by set of columns.

    ``costs`` has what a cell of each column costs.
    """

    costs: Mapping[str, float]
    missing: Missing
    models: Sequence[PrivacyModel] = ()
    bound: float | None = None
    proved: bool = False

    def blank(self, table: Table, sets: Sequence[tuple[list[str], int]]) -> Table:
        """The table in which every set of columns is anonymous; RequirementNotMet if none is."""
        draw = SecretStream.from_state().permutation(len(table))
        roles, blanked = table.roles, -1
        for _ in range(_PASSES):
            for names, k in sets:
                table = _known_by(names, table, roles)
                table = self._anonymous(table, KAnonymity(k, missing=self.missing), draw)
            # in the reading that compares blanks, those of one set change the classes of another
            before, blanked = blanked, sum(map(table.missing_count, table.columns))
            if len(sets) == 1 or blanked == before:
                break
        else:
            raise self._unreached(table, "the sets of columns overlap too much")
        if len(sets) > 1:
            self.bound, self.proved = None, False
        return _known_by(roles.quasi_identifiers, table, roles)

    def _anonymous(self, table: Table, asked: KAnonymity, draw: Integers) -> Table:
        check_k(asked.k, table, "k")
        classes, names = table.classes, table.roles.quasi_identifiers
        sizes = table.crowd_sizes(self.missing)
        costs = np.array([self.costs[name] for name in names])
        need = np.full(classes.count, asked.k)
        masked = table
        for attempt in range(_ATTEMPTS):
            short = self._short(masked, asked)
            if not short.any():
                if attempt == 0:
                    self.bound, self.proved = 0.0, True
                self.proved &= attempt <= 1
                return masked
            if attempt or (classes.spread(sizes) >= asked.k)[short].any():
                sizes_now = masked.class_sizes(self.missing)
                if not self._raise(need, classes.labels, sizes_now, short):
                    break
            cells = Cells.of(table, sizes, need, costs)
            found = self._found(table, cells)
            if found is None:
                raise self._unreached(masked, "there are too few records")
            if attempt == 0 and not self.models:
                self.bound, self.proved = found.bound, found.proved
            marked = found.cells(classes, draw)
            cells_of = {name: marked[:, at] for at, name in enumerate(names) if marked[:, at].any()}
            masked = table.blank(cells_of)
        raise self._unreached(masked, "blanks alone do not lead there")

    def _found(self, table: Table, cells: Cells) -> Blanks | None:
        wildcard = self.missing == "wildcard"
        cells, order = cells.in_order()
        ever_better = (blanks_by_agreement if wildcard else blanks_by_class)(cells)
        found = next(ever_better, None)
        if found is None:
            return None
        exact = None
        if not found.proved and not table.has_persons:
            exact = fewest_blanks(cells, wildcard=wildcard)
        if exact is None:
            *_, found = found, *ever_better
        else:
            found = exact
        return replace(found, combinations=order[found.combinations])

    def _short(self, table: Table, asked: KAnonymity) -> Flags:
        """The records in classes that are too small or fail a model."""
        short = asked.violations(table)
        for model in self.models:
            short = short | model.violations(table)
        return short

    @staticmethod
    def _raise(need: Integers, labels: Integers, sizes: Integers, short: Flags) -> bool:
        """Ask for larger crowds around records that still fail; false if they are the largest.

        They grow by a quarter each time. Where the rows are enough but belong to few persons, or
        fail a model, more rows are needed, up to all of them.
        """
        failing, before = labels[short], need.copy()
        np.maximum.at(need, failing, sizes[short] + 1 + sizes[short] // 4)
        stuck = np.unique(failing[need[failing] == before[failing]])
        need[stuck] += 1 + need[stuck] // 4
        np.minimum(need, len(labels), out=need)
        return bool((need != before).any())

    def _unreached(self, table: Table, why: str) -> RequirementNotMet:
        return RequirementNotMet(
            f"Suppress found no blanks that are enough among {counted(table)}: {why}. "
            "Generalize before this step, or remove records with 'min_class_size'. Nothing was "
            "written."
        )


def certain_blanks(table: Table, masked: Table, names: Sequence[str], k: int) -> int:
    """How many cells that were blanked with wildcards can be filled in from the masked table.

    Nobody blanks a record that is in a crowd. So a value is ruled out where ``k`` persons without
    blanks have it and agree in the other columns. One value that is left is the true one.
    """
    there = np.column_stack([masked.present(name) for name in names])
    crowd = masked.crowds(names)
    crowded = np.flatnonzero(there.all(axis=1) & (crowd.record_sizes >= k))
    crowded = crowded[np.unique(crowd.labels[crowded], return_index=True)[1]]  # one row of each
    found = 0
    for place, name in enumerate(names):
        blank = table.present(name) & ~there[:, place]
        rows = np.flatnonzero(blank & (there.sum(axis=1) == len(names) - 1))
        if not len(rows) or len(names) == 1:
            continue
        others = masked.crowds([other for other in names if other != name])
        codes = table.codes(name).codes
        visible = np.unique(codes[there[:, place]])
        left = len(visible) - np.bincount(others.labels[crowded], minlength=others.count)
        whole = others.labels * np.int64(table.distinct(name) + 1) + codes
        is_left = np.isin(codes[rows], visible) & ~np.isin(whole[rows], whole[crowded])
        found += int((is_left & (left[others.labels[rows]] == 1)).sum())
    return found


def _known_by(names: Sequence[str], table: Table, roles: Roles) -> Table:
    """The table with these quasi-identifiers and, for the rest, the roles that it had."""
    if tuple(names) != roles.quasi_identifiers:
        roles = replace(roles.without(names), quasi_identifiers=tuple(names))
    return table if table.roles == roles else table.with_roles(roles, released=True)
