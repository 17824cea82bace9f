"""Downcoding (Cohen 2022): what follows from a coarse value, and what a release says about it."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import polars as pl
import pytest

from shoal import Generalize, Hierarchy, KAnonymity, Plan, Roles, Table, protect

TREES = {
    "age": Hierarchy.intervals([5, 10, 20, 40]),
    "education-num": Hierarchy.intervals([2, 4, 8]),
    "hours-per-week": Hierarchy.intervals([5, 10, 20]),
}


def people(shared_data, names: list[str]) -> Table:
    frame = pl.read_parquet(shared_data / "uci" / "adult.parquet").head(1000)
    return Table(frame.select(names), Roles(quasi_identifiers=names))


def town() -> Table:
    """A table that needs no file: people of every age, more of them young, in streets."""
    ages = [18 + (7 * one * one + one) % 61 for one in range(400)]
    rooms = [1 + (11 * one * one) % 9 for one in range(400)]
    frame = pl.DataFrame({"age": ages, "education-num": rooms})
    return Table(frame, Roles(quasi_identifiers=["age", "education-num"]))


def released(table: Table, algorithm: str, k: int, tmp_path) -> tuple[list, list, dict]:
    """Original rows with their released rows as text, and the content of release.json."""
    hierarchies = {name: TREES[name] for name in table.columns}
    step = Generalize(algorithm, k=k, hierarchies=hierarchies)
    release = protect(table, Plan([step], require=[KAnonymity(k)], keep_order=True))
    folder = release.save(tmp_path / "release", format="csv")
    facts = json.loads((folder / "public" / "release.json").read_text())
    shown = pl.read_csv(folder / "public" / "data.csv", infer_schema=False).rows()
    return table.frame.rows(), shown, facts


def width_of(text: str) -> float:
    """How wide an interval is; a single number has no width and * covers everything."""
    if text == "*":
        return float("inf")
    ends = re.fullmatch(r"\[(-?\d+), (-?\d+)\)", text)
    return float(ends[2]) - float(ends[1]) if ends else 0.0


def child_of(value: float, text: str, column: str) -> float:
    """The child of a released node that a value is in: its start, one level below."""
    steps = [1, *{"age": (5, 10, 20, 40), "education-num": (2, 4, 8)}.get(column, (5, 10, 20))]
    finer = max(step for step in steps if step < width_of(text))
    return value // finer


def inferences(original: list, shown: list, columns: list[str]) -> list[tuple[bool, int, str]]:
    """For each class and coarse cell: whether its people are in several children; its size."""
    members = defaultdict(list)
    for row, texts in zip(original, shown, strict=True):
        members[texts].append(row)
    out = []
    for texts, rows in members.items():
        for place, (column, text) in enumerate(zip(columns, texts, strict=True)):
            if width_of(text):
                children = {child_of(row[place], text, column) for row in rows}
                out.append((len(children) > 1, len(rows), texts))
    return out


def in_percent(count: int, of: int) -> float:
    return float(round(100 * count / of))


@pytest.mark.parametrize("names", [["age"], ["age", "education-num"], list(TREES)])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_inference_from_local_recoding_is_right_and_counted(shared_data, tmp_path, names, k):
    """The people of a class are never all under one child of a released node."""
    table = people(shared_data, names)
    original, shown, facts = released(table, "local", k, tmp_path)
    found = inferences(original, shown, names)
    assert found
    assert all(right for right, _, _ in found)
    told = facts["methods"][0]["facts"]["minimality"]
    assert told["algorithm"] == "local"
    assert told["cells_percent"] == in_percent(sum(n for _, n, _ in found), 1000 * len(names))
    coarse = {texts: size for _, size, texts in found}
    assert told["records_percent"] == in_percent(sum(coarse.values()), 1000)


def test_report_claims_and_release_say_it(tmp_path):
    _, _, facts = released(town(), "local", 3, tmp_path)
    told = facts["methods"][0]["facts"]["minimality"]
    assert told["records_percent"] > 10
    share = f"{told['cells_percent']:g} % of the cells"
    assert share in facts["claims"][0]["cautions"][0]
    page = (tmp_path / "release" / "public" / "report.html").read_text()
    assert "one level below" in page
    assert share in re.sub(r"\s+", " ", page)


def test_a_full_domain_search_names_the_columns_that_could_not_be_finer(tmp_path):
    """Each of them, one level finer, would have a class of fewer than k people."""
    original, shown, facts = released(town(), "full-domain", 3, tmp_path)
    levels = facts["methods"][0]["facts"]["levels"]
    told = facts["methods"][0]["facts"]["minimality"]
    columns = ["age", "education-num"]
    too_fine = []
    for place, name in enumerate(columns):
        if levels[name]:
            finer = defaultdict(int)
            for row, texts in zip(original, shown, strict=True):
                key = list(texts)
                key[place] = child_of(row[place], texts[place], name)
                finer[tuple(key)] += 1
            if min(finer.values()) < 3:
                too_fine.append(name)
    assert told["columns"] == too_fine != []
    assert facts["claims"][0]["cautions"]


def test_one_class_is_narrowed_down_by_a_full_domain_search(tmp_path):
    """Everybody is in [20, 40), so somebody's half of it has fewer than k people."""
    frame = pl.DataFrame({"age": [21, 22] + [31 + one % 9 for one in range(298)]})
    table = Table(frame, Roles(quasi_identifiers=["age"]))
    step = Generalize(k=3, hierarchies={"age": Hierarchy.intervals([10, 20])})
    folder = protect(table, Plan([step])).save(tmp_path / "release", format="csv")
    facts = json.loads((folder / "public" / "release.json").read_text())
    told = facts["methods"][0]["facts"]["minimality"]
    assert (told["cells_percent"], told["records_percent"]) == (100.0, 100.0)


def test_given_levels_and_boxes_carry_no_such_caution(tmp_path):
    hierarchies = {name: TREES[name] for name in ("age", "education-num")}
    given = Generalize(
        k=3, hierarchies=hierarchies, levels={"age": 4, "education-num": 3}, suppression_limit=1
    )
    for number, step in enumerate([given, Generalize("mondrian", k=3)]):
        folder = protect(town(), Plan([step])).save(tmp_path / str(number), format="csv")
        facts = json.loads((folder / "public" / "release.json").read_text())
        assert "minimality" not in facts["methods"][0]["facts"]
