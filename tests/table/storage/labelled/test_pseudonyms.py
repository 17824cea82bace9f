"""Pseudonyms of a column with labels: the labels describe the values that are gone."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import ShoalWarning

from . import samples
from .samples import ps

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")

ROWS = 240
#: Every possible number of three digits has a label, so that every pseudonym is another's value.
LABELS = {"ward": {number: f"Ward {number} of Dr Adams" for number in range(100, 1000)}}


def source(folder, format):
    frame = pl.DataFrame(
        {"ward": np.arange(ROWS) % 120 + 100, "sex": np.arange(ROWS) % 2 + 1, "age": [30, 40] * 120}
    )
    path = folder / f"a.{format}"
    write = ps.write_dta if format == "dta" else ps.write_sav
    options = {"missing_ranges": {"ward": [500]}} if format == "sav" else {}
    labels = {**LABELS, "sex": samples.SEX}
    write(frame, str(path), variable_value_labels=labels, column_labels={"ward": "Ward"}, **options)
    return path


def released(path, folder, shape, roles, format):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = sh.read(path, roles=roles)
        plan = sh.Plan([sh.Pseudonymize(["ward"], shape=shape)])
        release = sh.protect(table, plan)
        out = release.save(folder / "out", format=format, source=path)
        found = sh.verify(out, original=table, source=path)
    assert found.holds, str(found)
    return release, out / "public" / f"data.{format}"


@pytest.mark.parametrize("shape", ["hex", "digits", "words", "format"])
@pytest.mark.parametrize(
    "roles",
    [
        {"identifiers": ["ward"], "quasi_identifiers": ["age"], "unit": "row"},
        {"unit": "ward", "quasi_identifiers": ["age"]},
        {"household": ["ward"], "quasi_identifiers": ["age"], "unit": "row"},
    ],
    ids=["identifier", "unit", "household"],
)
@pytest.mark.parametrize("format", ["dta", "sav"])
def test_no_label_of_a_value_goes_with_its_pseudonym(tmp_path, format, roles, shape):
    path = source(tmp_path, format)
    release, file = released(path, tmp_path, shape, sh.Roles(**roles, insensitive=["sex"]), format)
    reader = ps.read_dta if format == "dta" else ps.read_sav
    frame, about = reader(str(file), output_format="polars")
    made = release.masked.frame["ward"]
    assert frame["ward"].to_list() == made.to_list()  # and no code 1, 2, 3
    assert frame["ward"].dtype.is_numeric() == (shape == "format")
    assert "ward" not in about.variable_value_labels
    assert b"Adams" not in file.read_bytes()
    assert release.masked.value_labels("ward") == {}
    assert about.variable_value_labels["sex"] == samples.SEX
    assert about.column_names_to_labels["ward"] == "Ward"


def test_the_table_that_was_read_keeps_its_labels(tmp_path):
    table = sh.read(source(tmp_path, "dta"), roles=sh.Roles(identifiers=["ward"]))
    masked = sh.Pseudonymize(["ward"]).fit_transform(table)
    assert table.dictionary.of("ward").values == LABELS["ward"]
    assert masked.dictionary.of("ward").values == {}
    assert masked.dictionary.of("sex") == table.dictionary.of("sex")


def test_a_reason_keeps_its_label(tmp_path):
    """It says why a value is missing, and nothing about a value."""
    table = sh.read(samples.stata(tmp_path), roles=sh.Roles(quasi_identifiers=["income"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        masked = sh.Pseudonymize(["income"]).fit_transform(table)
    masked.write(tmp_path / "b.dta")
    again = sh.read(tmp_path / "b.dta")
    assert again.frame["income"].to_list() == masked.frame["income"].to_list()
    assert again.frame["income_reason"].to_list() == table.frame["income_reason"].to_list()
    assert masked.value_labels("income_reason") == {".a": "refused", ".z": "does not know"}
