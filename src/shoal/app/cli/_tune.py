"""``shoal tune``: the plan with the most utility within a risk limit."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.app.cli._options import (
    AsJson,
    Data,
    Declared,
    Force,
    Reading,
    check_new,
    command,
    shown_source,
)
from shoal.app.cli.output import ui
from shoal.app.cli.output._errors import resumable
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.measurement import Measurement
    from shoal.study.tuning import Tried, Tuning

_MOST_SHOWN = 12


@command("""
shoal tune people.csv --plan plan.toml --target income --max-risk 0.05 --out tuned/
shoal protect people.csv --plan tuned/plan.toml --out release
""")
def tune(
    data: Data,
    reading: Reading,
    plan: Path,
    out: Path,
    max_risk: float | None = None,
    min_utility: float | None = None,
    target: str | None = None,
    risk: str = "distance_linkage",
    utility: str = "predictive_performance",
    learner: str | None = None,
    trials: Annotated[int, typer.Option(min=1)] = 100,
    search_rows: Annotated[int, typer.Option(min=20)] = 5_000,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Search for the plan with the most utility that stays within a risk limit.

    A quarter of the people is held out. The search never sees them, and the reported utility is
    measured on them. The plan's risk is measured again on everyone else, with fresh seeds. An
    interrupted search resumes in its folder.

    Options
    -------
    plan FILE: A plan with the roles. Its steps are tried too, and its requirements are kept.
    out DIR: The folder for plan.toml and the front. An interrupted search resumes there.
    max_risk RISK: The largest risk to accept.
    min_utility VALUE: The lowest utility to accept. Without --max-risk, find the lowest risk that
        reaches it.
    target COLUMN: The column that models predict (default: the plan's target).
    risk MEASURE: The attack that measures the risk.
    utility MEASURE: The utility to maximize. nonuniform_entropy measures the information lost and
        needs no target.
    learner NAME: The learner (default: that of the measure).
    trials N: How many plans to try.
    search_rows N: Try plans on at most this many people, and confirm the best on all of them.
    """
    from shoal.study.tuning import tune
    from shoal.workflow import Plan
    from shoal.workflow.release._folder import complete_files

    if max_risk is None and min_utility is None:
        raise InputError("Set a limit: --max-risk, --min-utility, or both.")
    _check_folder(out)
    if out.exists():
        check_new(out / "plan.toml", force=force)
    with resumable(), Working("Reading the data") as working:
        declared = Declared(plan, target=target)
        loaded = reading.read(data, known=declared.reading)
        roles = declared.roles(loaded.columns)
        found = tune(
            loaded.with_roles(roles),
            max_risk=max_risk,
            risk=risk,
            utility=utility,
            utility_options={} if learner is None else {"learner": learner},
            min_utility=min_utility,
            plan=Plan.load(plan),
            trials=trials,
            search_rows=search_rows,
            folder=out,
            progress=working,
        )
        working("Drawing the front", 0.0)
        with complete_files(out) as aside:
            found.save_front(aside)
            facts = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
            (aside / "tuning.json").write_text(facts, encoding="utf-8")
            (aside / "plan.toml").write_text(found.plan.to_toml(), encoding="utf-8", newline="")
    if as_json:
        ui.print_json({"out": out, **found.to_dict()})
    else:
        _show(found)
        ui.note(f"The front is at {ui.printable(out / 'front.svg')}. Next:")
        words = ["--plan", ui.printable(out / "plan.toml"), "--out", "release"]
        ui.command_line("shoal", "protect", *shown_source(data, reading), *words)


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be made, before the data is read."""
    if out.exists() and not out.is_dir():
        raise InputError(f"'{out}' is a file; choose a folder for the search.")
    if not out.exists() and not os.access(out.parent, os.W_OK):
        raise InputError(f"The folder '{out}' cannot be created; create it first.")


def _show(found: Tuning) -> None:
    ui.heading("The front: no other plan tried has both less risk and more utility")
    front = sorted((one for one in found.tried if one.on_front), key=lambda one: one.risk)
    _show_plans(front[:_MOST_SHOWN], found)
    if found.finals:
        ui.heading(f"The best plans within the limits, on all {found.of:,} people of the search")
        _show_plans(found.finals, found)
    ui.say()
    ui.say(found.reason)
    baseline = found.utility.baseline
    against = "" if baseline is None else f", and {ui.number(baseline)} without masking"
    whom = "whom the search never saw" if found.is_on_unseen else "who were masked"
    ui.say(
        f"On the people {whom}, its utility ({found.utility_name}) is "
        f"{_with_interval(found.utility)}{against}. On everyone else, its risk is "
        f"{_with_interval(found.risk)}.",
        style="bold",
    )
    if found.not_told_apart:
        others = ui.count(found.not_told_apart, "other plan")
        ui.say(
            f"In the search, {others} within the limit had a utility inside that interval. There "
            "are too few people to tell these plans apart."
        )
    for reason, times in found.failures.items():
        ui.note(f"{times:,} plans failed: {reason}")


def _with_interval(found: Measurement) -> str:
    if found.interval is None:
        return ui.number(found.value)
    low, high = map(ui.number, found.interval)
    return f"{ui.number(found.value)} (95 % {low} to {high})"


def _show_plans(plans: Sequence[Tried], found: Tuning) -> None:
    chosen = found.chosen.steps
    rows = [
        (one.label, float(one.risk), float(one.utility), "chosen" if one.steps == chosen else "")
        for one in plans
    ]
    ui.table(("plan", "risk", "utility", ""), rows, numeric=(1, 2))
