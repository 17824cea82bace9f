"""Compare several plans for one table: how each changes risk, and what it costs.

Prints one line per plan: k, the marketer risk, the share of records in classes below 5, the total
variation distance of the columns, and the share of suppressed cells. Lower is better, except for k.

    python examples/compare_plans.py
"""

from __future__ import annotations

import shoal as sh
from shoal.app.demo import PEOPLE

ROLES = sh.Roles(
    identifiers=["name", "email", "zip"],
    quasi_identifiers=["age", "sex", "marital", "occupation"],
    sensitive=["income", "diagnosis"],
    insensitive=["height_cm", "hours_per_week"],
)
PLANS: dict[str, list[sh.Suppress | sh.Round | sh.Recode]] = {
    "ages to 5": [sh.Round(base=5)],
    "ages to 10": [sh.Round(base=10)],
    "half a deviation": [sh.Recode(magnitude=0.5)],
    "1.5 deviations": [sh.Recode(magnitude=1.5)],
    "ages to 10, then k = 3": [sh.Round(base=10), sh.Suppress(min_class_size=3)],
    "ages to 10, then k = 5": [sh.Round(base=10), sh.Suppress(min_class_size=5)],
    "only k = 5": [sh.Suppress(min_class_size=5)],
}
SHOWN = ("marketer_risk", "records_at_risk", "total_variation", "suppressed_cells")


def main() -> None:
    table = sh.read(PEOPLE, roles=ROLES)
    print(f"{'plan':<24}{'k':>4}" + "".join(f"{name:>18}" for name in SHOWN))
    for name, steps in PLANS.items():
        after = sh.protect(table, sh.Plan(steps)).after
        values = "".join(f"{after[measure].value:>18.3f}" for measure in SHOWN)
        print(f"{name:<24}{after.k:>4}{values}")


if __name__ == "__main__":
    main()
