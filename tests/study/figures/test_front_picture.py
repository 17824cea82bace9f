"""The picture of plans by risk and utility: a file of its own, and a part of a page."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from shoal.study.figures import front_of, plans_svg
from shoal.study.figures._plans import FRONT_COLUMNS
from shoal.study.tuning import Tried

SVG = "{http://www.w3.org/2000/svg}"


def plans(*places, family="swap"):
    return [
        Tried(family, ({"k": number},), risk, None, utility).to_spot()
        for number, (risk, utility) in enumerate(places, start=2)
    ]


def drawn(front, **more):
    return ElementTree.fromstring(plans_svg(front, risk="linked", utility="left", **more))


def texts(picture):
    return ["".join(text.itertext()).strip() for text in picture.iter(f"{SVG}text")]


def test_every_plan_has_a_circle_and_those_of_the_front_a_number():
    front = front_of(plans((0.1, 0.5), (0.2, 0.4), (0.4, 0.9)), 0.3, None)
    picture = drawn(front, chosen="swap k=2")
    dots = [
        circle
        for group in picture.iter(f"{SVG}g")
        for circle in group.iter(f"{SVG}circle")
        if circle.get("r") == "4.5"
    ]
    assert [dot.get("fill") == "none" for dot in dots] == [False, False, True]
    said = texts(picture)
    assert {"1", "2", "1  swap k=2", "2  swap k=4", "chosen: swap k=2"} <= set(said)
    assert not any(text.endswith("swap k=3") for text in said)
    assert any("limit" in text for text in said)
    rings = [one for one in picture.iter(f"{SVG}circle") if one.get("class") == "chosen"]
    assert len(rings) == 2  # the plan, and the legend
    assert dots[0].get("cx") == rings[0].get("cx")


def test_dots_lie_where_the_numbers_say():
    front = front_of(plans((0.1, 0.5), (0.4, 0.9)), None, None)
    first, second = front.spots
    assert first.x < second.x
    assert first.y > second.y
    assert front.rows == [
        ("swap k=2", "swap", 0.1, 0.5, True),
        ("swap k=3", "swap", 0.4, 0.9, True),
    ]
    assert len(FRONT_COLUMNS) == len(front.rows[0])
    assert not any("limit" in text for text in texts(drawn(front)))


@pytest.mark.parametrize("name", ["<b>&amp;</b>", "a\x00b", "]]>", "Ω" * 300, '"quoted"'])
def test_any_name_of_a_family_gives_a_picture(name):
    front = front_of(plans((0.1, 0.5), family=name), 0.2, None)
    assert list(drawn(front, chosen=front.spots[0].label).iter(f"{SVG}circle"))


def test_plans_without_a_utility_are_not_drawn():
    front = front_of(plans((0.1, float("nan")), (float("nan"), 0.2)), 0.2, None)
    assert front.spots == ()
    assert front.unmeasured == 2
    assert drawn(front) is not None
