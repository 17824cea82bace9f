"""Groups that satisfy conditions: independent checks, and a slow, obvious version to equal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.conditions import (
    DISTINCT,
    ENTROPY,
    EQUAL,
    LARGEST_SHARE,
    ORDERED,
    RECURSIVE,
    Conditions,
    total_shortfall,
)
from shoal.kernels.groups.diverse_group import sensitive_of
from shoal.kernels.groups.diverse_mdav import DiverseMdav
from shoal.kernels.groups.diverse_merge import settled
from shoal.kernels.groups.mixed_mdav import MixedMdav
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_records import MixedRecords, gower, squared_euclidean

from ..compared import dissimilarities, finished


def asked(k, codes, *wanted):
    """Conditions as (kind, column, bound) or (kind, column, bound, extra)."""
    kinds, columns, bounds, extras = zip(*((*one, 0.0)[:4] for one in wanted), strict=True)
    values = codes.max(axis=1) + 1
    shares = np.array([np.bincount(c, minlength=values.max()) / len(c) for c in codes])
    return Conditions(
        k,
        np.array(kinds),
        np.array(columns),
        np.array(bounds, float),
        np.array(extras, float),
        shares,
        values.astype(np.int64),
        np.zeros((len(codes), 1, values.max()), np.int64),
        np.zeros(len(codes), np.int64),
    )


def satisfied(kind, bound, extra, own, whole):
    """One condition on one column of one group, from its definition."""
    shares = np.bincount(own, minlength=whole.max() + 1) / len(own)
    overall = np.bincount(whole) / len(whole)
    if kind == DISTINCT:
        return len(set(own.tolist())) >= bound
    if kind == ENTROPY:
        return -sum(p * math.log(p) for p in shares if p > 0) >= math.log(bound) - 1e-9
    if kind == RECURSIVE:
        ordered = sorted(np.bincount(own).tolist(), reverse=True)
        return ordered[0] < extra * sum(ordered[int(bound) - 1 :])
    if kind == EQUAL:
        return np.abs(shares - overall).sum() / 2 <= bound + 1e-9
    if kind == ORDERED:
        moved = np.abs(np.cumsum(shares - overall)).sum() / max(1, len(overall) - 1)
        return moved <= bound + 1e-9
    assert kind == LARGEST_SHARE
    return shares.max() <= bound + 1e-9


def assert_satisfied(labels, codes, conditions):
    sizes = np.bincount(labels)
    assert labels.min() == 0
    assert sizes.min() >= conditions.smallest
    wanted = zip(
        conditions.kinds, conditions.columns, conditions.bounds, conditions.extras, strict=True
    )
    for kind, column, bound, extra in wanted:
        for group in range(len(sizes)):
            own = codes[column, labels == group]
            assert satisfied(kind, bound, extra, own, codes[column])


def whole_fails(conditions, codes):
    return shortfall(conditions, codes, range(codes.shape[1])) > 0


def shortfall(conditions, codes, rows):
    counts = np.zeros(conditions.shares.shape, np.int64)
    for column, own in enumerate(codes[:, list(rows)]):
        counts[column] += np.bincount(own, minlength=counts.shape[1])
    return total_shortfall(conditions, len(rows), len(rows), counts)


def spaces(seed, rows, *, tied):
    """Points, and records of mixed type, with values missing and ties if wanted."""
    draw = np.random.default_rng(seed)
    points = draw.integers(0, 3, (rows, 2)) * 1.0 if tied else draw.normal(size=(rows, 3))
    categories = draw.integers(-1, 3, (rows, 2))
    gaps = points.copy()
    gaps[draw.random(points.shape) < 0.1] = np.nan
    return [points, gower(gaps, categories), ahmad_dey(points, categories)]


# -- the slow version


def reference(records, k, conditions, codes):
    gaps = np.array([dissimilarities(records, row) for row in range(codes.shape[1])])
    profiles = [tuple(record) for record in codes.T.tolist()]
    left, groups, measured, fair = set(range(len(profiles))), [], 0, k
    while left:
        if not measured * 0.98 < len(left) <= measured:
            measured, fair = len(left), fair_size(k, conditions, codes, left)
        if len(left) < 2 * fair:
            groups.append(left)
            break
        start = from_centroid(records, left)
        for _ in range(2 if len(left) >= 3 * fair else 1):
            if len(left) < 2 * fair:
                break
            seed = max(left, key=lambda row: (start[row], -row))
            groups.append(gathered(seed, gaps[seed], k, fair, conditions, codes, profiles, left))
            left, start = left - groups[-1], gaps[seed]
            if left and shortfall(conditions, codes, sorted(left)) > 0:
                return settle(records, groups, left, conditions, codes)
    return numbered(groups)


def numbered(groups):
    labels = np.empty(sum(map(len, groups)), np.int64)
    for number, group in enumerate(groups):
        labels[list(group)] = number
    return labels


def from_centroid(records, left):
    """The dissimilarity of every record to the centroid, which is put in the place of one."""
    values, codes = centre(records, sorted(left), by_rank=False)
    extended = records._replace(
        values=np.column_stack([records.values, values]),
        codes=np.column_stack([records.codes, codes]),
        patterns=np.append(records.patterns, 0),
    )
    return dissimilarities(extended, len(records.patterns))


def centre(records, rows, *, by_rank=True):
    """Means and modes of some records, of equal modes the lowest rank or code; what is there."""
    measure, numeric = records.measure, len(records.values)
    values, codes = np.zeros(numeric), np.zeros(len(records.codes), records.codes.dtype)
    first = 0
    for column, at in enumerate(measure.presence):
        have = [row for row in rows if at < 0 or records.codes[at, row]]
        if at >= 0:
            codes[at] = len(have) > 0
        if column < numeric:
            values[column] = math.fsum(records.values[column, have]) / max(1, len(have))
            continue
        levels = measure.levels[column - numeric]
        code_of = records.ranked[first : first + levels]
        first += levels
        if have:
            ranks = records.codes[column - numeric, have]
            mode = np.bincount(ranks).argmax()
            if not by_rank:
                mode = np.flatnonzero(code_of == np.bincount(code_of[ranks]).argmax())[0]
            codes[column - numeric] = mode
    return values, codes


def fair_size(k, conditions, codes, left):
    rows = sorted(left)

    def suffices(size):
        for phase in (0.125, 0.375, 0.625, 0.875):
            sample = np.zeros(conditions.shares.shape, np.int64)
            for column in range(len(codes)):
                counts = np.bincount(codes[column, rows], minlength=sample.shape[1])
                upto = np.floor(size * np.cumsum(counts) / len(rows) + phase).astype(np.int64)
                sample[column] = np.diff(upto, prepend=0)
            if total_shortfall(conditions, size, size, sample) > 0:
                return False
        return True

    low, high = k - 1, k
    while high < len(rows) and not suffices(high):
        low, high = high, 2 * high
    high = min(high, len(rows))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return max(high, min(k, len(rows)))


def gathered(seed, gaps, k, fair, conditions, codes, profiles, left):
    order = sorted(left - {seed}, key=lambda row: (gaps[row], row))
    group, window = [seed], order[: 2 * fair + 32]
    if fair == k:
        group += order[: k - 1]
    else:
        for row in window:
            of_profile = sum(profiles[other] == profiles[row] for other in left)
            taken = sum(profiles[member] == profiles[row] for member in group)
            if taken < -(-fair * of_profile // len(left)) and len(group) < fair:
                group.append(row)
        group += [row for row in window if row not in group][: max(0, k - len(group))]
    while (before := shortfall(conditions, codes, group)) > 0:
        best = best_step(group, window, gaps, before, conditions, codes, profiles)
        if best is None and len(window) < len(order):
            window = order
            continue
        if best is None:
            comers = firsts(window, group, profiles)
            if not comers:
                break
            after = [round(shortfall(conditions, codes, [*group, c]), 12) for c in comers]
            best = comers[after.index(min(after))], None
        group = [member for member in group if member != best[1]] + [best[0]]
    return set(group)


def firsts(order, group, profiles):
    """The first of each profile that is outside."""
    found = {}
    for row in order:
        if row not in group:
            found.setdefault(profiles[row], row)
    return list(found.values())


def best_step(group, window, gaps, before, conditions, codes, profiles):
    others = sorted(group[1:], key=lambda row: (-gaps[row], -row))
    leavers = firsts(others, [group[0]], profiles)[:16]
    best, drop, cost = None, 0.0, 1.0
    for comer in firsts(window, group, profiles):
        for leaver in [None, *leavers]:
            if leaver is not None and profiles[leaver] == profiles[comer]:
                continue
            rows = [row for row in group if row != leaver] + [comer]
            gain = before - shortfall(conditions, codes, rows)
            if gain <= (1e-12 if leaver is None else 0.02 * before):
                continue
            one, two = gain * cost, drop * gaps[comer]
            rates_differ = abs(one - two) > 1e-9 * max(one, two)
            if one > two if rates_differ else gain > drop * (1 + 1e-9):
                best, drop, cost = (comer, leaver), gain, gaps[comer]
    return best


def settle(records, groups, left, conditions, codes):
    """Left-over records join, and groups that fail merge."""
    groups = [sorted(group) for group in groups]
    centres = [centre(records, group) for group in groups]
    for row in sorted(left):
        away = distances_to(records, row, centres)
        order = np.argsort(away, kind="stable")[:64].tolist()
        good = [g for g in order if shortfall(conditions, codes, [*groups[g], row]) == 0]
        groups[(good or order)[0]].append(row)
    return merged(records, groups, conditions, codes)


def merged(records, groups, conditions, codes):
    groups = {number: list(group) for number, group in enumerate(groups)}
    for number in list(groups):
        while number in groups and len(groups) > 1:
            if shortfall(conditions, codes, groups[number]) == 0:
                break
            others = [other for other in groups if other != number]
            own = centre(records, groups[number])
            away = distances_to(records, own, [centre(records, groups[o]) for o in others])
            groups[number] += groups.pop(others[int(np.argmin(away))])
    return numbered(list(groups.values()))


def distances_to(records, whom, centres):
    """Of a row, or of a centre, to centres."""
    last = whom if isinstance(whom, tuple) else (records.values[:, whom], records.codes[:, whom])
    values, codes = zip(*centres, last, strict=True)
    extended = records._replace(
        values=np.column_stack(values),
        codes=np.column_stack(codes).astype(records.codes.dtype),
        patterns=np.zeros(len(values), np.int64),
    )
    return dissimilarities(extended, len(centres))[:-1]


def same_groups(one, two):
    return {frozenset(np.flatnonzero(one == g)) for g in set(one.tolist())} == {
        frozenset(np.flatnonzero(two == g)) for g in set(two.tolist())
    }


WANTED = [
    (DISTINCT, 0, 2.0),
    (DISTINCT, 0, 3.0),
    (ENTROPY, 0, 1.8),
    (RECURSIVE, 0, 2.0, 2.0),
    (EQUAL, 0, 0.3),
    (ORDERED, 0, 0.1),
    (LARGEST_SHARE, 0, 0.7),
]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 90),
    k=st.integers(1, 6),
    tied=st.booleans(),
    space=st.integers(0, 2),
    wanted=st.lists(st.sampled_from(WANTED), min_size=1, max_size=2),
    skew=st.floats(0.5, 4),
    values=st.sampled_from([3, 12]),
)
def test_groups_are_those_of_the_slow_version(seed, rows, k, tied, space, wanted, skew, values):
    draw = np.random.default_rng(seed)
    codes = (draw.random((2, rows)) ** skew * values).astype(np.int32)
    wanted = [(one[0], place, *one[2:]) for place, one in enumerate(wanted)]
    conditions = asked(min(k, rows), codes, *wanted)
    if whole_fails(conditions, codes):
        return
    given_space = spaces(seed, rows, tied=tied)[space]
    labels = finished(DiverseMdav(given_space, min(k, rows), conditions, codes))
    assert_satisfied(labels, codes, conditions)
    records = given_space
    if not isinstance(records, MixedRecords):
        records = squared_euclidean(records)
    assert same_groups(labels, reference(records, min(k, rows), conditions, codes))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(20, 600),
    k=st.integers(2, 12),
    tied=st.booleans(),
    space=st.integers(0, 2),
    case=st.sampled_from(["one value in 95 %", "all values", "t tiny", "half and half", "order"]),
)
def test_hard_cases_are_satisfied(seed, rows, k, tied, space, case):
    draw = np.random.default_rng(seed)
    rare = (draw.random(rows) < 0.05).astype(np.int32)
    rare[draw.integers(rows)] = 1
    six = draw.integers(0, 6, rows, dtype=np.int32)
    many = draw.integers(0, 200, rows, dtype=np.int32)
    codes, wanted = {
        "one value in 95 %": ([rare], [(DISTINCT, 0, 2.0)]),
        "all values": ([six], [(DISTINCT, 0, six.max() + 1.0 if len(set(six)) == 6 else 2.0)]),
        "t tiny": ([six], [(EQUAL, 0, 0.001)]),
        "half and half": ([rare, six], [(EQUAL, 0, 0.05), (ENTROPY, 1, 2.0)]),
        "order": ([many], [(ORDERED, 0, 0.02)]),
    }[case]
    codes = np.array(codes)
    conditions = asked(k, codes, *wanted)
    if whole_fails(conditions, codes):
        return
    labels = finished(DiverseMdav(spaces(seed, rows, tied=tied)[space], k, conditions, codes))
    assert_satisfied(labels, codes, conditions)


@pytest.mark.parametrize("tied", [False, True])
def test_conditions_that_never_bind_leave_mdav_as_it_is(tied):
    rows, k = 700, 4
    codes = np.random.default_rng(1).integers(0, 3, (1, rows))
    conditions = asked(k, codes, (DISTINCT, 0, 1.0))
    for space in spaces(3, rows, tied=tied):
        records = space if isinstance(space, MixedRecords) else squared_euclidean(space)
        found = finished(DiverseMdav(space, k, conditions, codes))
        np.testing.assert_array_equal(found, finished(MixedMdav(records, k)))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), rows=st.integers(4, 80), tied=st.booleans())
def test_merging_is_that_of_the_slow_version(seed, rows, tied):
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 3, (1, rows), dtype=np.int32)
    conditions = asked(3, codes, (DISTINCT, 0, 2.0))
    if whole_fails(conditions, codes):
        return
    labels = draw.permutation(np.arange(rows, dtype=np.int32) // 3)
    lost = draw.random(rows) < 0.2
    lost[np.unique(labels, return_index=True)[1]] = False
    for space in spaces(seed, rows, tied=tied):
        records = space if isinstance(space, MixedRecords) else squared_euclidean(space)
        given_labels = np.where(lost, -1, labels).astype(np.int32)
        found = settled(records, given_labels, conditions, sensitive_of(codes))
        assert_satisfied(found, codes, conditions)
        groups = [np.flatnonzero(given_labels == g).tolist() for g in range(labels.max() + 1)]
        left = set(np.flatnonzero(lost).tolist())
        assert same_groups(found, settle(records, groups, left, conditions, codes))


def loss(points, labels):
    sizes = np.bincount(labels)
    centres = np.column_stack([np.bincount(labels, weights=c) / sizes for c in points.T])
    return ((points - centres[labels]) ** 2).sum()


@pytest.mark.parametrize("wanted", [*WANTED[:2], (DISTINCT, 0, 4.0), *WANTED[2:]])
def test_less_is_lost_than_by_merging(wanted):
    """People whose secret goes with what is known of them, as a wage does with age and school."""
    draw = np.random.default_rng(11)
    points = draw.normal(size=(3000, 6)) @ draw.normal(size=(6, 6))
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    secret = np.digitize(points[:, 0] + draw.normal(size=3000), [-1, 0, 1])[None].astype(np.int32)
    conditions = asked(5, secret, wanted)
    records = squared_euclidean(points)
    plain = finished(MixedMdav(records, 5))
    merging = settled(records, plain, conditions, sensitive_of(secret))
    found = finished(DiverseMdav(points, 5, conditions, secret))
    assert_satisfied(found, secret, conditions)
    assert_satisfied(merging, secret, conditions)
    assert loss(points, found) <= loss(points, merging)


def test_one_record_per_group_and_all_in_one():
    points = np.array([[0.0], [1], [5]])
    codes = np.array([[0, 1, 2]])
    alone = DiverseMdav(points, 1, asked(1, codes, (DISTINCT, 0, 1.0)), codes)
    assert len(set(finished(alone).tolist())) == 3
    together = DiverseMdav(points, 1, asked(1, codes, (EQUAL, 0, 0.0)), codes)
    assert finished(together).tolist() == [0, 0, 0]
