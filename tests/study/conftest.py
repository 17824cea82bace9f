"""Small tables for studies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def people_file(tmp_path):
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, 300)
    frame = pl.DataFrame(
        {
            "age": age,
            "height": np.round(rng.normal(170, 10, 300), 3),
            "city": rng.choice(["Bern", "Graz", "Jena"], 300),
            "ill": np.where(age + rng.normal(0, 15, 300) > 60, "yes", "no"),
        }
    )
    path = tmp_path / "people.parquet"
    frame.write_parquet(path)
    return path
