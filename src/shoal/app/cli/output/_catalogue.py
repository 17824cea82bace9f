"""The catalogue: every method, model and measure as plain facts."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shoal.masking import Masker
    from shoal.measurement import MeasureInfo
    from shoal.models import PrivacyModel
    from shoal.parameters import Parameter

_WORDS: Final = {
    "method": "masking method",
    "model": "privacy model",
    "risk": "measure of risk",
    "utility": "measure of utility",
}


@dataclass(frozen=True)
class Option:
    """One parameter of an entry."""

    name: str
    accepts: str
    required: bool
    default: Any
    meaning: str

    @property
    def default_text(self) -> str:
        """The default in a table: nothing where there is none."""
        if self.required:
            return "required"
        return "-" if self.default is None else json.dumps(self.default)

    @property
    def stands_for(self) -> str:
        """The default in a sentence."""
        if self.required:
            return "required"
        return "optional" if self.default is None else f"{json.dumps(self.default)} if not given"


@dataclass(frozen=True)
class Entry:
    """One method, model or measure."""

    kind: str
    name: str
    python: str
    summary: str
    text: str
    parameters: tuple[Option, ...]
    reference: str
    references: str
    example: str

    @property
    def kind_in_words(self) -> str:
        """What it is."""
        return _WORDS[self.kind]


def catalogue() -> list[Entry]:
    """Every method, model and measure that is installed."""
    from shoal.masking import discover_maskers
    from shoal.models import discover_models
    from shoal.risk import discover_risks
    from shoal.utility import discover_utilities

    return [
        *(_method(cls) for cls in discover_maskers().values()),
        *(_model(cls) for cls in discover_models().values()),
        *(_measure("risk", info) for info in discover_risks().values()),
        *(_measure("utility", info) for info in discover_utilities().values()),
    ]


def _method(cls: type[Masker]) -> Entry:
    from shoal.workflow import Plan

    doc = described(cls)
    made = example_call(cls)
    example = f'[[steps]]\nmethod = "{cls.method}"\n' if made is None else Plan([made]).to_toml()
    summary = cls.summary[0].upper() + cls.summary[1:] + "."
    text = f"{doc.summary}\n\n{doc.text}" if doc.text else doc.summary
    return _entry("method", cls.method, cls, doc, (summary, text), cls.reference, example)


def _model(cls: type[PrivacyModel]) -> Entry:
    from shoal.workflow import Plan

    doc = described(cls)
    made = example_call(cls)
    example = "" if made is None else Plan(require=[made]).to_toml()
    return _entry("model", cls.model, cls, doc, (doc.summary, doc.text), cls.reference, example)


def _entry(
    kind: str,
    name: str,
    thing: Any,
    doc: Described,
    words: tuple[str, str],
    reference: str,
    example: str,
) -> Entry:
    from shoal.parameters import parameters_of

    options = tuple(_option(each, doc) for each in parameters_of(thing) if each.in_plan)
    return Entry(
        kind, name, thing.__name__, *words, options, reference, doc.references, example.strip()
    )


def _option(parameter: Parameter, doc: Described) -> Option:
    name = parameter.name
    return Option(
        name=name,
        accepts=parameter.constraint.describe() or _in_words(doc.types.get(name, "")),
        required=parameter.required,
        default=parameter.default,
        meaning=doc.parameters.get(name, ""),
    )


def _measure(kind: str, info: MeasureInfo) -> Entry:
    from shoal.workflow import Limit, Plan

    doc = described(info.function)
    low, high = info.limits
    lower = info.direction == "lower"
    # a measure without an end has no middle either: then any number shows how a limit is written
    finite = math.isfinite(low) and math.isfinite(high)
    bound = low + (0.2 if lower else 0.8) * (high - low) if finite else 2.0
    limit = Limit(info.name, at_most=bound) if lower else Limit(info.name, at_least=bound)
    facts = [
        f"{_range(low, high)}; {info.direction} is better.",
        "It compares with the original." if info.needs_original else "",
    ]
    text = "\n\n".join(part for part in (doc.text, " ".join(facts).strip()) if part)
    example = Plan(require=[limit]).to_toml()
    words = doc.summary, text
    return _entry(kind, info.name, info.function, doc, words, doc.references, example)


def _range(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"It lies between {low:g} and {high:g}"
    return f"It is at least {low:g}" if math.isfinite(low) else "It can be any number"


def _in_words(kind: str) -> str:
    """A type as numpydoc writes it, in the words of the parameters of methods."""
    kind = kind.removesuffix(", optional")
    if kind.startswith("{"):
        return "one of " + kind.strip("{}").replace('"', "'")
    return {"float": "a number", "int": "an integer", "str": "a text"}.get(kind, kind)


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
    import shoal

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
    first = min(calls, key=lambda call: (call.lineno, call.col_offset))
    # an expression of this very package, of literals and names of its front door
    known = {name: getattr(shoal, name) for name in shoal.__all__}
    return eval(ast.unparse(first), {**known, cls.__name__: cls})


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
