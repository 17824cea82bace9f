"""What a sample tells of the people it was drawn from, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.measurement import Measurement
from shoal.risk import certainty
from shoal.table import Table
from shoal.utility import chi_square

#: The quantiles that are kept of a distribution: enough to draw a violin from.
SHARES = tuple(number / 200 for number in range(201))


def sampled_risk(original: Table, masked: Table, *, population: Table | None = None) -> Measurement:
    """Certainty f/F and journalist risk 1/F of the released records, as distributions.

    F people of the original, as coarse as the release, share the quasi-identifiers of a record,
    and f of them were released. The value is the mean of 1/F. The details are those of
    :func:`shoal.risk.certainty`, and besides:

    ``certainty_quantiles``, ``journalist_quantiles``
        Of f/F and 1/F at 0, 0.5, 1, ..., 100 percent of the released records.
    ``released``
        The share of the people who are in the release.
    ``smallest_class``, ``records_below``
        The smallest class of the release, and the shares of the records that are in classes of
        fewer than 5, 10, 20 and 50.

    Parameters
    ----------
    original : Table
        The table before sampling and masking.
    masked : Table
        The release.
    population : Table, optional
        All people of the original with the values that the release has for them; without it they
        are learned from the records that are in both, and people with a value that nobody in the
        release has are not counted. A study gives it with ``population = true``.

    References
    ----------
    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Sample
    >>> table = Table(pl.DataFrame({"age": [30] * 4 + [41] * 8}), Roles(quasi_identifiers=["age"]))
    >>> sample = Sample(fraction=0.5, strategy="stratified").fit_transform(table)
    >>> found = sampled_risk(table, sample)
    >>> round(found.value, 4), found.details["journalist_risk"]["highest"]
    (0.1667, 0.25)
    >>> found.details["released"], found.details["smallest_class"]
    (0.5, 2)
    """
    found = certainty(original if population is None else population, masked)
    shares, sizes = found.per_record, masked.class_sizes()
    assert shares is not None
    details: dict[str, Any] = {
        **found.details,
        "highest_certainty": found.value,
        "certainty_quantiles": np.quantile(shares, SHARES).tolist(),
        "journalist_quantiles": np.quantile(shares / sizes, SHARES).tolist(),
        "released": len(masked) / len(original),
        "smallest_class": int(sizes.min()),
        "records_below": {str(k): float((sizes < k).mean()) for k in (5, 10, 20, 50)},
    }
    return Measurement(
        "sampled_risk",
        details["journalist_risk"]["mean"],
        details=details,
        warnings=found.warnings,
    )


def sampled_chi_square(
    original: Table,
    masked: Table,
    *,
    population: Table | None = None,
    columns: Sequence[str] | None = None,
) -> Measurement:
    """Chi-square of the released values against the shares of all people at the released levels.

    :func:`shoal.utility.chi_square` takes a column of which nothing is left as moved altogether.
    Here values are compared at the level that was chosen, whatever it is, so that what remains is
    due to who was released. A study gives ``population = true``.

    References
    ----------
    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.
    """
    return chi_square(original if population is None else population, masked, columns=columns)
