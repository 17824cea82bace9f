"""The net holds: a change that is planted anywhere is seen, and named."""

from __future__ import annotations

import copy
import json

import polars as pl
import pytest

from shoal import Plan, Roles, Round, Table, protect

from .outcome import RECORDED, compare, differences, leaves, of_release
from .runs import RUNS
from .tables import TABLES, draws

FACTS = {
    "k": 3,
    "risk": {"value": 0.333333333, "per_record": "ab"},
    "sizes": [1, 2],
    "none": None,
    "holds": True,
}


def changed(at, value):
    facts = copy.deepcopy(FACTS)
    *way, last = at
    inner = facts
    for name in way:
        inner = inner[name]
    inner[last] = value
    return facts


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (["k"], 2, "k: 3 became 2"),
        (["k"], "3", "k: 3 became '3'"),
        (["risk", "value"], 0.33333334, "risk / value: 0.333333333 became 0.33333334"),
        (["risk", "per_record"], "ac", "risk / per_record: 'ab' became 'ac'"),
        (["sizes", 1], 3, "sizes[1]: 2 became 3"),
        (["none"], 0, "none: None became 0"),
        (["holds"], 1, "holds: True became 1"),
        (["more"], 1, "more: 1 is new"),
    ],
)
def test_a_difference_is_named(at, value, said):
    assert differences(FACTS, changed(at, value)) == [said]


def test_what_is_gone_is_named():
    facts = copy.deepcopy(FACTS)
    del facts["risk"]["value"]
    assert differences(FACTS, facts) == ["risk / value: 0.333333333 is gone"]


def test_the_last_bits_of_a_number_are_no_difference():
    assert differences(FACTS, changed(["risk", "value"], 1 / 3)) == []
    assert differences({"left": 0.0}, {"left": 1e-16}) == []


def test_comparing_says_which_run_and_which_entry(tmp_path):
    compare("some run", FACTS, record=True, folder=tmp_path)
    compare("some run", FACTS, record=False, folder=tmp_path)
    with pytest.raises(AssertionError, match=r"some run differs in 1 entries:\n  k: 3 became 4"):
        compare("some run", changed(["k"], 4), record=False, folder=tmp_path)
    with pytest.raises(AssertionError, match="other run is not on record"):
        compare("other run", FACTS, record=False, folder=tmp_path)


def released(frame, fixed, folder):
    table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    with fixed("planted") as warned:
        release = protect(table, Plan([Round(base=10)]))
        saved = release.save(folder, format="csv")
    return of_release(release, table, saved, warned)


def test_one_cell_or_two_rows_exchanged_are_seen(fixed, tmp_path):
    frame = pl.DataFrame({"age": [21, 22, 38, 39, 41, 44], "ill": list("abcaba")})
    before = released(frame, fixed, tmp_path / "before")
    assert differences(before, released(frame, fixed, tmp_path / "again")) == []
    cell = frame.with_columns(pl.Series("ill", list("abcabc")))
    exchanged = frame[[1, 0, 2, 3, 4, 5]]
    for name, other in (("cell", cell), ("rows", exchanged)):
        found = differences(before, released(other, fixed, tmp_path / name))
        assert {line.partition(":")[0] for line in found} >= {"data / cells", "data / bytes"}


def test_other_keys_are_seen(fixed, tmp_path):
    (run,) = (run for run in RUNS if run.name == "swap")
    table = TABLES[run.table]()
    with fixed("another name") as warned:
        release = protect(table, run.plan())
        folder = release.save(tmp_path / "release", format=run.format)
    with pytest.raises(AssertionError, match=r"(?s)swap differs.*data / cells.*"):
        compare("swap", of_release(release, table, folder, warned), record=False)


def test_no_key_is_on_record():
    for path in RECORDED.rglob("*.json"):
        names = [at.rpartition(" / ")[2] for at, _ in leaves(json.loads(path.read_text("utf-8")))]
        assert not {"key", "created", "shoal"} & set(names), path.stem


def test_the_recipe_of_the_tables():
    """SplitMix64, of whose numbers for the seed 0 these are the second and the third."""
    assert draws("", 2).tolist() == [0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert TABLES["people"]().frame["age"].to_list()[:6] == [47, 18, 29, 49, 56, 56]
