"""``shoal warm``: compile the kernels beforehand, as when an image is built."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from shoal.app.cli._options import AsJson, command
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from shoal.kernels.compile import Compiling
    from shoal.table import Table

_PARTITIONS = ("mdav-random", "v-mdav", "mu-approx", "mondrian")
_ON_A_LINE = ("individual-ranking", "optimal")
_STRATEGIES = ("random", "stratified", "balanced", "bernoulli")


@command("""
shoal warm
shoal warm generalize swap
""")
def warm(
    methods: list[str] | None = None,
    as_json: AsJson = False,
) -> None:
    """Compile the code for large tables now, so that no later run has to wait for it.

    This is meant for container images and continuous integration. Every method and every measure
    runs once on a small built-in table, with the kernels that are meant for large ones. The
    compiled kernels are kept next to the code, or in the folder that NUMBA_CACHE_DIR names.

    Arguments
    ---------
    methods METHOD: Compile only what these methods need (default: all methods and measures).
    """
    from shoal.kernels.compile import Compiling, always_compiled
    from shoal.masking import discover_maskers

    known = [*discover_maskers()]
    for name in methods or ():
        if name not in known:
            raise InputError(f"There is no method '{name}'. {did_you_mean(name, known)}")
    compiled: list[dict[str, Any]] = []
    with Compiling() as total, Working("Compiling") as working, always_compiled():
        people = _people()
        for name in [n for n in known if n in methods] if methods else ["measures", *known]:
            working(f"Compiling: {name}", (len(compiled) + 0.5) / (len(known) + 1))
            with Compiling() as found, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if name == "measures":
                    _measure(people)
                else:
                    _mask(people, name)
            compiled.append({"for": name, **_facts(found)})
            if not as_json:
                done = f"{ui.count(found.kernels, 'kernel')} in {found.seconds:.1f} s"
                done = done if found.kernels else "nothing to compile"
                ui.console().print(f"  {name:<18}{done}")
    if as_json:
        ui.print_json({**_facts(total), "compiled": compiled})
    elif total.kernels:
        ui.say(
            f"Compiled {ui.count(total.kernels, 'kernel')} in {total.seconds:.0f} s and kept them."
        )
    else:
        ui.say("Nothing to do: everything is already compiled.")


def _facts(found: Compiling) -> dict[str, Any]:
    return {"kernels": found.kernels, "seconds": round(found.seconds, 1)}


def _people() -> Table:
    from shoal import Roles, read
    from shoal.app.demo import PEOPLE

    roles = Roles(
        quasi_identifiers=["age", "sex", "zip", "occupation"],
        sensitive=["income", "diagnosis"],
        target="marital",  # for samples that balance it
    )
    return read(PEOPLE, roles=roles).drop(["name", "email"])


def _measure(people: Table) -> None:
    """Take all measures that need no more than a masked table and its original."""
    from shoal import assess
    from shoal.masking import Round

    masked = Round(base=500, columns=["income"]).fit_transform(people)
    assess(masked, original=people, measures="all")


def _group() -> None:
    """Form classes, also more than a small table has."""
    import numpy as np

    from shoal.kernels.grouping import count_sizes, group

    for keys in (np.arange(100_000), np.arange(100_000) << 32):
        group(keys.astype(np.uint64))
        count_sizes(keys.astype(np.uint64))


def _mask(people: Table, name: str) -> None:
    """Mask a table in every way that needs its own kernels; the last one as a release."""
    _group()
    from shoal import Plan, protect
    from shoal.masking import Generalize, discover_maskers

    if name == "generalize":  # the levels as the studio shows them
        lowest = dict.fromkeys(people.roles.quasi_identifiers, 0)
        Generalize(k=5).space(people).along("age", lowest)
    if name == "redraw":  # from classes that already exist
        people = Generalize(k=5).fit_transform(people)
    steps = [discover_maskers()[name](**parameters) for parameters in _ways(name)]
    for step in steps[:-1]:
        step.fit_transform(people)
    protect(people, Plan(steps[-1:], require=[]))


def _ways(method: str) -> list[dict[str, Any]]:
    """The sets of parameters that together use all kernels of a method."""
    from shoal.models import KAnonymity, LDiversity

    diverse = {"models": LDiversity(2, column="diagnosis")}
    points = {"k": 5, "columns": ["age", "hours_per_week", "income", "height_cm"]}
    mixed = {"k": 5, "columns": ["age", "sex", "occupation"], "dissimilarity": "gower"}
    refined = {"refine": True, "seconds": 0.01}
    searches = [{"k": 5, "algorithm": name} for name in ("mondrian", "local", "full-domain")]
    partitions: list[dict[str, Any]] = [{}, diverse, refined]
    partitions += [{"partition": name} for name in _PARTITIONS]
    ways: dict[str, list[dict[str, Any]]] = {
        "add_noise": [{"epsilon": 16.0}],
        "generalize": [
            *searches,
            *({**way, "models": LDiversity(2, column="diagnosis")} for way in searches),
        ],
        "microaggregate": [
            *({**points, **way} for way in partitions),
            *({**mixed, **way} for way in partitions),
            {**mixed, "dissimilarity": "ahmad-dey"},
            {**mixed, **diverse, **refined},
            *({"k": 5, "columns": ["income"], "partition": name} for name in _ON_A_LINE),
        ],
        "pram": [{"keep": 0.8, "columns": ["sex"]}],
        "rank_swap": [{"percent": 5.0, "columns": ["income"]}],
        "recode": [{"magnitude": 0.5, "columns": ["age"]}],
        "redraw": [{"models": KAnonymity(2)}],
        "round": [{"base": 500, "columns": ["income"]}],
        "sample": [{"fraction": 0.5, "strategy": name} for name in _STRATEGIES],
        "suppress": [
            {"min_class_size": 2},
            {"min_count": 5, "columns": ["occupation"]},
            {"k": 2},
            {"k": 2, "missing": "wildcard"},
        ],
        "swap": [mixed, {"k": 5, "blocks": "mutual-information"}, {"k": 5, "informed": True}],
        "top_bottom_code": [{"fence": 1.5, "columns": ["income"]}],
    }
    return ways.get(method, [])
