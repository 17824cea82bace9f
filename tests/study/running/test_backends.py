"""A cluster gives the same results as this machine, and reports failures in a sentence."""

from __future__ import annotations

import sys
import textwrap
import time
from types import SimpleNamespace

import pytest

from shoal import __version__
from shoal.errors import InputError, MissingExtra
from shoal.study._design import Study
from shoal.study.running import _runner, _workers
from shoal.study.running._runner import keys_of, run
from shoal.study.running._store import Store


@pytest.fixture
def study_here(people_file, monkeypatch):
    """A study that names its table as seen from this folder, which is not that of the workers."""
    monkeypatch.chdir(people_file.parent)
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    (people_file.parent / "study.toml").write_text(
        textwrap.dedent(f"""
        seeds = 2
        [[tables]]
        path = "{people_file.name}"
        target = "ill"
        rows = 120
        [[variants]]
        name = "add_noise"
        steps = [{{ method = "add_noise", epsilon = 1.0 }}]
        [[variants]]
        name = "impossible"
        steps = [{{ method = "swap", k = 301 }}]
        [[measures]]
        measure = "uniqueness"
        [[measures]]
        measure = "total_variation"
        """)
    )
    return Study.load("study.toml")


def outcomes(study, folder):
    """The result of every task, without the time it took."""
    found = Store(folder).read(keys_of(study).values())
    assert len(found) == 10
    facts = {
        key: {k: v for k, v in one.facts.items() if k != "masking"} for key, one in found.items()
    }
    return {key: (one.status, str(one.value), one.reason, facts[key]) for key, one in found.items()}


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory):
    """Two real processes with one thread each; nobody's client is the default one."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path_factory.mktemp("dask")),
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


@pytest.fixture
def dask_is_named(dask_cluster):
    """What the environment variable DASK_SCHEDULER_ADDRESS does, which is read on import."""
    import dask

    with dask.config.set({"scheduler-address": dask_cluster.scheduler_address}):
        yield dask_cluster


def test_dask_finds_what_this_machine_finds(study_here, dask_is_named, tmp_path):
    from distributed import Client

    told = []
    ended = run(
        study_here,
        tmp_path / "dask",
        backend="dask",
        progress=lambda label, share: told.append(share),
    )
    assert (ended.tasks, ended.done, ended.failed, ended.computed) == (10, 6, 4, 10)
    assert told == sorted(told)
    assert len(told) == 5  # one for each masked table, as soon as it is measured
    run(study_here, tmp_path / "here", jobs=1)
    assert outcomes(study_here, tmp_path / "dask") == outcomes(study_here, tmp_path / "here")
    assert run(study_here, tmp_path / "dask", backend="dask").computed == 0
    with Client(dask_is_named, set_as_default=False) as client:
        threads = client.run(lambda: __import__("polars").thread_pool_size())
        assert set(threads.values()) == {1}
        folders = client.run(lambda: __import__("os").getcwd())
        assert str(tmp_path) not in folders.values()


def test_a_client_that_is_there_is_used_and_left_open(study_here, dask_cluster, tmp_path):
    from distributed import Client

    with Client(dask_cluster) as client:
        assert run(study_here, tmp_path, jobs=1, backend="dask").complete
        assert client.status == "running"


def spread(*tasks, **options):
    def lost(task, reason):
        return "lost", task[0], reason

    given = {"backend": "dask", "jobs": None, "lost": lost} | options
    return list(_workers.on_a_cluster(eval, iter(tasks), **given))


def test_a_worker_that_dies_costs_the_task_it_did(dask_is_named, tmp_path, monkeypatch):
    """One task ends the first worker that tries it, and one ends all; the others succeed."""
    ends = "__import__('os')._exit(1)"
    mark = f"__import__('pathlib').Path({str(tmp_path / 'mark')!r})"
    once = f"'twice' if {mark}.exists() else ({mark}.touch(), {ends})"
    assert spread((once,), ("2",), jobs=1) == ["twice", 2]
    monkeypatch.setattr(dask_is_named.scheduler, "allowed_failures", 0)
    assert spread((ends,), ("4",), jobs=1) == [("lost", ends, _workers._LOST), 4]


def test_workers_with_another_shoal_are_refused(dask_is_named, monkeypatch):
    monkeypatch.setattr(_workers, "__version__", "0.0.0")
    with pytest.raises(InputError, match=rf"it has {__version__}"):
        spread(("1",))


def test_workers_without_shoal_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "shoal", None)
    refusal, found = _workers._beginning("1.0")(b"not even read")
    assert found is None
    assert "does not have Shoal 1.0" in refusal
    assert "install the same version" in refusal


def test_what_was_stopped_is_not_begun(dask_is_named, tmp_path):
    """Ctrl-C is an exception where results are awaited: submitted tasks are withdrawn."""
    touched = [f"__import__('pathlib').Path({str(tmp_path)!r}, '{n}').touch()" for n in range(50)]
    slowly = [f"(__import__('time').sleep(0.2), {one})" for one in touched]
    given = {"backend": "dask", "jobs": 50, "lost": None}
    outcomes = _workers.on_a_cluster(eval, iter([(one,) for one in slowly]), **given)
    next(outcomes)
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt)
    for _ in range(200):  # the scheduler hears of it a moment later
        if not dask_is_named.scheduler.tasks:
            break
        time.sleep(0.05)
    assert not dask_is_named.scheduler.tasks
    assert len(list(tmp_path.iterdir())) < 50


def test_a_worker_that_lacks_the_table_says_so(study_here, people_file):
    work = [next(iter(_runner._open_cells(study_here, keys_of(study_here), set())))]
    ((cell, todo, folder, data, until),) = _runner._for_elsewhere(iter(work), study_here, None)

    def measured(data):
        return _runner.measure_elsewhere(cell, todo, folder, data, until)

    assert cell.table.path == str(people_file)
    assert {one.status for one in measured(data)} == {"done"}
    other = measured("another hash")
    assert {one.status for one in other} == {"failed"}
    assert "has other content there" in other[0].reason
    people_file.unlink()
    absent = measured(data)
    assert [one.key for one in absent] == [key for _, key in todo]
    assert f"there is no file '{people_file}' there; put it there" in absent[0].reason


def test_a_table_without_a_file_here_is_not_looked_for_elsewhere(people_file):
    source = {"scikit_learn": "iris", "path": "iris.csv", "target": "target"}
    variants = [{"name": "round", "steps": [{"method": "round", "base": 1}]}]
    given = {"tables": [source], "variants": variants, "measures": ["uniqueness"]}
    study = Study.from_dict(given)
    work = _runner._open_cells(study, keys_of(study), set())
    cells = [task[0] for task in _runner._for_elsewhere(iter(work), study, None)]
    assert [cell.table.path for cell in cells] == [None, None]


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("spark", "pyspark")])
def test_a_package_that_is_missing_is_named(backend, package, monkeypatch):
    for name in (package, f"{package}.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf'backend .{backend}.*pip install ".*\[{backend}\]"'):
        spread(("1",), backend=backend)


def test_a_cluster_that_nobody_named_is_asked_for():
    dask = pytest.importorskip("dask", reason="distributed is not installed")
    with (
        dask.config.set({"scheduler-address": None}),
        pytest.raises(InputError, match="environment variable DASK_SCHEDULER_ADDRESS"),
    ):
        spread(("1",))


def test_a_scheduler_that_does_not_answer_is_named():
    dask = pytest.importorskip("dask", reason="distributed is not installed")
    given = {"scheduler-address": "tcp://127.0.0.1:1", "distributed.comm.timeouts.connect": "0.2s"}
    with (
        dask.config.set(given),
        pytest.raises(InputError, match=r"scheduler at 'tcp://127\.0\.0\.1:1' does not answer"),
    ):
        spread(("1",))


def test_a_cluster_without_workers_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(_workers, "_PATIENCE", -1.0)
    scheduler = SimpleNamespace(address="tcp://there:8786")
    client = SimpleNamespace(nthreads=dict, scheduler=scheduler)
    with pytest.raises(InputError, match="dask worker tcp://there:8786 --nthreads 1"):
        _workers.Dask(client, None).room()


def test_nothing_to_do_starts_no_cluster():
    assert spread() == []


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_finds_what_this_machine_finds(study_here, tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    run(study_here, tmp_path / "here", jobs=1)
    with sql.SparkSession.builder.master("local[2]").getOrCreate():
        told = []
        ended = run(
            study_here,
            tmp_path / "spark",
            backend="spark",
            progress=lambda label, share: told.append(share),
        )
        assert (ended.computed, ended.failed, len(told)) == (10, 4, 5)
        assert outcomes(study_here, tmp_path / "spark") == outcomes(study_here, tmp_path / "here")
        found = spread(("__import__('os')._exit(1)",), ("1",), ("2",), backend="spark")
        assert sorted(each for each in found if isinstance(each, int)) == [1, 2]
        assert found.count(("lost", "__import__('os')._exit(1)", _workers._LOST)) == 1
