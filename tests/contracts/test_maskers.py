"""What every masking method promises, whatever it does to the data."""

from __future__ import annotations

import copy
import traceback
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Roles, Table
from shoal.errors import (
    InputError,
    ParameterError,
    SeedWarning,
    ShoalError,
    UnprotectedColumnWarning,
)
from shoal.parameters import Flag, parameters_of

from .registry import (
    AWKWARD,
    FIRST_BY_PLACE,
    KNOWN_METHODS,
    MASKERS,
    QUASI_IDENTIFIERS,
    ROLES,
    masked_by,
    maskers,
    people,
    people_columns,
    quasi,
)

CANARY = "canary-7d1f"
CANARY_NUMBER = 918273645

each_example = pytest.mark.parametrize("example", MASKERS, ids=lambda example: example.id)
each_of_columns = pytest.mark.parametrize(
    "example", [e for e in MASKERS if not e.over_records], ids=lambda example: example.id
)
each_class = pytest.mark.parametrize("cls", KNOWN_METHODS.values(), ids=lambda cls: cls.__name__)
each_random = pytest.mark.parametrize(
    "example",
    [e for e in MASKERS if KNOWN_METHODS[e.method].is_random],
    ids=lambda example: example.id,
)
TRIED = [
    pytest.param(example, name, id=f"{example.id}-{name}")
    for example in MASKERS
    for name in AWKWARD
    if name not in example.refuses
]
REFUSED = [
    pytest.param(example, name, id=f"{example.id}-{name}")
    for example in MASKERS
    for name in example.refuses
]


def original_rows(table, masked):
    """The original of each masked row, found by its key."""
    return table.frame[masked.row_key.tolist()]


def changed_columns(table, masked):
    """Columns that are gone, or of which a cell differs."""
    before, after = original_rows(table, masked), masked.frame
    return {
        name
        for name in table.columns
        if name not in after.columns or differs(before[name], after[name])
    }


def differs(before, after):
    if after.dtype == pl.String and before.dtype != pl.String:
        return True  # generalized: no cell is what it was
    return before.ne_missing(after).any()


# -- the result


@pytest.mark.parametrize(("example", "name"), TRIED)
def test_result(example, name):
    """Rows, types, missing cells and the log are right on every awkward table."""
    table = AWKWARD[name]()
    masker = example.make(table)
    masked = masked_by(masker, table)

    # the rows keep their order and keys; only a rule over records takes some out
    keys = masked.row_key.tolist()
    assert keys == sorted(keys)
    assert set(keys) <= set(table.row_key.tolist())
    assert len(keys) == len(table) or example.over_records
    assert masker.removed_ == len(table) - len(keys)
    assert masked.pairs_with(table)

    # the columns keep their order and types, and the roles follow them
    left = [column for column in table.columns if column not in masker.removed_columns_]
    assert masked.columns == left
    assert masked.roles == table.roles.without(masker.removed_columns_)
    for column in left:
        if not (example.into_text and column in masker.touched_):
            assert kept_type(table, masked, column), (column, table.schema, masked.schema)

    # what was missing stays so
    before = original_rows(table, masked)
    for column in left if not example.moves_missing else []:
        assert masked.frame[column].filter(before[column].is_null()).null_count() == (
            before[column].null_count()
        )

    # the log says exactly what happened
    changed = changed_columns(table, masked)
    assert set(masker.touched_) == changed
    assert len(set(masker.touched_)) == len(masker.touched_)
    assert not changed & set(masker.skipped_)
    assert changed <= set(table.roles.quasi_identifiers)
    if not example.over_records:
        assert changed | set(masker.skipped_) == set(table.roles.quasi_identifiers)
    assert all(isinstance(reason, str) and reason for reason in masker.skipped_.values())


def kept_type(table, masked, column):
    """The type is the same, or the same kind and wider where the new values need it."""
    before, after = table.frame[column].dtype, masked.frame[column].dtype
    if before == after:
        return True
    widened = masked.frame[column].cast(before, strict=False).null_count()
    return table.kind(column) == masked.kind(column) and (
        widened > masked.frame[column].null_count()
    )


@pytest.mark.parametrize(("example", "name"), REFUSED)
def test_refused_in_one_sentence(example, name):
    table = AWKWARD[name]()
    with pytest.raises(InputError, match=r"\.$"):
        masked_by(example.make(table), table)


@each_example
def test_the_example_does_something(example):
    """Else the contract would be empty for it."""
    table = people()
    for _ in range(20):  # a fair draw may leave every record where it was
        masker = example.make(table)
        assert len(masked_by(masker, table))
        if masker.touched_ or masker.removed_:
            return
    pytest.fail("twenty draws changed nothing")


@each_example
def test_identifiers_and_other_columns_stay(example):
    table = people()
    masked = masked_by(example.make(table), table)
    before = original_rows(table, masked)
    for column in ("name", "diagnosis", "ballast"):
        assert masked.frame[column].equals(before[column])


@each_example
def test_frames_of_every_kind(example, frame):
    """The type that went in comes out, and the values do not depend on it."""
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    expected = masked_by(example.make(people(), **random), people())
    table = Table(frame(people_columns()), ROLES)
    masked = masked_by(example.make(table, **random), table)
    assert type(masked.frame) is frame.type
    assert frame.columns(masked.frame) == expected.frame.to_dict(as_series=False)
    assert masked.row_key.tolist() == expected.row_key.tolist()


@each_of_columns
def test_named_columns_only(example):
    """With ``columns`` a method works on those, whatever their role, and on no others."""
    table = people()
    masker = example.make(table, columns=["height", "ballast"])
    masked = masked_by(masker, table)
    assert {*masker.touched_, *masker.skipped_} == {"height", "ballast"}
    assert changed_columns(table, masked) == set(masker.touched_)


# -- what is not touched


@each_example
def test_the_given_table_does_not_change(example):
    table = people()
    before = table.frame.clone()
    keys, roles = table.row_key.copy(), table.roles
    masked_by(example.make(table), table)
    assert table.frame.equals(before)
    assert table.row_key.tolist() == keys.tolist()
    assert table.roles == roles


@each_example
def test_the_parameters_do_not_change(example):
    table = people()
    masker = example.make(table)
    before = copy.deepcopy(masker.get_params())
    masked_by(masker, table)
    assert masker.get_params() == before


@each_example
def test_fitting_again_forgets_the_first_table(example):
    first = quasi(other=[1.5, 2.5, 99.0, None], more=list("abcd"))
    table = people()
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    masker = example.make(table, **random)
    again = example.make(table, **random)
    if "where" not in example.parameters:
        masked_by(masker, first)
    masked_by(masker, table)
    masked_by(again, table)
    assert (masker.touched_, masker.skipped_) == (again.touched_, again.skipped_)
    assert (masker.removed_, masker.removed_columns_) == (again.removed_, again.removed_columns_)


# -- refusing


@each_example
def test_an_empty_table(example):
    table = Table(people().frame.clear(), ROLES)
    with pytest.raises(InputError, match="without records"):
        example.make(table).fit_transform(table)


@each_example
def test_no_quasi_identifiers(example):
    if not example.make(people()).needs_columns:
        pytest.skip("a condition says by itself which records it takes out")
    table = people().with_roles(Roles(insensitive=people().columns))
    with pytest.raises(InputError, match="quasi-identifiers"):
        example.make(people()).fit_transform(table)


@each_of_columns
def test_an_unknown_column(example):
    with pytest.raises(InputError, match=r"no column 'heigth'.*Did you mean 'height'\?"):
        example.make(people(), columns=["heigth"]).fit_transform(people())


@each_of_columns
def test_an_identifier(example):
    with pytest.raises(InputError, match="identifier 'name'"):
        example.make(people(), columns=["age", "name"]).fit_transform(people())


@each_example
def test_what_is_not_a_table(example):
    with pytest.raises(InputError, match=r"masks a shoal\.Table"):
        example.make(people()).fit_transform(people().frame)


@each_of_columns
def test_a_named_column_that_stays_is_warned_about(example):
    """The caller asked for it, so silence would be a promise."""
    masker = example.make(people(), columns=["height", "city", "age", "wage"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        masker.fit_transform(people())
    said = [str(w.message) for w in caught if w.category is UnprotectedColumnWarning]
    assert bool(said) == bool(masker.skipped_)
    for column in masker.skipped_:
        assert f"'{column}'" in said[0]


def canary_table():
    return Table(
        pl.DataFrame(
            {
                "name": [CANARY] * 6,
                "number": [1, 2, 3, 4, 5, CANARY_NUMBER],
                "share": [0.5, 1.5, 2.5, None, 3.5, float(CANARY_NUMBER)],
                "text": ["a", "b", CANARY, "c", None, CANARY],
                "endless": [1.0, 2.0, 3.0, 4.0, float(CANARY_NUMBER), float("inf")],
            }
        ),
        Roles(identifiers=["name"], quasi_identifiers=["number", "share", "text", "endless"]),
    )


@each_example
def test_no_error_or_warning_tells_a_cell(example):
    """Whatever goes wrong, no cell is in the message, in a cause of it, or in a repr."""
    empty = canary_table().frame.clear()
    attempts = [
        lambda: example.make(canary_table()).fit_transform(canary_table()),
        lambda: example.make(canary_table()).fit_transform(canary_table().frame),
        lambda: example.make(canary_table()).fit_transform(Table(empty, canary_table().roles)),
    ]
    if not example.over_records:
        attempts += [
            lambda column=column: example.make(canary_table(), columns=[column]).fit_transform(
                canary_table()
            )
            for column in ("number", "share", "text", "endless", "name", "nobody")
        ]
    said = [repr(canary_table()), repr(example.make(people()))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for attempt in attempts:
            try:
                said.append(repr(attempt()))
            except ShoalError as error:
                said.append("".join(traceback.format_exception(error)))
    said += [str(warning.message) for warning in caught]
    assert len(said) == 2 + len(attempts) + len(caught)
    for text in said:
        assert CANARY not in text
        assert str(CANARY_NUMBER) not in text


# -- randomness


@each_random
def test_a_seed_repeats_and_warns(example):
    results = []
    for _ in range(2):
        with pytest.warns(SeedWarning, match="secret"):
            results.append(example.make(people(), random_state=11).fit_transform(people()))
    assert results[0].frame.equals(results[1].frame)
    other = masked_by(example.make(people(), random_state=12), people())
    assert not other.frame.equals(results[0].frame)


@each_random
def test_without_a_seed_two_runs_differ_and_nothing_is_warned(example):
    masker = example.make(people())
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeedWarning)
        first, second = (masker.fit_transform(people()) for _ in range(2))
    assert not first.frame.equals(second.frame)


@each_random
def test_the_key_of_the_randomness_is_private(example):
    masker = example.make(people(), random_state=11)
    masked_by(masker, people())
    assert masker.audit_["key"]
    assert masker.audit_["key"] not in repr(masker)
    assert "random_state" not in masker.changed_params(public=True)


@pytest.mark.parametrize(
    "example",
    [e for e in MASKERS if not KNOWN_METHODS[e.method].is_random],
    ids=lambda example: example.id,
)
def test_without_randomness_two_runs_are_equal(example):
    first, second = (masked_by(example.make(people()), people()) for _ in range(2))
    assert first.frame.equals(second.frame)
    assert example.make(people()).fit_transform(people()).frame.equals(first.frame)


@each_example
def test_the_order_of_the_columns_does_not_matter(example):
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    table = people()
    reversed_table = Table(table.frame.select(table.columns[::-1]), ROLES)
    masked = masked_by(example.make(table, **random), table)
    other = masked_by(example.make(table, **random), reversed_table)
    assert other.frame.select(masked.columns).equals(masked.frame)


# -- parameters


@each_example
def test_parameters_as_scikit_learn_has_them(example):
    masker = example.make(people())
    params = masker.get_params()
    assert list(params) == [parameter.name for parameter in parameters_of(type(masker))]
    assert type(masker)(**params).get_params() == params
    assert masker.set_params(**params) is masker
    with pytest.raises(ParameterError, match="has no parameter 'nobody'"):
        masker.set_params(nobody=1)
    assert repr(masker).startswith(type(masker).__name__ + "(")


@each_example
def test_scikit_learn_can_clone_it(example):
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    masker = example.make(people())
    masked_by(masker, people())
    twin = base.clone(masker)
    assert twin is not masker
    assert twin.get_params() == masker.get_params()
    assert not hasattr(twin, "touched_"), "a clone is not fitted"


@each_class
def test_options_are_keyword_only(cls):
    first = FIRST_BY_PLACE.get(cls.method)
    with pytest.raises(TypeError, match="positional argument"):
        cls(first or 2, *([] if first is None else [2]))
    if first is not None:
        needed = {"k": 2} if cls.method == "generalize" else {}
        assert next(iter(cls(first, **needed).get_params().values())) == first


@each_class
@given(data=st.data())
def test_plans_carry_every_parameter(cls, data):
    """Python → TOML → Python is the identity, for every value that a parameter accepts."""
    masker = data.draw(maskers(cls.method))
    plan = Plan([masker])
    (back,) = Plan.from_toml(plan.to_toml()).steps
    assert type(back) is cls
    assert back.get_params() == masker.get_params()
    assert Plan([back]) == plan


@each_class
def test_an_unknown_key_in_a_plan_names_the_nearest(cls):
    name = parameters_of(cls)[0].name
    with pytest.raises(ParameterError, match=f"Did you mean '{name}'"):
        Plan.from_dict({"steps": [{"method": cls.method, f"{name}s": 1}]})


@each_class
def test_a_wrong_type_is_refused(cls):
    for parameter in parameters_of(cls):
        if parameter.name == "columns":
            continue
        truth = "yes" if isinstance(parameter.constraint, Flag) else True
        for wrong in (object(), float("nan"), [], truth):
            with pytest.raises(ParameterError, match=f"'{parameter.name}'"):
                cls(**{parameter.name: wrong, **needed(cls, parameter.name)})


def needed(cls, besides):
    """What the class needs besides one parameter, so that only that one is wrong."""
    of_class = [e for e in MASKERS if e.method == cls.method]
    if not of_class:  # one that stands apart: its first parameter is all that it needs
        first = parameters_of(cls)[0].name
        return {} if first == besides else {first: FIRST_BY_PLACE[cls.method]}
    example = next((e for e in of_class if besides in e.parameters), of_class[0])
    return {k: v for k, v in example.parameters.items() if k != besides}


def test_the_quasi_identifiers_are_of_every_kind():
    """The people would not show a type error otherwise."""
    kinds = {people().kind(name) for name in QUASI_IDENTIFIERS}
    assert kinds == {"integer", "float", "text", "boolean", "date"}
    assert isinstance(people().row_key, np.ndarray)


@each_example
def test_new_rows_are_mapped_as_the_fitted_ones_were(example):
    """A method that works cell by cell does the same to a row that comes later."""
    table = people()
    masker = example.make(table)
    with pytest.raises(InputError, match="fit_transform"):
        masker.transform(table)
    masked = masked_by(masker, table)
    served = masker.transform(table)
    assert len(served) == len(table)
    assert served.columns == masked.columns
    if example.serves:
        assert served.frame.equals(masked.frame)
    elif example.serves is not None:
        assert served.frame.equals(table.frame)
