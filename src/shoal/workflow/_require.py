"""The requirements on a release: privacy models and limits on measures, and their claims."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

from shoal.errors import (
    InputError,
    ParameterError,
    PlanError,
    about,
    did_you_mean,
    nearest_name,
    quoted,
)
from shoal.hints import Helpful, instead
from shoal.measurement import MeasureInfo, Measurement
from shoal.models import PopulationModel, PrivacyModel, discover_models
from shoal.notebook import listing, view
from shoal.parameters import Real, parameters_of
from shoal.risk import discover_risks
from shoal.table import Hierarchy, Roles, Table
from shoal.utility import discover_utilities
from shoal.workflow.release._crowds import SOME, crowded_percent

#: The names of measures in plans that differ from the names of their functions.
_PLAN_NAMES = {"distance_linkage": "linkage_rate"}
#: Options of measures that name a file; they are private, like such parameters of models.
_PRIVATE_OPTIONS = ("hierarchy",)
_MEASURE_NAMES = {spoken: name for name, spoken in _PLAN_NAMES.items()}


@cache
def discover_all_measures() -> dict[str, MeasureInfo]:
    """Every measure of risk and utility by name."""
    return discover_risks() | discover_utilities()


def known_measure(name: Any) -> str:
    """The name itself if it is one of a measure; otherwise ParameterError with the nearest one."""
    known = discover_all_measures()
    if not isinstance(name, str) or name not in known:
        raise ParameterError(
            f"There is no measure '{getattr(name, '__name__', name)}'. {did_you_mean(name, known)}"
        )
    return name


def limit_key(bound: str, measure: str) -> str:
    """The name in a plan of a limit on a measure."""
    return f"{bound}_{_PLAN_NAMES.get(measure, measure)}"


def limited_measure(key: str) -> MeasureInfo | None:
    """The measure that a key of a plan limits; None if it does not limit one."""
    bound, _, spoken = key.partition("_")
    if bound not in ("max", "min"):
        return None
    return discover_all_measures().get(_MEASURE_NAMES.get(spoken, spoken))


@dataclass(frozen=True)
class Limit(Helpful):
    """A limit on a measure: at most, or at least, a value.

    In a plan it is written ``max_<measure> = value`` or ``min_<measure> = value``.

    Parameters
    ----------
    measure : str
        Name of a measure of risk or utility.
    at_most : float, optional
        The largest value that is accepted.
    at_least : float, optional
        The smallest value that is accepted.
    options : dict
        Options of the measure, for example ``{"threshold": 0.1}``.

    Examples
    --------
    >>> Limit("marketer_risk", at_most=0.05)
    Limit('marketer_risk', at_most=0.05)
    >>> Limit("marketer_risk", at_most=0.05).key
    'max_marketer_risk'
    """

    _instead = instead({"limit.threshold": "value limit bound"})
    #: As of a privacy model: no limit bounds links, and none needs the audit.
    bounds_links: ClassVar[bool] = False
    needs_audit: ClassVar[bool] = False

    measure: str
    at_most: float | None = None
    at_least: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = _MEASURE_NAMES.get(str(self.measure), self.measure)
        object.__setattr__(self, "measure", known_measure(name))
        bounds = [b for b in (self.at_most, self.at_least) if b is not None]
        if len(bounds) != 1 or not Real().accepts(bounds[0]):
            raise ParameterError(
                f"A limit on '{self.measure}' takes one number such as 0.1, as at_most or at_least."
            )
        low, high = self.info.limits
        if not low <= bounds[0] <= high:
            share = " Write 10 % as 0.1." if (low, high) == (0, 1) else ""
            raise ParameterError(
                f"A limit of '{self.measure}' lies between {low:g} and {high:g}; got "
                f"{bounds[0]:g}.{share}"
            )
        # only options that the measure has and that a plan and a release can hold
        self.info.check_names(self.options, in_plan=True)
        for name, value in self.options.items():
            names = isinstance(value, list) and all(isinstance(one, str) for one in value)
            if not isinstance(value, (str, bool)) and not names and not Real().accepts(value):
                raise ParameterError(
                    f"The option '{name}' of a limit on '{self.measure}' must be a number, a text "
                    f"or a list of texts; got {type(value).__name__}."
                )
            self.info.options[name].check(value, self.measure)

    def __repr__(self) -> str:
        named = {
            "at_most": self.at_most,
            "at_least": self.at_least,
            "options": self.options or None,
        }
        given = (f", {name}={value!r}" for name, value in named.items() if value is not None)
        return f"Limit({self.measure!r}{''.join(given)})"

    @property
    def side(self) -> str:
        """Where values may lie: at most, or at least, at the threshold."""
        return "at most" if self.at_most is not None else "at least"

    @property
    def info(self) -> MeasureInfo:
        return discover_all_measures()[self.measure]

    @property
    def key(self) -> str:
        """The name of the limit in a plan."""
        return limit_key("max" if self.at_most is not None else "min", self.measure)

    @property
    def threshold(self) -> float:
        bound = self.at_most if self.at_most is not None else self.at_least
        assert bound is not None
        return float(bound)

    def changed_params(self, *, public: bool = False) -> dict[str, Any]:
        """The limit and its options, as in a plan; without private ones when ``public``."""
        hidden = _PRIVATE_OPTIONS if public else ()
        shown = {name: value for name, value in self.options.items() if name not in hidden}
        return {"value": self.threshold, **shown}

    def _repr_html_(self) -> str:
        _, *options = self.changed_params(public=True).items()
        row = (self.info.title, f"{self.side} {self.threshold:g}", *(v for _, v in options))
        return view(self.key, listing(("measure", "limit", *(n for n, _ in options)), [row]))

    def sentence(self, value: float) -> str:
        """The limit and a measured value, in words."""
        required = f"{self.side} {self.threshold:g}"
        return f"the {self.info.title} must be {required} and is {value:.4g}"

    def accepts(self, value: float) -> bool:
        """Whether a measured value is within the limit."""
        return value <= self.threshold if self.at_most is not None else value >= self.threshold

    def run(self, masked: Table, original: Table | None) -> Measurement:
        """Measure; only measures that compare need the original."""
        return self.info.take(original, masked, **self.options)


Requirement = PrivacyModel | Limit


@dataclass(frozen=True)
class Claim:
    """A requirement with its value on the masked table.

    ``rows`` is the number of records or persons that the value is a share of. A claim that
    ``rests_on_seed`` holds only as long as nobody learns or guesses a seed. ``sampled`` is the
    number of persons measured if it was a sample; then the worse end of the interval decided.
    """

    requirement: Requirement
    measured: float
    holds: bool
    sentence: str
    rows: int
    rests_on_seed: bool = False
    sampled: int | None = None

    @property
    def key(self) -> str:
        return key_of(self.requirement)

    @property
    def title(self) -> str:
        """The key, and the column that it is about if that is one of several."""
        column = getattr(self.requirement, "column", None)
        return self.key if column is None else f"{self.key} of {column}"

    @property
    def needs_original(self) -> bool:
        return isinstance(self.requirement, Limit) and self.requirement.info.needs_original

    @property
    def bounds_links(self) -> bool:
        """Whether it bounds the chance of a right link by 1 in the measured value."""
        return self.requirement.bounds_links

    @property
    def published(self) -> float | None:
        """The measured value for the public; None if the public may only know that it holds.

        The exact share compared with the original would reveal how many records were removed or
        left unmasked, so it is rounded to steps of a crowd.
        """
        if not self.needs_original:
            return self.measured
        assert isinstance(self.requirement, Limit)
        if self.requirement.info.limits != (0, 1):
            return None
        percent = crowded_percent(self.measured, self.rows)
        return None if percent is None else percent / 100

    @property
    def sampled_about(self) -> int | None:
        """The number of persons measured, rounded so as not to reveal the original's size."""
        return None if self.sampled is None else int(float(f"{self.sampled:.2g}"))

    def to_dict(self) -> dict[str, Any]:
        """The claim as in ``release.json``."""
        return {
            "claim": self.key,
            "requirement": plain(value_of(self.requirement, public=True)),
            "required": plain(self.requirement.threshold),
            "measured": self.published,
            "holds": self.holds,
            "needs_original": self.needs_original,
            "private_parameters": has_private_parameters(self.requirement),
            "rests_on_seed": self.rests_on_seed,
            **({} if self.sampled is None else {"sampled_persons": self.sampled_about}),
        }


def publishable_claims(claims: Iterable[Claim], removed: int | str) -> tuple[Claim, ...]:
    """The claims as published next to the number of removed records.

    If that number is withheld, shares of the original are too, since they would reveal it.
    """
    return tuple(replace(claim, rows=0) if removed == SOME else claim for claim in claims)


def make_claim(
    requirement: Requirement,
    masked: Table,
    original: Table | None,
    *,
    served: Callable[[Table], Table] | None = None,
    accept_seed: bool = False,
) -> Claim:
    """Measure a requirement with code that took no part in the masking.

    ``served`` maps rows of a population into the domain of the masked table. With ``accept_seed``,
    a model may rely on values that were drawn from a seed.
    """
    if isinstance(requirement, Limit):
        found = requirement.run(masked, original)
        sentence = requirement.sentence(found.value)
        if found.interval is not None:
            sentence += f" (95 % {found.interval[0]:.4g} to {found.interval[1]:.4g})"
        holds = requirement.accepts(found.value)
        people = found.details.get("persons", len(masked))
        return Claim(requirement, found.value, holds, sentence, people)
    asked = requirement
    if masked.times is not None and not asked.by_counts:
        raise InputError(
            f"{asked.title} needs single records, but a tally only counts combinations."
        )
    if isinstance(asked, PopulationModel) and served is not None:
        people = asked.people_of(masked)
        names = masked.roles.quasi_identifiers
        people = people.with_roles(Roles(quasi_identifiers=names))
        model: Any = asked  # each of these models is a dataclass; their base is not
        asked = replace(model, population=served(people))
    drawn = masked.accepting_seeds() if accept_seed else masked
    level, holds = asked.level(drawn), asked.holds(drawn)
    on_seed = drawn is not masked and level != asked.level(masked)
    return Claim(requirement, level, holds, asked.explain(drawn), len(masked), on_seed)


def key_of(requirement: Requirement) -> str:
    """The name of a requirement in a plan."""
    return requirement.key if isinstance(requirement, Limit) else requirement.model


def has_private_parameters(requirement: Requirement) -> bool:
    """Whether the public half must leave out part of a requirement."""
    return requirement.changed_params() != requirement.changed_params(public=True)


def private_names_of(key: str) -> list[str]:
    """The parameters of a requirement that are never published; none if it is unknown."""
    model = discover_models().get(key)
    if model is not None:
        return [parameter.name for parameter in parameters_of(model) if parameter.private]
    info = limited_measure(key)
    return [] if info is None else [n for n in info.options if n in _PRIVATE_OPTIONS]


def value_of(requirement: Requirement, *, public: bool = False) -> Any:
    """The value of a requirement in a plan: one number, or a table if it has more parameters."""
    changed = requirement.changed_params(public=public)
    return next(iter(changed.values())) if len(changed) == 1 else changed


def value_on_record(requirement: Requirement) -> Any:
    """The value of a requirement for the audit, with the content of hierarchies in place of paths.

    So a release can be verified from its folder alone, without trusting any path in it.
    """
    value = value_of(requirement)
    written = value.get("hierarchy") if isinstance(value, Mapping) else None
    if written is not None and not isinstance(requirement, Limit):
        value = {**value, "hierarchy": replace(Hierarchy.from_plan(written), source=None)}
    return plain(value)


def plain(value: Any, *, public: bool = False) -> Any:
    """The value as files can hold it: lists, tables, and Python's numbers.

    If ``public``, models are without their private parameters, such as a population.
    """
    if isinstance(value, PrivacyModel):
        return {key_of(value): plain(value_of(value, public=public), public=public)}
    if isinstance(value, Mapping):
        return {key: plain(item, public=public) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, public=public) for item in value]
    if callable(getattr(value, "to_plan", None)):  # a hierarchy
        return plain(value.to_plan())
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, int)):
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    return value


def in_toml(value: Any) -> str:
    """A value as a plan writes it on one line."""
    import tomlkit

    if isinstance(value, Mapping):
        inner = (f"{tomlkit.key(name).as_string()} = {in_toml(one)}" for name, one in value.items())
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    return str(tomlkit.item(value).as_string())


def requirements_to_dict(requirements: Iterable[Requirement]) -> dict[str, Any]:
    """The ``[require]`` part of a plan; a name used twice becomes a list."""
    out: dict[str, Any] = {}
    for requirement in requirements:
        key, value = key_of(requirement), value_of(requirement)
        if key not in out:
            out[key] = value
        else:
            earlier = out[key] if isinstance(out[key], list) else [out[key]]
            out[key] = [*earlier, value]
    return out


def requirements_from_dict(given: Mapping[str, Any]) -> list[Requirement]:
    """Read the ``[require]`` part of a plan."""
    empty = [key for key, value in given.items() if value == []]
    if empty:
        raise PlanError(
            f"The requirement '{empty[0]}' has no value. Add one, or remove the requirement."
        )
    return [
        requirement_from(key, one)
        for key, value in given.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def requirement_from(key: str, value: Any) -> Requirement:
    """One requirement by its name and value in a plan."""
    models, measures = discover_models(), discover_all_measures()
    if key in models:
        model = models[key]
        given = value if isinstance(value, Mapping) else {parameters_of(model)[0].name: value}
        with about(f"The requirement '{key}'"):
            return model.from_params(given, called=f"requirement '{key}'")
    if (limited := limited_measure(key)) is not None:
        options = dict(value) if isinstance(value, Mapping) else {"value": value}
        number = options.pop("value", None)
        which = "at_most" if key.startswith("max") else "at_least"
        with about(f"The requirement '{key}'"):
            return Limit(limited.name, options=options, **{which: number})
    spoken = [_PLAN_NAMES.get(name, name) for name in measures]
    if (name := _MEASURE_NAMES.get(key, key)) in measures:
        bound = "max" if measures[name].direction == "lower" else "min"
        raise PlanError(
            f"There is no requirement '{key}'. Did you mean '{limit_key(bound, name)}'?"
        )
    known = [*models, *(f"max_{m}" for m in spoken), *(f"min_{m}" for m in spoken)]
    near = nearest_name(key, known)
    cure = (
        f"Did you mean '{near}'?"
        if near is not None
        else f"Name a model ({quoted(models)}), or limit a measure, as max_marketer_risk = 0.1."
    )
    raise PlanError(f"There is no requirement '{key}'. {cure}")
