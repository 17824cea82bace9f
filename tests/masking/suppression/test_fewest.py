"""Fewest blanks: what every record is promised, recounted, and the best of all choices."""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal import KAnonymity, LDiversity, Roles, Suppress, Table
from shoal.errors import DisclosureWarning, InputError, ParameterError, RequirementNotMet
from shoal.masking.suppression import _fewest

pytestmark = pytest.mark.filterwarnings("ignore:.*can be filled in:shoal.errors.DisclosureWarning")

SEEDS = range(12)
#: Columns of sdcMicro's test table; what its rule blanks for k = 2, 3 and 5; and the sums of their
#: ranks of importance: the table of benchmarks/kernels/bench_local_suppression.py.
SDC_MICRO = {
    ("urbrur", "roof", "walls", "relat", "sex"): ((26, 54, 147), (28, 66, 184)),
    ("urbrur", "roof", "walls", "water", "relat", "sex"): ((108, 208, 358), (128, 258, 472)),
    ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex"): (
        (157, 293, 498),
        (203, 396, 733),
    ),
}


def random_rows(seed, rows, values, missing=0.0):
    """Rows of columns with so many values each, and some gaps."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(count, rows, p=rng.dirichlet(np.ones(count))) for count in values]
    gaps = rng.random((rows, len(values))) < missing
    return [
        tuple(None if gap else int(value) for value, gap in zip(row, holes, strict=True))
        for row, holes in zip(zip(*columns, strict=True), gaps, strict=True)
    ]


def table_of(rows, **roles):
    names = [f"q{place}" for place in range(len(rows[0]))]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    return Table(frame, Roles(quasi_identifiers=names, **roles))


def rows_of(table, names=None):
    return table.frame.select(names or list(table.roles.quasi_identifiers)).rows()


def agree(one, other):
    pairs = zip(one, other, strict=True)
    return all(left is None or right is None or left == right for left, right in pairs)


def crowds(rows, reading):
    """How many rows agree with each, counted pair by pair."""
    if reading == "own":
        counts = Counter(rows)
        return [counts[row] for row in rows]
    return [sum(agree(row, other) for other in rows) for row in rows]


def blanked_from(before, after):
    """The cells that were blanked; every other cell is as it was."""
    cells = [
        (left, place)
        for old, new in zip(before, after, strict=True)
        for place, (left, right) in enumerate(zip(old, new, strict=True))
        if left != right
    ]
    assert all(
        right is None or left == right
        for old, new in zip(before, after, strict=True)
        for left, right in zip(old, new, strict=True)
    )
    return cells


def least(rows, k, reading, costs):
    """The cost of the best of all choices, by trying them all."""
    short = {row for row, crowd in zip(rows, crowds(rows, reading), strict=True) if crowd < k}
    width, best = len(costs), math.inf
    if reading == "own":  # each record has a pattern of its own
        choices = [list(product((False, True), repeat=width)) for _ in rows]
        units = [[place] for place in range(len(rows))]
    else:  # records with the same values share a pattern, and a short one has a blank
        heads = sorted(short, key=str)
        units = [[at for at, row in enumerate(rows) if row == head] for head in heads]
        choices = [
            [p for p in product((False, True), repeat=width) if any(p) and not lost(head, p)]
            for head in heads
        ]
    for patterns in product(*choices):
        masked, cost = list(rows), 0.0
        for unit, pattern in zip(units, patterns, strict=True):
            for at in unit:
                cost += sum(
                    costs[place]
                    for place in range(width)
                    if pattern[place] and rows[at][place] is not None
                )
                masked[at] = tuple(
                    None if gone else value for value, gone in zip(rows[at], pattern, strict=True)
                )
        if cost < best and min(crowds(masked, reading)) >= k:
            best = cost
    return best


def lost(row, pattern):
    """Whether a pattern blanks a cell that is missing anyway."""
    return any(gone and value is None for value, gone in zip(row, pattern, strict=True))


@pytest.mark.parametrize("reading", ["own", "wildcard"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_of_all_choices_on_small_tables(seed, reading):
    rows = random_rows(seed, 6, (2, 3) if seed % 2 else (3, 2), missing=0.15 * (seed % 3 == 0))
    costs = (1.0, 1.0) if seed % 4 else (2.5, 1.0)
    table = table_of(rows)
    step = Suppress(k=2, missing=reading, importance=dict(zip(["q0", "q1"], costs, strict=True)))
    masked = rows_of(step.fit_transform(table))
    cells = blanked_from(rows, masked)
    assert min(crowds(masked, reading)) >= 2
    assert step.optimal_
    assert step.blanked_ == len(cells)
    paid = sum(costs[place] for _, place in cells)
    assert paid == pytest.approx(least(rows, 2, reading, costs))
    assert step.bound_ == pytest.approx(paid)


@pytest.mark.parametrize("reading", ["own", "wildcard"])
@pytest.mark.parametrize("seed", SEEDS)
def test_beyond_small_tables(seed, reading):
    """Every record is recounted; the bound is a bound; the search is near what is proved."""
    rows = random_rows(seed, 80 + 20 * seed, (3, 2, 6, 4), missing=0.05 * (seed % 3))
    k = 2 + seed % 4
    costs = (1, 1, 1, 1) if seed % 2 else (4, 1, 0.5, 1)
    importance = {f"q{place}": cost for place, cost in enumerate(costs)}
    step = Suppress(k=k, missing=reading, importance=importance)
    masked = rows_of(step.fit_transform(table_of(rows)))
    cells = blanked_from(rows, masked)
    paid = sum(costs[place] for _, place in cells)
    assert min(crowds(masked, reading)) >= k
    assert step.bound_ <= paid + 1e-6
    assert step.optimal_ == (paid == pytest.approx(step.bound_))
    if reading == "wildcard":
        short = [row for row, crowd in zip(rows, crowds(rows, reading), strict=True) if crowd < k]
        touched = Counter(old for old, new in zip(rows, masked, strict=True) if old != new)
        assert touched == Counter(short), "every rare record loses a cell, and no other does"


@pytest.mark.parametrize("reading", ["own", "wildcard"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_is_close_to_the_best(seed, reading, monkeypatch):
    rows = random_rows(seed, 40, (3, 2, 4))
    best = Suppress(k=3, missing=reading)
    best.fit_transform(table_of(rows))
    assert best.optimal_
    monkeypatch.setattr(_fewest, "fewest_blanks", lambda *_, **__: None)
    searched = Suppress(k=3, missing=reading)
    masked = rows_of(searched.fit_transform(table_of(rows)))
    assert min(crowds(masked, reading)) >= 3
    assert best.blanked_ <= searched.blanked_ <= 1.25 * best.blanked_ + 1
    assert searched.bound_ <= best.blanked_, "a bound that is too high would claim too much"


@pytest.mark.parametrize("columns", SDC_MICRO, ids=len)
@pytest.mark.parametrize("place", range(3))
def test_never_more_than_sdc_micro(shared_data, columns, place):
    k = (2, 3, 5)[place]
    frame = pl.read_parquet(shared_data / "microdata/sdcmicro_testdata.parquet").select(columns)
    table = Table(frame, Roles(quasi_identifiers=columns))
    step = Suppress(k=k, missing="wildcard")
    masked = step.fit_transform(table)
    assert KAnonymity(k, missing="wildcard").holds(masked)
    assert step.blanked_ <= SDC_MICRO[columns][0][place]
    assert step.blanked_ <= 1.01 * step.bound_
    fewest_values = sorted(columns, key=lambda name: frame[name].n_unique())
    ranks = {name: len(columns) - at for at, name in enumerate(fewest_values)}
    masked = Suppress(k=k, missing="wildcard", importance=ranks).fit_transform(table)
    paid = sum(ranks[name] * masked.missing_count(name) for name in columns)
    assert paid <= SDC_MICRO[columns][1][place]


def test_sets_of_columns_with_a_k_each():
    rows = random_rows(3, 150, (4, 3, 5, 3))
    asked = [{"size": 3, "k": 2}, ["q0", "q2"], {"columns": ["q1"], "k": 60}]
    for reading in ("own", "wildcard"):
        step = Suppress(k=4, combinations=asked, missing=reading)
        masked = step.fit_transform(table_of(rows))
        names = masked.roles.quasi_identifiers
        assert masked.roles == table_of(rows).roles
        blanked_from(rows, rows_of(masked))
        for each in combinations(names, 3):
            assert min(crowds(rows_of(masked, each), reading)) >= 2
        assert min(crowds(rows_of(masked, ["q0", "q2"]), reading)) >= 4
        assert min(crowds(rows_of(masked, ["q1"]), reading)) >= 60
        assert (step.bound_, step.optimal_) == (None, False)


def test_a_column_that_matters_stays():
    rows = random_rows(5, 200, (6, 2, 6))
    masked = Suppress(k=3, importance={"q2": 1e6}).fit_transform(table_of(rows))
    assert masked.missing_count("q2") == 0
    assert Suppress(k=3).fit_transform(table_of(rows)).missing_count("q2") > 0


def test_importances_far_apart():
    rows = random_rows(6, 300, (4, 4, 4, 4))
    importance = {"q0": 1e9, "q1": 1e-3}
    for reading in ("own", "wildcard"):
        step = Suppress(k=3, importance=importance, missing=reading)
        masked = step.fit_transform(table_of(rows))
        assert masked.missing_count("q0") == 0
        paid = [masked.missing_count(f"q{at}") * cost for at, cost in enumerate((1e9, 1e-3, 1, 1))]
        assert 0 < step.bound_ <= sum(paid) + 1e-6


def test_a_bound_is_not_rounded_up():
    """Two cells of a column whose importance has more digits than a reader wants to see."""
    step = Suppress(k=2, importance={"q0": 1.00000004937, "q1": 2, "q2": 2})
    masked = step.fit_transform(table_of([(1, 1, 1), (2, 1, 1), (3, 3, 3), (3, 3, 3)]))
    assert masked.missing_count("q0") == step.blanked_ == 2
    assert step.bound_ <= 2 * 1.00000004937
    assert step.optimal_


def test_persons_count_and_not_their_rows():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "who": np.repeat(np.arange(60), 3).astype(str),
            "q0": rng.integers(0, 3, 180),
            "q1": rng.integers(0, 5, 180),
        }
    )
    table = Table(frame, Roles(unit="who", quasi_identifiers=["q0", "q1"]))
    for reading in ("own", "wildcard"):
        masked = Suppress(k=12, missing=reading).fit_transform(table)
        people = defaultdict(set)
        rows = rows_of(masked, ["q0", "q1"])
        for who, row in zip(frame["who"], rows, strict=True):
            people[row].add(who)
        for row in rows:
            near = [people[other] for other in people if row == other or reading != "own"]
            agreeing = [
                group
                for other, group in people.items()
                if (row == other if reading == "own" else agree(row, other))
            ]
            assert len(set().union(*agreeing)) >= 12, (row, len(near))


@pytest.mark.parametrize("reading", ["own", "wildcard"])
@pytest.mark.parametrize("seed", range(4))
def test_persons_with_many_rows_find_their_crowd(seed, reading):
    """Rows are enough long before persons are; blanks everywhere are enough in the end."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, 14, 50)
    frame = table_of(random_rows(seed, 50, (5, 5, 5), missing=0.1)).frame
    roles = Roles(unit="who", quasi_identifiers=["q0", "q1", "q2"])
    masked = Suppress(k=4, missing=reading).fit_transform(
        Table(frame.with_columns(who=pl.Series(who.astype(str))), roles)
    )
    assert KAnonymity(4, missing=reading).holds(masked)
    people = defaultdict(set)
    for person, row in zip(who, rows_of(masked), strict=True):
        people[row].add(person)
    for row in people:
        near = [row] if reading == "own" else [other for other in people if agree(row, other)]
        assert len(set().union(*(people[other] for other in near))) >= 4


def test_models_hold_in_every_class():
    rows = random_rows(7, 200, (4, 3, 5))
    secrets = [("a", "b", "c")[(row[0] + row[2]) % 3] for row in rows]
    frame = table_of(rows).frame.with_columns(pl.Series("secret", secrets))
    table = Table(frame, Roles(quasi_identifiers=["q0", "q1", "q2"], sensitive=["secret"]))
    step = Suppress(k=2, models=LDiversity(2))
    masked = step.fit_transform(table)
    held = defaultdict(set)
    for row, secret in zip(rows_of(masked), secrets, strict=True):
        held[row].add(secret)
    assert min(map(len, held.values())) >= 2
    assert min(crowds(rows_of(masked), "own")) >= 2
    alone = Suppress(k=2).fit_transform(table)
    assert step.blanked_ > sum(alone.missing_count(name) for name in ("q0", "q1", "q2"))
    assert step.bound_ is None
    constant = Table(frame.with_columns(secret=pl.lit("a")), table.roles)
    with pytest.raises((InputError, RequirementNotMet), match="l = 2"):
        Suppress(k=2, models=LDiversity(2)).fit_transform(constant)


def test_the_order_of_the_rows_decides_nothing():
    """Which of several equal records is blanked to hide another one is drawn."""
    rows = [(1, 1)] * 12 + [(2, 2)] * 12 + [(1, 2)]
    recruited = set()
    for _ in range(12):
        masked = rows_of(Suppress(k=2).fit_transform(table_of(rows)))
        recruited |= {at for at, row in enumerate(masked[:24]) if None in row}
    assert len(recruited) > 1


@pytest.mark.parametrize("reading", ["own", "wildcard"])
@pytest.mark.parametrize("size", [120, 300], ids=["solved", "searched"])
def test_the_order_of_the_rows_decides_no_combination(size, reading):
    rows = random_rows(9, size, (4, 3, 5, 6), missing=0.02)
    there, back = (
        Suppress(k=3, missing=reading).fit_transform(table_of(order))
        for order in (rows, rows[::-1])
    )
    assert Counter(rows_of(there)) == Counter(rows_of(back))


def test_a_table_that_needs_nothing():
    rows = [(1, None)] * 3 + [(2, 5)] * 4
    step = Suppress(k=3)
    assert rows_of(step.fit_transform(table_of(rows))) == rows
    assert (step.blanked_, step.bound_, step.optimal_) == (0, 0.0, True)


def test_odd_values():
    """Dates, unicode, huge integers and a constant column."""
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 10), eager=True)
    frame = pl.DataFrame(
        {
            "naïve ☃": ["é", "e", "é", "é", "é", "e", "日", "日", "日", "é"],
            "day": days,
            "number": [2**63 - 1 - (at // 5) for at in range(10)],
            "same": [1] * 10,
        }
    )
    table = Table(frame, Roles(quasi_identifiers=frame.columns))
    step = Suppress(k=3)
    rows = rows_of(step.fit_transform(table))
    assert min(crowds(rows, "own")) >= 3
    assert step.blanked_ == len(blanked_from(frame.rows(), rows))


def test_a_release_with_fewest_blanks(tmp_path):
    rows = random_rows(4, 120, (4, 3, 5))
    source = tmp_path / "table.csv"
    table_of(rows).frame.write_csv(source)
    plan = sh.Plan(
        [Suppress(k=3, importance={"q0": 3})],
        require=[KAnonymity(3)],
        roles=Roles(quasi_identifiers=["q0", "q1", "q2"]),
    )
    release = sh.protect(source, plan)
    folder = tmp_path / "release"
    release.save(folder)
    assert sh.verify(folder).holds
    written = pl.read_parquet(folder / "public" / "data.parquet")
    assert min(crowds(written.rows(), "own")) >= 3


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"k": 1}, "k"),
        ({"k": 2, "min_count": 2}, "exactly one rule"),
        ({"min_count": 2, "importance": {"q0": 1}}, "importance"),
        ({"min_class_size": 2, "missing": "wildcard"}, "missing"),
        ({"k": 2, "importance": {"q0": 0}}, "importance"),
        ({"k": 2, "importance": {"q0": math.inf}}, "importance"),
        ({"k": 2, "importance": ["q0"]}, "importance"),
        ({"k": 2, "combinations": []}, "combinations"),
        ({"k": 2, "combinations": [0]}, "combinations"),
        ({"k": 2, "combinations": [["q0", "q0"]]}, "combinations"),
        ({"k": 2, "combinations": [{"k": 2}]}, "combinations"),
        ({"k": 2, "combinations": [{"size": 2, "columns": ["q0"]}]}, "combinations"),
        ({"k": 2, "combinations": [{"columns": 2}]}, "combinations"),
        ({"k": 2, "combinations": "q0"}, "combinations"),
        ({"k": 2, "missing": "wildcard", "models": LDiversity(2)}, "wildcard"),
        ({"k": 2, "combinations": [2], "models": LDiversity(2)}, "combinations"),
    ],
)
def test_what_is_refused(given, word):
    with pytest.raises(ParameterError, match=word):
        Suppress(**given)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"k": 11}, "11 persons"),
        ({"k": 2, "importance": {"q9": 1}}, "q9"),
        ({"k": 2, "importance": {"q0": 1e13}}, "closer"),
        ({"k": 2, "combinations": [3]}, "sets of 3"),
        ({"k": 2, "combinations": [["q0", "q9"]]}, "q9"),
    ],
)
def test_what_a_table_cannot_give(given, word):
    with pytest.raises(InputError, match=word):
        Suppress(**given).fit_transform(table_of(random_rows(0, 10, (3, 2))))


# -- what wildcards do not hide


def by_hand(before, after, k):
    """The blanks that one value alone explains, value by value; and whether it is the true one."""
    found = []
    for row, masked in zip(before, after, strict=True):
        blanks = [place for place, cell in enumerate(masked) if cell is None]
        if len(blanks) != 1 or row[blanks[0]] is None:
            continue
        [place] = blanks
        visible = {other[place] for other in after} - {None}
        filled = {value: (*masked[:place], value, *masked[place + 1 :]) for value in visible}
        left = [value for value in visible if after.count(filled[value]) < k]
        if len(left) == 1 and row[place] in visible:
            found.append(left == [row[place]])
    return found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_blanks_that_can_be_filled_in_are_counted(seed, missing):
    rows = random_rows(seed, 60, (2, 3, 2), missing)
    step = Suppress(k=3, missing="wildcard")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        masked = step.fit_transform(table_of(rows))
    found = by_hand(rows, rows_of(masked), 3)
    told = [str(one.message) for one in caught if one.category is DisclosureWarning]
    assert all(found)  # what is left is the true value
    if found:
        assert told[0].startswith(f"{len(found)} of {step.blanked_} blanks can be filled in")
    else:
        assert told == []


def test_the_only_man_among_the_bakers_stays_a_man():
    jobs = ["baker"] * 11 + ["judge"] * 5
    frame = pl.DataFrame({"job": jobs, "sex": ["f"] * 10 + ["m"] * 6})
    table = Table(frame, Roles(quasi_identifiers=["job", "sex"]))
    step = Suppress(k=2, missing="wildcard", importance={"job": 2})
    with pytest.warns(DisclosureWarning, match="1 of 1 blanks can be filled in") as caught:
        masked = step.fit_transform(table)
    assert caught[0].filename == __file__
    assert masked.frame["sex"].to_list() == ["f"] * 10 + [None] + ["m"] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Suppress(k=2, importance={"job": 2}).fit_transform(table)  # more blanks, and none of them
        frame = pl.DataFrame({"job": ["baker", "baker", "judge"], "sex": ["f", "f", "f"]})
        table = Table(frame, Roles(quasi_identifiers=["job", "sex"]))
        masked = Suppress(k=2, missing="wildcard").fit_transform(table)
        assert masked.frame["job"].to_list() == ["baker", "baker", None]  # no judge to be seen
