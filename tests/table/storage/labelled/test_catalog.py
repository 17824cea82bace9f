"""Catalogs, in which SAS keeps the labels of values: found by the names of formats, never cells."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import shoal as sh
from shoal.errors import ReadError, ShoalWarning

from . import samples
from .samples import FORMATS, SEX, ps

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")

ROLES = sh.Roles(
    identifiers=["pid"],
    quasi_identifiers=["age", "sex"],
    sensitive=["job"],
    insensitive=["marital", "income", "seen"],
    unit="row",
)


@pytest.fixture
def pair(tmp_path):
    return samples.sas_data(tmp_path), samples.catalog(tmp_path, FORMATS)


def test_labels_are_beside_the_codes(pair):
    data, catalog = pair
    table, without = sh.read(data, catalog=catalog), sh.read(data)
    assert table.frame.equals(without.frame, null_equal=True)
    found = table.dictionary
    assert found.of("sex").values == SEX  # whose format has a width, SEX8.
    assert found.of("marital").values == FORMATS["MARITALSTATUS"]  # a name of over 8 letters
    assert found.of("job").values == FORMATS["$JOB"]
    assert found.of("income").values == {}
    assert found.of("income").reasons == {".R": "refused", ".X": "no one said this"}
    assert found.of("seen").values == found.of("age").values == found.of("pid").values == {}
    assert not any(facts.values or facts.reasons for facts in without.dictionary.facts.values())


def test_a_note_names_the_columns_that_have_labels(pair):
    data, catalog = pair
    (told,) = sh.read(data, catalog=catalog).manner.notes
    assert told == (
        "The catalog 'formats.sas7bcat' has labels for values of 'sex', 'marital', 'job', 'income'."
    )
    assert sh.read(data).manner.notes == ()


def test_names_of_formats_have_no_case_and_numbers_may_be_negative(tmp_path):
    labels = {-1.5: "below", 0: "nothing", 1: "one", 250_000.5: "much"}
    catalog = samples.catalog(tmp_path, {"sex": labels})
    assert (
        sh.read(samples.sas_data(tmp_path), catalog=catalog).dictionary.of("sex").values == labels
    )


def test_reasons_can_be_dropped_with_a_catalog(pair):
    data, catalog = pair
    table = sh.read(data, catalog=catalog, missing_reasons="dropped")
    assert "income_reason" not in table.columns
    assert table.dictionary.of("sex").values == SEX


def test_a_catalog_of_another_file_is_refused(tmp_path):
    """Not a warning: labels of another file, or none at all, are not what was asked for."""
    catalog = samples.catalog(tmp_path, {"SEXES": SEX, "$SEX": {"1": "male"}}, "other")
    with pytest.raises(ReadError) as caught:
        sh.read(samples.sas_data(tmp_path), catalog=catalog)
    assert str(caught.value) == (
        "The catalog 'other.sas7bcat' does not belong to 'people.sas7bdat': no column has one of "
        "its formats. Pass the catalog of this file, or leave out catalog=."
    )


def test_what_is_no_catalog_is_refused(pair, tmp_path):
    data, catalog = pair
    with pytest.raises(ReadError, match=r"no catalog '.*nowhere\.sas7bcat'"):
        sh.read(data, catalog=tmp_path / "nowhere.sas7bcat")
    with pytest.raises(ReadError, match="no catalog"):
        sh.read(data, catalog=tmp_path)
    whole, wrong = catalog.read_bytes(), tmp_path / "wrong.sas7bcat"
    parts = (whole[:100], whole[:1100], whole[:9000], whole[:-2000], b"secret" * 3000, b"")
    for content in (*parts, data.read_bytes(), samples.catalog(tmp_path, {}, "e").read_bytes()):
        wrong.write_bytes(content)
        with pytest.raises(ReadError, match="is not a SAS catalog") as caught:
            sh.read(data, catalog=wrong)
        assert "secret" not in str(caught.value)
    with pytest.raises(ReadError, match="'catalog' must be the path"):
        sh.read(data, catalog=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["dta", "sav", "xpt", "csv"])
def test_other_formats_have_no_catalog(tmp_path, ending):
    frame = pl.DataFrame({"sex": [1, 2]})
    sh.Table(frame).write(tmp_path / f"a.{ending}")
    with pytest.raises(ReadError, match="'catalog' does not apply"):
        sh.read(tmp_path / f"a.{ending}", catalog=samples.catalog(tmp_path, FORMATS))


def test_a_plan_keeps_the_catalog_and_leaves_it_out_for_a_copy(pair, tmp_path):
    data, catalog = pair
    options = sh.read(data, catalog=catalog).manner.options
    assert options.to_dict() == {"format": "sas7bdat", "catalog": str(catalog)}
    plan = sh.Plan.from_toml(sh.Plan([sh.Round(base=5)], read=options).to_toml())
    assert plan.read == options
    assert "catalog" not in plan.read.for_file(tmp_path / "people.csv").to_dict()


def released(pair, folder, format):
    data, catalog = pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = sh.read(data, catalog=catalog, roles=ROLES)
        step = sh.Generalize("mondrian", k=4)
        release = sh.protect(table, sh.Plan([step], require=[sh.KAnonymity(4)]))
        out = release.save(folder / format, format=format, source=data)
        found = sh.verify(out, original=table, source=data)
    assert found.holds, str(found)
    return release, out / "public" / f"data.{format}"


@pytest.mark.parametrize("format", ["dta", "sav", "zsav"])
def test_labels_survive_as_those_of_other_programs(pair, tmp_path, format):
    release, path = released(pair, tmp_path, format)
    again = sh.read(path)
    assert again.dictionary.of("marital").values == {1: "single", 2: "married"}
    assert again.dictionary.of("job").values == ({} if format == "dta" else FORMATS["$JOB"])
    for name in ("marital", "job", "income_reason"):
        assert again.frame[name].to_list() == release.masked.frame[name].to_list()
    content = path.read_bytes()
    for unheard in ("without a person", "no one said", "without a column"):
        assert unheard.encode() not in content


def test_a_transport_file_holds_the_names_of_formats_and_the_reasons(pair, tmp_path):
    release, path = released(pair, tmp_path, "xpt")
    _, about = ps.read_xport(str(path), output_format="polars")
    assert about.original_variable_types["marital"].startswith("MARITALSTATUS")
    reasons = sh.read(path).frame["income_reason"].to_list()
    assert reasons == release.masked.frame["income_reason"].to_list()
    assert {*reasons} == {None, ".R"}


def test_losses_are_told(pair):
    data, catalog = pair
    table = sh.read(data, catalog=catalog, roles=ROLES)
    assert any("labels of values" in told for told in table.check_holds("xpt"))
    assert any("labels of numbers only" in told for told in table.check_holds("dta"))
    assert not any("labels" in told for told in table.check_holds("sav"))
    without = sh.read(data, roles=ROLES)
    assert not any("labels of" in told for told in without.check_holds("dta"))
