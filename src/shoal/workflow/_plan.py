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
from typing import Any, Literal

from shoal.errors import (
    InputError,
    PlanError,
    ReadError,
    RolesError,
    ShoalError,
    did_you_mean,
    quoted,
)
from shoal.hints import Helpful, check_path, instead
from shoal.masking import Masker, Progress, Secrets, discover_maskers
from shoal.models import PrivacyModel
from shoal.parameters import parameters_of
from shoal.table import ReadOptions, Roles, Table, as_roles, check_table
from shoal.workflow._plan_words import as_requirement, as_step, called, plan_view
from shoal.workflow._require import (
    Limit,
    Requirement,
    plain,
    requirements_from_dict,
    requirements_to_dict,
)
from shoal.workflow.release._crowds import crowded_percent

#: What a plan switches on, before its first table.
_SWITCHES = ("keep_order", "accept_seed", "pseudonyms")
#: How an error begins that arose in a step.
_STEP = "Step"
_STEP_HEAD = re.compile(r"\s*\[\[\s*[\"']?steps[\"']?\s*\]\]")
_PARTS = (*_SWITCHES, "unlisted", "read", "roles", "steps", "require", "engine")
#: What is done with columns of a source that a plan does not know.
Unlisted = Literal["refuse", "drop", "keep"]
_UNLISTED = ("refuse", "drop", "keep")


@dataclass(frozen=True)
class StepRecord:
    """What one step did; all but ``private`` and ``fitted`` is fit for the public half.

    ``fitted`` is a copy of the plan's step that learned from the table; None where the step had
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


@dataclass(frozen=True)
class EngineSettings:
    """How an engine runs a plan on a table that does not fit memory: ``[engine]`` of a plan.

    Parameters
    ----------
    memory_limit : str, optional
        What a run on DuckDB is to hold in memory, as ``"2GB"``: a quarter is for DuckDB, which
        spills the rest to disk.
    temporary : str, optional
        The folder for what is spilled; on a cluster, one that all workers reach.
    master : str, optional
        The cluster of Spark, as ``"spark://host:7077"``.
    """

    memory_limit: str | None = None
    temporary: str | None = None
    master: str | None = None

    @classmethod
    def from_dict(cls, given: Any) -> EngineSettings:
        """From a plan; what is not known is refused."""
        if not isinstance(given, Mapping):
            raise PlanError("'engine' must be a table: write it under [engine].")
        for name, value in given.items():
            if name not in cls.__dataclass_fields__:
                known = did_you_mean(str(name), cls.__dataclass_fields__)
                raise PlanError(f"[engine] has no entry '{name}'. {known}")
            if not isinstance(value, str):
                raise PlanError(f"The entry '{name}' of [engine] must be a text; got {value!r}.")
        return cls(**given)

    def to_dict(self) -> dict[str, str]:
        """What is set, as in a plan."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Plan(Helpful):
    """What is done to a table, and what must hold afterwards.

    Parameters
    ----------
    steps : list of methods
        Applied one after the other, for example ``[sh.Round(base=5)]``.
    require : list of models or limits
        What the masked table must satisfy, or nothing is released.
    roles : Roles or dict, optional
        The roles of the columns, where the plan is a file of its own.
    keep_order : bool
        Leave the rows in the order of the input. Rows are shuffled otherwise, since their order
        may tell who is who.
    accept_seed : bool
        Let a model that rests on chance hold although a step has a ``random_state``. The claim
        then says that it rests on a seed: whoever learns or guesses that undoes the release.
    pseudonyms : bool
        Release the unit as random names, made for this release only, so that a reader can tell
        which rows are of one person. Without it the unit does not leave.
    unlisted : {"refuse", "drop", "keep"}, optional
        What is done with a column that the plan does not know, since neither ``read`` nor the
        roles nor a step names it: the table is refused, the column is left out, or it leaves as it
        is. Without it, it leaves with a warning.
    read : ReadOptions, optional
        How the source is read, and which columns it had when the plan was made.
    engine : EngineSettings, optional
        How an engine runs the plan on a table that does not fit memory.

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
    ) -> None:
        for part, given in (("steps", steps), ("require", require)):
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise PlanError(
                    f"The '{part}' of a plan are a list; got {called(given)}. Write {part}=[...]."
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
        self._check()

    @classmethod
    def of(cls, given: Any) -> Plan:
        """A plan from whatever stands for one: itself, a list of steps, or the path of a file.

        Examples
        --------
        >>> from shoal import Round
        >>> Plan.of([Round(base=5)])
        Plan: round; requires nothing
        """
        if isinstance(given, Plan):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls.load(given)
        if isinstance(given, (list, tuple)):
            return cls(given)
        if isinstance(given, Masker):
            return cls([given])
        raise PlanError(
            f"A plan is needed; got {type(given).__name__}. Write sh.Plan([...]) with the steps, "
            "or give a list of steps or the path of a plan's file."
        )

    def replacing(self, **changes: Any) -> Plan:
        """The same plan with some of its parts given anew."""
        parts = ("steps", "require", "roles", *_SWITCHES, "unlisted", "read", "engine")
        return Plan(**{part: getattr(self, part) for part in parts} | changes)

    def _check(self) -> None:
        for step in self.steps:
            if not isinstance(step, Masker):
                raise PlanError(
                    f"A step of a plan is a masking method; got {called(step)}. {as_step(step)}"
                )
        for requirement in self.require:
            if not isinstance(requirement, (PrivacyModel, Limit)):
                raise PlanError(
                    "A requirement of a plan is a privacy model or a limit; got "
                    f"{called(requirement)}. {as_requirement(requirement)}"
                )
            held = [n for n, v in vars(requirement).items() if isinstance(v, Table)]
            if held:
                raise PlanError(
                    f"The '{held[0]}' of {type(requirement).__name__} is a table in memory, which "
                    "is private and which a plan cannot hold; save it and give the path of its "
                    "file."
                )
        if not isinstance(self.engine, EngineSettings):
            raise PlanError(
                f"'engine' must be a shoal.workflow.EngineSettings; got "
                f"{type(self.engine).__name__}."
            )
        if self.unlisted is not None and self.unlisted not in _UNLISTED:
            raise PlanError(
                f"'unlisted' of a plan is one of {quoted(_UNLISTED)}; got {self.unlisted!r}."
            )
        if self.read is not None and not isinstance(self.read, ReadOptions):
            raise PlanError(f"'read' must be a shoal.ReadOptions; got {type(self.read).__name__}.")
        for switch in _SWITCHES:
            if not isinstance(getattr(self, switch), bool):
                raise PlanError(f"'{switch}' of a plan is true or false.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        steps = ", ".join(step.method for step in self.steps) or "no steps"
        required = ", ".join(f"{k} = {v}" for k, v in requirements_to_dict(self.require).items())
        return f"Plan: {steps}; requires {required or 'nothing'}"

    def _repr_html_(self) -> str:
        return plan_view(self)

    # -- applying

    def roles_for(self, table: Table) -> Roles:
        """The roles in force: the plan's or the table's, which must not contradict."""
        if self.roles is None or self.roles == table.roles:
            return table.roles
        if table.roles != Roles():
            raise RolesError(
                "The plan and the table declare different roles; leave them out of one of the two."
            )
        return self.roles

    def apply(
        self, table: Table, *, progress: Progress | None = None
    ) -> tuple[Table, list[StepRecord]]:
        """Run copies of the steps on a table; the order of the rows stays, and so does the plan.

        What the steps learned is in the records, of which ``in_released_domain`` makes use.
        """
        check_table(table, "A plan")
        records: list[StepRecord] = []
        given = table.roles.quasi_identifiers
        for number, step in enumerate(self.steps):
            if progress:
                progress(f"Masking: {step.method}", number / len(self.steps))
            parameters = plain(step.changed_params(public=True), public=True)
            named = getattr(step, "columns", None)
            if given and step.needs_columns and not table.chosen(named):
                # earlier steps took out every quasi-identifier: nothing is left to mask
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

    # -- the TOML form

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, in the shape of its TOML form."""
        out: dict[str, Any] = {switch: True for switch in _SWITCHES if getattr(self, switch)}
        if self.unlisted is not None:
            out["unlisted"] = self.unlisted
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
        return out | ({"engine": told} if (told := self.engine.to_dict()) else {})

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, folder: Path | None = None) -> Plan:
        """A plan from plain data, in the shape of its TOML form.

        Paths in it are relative to ``folder``, where one is given.
        """
        if not isinstance(given, Mapping):
            raise PlanError(f"A plan is a table of its parts; got {type(given).__name__}.")
        for part in given:
            if part not in _PARTS:
                raise PlanError(f"A plan has no part '{part}'. {did_you_mean(part, _PARTS)}")
        roles, require, read = given.get("roles"), given.get("require", {}), given.get("read")
        for part, value in (("roles", roles), ("require", require), ("read", read)):
            if value is not None and not isinstance(value, Mapping):
                raise PlanError(f"The part '{part}' of a plan is a table: write it under [{part}].")
        steps = given.get("steps", [])
        if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
            raise PlanError("The steps of a plan are a list: write each one under [[steps]].")
        made = []
        for number, step in enumerate(steps):
            with at_step(number, step.get("method")):
                made.append(_step_from(step, folder))
        return cls(
            made,
            require=requirements_from_dict(require),
            roles=None if roles is None else Roles.from_dict(roles),
            unlisted=given.get("unlisted"),
            read=None if read is None else _reading_from(read),
            engine=EngineSettings.from_dict(given.get("engine", {})),
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
                f"Plan.from_toml takes the text of a plan; got {type(text).__name__}. Plan.load "
                "takes the path of a file, and Plan.from_dict plain data."
            )
        given = _parsed(text, "plan")
        try:
            return cls.from_dict(given, folder=folder)
        except InputError as cause:
            line = _line_of(str(cause), text)
            if line is not None:
                cause.args = (f"Line {line} of the plan: {cause}",)
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a TOML file."""
        check_path(path, "Plan.load", "Plan.from_dict and Plan.from_toml take what a file holds.")
        text = read_text(path, "plan", "; 'shoal init DATA' writes a first one")
        return cls.from_toml(text, folder=Path(path).parent)


def in_toml(value: Any) -> str:
    """A value as a plan writes it on one line."""
    import tomlkit

    if isinstance(value, Mapping):
        inner = (f"{tomlkit.key(name).as_string()} = {in_toml(one)}" for name, one in value.items())
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    return str(tomlkit.item(value).as_string())


def read_toml(path: str | os.PathLike[str], called: str, remedy: str = "") -> dict[str, Any]:
    """What a TOML file says; errors call it by what it is."""
    return _parsed(read_text(path, called, remedy), called)


def read_text(path: str | os.PathLike[str], called: str, remedy: str = "") -> str:
    """The text of a file in UTF-8; errors call it by what it is."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"There is no {called} at '{path}'{remedy}.") from None
    except (OSError, UnicodeDecodeError):
        raise PlanError(f"The {called} at '{path}' cannot be read as a UTF-8 text file.") from None


def _parsed(text: str, called: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise PlanError(f"The {called} is not valid TOML: {cause}.") from None


def in_released_domain(records: Iterable[StepRecord], people: Table) -> Table:
    """People of a population, mapped as the records of a plan say that it mapped its table.

    Where released classes overlap, a person comes once for each that covers them.
    """
    for record in records:
        if record.fitted is not None:
            people = record.fitted.cover(people)
    return people


@contextmanager
def at_step(number: int, method: object) -> Iterator[None]:
    """Say of every error in which step it arose."""
    try:
        yield
    except ShoalError as cause:
        named = f" ({method})" if isinstance(method, str) else ""
        cause.args = (f"{_STEP} {number + 1}{named}: {cause}", *cause.args[1:])
        raise


def _line_of(error: str, text: str) -> int | None:
    """The line of a plan that an error is about: that of the name it quotes, or of its step."""
    step = re.match(rf"{_STEP} (\d+)", error)
    heads = [n for n, line in enumerate(text.splitlines(), 1) if _STEP_HEAD.match(line)]
    first, last = 1, len(text.splitlines())
    if step is not None:
        if len(heads) < int(step[1]):
            return None  # written in another way
        first = heads[int(step[1]) - 1]
        last = next((head - 1 for head in heads if head > first), last)
    for name in re.findall(r"'([^'\n]+)'", error):
        key = re.compile(rf"\s*\[*\s*[\"']?{re.escape(name)}[\"']?\s*[=\]]")
        for number, line in enumerate(text.splitlines()[first - 1 : last], first):
            if key.match(line):
                return number
    return first if step is not None else None


def _reading_from(given: Mapping[str, Any]) -> ReadOptions:
    try:
        return ReadOptions.from_dict(given)
    except ReadError as cause:
        raise PlanError(f"[read] of the plan: {cause}") from None


def _step_from(entry: Mapping[str, Any], folder: Path | None) -> Masker:
    methods = discover_maskers()
    method = entry.get("method")
    if method is None:
        raise PlanError(f"A step of the plan names no method. {did_you_mean('', methods)}")
    if not isinstance(method, str) or method not in methods:
        raise PlanError(f"There is no method '{method}'. {did_you_mean(str(method), methods)}")
    given = {name: value for name, value in entry.items() if name != "method"}
    for parameter in parameters_of(methods[method]) if folder is not None else ():
        if parameter.name in given:
            given[parameter.name] = parameter.constraint.relocate(given[parameter.name], folder)
    return methods[method].from_plan(given)


def minimality_of(step: StepRecord) -> dict[str, Any] | None:
    """What can be concluded from a step not having been finer; None where nothing can.

    A step says in its audit what follows from its own search; here it becomes what the public may
    read. ``columns`` are those of which a level finer was not possible; ``cells_percent`` is the
    share of their cells that this narrows down, and ``records_percent`` that of the records with
    such a cell. A share is None where the table is too small to tell it.
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
    """What can be concluded from each step of which something can."""
    return [found for step in steps if (found := minimality_of(step)) is not None]


def minimality_in_words(found: Mapping[str, Any], *, named: bool = True) -> str:
    """What whoever knows the algorithm and the hierarchies concludes, in one or two sentences."""
    of = f" of {quoted(found['columns'])}" if named else ""
    if found["algorithm"] == "local":
        known = f"the records of a class differ one level below each coarse value{of}"
    else:
        known = f"with one level finer{of}, some class would have failed"
    cells, records = found["cells_percent"], found["records_percent"]
    if cells is None:
        size = "The table is too small to say how many cells this narrows down."
    elif not cells and not records:
        size = "This narrows down less than 1 % of the cells by itself."
    else:
        size = f"This narrows down {cells:g} % of the cells, in {records:g} % of the records."
    return f"Whoever knows the algorithm and the hierarchies knows that {known}. {size}"
