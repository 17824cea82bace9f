"""Formulas of the documentation: every one converts, to MathML without style or script."""

from __future__ import annotations

import re
from pathlib import Path

import markdown
import pytest

from shoal.app.studio._docs import _outside_code, html_of, library
from shoal.app.studio._math import mathml


def html(text: str) -> str:
    return markdown.markdown(text, extensions=["fenced_code", "tables", "shoal.app.studio._math"])


def formulas(text: str) -> list[str]:
    prose = "\n".join(line for line, is_prose in _outside_code(text) if is_prose)
    return re.findall(r"\$\$(.+?)\$\$", prose, flags=re.DOTALL)


def test_every_formula_of_the_documentation_converts():
    found = {name: formulas(one.text) for name, one in library().pages.items()}
    assert sum(map(len, found.values())) > 70
    for name, page in library().pages.items():
        made = html_of(page, library())
        assert made.count('class="scroll math"') == len(found[name]), name
        assert not re.search(r"style=|<mi>(&amp;|\\\w*)</mi>|<mtext>[^<]*\\", made), name
        outside_code = re.sub(r"<(code|pre)\b.*?</\1>", "", made, flags=re.DOTALL)
        assert not re.search(r"\$", outside_code), name


@pytest.mark.parametrize("folder", ["measures", "models"])
def test_every_definition_of_a_measure_or_model_is_a_formula_or_a_table(folder):
    for name, page in library().pages.items():
        definition = re.search(r"^## Definition\n(.*?)^## ", page.text, re.DOTALL | re.MULTILINE)
        if name.startswith(f"{folder}/") and definition:
            assert "```text" not in definition[1], name


def test_a_formula_in_a_sentence_and_one_of_its_own():
    made = html("The share $p_i$ is\n\n$$\n\\frac{1}{n} \\le 2\n$$\n\nor less.")
    assert made.count("<math") == 2
    assert "<mfrac>" in made
    assert "≤" in made


@pytest.mark.parametrize("text", ["`$x$`", "```text\n$$ x $$\n```", "5 $ and 6 $", "US$5 or US$6"])
def test_code_and_prices_are_not_formulas(text):
    assert "<math" not in html(text)


def test_markdown_leaves_a_formula_alone_and_nothing_in_it_is_markup():
    made = html("$a*b*c_1$ and $\\text{<script>}$")
    assert "<em>" not in made
    assert "<script" not in made


def test_signs_are_characters_not_references():
    assert "".join(mathml(r"\sum").itertext()) == "∑"


def test_the_site_and_the_studio_use_the_same_extension():
    root = Path(__file__).resolve().parents[3]
    if not (root / "mkdocs.yml").is_file():
        pytest.skip("not a checkout")
    assert "shoal.app.studio._math" in (root / "mkdocs.yml").read_text("utf-8")
