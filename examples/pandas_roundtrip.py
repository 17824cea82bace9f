"""A pandas frame in, a pandas frame out.

Column types stay. Categories that no row uses any more are dropped, and so is the index, because
its labels may be the names of people.

    python examples/pandas_roundtrip.py
"""

from __future__ import annotations

import sys

import shoal as sh
from shoal.app.demo import PEOPLE

try:
    import pandas as pd
except ImportError:
    print('pandas is not installed; this example needs it: pip install "pandas>=2.2"')
    sys.exit(0)


def main() -> None:
    people = pd.read_csv(PEOPLE, dtype={"zip": "string", "hours_per_week": "Int64"})
    people = people.set_index("email")  # an identifying index must not reach the release
    people["sex"] = people["sex"].astype("category")

    roles = sh.Roles(
        identifiers=["name", "zip"],
        quasi_identifiers=["age", "sex", "occupation"],
        sensitive=["income", "diagnosis"],
        insensitive=["marital", "height_cm", "hours_per_week"],
    )
    plan = sh.Plan([sh.Round(base=10), sh.Suppress(min_class_size=5)], require=[sh.KAnonymity(5)])
    masked = sh.protect(sh.Table(people, roles), plan).masked.frame

    assert isinstance(masked, pd.DataFrame)
    assert masked.index.equals(pd.RangeIndex(len(masked)))  # the e-mail addresses are gone
    kept = people.drop(columns=["name", "zip"])
    assert list(masked.columns) == list(kept.columns)
    for name in kept.columns:
        print(f"{name:<16}{kept[name].dtype!s:>12} -> {masked[name].dtype}")
    print(f"\n{len(people):,} records became {len(masked):,}; the input frame is unchanged:")
    print(f"it still has {people['age'].nunique()} different ages, not {masked['age'].nunique()}.")


if __name__ == "__main__":
    main()
