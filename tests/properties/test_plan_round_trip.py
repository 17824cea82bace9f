"""A plan is the same as Python objects and as TOML, whatever is in it."""

from __future__ import annotations

import os
import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Limit, Plan, Roles
from shoal.errors import ShoalError
from shoal.masking import discover_maskers
from shoal.models import discover_models
from shoal.workflow import discover_all_measures

from ..contracts.parts.registry import maskers, models

NAMES = st.text(min_size=1, max_size=10)


@st.composite
def roles(draw):
    names = draw(st.lists(NAMES, unique=True, max_size=8))
    cuts = sorted(draw(st.lists(st.integers(0, len(names)), min_size=4, max_size=4)))
    parts = [names[a:b] for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)]
    return Roles(
        identifiers=parts[0],
        quasi_identifiers=parts[1],
        sensitive=parts[2],
        insensitive=parts[3],
        weight=parts[4][0] if parts[4] else None,
        target=draw(st.sampled_from(parts[2])) if parts[2] and draw(st.booleans()) else None,
    )


@st.composite
def limits(draw):
    measure = draw(st.sampled_from(sorted(discover_all_measures())))
    low, high = (min(max(end, 0), 1) for end in discover_all_measures()[measure].limits)
    bound = draw(st.floats(low, high) | st.sampled_from([low, high]))
    options = {}
    if measure == "records_at_risk" and draw(st.booleans()):
        options["threshold"] = draw(st.floats(0, 1, exclude_min=True))
    if measure in ("uniqueness", "prosecutor_risk") and draw(st.booleans()):
        options["missing"] = "wildcard"
    which = draw(st.sampled_from(["at_most", "at_least"]))
    return Limit(measure, options=options, **{which: bound})


steps = st.sampled_from(sorted(discover_maskers())).flatmap(maskers)
requirements = st.sampled_from(sorted(discover_models())).flatmap(models) | limits()
plans = st.builds(
    Plan,
    st.lists(steps, max_size=5),
    require=st.lists(requirements, max_size=4),
    roles=st.none() | roles(),
    keep_order=st.booleans(),
)


@given(plans)
@settings(max_examples=60)
def test_toml_round_trip(plan):
    text = plan.to_toml()
    assert tomllib.loads(text) == plan.to_dict()
    back = Plan.from_toml(text)
    assert back == plan
    assert [step.get_params() for step in back.steps] == [s.get_params() for s in plan.steps]
    # a name that is required twice becomes a list, so only the order of names may move
    assert len(back.require) == len(plan.require)
    assert all(back.require.count(one) == plan.require.count(one) for one in plan.require)
    assert back.roles == plan.roles
    assert back.keep_order == plan.keep_order


@given(plan=plans)
@settings(max_examples=25)
def test_file_round_trip(tmp_path_factory, plan):
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    plan.save(path)
    for step in plan.steps:  # what is beside the plan is found from anywhere
        if getattr(step, "key_file", None) is not None:
            step.set_params(key_file=os.fspath(path.parent / step.key_file))
    assert Plan.load(path) == plan


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
KEYS = ["keep_order", "roles", "steps", "require", "method", "k_anonymity", "max_uniqueness"]
nearly_plans = st.dictionaries(
    st.sampled_from(KEYS) | NAMES,
    anything
    | st.lists(
        st.dictionaries(st.sampled_from(["method", "base", "columns"]), anything), max_size=2
    )
    | st.dictionaries(
        st.sampled_from(["k_anonymity", "max_uniqueness", "identifiers", "weight", "target"]),
        anything,
    ),
)


def understood(read):
    """The plan that is read, or the sentence that refuses it; a traceback fails the test."""
    try:
        return read()
    except ShoalError as error:
        return str(error)


@given(nearly_plans)
@settings(max_examples=100)
def test_nonsense_is_refused_in_words(nonsense):
    """Any shape of data is a plan or one of Shoal's errors, never a traceback of Python."""
    found = understood(lambda: Plan.from_dict(nonsense))
    if isinstance(found, Plan):
        assert Plan.from_toml(found.to_toml()) == found
    else:
        assert found.endswith((".", "?"))


@given(st.text())
def test_nonsense_text_is_refused_in_words(text):
    found = understood(lambda: Plan.from_toml(text))
    assert isinstance(found, Plan) or found.endswith((".", "?"))


@given(content=st.binary(max_size=40))
@settings(max_examples=50)
def test_nonsense_files_are_refused_in_words(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "nonsense.toml"
    path.write_bytes(content)
    found = understood(lambda: Plan.load(path))
    assert isinstance(found, Plan) or found.endswith((".", "?"))
