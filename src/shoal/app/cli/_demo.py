"""``shoal demo``: the whole job on a small shipped table, as an intruder and a reader see it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.app.cli._options import AsJson, Force, command, write_whole
from shoal.app.cli._protect import release_facts
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.table import Table
    from shoal.workflow import Plan, Release, Verification

_KS: Final = (3, 10, 20, 40)
_ROWS: Final = 5
_WORK: Final = {
    "care": "a nurse",
    "craft": "a carpenter",
    "office": "an office worker",
    "sales": "a shop assistant",
    "teaching": "a teacher",
    "technical": "an engineer",
    "retired": "a pensioner",
    "unemployed": "without work",
}
_SHOWN: Final = ("birth_date", "sex", "zip", "occupation", "diagnosis", "cost_eur")


@command("""
shoal demo
shoal demo --out my-first-release
shoal demo --force
""")
def demo(
    out: Path = Path("demo-release"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run the whole job on a small built-in table and write a release with its report.

    The patients in the table are invented. The demo masks the table with a plan, verifies the
    result, writes the release, and shows what an intruder finds before and after.

    Options
    -------
    out DIR: The folder to create for the release.
    """
    from shoal import read
    from shoal.app.demo import PATIENTS, PLAN
    from shoal.workflow import Plan, protect, verify
    from shoal.workflow.release._release import check_targets

    out = Path(os.path.abspath(out))
    check_targets(out, None, force=force)
    plan = Plan.load(PLAN)
    with Working("Reading the data") as working:
        people = read(PATIENTS, roles=plan.roles)
        release = protect(people, plan, progress=working)
        release.save(out, format="csv", force=force, source=PATIENTS, progress=working)
        found = verify(out, original=people)
        picture = _picture(people, plan, release, out.parent / "demo-plans.html", working)
    project = _project(out.parent)
    if as_json:
        facts = {"verified": found.holds, "project": project, "picture": picture}
        ui.print_json({**release_facts(release, out), **facts})
        return
    _show_intruder(people, release)
    _show_rows(people, release)
    _show_verdict(release, found)
    _show_places(out, picture, project)


def _victim(people: Table, release: Release) -> tuple[int, Any]:
    """Someone unique before and in a typical crowd after: the row, and the crowd."""
    import numpy as np

    after = release.masked.classes
    crowds = after.record_sizes[np.argsort(release.masked.row_key)]
    alone = np.flatnonzero(people.classes.record_sizes == 1)
    usual = np.argsort(np.abs(crowds[alone] - np.median(crowds)), kind="stable")
    row = int(alone[usual[0]])
    place = int(np.flatnonzero(release.masked.row_key == people.row_key[row])[0])
    return row, after.labels == after.labels[place]


def _show_intruder(people: Table, release: Release) -> None:
    row, crowd = _victim(people, release)
    ((born, sex, postcode, occupation, diagnosis),) = people.texts(
        row, 1, ["birth_date", "sex", "zip", "occupation", "diagnosis"]
    )
    match = release.masked.keep(crowd)
    who = {"F": "woman", "M": "man"}[sex or ""]
    ui.heading("What an intruder finds")
    ui.say(f"You know a {who}, {_WORK[occupation or '']}, born {born}, from {postcode}.")
    rows = ui.count(len(match), "row")
    ui.say(f"  before   1 row fits: {diagnosis}, for certain")
    ui.say(f"  after    {rows} fit, with {ui.count(match.distinct('diagnosis'), 'diagnose')}")


def _show_rows(people: Table, release: Release) -> None:
    """Rows before and after, the same people."""
    import numpy as np

    places = np.argsort(release.masked.row_key)[:_ROWS]
    before = people.texts(0, _ROWS, _SHOWN)
    after = [release.masked.texts(int(place), 1, _SHOWN)[0] for place in places]
    for title, rows in (("Five patients before", before), ("The same five after", after)):
        ui.heading(title)
        ui.table(_SHOWN, rows, whole=())


def _show_verdict(release: Release, found: Verification) -> None:
    after = release.after
    lost = release.rows_before - len(release.masked)
    checks = ui.count(sum(check.status == "passed" for check in found.checks), "check")
    ui.heading("What the release promises, checked by separate code")
    for line in (
        f"Each patient looks like at least {after.k - 1} others. Each such group has at least 3 "
        "diagnoses.",
        "An intruder who tries to find everyone finds "
        f"{ui.percent(after['marketer_risk'].value)}"
        " of them.",
        f"{'No patient was' if not lost else ui.count(lost, 'patient') + ' were'} removed. "
        f"{checks} passed.",
    ):
        ui.say(line)


def _show_places(out: Path, picture: Path, project: Path) -> None:
    ui.heading("Files")
    for what, place in (
        ("to publish", out / "public"),
        ("its report", out / "public" / "report.html"),
        ("five plans", picture),
        ("to keep", out / "private"),
    ):
        ui.console().print(f"  {what:<14}{ui.printable(place)}", soft_wrap=True)
    ui.heading("Next: open the studio, or try your own table")
    ui.command_line("shoal studio", shlex.quote(os.path.relpath(project)))
    ui.command_line("shoal init YOUR-DATA")


def _picture(people: Table, plan: Plan, release: Release, path: Path, working: Working) -> Path:
    """A page with plans by what they lose and whom they leave to be found; that of the demo ringed.

    There are no more of them than a first run tries without compiling anything.
    """
    from shoal.workflow import CostOfK, k_curve
    from shoal.workflow.report import plans_page

    risk = release.after["marketer_risk"].value
    loss = release.after["normalized_certainty_penalty"].value
    chosen = CostOfK(release.after.k, risk, loss, lost=0.0)
    others = k_curve(people, plan, ks=_KS, progress=working)
    write_whole(path, plans_page(sorted((*others, chosen), key=lambda one: one.k), chosen))
    return path


def _project(place: Path) -> Path:
    """A project of the studio with the demo's table, and all of the way to go; or as it is."""
    from shoal.app.demo import PATIENTS

    folder = place / "demo-studio"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        shutil.copyfile(PATIENTS, folder / PATIENTS.name)
        source = f'[source]\npath = "{PATIENTS.name}"\n'
        (folder / "studio.toml").write_text(source, encoding="utf-8")
    return folder
