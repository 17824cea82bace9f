"""The floor: the least work that produces a verified release, with polars and numpy.

``python -m end_to_end.floor WORK DATA HIERARCHIES OUT`` reads a table, codes each column once and
counts the distinct combinations once. Shoal's own kernel searches. Then come the risk before and
after, a profile of each column before and after, the penalty, labels, shuffling, writing, hashing,
reading back, and k from the file by sorting. It prints its results and the CPU seconds of each
stage as JSON. It checks no input, explains nothing, keeps no groups and no keys, and tries no
attack. A program close to it wastes nothing, and none needs to be below it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.kernels.conditions import only_size
from shoal.kernels.grouping import first_rows, group

K = 5
LIMIT = 0.02
STAGES: dict[str, float] = {}
_LAST = [0.0]  # from the start of the process, to include imports


def stage(name: str) -> None:
    """Record the time since the last stage under this name."""
    now = time.process_time()
    STAGES[name] = round(STAGES.get(name, 0.0) + now - _LAST[0], 3)
    _LAST[0] = now


def packed(columns: list[Any], counts: list[int]) -> Any:
    """One number per record; the tables here fit 64 bits."""
    if np.prod([float(count) for count in counts]) >= 2.0**64:
        raise SystemExit("The floor packs a record into 64 bits; this table needs more.")
    keys = np.zeros(len(columns[0]), np.uint64)
    for codes, count in zip(columns, counts, strict=True):
        keys *= np.uint64(count)
        keys += codes.astype(np.uint64)
    return keys


def risk(sizes: Any) -> dict[str, float]:
    """What class sizes say."""
    records = int(sizes.sum())
    return {
        "classes": len(sizes),
        "k": int(sizes.min()),
        "prosecutor": 1 / float(sizes.min()),
        "marketer": len(sizes) / records,
        "at_risk": float(sizes[sizes < K].sum()) / records,
        "unique": float((sizes == 1).sum()) / records,
    }


def runs(ordered: Any) -> dict[str, int]:
    """The number of classes of sorted keys, and the smallest."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    return {"rows": len(ordered), "classes": len(sizes), "k": int(sizes.min())}


def hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Tree:
    """A hierarchy file: the code of each value at each level, and the number of its values."""

    def __init__(self, path: Path) -> None:
        levels = pl.read_csv(path, separator=";", has_header=False, infer_schema=False)
        self.values = levels.to_series(0).to_list()
        maps, self.labels = [], []
        for texts in levels:
            names = texts.unique(maintain_order=True)
            maps.append(texts.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32))
            self.labels.append(names.to_list())
        self.maps = np.stack(maps)
        self.leaves = np.stack([np.bincount(level)[level] for level in maps]).astype(float)


def labelled(name: str, codes: Any, texts: list[str], of_row: Any) -> pl.Series:
    """A column of texts that is held as codes."""
    kind = pl.Enum(texts)
    physical = pl.Series([], dtype=kind).to_physical().dtype
    return pl.Series(name, codes).cast(physical).gather(of_row).cat.to(kind)


def verified(frame: pl.DataFrame) -> dict[str, int]:
    """The classes of the texts as read back."""
    coded = []
    for column in frame:
        levels = column.unique()
        coded.append((column.cast(pl.Enum(levels)).to_physical().to_numpy(), len(levels)))
    return runs(np.sort(packed([c for c, _ in coded], [n for _, n in coded])))


def full_domain(data: Path, hierarchies: Path, out: Path) -> dict[str, Any]:
    from shoal.kernels.lattice.lattice import FullDomainSearch
    from shoal.kernels.lattice.roll_up import Base

    stage("imports")
    with data.open() as file:
        names = file.readline().strip().split(",")
    trees = [Tree(hierarchies / f"{name}.csv") for name in names]
    kinds = {n: pl.Enum(tree.values) for n, tree in zip(names, trees, strict=True)}
    frame = pl.read_csv(data, schema=kinds)
    stage("read and code")
    columns = [frame[name].to_physical().to_numpy() for name in names]
    labels, counts = group(packed(columns, [len(tree.values) for tree in trees]))
    rows = len(labels)
    places = first_rows(labels, len(counts))
    tuples = np.stack([codes[places] for codes in columns], axis=1).astype(np.int32)
    del frame, columns
    stage("count")
    none = np.empty(0, np.int32)
    base = Base(
        np.ascontiguousarray(tuples),
        counts,
        np.zeros_like(counts),
        none,
        none.reshape(0, 0),
        none.astype(np.int64),
    )
    search = FullDomainSearch(
        base,
        [tree.maps for tree in trees],
        [tree.leaves for tree in trees],
        [float(len(tree.values)) for tree in trees],
        only_size(K),
        limit=int(LIMIT * rows),
    )
    while search.advance() < 1:
        pass
    assert search.levels is not None
    stage("kernel")
    chosen = list(zip(trees, search.levels, strict=True))
    nodes = [tree.maps[level][tuples[:, j]] for j, (tree, level) in enumerate(chosen)]
    texts = [tree.labels[level] for tree, level in chosen]
    of_class, _ = group(packed(nodes, [len(levels) for levels in texts]))
    sizes = np.bincount(of_class, weights=counts).astype(np.int64)
    kept = sizes[of_class] >= K
    before, after = risk(counts), risk(sizes[sizes >= K])
    own, penalty = np.where(kept, counts, 0), 0.0
    profiles = []
    for j, (tree, level) in enumerate(chosen):
        pairs = tuples[:, j].astype(np.int64) * len(texts[j]) + nodes[j]
        wide = len(tree.values) * len(texts[j])
        table = np.bincount(pairs, weights=own, minlength=wide)
        profiles.append((np.bincount(tuples[:, j], weights=counts), table))
        share = (tree.leaves[level] - 1) / max(1, len(tree.values) - 1)
        penalty += float(share[tuples[:, j]] @ own) / float(own.sum()) / len(trees)
    stage("risk and profiles")
    order = np.flatnonzero(kept[labels])
    np.random.default_rng().shuffle(order)
    of_row = labels[order]
    released = pl.DataFrame(
        [
            labelled(name, node, text, of_row)
            for name, node, text in zip(names, nodes, texts, strict=True)
        ]
    )
    stage("labels and shuffle")
    path = out / "data.csv"
    released.write_csv(path)
    stage("write")
    digest = hashed(path)
    stage("hash")
    back = pl.read_csv(path, infer_schema=False)
    checked = verified(back)
    stage("read back and verify")
    return {
        **checked,
        "before": before,
        "after": after,
        "penalty": penalty,
        "columns": len(profiles),
        "sha256": digest,
    }


def _axes(frame: pl.DataFrame, hierarchies: Path) -> list[Any]:
    """For each column: its codes, attribute, tree and values, in Mondrian's order."""
    from shoal.kernels.boxes.mondrian_boxes import Attribute, ordered

    axes: list[Any] = []
    for column in frame:
        if column.dtype.is_integer():
            lowest = int(column.min())  # type: ignore[arg-type]
            span = int(column.max()) - lowest  # type: ignore[arg-type]
            codes = (column - lowest).cast(pl.Int32).to_numpy()
            axes.append((codes, ordered(np.arange(span + 1) / max(1, span)), None, lowest))
            continue
        tree = Tree(hierarchies / f"{column.name}.csv")
        back = np.lexsort(tree.maps)
        places = np.empty(len(back), np.int32)
        places[back] = np.arange(len(back))
        first, last = np.empty(tree.maps.shape, np.int32), np.empty(tree.maps.shape, np.int32)
        for level, nodes in enumerate(tree.maps[:, back]):
            starts = np.flatnonzero(np.diff(nodes, prepend=-1))
            sizes = np.diff(starts, append=len(nodes))
            first[level] = np.repeat(starts, sizes)
            last[level] = np.repeat(starts + sizes - 1, sizes)
        widths = np.ascontiguousarray((tree.leaves[:, back] - 1) / max(1, len(back) - 1))
        codes = places[column.cast(pl.Enum(tree.values)).to_physical().to_numpy()]
        attribute = Attribute(np.arange(float(len(back))), first, last, widths)
        axes.append((codes, attribute, tree, back))
    return axes


def _texts(axis: Any, lows: Any, highs: Any) -> tuple[list[str], Any]:
    """The released labels for ranges of a column, and the share of it that each covers."""
    _, attribute, tree, back = axis
    if tree is None:
        ends = zip((lows + back).tolist(), (highs + back).tolist(), strict=True)
        texts = [str(low) if low == high else f"[{low}, {high + 1})" for low, high in ends]
        return texts, attribute.positions[highs] - attribute.positions[lows]
    same = tree.maps[:, back[lows]] == tree.maps[:, back[highs]]
    level = same.argmax(axis=0)
    nodes = tree.maps[level, back[lows]]
    texts = [tree.labels[at][node] for at, node in zip(level, nodes, strict=True)]
    return texts, attribute.widths[level, lows]


def mondrian(data: Path, hierarchies: Path, out: Path) -> dict[str, Any]:
    from shoal.kernels.boxes.mondrian_boxes import MondrianBoxes

    stage("imports")
    frame = pl.read_parquet(data)
    names = frame.columns
    axes = _axes(frame, hierarchies)
    del frame
    stage("read and code")
    widths = [len(axis[1].positions) for axis in axes]
    labels, counts = group(packed([axis[0] for axis in axes], widths))
    places = first_rows(labels, len(counts))
    tuples = np.stack([axis[0][places] for axis in axes], axis=1)
    axes = [(None, *axis[1:]) for axis in axes]
    stage("count")
    none = np.empty((0, len(counts)), np.int32)
    attributes = [axis[1] for axis in axes]
    boxes = MondrianBoxes(tuples, counts, counts, none, attributes, only_size(K))
    while boxes.advance() < len(counts):
        pass
    stage("kernel")
    of_box = boxes.labels
    sizes = np.bincount(of_box, weights=counts).astype(np.int64)
    before, after = risk(counts), risk(sizes)
    order = np.random.default_rng().permutation(len(labels))
    row_box = of_box[labels[order]]
    penalty, columns, profiles = 0.0, [], []
    for j, (name, axis) in enumerate(zip(names, axes, strict=True)):
        reach = boxes.lows[:, j].astype(np.int64) * widths[j] + boxes.highs[:, j]
        reach, inverse = np.unique(reach, return_inverse=True)
        texts, shares = _texts(axis, reach // widths[j], reach % widths[j])
        levels = list(dict.fromkeys(texts))
        place = {text: code for code, text in enumerate(levels)}
        code = np.array([place[text] for text in texts], np.uint32)[inverse]
        penalty += float(shares[inverse] @ sizes) / len(labels) / len(axes)
        pairs = tuples[:, j].astype(np.int64) * len(levels) + code[of_box]
        joint = np.bincount(pairs, weights=counts, minlength=widths[j] * len(levels))
        profiles.append((np.bincount(tuples[:, j], weights=counts), joint))
        columns.append(labelled(name, code, levels, row_box))
    released = pl.DataFrame(columns)
    stage("risk, profiles, labels and shuffle")
    path = out / "data.parquet"
    released.write_parquet(path)
    stage("write")
    digest = hashed(path)
    stage("hash")
    back = pl.read_parquet(path)
    codes = [column.to_physical().to_numpy() for column in back]
    counts_ = [len(column.dtype.categories) for column in back]
    checked = runs(np.sort(packed(codes, counts_)))
    stage("read back and verify")
    return {
        **checked,
        "before": before,
        "after": after,
        "penalty": penalty,
        "columns": len(profiles),
        "sha256": digest,
    }


def _distinct(columns: list[Any]) -> Any:
    """The count of each combination of floats, compared by their bits."""
    labels, counts = group(columns[0].view(np.uint64))
    for column in columns[1:]:
        if len(counts) == len(labels):
            break  # all differ already
        other, levels = group(column.view(np.uint64))
        keys = labels.astype(np.uint64) * np.uint64(len(levels)) + other.astype(np.uint64)
        labels, counts = group(keys)
    return counts


def microaggregation(data: Path, hierarchies: Path, out: Path) -> dict[str, Any]:
    from shoal.kernels.points.mdav import mdav

    stage("imports")
    frame = pl.read_parquet(data)
    names = frame.columns
    columns = [frame[name].to_numpy() + 0.0 for name in names]  # no -0.0
    stage("read and code")
    before = risk(_distinct(columns))
    stage("count")
    spreads = [(float(column.mean()), float(column.std())) for column in columns]
    points = np.empty((len(frame), len(columns)))
    for j, (column, (mean, spread)) in enumerate(zip(columns, spreads, strict=True)):
        points[:, j] = (column - mean) / spread
    del frame
    stage("standardise")
    labels = mdav(points, K)
    del points
    stage("kernel")
    sizes = np.bincount(labels)
    means = [np.bincount(labels, weights=column) / sizes for column in columns]
    after = risk(sizes)
    stage("means and risk")
    penalty, profiles = 0.0, []
    for column, own_means, (_, spread) in zip(columns, means, spreads, strict=True):
        ends = float(column.min()), float(column.max())
        own = np.histogram(column, 20, ends)[0]
        profiles.append((own, np.histogram(own_means, 20, ends, weights=sizes)[0]))
        lost = column - own_means[labels]
        penalty += float(lost @ lost) / len(column) / spread**2 / len(columns)
    stage("profiles")
    order = np.random.default_rng().permutation(len(labels))
    of_row = labels[order]
    released = pl.DataFrame({n: mean[of_row] for n, mean in zip(names, means, strict=True)})
    stage("shuffle")
    path = out / "data.parquet"
    released.write_parquet(path)
    stage("write")
    digest = hashed(path)
    stage("hash")
    back = pl.read_parquet(path).sort(names)
    new = pl.any_horizontal(pl.col(names).ne_missing(pl.col(names).shift()))
    checked = runs(np.cumsum(back.select(new).to_series().to_numpy()))
    stage("read back and verify")
    return {
        **checked,
        "before": before,
        "after": after,
        "penalty": penalty,
        "columns": len(profiles),
        "sha256": digest,
    }


def assess(data: Path, hierarchies: Path, out: Path) -> dict[str, Any]:
    stage("imports")
    frame = pl.read_parquet(data)
    rows = len(frame)
    coded = []
    for column in frame:
        levels = column.unique().sort()
        if column.dtype.is_integer():
            lowest = int(levels[0])
            coded.append(((column - lowest).to_numpy(), int(levels[-1]) - lowest + 1))
        else:
            coded.append((column.cast(pl.Enum(levels)).to_physical().to_numpy(), len(levels)))
    del frame
    stage("read and code")
    _, counts = group(packed([c for c, _ in coded], [n for _, n in coded]))
    stage("count")
    found = risk(counts)
    profiles = [np.bincount(codes, minlength=count) for codes, count in coded]
    stage("risk and profiles")
    return {"rows": rows, "before": found, "columns": len(profiles)}


WORKS = {
    "full-domain": full_domain,
    "mondrian": mondrian,
    "mdav": microaggregation,
    "assess": assess,
}

if __name__ == "__main__":
    found = WORKS[sys.argv[1]](*map(Path, sys.argv[2:5]))
    print(json.dumps(found | {"stages": STAGES}))
