"""What a report says of a release, and what a reader must not conclude."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal import (
    AddNoise,
    KAnonymity,
    Plan,
    ProbabilisticKAnonymity,
    Release,
    Roles,
    Round,
    Suppress,
    Swap,
    Table,
    assess,
)
from shoal.workflow.report import _words as words
from shoal.workflow.report import assessment_page, release_page

from .pages import ROLES, STEPS, Page, facts_of, page_of, people

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


class TestWhatItSays:
    def test_the_headline_is_one_sentence_with_the_facts(
        self, release: Release, source: str
    ) -> None:
        headline = re.findall(r"<h1>(.*?)</h1>", source)[0].replace("\u00a0", " ")
        rows, k = len(release.masked), release.after.k
        assert headline == (
            f"{rows:,} records in 5 columns were released: each looks like at least {k - 1} "
            f"others (k = {k}), and every requirement was met."
        )

    def test_every_claim_is_there_with_required_and_measured(
        self, release: Release, source: str
    ) -> None:
        text = Page(source).text
        assert "k-anonymity" in text
        assert f"k = 5 {release.after.k} ✓ holds" in text
        risk = release.after["marketer_risk"].value
        assert f"at most 0.2 {risk:.4g} ✓ holds" in text
        assert "share of suppressed cells" in text
        assert "only its holder can recompute it" in text
        assert "shoal verify" in text

    def test_every_step_is_told_with_its_parameters_and_columns(self, source: str) -> None:
        text = Page(source).text.replace("\u00a0", " ")
        assert "more than 1.5 interquartile ranges" in text
        assert "epsilon = 2." in text
        assert "nearest multiple of 1,000." in text
        assert "ranges 1.5 standard deviations wide" in text
        assert "Records in a crowd of fewer than 5" in text
        assert "sex : text, not integer" in text

    def test_identifiers_are_counted_not_named(self, source: str) -> None:
        text = Page(source).text.replace("\u00a0", " ")
        assert "1 column that names people directly was removed." in text
        assert not re.search(r"\bwho\b(?= ?[:,]| column)", text)

    def test_checksum_version_and_date_are_there(self, release: Release, tmp_path: Path) -> None:
        facts = facts_of(release, tmp_path)
        text = Page(release_page(release, facts)).text
        assert facts["data"]["sha256"] in text
        assert f"{facts['created']} with Shoal {facts['shoal']}" in text

    def test_a_claim_that_does_not_hold_is_not_called_met(
        self, release: Release, tmp_path: Path
    ) -> None:
        broken = replace(release, claims=(replace(release.claims[0], holds=False),))
        text = Page(release_page(broken, facts_of(broken, tmp_path))).text
        assert "not every requirement was met" in text
        assert "✗ does not hold" in text

    def test_the_query_counts_k(self, release: Release, source: str) -> None:
        text = re.findall(r"<pre>(SELECT.*?)</pre>", source, flags=re.S)[0]
        query = text.replace("&#34;", '"')
        data = pl.SQLContext(data=release.masked.frame)
        assert data.execute(query, eager=True)["k"].item() == release.after.k

    @pytest.mark.parametrize(
        ("rule", "told"),
        [
            ({"max_distinct": 0.7}, "more distinct values than 0.7 times the number of records"),
            ({"min_count": 5}, "Rare cells were made missing: values that occur fewer than 5"),
            ({"min_class_size": 3}, "Records in a crowd of fewer than 3"),
            ({"target": "records"}, "Records were removed by a condition"),
            ({"columns": ["age"]}, "Cells were made missing by a condition"),
        ],
    )
    def test_each_rule_of_suppression(self, rule: dict[str, Any], told: str) -> None:
        assert told in words.step_in_words("suppress", rule)

    def test_a_method_without_own_words_is_told_by_its_summary(self) -> None:
        told = words.step_in_words("of_a_later_version", {"p": 0.1, "columns": ["age"]})
        assert told == "This step masks the table (p = 0.1)."
        told = words.step_in_words("redraw", {"p": 2})
        assert told.startswith("This step re")
        assert words.step_in_words("round", {}).startswith("This step rounds numbers")


class TestSwapped:
    """What protects a swapped table is read first, and it is not its crowds."""

    NASTY = "<b>\u202ecode"

    def page(self, tmp_path: Path, **how: Any) -> Page:
        frame = people().with_columns(pl.int_range(1200).alias(self.NASTY))
        roles = ROLES.replacing(insensitive=["income", self.NASTY])
        plan = Plan([Swap(k=3, **how)], require=[ProbabilisticKAnonymity(3)])
        return Page(page_of(Table(frame, roles), plan, tmp_path))

    def test_the_headline_has_the_k_of_the_swap(self, tmp_path: Path) -> None:
        text = self.page(tmp_path).text.replace("\u00a0", " ")
        assert "a link by quasi-identifiers is right with a chance of at most 1 in 3" in text
        assert "(k = 3, by swapping), and the requirement was met." in text
        assert "some are unique (k = 1)" not in text
        assert "smallest crowd, k " not in text
        assert re.search(r"when tried; with 95 % confidence \d+ to \d+ % \d+ %", text)
        assert "Crowds do not protect this table" in text
        assert "the k of the swap needs the private half" in text

    def test_of_secrets(self, tmp_path: Path) -> None:
        text = self.page(tmp_path, informed=True).text.replace("\u00a0", " ")
        assert "a sensitive value belongs to its record with a chance of at most 1 in 3" in text
        assert re.search(r"sensitive values that stayed [a-z ]+; .* % \d+ %", text)

    def test_what_gets_around_it_is_told_with_its_columns(self, tmp_path: Path) -> None:
        page = self.page(tmp_path)
        text = page.text.replace("\u00a0", " ")
        told = "these columns, which were not swapped, finds about 100 % of the"
        assert text.count(told) == 2, "beside the claim, and among what not to conclude"
        assert "“1 in 3 holds whatever an intruder knows.”" in text
        assert "<b>\ufffdcode" in text
        assert "\u202e" not in text

    def test_where_nothing_does_it_says_so(self, tmp_path: Path) -> None:
        random = np.random.default_rng(1)
        frame = pl.DataFrame({name: random.normal(size=400) for name in ("x", "wage")})
        roles = Roles(quasi_identifiers=["x"], sensitive=["wage"])
        plan = Plan([Swap(k=4)], require=[ProbabilisticKAnonymity(4)])
        text = Page(page_of(Table(frame, roles), plan, tmp_path)).text
        assert "None reveals clearly more than the bound allows" in text
        assert "holds whatever" not in text

    def test_an_assessment_begins_with_it(self) -> None:
        original = Table(people(), ROLES)
        found = assess(Swap(k=3).fit_transform(original), original=original)
        text = Page(assessment_page(found)).text.replace("\u00a0", " ")
        assert re.search(
            r"1,200 records, swapped within groups of at least 3: [\d.]+ % right", text
        )


class TestWhatNotToConclude:
    @staticmethod
    def text(plan: Plan, tmp_path: Path, roles: Roles = ROLES) -> str:
        return Page(page_of(Table(people(), roles), plan, tmp_path)).text

    def test_noise_is_not_called_differential_privacy(self, tmp_path: Path) -> None:
        masked = Plan([AddNoise(epsilon=2.0, columns=["income"]), Suppress(min_class_size=2)])
        assert "“ The noise gives differential privacy. ” It does not" in self.text(
            masked, tmp_path
        ).replace("“", "“ ").replace("”", " ”")

    def test_what_swapping_covers_and_who_can_check_it(self, tmp_path: Path) -> None:
        plan = Plan([Swap(k=3)], require=[ProbabilisticKAnonymity(3)])
        text = self.text(plan, tmp_path)
        assert "only for links by the swapped columns" in text
        assert "Anyone who has the release can recompute the claim" not in text

    def test_nothing_is_said_of_noise_where_there_is_none(self, tmp_path: Path) -> None:
        text = self.text(Plan([Suppress(min_class_size=2)]), tmp_path)
        assert "differential privacy" not in text
        assert "someone's number" not in text
        assert "Extreme" not in text

    def test_a_crowd_that_says_the_same_is_named_with_the_sensitive_columns(
        self, source: str
    ) -> None:
        cautions = source[source.index('id="not"') :]
        told = cautions[cautions.index("People who cannot be found") :]
        assert "<li><bdi>illness</bdi></li>" in told[: told.index("</li>\n<li class")]

    def test_columns_left_as_they_were_are_named(self, source: str) -> None:
        cautions = source[source.index('id="not"') :]
        told = cautions[cautions.index("equal the original") :]
        named = re.findall(r"<li><bdi>(.*?)</bdi>", told[: told.index("</ul>")])
        assert named == ["sex", "region", "illness"]

    def test_records_taken_out_are_told(self, tmp_path: Path) -> None:
        assert "“The table is complete.”" in self.text(Plan(STEPS), tmp_path)
        assert "The table is complete" not in self.text(Plan([Round(base=1000)]), tmp_path)

    def test_nothing_required_is_nothing_promised(self, tmp_path: Path) -> None:
        text = self.text(Plan(STEPS), tmp_path)
        assert "nothing was required." in text
        assert "“Something is promised.”" in text

    def test_the_order_of_the_rows(self, tmp_path: Path) -> None:
        assert "kept the order of the input" in self.text(Plan(STEPS, keep_order=True), tmp_path)
        assert "kept the order of the input" not in self.text(Plan(STEPS), tmp_path)

    def test_the_wildcard_reading(self, tmp_path: Path) -> None:
        weaker = Plan(STEPS, require=[KAnonymity(5, missing="wildcard")])
        assert "as at statistics offices" in self.text(weaker, tmp_path)
        own = Plan(STEPS, require=[KAnonymity(5)])
        assert "as at statistics offices" not in self.text(own, tmp_path)

    def test_records_that_stand_alone(self, tmp_path: Path) -> None:
        roles = Roles(
            identifiers=["who"],
            quasi_identifiers=["age", "income"],
            insensitive=["sex", "region", "illness"],
        )
        text = self.text(Plan([Round(base=2, columns=["age"])]), tmp_path, roles)
        assert "but some are unique (k = 1)" in text.replace("\u00a0", " ")
        assert "“Everybody is hidden.”" in text
        assert "“There is no risk left.”" not in text

    def test_no_quasi_identifier_left(self, tmp_path: Path) -> None:
        text = self.text(Plan([Suppress(max_distinct=0.0)]), tmp_path)
        assert "without any quasi-identifier" in text
        assert "Every declared quasi-identifier was removed" in text
