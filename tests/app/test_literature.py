"""Every work that the documentation refers to has a DOI or another lasting address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Works without an address, and why.
WITHOUT = {
    "Chen, McNulty (1998)": "the journal's archive has it, under an address not confirmed",
    "Dankar, El Emam (2010)": "its DOI was not confirmed",
    "Domingo-Ferrer, Torra (2001)": "its DOI was not confirmed",
    "Donner, Zou (2012)": "its DOI was not confirmed",
    "Elliot, Manning, Ford (2002)": "its DOI was not confirmed",
    "Franconi, Polettini (2004)": "its DOI was not confirmed",
    "Cao, Karras (2012)": "its DOI was not confirmed",
    "Mateo-Sanz, Sebé, Domingo-Ferrer (2004)": "its DOI was not confirmed",
    "Muralidhar, Sarathy, Dandekar (2006)": "its DOI was not confirmed",
    "Verdonck, De Boeck, Willocx, Lapon, Naessens (2022)": "its DOI was not confirmed",
    "Verdonck et al. (2022)": "its DOI was not confirmed",
    "Xu et al. (2006)": "its DOI was not confirmed",
    "Zayatz (1991)": "a report whose address was not confirmed",
}
#: Where one work may end, and the authors of the next begin.
END = re.compile(r"(?<!\bal\.)(?<=[.:;?)*]) |(?:^|(?<= ))- ")


def sections(repository: Path) -> Iterator[tuple[str, str]]:
    """Where each list of references is, and its text on one line."""
    for page in sorted((repository / "docs").rglob("*.md")):
        for text in re.findall(
            r"^## References?$(.*?)(?=^## |\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            yield str(page.relative_to(repository)), " ".join(text.split())
    package = repository / "src" / "shoal"
    for path in sorted(package.rglob("*.py")):
        # kernels are not part of the reference
        if path.relative_to(package).parts[0] == "kernels":
            continue
        for text in re.findall(
            r"^ *References\n *-{10}\n(.*?)(?=^$|\"{3})",
            path.read_text("utf-8"),
            re.MULTILINE | re.DOTALL,
        ):
            yield str(path.relative_to(repository)), " ".join(text.split())


def works(text: str) -> Iterator[str]:
    """Each work of a list: authors, year and what follows, without the next work's authors."""
    lead, *parts = re.split(r"\(((?:18|19|20)\d\d)\)", text)
    authors = END.split(lead)[-1]
    while parts:
        year, body, *parts = parts
        following = END.split(body)[-1] if parts else ""
        yield f"{authors}({year}){body.removesuffix(following)}".strip()
        authors = following


def has_address(text: str) -> bool:
    return "](http" in text or "<http" in text


def without_address(text: str) -> list[str]:
    return [work for work in works(text) if not has_address(work)]


@pytest.fixture
def lists(repository):
    return list(sections(repository))


def known(work: str) -> str | None:
    plain = work.replace("*", "")
    return next((one for one in WITHOUT if plain.startswith(one)), None)


def test_every_reference_has_an_address_or_a_reason(lists):
    assert len(lists) > 150
    found = [f"{where}: {work}" for where, text in lists for work in without_address(text)]
    assert [one for one in found if not known(one.partition(": ")[2])] == []


def test_every_list_has_an_address_or_a_reason(lists):
    bare = [where for where, text in lists if not (has_address(text) or without_address(text))]
    assert bare == []


def test_no_reason_is_left_over(lists):
    needed = {known(work) for _, text in lists for work in without_address(text)}
    assert sorted(set(WITHOUT) - needed) == []


def test_a_reference_without_an_address_is_noticed():
    text = "Ann (2001), [*A*](https://doi.org/1), J. 2. Bo, Cy et al. (2002), *B: b*. Di (2003), C."
    assert without_address(text) == ["Bo, Cy et al. (2002), *B: b*.", "Di (2003), C."]
