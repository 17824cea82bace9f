"""An intruder with every patient number, and no key: pseudonyms and shifted dates."""

from __future__ import annotations

import copy
import datetime as dt
import hashlib
import hmac
import json
import logging
import pickle
import traceback
import warnings
import zlib
from pathlib import Path

import polars as pl
import pytest

import shoal as sh
from shoal import Plan, Pseudonymize, Roles, ShiftDates, Table
from shoal.errors import ShoalError, ShoalWarning
from shoal.masking import read_key_file, write_key_file
from shoal.masking.identifiers._shapes import SHAPES, forms_of, hashed_names, permuted
from shoal.randomness import SecretStream

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

#: Every number that a patient of this hospital may have.
ALL_NUMBERS = [f"H{n:06}" for n in range(0, 40_000, 4)]
DAY = dt.timedelta(days=1)


def stays(persons=90):
    """One to three stays of each patient, with the dates of birth, admission and discharge."""
    rows = [n for n in range(persons) for _ in range(1 + n % 3)]
    came = [dt.date(2021, 1, 4) + (97 * at % 800) * DAY for at in range(len(rows))]
    return pl.DataFrame(
        {
            "patient_id": [ALL_NUMBERS[101 * n % len(ALL_NUMBERS)] for n in rows],
            "born": [dt.date(1940, 3, 7) + (263 * n % 20_000) * DAY for n in rows],
            "came": came,
            "went": [one + (at * 7 % 19) * DAY for at, one in enumerate(came)],
            "sex": ["fm"[n % 2] for n in rows],
            "ill": [("flu", "gout", "asthma")[n % 3] for n in rows],
        }
    )


ROLES = Roles(
    unit="patient_id",
    quasi_identifiers=["sex"],
    sensitive=["ill"],
    insensitive=["born", "came", "went"],
)


def released(tmp_path, *, frame=None, name="out", **options):
    """A release of the stays, written as CSV, with the table that is in it."""
    frame = stays() if frame is None else frame
    dates = {k: v for k, v in options.items() if k in ("key_file", "random_state")}
    plan = Plan(
        [ShiftDates(**dates), Pseudonymize(["patient_id"], **options)],
        roles=ROLES,
        require=[sh.KAnonymity(5)],
    )
    folder = sh.protect(Table(frame), plan).save(tmp_path / name, format="csv")
    return folder, pl.read_csv(folder / "public/data.csv", infer_schema_length=0), plan


@pytest.fixture
def key(tmp_path):
    return str(write_key_file(tmp_path / "patients.key"))


# -- all patient numbers, and no key


def unkeyed(text):
    """What comes out of a number by what anybody can compute."""
    spelled = {text, text.lower(), text[1:], str(int(text[1:])), f"{text}\n", f'"{text}"'}
    spelled |= {
        json.dumps({"patient_id": text}),
        json.dumps({"patient_id": text}, separators=(",", ":")),
    }
    for one in spelled:
        for hashing in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256",
                        "blake2b", "blake2s"):  # fmt: skip
            digest = hashlib.new(hashing, one.encode())
            yield digest.hexdigest()
        yield hashlib.blake2b(one.encode(), digest_size=10).hexdigest()
        yield f"{zlib.crc32(one.encode()):08x}"
        for secret in (b"", b"0" * 32, bytes(32), b"secret", b"shoal", b"patient_id", one.encode()):
            yield hmac.new(secret, one.encode(), "sha256").hexdigest()
            yield hashlib.blake2b(one.encode(), digest_size=10, key=secret).hexdigest()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_number_is_found_by_trying_all_without_the_key(tmp_path, shape):
    """Whole and cut, in every writing: none of the hashes of any patient is in the release."""
    _, data, _ = released(tmp_path, shape=shape)
    made = set(data["patient_id"])
    assert not made & set(ALL_NUMBERS) & set(stays()["patient_id"])
    true = sorted(set(stays()["patient_id"]))
    tried = {
        spelled
        for text in true
        for found in unkeyed(text)
        for spelled in (found, found[:20], found[-20:], f"P{found[:20]}", str(int(found, 16))[:18])
    }
    assert len(tried) > 40_000
    assert not made & tried
    text = (tmp_path / "out/public/data.csv").read_text()
    assert not any(number in text for number in true) or shape == "format"


@pytest.mark.parametrize("shape", SHAPES)
def test_no_number_is_found_with_wrong_keys(tmp_path, shape):
    """The procedure itself is public; under another key it gives nobody's pseudonym."""
    _, data, _ = released(tmp_path, shape=shape)
    pairs = dict(zip(*_pairs(tmp_path, data), strict=True))
    wrong = [bytes(32), b"\xff" * 32, hashlib.sha256(b"patient_id").digest()]
    wrong += [hashlib.sha256(str(n).encode()).digest() for n in range(20)]
    true = sorted(pairs)
    for one in wrong:
        own = SecretStream(one).derive("pseudonyms", "patient_id")
        if shape == "format":
            guessed = permuted(true, forms_of(true, whole=False), own)
        else:
            guessed = hashed_names(true, bytes.fromhex(own.key_hex), shape)
        right = sum(pairs[text] == guess for text, guess in zip(true, guessed, strict=True))
        assert right == 0


def _pairs(tmp_path, data):
    """True numbers and pseudonyms, which only the holder of the private half can put together."""
    rows = pl.read_parquet(tmp_path / "out/private/records.parquet")["row_key"].to_list()
    return [stays()["patient_id"][row] for row in rows], data["patient_id"].to_list()


def test_neither_order_nor_length_nor_first_letters_tell_who_it_is(tmp_path):
    for shape in SHAPES[:3]:
        _, data, _ = released(tmp_path, shape=shape, name=shape)
        rows = pl.read_parquet(tmp_path / shape / "private/records.parquet")["row_key"].to_list()
        true = [stays()["patient_id"][row] for row in rows]
        pairs = sorted(set(zip(true, data["patient_id"].to_list(), strict=True)))
        ranks = sorted(range(len(pairs)), key=lambda at: pairs[at][1])
        kept = sum(at == rank for at, rank in enumerate(ranks))
        assert kept <= 8  # one is expected by chance, and 8 less than once in 10**5
        assert len({len(name) for _, name in pairs}) == 1


# -- releases that agree, and others that do not


def test_two_tables_with_one_key_file_join_and_the_dates_fit(tmp_path, key):
    first = stays()
    labs = first.filter(pl.int_range(pl.len()) % 2 == 0).with_columns(came=pl.col("went"))
    _, one, _ = released(tmp_path, frame=first, name="stays", key_file=key)
    _, other, _ = released(tmp_path, frame=labs, name="labs", key_file=key)
    one, other = (each.with_columns(pl.col("came").str.to_date()) for each in (one, other))
    joined = one.join(other, on="patient_id", how="inner")
    expected = first.join(labs, on="patient_id", how="inner")
    assert len(joined) == len(expected) > 100

    def between(frame):
        gaps = (frame["came_right"] - frame["came"]).dt.total_days()
        return sorted(gaps.to_list())

    assert between(joined) == between(expected)
    assert joined.select(pl.col("born") == pl.col("born_right")).to_series().all()


@pytest.mark.parametrize("shape", SHAPES)
def test_two_runs_without_a_key_file_have_nothing_in_common(tmp_path, shape):
    frames = [released(tmp_path, shape=shape, name=name)[1] for name in ("one", "two")]
    rows = [
        pl.read_parquet(tmp_path / name / "private/records.parquet")["row_key"].to_list()
        for name in ("one", "two")
    ]
    maps = [
        {
            stays()["patient_id"][row]: name
            for row, name in zip(keys, frame["patient_id"], strict=True)
        }
        for keys, frame in zip(rows, frames, strict=True)
    ]
    assert sum(maps[0][who] == maps[1][who] for who in maps[0]) == 0
    if shape != "format":  # which has fewer possible values
        assert not set(frames[0]["patient_id"]) & set(frames[1]["patient_id"])


# -- dates


def test_no_original_date_of_a_patient_is_in_the_public_half(tmp_path):
    _, data, _ = released(tmp_path)
    true, _ = _pairs(tmp_path, data)
    frame = stays()
    for name in ("born", "came", "went"):
        of = {}
        for who, when in zip(frame["patient_id"], frame[name], strict=True):
            of.setdefault(who, set()).add(str(when))
        assert not any(now in of[who] for who, now in zip(true, data[name], strict=True))


def test_stays_keep_their_length(tmp_path):
    _, data, _ = released(tmp_path)
    rows = pl.read_parquet(tmp_path / "out/private/records.parquet")["row_key"].to_list()
    lengths = (data["went"].str.to_date() - data["came"].str.to_date()).to_list()
    frame = stays()
    assert lengths == [frame["went"][row] - frame["came"][row] for row in rows]
    ages = (data["came"].str.to_date() - data["born"].str.to_date()).to_list()
    assert ages == [frame["came"][row] - frame["born"][row] for row in rows]


def test_a_seedless_shift_is_another_one_each_time(tmp_path):
    one, other = (released(tmp_path, name=name)[1].sort("went") for name in ("one", "two"))
    assert one["born"].to_list() != other["born"].to_list()


# -- nothing holds the key


def everything(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("from_file", [True, False])
def test_the_key_is_nowhere_but_where_it_belongs(tmp_path, key, from_file, caplog):
    caplog.set_level(logging.DEBUG)
    options = {"key_file": key} if from_file else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder, _, plan = released(tmp_path, **options)
    audit = json.loads((folder / "private/audit.json").read_text())
    if from_file:
        secrets = [read_key_file(key).key_hex]
        assert "key" not in audit["steps"][0]
        assert audit["steps"][0]["key_file"] == audit["steps"][1]["key_file"]
        assert secrets[0].encode() not in everything(folder / "private")
    else:
        secrets = [step["key"] for step in audit["steps"]]
        assert all(len(one) == 64 for one in secrets)
        assert len(set(secrets)) == 2
    release = sh.protect(Table(stays()), plan)
    path = tmp_path / "plan.toml"
    plan.save(path)
    said = [
        path.read_text(),
        caplog.text,
        *(str(one.message) for one in caught),
        *map(repr, (plan, *plan.steps, release, release.steps, release.audit)),
        *(step._repr_html_() for step in plan.steps),
        release.to_html(),
    ]
    bytes_ = [everything(folder / "public"), pickle.dumps(plan), *map(pickle.dumps, plan.steps)]
    fitted = [copy.copy(step).fit(Table(stays(), ROLES)) for step in plan.steps]
    bytes_ += [pickle.dumps(step) for step in fitted]
    for one in secrets:
        assert not any(one in text for text in said)
        assert not any(one.encode() in part or bytes.fromhex(one) in part for part in bytes_)
    # nor does anything public say where the key file is, or a part of what is on record of it
    assert key.encode() not in bytes_[0]
    if from_file:
        assert audit["steps"][0]["key_file"].encode() not in bytes_[0]


def test_errors_hold_neither_a_key_nor_a_number(tmp_path, key):
    secret = Path(key).read_text().strip()
    wrong = tmp_path / "wrong.key"
    wrong.touch(mode=0o600)
    wrong.write_text(secret[:-2])
    lonely = stays().with_columns(pl.col("patient_id").str.replace("H000000", "odd-7"))
    attempts = [
        (stays(), {"key_file": str(wrong)}),
        (lonely, {"key_file": key, "shape": "format"}),
        (stays().with_columns(born=pl.lit(dt.date(9999, 12, 31))), {"key_file": key}),
        (stays().with_columns(born=pl.lit(dt.date(1, 1, 2))), {"key_file": key}),
    ]
    for frame, options in attempts:
        with pytest.raises(ShoalError) as caught:
            released(tmp_path, frame=frame, name="never", **options)
        text = "".join(traceback.format_exception(caught.value))
        assert secret[:-2] not in text
        assert not any(number in text for number in ("odd-7", *ALL_NUMBERS[:200], "9999-12-31"))
        assert not (tmp_path / "never").exists()


def test_the_report_shows_no_number_and_no_date_of_a_patient(tmp_path, key):
    folder, _, _ = released(tmp_path, key_file=key)
    text = (folder / "public/report.html").read_text() + (
        folder / "public/release.json"
    ).read_text()
    frame = stays()
    for name in ("patient_id", "born", "came", "went"):
        assert not any(str(cell) in text for cell in set(frame[name]))
    assert "pseudonym" in text
    assert "Shifted dates" in text


def test_a_fitted_step_names_nobody_who_comes_later():
    """The key is not kept: a row that comes later gets no pseudonym, and shows no number."""
    step = Pseudonymize(["patient_id"]).fit(Table(stays(), ROLES))
    served = pickle.loads(pickle.dumps(step)).transform(Table(stays(), ROLES))
    assert served.missing_count("patient_id") == len(served)


def test_a_pipeline_refuses_pseudonyms():
    with pytest.raises(ShoalError, match="pseudonymize"):
        sh.Protector(Plan([Pseudonymize(["patient_id"])]), roles=ROLES).fit(stays())


# -- what verify finds


def verified(folder, frame):
    found = sh.verify(folder, original=Table(frame))
    return {check.name: check.status for check in found.checks}, found.holds


def test_verify_agrees_with_a_right_release(tmp_path, key):
    for shape in SHAPES:
        folder, _, _ = released(tmp_path, shape=shape, key_file=key, name=shape)
        statuses, holds = verified(folder, stays())
        assert holds
        assert statuses["pseudonyms"] == statuses["shifted dates"] == "passed"


TAMPERED = {
    "a true number": lambda data, frame: data.with_columns(
        patient_id=pl.when(pl.int_range(pl.len()) == 3)
        .then(pl.lit(frame["patient_id"][0]))
        .otherwise("patient_id")
    ),
    "two in one": lambda data, frame: data.with_columns(
        pl.col("patient_id").replace({data["patient_id"][0]: data["patient_id"][-1]})
    ),
    "one in two": lambda data, frame: data.with_columns(
        patient_id=pl.concat_str("patient_id", (pl.int_range(pl.len()) % 2).cast(pl.String))
    ),
    "a gap": lambda data, frame: data.with_columns(
        patient_id=pl.when(pl.int_range(pl.len()) > 0).then("patient_id")
    ),
    "a copy beside it": lambda data, frame: data.with_columns(ill=pl.lit(frame["patient_id"][0])),
    "a date that stayed": lambda data, frame: data,
}


def test_what_did_not_mask_finds_each_mistake():
    """The check itself: by tables, since a release that was changed fails before it comes to it."""
    from shoal.workflow.release._identities import same_pseudonyms, same_shifts

    original = Table(stays(), ROLES)
    masked, records = Plan([ShiftDates(), Pseudonymize(["patient_id"])]).mask(original)
    facts = {
        "methods": [
            {"method": one.method, "columns": list(one.touched), "parameters": one.parameters}
            for one in records
        ]
    }

    def told(frame):
        table = Table(frame).with_roles(masked.roles, released=True).paired(original)
        return same_pseudonyms(facts, original, table)[0], same_shifts(facts, original, table)[0]

    data = masked.frame
    assert told(data) == (True, True)
    for name, change in TAMPERED.items():
        if name != "a date that stayed":
            assert told(change(data, original.frame)) == (False, True), name
    first = pl.int_range(pl.len()) == 0
    dates = {
        "it stayed": pl.when(first).then(pl.lit(original.frame["born"][0])).otherwise("born"),
        "another shift": pl.when(first).then(pl.col("born") + DAY).otherwise("born"),
        "all moved on": pl.col("born") + 2 * DAY,
        "far away": pl.col("born") + 9_000 * DAY,
        "a gap": pl.when(~first).then("born"),
    }
    for name, expression in dates.items():
        assert told(data.with_columns(born=expression)) == (True, False), name
    # all dates of everybody moved alike: the intervals are right, and the range is not
    far = data.with_columns(pl.col("born", "came", "went") + 800 * DAY)
    assert told(far) == (True, False)
    assert told(data.with_columns(pl.col("born", "came", "went")))[1]


def test_warnings_are_of_one_kind_each(tmp_path):
    """A release without anything odd in it says what pseudonyms show, and nothing else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        released(tmp_path)
    texts = [str(one.message) for one in caught if issubclass(one.category, ShoalWarning)]
    assert [text for text in texts if "follow from dates" in text or "not shifted" in text] == []


def test_a_number_that_is_in_another_column_too_is_found_before_anything_is_written(tmp_path):
    """One letter names a patient in a column of texts: too few to look like an identifier."""
    frame = stays().with_columns(
        ill=pl.when(pl.int_range(pl.len()) == 40).then("patient_id").otherwise("ill")
    )
    with pytest.raises(ShoalError, match="'ill'") as caught:
        released(tmp_path, frame=frame)
    assert not any(number in str(caught.value) for number in set(frame["patient_id"]))
    assert not (tmp_path / "out").exists()


def test_what_later_steps_change_is_not_checked_against_the_pseudonyms(tmp_path):
    """A quasi-identifier is pseudonymized and generalized: the first is no longer to be seen."""
    table = Table(stays(), ROLES)
    plan = Plan([Pseudonymize(["sex"]), sh.Suppress(where="ill = 'flu'", columns=["sex"])])
    folder = sh.protect(table, plan).save(tmp_path / "out")
    found = sh.verify(folder, original=table)
    assert found.holds
    assert {c.name: c.status for c in found.checks}["pseudonyms"] == "skipped"
