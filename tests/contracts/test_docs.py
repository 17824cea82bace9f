"""The descriptions of methods, models and measures."""

from __future__ import annotations

import doctest
import inspect

import pytest

from shoal.masking import discover_maskers
from shoal.models import discover_models
from shoal.parameters import parameters_of
from shoal.workflow import discover_all_measures

DISCOVERED = [
    *((f"methods/{name}", cls) for name, cls in discover_maskers().items()),
    *((f"models/{name}", cls) for name, cls in discover_models().items()),
    *((f"measures/{name}", info.function) for name, info in discover_all_measures().items()),
]
each = pytest.mark.parametrize(
    "thing", [thing for _, thing in DISCOVERED], ids=lambda t: t.__name__
)


def names_of(thing):
    if inspect.isclass(thing):
        return [parameter.name for parameter in parameters_of(thing)]
    return list(inspect.signature(thing).parameters)


@each
def test_docstring_has_its_sections(thing):
    text = inspect.getdoc(thing)
    for section in ("Parameters", "References", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text, f"no section {section}"


@each
def test_docstring_names_every_parameter(thing):
    text = inspect.getdoc(thing)
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line.split(" : ")[0] for line in section.splitlines() if " : " in line]
    assert [name for head in heads for name in head.split(", ")] == names_of(thing)


@each
def test_docstring_has_an_example_that_is_run(thing):
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing))
    assert any(example.want for example in examples)
    assert any(thing.__name__ in example.source for example in examples)


@each
def test_the_first_line_is_one_sentence(thing):
    first = inspect.getdoc(thing).splitlines()[0]
    assert first.endswith(".")
    assert first[0].isupper()


@pytest.mark.parametrize("page", [page for page, _ in DISCOVERED])
def test_has_a_page_in_the_documentation(page, repository):
    path = repository / "docs" / f"{page.replace('_', '-')}.md"
    assert path.is_file(), f"write {path.relative_to(repository)}"
    assert len(path.read_text("utf-8").split()) > 30


@pytest.mark.parametrize("cls", discover_maskers().values(), ids=lambda cls: cls.method)
def test_a_method_describes_itself_for_the_list_of_methods(cls):
    assert cls.summary
    assert cls.reference
    assert isinstance(cls.is_random, bool)
    assert cls.is_random == ("random_state" in names_of(cls))


@pytest.mark.parametrize("cls", discover_models().values(), ids=lambda cls: cls.model)
def test_a_model_describes_itself(cls):
    assert cls.title
    assert cls.reference
