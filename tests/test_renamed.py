"""Old names of parameters: they work, warn once and name the new one."""

import copy
import inspect
import pickle
import warnings

import polars as pl
import pytest

import shoal as sh
from shoal.errors import ParameterError, RenamedWarning
from shoal.hints import renamed_parameters

MODEL = sh.LDiversity(2)
METHODS = [sh.Microaggregate, sh.Swap]


@pytest.mark.parametrize("method", METHODS)
def test_an_old_name_warns_once_and_works(method):
    with pytest.warns(RenamedWarning, match="models") as told:
        step = method(5, groups_satisfy=MODEL)
    assert step == method(5, models=MODEL)
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(RenamedWarning, match="seconds"):
        assert method(5, refine=True, refine_seconds=2.0).seconds == 2.0


def test_set_params_takes_an_old_name():
    step = sh.Swap(5)
    with pytest.warns(RenamedWarning, match="models") as told:
        step.set_params(groups_satisfy=MODEL)
    assert step.models == MODEL
    assert len(told) == 1
    assert "groups_satisfy" not in step.get_params()


def test_an_attribute_has_its_old_name_too():
    step = sh.Swap(5, models=MODEL)
    with pytest.warns(RenamedWarning, match="models"):
        assert step.groups_satisfy == MODEL
    with pytest.warns(RenamedWarning, match="models"):
        step.groups_satisfy = sh.LDiversity(3)
    assert step.models == sh.LDiversity(3)


@pytest.mark.parametrize("method", ["microaggregate", "swap"])
def test_a_plan_with_old_names_is_written_with_new_ones(method, tmp_path):
    old = tmp_path / "old.toml"
    old.write_text(
        f'[[steps]]\nmethod = "{method}"\nk = 5\nrefine = true\nrefine_seconds = 0.5\n'
        "groups_satisfy = {l_diversity = 2}\n"
    )
    with pytest.warns(RenamedWarning) as told:
        plan = sh.Plan.load(old)
    assert sorted(str(one.message).split("'")[1] for one in told) == [
        "groups_satisfy",
        "refine_seconds",
    ]
    assert plan.steps[0].models == MODEL
    plan.save(tmp_path / "new.toml")
    written = (tmp_path / "new.toml").read_text()
    assert "groups_satisfy" not in written
    assert "refine_seconds" not in written
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sh.Plan.load(tmp_path / "new.toml").steps == plan.steps


def test_both_names_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="groups_satisfy"):
        sh.Swap(5, models=MODEL, groups_satisfy=MODEL)
    with pytest.raises(ParameterError, match="groups_satisfy"):
        sh.Swap(5).set_params(models=MODEL, groups_satisfy=MODEL)
    step = {"method": "swap", "k": 5, "seconds": 1.0, "refine_seconds": 1.0}
    with pytest.raises(sh.errors.InputError, match="refine_seconds"):
        sh.Plan.from_dict({"steps": [step]})


def test_a_pickle_of_an_earlier_version_is_read():
    step = sh.Swap(5, models=MODEL)
    state = {**vars(step)}
    state["groups_satisfy"] = state.pop("models")
    back = copy.copy(sh.Swap(5))
    back.__setstate__(state)
    assert back == step == pickle.loads(pickle.dumps(step))


def test_a_function_takes_an_old_name():
    @renamed_parameters(budget="seconds")
    def work(*, seconds=None):
        return seconds

    with pytest.warns(RenamedWarning, match="seconds") as told:
        assert work(budget=3) == 3
    assert told[0].filename == __file__
    assert work(seconds=3) == 3
    with pytest.raises(ParameterError, match="budget"):
        work(seconds=3, budget=3)


def test_every_measure_of_two_tables_takes_the_original_first():
    for name, one in {**sh.risk.discover_risks(), **sh.utility.discover_utilities()}.items():
        signature = inspect.signature(one.function).parameters.values()
        tables = [each.name for each in signature if each.kind is not each.KEYWORD_ONLY]
        assert tables == (["original", "masked"] if one.needs_original else ["table"]), name


def test_options_of_measures_are_checked_in_one_place():
    """No measure words an error about the range of an option itself."""
    refused = {}
    for name, one in {**sh.risk.discover_risks(), **sh.utility.discover_utilities()}.items():
        table = sh.Table(pl.DataFrame({"age": [1, 1]}), sh.Roles(quasi_identifiers=["age"]))
        tables = (table, table) if one.needs_original else (table,)
        for option in one.options:
            with pytest.raises(ParameterError) as told:
                one.function(*tables, **{option: object()})
            refused[name, option] = str(told.value)
    assert len(refused) > 40
    assert not [
        place
        for place, said in refused.items()
        if f"The '{place[1]}' parameter of {place[0]} must be" not in said
    ]
