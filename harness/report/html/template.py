"""Parts of a page: templates with automatic escaping, assets, and the content security policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.html import overview

if TYPE_CHECKING:
    from jinja2 import Template

_ASSETS: Final = Path(__file__).parent / "assets"
_FILTERS: Final = ("dollars", "folded", "score", "seconds", "shown")


def policy(style: str, script: str = "") -> str:
    """Return the content security policy of a page: it allows only this style and this script, by their hashes."""
    allowed = f"script-src '{_hash(script)}'; connect-src 'self'; " if script else ""
    return (
        f"default-src 'none'; {allowed}style-src '{_hash(style)}'; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """Return the text of an asset: a script or a style sheet."""
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """Return a template."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(overview, name) for name in _FILTERS}
    environment.globals["plural"] = overview.plural
    return environment.get_template(name)


def safe(text: str) -> Any:
    """Mark a text of this package as safe, so that templates do not escape it."""
    from markupsafe import Markup

    return Markup(text)


def inert(json_text: str) -> Any:
    r"""Escape JSON for a script element: `<` becomes `\u003c`, and JavaScript's line separators are escaped too."""
    escaped = json_text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return safe(escaped)
