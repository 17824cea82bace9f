"""What a group must satisfy: the kernels that searches ask, against the models that verify.

The two share no code: a kernel counts a group densely, a model reads sorted pairs of a table.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    Roles,
    Table,
    TCloseness,
)
from shoal.kernels.conditions import holds, only_size, total_shortfall
from shoal.models import conditions_of, population_of


class Nodes:
    """A hierarchy as models see it: the nodes above each code of a column."""

    def __init__(self, maps):
        self.maps = np.asarray(maps)

    def codes(self, table, column):
        return Nodes(self.maps[:, : table.codes(column).count])


TREE = Nodes([[0, 1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 2, 3], [0, 0, 0, 0, 5, 5, 5], [0] * 7])

ROLES = Roles(quasi_identifiers=["group"], sensitive=["ill", "debt"])
ONE = Roles(quasi_identifiers=["group"], sensitive=["ill"])
#: Twice a group of 0, and so on up to six of 4; nobody of 5.
EVERYONE = Table(pl.DataFrame({"group": np.repeat(np.arange(5), np.arange(2, 7))}))
BOUNDS = st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.75, 1.0])
MODELS = st.one_of(
    st.builds(KAnonymity, st.integers(2, 6)),
    st.builds(LDiversity, st.integers(2, 4)),
    st.builds(LDiversity, st.sampled_from([1.5, 2, 2.5, 3, 4]), kind=st.just("entropy")),
    st.builds(
        LDiversity,
        st.integers(2, 4),
        kind=st.just("recursive"),
        c=st.sampled_from([0.5, 1, 4 / 3, 2, 3]),
    ),
    st.builds(TCloseness, BOUNDS),
    st.builds(TCloseness, BOUNDS, distance=st.just("ordered")),
    st.builds(
        TCloseness,
        BOUNDS,
        distance=st.just("hierarchical"),
        column=st.just("ill"),
        hierarchy=st.just(TREE),
    ),
    st.builds(AlphaKAnonymity, st.sampled_from([1 / 3, 0.5, 0.6, 0.75]), st.integers(2, 4)),
    st.builds(BetaLikeness, st.sampled_from([0.25, 0.5, 1, 2, 5]), st.booleans()),
    st.builds(DeltaDisclosure, st.sampled_from([0.3, np.log(2), 1.0, 2.0])),
    st.builds(KMap, st.integers(2, 6), population=st.just(EVERYONE)),
    st.builds(DeltaPresence, BOUNDS, population=st.just(EVERYONE)),
)


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 30))
    values = st.lists(st.none() | st.integers(0, 5), min_size=rows, max_size=rows)
    frame = pl.DataFrame(
        {
            "group": draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows)),
            "ill": pl.Series(draw(values), dtype=pl.Int64),
            "debt": pl.Series(draw(values), dtype=pl.Int64),
        }
    )
    return Table(frame, ROLES)


def counts_of(codes, rows, values):
    """How often a group has each value of each sensitive column, padded as searches keep it."""
    counts = np.zeros((len(codes), max(values, default=0)), np.int64)
    for place, column in enumerate(codes):
        np.add.at(counts[place], column[rows], 1)
    return counts


def violating(models, table):
    """Which records the kernel finds in groups that fail."""
    conditions, codes = conditions_of(models, table)
    everyone = population_of(models)
    found = np.zeros(len(table), bool)
    for label in range(table.classes.count):
        rows = table.classes.labels == label
        counts = counts_of(codes, rows, conditions.values)
        people = 0 if everyone is None else int(table.class_sizes_in(everyone)[rows][0])
        found[rows] = not holds(conditions, int(rows.sum()), people, counts)
        missing = total_shortfall(conditions, int(rows.sum()), people, counts)
        assert (missing > 0) == found[rows].any()
    return found


@given(tables(), st.lists(MODELS, min_size=1, max_size=3))
@settings(max_examples=200)
def test_the_kernel_agrees_with_the_models(table, models):
    expected = np.any([model.violations(table) for model in models], axis=0)
    assert violating(models, table).tolist() == expected.tolist()


ALONE = [
    LDiversity(2),
    LDiversity(3, kind="entropy"),
    LDiversity(2, kind="recursive", c=1),
    TCloseness(0.25),
    TCloseness(0.25, distance="ordered"),
    TCloseness(0.25, distance="hierarchical", column="ill", hierarchy=TREE),
    AlphaKAnonymity(0.5, 2),
    AlphaKAnonymity(0.75, 5),
    BetaLikeness(1),
    BetaLikeness(50, enhanced=True),
    DeltaDisclosure(np.log(2)),
    KMap(4, population=EVERYONE),
    DeltaPresence(0.75, population=EVERYONE),
]


@pytest.mark.parametrize("model", ALONE, ids=lambda model: model.model)
def test_each_model_alone(model):
    """Small groups of few values are full of ties; some hold and some do not."""
    draw = np.random.default_rng(5)
    both = set()
    for _ in range(40):
        rows, values = draw.integers(1, 40), draw.integers(1, 5)
        columns = {"group": draw.integers(0, 6, rows), "ill": draw.integers(0, values, rows)}
        columns["debt"] = columns["ill"] if draw.random() < 0.8 else draw.integers(0, 2, rows)
        table = Table(pl.DataFrame(columns), ROLES)
        expected = model.violations(table).tolist()
        assert violating([model], table).tolist() == expected
        both |= set(expected)
    assert both == {True, False}


def test_strictly_below_delta_and_the_enhanced_bound():
    """a has 1/2 in the table and 1/4 in a group, ln 2 away; 7/8 and all of one, a gain of 1/7."""
    table = Table(pl.DataFrame({"group": [0] * 4 + [1] * 4, "ill": [*"aaababbb"]}), ONE)
    assert violating([DeltaDisclosure(np.log(2))], table).all()
    assert not violating([DeltaDisclosure(np.log(2) + 1e-6)], table).any()
    table = Table(pl.DataFrame({"group": [0] * 4 + [1] * 4, "ill": [*"aaabaaaa"]}), ONE)
    assert violating([BetaLikeness(1, enhanced=True)], table).tolist() == [False] * 4 + [True] * 4
    assert not violating([BetaLikeness(1)], table).any()


@pytest.mark.parametrize("low", [0.2, 0.25, 1 / 3, 0.5])
def test_presence_has_a_lower_bound(low):
    """Shares of 1/2, 1/3, 1/4, 1/5 and 1/6 of the people of each group."""
    frame = pl.DataFrame({"group": np.arange(5), "ill": ["a"] * 5, "debt": ["b"] * 5})
    model = DeltaPresence(0.9, low, population=EVERYONE)
    found = violating([model], Table(frame, ROLES))
    assert found.tolist() == model.violations(Table(frame, ROLES)).tolist()
    assert 0 < found.sum() < 5


def test_only_size():
    none = np.zeros((0, 0), np.int64)
    assert holds(only_size(3), 3, 0, none)
    assert not holds(only_size(3), 2, 0, none)
    assert total_shortfall(only_size(4), 3, 0, none) == pytest.approx(0.25)


def people():
    frame = pl.DataFrame({"x": [1] * 6, "ill": [*"aabbc", None], "debt": [3, 1, None, 1, 7, 7]})
    return Table(frame, Roles(quasi_identifiers=["x"], sensitive=["ill", "debt"]))


def test_conditions_as_arrays():
    models = [KAnonymity(4), LDiversity(2, column="debt"), TCloseness(0.25)]
    conditions, codes = conditions_of(models, people(), smallest=3)
    assert conditions.smallest == 4
    assert codes.dtype == np.int32
    assert codes.tolist() == [[1, 0, 3, 0, 2, 2], [0, 0, 1, 1, 2, 3]]
    assert conditions.columns.tolist() == [0, 1, 0]
    assert conditions.values.tolist() == [4, 4]
    assert conditions.shares[1] == pytest.approx([2 / 6, 2 / 6, 1 / 6, 1 / 6])
    assert conditions_of([KAnonymity(4)], people(), smallest=5)[0].smallest == 5


def test_nothing_asked_of_values():
    conditions, codes = conditions_of([], people(), smallest=2)
    assert conditions.smallest == 2
    assert codes.shape == (0, 6)
    assert len(conditions.kinds) == 0


def test_two_trees_over_one_column_do_not_mix():
    flat = Nodes([[0, 1, 2, 3, 4, 5, 6], [0] * 7])
    models = [
        LDiversity(2, column="ill"),
        TCloseness(0.5, distance="hierarchical", column="ill", hierarchy=TREE),
        TCloseness(0.5, distance="hierarchical", column="ill", hierarchy=flat),
        TCloseness(0.1, distance="hierarchical", column="ill", hierarchy=TREE),
    ]
    conditions, codes = conditions_of(models, people())
    assert conditions.columns.tolist() == [0, 0, 1, 0]
    assert conditions.heights.tolist() == [3, 1]
    assert codes[0].tolist() == codes[1].tolist()
