"""What a report must never say, and names that are no code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import (
    AddNoise,
    KAnonymity,
    Limit,
    Plan,
    Recode,
    Release,
    Roles,
    Round,
    Suppress,
    Table,
    TopBottomCode,
    assess,
    protect,
)
from shoal.workflow.release import _crowds as crowds
from shoal.workflow.release._crowds import SMALLEST_CROWD
from shoal.workflow.report import _render as rendering
from shoal.workflow.report import assessment_fragment, assessment_page, release_page

from .pages import NASTY, ROLES, Page, facts_of, page_of, people

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


class TestPrivacy:
    def test_no_value_that_was_not_released(self, tmp_path: Path) -> None:
        """Every original cell that is not in the release must not be in its page."""
        rows = 600
        draw = np.random.default_rng(3)
        frame = pl.DataFrame(
            {
                "who": [f"ident{i}canary" for i in range(rows)],
                "badge": [f"badge{i}canary" for i in range(rows)],
                "town": [f"town{i}canary" for i in range(3)] + ["Aa", "Bb", "Cc"] * 199,
                "age": draw.integers(18, 90, rows),
                "income": [98765.4321, 0.01234567, *draw.normal(3e4, 2e3, rows - 2)],
                "illness": ["rarecanary"] + ["flu"] * (rows - 1),
            }
        )
        roles = Roles(
            identifiers=["who"],
            quasi_identifiers=["badge", "town", "age"],
            sensitive=["income", "illness"],
        )
        plan = Plan(
            [
                Suppress(max_distinct=0.7),
                Suppress(min_count=5, columns=["town"]),
                Suppress(where="illness = 'rarecanary'", target="records"),
                TopBottomCode(fence=1.5, columns=["income"]),
                Round(base=100, columns=["income"]),
                Recode(magnitude=1.5, columns=["age"]),
                Suppress(min_class_size=3),
            ],
            require=[KAnonymity(3)],
        )
        release = protect(Table(frame, roles), plan)
        source = release_page(release, facts_of(release, tmp_path))
        kept = {str(value) for column in release.masked.frame for value in column.unique()}
        gone = {str(value) for column in frame for value in column.unique()} - kept
        assert len(gone) > 1500
        assert "canary" not in source
        assert "illness =" not in source
        leaked = [value for value in gone if len(value) > 4 and value in source]
        assert leaked == []

    def test_unused_categories_of_pandas(self, tmp_path: Path) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"age": [30, 31, 40, 41] * 50})
        frame["town"] = pandas.Categorical(["Aa", "Bb"] * 100, categories=["Aa", "Bb", "canary"])
        table = Table(frame, Roles(quasi_identifiers=["age", "town"]))
        assert "canary" not in page_of(table, Plan([Round(base=20)]), tmp_path)

    def test_the_seed(self, tmp_path: Path) -> None:
        noise = AddNoise(epsilon=2.0, columns=["income"], random_state=918273645)
        plan = Plan([noise, Suppress(min_class_size=2)])
        release = protect(Table(people(), ROLES), plan)
        source = release_page(release, facts_of(release, tmp_path))
        assert "918273645" not in source
        assert "random_state" not in source
        private = [str(value) for step in release.steps for value in step.private.values()]
        assert private
        assert not [value for value in private if len(value) > 8 and value in source]

    def test_few_records_taken_out_are_only_called_few(self, tmp_path: Path) -> None:
        frame = people(300).with_columns(pl.Series("sex", ["x"] * 3 + ["f", "m", "m"] * 99))
        plan = Plan([Suppress(where="sex = 'x'", target="records")])
        text = Page(page_of(Table(frame, ROLES), plan, tmp_path)).text.replace("\u00a0", " ")
        assert "fewer than 10 records were removed" in text
        assert not re.search(r"\b3 records", text)

    def test_the_total_does_not_give_a_small_step_away(self) -> None:
        assert crowds.crowded_removals([12, 0, 3]) == ["some", 0, "some"]
        assert crowds.crowded_removals([12, 0]) == [12, 0]
        assert crowds.crowded_removals([0, 3]) == [0, "fewer than 10"]
        assert crowds.crowded_total([12, 0, 3]) == "some"
        assert crowds.crowded_total([12, 0]) == 12

    def test_a_small_table_tells_no_share_of_its_original(self, tmp_path: Path) -> None:
        # 47 of 50 in one value: 94 % would tell that three are not, and 2 % that one was changed
        frame = pl.DataFrame({"age": [31] * 47 + [55, 56, 57], "sex": ["f", "m"] * 25})
        table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
        page = Page(page_of(table, Plan([Round(base=10)]), tmp_path))
        assert not re.search(r"\b94\b", page.text)
        assert "fewer than 100 records, too few" in page.text
        assert not [a for _, a, _ in page.tags if a.get("class") in ("before", "shape")]

    def test_shares_of_a_middling_table_are_in_steps_of_a_crowd(self, tmp_path: Path) -> None:
        # 291 of 300: in whole percents the nine others could be counted
        frame = pl.DataFrame({"town": ["Aa"] * 291 + ["Bb"] * 9, "sex": ["f", "m", "m"] * 100})
        table = Table(frame, Roles(quasi_identifiers=["town", "sex"]))
        source = page_of(table, Plan([Suppress(min_count=10, columns=["town"])]), tmp_path)
        card = source[source.index("<h4><bdi>town") : source.rindex("</figure>")]
        row = Page(re.findall(r"<tr><th scope=\"row\"><bdi>Aa.*?</tr>", card)[0]).text
        assert row.replace("\u00a0", " ").split() == ["Aa", "96", "%", "97", "%"]
        assert "Changed in 4\u00a0% of the records" in card

    @given(rows=st.integers(1, 50_000), share=st.floats(0, 100))
    def test_a_told_share_never_stands_for_fewer_than_a_crowd(
        self, rows: int, share: float
    ) -> None:
        step = crowds.share_step(rows)
        told = crowds.crowded_percent(share / 100, rows)
        if step is None:
            assert told is None
            assert rows < 10 * SMALLEST_CROWD
        else:
            assert step * rows / 100 >= SMALLEST_CROWD
            assert told is not None
            assert told == 100 or told % step == 0
            assert abs(told - share) <= step / 2 + 1e-9 or told == 100

    def test_a_claim_about_the_original_is_told_in_steps_of_a_crowd(self, tmp_path: Path) -> None:
        limit = Limit("unchanged_records", at_most=0.9)
        frame = people(2000)
        release = protect(Table(frame, ROLES), Plan([Recode(magnitude=1.5)], require=[limit]))
        measured = release.claims[0].measured
        assert 0 < measured < 1
        text = Page(release_page(release, facts_of(release, tmp_path))).text.replace("\u00a0", " ")
        assert f"at most 0.9 about {round(100 * measured)} %" in text
        assert f"{measured:.4g}" not in text

    def test_exact_counts_of_the_original_stay_away(self, release: Release, source: str) -> None:
        before = release.before
        text = Page(source).text
        for name in ("marketer_risk", "uniqueness", "records_at_risk"):
            value = before[name].value
            assert not float(value).is_integer()
            assert f"{value:.4g}" not in text
        assert not re.search(rf"\b{before.classes.uniques}\b", text)
        assert not re.search(rf"\b{before.classes.count}\b", text)


class TestNames:
    @pytest.fixture
    def nasty(self) -> Table:
        columns: dict[str, Any] = {name: ["a", "b"] * 60 for name in NASTY}
        columns["value"] = (NASTY[:3] + NASTY[4:5]) * 30
        columns["age"] = [30, 31, 40, 41] * 30
        roles = Roles(quasi_identifiers=["age", *NASTY[:4]], insensitive=["value", *NASTY[4:]])
        return Table(pl.DataFrame(columns), roles)

    def test_nothing_in_a_name_or_value_becomes_markup(self, nasty: Table, tmp_path: Path) -> None:
        source = page_of(nasty, Plan([Round(base=20, columns=["age"])]), tmp_path)
        page = Page(source)
        assert len(page.code["script"]) == 1
        assert not {"b", "i"} & {tag for tag, _, _ in page.tags}
        assert "{{ 7 * 7 }}" in page.text
        assert "<script>alert(1)</script>" in page.text
        assert "عمر الشخص" in page.text
        assert not re.search("[\x01\x07\u202e]", source)
        assert "long " * 20 not in page.text

    def test_neither_on_the_page_of_an_assessment(self, nasty: Table) -> None:
        for source in (assessment_page(assess(nasty)), assessment_fragment(assess(nasty))):
            page = Page(source)
            assert len(page.code["script"]) == source.startswith("<!DOCTYPE")
            assert "<script>alert(1)</script>" in page.text

    def test_names_that_a_query_cannot_show_give_no_query(self, tmp_path: Path) -> None:
        table = Table(
            pl.DataFrame({"a\x01ge": [1, 1, 2, 2] * 30}), Roles(quasi_identifiers=["a\x01ge"])
        )
        assert "<pre>SELECT" not in page_of(table, Plan(), tmp_path)

    def test_two_hundred_columns_are_folded(self, tmp_path: Path) -> None:
        draw = np.random.default_rng(0)
        frame = pl.DataFrame({f"c{i}": draw.integers(0, 40, 120) for i in range(200)})
        names = frame.columns
        roles = Roles(quasi_identifiers=names[:2], insensitive=names[2:])
        plan = Plan([Round(base=10, columns=names[:150])])
        source = page_of(Table(frame, roles), plan, tmp_path)
        page = Page(source)
        shown = [inside for _, inside in page.find("figure") if "details" not in inside]
        assert len(shown) == 2 + 30 + 12
        assert sum(tag == "figure" for tag, _, _ in page.tags) == 202
        assert len(source) < 2_000_000

    def test_short_keeps_both_ends(self) -> None:
        name = "begin" + "x" * 500 + "end"
        assert len(rendering.short(name)) == 80
        assert rendering.short(name).startswith("begin")
        assert rendering.short(name).endswith("end")
