"""What helps after a slip: calls and attributes that are not there."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import dataclass, replace

import pytest

import shoal as sh
from shoal.errors import CallError, ShoalError, UnknownAttribute, nearest_name
from shoal.hints import Helpful, helpful, instead


@dataclass(frozen=True)
class Box(Helpful):
    """Something to hold."""

    _instead = instead({"box.width": "size breadth"})

    width: int
    height: int = 1

    @property
    def broken(self) -> int:
        return self.width.nothing  # type: ignore[attr-defined]

    def fit(self) -> None:
        if self.width < 0:
            raise TypeError("from inside")


@helpful
def make(width: int, *, height: int = 1) -> int:
    return width + height


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Box(widht=3), "'width'"),
        (lambda: Box(), r"Box\(width=...\)"),
        (lambda: Box(1, 2, 3), "at most 2 values; got 3"),
        (lambda: Box(1, width=2), "'width' twice"),
        (lambda: make(1, 2), "only by name: 'height'"),
        (lambda: make(1, hight=2), "'height'"),
        (lambda: make(), "'width'"),
    ],
)
def test_calls(call, said):
    with pytest.raises(CallError, match=said) as raised:
        call()
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, ShoalError)


def test_an_error_from_inside_stays_what_it_is():
    with pytest.raises(TypeError, match="from inside") as raised:
        helpful(Box.fit)(Box(-1))
    assert not isinstance(raised.value, ShoalError)
    assert make(1, height=2) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("size", "Write box.width"),
        ("widht", "'width'"),
        ("learned_", "after fit"),
        ("zzz", "'zzz'"),
    ],
)
def test_attributes(name, said):
    with pytest.raises(UnknownAttribute, match=said) as raised:
        getattr(Box(1), name)
    assert isinstance(raised.value, AttributeError)
    assert not hasattr(Box(1), name)


def test_a_property_that_fails_says_why():
    with pytest.raises(AttributeError, match="nothing"):
        Box(1).broken  # noqa: B018 - the access is what fails
    with pytest.raises(AttributeError, match="'Box' object has no attribute '_hidden'"):
        Box(1)._hidden  # noqa: B018


def test_what_is_helped_stays_what_it_was():
    box = Box(3)
    assert copy.deepcopy(box) == pickle.loads(pickle.dumps(box)) == replace(box, width=3)
    assert str(inspect.signature(Box)) == "(width: 'int', height: 'int' = 1)"
    assert str(inspect.signature(sh.KAnonymity)).startswith("(k: 'int'")
    assert inspect.signature(make).parameters["height"].default == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("quasi", "quasi_identifiers"),
        ("QI", "quasi_identifiers"),
        ("sens", "sensitive"),
        ("sensitiv", "sensitive"),
        ("se", None),
        (5, None),
    ],
)
def test_the_nearest_name(given, meant):
    assert nearest_name(given, ["identifiers", "quasi_identifiers", "sensitive"]) == meant
