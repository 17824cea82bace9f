"""Held-out rows, words among the options, and measures of some families only."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.errors import InputError
from shoal.study import Results, Study, TableSource
from shoal.study._measures import concrete_options
from shoal.study.data import _tables
from shoal.study.running._runner import run


def source(people_file, **more):
    return TableSource.from_dict({"path": str(people_file), "target": "ill", **more})


def test_rows_are_masked_or_held_out_never_both(people_file):
    everybody = pl.read_parquet(people_file)
    halves = source(people_file, held_out=0.3)
    table, apart = halves.load_divided()
    assert (len(table), len(apart)) == (210, 90)
    both = pl.concat([table.frame, apart.frame])
    assert both.sort(both.columns).equals(everybody.sort(everybody.columns))
    assert table.frame["age"].to_list() != everybody["age"][:210].to_list()
    assert halves.load_divided()[1].frame.equals(apart.frame)
    assert halves.load().frame.equals(table.frame)
    assert table.roles.target == apart.roles.target == "ill"
    assert source(people_file).load_divided()[1] is None


def test_a_rule_sees_only_what_is_masked(people_file, monkeypatch):
    seen = []
    real = _tables.identifying_columns
    monkeypatch.setattr(
        _tables,
        "identifying_columns",
        lambda table, names: seen.append(len(table)) or real(table, names),
    )
    source(people_file, held_out=0.3, roles="part").load()
    assert seen == [210]


def test_rows_are_held_out_of_those_that_are_taken(people_file):
    some = source(people_file, rows=100, held_out=0.3)
    assert (len(some.load()), len(some.load_divided()[1])) == (70, 30)
    whole = source(people_file, rows=100).load().frame
    assert whole.filter(
        pl.col("height").is_in(some.load_divided()[1].frame["height"].to_list())
    ).height


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, True, "some"])
def test_a_share_that_is_none_is_refused(people_file, share):
    with pytest.raises(InputError, match="a number > 0 and < 1"):
        source(people_file, held_out=share)


def test_words_stand_for_what_the_table_has(people_file):
    mine = source(people_file, held_out=0.3)
    found = concrete_options({"control": True, "known": "part", "attack": "distance"}, mine)
    assert len(found["control"]) == 90
    assert found["known"] == ["height"]
    assert found["attack"] == "distance"
    for plain in ({"known": ["age"], "learner": True}, {"holdout": "yes"}):
        assert concrete_options(plain, mine) == plain


def test_what_was_not_held_out_cannot_be_asked_for(people_file):
    with pytest.raises(InputError, match="held_out"):
        concrete_options({"holdout": True}, source(people_file))


def test_a_study_tests_models_and_membership_on_held_out_rows(people_file, tmp_path):
    study = Study.from_dict(
        {
            "tables": [{"path": str(people_file), "target": "ill", "held_out": 0.3}],
            "variants": [{"name": "round", "steps": [{"method": "round", "base": 20}]}],
            "measures": [
                {
                    "measure": "predictive_performance",
                    "learner": "decision-tree",
                    "holdout": True,
                },
                {"measure": "membership_inference", "control": True, "families": ["round"]},
            ],
        }
    )
    assert [len(cell.measures) for cell in study.cells()] == [1, 2]
    ended = run(study, tmp_path, jobs=1)
    assert (ended.tasks, ended.done, ended.failed) == (3, 3, 0)
    results = Results.of(study, tmp_path)
    tested = results.where(measure="predictive_performance", variant="round").rows[0]
    assert tested.facts["details"]["rows"] == {"training": 210, "tested": 90}
    members = results.where(measure="membership_inference").rows
    assert [row.variant for row in members] == ["round"]
    assert (members[0].facts["details"]["persons"], members[0].facts["details"]["control"]) == (
        210,
        90,
    )


def test_another_share_is_another_task(people_file, tmp_path):
    def design(share):
        return Study.from_dict(
            {
                "tables": [{"path": str(people_file), "target": "ill", "held_out": share}],
                "variants": [{"name": "round", "steps": [{"method": "round", "base": 20}]}],
                "measures": ["uniqueness"],
            }
        )

    assert run(design(0.3), tmp_path, jobs=1).computed == 2
    assert run(design(0.3), tmp_path, jobs=1).computed == 0
    assert run(design(0.4), tmp_path, jobs=1).computed == 2
