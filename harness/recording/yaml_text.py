"""Plain data as YAML that people review: stable, one thing a line, long texts as they are.

A dumper of its own: those of PyYAML escape emoji or depend on whether libyaml is there, and put texts into quotes
that are not to be touched.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from harness.source.scalars import resolve_1_1

MAX_DEPTH: Final = 200


class Block(str):
    """A text to be written as a block of lines, even when it is one line."""

    __slots__ = ()


class Flow(tuple[Any, ...]):
    """A list of numbers to be written on one line."""

    __slots__ = ()


def dump(value: Mapping[str, Any]) -> bytes:
    """The mapping as a YAML document in UTF-8: JSON data, bytes, `Block` and `Flow`. Keys keep their order.

    Half surrogates, which no file can have, become U+FFFD.

    Raises:
        ValueError: nested too deeply, or something in it is no plain data.
    """
    lines: list[str] = []
    _write(lines, value, 0, 0)
    return ("\n".join(lines) + "\n").encode()


def _write(lines: list[str], value: Any, indent: int, depth: int) -> None:
    """Append the lines of a mapping or list that is not empty."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    pad = " " * indent
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = _one_line(str(key))
            is_long = len(name) > _LONG_KEY
            if is_long:
                lines.append(f"{pad}? {name}")
            beside = not is_long and not isinstance(item, Mapping)  # the items of a list stand below its key
            head = f"{pad}:" if is_long else f"{pad}{name}:"
            if _is_open(item):
                lines.append(head)
                _write(lines, item, indent if beside else indent + 2, depth + 1)
            else:
                _append(lines, head, item, indent)
    else:
        for item in value:
            if _is_open(item):
                at = len(lines)
                _write(lines, item, indent + 2, depth + 1)
                lines[at] = f"{pad}- {lines[at][indent + 2 :]}"
            else:
                _append(lines, f"{pad}-", item, indent)


def _append(lines: list[str], head: str, value: Any, indent: int) -> None:
    """Append `head` and the scalar after it."""
    first, *rest = _scalar(value)
    lines.append(f"{head} {first}")
    pad = " " * (indent + 2)
    lines += [pad + line if line else "" for line in rest]


def _is_open(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value) and not isinstance(value, Flow)


# ---------------------------------------------------------------- scalars

_LONG_KEY: Final = 120
_PLAIN: Final = re.compile(r"[A-Za-z/][\w./@+()=;,?&%~-]*(?:(?: |:(?=[\w/]))[\w./@+()=;,?&%~-]+)*", re.ASCII)
_HIDDEN: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_NO_BLOCK: Final = re.compile(rf"[{_HIDDEN}]|[ \t](?:\n|\Z)|\A\n*\Z")
_ESCAPED: Final = re.compile(rf'[{_HIDDEN}\t\n"\\]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _scalar(value: Any) -> list[str]:
    """The lines of a scalar, or of an empty list or mapping; all but the first without their indentation."""
    match value:
        case None:
            return ["null"]
        case bool():
            return ["true" if value else "false"]
        case int():
            return [str(value)]
        case float():
            return [_float(value)]
        case bytes():
            text = b64encode(value).decode("ascii")
            return ["!!binary |", *(text[at : at + 76] for at in range(0, len(text), 76))] if text else ["''"]
        case str():
            return _text(value)
        case Mapping():
            return ["{}"]
        case list() | tuple():
            return [f"[{', '.join(_scalar(item)[0] for item in value)}]"]
    raise ValueError(f"a {type(value).__name__} is no plain data")


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # YAML 1.1 takes 1e+16 for a text: a float has a point.
    return text if "." in text else text.replace("e", ".0e")


def _text(text: str) -> list[str]:
    if ("\n" in text or isinstance(text, Block)) and not _NO_BLOCK.search(text):
        ends = len(text) - len(text.rstrip("\n"))
        hint = "2" if text[0] in " \t\n" else ""
        return [f"|{hint}{('-', '', '+')[min(ends, 2)]}", *text.removesuffix("\n").split("\n")]
    if "\n" not in text:
        return [_one_line(text)]
    # A backslash at the end of a line joins it with the next, whose first space needs another.
    first, *rest = (_quoted(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text))
    lines = [f'"{first}', *(f"\\{line}" if line[0] == " " else line for line in rest)]
    return [*(f"{line}\\" for line in lines[:-1]), f'{lines[-1]}"']


def _one_line(text: str) -> str:
    if _PLAIN.fullmatch(text) and resolve_1_1(text) == text:
        return str(text)
    return f'"{_quoted(text)}"'


def _quoted(text: str) -> str:
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"
