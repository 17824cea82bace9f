"""What a study can measure: every measure of risk and utility, and a few for studies only.

The options of a study are plain data, so that a file can hold them and a hash can name a task.
What a measure needs from a single table is therefore written as a word: ``holdout = true`` and
``control = true`` are the rows that were held out, and ``known = "part"`` are the columns chosen
by the rule of that name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from shoal.errors import InputError
from shoal.measurement import MeasureInfo, Measurement, measure
from shoal.parameters import Real, Text
from shoal.risk import certainty
from shoal.study.data._tables import TableSource
from shoal.table import Table
from shoal.utility import chi_square
from shoal.utility._columns import Columns
from shoal.utility.models import tuned
from shoal.utility.models._comparison import ClassScore, ColumnName, Draw, Repeats, Splits
from shoal.workflow import discover_all_measures

_TAKE_ROWS = ("control", "holdout")


def concrete_options(
    options: Mapping[str, Any], source: TableSource, folder: Path | None = None
) -> dict[str, Any]:
    """The options, with the words in them replaced by what they stand for."""
    out = dict(options)
    for name in _TAKE_ROWS:
        if out.get(name) is True:
            out[name] = _held_out(source, folder)
    if out.get("known") == "part":
        out["known"] = list(_identifying(source, folder, source.fingerprint(folder)))
    return out


def table_and_rows_aside(source: TableSource, folder: Path | None) -> tuple[Table, Table | None]:
    """A table and its held-out rows, read once by each worker until the file changes."""
    return _read(source, folder, source.fingerprint(folder))


@lru_cache(maxsize=4)
def _read(source: TableSource, folder: Path | None, data: str) -> tuple[Table, Table | None]:
    return source.load_divided(folder)


def _held_out(source: TableSource, folder: Path | None) -> Table:
    rows = table_and_rows_aside(source, folder)[1]
    if rows is None:
        raise InputError(
            f"A measure needs held-out rows of the table '{source.name}', but it has none; set "
            "held_out to a share of the table's rows."
        )
    return rows


@lru_cache(maxsize=64)
def _identifying(source: TableSource, folder: Path | None, data: str) -> tuple[str, ...]:
    return tuple(source.identifying(table_and_rows_aside(source, folder)[0]))


#: The quantiles to keep of a distribution: enough to draw a violin.
SHARES = tuple(number / 200 for number in range(201))


@measure("mean journalist risk of a sample", direction="lower", limits=(0, 1))
def sampled_risk(original: Table, masked: Table, *, population: Table | None = None) -> Measurement:
    """Certainty f/F and journalist risk 1/F of the released records, as distributions.

    At the levels of the release, F people of the original share the quasi-identifiers of a record,
    and f of them were released. The value is the mean of 1/F. The details are those of
    :func:`shoal.risk.certainty` and the following:

    ``certainty_quantiles``, ``journalist_quantiles``
        Quantiles of f/F and 1/F at 0, 0.5, 1, ..., 100 percent of the released records.
    ``released``
        The share of people who are in the release.
    ``smallest_class``, ``records_below``
        The smallest class of the release, and the shares of records in classes of fewer than 5,
        10, 20 and 50.

    ``population`` holds everyone in the original with the values that the release has for them. A
    study passes it with ``population = true``. By default, these values are learned from the
    records in both tables, and people with a value that nobody in the release has are not counted.

    Verdonck, De Boeck, Willocx, Lapon, Naessens (2022), The impact of data sampling in the
    anonymization pipeline.
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


@measure("chi-square at the released levels", direction="lower", limits=(0, math.inf))
def sampled_chi_square(
    original: Table,
    masked: Table,
    *,
    population: Table | None = None,
    columns: Columns = None,
) -> Measurement:
    """Chi-square of the released values against the shares of all people at the released levels.

    :func:`shoal.utility.chi_square` treats a fully generalized column as changed completely. This
    measure compares values at the chosen level instead, so the difference depends only on who was
    released. A study passes ``population = true``.
    """
    return chi_square(original if population is None else population, masked, columns=columns)


@measure(
    "predictive performance of the best configuration",
    direction="higher",
    limits=(0, 1),
    target=True,
)
def tuned_performance(
    original: Table,
    masked: Table,
    *,
    target: ColumnName = None,
    grid: Annotated[str, Text()] = "carvalho",
    score: ClassScore = "f1",
    splits: Splits = 5,
    repeats: Repeats = 5,
    test_share: Annotated[float, Real(above=0, below=1)] = 0.2,
    random_state: Draw = 0,
) -> Measurement:
    """The score of the best of many configurations, all trained and tested on the masked table.

    The value is that of the validation setting: the configuration that repeated folds of the
    training rows choose, scored on the test rows. ``details["oracle"]`` is the best score of any
    configuration on the test rows, which nobody can know in advance. The test rows are masked
    too, as in the paper, so the value is higher than for people as they are. If no column is left
    to learn from, there is no model, and the value is 0.

    ``grid`` names the configurations to try, a preset of :func:`shoal.utility.models.grid`.
    ``splits`` and ``repeats`` set the folds of the training rows, and ``test_share`` the share of
    the rows that is kept for testing. ``random_state`` is not secret.

    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance
    trade-off, section 4.
    """
    name = original.roles.target if target is None else target
    if name is None:
        raise InputError(
            "There is no column to predict; pass a target, or declare it in the roles."
        )
    found = tuned(
        masked,
        name,
        grid,
        score=score,
        splits=splits,
        repeats=repeats,
        test_share=test_share,
        random_state=random_state,
    )
    over_folds = found.over_folds()
    details = {
        "grid": grid,
        "score": score,
        "configurations": len(found.tried),
        "oracle": found.oracle,
        "chosen": None if found.best is None else found.best.learner,
        "over_folds": over_folds,
        "mean_over_folds": float(np.mean([*over_folds.values()])) if over_folds else 0.0,
        "without_model": found.best is None,
    }
    warnings = ["The tested records are masked too, so the value is optimistic."]
    if found.best is None:
        why = "No column is left to learn from" if not found.tried else "Every configuration failed"
        warnings.append(f"{why}, so there is no model and the value is 0.")
    return Measurement(
        "tuned_performance",
        found.validation,
        interval=found.interval(random_state),
        direction="higher",
        details=details,
        warnings=tuple(warnings),
    )


@cache
def study_measures() -> Mapping[str, MeasureInfo]:
    """What each measure of a study declares about itself, by name."""
    own: tuple[Any, ...] = (sampled_risk, sampled_chi_square, tuned_performance)
    return {**discover_all_measures(), **{each.info.name: each.info for each in own}}
