"""Mondrian on 3 million records, and on Adult compared with anonypy in the same run.

Run with ``python benchmarks/kernels/bench_mondrian.py``. Seconds of CPU on one core after a run
that compiles; memory as arrays in use in addition to the table's own codes. The floor is one
argsort of one column. Adult needs the public tables. If anonypy is installed, it runs on the same
30,000 records (this takes half a minute), and the mean normalized width of the boxes of both is
printed. The targets: 2 s for 3 million records by 8 attributes, a thousandth of anonypy's time with
half its loss.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.kernels.boxes.mondrian_boxes import MondrianBoxes, ordered
from shoal.kernels.conditions import only_size

K = 5
ADULT = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex"]
ADULT.append("native-country")


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def cut(codes: Any, values: list[int]) -> MondrianBoxes:
    rows = len(codes)
    ones, none = np.ones(rows, np.int64), np.empty((0, rows), np.int32)
    attributes = [ordered(np.arange(v) / max(1, v - 1)) for v in values]
    boxes = MondrianBoxes(codes, ones, ones, none, attributes, only_size(K))
    while boxes.advance() < rows:
        pass
    return boxes


def made(rows: int, values: list[int]) -> Any:
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.geometric(min(0.9, 3 / v), rows) - 1, v - 1) for v in values]
    return np.stack(columns, axis=1).astype(np.int32)


def mean_width(lows: Any, highs: Any, sizes: Any, values: list[int]) -> float:
    spans = (highs - lows) / np.maximum(1, np.array(values) - 1)
    return float((spans.mean(axis=1) @ sizes) / sizes.sum())


def adult() -> tuple[Any, list[int]] | None:
    nearby = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("SHOAL_DATA") or nearby) / "uci" / "adult.parquet"
    if not path.is_file():
        return None
    frame = pl.read_parquet(path).select(ADULT).drop_nulls()[:30_000]
    codes = np.stack([frame[name].rank("dense").to_numpy() - 1 for name in ADULT], axis=1)
    return codes.astype(np.int32), (codes.max(axis=0) + 1).astype(int).tolist()


def anonypy_width(codes: Any, values: list[int]) -> tuple[float, float]:
    import pandas as pd
    from anonypy import Mondrian

    frame = pd.DataFrame(codes, columns=ADULT).assign(secret="x")
    frame["secret"] = frame["secret"].astype("category")
    seconds, parts = cpu(
        lambda: Mondrian(frame, ADULT, "secret").partition(K)  # its boxes, not its rows
    )
    lows = np.array([codes[np.asarray(part)].min(axis=0) for part in parts])
    highs = np.array([codes[np.asarray(part)].max(axis=0) for part in parts])
    return seconds, mean_width(lows, highs, np.array([len(part) for part in parts]), values)


def main() -> None:
    cut(made(1000, [5, 5]), [5, 5])  # compiles
    print(f"{'records':>10} {'attributes':<18} {'CPU s':>7} {'argsorts':>9} {'boxes':>9}")
    for name, values in (
        ("few values", [74, 8, 16, 7, 14, 6, 5, 2]),
        ("many values", [5000, 3000, 2000, 1000, 500, 200, 100, 60]),
    ):
        for rows in (30_000, 300_000, 3_000_000):
            codes = made(rows, values)
            floor, _ = cpu(lambda codes=codes: np.argsort(codes[:, 0], kind="stable"))
            seconds, boxes = cpu(lambda codes=codes, values=values: cut(codes, values))
            print(
                f"{rows:>10,} 8, {name:<15} {seconds:>7.3f} {seconds / max(floor, 1e-9):>9.1f} "
                f"{len(boxes.lows):>9,}"
            )
    found = adult()
    if found is None:
        print("Adult was not found. Set SHOAL_DATA to the folder of tables.")
        return
    codes, values = found
    seconds, boxes = min((cpu(lambda: cut(codes, values)) for _ in range(5)), key=lambda x: x[0])
    width = mean_width(boxes.lows, boxes.highs, np.bincount(boxes.labels), values)
    print(f"Adult, {len(codes):,} records: {seconds:.4f} s, mean width of a cell {width:.4f}")
    if importlib.util.find_spec("anonypy") is None:
        print("anonypy is not installed, so it was not compared.")
        return
    theirs, their_width = anonypy_width(codes, values)
    print(
        f"anonypy: {theirs:.1f} s ({theirs / seconds:,.0f} times), mean width {their_width:.4f} "
        f"({width / their_width:.2f} of it)"
    )


if __name__ == "__main__":
    main()
