"""What models still learn from a release: several learners, several maskings, one table.

Each learner trains on the masked records of two thirds of the people and predicts for the original
records of the others, three times. For comparison, the same learner trains on the original. The
last column is the difference in percent, with its interval.

    python examples/learn_from_a_release.py
"""

from __future__ import annotations

import shoal as sh
from shoal.app.demo import PEOPLE

ROLES = sh.Roles(
    identifiers=["name", "email"],
    quasi_identifiers=["age", "sex", "zip"],
    insensitive=["occupation", "height_cm", "hours_per_week", "income", "diagnosis"],
    target="marital",
)
MASKINGS = {
    "swapped, k = 5": sh.Swap(k=5),
    "swapped, k = 50": sh.Swap(k=50),
    "generalized, k = 10": sh.Generalize("mondrian", k=10),
}
LEARNERS = ("logistic-regression", "decision-tree", "random-forest")


def main() -> None:
    table = sh.read(PEOPLE, roles=ROLES)
    print(f"{'masking':<22}{'learner':<22}{'original':>9}{'masked':>9}   difference")
    for name, step in MASKINGS.items():
        masked = step.fit_transform(table)
        for learner in LEARNERS:
            found = sh.utility.predictive_performance(
                table, masked, learner=learner, score="accuracy", splits=3
            )
            loss, interval = (
                found.details["percentage_difference"],
                found.details["percentage_interval"],
            )
            print(
                f"{name:<22}{learner:<22}{found.baseline:>9.3f}{found.value:>9.3f}"
                f"   {loss:+.1f} % ({interval[0]:+.1f} to {interval[1]:+.1f})"
            )


if __name__ == "__main__":
    main()
