"""Reading numpydoc: what a method says about itself, for ``shoal methods``."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, field
from typing import Any

_ROLE = re.compile(r":\w+:`([^`]*)`")


@dataclass(frozen=True)
class Described:
    """The parts of a docstring that a reader of the command line needs."""

    summary: str
    text: str
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    references: str = ""
    examples: str = ""


def described(thing: Any) -> Described:
    """The docstring of a class or function, in parts.

    Examples
    --------
    >>> from shoal.masking import Round
    >>> described(Round).summary
    'Round numbers to the nearest multiple of a base.'
    >>> described(Round).parameters["base"]
    'The distance between released values, in the unit of the column.'
    """
    sections = _sections(inspect.getdoc(thing) or "")
    summary, _, text = sections.pop("", "").partition("\n\n")
    found = _parameters(sections.get("Parameters", ""))
    return Described(
        summary=_flowing(summary),
        text=_flowing(text),
        parameters={name: text for name, (_, text) in found.items()},
        types={name: kind for name, (kind, _) in found.items()},
        references=_flowing(sections.get("References", "")),
        examples=sections.get("Examples", ""),
    )


def example_call(cls: type) -> Any:
    """The object that the docstring's example makes, or None where there is none.

    Examples
    --------
    >>> from shoal.models import KAnonymity
    >>> example_call(KAnonymity)
    KAnonymity(k=3, missing='own', of='persons')
    """
    source = "\n".join(
        line[4:]
        for line in described(cls).examples.splitlines()
        if line.startswith((">>> ", "... "))
    )
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == cls.__name__
    ]
    if not calls:
        return None
    return _made(min(calls, key=lambda call: (call.lineno, call.col_offset)), cls)


def _made(node: ast.AST, cls: Any = None) -> Any:
    """What an expression of literals and calls of the front door's names stands for."""
    if isinstance(node, ast.Dict):
        keys = [_made(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_made, node.values), strict=True))
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    import shoal

    maker = cls or getattr(shoal, ast.unparse(node.func).partition(".")[0])
    if isinstance(node.func, ast.Attribute):
        maker = getattr(maker, node.func.attr)
    given = {word.arg: _made(word.value) for word in node.keywords if word.arg}
    return maker(*map(_made, node.args), **given)


def _sections(doc: str) -> dict[str, str]:
    """The text under each underlined title; the beginning has none."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", doc, flags=re.MULTILINE)
    titled = zip(parts[1::2], parts[2::2], strict=True)
    return {"": parts[0].strip(), **{title: text.strip() for title, text in titled}}


def _parameters(section: str) -> dict[str, tuple[str, str]]:
    """Type and meaning of each parameter."""
    found: dict[str, tuple[str, str]] = {}
    for block in re.split(r"\n(?=\S)", section):
        head, _, text = block.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            found[name.strip()] = (kind.strip(), _flowing(inspect.cleandoc(text)))
    return found


def _flowing(text: str) -> str:
    """One line per paragraph, without the marks of the markup."""
    plain = _ROLE.sub(r"\1", text).replace("``", "").replace("*", "")
    return "\n\n".join(" ".join(part.split()) for part in plain.split("\n\n"))
