"""``shoal demo``: the whole job on a small shipped table."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.app.cli._protect import check_place, release_facts, show_before_and_after
from shoal.app.cli._sources import AsJson, Force, option, with_examples
from shoal.app.cli.output._progress import Working
from shoal.app.cli.output._show import (
    command_line,
    console,
    count,
    heading,
    listed,
    percent,
    print_json,
    printable,
    say,
    show,
)

if TYPE_CHECKING:
    from shoal.table import Table
    from shoal.workflow import Assessment, Release, Verification


@with_examples("""
shoal demo
shoal demo --out my-first-release
shoal demo --force
""")
def demo(
    out: Annotated[Path, option("The folder of the release to make.", "DIR")] = Path(
        "demo-release"
    ),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Do the whole job on a small shipped table: it ends with a release and its report.

    The people in the table are invented. The demo reads them, declares who is who, measures how
    exposed they are, masks them by a plan, verifies the result and writes the release.
    """
    from shoal import read
    from shoal.app.demo import PEOPLE, PLAN
    from shoal.workflow import Plan, assess, protect, verify

    out = Path(os.path.abspath(out))
    check_place(out, force=force)
    plan = Plan.load(PLAN)
    if not as_json:
        heading("The whole job on a small table of invented people")
    with Working("Reading the data"):
        people = read(PEOPLE, roles=plan.roles)
    if not as_json:
        _tell_table(people, PEOPLE)
    with Working("Measuring") as working:
        exposure = assess(people, progress=working)
    if not as_json:
        _tell_exposure(exposure)
    with Working("Masking") as working:
        release = protect(people, plan, progress=working)
        release.save(out, format="csv", force=force, source=PEOPLE, progress=working)
        found = verify(out, original=people)
    if as_json:
        print_json({**release_facts(release, out), "verified": found.holds})
        return
    _tell_release(release, PLAN)
    _tell_checks(found)
    show_before_and_after(release.before, release.after)
    _conclude(release, out)


def _step(title: str, *lines: str) -> None:
    from rich.padding import Padding

    out = console()
    out.print()
    out.print(title, style="bold")
    for line in lines:
        show(Padding(line, (0, 0, 0, 3)))


def _tell_table(people: Table, path: Path) -> None:
    roles = people.roles
    _step(
        "1. Read the table",
        f"{path.name}: {count(len(people), 'record')}, {count(len(people.columns), 'column')}",
    )
    _step(
        "2. Declare who is who",
        f"identifiers (taken out):          {listed(roles.identifiers)}",
        f"quasi-identifiers (to be masked): {listed(roles.quasi_identifiers)}",
        f"sensitive (nobody should learn):  {listed(roles.sensitive)}",
    )


def _tell_exposure(exposure: Assessment) -> None:
    classes, rows = exposure.classes, exposure.rows
    _step(
        "3. Measure how exposed they are",
        f"k = {classes.k}: {classes.uniques:,} of {count(rows, 'record')} "
        f"({percent(classes.uniques / rows)}) are alone with their quasi-identifiers.",
    )


def _tell_release(release: Release, plan: Path) -> None:
    lines = []
    for step in release.steps:
        settings = ", ".join(
            f"{name} = {value}" for name, value in step.parameters.items() if name != "columns"
        )
        done = listed(step.touched) if step.touched else "no column"
        if step.removed_columns:
            done += " (taken out)"
        if step.removed:
            done = f"{count(step.removed, 'record')} taken out"
        lines.append(f"{step.method} ({settings}): {done}")
    _step(f"4. Mask by the plan {printable(plan.name)}", *lines)
    _step(
        "5. Check what the plan requires, by code that did not mask",
        *(
            f"{claim.key} = {claim.requirement.threshold:g}: measured {claim.measured:g}, "
            + ("it holds" if claim.holds else "it does not hold")
            for claim in release.claims
        ),
    )


def _tell_checks(found: Verification) -> None:
    passed = sum(check.status == "passed" for check in found.checks)
    _step(
        "6. Write the release, and verify it from its files",
        f"{passed} of {count(len(found.checks), 'check')} passed",
    )


def _conclude(release: Release, out: Path) -> None:
    before, after = release.before, release.after
    risks = [m["marketer_risk"].value for m in (before, after)]
    heading("What it says")
    say(
        f"Of {release.rows_before:,} records {len(release.masked):,} are released. The smallest "
        f"crowd grew from {before.k} to {after.k}. Whoever tries to find everybody in the table "
        f"would be right about {percent(risks[0])} of the records before, and "
        f"{percent(risks[1])} now. "
        + " ".join(
            f"The requirement {c.key} = {c.requirement.threshold:g} is met." for c in release.claims
        )
    )
    heading("Where it is")
    for what, place in (
        ("release", out),
        ("to give away", out / "public"),
        ("to keep", out / "private"),
        ("report", out / "public" / "report.html"),
    ):
        console().print(f"  {what:<14}{printable(place)}", soft_wrap=True)
    heading("Next: the same on your own table")
    command_line("shoal init YOUR-DATA")
    command_line("shoal verify", shlex.quote(str(out)))
