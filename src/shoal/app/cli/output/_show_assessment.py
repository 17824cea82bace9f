"""An assessment on the terminal: crowds, the two sides, and what was not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shoal.app.cli.output import ui

if TYPE_CHECKING:
    from shoal.measurement import Measurement
    from shoal.workflow import Assessment

#: How to read crowd sizes after a swap.
NOT_BY_CROWDS = (
    "Crowds do not protect this table. Values were exchanged between records, so a match may be "
    "another person's. Crowd sizes are counted as if nothing had been exchanged."
)
_MOST_NAMED = 6
_SIDES = {
    "risk": "Risk: what an intruder can learn",
    "utility": "Utility: what an analyst can still do",
}


def show_assessment(found: Assessment) -> None:
    """The facts as tables."""
    ui.heading(f"{ui.count(found.rows, 'record')}, {ui.count(found.columns, 'column')}")
    ui.roles(found.roles)
    _show_crowds(found)
    _show_measures(found)
    _show_together(found)
    _show_k_curve(found)
    _show_remarks(found)


def _show_crowds(found: Assessment) -> None:
    classes = found.classes
    ui.heading("Crowds: records with equal quasi-identifiers")
    called, everybody = classes.called, classes.persons or found.rows
    ui.say(
        f"k = {classes.k:,}: the smallest class has {ui.count(classes.k, called)}. In "
        f"{ui.count(classes.count, 'class')} of {classes.average:.1f} {called}s on average, "
        f"{ui.count(classes.uniques, called)} ({ui.percent(classes.uniques / max(everybody, 1))}) "
        f"{'is' if classes.uniques == 1 else 'are'} alone."
    )
    ui.table(
        ("class size", "records", "share"),
        (
            (size, f"{records:,}", ui.percent(records / max(found.rows, 1)))
            for size, records in classes.records_by_size.items()
        ),
        numeric=(0, 1, 2),
        whole=(),
    )
    if found.swapping is not None:
        ui.say(NOT_BY_CROWDS)


def _show_measures(found: Assessment) -> None:
    """One table for each side, with the groups of measures under their titles."""
    from shoal.workflow import discover_all_measures, grouped_measures

    infos = discover_all_measures()
    groups = grouped_measures(found.measurements, swapped=found.swapping is not None)
    for side, title in _SIDES.items():
        rows: list[Sequence[object]] = []
        for group in (group for group in groups if group.side == side):
            rows += [("",) * 6] if rows else []
            rows.append((ui.styled(f"{group.title}:", "italic"), "", "", "", "", ""))
            taken = [(infos[name].title, found.measurements[name]) for name in group.names]
            rows += [_cells(title, one) for title, one in taken]
        if not rows:
            continue
        head = ("measure", "value", "95 % interval", "baseline", "bound", "better")
        used = [at for at in range(len(head)) if any(row[at] not in ("-", "") for row in rows)]
        ui.heading(title)
        ui.table(
            [head[at] for at in used],
            [[row[at] for at in used] for row in rows],
            numeric=range(1, len(used) - 1),
        )


def _show_together(found: Assessment) -> None:
    from shoal.workflow import ATTACKS

    if not found.together:
        return
    ui.heading("Together with earlier releases")
    rows = [_cells(ATTACKS[attack].title, one) for attack, one in found.together.items()]
    head = ("measure", "value", "single release", "better")
    ui.table(head, [(*row[:2], row[3], row[5]) for row in rows], numeric=(1, 2))


def _show_k_curve(found: Assessment) -> None:
    if found.k_curve:
        ui.heading("What each k costs on this table")
        head = ("k", "found by trying all", "detail lost", "records lost")
        shares = ((p.k, *map(ui.percent, (p.risk, p.loss, p.lost))) for p in found.k_curve)
        ui.table(head, shares, numeric=(0, 1, 2, 3), whole=())


def _cells(title: str, one: Measurement) -> Sequence[object]:
    from shoal.workflow import bound_of

    bound = bound_of(one)
    return (
        title,
        ui.number(one.value),
        "-" if one.interval is None else " to ".join(f"{end:.2g}" for end in one.interval),
        "-" if one.baseline is None else _short(one.baseline),
        "-" if bound is None else _short(bound),
        one.direction,
    )


def _short(value: float) -> str:
    """A number to compare with: whole, or with as many digits as fit."""
    return ui.number(value) if float(value).is_integer() or abs(value) < 1e-4 else f"{value:.3g}"


def _show_remarks(found: Assessment) -> None:
    """How to read the numbers, and what was not measured."""
    from shoal.workflow import discover_all_measures

    infos = discover_all_measures()
    remarks = [f"{remark.rstrip('.')}." for remark in found.notes]
    said: dict[str, list[str]] = {}
    for name in found.measurements:
        for warning in found.warnings_of(name):
            said.setdefault(warning, []).append(infos[name].title)
    for one in found.together.values():
        for warning in one.warnings:
            said[warning] = ["earlier releases"]
    remarks += [f"{'; '.join(titles)}: {warning}" for warning, titles in said.items()]
    if remarks:
        ui.say()
    for remark in remarks:
        ui.say(f"Note: {ui.printable(remark)}")
    if found.failed:
        ui.heading("Could not be measured")
        _show_reasons(found.failed)
    if found.left_out:
        ui.heading("Left out")
        _show_reasons(found.left_out)
        ui.say("Use --measure NAME for one of these, or --all for all that these tables allow.")


def _show_reasons(reasons: Mapping[str, str]) -> None:
    from shoal.workflow import by_reason

    for reason, names in by_reason(reasons).items():
        shown = names if len(names) <= _MOST_NAMED else names[: _MOST_NAMED // 2]
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        ui.say(f"{', '.join(shown)}{more}: {ui.printable(reason.rstrip('.'))}.")
