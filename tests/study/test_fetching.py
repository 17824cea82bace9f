"""Tables from elsewhere: fetched once and kept, or reported as missing."""

from __future__ import annotations

import hashlib
import http.server
import json
import random
import socket
import sys
import threading
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from shoal.errors import InputError
from shoal.study import Study, TableSource, built_in, run_study
from shoal.study.builtin._builtin import paper
from shoal.study.data import _fetching
from shoal.study.data._fetching import not_found
from shoal.study.running._runner import keys_of

ARFF = """@relation people
@attribute age numeric
@attribute city {Bern,Graz}
@attribute class {good,bad}
@data
31,Bern,good
45,?,bad
52,Graz,good
"""
NUMBER = 987654
STATES = {"DE": "10", "VT": "50"}


@pytest.fixture(autouse=True)
def empty_home(tmp_path, monkeypatch):
    """A data home in which nothing is kept yet, and no folder of tables."""
    home = tmp_path / "home"
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    forget()
    yield home
    forget()


def forget():
    """As in another process."""
    _fetching._why_not_fetched.cache_clear()
    _fetching._UNREACHABLE.clear()


class Server:
    """OpenML, with one small set, on this machine."""

    def __init__(self):
        self.asked = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                answer = server.answers().get(self.path)
                self.send_response(404 if answer is None else 200)
                self.end_headers()
                self.wfile.write(answer or b"")

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def answers(self):
        data = ARFF.encode()
        feature = {"is_ignore": "false", "is_row_identifier": "false"}
        features = [
            {"name": "age", "data_type": "numeric", "number_of_missing_values": "0"},
            {"name": "city", "data_type": "nominal", "number_of_missing_values": "1"},
            {"name": "class", "data_type": "nominal", "number_of_missing_values": "0"},
        ]
        described = {
            "data_set_description": {
                "id": str(NUMBER),
                "name": "people",
                "version": "1",
                "description": "Three people.",
                "format": "ARFF",
                "status": "active",
                "default_target_attribute": "class",
                "url": f"{self.url}/data/people.arff",
                "md5_checksum": hashlib.md5(data).hexdigest(),
            }
        }
        columns = {
            "data_features": {
                "feature": [
                    {"index": str(i), "is_target": str(one["name"] == "class").lower()}
                    | feature
                    | one
                    for i, one in enumerate(features)
                ]
            }
        }
        return {
            f"/info/{NUMBER}": json.dumps(described).encode(),
            f"/features/{NUMBER}": json.dumps(columns).encode(),
            f"/qualities/{NUMBER}": b"{}",
            "/data/people.arff": data,
        }

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def openml(monkeypatch):
    pytest.importorskip("pandas")
    from sklearn.datasets import _openml

    server = Server()
    monkeypatch.setattr(_openml, "_DATA_INFO", f"{server.url}/info/{{}}")
    monkeypatch.setattr(_openml, "_DATA_FEATURES", f"{server.url}/features/{{}}")
    monkeypatch.setattr(_openml, "_DATA_QUALITIES", f"{server.url}/qualities/{{}}")
    monkeypatch.setattr(_openml.time, "sleep", lambda _: None)  # between its retries
    yield server
    if server.thread.is_alive():
        server.stop()


def people(**more):
    return TableSource.from_dict({"openml": NUMBER, "target": "class", **more})


def test_a_set_is_fetched_once_and_kept(openml, empty_home):
    table = people().load()
    assert table.frame.to_dict(as_series=False) == {
        "age": [31, 45, 52],
        "city": ["Bern", None, "Graz"],
        "class": ["good", "bad", "good"],
    }
    assert table.roles.target == "class"
    asked = [f"/info/{NUMBER}", f"/features/{NUMBER}", f"/qualities/{NUMBER}", "/data/people.arff"]
    assert openml.asked == asked
    kept = empty_home / "shoal" / f"openml-{NUMBER}.parquet"
    assert people().file() == kept
    openml.stop()
    forget()
    assert people().load().frame.equals(table.frame)
    # scikit-learn's own copy is also accepted
    kept.unlink()
    forget()
    assert people().load().frame.equals(table.frame)
    assert openml.asked == asked
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_results_of_a_set_are_of_its_content(openml, empty_home):
    before = people().fingerprint()
    assert before == hashlib.sha256(people().file().read_bytes()).hexdigest()
    people().file().unlink()
    pl.DataFrame({"age": [31], "class": ["good"]}).write_parquet(
        empty_home / "shoal" / f"openml-{NUMBER}.parquet"
    )
    assert people().fingerprint() != before


def test_the_target_may_be_called_otherwise_there(openml, tmp_path):
    renamed = people(target="credit", openml_target="class", path="people.parquet")
    assert renamed.load().columns == ["age", "city", "credit"]
    assert renamed.load().roles.sensitive == ("credit",)
    # our own file has our name for it and takes precedence
    pl.DataFrame({"class": [1, 2], "credit": [0, 1]}).write_parquet(tmp_path / "people.parquet")
    assert renamed.load().columns == ["class", "credit"]


def test_a_copy_in_the_folder_of_tables_is_taken_first(openml, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    pl.DataFrame({"class": [7]}).write_parquet(tmp_path / "data" / f"openml-{NUMBER}.parquet")
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path / "data"))
    assert people().load().frame["class"].to_list() == [7]
    assert not openml.asked


def test_without_a_network_a_set_is_said_to_be_missing_and_asked_for_once(openml, empty_home):
    openml.stop()
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            people(name="folk").load()
    assert f"set {NUMBER} at OpenML" in str(caught.value)
    assert _fetching._why_not_fetched.cache_info().misses == 1
    assert not list((empty_home / "shoal").iterdir())


def test_who_cannot_be_reached_is_not_waited_for_again(openml, monkeypatch):
    from sklearn.datasets import _openml

    openml.stop()
    waited = []
    # not time.sleep itself: threads of other tests sleep too
    monkeypatch.setattr(_openml, "time", SimpleNamespace(sleep=waited.append))
    assert people().found()[0] is None
    before = len(waited)
    assert before > 0
    assert TableSource.from_dict({"openml": 31}).found()[0] is None
    assert len(waited) == before


def test_a_set_that_openml_does_not_have(openml):
    with pytest.raises(InputError, match="set 5 at OpenML, which could not be fetched"):
        TableSource.from_dict({"openml": 5}).load()
    assert people().load()  # it was reached, so others are tried


def test_without_pandas_the_line_that_installs_it_is_said(openml, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"which needs the extra 'study'"):
        people().load()


def test_a_home_that_cannot_be_written_is_said_to_be_one(openml, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match="data home"):
        people().load()


# The American Community Survey


def survey(rows, seed):
    """Persons as in the Census Bureau's files, with the columns that tasks need."""
    rng = np.random.default_rng(seed)
    codes = (
        "COW MAR OCCP POBP RELP SEX RAC1P DIS ESP CIT MIG MIL ANC NATIVITY DEAR DEYE DREM".split()
    )
    frame = pl.DataFrame(
        {
            "RT": ["P"] * rows,
            "SERIALNO": [f"2018{i:09d}" for i in range(rows)],
            "AGEP": rng.integers(10, 95, rows),
            "SCHL": rng.integers(1, 25, rows),
            "WKHP": rng.integers(0, 60, rows),
            "PINCP": rng.integers(-5000, 120_000, rows),
            "PWGTP": rng.integers(0, 40, rows),
            "ESR": rng.integers(1, 7, rows),
            "ST": [10] * rows,
            "FER": rng.integers(1, 3, rows),
            "PUBCOV": rng.integers(1, 3, rows),
            **{name: rng.integers(1, 5, rows) for name in codes},
        }
    )
    gone = pl.when(pl.Series(rng.random(rows) < 0.2)).then(None).otherwise(pl.col("COW"))
    return frame.with_columns(gone.alias("COW"))


def write_survey(root, **states):
    folder = root / "2018" / "1-Year"
    folder.mkdir(parents=True, exist_ok=True)
    for state, frame in states.items():
        frame.write_csv(folder / f"psam_p{STATES[state]}.csv")


@pytest.fixture
def folks(empty_home):
    pytest.importorskip("folktables")
    files = {"DE": survey(200, 1), "VT": survey(120, 2)}
    write_survey(empty_home / "folktables", **files)
    return files


def income(*states, **more):
    return TableSource.from_dict({"folktables": "ACSIncome", "states": list(states), **more})


def adults(frame):
    """The filter of the task, as described in its paper."""
    return frame.filter(
        (pl.col("AGEP") > 16)
        & (pl.col("PINCP") > 100)
        & (pl.col("WKHP") > 0)
        & (pl.col("PWGTP") >= 1)
    )


def test_a_task_is_loaded_by_folktables_from_the_files_of_the_survey(folks):
    source = income("DE")
    assert (source.name, source.target) == ("ACSIncome", "PINCP")
    table, chosen = source.load(), adults(folks["DE"])
    features = "AGEP COW SCHL MAR OCCP POBP RELP WKHP SEX RAC1P".split()
    assert table.columns == [*features, "PINCP"]
    assert len(table) == len(chosen) > 50
    for name in ("AGEP", "SCHL", "WKHP"):
        assert table.frame[name].to_list() == chosen[name].to_list()
    # codes are text, and missing values are 0, as in folktables
    assert table.frame["COW"].to_list() == [str(code or 0) for code in chosen["COW"]]
    assert table.frame["PINCP"].to_list() == (chosen["PINCP"] > 50_000).to_list()
    assert table.roles.sensitive == ("PINCP",)


def test_states_are_put_together_in_the_order_given(folks):
    both = income("VT", "DE").load()
    parts = [income(state).load().frame for state in ("VT", "DE")]
    assert both.frame.equals(pl.concat(parts))


def test_a_kept_task_needs_the_survey_no_longer(folks, empty_home):
    before = income("DE").load()
    (empty_home / "folktables" / "2018" / "1-Year" / "psam_p10.csv").unlink()
    forget()
    assert income("DE").load().frame.equals(before.frame)
    assert (empty_home / "shoal" / "ACSIncome-2018-1-Year-DE.parquet").is_file()


def test_what_was_asked_for_is_in_the_key_of_every_result(folks):
    def keys(**table):
        study = Study.from_dict(
            {
                "tables": [{"folktables": "ACSIncome", "name": "x", **table}],
                "variants": [{"name": "round", "steps": [{"method": "round", "base": 5}]}],
                "measures": ["uniqueness"],
            }
        )
        return set(keys_of(study).values())

    first = keys(states=["DE"])
    assert keys(states=["DE"]) == first
    others = [
        keys(states=["VT"]),
        keys(states=["DE", "VT"]),
        keys(states=["DE"], folktables="ACSPublicCoverage"),
    ]
    assert not first.intersection(*others)
    assert all(first.isdisjoint(other) for other in others)


def test_files_of_the_survey_are_looked_for_in_the_folder_of_tables(tmp_path, monkeypatch):
    pytest.importorskip("folktables")
    people = survey(90, 5)
    write_survey(tmp_path / "data" / "folktables", DE=people)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path / "data"))
    assert len(income("DE").load()) == len(adults(people))


def test_nothing_is_printed_and_no_generator_is_seeded(folks, capsys):
    random.seed(11)
    before = random.getstate()
    income("DE").load()
    assert random.getstate() == before
    assert capsys.readouterr().out == ""


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise socket.gaierror("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_without_a_network_a_task_is_said_to_be_missing(folks, no_network, capsys, empty_home):
    with pytest.raises(InputError) as caught:
        income("DE", "WY").load()
    assert "ACSIncome of folktables, 2018, 1-Year, DE, WY, which could not be fetched" in str(
        caught.value
    )
    assert capsys.readouterr().out == ""
    # no incomplete file is left, neither of the survey nor of the task
    folder = empty_home / "folktables" / "2018" / "1-Year"
    assert sorted(path.name for path in folder.iterdir()) == ["psam_p10.csv", "psam_p50.csv"]
    assert not list((empty_home / "shoal").iterdir())


def test_a_year_whose_survey_has_other_columns_is_said_to_have(empty_home):
    pytest.importorskip("folktables")
    folder = empty_home / "folktables" / "2019" / "1-Year"
    folder.mkdir(parents=True)
    survey(30, 1).rename({"RELP": "RELSHIPP"}).write_csv(folder / "psam_p10.csv")
    with pytest.raises(
        InputError, match="2019, 1-Year, DE: the survey of that year lacks a column"
    ):
        income("DE", year=2019).load()


def test_without_folktables_the_line_that_installs_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "folktables", None)
    with pytest.raises(InputError, match=r"which needs the extra 'study'"):
        income("DE").load()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"folktables": "ACSIncom"}, "must be one of 'ACSIncome'"),
        ({"folktables": "ACSIncome", "states": ["XX"]}, "a list of states such as"),
        ({"folktables": "ACSIncome", "states": "CA"}, "a list of states"),
        ({"folktables": "ACSIncome", "year": 2010}, "an integer ≥ 2014"),
        ({"folktables": "ACSIncome", "year": "2018"}, "an integer ≥ 2014"),
        ({"folktables": "ACSIncome", "horizon": "2-Year"}, "'1-Year', '5-Year'"),
        ({"folktables": "ACSIncome", "openml": 31}, "origin"),
        ({"path": "x.csv", "year": 2018}, "'year'"),
        ({"path": "x.csv", "states": ["CA"]}, "'states'"),
        ({"openml": "adult"}, "an integer ≥ 1"),
        ({"target": "y"}, "folktables"),
        ({"path": "x.csv", "rows": 0}, "an integer ≥ 1"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        TableSource.from_dict(given)


def test_the_table_of_the_sampling_study_is_fetched_where_its_file_is_not(empty_home, monkeypatch):
    pytest.importorskip("folktables")
    monkeypatch.setitem(paper("sampling")["presets"]["quick"], "states", ["DE"])
    write_survey(empty_home / "folktables", DE=survey(150, 3))
    study = built_in("sampling").design("quick")
    table, apart = study.tables[0].load_divided(study.folder)
    assert set(table.columns) == set(paper("sampling")["table"]["only"])
    assert len(table) + len(apart) == len(adults(survey(150, 3)))
    # no hierarchies exist for it here, so they are suggested
    assert not any("hierarchies" in step for v in study.variants for step in v.steps)


# What is missing


def test_all_tables_that_are_missing_are_in_one_sentence(openml, tmp_path):
    openml.stop()
    study = Study.from_dict(
        {
            "tables": [
                {"path": "a.csv", "target": "y"},
                {"path": "b.csv", "openml": NUMBER, "name": "b, part"},
                {"path": "b.csv", "openml": NUMBER, "name": "b, all"},
                {"scikit_learn": "iris", "target": "target"},
            ],
            "variants": [{"name": "round", "steps": [{"method": "round", "base": 5}]}],
            "measures": ["uniqueness"],
        }
    )
    with pytest.raises(InputError) as caught:
        run_study(study, tmp_path / "out")
    assert str(caught.value).startswith(
        "The tables 'a' (file 'a.csv'), 'b, part', 'b, all' (file 'b.csv'; set 987654 at OpenML, "
        "which could not be fetched) were not found"
    )
    assert not (tmp_path / "out").exists()


def test_of_many_tables_the_names_are_said():
    told = not_found({f"t{i}": f"file 't{i}.csv'" for i in range(40)})
    assert all(f"'t{i}'" in told for i in range(40))
    assert "file" not in told
