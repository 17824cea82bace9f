"""What an intruder knows, by name and by keyword, and the promised bound on right links."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Swap, Table
from shoal.errors import InputError
from shoal.risk import distance_linkage, probabilistic_linkage, similarity_linkage
from shoal.risk.linkage._intruder import known_columns
from shoal.table import swapped_crowds

LINKAGES = [distance_linkage, probabilistic_linkage, similarity_linkage]
ROLES = Roles(
    identifiers=["name"],
    quasi_identifiers=["age", "sex"],
    sensitive=["ill", "wage", "debt"],
    weight="weight",
)


def people(rows=40, roles=ROLES):
    draw = np.random.default_rng(rows)
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": draw.permutation(rows),
            "sex": draw.choice(["f", "m"], rows),
            "shoe": draw.permutation(rows),
            "ill": draw.choice(list("abc"), rows),
            "wage": draw.permutation(rows),
            "debt": draw.permutation(rows),
            "weight": np.ones(rows),
        }
    )
    return Table(frame, roles)


class TestWords:
    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            (None, ("age", "sex")),
            ("quasi-identifiers", ("age", "sex")),
            ("left-in-place", ("shoe", "weight")),
            ("informed", ("age", "sex", "wage", "debt")),
            ("everything", ("age", "sex", "shoe", "ill", "wage", "debt", "weight")),
            (["shoe", "age", "shoe"], ("shoe", "age")),
        ],
    )
    def test_they_stand_for_columns(self, word, expected):
        original = people()
        assert known_columns(original, original, word) == expected

    @pytest.mark.parametrize("linkage", LINKAGES)
    def test_every_linkage_takes_them(self, linkage):
        original = people()
        masked = Swap(k=4).fit_transform(original.drop(["name"]))
        by_words = linkage(original, masked, known="left-in-place")
        assert by_words.value == 1
        assert by_words.details["known"] == ["shoe", "weight"]
        assert linkage(original, masked).value < 0.6

    def test_what_was_not_released_is_not_left_in_place(self):
        original = people()
        masked = original.drop(["name", "shoe"])
        assert known_columns(original, masked, "left-in-place") == ("weight",)
        assert "shoe" not in known_columns(original, masked, "everything")
        with pytest.raises(InputError, match="left-in-place"):
            known_columns(original, masked.drop(["weight"]), "left-in-place")

    def test_an_informed_intruder_is_after_one_of_several(self):
        one = people(roles=Roles(quasi_identifiers=["age"], sensitive=["ill"]))
        with pytest.raises(InputError, match="1 sensitive"):
            known_columns(one, one, "informed")

    @pytest.mark.parametrize("word", ["quasi-identifiers", "informed"])
    def test_words_about_quasi_identifiers_need_some(self, word):
        nobody = people(roles=Roles(sensitive=["ill", "wage"]))
        with pytest.raises(InputError, match="no quasi-identifiers"):
            known_columns(nobody, nobody, word)

    def test_a_column_is_not_a_word(self):
        original = people()
        with pytest.raises(InputError, match="list of column names, or one of 'quasi-identifiers'"):
            distance_linkage(original, original, known="age")


class TestBound:
    @pytest.mark.parametrize("linkage", LINKAGES)
    def test_equal_records_hide_each_other(self, linkage):
        frame = pl.DataFrame({"x": [1, 1, 1, 2, 2, 2, 2], "y": list("ppppqqq")})
        table = Table(frame, Roles(quasi_identifiers=["x"]))
        found = linkage(table, table)
        assert (found.details["bound"], found.details["bound_by"]) == (1 / 3, "equal records")
        assert found.value == pytest.approx(2 / 7)
        pairs = Table(pl.DataFrame({"x": np.arange(40) // 2}), Roles(quasi_identifiers=["x"]))
        met = linkage(pairs, pairs)
        assert met.value == met.details["bound"] == 0.5
        assert not met.warnings, "a bound that is met is not broken"
        alone = linkage(table, table, known=["x", "y"])
        assert "bound" not in alone.details, "somebody of 2 and p is alone"

    @pytest.mark.parametrize("linkage", LINKAGES)
    def test_swapped_groups_hide_each_other(self, linkage):
        original = people(400)
        masked = Swap(k=4).fit_transform(original.drop(["name"]))
        found = linkage(original, masked)
        assert (found.details["bound"], found.details["bound_by"]) == (1 / 4, "swapped groups")
        assert "bound" not in linkage(original, masked, known=["age", "shoe"]).details
        part = linkage(original, masked, known=["age"])
        assert part.details["bound"] == 1 / 4, "part of what was swapped is as well hidden"

    def test_both_together(self):
        """Three of forty equal records are left with broken groups; the others are whole."""
        frame = pl.DataFrame({"x": [0] * 40 + list(range(1000, 1040))})
        original = Table(frame, Roles(quasi_identifiers=["x"]))
        masked = Swap(k=5).fit_transform(original)
        whole = distance_linkage(original, masked).details
        assert (whole["bound"], whole["bound_by"]) == (1 / 5, "swapped groups")
        left = masked.keep(np.arange(80) >= 37)
        found = distance_linkage(original, left).details
        broken = swapped_crowds(left, ["x"]).min() < 3
        by = "equal records or swapped groups" if broken else "swapped groups"
        assert (found["bound"], found["bound_by"]) == (1 / 3, by)

    def test_links_above_the_bound_are_told(self):
        """If values were swapped and then put back, the record of the swap proves nothing."""
        original = people(400).drop(["name"])
        masked = Swap(k=4).fit_transform(original)
        back = masked.with_cells_of(
            {
                name: np.argsort(np.searchsorted(masked.row_key, masked.exchanges[0].source))
                for name in ("age", "sex")
            }
        )
        assert back.exchanges, "the record of the swap stayed"
        found = distance_linkage(original, back)
        assert found.value == 1
        assert any("more often than 1 in 4" in warning for warning in found.warnings)

    def test_nothing_known_was_released(self):
        original = people(10)
        found = distance_linkage(original, original.drop(["age", "sex"]))
        assert found.details["bound"] == found.baseline == 0.1
