"""From a CSV file to a release that others can check.

Reads the demo's table, prints how exposed it is, protects it with a plan, writes the release
folder, and verifies it from its files. The argument is the release folder; the default is
``people-release`` in the current folder.

    python examples/steward_release.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import shoal as sh
from shoal.app.demo import PEOPLE

roles = sh.Roles(
    identifiers=["name", "email"],
    quasi_identifiers=["age", "sex", "marital", "zip", "occupation"],
    sensitive=["income", "diagnosis"],
    insensitive=["height_cm", "hours_per_week"],  # released unchanged, by decision
)
plan = sh.Plan(
    [
        sh.Suppress(max_distinct=0.7),  # removes zip: nearly every value is different
        sh.TopBottomCode(fence=1.5, columns=["income"]),
        sh.Round(base=500, columns=["income"]),
        sh.Recode(magnitude=0.5, columns=["age"]),
        sh.Suppress(min_class_size=5),  # removes everyone who is still in a small crowd
    ],
    require=[sh.KAnonymity(5), sh.Limit("marketer_risk", at_most=0.1)],
    roles=roles,
)


def main(folder: Path) -> None:
    table = sh.read(PEOPLE)
    release = sh.protect(table, plan)  # raises RequirementNotMet if the plan does not suffice

    print("before:", release.before["marketer_risk"], f"k = {release.before.k}")
    print("after: ", release.after["marketer_risk"], f"k = {release.after.k}")
    for claim in release.claims:
        required = claim.requirement.threshold
        print(f"claim:  {claim.key}: required {required:g}, measured {claim.measured:.4g}")
    print(f"kept {len(release.masked):,} of {release.rows_before:,} records")

    where = release.save(folder, format="csv", source=PEOPLE, force=True)
    print(f"\nPublish {where / 'public'}; keep {where / 'private'}.\n")

    # Anyone who has the public half can do this without the original.
    verification = sh.verify(where)
    print(verification)
    verification.raise_if_failed()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "people-release"))
