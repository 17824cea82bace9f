"""``shoal roles``: which columns identify people, with the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.app.cli._sources import AsJson, Data, Reading, reads_data, shown_source, with_examples
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show import (
    command_line,
    count,
    heading,
    listed,
    percent,
    print_json,
    say,
    show_table,
)

if TYPE_CHECKING:
    from shoal.table import RoleSuggestion
    from shoal.table.suggestion._role_suggestion import ColumnFacts

_PER_SIZE = 3
_MOST_SHOWN = 50


@with_examples("""
shoal roles people.csv
shoal roles people.txt --input-format csv --delimiter ';' --encoding cp1252
shoal roles duckdb:///people.db --query 'SELECT * FROM people'
shoal roles people.parquet --json
""")
@reads_data
def roles(data: Data, reading: Reading, as_json: AsJson = False) -> None:
    """Suggest which columns are identifiers, quasi-identifiers and sensitive, and say why.

    Distinction is the share of different values (or tuples of values) among the records,
    separation the share of pairs of records that differ. It is a suggestion: only someone who
    knows the data can say what an intruder may know.
    """
    from shoal import suggest_roles

    with Working("Reading the data") as working:
        loaded = reading.read(data)
        working("Comparing columns", 0.5)
        suggestion = suggest_roles(loaded)
    if as_json:
        print_json(suggestion.to_dict())
        return
    _show(suggestion)
    heading("Next: write a first plan, and edit the roles in it")
    command_line("shoal init", *shown_source(data, reading))


def _show(suggestion: RoleSuggestion) -> None:
    heading(
        f"Suggested roles ({count(suggestion.rows, 'record')}, "
        f"{count(len(suggestion.columns), 'column')})"
    )
    columns = suggestion.columns
    shown = [facts for facts in columns if facts.role] if len(columns) > _MOST_SHOWN else columns
    show_table(
        ("column", "role", "because"),
        (
            (facts.name, (facts.role or "-").replace("_", "-"), facts.reason or "-")
            for facts in shown
        ),
        whole=(0, 1),
    )
    if len(shown) < len(columns):
        _say_without_role(columns)
    heading("How well each column tells records apart")
    show_table(
        ("column", "kind", "values", "missing", "distinction", "separation"),
        (
            (
                facts.name,
                facts.kind,
                f"{facts.distinct:,}",
                percent(facts.missing),
                percent(facts.distinction),
                percent(facts.separation),
            )
            for facts in shown
        ),
        numeric=(2, 3, 4, 5),
    )
    _show_sets(suggestion)
    if suggestion.notes:
        say()
    for remark in suggestion.notes:
        say(f"Note: {remark}")


def _say_without_role(columns: Sequence[ColumnFacts]) -> None:
    """How many columns of a wide table have no role, and why; not one line for each."""
    reasons = Counter(facts.reason or "-" for facts in columns if not facts.role)
    say()
    say(f"No role is suggested for the other {sum(reasons.values()):,} (--json lists them):")
    for reason, amount in reasons.most_common():
        say(f"  {count(amount, 'column')}: {reason}")


def _show_sets(suggestion: RoleSuggestion) -> None:
    shown: dict[int, int] = {}
    rows = []
    for found in suggestion.sets:
        size = len(found.columns)
        shown[size] = shown.get(size, 0) + 1
        if size > 1 and shown[size] <= _PER_SIZE:
            rows.append(
                (listed(found.columns), percent(found.distinction), percent(found.separation))
            )
    if rows:
        heading("Sets of columns that tell records apart best")
        show_table(("columns", "distinction", "separation"), rows, numeric=(1, 2))
