"""The report: what it says, what it must never say, and that it is one sound page."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
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
    ProbabilisticKAnonymity,
    Recode,
    Release,
    Roles,
    Round,
    Suppress,
    Swap,
    Table,
    TopBottomCode,
    assess,
    protect,
)
from shoal.workflow import _crowds as crowds
from shoal.workflow._crowds import SMALLEST_CROWD
from shoal.workflow._profile import Bar, class_size_profile
from shoal.workflow._release import public_facts
from shoal.workflow.report import _figures as figures
from shoal.workflow.report import _render as rendering
from shoal.workflow.report import _words as words
from shoal.workflow.report import assessment_fragment, assessment_page, release_page

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page as a reader gets it: its text, its tags with attributes, and whether it is sound."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.said: list[str] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute of <{tag}> is given twice"
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.code:
            self.code[self.open[-1]].append(data)
        else:
            self.said.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.said))

    def find(self, tag: str) -> Iterator[tuple[dict[str, str | None], tuple[str, ...]]]:
        return ((attrs, inside) for name, attrs, inside in self.tags if name == tag)


def facts_of(release: Release, tmp_path: Path) -> dict[str, Any]:
    data = tmp_path / "data.csv"
    release.masked.write(data, format="csv")
    return public_facts(release, data_file=data, format="csv")


def page_of(table: Table, plan: Plan, tmp_path: Path) -> str:
    release = protect(table, plan)
    return release_page(release, facts_of(release, tmp_path))


def people(rows: int = 1200, *, seed: int = 7) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": [f"person-{i}" for i in range(rows)],
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["f", "m"], rows),
            "region": [f"R{int(r)}" for r in draw.exponential(3, rows)],
            "income": draw.lognormal(10, 0.5, rows).round(2),
            "illness": draw.choice(["flu", "asthma", "none"], rows),
        }
    )


ROLES = Roles(
    identifiers=["who"],
    quasi_identifiers=["age", "sex", "region"],
    sensitive=["illness"],
    insensitive=["income"],
)
STEPS = (
    TopBottomCode(fence=1.5, columns=["income"]),
    AddNoise(epsilon=2.0, columns=["income"]),
    Round(base=1000, columns=["income"]),
    Recode(magnitude=1.5),
    Suppress(min_class_size=5),
)


@pytest.fixture(scope="module")
def release() -> Release:
    plan = Plan(
        STEPS,
        require=[
            KAnonymity(5),
            Limit("marketer_risk", at_most=0.2),
            Limit("suppressed_cells", at_most=0.5),
        ],
    )
    return protect(Table(people(), ROLES), plan)


@pytest.fixture
def source(release: Release, tmp_path: Path) -> str:
    return release_page(release, facts_of(release, tmp_path))


class TestOnePage:
    def test_it_is_sound_html_with_one_title_and_headings_in_order(self, source: str) -> None:
        page = Page(source)
        assert source.startswith("<!DOCTYPE html>")
        assert [inside for _, inside in page.find("title")].count(("html", "head")) == 1
        assert {"header", "nav", "main", "footer"} <= {tag for tag, _, _ in page.tags}
        levels = [int(tag[1]) for tag, _, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(deeper - level <= 1 for level, deeper in itertools.pairwise(levels))

    def test_ids_are_unique_and_every_link_and_label_has_its_target(self, source: str) -> None:
        page = Page(source)
        ids = [attrs["id"] for _, attrs, _ in page.tags if "id" in attrs]
        assert len(set(ids)) == len(ids)
        pointed = [attrs["href"] for tag, attrs, _ in page.tags if tag in ("a", "use")]
        pointed += [
            f"#{attrs['aria-labelledby']}"
            for _, attrs, _ in page.tags
            if "aria-labelledby" in attrs
        ]
        assert {str(target) for target in pointed} <= {f"#{i}" for i in ids}

    def test_it_loads_nothing(self, source: str) -> None:
        page = Page(source)
        assert "http://" not in source
        assert "https://" not in source
        assert not re.search(r"@import|url\(", "".join(page.code["style"]))
        outside = {"img", "iframe", "object", "embed", "audio", "video", "source", "form", "base"}
        assert not outside & {tag for tag, _, _ in page.tags}
        assert [attrs["href"] for attrs, _ in page.find("link")] == ["data:,"]
        assert not [attrs for _, attrs, _ in page.tags if "src" in attrs or "srcset" in attrs]

    def test_its_policy_admits_its_script_and_no_other(self, source: str) -> None:
        page = Page(source)
        (policy,) = [
            str(attrs["content"]) for attrs, _ in page.find("meta") if "http-equiv" in attrs
        ]
        (script,) = page.code["script"]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert "default-src 'none'" in policy
        assert re.findall(r"script-src ([^;]+);", policy) == [f"'sha256-{digest}'"]
        assert not [attrs for _, attrs, _ in page.tags if any(n.startswith("on") for n in attrs)]

    def test_every_picture_has_words_and_its_numbers(self, source: str) -> None:
        page = Page(source)
        charts = [attrs for attrs, _ in page.find("svg") if attrs.get("class") == "chart"]
        assert len(charts) >= 4
        assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in charts)
        figures_ = sum(tag == "figure" for tag, _, _ in page.tags)
        tables = sum("figure" in inside for _, inside in page.find("table"))
        assert tables >= figures_
        silent = [
            attrs
            for attrs, inside in page.find("svg")
            if attrs.get("role") != "img"
            and "aria-hidden" not in attrs
            and not any(a.get("aria-hidden") for t, a, _ in page.tags if t in inside)
        ]
        assert silent == []

    def test_it_stays_small(self, source: str) -> None:
        assert len(source) < 150_000


class TestColours:
    """WCAG 2: text 4.5 to 1, what a picture needs 3 to 1, in both schemes."""

    @staticmethod
    def palettes(source: str) -> list[dict[str, str]]:
        blocks = re.findall(r"color-scheme: (?:light|dark);([^}]*)", source)
        return [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks]

    @staticmethod
    def contrast(one: str, other: str) -> float:
        def luminance(colour: str) -> float:
            parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
            linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            return float(linear @ [0.2126, 0.7152, 0.0722])

        dark, light = sorted([luminance(one), luminance(other)])
        return (light + 0.05) / (dark + 0.05)

    def test_contrast_is_known(self) -> None:
        assert self.contrast("#ffffff", "#000000") == pytest.approx(21)

    def test_text_and_pictures_stand_out(self, source: str) -> None:
        palettes = self.palettes(source)
        assert len(palettes) == 3  # light, dark by the system, dark by the switch
        assert palettes[1] == palettes[2] != palettes[0]
        for palette in palettes:
            for text in ("ink", "quiet", "accent", "warn"):
                assert self.contrast(palette[text], palette["paper"]) >= 4.5
                assert self.contrast(palette[text], palette["card"]) >= 4.5
            for text in ("accent", "good", "warn"):
                assert self.contrast(palette[text], palette[f"{text}-soft"]) >= 4.5
            for shape in ("after", "before-edge"):
                assert self.contrast(palette[shape], palette["card"]) >= 3
            assert self.contrast(palette["after"], palette["before"]) >= 3


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
            ({"max_distinct": 0.7}, "more different values than 0.7 times the number of records"),
            ({"min_count": 5}, "Rare cells were made missing: values that occur fewer than 5"),
            ({"min_class_size": 3}, "Records in a crowd of fewer than 3"),
            ({"target": "records"}, "Records were taken out by a condition that stays"),
            ({"columns": ["age"]}, "Cells were made missing by a condition that stays"),
        ],
    )
    def test_each_rule_of_suppression(self, rule: dict[str, Any], told: str) -> None:
        assert told in words.step_in_words("suppress", rule)

    def test_a_method_without_own_words_is_told_by_its_summary(self) -> None:
        told = words.step_in_words("of_a_later_version", {"p": 0.1, "columns": ["age"]})
        assert told == "This step masks the table (p = 0.1)."
        told = words.step_in_words("redraw", {"p": 2})
        assert told.startswith("This step redraws the sensitive values of classes")
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
        assert "a link by the quasi-identifiers is right with a chance of at most 1 in 3" in text
        assert "(k = 3, by swapping), and the requirement was met." in text
        assert "some stand alone (k = 1)" not in text
        assert "the smallest crowd, k " not in text
        assert re.search(r"when tried; with 95 % confidence \d+ to \d+ % \d+ %", text)
        assert "Crowds are not what protects this table" in text
        assert "the k of the swap needs the private half" in text

    def test_of_secrets(self, tmp_path: Path) -> None:
        text = self.page(tmp_path, informed=True).text.replace("\u00a0", " ")
        assert "a sensitive value is that of its record with a chance of at most 1 in 3" in text
        assert re.search(r"sensitive values still at their own record; .* % \d+ %", text)

    def test_what_gets_around_it_is_told_with_its_columns(self, tmp_path: Path) -> None:
        page = self.page(tmp_path)
        text = page.text.replace("\u00a0", " ")
        told = "Whoever knows these columns, which were not swapped, finds about 100 % of the"
        assert text.count(told) == 2, "beside the claim, and among what not to conclude"
        assert "“1 in 3 holds whatever is known.”" in text
        assert "<b>\ufffdcode" in text
        assert "\u202e" not in text

    def test_where_nothing_does_it_says_so(self, tmp_path: Path) -> None:
        random = np.random.default_rng(1)
        frame = pl.DataFrame({name: random.normal(size=400) for name in ("x", "wage")})
        roles = Roles(quasi_identifiers=["x"], sensitive=["wage"])
        plan = Plan([Swap(k=4)], require=[ProbabilisticKAnonymity(4)])
        text = Page(page_of(Table(frame, roles), plan, tmp_path)).text
        assert "none gives clearly more than it promises" in text
        assert "holds whatever is known" not in text

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
        assert "links by the swapped columns alone" in text
        assert "Anyone who has the release can recompute the claim" not in text

    def test_nothing_is_said_of_noise_where_there_is_none(self, tmp_path: Path) -> None:
        text = self.text(Plan([Suppress(min_class_size=2)]), tmp_path)
        assert "differential privacy" not in text
        assert "somebody's number" not in text
        assert "drawn in" not in text

    def test_a_crowd_that_says_the_same_is_named_with_the_sensitive_columns(
        self, source: str
    ) -> None:
        cautions = source[source.index('id="not"') :]
        told = cautions[cautions.index("Who cannot be found") :]
        assert "<li><bdi>illness</bdi></li>" in told[: told.index("</li>\n<li class")]

    def test_columns_left_as_they_were_are_named(self, source: str) -> None:
        cautions = source[source.index('id="not"') :]
        told = cautions[cautions.index("left exactly as they came") :]
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
        assert "as the statistics offices do" in self.text(weaker, tmp_path)
        own = Plan(STEPS, require=[KAnonymity(5)])
        assert "as the statistics offices do" not in self.text(own, tmp_path)

    def test_records_that_stand_alone(self, tmp_path: Path) -> None:
        roles = Roles(
            identifiers=["who"],
            quasi_identifiers=["age", "income"],
            insensitive=["sex", "region", "illness"],
        )
        text = self.text(Plan([Round(base=2, columns=["age"])]), tmp_path, roles)
        assert "but some stand alone (k = 1)" in text.replace("\u00a0", " ")
        assert "“Everybody is hidden.”" in text
        assert "“There is no risk left.”" not in text

    def test_no_quasi_identifier_left(self, tmp_path: Path) -> None:
        text = self.text(Plan([Suppress(max_distinct=0.0)]), tmp_path)
        assert "without any quasi-identifier" in text
        assert "Every declared quasi-identifier was taken out" in text


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
        assert "fewer than 10 records were taken out" in text
        assert not re.search(r"\b3 records", text)

    def test_the_total_does_not_give_a_small_step_away(self) -> None:
        assert crowds.crowded_removals([12, 0, 3]) == ["some", 0, "some"]
        assert crowds.crowded_removals([12, 0]) == [12, 0]
        assert crowds.crowded_removals([0, 3]) == [0, "fewer than 10"]

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


NASTY = [
    "<script>alert(1)</script>",
    "\"quoted\" 'single' & <b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "عمر الشخص",
    "年齢 🐟",
    "one\x01 bell\x07 turn\u202earound",
    "long " * 400,
    "--></style></script>",
]


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


class TestFigures:
    def test_the_curve_is_what_counting_gives(self) -> None:
        draw = np.random.default_rng(5)
        table = Table(
            pl.DataFrame({"age": (draw.exponential(12, 3000)).astype(int)}),
            Roles(quasi_identifiers=["age"]),
        )
        sizes = table.classes.record_sizes
        bars = class_size_profile(table, table)
        points = figures.risk_points(bars)
        assert len(points) == len(bars) >= 5
        for chance, percent in points:
            true = 100 * float((1 / sizes > chance + 1e-12).mean())
            assert percent == pytest.approx(true, abs=len(bars) / 2 + 0.5)

    def test_the_released_curve_is_exact_and_ends_at_k(self) -> None:
        table = Table(
            pl.DataFrame({"age": [1] * 4 + [2] * 7 + [3] * 150}), Roles(quasi_identifiers=["age"])
        )
        found = assess(table)
        points = dict(figures.smaller_than(found.classes.records_by_size, found.k))
        sizes = table.classes.record_sizes
        assert sorted(points) == [1, 2, 3, 4, 5, 10, 20, 50, 100]
        for limit, percent in points.items():
            assert percent == pytest.approx(100 * float((sizes < limit).mean()))
        assert points[found.k] == 0

    def test_nothing_of_the_original_no_curve_of_it(self) -> None:
        assert figures.risk_points([Bar("1", None, 10), Bar("2+", None, 90)]) == []
        assert figures.risk_points([Bar("1+", 100, 100)]) == []

    def test_areas_are_shares(self) -> None:
        bars = [
            Bar("0 to 10", 20, 10, low=0, high=10),
            Bar("10 to 40", 60, 60, low=10, high=40),
            Bar("40 to 50", 20, 30, low=40, high=50),
        ]
        chart = figures.histogram(bars)
        areas = [column.width * column.after for column in chart.columns]
        assert np.array(areas) / sum(areas) == pytest.approx([0.1, 0.6, 0.3])
        assert chart.columns[1].width == pytest.approx(3 * chart.columns[0].width)
        assert max(column.after for column in chart.columns) == pytest.approx(
            chart.base - chart.top
        )

    def test_missing_values_stand_apart(self) -> None:
        chart = figures.histogram([Bar("0 to 1", 50, 50), Bar("missing", 50, 50)])
        numbers, missing = chart.columns
        assert numbers.x + numbers.width < missing.x
        assert chart.silhouette.count("M") == 2
        only = figures.histogram([Bar("missing", None, 100)])
        assert [tick.label for tick in only.x_ticks] == ["missing"]

    @pytest.mark.parametrize("label", ["1e+06 to 1e+06", "a to b", "5"])
    def test_labels_that_tell_no_range_still_draw(self, label: str) -> None:
        chart = figures.histogram([Bar(label, 10, 10), Bar("7 to 9", 90, 90)])
        assert [c.width for c in chart.columns] == [pytest.approx(figures.SMALL_WIDTH / 2)] * 2

    def test_bars_stay_in_their_box(self, release: Release) -> None:
        for chart in (
            figures.class_size_chart(release.class_sizes),
            *(figures.histogram(c.bars) for c in release.columns if c.numeric),
        ):
            for column in chart.columns:
                assert -0.01 <= column.x <= column.x + column.width <= chart.width + 0.01
                assert max(column.before or 0, column.after) <= chart.base - chart.top + 0.01

    @pytest.mark.parametrize("k", [1, 2, 3, 7, 30, 5000])
    def test_fish_do_not_overlap(self, k: int) -> None:
        places = figures.shoal(k)
        assert len(places) == min(k, 30)
        for i, (x, y) in enumerate(places):
            assert all(abs(x - a) >= 26 or abs(y - b) >= 11 for a, b in places[:i])


class TestAssessment:
    @pytest.fixture
    def masked(self) -> Any:
        original = Table(people(), ROLES)
        return assess(Round(base=5).fit_transform(original), original=original)

    def test_the_page_says_that_it_is_private(self) -> None:
        page = Page(assessment_page(assess(Table(people(), ROLES))))
        assert "Not for publication." in page.text
        assert [tag for tag, _, _ in page.tags].count("h1") == 1

    def test_every_measure_and_note_is_there(self, masked: Any) -> None:
        for source in (assessment_page(masked), assessment_fragment(masked)):
            text = Page(source).text
            for found in masked.measurements.values():
                assert words.number(found.value) in text
            for reason in masked.left_out.values():
                assert reason[1:] in text
            assert f"k = {masked.k}" in source

    def test_the_counts_are_exact(self, masked: Any) -> None:
        text = Page(assessment_page(masked)).text
        for count in masked.classes.records_by_size.values():
            assert f" {count:,} " in text

    def test_a_fragment_disturbs_no_notebook(self, masked: Any) -> None:
        fragment = assessment_fragment(masked)
        page = Page(fragment)
        assert fragment.startswith('<div class="shoal-assessment">')
        assert not [attrs for _, attrs, _ in page.tags if "id" in attrs]
        assert page.code["script"] == []
        selectors = re.findall(r"^(\S.*?) \{", "".join(page.code["style"]), flags=re.M)
        assert selectors
        for selector in ",".join(selectors).split(","):
            assert selector.strip().startswith(".shoal-assessment")

    def test_the_wildcard_reading_is_told(self) -> None:
        found = assess(Table(people(), ROLES), missing="wildcard")
        assert "crowds overlap" in Page(assessment_page(found)).text


class TestWords:
    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (0, "0"),
            (1860, "1,860"),
            (0.25403, "0.254"),
            (1234.56, "1,234.6"),
            (1e300, "1e+300"),
            (2.047e-05, "0.00002"),
            (6.218e-05, "0.000062"),
            (-3e-05, "-0.00003"),
            (1e-12, "1e-12"),
            (float("nan"), "none"),
            (float("inf"), "endless"),
        ],
    )
    def test_numbers(self, value: float, told: str) -> None:
        assert words.number(value) == told

    @pytest.mark.parametrize(
        ("value", "told"),
        [(0, "0 %"), (0.2, "below 1 %"), (33.3, "33 %"), (99.7, "above 99 %"), (100, "100 %")],
    )
    def test_percents(self, value: float, told: str) -> None:
        assert words.percent(value).replace("\u00a0", " ") == told

    def test_counts(self) -> None:
        assert words.counted(1, "record") == "1\u00a0record"
        assert words.counted(2000, "record") == "2,000\u00a0records"
        assert words.counted("fewer than 10", "record") == "fewer than 10\u00a0records"
        assert words.chance(1 / 3) == "1 in 3"
