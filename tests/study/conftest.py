"""Small tables for studies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.study.figures import _style

EVERY_FORMAT = _style.FORMATS


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


@pytest.fixture(autouse=True)
def one_format(monkeypatch):
    """Studies draw each figure once; the tests of figures draw them in every format."""
    monkeypatch.setattr(_style, "FORMATS", ("svg",))


@pytest.fixture
def every_format(one_format, monkeypatch):
    monkeypatch.setattr(_style, "FORMATS", EVERY_FORMAT)
