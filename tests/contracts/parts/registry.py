"""The registry of the contract tests: an example for every method, model and measure.

A method, model or measure without an entry here fails the suite (``test_registry.py``), and so
does an entry for something that no longer exists. What a contract does not ask of somebody is
said here too, with the reason. The models have their examples in ``model_examples.py``,
the measures in ``measure_examples.py``.
"""

from __future__ import annotations

import datetime as dt
import functools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

from shoal import Hierarchy, Roles, Table
from shoal.errors import ShoalWarning
from shoal.kernels.lattice.loss_names import OF_CLASSES
from shoal.masking import Masker, discover_maskers
from shoal.masking._suppress import KeySets
from shoal.masking.generalization._hierarchies import Hierarchies
from shoal.masking.grouping._group_models import PrivacyModels
from shoal.models import KAnonymity, LDiversity, PrivacyModel
from shoal.parameters import (
    ByColumn,
    ColumnNames,
    Constraint,
    Flag,
    Integer,
    OneOf,
    Parameter,
    Population,
    Real,
    Secret,
    Text,
    Tree,
    parameters_of,
)

from .model_examples import CONSISTENT, KNOWN_MODELS

#: What there is, found once.
KNOWN_METHODS = discover_maskers()

# -- the people that everybody is tried on

#: Six persons twice and one once: ages with a gap and with an outlier, every kind of column.
_PERSONS: list[tuple[Any, ...]] = [
    (23, 1.61, "Bern", True, dt.date(1999, 5, 1), Decimal("1200.50"), "flu"),
    (31, 1.74, "Bern", False, dt.date(1991, 2, 3), Decimal("2250.25"), "flu"),
    (None, 1.58, "Jena", None, dt.date(1988, 7, 9), Decimal("1975.00"), "asthma"),
    (44, None, "Jena", True, dt.date(1978, 1, 30), None, "flu"),
    (52, 1.83, None, False, dt.date(1970, 12, 24), Decimal("3100.75"), "gout"),
    (58, 1.69, "Bern", True, None, Decimal("2800.00"), "asthma"),
    (512, 2.31, "Graz", False, dt.date(1961, 8, 15), Decimal("9999.99"), "gout"),
]
_FIELDS = ("age", "height", "city", "married", "born", "wage", "diagnosis")
QUASI_IDENTIFIERS = _FIELDS[:-1]
ROLES = Roles(
    identifiers=["name"],
    quasi_identifiers=QUASI_IDENTIFIERS,
    sensitive=["diagnosis"],
    insensitive=["ballast"],
)


def people_columns() -> dict[str, list[Any]]:
    """The people as columns, for frames of any kind; ``ballast`` tells the rows apart."""
    rows = _PERSONS[:6] * 2 + _PERSONS[6:]
    columns: dict[str, list[Any]] = {"name": [f"person {i}" for i in range(len(rows))]}
    columns |= {name: [row[i] for row in rows] for i, name in enumerate(_FIELDS)}
    columns["ballast"] = [(7 * i) % len(rows) for i in range(len(rows))]
    return columns


def people() -> Table:
    """The people as a table."""
    return Table(pl.DataFrame(people_columns()), ROLES)


def quasi(**columns: Any) -> Table:
    """A table whose columns are all quasi-identifiers."""
    return Table(pl.DataFrame(columns), Roles(quasi_identifiers=list(columns)))


def _integers(dtype: pl.DataType, low: int, high: int) -> Table:
    values = [low, low + 1, low + 7, 11, 12, 13, 14, 15, 95, high - 7, high - 1, high, None]
    return quasi(number=pl.Series(values, dtype=dtype))


def _wide() -> Table:
    rng = np.random.default_rng(3)
    columns = {f"c{i}": rng.integers(0, 90, 30) for i in range(100)}
    columns |= {f"f{i}": rng.normal(50, 20, 30) for i in range(100)}
    return quasi(**columns)


#: Tables on which careless code breaks; made once, since nothing may change a table.
AWKWARD: dict[str, Callable[[], Table]] = {
    "people": people,
    "one row": lambda: quasi(number=[5], share=[0.5], text=["a"]),
    "constant columns": lambda: quasi(number=[7] * 9, share=[0.25] * 9, text=["a"] * 9),
    "two values": lambda: quasi(number=[0, 10], share=[0.0, 1.0]),
    "all missing beside": lambda: Table(
        pl.DataFrame({"number": [1, 2, 30, 4], "empty": pl.Series([None] * 4, dtype=pl.Float64)}),
        Roles(quasi_identifiers=["number"], insensitive=["empty"]),
    ),
    "mostly missing": lambda: quasi(
        number=[None, None, 4, None], share=[None, 1.5, None, None], text=[None, "a", None, None]
    ),
    "200 columns": _wide,
    "unicode names": lambda: quasi(
        **{"größe cm": [170, 171, 201, 99], "年齢": [1.5, 2.5, 9.5, 3.25], "a\"b'c": list("xxyz")}
    ),
    "64 bits": lambda: _integers(pl.Int64(), -(2**63), 2**63 - 1),
    "64 bits unsigned": lambda: _integers(pl.UInt64(), 0, 2**64 - 1),
    "16 bits": lambda: _integers(pl.Int16(), -(2**15), 2**15 - 1),
    "large floats": lambda: quasi(share=[-1.7e308, 1.7e308, 1e300, -1e-300, 0.0, 1.0, 2.0]),
    "tiny floats": lambda: quasi(share=[5e-324, 1e-310, 2e-308, 0.0, -5e-324, 1e-300]),
    "negative zero": lambda: quasi(share=[-0.0, 0.0, 0.04, -0.04, 9.0]),
    "full decimals": lambda: quasi(
        wage=pl.Series(
            [Decimal("99.99"), Decimal("-99.99"), Decimal("0.01"), None, Decimal("12.30")],
            dtype=pl.Decimal(4, 2),
        )
    ),
    "long decimals": lambda: quasi(
        wage=pl.Series(
            [Decimal(f"12345678901234567.8{i}") for i in range(8)] + [Decimal("1.10")],
            dtype=pl.Decimal(38, 2),
        )
    ),
    "times": lambda: quasi(
        day=[dt.date(1900, 1, 1), None, dt.date(2024, 2, 29)],
        moment=[dt.datetime(1969, 12, 31, 23), None, dt.datetime(2262, 4, 11)],
        clock=[dt.time(0), dt.time(23, 59, 59, 999999), None],
        span=[dt.timedelta(days=-1), None, dt.timedelta(microseconds=1)],
        flag=[True, None, False],
    ),
}
AWKWARD = {name: functools.cache(make) for name, make in AWKWARD.items()}
#: Those on which options are tried; the first example of each thing is tried on all.
FOUR = ("people", "mostly missing", "64 bits", "times")


def crossed(examples: Iterable[Any]) -> list[Any]:
    """Each example with the names of its tables."""
    found, seen = [], set()
    for example in examples:
        what = example.id.partition("(")[0]
        names = FOUR if what in seen else tuple(AWKWARD)
        seen.add(what)
        found += [pytest.param(example, name, id=f"{example.id}-{name}") for name in names]
    return found


# -- methods


@dataclass(frozen=True)
class MaskerExample:
    """One way to call a method; ``{first}`` in a condition is the first quasi-identifier."""

    method: str
    parameters: dict[str, Any]
    #: A rule over records explains no columns and takes none.
    over_records: bool = False
    #: Why a missing cell may get a value: a group shares it, or it travels to another row.
    moves_missing: str = ""
    #: Tables that the method rightly refuses, with the reason.
    refuses: dict[str, str] = field(default_factory=dict)
    #: Whether a row that comes later is mapped as the fitted ones were; else it stays as it is.
    #: None: it gets what is released nearby.
    serves: bool | None = False
    #: Whether a column that changes becomes text.
    into_text: bool = False

    @property
    def id(self) -> str:
        said = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.method}({said})"

    def make(self, table: Table, **more: Any) -> Masker:
        """The method with these parameters, for this table."""
        names = table.roles.quasi_identifiers
        first = '"' + names[0].replace('"', '""') + '"' if names else "nothing"
        given = {
            name: value.format(first=first) if isinstance(value, str) else value
            for name, value in self.parameters.items()
        }
        return KNOWN_METHODS[self.method](**given, **more)


_TOO_FEW = {"one row": "one record cannot be in a group of two"}

MASKERS: list[MaskerExample] = [
    MaskerExample("add_noise", {"epsilon": 2.0}),
    MaskerExample("dates_to_year", {}, serves=True, into_text=True),
    MaskerExample("dates_to_year", {"earliest": 1975}, serves=True, into_text=True),
    MaskerExample(
        "generalize",
        {"k": 2, "seconds": 1.0},
        moves_missing="the root says nothing, also of a missing value",
        refuses=_TOO_FEW,
        serves=True,
        into_text=True,
    ),
    MaskerExample(
        "generalize",
        {"algorithm": "mondrian", "k": 3},
        moves_missing="a box may span missing values",
        refuses=_TOO_FEW | dict.fromkeys(("two values",), "fewer than three records"),
        serves=None,
        into_text=True,
    ),
    MaskerExample(
        "microaggregate",
        {"k": 2, "dissimilarity": "gower"},
        moves_missing="a group shares one value",
        refuses=_TOO_FEW,
    ),
    MaskerExample(
        "microaggregate",
        {"k": 2, "dissimilarity": "ahmad-dey"},
        moves_missing="a group shares one value",
        refuses=_TOO_FEW,
    ),
    MaskerExample("pram", {"keep": 0.1}),
    MaskerExample("rank_swap", {"percent": 50}),
    MaskerExample("recode", {"magnitude": 0.5}, serves=True),
    MaskerExample("recode", {"magnitude": 1.5}, serves=True),
    MaskerExample("round", {"base": 0.2}, serves=True),
    MaskerExample("round", {"base": 2.5}, serves=True),
    MaskerExample("round", {"base": 10}, serves=True),
    MaskerExample("sample", {"fraction": 0.5}, over_records=True),
    MaskerExample("sample", {"fraction": 0.5, "strategy": "stratified"}, over_records=True),
    MaskerExample("shift_dates", {"days": 30}),
    MaskerExample("shift_dates", {"weekdays": True}),
    MaskerExample("suppress", {"max_distinct": 0.45}, serves=True),
    MaskerExample("suppress", {"min_count": 2}),
    MaskerExample("suppress", {"where": "{first} IS NOT NULL"}, serves=True),
    MaskerExample(
        "suppress", {"where": "{first} IS NOT NULL", "target": "records"}, over_records=True
    ),
    MaskerExample(
        "suppress",
        {"min_class_size": 2},
        over_records=True,
        refuses={"one row": "one record cannot be in a class of two"},
    ),
    MaskerExample("suppress", {"k": 2}, refuses=_TOO_FEW),
    MaskerExample("suppress", {"k": 2, "missing": "wildcard"}, refuses=_TOO_FEW),
    MaskerExample("swap", {"k": 2}, moves_missing="cells travel", refuses=_TOO_FEW),
    MaskerExample(
        "swap",
        {"k": 3, "partition": "mdav-random"},
        moves_missing="cells travel",
        refuses=_TOO_FEW | dict.fromkeys(("two values",), "fewer than three records"),
    ),
    MaskerExample("top_bottom_code", {"fence": 0.1}, serves=True),
    MaskerExample("top_bottom_code", {"fence": 1.5}, serves=True),
    MaskerExample("top_bottom_code", {"top": 50.5, "bottom": 2}, serves=True),
]

#: Methods that the contract cannot be asked of, with the reason; they have tests of their own.
APART: dict[str, str] = {
    "pseudonymize": "it is for identifiers, which the contract says that no method changes",
    "redraw": "it draws sensitive values anew, which takes a table with classes that hold a model",
}

#: The parameter that may be given without its name: it is the first one and says what is meant.
FIRST_BY_PLACE: dict[str, Any] = {
    "generalize": "mondrian",
    "microaggregate": 2,
    "pseudonymize": ["name"],
    "redraw": LDiversity(2),
    "swap": 2,
}

#: Only one of these parameters is given at a time.
EXCLUSIVE: dict[str, tuple[str, ...]] = {
    "suppress": ("max_distinct", "min_count", "min_class_size", "where", "k"),
}


#: Parameters that have a meaning only beside another one.
ONLY_WITH: dict[tuple[str, str], tuple[str, ...]] = {
    ("suppress", "target"): ("where",),
    ("suppress", "columns"): ("max_distinct", "min_count", "where", "k"),
    **dict.fromkeys(
        (("suppress", name) for name in ("importance", "combinations", "missing", "models")),
        ("k",),
    ),
}


def _suppression(given: dict[str, Any]) -> dict[str, Any]:
    """A rule over records names no columns."""
    if given.get("target") == "records":
        given.pop("columns", None)
    if "min_class_size" not in given or not given.get("whole", True):
        given.pop("of", None)
    if given.get("missing") == "wildcard" or "combinations" in given:
        given.pop("models", None)
    return given


def _generalization(given: dict[str, Any]) -> dict[str, Any]:
    """There is something to satisfy, and no option of another algorithm."""
    algorithm = given.get("algorithm", "full-domain")
    for name, owner in (
        ("levels", "full-domain"),
        ("suppression_limit", "full-domain"),
        ("loss", "full-domain"),
        ("whole", "full-domain"),
        ("relaxed", "mondrian"),
    ):
        if algorithm != owner:
            given.pop(name, None)
    if given.get("loss") in OF_CLASSES:
        given.pop("weights", None)
    return given if {"k", "models"} & set(given) else {"k": 2, **given}


def _keyed(given: dict[str, Any]) -> dict[str, Any]:
    """A key comes from a file or from a seed, not from both."""
    if "key_file" in given:
        given.pop("random_state", None)
    return given


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    """A fence, or limits of which the lower one is not above the other."""
    if given.get("fence") is None:
        given.pop("fence", None)
    if "fence" in given or not {"top", "bottom"} & set(given):
        return {"fence": 1.5, **{k: v for k, v in given.items() if k not in ("top", "bottom")}}
    if {"top", "bottom"} <= set(given):
        given["bottom"], given["top"] = sorted((given["bottom"], given["top"]))
    return given


#: What the parameters of a method have to do with each other.
CONSISTENT_METHODS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "generalize": _generalization,
    "pseudonymize": _keyed,
    "shift_dates": _keyed,
    "suppress": _suppression,
    "top_bottom_code": _limits,
}


def masked_by(masker: Masker, table: Table) -> Table:
    """Mask without warnings, which have their own tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return masker.fit_transform(table)


# -- parameters as hypothesis draws them


def values_of(constraint: Constraint) -> st.SearchStrategy[Any]:
    """Values that a declared parameter accepts."""
    match constraint:
        case Integer(minimum=minimum):
            return st.integers(minimum, minimum + 10**6)
        case Real():
            low = constraint.minimum if constraint.above is None else constraint.above
            high = constraint.maximum if constraint.below is None else constraint.below
            numbers = st.floats(low, high, allow_nan=False, allow_infinity=False)
            return (numbers | st.integers(1, int(high or 1000))).filter(constraint.accepts)
        case OneOf(choices=choices):
            return st.sampled_from(choices)
        case Flag():
            return st.booleans()
        case Text() | Population() | Tree():
            return st.text(min_size=1).filter(str.strip)
        case ColumnNames():
            return st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True)
        case Secret():
            return st.integers(0, 2**70)
        case Hierarchies():
            kinds = st.sampled_from([Hierarchy.intervals([5, 10]), Hierarchy.prefixes([2])])
            return st.dictionaries(st.text(min_size=1), kinds, min_size=1, max_size=3)
        case ByColumn(each=each):
            return st.dictionaries(st.text(min_size=1), values_of(each), min_size=1, max_size=3)
        case KeySets():
            names = st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True)
            sizes, k = st.integers(1, 9), st.integers(2, 99)
            tables = st.fixed_dictionaries({"columns": names}, optional={"k": k})
            tables |= st.fixed_dictionaries({"size": sizes}, optional={"k": k})
            return st.lists(names | sizes | tables, min_size=1, max_size=3)
        case PrivacyModels():
            models = st.builds(KAnonymity, st.integers(2, 99))
            return models | st.lists(models, min_size=1, max_size=3)
    raise NotImplementedError(f"no strategy for {type(constraint).__name__}: write one here")


@functools.cache
def declared_by(cls: type) -> dict[str, tuple[Parameter, st.SearchStrategy[Any]]]:
    """The parameters of a method or model and what they accept; cached, since it is slow."""
    return {p.name: (p, values_of(p.constraint)) for p in parameters_of(cls)}


def _drawn(draw: st.DrawFn, parameter: Parameter, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    if not parameter.required and draw(st.booleans()):
        return {}
    return {parameter.name: draw(values)}


@st.composite
def maskers(draw: st.DrawFn, method: str) -> Masker:
    """A method with any declared parameters."""
    cls = KNOWN_METHODS[method]
    given: dict[str, Any] = {}
    exclusive = EXCLUSIVE.get(method, ())
    if exclusive:
        chosen = draw(st.sampled_from(exclusive))
        given[chosen] = draw(declared_by(cls)[chosen][1])
    for name, (parameter, values) in declared_by(cls).items():
        needed = ONLY_WITH.get((method, name))
        if name not in exclusive and (needed is None or any(other in given for other in needed)):
            given |= _drawn(draw, parameter, values)
    return cls(**CONSISTENT_METHODS.get(method, dict)(given))


@st.composite
def models(draw: st.DrawFn, model: str) -> PrivacyModel:
    """A model with any declared parameters."""
    cls = KNOWN_MODELS[model]
    given: dict[str, Any] = {}
    for parameter, values in declared_by(cls).values():
        given |= _drawn(draw, parameter, values)
    return cls(**CONSISTENT.get(model, dict)(given))
