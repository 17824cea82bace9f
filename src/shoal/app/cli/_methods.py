"""``shoal methods``: every method, model and measure, its parameters and its reference."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.app.cli._options import AsJson, command
from shoal.app.cli.output import ui
from shoal.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from shoal.masking import Masker
    from shoal.measurement import MeasureInfo
    from shoal.models import PrivacyModel

#: Each kind with its name and the title of its list.
_KINDS = {
    "method": ("masking method", "Methods: under [[steps]] of a plan"),
    "model": ("privacy model", "Privacy models: under [require] of a plan"),
    "risk": (
        "measure of risk",
        "Measures of risk: max_<name> or min_<name> under [require]",
    ),
    "utility": (
        "measure of utility",
        "Measures of utility: max_<name> or min_<name> under [require]",
    ),
}
_ROLE = re.compile(r":\w+:`([^`]*)`")


@dataclass(frozen=True)
class Option:
    """One parameter of an entry."""

    name: str
    accepts: str
    required: bool
    default: Any
    meaning: str

    def default_text(self, none: str, some: str) -> str:
        """The default in words; ``none`` if there is none."""
        if self.required:
            return "required"
        return none if self.default is None else some.format(json.dumps(self.default))


@dataclass(frozen=True)
class Entry:
    """One method, model or measure as plain facts."""

    kind: str
    name: str
    python: str
    summary: str
    text: str
    parameters: tuple[Option, ...]
    reference: str
    references: str
    example: str


def _names() -> list[str]:
    """The names that a shell completes."""
    from shoal.masking import discover_maskers
    from shoal.models import discover_models
    from shoal.workflow import discover_all_measures

    return [*discover_maskers(), *discover_models(), *discover_all_measures()]


@command("""
shoal methods
shoal methods suppress
shoal methods k_anonymity
shoal methods --json
""")
def methods(
    name: Annotated[str | None, typer.Option(autocompletion=_names)] = None,
    show_all: bool = False,
    as_json: AsJson = False,
) -> None:
    """List every method, privacy model and measure. With a NAME, explain one and show an example.

    Arguments
    ---------
    name NAME: A method, model or measure to explain.

    Options
    -------
    show_all --all: Also list their parameters and references.
    """
    entries = _catalogue()
    if name is not None:
        entry = _find(name, entries)
        if as_json:
            ui.print_json(asdict(entry))
        else:
            _explain(entry)
    elif as_json:
        groups = {"methods": ("method",), "models": ("model",), "measures": ("risk", "utility")}
        ui.print_json(
            {
                group: [asdict(entry) for entry in entries if entry.kind in kinds]
                for group, kinds in groups.items()
            }
        )
    else:
        _list(entries, show_all=show_all)


def _find(name: str, entries: list[Entry]) -> Entry:
    wanted = name.strip()
    for entry in entries:
        if wanted in (entry.name, entry.python, f"max_{entry.name}", f"min_{entry.name}"):
            return entry
    known = [entry.name for entry in entries]
    raise InputError(
        f"There is no method, model or measure '{name}'. {did_you_mean(wanted, known)}"
    )


def _list(entries: list[Entry], *, show_all: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for kind, (_, title) in _KINDS.items():
        ui.heading(title)
        listed = [entry for entry in entries if entry.kind == kind]
        if not show_all:
            ui.table(("name", "what it is"), ((entry.name, entry.summary) for entry in listed))
        for entry in listed if show_all else ():
            ui.show(Padding(Text(entry.name, "cyan"), (0, 0, 0, 2)))
            ui.show(Padding(entry.summary, (0, 0, 0, 4)))
            lines = [
                f"{p.name}: {p.accepts}; {p.default_text('optional', 'default: {}')}"
                for p in entry.parameters
            ]
            for line in (*lines, f"Reference: {entry.reference}"):
                ui.show(Padding(Text(line, "dim"), (0, 0, 0, 6)))
    ui.heading("Next: see one explained, with an example for a plan")
    ui.command_line("shoal methods suppress")


def _explain(entry: Entry) -> None:
    ui.heading(f"{entry.name} ({entry.python}): {_KINDS[entry.kind][0]}")
    ui.say(entry.summary)
    if entry.text:
        ui.say()
        ui.say(entry.text)
    if entry.parameters:
        ui.heading(ui.count(len(entry.parameters), "parameter"))
        ui.table(
            ("name", "accepts", "default", "meaning"),
            ((p.name, p.accepts, p.default_text("-", "{}"), p.meaning) for p in entry.parameters),
        )
    ui.heading("In a plan")
    for line in entry.example.splitlines():
        ui.console().print(f"  {line}", style="cyan", soft_wrap=True)
    ui.heading("References")
    ui.say(entry.references or entry.reference)


def _catalogue() -> list[Entry]:
    """Every method, model and measure that is installed."""
    from shoal.masking import discover_maskers
    from shoal.models import discover_models
    from shoal.workflow import discover_all_measures

    return [
        *(_method(cls) for cls in discover_maskers().values()),
        *(_model(cls) for cls in discover_models().values()),
        *map(_measure, discover_all_measures().values()),
    ]


def _method(cls: type[Masker]) -> Entry:
    from shoal.workflow import Plan

    doc = Docstring(cls)
    made = _example_call(cls, doc)
    example = f'[[steps]]\nmethod = "{cls.method}"\n' if made is None else Plan([made]).to_toml()
    summary = f"{cls.summary[0].upper()}{cls.summary[1:]}."
    text = "\n\n".join(part for part in (doc.summary, doc.text) if part)
    return doc.entry("method", cls.method, (summary, text), cls.reference, example)


def _model(cls: type[PrivacyModel]) -> Entry:
    from shoal.workflow import Plan

    doc = Docstring(cls)
    made = _example_call(cls, doc)
    example = "" if made is None else Plan(require=[made]).to_toml()
    return doc.entry("model", cls.model, (doc.summary, doc.text), cls.reference, example)


def _measure(info: MeasureInfo) -> Entry:
    from shoal.workflow import Limit, Plan

    doc = Docstring(info.function)
    low, high = info.limits
    lower = info.direction == "lower"
    # an unbounded measure has no middle: any number shows how to write a limit
    finite = math.isfinite(low) and math.isfinite(high)
    bound = low + (0.2 if lower else 0.8) * (high - low) if finite else 2.0
    limit = Limit(info.name, at_most=bound) if lower else Limit(info.name, at_least=bound)
    if math.isfinite(high):
        ends = f"It lies between {low:g} and {high:g}"
    else:
        ends = f"It is at least {low:g}" if math.isfinite(low) else "It can be any number"
    facts = f"{ends}; {info.direction} is better."
    facts += " It needs the original to compare with." if info.needs_original else ""
    text = "\n\n".join(part for part in (doc.text, facts) if part)
    example = Plan(require=[limit]).to_toml()
    return doc.entry(info.about, info.name, (doc.summary, text), doc.references, example)


class Docstring:
    """The parts of a docstring that the command line shows."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        doc = inspect.getdoc(thing) or ""
        head, *parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", doc, flags=re.MULTILINE)
        sections = {
            title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)
        }
        summary, _, text = head.strip().partition("\n\n")
        self.summary, self.text = _flowing(summary), _flowing(text)
        self.references = _flowing(sections.get("References", ""))
        self.examples = sections.get("Examples", "")
        #: Type and meaning of each parameter.
        self.parameters: dict[str, tuple[str, str]] = {}
        for block in re.split(r"\n(?=\S)", sections.get("Parameters", "")):
            head, _, text = block.partition("\n")
            names, _, kind = head.partition(" : ")
            for name in names.split(", "):
                self.parameters[name.strip()] = (kind.strip(), _flowing(inspect.cleandoc(text)))

    @property
    def options(self) -> tuple[Option, ...]:
        """The parameters that a plan can hold."""
        from shoal.parameters import parameters_of

        options = []
        for each in parameters_of(self.thing):
            if each.in_plan:
                written, meaning = self.parameters.get(each.name, ("", ""))
                accepts = each.constraint.describe() or _type_in_words(written)
                options.append(Option(each.name, accepts, each.required, each.default, meaning))
        return tuple(options)

    def entry(
        self, kind: str, name: str, words: tuple[str, str], reference: str, example: str
    ) -> Entry:
        return Entry(
            kind,
            name,
            self.thing.__name__,
            *words,
            parameters=self.options,
            reference=reference,
            references=self.references,
            example=example.strip(),
        )


def _type_in_words(kind: str) -> str:
    """A numpydoc type, in the words used for the parameters of methods."""
    kind = kind.removesuffix(", optional")
    if kind.startswith("{"):
        return "one of " + kind.strip("{}").replace('"', "'")
    return {"float": "a number", "int": "an integer", "str": "a text"}.get(kind, kind)


def _example_call(cls: type, doc: Docstring) -> Any:
    """The object that the docstring's example makes; None if it has no example."""
    import shoal

    lines = doc.examples.splitlines()
    source = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == cls.__name__
    ]
    if not calls:
        return None
    first = min(calls, key=lambda call: (call.lineno, call.col_offset))
    # evaluates only text of this package: literals and public names of shoal
    known = {name: getattr(shoal, name) for name in shoal.__all__}
    return eval(ast.unparse(first), {**known, cls.__name__: cls})


def _flowing(text: str) -> str:
    """One line per paragraph, without markup."""
    plain = _ROLE.sub(r"\1", text).replace("``", "").replace("*", "")
    plain = re.sub(r"<(https?://[^<>\s]+)>", r"(\1)", plain)
    return "\n\n".join(" ".join(part.split()) for part in plain.split("\n\n"))
