"""The cost of a node of the lattice, and the least cost of it and all nodes above it.

There are n records, q attributes, and s suppressed records; a class has c records. For each loss,
the *floor* is the node's cost with nothing suppressed. It only grows from a node to a more
general one, and suppression only adds to it, so it bounds the loss of every node above.

``loss``
    Iyengar's (2002), as aggregated by ARX: for each attribute the mean share of the hierarchy's
    values under the released one, 1 if suppressed, scaled so that a single value costs 0, and
    cut to 10 decimals; then the geometric mean of one plus these, minus 1.
``precision``
    One minus Sweeney's (2002) Prec: the mean of level divided by height, 1 if suppressed.
``discernibility``, ``discernibility-monotonic``
    Bayardo and Agrawal (2005): the sum of c² over kept classes, plus s·n; and the sum of c² over
    all classes, whether they satisfy the conditions or not.
``average-class-size``
    LeFevre, DeWitt and Ramakrishnan (2006), not divided by k: n divided by the number of kept
    classes, where the suppressed records, if any, form one more.
``entropy``, ``entropy-monotonic``
    Non-uniform entropy (De Waal and Willenborg 1999; Gionis and Tassa 2009), in bits: for each
    cell, -log2 of the records with its original value divided by those with its generalized one.
    The former adds, for each cell of a suppressed record, -log2 of the share of its generalized
    value among the suppressed ones.
``ambiguity``
    Goldberger and Tassa (2010): the mean number of original records that a released one can
    represent, the product of the values under its cells; the whole domain if suppressed.
``kl-divergence``
    Machanavajjhala et al. (2007), in bits: from the distribution of the original records to that
    of the release, in which a class is spread evenly over the records that it can represent, and
    the suppressed records, as one class, over the whole domain.

Weights of the attributes, 1 on average, multiply what each attribute adds: means become weighted
means, and in products of values under cells a weight is an exponent. Class sizes have no weight. In
``kl-divergence``, sizes count as much as the least weight, so that the floor still only grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.lattice.loss_names import LOSSES
from shoal.kernels.lattice.roll_up import RECORDS, Base, Coding, Groups

(
    _SHARES,
    _PRECISION,
    _DISCERNIBILITY,
    _DISCERNIBILITY_MONOTONIC,
    _CLASS_SIZE,
    _ENTROPY,
    _ENTROPY_MONOTONIC,
    _AMBIGUITY,
    _DIVERGENCE,
) = range(9)
_DECIMALS = 1e10
_SLACK = 1e-9  # more than cutting to 10 decimals removes
_CHORDS = 3  # each closer to the maximum that a node can suppress


class Loss:
    """One of :data:`LOSSES`, for one table and its hierarchies.

    ``by_level`` says that the levels alone give the floor, as a sum of ``terms`` of each
    attribute at its level; ``charges_suppression`` says that each suppressed record adds to it.
    ``weights`` of the attributes are 1 on average, and all 1 by default.
    """

    def __init__(
        self,
        name: str,
        base: Base,
        code: Coding,
        heights: Integers,
        domains: Sequence[float],
        weights: Floats | None = None,
    ) -> None:
        self._kind = LOSSES.index(name)
        self._heights = heights
        self._domains = np.asarray(domains, np.float64)
        self._weights = np.ones(len(heights)) if weights is None else weights
        self._least = float(self._weights.min(initial=1.0))
        self._code, self._whole = code, self._domains
        if self._kind >= _AMBIGUITY and self._least < 1.0:
            self._code, self._whole = _powers(code, self._weights), self._domains**self._weights
        self.records = int(base.counts.sum())
        self.by_level = self._kind in (_SHARES, _PRECISION, _ENTROPY, _ENTROPY_MONOTONIC)
        self.charges_suppression = self._kind in (_SHARES, _PRECISION)
        self.ignores_suppression = self._kind in (_DISCERNIBILITY_MONOTONIC, _ENTROPY_MONOTONIC)
        shape = len(heights), int(heights.max(initial=0)) + 1
        self._leaf_sums, self._largest = np.zeros(shape), np.zeros(shape)
        counts = [_value_counts(base, j, code) for j in range(len(heights) * self.by_level)]
        terms = self._terms(counts) if self.by_level else np.zeros(shape)
        floors = self._suffix_least(terms, counts) if self.by_level else terms
        self.terms, self._floors = (each * self._weights[:, None] for each in (terms, floors))
        self._term_lists, self._floor_lists = self.terms.tolist(), self._floors.tolist()
        self._input = _negative_entropy(base.counts, self.records)
        self._nested = _leaves_add_up(code, heights, self._domains)
        self._bounded = self._kind < _AMBIGUITY or self._nested

    def floor(self, levels: Integers) -> float:
        """The least cost of the node and all nodes above it, from its levels alone."""
        return self._total(_picked(self._floor_lists, levels))

    def floors(self, nodes: Integers) -> Floats:
        """The same for many nodes, a row each."""
        sums = np.zeros(len(nodes))
        for j, floors in enumerate(self._floors):
            sums += floors[nodes[:, j]]
        return self._total(sums, np.expm1)

    def all_floors(self, order: Integers) -> Floats:
        """The same for all nodes, in lexicographic order of the levels of ``order``."""
        sums = np.zeros(1)
        for j in order:
            sums = np.add.outer(sums, self._floors[j, : self._heights[j] + 1]).ravel()
        return self._total(sums, np.expm1)

    def of(
        self, groups: Groups, kept: Flags, suppressed: int, levels: Integers
    ) -> tuple[float, float]:
        """The loss of a node and its floor, from its group table."""
        if not self.by_level:
            parts = _by_class(
                groups, kept, self._code, levels, self._kind, self.records, self._least
            )
            loss, floor = self._from_classes(parts, suppressed)
            return loss, floor if self._bounded else -math.inf
        floor = self.floor(levels)
        added = _picked(self._term_lists, levels)
        if suppressed == 0 or self.ignores_suppression:
            return self._total(added), floor
        if self._kind == _PRECISION:
            released = self.records - suppressed
            return (self._total(added) * released + suppressed) / self.records, floor
        entropy = self._kind == _ENTROPY
        lost = _suppressed_parts(groups, kept, self._code, levels, entropy, suppressed)
        if entropy:
            return added + float((lost * self._weights).sum()), floor
        return self._total(float(self._share_terms(levels, lost, suppressed).sum())), floor

    def at_least(self, suppressed: int, levels: Integers) -> float:
        """The least cost of a node that suppresses so many records."""
        if self._kind == _PRECISION:
            least = self._total(_picked(self._term_lists, levels))
            return (least * (self.records - suppressed) + suppressed) / max(1, self.records)
        if self._kind != _SHARES:
            return self.floor(levels)
        largest = self._largest[np.arange(len(levels)), levels]
        return self._total(float(self._share_terms(levels, suppressed * largest, suppressed).sum()))

    def most_suppressed(self, nodes: Integers, cost: float, limit: int) -> Floats:
        """The most records that each node, one per row, can suppress within a cost; an upper bound.

        The terms of ``at_least`` are concave in the suppressed records, so they lie above their
        chord from 0 on. Where the chord reaches ``cost``, they have already reached it.
        """
        most = np.full(len(nodes), float(limit))
        if limit == 0 or not self._nested or not self.charges_suppression:
            return most
        if self._kind == _SHARES:
            cost = math.log1p(cost)
        cost += _SLACK + _SLACK * cost
        least = self._least_terms(nodes, np.zeros(len(nodes)))
        for _ in range(_CHORDS):
            rise = self._least_terms(nodes, most) - least
            able = rise > np.maximum(cost - least, 0.0)
            most[able] *= np.maximum(cost - least[able], 0.0) / rise[able]
        return most

    def _least_terms(self, nodes: Integers, suppressed: Floats) -> Floats:
        """The mean of the terms of ``at_least`` for many nodes, not cut to 10 decimals."""
        total = np.zeros(len(nodes))
        everyone = max(1, self.records)
        for j, domain in enumerate(self._domains):
            levels = nodes[:, j]
            if self._kind == _PRECISION:
                total += self.terms[j, levels] * (everyone - suppressed) + suppressed
            elif domain > 1.0:
                gained = suppressed * (domain - self._largest[j, levels])
                sums = self._leaf_sums[j, levels] + gained - everyone
                total += self._weights[j] * np.log1p(sums / (everyone * (domain - 1.0)))
        total /= max(1, nodes.shape[1])
        return total / everyone if self._kind == _PRECISION else total

    def _share_terms(self, levels: Integers, lost: Floats, suppressed: int) -> Floats:
        """The terms of ``loss``; suppressed records had ``lost`` leaves under their cells."""
        sums = self._leaf_sums[np.arange(len(levels)), levels] - lost
        shares = self._normalised(sums + suppressed * self._domains, self._domains)
        return np.log1p(shares) * self._weights

    def _total(self, terms: Any, expm1: Callable[[Any], Any] = math.expm1) -> Any:
        """The loss from the sum of its terms; for many sums, pass numpy's function."""
        if self._kind == _SHARES:
            return expm1(terms / max(1, len(self._heights)))
        return terms / max(1, len(self._heights)) if self._kind == _PRECISION else terms

    def _normalised(self, sums: Any, domain: Any) -> Any:
        """Sums of values under cells: 0 if each is single, 1 if all are under each."""
        most = self.records * (domain - 1.0)
        share = np.divide(sums - self.records, most, out=np.zeros_like(sums), where=most > 0)
        return np.floor(np.maximum(share, 0.0) * _DECIMALS) / _DECIMALS

    def _terms(self, value_counts: list[Floats]) -> Floats:
        """What each attribute adds at each level, without its weight."""
        terms = np.zeros_like(self._leaf_sums)
        for j, height in enumerate(self._heights):
            counts = value_counts[j]
            for level in range(height + 1):
                codes, leaves = _at(self._code, j, level, len(counts))
                self._leaf_sums[j, level] = counts @ leaves[codes]
                self._largest[j, level] = leaves.max(initial=0.0)
                if self._kind == _PRECISION:
                    terms[j, level] = level / height if height else 0.0
                elif self._kind != _SHARES:
                    terms[j, level] = _conditional_bits(counts, codes)
        if self._kind == _SHARES:
            domains = np.broadcast_to(self._domains[:, None], terms.shape)
            terms = np.log1p(self._normalised(self._leaf_sums, domains))
        return terms

    def _suffix_least(self, terms: Floats, value_counts: list[Floats]) -> Floats:
        """The terms as a bound for all higher levels: none costs more than a suppressed record."""
        floors = terms.copy()
        if self._kind == _SHARES:
            floors = np.minimum(floors, math.log1p(1.0))
            for j, height in enumerate(self._heights):
                counts = value_counts[j]
                for level in range(height + 1):
                    codes, leaves = _at(self._code, j, level, len(counts))
                    if leaves.max(initial=0.0) > self._domains[j]:
                        sums = np.array([counts @ np.minimum(leaves, self._domains[j])[codes]])
                        domain = self._domains[j : j + 1]
                        floors[j, level] = np.log1p(self._normalised(sums, domain))[0]
        for j, height in enumerate(self._heights):
            floors[j, : height + 1] = np.minimum.accumulate(floors[j, height::-1])[::-1]
        return floors

    def _from_classes(self, parts: Floats, suppressed: int) -> tuple[float, float]:
        """The loss and its floor from sums over kept and over all classes."""
        kept, every = float(parts[0]), float(parts[1])
        if self._kind == _DISCERNIBILITY:
            return kept + float(suppressed) * self.records, every
        if self._kind == _DISCERNIBILITY_MONOTONIC:
            return every, every
        if self._kind == _CLASS_SIZE:
            classes = kept + (suppressed > 0)
            return self.records / max(1.0, classes), self.records / max(1.0, every)
        everyone = max(1, self.records)
        if self._kind == _AMBIGUITY:
            whole = suppressed * float(np.prod(self._whole)) if suppressed else 0.0
            return (kept + whole) / everyone, every / everyone
        if suppressed:
            density = self._least * math.log2(suppressed / self.records)
            kept += suppressed * (density - float(np.log2(self._whole).sum()))
        before = self._least * self._input
        return before - kept / everyone, before - every / everyone


def _picked(terms: list[list[float]], levels: Integers) -> float:
    """The sum of one term of each attribute; for so few, lists are faster than arrays."""
    total = 0.0
    for of_level, level in zip(terms, levels.tolist()):
        total += of_level[level]
    return total


def _value_counts(base: Base, attribute: int, code: Coding) -> Floats:
    values = int(code.at_level[attribute, 1] - code.at_level[attribute, 0])
    counts = np.bincount(base.tuples[:, attribute], weights=base.counts, minlength=values)
    return counts.astype(np.float64)


def _at(code: Coding, j: int, level: int, values: int) -> tuple[npt.NDArray[Any], Floats]:
    """The code of each value at a level, and the leaves under each code."""
    start = code.to_level[j, level]
    return (
        code.flat[start : start + values],
        code.leaves[code.at_level[j, level] : code.at_level[j, level + 1]],
    )


def _powers(code: Coding, weights: Floats) -> Coding:
    """The leaves of each attribute to the power of its weight."""
    leaves = np.diff(code.at_level[:, [0, -1]]).ravel()
    return code._replace(leaves=code.leaves ** np.repeat(weights, leaves))


def _conditional_bits(counts: Floats, codes: npt.NDArray[Any]) -> float:
    """-log2 of the count of a value divided by that of its code, summed over the records."""
    above = np.bincount(codes, weights=counts)[codes]
    there = counts > 0
    return float((counts[there] * np.log2(above[there] / counts[there])).sum())


def _negative_entropy(counts: Integers, records: int) -> float:
    shares = counts[counts > 0] / max(1, records)
    return float((shares * np.log2(shares)).sum())


def _leaves_add_up(code: Coding, heights: Integers, domains: Floats) -> bool:
    """Whether a code has at least the leaves of the codes below it, from 1 to all of them.

    Otherwise generalizing can lower the loss, and the floor bounds nothing.
    """
    for j, height in enumerate(heights):
        values = int(code.at_level[j, 1] - code.at_level[j, 0])
        _, below = _at(code, j, 0, values)
        if np.any(below < 1.0):
            return False
        for level in range(height):
            up = code.flat[code.one_up[j, level] : code.one_up[j, level] + len(below)]
            _, above = _at(code, j, level + 1, values)
            if np.any(np.bincount(up, weights=below, minlength=len(above)) > above * (1 + 1e-12)):
                return False
            below = above
        if below.sum() > domains[j] * (1 + 1e-12):
            return False
    return True


@njit(cache=True)
def _suppressed_parts(
    groups: Groups, kept: Any, code: Any, levels: Integers, entropy: bool, suppressed: int
) -> Floats:
    """For each attribute, the leaves or the entropy of the suppressed records' cells."""
    rows = np.flatnonzero(~kept)
    parts = np.zeros(len(levels))
    for j in range(len(levels)):
        start, end = code.at_level[j, levels[j]], code.at_level[j, levels[j] + 1]
        word, shift, mask = code.words[j], code.shifts[j], code.masks[j]
        histogram = np.zeros(end - start, np.int64)
        for row in rows:
            here = np.int64((groups.keys[row, word] >> shift) & mask)
            histogram[here] += groups.weights[row, RECORDS]
        for cell in range(end - start):
            if histogram[cell] > 0:
                each = code.leaves[start + cell]
                if entropy:
                    each = math.log2(suppressed / histogram[cell])
                parts[j] += histogram[cell] * each
    return parts


@njit(cache=True)
def _by_class(
    groups: Groups, kept: Any, code: Any, levels: Integers, kind: int, records: int, least: float
) -> Floats:
    """What the classes add to the loss: the kept ones, and all of them."""
    sums = np.zeros(2)
    for group in range(len(kept)):
        size = np.float64(groups.weights[group, RECORDS])
        if size == 0.0:
            continue
        part = 1.0
        if kind == _DISCERNIBILITY or kind == _DISCERNIBILITY_MONOTONIC:
            part = size * size
        elif kind == _AMBIGUITY or kind == _DIVERGENCE:
            stands_for, bits = 1.0, 0.0
            for j in range(len(levels)):
                at = (groups.keys[group, code.words[j]] >> code.shifts[j]) & code.masks[j]
                leaves = code.leaves[code.at_level[j, levels[j]] + np.int64(at)]
                stands_for *= leaves
                if kind == _DIVERGENCE:
                    bits += math.log2(leaves)
            part = size * stands_for
            if kind == _DIVERGENCE:
                part = size * (least * math.log2(size / records) - bits)
        sums[1] += part
        if kept[group]:
            sums[0] += part
    return sums
