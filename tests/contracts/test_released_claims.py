"""The claims of a release hold: code that shares nothing with Shoal counts its bytes again.

Every method is followed by every model that can be required, in every format.
"""

from __future__ import annotations

import datetime as dt
import json
import warnings

import polars as pl
import pytest

from shoal import Generalize, Limit, Plan, Pseudonymize, Redraw, Roles, Table, protect
from shoal.errors import ShoalWarning
from shoal.models import LDiversity
from shoal.table import LABELLED
from shoal.workflow import discover_all_measures
from shoal.workflow.release._release import public_facts, written_file

from ..fuzz.public_half import read_public
from ..fuzz.recount import MEASURES, MODELS, NOT_PUBLIC, recount
from ..parts.installed import INSTALLED
from .parts.model_examples import KNOWN_MODELS
from .parts.registry import KNOWN_METHODS, MASKERS

#: What every table satisfies, so that a method can be followed as it is: the numbers tell.
ALWAYS = {
    "average_risk": [{"max": 1}],
    "beta_likeness": [{"beta": 1e6}],
    "population_uniqueness": [{"max": 1, "sampling_fraction": 0.5, "estimator": "zayatz"}],
    "t_closeness": [{"t": 1}, {"t": 1, "distance": "ordered"}],
}
#: What a table satisfies after :data:`CLASSES`.
IN_CLASSES = {
    "alpha_k_anonymity": [{"alpha": 0.9, "k": 4}],
    "beta_likeness": [{"beta": 3, "enhanced": True}],
    "delta_disclosure": [{"delta": 2.5, "column": "ill"}],
    "k_anonymity": [{"k": 4}, {"k": 4, "missing": "wildcard"}],
    "l_diversity": [
        {"l": 2},
        {"l": 1.2, "kind": "entropy"},
        {"l": 2, "kind": "recursive", "c": 5, "column": "ill"},
    ],
    "probabilistic_k_anonymity": [{"k": 4}],
}
LIMITS = [
    Limit(measure, at_most=1, options=options)
    for measure, options in (
        ("homogeneity", {}),
        ("journalist_risk", {"sampling_fraction": 0.25}),
        ("marketer_risk", {}),
        ("population_uniqueness", {"sampling_fraction": 0.5, "estimator": "zayatz"}),
        ("prosecutor_risk", {"missing": "wildcard"}),
        ("records_at_risk", {"threshold": 0.3}),
        ("skewness", {"threshold": 0.25}),
        ("uniqueness", {}),
    )
]


def models(given):
    return [KNOWN_MODELS[name](**one) for name, many in given.items() for one in many]


SOUGHT = [model for model in models(IN_CLASSES) if model.model != "probabilistic_k_anonymity"]
CLASSES = Generalize("mondrian", k=4, models=SOUGHT)

METHODS = {
    **{example.id: example.make for example in MASKERS},
    "redraw": lambda table: Redraw(LDiversity(2)),
    "pseudonymize": lambda table: Pseudonymize(["name"]),
}


def people():
    """Thirty people twice, with each kind of column, missing cells and texts that files often lose.

    Most of the pairs have two different secrets.
    """
    rows = [*range(30)] * 2
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(60)],
            "age": [20 + 7 * (i % 6) if i % 11 else None for i in rows],
            "balance": [(0.25, 3.5, -2.25, 1e-7)[i // 2 % 4] for i in rows],
            "city": [("Bern", 'Jena, "Ost"', " padded", "", "=1+1")[i // 3 % 5] for i in rows],
            "married": [(True, False, None)[i // 9 % 3] for i in rows],
            "born": [dt.date(1980 + i % 4, 1 + i % 2, 28) for i in rows],
            "seen": [dt.datetime(2024, 5, 1 + i % 3, 12, 30) for i in rows],
            "ill": [("flu", "gout", None)[(i + i // (30 + i % 7)) % 3] for i in range(60)],
            "wage": [1000 + 250 * ((i * i + i // 30) % 5) for i in range(60)],
        }
    )
    quasi_identifiers = ["age", "balance", "city", "married", "born", "seen"]
    roles = Roles(
        identifiers=["name"], quasi_identifiers=quasi_identifiers, sensitive=["ill", "wage"]
    )
    return Table(frame, roles)


def without_empty_texts(table):
    """The same people, as Stata, SPSS and SAS hold them: there an empty text is a missing one."""
    texts = [column.replace("", "none") for column in table.frame if column.dtype == pl.String]
    return Table(table.frame.with_columns(texts), table.roles)


def wrong_claims(table, make_steps, require, folder):
    """What a stranger finds wrong with a release, in every format."""
    plain = [format for format in INSTALLED if format not in LABELLED]
    labelled = [format for format in INSTALLED if format in LABELLED]
    wrong = wrong_in(table, make_steps(table), require, folder, plain)
    if labelled:
        other = without_empty_texts(table)
        wrong += wrong_in(other, make_steps(other), require, folder, labelled)
    return wrong


def wrong_in(table, steps, require, folder, formats):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(table, Plan(steps, require=require))
    private = {"probabilistic_k_anonymity"} if release.after.swapping is not None else set()
    wrong = []
    for format in formats:
        public = read_public(published(release, folder / format, format))
        outcome = recount(public)
        stated = [*require, *public.facts["measured"]]
        assert len(outcome.counted) + len(outcome.not_public) == len(stated)
        assert set(outcome.not_public) <= private
        wrong += [f"{format}: {line}" for line in outcome.wrong]
    return wrong


def published(release, folder, format):
    """The public half; the rest of a release, its report and its check have their own tests."""
    folder.mkdir()
    data = folder / f"data.{format}"
    release.masked.write(data, format=format)
    facts = public_facts(release, written_file(release, data, format))
    (folder / "release.json").write_text(json.dumps(facts), "utf-8")
    return folder


each_method = pytest.mark.parametrize("method", METHODS)


@each_method
def test_a_method_alone(method, tmp_path):
    """The numbers of a table after the method."""
    table = people()
    make = METHODS[method]
    assert wrong_claims(table, lambda table: [make(table)], models(ALWAYS) + LIMITS, tmp_path) == []


@each_method
def test_a_method_and_classes(method, tmp_path):
    """What every class must satisfy if a search for classes followed the method."""
    table = people()
    make = METHODS[method]
    assert (
        wrong_claims(
            table,
            lambda table: [make(table), CLASSES],
            models(ALWAYS | IN_CLASSES) + LIMITS,
            tmp_path,
        )
        == []
    )


def test_a_whole_release(tmp_path):
    """The folder that is written is the one that the tests above count in parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = without_empty_texts(people())
        release = protect(table, Plan([CLASSES], require=models(IN_CLASSES)))
    for format in INSTALLED:
        folder = release.save(tmp_path / f"whole {format}", format=format) / "public"
        part = published(release, tmp_path / format, format)
        assert read_public(folder).columns == read_public(part).columns
        assert recount(read_public(folder)).wrong == ()
        stated = json.loads((folder / "release.json").read_text("utf-8"))
        assert stated.pop("report")
        assert stated == read_public(part).facts


def test_zeros_with_a_sign(tmp_path):
    frame = pl.DataFrame({"balance": [0.0, -0.0] * 6, "ill": ["flu", "gout", "ok"] * 4})
    table = Table(frame, Roles(quasi_identifiers=["balance"], sensitive=["ill"]))
    assert wrong_claims(table, lambda _: [], models(ALWAYS) + LIMITS, tmp_path) == []


# -- the recount itself


def test_every_model_and_measure_is_counted_or_has_a_reason():
    """Otherwise, a new one would not be counted."""
    public = {name for name, info in discover_all_measures().items() if not info.needs_original}
    asked = {*KNOWN_MODELS, *public}
    assert asked == {*MODELS, *MEASURES, *NOT_PUBLIC}
    assert not {*MODELS, *MEASURES} & {*NOT_PUBLIC}
    assert {*ALWAYS, *IN_CLASSES} == {*MODELS}
    assert {limit.measure for limit in LIMITS} == {*MEASURES}
    assert {id.partition("(")[0] for id in METHODS} == {*KNOWN_METHODS}
