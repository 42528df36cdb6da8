"""Conversion of YAML scalars to values, by version.

* 1.1, as PyYAML's `safe_load`: `yes` and `on` are booleans, `012` is ten, `1:30` is ninety, dates are `datetime`
  values;
* 1.2, core schema: only `true` and `false` are booleans, `012` is twelve, dates are text;
* vcr, for cassettes of vcrpy: 1.1, but dates are text, and `!!binary` is bytes.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Any, Final

import yaml as pyyaml
from yaml.constructor import SafeConstructor
from yaml.nodes import ScalarNode

Resolve = Callable[[str], Any]
"""Converts a plain scalar to its value. Raises ValueError for a date or number that does not exist."""

PREFIX: Final = "tag:yaml.org,2002:"


def resolve_1_1(text: str) -> Any:
    """Return the value of a plain scalar in PyYAML's `SafeLoader`."""
    for tag, pattern in pyyaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            if tag in _TEXT_TAGS_1_1:
                return text
            return SafeConstructor.yaml_constructors[tag](_CONSTRUCTOR, ScalarNode(tag, text))
    return text


_CONSTRUCTOR: Final = SafeConstructor()
_TEXT_TAGS_1_1: Final = {PREFIX + "merge", PREFIX + "value", PREFIX + "yaml"}

_CORE_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_CORE_NUMBER: Final = re.compile(
    r"(?P<int>[-+]?[0-9]+)|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_CORE_FIRST: Final = frozenset("~nNtTfF.+-0123456789")


def resolve_1_2(text: str) -> Any:
    """Return the value of a plain scalar in the core schema. Source: YAML 1.2.2, 10.3.2."""
    if text and text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    found = _CORE_NUMBER.fullmatch(text)
    if found is None:
        return text
    match found.lastgroup:
        case "int":
            return int(text)
        case "oct":
            return int(found["oct"], 8)
        case "hex":
            return int(found["hex"], 16)
        case _:
            return float(text)


def resolve_vcr(text: str) -> Any:
    """Return the value of a plain scalar in a cassette: JSON data, so a date of 1.1 is text."""
    try:
        value = resolve_1_1(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | None) else text


def tagged(tag: str, text: str, resolve: Resolve) -> Any:
    """Return the value of `!!tag text`.

    Raises:
        ValueError: the text is not valid for the tag.
        LookupError: the tag is unknown.
    """
    if tag == "str":
        return text
    if tag == "null":
        return None
    if tag == "binary" and resolve is resolve_vcr:
        return binascii.a2b_base64(text)
    value = resolve(text)
    if tag == "float":
        return float(value if type(value) in (int, float) else text)
    if type(value).__name__ in _TYPES_OF_TAG[tag]:
        return value
    raise ValueError


_TYPES_OF_TAG: Final = {"int": ("int",), "bool": ("bool",), "timestamp": ("date", "datetime")}
