"""The documentation inside the studio: the project's own pages, offline, with a search.

The pages are those of ``docs/``. In an installed package they lie next to this module, in a
checkout where the repository has them. Only files found there are served, by their name, so that no
address can reach anything else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from shoal.app.studio._pages import Studio, page, render
from shoal.errors import InputError, MissingExtra

_HERE: Final = Path(__file__).resolve()
_SHELVES: Final = (
    ("", "Guide"),
    ("tutorials", "Tutorials"),
    ("methods", "Methods"),
    ("models", "Models"),
    ("measures", "Measures"),
    ("studies", "Studies"),
    ("reference", "Reference"),
)
_PICTURES: Final = {".png": "image/png", ".svg": "image/svg+xml"}
_LONGEST_QUERY: Final = 100
_MOST_FOUND: Final = 30
_AROUND: Final = 90  # characters on each side of a hit


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    name: str
    text: str

    @cached_property
    def title(self) -> str:
        lines = _prose(self.text).splitlines()
        return next((line[2:].strip() for line in lines if line.startswith("# ")), "")

    @cached_property
    def sections(self) -> list[tuple[str, str]]:
        """Each heading with the text under it."""
        parts = re.split(r"^#{1,4} +(.+)$", _prose(self.text), flags=re.MULTILINE)
        return list(zip(parts[1::2], parts[2::2], strict=True))


@dataclass(frozen=True)
class Hit:
    """A section that contains all words of a query."""

    page: Page
    heading: str
    before: str
    word: str
    after: str

    @property
    def address(self) -> str:
        from markdown.extensions.toc import slugify

        return f"/docs/{self.page.name}#{slugify(self.heading, '-')}"


class Library:
    """The pages and pictures below a folder."""

    def __init__(self, folder: Path) -> None:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        own = [path for path in files if path.resolve().is_relative_to(folder.resolve())]
        self.pages = {
            path.relative_to(folder).with_suffix("").as_posix(): Page(
                path.relative_to(folder).with_suffix("").as_posix(), path.read_text("utf-8")
            )
            for path in own
            if path.suffix == ".md"
        }
        self.pictures = {
            path.relative_to(folder).as_posix(): path for path in own if path.suffix in _PICTURES
        }

    @cached_property
    def shelves(self) -> list[tuple[str, list[Page]]]:
        """The pages by folder, each folder's first page first."""
        found = []
        for folder, title in _SHELVES:
            inside = [one for one in self.pages.values() if posixpath.dirname(one.name) == folder]
            inside.sort(key=lambda one: (posixpath.basename(one.name) != "index", one.title))
            found.append((title, inside))
        return [(title, inside) for title, inside in found if inside]

    def search(self, query: str) -> list[Hit]:
        """Sections with all words, those with one in a heading first."""
        words = query[:_LONGEST_QUERY].casefold().split()
        if not words:
            return []
        scored = []
        for one in self.pages.values():
            for heading, text in one.sections:
                score = _score(words, one.title, heading, text)
                if score:
                    scored.append((-score, one.title, _hit(one, heading, text, words)))
        scored.sort(key=lambda entry: entry[:2])
        return [hit for _, _, hit in scored]


def _score(words: list[str], title: str, heading: str, text: str) -> int:
    low, head, name = text.casefold(), heading.casefold(), title.casefold()
    if not all(word in low or word in head or word in name for word in words):
        return 0
    named = sum(10 * (word in name) + 6 * (word in head) for word in words)
    return named + sum(min(low.count(word), 5) for word in words)


def _hit(one: Page, heading: str, text: str, words: list[str]) -> Hit:
    text = " ".join(text.split())
    at, word = min(
        ((place, word) for word in words if (place := text.casefold().find(word)) >= 0),
        default=(0, ""),
    )
    end = at + len(word)
    begin = max(at - _AROUND, 0)
    before = ("…" if begin else "") + text[begin:at]
    after = text[end : end + _AROUND] + ("…" if end + _AROUND < len(text) else "")
    return Hit(one, heading, before, text[at:end], after)


@cache
def library() -> Library | None:
    """The documentation; None if this installation does not have it."""
    for place in (_HERE.with_name("docs"), _HERE.parents[4] / "docs"):
        if (place / "index.md").is_file():
            return Library(place)
    return None


# -- from Markdown to HTML


def _outside_code(text: str) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is prose rather than code."""
    fence = ""
    for line in text.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        inside = bool(fence) or bool(mark)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        yield line, not inside


def _prose(text: str) -> str:
    """The text without parts that only a program reads."""
    kept = (line for line, is_prose in _outside_code(text) if is_prose)
    plain = "\n".join(line for line in kept if not line.startswith((":::", "    options:")))
    plain = re.sub(r"\$\$.*?\$\$", "", plain, flags=re.DOTALL)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"^\|[-:| ]+$", "", plain, flags=re.MULTILINE)  # under the head of a table
    return re.sub(r"[`*|$]", "", plain)


def _plain_markdown(text: str) -> str:
    """Without tabs and reference blocks, which plain Markdown does not know."""
    lines: list[str] = []
    block = ""  # what the indented lines that follow belong to
    for line, is_prose in _outside_code(text):
        if block and (line.startswith("    ") or not line.strip()):
            if block == "tab":
                lines.append(line[4:])
            continue
        block = ""
        if is_prose and line.startswith("::: "):
            block = "reference"
            lines += [f"`help({line[4:].strip()})` shows it in Python.", ""]
        elif is_prose and (tab := re.match(r'=== "(.+)"', line)):
            block = "tab"
            lines += [f"**{tab[1]}**", ""]
        else:
            lines.append(line)
    return "\n".join(lines)


@cache
def html_of(one: Page, known: Library) -> Markup:
    """A page as HTML; links lead to other pages of the studio."""
    try:
        import markdown
        from markdown.extensions.tables import TableExtension
        from markdown.treeprocessors import Treeprocessor

        from shoal.app.studio._math import Math
    except ImportError:
        raise MissingExtra("The documentation in the studio", "studio") from None

    class Links(Treeprocessor):  # type: ignore[misc]
        def run(self, root: Any) -> None:
            for parent in list(root.iter()):
                _wrap_tables(parent)
            for element in root.iter("a"):
                _lead(element, one.name, known)
            for element in root.iter("img"):
                element.set("src", f"/docs/{_beside(one.name, element.get('src', ''))}")

    tables = TableExtension(use_align_attribute=True)  # the policy forbids inline styles
    known_words = ["fenced_code", "admonition", "attr_list", "meta", "toc"]
    maker = markdown.Markdown(extensions=[tables, Math(), *known_words])
    maker.treeprocessors.register(Links(maker), "studio", 0)
    return Markup(maker.convert(_plain_markdown(one.text)))


def _wrap_tables(parent: Any) -> None:
    """Let a wide table scroll by itself, also by keyboard."""
    from xml.etree.ElementTree import Element

    for at, child in enumerate(list(parent)):
        if child.tag == "table" and parent.get("class") != "scroll":
            frame = Element("div", {"class": "scroll", "tabindex": "0"})
            frame.append(child)
            frame.tail, child.tail = child.tail, None
            parent[at] = frame


def _lead(link: Any, name: str, known: Library) -> None:
    """Point a link to a page of the studio, or open it in a window of its own."""
    to, _, anchor = link.get("href", "").partition("#")
    if to.startswith(("https://", "http://")):
        link.attrib |= {"target": "_blank", "rel": "noreferrer noopener"}
        return
    target = _beside(name, to).removesuffix(".md") if to else name
    if target in known.pages or target in known.pictures:
        link.set("href", f"/docs/{target}" + (f"#{anchor}" if anchor else ""))
    else:  # a file of the repository that is not installed
        link.tag = "span"
        del link.attrib["href"]


def _beside(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


# -- pages


def _show(studio: Studio, request: Request) -> Response:
    known = library()
    if known is None:
        raise InputError(
            "The documentation is not part of this installation. Install Shoal again, or read it "
            "in the repository."
        )
    name = request.path_params["name"].strip("/")
    query = request.query_params.get("q", "")[:_LONGEST_QUERY]
    if name in known.pictures:
        picture = known.pictures[name]
        return FileResponse(picture, media_type=_PICTURES[picture.suffix])
    if f"{name}/index" in known.pages:
        return RedirectResponse(f"/docs/{name}/index", 303)
    facts: dict[str, Any] = {"shelves": known.shelves, "query": query, "hits": None}
    if query.strip():
        hits = known.search(query)
        facts |= {"page": None, "hits": hits[:_MOST_FOUND], "cut": len(hits) > _MOST_FOUND}
        return HTMLResponse(render(request, "docs/page.html.j2", **facts))
    one = known.pages.get(name or "index")
    if one is None:
        raise InputError("The documentation has no such page. Search for it.")
    facts |= {"page": one, "text": html_of(one, known)}
    return HTMLResponse(render(request, "docs/page.html.j2", **facts))


def _begin(studio: Studio, request: Request) -> Response:
    return RedirectResponse("/docs/index", 303)


ROUTES: Final[list[Route]] = [page("/docs", _begin), page("/docs/{name:path}", _show)]
