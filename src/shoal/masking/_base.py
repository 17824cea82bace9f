"""What all methods share: input checks, the log of what a step did, the fitted facts."""

from __future__ import annotations

import copy
import json
import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from shoal.discovery import concrete_subclasses
from shoal.errors import InputError, ParameterError, UnprotectedColumnWarning, quoted
from shoal.hints import helpful
from shoal.parameters import Parametrized, parameters_of
from shoal.randomness import SecretStream
from shoal.table import OTHER, Course, Kind, Numbers, Roles, Table, check_table, fingerprint

Progress = Callable[[str, float], None]


class Secrets(dict[str, Any]):
    """Facts that undo a release, such as a key: read by name, never shown or pickled.

    Examples
    --------
    >>> Secrets(key="2a" * 32)
    Secrets(1 private fact)
    """

    def __repr__(self) -> str:
        return f"Secrets({len(self)} private fact{'s' * (len(self) != 1)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "Private facts of a release cannot be pickled or copied, because they undo it; "
            "release.save writes them into the private half."
        )


@dataclass
class StepLog:
    """What one step of a plan did: columns changed or skipped with the reason, and facts."""

    touched: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    removed_columns: list[str] = field(default_factory=list)
    private: Secrets = field(default_factory=Secrets)
    public: dict[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    place: int = 0
    stream: SecretStream | None = None

    def compare(self, columns: Iterable[str], masked: Table, table: Table) -> None:
        """Record for each column whether any of its cells changed."""
        for name in columns:
            # compared in the column's own type, since a decimal may round back
            if masked.changed_count(name, table):
                self.touched.append(name)
            else:
                self.skipped[name] = "no value changes"

    def tell(self, label: str, share: float) -> None:
        """Report the progress of a long step."""
        if self.progress is not None:
            self.progress(label, share)

    def run(self, work: Any, whole: float, label: str) -> None:
        """Run a kernel until it has done the ``whole``, in portions, so that ctrl-C stops it."""
        done = 0.0
        while done < whole:
            self.tell(label, done / whole)
            done = work.advance()


class Masker(Parametrized, ABC):
    """Base of every masking method: a Table in, a new Table out.

    A method is a dataclass of declared parameters and one function, ``_mask``. After
    ``fit_transform`` it has ``touched_`` (columns it changed), ``skipped_`` (columns it did not
    change, with the reason), ``removed_columns_``, ``removed_`` (number of records removed),
    ``losing_`` (number of persons who lost a record) and ``audit_`` (private).
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    is_random: ClassVar[bool] = False
    #: Whether it is for identifiers, which other methods never name.
    names_identifiers: ClassVar[bool] = False
    #: The kinds of columns that it masks, if not all.
    kinds: ClassVar[tuple[Kind, ...]]
    #: Whether the method needs only combinations with their counts, not single records.
    by_counts: bool = False

    touched_: tuple[str, ...]
    skipped_: Mapping[str, str]
    removed_columns_: tuple[str, ...]
    removed_: int
    losing_: int
    audit_: Mapping[str, Any]
    facts_: Mapping[str, Any]

    @helpful
    def fit_transform(
        self,
        table: Table,
        *,
        progress: Progress | None = None,
        place: int = 0,
        stream: SecretStream | None = None,
    ) -> Table:
        """Mask a table; neither the order of the rows nor the given table changes.

        A long step calls ``progress`` with a label and the share of the work done. ``place`` is
        the step's place in a plan: with one seed, two places draw different numbers. An engine
        passes a ``stream`` of its own for each chunk of a table.
        """
        self.check_parameters()
        check_table(table, type(self).__name__)
        if len(table) == 0:
            raise InputError(f"{type(self).__name__} got a table without records.")
        if table.times is not None and not self.by_counts:
            raise InputError(
                f"{type(self).__name__} with these parameters works on single records, but a tally "
                "has only combinations with their counts."
            )
        named: Sequence[str] | None = getattr(self, "columns", None)
        columns = table.chosen(named)
        if not columns and self.needs_columns:
            raise InputError(
                f"{type(self).__name__} has no columns to work on, because the table has no "
                "quasi-identifiers. Declare them in the roles, or name columns."
            )
        needed = self.identifiers_needed(table.roles)
        forbidden = [n for n in columns if n in table.roles.withheld and n not in needed]
        if forbidden:
            raise InputError(
                f"{type(self).__name__} names the identifier {quoted(forbidden)}. Identifiers "
                "are removed from a release, so there is nothing to mask. Remove the name."
            )
        log = StepLog(progress=progress, place=place, stream=stream)
        masked = self._mask(table, columns, log)
        masked = masked.on_course(self._course(table.course, log))
        self.touched_ = tuple(log.touched)
        self.skipped_ = dict(log.skipped)
        self.removed_columns_ = tuple(log.removed_columns)
        self.removed_ = table.records - masked.records
        self.losing_ = self.removed_
        if table.has_persons:
            gone = ~np.isin(table.row_key, masked.row_key)
            self.losing_ = len(np.unique(table.persons[gone]))
        self.audit_ = log.private
        self.facts_ = dict(log.public)
        if named is not None and log.skipped:
            self._warn_about_named(log.skipped)
        return masked

    @helpful
    def fit(self, table: Table, *, progress: Progress | None = None) -> Self:
        """Learn from a table what ``transform`` applies to later rows.

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
        """Map later raw rows into the released domain; nothing new is learned.

        The fitted facts apply: removed columns, caps, ranges, rounding, levels. Methods that hide
        a record among others (swapping, noise, microaggregation) do not change a new row.
        """
        self._check_served(table)
        return self._serve(table)

    def cover(self, table: Table) -> Table:
        """Map people of a population into the released domain, to count who fits a record.

        This works like ``transform``. But if released classes overlap, a person appears once for
        each class whose values cover them, always with the same row key.
        """
        self._check_served(table)
        return self._cover(table)

    def _check_served(self, table: Table) -> None:
        if not hasattr(self, "touched_"):
            raise InputError(
                f"{type(self).__name__} is not fitted. Call fit or fit_transform first."
            )
        check_table(table, type(self).__name__)
        table.chosen(self.serves)  # names a column that the table lacks

    @property
    def serves(self) -> tuple[str, ...]:
        """The columns that later rows must have."""
        return tuple(name for name in self.touched_ if name not in self.removed_columns_)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles can serve new rows, but hold no key and nothing about a record."""
        declared = {parameter.name for parameter in parameters_of(type(self))}
        state = {
            name: value
            for name, value in vars(self).items()
            if name in declared or not isinstance(value, np.ndarray)
        }
        return state | ({"audit_": {}} if "audit_" in state else {})

    def without_records(self) -> Masker:
        """A copy that can serve new rows but keeps nothing about any fitted record."""
        return copy.copy(self)

    def check_parameters(self) -> None:
        super().check_parameters()
        keyed = getattr(self, "key_file", None) is not None
        if keyed and getattr(self, "random_state", None) is not None:
            raise ParameterError(
                f"{type(self).__name__} takes a key_file or a random_state, not both."
            )

    def _usable(self, table: Table, columns: Sequence[str], log: StepLog) -> Iterator[str]:
        """The columns of ``kinds`` that have a value; the others are skipped, with the reason."""
        for name in columns:
            if table.kind(name) not in self.kinds:
                log.skipped[name] = f"{table.kind(name)}, not {' or '.join(self.kinds)}"
            elif not table.present(name).any():
                log.skipped[name] = "no value present"
            else:
                yield name

    def _stream(self, table: Table, log: StepLog) -> SecretStream:
        """The randomness of this step; its key is private.

        A seed may be used twice: for another step, for the same step with other parameters, or
        for next month's table. Anyone who has two results of the same draws can remove the draws,
        so the stream of a seed depends on all of these.
        """
        if log.stream is not None:
            return log.stream
        seed: int | None = getattr(self, "random_state", None)
        stream = SecretStream.from_state(seed, stacklevel=5)
        if seed is not None:
            old = {new: old for old, new in self.renamed.items()}  # renaming changes no draw
            others = {old.get(n, n): v for n, v in self.get_params().items() if n != "random_state"}
            step = json.dumps([log.place, self.method, _spelled(others)], sort_keys=True)
            stream = stream.derive("step", step, fingerprint(table))
        log.private |= {"key": stream.key_hex, "randomness": stream.origin}
        return stream

    def scales(self, table: Table) -> Mapping[str, Any]:
        """For columns that become text: these texts as numbers. Empty for most methods."""
        return {}

    def identifiers_needed(self, roles: Roles) -> tuple[str, ...]:
        """The columns that never leave as they are, but that the step has to see."""
        return ()

    def _serve(self, table: Table) -> Table:
        """New rows in the released domain; methods that only hide records do not change them."""
        return table

    def _cover(self, table: Table) -> Table:
        """People in the released domain; with most methods, classes do not overlap."""
        return self._serve(table)

    def _course(self, before: Course, log: StepLog) -> Course:
        """The course of the masked table; only a step that ignores the data continues it."""
        return OTHER

    @property
    def takes_seed(self) -> bool:
        """Whether its draws can follow a seed: they do not if their key is in a file."""
        return self.is_random and getattr(self, "key_file", None) is None

    @property
    def needs_columns(self) -> bool:
        """Whether the step needs named columns or declared quasi-identifiers."""
        return True

    def _warn_about_named(self, skipped: Mapping[str, str]) -> None:
        reasons = "; ".join(f"'{name}': {reason}" for name, reason in skipped.items())
        warnings.warn(
            f"{type(self).__name__} did not change columns that the plan names: {reasons}.",
            UnprotectedColumnWarning,
            stacklevel=3,
        )

    @abstractmethod
    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        """The algorithm: mask ``columns`` of ``table`` and record in ``log`` what it did."""

    @classmethod
    def from_plan(cls, given: Mapping[str, Any]) -> Masker:
        """Build a step from one entry of a plan's ``steps``, without its ``method``."""
        try:
            return cls.from_params(given, called=f"step '{cls.method}'")
        except TypeError as cause:  # a value of the wrong shape, in Python's words
            raise ParameterError(f"The step '{cls.method}' cannot be built: {cause}.") from None


def _spelled(value: Any) -> Any:
    """A parameter as JSON: the same for equal values, whatever their type."""
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


def discover_maskers() -> dict[str, type[Masker]]:
    """Every masking method by its name in plans."""
    found = concrete_subclasses("shoal.masking", Masker)  # type: ignore[type-abstract]
    return {cls.method: cls for cls in sorted(found, key=lambda cls: cls.method)}


class NumericMasker(Masker):
    """Base of methods that map the values of each numeric column separately."""

    kinds: ClassVar[tuple[Kind, ...]] = ("integer", "float")
    keeps_equal: ClassVar[bool] = False  # an unchanged value keeps digits beyond a float

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        prepared = self._prepare(table, log)
        changed: dict[str, npt.NDArray[Any]] = {}
        for name in self._usable(table, columns, log):
            result = self._map(name, table.numbers(name), prepared)
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
        """The values of new rows in the released domain; None leaves them unchanged."""
        return None

    def _prepare(self, table: Table, log: StepLog) -> Any:
        """What :meth:`_map` needs besides the column, by default the table; resets fitted facts."""
        return table

    @abstractmethod
    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        """The new values of a column, or the reason why it stays unchanged."""
