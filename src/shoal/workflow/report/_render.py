"""From facts to HTML: the templates, their filters and escaping, and the one script of a page."""

from __future__ import annotations

import base64
import hashlib
import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.notebook import clean, short
from shoal.workflow._plan import minimality_in_words
from shoal.workflow.report import _words

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket

_COMPILED = Path(__file__).with_name("__pycache__")
_ROLES = {"quasi_identifiers": "quasi-identifier"}


def render(template: str, **facts: Any) -> str:
    """Fill a template; every value is escaped."""
    from markupsafe import Markup

    # the script is a constant; the page's policy names its digest and so allows no other script
    script = Path(__file__).with_name("templates").joinpath("theme.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment().get_template(template)
    return page.render(script=Markup(script), script_digest=digest, **facts)


def _compiled_templates() -> BytecodeCache:
    """Keeps compiled templates in ``__pycache__``, as Python does with compiled modules."""
    import jinja2

    class Compiled(jinja2.FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):  # the folder is read-only
                    super().dump_bytecode(bucket)

    source = Path(__file__).read_bytes() + jinja2.__version__.encode()
    version = hashlib.sha256(source).hexdigest()[:16]
    return Compiled(str(_COMPILED), f"template-{version}-%s.{sys.implementation.cache_tag}")


@cache
def environment(*packages: str) -> Environment:
    """The templates of ``packages`` and of the reports, with their filters."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(p) for p in (*packages, "shoal.workflow.report")]),
        bytecode_cache=_compiled_templates(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clean": clean,
        "short": short,
        "px": lambda place: f"{place:.1f}".removesuffix(".0"),
        "percent": _words.percent,
        "number": _words.number,
        "counted": _words.counted,
        "chance": _words.chance,
        "role": lambda role: _ROLES.get(role, role),
        "minimality": partial(minimality_in_words, named=False),
    }
    return environment
