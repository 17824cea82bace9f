"""Laplace noise on a grid: its distribution, its exactness, and the attack that it withstands."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.randomness import SecretStream, laplace_grid

KEY = "00112233445566778899aabbccddeeff" * 2


@pytest.fixture
def stream() -> SecretStream:
    return SecretStream.from_key_hex(KEY)


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy checks the distributions")


class Scripted(SecretStream):
    """A stream whose words are written down."""

    def __init__(self, script: list[int]) -> None:
        super().__init__(bytes(32))
        self.script = script

    def words(self, n: int) -> Any:
        assert self.script or not n, "the script has ended"
        drawn, self.script = self.script[:n], self.script[n:]
        return np.array(drawn, np.uint64)


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_noise_of_few_steps_has_its_exact_distribution(
    stream: SecretStream, stats: Any, scale: int
) -> None:
    noise = stream.laplace_on_grid(np.zeros(100_000), float(scale), grid=1.0)
    ratio = math.exp(-1 / scale)
    edge = 4 * scale
    shares = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-edge, edge + 1)]
    tail = ratio ** (edge + 1) / (1 + ratio)
    counts = np.bincount(np.clip(noise, -edge - 1, edge + 1).astype(int) + edge + 1)
    expected = noise.size * np.array([tail, *shares, tail])
    assert stats.chisquare(counts, expected).pvalue > 0.01


def test_noise_is_laplace_where_the_grid_is_fine(stream: SecretStream, stats: Any) -> None:
    scales = np.repeat([0.01, 3.0, 250.0], 50_000)
    values = np.tile([-1.5, 0.0, 1e4], 50_000)
    noise = (stream.laplace_on_grid(values, scales) - values) / scales
    for part in noise.reshape(3, -1):
        assert stats.kstest(part, "laplace").pvalue > 0.01
    assert stats.binomtest(int((noise > 0).sum()), int((noise != 0).sum())).pvalue > 0.01


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8),
    st.lists(st.floats(5e-324, 1e290), min_size=8, max_size=8),
)
def test_every_output_is_a_multiple_of_one_grid(values: list[float], scales: list[float]) -> None:
    scales = scales[: len(values)]
    grid = laplace_grid(values, scales)
    assert math.frexp(grid)[0] == 0.5
    for output in SecretStream.from_key_hex(KEY).laplace_on_grid(values, scales).tolist():
        steps = Fraction(output) / Fraction(grid)
        assert steps.denominator == 1
        assert abs(steps) <= 2**53


@given(st.floats(0, 1e12), st.floats(1e-9, 1e9))
def test_the_grid_is_fine_and_sums_on_it_are_exact(largest: float, scale: float) -> None:
    grid, reach = laplace_grid([-largest], scale), largest + 48 * scale
    assert grid <= max(scale * 2.0**-30, reach * 2.0**-51)
    assert reach <= grid * 2**52


def test_values_are_rounded_to_the_grid_before_the_noise() -> None:
    left = SecretStream.from_key_hex(KEY).laplace_on_grid([0.9, -7.3], 2.0, grid=0.5)
    right = SecretStream.from_key_hex(KEY).laplace_on_grid([1.0, -7.5], 2.0, grid=0.5)
    assert left.tolist() == right.tolist()


def test_there_is_never_less_noise_than_one_step(stream: SecretStream) -> None:
    # Beside 1e15 the finest grid is 0.25: a scale of a millionth becomes one step.
    values = np.concatenate([[1e15], np.zeros(20_000)])
    grid = laplace_grid(values, 1e-6)
    noise = stream.laplace_on_grid(values, 1e-6)[1:] / grid
    assert grid == 0.25
    assert np.mean(noise == 0) == pytest.approx(math.tanh(0.5), abs=0.02)


def test_the_far_end_is_clamped_for_all_alike() -> None:
    # Words of 0 in the coins' places let the noise grow until it stops; both values end at 2**53.
    for value in (0.0, -1000.0):
        stream = Scripted([0, 2**64 - 1] + [0, 2**64 - 1] * 2**12 + [0])
        output = stream.laplace_on_grid([value], 2.0**46, grid=1.0)
        assert output.tolist() == [2.0**53]


def naive_laplace(value: float, uniform: Any) -> Any:
    """How noise of scale 1 is usually added: inverse distribution function, sum in float64."""
    centred = uniform - 0.5
    return value - np.sign(centred) * np.log1p(-2 * np.abs(centred))


def naive_can_give(outputs: Any, value: float) -> Any:
    """Which outputs above ``value`` come from it and any uniform multiple of 2**-53 at all."""
    exact = np.rint(np.ldexp(1 - np.exp(value - outputs) / 2, 53))
    uniform = np.ldexp(exact[:, None] + np.arange(-400, 401), -53)
    return (naive_laplace(value, uniform) == outputs[:, None]).any(axis=1)


def test_the_last_bits_tell_nothing(stream: SecretStream) -> None:
    """Mironov (2012): an output that a value cannot give proves that it was another one."""
    victim, other = 0.3, 0.8
    outputs = naive_laplace(victim, stream.uniform(2000))
    outputs = outputs[outputs > other]
    assert naive_can_give(outputs, victim).all()
    assert np.mean(~naive_can_give(outputs, other)) > 0.2

    # Ours: both values give the same set. That every multiple has its way from every value is
    # shown with chosen words in tests/kernels/test_shuffling.py; here those near by are met.
    near = {step / 8 for step in range(-8, 17)}
    for value in (victim, other):
        given = set(stream.laplace_on_grid(np.full(50_000, value), 0.5, grid=0.125).tolist())
        assert near <= given
        assert all((8 * output).is_integer() for output in given)


@pytest.mark.parametrize(
    ("values", "scales", "grid"),
    [
        ([1.0, math.nan], 1.0, None),
        ([1.0, math.inf], 1.0, None),
        ([1.0, 2.0], 0.0, None),
        ([1.0, 2.0], [1.0, -1.0], None),
        ([1.0, 2.0], [1.0, math.nan], None),
        ([1.0, 2.0], [1.0], None),
        ([[1.0, 2.0]], 1.0, None),
        (["secret", "cell"], 1.0, None),
        ([1.0, 2.0], 1e305, None),
        ([1.0, 2.0], 1.0, 0.3),
        ([1.0, 2.0], 1.0, 0.0),
        ([1.0, 2.0], 1.0, -0.5),
        ([1.0, 2.0], 1.0, math.nan),
        ([1.0, 2.0], 1.0, 2.0**-60),
    ],
)
def test_noise_that_cannot_be(stream: SecretStream, values: Any, scales: Any, grid: Any) -> None:
    with pytest.raises(InputError) as refused:
        stream.laplace_on_grid(values, scales, grid=grid)
    assert "secret" not in str(refused.value)
