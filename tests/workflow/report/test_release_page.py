"""The report: what it says, what it must never say, and that it is one sound page."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import sys

import jinja2
import numpy as np
import pytest

from shoal.workflow.report import _render

from .pages import Page

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def test_a_template_is_compiled_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(_render, "_COMPILED", tmp_path)
    compiled: list[str] = []
    compile_it = jinja2.Environment.compile

    def compiling(self, source, name, *others):
        compiled.append(name)
        return compile_it(self, source, name, *others)

    monkeypatch.setattr(jinja2.Environment, "compile", compiling)
    for _ in range(2):
        _render.environment.__wrapped__().get_template("release.html.j2")
    assert compiled == ["release.html.j2"]
    monkeypatch.setattr(_render, "_COMPILED", tmp_path / "not there")  # so nothing can be kept
    _render.environment.__wrapped__().get_template("release.html.j2")
    assert len(compiled) == 2


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
