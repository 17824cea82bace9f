"""``shoal methods``: every method, model and measure, its parameters and its reference."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from shoal.app.cli._sources import AsJson, argument, with_examples
from shoal.app.cli.output._catalogue import Entry, catalogue
from shoal.app.cli.output._show import (
    command_line,
    console,
    count,
    heading,
    print_json,
    say,
    show,
    show_table,
)
from shoal.errors import InputError, did_you_mean

_TITLES = {
    "method": "Methods: under [[steps]] of a plan",
    "model": "Privacy models: under [require] of a plan",
    "risk": "Measures of risk: max_<name> or min_<name> under [require]",
    "utility": "Measures of utility: max_<name> or min_<name> under [require]",
}


@with_examples("""
shoal methods
shoal methods suppress
shoal methods k_anonymity
shoal methods --json
""")
def methods(
    name: Annotated[str | None, argument("NAME", "A method, model or measure to explain.")] = None,
    as_json: AsJson = False,
) -> None:
    """List every method, privacy model and measure; with a NAME, explain it with an example."""
    entries = catalogue()
    if name is not None:
        entry = _find(name, entries)
        if as_json:
            print_json(asdict(entry))
        else:
            _explain(entry)
    elif as_json:
        print_json(_grouped(entries))
    else:
        _list(entries)


def _grouped(entries: list[Entry]) -> dict[str, Any]:
    def of(*kinds: str) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in entries if entry.kind in kinds]

    return {"methods": of("method"), "models": of("model"), "measures": of("risk", "utility")}


def _find(name: str, entries: list[Entry]) -> Entry:
    wanted = name.strip()
    for entry in entries:
        if wanted in (entry.name, entry.python, f"max_{entry.name}", f"min_{entry.name}"):
            return entry
    known = [entry.name for entry in entries]
    raise InputError(
        f"There is no method, model or measure '{name}'. {did_you_mean(wanted, known)}"
    )


def _list(entries: list[Entry]) -> None:
    for kind, title in _TITLES.items():
        chosen = [entry for entry in entries if entry.kind == kind]
        if not chosen:
            continue
        heading(title)
        for entry in chosen:
            _show_entry(entry)
    heading("Next: explain one, with an example for a plan")
    command_line("shoal methods suppress")


def _show_entry(entry: Entry) -> None:
    from rich.padding import Padding
    from rich.text import Text

    show(Padding(Text(entry.name, "cyan"), (0, 0, 0, 2)))
    show(Padding(entry.summary, (0, 0, 0, 4)))
    lines = [f"{p.name}: {p.accepts}; {p.stands_for}" for p in entry.parameters]
    lines.append(f"Reference: {entry.reference}")
    for line in lines:
        show(Padding(Text(line, "dim"), (0, 0, 0, 6)))


def _explain(entry: Entry) -> None:
    heading(f"{entry.name} ({entry.python}): {entry.kind_in_words}")
    say(entry.summary)
    if entry.text:
        say()
        say(entry.text)
    if entry.parameters:
        heading(count(len(entry.parameters), "parameter"))
        show_table(
            ("name", "accepts", "default", "meaning"),
            ((p.name, p.accepts, p.default_text, p.meaning) for p in entry.parameters),
        )
    heading("In a plan")
    for line in entry.example.splitlines():
        console().print(f"  {line}", style="cyan", soft_wrap=True)
    heading("References")
    say(entry.references or entry.reference)
