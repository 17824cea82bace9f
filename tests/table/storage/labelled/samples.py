"""Files as Stata, SPSS and SAS users have them, made by the library that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

try:
    import pyreadstat as ps
except ImportError:  # the tests that need it are skipped
    ps = None

ROWS = 240
SEX = {1: "male", 2: "female"}
MARITAL = {1: "single", 2: "married", 3: "divorced", 4: "widowed", 9: "a label without a person"}
#: Rows whose income is missing for a reason, and without one.
REFUSED = np.arange(0, ROWS, 8)
UNKNOWN = np.arange(3, ROWS, 8)
SILENT = np.arange(5, ROWS, 40)


def people() -> pl.DataFrame:
    draw = np.random.default_rng(1962)
    return pl.DataFrame(
        {
            "pid": [f"P{number:04d}" for number in range(ROWS)],
            "age": draw.integers(18, 80, ROWS),
            "sex": draw.integers(1, 3, ROWS),
            "marital": draw.integers(1, 5, ROWS),
            "income": draw.integers(10, 60, ROWS) * 100.0 + 0.5,
            "born": pl.Series(draw.integers(-5000, 9000, ROWS)).cast(pl.Date),
            "ill": draw.choice(["flu", "gout", "cold"], ROWS),
        }
    )


def with_codes(refused: object, unknown: object) -> list[object]:
    """The incomes with something in place of those that are missing for a reason."""
    cells: list[object] = people()["income"].to_list()
    for rows, code in ((REFUSED, refused), (UNKNOWN, unknown), (SILENT, None)):
        for row in rows.tolist():
            cells[row] = code
    return cells


def stata(folder: Path) -> Path:
    """Labels of columns and values, a date, and .a and .z as missing values."""
    path = folder / "people.dta"
    born = (people()["born"].to_physical() + 3653).cast(pl.Float64)  # days from 1960
    income = pl.Series("income", with_codes("a", "z"), dtype=pl.Object)
    ps.write_dta(
        people().with_columns(income, born.alias("born")),
        str(path),
        version=14,
        column_labels={"age": "Age in years", "income": "Net income"},
        variable_value_labels={
            "sex": SEX,
            "marital": MARITAL,
            "income": {"a": "refused", "z": "does not know"},
        },
        missing_user_values={"income": ["a", "z"]},
        variable_format={"born": "%td", "income": "%9.1f"},
    )
    return path


def spss(folder: Path, ending: str = "sav") -> Path:
    """The same with a range and one value that are declared as missing."""
    path = folder / f"people.{ending}"
    income = pl.Series("income", with_codes(99_997.0, -1.0), dtype=pl.Float64)
    ps.write_sav(
        people().with_columns(income),
        str(path),
        compress=ending == "zsav",
        column_labels={"age": "Age in years", "income": "Net income"},
        variable_value_labels={
            "sex": SEX,
            "marital": MARITAL,
            "income": {99_997.0: "refused", -1.0: "does not know", 99_999.0: "no one said this"},
        },
        missing_ranges={"income": [-1, {"lo": 99_990, "hi": 99_999}]},
        variable_measure={"sex": "nominal", "income": "scale"},
        variable_format={"income": "F9.1"},
    )
    return path
