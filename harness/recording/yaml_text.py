"""Writes plain data as YAML for review by people: stable order, one value a line, multi-line texts as blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml
from yaml.emitter import ScalarAnalysis

from harness.source.location import MAX_DEPTH

_HIDDEN: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_NO_BLOCK: Final = re.compile(rf"[{_HIDDEN}]|[ \t](?:\n|\Z)|\A\t|\A\n*\Z")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Block(str):
    """A text that is written as a literal block, even if it is one line."""

    __slots__ = ()


class FlowSequence(tuple[Any, ...]):
    """A list of numbers that is written on one line."""

    __slots__ = ()


def dump(value: Mapping[str, Any]) -> bytes:
    """Return the mapping as a YAML document in UTF-8. Keys keep their order.

    Values may be JSON data, bytes, `Block` and `FlowSequence`. Lone surrogates, which UTF-8 cannot encode, become
    U+FFFD.

    Raises:
        ValueError: nested more deeply than documents may be, or a value has another type.
    """
    _check_depth(value, 1)
    try:
        return yaml.dump(
            value, Dumper=_Dumper, encoding="utf-8", allow_unicode=True, sort_keys=False, width=_NO_WRAPPING
        )
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


_NO_WRAPPING: Final = 2**31  # with wrapping, one changed word would move all lines after it


def _check_depth(value: Any, depth: int) -> None:
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_depth(item, depth + 1)


class _Dumper(yaml.SafeDumper):
    """The pure-Python dumper (libyaml's escapes emoji), without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        # PyYAML would not write a text with tabs as a block, and its analysis of long texts is slow.
        if getattr(self.event, "style", None) == "|":
            return ScalarAnalysis(scalar, False, True, False, False, False, True, True)
        return super().analyze_scalar(scalar)


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    style = None if "\n" not in text and not isinstance(text, Block) else "|"
    if _NO_BLOCK.search(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Block, _text)
_Dumper.add_representer(
    FlowSequence,
    lambda dumper, numbers: dumper.represent_sequence("tag:yaml.org,2002:seq", numbers, flow_style=True),
)
