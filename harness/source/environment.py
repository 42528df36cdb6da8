"""Substitution of `${VAR}` in the values of a document.

Source: sherma.txt, "Environment variable substitution".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness.errors import ManifestError, Problem
from harness.source.document import Document, DocumentPath

_REFERENCE: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Z_][A-Z0-9_]*)(?::-(?P<default>[^}]*))?\})"
)


def substitute(document: Document, env: Mapping[str, str]) -> Document:
    """Return the document with `${VAR}` and `${VAR:-default}` replaced in every text value, but not in keys.

    A name is `[A-Z_][A-Z0-9_]*`. The default extends to the first `}`, and is used if the variable is unset (an empty
    one is set). `$$` becomes `$`, once, from left to right. Everything else stays: `$A`, `${1X}`, `${lower}`.
    Locations stay those of the file.

    Raises:
        ManifestError: variables are missing. It names all of them, sorted, with the location of the first use.
    """
    substitution = _Substitution(env)
    value = substitution.of(document.value, ())
    if substitution.missing:
        raise ManifestError(_problems(document, substitution.missing))
    return document.with_value(value)


class _Substitution:
    def __init__(self, env: Mapping[str, str]) -> None:
        self.missing: list[tuple[str, DocumentPath]] = []
        self._env = env
        # Copies by id of the original, as aliases of one anchor share one object.
        self._done: dict[int, Any] = {}

    def of(self, value: Any, path: DocumentPath) -> Any:
        if isinstance(value, str):
            return self._text(value, path) if "$" in value else value
        if not isinstance(value, (dict, list)):
            return value
        if id(value) not in self._done:
            if isinstance(value, dict):
                self._done[id(value)] = {key: self.of(item, (*path, key)) for key, item in value.items()}
            else:
                self._done[id(value)] = [self.of(item, (*path, at)) for at, item in enumerate(value)]
        return self._done[id(value)]

    def _text(self, text: str, path: DocumentPath) -> str:
        def replacement(found: re.Match[str]) -> str:
            name, default = found["name"], found["default"]
            if found["dollar"]:
                return "$"
            if name in self._env:
                return self._env[name]
            if default is None:
                self.missing.append((name, path))
                return found.group()
            return str(default)

        return _REFERENCE.sub(replacement, text)


def _problems(document: Document, missing: list[tuple[str, DocumentPath]]) -> list[Problem]:
    """Return one problem for each missing variable, sorted by name. The first names all of them."""
    first_use: dict[str, DocumentPath] = {}
    for name, path in missing:
        first_use.setdefault(name, path)
    names = sorted(first_use)
    texts = [f"the environment variable {name} is not set" for name in names]
    if len(names) > 1:
        texts[0] = f"the environment variables {', '.join(names)} are not set"
    hint = "give it a value under 'env' in the scenario, or a default: ${NAME:-default}"
    return [
        Problem("missing-variable", text, document.span(first_use[name]), hint if name == names[0] else "")
        for name, text in zip(names, texts, strict=True)
    ]
