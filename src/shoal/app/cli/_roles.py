"""``shoal roles``: which columns identify people, with the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.app.cli._options import AsJson, Data, Reading, command, shown_source
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.table import RoleSuggestion
    from shoal.table.suggestion._role_suggestion import ColumnFacts

_PER_SIZE = 3
_MOST_SHOWN = 50


@command("""
shoal roles people.csv
shoal roles people.txt --input-format csv --delimiter ';' --encoding cp1252
shoal roles duckdb:///people.db --query 'SELECT * FROM people'
shoal roles people.parquet --json
""")
def roles(data: Data, reading: Reading, as_json: AsJson = False) -> None:
    """Suggest which columns are identifiers, quasi-identifiers or sensitive, and explain why.

    Distinction is the number of different values (or combinations of values) divided by the number
    of records. Separation is the share of record pairs that differ. The roles are only a
    suggestion: someone who knows the data has to decide what an intruder may know.
    """
    from shoal import suggest_roles

    with Working("Reading the data") as working:
        loaded, missing, undo = reading.read_first(data, "shoal roles")
        working("Comparing columns", 0.5)
        suggestion = suggest_roles(loaded)
    if as_json:
        ui.print_json(suggestion.to_dict())
        return
    _show(suggestion)
    if missing:
        ui.say(missing, style="yellow")
        ui.command_line(undo)
    ui.heading("Next: write a first plan and edit its roles")
    ui.command_line("shoal init", *shown_source(data, reading))


def _show(suggestion: RoleSuggestion) -> None:
    ui.heading(
        f"Suggested roles ({ui.count(suggestion.rows, 'record')}, "
        f"{ui.count(len(suggestion.columns), 'column')})"
    )
    columns = suggestion.columns
    shown = [facts for facts in columns if facts.role] if len(columns) > _MOST_SHOWN else columns
    ui.table(
        ("column", "role", "because"),
        (
            (facts.name, (facts.role or "-").replace("_", "-"), facts.reason or None)
            for facts in shown
        ),
        whole=(0, 1),
    )
    if len(shown) < len(columns):
        _say_without_role(columns)
    ui.heading("How well each column tells records apart")
    ui.table(
        ("column", "kind", "values", "missing", "distinction", "separation"),
        (
            (
                facts.name,
                facts.kind,
                f"{facts.distinct:,}",
                ui.percent(facts.missing),
                ui.percent(facts.distinction),
                ui.percent(facts.separation),
            )
            for facts in shown
        ),
        numeric=(2, 3, 4, 5),
    )
    _show_sets(suggestion)
    if suggestion.notes:
        ui.say()
    for remark in suggestion.notes:
        ui.say(f"Note: {remark}")


def _say_without_role(columns: Sequence[ColumnFacts]) -> None:
    """Count the columns of a wide table that have no role, by reason, to avoid a line for each."""
    reasons = Counter(facts.reason or "-" for facts in columns if not facts.role)
    ui.say()
    ui.say(f"No role is suggested for the other {sum(reasons.values()):,} (--json lists them):")
    for reason, amount in reasons.most_common():
        ui.say(f"  {ui.count(amount, 'column')}: {reason}")


def _show_sets(suggestion: RoleSuggestion) -> None:
    shown: dict[int, int] = {}
    rows = []
    for found in suggestion.sets:
        size = len(found.columns)
        shown[size] = shown.get(size, 0) + 1
        if size > 1 and shown[size] <= _PER_SIZE:
            shares = (ui.percent(found.distinction), ui.percent(found.separation))
            rows.append((found.columns, *shares))
    if rows:
        ui.heading("Sets of columns that tell records apart best")
        ui.table(("columns", "distinction", "separation"), rows, numeric=(1, 2))
