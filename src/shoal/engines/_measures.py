"""Risk and utility of a release on an engine.

Measures of classes and of the distributions of columns are counted over all rows. Measures that
need single records use a sample of persons, but their links are sought among all released records.
The sample depends only on the secret order of the release, so anyone with the private half measures
the same persons again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines._engine import (
    HIDDEN,
    OWNER,
    ROW,
    Rows,
    TooManyCombinations,
    as_table,
    roles_on,
)
from shoal.engines.steps._functions import Below
from shoal.errors import DoesNotApply, InputError, ShoalError, quoted
from shoal.kernels.arrays import Integers
from shoal.measurement import MeasureInfo, Measurement
from shoal.models import PopulationModel
from shoal.models._sensitive_model import SensitiveModel
from shoal.randomness import SecretStream
from shoal.risk.linkage._distance_linkage import distance_links
from shoal.risk.linkage._intruder import SAMPLE, Intruder, drawn_rows, known_columns
from shoal.risk.linkage._right_links import right_links
from shoal.table import Roles, Table, empty_count, released_text
from shoal.workflow import Assessment, Claim, Limit
from shoal.workflow._assess import assess_release
from shoal.workflow._require import discover_all_measures, make_claim

#: The number of rows for measures that need single records.
SAMPLED = 100_000
#: Distributions of columns, counted over all rows.
BY_COLUMN = ("total_variation", "chi_square", "cramers_v", "suppressed_cells")
#: Measures that compare classes before and after, counted over all rows.
BY_CLASSES = ("suppressed_records", "discernibility", "average_class_size")
#: Measures that need the combinations themselves, not only the sizes of classes.
OF_COMBINATIONS = ("singling_out", "suda")
#: Measured on a sample of persons.
ON_A_SAMPLE = (
    "distance_linkage linkability attribute_inference interval_disclosure unchanged_records "
    "normalized_certainty_penalty nonuniform_entropy predictive_performance "
    "regression_performance propensity wasserstein variance_ratio scaled_deviation sse_sst "
    "correlation_difference mutual_information_loss"
).split()
#: Measures that a release states in addition to those that follow from its classes.
_OF_A_RELEASE = (
    "distance_linkage attribute_inference unchanged_records normalized_certainty_penalty "
    "predictive_performance total_variation suppressed_cells"
).split()
#: Additional measures of a release that is a sample.
_OF_A_SAMPLE = ["certainty", "journalist_risk"]
#: The largest number of pairs of a person and a group of equal records that are compared.
_MOST_COMPARED = 5_000_000_000
_FEWEST_LINKED = 500
#: The number of groups of persons that show the spread of a value (Student's t for 95 %).
_GROUPS, _STUDENT = 10, 2.262
#: If a column has more values than this, the intruder knows only those of the sample.
_MOST_KNOWN = 1_000_000
_NO_RECORDS = "it needs all single records at once, but an engine only has a sample of them"


def check_limit(limit: Limit) -> None:
    """Raise InputError, before anything starts, for a measure that an engine does not support."""
    if not (limit.info.by_counts or limit.measure in ON_A_SAMPLE):
        raise InputError(
            f"The requirement '{limit.key}' cannot be measured on an engine: {_NO_RECORDS}. Leave "
            "it out, or use the engine 'memory'."
        )
    if limit.options.get("mode") == "univariate":
        raise InputError(
            f"The requirement '{limit.key}' with mode = 'univariate' cannot be measured on an "
            "engine: it depends on which record a value belongs to. Use mode 'multivariate', or "
            "use the engine 'memory'."
        )
    if limit.options.get("attack", "model") != "model":
        raise InputError(
            f"The requirement '{limit.key}' with attack = '{limit.options['attack']}' cannot be "
            "measured on an engine: it links single records. Require max_linkage_rate, or use the "
            "engine 'memory'."
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """An original and its release, both on an engine.

    ``before`` and ``after`` are their combinations with counts. ``order`` is the secret order of
    the released rows. ``total`` is the number of rows of the original.
    """

    rows: Rows
    roles: Roles
    total: int
    written: Rows
    private: Rows
    files: Sequence[Path]
    private_files: Sequence[Path]
    order: SecretStream
    before: Table
    after: Table
    #: The rows that a sample was drawn from, if no later step changed their classes.
    population: Rows | None = None
    _columns: dict[str, tuple[Table, Table | None]] = field(default_factory=dict)

    # -- claims and assessments

    def claim(self, limit: Limit) -> Claim:
        """Whether a limit holds; on a sample, the worse end of the interval decides."""
        if limit.info.by_counts and not limit.info.needs_original:
            return make_claim(limit, self.after, None)
        found = self.measured(limit.measure, limit.options)
        sentence, decisive = limit.sentence(found.value), found.value
        if "sampled_persons" in found.details:
            decisive = self._safe_end(limit, found)
            low, high = found.interval or (math.nan, math.nan)
            sentence += (
                f" on a sample of {found.details['sampled_persons']:,} persons (95 % {low:.4g} to "
                f"{high:.4g}, of which the worse end counts)"
            )
        return Claim(
            limit,
            found.value,
            limit.accepts(decisive),
            sentence,
            int(found.details.get("persons", self.after.records)),
            sampled=found.details.get("sampled_persons"),
        )

    def _safe_end(self, limit: Limit, found: Measurement) -> float:
        """The worse end of the interval; infinitely bad if there is no interval."""
        if found.interval is None:
            return math.inf if limit.at_most is not None else -math.inf
        return found.interval[1] if limit.at_most is not None else found.interval[0]

    def assessment(
        self,
        wanted: Sequence[str] | None = None,
        notify: Callable[[str, float], None] | None = None,
    ) -> Assessment:
        """An assessment by classes and by the wanted measures (default: those of a release)."""
        found = _assessed(self.after, self.before.roles)
        taken, left, failed = dict(found.measurements), dict(found.left_out), dict(found.failed)
        names = list(_OF_A_RELEASE if wanted is None else wanted)
        if self.population is not None and wanted is None:
            names += _OF_A_SAMPLE
            taken.pop("journalist_risk", None)
        for number, name in enumerate(names):
            if name in taken:
                continue
            if notify is not None:
                title = discover_all_measures()[name].title
                notify(f"Measuring: {title}", number / len(names))
            left.pop(name, None)
            if (reason := self._reason_to_leave_out(discover_all_measures()[name])) is not None:
                left[name] = reason
                continue
            try:
                taken[name] = self.measured(name, {})
            except (DoesNotApply, TooManyCombinations) as error:
                left[name] = str(error)
            except ShoalError as error:
                failed[name] = str(error)
        if wanted is not None:
            taken = {name: one for name, one in taken.items() if name in wanted}
            left = {name: why for name, why in left.items() if name in wanted}
        sampled = [name for name, one in taken.items() if "sampled_persons" in one.details]
        notes = list(found.notes)
        if sampled:
            titles = ", ".join(discover_all_measures()[name].title for name in sampled)
            persons = max(int(taken[name].details["sampled_persons"]) for name in sampled)
            notes.append(
                f"Measured on a sample of {persons:,} persons, so that each value has an interval: "
                f"{titles}. Everything else was counted over all rows."
            )
        return replace(
            found,
            measurements=taken,
            left_out=left,
            failed=failed,
            notes=tuple(notes),
            columns=len(self.written.columns),
            original_rows=self.total,
        )

    def _reason_to_leave_out(self, info: MeasureInfo) -> str | None:
        if info.sensitive and not self.roles.sensitive:
            return "sensitive columns are needed; declare them in the roles"
        if info.target and self.roles.target is None:
            return "a target is needed; declare it in the roles"
        if info.name in _OF_A_SAMPLE and self.population is not None:
            return None
        if info.name not in (*BY_COLUMN, *BY_CLASSES, *OF_COMBINATIONS, *ON_A_SAMPLE):
            return _NO_RECORDS
        return None

    def measured(self, name: str, options: Mapping[str, Any]) -> Measurement:
        """A measure that compares, counted over all rows if counts are enough."""
        info = discover_all_measures()[name]
        if name in BY_COLUMN:
            return self._by_column(info, options)
        if name in BY_CLASSES:
            if not {*self.roles.quasi_identifiers} <= {*self.before.columns}:
                raise DoesNotApply("The original has too many classes to compare.")
            return info.take(self.before, self.after, **options)
        if name in OF_COMBINATIONS:
            return self._of_combinations(info, options)
        if name in _OF_A_SAMPLE:
            return self._of_a_sample(name)
        if name == "distance_linkage":
            return self._linked(options)
        if name == "linkability":
            return self._joined(info, options)
        return self._on_the_sample(info, options)

    # -- by counts

    def _of_combinations(self, info: MeasureInfo, options: Mapping[str, Any]) -> Measurement:
        """A measure of all combinations before and after, each with its count."""
        self._check_combinations()
        found = info.take(self.before, self.after, **options)
        return self._read_in_full(found, found.details.get("known"))

    def _check_combinations(self) -> None:
        quasi = {*self.roles.quasi_identifiers}
        if not quasi <= {*self.before.columns} or not quasi & {*self.written.columns} <= {
            *self.after.columns
        }:
            raise DoesNotApply("There are too many combinations to look at one by one.")

    def _read_in_full(self, found: Measurement, known: Sequence[str] | None) -> Measurement:
        """The measurement if it used every column; otherwise raises DoesNotApply."""
        quasi = [n for n in self.roles.quasi_identifiers if n in self.written.columns]
        unread = [] if known is None else [name for name in quasi if name not in known]
        if unread:
            raise DoesNotApply(
                f"The released values of {quoted(unread)} cannot be read as values, intervals or "
                "sets of the original here, so the reported risk would be too low."
            )
        return found

    def _of_a_sample(self, name: str) -> Measurement:
        """The risk by the classes F that a sample was drawn from: 1/F, or f/F for its members."""
        assert self.population is not None
        quasi = [n for n in self.roles.quasi_identifiers if n in self.after.columns]
        names = [*quasi, *self.roles.unit_columns]
        own = roles_on(self.roles, names)
        people = self.population.tally(names, own)
        risk = discover_all_measures()["journalist_risk"].take(None, self.after, population=people)
        if name == "journalist_risk":
            return risk
        assert risk.per_record is not None
        shares = self.after.class_sizes() * risk.per_record
        mean = float(self.after.total(shares) / self.after.person_count)
        return Measurement(
            "certainty", float(shares.max()), per_record=shares, details={"mean": mean}
        )

    def column(self, name: str) -> tuple[Table, Table | None]:
        """A column before and after, each value with its count; may raise TooManyCombinations."""
        if name not in self._columns:
            own = roles_on(self.roles, [name])
            before = self.rows.tally([name], own)
            after = None if name not in self.written.schema else self.written.tally([name], own)
            self._columns[name] = before, after
        return self._columns[name]

    def _by_column(self, info: MeasureInfo, options: Mapping[str, Any]) -> Measurement:
        """The measure of each column, combined into one."""
        asked = options.get("columns")
        names = [n for n in self.rows.columns if n not in self.roles.withheld]
        names = [n for n in names if asked is None or n in asked]
        found: dict[str, Measurement] = {}
        weights: dict[str, int] = {}
        sampled = 0
        for name in names:
            try:
                before, after = self._pair_of(name)
            except TooManyCombinations:
                before, after = self.sample
                if info.name == "suppressed_cells":
                    before, after = (_with_only(name, one) for one in self.sample)
                sampled += 1
            weights[name] = before.records - before.missing_count(name)
            given = {} if info.name == "suppressed_cells" else {"columns": [name]}
            found[name] = info.take(before, after, **given)
        whole = _together(info, found, weights)
        if not sampled:
            return whole
        warning = (
            f"{sampled} of {len(found)} columns have too many values to count, so they were "
            f"measured on a sample of {self.sample[0].person_count:,} persons."
        )
        return replace(whole, warnings=(*whole.warnings, warning))

    def _pair_of(self, name: str) -> tuple[Table, Table]:
        """A column before and after; as pairs of values if it was made coarser."""
        before, after = self.column(name)
        if after is None:
            return before, Table(pl.DataFrame({"": [0]})).tallied(np.array([self.after.records]))
        if not released_text(before, after, name):
            return before, after
        if not self._lost_cells(before, after, name):
            return after, after  # nothing changed at the released level
        frame = self._outcomes[name]
        times, gone = frame["times"].to_numpy(), frame["gone"].to_numpy()
        keys = np.arange(len(frame))
        own = roles_on(self.roles, [name])
        original = _table(frame.select(pl.col("was").alias(name)), own).tallied(times)
        shown = frame.filter(~pl.Series(gone)).select(pl.col("now").alias(name))
        released = _table(shown, own).tallied(times[~gone])
        return original, released.paired(original, keys[~gone])

    def _lost_cells(self, before: Table, after: Table, name: str) -> bool:
        """Whether rows or cells were removed, so that it matters which values they had."""
        cells = before.records - before.missing_count(name)
        return cells != after.records - empty_count(before, after, name)

    @cached_property
    def _outcomes(self) -> dict[str, pl.DataFrame]:
        """The released value of each value of the columns that were made coarser, with counts."""
        names = []
        for name in self.written.schema:
            if name in self.roles.withheld or name not in self.rows.schema:
                continue  # a pseudonym
            try:
                before, after = self.column(name)
            except TooManyCombinations:
                continue
            coarser = after is not None and released_text(before, after, name)
            if after is not None and coarser and self._lost_cells(before, after, name):
                names.append(name)
        return self.rows.engine.outcomes(self.rows, self.written, self.private, names)

    # -- on a sample

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is smaller than the table."""
        return self.total > SAMPLED

    @cached_property
    def sample(self) -> tuple[Table, Table]:
        """Some persons of the original, and their released rows."""
        if self.roles.unit_columns:
            original, released, keys = self._sampled_persons()
        else:
            original, released, keys = self._sampled_rows()
        before = as_table(original.sort(ROW), self.roles)
        after = as_table(released, self.roles)
        return before, after.paired(before, keys)

    def _sampled_rows(self) -> tuple[pl.DataFrame, pl.DataFrame, Integers]:
        """The rows with the smallest hashes in the order of the release."""
        bound = int((1 << 64) * (SAMPLED / self.total)) if self.is_sampled else 1 << 64
        original = self.rows.engine.drawn(self.rows, Below(self.order.key_hex, bound, "row-order"))
        shown, found = [], []
        for public, private in zip(self.files, self.private_files, strict=True):
            keys = pl.read_parquet(private, columns=["row_key"])["row_key"].to_numpy()
            hashes = self.order.keyed_hash(keys, "row-order").astype(np.uint64)
            count = len(keys) if bound == 1 << 64 else int((hashes < np.uint64(bound)).sum())
            if count == 0:
                break  # the hashes ascend from part to part
            shown.append(pl.read_parquet(public, n_rows=count))
            found.append(keys[:count])
        keys = np.concatenate(found) if found else np.zeros(0, np.int64)
        frame = pl.concat(shown) if shown else pl.read_parquet(self.files[0], n_rows=0)
        return original, frame.with_columns(pl.Series(ROW, keys)), keys

    def _sampled_persons(self) -> tuple[pl.DataFrame, pl.DataFrame, Integers]:
        """All rows of some persons, chosen by a hash of their number."""
        engine, unit = self.rows.engine, list(self.roles.unit_columns)
        owners = self.rows.tally(unit, Roles()).frame.sort(unit)
        wanted = max(1, min(len(owners), round(len(owners) * SAMPLED / self.total)))
        hashes = self.order.keyed_hash(np.arange(len(owners)), "persons")
        chosen = np.sort(np.argsort(hashes, kind="stable")[:wanted])
        original = engine.picked(self.rows, owners[chosen])
        asked = original.select(pl.col(ROW).alias("row_key"))
        records = engine.picked(self.private, asked).select(ROW, "row_key")
        shown = engine.picked(self.written, records.select(ROW)).join(records, on=ROW)
        keys = shown["row_key"].to_numpy()
        return original, shown.drop("row_key").with_columns(pl.Series(ROW, keys)), keys

    def _on_the_sample(self, info: MeasureInfo, options: Mapping[str, Any]) -> Measurement:
        original, released = self.sample
        found = info.take(original, released, **options)
        if not self.is_sampled:
            return found
        interval = found.interval
        if interval is None:
            interval = self._interval(info, options, found.value)
        return self._said_of_sample(replace(found, interval=interval), original.person_count)

    def _said_of_sample(self, found: Measurement, persons: int) -> Measurement:
        count = int(found.details.get("persons", persons))
        return replace(
            found,
            details={**found.details, "sampled_persons": count},
            warnings=(*found.warnings, f"It was measured on a sample of {count:,} persons."),
        )

    def _interval(
        self, info: MeasureInfo, options: Mapping[str, Any], value: float
    ) -> tuple[float, float] | None:
        """A 95 % interval from the values of groups of persons; None if a group has no value."""
        original, released = self.sample
        lots = self.order.keyed_hash(np.arange(original.person_count), "groups") % _GROUPS
        of_row = lots[original.persons]
        of_released = of_row[released.rows_in(original)]
        values = []
        for group in range(_GROUPS):
            try:
                one = original.keep(of_row == group)
                values.append(info.take(one, released.keep(of_released == group), **options).value)
            except ShoalError:
                return None
        wide = _STUDENT * float(np.std(values, ddof=1)) / math.sqrt(_GROUPS)
        low, high = info.limits
        return max(low, value - wide), min(high, value + wide)

    def _linked(self, options: Mapping[str, Any]) -> Measurement:
        """Persons of the sample, linked with all released records."""
        original, released = self.sample
        names = known_columns(original, released, options.get("known"))
        shown = [name for name in names if name in released.columns]
        if self.is_sampled:
            everybody = self._everybody(original, shown)
            records = self._all_records(released, shown).among(original)
        else:
            everybody, records = original, released
        wanted = int(options.get("sample", SAMPLE))
        groups = records.group(shown).count if shown else 1
        persons = drawn_rows(original, max(_FEWEST_LINKED, min(wanted, _MOST_COMPARED // groups)))
        own = records.rows_of_keys(original.row_key[persons])
        intruder = Intruder(everybody, records, names, persons, own)
        how = options.get("dissimilarity", "gower")
        links = distance_links(intruder, dissimilarity=how)
        found = right_links("distance_linkage", intruder, links)
        if len(persons) == self.total:
            return found
        return self._said_of_sample(found, len(persons))

    def _joined(self, info: MeasureInfo, options: Mapping[str, Any]) -> Measurement:
        """Persons of the sample, with two sources linked among all released records."""
        self._check_combinations()
        original, _ = self.sample
        found: Measurement = info.function(original, self.after, **options)
        if options.get("left") is None:
            found = self._read_in_full(found, [*found.details["left"], *found.details["right"]])
        persons = int(found.details["persons"])
        return found if persons == self.total else self._said_of_sample(found, persons)

    def _everybody(self, original: Table, names: Sequence[str]) -> Table:
        """The sample, followed by rows with every value that the original has in some columns.

        So the intruder knows all values and the whole range of numbers.
        """
        values = {}
        for name in names:
            try:
                levels = self.column(name)[0].codes(name).levels
            except TooManyCombinations:
                continue
            if 0 < len(levels) <= _MOST_KNOWN:
                values[name] = levels
        if not values:
            return original
        longest = max(map(len, values.values()))
        frame: pl.DataFrame = original.frame
        more = pl.DataFrame(
            [
                values[name].gather(np.arange(longest) % len(values[name])).alias(name)
                if name in values
                else pl.Series(name, [None], dtype=kind).new_from_index(0, longest)
                for name, kind in frame.schema.items()
            ]
        ).cast(frame.schema)
        keys = np.append(original.row_key, -2 - np.arange(longest))
        roles = roles_on(self.roles, list(names))
        table = _table(pl.concat([frame, more]), roles).on_record(keys, ()).among(original)
        if not original.has_persons:
            return table
        strangers = original.person_count + np.arange(longest)
        return table.owned_by(np.append(original.persons, strangers))

    def _all_records(self, released: Table, names: Sequence[str]) -> Table:
        """The released rows of the sample, followed by all others with their counts."""
        absent = [name for name in names if name not in self.after.columns]
        if absent:
            raise DoesNotApply(
                "There are too many classes to keep in memory, so no links among them are sought."
            )
        groups = self.after.group(names)
        counted = pl.DataFrame([_values(self.after, name, groups.first_rows) for name in names])
        counted = counted.with_columns(pl.Series("times", groups.rows))
        mine: pl.DataFrame = released.frame.select(names)
        taken = mine.group_by(names).agg(pl.len().cast(pl.Int64).alias("mine"))
        left = counted.join(taken, on=names, how="left", nulls_equal=True).with_columns(
            pl.col("times") - pl.col("mine").fill_null(0)
        )
        left = left.filter(pl.col("times") > 0)
        both = pl.concat([mine, left.select(names).cast(mine.schema)])
        keys = np.append(released.row_key, -2 - np.arange(len(left)))
        table = _table(both, roles_on(self.roles, list(names))).on_record(keys, ())
        each = np.append(np.ones(len(mine), np.int64), left["times"].to_numpy())
        return table.tallied(each)


def _values(table: Table, name: str, rows: Integers) -> pl.Series:
    """The values of some rows, without the values of all rows, since a table may have many."""
    codes = table.codes(name)
    levels: pl.Series = codes.levels.extend_constant(None, 1)  # the code of missing values
    return levels.gather(codes.codes[rows].astype(np.int64)).alias(name)


def _with_only(name: str, table: Table) -> Table:
    return table.drop([other for other in table.columns if other != name])


def _table(frame: pl.DataFrame, roles: Roles) -> Table:
    """A table whose columns may be empty, as after masking."""
    return Table(frame).with_roles(roles, released=True)


def counted_columns(rows: Rows, roles: Roles) -> list[str]:
    """The columns that classes and models depend on."""
    names = [*roles.quasi_identifiers, *roles.sensitive, *roles.unit_columns]
    return [name for name in rows.columns if name in names] + [
        name for name in rows.hidden if name in names
    ]


def released_weight(rows: Rows, roles: Roles) -> str | None:
    """The column of sampling weights, if the rows have it."""
    return roles.weight if roles.weight in rows.schema else None


def tally_of(
    rows: Rows, roles: Roles, require: Sequence[Any] = (), *, released: bool = True
) -> Table:
    """The combinations of quasi-identifiers and sensitive columns, or only the sizes of classes.

    Sizes are enough if no model depends on sensitive values.
    """
    names = counted_columns(rows, roles)
    try:
        own = roles_on(roles, names)
        return rows.tally(names, own, released=released, weight=released_weight(rows, roles))
    except TooManyCombinations:
        if _needs_combinations(require) or roles.unit_columns:
            raise
    return rows.crowds([name for name in names if name in roles.quasi_identifiers])


def tally_with_owners(written: Rows, private: Rows, unit: Sequence[str], roles: Roles) -> Table:
    """The combinations of written rows, with their owners from the private half."""
    owners = [OWNER + name for name in unit]
    names = [n for n in counted_columns(written, roles) if n not in roles.unit_columns]
    own = roles_on(roles, names).replacing(unit=owners)
    both = written.engine.joined(written, private, owners)
    return both.tally([*names, *owners], own, weight=released_weight(written, roles))


def _needs_combinations(require: Sequence[Any]) -> bool:
    """Whether the requirements need more than the sizes of classes."""
    looked_at = (*OF_COMBINATIONS, "linkability")
    return any(
        isinstance(asked, (PopulationModel, SensitiveModel))
        or getattr(asked, "measure", None) in looked_at
        for asked in require
    )


def tally_before(rows: Rows, roles: Roles, require: Sequence[Any] = ()) -> tuple[Table, Assessment]:
    """The combinations of the original and their assessment.

    If nearly every record is a class of its own, the classes do not fit into memory. Then the table
    has one row for each class size, which is enough to measure risk.
    """
    try:
        found = tally_of(rows, roles, require, released=False)
        return found, _assessed(found)
    except TooManyCombinations:
        if _needs_combinations(require):
            raise
    sizes, classes = rows.histogram(roles.quasi_identifiers)
    name = HIDDEN + "size"  # no column of the rows has this name
    found = Table(pl.DataFrame({name: sizes}), Roles(quasi_identifiers=[name]))
    found = found.tallied(sizes * classes)
    found = found.with_crowds(sizes)
    assessed = assess_release(found, None)
    # no column is left by which someone could be unique
    measured = {n: one for n, one in assessed.measurements.items() if n not in OF_COMBINATIONS}
    count = int(classes.sum())
    facts = replace(assessed.classes, count=count, average=found.records / count)
    return found, replace(assessed, classes=facts, measurements=measured)


def _assessed(tally: Table, declared: Roles | None = None) -> Assessment:
    """An assessment by classes, without values for each combination, since there are millions."""
    found = assess_release(tally, None, declared=declared).without_records()
    tally.forget_groupings()
    return found


def _together(
    info: MeasureInfo, found: Mapping[str, Measurement], weights: Mapping[str, int]
) -> Measurement:
    """One measurement from those of single columns: their mean, or the share of all cells."""
    if info.name == "suppressed_cells":
        cells = sum(weights.values())
        if cells == 0:
            raise InputError("There is nothing to compare: the original has no filled cells.")
        lost = sum(one.value * weights[name] for name, one in found.items())
        return Measurement(info.name, lost / cells, details={"cells": cells})
    each = {
        name: value
        for one in found.values()
        for name, value in one.details.get("columns", {}).items()
    }
    value = float(np.mean(list(each.values()) or [0.0]))
    first = next(iter(found.values()), None)
    return Measurement(
        info.name,
        value,
        baseline=None if first is None else first.baseline,
        direction=info.direction,
        details={"columns": each},
        warnings=tuple(_once(w for one in found.values() for w in one.warnings)),
    )


def _once(sentences: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(sentences))
