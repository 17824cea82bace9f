"""Plans for the invented people, one of each kind."""

from __future__ import annotations

from typing import Any

import shoal as sh
from shoal.masking import Masker

QUASI = ["alter", "Wohn ort", "member"]
ROLES = sh.Roles(quasi_identifiers=QUASI, sensitive=["ill"], insensitive=["born", "wage"])
LEVELS = {"alter": sh.Hierarchy.intervals([10, 30])}


def plan_of(*steps: Masker, require: list[Any] | None = None, **more: Any) -> sh.Plan:
    """A plan for the invented people."""
    roles = more.pop("roles", ROLES)
    return sh.Plan(list(steps), require=require or [], roles=roles, **more)


PLANS = {
    "full-domain": plan_of(
        sh.Generalize(
            "full-domain",
            k=5,
            models=sh.LDiversity(2),
            hierarchies=LEVELS,
            suppression_limit=0.02,
        ),
        sh.Round(base=100, columns=["wage"]),
        require=[sh.KAnonymity(5), sh.LDiversity(2), sh.TCloseness(0.9)],
    ),
    "kept as stars": plan_of(
        sh.Generalize(
            "full-domain", k=60, suppression_limit=0.3, suppressed="kept", hierarchies=LEVELS
        ),
    ),
    "weighted levels": plan_of(
        sh.Generalize("full-domain", k=5, weights={"Wohn ort": 9}, hierarchies=LEVELS),
    ),
    "mondrian": plan_of(sh.Generalize("mondrian", k=10), require=[sh.KAnonymity(10)]),
    "weighted boxes": plan_of(sh.Generalize("mondrian", k=10, weights={"alter": 0.1})),
    "small classes": plan_of(sh.Suppress(min_class_size=3), require=[sh.KAnonymity(3)]),
    "by values": plan_of(
        sh.Suppress(where="wage > 5000", columns=["wage"]),
        sh.TopBottomCode(fence=1.0, columns=["wage"]),
        sh.Recode(magnitude=0.5, columns=["alter"]),
        sh.Round(base=50, columns=["wage"]),
    ),
    "nearly unique columns": plan_of(
        sh.Suppress(max_distinct=0.01, columns=["alter"]), sh.Generalize("mondrian", k=4)
    ),
    "nothing left to generalize": plan_of(
        sh.Suppress(max_distinct=0.0001), sh.Generalize("mondrian", k=4)
    ),
}
