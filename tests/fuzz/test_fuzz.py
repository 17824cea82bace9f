"""A bounded run of the fuzzers: some cases of every kind. ``make fuzz`` tries them for an hour."""

from __future__ import annotations

import hashlib
import os

import pytest

from .cases import KINDS, Verdict, call, run_case

#: How many times each test goes through all kinds: one minute of a processor for all of them.
ROUNDS = 2


def numbers_of(name: str) -> list[int]:
    """The cases of a test: the same in every run, others with another SHOAL_EXPLORE."""
    drawn = hashlib.sha256(f"{os.environ.get('SHOAL_EXPLORE', '')}/{name}".encode()).digest()
    first = int.from_bytes(drawn[:4]) // len(KINDS) * len(KINDS)
    return [first + more for more in range(ROUNDS * len(KINDS))]


@pytest.mark.parametrize("part", range(8))
def test_nothing_but_sentences_and_true_claims(part):
    wrong = {}
    for number in numbers_of(f"part {part}"):
        verdict = run_case(number)
        if verdict.failures:
            wrong[f"python -m fuzz.campaign --number {number}"] = verdict.failures
    assert wrong == {}


def test_a_case_is_the_same_whenever_it_is_tried():
    number = next(n for n in numbers_of("the same") if KINDS[n % len(KINDS)] == "release")
    assert run_case(number) == run_case(number)


def test_the_fuzzers_see_a_crash(monkeypatch):
    """Else they would find nothing."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("shoal.table.read", broken)
    verdict = Verdict(0, "table")
    call(verdict, "roles", "data.csv")
    assert any("ZeroDivisionError" in line for line in verdict.failures)


def test_the_fuzzers_see_a_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = Verdict(0, "table")
    call(verdict, "roles", "Zq7x.csv")
    assert any("cell" in line for line in verdict.failures)
