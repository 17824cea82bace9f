"""The hierarchy files of the public tables: all load, cover their column and nest."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Table

from .ladders import check_ladder

TABLES = {
    "acs_income_2018": "acs/acs_income_2018",
    "adult": "uci/adult",
    "adult_arx": "uci/adult_arx",
    "arx_cup": "arx/cup",
    "arx_fars": "arx/fars",
    "arx_mach2019": "arx/mach2019",
    "credit_default_taiwan": "openml/credit_default_taiwan",
}


@pytest.mark.parametrize("name", TABLES)
def test_every_file_loads_covers_and_nests(shared_data, name):
    files = sorted((shared_data / "hierarchies" / name).glob("*.csv"))
    assert files
    columns = [file.stem for file in files]
    frame = pl.read_parquet(shared_data / f"{TABLES[name]}.parquet", columns=columns)
    table = Table(frame)
    for file in files:
        hierarchy = Hierarchy.from_csv(file)
        with file.open(encoding="utf-8") as text:
            rows = list(csv.reader(text, delimiter=";"))
        assert hierarchy.levels == len(rows[0])
        assert hierarchy.uncovered(table, file.stem) == 0
        codes = hierarchy.codes(table, file.stem)
        check_ladder(codes)
        missing = codes.column.missing is not None
        assert codes.domain == len(rows) + missing
        # the file itself, line by line
        if table.kind(file.stem) in ("text", "integer") and not missing:
            chains = {row[0]: row for row in rows}
            sizes = [Counter(row[n] for row in rows) for n in range(codes.levels)]
            for at, value in enumerate(codes.column.levels.cast(pl.String)):
                chain = chains[value]
                found = [codes.labels[n][codes.maps[n, at]] for n in range(codes.levels - 1)]
                assert found == chain[:-1]
                assert codes.leaves[:, at].tolist() == [
                    size[label] for size, label in zip(sizes, chain, strict=True)
                ]


def test_the_search_needs_one_encoding_and_no_pass_over_the_rows(monkeypatch):
    """Beyond the encoding, only distinct values are looked at."""
    from shoal.table.hierarchy._listed import Listed

    table = Table(pl.DataFrame({"x": np.tile(np.arange(100), 3_000)}))
    seen = []
    original = Listed.rungs
    monkeypatch.setattr(
        Listed,
        "rungs",
        lambda rule, values, unseen: seen.append(len(values)) or original(rule, values, unseen),
    )
    Hierarchy.from_rows([[n, n // 10] for n in range(100)]).codes(table, "x")
    assert seen == [100]
