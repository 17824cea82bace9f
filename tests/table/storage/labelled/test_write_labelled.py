"""What is released in a labelled file: as codes with labels, and reopened by other readers."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import DialectWarning, InputError, ReleaseError, ShoalWarning

from . import samples
from .samples import MARITAL, REFUSED, SEX, UNKNOWN, ps

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")

ROLES = sh.Roles(
    identifiers=["pid"],
    quasi_identifiers=["age", "sex", "marital", "income", "born"],
    sensitive=["ill"],
)
HIERARCHIES = {
    "age": sh.Hierarchy.intervals([20, 40]),
    "sex": sh.Hierarchy.suppression(),
    "marital": sh.Hierarchy.from_rows(
        [["1", "{1, 4}", "*"], ["4", "{1, 4}", "*"], ["2", "{2, 3}", "*"], ["3", "{2, 3}", "*"]]
    ),
    "income": sh.Hierarchy.intervals([2000, 4000]),
    "born": sh.Hierarchy.dates(["decade"]),
}

MAKES = pytest.mark.parametrize(
    ("make", "format"), [(samples.stata, "dta"), (samples.spss, "sav"), (samples.spss, "por")]
)


def saved(path, folder, algorithm="mondrian", format=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = sh.read(path, roles=ROLES)
        step = sh.Generalize(algorithm, k=4, **options)
        release = sh.protect(table, sh.Plan([step], require=[sh.KAnonymity(4)]))
        format = format or path.suffix.removeprefix(".")
        out = release.save(folder / "out", format=format, source=path)
        found = sh.verify(out, original=table, source=path)
    assert found.holds, str(found)
    return release, out / "public" / f"data.{format}"


def read(path, **options):
    """The cells and what is said about them; names of portable files as they were before."""
    if path.suffix == ".por":
        options = {"user_missing": options.get("user_missing", False), "output_format": "polars"}
        module = importlib.import_module("pyreadstat._readstat_parser")
        frame, about = module.parser_entry_point(str(path), parser_format="por", **options)
        for part in ("variable_value_labels", "column_names_to_labels", "missing_ranges"):
            setattr(about, part, {name.lower(): of for name, of in getattr(about, part).items()})
        return frame.rename(str.lower), about
    reader = {"dta": ps.read_dta, "xpt": ps.read_xport}.get(path.suffix[1:], ps.read_sav)
    return reader(str(path), output_format="polars", **options)


@pytest.mark.parametrize("algorithm", ["mondrian", "local", "full-domain"])
@MAKES
def test_intervals_are_codes_with_labels(tmp_path, make, format, algorithm):
    options = {} if algorithm == "mondrian" else {"hierarchies": HIERARCHIES}
    release, path = saved(make(tmp_path), tmp_path, algorithm, format, **options)
    frame, about = read(path)
    texts = release.masked.frame["age"]
    labels = about.variable_value_labels["age"]
    assert [labels[code] for code in frame["age"].to_list()] == texts.to_list()
    assert about.column_names_to_labels["age"] == "Age in years"


@MAKES
def test_labels_follow_a_recoding_and_only_released_values_have_one(tmp_path, make, format):
    options = {"hierarchies": HIERARCHIES}
    release, path = saved(make(tmp_path), tmp_path, "local", format, **options)
    frame, about = read(path)
    texts = release.masked.frame["marital"].to_list()
    labels = about.variable_value_labels["marital"]
    assert {labels[code] for code in frame["marital"].to_list()} == {*labels.values()}
    meaning = {
        "{1, 4}": "single or widowed",
        "{2, 3}": "married or divorced",
        "*": "*",
        **{str(code): label for code, label in MARITAL.items()},
    }
    assert [labels[code] for code in frame["marital"].to_list()] == [meaning[t] for t in texts]
    assert "a label without a person" not in str(about.variable_value_labels)
    assert "no one said this" not in str(about.variable_value_labels)
    for code, text in zip(frame["marital"].to_list(), texts, strict=True):
        assert not text.isdecimal() or code == int(text)  # a code that is left keeps its number


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", "never"),
        ("[2, 4)", "rarely or often"),
        ("[1, 4)", "never to often"),
        ("<3", "up to rarely"),
        (">=3", "often and above"),
        ("[2, 9)", "[2, 9)"),  # no label for 8
        ("<2.5", "<2.5"),
    ],
)
@pytest.mark.parametrize("ending", ["dta", "sav", "por"])
def test_labels_follow_codes_into_an_interval(tmp_path, ending, text, label):
    often = {1: "never", 2: "rarely", 3: "often", 4: "always"}
    source = "dta" if ending == "dta" else "sav"
    write = {"dta": ps.write_dta, "sav": ps.write_sav}[source]
    path = tmp_path / f"a.{source}"
    frame = pl.DataFrame({"smokes": [1, 2, 3, 4]})
    write(frame, str(path), variable_value_labels={"smokes": often})
    labels = np.array([0, 0, 0, 1], np.uint8)
    table = sh.read(path).with_labels("smokes", [text, "*"], labels)
    table.write(tmp_path / f"b.{ending}")
    again, about = read(tmp_path / f"b.{ending}")
    named = about.variable_value_labels["smokes"]
    assert [named[code] for code in again["smokes"].to_list()] == [label] * 3 + ["*"]


def test_no_two_codes_have_one_label(tmp_path):
    """Stata's users often read labels as categories, which pandas refuses if one is there twice."""
    pandas = pytest.importorskip("pandas")
    frame = pl.DataFrame({"smokes": [1, 2, 3]})
    labels = {"smokes": {1: "never", 2: "often", 3: "always"}}
    ps.write_dta(frame, str(tmp_path / "a.dta"), variable_value_labels=labels)
    table = sh.read(tmp_path / "a.dta")
    table = table.with_labels("smokes", ["<3", "(-1, 3)", "[1, 3)"], np.arange(3, dtype=np.uint8))
    table.write(tmp_path / "b.dta")
    found = pandas.read_stata(tmp_path / "b.dta")["smokes"].tolist()
    assert sorted(found) == ["(-1, 3)", "never or often", "up to often"]


def test_letters_of_stata_are_declared_again(tmp_path):
    release, path = saved(samples.stata(tmp_path), tmp_path)
    frame, about = read(path, user_missing=True)
    left = release.masked.frame["income_reason"].to_list()
    letters = {text.removeprefix(".") for text in left if text is not None}
    assert letters == {"a", "z"}
    assert set(about.missing_user_values["income"]) == letters
    assert about.variable_value_labels["income"]["a"] == "refused"
    cells = frame["income"].to_list()
    assert [one if isinstance(one, str) else None for one in cells] == [
        text and text.removeprefix(".") for text in left
    ]
    assert "income_reason" not in frame.columns


@pytest.mark.parametrize("ending", ["sav", "zsav", "por"])
def test_ranges_of_spss_are_declared_again(tmp_path, ending):
    source = samples.spss(tmp_path, "sav" if ending == "por" else ending)
    release, path = saved(source, tmp_path, format=ending)
    frame, about = read(path, user_missing=True)
    left = release.masked.frame["income_reason"].to_list()
    assert {*left} == {None, "99997", "-1"}
    assert sorted((one["lo"], one["hi"]) for one in about.missing_ranges["income"]) == [
        (-1, -1),
        (99_990, 99_999),
    ]
    assert about.variable_value_labels["income"][99_997] == "refused"
    codes = frame["income"].to_list()
    for code, text in zip(codes, left, strict=True):
        assert text is None or code == float(text)
    without, _ = read(path)
    assert without["income"].null_count() >= len(REFUSED) + len(UNKNOWN)


def test_a_portable_file_of_another_program_returns_in_kind(tmp_path):
    """Everything that the file said is there again, read by the library's public function."""
    table = sh.read(samples.portable(tmp_path))
    table.write(tmp_path / "b.por")
    again = sh.read(tmp_path / "b.por")
    assert again.frame.equals(table.frame, null_equal=True)
    for name in table.columns:
        assert again.dictionary.of(name).ranges == table.dictionary.of(name).ranges
        if table.kind(name) != "text":
            assert again.dictionary.of(name).format == table.dictionary.of(name).format
    assert again.dictionary.labels == table.dictionary.labels
    frame, about = ps.read_por(str(tmp_path / "b.por"), output_format="polars")
    assert frame["INCOME"].null_count() == 4
    assert about.variable_value_labels == {
        "INCOME": {99_997: "refused", -1: "does not know"},
        "SEX": {1: "male", 2: "female", 9: "not asked"},
        "JOB": {"NA": "no answer", "baker": "Baker"},
    }


def test_texts_of_a_portable_file_are_as_long_as_their_column(tmp_path):
    """PSPP, unlike the library, fills a shorter text with what it read before."""
    frame = pl.DataFrame({"JOB": ["x", "baker", "NA", None]})
    options = {"missing_ranges": {"JOB": ["NA"]}, "variable_value_labels": {"JOB": {"x": "none"}}}
    ps.write_sav(frame, str(tmp_path / "a.sav"), **options)
    sh.read(tmp_path / "a.sav").write(tmp_path / "b.por")
    content = (tmp_path / "b.por").read_bytes().replace(b"\r\n", b"")
    assert b"F5/x    5/baker5/NA   5/     Z" in content
    assert b"85/NA   D1/3/JOB1/5/x    4/none" in content
    assert sh.read(tmp_path / "b.por").frame.equals(sh.read(tmp_path / "a.sav").frame)


def test_labels_that_a_portable_file_cannot_hold(tmp_path):
    """It has ASCII only; a code without its label would say nothing, so its text stands there."""
    frame = pl.DataFrame({"town": [1, 2, 3, 4]})
    labels = {1: "Köln", 2: "Bonn", 4: "Jena"}
    options = {"variable_value_labels": {"town": labels}, "column_labels": {"town": "Größe"}}
    ps.write_sav(frame, str(tmp_path / "a.sav"), **options)
    table = sh.read(tmp_path / "a.sav")
    table.write(tmp_path / "b.por")
    again, about = read(tmp_path / "b.por")
    assert again["town"].to_list() == [1, 2, 3, 4]
    assert about.column_names_to_labels == {"town": None}
    assert about.variable_value_labels["town"] == {2: "Bonn", 4: "Jena"}
    joined = table.with_labels("town", ["{1, 2}", "4", "*"], np.array([0, 0, 1, 1], np.uint8))
    joined.write(tmp_path / "c.por")
    again, about = read(tmp_path / "c.por")
    told = about.variable_value_labels["town"]
    assert [told[code] for code in again["town"].to_list()] == ["{1, 2}"] * 2 + ["Jena"] * 2
    long = "B" * 130
    ps.write_dta(frame, str(tmp_path / "l.dta"), variable_value_labels={"town": {4: long}})
    sh.read(tmp_path / "l.dta").write(tmp_path / "l.por")
    _, about = read(tmp_path / "l.por")
    assert about.variable_value_labels["town"] == {4: "B" * 117 + "..."}
    odd = table.with_labels("town", ["am Fluß", "*"], np.array([0, 0, 1, 1], np.uint8))
    with pytest.raises(InputError, match="ASCII"):
        odd.write(tmp_path / "d.por")


@pytest.mark.parametrize("format", ["sav", "por"])
def test_open_ranges_stay_open(tmp_path, format):
    frame = pl.DataFrame({"A": [1.0, -5.0, 7.0], "B": [1.0, 995.0, 2.0]})
    ranges = {"A": [{"lo": -np.inf, "hi": 0}, 7], "B": [{"lo": 990, "hi": np.inf}]}
    ps.write_sav(frame, str(tmp_path / "a.sav"), missing_ranges=ranges)
    table = sh.read(tmp_path / "a.sav")
    assert table.frame["A_reason"].to_list() == [None, "-5", "7"]
    table.write(tmp_path / f"b.{format}")
    _, about = read(tmp_path / f"b.{format}", user_missing=True)
    found = {name.upper(): of for name, of in about.missing_ranges.items()}
    assert found["A"] == [{"lo": -np.inf, "hi": 0}, {"lo": 7, "hi": 7}]
    assert found["B"] == [{"lo": 990, "hi": np.inf}]


def test_missing_values_stay_declared_where_nobody_has_one(tmp_path):
    frame = pl.DataFrame({"jobs": [1, 2, 3, 4], "pay": [10, 20, 30, 40]})
    ranges = {"jobs": [9], "pay": [{"lo": 90, "hi": 99}]}
    ps.write_sav(frame, str(tmp_path / "a.sav"), missing_ranges=ranges)
    table = sh.read(tmp_path / "a.sav").with_numbers({"pay": np.array([10.0, 20.0, 30.0, 95.0])})
    table.write(tmp_path / "b.sav")
    again, about = read(tmp_path / "b.sav", user_missing=True)
    assert about.missing_ranges == {"jobs": [{"lo": 9, "hi": 9}]}
    assert again["pay"].to_list() == [10, 20, 30, 95]  # a masked number is nobody's reason


def test_a_second_reader_opens_them(tmp_path):
    pandas = pytest.importorskip("pandas")
    release, path = saved(samples.stata(tmp_path), tmp_path)
    frame = pandas.read_stata(path, convert_categoricals=True)
    assert frame["age"].astype(str).tolist() == release.masked.frame["age"].to_list()
    with pandas.io.stata.StataReader(path) as reader:
        assert reader.variable_labels()["income"] == "Net income"
    plain = sh.Table(pl.DataFrame({"age": [31, 40], "city": ["Bern", "Jena"]}))
    plain.write(tmp_path / "a.xpt")
    again = pandas.read_sas(tmp_path / "a.xpt", encoding="utf-8")
    assert again.to_dict("list") == {"age": [31.0, 40.0], "city": ["Bern", "Jena"]}


def test_a_column_that_is_left_keeps_labels_and_format(tmp_path):
    path = samples.stata(tmp_path)
    roles = sh.Roles(identifiers=["pid"], quasi_identifiers=["age"], insensitive=["sex", "income"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = sh.read(path, roles=roles).drop(["marital", "ill"])
        plan = sh.Plan([sh.Generalize("mondrian", k=4)], require=[sh.KAnonymity(4)])
        out = sh.protect(table, plan).save(tmp_path / "out", format="dta")
    _, about = read(out / "public" / "data.dta")
    assert about.variable_value_labels["sex"] == SEX
    assert about.original_variable_types["income"] == "%9.1f"
    assert about.original_variable_types["born"] == "%td"
    assert "marital" not in about.variable_value_labels


def test_values_and_reasons_stay_together(tmp_path):
    """A step that moves only the values is refused; nothing is written."""
    table = sh.read(samples.stata(tmp_path), roles=ROLES)
    moved = np.roll(np.arange(len(table)), 1)
    apart = table.with_cells_of({"income": moved})
    with pytest.raises(InputError, match="'income_reason'"):
        apart.settled()
    together = table.with_cells_of({"income": moved, "income_reason": moved})
    assert together.settled().frame.equals(together.frame)


def test_masked_reasons_are_dropped(tmp_path):
    table = sh.read(samples.stata(tmp_path), roles=ROLES)
    refused = np.isin(np.arange(len(table)), REFUSED)
    starred = table.starred(["income_reason"], refused).settled()
    assert starred.frame["income_reason"].drop_nulls().unique().to_list() == [".z"]
    both = table.starred(["income"], np.ones(len(table), np.bool_)).settled()
    assert both.frame["income"].null_count() == len(REFUSED) + len(UNKNOWN)
    assert both.present("income_reason").sum() == len(REFUSED) + len(UNKNOWN)


@pytest.mark.parametrize(
    ("made", "name"),
    [(samples.stata, "b.dta"), (samples.spss, "b.sav"), (samples.spss, "b.zsav")],
)
def test_reasons_under_another_name_stay_a_column(tmp_path, made, name):
    """No program has a missing value for what a hierarchy joined."""
    table = sh.read(made(tmp_path))
    reasons = table.dictionary.reasons["income"]
    rows = np.where(table.present(reasons), 0, 1)
    joined = table.with_labels(reasons, ["no answer", None], rows)
    joined.write(tmp_path / name)
    again = sh.read(tmp_path / name).frame
    assert again[reasons].to_list() == joined.frame[reasons].to_list()
    assert again["income"].to_list() == joined.frame["income"].to_list()


def test_a_value_among_the_declared_ones_is_not_written_into_their_cells(tmp_path):
    """A masked number would be read as a reason; so the reasons keep a column of their own."""
    table = sh.read(samples.spss(tmp_path), roles=ROLES)
    values = np.where(table.present("income"), 99_995.0, 0.0)
    table.with_numbers({"income": values}).write(tmp_path / "a.sav")
    frame, about = read(tmp_path / "a.sav")
    assert frame["income"].drop_nulls().unique().to_list() == [99_995.0]
    assert "income" not in about.missing_ranges
    assert "income_reason" in frame.columns


def test_texts_that_are_missing_return_to_their_cells(tmp_path):
    frame = pl.DataFrame({"job": ["baker", "NA", "smith", "baker"]})
    labels = {"job": {"NA": "no answer", "baker": "Baker", "king": "King"}}
    options = {"missing_ranges": {"job": ["NA"]}, "variable_value_labels": labels}
    ps.write_sav(frame, str(tmp_path / "a.sav"), **options)
    sh.read(tmp_path / "a.sav").write(tmp_path / "b.sav")
    again, about = read(tmp_path / "b.sav", user_missing=True)
    assert again.equals(frame)
    assert about.variable_value_labels == {"job": {"NA": "no answer", "baker": "Baker"}}
    assert about.missing_ranges == {"job": [{"lo": "NA", "hi": "NA"}]}


@pytest.mark.parametrize(("ending", "reason"), [("dta", "a"), ("sav", -1.0)])
def test_reasons_stay_beside_numbers_that_became_many_texts(tmp_path, ending, reason):
    """More texts than a format has labels stand as texts, and no reason can be among them."""
    rows, path = 10_010, str(tmp_path / f"a.{ending}")
    frame = pl.DataFrame({"x": pl.Series([reason, *map(float, range(rows - 1))], dtype=pl.Object)})
    if ending == "dta":
        ps.write_dta(frame, path, missing_user_values={"x": ["a"]}, version=14)
    else:
        frame = frame.with_columns(pl.Series("x", frame["x"].to_list(), dtype=pl.Float64))
        ps.write_sav(frame, path, missing_ranges={"x": [reason]})
    table = sh.read(path)
    texts = [f"[{row}, {row + 1})" for row in range(rows)]
    table = table.with_labels("x", texts, np.arange(-1, rows - 1, dtype=np.int32))
    assert table.coding(ending).reasons == {}
    table.write(tmp_path / f"b.{ending}")
    frame, about = read(tmp_path / f"b.{ending}")
    assert frame["x"].to_list()[:2] == ["", "[0, 1)"]
    assert frame["x_reason"].to_list()[1] == ""
    assert frame["x_reason"].to_list()[0] in (".a", "-1")
    assert about.missing_ranges == {}


def test_pseudonyms_of_numbers_are_texts(tmp_path):
    frame = pl.DataFrame({"person": [1, 1, 2, 2] * 10, "age": list(range(20, 60))})
    ps.write_dta(frame, str(tmp_path / "a.dta"), version=14, column_labels={"person": "Number"})
    table = sh.read(tmp_path / "a.dta", roles=sh.Roles(unit="person", quasi_identifiers=["age"]))
    plan = sh.Plan([sh.Generalize("mondrian", k=2)], require=[sh.KAnonymity(2)], pseudonyms=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        out = sh.protect(table, plan).save(tmp_path / "out", format="dta")
    assert sh.verify(out, original=table).holds
    again, about = read(out / "public" / "data.dta")
    assert again["person"].dtype == pl.String
    assert "person" not in about.variable_value_labels


# -- what a format cannot hold


@pytest.mark.parametrize(("format", "lost"), [("csv", "labels"), ("xpt", "labels of values")])
def test_losses_are_told(tmp_path, format, lost):
    table = sh.read(samples.stata(tmp_path), roles=ROLES)
    assert any(lost in told for told in table.check_holds(format))
    assert any("columns of their own" in told for told in table.check_holds(format))
    step = sh.Generalize("mondrian", k=4, hierarchies={"marital": HIERARCHIES["marital"]})
    release = sh.protect(table, sh.Plan([step], require=[sh.KAnonymity(4)]))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        out = release.save(tmp_path / "out", format=format)
    told = [str(one.message) for one in warned if one.category is DialectWarning]
    assert len(told) == len(table.check_holds(format))
    assert sh.verify(out, original=table).holds
    assert table.check_holds("dta") == []


def test_another_program_gets_the_reasons_as_a_column(tmp_path):
    table = sh.read(samples.stata(tmp_path), roles=ROLES)
    table.write(tmp_path / "a.sav")
    frame, about = read(tmp_path / "a.sav")
    assert frame["income_reason"].unique().sort().to_list() == ["", ".a", ".z"]
    assert about.variable_value_labels["sex"] == SEX


def test_sas7bdat_cannot_be_written(tmp_path):
    table = sh.Table(pl.DataFrame({"a": [1, 1]}), sh.Roles(quasi_identifiers=["a"]))
    with pytest.raises(InputError, match=r"sas7bdat.*'xpt'"):
        table.write(tmp_path / "a.sas7bdat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = sh.protect(table, sh.Plan())
    with pytest.raises((InputError, ReleaseError), match="'xpt'"):
        release.save(tmp_path / "out", format="sas7bdat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("format", "frame", "keyword"),
    [
        ("dta", {"first name": [1]}, "names"),
        ("dta", {"a" * 33: [1]}, "names"),
        ("dta", {"double": [1]}, "names"),
        ("sav", {"ä" * 33: [1]}, "names"),
        ("sav", {"age": [1], "AGE": [2]}, "upper and lower case"),
        ("xpt", {"größe": [1]}, "names"),
        ("por", {"postcodes": [1]}, "names"),
        ("dta", {"a": ["x" * 2045]}, "longer than 2,044"),
        ("por", {"a": ["x" * 256]}, "longer than 255"),
        ("por", {"a": ["Köln"]}, "ASCII"),
        ("sav", {"a": ["x", ""]}, "empty"),
        ("xpt", {"a": ["x "]}, "space"),
        ("dta", {"a": ["x\0"]}, "NUL"),
        ("dta", {"a": [2**53 + 1]}, "15 digits"),
        ("xpt", {"a": [1e80]}, "too large"),
        ("sav", {"a": [float("inf")]}, "infinite"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_file_is_there(tmp_path, format, frame, keyword):
    with pytest.raises(InputError, match=keyword) as caught:
        sh.Table(pl.DataFrame(frame)).write(tmp_path / f"a.{format}")
    assert not list(tmp_path.iterdir())
    assert "xx" not in str(caught.value)


@pytest.mark.parametrize("format", ["dta", "sav", "zsav", "por", "xpt"])
def test_limits_are_reached(tmp_path, format):
    longest = {"dta": 2044, "por": 255}.get(format, 32_767)
    name = {"dta": "a" * 32, "por": "A" * 8, "xpt": "a" * 32}.get(format, "a" * 64)
    frame = pl.DataFrame({name: ["x" * longest, None], "N": [-(2**53), 2**31]})
    sh.Table(frame).write(tmp_path / f"a.{format}")
    assert sh.read(tmp_path / f"a.{format}").frame.equals(frame, null_equal=True)
