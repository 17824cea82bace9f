"""What every method shares: checks at the door, the log of what was touched, the fitted facts."""

from __future__ import annotations

import copy
import json
import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from shoal.discovery import concrete_subclasses
from shoal.errors import InputError, ParameterError, UnprotectedColumnWarning, quoted
from shoal.parameters import Parametrized, parameters_of
from shoal.randomness import SecretStream
from shoal.table import OTHER, Course, Kind, Numbers, Table, check_table, fingerprint

Progress = Callable[[str, float], None]


class Secrets(dict[str, Any]):
    """Facts that undo a release, a key for example: read by name, and never shown or pickled.

    Examples
    --------
    >>> Secrets(key="2a" * 32)
    Secrets(1 private fact)
    """

    def __repr__(self) -> str:
        return f"Secrets({len(self)} private fact{'s' * (len(self) != 1)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "Private facts of a release are neither pickled nor copied, since they undo it; "
            "release.save writes them into the private half."
        )


@dataclass
class StepLog:
    """What a method at some place of a plan did: columns touched or left and why, and facts."""

    touched: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    removed_columns: list[str] = field(default_factory=list)
    private: Secrets = field(default_factory=Secrets)
    public: dict[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    place: int = 0
    stream: SecretStream | None = None

    def compare(self, columns: Iterable[str], masked: Table, table: Table) -> None:
        """Note of each column whether a cell of it was changed."""
        for name in columns:
            # as the column's own type holds them, since a decimal may round back
            if masked.changed_count(name, table):
                self.touched.append(name)
            else:
                self.skipped[name] = "no value changes"

    def tell(self, label: str, share: float) -> None:
        """Show how far a long step is."""
        if self.progress is not None:
            self.progress(label, share)


class Masker(Parametrized, ABC):
    """Base of every masking method: a Table in, a new Table out.

    A method is a dataclass of declared parameters and one function, ``_mask``. After
    ``fit_transform`` it has ``touched_`` (columns it changed), ``skipped_`` (columns it left, with
    the reason), ``removed_columns_``, ``removed_`` (records taken out), ``losing_`` (persons who
    lost one) and ``audit_`` (private).
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    is_random: ClassVar[bool] = False
    #: Whether combinations with their counts are enough: single records are not needed.
    by_counts: bool = False

    touched_: tuple[str, ...]
    skipped_: Mapping[str, str]
    removed_columns_: tuple[str, ...]
    removed_: int
    losing_: int
    audit_: Mapping[str, Any]
    facts_: Mapping[str, Any]

    def fit_transform(
        self,
        table: Table,
        *,
        progress: Progress | None = None,
        place: int = 0,
        stream: SecretStream | None = None,
    ) -> Table:
        """Mask a table; the order of the rows stays, the given table is not changed.

        A long step calls ``progress`` with what it does and the share that is done. ``place`` is
        the step's place in a plan: under one seed, two places draw different numbers. An engine
        gives each chunk of a table its own ``stream``.
        """
        self.check_parameters()
        check_table(table, type(self).__name__)
        if len(table) == 0:
            raise InputError(f"{type(self).__name__} got a table without records.")
        if table.times is not None and not self.by_counts:
            raise InputError(
                f"{type(self).__name__} with these parameters works on single records; a tally has "
                "only combinations with their counts."
            )
        named: Sequence[str] | None = getattr(self, "columns", None)
        columns = table.chosen(named)
        if not columns and self.needs_columns:
            raise InputError(
                f"{type(self).__name__} has no columns to work on: the table has no "
                "quasi-identifiers; declare them in the roles or name columns."
            )
        forbidden = [name for name in columns if name in table.roles.withheld]
        if forbidden:
            raise InputError(
                f"{type(self).__name__} names the identifier {quoted(forbidden)}; identifiers "
                "are removed from a release, so there is nothing to mask."
            )
        log = StepLog(progress=progress, place=place, stream=stream)
        masked = self._mask(table, columns, log)
        masked = masked.on_course(self._course(table.course, log))
        self.touched_ = tuple(log.touched)
        self.skipped_ = dict(log.skipped)
        self.removed_columns_ = tuple(log.removed_columns)
        self.removed_ = table.records - masked.records
        self.losing_ = _persons_losing(table, masked)
        self.audit_ = log.private
        self.facts_ = dict(log.public)
        if named is not None and log.skipped:
            self._warn_about_named(log.skipped)
        return masked

    def fit(self, table: Table, *, progress: Progress | None = None) -> Self:
        """Learn from a table what ``transform`` applies to rows that come later.

        Examples
        --------
        >>> import polars as pl
        >>> from shoal import Roles, TopBottomCode
        >>> ages = pl.DataFrame({"age": [30, 31, 32, 33, 34, 99]})
        >>> step = TopBottomCode(fence=1.5).fit(Table(ages, Roles(quasi_identifiers=["age"])))
        >>> step.touched_
        ('age',)
        """
        self.fit_transform(table, progress=progress)
        return self

    def transform(self, table: Table) -> Table:
        """Map raw rows that come later into the released domain; nothing new is learned.

        What was fitted applies: columns taken out, caps, ranges, rounding, levels. Methods that
        hide a record among others (swapping, noise, microaggregation) leave a new row as it is.
        """
        self._check_served(table)
        return self._serve(table)

    def cover(self, table: Table) -> Table:
        """Map people of a population into the released domain, for counting who fits a record.

        As ``transform``, but where released classes overlap, a person comes once for each
        class whose values cover them, always with the same row key.
        """
        self._check_served(table)
        return self._cover(table)

    def _check_served(self, table: Table) -> None:
        if not hasattr(self, "touched_"):
            raise InputError(
                f"{type(self).__name__} has not been fitted; call fit or fit_transform first."
            )
        table.chosen(self.serves)  # a column that the table lacks is named here

    @property
    def serves(self) -> tuple[str, ...]:
        """The columns that rows to serve must have."""
        return tuple(name for name in self.touched_ if name not in self.removed_columns_)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles can serve new rows; they hold no key and nothing about a record."""
        declared = {parameter.name for parameter in parameters_of(type(self))}
        state = {
            name: value
            for name, value in vars(self).items()
            if name in declared or not isinstance(value, np.ndarray)
        }
        return state | ({"audit_": {}} if "audit_" in state else {})

    def without_records(self) -> Masker:
        """A copy that can serve new rows and keeps nothing about any record it was fitted on."""
        return copy.copy(self)

    def _stream(self, table: Table, log: StepLog) -> SecretStream:
        """The randomness of this step, whose key is private.

        A seed may be given twice: to another step, to the same step with other parameters, to
        the table of next month. Whoever has two results of the same draws can take the draws
        away, so the stream of a seed depends on all of these.
        """
        if log.stream is not None:
            return log.stream
        seed: int | None = getattr(self, "random_state", None)
        stream = SecretStream.from_state(seed, stacklevel=5)
        if seed is not None:
            old = {new: old for old, new in self.renamed.items()}  # a new name changes no draw
            others = {old.get(n, n): v for n, v in self.get_params().items() if n != "random_state"}
            step = json.dumps([log.place, self.method, _spelled(others)], sort_keys=True)
            stream = stream.derive("step", step, fingerprint(table))
        log.private |= {"key": stream.key_hex, "randomness": stream.origin}
        return stream

    def scales(self, table: Table) -> Mapping[str, Any]:
        """For columns that become texts, these texts as numbers; nothing for most methods."""
        return {}

    def _serve(self, table: Table) -> Table:
        """New rows in the released domain; a method that only hides records leaves them."""
        return table

    def _cover(self, table: Table) -> Table:
        """People in the released domain; classes of most methods do not overlap."""
        return self._serve(table)

    def _course(self, before: Course, log: StepLog) -> Course:
        """The course of the masked table; only a step that is blind to the data goes on with it."""
        return OTHER

    @property
    def needs_columns(self) -> bool:
        """Whether there is nothing to do without columns named or quasi-identifiers declared."""
        return True

    def _warn_about_named(self, skipped: Mapping[str, str]) -> None:
        reasons = "; ".join(f"'{name}': {reason}" for name, reason in skipped.items())
        warnings.warn(
            f"{type(self).__name__} left columns as they are although the plan names them: "
            f"{reasons}.",
            UnprotectedColumnWarning,
            stacklevel=3,
        )

    @abstractmethod
    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        """The algorithm: mask ``columns`` of ``table`` and say in ``log`` what was done."""

    @classmethod
    def from_plan(cls, given: Mapping[str, Any]) -> Masker:
        """Build from one entry of a plan's ``steps``, without its ``method``."""
        try:
            return cls.from_params(given, called=f"step '{cls.method}'")
        except TypeError as cause:  # a wrong shape of value, worded by Python
            raise ParameterError(f"The step '{cls.method}' cannot be built: {cause}.") from None


def _spelled(value: Any) -> Any:
    """A parameter as JSON holds it: the same for equal values, whatever their type."""
    if isinstance(value, Parametrized):
        return [type(value).__name__, _spelled(value.get_params())]
    if isinstance(value, Table):
        return fingerprint(value)
    if isinstance(value, Mapping):
        return {str(name): _spelled(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(one) for one in value]
    if callable(getattr(value, "to_plan", None)):  # a hierarchy
        return _spelled(value.to_plan())
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if isinstance(value, numbers.Integral):
            return int(value)
        number = float(value)
        return int(number) if number.is_integer() else number
    return value if value is None or isinstance(value, bool) else str(value)


def _persons_losing(table: Table, masked: Table) -> int:
    """How many persons lost a record."""
    if not table.has_persons:
        return table.records - masked.records
    gone = ~np.isin(table.row_key, masked.row_key)
    return len(np.unique(table.persons[gone]))


def discover_maskers() -> dict[str, type[Masker]]:
    """Every masking method by its name in plans."""
    found = concrete_subclasses("shoal.masking", Masker)  # type: ignore[type-abstract]
    return {cls.method: cls for cls in sorted(found, key=lambda cls: cls.method)}


class NumericMasker(Masker):
    """Base of methods that map the values of each numeric column on their own."""

    kinds: ClassVar[tuple[Kind, ...]] = ("integer", "float")
    keeps_equal: ClassVar[bool] = False  # whether a value that stays keeps digits beyond a float

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        prepared = self._prepare(table, log)
        changed: dict[str, npt.NDArray[Any]] = {}
        for name in columns:
            kind = table.kind(name)
            if kind not in self.kinds:
                log.skipped[name] = f"{kind}, not {' or '.join(self.kinds)}"
                continue
            numbers = table.numbers(name)
            if not numbers.present.any():
                log.skipped[name] = "no value present"
                continue
            result = self._map(name, numbers, prepared)
            if isinstance(result, str):
                log.skipped[name] = result
            else:
                changed[name] = result
        masked = table.with_numbers(changed, keep_equal=self.keeps_equal) if changed else table
        log.compare(changed, masked, table)
        return masked

    def _serve(self, table: Table) -> Table:
        changed = {}
        for name in table.chosen(getattr(self, "columns", None)):
            if name in table.columns and table.kind(name) in self.kinds:
                result = self._map_new(name, table.numbers(name))
                if result is not None:
                    changed[name] = result
        return table.with_numbers(changed, keep_equal=self.keeps_equal) if changed else table

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any] | None:
        """The values of new rows in the released domain; None leaves them as they are."""
        return None

    def _prepare(self, table: Table, log: StepLog) -> Any:
        """What :meth:`_map` needs beyond the column itself; begins the fitted facts."""

    @abstractmethod
    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        """The new values of a column, or the reason why it is left as it is."""
