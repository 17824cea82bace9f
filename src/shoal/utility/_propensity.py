"""How well a model can tell masked records from original ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from shoal.measurement import Measurement, measure
from shoal.parameters import Integer, OneOf
from shoal.randomness import SecretStream
from shoal.table import Table, released_text, stacked_codes, usual_partners
from shoal.utility._columns import (
    Columns,
    Floats,
    Integers,
    columns_to_compare,
    each_quantity,
    rows_if_paired,
    sampled_rows,
)
from shoal.utility._distribution import about_removed, about_unpaired

Discriminator = Annotated[Literal["logistic", "tree"], OneOf(("logistic", "tree"))]

SAMPLE = 5_000
_VALUES = 20  # the most frequent values of a column have a feature each,
_FEATURES = 400  # but fewer do if there are so many features in total
_DRAWS = 10
_ROUNDING = 1e-24  # a smaller error is only rounding


@measure("propensity score mean squared error", direction="lower", limits=(0, 0.25))
def propensity(
    original: Table,
    masked: Table,
    *,
    discriminator: Discriminator = "logistic",
    sample: Annotated[int, Integer(1)] = SAMPLE,
    columns: Columns = None,
) -> Measurement:
    """The mean squared error of the propensity score, pMSE: whether masked records look original.

    Original and masked records are combined, and a model learns to distinguish them. The
    value is the mean of (p - c)² over records, where p is the model's probability that a record
    is masked and c is the share of masked records. 0 means that they cannot be distinguished;
    c (1 - c), a quarter for tables of equal size, means that they always can.

    The baseline is the value for a table whose records are redrawn from those of the original,
    with replacement. For the logistic model it is (k - 1) (1 - c)² c / N, with k parameters and N
    records; for the tree it is the mean over ten such draws. ``details["ratio"]`` is the value
    divided by the baseline. Another sample of the population, independent of the original, would
    give 1 / (1 - c) times the baseline. Masked records are not a new draw, and unmasked ones
    give 0.

    Numbers and dates are standardized. In other columns the 20 most frequent values are
    distinguished (fewer if there are more than 20 columns). A generalized column is compared
    at the released level if rows can be paired. Removed columns do not count.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    discriminator : {"logistic", "tree"}
        A logistic regression on main effects, or a tree, which also sees combinations of columns.
    sample : int
        At most so many records of each table are used, always the same.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Woo et al. (2009), Global measures of data utility for microdata masked for disclosure
    limitation <https://doi.org/10.29012/jpc.v1i1.568>. Snoke et al. (2018), General and specific
    utility measures for synthetic data <https://doi.org/10.1111/rssa.12358>, section 3 and appendix
    A.1.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> table = Table(pl.DataFrame({"x": list(range(40)), "y": ["a", "b"] * 20}))
    >>> propensity(table, table).value
    0.0
    """
    names = columns_to_compare(original, masked, columns)
    released = [name for name in names if name in masked.columns]
    above, below = (sampled_rows(table.row_key, int(sample)) for table in (original, masked))
    rows = np.concatenate([above, len(original) + below])
    features = _features(original, masked, released, rows)
    is_masked = np.repeat([0, 1], [len(above), len(below)])
    share = len(below) / len(rows)
    error = _error(features, is_masked, share, discriminator)
    if discriminator == "logistic":
        expected = features.shape[1] * (1 - share) ** 2 * share / len(rows)
    else:
        expected = _redrawn_error(features[: len(above)], len(below))
    return Measurement(
        "propensity",
        error,
        baseline=expected,
        details={
            "ratio": error / expected if expected > 0 else None,
            "records": [len(above), len(below)],
            "features": features.shape[1],
            "share_of_masked": share,
            "compared": released,
        },
        warnings=(*about_unpaired(original, masked, released), *about_removed(masked, names)),
    )


def _features(original: Table, masked: Table, names: Sequence[str], rows: Integers) -> Floats:
    """The records of both tables as numbers, one column of the table after the other."""
    matrix: list[Floats] = []
    values_each = max(2, min(_VALUES, _FEATURES // max(1, len(names))))
    own = rows_if_paired(original, masked)
    for name in names:
        quantity = next(each_quantity(original, masked, [name]), None)
        if quantity is not None and not quantity.gone and masked.kind(name) != "text":
            values = np.concatenate([quantity.before, quantity.after])[rows]
            matrix += _standardised(values)
        else:
            matrix += _indicators(_codes(original, masked, name, own)[rows], values_each)
    kept = [column for column in matrix if np.ptp(column) > 0]
    return np.column_stack(kept) if kept else np.zeros((len(rows), 0))


def _codes(original: Table, masked: Table, name: str, own: Integers | None) -> Integers:
    """The values of both tables in one code; those of the original at the released level."""
    codes = stacked_codes(name, original, masked)
    if own is None or not released_text(original, masked, name):
        return codes
    before, after = codes[: len(original)].copy(), codes[len(original) :]
    # a removed record gets the most frequent release of its value
    values = original.codes(name)
    of_value = values.codes.astype(np.int64)
    best = np.full(values.count, -1)
    found, usual = usual_partners(of_value[own], after)
    best[found] = usual
    before = best[of_value]
    before[own] = after
    return np.concatenate([before, after])


def _standardised(values: Floats) -> list[Floats]:
    """A number in standard deviations, and whether it is missing."""
    missing = np.isnan(values)
    inside = values[~missing]
    spread = float(inside.std()) if len(inside) else 0.0
    if spread == 0:
        return [missing.astype(np.float64)]
    filled = np.where(missing, 0.0, (values - inside.mean()) / spread)
    return [filled, missing.astype(np.float64)]


def _indicators(codes: Integers, most: int) -> list[Floats]:
    """Which of its most frequent values a record has; one value may go without an indicator."""
    found, counts = np.unique(codes, return_counts=True)
    frequent = found[np.lexsort((found, -counts))][:most]
    listed = frequent if len(found) > len(frequent) else frequent[1:]
    return [(codes == code).astype(np.float64) for code in listed]


def _error(features: Floats, is_masked: Integers, share: float, discriminator: str) -> float:
    """The mean squared error of the propensity score."""
    if features.shape[1] == 0 or share in (0.0, 1.0):
        return 0.0
    model = _model(discriminator, len(features))
    with warnings.catch_warnings():  # separable tables may not converge; that is harmless
        warnings.simplefilter("ignore")
        scores = model.fit(features, is_masked).predict_proba(features)[:, 1]
    error = float(((scores - share) ** 2).mean())
    return min(0.25, error) if error > _ROUNDING else 0.0


def _model(discriminator: str, records: int) -> Any:
    if discriminator == "logistic":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(solver="newton-cholesky", max_iter=50)
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(
        max_depth=6, min_samples_leaf=max(1, min(20, records // 20)), random_state=0
    )


def _redrawn_error(features: Floats, redrawn: int) -> float:
    """The tree's error if the masked records are original ones, drawn with replacement."""
    records = len(features) + redrawn
    is_masked = np.repeat([0, 1], [len(features), redrawn])
    errors = []
    for draw in range(_DRAWS):
        stream = SecretStream.public("propensity", str(draw))
        chosen = features[stream.integers_below(np.full(redrawn, len(features)))]
        errors.append(_error(np.vstack([features, chosen]), is_masked, redrawn / records, "tree"))
    return float(np.mean(errors))
