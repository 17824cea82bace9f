"""Steps in chunks: each runs as in memory on about a hundred thousand similar rows at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from shoal.engines._engine import HIDDEN, Function
from shoal.engines.steps._course import Course, record_step, secrets_of
from shoal.engines.steps._functions import InChunk
from shoal.engines.steps._tree import ChunkOf, DrawnChunk, Tree, cuts_of
from shoal.errors import InputError, ShoalWarning
from shoal.masking import Generalize, Masker, Microaggregate, RankSwap, Redraw, Swap
from shoal.masking.grouping._group_models import models_of
from shoal.models import BetaLikeness, DeltaDisclosure, KAnonymity, PopulationModel, TCloseness
from shoal.randomness import SecretStream
from shoal.table import Roles, Table

#: The number of rows in a chunk: kernels are fast with it, and cuts cost little.
CHUNK = 100_000
SAMPLED = 200_000
#: To measure what cuts cost, at least this many rows of each chunk are masked with and without
#: chunks. If some values are not quantities, it is this many in all, since comparing takes longer.
_LEAST, _TRIED = 5_000, 20_000


def by_chunks(step: Masker, course: Course) -> None:
    """Cut the rows by a tree that was made from a sample, and mask each chunk by itself.

    For swaps by rank, chunks are drawn at random. Then a share of the ranks in a chunk is about the
    same share of all ranks.
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
        sample = rows.engine.sample(seen, SAMPLED, stream.derive("chunks"), course.total)
        smallest = 2 * int(getattr(step, "k", None) or 2)
        weights = step.weights if isinstance(step, Generalize) else None
        chunk = max(CHUNK, 4 * smallest)
        tree = cuts_of(sample, columns, course.total, chunk=chunk, weights=weights)
        chunk_of: Function = ChunkOf(tree)
        facts: dict[str, Any] = {"chunks": len(tree.cuts) + 1}
        facts |= _lost_at_cuts(step, sample, columns, tree, course.total)
    else:
        facts = {"chunks": max(1, round(course.total / CHUNK)), "drawn": True}
        chunk_of = DrawnChunk(stream.derive("chunk of").key_hex, facts["chunks"])
    course.rows = rows.engine.chunked(rows, chunk_of, function, schema, hidden)
    record_step(step, course, touched=tuple(touched), private=secrets_of(stream), facts=facts)


def compares(step: Masker) -> bool:
    """Whether models depend on more than single groups, so that chunks cannot satisfy them."""
    asked = models_of(getattr(step, "models", None))
    return any(
        isinstance(model, (BetaLikeness, DeltaDisclosure, PopulationModel, TCloseness))
        or (isinstance(model, KAnonymity) and model.of == "histories")
        for model in asked
    )


def _touched(step: Masker, course: Course) -> list[str]:
    """The columns that a step in chunks changes."""
    named: Sequence[str] | None = getattr(step, "columns", None)
    about_secrets = isinstance(step, Redraw) or (isinstance(step, Swap) and step.informed)
    others = course.roles.sensitive if about_secrets else course.roles.quasi_identifiers
    return list(named or others)


def _cut_by(step: Masker, course: Course) -> list[str]:
    """The columns by which the rows of a chunk are similar; none if chunks are drawn at random.

    Secrets are not among them: anyone who knows a person would know the chunk, and so something
    about the secret. For redrawing, classes stay whole.
    """
    touched, quasi = _touched(step, course), list(course.roles.quasi_identifiers)
    if isinstance(step, Redraw):
        if not quasi:
            raise InputError("On an engine, redraw draws by class. Declare quasi-identifiers.")
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

    The loss of numbers is their squared error in standard deviations; of other values, each change
    counts. A chunk of the sample has fewer rows than one of the table, so it loses more. The loss
    follows a power of the number of rows, which is estimated from a smaller sample.
    """
    if not tree.cuts or not isinstance(step, (Microaggregate, Swap)):
        return {}
    some = sample.select(_in_deviations(sample[name]) for name in columns)
    some = some[
        SecretStream.public("chunks").permutation(some.height)
    ]  # so the first rows are a random sample
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
    """How much more groups lose in ``chunks`` chunks than in one."""
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
