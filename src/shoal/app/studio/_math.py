"""Formulas in Markdown: TeX between ``$`` or ``$$`` becomes MathML, which needs no script or style.

The studio and the documentation site (``mkdocs.yml``) both use this extension.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from latex2mathml.converter import convert_to_element
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString


def mathml(tex: str, *, display: str = "inline") -> Element:
    """A formula as an element; Markdown leaves the texts in it as they are."""
    formula: Element = convert_to_element(tex.strip(), display=display)
    for part in formula.iter():
        if part.text:
            # latex2mathml writes signs as references: &#x02211;
            sign = re.sub(r"&#x([0-9A-Fa-f]+);", lambda code: chr(int(code[1], 16)), part.text)
            part.text = AtomicString(sign)
    return formula


class _Display(BlockProcessor):  # type: ignore[misc]
    def test(self, parent: Element, block: str) -> bool:
        return re.fullmatch(r"\s*\$\$.+\$\$\s*", block, flags=re.DOTALL) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        frame = SubElement(parent, "div", {"class": "scroll math", "tabindex": "0"})
        frame.append(mathml(blocks.pop(0).strip()[2:-2], display="block"))


class _Inline(InlineProcessor):  # type: ignore[misc]
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802
        return mathml(m[1]), m.start(0), m.end(0)


class Math(Extension):  # type: ignore[misc]
    """``$$…$$`` as a paragraph of its own, ``$…$`` in a sentence."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.parser.blockprocessors.register(_Display(md.parser), "math", 85)
        inline = _Inline(r"(?<![\\$\w])\$(?![\s$])([^$]+?)(?<!\s)\$(?![\w$])", md)
        md.inlinePatterns.register(inline, "math", 185)  # after code, before escapes


def makeExtension(**options: Any) -> Math:  # noqa: N802
    return Math(**options)
