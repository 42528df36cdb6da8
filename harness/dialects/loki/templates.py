"""Rendering of templates, texts with `{{path}}`, from the state. spec: "State and Template Syntax".

A path consists of letters, digits and `_ . [ ]`; braces around anything else are text. Inserted text is not expanded
again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from harness.dialects.kit.manifest import fill, placeholders
from harness.dialects.loki.document import NodeSpec
from harness.errors import HarnessError
from harness.graph.to_json import MAX_DEPTH, compact_json
from harness.source.display import clip, nearest

_EXPONENT: Final = re.compile(r"\de[+-]\d")
_NUMBER: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(\d)(?:\.(\d+))?e([+-]\d+)')
_LOWEST_DECIMAL: Final = -5  # serde_json writes 0.00001 without an exponent, Python 1e-05


def json_text(value: Any) -> str:
    """Return a value as compact JSON. Only number exponents differ from Python's: `1e20`, not `1e+20`."""
    text = compact_json(value)
    return _NUMBER.sub(_as_serde, text) if _EXPONENT.search(text) else text


def text_of(value: Any) -> str:
    """Return text as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else json_text(value)


def _as_serde(found: re.Match[str]) -> str:
    """Reformat a number with an exponent; return a string literal, which the pattern also matches, as it is."""
    if found[3] is None:
        return found[0]
    digit, decimals, exponent = found[1], found[2] or "", int(found[3])
    if exponent == _LOWEST_DECIMAL:
        return f"0.{'0' * (-exponent - 1)}{digit}{decimals}"
    return f"{digit}.{decimals}e{exponent}" if decimals else f"{digit}e{exponent}"


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
        named = ", ".join(_missing_path_text(path, state) for path in missing)
        raise MissingPath(f"the state has no {named}")
    return render_leniently(template, state)


def render_leniently(template: str, state: Mapping[str, Any]) -> str:
    """Render a template in lenient mode: a path that the state does not have is empty text.

    spec: "Rendering rules per value type".
    """

    def text(found: re.Match[str]) -> str:
        return "" if (value := look_up(found[1], state)) is _MISSING else text_of(value)

    return str(fill(template, TEMPLATE, text))


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


_TOO_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"
_SHOWN: Final = 20  # characters of a text in messages
_INTEGERS: Final = range(-(2**63), 2**64)  # i64 and u64
_STRICT_JSON_MAX_DIGITS: Final = 20  # characters of such an integer, the sign included
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: the text is not JSON, or it has `NaN` or an infinite or too large number, half of a surrogate
            pair, or more than `MAX_DEPTH` levels of nesting. The message has the reason, and for a syntax error the
            position.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_parse_float, parse_int=_parse_integer)
    except json.JSONDecodeError as error:
        raise ValueError(_error_message(text, error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair in a text")
    return value


def _is_too_deep(value: Any) -> bool:
    """True if lists and mappings are nested more than `MAX_DEPTH` levels deep. Traces would cut the rest off."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            part
            for held in level
            for part in (held.values() if isinstance(held, dict) else held)
            if isinstance(part, dict | list)
        ]
    return bool(level)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _parse_float(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise ValueError(f"the number {clip(written, _SHOWN)} is too large")
    return value


def _parse_integer(written: str) -> int | float:
    """Return an integer; as in serde_json a floating-point number if it does not fit into 64 bits."""
    if len(written) <= _STRICT_JSON_MAX_DIGITS and (value := int(written)) in _INTEGERS:
        return value
    return _parse_float(written)


def _error_message(text: str, error: json.JSONDecodeError) -> str:
    """Describe a syntax error and its position."""
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark"
    rest = text[error.pos :]
    what = f"{clip(rest, _SHOWN)!r} is unexpected" if rest else "the end is missing"
    return f"line {error.lineno}, column {error.colno}: {what}"


class Written(dict[str, Any]):
    """A state after a node, with the keys that the node wrote."""

    written: frozenset[str] = frozenset()


def written(state: Mapping[str, Any], values: Mapping[str, Any]) -> Written:
    """Return the state with values that a node writes."""
    made = Written({**state, **values})
    made.written = getattr(state, "written", frozenset()) | values.keys()
    return made


def whole_value(template: str, state: Mapping[str, Any]) -> Any:
    """Return the value, of any type, of a template that is nothing but one path; None if there is none."""
    found = TEMPLATE.fullmatch(template.strip())
    value = look_up(found[1], state) if found else _MISSING
    return None if value is _MISSING else value


def apply_state_updates(state: Mapping[str, Any], node: NodeSpec, result: Any = None) -> Written:
    """Return the state after the `state_updates` of a node. Every stored value is text.

    The templates see `result` as the node's scoped variable (`output`, `choice` or `input`). A state key of that
    name is restored afterwards.
    """
    if node.result_key is not None and result is not None:
        return written(state, {node.result_key: result})
    after, scoped = dict(state), node.scoped
    if not node.state_updates:
        return written(state, {})
    if scoped is not None:
        after[scoped] = result
    for key, template in node.state_updates.items():
        after[key] = render_leniently(template, after)
    if scoped is not None:
        del after[scoped]
        if scoped in state:
            after[scoped] = state[scoped]
    return written(state, {key: after[key] for key in node.state_updates if key in after})
