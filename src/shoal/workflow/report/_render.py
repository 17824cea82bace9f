"""From facts to HTML: the templates, what escapes them, and the one script of a page."""

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
    """Fill a template; everything that is put into it is escaped."""
    from markupsafe import Markup

    # the script is a constant, and the page's policy admits no other: it names the digest
    script = Path(__file__).with_name("templates").joinpath("theme.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment().get_template(template)
    return page.render(script=Markup(script), script_digest=digest, **facts)


def _compiled_templates() -> BytecodeCache:
    """Templates that were compiled are kept beside the modules, as Python keeps those."""
    import jinja2

    class Compiled(jinja2.FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):  # a folder that takes no files
                    super().dump_bytecode(bucket)

    source = Path(__file__).read_bytes() + jinja2.__version__.encode()
    made_by = hashlib.sha256(source).hexdigest()[:16]
    return Compiled(str(_COMPILED), f"template-{made_by}-%s.{sys.implementation.cache_tag}")


@cache
def environment(*packages: str) -> Environment:
    """The templates of reports, and of other packages before them, with what fills them."""
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
