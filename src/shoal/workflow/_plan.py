"""A plan: roles, steps and requirements, as Python objects and as TOML; the two round-trip."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from shoal.errors import (
    InputError,
    PlanError,
    RolesError,
    ShoalError,
    did_you_mean,
    nearest_name,
    quoted,
)
from shoal.hints import Helpful, check_path, instead
from shoal.masking import Masker, Progress, Pseudonymize, Secrets, ShiftDates, discover_maskers
from shoal.models import PrivacyModel, discover_models
from shoal.parameters import parameters_of
from shoal.table import ReadOptions, Roles, Table, as_roles, check_table
from shoal.table.columns._frames import Kind
from shoal.workflow._plan_parts import AboutRelease, EngineSettings, PlanPart
from shoal.workflow._plan_words import as_plan, as_requirement, as_step, called, plan_view
from shoal.workflow._require import (
    Limit,
    Requirement,
    in_toml,
    plain,
    requirements_from_dict,
    requirements_to_dict,
)
from shoal.workflow.release._crowds import crowded_percent

#: The switches of a plan, which stand above its first table.
_SWITCHES = ("keep_order", "accept_seed", "pseudonyms")
#: What to do about what the TOML parser refuses.
_TOML_CURES = {
    "Invalid value": " Put texts in quotation marks, and write true and false in small letters.",
    "Cannot overwrite": " Write each key once.",
    "Expected '='": " Write a line as name = value, in the form that 'shoal init' writes.",
    "Invalid statement": " Write lines as name = value, and comments after #.",
    "after a statement": " Write a number with a point and without a sign, such as 0.05.",
    "twice": " Write each [table] once; steps are written as [[steps]].",
}
_PARTS = (*_SWITCHES, "unlisted", "release", "read", "roles", "steps", "require", "engine")
_ALGORITHMS = ("full-domain", "mondrian", "local")
_KINDS = get_args(Kind)
#: What to do with columns of a source that a plan does not list.
Unlisted = Literal["refuse", "drop", "keep"]
_UNLISTED = ("refuse", "drop", "keep")


@dataclass(frozen=True)
class StepRecord:
    """What one step did; everything except ``private`` and ``fitted`` may be published.

    ``fitted`` is a copy of the plan's step that learned from the table; None if the step had
    nothing to do.
    """

    method: str
    parameters: Mapping[str, Any]
    touched: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    removed_columns: tuple[str, ...] = ()
    removed: int = 0
    losing: int = 0
    private: Mapping[str, Any] = field(default_factory=Secrets, repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)
    fitted: Masker | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """What the step did, as plain data for the steward."""
        return {
            "method": self.method,
            "columns": self.touched,
            "left_alone": self.skipped,
            "columns_removed": self.removed_columns,
            "records_removed": self.removed,
            "minimality": minimality_of(self),
        }


class Plan(Helpful):
    """The steps that mask a table, and the requirements that must hold afterwards.

    Parameters
    ----------
    steps : list of methods
        Applied one after the other, for example ``[sh.Round(base=5)]``.
    require : list of models or limits
        What the masked table must satisfy. Otherwise nothing is released.
    roles : Roles or dict, optional
        The roles of the columns, if the table does not have them.
    keep_order : bool
        Keep the rows in the order of the input. By default rows are shuffled, since their order
        may reveal who is who.
    accept_seed : bool
        Accept a model that depends on chance although a step has a ``random_state``. The claim
        then states that it rests on a seed: anyone who learns or guesses the seed can undo the
        release.
    pseudonyms : bool
        Release the unit as random names, made for this release only, so that a reader can tell
        which rows belong to one person. By default the unit is removed.
    unlisted : {"refuse", "drop", "keep"}, optional
        What to do with a column that is named neither under ``read`` nor in the roles nor in a
        step: refuse the table, drop the column, or release it unchanged. By default the column is
        released with a warning.
    read : ReadOptions, optional
        How to read the source, and which columns it had when the plan was made.
    engine : EngineSettings, optional
        How an engine runs the plan on a table that does not fit into memory.
    release : dict or AboutRelease, optional
        What the release is, for whom and why: its title, publisher, contact, recipient, purpose and
        licence, and the papers to write with it.

    Examples
    --------
    >>> from shoal import KAnonymity, Round
    >>> plan = Plan([Round(base=5)], require=[KAnonymity(3)])
    >>> print(plan.to_toml())
    [[steps]]
    method = "round"
    base = 5
    <BLANKLINE>
    [require]
    k_anonymity = 3
    <BLANKLINE>
    >>> Plan.from_toml(plan.to_toml()) == plan
    True
    """

    _instead = instead(
        {
            "sh.protect(table, plan)": "fit fit_transform transform run protect",
            "plan.require": "requirements models",
            "sh.Plan([*plan.steps, step])": "add append add_step",
            "plan.to_dict() or plan.to_toml()": "to_json",
        }
    )

    def __init__(
        self,
        steps: Iterable[Masker] = (),
        *,
        require: Iterable[Requirement] = (),
        roles: Roles | Mapping[str, Any] | None = None,
        keep_order: bool = False,
        accept_seed: bool = False,
        pseudonyms: bool = False,
        unlisted: Unlisted | None = None,
        read: ReadOptions | None = None,
        engine: EngineSettings | None = None,
        release: AboutRelease | Mapping[str, Any] | None = None,
    ) -> None:
        for part, given in (("steps", steps), ("require", require)):
            if isinstance(given, Mapping):
                raise PlanError(
                    f"'{part}' of a plan is a list; got a dict. Write {part}=[...], or use "
                    "sh.Plan.from_dict."
                )
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise PlanError(
                    f"'{part}' of a plan must be a list; got {called(given)}. Write {part}=[...]."
                )
        self.steps = tuple(steps)
        self.require = tuple(require)
        self.roles = None if roles is None else as_roles(roles)
        self.keep_order = keep_order
        self.accept_seed = accept_seed
        self.pseudonyms = pseudonyms
        self.unlisted = unlisted
        self.read = read
        self.engine = EngineSettings() if engine is None else engine
        self.release = (
            release if isinstance(release, PlanPart) else AboutRelease.from_dict(release or {})
        )
        self._check()

    @classmethod
    def of(cls, given: Any) -> Plan:
        """A plan from a Plan, a list of steps, or the path of a file.

        Examples
        --------
        >>> from shoal import Round
        >>> Plan.of([Round(base=5)])
        Plan: round; requires nothing
        """
        if isinstance(given, Plan):
            return given
        if isinstance(given, str) and "\n" in given:
            raise PlanError(f"A plan is needed; got the text of one. {as_plan(given)}")
        if isinstance(given, (str, os.PathLike)):
            return cls.load(given)
        if isinstance(given, (list, tuple)):
            return cls(given)
        if isinstance(given, Masker):
            return cls([given])
        raise PlanError(f"A plan is needed; got {called(given)}. {as_plan(given)}")

    def replacing(self, **changes: Any) -> Plan:
        """A copy of the plan with some parts replaced."""
        return Plan(**{part: getattr(self, part) for part in _PARTS} | changes)

    def _check(self) -> None:
        for step in self.steps:
            if not isinstance(step, Masker):
                raise PlanError(
                    f"A step of a plan must be a masking method; got {called(step)}. "
                    f"{as_step(step)}"
                )
        for requirement in self.require:
            if not isinstance(requirement, (PrivacyModel, Limit)):
                raise PlanError(
                    "A requirement of a plan must be a privacy model or a limit; got "
                    f"{called(requirement)}. {as_requirement(requirement)}"
                )
            held = [n for n, v in vars(requirement).items() if isinstance(v, Table)]
            if held:
                raise PlanError(
                    f"The '{held[0]}' of {type(requirement).__name__} is a table in memory. It is "
                    "private, and a plan cannot hold it. Save it, and pass the path of its "
                    "file."
                )
        kinds: dict[str, tuple[Any, str]] = {
            "engine": (EngineSettings, "workflow.EngineSettings"),
            "release": (AboutRelease, "workflow.AboutRelease"),
            "read": ((ReadOptions, type(None)), "ReadOptions"),
        }
        for part, (kind, name) in kinds.items():
            given = getattr(self, part)
            if not isinstance(given, kind):
                raise PlanError(f"'{part}' must be a shoal.{name}; got {type(given).__name__}.")
        if self.unlisted is not None and self.unlisted not in _UNLISTED:
            raise PlanError(
                f"'unlisted' of a plan must be one of {quoted(_UNLISTED)}; got {self.unlisted!r}."
            )
        for switch in _SWITCHES:
            if not isinstance(getattr(self, switch), bool):
                raise PlanError(f"'{switch}' of a plan must be true or false.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        steps = ", ".join(step.method for step in self.steps) or "no steps"
        told = requirements_to_dict(self.require).items()
        required = ", ".join(
            f"{k} = {in_toml(v) if isinstance(v, Mapping) else v}" for k, v in told
        )
        return f"Plan: {steps}; requires {required or 'nothing'}"

    def _repr_html_(self) -> str:
        return plan_view(self)

    # -- applying

    def roles_for(self, table: Table) -> Roles:
        """The roles in force, from the plan or the table; they must not contradict."""
        if self.roles is None:
            return table.roles
        own = table.dictionary.followed(self.roles, table.columns)
        if own == table.roles:
            return own
        if table.roles != Roles():
            raise RolesError(
                "The plan and the table declare different roles. Remove them from one of the two."
            )
        return own

    def apply(
        self, table: Table, *, progress: Progress | None = None
    ) -> tuple[Table, list[StepRecord]]:
        """Run copies of the steps on a table; neither the order of the rows nor the plan changes.

        The records hold what the steps learned; ``in_released_domain`` uses it.
        """
        check_table(table, "A plan")
        records: list[StepRecord] = []
        given = table.roles.quasi_identifiers
        for number, step in enumerate(self.steps):
            if progress:
                progress(f"Masking: {step.method}", number / len(self.steps))
            parameters = plain(step.changed_params(public=True), public=True)
            named = getattr(step, "columns", None)
            with at_step(number, step.method):
                is_idle = bool(given) and step.needs_columns and not table.chosen(named)
            if is_idle:
                # earlier steps removed every quasi-identifier: nothing is left to mask
                records.append(StepRecord(step.method, parameters))
                continue
            fitted = copy.copy(step)
            with at_step(number, step.method):
                table = fitted.fit_transform(table, progress=progress, place=number)
            records.append(
                StepRecord(
                    step.method,
                    parameters,
                    touched=fitted.touched_,
                    skipped=fitted.skipped_,
                    removed_columns=fitted.removed_columns_,
                    removed=fitted.removed_,
                    losing=fitted.losing_,
                    private=fitted.audit_,
                    facts=fitted.facts_,
                    fitted=fitted,
                )
            )
            if len(table) == 0:
                break
        return table, records

    def mask(
        self, table: Table, *, progress: Progress | None = None
    ) -> tuple[Table, list[StepRecord]]:
        """Run the steps on what may leave of a table.

        Identifiers are dropped at once. Those that a step needs are dropped afterwards, unless the
        step made pseudonyms of them.
        """
        roles = table.roles
        needed = self.identifiers_needed(roles)
        masked, records = self.apply(
            table.drop([name for name in roles.withheld if name not in needed]), progress=progress
        )
        named = pseudonymized_by(records)
        left = [n for n in masked.columns if n in roles.withheld and n not in named]
        return (masked.drop(left) if left else masked), records

    @property
    def recorded_kinds(self) -> Mapping[str, str]:
        """The kinds of the columns that the source had when the plan was made, if it says so."""
        return (self.read.columns if self.read is not None else None) or {}

    def columns_of_steps(self) -> list[str]:
        """The columns that the steps name."""
        named = (getattr(s, part, None) for s in self.steps for part in ("columns", "hierarchies"))
        return [name for names in named for name in names or ()]

    def identifiers_needed(self, roles: Roles) -> set[str]:
        """The columns that never leave as they are, but that some step has to see."""
        return {name for step in self.steps for name in step.identifiers_needed(roles)}

    # -- the TOML form

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, in the shape of its TOML form."""
        out: dict[str, Any] = {switch: True for switch in _SWITCHES if getattr(self, switch)}
        if self.unlisted is not None:
            out["unlisted"] = self.unlisted
        if about := self.release.to_dict():
            out["release"] = about
        if self.read is not None:
            out["read"] = self.read.to_dict()
        if self.roles is not None:
            out["roles"] = self.roles.to_dict()
        if self.steps:
            out["steps"] = [
                {"method": step.method, **plain(step.changed_params())} for step in self.steps
            ]
        if self.require:
            out["require"] = plain(requirements_to_dict(self.require))
        return out | ({"engine": engine} if (engine := self.engine.to_dict()) else {})

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, folder: Path | None = None) -> Plan:
        """A plan from plain data, in the shape of its TOML form.

        Paths in it are relative to ``folder``, if that is given.
        """
        if not isinstance(given, Mapping):
            raise PlanError(f"A plan must be a table of its parts; got {type(given).__name__}.")
        for part in given:
            if part not in _PARTS:
                raise PlanError(f"A plan has no part '{part}'. {did_you_mean(part, _PARTS)}")
        roles, require, read = given.get("roles"), given.get("require", {}), given.get("read")
        for part, value in (("roles", roles), ("require", require), ("read", read)):
            if value is not None and not isinstance(value, Mapping):
                raise PlanError(f"'{part}' of a plan must be a table. Write it under [{part}].")
        steps = given.get("steps", [])
        if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
            raise PlanError("'steps' of a plan must be a list. Write each one under [[steps]].")
        for part in (roles, require, read, *steps):
            for switch in (*_SWITCHES, "unlisted"):
                if part is not None and switch in part:
                    raise PlanError(f"Move '{switch}' above the first [table] of the plan.")
        made = []
        for number, step in enumerate(steps):
            with at_step(number, step.get("method")):
                made.append(_step_from(step, folder))
        with _in_part("require"):
            requirements = requirements_from_dict(require)
        with _in_part("roles"):
            declared = None if roles is None else Roles.from_dict(roles)
        return cls(
            made,
            require=requirements,
            roles=declared,
            unlisted=given.get("unlisted"),
            read=None if read is None else _reading_from(read),
            engine=EngineSettings.from_dict(given.get("engine", {})),
            release=AboutRelease.from_dict(given.get("release", {})),
            **{switch: given.get(switch, False) for switch in _SWITCHES},
        )

    def to_toml(self) -> str:
        """The plan as the text of a TOML file."""
        import tomlkit

        return tomlkit.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str, *, folder: Path | None = None) -> Plan:
        """A plan from the text of a TOML file; paths in it are relative to ``folder``."""
        if not isinstance(text, str):
            raise PlanError(
                f"Plan.from_toml takes the text of a plan; got {type(text).__name__}. Use "
                "Plan.load for the path of a file, or Plan.from_dict for plain data."
            )
        given = _parsed(text, "plan")
        try:
            return cls.from_dict(given, folder=folder)
        except InputError as cause:
            line = _line_of(cause, text)
            if line is not None:
                cause.args = (f"Line {line} of the plan: {cause}",)
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as a TOML file."""
        check_path(path, "Plan.save", "Pass the name of a file, such as 'plan.toml'.")
        try:
            Path(path).write_text(self.to_toml(), encoding="utf-8")
        except OSError as cause:
            raise PlanError(
                f"The plan cannot be written to '{path}' ({cause.strerror}). Pass the name of a "
                "file in a folder that exists."
            ) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a TOML file."""
        check_path(
            path, "Plan.load", "Plan.from_dict and Plan.from_toml take the content of a file."
        )
        text = read_text(path, "plan", "; 'shoal init DATA' writes a first one")
        return cls.from_toml(text, folder=Path(path).parent)


def read_toml(path: str | os.PathLike[str], called: str) -> dict[str, Any]:
    """The content of a TOML file; errors use the given name for it."""
    return _parsed(read_text(path, called), called)


def read_text(path: str | os.PathLike[str], called: str, remedy: str = "") -> str:
    """The text of a file in UTF-8; errors use the given name for it."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"There is no {called} at '{path}'{remedy}.") from None
    except IsADirectoryError:
        raise PlanError(
            f"The {called} at '{path}' is a folder. Pass the file in it that ends in .toml."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise PlanError(f"The {called} at '{path}' cannot be read as a UTF-8 text file.") from None


def _parsed(text: str, called: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))  # which some editors put first
    except tomllib.TOMLDecodeError as cause:
        cure = next((cure for part, cure in _TOML_CURES.items() if part in str(cause)), "")
        raise PlanError(f"The {called} is not valid TOML: {cause}.{cure}") from None


def pseudonymized_by(steps: Iterable[Any]) -> set[str]:
    """The columns that steps made pseudonyms of, by what is on record of the steps."""
    return _touched_by(Pseudonymize.method, steps)


def shifted_by(steps: Iterable[Any]) -> set[str]:
    """The columns whose dates were shifted, by what is on record of the steps."""
    return _touched_by(ShiftDates.method, steps)


def _touched_by(method: str, steps: Iterable[Any]) -> set[str]:
    told = [one if isinstance(one, Mapping) else one.to_dict() for one in steps]
    return {n for one in told if one["method"] == method for n in one["columns"]}


def in_released_domain(records: Iterable[StepRecord], people: Table) -> Table:
    """People of a population, mapped in the same way as the plan mapped its table.

    Where released classes overlap, a person appears once for each class that covers them.
    """
    for record in records:
        if record.fitted is not None:
            people = record.fitted.cover(people)
    return people


@contextmanager
def at_step(number: int, method: object) -> Iterator[None]:
    """Add the number of the step to every error that arises in it."""
    try:
        with _in_part("steps", number):
            yield
    except ShoalError as cause:
        named = f" ({method})" if isinstance(method, str) else ""
        cause.args = (f"Step {number + 1}{named}: {cause}", *cause.args[1:])
        raise


@contextmanager
def _in_part(part: str, number: int = 0) -> Iterator[None]:
    """Record in every error which part of a plan it concerns."""
    try:
        yield
    except ShoalError as cause:
        cause.plan_part = part, number
        raise


def _line_of(cause: InputError, text: str) -> int | None:
    """The line of a plan that an error is about: that of the quoted name, or of the step."""
    lines = text.splitlines()
    part, number = cause.plan_part or ("", 0)
    brackets, end = (r"\[\s*\[", r"\]") if part == "steps" else (r"\[", r"[\].]")
    head = re.compile(rf"\s*{brackets}\s*[\"']?{part}[\"']?\s*{end}")
    heads = [n for n, line in enumerate(lines, 1) if part and head.match(line)]
    first, last = 1, len(lines)
    if len(heads) > number:
        first = heads[number]
    elif part == "steps":
        return None  # the plan uses another TOML notation
    if part == "steps":
        last = next((head - 1 for head in heads if head > first), last)
    for name in re.findall(r"'([^'\n]+)'", str(cause)):
        key = re.compile(rf"\s*\[*\s*(?:\w+\.)*[\"']?{re.escape(name)}[\"']?\s*[=\]]")
        for line, content in enumerate(lines[first - 1 : last], first):
            if key.match(content):
                return line
    return first if part == "steps" else None


@_in_part("read")
def _reading_from(given: Mapping[str, Any]) -> ReadOptions:
    try:
        made = ReadOptions.from_dict(given)
    except InputError as cause:
        raise PlanError(f"[read] of the plan: {cause}") from None
    for name, kind in (made.columns or {}).items():
        if kind not in _KINDS:
            near = did_you_mean(kind, _KINDS)
            raise PlanError(f"[read.columns] has no kind {kind!r} for '{name}'. {near}")
    return made


def _step_from(entry: Mapping[str, Any], folder: Path | None) -> Masker:
    methods = discover_maskers()
    method = entry.get("method")
    if method is None:
        slip = next((key for key in entry if nearest_name(key, ["method"])), None)
        if slip is not None:
            raise PlanError(f"A step has no '{slip}'. Did you mean 'method'?")
        raise PlanError(f"The step does not name a method. {did_you_mean('', methods)}")
    if not isinstance(method, str) or method not in methods:
        cure = did_you_mean(str(method), methods)
        if str(method) in discover_models():
            cure = "It is a privacy model: write it under [require]."
        elif str(method) in _ALGORITHMS:
            cure = f'Write method = "generalize" and algorithm = "{method}".'
        raise PlanError(f"There is no method '{method}'. {cure}")
    given = {name: value for name, value in entry.items() if name != "method"}
    for parameter in parameters_of(methods[method]) if folder is not None else ():
        if parameter.name in given:
            given[parameter.name] = parameter.constraint.relocate(given[parameter.name], folder)
    return methods[method].from_plan(given)


def minimality_of(step: StepRecord) -> dict[str, Any] | None:
    """What follows from the fact that a step was not finer; None if nothing does.

    The audit of a step records what follows from its own search. This function turns it into what
    the public may read. ``columns`` lists the columns that could not be one level finer.
    ``cells_percent`` is the share of their cells that this narrows down, and ``records_percent``
    the share of records with such a cell. A share is None if the table is too small to publish it.
    """
    audited = step.private.get("minimality")
    if not audited or not audited["columns"]:
        return None
    rows = audited["released"]
    return {
        "algorithm": step.parameters.get("algorithm", "full-domain"),
        "columns": list(audited["columns"]),
        "cells_percent": crowded_percent(audited["cells"] / (rows * audited["width"]), rows),
        "records_percent": crowded_percent(audited["records"] / rows, rows),
    }


def minimalities_of(steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """The conclusions from all steps that allow one."""
    return [found for step in steps if (found := minimality_of(step)) is not None]


def minimality_in_words(found: Mapping[str, Any], *, named: bool = True) -> str:
    """What someone who knows the algorithm and the hierarchies can conclude."""
    of = f" of {quoted(found['columns'])}" if named else ""
    if found["algorithm"] == "local":
        known = f"one level below each coarse value{of}, the records of a class differ"
    else:
        known = f"with one level finer{of}, some class would have failed"
    cells, records = found["cells_percent"], found["records_percent"]
    if cells is None:
        size = "The table is too small to state how many cells this narrows down."
    elif not cells and not records:
        size = "This narrows down less than 1 % of the cells by itself."
    else:
        size = f"This narrows down {cells:g} % of the cells, in {records:g} % of the records."
    return f"Anyone who knows the algorithm and the hierarchies can conclude that {known}. {size}"
