"""Everything that discovery finds has an example in the contracts, and the other way round."""

from __future__ import annotations

import inspect

import pytest

import shoal
from shoal.masking import Masker, discover_maskers
from shoal.models import PrivacyModel, discover_models
from shoal.workflow import discover_all_measures

from .parts.measure_examples import MEASURES
from .parts.model_examples import MODELS
from .parts.registry import APART, MASKERS

EXAMPLES = {
    "methods": (discover_maskers, {*APART, *(example.method for example in MASKERS)}),
    "models": (discover_models, {example.model for example in MODELS}),
    "measures": (discover_all_measures, {example.name for example in MEASURES}),
}


@pytest.mark.parametrize("what", EXAMPLES)
def test_all_that_is_discovered_has_an_example(what):
    discover, named = EXAMPLES[what]
    assert set(discover()) - named == set(), f"{what} without an example in the registry"
    assert named - set(discover()) == set(), f"examples in the registry for no {what}"


def test_discovery_finds_what_the_front_door_offers():
    """A class or measure that is exported but not discovered would escape every contract."""
    offered = [getattr(shoal, name) for name in shoal.__all__]
    classes = [thing for thing in offered if inspect.isclass(thing)]
    maskers = {cls for cls in classes if issubclass(cls, Masker)}
    models = {cls for cls in classes if issubclass(cls, PrivacyModel)}
    assert maskers == set(discover_maskers().values())
    assert models == set(discover_models().values())
    assert len(maskers) >= 5


def test_names_in_plans_are_plain_words():
    for name in [*discover_maskers(), *discover_models(), *discover_all_measures()]:
        assert name.replace("_", "").isalpha()
        assert name == name.lower()


def test_a_new_class_would_be_found(tmp_path, monkeypatch):
    """Discovery finds a module that is added to a package, without any list."""
    from shoal.discovery import concrete_subclasses

    package = tmp_path / "planted"
    package.mkdir()
    (package / "__init__.py").write_text("class Base: pass\n")
    (package / "_one.py").write_text("from planted import Base\nclass One(Base): pass\n")
    (package / "_two.py").write_text("from planted._one import One\nclass Two(One): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import planted

    names = [cls.__name__ for cls in concrete_subclasses("planted", planted.Base)]
    assert names == ["One", "Two"]
