"""Tables that are fetched from their origin: read, checked by their values, and kept."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal.app.cli import app
from shoal.errors import InputError
from shoal.study import built_in, fetch_tables, run_study
from shoal.study.data._fetching import Origin, checksum

pd = pytest.importorskip("pandas", reason="the extra 'study' is not installed")
rdata = pytest.importorskip("rdata", reason="the extra 'study' is not installed")


def save(file, **frames):
    """What R's ``save`` writes for some data frames."""
    rdata.write_rda(file, {name: pd.DataFrame(columns) for name, columns in frames.items()})


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """The study with small tables that are kept in a folder of this machine."""
    home = tmp_path / "home"
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    study, made = built_in("swap-correlations"), {}
    for place, (path, given) in enumerate(study.origins.items()):
        columns = {name: [place, 7, n] for n, name in enumerate(given.columns)}
        file = tmp_path / given.file_name
        reals = {name: list(map(float, values)) for name, values in columns.items()}
        save(file, other={"x": [1]}, frame=reals)
        sums = {"url": file.as_uri(), "checksum": checksum(columns)}
        made[path] = replace(given, **sums)
    small = replace(study, origins=made)
    monkeypatch.setattr("shoal.study.builtin.built_in", lambda name: small)
    return tmp_path


def test_tables_are_fetched_once_checked_and_found_by_the_study(origin):
    found = fetch_tables("swap-correlations")
    assert [(one.name, one.rows) for one in found] == [("census", 3), ("eia", 3)]
    assert all("GPL-2" in one.licence for one in found)
    assert found[0].origin.endswith("CASCrefmicrodata.rda")
    kept = pl.read_parquet(origin / "home" / "shoal" / "casc" / "census.parquet")
    assert kept.width == 13
    assert kept["AGI"].to_list() == [0, 7, 1]
    assert kept["AGI"].dtype == pl.Int64
    (source, _) = built_in("swap-correlations").design("quick").tables
    assert source.file() == found[0].file
    for file in origin.glob("*.rda"):
        file.unlink()
    assert fetch_tables("swap-correlations") == found  # nothing is requested twice


@pytest.mark.parametrize("what", ["another frame", "a part of it", "no file of R", "nothing"])
def test_another_file_than_the_study_was_made_with_is_refused(origin, what):
    file = origin / "EIA.rda"
    if what == "another frame":
        save(file, EIA={"age": [30, 52]})
    else:
        whole = file.read_bytes()
        wrong = {"a part of it": whole[: len(whole) // 2], "no file of R": b"age,pay\n3,4\n"}
        file.write_bytes(wrong.get(what, b""))
    with pytest.raises(InputError, match="checksum") as error:
        fetch_tables("swap-correlations")
    assert "'eia'" in str(error.value)
    assert "'census'" not in str(error.value)  # it is kept
    assert (origin / "home" / "shoal" / "casc" / "census.parquet").is_file()
    assert not list((origin / "home" / "shoal" / "casc").glob("eia*"))


def test_without_a_network_a_sentence_says_what_to_put_where(origin, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(origin / "data"))
    (origin / "EIA.rda").rename(origin / "aside")
    with pytest.raises(InputError, match="could not be fetched from file:") as error:
        fetch_tables("swap-correlations")
    place = origin / "data" / "casc" / "EIA.rda"
    assert f"save it as {place}" in str(error.value)
    place.parent.mkdir(parents=True, exist_ok=True)
    (origin / "aside").rename(place)
    found = fetch_tables("swap-correlations")
    assert [one.file.parent for one in found] == [place.parent] * 2


def test_a_folder_that_cannot_be_written_is_named(origin, monkeypatch):
    (origin / "taken").write_text("")
    monkeypatch.setenv("SHOAL_DATA", str(origin / "taken"))
    with pytest.raises(InputError, match="SHOAL_DATA"):
        fetch_tables("swap-correlations")


def test_a_study_without_its_tables_says_how_to_get_them(origin):
    with pytest.raises(InputError, match="shoal study fetch swap-correlations"):
        run_study("swap-correlations", origin / "out")
    assert not (origin / "out").exists()


def test_a_table_that_has_no_origin_is_named(origin, monkeypatch):
    bare = replace(built_in("swap-correlations"), origins={})
    monkeypatch.setattr("shoal.study.builtin.built_in", lambda name: bare)
    with pytest.raises(InputError, match="'census'"):
        fetch_tables("swap-correlations")


def test_a_table_that_was_made_by_hand_is_named_with_what_it_was_made_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="SHOAL_DATA") as error:
        fetch_tables("tradeoff")
    said = str(error.value)
    assert "'openml/orange_juice.parquet', made from OJ of https://github.com/cran/ISLR" in said
    assert "breast_cancer" not in said  # scikit-learn has it


def test_what_is_here_is_named_with_where_it_came_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openml").mkdir()
    for source in built_in("tradeoff").design("quick").tables:
        if source.path is not None:
            pl.DataFrame({"x": [1, 2]}).write_parquet(tmp_path / source.path)
    found = {one.name: one for one in fetch_tables("tradeoff")}
    assert found["breast_cancer"].file is None
    assert found["breast_cancer"].origin.startswith("scikit-learn")
    assert found["orange_juice"].rows == 2
    assert found["orange_juice"].origin.startswith("OJ of ")


@pytest.mark.parametrize("name", ["mixed-ml", "tradeoff"])
def test_what_tables_were_made_from_is_said_of_tables_of_the_study(name):
    study = built_in(name)
    paths = {source.path for source in study.design("full").tables}
    assert set(study.made_from) <= paths


def test_every_origin_is_of_a_table_of_its_study_at_a_fixed_version():
    study = built_in("swap-correlations")
    paths = {source.path for source in study.design("full").tables}
    assert set(study.origins) == paths
    for one in study.origins.values():
        assert isinstance(one, Origin)
        assert one.url.startswith("https://")
        assert "cf3251017482" in one.url  # a commit, not a branch that moves


def test_the_command_fetches_and_says_from_where(origin):
    told = CliRunner().invoke(app, ["study", "fetch", "swap-correlations"])
    assert told.exit_code == 0
    assert "census" in told.stdout
    assert "GPL-2" in told.stdout
    plain = CliRunner().invoke(app, ["study", "fetch", "swap-correlations", "--json"])
    assert [one["rows"] for one in json.loads(plain.stdout)["tables"]] == [3, 3]
    assert CliRunner().invoke(app, ["study", "fetch"]).exit_code == 2
