"""Linkage by similarity: compared with plain Python, by hand, and its refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Generalize, Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.risk import distance_linkage, probabilistic_linkage, similarity_linkage


def table(columns):
    frame = pl.DataFrame(columns, strict=False)
    return Table(frame, Roles(quasi_identifiers=frame.columns))


def similarity(a, b, comparator, scale):
    if a is None or b is None:
        return 0.0
    if isinstance(a, str) or comparator == "exact":
        return float(a == b)
    gap = abs(a - b) / scale
    return 2 ** -(gap**2) if comparator == "gauss" else max(0.0, 1 - gap / 2)


def by_brute_force(original, masked, comparator, units, threshold):
    """The four shares of Carvalho et al., every person against every record."""
    old, new = original.frame.to_dicts(), masked.frame.to_dicts()
    names = original.roles.quasi_identifiers
    scales = dict.fromkeys(names, 1.0)
    if units == "sd":
        for name in names:
            values = [row[name] for row in old if isinstance(row[name], (int, float))]
            scales[name] = float(np.std(values)) if values else 1.0
    own, any_pair, best_and_enough, best = [], [], [], []
    for key, person in zip(original.row_key, old, strict=True):
        scores = np.array(
            [
                sum(
                    similarity(person[n], record[n], comparator, scales[n])
                    for n in names
                    if n in record
                )
                for record in new
            ]
        )
        # a score can be as small as 2 ** -36, so ties are much closer than that
        highest = np.isclose(scores, scores.max(), 0, 1e-13)
        mine = masked.row_key == key
        enough = threshold * len(names) - 1e-9
        own.append(bool((scores[mine] >= enough).any()))
        any_pair.append(bool(scores.max() >= enough))
        best.append((highest & mine).sum() / highest.sum())
        best_and_enough.append(best[-1] * any_pair[-1])
    return own, any_pair, best_and_enough, best


cells = st.one_of(st.none(), st.integers(0, 6))
texts = st.one_of(st.none(), st.sampled_from("abc"))


@settings(max_examples=60)
@given(
    st.data(),
    st.integers(2, 25),
    st.sampled_from(["exact", "linear", "gauss"]),
    st.sampled_from(["raw", "sd"]),
    st.sampled_from([0.4, 0.7, 1.0]),
)
def test_it_equals_a_brute_force(data, rows, comparator, units, threshold):
    """With tied and missing values, removed records and another order."""
    drawn = [data.draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in range(2)]
    columns = {
        "x": drawn[0],
        "y": [None if v is None else v / 8 for v in drawn[1]],
        "c": data.draw(st.lists(texts, min_size=rows, max_size=rows)),
    }
    columns["x"][:2], columns["y"][:2], columns["c"][:2] = [1, 4], [0.5, 2.0], ["a", "b"]
    schema = {"x": pl.Int64, "y": pl.Float64, "c": pl.String}
    original = table(pl.DataFrame(columns, schema=schema))
    sources = {n: np.array(data.draw(st.permutations(range(rows)))) for n in ("y", "c")}
    masked = original.with_cells_of(sources).keep(np.arange(rows) % 4 != 3)
    masked = masked.reorder(np.array(data.draw(st.permutations(range(len(masked))))))
    found = similarity_linkage(
        original, masked, comparator=comparator, units=units, threshold=threshold
    )
    own, any_pair, expected, best = by_brute_force(original, masked, comparator, units, threshold)
    assert found.per_record.tolist() == pytest.approx(expected)
    assert found.value == pytest.approx(np.mean(expected))
    assert found.details["above_threshold"] == pytest.approx(np.mean(expected))
    assert found.details["best_match"] == pytest.approx(np.mean(best))
    assert found.details["own_reaches"] == np.mean(own)
    assert found.details["any_reaches"] == np.mean(any_pair)
    plain = similarity_linkage(original, masked, comparator=comparator, units=units, threshold=None)
    assert plain.per_record.tolist() == pytest.approx(best)
    assert (
        plain.details["own_reaches"]
        == similarity_linkage(original, masked, comparator=comparator, units=units).details[
            "own_reaches"
        ]
    ), "shares of records that reach a score are of 70 % without a threshold"


class TestWorkedByHand:
    @pytest.mark.parametrize(
        ("comparator", "scale", "expected"),
        [
            ("linear", 1.0, 0.75),
            ("linear", 0.5, 0.5),
            ("gauss", 1.0, 2**-0.25),
            ("gauss", 0.5, 0.5),
        ],
    )
    def test_half_a_unit_apart(self, comparator, scale, expected):
        """The score reaches thresholds up to just below the similarity, and none above it."""
        original = table({"x": [0.0, 10.0]})
        masked = original.with_numbers({"x": np.array([0.5, 10.5])})
        for threshold, value in ((expected - 1e-6, 1), (expected + 1e-6, 0)):
            found = similarity_linkage(
                original, masked, comparator=comparator, scale=scale, threshold=threshold
            )
            assert found.value == value

    @pytest.mark.parametrize(("comparator", "value"), [("linear", 0.5), ("gauss", 1)])
    def test_linear_ends_at_twice_the_scale(self, comparator, value):
        """Two units away, linear similarity can no longer distinguish the records."""
        original = table({"x": [0.0, 100.0]})
        masked = original.with_numbers({"x": np.array([2.0, 98.0])})
        found = similarity_linkage(original, masked, comparator=comparator, threshold=None)
        assert found.value == value

    @pytest.mark.parametrize(("columns", "threshold"), [(10, 0.7), (25, 0.28)])
    def test_seven_columns_reach_the_share_that_seven_are(self, columns, threshold):
        """0.28 times 25 is slightly above 7 in floating point, but must not count as such."""
        original = table({f"c{i}": [0, 1, 2] for i in range(columns)})
        wrong = {f"c{i}": np.array([7, 8, 9]) for i in range(columns - 7)}
        masked = original.with_numbers(wrong)
        assert similarity_linkage(original, masked, threshold=threshold).value == 1
        masked = original.with_numbers(wrong | {f"c{columns - 7}": np.array([7, 8, 9])})
        found = similarity_linkage(original, masked, threshold=threshold)
        assert (found.value, found.details["best_match"]) == (0, 1)

    def test_columns_taken_out_score_nothing_but_count(self):
        original = table({"x": [1, 2, 3], "y": [1, 2, 3], "z": [1, 2, 3]})
        found = similarity_linkage(original, original.drop(["x"]))
        assert (found.value, found.details["best_match"]) == (0, 1), "2 of 3 are below 70 %"
        nothing = original.drop(["x", "y", "z"])
        assert similarity_linkage(original, nothing).value == 0
        blind = similarity_linkage(original, nothing, threshold=None)
        assert blind.per_record.tolist() == pytest.approx([1 / 3] * 3)

    def test_numbers_beyond_the_digits_of_a_float(self):
        original = table({"x": [2**62, 2**62 + 1, 2**62 + 2]})
        for comparator in ("exact", "linear", "gauss"):
            assert similarity_linkage(original, original, comparator=comparator).value == 1

    def test_large_numbers_are_in_their_own_units(self):
        """A difference of 1 in a million still halves the similarity."""
        original = table({"x": [0.0, 1e6]})
        masked = original.with_numbers({"x": np.array([1.0, 1e6 + 1])})
        found = similarity_linkage(original, masked, comparator="linear", threshold=0.5)
        assert found.value == 1
        above = similarity_linkage(original, masked, comparator="linear", threshold=0.51)
        assert above.value == 0

    def test_a_constant_column_in_standard_deviations(self):
        """It has no scale: equal or not."""
        original = table({"x": [3.0, 3.0], "y": [1.0, 2.0]})
        found = similarity_linkage(original, original, comparator="gauss", units="sd")
        assert found.value == 1

    def test_coarser_values_are_known(self):
        original = table({"x": [1, 7, 23, 25]})
        intervals = Hierarchy.intervals([10])
        masked = Generalize(k=2, hierarchies={"x": intervals}).fit_transform(original)
        found = similarity_linkage(original, masked, comparator="linear")
        assert found.per_record.tolist() == [0.5] * 4
        assert "was made coarser" in found.warnings[0]
        assert found.details["bound"] == 0.5
        assert found.details["bound_by"] == "equal records"


class TestThresholdTrap:
    def test_hidden_links_are_told(self):
        """Two of four columns are destroyed; the others still distinguish everybody."""
        draw = np.random.default_rng(1)
        columns = {name: draw.permutation(200) for name in "abcd"}
        original = table(columns)
        masked = original.with_numbers({"a": np.full(200, -1), "b": np.full(200, -1)})
        found = similarity_linkage(original, masked)
        assert found.value == 0
        assert found.details["best_match"] == 1
        assert any("threshold hides right links: 100 %" in warning for warning in found.warnings)
        plain = similarity_linkage(original, masked, threshold=None)
        assert plain.value == 1
        assert not any("threshold" in warning for warning in plain.warnings)

    def test_nothing_is_told_where_nothing_is_hidden(self):
        original = table({name: np.arange(200) for name in "ab"})
        assert not similarity_linkage(original, original).warnings


def test_three_linkages_agree_on_an_unmasked_table():
    """Without missing values: one over the number of equal records, for every linkage."""
    draw = np.random.default_rng(2)
    original = table({"x": draw.integers(0, 9, 500), "c": draw.choice(list("abc"), 500)})
    values = [
        measure(original, original).value
        for measure in (distance_linkage, probabilistic_linkage, similarity_linkage)
    ]
    expected = original.classes.count / 500
    assert values == pytest.approx([expected] * 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"comparator": "levenshtein"}, "'exact', 'linear', 'gauss'"),
        ({"units": "iqr"}, "'raw', 'sd'"),
        ({"scale": 0}, "'scale' .* must be a number > 0. Got 0"),
        ({"scale": float("inf")}, "'scale'"),
        ({"threshold": 1.5}, "≥ 0 and ≤ 1, or None"),
        ({"threshold": True}, "≥ 0 and ≤ 1, or None"),
    ],
)
def test_what_is_refused(options, message):
    one = table({"x": [1, 2]})
    with pytest.raises(InputError, match=message):
        similarity_linkage(one, one, **options)
