"""What must not leave is in no byte of the public half, raw or unpacked, in any format.

The table is full of canaries: values that must not be released, each of its own kind, and longer
than the 12 bytes that polars keeps outside of shared buffers. Every public file is searched as it
is, and unpacked as far as its format goes.
"""

from __future__ import annotations

import json
import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import polars as pl
import pytest

from shoal import (
    AddNoise,
    KAnonymity,
    Plan,
    Roles,
    Round,
    Suppress,
    Table,
    TopBottomCode,
    protect,
    verify,
)
from shoal.errors import ShoalWarning

from ...parts.installed import INSTALLED

SEED = 987654321987
OUTLIER = 918273645
ROWS = 120
CITIES = ["Bern", "Jena"]
CANARIES = {
    "an identifier": "canaryname",
    "a value of a column that is taken out": "canarybadge",
    "a rare value that is made missing": "canaryjob written out",
    "a value of a record that is taken out": "canarywhere written out",
    "a value of a record in a small class": "canaryalone written out",
    "a category that no record has": "canaryunused written out",
    "a label of the index": "canaryindex",
    "a name of the index": "canaryaxis",
    "a value beyond the whisker": str(OUTLIER),
    "the seed": str(SEED),
    "the word for the key of a row": "row_key",
}
ROLES = Roles(
    identifiers=["name"],
    quasi_identifiers=["age", "city", "job", "badge", "wage", "height"],
    sensitive=["diagnosis"],
    insensitive=["visits"],
)


def columns():
    cities = [CITIES[i % 2] for i in range(ROWS)]
    cities[7] = "canarywhere written out"
    jobs = ["baker"] * ROWS
    jobs[9] = jobs[11] = "canaryjob written out"
    ages = [20 + i % 40 for i in range(ROWS)]
    return {
        "name": [f"canaryname written out {i}" for i in range(ROWS)],
        "age": ages,
        "city": cities,
        "job": jobs,
        "badge": [f"canarybadge written out {i}" for i in range(ROWS)],
        "wage": [1000 + 10 * (i % 30) for i in range(ROWS - 1)] + [OUTLIER],
        "height": [1.5 + (i % 20) / 37 for i in range(ROWS)],
        "diagnosis": ["canaryalone written out" if i == 13 else "flu" for i in range(ROWS)],
        "visits": [i % 4 for i in range(ROWS)],
    }


def alone(frame_columns):
    """Record 13 lives in a city of its own and is taken out with it."""
    frame_columns["city"][13] = "canaryalone written out"
    return frame_columns


def as_polars():
    frame = pl.DataFrame(alone(columns()))
    cities = [
        *CITIES,
        "canarywhere written out",
        "canaryalone written out",
        "canaryunused written out",
    ]
    return frame.with_columns(pl.col("city").cast(pl.Enum(cities)))


def as_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(alone(columns()))
    categories = [
        *CITIES,
        "canarywhere written out",
        "canaryalone written out",
        "canaryunused written out",
    ]
    frame["city"] = pandas.Categorical(frame["city"], categories=categories)
    frame.index = pandas.Index([f"canaryindex{i}" for i in range(ROWS)], name="canaryaxis")
    frame.attrs["source"] = "canaryunused written out"
    return frame


def as_pyarrow():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pyarrow.table(alone(columns()))
    dictionary = pyarrow.array(
        [*CITIES, "canarywhere written out", "canaryalone written out", "canaryunused written out"]
    )
    indices = [dictionary.to_pylist().index(city) for city in alone(columns())["city"]]
    city = pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices, pyarrow.int32()), dictionary)
    table = table.set_column(2, "city", city)
    return table.replace_schema_metadata(
        {"source": "canaryunused written out", "canaryaxis": "canaryindex"}
    )


PLAN = Plan(
    [
        Suppress(where="city = 'canarywhere written out'", target="records"),
        Suppress(max_distinct=0.9, columns=["badge"]),
        Suppress(min_count=3, columns=["job"]),
        TopBottomCode(fence=3),
        AddNoise(epsilon=0.5, columns=["height"], random_state=SEED),
        Round(base=5, columns=["height"]),
        Round(base=100, columns=["age", "wage"]),
        Suppress(min_class_size=2),
    ],
    require=[KAnonymity(2)],
)
KINDS = {"polars": as_polars, "pandas": as_pandas, "pyarrow": as_pyarrow}


def released(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return protect(Table(KINDS[kind](), ROLES), PLAN)


def unpacked(path: Path) -> bytes:
    """All that is in a file, compressed or hidden under a mark of missing."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            return b"\n".join(
                [*map(str.encode, archive.namelist())]
                + [archive.read(name) for name in archive.namelist()]
            )
    if path.suffix in (".parquet", ".arrow"):
        import pyarrow.ipc
        import pyarrow.parquet

        table = (
            pyarrow.parquet.read_table(path)
            if path.suffix == ".parquet"
            else pyarrow.ipc.open_file(path).read_all()
        )
        buffers = [
            buffer.to_pybytes()
            for column in table.columns
            for chunk in column.chunks
            for buffer in chunk.buffers()
            if buffer is not None
        ]
        assert not any(pyarrow.types.is_dictionary(field.type) for field in table.schema)
        return b"\n".join([*buffers, str(table.schema).encode(), str(table.to_pydict()).encode()])
    return b""


def public_bytes(out: Path) -> dict[str, bytes]:
    files = sorted((out / "public").iterdir())
    return {path.name: path.read_bytes() + b"\n" + unpacked(path) for path in files}


def test_the_canaries_are_in_the_table():
    """Else the search below proves nothing."""
    said = str(as_polars().to_dicts()) + str(as_polars()["city"].dtype.categories.to_list())
    for canary in ("name", "badge", "job", "where", "alone", "unused"):
        assert f"canary{canary}" in said
    assert str(OUTLIER) in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", [name for name in INSTALLED if name != "por"])  # long names
def test_no_canary_is_in_the_public_half(tmp_path, kind, format):
    release = released(kind)
    out = release.save(tmp_path / "canaryplace", format=format)
    assert verify(out).holds
    key = release.audit["steps"][4]["key"]
    forbidden = {what: canary.encode() for what, canary in CANARIES.items()}
    forbidden |= {
        "the key of the noise": key.encode(),
        "the outlier as an integer": struct.pack("<q", OUTLIER),
        "the outlier as a float": struct.pack("<d", OUTLIER),
        "the seed as an integer": struct.pack("<q", SEED),
        "the place of the release": b"canaryplace",
        "anything else": b"canary",
    }
    for name, content in public_bytes(out).items():
        for what, canary in forbidden.items():
            assert canary not in content, f"{what} is in {name}"


def test_the_private_half_has_what_the_steward_needs(tmp_path):
    """The same search finds it there: the seed, the condition and the keys are kept."""
    out = released("polars").save(tmp_path / "out")
    audit = (out / "private" / "audit.json").read_text("utf-8")
    for kept in ("canarywhere written out", str(SEED), "name"):
        assert kept in audit
    assert "row_key" in pl.read_parquet(out / "private" / "records.parquet").columns


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_frame_of_the_release_holds(kind):
    """Handed on as a frame, the masked table carries no index, metadata or spare category."""
    frame = released(kind).masked.frame
    if kind == "pandas":
        assert list(frame.index) == list(range(len(frame)))
        assert frame.index.name is None
        assert frame.attrs == {}
        assert set(frame["city"].cat.categories) == set(CITIES)
    elif kind == "pyarrow":
        assert frame.schema.metadata is None
        assert set(frame["city"].combine_chunks().dictionary.to_pylist()) == set(CITIES)
    else:
        assert set(frame["city"].dtype.categories) == set(CITIES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickled_release_holds_what_it_shows(kind):
    """A column keeps more in memory than it shows; a frame that is handed on must not."""
    content = pickle.dumps(released(kind).masked.frame)
    assert b"Bern" in content, "else the search proves nothing"
    for canary in (b"canary", struct.pack("<q", OUTLIER), struct.pack("<d", OUTLIER)):
        assert canary not in content


def test_no_column_tells_the_order(tmp_path):
    """The released order is not that of the input, and no column says which it was."""
    release = released("polars")
    out = release.save(tmp_path / "out")
    data = pl.read_parquet(out / "public" / "data.parquet")
    keys = release.masked.row_key.tolist()
    assert keys != sorted(keys)
    for column in data:
        ordered = column.to_list()
        assert ordered != keys
    facts = json.loads((out / "public" / "release.json").read_text("utf-8"))
    assert facts["data"]["shuffled"] is True


def test_counts_of_few_people_are_not_told(tmp_path):
    """One record left by its condition, one by its small class, two cells were made missing."""
    out = released("polars").save(tmp_path / "out")
    facts = json.loads((out / "public" / "release.json").read_text("utf-8"))
    removed = [step["records_removed"] for step in facts["methods"]]
    assert all(isinstance(count, str) or count == 0 or count >= 10 for count in removed)
    assert isinstance(facts["records_removed"], str) or facts["records_removed"] >= 10
