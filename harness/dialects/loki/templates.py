"""Rendering of templates, texts with `{{path}}`, from the state. spec: "State and Template Syntax".

A path consists of letters, digits and `_ . [ ]`; braces around anything else are text. Inserted text is not expanded
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.dialects.kit.templates import fill, placeholders
from harness.dialects.loki.json_text import text_of
from harness.errors import HarnessError
from harness.source.suggest import nearest

TEMPLATE: Final = re.compile(r"\{\{([\w.\[\]]+)\}\}", re.ASCII)
_PATH: Final = re.compile(r"(\w+)((?:\[\d+\])*)(?:\.(?=\w)|$)", re.ASCII)
_WHOLE_PATH: Final = re.compile(r"\w+(?:\[\d+\])*(?:\.\w+(?:\[\d+\])*)*", re.ASCII)
_INDEX: Final = re.compile(r"\d+", re.ASCII)
_MISSING: Final = object()
MISSPELLING_CUTOFF: Final = 0.8
"""The similarity from which a key counts as a misspelling of another."""
_MAX_DIGITS: Final = 1000  # of an index; Python refuses to parse integers of many thousand digits


class MissingPath(HarnessError):
    """A template in a strict field with paths that the state does not have."""

    code = "missing-path"


def render(template: str, state: Mapping[str, Any]) -> str:
    """Render a template in strict mode.

    Raises:
        MissingPath: the state does not have some of its paths. The message names them all.
    """
    missing = dict.fromkeys(path for path in paths(template) if look_up(path, state) is _MISSING)
    if missing:
        raise MissingPath(
            f"the state has no {', '.join(_missing_path_text(path, state) for path in missing)}"
        )
    return render_leniently(template, state)


def render_leniently(template: str, state: Mapping[str, Any]) -> str:
    """Render a template in lenient mode: a path that the state does not have is empty text."""
    return str(fill(template, TEMPLATE, lambda found: _text(look_up(found[1], state))))


def paths(template: str) -> Iterator[str]:
    """Return the paths in a template, in order."""
    return (found[1] for found in placeholders(template, TEMPLATE))


def is_path(text: str) -> bool:
    """True if the text between the braces of a template is a well-formed path. Others are missing in every state."""
    return _WHOLE_PATH.fullmatch(text) is not None


def look_up(path: str, state: Mapping[str, Any]) -> Any:
    """Return the value at a path such as `users[0].name`; `_MISSING` if there is none."""
    value: Any = state
    position = 0
    while position < len(path):
        step = _PATH.match(path, position)
        if step is None or not isinstance(value, Mapping) or step[1] not in value:
            return _MISSING
        value = value[step[1]]
        for index in _INDEX.findall(step[2]):
            if not isinstance(value, list) or len(index) > _MAX_DIGITS or int(index) >= len(value):
                return _MISSING
            value = value[int(index)]
        position = step.end()
    return value


def _missing_path_text(missing: str, state: Mapping[str, Any]) -> str:
    """Describe a missing path in a message, with the most similar path of the state."""
    holder, position = state, 0
    while isinstance(holder, Mapping) and (step := _PATH.match(missing, position)) is not None:
        if step[1] not in holder:
            near = nearest(step[1], map(str, holder), cutoff=MISSPELLING_CUTOFF)
            meant = f"{missing[:position]}{near}{missing[position + len(step[1]) :]}"
            known = near is not None and look_up(meant, state) is not _MISSING
            return f"{{{{{missing}}}}}" + (f" (did you mean {{{{{meant}}}}}?)" if known else "")
        position = step.end()
        holder = look_up(missing[:position].rstrip("."), state)
    return f"{{{{{missing}}}}}"


def _text(value: Any) -> str:
    """Render a value. spec: "Rendering rules per value type"."""
    return "" if value is _MISSING else text_of(value)
