"""How each step of a plan runs on an engine: by counts, by value, or in chunks.

By counts, the step works on the combinations of the columns it looks at, and each row then gets
what became of its combination: that is what memory finds. By value, what the step learns is
learned from counts, and each row is mapped by itself. In chunks, the step runs as in memory on
about a hundred thousand similar rows at a time, and what it promises holds in each chunk.
"""

from __future__ import annotations

import copy
import gc
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.engines._chunks import ChunkOf, DrawnChunk, Tree, cuts_of
from shoal.engines._engine import HIDDEN, PART, Function, Rows, TooManyCombinations, roles_on
from shoal.engines._functions import (
    WHOLE,
    Below,
    ByCombination,
    Emptied,
    Hashed,
    InChunk,
    InStrata,
    Keys,
    Lost,
    Named,
    Noise,
    Redrawn,
    Served,
    Together,
)
from shoal.errors import InputError, ShoalWarning, UnprotectedColumnWarning, quoted
from shoal.kernels.arrays import Integers
from shoal.masking import (
    AddNoise,
    Generalize,
    Masker,
    Microaggregate,
    Pram,
    RankSwap,
    Recode,
    Redraw,
    Round,
    Sample,
    Secrets,
    Suppress,
    Swap,
    TopBottomCode,
)
from shoal.masking._base import StepLog
from shoal.masking._sample import exact_fraction
from shoal.masking.grouping._groups_satisfy import models_of
from shoal.models import (
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    PopulationModel,
    PrivacyModel,
    TCloseness,
)
from shoal.randomness import SecretStream
from shoal.table import OTHER, Roles, Table
from shoal.table import Course as Past
from shoal.table.columns._frames import kind_of
from shoal.workflow import StepRecord
from shoal.workflow._require import plain

#: So many rows are in a chunk: the kernels are quick with them, and little is lost at the cuts.
CHUNK = 100_000
_SAMPLED = 200_000
#: At least so many of them in each chunk are masked with and without chunks; of values that are
#: no quantities so many in all, since comparing them takes longer.
_LEAST, _TRIED = 5_000, 20_000
_WORTH_COLLECTING = 1_000_000


@dataclass
class Course:
    """Rows on their way through a plan: where they are, and what is known of them."""

    rows: Rows
    roles: Roles
    total: int
    records: list[StepRecord] = field(default_factory=list)
    #: Rows whose combinations were counted already, and those combinations.
    counted: tuple[Rows, Table] | None = None
    #: The rows that a sample was drawn from, and how many steps came before it.
    drawn_from: tuple[Rows, int] | None = None
    #: What the steps learned, as far as people of a population can be mapped by it.
    fitted: list[Masker] = field(default_factory=list)
    #: The populations that models name, counted.
    people: dict[str, Table] = field(default_factory=dict)
    #: What was done to the rows, as far as differential privacy asks.
    past: Past = field(default_factory=Past)

    @property
    def population(self) -> Rows | None:
        """What a sample was drawn from, unless classes were changed or taken out afterwards."""
        if self.drawn_from is None:
            return None
        rows, number = self.drawn_from
        later = self.records[number + 1 :]
        quasi = {*self.roles.quasi_identifiers}
        same = all(not step.removed and not quasi & {*step.touched} for step in later)
        return rows if same else None

    def peopled(self, model: PrivacyModel) -> PrivacyModel:
        """The model, with its population as combinations that the engine counted, once."""
        if not isinstance(model, PopulationModel) or isinstance(model.population, Table):
            return model
        path = model.population
        if path not in self.people:
            rows = self.rows.engine.source(path)
            quasi, unit = self.roles.quasi_identifiers, self.roles.unit_columns
            lacking = [name for name in quasi if name not in rows.columns]
            if lacking:
                raise InputError(
                    f"The population has no column {quoted(lacking)}; it needs all "
                    "quasi-identifiers."
                )
            named = [*quasi, *unit] if {*unit} <= {*rows.columns} else list(quasi)
            self.people[path] = rows.tally(named, roles_on(self.roles, named))
        asked: Any = model  # each of these models is a dataclass; their base is not
        found: PrivacyModel = replace(asked, population=self.people[path])
        return found

    def covered(self, people: Table) -> Table:
        """People of a population, mapped as the steps mapped the table."""
        for step in self.fitted:
            if {*step.touched_} & {*people.columns}:
                people = step.cover(people)
        return people

    @property
    def owners(self) -> list[str]:
        """The columns that say of which person, and of which household, a row is."""
        return [*self.roles.unit_columns, *self.roles.household]

    @property
    def together(self) -> Together:
        """What is drawn or taken out as a whole."""
        if not (self.roles.unit_columns and self.roles.household):
            return Together(tuple(self.owners))
        pairs = self.rows.tally(self.owners, roles_on(self.roles, self.owners))
        frame: pl.DataFrame = pairs.frame
        return Together(tuple(self.owners), frame.with_columns(pl.Series(WHOLE, pairs.together)))

    def name_persons(self, stream: SecretStream) -> str:
        """Give each person a pseudonym, in a first column; what comes back is its name."""
        unit = self.roles.unit_columns
        called = unit[0] if len(unit) == 1 else "person"
        while called in self.rows.schema:
            called += "_"
        function = Named(stream.key_hex, unit, called)
        hidden = {function.hidden.get(n, n): kind for n, kind in self.rows.hidden.items()}
        schema = {called: pl.String(), **self.rows.schema}
        self.rows = self.rows.engine.mapped(self.rows, function, schema, hidden=hidden)
        return called

    def leave_homes(self) -> None:
        """Forget of which household a row is: no claim and no measure asks for it."""
        homes = self.roles.household
        hidden = {n: kind for n, kind in self.rows.hidden.items() if n not in homes}
        self.rows, self.roles = replace(self.rows, hidden=hidden), self.roles.without(homes)

    def tally(self, columns: Sequence[str]) -> Table:
        """The combinations of some columns, with whose they are where a person has several."""
        names = [*columns, *(n for n in self.owners if n not in columns)]
        known, self.counted = self.counted, None
        if known is not None and known[0] is self.rows and {*known[1].columns} == {*names}:
            return known[1].on_course(self.past)
        return self.rows.tally(names, roles_on(self.roles, names)).on_course(self.past)


def check_steps(steps: Sequence[Masker]) -> None:
    """Raise InputError, before anything starts, for a step that cannot run on an engine."""
    for number, step in enumerate(steps, start=1):
        if getattr(step, "random_state", None) is not None:
            raise InputError(
                f"Step {number} ('{step.method}') has a 'random_state'; on an engine every draw "
                "comes from the operating system. Leave it out."
            )
        if _way(step) is None:
            raise InputError(
                f"Step {number} ('{step.method}') cannot run on an engine: {_why_not(step)}. Use "
                "the engine 'memory', or leave the step out."
            )


def run_step(step: Masker, course: Course) -> None:
    """Apply a step to the rows of a course."""
    way = _way(step)
    assert way is not None
    named = getattr(step, "columns", None)
    if step.needs_columns and not (course.roles.quasi_identifiers if named is None else named):
        # earlier steps took out every quasi-identifier: nothing is left to mask
        parameters = plain(step.changed_params(public=True), public=True)
        course.records.append(StepRecord(step.method, parameters))
        return
    step = copy.copy(step)
    models = getattr(step, "models", None)
    if isinstance(models, PrivacyModel):
        step.set_params(models=course.peopled(models))
    elif models is not None:
        step.set_params(models=[course.peopled(model) for model in models])
    way(step, course)


_Way = Callable[[Any, Course], None]


def _way(step: Masker) -> _Way | None:
    if isinstance(step, Generalize) and step.by_counts:
        return _by_counts
    if isinstance(step, Suppress):
        if step.where is not None:
            return _by_condition if step.target == "records" or step.whole else _by_value
        return _by_counts
    if isinstance(step, (Round, Recode, TopBottomCode)):
        return _by_value
    if isinstance(step, AddNoise):
        return _by_noise
    if isinstance(step, Pram):
        return _by_redrawing
    if isinstance(step, Sample):
        return _by_sampling
    in_blocks = isinstance(step, Swap) and step.blocks != "joint" and not step.informed
    if isinstance(step, _IN_CHUNKS) and not in_blocks and not _compares(step):
        return _by_chunks
    return None


_IN_CHUNKS = (Generalize, Microaggregate, RankSwap, Redraw, Swap)


def _compares(step: Masker) -> bool:
    """Whether models ask about more than a group by itself, so that chunks cannot satisfy them."""
    asked = models_of(getattr(step, "models", None) or getattr(step, "groups_satisfy", None))
    return any(
        isinstance(model, (BetaLikeness, DeltaDisclosure, PopulationModel, TCloseness))
        or (isinstance(model, KAnonymity) and model.of == "histories")
        for model in asked
    )


def _why_not(step: Masker) -> str:
    if _compares(step):
        return "it runs in chunks, and a model of it compares groups with all records"
    if isinstance(step, Swap):
        return "blocks by mutual information are found over all records; swap jointly"
    return "it looks at all records at once"


# -- by counts


def _by_counts(step: Generalize | Suppress, course: Course) -> None:
    columns = _decided_by(step, course)
    try:
        tally = course.tally(columns)
    except TooManyCombinations:
        in_boxes = isinstance(step, Generalize) and step.algorithm == "mondrian"
        if not in_boxes or course.roles.unit_columns or _compares(step):
            raise
        _by_chunks(step, course)  # what Mondrian would cut first is cut first
        return
    masked = step.fit_transform(tally)
    if len(tally) > _WORTH_COLLECTING:
        gc.collect()  # a kernel that was compiled leaves cycles, which hold all combinations
    keys = [name for name in columns if name in _keys_of(step, course)]
    if isinstance(step, Generalize) and step.suppressed == "kept":
        keys += course.owners  # a person's rows stay as a whole, and as stars
    function = ByCombination(tally, masked, keys, step.touched_)
    if tally.together is not None and len(masked) < len(tally):
        function.gone = _gone_owners(tally, masked, course)
    schema = {n: k for n, k in course.rows.schema.items() if n not in step.removed_columns_}
    schema |= {n: _kind(masked, n) for n in step.touched_ if n in masked.columns}
    course.rows = course.rows.engine.mapped(
        course.rows, function, schema, hidden=course.rows.hidden
    )
    course.total -= step.removed_
    course.roles = course.roles.without(step.removed_columns_)
    course.fitted.append(step)
    _record(step, course, past=masked.course)


def _kind(masked: Table, name: str) -> pl.DataType:
    kind: pl.DataType = masked.column(name).dtype
    return kind


def _keys_of(step: Generalize | Suppress, course: Course) -> Sequence[str]:
    """The columns that decide what becomes of a row."""
    if step.columns is not None:
        return step.columns
    return course.roles.quasi_identifiers


def _decided_by(step: Generalize | Suppress, course: Course) -> list[str]:
    """The columns that a step looks at: those it changes, and those that its models ask about."""
    names = dict.fromkeys(_keys_of(step, course))
    if isinstance(step, Generalize) and (step.models is not None or step.suppressed == "kept"):
        names |= dict.fromkeys(course.roles.sensitive)
    if isinstance(step, Generalize):
        names |= dict.fromkeys(course.roles.quasi_identifiers)
    return list(names)


def _gone_owners(tally: Table, masked: Table, course: Course) -> pl.DataFrame:
    """The owners who have no row left; who lives alone goes with the combination."""
    assert tally.together is not None
    left = tally.together[tally.rows_of_keys(masked.row_key)]
    frame: pl.DataFrame = tally.frame
    gone = frame.filter(pl.Series(~np.isin(tally.together, left))).select(course.owners).unique()
    return gone if course.roles.unit_columns else gone.drop_nulls()


# -- by value


def _by_value(step: Masker, course: Course) -> None:
    """Learn from the counts of each column by itself, then map each row."""
    named: Sequence[str] | None = getattr(step, "columns", None)
    columns = list(course.roles.quasi_identifiers if named is None else named)
    touched: list[str] = []
    skipped: dict[str, str] = {}
    fitted: list[Masker] = []
    kinds: dict[str, pl.DataType] = {}
    if isinstance(step, Suppress):
        fitted = [step]
        step.touched_, step.skipped_, step.removed_columns_ = tuple(columns), {}, ()
        touched, kinds = columns, {name: course.rows.schema[name] for name in columns}
    else:
        for name in columns:
            one = copy.copy(step)
            one.set_params(columns=[name])
            with warnings.catch_warnings():
                if named is None:  # a column that the plan does not name may be left as it is
                    warnings.simplefilter("ignore", UnprotectedColumnWarning)
                masked = one.fit_transform(_to_learn_from(one, course, name))
            kinds[name] = _wide(_kind(masked, name))
            touched += one.touched_
            skipped |= one.skipped_
            if one.touched_:
                fitted.append(one)
    course.fitted += fitted
    for one in fitted:
        one = one.without_records()
        changed = {name: kinds[name] for name in one.touched_}
        function = Served(one, course.roles, changed)
        schema = {**course.rows.schema, **changed}
        course.rows = course.rows.engine.mapped(
            course.rows, function, schema, hidden=course.rows.hidden
        )
    _record(step, course, touched=touched, skipped=skipped)


def _wide(kind: pl.DataType) -> pl.DataType:
    """A type that also holds what numbers of other parts become."""
    return pl.Decimal(38, kind.scale) if isinstance(kind, pl.Decimal) else kind


def _to_learn_from(step: Masker, course: Course, name: str) -> Table:
    """The values of a column with their counts; to round very many, some of them are enough."""
    own = roles_on(course.roles, [name])
    try:
        return course.rows.tally([name], own)
    except TooManyCombinations:
        if not isinstance(step, Round):
            raise
    rows = replace(course.rows, schema=course.rows.kinds([name]), hidden={})
    look = SecretStream.from_state(None).derive("look")
    return Table(rows.engine.sample(rows, _SAMPLED, look, course.total).select(name), own)


def _by_condition(step: Suppress, course: Course) -> None:
    """Take out the records for which a condition holds, and with them those of their persons."""
    assert step.where is not None
    if step.target != "records":
        _by_value(step, course)
        return
    rows, function = course.rows, Emptied(step.where, course.roles)
    if step.whole and course.owners:
        met = rows.engine.mapped(rows, replace(function, met=True), rows.schema, hidden=rows.hidden)
        owners: pl.DataFrame = met.tally(course.owners, Roles()).frame
        function = replace(function, gone=course.together.all_of(owners))
    course.rows = rows.engine.mapped(rows, function, rows.schema, hidden=rows.hidden)
    before, course.total = course.total, course.rows.count()
    losing = _persons_losing(rows, function, course, before)
    _record(step, course, removed=before - course.total, losing=losing)


def _persons_losing(rows: Rows, kept: Function, course: Course, before: int) -> int:
    """How many persons lost a row."""
    unit = list(course.roles.unit_columns)
    if not unit or before == course.total:
        return before - course.total
    lost = rows.engine.mapped(rows, Lost(kept), rows.schema, hidden=rows.hidden)
    return len(lost.tally(unit, Roles()))


def _by_noise(step: AddNoise, course: Course) -> None:
    rows, stream = course.rows, SecretStream.from_state(None)
    named = step.columns or course.roles.quasi_identifiers
    by = tuple(
        n for n in course.roles.quasi_identifiers if rows.schema[n] in (pl.String, pl.Boolean)
    )
    ranges: dict[str, tuple[pl.DataFrame, float, float]] = {}
    skipped: dict[str, str] = {}
    for name in named:
        kind = kind_of(rows.schema[name])
        if kind != "float":
            skipped[name] = f"{kind}, not float"
            continue
        numbers = {"low": pl.Float64(), "high": pl.Float64()}
        found = rows.engine.ranges(rows, by, name).cast(pl.Schema({**rows.kinds(by), **numbers}))
        low, high = found["low"].min(), found["high"].max()
        if low is None or low == high:
            skipped[name] = "all values are equal" if low is not None else "no value present"
            continue
        ends = float(low), float(high)  # type: ignore[arg-type]
        if not np.isfinite(ends[1] - ends[0]):
            skipped[name] = "its range exceeds the largest floating-point number"
            continue
        ranges[name] = (found, *ends)
    if ranges:
        kinds = {name: _wide(rows.schema[name]) for name in ranges}
        function = Noise(stream.key_hex, step.method, step.epsilon, by, ranges, kinds)
        schema = {**rows.schema, **kinds}
        course.rows = rows.engine.mapped(
            rows, function, schema, hidden=rows.hidden, whole_parts=True
        )
    if step.columns is not None and skipped:
        step._warn_about_named(skipped)
    secrets = {"key": stream.key_hex, "randomness": stream.origin, "part": PART}
    _record(step, course, touched=list(ranges), skipped=skipped, secrets=secrets)


def _by_redrawing(step: Pram, course: Course) -> None:
    rows, stream = course.rows, SecretStream.from_state(None)
    counts: dict[str, tuple[pl.Series, Integers]] = {}
    skipped: dict[str, str] = {}
    for name in step.columns or course.roles.quasi_identifiers:
        if rows.schema[name] not in (pl.String, pl.Boolean):
            skipped[name] = f"{kind_of(rows.schema[name])}, not text or boolean"
            continue
        codes = rows.tally([name], roles_on(course.roles, [name])).codes(name)
        if len(codes.levels):
            counts[name] = (codes.levels, codes.counts[: len(codes.levels)])
        else:
            skipped[name] = "no value present"
    if counts:
        function = Redrawn(stream.key_hex, step.method, step.keep, counts)
        course.rows = rows.engine.mapped(
            rows, function, rows.schema, hidden=rows.hidden, whole_parts=True
        )
    if step.columns is not None and skipped:
        step._warn_about_named(skipped)
    secrets = {"key": stream.key_hex, "randomness": stream.origin, "part": PART}
    _record(step, course, touched=list(counts), skipped=skipped, secrets=secrets)


def _by_sampling(step: Sample, course: Course) -> None:
    """Keep the rows, or persons, with the least keyed hashes: a share, or an exact number."""
    rows, stream = course.rows, SecretStream.from_state(None)
    together = course.together if step.whole else Together()
    share = exact_fraction(step.fraction)
    function: Function = Below(stream.key_hex, int(share * 2**64), together=together)
    if step.strategy in ("stratified", "balanced") and course.roles.quasi_identifiers:
        function = _in_strata(step, course, stream, together)
    elif step.strategy != "bernoulli":
        bound = _bound_of(rows, stream, share, course.total, together)
        function = Below(stream.key_hex, bound, together=together)
    if course.drawn_from is None:
        course.drawn_from = rows, len(course.records)
    course.rows = rows.engine.mapped(rows, function, rows.schema, hidden=rows.hidden)
    before, course.total = course.total, course.rows.count()
    losing = _persons_losing(rows, function, course, before)
    secrets = {"key": stream.key_hex, "randomness": stream.origin}
    past = step._course(course.past, StepLog(private=Secrets(secrets)))
    removed = before - course.total
    _record(step, course, removed=removed, losing=losing, secrets=secrets, past=past)


def _bound_of(
    rows: Rows, stream: SecretStream, share: Fraction, total: int, together: Together
) -> int:
    """The hash below which the share of all rows, or of all that goes together, lies."""
    engine, place = rows.engine, HIDDEN + "place"
    placed = _placed(rows, Hashed(stream.key_hex, together), together.columns, [place])
    if together.columns:
        placed = engine.view(f"SELECT DISTINCT {place} FROM {placed}")
        total = int(engine.query(f"SELECT count(*) AS n FROM {placed}")["n"][0])
    wanted = int(share * total)
    found = engine.query(f"SELECT {place} AS h FROM {placed} ORDER BY h LIMIT 1 OFFSET {wanted}")
    return int(found["h"][0]) + (1 << 63) if len(found) else 1 << 64


def _placed(rows: Rows, function: Function, asked: Sequence[str], made: Sequence[str]) -> str:
    """The name under which SQL finds numbers that a function makes of some columns."""
    bare = replace(rows, schema={}, hidden=dict(rows.kinds(asked)))
    numbers = rows.engine.mapped(bare, function, {}, hidden=dict.fromkeys(made, pl.Int64()))
    return rows.engine.settled(numbers, made).name


def _in_strata(step: Sample, course: Course, stream: SecretStream, together: Together) -> InStrata:
    """The rows with the least hashes of each class, as many as the step says."""
    rows = course.rows
    if together.columns:
        place = HIDDEN + "place"
        placed = _placed(rows, Hashed(stream.key_hex, together), together.columns, [place])
        wholes = rows.engine.query(f"SELECT count(DISTINCT {place}) AS n FROM {placed}")
        step.refuse_parts(int(wholes["n"][0]), course.total)
    roles = course.roles.without(course.owners)
    names = step.strata(roles)
    tally = rows.tally(names, roles_on(roles, names))
    strata = Keys(tally, names)
    labels = tally.group(names).labels[strata.first]
    first = np.zeros(len(labels), np.uint64)
    if step.strategy == "balanced":
        first[labels] = _hashes_at(rows, InStrata(stream.key_hex, strata, np.ones_like(labels)))
    function = InStrata(stream.key_hex, strata, step.quotas(tally, first)[labels])
    function.bounds = _hashes_at(rows, function)
    return function


def _hashes_at(rows: Rows, function: InStrata) -> npt.NDArray[np.uint64]:
    """The hash of the last row of each stratum that is within its quota; 0 where that is none."""
    stratum, quota, place = (HIDDEN + name for name in ("stratum", "quota", "place"))
    asked = [levels.name for levels in function.strata.levels]
    placed = _placed(rows, function, asked, [stratum, quota, place])
    found = rows.engine.query(
        f"SELECT {stratum} AS s, {place} AS h FROM (SELECT *, row_number() OVER (PARTITION BY "
        f"{stratum} ORDER BY {place}) AS turn FROM {placed}) WHERE turn = {quota}"
    )
    bounds = np.zeros(len(function.quotas), np.uint64)
    signed = found["h"].cast(pl.Int64).to_numpy()
    bounds[found["s"].to_numpy()] = signed.view(np.uint64) ^ np.uint64(1 << 63)
    return bounds


# -- in chunks


def _by_chunks(step: Masker, course: Course) -> None:
    """Cut the rows by a tree that was made from a sample, and mask each chunk by itself.

    Ranks that are near are near among all records, so for swaps by rank chunks are drawn at random:
    a share of the ranks of such a chunk is that share of all ranks.
    """
    rows, stream = course.rows, SecretStream.from_state(None)
    touched, columns = _touched(step, course), _cut_by(step, course)
    number = len(course.records)
    texts = tuple(columns) if isinstance(step, Generalize) else ()
    function = InChunk(step, course.roles, stream.key_hex, number, texts)
    hidden = {**rows.hidden, f"{HIDDEN}{number}_chunk": pl.Int64()}
    if isinstance(step, Swap):
        blocks = range(len(touched) if step.informed else 1)
        names = [f"{what}_{block}" for block in blocks for what in ("group", "source")]
        hidden |= {f"{HIDDEN}{number}_{name}": pl.Int64() for name in names}
    schema = {**rows.schema, **dict.fromkeys(texts, pl.String())}
    if columns:
        seen = replace(rows, schema=rows.kinds(columns), hidden={})
        sample = rows.engine.sample(seen, _SAMPLED, stream.derive("chunks"), course.total)
        smallest = 2 * int(getattr(step, "k", None) or 2)
        tree = cuts_of(sample, columns, course.total, chunk=max(CHUNK, 4 * smallest))
        chunk_of: Function = ChunkOf(tree)
        facts: dict[str, Any] = {"chunks": len(tree.cuts) + 1}
        facts |= _lost_at_cuts(step, sample, columns, tree, course.total)
    else:
        facts = {"chunks": max(1, round(course.total / CHUNK)), "drawn": True}
        chunk_of = DrawnChunk(stream.derive("chunk of").key_hex, facts["chunks"])
    course.rows = rows.engine.chunked(rows, chunk_of, function, schema, hidden)
    secrets = {"key": stream.key_hex, "randomness": stream.origin}
    _record(step, course, touched=touched, secrets=secrets, facts=facts)


def _touched(step: Masker, course: Course) -> list[str]:
    """The columns that a step in chunks changes."""
    named: Sequence[str] | None = getattr(step, "columns", None)
    about_secrets = isinstance(step, Redraw) or (isinstance(step, Swap) and step.informed)
    others = course.roles.sensitive if about_secrets else course.roles.quasi_identifiers
    return list(named or others)


def _cut_by(step: Masker, course: Course) -> list[str]:
    """The columns by which rows are similar that are in one chunk; none where it is drawn.

    Secrets are not among them: whoever knows a person would know the chunk, and so about the
    secret. For redrawing, classes stay whole.
    """
    touched, quasi = _touched(step, course), list(course.roles.quasi_identifiers)
    if isinstance(step, Redraw):
        if not quasi:
            raise InputError("Redraw needs quasi-identifiers on an engine: it draws by class.")
        return quasi
    if not isinstance(step, Swap) or not step.informed:
        return [] if isinstance(step, RankSwap) else touched
    if step.partition == "individual-ranking":
        return []
    known = [*quasi, *course.roles.sensitive]
    return [name for name in known if name not in touched]


def _lost_at_cuts(
    step: Masker, sample: pl.DataFrame, columns: Sequence[str], tree: Tree, total: int
) -> dict[str, float]:
    """How much more is lost with chunks than without, measured on a sample.

    Of numbers the squared error is lost, in standard deviations, of other values each that changes.
    A chunk of the sample has fewer rows than one of the table, and so loses more: a power of its
    rows, which a smaller sample tells.
    """
    if not tree.cuts or not isinstance(step, (Microaggregate, Swap)):
        return {}
    some = sample.select(_in_deviations(sample[name]) for name in columns)
    some = some[SecretStream.public("chunks").permutation(some.height)]  # the first ones are any
    if not all(kind.is_float() for kind in some.schema.values()):
        some = some.head(_TRIED)
    chunks = min(len(tree.cuts) + 1, max(2, some.height // _LEAST))
    more = _lost_in(some, chunks, step.k)
    rows, held = total / (len(tree.cuts) + 1), some.height / chunks
    if rows > 2 * held and more > 0:
        less = _lost_in(some.head(some.height // 4), chunks, step.k)
        more *= min(1.0, (more / less) ** math.log(rows / held, 4)) if less > 0 else 1.0
    return {"extra_loss": round(max(0.0, more), 3)}


def _lost_in(some: pl.DataFrame, chunks: int, k: int) -> float:
    """How much more groups lose in so many chunks than in one."""
    whole = _lost_in_groups(some, k)
    cuts = cuts_of(some, some.columns, some.height, chunk=some.height // chunks)
    places = pl.Series(HIDDEN + "chunk", cuts.chunks(some))
    parts = some.with_columns(places).partition_by(places.name, include_key=False)
    return sum(_lost_in_groups(part, k) for part in parts) / whole - 1 if whole else 0.0


def _in_deviations(column: pl.Series) -> pl.Expr:
    """A column of quantities in its standard deviations; any other one as it is."""
    if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        return pl.col(column.name)
    spread = column.to_physical().cast(pl.Float64).std() or 1.0
    return pl.col(column.name).to_physical().cast(pl.Float64) / spread


def _lost_in_groups(frame: pl.DataFrame, k: int) -> float:
    """What groups of k lose: the squared error of numbers, and one for each other value."""
    numbers = all(kind.is_float() for kind in frame.schema.values())
    table = Table(frame).with_roles(Roles(quasi_identifiers=frame.columns), released=True)
    step = Microaggregate(
        max(3, k), dissimilarity="euclidean" if numbers else "gower", standardize=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        masked: pl.DataFrame = step.fit_transform(table).frame
    lost = 0.0
    for name, kind in frame.schema.items():
        if kind.is_float():
            lost += float(((frame[name] - masked[name]) ** 2).sum())
        else:
            lost += float(frame[name].ne_missing(masked[name]).sum())
    return lost


def _record(
    step: Masker,
    course: Course,
    *,
    touched: Sequence[str] | None = None,
    skipped: Mapping[str, str] | None = None,
    removed: int | None = None,
    losing: int | None = None,
    secrets: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    past: Past = OTHER,
) -> None:
    """What the step did, as a plan records it in memory."""
    course.past = past
    gone = step.removed_ if removed is None and hasattr(step, "removed_") else removed or 0
    course.records.append(
        StepRecord(
            step.method,
            plain(step.changed_params(public=True), public=True),
            touched=tuple(getattr(step, "touched_", ()) if touched is None else touched),
            skipped=dict(getattr(step, "skipped_", {}) if skipped is None else skipped),
            removed_columns=tuple(getattr(step, "removed_columns_", ())),
            removed=gone,
            losing=getattr(step, "losing_", gone) if losing is None else losing,
            private=Secrets({**getattr(step, "audit_", {}), **(secrets or {})}),
            facts=dict(getattr(step, "facts_", {})) | dict(facts or {}),
        )
    )
