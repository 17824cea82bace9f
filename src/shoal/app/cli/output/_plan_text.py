"""The text of a first plan: TOML whose every part is explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shoal.table import Roles

_WIDEST: Final = 88

_HEAD: Final = """\
# A first plan, written by 'shoal init'. It is a guess: check the roles, then the steps.
# 'shoal methods' explains every method, 'shoal assess DATA --plan THIS' the exposure now.
# Rows are shuffled in the release; keep_order = true (up here) would leave them in place.
"""
_ROLES: Final = """\
# Who is who. A column in no list leaves as it is; one that looks like an identifier must be
# under identifiers, or under insensitive if it may leave.
[roles]
"""
_ABOUT_ROLES: Final = {
    "identifiers": "name a person by themselves: taken out of every release",
    "quasi_identifiers": "what an intruder may know: masked, and counted for k",
    "sensitive": "what nobody should learn about a person",
    "insensitive": "may leave as they are",
    "weight": "how many people of the population a record stands for",
    "target": "what a model is to predict",
    "unit": 'whose row it is: k counts these persons; "row" says that each row is a person',
    "household": "who lives together: sampled and suppressed as a whole",
}
_REQUIRE: Final = """\
# What must hold after masking, checked by other code than masks; else nothing is written.
# Further limits: max_<measure> or min_<measure>, as listed by 'shoal methods'.
[require]
k_anonymity = {k}  # nobody stands in a crowd of fewer than {k}
"""


@dataclass(frozen=True)
class StepText:
    """One step of a plan: a remark, the method, its parameters, and the tables below them."""

    remark: str
    method: str
    parameters: dict[str, Any]
    below: str = ""


def plan_text(
    roles: Roles,
    steps: Sequence[StepText],
    k: int,
    *,
    others: Sequence[str] = (),
) -> str:
    """The plan as TOML with a remark on every part; ``others`` are the columns without a role.

    Examples
    --------
    >>> from shoal import Roles
    >>> step = StepText("Ages are rounded.", "round", {"base": 5, "columns": ["age"]})
    >>> text = plan_text(Roles(quasi_identifiers=["age"]), [step], k=3)
    >>> print(text[text.index("# Ages") : text.index("# What must")])
    # Ages are rounded.
    [[steps]]
    method = "round"
    base = 5
    columns = ["age"]
    <BLANKLINE>
    """
    written = [_step(step) for step in steps]
    return "\n".join([_HEAD, _roles_text(roles, others), *written, _REQUIRE.format(k=k)])


def _roles_text(roles: Roles, others: Sequence[str]) -> str:
    given: dict[str, Any] = {"quasi_identifiers": [], **roles.to_dict()}
    lines = [
        f"# {about}\n{role} = {_value(given[role], role)}\n"
        for role, about in _ABOUT_ROLES.items()
        if role in given
    ]
    if others:
        listed = f"insensitive = {_value(list(others), 'insensitive')}"
        lines.append("# in no list; take the marks away if they may leave as they are\n")
        lines += [f"# {line}\n" for line in listed.splitlines()]
    return _ROLES + "".join(lines)


def _step(step: StepText) -> str:
    remark = f"# {step.remark}\n"
    parameters = "".join(
        f"{name} = {_value(value, name)}\n" for name, value in step.parameters.items()
    )
    return f'{remark}[[steps]]\nmethod = "{step.method}"\n{parameters}{step.below}'


def _value(value: Any, name: str) -> str:
    """A value in TOML; a list that is too long for a line, one item per line."""
    import tomlkit

    if not isinstance(value, list):
        return tomlkit.item(value).as_string()
    items = [tomlkit.item(item).as_string() for item in value]
    line = f"[{', '.join(items)}]"
    if len(name) + 3 + len(line) <= _WIDEST:
        return line
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
