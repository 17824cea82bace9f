"""Certainty: how sure an intruder can be that a person is in a sample at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement, measure
from shoal.risk._before_sampling import BeforeSampling, before_sampling
from shoal.risk._classes import mean_of_classes
from shoal.table import Missing, Table, stacked_codes

_HIGH = (0.5, 0.8)
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
#: A target with more values is no label, and is told of as a whole.
_LABELS = 20


@measure("highest certainty of membership", direction="lower", limits=(0, 1))
def certainty(original: Table, masked: Table, *, missing: Missing = "own") -> Measurement:
    """The largest share of a class that a sample released.

    Of F people with the same quasi-identifiers f are in the release, so somebody who knows a
    person's quasi-identifiers is certain to f/F that the person is in it. The value is the largest
    one; the details have the distribution, and the journalist risk 1/F beside it. Where a person
    has several records, the details are about persons, each with the largest of their records.

    Where the roles name a target, the details and the warnings also say what an intruder reaches
    who knows the person's target value too: a balanced sample releases rare values more often.

    Parameters
    ----------
    original : Table
        The table before sampling. Where it is not masked as ``masked`` is, F are the people of
        the classes that the sample was drawn from, if Shoal drew it after they were formed;
        otherwise those who have, or lie in, what was released.
    masked : Table
        The sample.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Sample, Table
    >>> table = Table(pl.DataFrame({"age": [30] * 5 + [41] * 8}), Roles(quasi_identifiers=["age"]))
    >>> found = certainty(table, Sample(fraction=0.5, strategy="stratified").fit_transform(table))
    >>> found.value, found.per_record.tolist()
    (0.5, [0.4, 0.4, 0.5, 0.5, 0.5, 0.5])
    """
    if len(masked) == 0 or len(original) == 0:
        raise InputError("A table without records has nobody to be certain of.")
    names = masked.roles.quasi_identifiers
    before = before_sampling(original, masked, names, missing)
    people, sizes = before.people, before.records
    shares = sizes / people
    released, risks = masked.of_persons(shares), masked.of_persons(1 / people)
    certainties = before.certainties
    details: dict[str, Any] = {
        "mean": mean_of_classes(masked, shares),
        "quantiles": dict(
            zip(map(str, _QUANTILES), np.quantile(released, _QUANTILES).tolist(), strict=True)
        ),
        "records_above": {str(bound): float((released > bound).mean()) for bound in _HIGH},
        "people_above": {str(b): float((certainties > b).mean()) for b in _HIGH},
        "journalist_risk": {
            "highest": float(risks.max()),
            "mean": mean_of_classes(masked, 1 / people),
        },
        "unplaced": before.unplaced,
    }
    warnings = _about_k(before.smallest, sizes, learned=before.learned)
    if before.unplaced:
        warnings.append(
            f"{before.unplaced} of {original.person_count} people have values of which nobody in "
            "the release tells what became, so they are in no class; the certainty is thus rather "
            "too high than too low."
        )
    known = _with_target(original, masked, missing)
    if known is not None:
        details["with_target"] = known
        warnings += _about_target(known, float(shares.max()))
    return Measurement(
        "certainty",
        float(shares.max()),
        per_record=shares,
        details=details,
        warnings=tuple(warnings),
    )


def _about_k(k: int, sizes: Integers, *, learned: bool) -> list[str]:
    """A sample of a k-anonymous table is rarely k-anonymous; the reader must know."""
    smaller, smallest = int((sizes < k).sum()), int(sizes.min())
    if k < 2 or not smaller:
        return []
    if learned:  # classes may have been formed before or after sampling
        return [
            f"With everybody counted, the smallest class has {k} people, in the release "
            f"{smallest}: that the whole table is k-anonymous would not make the release so. "
            f"Somebody who knows that a person is in it finds the record with up to 1/{smallest}."
        ]
    return [
        f"The table before sampling is {k}-anonymous; the release is not: {smaller} of "
        f"{len(sizes)} records are in classes of fewer than {k}, the smallest of {smallest}. "
        "Somebody who knows that a person is in the release finds the record there with a chance "
        f"of up to 1/{smallest}."
    ]


def _with_target(original: Table, masked: Table, missing: Missing) -> dict[str, Any] | None:
    """What somebody knows who has the target value of a person too; None without a target."""
    target = masked.roles.target
    if target is None or target not in original.columns:
        return None
    names = (*masked.roles.quasi_identifiers, target)
    try:
        before = before_sampling(original, masked, names, missing)
    except InputError:  # the target was changed by chance: it is not what an intruder knows
        return None
    shares = before.records / before.people
    both = stacked_codes(target, before.sample, before.whole) + 1  # 0 where missing
    labels, everyone = both[: len(masked)], both[len(masked) :]
    found: dict[str, Any] = {
        "highest": float(shares.max()),
        "certain_records": float(before.sample.of_persons(shares == 1).mean()),
    }
    values = [int(value) for value in np.unique(labels)]
    if len(values) <= _LABELS and np.isin(values, everyone).all():  # not made coarser
        of_values = [
            _of_value(before, labels == value, everyone == value, shares) for value in values
        ]
        found["values"] = sorted(of_values, key=lambda one: (-one["inclusion"], one["people"]))
    return found


def _of_value(before: BeforeSampling, released: Flags, all_: Flags, shares: Floats) -> Any:
    """One value of the target, which is not named: it is a cell of the table."""
    people = int(before.whole.of_persons(all_).sum())
    inside = int(before.sample.of_persons(released).sum())
    certain = int(before.sample.of_persons(released & (shares == 1)).sum())
    return {
        "people": people,
        "inclusion": inside / people,
        "highest": float(shares[released].max()),
        "certain_people": certain / people,
    }


def _about_target(known: dict[str, Any], highest: float) -> list[str]:
    if known["highest"] <= highest:
        return []
    sentence = (
        f"The certainty is at most {highest:.4g} without the target; for an intruder who knows a "
        f"person's target value it is up to {known['highest']:.4g}."
    )
    if known.get("values"):
        rates = [one["inclusion"] for one in known["values"]]
        sure = max(one["certain_people"] for one in known["values"])
        sentence += (
            f" By the target's values the chance to be in the release lies between {min(rates):.3g}"
            f" and {max(rates):.3g}, and up to {sure:.3g} of the people with one value are in it "
            "with certainty 1."
        )
    return [sentence]
