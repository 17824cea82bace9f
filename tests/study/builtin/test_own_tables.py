"""Built-in studies on one's own tables, and ways to name these."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles
from shoal.errors import InputError, PlanError
from shoal.study import Study, TableSource, built_in, built_in_studies, run_study, tables_at
from shoal.study.builtin import _sampling
from shoal.study.builtin._builtin import paper
from shoal.study.data._tables import sources_of


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def adapted(name, *sources, preset="quick"):
    found = built_in(name)
    return found.elsewhere.design(found.design(preset), sources, preset)


def known(people_file, **more):
    roles = Roles(quasi_identifiers=["age", "city"], sensitive=["ill"])
    return TableSource("people", str(people_file), **{"roles": roles, "target": "ill", **more})


def plain(people_file, **more):
    return TableSource("people", str(people_file), target="ill", **more)


# Ways to name tables


def test_a_file_with_its_target_and_roles(people_file):
    (source,) = tables_at(people_file, target="ill", without=["height"])
    assert (source.name, source.target, source.without) == ("people", "ill", ("height",))
    assert source.load().columns == ["age", "city", "ill"]
    (source,) = tables_at(people_file, target="ill", quasi_identifiers=["age"])
    assert source.roles == Roles(quasi_identifiers=["age"], sensitive=["ill"])
    (source,) = tables_at(people_file, quasi_identifiers=["age"], sensitive=["city", "ill"])
    assert source.roles.sensitive == ("city", "ill")


def test_a_folder_is_all_tables_in_it_under_the_same_roles(tmp_path):
    (tmp_path / "many").mkdir()
    for name in ("b", "a"):
        pl.DataFrame({"x": [1], "y": [2]}).write_csv(tmp_path / "many" / f"{name}.csv")
    (tmp_path / "many" / "notes.txt").write_text("no table")
    found = tables_at(tmp_path / "many", target="y", without=["x"])
    assert [source.name for source in found] == ["a", "b"]
    entry = {"folder": "many", "roles": {"quasi_identifiers": ["x"]}, "without": ["y"]}
    (first, _) = sources_of(entry)
    assert first.load().roles == Roles(quasi_identifiers=["x"])
    assert hash(first)  # workers keep tables by their source
    for wrong, said in (
        ({"folder": "none"}, "no table in the folder 'none'"),
        ({"folder": "many", "name": "x"}, "'name'"),
        ({"folder": "many", "rules": "all"}, "has no parameter 'rules'"),
    ):
        with pytest.raises(InputError, match=said):
            sources_of(wrong)


def test_a_file_lists_tables_that_are_found_beside_it(tmp_path, people_file, monkeypatch):
    (tmp_path / "lists").mkdir()
    people_file.rename(tmp_path / "lists" / "people.parquet")
    listed = tmp_path / "lists" / "mine.toml"
    listed.write_text(
        """
        [[tables]]
        path = "people.parquet"
        target = "ill"
        [[tables]]
        folder = "."
        rows = 20
        """
    )
    monkeypatch.chdir("/")
    one, two = tables_at(listed)
    assert (one.target, two.rows) == ("ill", 20)
    assert len(one.load()) == 300
    with pytest.raises(InputError, match="roles"):
        tables_at(listed, target="ill")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables = [", "not valid TOML"),
        ("title = 'x'", "lists no tables"),
        ("tables = []", "lists no tables"),
        ("tables = ['people.csv']", "lists no tables"),
        ("[[tables]]\npaht = 'x'", "Did you mean 'path'"),
        ("[[tables]]\npath = 3", "'path' .* of a table of a study must be a text"),
        (
            "[[tables]]\npath = 'x.csv'\nhierarchies = 3",
            "'hierarchies' .* of a table .* must be a text",
        ),
        ("[[tables]]\nname = ''\npath = 'x.csv'", "'name' .* of a table .* must be a text"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path, text, said):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        tables_at(tmp_path / "mine.toml")
    with pytest.raises(PlanError, match="no file of tables"):
        tables_at(tmp_path / "absent.toml")


def test_tables_that_are_missing_or_called_alike_are_refused(people_file, tmp_path):
    absent = TableSource("absent", "absent.csv", target="y")
    with pytest.raises(InputError, match=r"'absent' \(file 'absent.csv'\) was not found"):
        run_study("tradeoff", tmp_path / "out", tables=[plain(people_file), absent])
    with pytest.raises(InputError, match="'people'"):
        run_study("tradeoff", tmp_path / "out", tables=[plain(people_file), plain(people_file)])
    assert not (tmp_path / "out").exists()


def test_a_study_of_ones_own_takes_other_tables_too(people_file, tmp_path):
    study = Study.from_dict(
        {
            "tables": [{"path": "nowhere.csv"}],
            "variants": [{"name": "round", "steps": [{"method": "round", "base": 5}]}],
            "measures": ["uniqueness"],
        }
    )
    (tmp_path / "mine.toml").write_text(f"[[tables]]\npath = {str(people_file)!r}\nrows = 30")
    outcome = run_study(study, tmp_path / "out", tables=tmp_path / "mine.toml", jobs=1)
    assert [source.name for source in outcome.study.tables] == ["people"]
    assert outcome.run.done == 2


# What each built-in study makes of them


def test_every_built_in_study_takes_other_tables():
    assert all(study.elsewhere is not None for study in built_in_studies().values())


@pytest.mark.parametrize("name", ["tradeoff", "mixed-ml", "sampling"])
def test_a_study_that_predicts_must_know_what(people_file, name):
    with pytest.raises(InputError, match="--target"):
        adapted(name, TableSource("people", str(people_file)))


@pytest.mark.parametrize("name", ["tradeoff", "mixed-ml", "sampling"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["same"] * 200, "has 1 different value;"),
        ([None] * 200, "has 0 different values;"),
        ([n / 7 for n in range(200)], "has 200 different values;"),
        ([n % 30 for n in range(200)], "has 30 different values;"),
        ([f"person {n}" for n in range(200)], "has 200 different values;"),
    ],
)
def test_a_study_that_predicts_classes_needs_some_and_not_too_many(tmp_path, name, values, said):
    frame = pl.DataFrame({"age": range(200), "ill": values})
    frame.write_parquet(tmp_path / "odd.parquet")
    quasi = ["age"] if name == "sampling" else []
    mine = tables_at("odd.parquet", target="ill", quasi_identifiers=quasi)
    with pytest.raises(InputError, match=said):
        run_study(name, tmp_path / "out", tables=mine)
    assert not (tmp_path / "out").exists()


def test_quick_takes_some_rows_unless_the_table_says_how_many(people_file):
    for name, rows in (("tradeoff", 1_000), ("mixed-ml", 2_000)):
        assert {s.rows for s in adapted(name, plain(people_file)).tables} == {rows}
        assert {s.rows for s in adapted(name, plain(people_file, rows=7)).tables} == {7}
        full = adapted(name, plain(people_file), preset="full")
        assert {s.rows for s in full.tables} == {None}


def test_mixed_ml_takes_each_table_twice_and_chooses_the_roles(people_file):
    found = adapted("mixed-ml", plain(people_file))
    assert [(s.name, s.roles, s.held_out) for s in found.tables] == [
        ("people, part", "part", 0.3),
        ("people, all", "all", 0.3),
    ]
    with pytest.raises(InputError, match=r"chooses the quasi-identifiers itself.* 'people'"):
        adapted("mixed-ml", known(people_file))


def test_sampling_takes_one_table_with_quasi_identifiers(people_file):
    found = adapted("sampling", known(people_file))
    assert (found.tables[0].rows, found.tables[0].held_out) == (40_000, 0.25)
    options = {measure.name: measure.options for measure in found.measures}
    assert options["chi-square of the target"]["columns"] == ["ill"]
    assert options["chi-square of the quasi-identifiers"]["columns"] == ["age", "city"]
    assert options["variance of numbers that are not masked"]["columns"] == ["height"]
    assert not any("hierarchies" in step for v in found.variants for step in v.steps)
    # without other numbers there is no variance to compare
    fewer = adapted("sampling", known(people_file, without=("height",)))
    assert len(fewer.measures) == len(found.measures) - 1
    with pytest.raises(InputError, match="--quasi"):
        adapted("sampling", plain(people_file))
    with pytest.raises(InputError, match="one table"):
        adapted("sampling", known(people_file), known(people_file))


def test_sampling_takes_the_hierarchies_that_there_are(people_file, tmp_path):
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees" / "city.csv").write_text("Bern;CH;*\nGraz;AT;*\nJena;DE;*")
    found = adapted("sampling", known(people_file, hierarchies="trees"))
    (step,) = [step for step in found.variants[0].steps if step["method"] == "generalize"]
    assert step["hierarchies"] == {"city": str(tmp_path / "trees" / "city.csv")}
    with pytest.raises(InputError, match="hierarchy"):
        adapted("sampling", known(people_file, hierarchies="nowhere"))


@pytest.mark.parametrize("name", ["mixed-ml", "swap-correlations", "tradeoff"])
def test_hierarchies_that_would_change_nothing_are_refused(name, people_file, tmp_path):
    with pytest.raises(InputError, match="hierarchies"):
        run_study(name, tmp_path / "out", tables=[known(people_file, hierarchies="trees")])
    assert not (tmp_path / "out").exists()


def test_sampling_of_a_table_of_ones_own(people_file, tmp_path, monkeypatch):
    for name, value in (("fractions", [0.5]), ("k", [5]), ("learners", 200)):
        monkeypatch.setitem(paper("sampling")["presets"]["quick"], name, value)
    monkeypatch.setitem(paper("sampling"), "draws", 1)
    measures = _sampling._measures

    def quick_ones(*given):  # models take half a minute
        return [one for one in measures(*given) if "learner" not in one]

    monkeypatch.setattr(_sampling, "_measures", quick_ones)
    outcome = run_study("sampling", tmp_path / "out", tables=[known(people_file)], jobs=1)
    post = [row for row in outcome.results if row.family.startswith("post")]
    assert post
    assert not [row.reason for row in post if row.status == "failed"]
    assert not outcome.conclusion.findings
    claims = {claim.text: claim for claim in outcome.conclusion.claims}
    assert (
        claims["In a stratified sample, no certainty exceeds the share that is sampled."].holds
        is True
    )
    shares = claims["Random and stratified samples keep the shares of the target; balanced "
                    "samples do not."]  # fmt: skip
    assert shares.holds is not None
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Published and measured" not in page
    assert "&#39;people&#39; (at most 40,000 rows)." in page
    assert "1,664,500" not in page


def test_correlations_of_a_table_of_ones_own(tmp_path, monkeypatch):
    runs = {"MDAV-SWAP": 2, "IR-SWAP": 2}
    monkeypatch.setitem(paper("swap-correlations")["presets"], "quick", {"k": [5], "runs": runs})
    rng = np.random.default_rng(2)
    income = rng.normal(40_000, 9_000, 80).round()
    frame = {"age": rng.integers(18, 80, 80), "income": income, "tax": (income / 5).round()}
    # one name like a published one, and one with a space
    for name in ("census", "a b"):
        pl.DataFrame({**frame, "sex": ["f", "m"] * 40}).write_csv(tmp_path / f"{name}.csv")
    roles = {"quasi_identifiers": ["age"], "sensitive": ["income", "tax"]}
    mine = [source for name in ("census", "a b") for source in tables_at(f"{name}.csv", **roles)]
    outcome = run_study("swap-correlations", tmp_path / "out", tables=mine, jobs=1)
    assert outcome.run.complete
    assert not outcome.run.failed
    assert outcome.run.tasks == 1 + 2 + 2  # the two tables are the same one
    assert not outcome.conclusion.findings
    assert {claim.holds for claim in outcome.conclusion.claims} <= {True, False}
    assert sorted(outcome.conclusion.figures) == ["correlations-1", "correlations-2"]
    found = outcome.results.where(table="census", family="MDAV-ID").rows[0]
    drawn = {row[0]: row for row in outcome.conclusion.figures["correlations-1"].rows}
    assert found.value == pytest.approx(drawn["MDAV-ID"][3])  # over the pairs, not 76 cells
    columns = next(v for v in outcome.study.variants if v.family == "MDAV-ID").steps[0]["columns"]
    assert columns == ["age", "income", "tax"]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert all(meaning in page for meaning in paper("swap-correlations")["terms"].values())


def test_correlations_need_numbers_and_their_roles(people_file):
    with pytest.raises(InputError, match=r"which are sensitive; name them \(--quasi"):
        adapted("swap-correlations", plain(people_file))
    with pytest.raises(InputError, match="other values in 'city', 'ill'"):
        adapted("swap-correlations", known(people_file))


@pytest.mark.parametrize("values", [[3] * 50, [None] * 50])
def test_correlations_need_two_columns_that_vary(tmp_path, values):
    frame = pl.DataFrame({"age": range(50), "tax": values}, schema={"age": int, "tax": float})
    frame.write_parquet(tmp_path / "flat.parquet")
    mine = tables_at("flat.parquet", quasi_identifiers=["age"], sensitive=["tax"])
    with pytest.raises(InputError, match="'flat'"):
        run_study("swap-correlations", tmp_path / "out", tables=mine)
    assert not (tmp_path / "out").exists()


# What is not there of a study's own tables


def test_a_built_in_study_runs_on_the_tables_that_are_there_and_names_the_others(
    tmp_path, monkeypatch
):
    runs = {"MDAV-SWAP": 1, "IR-SWAP": 1}
    monkeypatch.setitem(paper("swap-correlations")["presets"], "quick", {"k": [5], "runs": runs})
    rng = np.random.default_rng(4)
    (tmp_path / "casc").mkdir()
    frame = {
        name: rng.integers(1, 99, 40) for name in paper("swap-correlations")["columns"]["census"]
    }
    pl.DataFrame(frame).write_parquet(tmp_path / "casc" / "census.parquet")
    outcome = run_study("swap-correlations", tmp_path / "out", jobs=1)
    assert outcome.missing.startswith("The table 'eia' (file 'casc/eia.parquet') was not found")
    assert [source.name for source in outcome.study.tables] == ["census"]
    assert outcome.run.complete
    assert outcome.to_dict()["missing"] == outcome.missing
    assert "casc/eia.parquet" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert len(outcome.conclusion.findings) == 3
